"""The commands for the memory: list, add, remove and undo."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tarsd.cli.asking import answer, confirm, somebody
from tarsd.cli.common import Group, fail, json_option, print_json, sentence, tell, vault_option, words
from tarsd.cli.terminal import Terminal, line
from tarsd.cli.wrapping import wrapped
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, BadRequest, ClientError, NotFound, Refused

SECTIONS = (("facts", "Facts"), ("rules", "Rules"), ("noticed", "Noticed, waiting for review"))
MOVED = re.compile(r"([+-])\s*[-*+] (.*)")
COMMENT = re.compile(r"\s*%%.*?%%\s*$")


@click.group(cls=Group, default="list")
def memory() -> None:
    """List, add or remove what tars remembers.

    Without a command, it is listed. It lies in the vault as notes that you may edit: Memory.md, Procedural.md,
    Noticed.md.
    """


@memory.command("list")
@vault_option
@json_option
def list_(vault: Path | None, as_json: bool) -> None:
    """List facts and rules, and what was noticed."""
    reply = Client.find(vault).get("/v1/memory")
    tell(reply, rows(reply, Terminal(sys.stdout)), as_json=as_json)
    if not any(reply.get(name) for name, _ in SECTIONS):
        click.get_current_context().exit(EXIT_NOTHING)


@memory.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--rule", is_flag=True, help="TEXT is a rule for answers, not a fact.")
@click.option("--section", default="", help="The heading to put it under.")
@click.option("--replace", default="", metavar="LINE", help="The remembered line to replace.")
@vault_option
@json_option
def remember(text: tuple[str, ...], rule: bool, section: str, replace: str, vault: Path | None, as_json: bool) -> None:
    """Remember TEXT, in every conversation from now on."""
    client = Client.find(vault)
    body = {"text": words(text), "section": words((section,)), "replace": words((replace,))}
    body |= {"kind": "procedural"} if rule else {}
    if as_json:
        print_json(_sent(client, body))
    else:
        remember_asking(client, body)


@memory.command()
@click.argument("text", metavar="WORDS", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask if exactly one line has these words.")
@vault_option
@json_option
def forget(text: tuple[str, ...], yes: bool, vault: Path | None, as_json: bool) -> None:
    """Forget the line with these WORDS."""
    client, wanted = Client.find(vault), words(text)
    if not yes and (as_json or not somebody()):
        raise _unasked(client, wanted)
    if as_json:
        print_json(client.post("/v1/memory/forget", {"line": wanted}))
    elif yes:
        _forgotten(client, wanted)
    else:
        forget_asking(client, wanted)


@memory.command()
@vault_option
@json_option
def undo(vault: Path | None, as_json: bool) -> None:
    """Undo the last change to the memory."""
    client = Client.find(vault)
    if as_json:
        print_json(client.post("/v1/memory/undo"))
    else:
        take_back(client)


def rows(reply: Mapping[str, Any], out: Terminal) -> list[str]:
    """What is remembered, by section, with where each line comes from."""
    shown: list[str] = []
    for name, title in SECTIONS:
        listed = reply.get(name) or []
        if not listed:
            continue
        shown += [""] * bool(shown) + [out.bold(title)]
        section = title
        for item in listed:
            if item.get("section") and item["section"] != section:
                section = item["section"]
                shown.append(f"  {out.cyan(line(section))}")
            origin = [line(item[key]) for key in ("date", "session") if item.get(key)]
            origin += ["private"] * bool(item.get("private"))
            shown.append(wrapped(f"  - {line(item.get('line', ''))}  {out.dim(' · '.join(origin))}".rstrip(), out, 4))
    if not shown:
        shown.append(wrapped("Nothing is remembered yet. Say what to remember: tarsd memory remember TEXT", out))
    if reply.get("enabled") is False:
        shown.append(out.yellow(wrapped("Memory is off: models do not see any of this.", out)))
    if reply.get("problem"):
        shown.append(out.yellow(wrapped(sentence(reply["problem"]), out)))
    return shown


def remember_asking(client: Client, body: Mapping[str, Any], conversation: str = "") -> None:
    """Remembers; where a line that is known differs about the same thing, asks whether it takes that line's place."""
    sent = {**body, **({"conversation": conversation} if conversation else {})}
    try:
        reply = _sent(client, sent)
    except ClientError as error:
        if not error.line or sent.get("replace") or not somebody():
            raise
        fail(ClientError(error.message))
        if not confirm(f"Replace “{line(error.line)}”?"):
            click.echo("Nothing changed. To keep both, word it differently.")
            return
        reply = client.post("/v1/memory", {**sent, "replace": error.line})
    _told(reply, "Remembered")


