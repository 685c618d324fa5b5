"""Where in a note something stands or goes: its lines as they are, sections by heading, blocks by id. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from tarsd.errors import BadRequest, Conflict, NotFound
from tarsd.parse import Heading, Note, parse
from tarsd.parse.structure import BLOCK_ID
from tarsd.passage import anchor
from tarsd.vault import nfc

_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKS = re.compile(r"^(#{1,6})[ \t]+(?=\S)")
_EMPHASIS = re.compile(r"[*_`~=]")
_TRAIL = re.compile(r"\s*#\s*|\s+>\s+")
SHOWN = 12
"""How many headings a hint lists."""


@dataclass(frozen=True)
class LineIndex:
    """A text by lines: `starts[i]` is where line i (0-based) begins, and one more entry is the text's end."""

    text: str
    lines: tuple[str, ...]
    starts: tuple[int, ...]
    end: str

    @classmethod
    def of(cls, text: str) -> LineIndex:
        """`end` is the line end that the text uses most, "\\n" if it has none."""
        lines, starts, at = [], [0], 0
        found = []
        for match in _LINE_END.finditer(text):
            lines.append(text[at : match.start()])
            found.append(match[0])
            at = match.end()
            starts.append(at)
        if at < len(text):
            lines.append(text[at:])
            starts.append(len(text))
        counts = Counter(found).most_common(1)
        return cls(text, tuple(lines), tuple(starts), counts[0][0] if counts else "\n")

    def blank(self, index: int) -> bool:
        """Is there nothing in line `index`, or no such line?"""
        return not (0 <= index < len(self.lines)) or not self.lines[index].strip(" \t")

    def with_lines(self, start: int, end: int, new: list[str]) -> str:
        """The text with lines [start, end) exchanged; every other line keeps its bytes and its line end.

        Where the last line had no line end, the last line has none afterwards either.
        """
        before, after = self.text[: self.starts[start]], self.text[self.starts[end] :]
        if not new:
            return before + after
        glue = self.end if before and before[-1] not in "\r\n" else ""
        close = self.end if after or not self.text or self.text[-1] in "\r\n" else ""
        return before + glue + self.end.join(new) + close + after


@dataclass(frozen=True)
class LineRange:
    """Lines [start, end) of a note, 0-based: a section's body, or a block with the line of its id."""

    start: int
    end: int
    id_line: int = -1


