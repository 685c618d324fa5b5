"""The commands of a review: rules and facts are proposed, and each is applied, edited, dropped or left for later."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tarsd.cli.asking import choose, somebody, waiting
from tarsd.cli.common import Group, json_option, print_json, vault_option, words
from tarsd.cli.keyboard import Keyboard
from tarsd.cli.memory import moved, show_moved
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.cli.wrapping import wrapped
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, Refused

CHOICES = {"a": "apply", "e": "edit", "d": "drop", "s": "skip", "q": "quit, keep the rest for later"}
ACTIONS = {"a": "apply", "e": "edit", "d": "drop"}
OF_REMARKS = {letter: meaning for letter, meaning in CHOICES.items() if letter != "a"}


@click.group(cls=Group, default="begin")
def review() -> None:
    """Turn feedback on answers into rules, and what was noticed into memory.

    Without a command, you are asked about each proposal. In a chat, /w and /r call an answer wrong or right.
    """


@review.command()
@vault_option
@json_option
def begin(vault: Path | None, as_json: bool) -> None:
    """Go through the proposals one by one. With --json, print them for `tarsd review apply`."""
    client = Client.find(vault)
    if as_json:
        reply = proposed(client)
        print_json(reply)
        if not reply.get("proposals"):
            click.get_current_context().exit(EXIT_NOTHING)
        return
    if not somebody():
        raise Refused(
            "A review needs a terminal: it asks about each proposal.",
            "Without one: tarsd review --json, then tarsd review apply.",
        )
    with Keyboard() as keyboard:
        any_proposed = walk(client, keyboard)
    if not any_proposed:
        click.get_current_context().exit(EXIT_NOTHING)


@review.command()
@click.argument("review")
@click.option(
    "--apply", "applied", multiple=True, metavar="ID", help="Apply this proposal; can be given several times."
)
@click.option("--edit", "edited", multiple=True, nargs=2, metavar="ID TEXT", help="Apply it with this text.")
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
        raise click.UsageError("Nothing to apply. Give --apply ID, --edit ID TEXT or --drop ID.")
    reply = Client.find(vault).post("/v1/review/apply", {"review": words((review,)), "decisions": decisions})
    if as_json:
        print_json(reply)
    else:
        _report(reply, len(dropped))


def proposed(client: Client) -> dict[str, Any]:
    """The proposals; a model may take its time."""
    with waiting("Going through feedback and notices…"):
        return client.post("/v1/review")


def walk(client: Client, keyboard: Keyboard) -> bool:
    """Asks about each proposal and carries the answers out; whether there was any. Ctrl-C changes nothing."""
    if not somebody():
        raise Refused("A review needs a terminal: it asks about each proposal.", "Use: tarsd review --json.")
    reply = proposed(client)
    proposals = reply.get("proposals") or []
    err = Terminal(sys.stderr)
    if not proposals:
        said = "Nothing to review. In a chat, /w and /r call an answer wrong or right."
        click.echo(wrapped(said, Terminal(sys.stdout)))
        return False
    click.echo(f"Proposed: {_counted(Counter(map(_kind, proposals)))}.", err=True)
    decisions = _decided(proposals, keyboard, err)
    if decisions:
        dropped = sum(decision["action"] == "drop" for decision in decisions)
        _report(client.post("/v1/review/apply", {"review": reply.get("review"), "decisions": decisions}), dropped)
    else:
        click.echo("Nothing changed.")
    return True


def _kind(proposal: Mapping[str, Any]) -> str:
    if proposal.get("remark"):
        return "remark"
    return "rule" if proposal.get("kind") == "rule" else "fact"


def _counted(counts: Mapping[str, int]) -> str:
    """“2 rules, 1 fact and 1 remark”."""
    some = [(counts.get(kind, 0), kind) for kind in ("rule", "fact", "remark")]
    parts = [f"{count} {kind}{'s' * (count != 1)}" for count, kind in some if count]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _decided(proposals: Sequence[Mapping[str, Any]], keyboard: Keyboard, err: Terminal) -> list[dict[str, str]]:
    decisions = []
    for number, proposal in enumerate(proposals, 1):
        private = ", stays on this machine" if proposal.get("private") else ""
        click.echo(err.bold(f"\n{_kind(proposal).capitalize()} {number} of {len(proposals)}{private}"), err=True)
        remark = _kind(proposal) == "remark"
        shown = [(err.red, "-", proposal["replaces"])] if proposal.get("replaces") else []
        if remark:
            click.echo(wrapped(f"  “{line(proposal.get('text', ''))}”", err, 3), err=True)
        else:
            shown.append((err.green, "+", proposal.get("text", "")))
        for paint, sign, text in shown:
            click.echo(paint(wrapped(f"  {sign} {line(text)}", err, 4)), err=True)
        if proposal.get("why"):
            click.echo(err.dim(wrapped(f"  {line(proposal['why'])}", err)), err=True)
        if remark:
            given = choose("(e)dit into a rule, (d)rop, (s)kip, (q)uit", OF_REMARKS, "s")
        else:
            given = choose("(a)pply, (e)dit, (d)rop, (s)kip, (q)uit", CHOICES, "s")
        if given == "q":
            break
        if given in ACTIONS:
            text = keyboard.edit("  ", clean(proposal.get("text", ""))) if given == "e" else ""
            decisions.append(_decision(str(proposal.get("id")), ACTIONS[given], text))
    return decisions


def _decision(id: str, action: str, text: str = "") -> dict[str, str]:
    return {"id": words((id,)), "action": action} | ({"text": text} if action == "edit" else {})


def _report(reply: Mapping[str, Any], dropped: int) -> None:
    """What came of a review: the lines that rules and memory got, and one line that counts."""
    out = Terminal(sys.stdout)
    added = {"rule": 0, "fact": 0}
    for path, diff in _by_note(str(reply.get("diff") or "")):
        pairs = moved(diff)
        new = sum(sign == "+" for sign, _ in pairs)
        if "/archive/" in path or not new:  # what was only moved away is told by a word
            continue
        added["rule" if path.endswith("Procedural.md") else "fact"] += new
        show_moved(pairs, out)
    counts = _counted(added)
    parts = [f"{counts} added"] * bool(counts) + [f"{dropped} dropped"] * bool(dropped)
    archived = any("/archive/" in str(path) for path in reply.get("written") or [])
    said = "; ".join([", ".join(parts) or "nothing added"] + ["archived"] * archived)
    click.echo(f"{said[0].upper()}{said[1:]}." if reply.get("written") or dropped else "Nothing changed.")


def _by_note(diff: str) -> list[tuple[str, str]]:
    """The parts of a diff with the path of the note that each changes."""
    parts = re.split(r"^\+\+\+ (.*)$", diff, flags=re.MULTILINE)
    return [
        (path.strip().removeprefix("b/").strip('"'), part) for path, part in zip(parts[1::2], parts[2::2], strict=True)
    ]
