"""Tables in the Markdown of an answer, told from the text around them while both are still coming."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tarsd.cli.find import roots
from tarsd.cli.table import Cell, table
from tarsd.cli.terminal import Terminal
from tarsd.cli.wrapping import wrapped
from tarsd.client import Client

MOST_ROWS = 200
"""Rows that are held back; a table that goes on is drawn in parts, each with its titles."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_RULE = re.compile(r"[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*\n?")
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(`{3,}|~{3,})")
_WIKILINK = re.compile(r"!?\[\[([^\[\]|]+)(?:\|([^\[\]]+))?\]\]")
_CITED = re.compile(r"(?<!\\)\[(\d{1,3})\]")
_ESCAPED = re.compile(r"\\(?=\[[ ]?\d{1,3}\??(?:\s*[,;&–—-]\s*\d{1,3}\??)*[ ]?\])")
_BAR = re.compile(r"(?<!\\)\|")


def unescaped(text: str) -> str:
    """What a person reads: a number in brackets without the backslash that keeps it from being a citation."""
    return _ESCAPED.sub("", text)


@dataclass(frozen=True)
class MarkdownTable:
    """A table: its titles, and rows of as many cells, each on one line and without the escapes of bars."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class TableFinder:
    """Text that comes in pieces, given on at once but for lines that begin with a bar: these wait for their table."""

    def __init__(self) -> None:
        self._line = ""
        self._passed = False  # some of the line was given on already
        self._held: list[str] = []
        self._fence = ""

    def feed(self, text: str) -> Iterator[str | MarkdownTable]:
        """What can be shown by now."""
        for part in _LINES.findall(text):
            self._line += part
            if self._passed:
                yield part
            elif self._fence or not self._may_be_a_row():
                self._passed = True  # before it is given on: Ctrl-C may come while it is printed
                yield from self._let_go()
                yield self._line
            if part.endswith("\n"):
                yield from self._end_line()

    def finish(self) -> Iterator[str | MarkdownTable]:
        """What was held back; whatever comes next begins a line."""
        if self._line and not self._passed:
            self._held.append(self._line)
        self._line, self._passed = "", False
        yield from self._let_go()

    def _may_be_a_row(self) -> bool:
        begun = self._line.lstrip(" \t")
        return not begun or begun.startswith("|")

    def _end_line(self) -> Iterator[str | MarkdownTable]:
        line, passed = self._line, self._passed
        self._line, self._passed = "", False
        if passed:
            self._look_for_fence(line)
            return
        self._held.append(line)
        if len(self._held) > 1 and not _is_table(self._held):
            yield from self._let_go()
        elif len(self._held) == MOST_ROWS + 2:
            above = self._held[:2]
            yield from self._let_go()
            self._held = above

    def _look_for_fence(self, line: str) -> None:
        mark = found[1] if (found := _FENCE.match(line)) else ""
        if not self._fence:
            self._fence = mark
        elif mark.startswith(self._fence) and not line.strip(" \t>\n").strip(mark[:1]):
            self._fence = ""

    def _let_go(self) -> Iterator[str | MarkdownTable]:
        held, self._held = self._held, []
        if len(held) > 1 and _is_table(held):
            titles = _cells(held[0])
            blank = ("",) * len(titles)
            yield MarkdownTable(titles, tuple((*_cells(row), *blank)[: len(titles)] for row in held[2:]))
        elif held:
            yield "".join(held)


def _is_table(lines: list[str]) -> bool:
    return _RULE.fullmatch(lines[1]) is not None and len(_cells(lines[0])) == len(_cells(lines[1]))


def _cells(row: str) -> tuple[str, ...]:
    cells = _BAR.split(row.strip().removeprefix("|"))
    if len(cells) > 1 and not cells[-1]:
        cells.pop()  # the bar at the end
    return tuple(" ".join(cell.replace("\\|", "|").split()) for cell in cells)


class AnswerTables:
    """Draws the tables of one answer; what leads to a source of it can be clicked."""

    def __init__(self, client: Client, out: Terminal) -> None:
        self.linked: set[int] = set()
        """The numbers of the sources that can be reached from a table."""
        self._client = client
        self._out = out
        self._sources: dict[int, Mapping[str, Any]] = {}
        self._roots: Mapping[str, Path] | None = None

    def learn(self, sources: Sequence[Mapping[str, Any]]) -> None:
        """More sources that the answer may cite."""
        self._sources |= {int(one.get("n") or 0): one for one in sources}

    def lines(self, shown: MarkdownTable) -> list[str]:
        """The lines of a table that fits the terminal."""
        return table(shown.titles, [[self._cell(text) for text in row] for row in shown.rows], self._out)

    def whole(self, text: str) -> str:
        """A whole answer as it is printed: wrapped, and with its tables drawn, for somebody who looks at it."""
        if not self._out.live:
            return text
        finder = TableFinder()
        return "".join(
            "\n".join(self.lines(part)) + "\n"
            if isinstance(part, MarkdownTable)
            else wrapped(unescaped(part), self._out, width=self._out.edge)
            for part in [*finder.feed(text + "\n"), *finder.finish()]
        ).removesuffix("\n")

    def _cell(self, text: str) -> Cell:
        cited = [int(number) for number in _CITED.findall(text)]
        shown = unescaped(_WIKILINK.sub(lambda link: link[2] or link[1], text))
        path = self._path(cited[0]) if len(cited) == 1 and text.startswith("[[") and self._out.links else None
        if path is None:
            return Cell(shown)
        self.linked.update(cited)
        return Cell(shown, lambda part: self._out.link(self._out.cyan(part), path))

    def _path(self, number: int) -> Path | None:
        source = self._sources.get(number)
        if source is None:
            return None
        if self._roots is None:
            self._roots = roots(self._client)
        root = self._roots.get(str(source.get("collection") or ""))
        return root / str(source.get("path")) if root else None
