"""The command that asks: prints the answer as it arrives, then its sources."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from tarsd.cli.common import Command, fail, json_option, print_json, vault_option, words
from tarsd.cli.find import roots
from tarsd.cli.passages import band, notes_below, place, trail_of
from tarsd.cli.terminal import Terminal, clean
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, EXIT_OK, EXIT_REFUSED, ClientError

TRIES = 3


@click.command(cls=Command)
@click.argument("question", nargs=-1)
@click.option("--conversation", "-c", help="Go on with the conversation of this name, or begin it.")
@click.option("--note", "-a", "notes", multiple=True, help="Attach a note; may be given several times.")
@vault_option
@json_option
def ask(
    question: tuple[str, ...], conversation: str | None, notes: tuple[str, ...], vault: Path | None, as_json: bool
) -> None:
    """Ask a QUESTION; the answer comes from your notes, with its sources.

    Without a QUESTION, one is read from standard input; at a terminal you can go on asking until Ctrl-D.
    """
    client = Client.find(vault)
    conversation = words((conversation,)) if conversation else f"cli-{os.urandom(6).hex()}"
    text = words(question)
    if text or not sys.stdin.isatty():
        text = text or sys.stdin.buffer.read().decode("utf-8", "replace").strip()
        if not text:
            raise click.UsageError("Ask something: tars QUESTION")
        click.get_current_context().exit(_turn(client, conversation, text, notes, as_json))
    _dialogue(client, conversation, notes, as_json)


def _dialogue(client: Client, conversation: str, notes: tuple[str, ...], as_json: bool) -> None:
    """Question after question of one conversation, until Ctrl-D."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # gives input() its history and keys
    click.echo("Ask your notes; Ctrl-D ends.", err=True)
    while True:
        try:
            text = input("› ").encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
        except EOFError:
            click.echo(err=True)
            return
        if text:
            try:
                _turn(client, conversation, text, notes, as_json)
            except ClientError as error:
                fail(error, as_json=as_json)
            click.echo(err=True)


def _turn(client: Client, conversation: str, text: str, notes: tuple[str, ...], as_json: bool) -> int:
    """One question and its answer; the exit code."""
    body = {"conversation": conversation, "message": text, "request_id": os.urandom(16).hex(), "writer": "daemon"}
    turn = str(client.post("/v1/turns", {**body, "notes": list(notes)} if notes else body)["turn"])
    show = _Show(client, as_json)
    try:
        for event in _events(client, turn):
            show.event(event, turn)
    except KeyboardInterrupt:
        client.post(f"/v1/turns/{turn}/stop")
        raise
    return show.end(turn)


def _events(client: Client, turn: str) -> Iterator[Mapping[str, Any]]:
    """The turn's events in order, each once; a lost connection is taken up again."""
    seen, tries = 0, 0
    while True:
        try:
            for event in client.stream(f"/v1/turns/{turn}/events?after={seen}"):
                seen, tries = int(event.get("seq", seen)), 0
                yield event
                if event.get("type") in ("done", "failed"):
                    return
            raise ClientError("The daemon ended the answer half-way.", code="cut")
        except ClientError as error:
            tries += 1
            if error.code != "cut" or tries >= TRIES:
                raise


class _Show:
    """Prints a turn's events as they come, or keeps them for one JSON object at the end."""

    def __init__(self, client: Client, as_json: bool) -> None:
        self.client = client
        self.as_json = as_json
        self.out = Terminal(sys.stdout)
        self.sources: list[Mapping[str, Any]] = []
        self.last: Mapping[str, Any] = {}
        self.retrieved: Mapping[str, Any] = {}
        self.printed = False

    def event(self, event: Mapping[str, Any], turn: str) -> None:
        """Takes in one event."""
        kind = event.get("type")
        if kind == "retrieved":
            self.retrieved = event
            self.sources = list(event.get("sources") or [])
        elif kind in ("done", "failed"):
            self.last = event
        elif kind == "token" and not self.as_json:
            self.printed = True
            sys.stdout.write(clean(event.get("text", "")))
            sys.stdout.flush()
        elif kind == "approval":
            self.approve(event, turn)

    def approve(self, event: Mapping[str, Any], turn: str) -> None:
        """Asks for a yes where somebody sits at the terminal; otherwise it is a no."""
        call, what = (
            str(event.get("call") or event.get("id")),
            clean(event.get("text") or event.get("name") or "a change"),
        )
        allowed = not self.as_json and sys.stdin.isatty() and click.confirm(f"\nAllow {what}?", default=False, err=True)
        self.client.post(f"/v1/turns/{turn}/approvals/{call}", {"allow": allowed})

    def end(self, turn: str) -> int:
        """Prints what comes after the answer; the exit code."""
        failed = self.last.get("type") == "failed"
        if self.as_json:
            keep = {key: value for key, value in self.last.items() if key not in ("seq", "type")}
            about = {key: self.retrieved.get(key) for key in ("sources", "relevance", "behind")}
            print_json({"turn": turn, **about, **keep})
        else:
            if self.printed:
                click.echo()
            if failed:
                error = self.last.get("error") or {}
                fail(ClientError(str(error.get("message", "The answer failed.")), str(error.get("hint", ""))))
            self.print_sources()
            said = notes_below(self.retrieved, Terminal(sys.stderr))
            said += [Terminal(sys.stderr).yellow(clean(one)) for one in self.last.get("notices") or []]
            for text in said:
                click.echo(text, err=True)
        return EXIT_REFUSED if failed else EXIT_OK if self.sources else EXIT_NOTHING

    def print_sources(self) -> None:
        """The numbered sources that the answer cites, or all it was given when it cites none."""
        cited = self.last.get("citations") or []
        sources = [one for one in cited if isinstance(one, dict)] or self.sources
        if not sources:
            return
        places = roots(self.client)
        click.echo(self.out.dim("\nSources"))
        for one in sources:
            relevance = one.get("relevance")
            figure = f"{band(relevance)} {relevance:.2f}" if isinstance(relevance, float) else ""
            where = place(one, int(one.get("start_line") or 1), places, self.out)
            click.echo(f"  [{one.get('n')}] {self.out.bold(trail_of(one))}  {self.out.dim(figure)}\n      {where}")
