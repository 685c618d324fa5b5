"""Typing messages: a line that can be edited, with completion and a history; plain lines where that cannot be."""

from __future__ import annotations

import contextlib
import select
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tarsd.cli.asking import answer, somebody
from tarsd.cli.terminal import Terminal

if TYPE_CHECKING:
    from tarsd.cli.line_editor import LineEditor

MOST_SHOWN = 200
AT_ONCE_S = 0.05
"""Lines that follow one another faster than this were pasted, not typed."""


class Cleared(Exception):
    """Ctrl-C was pressed on a line that was not empty; the line is gone."""


class Keyboard:
    """`with Keyboard(file, commands, names) as keyboard`: reads messages; what is completed is asked for at need."""

    def __init__(
        self,
        history: Path | None = None,
        commands: Callable[[], Sequence[str]] = tuple,
        names: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._editor: LineEditor | None = None
        if somebody() and Terminal(sys.stdout).links:  # a dumb terminal shows no editing
            from tarsd.cli.line_editor import LineEditor

            self._editor = LineEditor(history, lambda before, word: completions(before, word, commands, names))

    def __enter__(self) -> Keyboard:
        return self

    def __exit__(self, *_: object) -> None:
        if self._editor is not None:
            self._editor.close()

    def read(self, prompt: str) -> str:
        """The next message. Pasted lines are one, and a line that ends in a backslash goes on in the next.

        Raises EOFError; Cleared or, on an empty line, KeyboardInterrupt.
        """
        text = ""
        try:
            text = self._line(prompt)
            while text.endswith("\\"):
                text = text[:-1] + "\n" + self._line("  ")
        except KeyboardInterrupt:
            if text or (self._editor is not None and self._editor.unfinished):
                raise Cleared from None
            raise
        return text.rstrip("\n")

    def edit(self, prompt: str, text: str) -> str:
        """A text as the person changes it; at a dumb terminal it is typed anew, and an empty line keeps it."""
        typed = answer(prompt) if self._editor is None else self._editor.changed(prompt, text)
        return " ".join(typed.split()) or text

    def _line(self, prompt: str) -> str:
        if self._editor is not None:
            return self._editor.line(prompt)
        if not somebody():
            return _plain_line()
        early = _more(0)  # what was typed during an answer may be several messages
        click.echo(prompt, nl=False)
        try:
            text = _plain_line()
        except (EOFError, KeyboardInterrupt):
            click.echo()
            raise
        while not early and _more(AT_ONCE_S):
            text += "\n" + _plain_line()
        return text


def completions(
    before: str, text: str, commands: Callable[[], Sequence[str]], names: Callable[[], Sequence[str]]
) -> list[str]:
    """What `text`, the last word of the line `before`, may become: a command, or the rest of a note's name."""
    if before.startswith("/") and " " not in before:
        return [f"{command} " for command in commands() if command.startswith(before)]
    at = before.rfind("[[")
    if at >= 0 and "]]" not in before[at:]:
        begun, end = before[at + 2 :], "]]"
    elif before.startswith("/note "):
        begun, end = before.removeprefix("/note "), ""
    else:
        return []
    kept = len(begun) - len(text)  # what stands before the word stays as it was typed
    wanted = begun.casefold()
    every = names()
    short = {name for name in every if "/" not in name}
    fitting = [
        name
        for name in every
        if name.casefold().startswith(wanted)
        and ("/" in wanted or "/" not in name or name.rpartition("/")[2] not in short)  # a path only where it is needed
    ]
    return [name[kept:] + end for name in fitting[:MOST_SHOWN]]


def _plain_line() -> str:
    """A line as it comes. Raises EOFError."""
    raw = sys.stdin.buffer.readline()
    if not raw:
        raise EOFError
    return raw.decode("utf-8", "replace").rstrip("\r\n")


def _more(seconds: float) -> bool:
    """Whether another line is there already, or comes within this time."""
    with contextlib.suppress(OSError, ValueError):
        return bool(select.select([sys.stdin], [], [], seconds)[0])
    return False
