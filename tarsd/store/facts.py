"""The values, list items and tasks of notes: written with their note, read by note or by the key of a name."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import apsw

from tarsd.kinds import CHECKED, Kind, Reading, fits, kind_of
from tarsd.parse import Fact, Item, Note, Task
from tarsd.parse.fields import Scalar, Source, key_of
from tarsd.store import links
from tarsd.store.database import Database, fetch, listed
from tarsd.store.rows import FactRows, ProblemRow
from tarsd.store.schema import FACT_TABLES, TASK_COLUMNS
from tarsd.vault import nfc

Comparison = Literal["=", "<", "<=", ">", ">=", "exists"]

_SOURCES: tuple[Source, ...] = ("property", "field", "item")
_COMPARED = 100
"""Characters of a text that tell it from others."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name that values have: as it is mostly written, in how many notes, and how many values are of each kind."""

    shown: str
    notes: int
    kinds: Mapping[Kind, int]


def rows_of(note: Note) -> FactRows:
    """The rows of a note."""
    return FactRows(
        tuple(_fact_row(seq, fact) for seq, fact in enumerate(note.facts)),
        tuple((item.line, item.text, item.heading) for item in note.items),
        tuple(
            (*(getattr(task, name) for name in TASK_COLUMNS), _json(task.tags), _json(dict(task.fields)))
            for task in note.tasks
        ),
    )


def _fact_row(seq: int, fact: Fact) -> tuple[Any, ...]:
    read = kind_of(fact.value)
    number = None if read.kind == "checkbox" else read.number
    source = _SOURCES.index(fact.source)
    return (
        *(seq, key_of(fact.name), fact.name, fact.value, read.kind, _said(read)),
        *(number, read.minutes, fact.line, source, fact.item),
    )


def _said(read: Reading) -> str:
    if read.iso:
        return read.iso
    return links.key_of(read.target.partition("#")[0])[:_COMPARED] if read.target else _folded(read.text)


def _folded(text: str) -> str:
    return nfc(" ".join(text.split()).casefold())[:_COMPARED]


def put(db: apsw.Connection, file_id: int, rows: FactRows) -> None:
    """Write the rows of a note that has none."""
    for table, own in zip(FACT_TABLES, rows, strict=True):
        if own:
            holes = ", ".join("?" * (len(own[0]) + 1))
            db.executemany(f"INSERT INTO {table} VALUES ({holes})", ((file_id, *row) for row in own))


def drop(db: apsw.Connection, file_id: int) -> None:
    """Remove the rows of a note."""
    for table in FACT_TABLES:
        db.execute(f"DELETE FROM {table} WHERE file_id = ?", (file_id,))


