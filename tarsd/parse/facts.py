"""What a note's lines say as data: its facts, the list items that carry fields, and its tasks. Pure, linear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tarsd.parse.fields import LONGEST, Fact, Field, Item, facts_of, fields_of, without
from tarsd.parse.properties import PropertyBlock
from tarsd.parse.spans import spans
from tarsd.parse.structure import Heading, Structure
from tarsd.parse.tasks import Task, marks_of, task_of

MOST = 10_000
"""Most facts of a note, and most tasks: what goes beyond is found as text only."""
_FAULTS = 100
HINT = "Fix it in the note, or leave it: it is still found as text."

_BOX = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)+\[[^\[\]\n]\][ \t]+\S", re.MULTILINE)
_ITEM = re.compile(
    r"(?P<quotes>[ \t>]*)(?P<marker>[-*+]|\d{1,9}[.)])(?:[ \t]+|$)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*"
    r"(?:\[(?P<status>[^\[\]])\](?:[ \t]+|$))?"
)
_QUOTED = re.compile(r"[ \t>]*")


@dataclass
class Data:
    """The facts, items and tasks of a note in the order of their lines; `faults` are (1-based line, reason)."""

    facts: list[Fact] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)


def read(block: PropertyBlock, shape: Structure, shown: list[str], first: int) -> Data:
    """The data of a note: of its properties, and of its body, whose first line is line `first` of the file.

    `shown` are the body's lines as a reader sees them, without block ids.
    """
    data = Data()
    for name, value, line in block.leaves:
        if isinstance(value, str) and len(value) > LONGEST:
            data.faults.append((line, f"The value of {name[:60]!r} is too long: only its start is compared."))
        data.facts += facts_of(name, value, line, "property")
    if "::" in shape.prose or _BOX.search(shape.prose):
        _read_body(shape, shown, first, data)
    for kind, rows in (("values of properties and fields", data.facts), ("tasks", data.tasks)):
        if len(rows) > MOST:
            reason = f"The note has more than {MOST:,} {kind}: the others are found as text only."
            data.faults.append((rows[MOST].line, reason))
            del rows[MOST:]
    del data.faults[_FAULTS:]
    return data


def _read_body(shape: Structure, shown: list[str], first: int, data: Data) -> None:
    above = _Above()
    headings = _Headings(shape.headings)
    for number, (prose, line) in enumerate(zip(shape.prose.split("\n"), shown, strict=True), first):
        item = _ITEM.match(prose)
        parent = above.of(prose, item, number)
        status = item["status"] if item else None
        if status is None and "::" not in prose:
            continue
        source = line.rstrip()
        hidden = masked(source) if source != prose.rstrip() else source
        start = (_ITEM if item else _QUOTED).match(hidden)
        if start is None:
            continue
        at = start.end()
        fields = fields_of(hidden[at:], source[at:])
        if status is not None:
            marks = marks_of(hidden[at:], source[at:], fields)
            if marks.text or marks.known:
                heading = headings.above(number)
                data.tasks.append(task_of(number, status, marks, hidden[at:], heading=heading, parent=parent))
                data.faults += ((number, reason) for reason in marks.faults)
            continue
        found = [fact for one in fields for fact in _facts(one, number, item is not None)]
        if found and item is not None:
            data.items.append(Item(number, without(source[at:], fields) or source[at:].strip(), headings.above(number)))
        data.facts += found
        data.faults += (
            (number, f"The value of {one.name[:60]!r} is too long: only its start is compared.")
            for one in fields
            if len(one.value) > LONGEST
        )


def _facts(one: Field, line: int, in_item: bool) -> Iterator[Fact]:
    return facts_of(one.name, one.value, line, "item" if in_item else "field", line if in_item else 0)


def masked(line: str) -> str:
    """The line with backticks in place of its code and comments."""
    parts = list(line)
    for span in spans(line):
        parts[span.start : span.end] = "`" * (span.end - span.start)
    return "".join(parts)


class _Headings:
    """The headings of a note, asked for with lines that only grow."""

    def __init__(self, headings: list[Heading]) -> None:
        self._headings = headings
        self._next = 0
        self._text = ""

    def above(self, line: int) -> str:
        while self._next < len(self._headings) and self._headings[self._next].line < line:
            self._text = self._headings[self._next].text
            self._next += 1
        return self._text


class _Above:
    """The list items that a line may stand below; the lines come in order."""

    def __init__(self) -> None:
        self._open: list[tuple[int, int, int]] = []  # quotes, the column where the text begins, line
        self._blank = True

    def of(self, line: str, item: re.Match[str] | None, number: int) -> int:
        """The line of the item that this one belongs to, 0 if to none."""
        blank, self._blank = self._blank, not line.strip(" \t>")
        if item is None:
            if blank and not self._blank and line[0] not in " \t>":
                self._open.clear()  # a paragraph after the list
            return 0
        before = item["quotes"]
        quotes, column = before.count(">"), len(before.expandtabs(4))
        while self._open and (self._open[-1][0] != quotes or self._open[-1][1] > column):
            self._open.pop()
        parent = self._open[-1][2] if self._open else 0
        self._open.append((quotes, column + len(item["marker"]) + 1, number))
        return parent
