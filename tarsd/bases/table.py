"""A view of a base becomes a table: rows in order, groups, summaries. Pure; who calls it says which notes there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tarsd.bases.document import Base, View, holds
from tarsd.bases.evaluate import formula_value, member, run
from tarsd.bases.faults import BasesError
from tarsd.bases.lists import identity, summarize
from tarsd.bases.operators import sort_key
from tarsd.bases.record import Lookup, Record
from tarsd.bases.scope import Budget, Program, RowScope, TooMuch
from tarsd.bases.values import Duration, File, Quantity, Value, is_empty, is_truthy
from tarsd.kinds import currency_of, main_currency

TITLES = {
    "file.name": "file name", "file.basename": "file base name", "file.ctime": "created time",
    "file.mtime": "modified time", "file.ext": "file extension",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column: its name, as in `file.name` or an expression, and what stands above it."""

    name: str
    title: str


@dataclass(frozen=True)
class Summary:
    """What a column comes to: `of` values were taken, `skipped` those of another kind or currency that were left out.

    `unit` is the currency of the value, if it has one.
    """

    name: str
    value: Value
    of: int = 0
    skipped: int = 0
    unit: str = ""


@dataclass(frozen=True)
class Row:
    """A row with the values of its columns."""

    record: Record
    values: tuple[Value, ...]


