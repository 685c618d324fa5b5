"""Conditions on notes (tag, path, file, dates, properties) → the file ids that meet them all."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from tarsd.kinds import Reading, kind_of
from tarsd.search.query import Filter
from tarsd.store import NoteRow, Store
from tarsd.words import fold

_ABSENT = object()


def select(store: Store, notes: Iterable[NoteRow], filters: Sequence[Filter]) -> set[int] | None:
    """The ids of the files that meet all conditions; None when there are no conditions."""
    if not filters:
        return None
    wanted = any(condition.kind == "property" for condition in filters)
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
        case "kind":  # by its ending, or its kind
            return value in (note.kind, note.path.rpartition(".")[2].lower())
        case "collection":
            return note.collection == value
        case "memory_type":
            return (note.memory_type or "") == value
        case "before":
            return "" < note.date < value
        case "after":
            # Of the named month or year only the first day, which is what was parsed, does not lie after it.
            return note.date > value
        case "on":
            return note.date.startswith(value)
        case "changed":
            day = _changed(note)
            if value[0] in "<>":
                return "" < day < value[1:] if value[0] == "<" else day > value[1:]
            return day.startswith(value)
        case "property":
            found = next((known for name, known in properties.items() if fold(name) == condition.name), _ABSENT)
            return found is not _ABSENT and any(_holds(found, part) for part in value.split(" OR "))


def _holds(found: Any, value: str) -> bool:
    if isinstance(found, list):
        return any(_holds(part, value) for part in found) if value else bool(found)
    if found is None:
        return value == "null"
    if isinstance(found, bool):
        return not value or value == str(found).lower()
    if value[:1] in ("<", ">") and value[1:].strip():
        return _compares(kind_of(found), value[0], kind_of(value[1:].strip()))
    text = fold(str(found))
    return not value or value == text or (isinstance(found, str) and value in text)


def _compares(found: Reading, sign: str, bound: Reading) -> bool:
    """Whether a number, or a date, is less (`<`) or more (`>`) than another one; what are not two of these is not."""
    pairs = ((found.iso[: len(bound.iso)], bound.iso), (found.number, bound.number))
    for own, other in pairs:
        if own not in ("", None) and other not in ("", None):
            return own < other if sign == "<" else own > other  # type: ignore[operator]
    return False


def _changed(note: NoteRow) -> str:
    """The day of the file's last change where this machine is, as YYYY-MM-DD; "" for a time that is none."""
    try:
        return datetime.datetime.fromtimestamp(note.mtime_ns / 1e9).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
