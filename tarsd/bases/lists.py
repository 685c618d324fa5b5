"""The functions of lists, and the summaries of a column: what counts a list's values."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from tarsd.bases.faults import BasesError
from tarsd.bases.functions import ANY as MANY
from tarsd.bases.functions import METHODS as OTHERS
from tarsd.bases.functions import Arguments, Function, Run, cut
from tarsd.bases.operators import equal, place_of, sort_key
from tarsd.bases.scope import Program, RowScope
from tarsd.bases.temporal import between
from tarsd.bases.values import (
    Date,
    Duration,
    File,
    LinkValue,
    Quantity,
    This,
    Value,
    is_empty,
    is_truthy,
    text_of,
    tidy,
)


def _list(subject: Value) -> tuple[Value, ...]:
    assert isinstance(subject, tuple)
    return subject


def has(items: Sequence[Value], value: Value, scope: RowScope) -> bool:
    """Whether a list holds a value."""
    scope.budget.charge(len(items) + 1)
    return any(equal(item, value, scope) for item in items)


def _contains(scope: RowScope, subject: Value, given: Arguments) -> Value:
    return has(_list(subject), given[0], scope)


def _containing(quantifier: Callable[[Sequence[bool]], bool]) -> Run:
    """Of several values; a list among them stands for its items."""

    def run(scope: RowScope, subject: Value, given: Arguments) -> Value:
        items = _list(subject)
        wanted = [item for value in given for item in (value if isinstance(value, tuple) else (value,))]
        return quantifier([has(items, value, scope) for value in wanted])

    return run


def identity(value: Value, scope: RowScope) -> object:
    """What two values share exactly if `equal` takes them for the same; of values of one type."""
    match value:
        case LinkValue() | File() | This():
            return "file", place_of(value, scope)
        case bool():
            return "boolean", value
        case int() | float():
            return "number", float(value)
        case Quantity():
            return "number", value.number
        case Date():
            return "date", value.when
        case Duration():
            return "duration", value.total
        case tuple():
            return "list", tuple(identity(item, scope) for item in value)
    return type(value).__name__, text_of(value)


def unique(items: Sequence[Value], scope: RowScope) -> tuple[Value, ...]:
    """The items without those that were there before."""
    scope.budget.charge(len(items))
    return tuple({identity(item, scope): item for item in reversed(items)}.values())[::-1]


def _flat(scope: RowScope, subject: Value, _: Arguments) -> Value:
    found: list[Value] = []
    waiting = list(reversed(_list(subject)))
    while waiting:
        item = waiting.pop()
        if isinstance(item, tuple):
            scope.budget.charge(len(item))
            waiting += reversed(item)
        else:
            found.append(item)
            scope.budget.items(len(found) // 100)
    return tuple(found)


def _join(scope: RowScope, subject: Value, given: Arguments) -> Value:
    separator = text_of(given[0]) if given else ","
    texts = [text_of(item) for item in _list(subject)]
    scope.budget.text(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _sorted(scope: RowScope, subject: Value, _: Arguments) -> Value:
    scope.budget.charge(5 * len(_list(subject)))
    return tuple(sorted(_list(subject), key=sort_key))


def numbers(items: Sequence[Value]) -> list[float]:
    """The numbers among values, those with a unit among them."""
    return [
        item.number if isinstance(item, Quantity) else float(item)
        for item in items
        if isinstance(item, Quantity | int | float) and not isinstance(item, bool)
    ]


def _lengths(items: Sequence[Value]) -> list[float]:
    return [item.total for item in items if isinstance(item, Duration)]


def _reckoned(run: Callable[[Sequence[float]], float]) -> Callable[[Sequence[Value]], Value]:
    """A summary of numbers, or of durations where there are any."""

    def summary(items: Sequence[Value]) -> Value:
        found, lengths = numbers(items), _lengths(items)
        if lengths:  # bare numbers beside them are minutes
            return Duration(0, run(lengths + [60_000 * number for number in found]))
        return tidy(run(found)) if found else None

    return summary


def _dates(items: Sequence[Value]) -> list[Date]:
    return sorted((item for item in items if isinstance(item, Date)), key=lambda date: date.when)


def _range(items: Sequence[Value]) -> Value:
    dates = _dates(items)
    if dates:
        return between(dates[-1], dates[0])
    return _reckoned(lambda found: max(found) - min(found))(items)


def _edge(place: int) -> Callable[[Sequence[Value]], Value]:
    return lambda items: dates[place] if (dates := _dates(items)) else None


def _least(pick: Callable[[Sequence[float]], float], place: int) -> Callable[[Sequence[Value]], Value]:
    """The smallest or largest number; of dates, where there are no numbers, the earliest or latest."""

    def summary(items: Sequence[Value]) -> Value:
        found = _reckoned(pick)(items)
        return _edge(place)(items) if found is None else found

    return summary


def _sum(found: Sequence[float]) -> float:
    return float(round(sum(found), 9))


SUMMARIES: Mapping[str, Callable[[Sequence[Value]], Value]] = {
    "Average": _reckoned(statistics.fmean),
    "Min": _least(min, 0),
    "Max": _least(max, -1),
    "Sum": _reckoned(_sum),
    "Range": _range,
    "Median": _reckoned(statistics.median),
    "Stddev": _reckoned(statistics.pstdev),
    "Earliest": _edge(0),
    "Latest": _edge(-1),
    "Checked": lambda items: sum(item is True for item in items),
    "Unchecked": lambda items: sum(item is False for item in items),
    "Empty": lambda items: sum(map(is_empty, items)),
    "Filled": lambda items: sum(not is_empty(item) for item in items),
}
"""The summaries that a base has by default, but for `Unique`, which has to know where links lead."""


def summarize(name: str, items: Sequence[Value], scope: RowScope) -> Value:
    """A default summary of a column's values. Raises `BasesError` for a name that there is not."""
    scope.budget.charge(3 * len(items))
    if name == "Unique":
        return len(unique([item for item in items if not is_empty(item)], scope))
    run = SUMMARIES.get(name)
    if run is None:
        raise BasesError(
            f"There is no summary {name[:60]!r}", f"The built-in ones are {', '.join((*SUMMARIES, 'Unique'))}."
        )
    return run(items)