def _sent(client: Client, body: Mapping[str, Any]) -> dict[str, Any]:
    """Has the daemon remember it. Raises ClientError, whose hint may be the command that replaces the old line."""
    try:
        return client.post("/v1/memory", body)
    except ClientError as error:
        if error.line and not body.get("replace"):
            command = f"tarsd memory remember {_quoted(str(body.get('text', '')))} --replace {_quoted(error.line)}"
            error.hint = f"To replace that line: {command}" + " --rule" * (body.get("kind") == "procedural")
        raise


def _quoted(text: str) -> str:
    """A text as one word for a shell, between double quotes where nothing in it has a meaning there."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def forget_asking(client: Client, wanted: str) -> None:
    """Shows the line that is meant, or lets one be chosen, and forgets it after a yes."""
    if not somebody():
        raise _unasked(client, wanted)
    matches = _meant(client, wanted)
    err = Terminal(sys.stderr)
    chosen = matches[0]
    if len(matches) > 1:
        for number, text in enumerate(matches, 1):
            click.echo(wrapped(f"  {number}  {line(text)}", err, 5), err=True)
        try:
            given = answer(f"Forget which one? [1-{len(matches)}, none] ")
        except EOFError:
            given = ""
        if not given.isdecimal() or not 1 <= int(given) <= len(matches):
            click.echo("Nothing changed.")
            return
        chosen = matches[int(given) - 1]
    click.echo(err.red(wrapped(f"- {line(chosen)}", err, 2)), err=True)
    if confirm("Forget this?"):
        _forgotten(client, chosen)
    else:
        click.echo("Nothing changed.")


def matching(reply: Mapping[str, Any], wanted: str) -> list[str]:
    """The line that is exactly this, or all that have each of its words."""
    listed = list(dict.fromkeys(_lines(reply)))
    if wanted in listed:
        return [wanted]
    parts = wanted.casefold().split()
    return [text for text in listed if parts and all(part in text.casefold() for part in parts)]


def _meant(client: Client, wanted: str) -> list[str]:
    """The remembered lines that match `wanted`, at least one. Raises NotFound."""
    matches = matching(client.get("/v1/memory"), wanted)
    if not matches:
        raise NotFound(
            "Nothing like that is remembered.", "List what is remembered: tarsd memory, or /memory in a chat."
        )
    return matches


def _unasked(client: Client, wanted: str) -> Refused:
    """Nobody is there to be asked; the refusal shows what a yes would forget."""
    matches = _meant(client, wanted)
    shown = "".join(f"\n- {line(text)}" for text in matches)
    if len(matches) > 1:
        return Refused(
            f"Not forgotten. {len(matches)} lines have these words:{shown}",
            "Give all words of one line, and add --yes.",
        )
    return Refused(f"Not forgotten. The line is:{shown}", "Add --yes to confirm.")


def take_back(client: Client) -> None:
    """Takes the last change of the memory back, and prints which lines went and came by that."""
    before = client.get("/v1/memory")
    reply = client.post("/v1/memory/undo")
    after = client.get("/v1/memory")
    gone = f"; the note was moved to {line(reply['trashed'])}" if reply.get("trashed") else ""
    out = Terminal(sys.stdout)
    said = f"Undone: {line(reply.get('path', ''))} is as it was before{gone}."
    click.echo(wrapped(said, out))
    old, new = (Counter(_lines(listed)) for listed in (before, after))
    show_moved([("-", text) for text in old - new] + [("+", text) for text in new - old], out)


def _lines(reply: Mapping[str, Any]) -> list[str]:
    return [str(item.get("line", "")) for name, _ in SECTIONS for item in reply.get(name) or []]


def moved(diff: object) -> list[tuple[str, str]]:
    """The list items that a diff adds or removes: + or - and the text, without comments."""
    items = (MOVED.match(row) for row in str(diff or "").splitlines())
    return [(item[1], COMMENT.sub("", item[2])) for item in items if item]


def show_moved(pairs: Sequence[tuple[str, str]], out: Terminal) -> None:
    """Prints lines that came and went."""
    for sign, text in pairs:
        paint = out.green if sign == "+" else out.red
        click.echo(f"  {paint(wrapped(f'{sign} {line(text)}', out, 4, width=out.width - 2))}")


def _forgotten(client: Client, text: str) -> None:
    if not text.strip():
        raise BadRequest("Nothing to forget was given.", "Give some words of the line.", field="line")
    _told(client.post("/v1/memory/forget", {"line": text}), "Forgotten")


def _told(reply: Mapping[str, Any], what: str) -> None:
    """Prints what was done and where, with the added and removed lines, without their comments."""
    click.echo(f"{what} in {line(reply.get('path', ''))}.")
    show_moved(moved(reply.get("diff")), Terminal(sys.stdout))
