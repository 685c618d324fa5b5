"""The conversation at the terminal: messages and slash commands in, answers out, until Ctrl-D."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tarsd.cli import completion
from tarsd.cli.asking import somebody
from tarsd.cli.common import Command, fail, vault_option, words
from tarsd.cli.keyboard import Cleared, Keyboard
from tarsd.cli.markdown import AnswerTables
from tarsd.cli.models import chat_line
from tarsd.cli.names import Names, attach
from tarsd.cli.prompts import CommandNames
from tarsd.cli.sessions import close, conversation_of, is_private, listed
from tarsd.cli.show import TurnPrinter
from tarsd.cli.slash import COMMANDS, ExitChat, is_message, obey
from tarsd.cli.terminal import Terminal, clean, columns, line
from tarsd.cli.turns import RunningTurn, TerminalChat
from tarsd.cli.wrapping import wrapped
from tarsd.client import Client
from tarsd.errors import ClientError, NoDaemon, NotFound, TarsdError

PROMPT = "› "
MOST_RECALLED = 2_000
"""Characters of the last answer that are shown when a conversation is reopened."""


@click.command(cls=Command)
@completion.conversation_option
@completion.notes_option("Attach a note to every message; may be given several times.")
@click.option("--last", is_flag=True, help="Continue the most recent conversation.")
@vault_option
def chat(conversation: str | None, notes: tuple[str, ...], last: bool, vault: Path | None) -> None:
    """Chat with your notes; /help lists the commands.

    Ctrl-C stops an answer and keeps the part that is there; at an empty prompt, Ctrl-C twice or Ctrl-D quits. Without a
    terminal, every line of standard input is a message, and whatever needs your approval is refused.
    """
    if last and conversation:
        raise click.UsageError("Give either --conversation or --last.")
    client = Client.find(vault)
    if last:
        conversations = listed(client)
        if not conversations:
            raise NotFound("There is no conversation to continue.", "Start one: tarsd chat.")
        conversation = str(conversations[0].get("id"))
    converse(client, conversation, notes)


def converse(client: Client, conversation: str | None, notes: Sequence[str]) -> None:
    """Message after message of one conversation, or of several."""
    talk = TerminalChat(client)
    for name in notes:
        attach(talk, name)
    talk.conversation = words((conversation,)) if conversation else talk.conversation
    hello = client.get("/v1/hello")
    if somebody():
        _greet(talk, reopened=bool(conversation))
    with Keyboard(_history(hello), CommandNames(client, COMMANDS), Names(client)) as keyboard:
        _loop(talk, keyboard)
    if not talk.begun:
        return
    note = close(client, talk.conversation)
    if somebody():
        err = Terminal(sys.stderr)
        where, how = (
            f"Saved in {line(note)}." if note else "",
            f"Continue with: tarsd chat -c {line(talk.conversation)}",
        )
        between = "" if not where else " " if columns(where) + columns(how) < err.width else "\n"
        click.echo(err.dim(f"{where}{between}{how}"), err=True)


def _loop(talk: TerminalChat, keyboard: Keyboard) -> None:
    """Until the end of input, /quit, or a second Ctrl-C."""
    leaving = False
    while True:
        try:
            text = keyboard.read(PROMPT if somebody() else "")
        except EOFError:
            return
        except Cleared:
            leaving = False
            continue
        except KeyboardInterrupt:
            if leaving:
                return
            leaving = True
            click.echo(Terminal(sys.stderr).dim("Press Ctrl-C again or Ctrl-D to quit."), err=True)
            continue
        if not text.strip():
            continue
        leaving = False
        try:
            # what was pasted is no command
            if text.startswith("/") and "\n" not in text and not is_message(talk, text):
                obey(talk, text, keyboard)
            else:  # a blank before a command says that none is meant
                leaving = _message(talk, text.rstrip() if is_message(talk, text.strip()) else text.strip())
        except ExitChat:
            return
        except KeyboardInterrupt:
            click.echo(err=True)
            leaving = True
        except TarsdError as error:
            if isinstance(error, NoDaemon) and not somebody():
                raise  # nothing that follows can be answered
            fail(error)


def _message(talk: TerminalChat, text: str) -> bool:
    """One message and its answer; whether it was stopped with Ctrl-C."""
    turn = RunningTurn.start(talk.client, talk.conversation, text, talk.notes, approvals=somebody())
    talk.turn, talk.said, talk.begun = turn.id, text, True
    show = TurnPrinter(talk.client)
    try:
        show.follow(turn)
    except KeyboardInterrupt:
        show.follow(turn)  # to its end, which comes soon
    show.end(turn)
    if somebody():
        click.echo(err=True)
    return show.stopping


def _greet(talk: TerminalChat, *, reopened: bool) -> None:
    err = Terminal(sys.stderr)
    model = chat_line(talk.client.get("/v1/status").get("chat") or {}, err)
    said = f"{err.dim('tars ·')} {model} {err.dim('· /help lists the commands, Ctrl-D quits.')}"
    click.echo(wrapped(said, err), err=True)
    if not reopened:
        return
    with contextlib.suppress(ClientError):  # it is a new one
        known = conversation_of(talk.client, talk.conversation)
        turns = known.get("turns") or []
        about = f"{len(turns)} turn{'s' * (len(turns) != 1)}" + ", private" * is_private(known)
        click.echo(err.dim(wrapped(f"Continuing: {line(known.get('title', ''))} ({about})", err)), err=True)
        for turn in turns[-1:]:
            text = _end_of(AnswerTables(talk.client, err).whole(clean(turn.get("text", "")).strip("\n")))
            asked = wrapped(f"{PROMPT}{line(turn.get('message', ''))}", err)
            click.echo(err.dim(f"{asked}\n{text}\n"), err=True)
            talk.turn, talk.said = str(turn.get("id") or ""), str(turn.get("message") or "")


def _end_of(text: str) -> str:
    """The last lines of a text, about so much as helps to go on from."""
    lines = text.split("\n")
    rows = list(itertools.accumulate(len(row) + 1 for row in reversed(lines)))
    kept = max(1, sum(size <= MOST_RECALLED for size in rows))
    return text if kept >= len(lines) else "\n".join(["…", *lines[-kept:]])


def _history(hello: dict[str, object]) -> Path:
    """The file of what was typed, among the daemon's own state of this vault."""
    from tarsd.config.places import paths

    vault = hello.get("vault")
    return paths(str(vault.get("id") if isinstance(vault, dict) else ""), os.environ).state / "chat_history"
