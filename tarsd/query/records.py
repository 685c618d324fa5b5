"""Notes, tasks and list items as expressions see them, read from the index when they are asked for."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tarsd.bases import File, LinkValue, Record, Value
from tarsd.bases.temporal import read_date
from tarsd.bases.values import Named
from tarsd.parse import Fact, Item, Task
from tarsd.parse.fields import key_of
from tarsd.parse.properties import JSON
from tarsd.passage import NoteRow
from tarsd.query.names import (
    SHOWN_FILES,
    Embeds,
    NoteNames,
    by_key,
    lenient_value,
    link_key,
    moment_of,
    place_fields,
    strict_value,
)
from tarsd.store import Store, links


class QuerySource:
    """What a query reads: the notes of the vault without those that are `hidden`.

    `strict`: properties as Obsidian reads them, and no inline fields; `types` are what `types.json` declares, by key.
    `keys` are those of the names that the query asks for, None for any. `root` is the vault's folder; `others` lists
    the paths of its other files.
    """

    def __init__(
        self,
        store: Store,
        names: NoteNames,
        *,
        hidden: Collection[int] = (),
        strict: bool = False,
        types: Mapping[str, str] | None = None,
        keys: Collection[str] | None = None,
        root: Path | None = None,
        others: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self.store, self.names, self.hidden = store, names, hidden
        self.strict, self.types, self.keys = strict, types or {}, keys
        self._root = root
        self._others = others
        self._records: dict[int, NoteRecord] = {}
        self._wanted: set[int] = set()
        self._loaded: dict[str, dict[int, Any]] = {}
        self._columns: dict[str, Mapping[int, Value] | None] = {}
        self._found: dict[str, int | None] = {}

    # -------------------------------------------------------------------------------------------- notes

    def note(self, file_id: int) -> NoteRecord | None:
        """The note with this id, None for a hidden one."""
        row = self.names.rows.get(file_id)
        if row is None or file_id in self.hidden:
            return None
        record = self._records.get(file_id)
        if record is None:
            record = self._records[file_id] = NoteRecord(self, row)
        return record

    def notes(self, file_ids: Iterable[int]) -> list[NoteRecord]:
        """The notes with these ids, which are then read together."""
        found = [record for file_id in file_ids if (record := self.note(file_id)) is not None]
        self._wanted = {record.row.id for record in found}
        return found

    def focus(self, file_ids: Iterable[int]) -> None:
        """From here on only these notes are wanted."""
        self._wanted = set(file_ids)
        self._loaded.pop("facts", None)

    def find(self, link: str, source: str) -> Record | None:
        """What a link leads to: a note, or another file of the vault."""
        target = link.partition("#")[0].strip() if "#" in link else link
        if not target:
            return None
        plain = "/" not in target
        if plain and target in self._found:
            found = self._found[target]
        else:
            found = self.names.find(target, source, self.hidden)
            if plain and (found is None or not self.names.several(target)):
                self._found[target] = found
        if found is not None:
            return self.note(found)
        return self._other_files.get(links.key_of(target)) if "." in target else None

    @functools.cached_property
    def _other_files(self) -> dict[str, OtherFile]:
        return {links.key_of(other.path): other for other in reversed(self.others)}

    @functools.cached_property
    def others(self) -> list[OtherFile]:
        """The files of the vault that are no notes, such as pictures."""
        known = {row.path for row in self.names.rows.values()}
        paths = (path for path in self._others() if path.rpartition(".")[2].lower() in SHOWN_FILES)
        return [
            OtherFile(self, path) for path in paths if path not in known and not path.rpartition("/")[2].startswith(".")
        ]

    # -------------------------------------------------------------------------------------------- what they hold

    def properties(self, file_id: int) -> Mapping[str, JSON]:
        """The frontmatter of a note, as JSON."""
        found: Mapping[str, JSON] | None = self._of("properties", file_id, self.store.notes.properties)
        return found or {}

    def facts(self, file_id: int) -> Mapping[str, list[Fact]]:
        """The values of a note by key, those of list items among them."""
        found: Mapping[str, list[Fact]] | None = self._of("facts", file_id, self._facts)
        return found or {}

    def _facts(self, file_ids: Collection[int] | None) -> dict[int, dict[str, list[Fact]]]:
        return {file_id: by_key(facts) for file_id, facts in self.store.facts.of(file_ids, keys=self.keys).items()}

    def links(self, file_id: int) -> Embeds:
        """The links of a note: target, text, and whether they show what they lead to."""
        found: Embeds | None = self._of("links", file_id, self.store.notes.link_targets)
        return found or ()

    @functools.cached_property
    def every_link(self) -> Mapping[int, Embeds]:
        """The links of all notes."""
        return self.names.keep("links", self.store.notes.link_targets)

    @functools.cached_property
    def backlinks(self) -> Mapping[int, Sequence[int]]:
        """The notes that link to each note."""
        return self.names.keep("backlinks", self.store.notes.backlinks)

    def _of(self, what: str, file_id: int, read: Callable[[Collection[int] | None], dict[int, Any]]) -> Any:
        """What is read of a note: together with all others that are wanted, if it is one of these."""
        loaded = self._loaded.setdefault(what, {})
        if file_id not in loaded:
            ids = self._wanted if file_id in self._wanted and not loaded else {file_id}
            if len(ids) * 3 > len(self.names.rows):
                kept = (what, frozenset(self.keys) if what == "facts" and self.keys is not None else None)
                found = self.names.keep(kept, lambda: read(None))
            else:
                found = read(ids)
            loaded.update({id: found.get(id) for id in ids})
        return loaded[file_id]

    def column(self, name: str) -> Mapping[int, Value] | None:
        """The values of a name in all notes, where most of them are wanted; None where they are read note by note."""
        if name not in self._columns:
            every = len(self._wanted) * 3 > len(self.names.rows)
            kept = ("column", name, tuple(sorted(self.types.items())))
            self._columns[name] = self.names.keep(kept, lambda: self._read_column(name)) if every else None
        return self._columns[name]

    def _read_column(self, name: str) -> dict[int, Value]:
        made: dict[int, Value] = {}
        for file_id, facts in self.store.facts.of(None, keys={key_of(name)}).items():
            row = self.names.rows.get(file_id)
            found = [self.value(fact.value, name, row.path) for fact in facts] if row else []
            if found:
                made[file_id] = found[0] if len(found) == 1 else tuple(found)
        return made

    def stat(self, path: str) -> os.stat_result | None:
        """What the disk says of a file; None where it is gone."""
        try:
            return os.stat(self._root / path) if self._root else None
        except (OSError, ValueError):
            return None

    # -------------------------------------------------------------------------------------------- values

    def value(self, raw: JSON, name: str, path: str, strict: bool = False) -> Value:
        """A value of a property or field as the language has it; `name` is that of the property, for its type."""
        if raw is None or isinstance(raw, bool):
            return raw
        if isinstance(raw, list):
            return tuple(self.value(item, name, path, strict) for item in raw)
        if isinstance(raw, dict):
            return {key: self.value(item, f"{name}.{key}", path, strict) for key, item in raw.items()}
        declared = self.types.get(key_of(name), "") if self.types else ""
        return strict_value(raw, declared, path) if strict else lenient_value(raw, declared, path)


class NoteRecord:
    """A note, with its properties as `QuerySource` says: strict, or with inline fields and units."""

    def __init__(self, source: QuerySource, row: NoteRow) -> None:
        self.source, self.row = source, row
        self.path = row.path

    def property(self, name: str) -> Value:
        source = self.source
        if source.strict:
            own = source.properties(self.row.id)
            return source.value(own[name], name, self.path, True) if name in own else self._folded(name, own)
        column = source.column(name)
        if column is not None and self.row.id in column:
            return column[self.row.id]
        if column:  # it is the name of a value, and of no map of values
            return None
        own_facts = source.facts(self.row.id)
        found = own_facts.get(key_of(name)) if own_facts else None
        if not found:
            return self._nested(name, own_facts) if own_facts else None
        if len(found) == 1:
            return source.value(found[0].value, name, self.path)
        return tuple([source.value(fact.value, name, self.path) for fact in found])

    def outside_items(self, name: str) -> Value:
        """As `property`, without what list items say: for a list item, which does not have the values of others."""
        found = [fact for fact in self.source.facts(self.row.id).get(key_of(name), ()) if not fact.item]
        values = tuple([self.source.value(fact.value, name, self.path) for fact in found])
        return values if len(values) > 1 else values[0] if values else None

    def _folded(self, name: str, own: Mapping[str, JSON]) -> Value:
        folded = name.casefold()
        for key, value in own.items():
            if key.casefold() == folded:
                return self.source.value(value, key, self.path, True)
        return None

    def _nested(self, name: str, facts: Mapping[str, Sequence[Fact]]) -> Value:
        """The map that a name stands for: `a` of the values of `a.b` and `a.c`."""
        start = f"{key_of(name)}."
        below = [fact for key, found in facts.items() if key.startswith(start) for fact in found]
        if not below:
            return None
        made: dict[str, Any] = {}
        for fact in below:
            *way, last = fact.name.split(".")[len(start.split(".")) - 1 :]
            level = made
            for part in way:
                level = level.setdefault(part, {}) if isinstance(level.get(part, {}), dict) else {}
            value = self.source.value(fact.value, fact.name, self.path)
            level[last] = (
                (*(level[last] if isinstance(level[last], tuple) else (level[last],)), value)
                if (last in level)
                else value
            )
        return made

    def line_of(self, name: str) -> int:
        """The line on which a property's first value stands; 0 where there is none."""
        found = self.source.facts(self.row.id).get(key_of(name), ())
        return found[0].line if found else 0

    def properties(self) -> Mapping[str, Value]:
        own = self.source.properties(self.row.id)
        strict = self.source.strict
        found = {name: self.source.value(value, name, self.path, strict) for name, value in own.items()}
        if not strict:
            for facts in self.source.facts(self.row.id).values():
                for fact in facts:
                    if fact.source != "property":
                        found.setdefault(fact.name, self.property(fact.name))
        return found

    def file(self, name: str) -> Value:
        row = self.row
        match name:
            case "name" | "basename" | "ext" | "folder" | "path":
                places = self.source.names.places
                if row.id not in places:
                    places[row.id] = place_fields(self.path)
                return places[row.id][name]
            case "size":
                return row.size
            case "mtime":
                return moment_of(row.mtime_ns / 1e9)
            case "ctime":
                about = self.source.stat(self.path)
                return None if about is None else moment_of(created(about))
            case "tags":
                return tuple([Named(tag, f"#{tag}") for tag in row.tags])
            case "aliases":
                return row.aliases
            case "day":
                return read_date(row.date) if row.date else None
            case "links" | "embeds":
                own = self.source.links(row.id)
                return tuple(
                    [LinkValue(target, text, self.path) for target, text, embed in own if embed or name == "links"]
                )
            case "backlinks":
                ids = self.source.backlinks.get(row.id, ())
                return tuple([File(record) for id in ids if (record := self.source.note(id)) is not None])
        return None


