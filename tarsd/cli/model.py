"""The command about the model that finds notes by meaning: which there are, and another one."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tarsd.cli.asking import confirm, somebody, waiting
from tarsd.cli.common import Group, json_option, print_json, tell, vault_option
from tarsd.cli.terminal import Terminal, line
from tarsd.client import Client
from tarsd.errors import Refused, TarsdError

if TYPE_CHECKING:
    from tarsd.doctor.embedding import BuiltIn

CHOICES = ("auto", "minilm", "e5", "table")
STEPS = {
    "downloading": "Downloading …",
    "checking": "Comparing it with the reviewed file …",
    "weights": "Making the encoder …",
    "words": "Making the word table …",
    "tokenizer": "Making the tokenizer …",
}


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def model(context: click.Context) -> None:
    """Show or change the embedding model, which finds notes by meaning. Chat models: tarsd models."""
    if context.invoked_subcommand is None:
        context.invoke(list_models, vault=None, as_json=False)


@model.command("list")
@vault_option
@json_option
def list_models(vault: Path | None, as_json: bool) -> None:
    """List the built-in embedding models, each with its speed on this machine."""
    from tarsd.doctor.embedding import DOWNLOAD_BYTES, built_in

    out = Terminal(sys.stdout)
    with contextlib.nullcontext() if as_json else waiting("Measuring …"):
        found = built_in()
    used, chosen, passages = _in_use(vault)
    if as_json:
        print_json({"used": used, "auto": chosen, "passages": passages, "models": [asdict(one) for one in found]})
        return
    for one in found:
        mark = out.green("●") if one.name == used else out.dim("○")
        click.echo(f"{mark} {out.bold(f'{one.name:7}')} {one.knows}")
        click.echo(f"  {'':7} {out.dim(_costs(one, passages, used, DOWNLOAD_BYTES))}")
    if used == "auto":
        click.echo(f"{out.green('●')} {out.bold('auto')}    minilm for a vault in English, e5 for any other")
    elif used and used not in CHOICES:
        click.echo(f"{out.green('●')} {out.bold(line(used))}")
    if chosen:
        click.echo(f"{line(used)}: {line(chosen)}")
    click.echo("Change it: tarsd model use NAME. Models of Ollama and other servers: tarsd help models")


def _costs(one: BuiltIn, passages: int | None, used: str, download: int) -> str:
    """How fast it is here, and what a change to it takes."""
    if one.rate is None:
        return f"not there yet: {download / 1e6:.0f} MB to download, {one.bytes / 1e6:.0f} MB on the disk"
    told = f"{one.rate:,.0f} passages a second on this machine"
    if one.name != used and one.name != "table":
        many = passages or 1_000
        of = f"{many:,} passages" if passages is None else f"all {many:,} passages"
        told += f"; a change embeds {of} in about {_minutes(many / one.rate)}, in the background"
    return told


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def _in_use(vault: Path | None) -> tuple[str, str, int | None]:
    """The model in force, why it was chosen, and the number of passages, by the daemon or by the config."""
    try:
        reply: dict[str, Any] = Client.find(vault).get("/v1/status")
        embedding, counts = reply.get("embedding") or {}, reply.get("counts") or {}
        chunks = counts.get("chunks")
        used, chosen = (str(embedding.get(name) or "") for name in ("model", "auto"))
        return used, chosen, chunks if isinstance(chunks, int) else None
    except TarsdError:
        return _configured(), "", None


def _configured() -> str:
    from tarsd.config import load

    try:
        return load().embedding.model
    except TarsdError:
        return ""


@model.command()
@click.argument("name", type=click.Choice(CHOICES))
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def use(name: str, yes: bool, as_json: bool) -> None:
    """Use the model NAME for this config: get what it needs, and write embedding.model.

    With auto, a vault in English has minilm and any other one e5, once that is there.
    The notes are found as before until it has read them all.
    """
    from tarsd.config import config_file
    from tarsd.config.edit import set_value

    if name == "e5":
        _get_e5(yes=yes, as_json=as_json)
    file = config_file()
    written = set_value(file, "embedding", "model", name)
    said = [f'{line(file)} now has embedding.model = "{name}".' if written else f"{line(file)} has it already."]
    override = os.environ.get("TARSD_EMBEDDING", "")
    if override and override != name:
        said.append(f"The variable TARSD_EMBEDDING still says {line(override)}, and takes precedence.")
    elif written:
        said.append("A running daemon changes over by itself: tarsd status shows how far it is.")
    tell({"model": name, "config": str(file), "written": written}, said, as_json=as_json)


def _get_e5(*, yes: bool, as_json: bool) -> None:
    """Everything that e5 needs on this machine, after saying what it takes. Raises TarsdError."""
    from tarsd.doctor.embedding import DISK_BYTES, DOWNLOAD_BYTES, get_e5, is_there

    if not is_there():
        size, room = DOWNLOAD_BYTES / 1e6, DISK_BYTES / 1e6
        told = f"e5 is a download of {size:.0f} MB: 15 s at 50 Mbit/s. It needs {room:.0f} MB for a moment, then 86."
        if not yes and (as_json or not somebody()):
            raise Refused(f"Not changed. {told}", "Add --yes to confirm.")
        if not as_json:
            click.echo(told, err=True)
        if not yes and not confirm("Download it?"):
            raise Refused("Nothing was changed.", "")
    get_e5(lambda step: None if as_json else click.echo(STEPS.get(step, step), err=True))
