"""What begins with a slash in a conversation: commands that look things up, remember, and judge answers."""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Callable
from typing import NamedTuple

import click

from tarsd.cli import memory, prompts, review, sessions
from tarsd.cli.asking import confirm, somebody
from tarsd.cli.find import find
from tarsd.cli.keyboard import Keyboard
from tarsd.cli.names import attach
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.cli.turns import TerminalChat, fresh
from tarsd.cli.wrapping import wrapped
from tarsd.errors import BadRequest


class ExitChat(Exception):
    """The person wants to go."""


class SlashCommand(NamedTuple):
    """A command: what may follow it, what it does, and the function that does it; without one, the daemon does."""

    takes: str
    about: str
    run: Callable[[TerminalChat, str, Keyboard], None] | None = None


def obey(talk: TerminalChat, text: str, keyboard: Keyboard) -> None:
    """Does what a line that begins with a slash says. Raises TarsdError, ExitChat."""
    name, _, rest = text[1:].strip().partition(" ")
    known = COMMANDS.get(ALSO.get(name.casefold(), name.casefold()))
    if known is not None and known.run is not None:
        known.run(talk, " ".join(rest.split()), keyboard)
        return
    mine = [str(prompt.get("name")) for prompt in prompts.listed(talk.client)]
    close = difflib.get_close_matches(name.casefold(), [*COMMANDS, *mine], n=1, cutoff=0.5)
    guess = f"Did you mean /{close[0]}?" if close else "/help lists them all."
    raise BadRequest(
        f"There is no command /{clean(name)}.",
        f"{guess} To send a message that starts with a slash, put a space first.",
    )


def is_message(talk: TerminalChat, text: str) -> bool:
    """Whether the daemon answers the command that a text is, as it answers a message: prompts are such."""
    if not text.startswith("/"):
        return False
    name = text[1:].partition(" ")[0].casefold()
    known = COMMANDS.get(ALSO.get(name, name))
    return known.run is None if known is not None else prompts.is_one(talk.client, name)