class Outline:
    """A note's text with its structure."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = LineIndex.of(text)
        self.note: Note = parse(text, path)

    @cached_property
    def trails(self) -> list[tuple[str, ...]]:
        """For each heading the headings above it, and itself."""
        trails: list[tuple[str, ...]] = []
        stack: list[Heading] = []
        for heading in self.note.headings:
            while stack and stack[-1].level >= heading.level:
                stack.pop()
            stack.append(heading)
            trails.append(tuple(above.text for above in stack))
        return trails

    def section(self, target: str) -> LineRange:
        """The body of the section with this heading, subsections included.

        `target` is the heading's text, with or without its `#`, or a trail of headings: "A#B", "A > B". Raises
        NotFound, and Conflict if several headings fit.
        """
        headings = self.note.headings
        found = self._find(target.strip())
        if not found:
            shown = ", ".join(f"“{heading.text}”" for heading in headings[:SHOWN])
            more = f" and {len(headings) - SHOWN} more" if len(headings) > SHOWN else ""
            hint = f"Its headings are {shown}{more}." if headings else "It has no headings: leave the heading out."
            raise NotFound(f"{self.path} has no heading “{target}”.", hint)
        if len(found) > 1:
            lines = ", ".join(str(headings[index].line) for index in found[:SHOWN])
            named = sorted({" > ".join(self.trails[index]) for index in found[:SHOWN]})
            ways = f"Give the headings above it, too: {'; '.join(named)}."
            same = "Rename one of them, or give a block by its ^id."
            message = f"The heading “{target}” appears {len(found)} times in {self.path}, in lines {lines}."
            raise Conflict(message, ways if len(named) == len(found[:SHOWN]) else same)
        return self._body(found[0])

    def _body(self, number: int) -> LineRange:
        own, *later = self.note.headings[number:]
        ends = (heading.line - 1 for heading in later if heading.level <= own.level)
        return LineRange(own.end_line, next(ends, len(self.text.lines)))

    def _find(self, target: str) -> list[int]:
        """The headings that are meant, exact spelling first, then the trail, then what links and people write."""
        if not target:
            raise BadRequest("No heading was given.", "Give its text.", field="heading")
        level = 0
        if marks := _MARKS.match(target):
            level, target = len(marks[1]), target[marks.end() :].strip()
        headings = self.note.headings
        for same in (str, _loose):
            wanted = same(target)
            found = [index for index, heading in enumerate(headings) if wanted and same(heading.text) == wanted]
            if not found and len(parts := [same(part) for part in _TRAIL.split(target) if part]) > 1:
                found = [index for index, trail in enumerate(self.trails) if _fits(parts, [same(t) for t in trail])]
            at_level = [index for index in found if headings[index].level == level]
            if found:
                return at_level if at_level else found
        return []

    def block(self, id: str) -> LineRange:
        """The block with this id, with or without its `^`. Raises NotFound, and Conflict if several have it."""
        name = id.strip().removeprefix("^")
        found = [block for block in self.note.blocks if block.id == name]
        found = found or [block for block in self.note.blocks if block.id.casefold() == name.casefold()]
        if not found:
            shown = ", ".join(f"^{block.id}" for block in self.note.blocks[:SHOWN])
            hint = f"Its blocks are {shown}." if shown else "It has no block ids: give a heading instead."
            raise NotFound(f"{self.path} has no block ^{name}.", hint)
        if len(found) > 1:
            hint = "Give one of them another id."
            raise Conflict(f"The block id ^{name} appears {len(found)} times in {self.path}.", hint)
        at = found[0].end_line - 1
        while at < len(self.text.lines) - 1 and not self._has_id(at, found[0].id):
            at += 1
        for number, heading in enumerate(self.note.headings):
            if heading.line - 1 == at:  # a heading's id names its section
                return self._body(number)
        start = end = found[0].end_line - 1
        if end in self._headings:
            raise NotFound(f"In {self.path}, ^{name} does not belong to any text.", "Give the heading above it.")
        while start > found[0].start_line - 1 and self._go_together(start - 1, start):
            start -= 1
        return LineRange(start, end + 1, at)

    def _has_id(self, index: int, id: str) -> bool:
        mark = BLOCK_ID.search(self.text.lines[index])
        return mark is not None and mark[1] == id and self._unit(index) in (0, *self._tables)

    def _go_together(self, above: int, below: int) -> bool:
        """Are two neighbouring lines parts of one block? What has an id of its own, and all code, is another."""
        if above in self._headings or not self.note.lines[above].strip() or BLOCK_ID.search(self.text.lines[above]):
            return False
        return self._unit(above) == self._unit(below)

    @cached_property
    def _headings(self) -> frozenset[int]:
        return frozenset(line - 1 for h in self.note.headings for line in range(h.line, h.end_line + 1))

    @cached_property
    def _tables(self) -> frozenset[int]:
        return frozenset(number for number, unit in enumerate(self.note.units, 1) if unit.kind == "table")

    def _unit(self, index: int) -> int:
        """The number of the fence, table or formula that line `index` is in, counted from 1; 0 if in none."""
        numbered = enumerate(self.note.units, 1)
        return next((number for number, unit in numbered if unit.start_line <= index + 1 <= unit.end_line), 0)


def _loose(text: str) -> str:
    return nfc(anchor(_EMPHASIS.sub("", text)).casefold())


def _fits(parts: list[str], trail: list[str]) -> bool:
    """Is the last part the heading itself, and are the others above it, in this order?"""
    above = iter(trail[:-1])
    return parts[-1] == trail[-1] and all(part in above for part in parts[:-1])
