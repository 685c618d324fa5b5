"""The commands of a review: rules and facts are proposed, and each is applied, edited, dropped or left for later."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from tarsd.cli.asking import choose, coloured, somebody
from tarsd.cli.common import Group, json_option, print_json, vault_option, words
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, Refused

PATIENCE_S = 600.0
"""A model that words rules is waited for so long."""

CHOICES = {"a": "apply", "e": "edit", "d": "drop", "s": "skip", "q": "quit, the rest stays"}
ACTIONS = {"a": "apply", "e": "edit", "d": "drop"}


class Editor(Protocol):
    """Where a text can be changed by hand."""

    def edit(self, prompt: str, text: str) -> str:
        """The text as it shall be."""
        ...


@click.group(cls=Group, default="begin")
def review() -> None:
    """Make rules of judged answers, and memory of what was noticed.

    Without a command, each proposal is asked about. Answers are judged in a chat: /w for wrong, /r for right.
    """


@review.command()
@vault_option
@json_option
def begin(vault: Path | None, as_json: bool) -> None:
    """Go through what is proposed, one by one. With --json, print the proposals for `tarsd review apply`."""
    client = Client.find(vault)
    if as_json:
        reply = proposed(client)
        print_json(reply)
        if not reply.get("proposals"):
            click.get_current_context().exit(EXIT_NOTHING)
        return
    if not somebody():
        raise Refused("A review asks about each proposal.", "Without a terminal: tarsd review --json, then apply.")
    from tarsd.cli.keyboard import Keyboard

    with Keyboard() as keyboard:
        found = walk(client, keyboard)
    if not found:
        click.get_current_context().exit(EXIT_NOTHING)


@review.command()
@click.argument("review")
@click.option(
    "--apply", "applied", multiple=True, metavar="ID", help="Apply this proposal; may be given several times."
)
@click.option("--edit", "edited", multiple=True, nargs=2, metavar="ID TEXT", help="Apply it with this text instead.")
@click.option("--drop", "dropped", multiple=True, metavar="ID", help="Drop this proposal.")
@vault_option
@json_option
def apply(
    review: str,
    applied: tuple[str, ...],
    edited: tuple[tuple[str, str], ...],
    dropped: tuple[str, ...],
    vault: Path | None,
    as_json: bool,
) -> None:
    """Carry out decisions on the proposals of REVIEW, as `tarsd review --json` printed them."""
    decisions = [_decision(id, "apply") for id in applied]
    decisions += [_decision(id, "edit", words((text,))) for id, text in edited]
    decisions += [_decision(id, "drop") for id in dropped]
    if not decisions:
        raise click.UsageError("Nothing is decided. Give --apply ID, --edit ID TEXT or --drop ID.")
    reply = Client.find(vault).post("/v1/review/apply", {"review": words((review,)), "decisions": decisions})
    if as_json:
        print_json(reply)
    else:
        _report(reply)


def proposed(client: Client) -> dict[str, Any]:
    """The proposals; a model may take its time."""
    return Client(client.socket_path, timeout=PATIENCE_S).post("/v1/review")


def walk(client: Client, editor: Editor) -> bool:
    """Asks about each proposal and carries the answers out; whether there was any. Ctrl-C changes nothing."""
    if not somebody():
        raise Refused("A review asks about each proposal, and nobody is there.", "Use: tarsd review --json.")
    err = Terminal(sys.stderr)
    click.echo(err.dim("Looking at what was judged and noticed…"), err=True)
    reply = proposed(client)
    proposals = reply.get("proposals") or []
    if not proposals:
        click.echo("Nothing waits for a review. Judge answers in a chat: /w for wrong, /r for right.")
        return False
    for text in coloured(reply.get("diff") or "", err):
        click.echo(text, err=True)
    decisions = _decided(proposals, editor, err)
    if decisions:
        _report(client.post("/v1/review/apply", {"review": reply.get("review"), "decisions": decisions}))
    else:
        click.echo("Nothing was changed.")
    return True


def _decided(proposals: Sequence[Mapping[str, Any]], editor: Editor, err: Terminal) -> list[dict[str, str]]:
    decisions = []
    for number, one in enumerate(proposals, 1):
        kind = "Rule" if one.get("kind") == "rule" else "Fact"
        private = ", stays on this machine" if one.get("private") else ""
        click.echo(err.bold(f"\n{kind} {number} of {len(proposals)}{private}"), err=True)
        if one.get("replaces"):
            click.echo(err.red(f"  - {line(one['replaces'])}"), err=True)
        click.echo(err.green(f"  + {line(one.get('text', ''))}"), err=True)
        if one.get("why"):
            click.echo(err.dim(f"  {line(one['why'])}"), err=True)
        given = choose("(a)pply, (e)dit, (d)rop, (s)kip, (q)uit", CHOICES, "s")
        if given == "q":
            break
        if given in ACTIONS:
            text = editor.edit("  ", clean(one.get("text", ""))) if given == "e" else ""
            decisions.append(_decision(str(one.get("id")), ACTIONS[given], text))
    return decisions


def _decision(id: str, action: str, text: str = "") -> dict[str, str]:
    return {"id": words((id,)), "action": action} | ({"text": text} if action == "edit" else {})


def _report(reply: Mapping[str, Any]) -> None:
    for text in coloured(reply.get("diff") or "", Terminal(sys.stdout)):
        click.echo(text)
    written = ", ".join(line(path) for path in reply.get("written") or [])
    click.echo(f"Written: {written}." if written else "Nothing was changed.")