def _help(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    out = Terminal(sys.stdout)
    rows = [(f"/{name} {command.takes}", command.about) for name, command in COMMANDS.items()]
    width = max(len(called) for called, _ in rows)
    for called, about in [*rows, *prompts.rows(talk.client)]:
        click.echo(wrapped(f"{called:<{width}}  {out.dim(about)}", out, width + 2))
    more = "[[Note]] in a message attaches that note. End a line with \\ to continue it; pasted lines are one message."
    click.echo(out.dim(wrapped(more, out)))


def _search(mode: str) -> Callable[[TerminalChat, str, Keyboard], None]:
    def run(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
        find(talk.client, _needed(rest, "What should be searched for?"), mode, as_json=False)

    return run


def _remember(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    """What is said behind it; else, after a yes, what the person stated last; else what they say now."""
    text = rest
    if not rest and somebody() and talk.said and not asks(talk.said):
        text = " ".join(talk.said.split())
        err = Terminal(sys.stderr)
        click.echo(err.green(wrapped(f"+ {line(text)}", err, 2)), err=True)
        if not confirm("Remember this?"):
            click.echo("Nothing changed.")
            return
    elif not rest and somebody():
        with contextlib.suppress(EOFError):
            text = keyboard.edit("Remember what? ", "")
        if text.startswith("/"):
            raise BadRequest("That is a command, not a fact. Nothing changed.", "Try again: /remember TEXT")
    memory.remember_asking(talk.client, {"text": _needed(text, "What should be remembered?")}, talk.conversation)


def _forget(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    memory.forget_asking(talk.client, _needed(rest, "What should be forgotten? Give some words of it."))


def _memory(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    for text in memory.rows(talk.client.get("/v1/memory"), Terminal(sys.stdout)):
        click.echo(text)


def _undo(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    memory.take_back(talk.client)


def _feedback(verdict: str) -> Callable[[TerminalChat, str, Keyboard], None]:
    def run(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
        if not talk.turn:
            raise BadRequest("There is no answer to judge yet.", "Ask something first.")
        reply = talk.client.post("/v1/feedback", {"turn": talk.turn, "verdict": verdict, "note": rest})
        click.echo(f"Noted in {line(reply.get('path', ''))}. Make a rule from it with /review.")

    return run


def _review(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    review.walk(talk.client, keyboard)


def _sessions(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    conversations = sessions.search(talk.client, rest) if rest else sessions.listed(talk.client)
    for text in sessions.rows(conversations, Terminal(sys.stdout)):
        click.echo(text)
    click.echo("Continue one: tarsd chat -c ID" if conversations else "No conversations.", err=True)


def _new(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    if talk.begun:
        sessions.close(talk.client, talk.conversation)
    talk.conversation, talk.turn, talk.said, talk.begun = fresh(), "", "", False
    talk.notes.clear()
    click.echo("New conversation.", err=True)


def _save(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    if not talk.begun:
        raise BadRequest("There is nothing to save yet.", "Ask something first.")
    note = sessions.save(talk.client, talk.conversation)
    click.echo(f"Saved in {line(note)}." if note else "Not saved as a note: memory.session_notes is off.", err=True)


def _note(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    if rest:
        attach(talk, rest)
    else:
        talk.notes.clear()
    said = f"Attached to every message: {', '.join(map(line, talk.notes))}." if talk.notes else "No note is attached."
    click.echo(wrapped(said, Terminal(sys.stderr)), err=True)


def _quit(talk: TerminalChat, rest: str, keyboard: Keyboard) -> None:
    raise ExitChat


def _needed(text: str, otherwise: str) -> str:
    if not text:
        raise BadRequest(otherwise, "Write it after the command.")
    return text


def asks(text: str) -> bool:
    """Whether a message asks for something, by its signs and first word: that is no fact."""
    first = re.match(r"[\W_]*([^\W_]+)", text)
    return bool(re.search(r"[?\u037e\u055e\u061f\u1367\uff1f\u2e2e]|\bplease\b", text)) or (
        first is not None and first[1].casefold() in ASKING
    )


# English, German, Dutch, French, Spanish, Italian, Portuguese, Russian: what a question or a request begins with.
_ASKING = (
    "what which who whose whom when where why how is are was were do does did can could will would shall should may "
    "has have had tell show give find list explain summarise summarize compare write search look describe name count "
    "was wer wen wem wessen wie wo wann warum wieso weshalb welche welcher welches wohin woher womit wozu ist sind war "
    "waren hat habe hast kann kannst könnte soll wird gibt sag zeig zeige nenne finde liste erkläre suche vergleiche "
    "wat welke waar wanneer waarom hoe zijn heeft kun vertel toon geef zoek "
    "que quel quelle quels quelles qui quand où pourquoi comment combien dis montre donne trouve cherche explique "
    "qué cuál cuáles quién quiénes cuándo dónde cómo cuánto cuántos dime muestra busca explica "
    "che cosa quale quali chi quando dove perché come quanto dimmi mostra cerca spiega "
    "qual quais quem onde porque quanto diga mostre procure explique "
    "что кто где когда почему зачем как какой какая какие сколько чей скажи покажи найди объясни"
)
ASKING = frozenset(_ASKING.split())
COMMANDS = {
    "help": SlashCommand("", "Show this list.", _help),
    "search": SlashCommand("WORDS", "Find passages by word and by meaning.", _search("hybrid")),
    "sgrep": SlashCommand("WORDS", "Find passages by word only.", _search("fts")),
    "svec": SlashCommand("WORDS", "Find passages by meaning only.", _search("vec")),
    "notes": SlashCommand("[CONDITION]", "List notes by property, such as rating > 3; options as in tarsd notes."),
    "tasks": SlashCommand("[WORDS]", "List open tasks; or --overdue, --due week, done PATH:LINE, add TEXT."),
    "base": SlashCommand("FILE", "Show a base as a table; --view NAME for another of its views."),
    "digest": SlashCommand("", "Show what changed, what is due, and what was done since yesterday."),
    "usage": SlashCommand("", "Show the tokens that models used, and what they cost."),
    "remember": SlashCommand("[TEXT]", "Remember a fact; without TEXT, your last message.", _remember),
    "forget": SlashCommand("WORDS", "Forget the line with these words.", _forget),
    "memory": SlashCommand("", "List what is remembered.", _memory),
    "undo": SlashCommand("", "Undo the last change to the memory.", _undo),
    "w": SlashCommand("[NOTE]", "The last answer was wrong; NOTE says why.", _feedback("wrong")),
    "r": SlashCommand("[NOTE]", "The last answer was right; NOTE says why.", _feedback("good")),
    "review": SlashCommand("", "Make rules from your feedback, one by one.", _review),
    "sessions": SlashCommand("[WORDS]", "List conversations, or those with WORDS.", _sessions),
    "save": SlashCommand("", "Save this conversation as a note.", _save),
    "new": SlashCommand("", "Start a new conversation.", _new),
    "note": SlashCommand("[NAME]", "Attach a note to every message; without NAME, detach all.", _note),
    "quit": SlashCommand("", "Quit.", _quit),
}
ALSO = {"exit": "quit", "q": "quit", "?": "help", "h": "help"}
