"""The conversation at the terminal: messages and slash commands in, answers out, until Ctrl-D."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tarsd.cli.asking import somebody
from tarsd.cli.common import Command, fail, note_path, vault_option, words
from tarsd.cli.keyboard import Keyboard
from tarsd.cli.models import chat_line
from tarsd.cli.sessions import close, conversation_of, listed
from tarsd.cli.show import Show
from tarsd.cli.slash import COMMANDS, Leave, obey
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.cli.turns import Talk, Turn
from tarsd.client import Client
from tarsd.errors import ClientError, NoDaemon, NotFound, TarsdError

PROMPT = "› "
MOST_RECALLED = 2_000
"""Characters of the last answer that are shown when a conversation is reopened."""


@click.command(cls=Command)
@click.option("--conversation", "-c", help="Go on with the conversation of this name, or begin it.")
@click.option(
    "--note", "-a", "notes", multiple=True, help="Attach a note to every message; may be given several times."
)
@click.option("--last", is_flag=True, help="Go on with the conversation that was touched last.")
@vault_option
def chat(conversation: str | None, notes: tuple[str, ...], last: bool, vault: Path | None) -> None:
    """Converse with your notes; /help lists what else can be said.

    Ctrl-C stops an answer and keeps what it has said; once more, or Ctrl-D, leaves. Without a terminal, every line of
    standard input is a message, and whatever needs a yes is refused.
    """
    if last and conversation:
        raise click.UsageError("Give either --conversation or --last.")
    client = Client.find(vault)
    if last:
        found = listed(client)
        if not found:
            raise NotFound("There is no conversation to go on with.", "Begin one: tarsd chat.")
        conversation = str(found[0].get("id"))
    converse(client, conversation, notes)


def converse(client: Client, conversation: str | None, notes: Sequence[str]) -> None:
    """Message after message of one conversation, or of several."""
    talk = Talk(client, notes=[note_path(client, name) for name in notes])
    talk.conversation = words((conversation,)) if conversation else talk.conversation
    hello = client.get("/v1/hello")
    names = _Names(client)
    if somebody():
        _greet(talk, reopened=bool(conversation))
    with Keyboard(_history(hello), [f"/{name}" for name in COMMANDS], names) as keyboard:
        _loop(talk, keyboard)
    if not talk.begun:
        return
    note = close(client, talk.conversation)
    if somebody():
        err = Terminal(sys.stderr)
        where = f"It is kept in {line(note)}. " if note else ""
        click.echo(err.dim(f"{where}Go on with: tarsd chat -c {line(talk.conversation)}"), err=True)


def _loop(talk: Talk, keyboard: Keyboard) -> None:
    """Until the end of input, /quit, or a second Ctrl-C."""
    leaving = False
    while True:
        try:
            text = keyboard.read(PROMPT if somebody() else "")
        except EOFError:
            if somebody():
                click.echo(err=True)
            return
        except KeyboardInterrupt:
            click.echo(err=True)
            if leaving:
                return
            leaving = True
            click.echo(Terminal(sys.stderr).dim("Ctrl-C again or Ctrl-D leaves."), err=True)
            continue
        if not text.strip():
            continue
        leaving = False
        try:
            if text.startswith("/"):
                obey(talk, text, keyboard)
            else:
                leaving = _message(talk, text.strip())
        except Leave:
            return
        except KeyboardInterrupt:
            click.echo(err=True)
            leaving = True
        except TarsdError as error:
            if isinstance(error, NoDaemon) and not somebody():
                raise  # nothing that follows can be answered
            fail(error)


def _message(talk: Talk, text: str) -> bool:
    """One message and its answer; whether it was stopped with Ctrl-C."""
    turn = Turn.start(talk.client, talk.conversation, text, talk.notes, approvals=somebody())
    talk.turn, talk.begun = turn.id, True
    show = Show(talk.client)
    try:
        for event in turn.events():
            show.event(event, turn)
    except KeyboardInterrupt:
        show.interrupted()
        turn.stop()
        for event in turn.events():
            show.event(event, turn)
    show.end(turn)
    if somebody():
        click.echo(err=True)
    return show.stopping


def _greet(talk: Talk, *, reopened: bool) -> None:
    err = Terminal(sys.stderr)
    model = chat_line(talk.client.get("/v1/status").get("chat") or {}, err)
    click.echo(f"{err.dim('tars ·')} {model} {err.dim('· /help lists the commands, Ctrl-D leaves.')}", err=True)
    if not reopened:
        return
    with contextlib.suppress(ClientError):  # it is a new one
        found = conversation_of(talk.client, talk.conversation)
        turns = found.get("turns") or []
        count = f"{len(turns)} turn{'s' * (len(turns) != 1)}"
        click.echo(err.dim(f"Goes on: {line(found.get('title', ''))} ({count})"), err=True)
        for one in turns[-1:]:
            text = clean(one.get("text", ""))
            text = text if len(text) <= MOST_RECALLED else f"…{text[-MOST_RECALLED:]}"
            click.echo(err.dim(f"{PROMPT}{line(one.get('message', ''))}\n{text}\n"), err=True)
            talk.turn = str(one.get("id") or "")


class _Names:
    """The names of all notes as links write them; asked for once, at the first Tab that needs them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: list[str] | None = None

    def __call__(self) -> Sequence[str]:
        if self._known is None:
            paths = [str(one.get("path", "")) for one in self._client.get("/v1/notes").get("notes") or []]
            short = [path.rpartition("/")[2].removesuffix(".md") for path in paths]
            twice = {name for name in short if short.count(name) > 1} if len(set(short)) < len(short) else set()
            names = [
                path.removesuffix(".md") if name in twice else name for path, name in zip(paths, short, strict=True)
            ]
            self._known = [clean(name) for name in names]
        return self._known


def _history(hello: dict[str, object]) -> Path:
    """The file of what was typed, among the daemon's own state of this vault."""
    from tarsd.config.places import paths

    vault = hello.get("vault")
    return paths(str(vault.get("id") if isinstance(vault, dict) else ""), os.environ).state / "chat_history"
