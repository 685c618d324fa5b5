"""The operators of the Bases language: equality, order and arithmetic over values of every type. Pure.

Null is equal to null alone, is neither more nor less than anything, and makes a sum null; text takes it as nothing.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime

from tarsd.bases.faults import BasesError
from tarsd.bases.scope import RowScope
from tarsd.bases.temporal import between, read_date, read_duration, shift
from tarsd.bases.values import (
    Date,
    Duration,
    File,
    LinkValue,
    Named,
    Quantity,
    This,
    Value,
    text_of,
    tidy,
    type_of,
)
from tarsd.words import fold

_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?\s*", re.ASCII)
_LINK = re.compile(r"\s*!?\[\[([^\[\]]*)\]\]\s*")
_MARKDOWN = re.compile(r"\s*!?\[([^\[\]]*)\]\(<?([^()<>]*)>?\)\s*")


def number_in(text: str) -> int | float | None:
    """The number that a text is as a whole, None if it is none."""
    return tidy(float(text)) if len(text) < 400 and _NUMBER.fullmatch(text) else None


def as_number(value: Value) -> float | None:
    """What a value counts as in arithmetic; None for what is no number."""
    if isinstance(value, Quantity):
        return value.number
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Duration):
        return value.counted
    return number_in(value) if isinstance(value, str) else None


def link_of(text: str, display: str = "", source: str = "") -> LinkValue:
    """The link that a text is: `[[target|display]]`, `[display](target)`, or just its target."""
    match = _LINK.fullmatch(text)
    if match:
        target, _, shown = match[1].partition("|")
        return LinkValue(target.strip(), display or shown.strip(), source)
    match = _MARKDOWN.fullmatch(text)
    return (
        LinkValue(match[2].strip(), display or match[1].strip(), source)
        if match
        else LinkValue(text.strip(), display, source)
    )


def place_of(value: LinkValue | File | This, scope: RowScope) -> str:
    """What links and files are compared by: the path of the file, or the link's text where there is none."""
    if not isinstance(value, LinkValue):
        return value.record.path
    found = scope.lookup.find(value.target, value.source)
    return found.path if found else f"[[{value.target}]]"


def equal(left: Value, right: Value, scope: RowScope) -> bool:
    """Whether two values are the same: numbers by size, dates by time, links by the file that they lead to."""
    if left is None or right is None:
        return left is right
    if isinstance(left, str) and isinstance(right, str):
        return str.__eq__(left, right) or _also(left, right) or _also(right, left)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, LinkValue | File | This) or isinstance(right, LinkValue | File | This):
        return _same_file(left, right, scope)
    if isinstance(left, tuple) and isinstance(right, tuple):
        scope.budget.charge(len(left))
        return len(left) == len(right) and all(equal(*pair, scope) for pair in zip(left, right, strict=True))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        scope.budget.charge(len(left))
        return left.keys() == right.keys() and all(equal(value, right[name], scope) for name, value in left.items())
    pair = _pair(left, right)
    return pair[0] == pair[1] if pair else bool(left == right)


def _also(named: str, text: str) -> bool:
    return isinstance(named, Named) and named.also == str(text)


def _same_file(left: Value, right: Value, scope: RowScope) -> bool:
    if isinstance(right, str):
        left, right = right, left
    if isinstance(left, str) and isinstance(right, LinkValue | File | This):
        if isinstance(right, File | This):
            return left in (right.record.path, text_of(right)) or _also(text_of(right), left)
        return left in (text_of(right), right.target) or place_of(link_of(left, "", right.source), scope) == place_of(
            right, scope
        )
    if isinstance(left, LinkValue | File | This) and isinstance(right, LinkValue | File | This):
        return left is right or place_of(left, scope) == place_of(right, scope)
    return False


def _pair(left: Value, right: Value) -> tuple[float, float] | tuple[str, str] | tuple[datetime, datetime] | None:
    """Two values in a form in which Python compares them; None where they have no order."""
    first, second = type_of(left), type_of(right)
    if first == second == "string":
        return text_of(left), text_of(right)
    if "date" in (first, second):
        one, other = _moment(left), _moment(right)
        return (one, other) if one is not None and other is not None else None
    if "duration" in (first, second) and "number" not in (first, second):
        length, second_length = _length(left), _length(right)
        return None if length is None or second_length is None else (length, second_length)
    if "number" in (first, second) or "duration" in (first, second) or first == second == "boolean":
        number, other_number = as_number(left), as_number(right)
        return None if number is None or other_number is None else (number, other_number)
    texts = ("string", "link", "file")
    return (text_of(left), text_of(right)) if first in texts and second in texts else None


def _moment(value: Value) -> datetime | None:
    date = read_date(value) if isinstance(value, str) else value
    return date.when if isinstance(date, Date) else None


def _length(value: Value) -> float | None:
    if isinstance(value, str):
        value = read_duration(value) or number_in(value)
    return value.total if isinstance(value, Duration) else as_number(value)


