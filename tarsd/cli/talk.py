"""The command that asks one question: prints the answer as it arrives, then its sources."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tarsd.cli import completion
from tarsd.cli.asking import somebody
from tarsd.cli.common import Command, json_option, note_path, vault_option, words
from tarsd.cli.names import bare
from tarsd.cli.show import TurnPrinter
from tarsd.cli.turns import RunningTurn, TerminalChat
from tarsd.client import Client


@click.command(cls=Command)
@click.argument("question", nargs=-1)
@completion.conversation_option
@completion.notes_option("Attach a note; may be given several times.")
@click.option("--save", is_flag=True, help="Save question and answer as a note, also without a model.")
@vault_option
@json_option
def ask(
    question: tuple[str, ...],
    conversation: str | None,
    notes: tuple[str, ...],
    save: bool,
    vault: Path | None,
    as_json: bool,
) -> None:
    """Ask a QUESTION; the answer comes from your notes, with its sources.

    Without a QUESTION, one is read from standard input; at a terminal a conversation begins, as with `tarsd chat`.
    """
    text = words(question)
    if not text and not as_json and somebody():
        from tarsd.cli.chat import converse

        converse(Client.find(vault), conversation, notes)
        return
    client = Client.find(vault)
    text = text or sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    if not text:
        raise click.UsageError("Ask something: tars QUESTION")
    talk = TerminalChat(client, notes=[bare(note_path(client, name)) for name in notes])
    talk.conversation = words((conversation,)) if conversation else talk.conversation
    click.get_current_context().exit(_once(talk, text, as_json, save))


def _once(talk: TerminalChat, text: str, as_json: bool, save: bool) -> int:
    """One question and its answer; the exit code."""
    asks = somebody() and not as_json
    turn = RunningTurn.start(talk.client, talk.conversation, text, talk.notes, approvals=asks, save=save)
    show = TurnPrinter(talk.client, as_json=as_json)
    show.follow(turn)
    return show.end(turn)
