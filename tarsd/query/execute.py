"""Queries are run: the index narrows the notes, expressions choose of them, and rows, groups and sums are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tarsd.bases import Budget, Record, RowScope, Value, compile_expression
from tarsd.bases.document import read_base
from tarsd.bases.grammar import BareName, FunctionCall, Index, Member, Node, member_name, parse, walk
from tarsd.bases.operators import Key, sort_key
from tarsd.bases.table import (
    TITLES,
    Column,
    Evaluator,
    Row,
    RowGroup,
    Summary,
    Table,
    group_by,
    run_view,
    summary_of,
)
from tarsd.dates import DateRules, is_template
from tarsd.errors import BadRequest, NotFound
from tarsd.parse.fields import key_of
from tarsd.query.names import NoteNames
from tarsd.query.narrow import narrow
from tarsd.query.records import ItemRecord, NoteRecord, QuerySource, TaskRecord
from tarsd.query.request import VaultQuery
from tarsd.query.unknown import unknown_names
from tarsd.store import Store

SUMMARIES = {
    "sum": "Sum", "average": "Average", "avg": "Average", "mean": "Average", "min": "Min", "max": "Max",
    "median": "Median", "range": "Range", "stddev": "Stddev", "earliest": "Earliest", "latest": "Latest",
    "unique": "Unique", "filled": "Filled", "count": "Filled", "empty": "Empty", "checked": "Checked",
    "unchecked": "Unchecked",
}  # fmt: skip
"""The summaries of a query, and what the language calls them."""


@dataclass(frozen=True)
class Vaults:
    """What a query has to know of the vault beside the index: its folder, its types, its templates, its other files."""

    root: Path | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    dates: DateRules = field(default_factory=DateRules)
    others: Callable[[], Sequence[str]] = tuple


class Executor:
    """Runs queries over one store. Called from threads; what it keeps is made anew when the index has changed."""

    def __init__(self) -> None:
        self._names: tuple[Store | None, int, NoteNames] = (None, -1, NoteNames(()))

    def names(self, store: Store) -> NoteNames:
        """The notes of the vault by name, for the index as it is now."""
        known, generation, names = self._names
        if known is not store or generation != store.database.generation:
            generation = store.database.generation
            names = NoteNames(row for row in store.notes.titles() if not row.collection)
            self._names = (store, generation, names)
        return names

    def run(self, query: VaultQuery, store: Store, about: Vaults, now: datetime, hidden: Collection[int] = ()) -> Table:
        """The table that a query comes to, as if the notes with `hidden` ids were not there.

        Raises `BasesError` for expressions that cannot be read and for more work than is allowed, `BadRequest` for a
        summary that there is not, `NotFound` for a note `this` that there is not.
        """
        names = self.names(store)
        return _Run(query, store, names, about, now, hidden).table()

    def having(self, where: str, store: Store, about: Vaults, now: datetime, hidden: Collection[int] = ()) -> set[int]:
        """The notes (ids) of the vault of which a condition is true. Raises `BasesError`, as `run`."""
        return _Run(VaultQuery(where=where), store, self.names(store), about, now, hidden).ids()


class _Run:
    def __init__(
        self, query: VaultQuery, store: Store, names: NoteNames, about: Vaults, now: datetime, hidden: Collection[int]
    ) -> None:
        self.query, self.store, self.names, self.about, self.now = query, store, names, about, now
        self.nodes = nodes = [parse(text) for text in self._texts()] if not query.base else []
        self.source = QuerySource(
            store,
            names,
            hidden=hidden,
            strict=bool(query.base),
            types=about.types,
            keys=_keys_of(nodes),
            root=about.root,
            others=about.others,
        )
        self.hidden = hidden

    def _texts(self) -> list[str]:
        query = self.query
        sorts = [text.removeprefix("-") for text in query.sort]
        return [text for text in (query.where, *query.columns, *sorts, query.group, *query.summaries) if text]

    def table(self) -> Table:
        this = self._this()
        return self._base(this) if self.query.base else self._rows(this)

    def ids(self) -> set[int]:
        chosen = self._chosen(Evaluator(self.source, self.now, None, budget=Budget()))
        return {scope.record.row.id for scope in chosen if isinstance(scope.record, NoteRecord)}

    def _this(self) -> Record | None:
        name = self.query.this
        if not name:
            return None
        found = self.source.find(name, "")
        if found is None:
            raise NotFound(f"There is no note “{name}” that could be “this”.", "Give the path of a note of the vault.")
        return found

    def _base(self, this: Record | None) -> Table:
        base = read_base(self.query.base, self.query.base_line)
        view = base.view(self.query.view)
        notes: list[Record] = [*self.source.notes(id for id, row in self.names.rows.items() if id not in self.hidden)]
        return run_view(base, view, [*notes, *self.source.others], self.source, self.now, this=this)

    # -------------------------------------------------------------------------------------------- rows

    def _rows(self, this: Record | None) -> Table:
        query = self.query
        evaluator = Evaluator(self.source, self.now, this, budget=Budget())
        scopes = self._chosen(evaluator)
        for text in reversed(query.sort):
            self._sort(scopes, text.removeprefix("-"), text.startswith("-"), evaluator)
        summaries = [(text, _summary(kind), compile_expression(text)) for text, kind in query.summaries.items()]

        def summed(members: Sequence[RowScope]) -> dict[str, Summary]:
            return {
                text: summary_of(kind, [evaluator.value(program, scope, text) for scope in members], evaluator, {})
                for text, kind, program in summaries
            }

        shown = scopes[: query.limit] if query.limit else scopes
        programs = [(text, compile_expression(text)) for text in query.columns]
        rows = {
            id(scope): Row(scope.record, tuple([evaluator.value(program, scope, text) for text, program in programs]))
            for scope in shown
        }
        groups = []
        if query.group:
            grouped = group_by(scopes, compile_expression(query.group), evaluator, spread=True)
            groups = [
                RowGroup(
                    key,
                    tuple(rows[id(scope)] for scope in members if id(scope) in rows),
                    {"": Summary("Count", len(members), len(members)), **summed(members)},
                )
                for key, members in grouped
            ]
        columns = tuple(Column(text, _title(text)) for text in query.columns)
        if query.rows == "notes":
            self.source.focus(scope.record.row.id for scope in shown if isinstance(scope.record, NoteRecord))
        said = [*unknown_names(self.nodes, query.rows, self.store, self.hidden), *evaluator.told()]
        return Table(columns, tuple(rows.values()), tuple(groups), summed(scopes), len(scopes), tuple(said))

    def _chosen(self, evaluator: Evaluator) -> list[RowScope]:
        condition = parse(self.query.where) if self.query.where else None
        program = compile_expression(self.query.where) if self.query.where else None
        records = self._candidates(condition)
        return evaluator.chosen(program, records) if program else [evaluator.scope(record) for record in records]

    def _candidates(self, condition: Node | None) -> Iterable[Record]:
        notes = [
            row for row in self.names.rows.values() if row.kind == "note" and not row.ours and row.id not in self.hidden
        ]
        bare = self.query.rows == "notes"
        left = narrow(condition, notes, self.store, self.names, self.now, bare=bare)
        rules = self.about.dates
        if rules.templates and not any(is_template(folder, rules) for folder in left.folders):
            left.rows = [row for row in left.rows if not is_template(row.path, rules)]
        found = self.source.notes(row.id for row in left.rows)
        if self.query.rows == "notes":
            return found
        every = len(found) * 3 > len(self.names.rows)
        ids = None if every else [note.row.id for note in found]
        if self.query.rows == "tasks":
            tasks = self.store.facts.tasks(ids)
            return [TaskRecord(note, task) for note in found for task in tasks.get(note.row.id, ())]
        items = self.store.facts.items(ids)
        return [ItemRecord(note, item) for note in found for item in items.get(note.row.id, ())]

    def _sort(self, scopes: list[RowScope], text: str, descending: bool, evaluator: Evaluator) -> None:
        """Sorts in place and stable. Values of another kind than most have come last, and then those without any."""
        program = compile_expression(text)
        keys = {id(scope): _sort_key(evaluator.value(program, scope, text), descending) for scope in scopes}
        if any(key[0] == _DURATION for key in keys.values()):  # beside durations a bare number is minutes
            keys = {
                one: (_DURATION, key[1] * 60_000, *key[2:]) if key[0] == _NUMBER else key for one, key in keys.items()
            }
        ranks = Counter(key[0] for key in keys.values() if key[0] != 9)
        first = ranks.most_common(1)[0][0] if ranks else 0
        scopes.sort(key=lambda scope: keys[id(scope)], reverse=descending)
        scopes.sort(key=lambda scope: 0 if keys[id(scope)][0] == first else 2 if keys[id(scope)][0] == 9 else 1)


_NUMBER, _DURATION = 1, 3
"""What numbers and durations begin with as keys of `sort_key`."""


def _sort_key(value: Value, descending: bool) -> Key:
    """Of several values the one that comes first in this direction."""
    if isinstance(value, tuple) and value:
        return (max if descending else min)(map(sort_key, value))
    return sort_key(value)


def _keys_of(nodes: Iterable[Node]) -> set[str] | None:
    """The keys of the properties that expressions ask for; None where they may ask for any."""
    found: set[str] = set()
    for node in nodes:
        for part in walk(node):
            if isinstance(part, Member | Index) and isinstance(part.subject, BareName):
                name, owner = member_name(part), part.subject.name
                if owner == "note" and not name:
                    return None
                if name in ("properties", "file") and owner in ("file", "this"):
                    return None
                if owner not in ("file", "this"):
                    found |= {key_of(name), key_of(f"{owner}.{name}")}
            elif isinstance(part, Member | Index):
                found |= _dotted(part)
            if isinstance(part, BareName):
                found.add(key_of(part.name))
            elif isinstance(part, FunctionCall) and part.name in ("hasProperty", "asFile", "file"):
                return None
    return found


def _dotted(node: Node) -> set[str]:
    """The keys that `a.b.c` may stand for, as a map in a map."""
    names: list[str] = []
    while isinstance(node, Member | Index):
        names.append(member_name(node))
        node = node.subject
    if not isinstance(node, BareName) or not all(names):
        return set()
    way = [*([] if node.name == "note" else [node.name]), *reversed(names)]
    return {key_of(".".join(way[:end])) for end in range(1, len(way) + 1)}


def _summary(kind: str) -> str:
    found = SUMMARIES.get(kind.casefold())
    if found is None:
        raise BadRequest(
            f"There is no summary {kind[:60]!r}.", f"There are: {', '.join(SUMMARIES)}.", field="summaries"
        )
    return found


def _title(text: str) -> str:
    """What stands above a column: a name of Obsidian's, or its expression without what a name is of."""
    return TITLES.get(text) or text.removeprefix("note.").removeprefix("file.")
