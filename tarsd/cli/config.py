"""The commands about settings: init, config check, config path."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path

import click

from tarsd import files
from tarsd.cli.common import Command, Folder, Group, json_option, print_json, tell, vault_option
from tarsd.cli.terminal import ESCAPED, fit, line
from tarsd.errors import BadRequest, ConfigError, Refused, VaultUnavailable

TEMPLATE = """\
# Settings of tarsd. Only the vault is needed; lines starting with # show the defaults.
# A running daemon reads it again once you save it; tarsd config check shows errors.

[vault]
path = {path}
# exclude = ["Templates/", "*.excalidraw.md"]   # besides Obsidian's own excluded files
# memory_folder = "tars"
# include_comments = false                       # also index %% comments %%

# [[collection]]                                 # further read-only folders, searched under their own name
# name = "work"
# path = "~/Work/notes"

[embedding]
# model = "auto"       # or "minilm", "e5" (multilingual), "table" (instant, no model), "ollama:MODEL", "openai:MODEL"

[chat]
# model = "auto"       # or "extractive" (no model), "ollama:MODEL", "openai:MODEL", "anthropic:MODEL"
# fallback = ""        # the model that answers when that one is unavailable or overloaded

[memory]
# enabled = true        # remember what you tell it, in tars/Memory.md
# session_notes = true  # save conversations as notes in tars/sessions/
# note_each_question = false  # also single questions answered without a model

[tools]
# allow = []            # tools that need no approval, such as "daily_note_append", "weather"
# weather_place = ""    # a place, for the weather

# [[mcp]]               # an MCP server whose tools the model may use, after your approval
# name = "fetch"
# command = ["uvx", "mcp-server-fetch"]

[performance]
# profile = "normal"    # or "small", for a machine with little memory

[privacy]
# local_only = ["Private/", "#private"]          # never sent off this machine
"""


@click.command(cls=Command)
@click.option("--vault", type=Folder(), required=True, help="The folder of notes.")
@click.option("--force", is_flag=True, help="Replace an existing config.")
@json_option
def init(vault: Path, force: bool, as_json: bool) -> None:
    """Write a config for the vault at PATH."""
    from tarsd.config import config_file, expand
    from tarsd.doctor.embedding import advice_for

    root, file = expand(str(vault), os.environ), config_file()
    if not os.path.isdir(root):
        raise BadRequest(
            f"There is no folder {fit(str(root), 200)}.", "Give the folder with your notes.", field="vault"
        )
    try:
        text = TEMPLATE.format(path=json.dumps(str(root), ensure_ascii=False).replace("\x7f", "\\u007f"))
        raw = text.encode()
    except UnicodeEncodeError:
        raise BadRequest(
            "The vault's path is not UTF-8, so the config cannot contain it.", "Rename the folder."
        ) from None
    try:
        files.make_folder(file.parent)
        written = _write(file, raw, root, force=force)
    except OSError as error:
        raise Refused(
            f"{fit(str(file), 200)} cannot be written: {error.strerror}.",
            "Set TARSD_HOME or TARSD_CONFIG to another place.",
        ) from None
    helps = advice_for(root)
    if as_json:
        print_json({"config": str(file), "vault": str(root), "written": written, "advice": helps})
        return
    click.echo(f"Wrote {line(file)}" if written else f"{line(file)} already has this vault.")
    if not (root / ".obsidian").is_dir():
        click.echo("The folder was never opened in Obsidian; that is fine, any folder of Markdown notes works.")
    for sentence in helps:
        click.echo(line(sentence))
    click.echo("Next: tarsd run")


def _write(file: Path, raw: bytes, root: Path, *, force: bool) -> bool:
    """The whole file or nothing; False where it names the vault `root` already and stays as it is.

    Raises Refused when it is there, names another vault, and not `force`; OSError as it comes.
    """
    if force:
        files.replace(file, raw)
        return True
    with files.beside(file, raw) as draft:
        try:
            os.link(draft, file)  # fails when the file is there, at whatever moment it came
        except FileExistsError:
            named = _named_vault()
            if named is not None and os.path.realpath(named) == os.path.realpath(root):
                return False
            of = f" Its vault is {line(named)}." if named is not None else ""
            raise Refused(
                f"{line(file)} already exists and was not changed.{of}", "Edit it, or use --force to replace it."
            ) from None
    return True


def _named_vault() -> Path | None:
    """The vault that the config names, None where it names none that can be read."""
    from tarsd.config.places import configured_vault

    with contextlib.suppress(ConfigError):
        return configured_vault(os.environ)
    return None


@click.group(cls=Group)
def config() -> None:
    """Show the settings."""


@config.command()
@click.option("--vault", type=Folder(), help="Check as if run with this vault.")
@json_option
def check(vault: Path | None, as_json: bool) -> None:
    """Print the settings in force, or all errors in the config (exit code 78)."""
    from tarsd.config import as_tables, load
    from tarsd.config.rules import CORRECT
    from tarsd.doctor.settings import certificate_sentences
    from tarsd.doctor.vault import idle_sentences

    settings = load(vault=vault)
    tables = as_tables(settings)
    folders = {"vault.path": settings.vault, **{f"collection {one.name}": one.root for one in settings.collections}}
    warnings = [f"{name}: There is no folder {at}." for name, at in folders.items() if not os.path.isdir(at)]
    if settings.exclude or settings.privacy.local_only:
        with contextlib.suppress(VaultUnavailable):  # that is no fault of the settings
            warnings = idle_sentences(settings)
    warnings += certificate_sentences(settings, {})
    if as_json:
        print_json({"config": str(settings.paths.config_file), "settings": tables, "warnings": warnings})
        return
    file = settings.paths.config_file
    click.echo(f"# {file}{'' if os.path.exists(file) else ' (not there: defaults)'}")
    for name, values in tables.items():
        for table in values if isinstance(values, list) else [values]:
            click.echo(f"\n{f'[[{name}]]' if isinstance(values, list) else f'[{name}]'}")
            for key, value in table.items():
                click.echo(f"# {key}: not set" if value is None else f"{key} = {_toml(value)}")
    for sentence in warnings:
        click.echo(f"\n# {line(sentence)} {CORRECT}")


@config.command()
@json_option
def path(as_json: bool) -> None:
    """Print the path of the config."""
    from tarsd.config import config_file

    file = config_file()
    tell({"config": str(file), "exists": os.path.exists(file)}, [str(file)], as_json=as_json)


@config.command()
@vault_option
@json_option
def socket(vault: Path | None, as_json: bool) -> None:
    """Print the path of the daemon's socket, for curl and other programs."""
    from tarsd.client import Client

    path = str(Client.find(vault).socket_path)
    tell({"socket": path}, [path], as_json=as_json)


def _toml(value: object) -> str:
    """A value as TOML spells it."""
    if isinstance(value, dict):
        keys = {key: key if re.fullmatch(r"[\w-]+", key, re.ASCII) else _toml(key) for key in value}
        return f"{{ {', '.join(f'{keys[key]} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).translate(ESCAPED)