def created(about: os.stat_result) -> float:
    """When a file was made, in seconds since 1970; where the system does not tell, the oldest time that it has."""
    born = getattr(about, "st_birthtime", 0)
    return float(born) if born else min(about.st_mtime, about.st_ctime)


class OtherFile:
    """A file of the vault that is no note."""

    def __init__(self, source: QuerySource, path: str) -> None:
        self._source = source
        self.path = path

    def property(self, name: str) -> Value:
        return None

    def properties(self) -> Mapping[str, Value]:
        return {}

    def file(self, name: str) -> Value:
        if name in ("size", "mtime", "ctime"):
            about = self._source.stat(self.path)
            if about is None:
                return None
            if name == "size":
                return about.st_size
            return moment_of(about.st_mtime if name == "mtime" else created(about))
        if name == "backlinks":
            wanted = links.key_of(self.path)
            every = self._source.every_link.items()
            ids = [id for id, own in every if any(link_key(target) == wanted for target, _, _ in own)]
            return tuple([File(record) for id in ids if (record := self._source.note(id)) is not None])
        if name in ("tags", "links", "embeds", "aliases"):
            return ()
        return place_fields(self.path).get(name)


TASK_DATES = ("due", "scheduled", "start", "created", "done", "cancelled")
TASK_TEXTS = ("status", "text", "heading", "priority", "recurrence", "id")