class Facts:
    """Values, items and tasks of the notes, by the ids of these. Templates and our own notes have none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(
        self, file_ids: Iterable[int] | None = None, *, keys: Collection[str] | None = None
    ) -> dict[int, tuple[Fact, ...]]:
        """The facts of these notes (None: of all), in the file's order; with `keys` only those of such names.

        Notes without any are not in it.
        """
        found: dict[int, list[Fact]] = {}
        columns = "file_id, name, value, line, source, item, kind"
        for row in self._rows("facts", columns, "seq", file_ids, keys):
            file_id, name, value, line, source, item, kind = row
            fact = Fact(name, _value(value, kind), line, _SOURCES[source], item)
            found.setdefault(file_id, []).append(fact)
        return {file_id: tuple(facts) for file_id, facts in found.items()}

    def items(self, file_ids: Iterable[int] | None = None) -> dict[int, tuple[Item, ...]]:
        """The list items that carry fields, as `of`; their fields are facts with the item's line as `item`."""
        found: dict[int, list[Item]] = {}
        for file_id, *row in self._rows("items", "file_id, line, text, heading", "line", file_ids):
            found.setdefault(file_id, []).append(Item(*row))
        return {file_id: tuple(items) for file_id, items in found.items()}

    def tasks(self, file_ids: Iterable[int] | None = None) -> dict[int, tuple[Task, ...]]:
        """The tasks of these notes, as `of`."""
        found: dict[int, list[Task]] = {}
        columns = f"file_id, tags, fields, {', '.join(TASK_COLUMNS)}"
        for file_id, tags, fields, *row in self._rows("tasks", columns, "line", file_ids):
            known = dict(zip(TASK_COLUMNS, row, strict=True))
            task = Task(**known, tags=tuple(json.loads(tags)), fields=json.loads(fields))
            found.setdefault(file_id, []).append(task)
        return {file_id: tuple(tasks) for file_id, tasks in found.items()}

    def _rows(
        self,
        table: str,
        columns: str,
        order: str,
        file_ids: Iterable[int] | None,
        keys: Collection[str] | None = None,
    ) -> list[Any]:
        wanted: list[str] = []
        values: list[str] = []
        if file_ids is not None:
            wanted.append("file_id IN (SELECT value FROM json_each(?))")
            values.append(listed(file_ids))
        if keys is not None:
            # a few names are found by their index, unless the notes are given: these lie together
            wanted.append(f"{'' if file_ids is None else '+'}key IN (SELECT value FROM json_each(?))")
            values.append(_json(list(keys)))
        where = f"WHERE {' AND '.join(wanted)} " if wanted else ""
        with self._database.reader() as db:
            return fetch(db, f"SELECT {columns} FROM {table} {where}ORDER BY file_id, {order}", values)

    def having(self, key: str, op: Comparison, value: float | str = 0, *, minutes: bool = False) -> set[int]:
        """The notes of which a value of this name compares so.

        A number compares with numbers, or with the minutes of durations; an ISO day or time with dates; any other
        text with texts and the names of linked notes, without case and by its first 100 characters ("=" alone).
        """
        condition, values = "TRUE", list[float | str]()
        if op != "exists" and isinstance(value, str):
            read = kind_of(value)
            condition, values = f"said {op} ? AND kind IN ('text', 'link')", [read.iso or _folded(value)]
            if read.iso:
                condition = f"substr(said, 1, {len(read.iso)}) {op} ? AND kind IN ('date', 'datetime')"
            elif op == "=":
                condition, values = "said IN (?, ?)", [_folded(value), links.key_of(value)[:_COMPARED]]
        elif op != "exists":
            condition, values = f"{'minutes' if minutes else 'number'} {op} ?", [value]
        with self._database.reader() as db:
            sql = f"SELECT DISTINCT file_id FROM facts WHERE key = ? AND {condition}"
            return {row[0] for row in fetch(db, sql, (key, *values))}

    def unknown(self, keys: Iterable[str], without: Collection[int] = ()) -> set[str]:
        """Those of the keys that no value has, nor one of a map of the name; notes in `without` do not count."""
        among = _not_in(without, "AND")
        sql = (
            "SELECT asked.value FROM json_each(?) AS asked "
            f"WHERE NOT EXISTS (SELECT 1 FROM facts AS f WHERE f.key = asked.value {among}) AND NOT EXISTS "
            f"(SELECT 1 FROM facts AS f WHERE f.key > asked.value || '.' AND f.key < asked.value || '/' {among})"
        )
        values = (_json(list(keys)), *((listed(without), listed(without)) if without else ()))
        with self._database.reader() as db:
            return {row[0] for row in fetch(db, sql, values)}

    def names(self, without: Collection[int] = ()) -> dict[str, Name]:
        """By key the names that values have, those of most notes first; of notes in `without` nothing counts."""
        with self._database.reader() as db:
            counted = fetch(
                db,
                "SELECT key, name, kind, count(*), count(DISTINCT file_id) FROM facts "
                f"{_not_in(without)} GROUP BY key, name, kind",
                (listed(without),) if without else (),
            )
            notes = dict(
                fetch(
                    db,
                    f"SELECT key, count(DISTINCT file_id) FROM facts {_not_in(without)} GROUP BY key",
                    (listed(without),) if without else (),
                )
            )
        spelled: dict[str, dict[str, int]] = {}
        kinds: dict[str, dict[Kind, int]] = {}
        for key, name, kind, values, own in counted:
            spelled.setdefault(key, {})[name] = spelled.get(key, {}).get(name, 0) + own
            kinds.setdefault(key, {})[kind] = kinds.get(key, {}).get(kind, 0) + values
        return {
            key: Name(max(sorted(spelled[key]), key=lambda name: spelled[key][name]), notes[key], kinds[key])
            for key in sorted(notes, key=lambda key: (-notes[key], key))
        }

    def misfits(self, collection: str, types: Mapping[str, str]) -> list[ProblemRow]:
        """Properties of a collection's notes that are not what `types` declare, by key (`kinds.property_types`)."""
        sql = (
            "SELECT f.path, x.line, x.name, x.value, x.kind, x.key FROM facts x JOIN files f ON f.id = x.file_id "
            "WHERE x.key IN (SELECT value FROM json_each(?)) AND x.source = 0 AND f.collection = ? AND NOT f.ours "
            "ORDER BY f.path, x.seq"
        )
        wanted = {key: kind for key, kind in types.items() if kind in CHECKED}
        if not wanted:
            return []
        with self._database.reader() as db:
            rows = fetch(db, sql, (_json(list(wanted)), collection))
        return [
            ProblemRow(
                collection,
                path,
                line,
                f"The value of {name[:60]!r} is no {wanted[key]}, which is its type in Obsidian; it is read as text.",
                "Fix the value, or choose another type for the property in Obsidian.",
            )
            for path, line, name, value, kind, key in rows
            if not fits(_value(value, kind), wanted[key])
        ]

    def values(self, key: str, without: Collection[int] = ()) -> list[tuple[str, int]]:
        """The texts and links that occur as values of a name, each with the number of notes, most first."""
        sql = (
            "SELECT max(value), count(DISTINCT file_id) AS notes FROM facts WHERE key = ? "
            f"AND kind IN ('text', 'link') {_not_in(without, 'AND')} GROUP BY said ORDER BY notes DESC, said"
        )
        values = (key, listed(without)) if without else (key,)
        with self._database.reader() as db:
            return [(str(text), notes) for text, notes in fetch(db, sql, values)]


def _value(value: Any, kind: str) -> Scalar:
    """A value as it was written: SQLite keeps no booleans."""
    scalar: Scalar = bool(value) if kind == "checkbox" and isinstance(value, int) else value
    return scalar


def _not_in(without: Collection[int], word: str = "WHERE") -> str:
    return f"{word} file_id NOT IN (SELECT value FROM json_each(?))" if without else ""


def _json(value: Mapping[str, str] | Sequence[str]) -> str:
    return json.dumps(value, ensure_ascii=False)
