"""Rows as text: for a person as Markdown with links and numbers, for a model as lines that cost little."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tarsd.bases import File, LinkValue, Record, Value, text_of
from tarsd.bases.table import Column, Row, Summary, Table
from tarsd.citation import inert
from tarsd.passage import NoteRow, Passage, link_to
from tarsd.query.records import ItemRecord, NoteRecord, TaskRecord
from tarsd.query.reply import property_of

MOST_SHOWN = 100
"""The rows that are shown; sums and counts are of all."""
LONGEST_VALUE = 240
MOST_LINES = 12
"""The lines of properties that are quoted for one note."""

Lines = Callable[[NoteRow], Sequence[str]]
"""The lines of a note's file as they are now."""

_BOX = re.compile(r"^[\s>]*(?:[-*+]|\d+[.)])\s+\[(.)\]\s+")
_OWNER = re.compile(r"^(?:note|formula)\.")
_Entry = tuple[Row, Passage | None]
_SAID = frozenset({"file.name", "file.path", "file.basename", "file.file"})
"""Columns that say no more than the link to a row's note does."""


@dataclass(frozen=True)
class ShownRows:
    """The rows of a table that are shown, each with the lines that it rests on, numbered in their order.

    A row of a file that is no note has None. `notes` are all that the table is made of, shown or not.
    """

    table: Table
    rows: tuple[Row, ...]
    passages: tuple[Passage | None, ...]
    notes: tuple[NoteRow, ...]

    @property
    def kind(self) -> str:
        """What the rows are: notes, tasks, items or files."""
        first = self.rows[0].record if self.rows else None
        if isinstance(first, TaskRecord | ItemRecord):
            return "task" if isinstance(first, TaskRecord) else "item"
        return "note" if all(isinstance(row.record, NoteRecord) for row in self.rows) else "file"


def shown_rows(table: Table, lines: Lines, most: int = MOST_SHOWN, first: int = 1) -> ShownRows:
    """At most so many rows of a table, with their lines, of which the first has the number `first`."""
    rows = table.rows[:most]
    notes = dict.fromkeys(note.row for row in table.rows if (note := _note(row.record)) is not None)
    count = itertools.count(first)
    passages = [
        replace(found, number=next(count)) if (found := _passage(row, table.columns, lines)) else None for row in rows
    ]
    return ShownRows(table, rows, tuple(passages), tuple(notes))


def line_passage(note: NoteRow, read: Sequence[str], line: int = 0, otherwise: str = "") -> Passage:
    """A line of a note to be cited; without one, the first that says something. `otherwise`: its text if it is gone."""
    line = line or _first_line(read)
    text = read[line - 1] if 0 < line <= len(read) else otherwise
    return Passage(text.rstrip(), line, line, note=note, relevance=1.0, place="")