def _summary(name: str) -> Function:
    return Function(lambda scope, subject, _: summarize(name, _list(subject), scope))


_LISTS = {
    "contains": Function(_contains, 1, 1),
    "containsAll": Function(_containing(all), 1, MANY),
    "containsAny": Function(_containing(any), 1, MANY),
    "flat": Function(_flat),
    "join": Function(_join, 0, 1),
    "reverse": Function(lambda scope, subject, _: _list(subject)[::-1]),
    "slice": Function(cut, 1, 2),
    "sort": Function(_sorted),
    "unique": Function(lambda scope, subject, _: unique(_list(subject), scope)),
    "mean": _summary("Average"),
    "sum": _summary("Sum"),
    "min": _summary("Min"),
    "max": _summary("Max"),
    "median": _summary("Median"),
    "stddev": _summary("Stddev"),
}

METHODS: Mapping[str, Mapping[str, Function]] = {**OTHERS, "list": _LISTS}


def _items(subject: Value, body: int, scope: RowScope) -> Sequence[tuple[int, Value]]:
    scope.budget.charge(len(_list(subject)) * body)
    return list(enumerate(_list(subject)))


def run_filter(scope: RowScope, subject: Value, program: Program, body: int) -> Value:
    """The items for which the program, of `body` nodes, says yes."""
    variables = scope.values
    kept = []
    for variables["index"], variables["value"] in _items(subject, body, scope):
        item = variables["value"]
        if is_truthy(program(scope)):
            kept.append(item)
    return tuple(kept)


def run_map(scope: RowScope, subject: Value, program: Program, body: int) -> Value:
    """What the program makes of each item."""
    variables = scope.values
    made = []
    for variables["index"], variables["value"] in _items(subject, body, scope):
        made.append(program(scope))
    return tuple(made)


def run_reduce(scope: RowScope, subject: Value, program: Program, body: int, start: Value) -> Value:
    """What the program makes of all items, each with `acc` as what it made of those before."""
    variables = scope.values
    variables["acc"] = start
    for variables["index"], variables["value"] in _items(subject, body, scope):
        variables["acc"] = program(scope)
    return variables["acc"]
