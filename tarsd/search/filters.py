"""Conditions on notes (tag, path, file, dates, properties) → the file ids that meet them all."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from tarsd.search.query import Filter
from tarsd.store import NoteRow, Store
from tarsd.words import fold

_DATES = ("created", "date", "day", "creation date", "created_at")


def select(store: Store, notes: Iterable[NoteRow], filters: Sequence[Filter]) -> set[int] | None:
    """The ids of the files that meet all conditions; None when there are no conditions."""
    if not filters:
        return None
    wanted = any(condition.kind in ("before", "after", "property") for condition in filters)
    properties = store.notes.properties() if wanted else {}
    return {
        note.id
        for note in notes
        if all(_meets(note, properties.get(note.id, {}), condition) != condition.negated for condition in filters)
    }


def is_own(note: NoteRow) -> bool:
    """Whether tarsd wrote it itself, memory excepted: no evidence for an answer."""
    return note.ours and not note.memory_type


def _meets(note: NoteRow, properties: dict[str, Any], condition: Filter) -> bool:
    value = condition.value
    match condition.kind:
        case "tag":
            tags = (fold(tag) for tag in note.tags)
            return any(tag == value or tag.startswith(f"{value}/") for tag in tags)
        case "path":
            return value in fold(note.path)
        case "file":
            return value in fold(note.path.rpartition("/")[2])
        case "collection":
            return note.collection == value
        case "memory_type":
            return (note.memory_type or "") == value
        case "before":
            return note_date(note, properties) < value
        case "after":
            # The named day, month or year itself does not lie after it; its first day is what was parsed.
            return note_date(note, properties) > value
        case "property":
            found = next((known for name, known in properties.items() if name.lower() == condition.name), None)
            return _holds(found, value)


def _holds(found: Any, value: str) -> bool:
    if isinstance(found, list):
        return any(_holds(part, value) for part in found) if value else bool(found)
    if found is None:
        return value == "null"
    if isinstance(found, bool):
        return not value or value == str(found).lower()
    text = fold(str(found))
    return not value or value == text or (isinstance(found, str) and value in text)


def note_date(note: NoteRow, properties: dict[str, Any]) -> str:
    """The day of a note as YYYY-MM-DD: its own property, else when the file was last changed."""
    folded = {name.lower(): value for name, value in properties.items()}
    for name in _DATES:
        value = folded.get(name)
        if isinstance(value, str) and len(value) >= 10 and value[:4].isdigit() and value[4] == "-":
            return value[:10]
    return datetime.datetime.fromtimestamp(note.mtime_ns / 1e9).astimezone().date().isoformat()