def _first_line(lines: Sequence[str]) -> int:
    """The first line (from 1) below the properties that says something; a heading only where there is nothing else."""
    start = 0
    if lines and lines[0].strip() == "---":
        start = next((at + 1 for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    said = [at for at, line in enumerate(lines, 1) if at > start and line.strip(" #\t>")]
    only = 2 if 2 < start <= len(lines) else 1  # a note that has properties alone
    return next((at for at in said if lines[at - 1][0] != "#"), said[0] if said else only)


def task_entry(passage: Passage) -> str:
    """The line of a task as an entry of a list, with its check box, where it stands, and its number."""
    found = _BOX.match(passage.text)
    said = inert(_short(passage.text[found.end() :] if found else passage.text.strip()))
    return f"- [{found[1] if found else ' '}] {said} — {passage.full_link} [{passage.number}]"


# ------------------------------------------------------------------------------------------------ for a person


def as_markdown(shown: ShownRows) -> str:
    """Count and sums, then the rows: tasks as check boxes, others as a table, or as a list where it has one column."""
    table = shown.table
    lines = [*_counted(shown), *(f"{said}." for said in _sums(table.summaries, table)), *table.problems]
    entries = {id(row): (row, passage) for row, passage in zip(shown.rows, shown.passages, strict=True)}
    columns = [(at, column) for at, column in enumerate(table.columns) if column.name not in _SAID]
    blocks = []
    if table.groups:
        for group in table.groups:
            members = [entries[id(row)] for row in group.rows if id(row) in entries]
            key = _cell(group.key) or "(nothing)"
            sums = "".join(f"; {said}" for said in _sums({k: s for k, s in group.summaries.items() if k}, table))
            count = group.summaries[""].of if "" in group.summaries else len(group.rows)
            blocks.append(f"**{key}** ({count:,}{sums})")
            blocks += [_block(members, columns, shown.kind)] if members else []
    elif entries:
        blocks.append(_block(list(entries.values()), columns, shown.kind))
    return "\n\n".join(["  \n".join(lines), *blocks])


def _block(entries: Sequence[_Entry], columns: Sequence[tuple[int, Column]], kind: str) -> str:
    if kind in ("task", "item"):
        entry = task_entry if kind == "task" else _item_entry
        return "\n".join(entry(passage) for _, passage in entries if passage is not None)
    if not columns:
        return "\n".join(f"- {_place(row, passage)}" for row, passage in entries)
    titles = [kind.capitalize(), *(_cell(column.title) for _, column in columns)]
    lines = [_line(titles), _line(["---"] * len(titles))]
    for row, passage in entries:
        lines.append(_line([_place(row, passage), *(_cell(row.values[at]) for at, _ in columns)]))
    return "\n".join(lines)


def _item_entry(passage: Passage) -> str:
    said = inert(_short(passage.text.strip().lstrip("-*+ ")))
    return f"- {said} — {passage.full_link} [{passage.number}]"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _place(row: Row, passage: Passage | None) -> str:
    return f"{passage.full_link} [{passage.number}]" if passage is not None else link_to(row.record.path)


def _cell(value: Value) -> str:
    """A value on one line of a table: links as links, and nothing that would end the cell or cite something."""
    if isinstance(value, tuple):
        return ", ".join(map(_cell, value))
    if isinstance(value, LinkValue) and not value.display:
        return link_to(value.target)
    if isinstance(value, File):
        return link_to(value.record.path)
    return inert(_short(text_of(value))).replace("|", "\\|")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_VALUE else f"{line[:LONGEST_VALUE].rstrip()} …"


def _counted(shown: ShownRows) -> list[str]:
    total, kind = shown.table.total, shown.kind
    if not total:
        return ["Nothing matches."]
    said = f"{total:,} {kind}{'' if total == 1 else 's'}"
    some = "the first is shown" if len(shown.rows) == 1 else f"the first {len(shown.rows):,} are shown"
    return [f"{said}; {some}." if len(shown.rows) < total else f"{said}."]


def _sums(summaries: Mapping[str, Summary], table: Table) -> list[str]:
    titles = {column.name: column.title for column in table.columns}
    lines = []
    for name, found in summaries.items():
        skipped = f", {found.skipped:,} left out" if found.skipped else ""
        values = f"{found.of:,} value{'' if found.of == 1 else 's'}"
        rests = f" (of {values}{skipped})" if found.of or skipped else ""
        unit = f" {found.unit}" if found.unit else ""
        named = titles.get(name) or _OWNER.sub("", name)
        lines.append(f"{found.name} of {named}: {_cell(found.value) or 'nothing'}{unit}{rests}")
    return lines


# ------------------------------------------------------------------------------------------------ for a model


def as_lines(shown: ShownRows) -> tuple[str, tuple[str, ...]]:
    """What is said above the rows (count, columns, sums, groups), and a line for each row with a passage."""
    table, kind = shown.table, shown.kind
    said = _counted(shown)
    said += [f"{one}." for one in _sums(table.summaries, table)]
    for group in table.groups:
        count = group.summaries[""].of if "" in group.summaries else len(group.rows)
        sums = "".join(f"; {one}" for one in _sums({k: s for k, s in group.summaries.items() if k}, table))
        said.append(f"{_short(text_of(group.key)) or '(nothing)'}: {count:,}{sums}")
    said += table.problems
    columns = [(at, column) for at, column in enumerate(table.columns) if column.name not in _SAID]
    if shown.rows:
        fixed = {"task": ["path:line", "task"], "item": ["path:line", "item"]}.get(kind, ["path"])
        said.append(f"Columns: {' | '.join([*fixed, *(column.title for _, column in columns)])}")
    return "\n".join(said), tuple(
        " | ".join([*_fixed(row), *(_short(text_of(row.values[at])) for at, _ in columns)])
        for row, passage in zip(shown.rows, shown.passages, strict=True)
        if passage is not None
    )


def _fixed(row: Row) -> list[str]:
    record = row.record
    if isinstance(record, TaskRecord):
        return [f"{record.path}:{record.line}", f"[{record.task.status}] {_short(record.task.text)}"]
    if isinstance(record, ItemRecord):
        return [f"{record.path}:{record.line}", _short(record.item.text)]
    return [record.path]


# ------------------------------------------------------------------------------------------------ what rows rest on


def _line_of(record: TaskRecord | ItemRecord) -> str:
    """What the index knows of a line, for a note that went or that cannot be read now."""
    if isinstance(record, TaskRecord):
        return f"- [{record.task.status}] {record.task.text}"
    return f"- {record.item.text}"


def _note(record: Record) -> NoteRecord | None:
    if isinstance(record, TaskRecord | ItemRecord):
        return record.note
    return record if isinstance(record, NoteRecord) else None


def _passage(row: Row, columns: Sequence[Column], lines: Lines) -> Passage | None:
    """The line of a task or item; of a note the lines of the properties that are shown, or its first."""
    record, note = row.record, _note(row.record)
    if note is None:
        return None
    read = lines(note.row)
    if isinstance(record, TaskRecord | ItemRecord):
        return line_passage(note.row, read, record.line, _line_of(record))
    places = sorted({line for column in columns if (line := note.line_of(property_of(column.name)))})
    if not places or places[-1] > len(read):
        return line_passage(note.row, read)
    last = places[-1] if places[-1] - places[0] < MOST_LINES else places[0]
    text = "\n".join(read[places[0] - 1 : last])
    return Passage(text.rstrip(), places[0], last, note=note.row, relevance=1.0, place="")
