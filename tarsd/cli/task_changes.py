"""The commands that change tasks: what would be done is shown, and done after a yes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from tarsd.cli import completion
from tarsd.cli.asking import coloured, confirm, forget_typed, somebody
from tarsd.cli.common import Command, json_option, note_path, print_json, vault_option, words
from tarsd.cli.terminal import Terminal, line
from tarsd.client import Client
from tarsd.errors import BadRequest, Conflict, Refused

ROUTE = "/v1/tasks/change"
MOST_SHOWN = 5
"""How often a change is shown, while the note changes all the time."""
_PLACE = re.compile(r"(?P<note>.+):(?P<line>\d{1,9})")

_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command(cls=Command)
@click.argument("place", metavar="PATH:LINE", shell_complete=completion.notes)
@_yes
@vault_option
@json_option
def done(place: str, yes: bool, vault: Path | None, as_json: bool) -> None:
    """Complete the task at PATH:LINE, a line in a note; for a recurring task, add the next one."""
    named = _PLACE.fullmatch(words((place,)))
    if named is None:
        raise BadRequest(
            "No task was given.",
            "Give its note and line, as in Inbox.md:12. To list done tasks: tarsd tasks --done",
        )
    client = Client.find(vault)
    body = {"action": "done", "note": note_path(client, named["note"]), "line": int(named["line"])}
    _change(client, body, yes=yes, as_json=as_json)


@click.command(cls=Command)
@click.argument("text", nargs=-1, required=True)
@click.option("--to", "note", default="", metavar="NOTE", help="The note; without it, today's daily note.")
@click.option("--heading", default="", help="The section of the note to add it to.")
@click.option("--due", default="", metavar="DATE", help="The day it is due: 2026-03-09, today or tomorrow.")
@_yes
@vault_option
@json_option
def add(text: tuple[str, ...], note: str, heading: str, due: str, yes: bool, vault: Path | None, as_json: bool) -> None:
    """Add a task with this TEXT to a note."""
    client = Client.find(vault)
    to = note_path(client, note) if note else ""
    body = {"action": "add", "text": words(text), "note": to, "heading": heading, "due": due}
    _change(client, body, yes=yes, as_json=as_json)


def _change(client: Client, body: dict[str, Any], *, yes: bool, as_json: bool) -> None:
    """Shows what would be done, asks, and has it done; asks again where the note is another by then."""
    reply = client.post(ROUTE, body)
    if not yes and (as_json or not somebody()):
        raise Refused("Not changed.", "Add --yes to confirm.")
    for shown in range(MOST_SHOWN):
        if not yes:
            _show(reply, again=bool(shown))
            forget_typed()
            if not confirm("Do it?"):
                click.echo("Nothing changed.")
                return
        reply = client.post(ROUTE, {**body, "yes": reply.get("yes", "")})
        if reply.get("done"):
            if as_json:
                print_json(reply)
            else:
                click.echo(line(reply.get("title", "")))
            return
    raise Conflict("The note keeps changing.", "Try again later.")


def _show(reply: dict[str, Any], *, again: bool) -> None:
    err = Terminal(sys.stderr)
    if again:
        click.echo(err.bold("The note has changed since it was shown. The change is now:"), err=True)
    click.echo(err.bold(line(reply.get("title", ""))), err=True)
    for text in coloured(reply.get("diff"), err):
        click.echo(text, err=True)
