"""The commands of prompts: the person's own are listed, and those that are offered become notes after a yes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import click

from tarsd.cli.asking import confirm, somebody
from tarsd.cli.common import Group, json_option, print_json, vault_option
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.cli.wrapping import wrapped
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, BadRequest, ClientError, NotFound, Refused


@click.group(cls=Group, default="list")
def prompts() -> None:
    """List your prompts, or add some that are offered.

    A note NAME.md in tars/prompts/ is the command /NAME in the terminal, the pane and the page.
    """


@prompts.command("list")
@vault_option
@json_option
def show(vault: Path | None, as_json: bool) -> None:
    """Print your prompts, and what keeps one from use."""
    reply = Client.find(vault).get("/v1/prompts")
    found = reply.get("prompts") or []
    if as_json:
        print_json({"prompts": found})
        return
    out = Terminal(sys.stdout)
    for called, about in _rows(found):
        click.echo(wrapped(f"{called}  {out.dim(about)}", out, 2))
    offered = ", ".join(line(one.get("name", "")) for one in reply.get("offered") or [])
    if offered:
        click.echo(wrapped(f"Offered: {offered}. Add one: tarsd prompts add NAME", Terminal(sys.stderr)), err=True)
    if not found:
        click.echo("No prompts.", err=True)
        click.get_current_context().exit(EXIT_NOTHING)


@prompts.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--yes", is_flag=True, help="Do not ask.")
@vault_option
@json_option
def add(names: tuple[str, ...], yes: bool, vault: Path | None, as_json: bool) -> None:
    """Make notes of prompts that are offered; without a NAME, be asked about each.

    The text of each is shown first, and nothing is written without a yes.
    """
    client = Client.find(vault)
    offered = {str(one.get("name")): one for one in client.get("/v1/prompts").get("offered") or []}
    unknown = [name for name in names if name not in offered]
    if unknown:
        there = f"There are {', '.join(map(line, offered))}." if offered else "All of them are in your vault."
        raise NotFound(f"No prompt “{line(unknown[0])}” is offered.", there)
    if not yes and not somebody():
        raise Refused("Nothing was written: nobody is there to say yes.", "Use --yes.")
    if not names and yes:
        raise BadRequest("No prompt was named.", "Name those to be added: tarsd prompts add NAME --yes")
    err = Terminal(sys.stderr)
    made = []
    for name in dict.fromkeys(names or offered):
        path = line(offered[name].get("path", ""))
        click.echo(err.dim(clean(offered[name].get("text", "")).rstrip("\n")), err=True)
        if yes or confirm(f"Write this to {path}?"):
            made.append(client.post("/v1/prompts", {"name": name}))
            if not as_json:
                click.echo(f"Wrote {line(made[-1].get('path', ''))}. Use it: /{line(name)}")
    if as_json:
        print_json({"added": made})


def listed(client: Client) -> Sequence[Mapping[str, Any]]:
    """The prompts of the vault; none of a daemon that is older."""
    try:
        return client.get("/v1/prompts").get("prompts") or []
    except ClientError as error:
        if error.code == "no_daemon":
            raise
        return []


def is_one(client: Client, name: str) -> bool:
    """Whether a prompt has this name, in whatever case, whether it can be used or not."""
    return any(str(prompt.get("name", "")) == normalize("NFC", name).casefold() for prompt in listed(client))


def rows(client: Client) -> list[tuple[str, str]]:
    """How each prompt is called, and what it is for."""
    return list(_rows(listed(client)))


def _rows(found: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    for prompt in found:
        called = f"/{line(prompt.get('name', ''))} {line(prompt.get('arguments', ''))}".strip()
        yield called, line(prompt.get("problem") or prompt.get("description") or "")


class CommandNames:
    """The commands of a conversation and the prompts, as they are typed; asked for at each press of Tab."""

    def __init__(self, client: Client, own: Iterable[str]) -> None:
        self._client = client
        self._own = [f"/{name}" for name in own]

    def __call__(self) -> Sequence[str]:
        taken = {name.removeprefix("/") for name in self._own}
        mine = [str(one.get("name", "")) for one in listed(self._client) if not one.get("problem")]
        return [*self._own, *(f"/{clean(name)}" for name in mine if name not in taken)]