@dataclass(frozen=True)
class RowGroup:
    """Rows that have one value in common; `rows` are in the table's order."""

    key: Value
    rows: tuple[Row, ...]
    summaries: Mapping[str, Summary] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """The result of a view or a query; `total` counts the rows before the limit."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    groups: tuple[RowGroup, ...] = ()
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    total: int = 0
    problems: tuple[str, ...] = ()


class Evaluator:
    """Evaluates for many rows with one budget, and counts what fails."""

    def __init__(
        self, lookup: Lookup, now: datetime, this: Record | None = None,
        formulas: Mapping[str, Program] | None = None, budget: Budget | None = None,
    ) -> None:  # fmt: skip
        self.lookup, self.now, self.this = lookup, now, this
        self.formulas: Mapping[str, Program] = formulas or {}
        self.budget = budget or Budget()
        self.problems: dict[str, int] = {}

    def scope(self, record: Record) -> RowScope:
        """The scope of a row; formulas are evaluated once in it."""
        return RowScope(record, self.lookup, self.now, self.this, self.formulas, self.budget)

    def value(self, program: Program, scope: RowScope, what: str) -> Value:
        """What a program gives, null where it fails; `what` names the column in the problem that is noted then."""
        try:
            return run(program, scope)
        except TooMuch:
            raise
        except BasesError as error:
            self.note(error, what)
        return None

    def chosen(self, program: Program, records: Iterable[Record]) -> list[RowScope]:
        """The scopes of the records for which a condition is true; one for which it fails is none of them."""
        found = []
        scope: RowScope | None = None
        for record in records:  # most are not chosen: one scope serves these
            scope = scope or self.scope(record)
            scope.record = record
            try:
                if not is_truthy(program(scope)):
                    continue
            except TooMuch:
                raise
            except BasesError as error:
                self.note(error, "where")
                continue
            except RecursionError:
                self.note(BasesError("This is nested too deeply"), "where")
                continue
            found.append(scope)
            scope = None
        return found

    def note(self, error: BasesError, what: str) -> None:
        """Counts what failed."""
        told = f"{what}: {error.message}"
        self.problems[told] = self.problems.get(told, 0) + 1

    def told(self) -> list[str]:
        """What failed, with for how many rows."""
        return [text if count == 1 else f"{text[:-1]}, in {count:,} rows." for text, count in self.problems.items()]


def program_of(name: str) -> Program:
    """What gives a property by its full name: `note.x`, `file.x` or `formula.x`."""
    kind, _, rest = name.partition(".")
    if kind == "file":
        return lambda scope: member(File(scope.record), rest)
    if kind == "formula":
        return lambda scope: formula_value(rest, scope)
    return lambda scope: scope.record.property(rest)


def run_view(
    base: Base, view: View, records: Iterable[Record], lookup: Lookup, now: datetime, *,
    this: Record | None = None, budget: Budget | None = None,
) -> Table:  # fmt: skip
    """The table of a view over these records. Raises `BasesError` only for more work than the budget allows."""
    evaluator = Evaluator(lookup, now, this, base.formulas, budget)
    conditions = [condition for condition in (base.condition, view.condition) if condition]
    scopes = []
    for record in records:
        scope = evaluator.scope(record)
        if all(holds(condition, scope, evaluator.problems) for condition in conditions):
            scopes.append(scope)
    scopes.sort(key=lambda scope: scope.record.path)
    for name, descending in reversed(view.sort):
        _sort(scopes, program_of(name), name, descending, evaluator)
    grouped: list[tuple[Value, list[RowScope]]] = []
    if view.group:
        grouped = group_by(scopes, program_of(view.group[0]), evaluator, descending=view.group[1])
        scopes = [scope for _, members in grouped for scope in members]
    total = len(scopes)
    shown = scopes[: view.limit] if view.limit else scopes
    programs = [(name, program_of(name)) for name in view.order]
    made = {id(scope): Row(scope.record, tuple(evaluator.value(program, scope, name) for name, program in programs))
            for scope in shown}  # fmt: skip
    summed = [(name, kind, program_of(name)) for name, kind in view.summaries.items()]

    def summaries(members: Sequence[RowScope]) -> dict[str, Summary]:
        return {
            name: summary_of(
                kind, [evaluator.value(program, scope, name) for scope in members], evaluator, base.summaries
            )
            for name, kind, program in summed
        }

    groups = []
    for key, members in grouped:
        kept = [scope for scope in members if id(scope) in made]
        if kept:
            groups.append(RowGroup(key, tuple(made[id(scope)] for scope in kept), summaries(kept)))
    columns = tuple(Column(name, base.titles.get(name) or _title(name)) for name in view.order)
    return Table(
        columns, tuple(made.values()), tuple(groups), summaries(shown), total, (*base.problems, *evaluator.told())
    )


def _title(name: str) -> str:
    return TITLES.get(name) or (name.replace(".", " ", 1) if name.startswith("file.") else name.partition(".")[2])


def _sort(scopes: list[RowScope], program: Program, name: str, descending: bool, evaluator: Evaluator) -> None:
    """Sorts in place and keeps the order of equals; what has no value comes last both ways."""
    keys = {id(scope): sort_key(evaluator.value(program, scope, name)) for scope in scopes}
    sort_by(scopes, lambda scope: keys[id(scope)], descending)


def sort_by(items: list[RowScope], key: Callable[[RowScope], tuple[int, float, str, str]], descending: bool) -> None:
    """Sorts scopes by keys of `sort_key`, in place and stable; those without a value are last in both directions."""
    items.sort(key=key, reverse=descending)
    if descending:
        empty = [item for item in items if key(item)[0] == 9]
        items[:] = [item for item in items if key(item)[0] != 9] + empty


def group_by(
    scopes: Sequence[RowScope],
    program: Program,
    evaluator: Evaluator,
    *,
    descending: bool = False,
    spread: bool = False,
) -> list[tuple[Value, list[RowScope]]]:
    """Rows by a value, in the order of these; with `spread` a row of several values is in the group of each."""
    found: dict[object, tuple[Value, list[RowScope]]] = {}
    for scope in scopes:
        value = evaluator.value(program, scope, "group")
        keys: Sequence[Value] = value if spread and isinstance(value, tuple) and value else (value,)
        for key in {identity(key, scope): key for key in keys}.values():
            same = "nothing" if is_empty(key) else identity(key, scope)
            found.setdefault(same, (None if is_empty(key) else key, []))[1].append(scope)
    ordered = sorted(found.values(), key=lambda pair: sort_key(pair[0]), reverse=descending)
    return [pair for pair in ordered if pair[0] is not None] + [pair for pair in ordered if pair[0] is None]


_OF_NUMBERS = ("Average", "Min", "Max", "Sum", "Range", "Median", "Stddev")


def summary_of(kind: str, values: Sequence[Value], evaluator: Evaluator, own: Mapping[str, Program]) -> Summary:
    """A summary of a column: one of the base's `own`, else one by default. Of lists, every number counts."""
    scope = evaluator.scope(Nothing())
    filled = [value for value in values if not is_empty(value)]
    if kind in own:
        scope.values = {"values": tuple(values)}
        return Summary(kind, evaluator.value(own[kind], scope, f"summary {kind}"), len(filled))
    left_out, unit = 0, ""
    if kind in _OF_NUMBERS:
        filled = [item for value in filled for item in (value if isinstance(value, tuple) else (value,))]
        unit = main_currency(item.unit for item in filled if isinstance(item, Quantity))
        same = [item for item in filled if not isinstance(item, Quantity) or currency_of(item.unit) in ("", unit)]
        filled, left_out = same, len(filled) - len(same)
    counted = [
        value
        for value in filled
        if isinstance(value, Quantity | Duration | int | float) and not isinstance(value, bool)
    ]
    value = summarize(kind, filled if kind in _OF_NUMBERS else values, scope)
    if kind in _OF_NUMBERS and counted:
        return Summary(kind, value, len(counted), len(filled) - len(counted) + left_out, unit)
    return Summary(kind, value, len(filled))


class Nothing:
    """The record of a summary, which is of no note."""

    path = ""

    def property(self, name: str) -> Value:
        return None

    def file(self, name: str) -> Value:
        return None

    def properties(self) -> Mapping[str, Value]:
        return {}