class TaskRecord:
    """A task: its own names first, then its fields, then its note's properties. `file` is the note."""

    def __init__(self, note: NoteRecord, task: Task) -> None:
        self.note, self.task = note, task
        self.path, self.line = note.path, task.line

    def property(self, name: str) -> Value:
        task = self.task
        if name in TASK_DATES:
            return read_date(getattr(task, name)) if getattr(task, name) else None
        if name == "open":
            return task.is_open
        if name == "tags":
            return tuple([Named(tag, f"#{tag}") for tag in task.tags])
        if name in ("line", "parent"):
            return int(getattr(task, name))
        if name in TASK_TEXTS:
            return str(getattr(task, name)) or None
        key = key_of(name)
        for field, value in task.fields.items():
            if key_of(field) == key:
                return self.note.source.value(value, name, self.path)
        return self.note.property(name)

    def properties(self) -> Mapping[str, Value]:
        return self.note.properties()

    def file(self, name: str) -> Value:
        return self.note.file(name)


class ItemRecord:
    """A list item with fields: these first, with `text`, `heading` and `line`, then what its note says elsewhere."""

    def __init__(self, note: NoteRecord, item: Item) -> None:
        self.note, self.item = note, item
        self.path, self.line = note.path, item.line

    def property(self, name: str) -> Value:
        own = [f for f in self.note.source.facts(self.note.row.id).get(key_of(name), ()) if f.item == self.line]
        if own:
            values = tuple([self.note.source.value(fact.value, name, self.path) for fact in own])
            return values[0] if len(values) == 1 else values
        if name in ("text", "heading"):
            return str(getattr(self.item, name)) or None
        return self.line if name == "line" else self.note.outside_items(name)

    def properties(self) -> Mapping[str, Value]:
        return self.note.properties()

    def file(self, name: str) -> Value:
        return self.note.file(name)