def ordered(sign: str) -> Callable[[Value, Value], bool]:
    """The comparison `<`, `<=`, `>` or `>=`; what has no order is neither."""
    compare: Callable[[object, object], bool] = _ORDER[sign]

    def test(left: Value, right: Value) -> bool:
        kind = type(left)
        if (kind is int or kind is float) and (type(right) is int or type(right) is float):
            return compare(left, right)
        if left is None or right is None:
            return False
        pair = _pair(left, right)
        return pair is not None and compare(*pair)

    return test


_ORDER: Mapping[str, Callable[..., bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

Key = tuple[int, float, str, str]


def sort_key(value: Value) -> Key:
    """Where a value goes in a sorted list: numbers, dates, durations, yes and no, texts; what is nothing at the end."""
    match value:
        case None | "":
            return 9, 0, "", ""
        case bool():
            return 4, value, "", ""
        case int() | float():
            return 1, value, "", ""
        case Quantity():
            return 1, value.number, "", ""
        case Date():
            return 2, 0, value.when.isoformat(timespec="microseconds"), ""
        case Duration():
            return 3, value.total, "", ""
        case tuple() if not value:
            return 9, 0, "", ""
    text = text_of(value)
    return 5, 0, _folded(text[:1_000]), text


_folded = functools.lru_cache(maxsize=8_192)(fold)


def add(left: Value, right: Value, scope: RowScope) -> Value:
    """The sum of numbers, a date moved by a duration, or texts one after the other."""
    for date, other in ((left, right), (right, left)):
        if isinstance(date, Date):
            by = read_duration(other) if isinstance(other, str) else other
            if isinstance(by, Duration):
                return _moved(date, by, 1)
    if isinstance(left, str) or isinstance(right, str) or (isinstance(left, LinkValue) or isinstance(right, LinkValue)):
        text = text_of(left), text_of(right)
        scope.budget.text(len(text[0]) + len(text[1]))
        return text[0] + text[1]
    if isinstance(left, tuple) and isinstance(right, tuple):
        scope.budget.items(len(left) + len(right))
        return left + right
    if isinstance(left, Duration) and isinstance(right, Duration):
        return Duration(left.months + right.months, left.ms + right.ms)
    return _reckon("+", operator.add, left, right)


def subtract(left: Value, right: Value, scope: RowScope) -> Value:
    """The difference of numbers or dates, or a date moved back by a duration."""
    if isinstance(left, Date):
        by = right
        if isinstance(right, str):
            by = read_duration(right) or read_date(right)
        if isinstance(by, Duration):
            return _moved(left, by, -1)
        if isinstance(by, Date):
            return between(left, by)
    elif isinstance(right, Date) and isinstance(left, str):
        date = read_date(left)
        if date:
            return between(date, right)
    if isinstance(left, Duration):
        other = read_duration(right) if isinstance(right, str) else right
        if isinstance(other, Duration):
            return Duration(left.months - other.months, left.ms - other.ms)
    return _reckon("-", operator.sub, left, right)


def multiply(left: Value, right: Value, scope: RowScope) -> Value:
    """The product of numbers, or a duration so many times."""
    if isinstance(left, Duration) and not isinstance(right, Duration):
        times = as_number(right)
        return None if times is None else Duration(left.months * times, left.ms * times)
    if isinstance(right, Duration) and not isinstance(left, Duration):
        raise BasesError("A duration must be on the left of *", 'Write duration("5h") * 2.')
    return _reckon("*", operator.mul, left, right)


def divide(left: Value, right: Value, scope: RowScope) -> Value:
    """The quotient; null where the divisor is 0."""
    if isinstance(left, Duration) and not isinstance(right, Duration):
        by = as_number(right)
        return Duration(left.months / by, left.ms / by) if by else None
    return _reckon("/", _over, left, right)


def remainder(left: Value, right: Value, scope: RowScope) -> Value:
    """What a division leaves, with the sign of the dividend; null where the divisor is 0."""
    return _reckon("%", lambda one, other: None if not other else one - other * int(one / other), left, right)


ARITHMETIC: Mapping[str, Callable[[Value, Value, RowScope], Value]] = {
    "+": add, "-": subtract, "*": multiply, "/": divide, "%": remainder,
}  # fmt: skip


def _over(left: float, right: float) -> float | None:
    return left / right if right else None


def _moved(date: Date, by: Duration, sign: int) -> Date:
    moved = shift(date, by, sign)
    if moved is None:
        raise BasesError("This date is not in the years 1 to 9999", "Move it by less.")
    return moved


def _reckon(sign: str, run: Callable[[float, float], float | None], left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    numbers = as_number(left), as_number(right)
    for value, number in zip((left, right), numbers, strict=True):
        if number is None:
            raise BasesError(
                f"{sign} takes no {type_of(value)}", _HINTS.get(type_of(value), "Only numbers can be calculated with.")
            )
    try:
        result = run(*numbers)  # type: ignore[arg-type]
    except OverflowError:
        return None
    return None if result is None else tidy(result)


_HINTS = {
    "date": 'A date takes a duration: + "1 week", - "3d".',
    "string": "This text is not a number; number() reads one.",
    "list": "Take one item, as in x[0], or reduce the list to one value.",
}  # fmt: skip
