"""Breaks text between words where the terminal ends: finished lines, and an answer that is still coming."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tarsd.cli.terminal import Terminal, columns

STYLES = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;;[^\x1b]*\x1b\\")


def wrapped(text: str, out: Terminal, indent: int | None = None, *, width: int = 0) -> str:
    """The text with ends of lines between words, if it goes to a terminal; colours take no columns.

    Lines that go on are indented by `indent` blanks, or as the line is that they continue.
    """
    if not out.live:
        return text
    width = width or out.width
    return "\n".join(piece for row in text.split("\n") for piece in _rows(row, width, indent))


def _rows(row: str, width: int, indent: int | None) -> list[str]:
    if _shown(row) <= width:
        return [row]
    lead = len(row) - len(row.lstrip(" "))
    hang = " " * min(lead if indent is None else indent, width // 2)
    pieces, current, begun = list[str](), row[:lead], False
    for word in row[lead:].split(" "):
        longer = f"{current} {word}" if begun else current + word
        if _shown(longer) <= width:
            current, begun = longer, True
            continue
        if begun:
            pieces.append(current.rstrip(" "))
            current = hang
        current += word
        while _shown(current) > width and "\x1b" not in current:
            cut = _fitting(current, width)
            if (after := current.rfind("/", len(hang), cut) + 1) > len(hang):  # a path goes on with a whole name
                cut = after
            pieces.append(current[:cut])
            current = hang + current[cut:]
        begun = bool(current.strip(" "))
    return [*pieces, current] if current.strip(" ") else pieces


def _fitting(text: str, width: int) -> int:
    """How many letters of the text take at most so many columns."""
    taken = 0
    for at, letter in enumerate(text):
        taken += columns(letter)
        if taken > width:
            return at
    return len(text)


def _shown(text: str) -> int:
    return columns(STYLES.sub("", text))


class WordWrapper:
    """Text that is printed as it comes: a word that would pass the terminal's edge moves to the next line.

    A `width` of 0 breaks no lines. Empty lines at the beginning and at the end are left out.
    """

    def __init__(self, width: int = 0) -> None:
        self._width = width
        self.reset()

    def reset(self) -> None:
        """What comes next begins at the left edge."""
        self._column = 0
        self._ends = 0  # ends of lines that are not printed yet
        self._begun = False
        self._word, self._long = "", False

    def put(self, lines: Sequence[str]) -> str:
        """What to print for finished lines, which stand apart from the text around them."""
        before = "\n" * max(1, min(self._ends, 2)) if self._begun else ""
        self.reset()
        self._begun, self._ends = True, 1
        return before + "\n".join(lines)

    def feed(self, text: str) -> str:
        """What to print for the text that has come; it may take back the beginning of its first word."""
        before = self._word
        out: list[str] = []
        start = -1 if before else 0  # where the current word begins in `out`; -1 is: in what stands there already
        for letter in text:
            if letter == "\n":
                self._ends += 1
                continue
            if self._ends:
                if self._begun:
                    out.append("\n" * (min(self._ends, 2) if self._width else self._ends))
                self._column, self._ends, self._word, self._long = 0, 0, "", False
            self._begun = True
            if letter == " ":
                self._word, self._long = "", False
                if not self._width or self._column < self._width - 1:  # else the end of the line stands for it
                    out.append(letter)
                    self._column += 1
                continue
            if not self._word:
                start = len(out)
            wide = columns(letter)
            if self._width and self._column + wide > self._width - 1:
                self._break(out, start, before)
            out.append(letter)
            self._column += wide
            if self._column > self._width:  # the terminal itself has broken what is longer than a line
                self._column = wide
            self._word = "" if wide > 1 else self._word + letter  # scripts with wide letters break anywhere
        return "".join(out)

    def _break(self, out: list[str], start: int, before: str) -> None:
        """Ends the line before the current word; a word that fills the line by itself is broken by the terminal."""
        taken = columns(self._word)
        if self._long or (taken and taken == self._column):
            self._long = True
            return
        if start < 0:
            out[:] = [f"\x1b[{columns(before)}D\x1b[K", "\n", self._word]
        else:
            out[start:] = ["\n", self._word] if self._word else ["\n"]
        self._column = taken
