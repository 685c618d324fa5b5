"""The commands about the Obsidian plugin: copy its three files into a vault, and say which version is there."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import tarsd
from tarsd import config, files
from tarsd.cli.common import Folder, Group, json_option, known_vault, own_vault_option, print_json
from tarsd.cli.terminal import Terminal, line
from tarsd.errors import EXIT_NOTHING, NotFound, Refused, TarsdError

ID = "tarsd"
FILES = ("main.js", "styles.css", "manifest.json")
"""The manifest comes last: Obsidian reads the version in it."""

LARGEST = 8 << 20
"""Bytes of a file; those of the plugin, and Obsidian's list of plugins, are far smaller."""

VERSION = re.compile(r"[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}(-[0-9A-Za-z.-]{1,32})?")
UNKNOWN = "unknown"
"""In place of a version that the manifest does not name as it should."""

ENABLE = "Enable it in Obsidian: Settings → Community plugins → Tarsd."
AGAIN = "It is enabled; switch it off and on again, or restart Obsidian, to load this version."


@dataclass(frozen=True)
class Plugin:
    """A folder that holds the plugin, and its version; "" when it is not there or not whole, or `UNKNOWN`."""

    folder: Path
    version: str


@click.group(cls=Group, default="status")
def plugin() -> None:
    """Install the Obsidian plugin into a vault, or show its version.

    Without a command, the state is shown.
    """


@plugin.command()
@own_vault_option
@click.option(
    "--from", "source", type=Folder(), help="The folder with the plugin's files, if not those that came with tarsd."
)
@json_option
def install(vault: Path | None, source: Path | None, as_json: bool) -> None:
    """Copy the plugin's files into the vault, or update them. Its settings stay."""
    root = _vault(vault)
    new, old = _source(source), _installed(root)
    copied = os.path.realpath(new.folder) != os.path.realpath(old.folder)  # developers link the one to the other
    if copied:
        _copy(new.folder, old.folder)
    enabled = _enabled(root)
    if as_json:
        print_json({"installed": new.version, "before": old.version or None, "copied": copied, "enabled": enabled,
                    "folder": str(old.folder)})  # fmt: skip
        return
    if not copied:
        click.echo(f"{line(old.folder)} is a link to the plugin's own folder; nothing to copy.")
    else:
        before = f" (before: {old.version})" if old.version not in ("", new.version) else ""
        click.echo(f"Tarsd {new.version} is in {line(old.folder)}{before}.")
    click.echo(AGAIN if enabled and old.version else ENABLE)


@plugin.command()
@own_vault_option
@json_option
@click.pass_context
def status(context: click.Context, vault: Path | None, as_json: bool) -> None:
    """Show which version is in the vault, whether it is enabled, and whether there is a newer one."""
    root = _vault(vault)
    here, enabled = _installed(root), _enabled(root)
    ours = ""
    with contextlib.suppress(TarsdError):
        ours = _source(None).version
    if as_json:
        print_json({"installed": here.version or None, "available": ours or None, "enabled": enabled,
                    "folder": str(here.folder)})  # fmt: skip
    elif not here.version:
        click.echo(f"The plugin is not installed in {line(root)}.")
        click.echo("Install it with: tarsd plugin install", err=True)
    else:
        name = "Tarsd, unknown version" if here.version == UNKNOWN else f"Tarsd {here.version}"
        click.echo(f"{name} is in {line(here.folder)}, {'' if enabled else 'not '}enabled.")
        if _numbers(ours) > _numbers(here.version):
            click.echo(Terminal(sys.stderr).yellow(f"Version {ours} came with tarsd: tarsd plugin install"), err=True)
    if not here.version:
        context.exit(EXIT_NOTHING)


# ------------------------------------------------------------------------------------------------ folders


def _vault(given: Path | None) -> Path:
    """The vault that is meant: named, configured, or that of the running daemon; it must be one of Obsidian's."""
    root = known_vault() if given is None else config.expand(str(given), os.environ)
    if not os.path.isdir(root):
        raise NotFound(f"There is no folder {root}.", "Name the vault with --vault.")
    if not os.path.isdir(root / ".obsidian"):
        raise Refused(f"{root} is not an Obsidian vault yet.", "Open the folder in Obsidian once, then try again.")
    return root


def _installed(vault: Path) -> Plugin:
    folder = vault / ".obsidian" / "plugins" / ID
    return Plugin(folder, _version(folder))


def _enabled(vault: Path) -> bool:
    names = _json(vault / ".obsidian" / "community-plugins.json")
    return isinstance(names, list) and ID in names


def _source(given: Path | None) -> Plugin:
    """The files to copy: those that are named, or those that came with the package."""
    own = Path(tarsd.__file__).parent / "data" / "plugin"
    folder = own if given is None else config.expand(str(given), os.environ)
    version = _version(folder)
    if version == UNKNOWN:
        raise Refused(f"{folder / 'manifest.json'} has no version such as 1.2.3.", "Get the plugin's files again.")
    if version:
        return Plugin(folder, version)
    if given is None:
        hint = "Download them, then run: tarsd plugin install --from FOLDER."
        raise NotFound("This tarsd came without the plugin's files.", hint)
    if os.path.isfile(folder / "package.json"):
        hint = f"Run: cd '{folder}' && npm ci && npm run build (needs Node 20)."
        raise NotFound(f"The plugin in {folder} is not built.", hint)
    raise NotFound(f"{folder} does not contain the plugin.", f"It should contain {', '.join(FILES)}.")


def _version(folder: Path) -> str:
    """The version of the plugin in a folder, or `UNKNOWN`; "" when a file is missing, or it is another plugin."""
    if not all(os.path.isfile(folder / name) for name in FILES):
        return ""
    about = _json(folder / "manifest.json")
    if not isinstance(about, dict) or about.get("id") != ID:
        return ""
    version = about.get("version")
    return version if isinstance(version, str) and VERSION.fullmatch(version) else UNKNOWN


def _numbers(version: str) -> list[int]:
    """A version as it is compared; anything else comes before all of them."""
    return [int(part) for part in version.partition("-")[0].split(".")] if VERSION.fullmatch(version) else []


def _json(file: Path) -> Any:
    try:
        return json.loads(_read(file))
    except (OSError, ValueError, RecursionError):
        return None


def _read(file: Path) -> bytes:
    """The bytes of a file; raises OSError, also for what would never end: a pipe, a device, or far too much."""
    if not os.path.isfile(file):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
    with open(file, "rb") as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
    return content


def _copy(source: Path, target: Path) -> None:
    """Each file is replaced as a whole; other files there are not touched."""
    try:
        contents = {name: _read(source / name) for name in FILES}
    except OSError as error:
        hint = "Check its owner and permissions, or get the plugin's files again."
        raise Refused(f"{error.filename} cannot be read: {error.strerror}.", hint) from None
    try:
        files.make_folder(target, None)
        for name, content in contents.items():
            files.replace(target / name, content, files.mode_in(target))
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}.", "Check its owner and permissions.") from None
