"""A table as JSON: what routes, commands and tools hand on."""

from __future__ import annotations

from typing import Any

from tarsd.bases import Duration, Value, plain, text_of
from tarsd.bases.table import Row, Summary, Table
from tarsd.bases.values import DAY_MS
from tarsd.query.records import ItemRecord, NoteRecord, TaskRecord

Json = dict[str, Any]


def table_json(table: Table) -> Json:
    """The reply to a query. `lines` of a row are those on which its values stand, as far as they are properties.

    Durations without a text of their own are milliseconds; `texts` of a row and `text` of a group say them in words.
    """
    numbers = {id(row): number for number, row in enumerate(table.rows)}
    return {
        "columns": [{"name": column.name, "title": column.title} for column in table.columns],
        "rows": [_row(row, [column.name for column in table.columns]) for row in table.rows],
        "groups": [
            {
                "key": plain(group.key),
                **({"text": text_of(group.key)} if _is_bare(group.key) else {}),
                "count": group.summaries[""].of if "" in group.summaries else len(group.rows),
                "rows": [numbers[id(row)] for row in group.rows],
                "summaries": {name: _summary(found) for name, found in group.summaries.items() if name},
            }
            for group in table.groups
        ],
        "summaries": {name: _summary(found) for name, found in table.summaries.items()},
        "total": table.total,
        "problems": list(table.problems),
    }


def _row(row: Row, names: list[str]) -> Json:
    record = row.record
    made: Json = {"path": record.path}
    note = record
    if isinstance(record, TaskRecord):
        made |= {"line": record.line, "status": record.task.status, "text": record.task.text}
        note = record.note
    elif isinstance(record, ItemRecord):
        made |= {"line": record.line, "text": record.item.text}
        note = record.note
    if isinstance(note, NoteRecord):
        made["title"] = note.row.title
    values = dict(zip(names, row.values, strict=True))
    made["values"] = {name: plain(value) for name, value in values.items()}
    if texts := {name: text_of(value) for name, value in values.items() if _is_bare(value)}:
        made["texts"] = texts
    if isinstance(record, NoteRecord) and not record.source.strict:
        lines = {name: line for name in names if (line := record.line_of(property_of(name)))}
        made |= {"lines": lines} if lines else {}
    return made


def _is_bare(value: Value) -> bool:
    """Whether a value as JSON has milliseconds, which say nothing to a person."""
    if isinstance(value, tuple):
        return any(map(_is_bare, value))
    return isinstance(value, Duration) and not value.text


def property_of(name: str) -> str:
    """The property that a column shows as it is, "" for anything else."""
    bare = name.removeprefix("note.")
    if bare.startswith('note["') and bare.endswith('"]'):
        return bare[6:-2]
    return "" if bare.startswith("file.") else bare


def _summary(found: Summary) -> Json:
    made: Json = {"fn": found.name, "value": plain(found.value), "of": found.of, "skipped": found.skipped}
    if found.value is not None and (found.unit or isinstance(found.value, Duration)):
        made["text"] = f"{text_of(found.value)} {found.unit}".rstrip()
    return made | _minutes(found.value)


def _minutes(value: Value) -> Json:
    return {"minutes": round(value.total / (DAY_MS / 1_440), 6)} if isinstance(value, Duration) else {}
