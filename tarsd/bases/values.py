"""The values of Obsidian's Bases language. Pure.

Null, booleans, numbers, text, lists and objects are Python's own (`None`, `bool`, `int | float`, `str`, `tuple`,
`Mapping`); what Python has no type for is a class here. All of them are never changed once they are made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from tarsd.bases.record import Record

if TYPE_CHECKING:
    from tarsd.parse import JSON

Value: TypeAlias = (
    "bool | int | float | str | Date | Duration | Quantity | LinkValue | File | This | Pattern | Media"
    " | tuple[Value, ...] | Mapping[str, Value] | None"
)


class Named(str):
    """A text that is equal to a second form of itself as well: `daily` is `#daily`, the note `Ada` is `Ada.md`."""

    __slots__ = ("also",)

    def __new__(cls, text: str, also: str) -> Named:
        """`text` is what is shown and searched; `also` is only compared with."""
        made = super().__new__(cls, text)
        made.also = also
        return made

    also: str


@dataclass(frozen=True, slots=True)
class Date:
    """A day or a moment, by the clock of the vault's owner (without time zone); `timed` says whether it has a time."""

    when: datetime
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: calendar months and milliseconds. `text` is how the vault writes it, if it does.

    Beside a bare number, one that the vault writes is the `number` in it (`5.5 h`, `20 min`), or its minutes.

    One that is the difference of two dates also keeps these as `ends` (later, earlier), so that its years and months
    are those of the calendar.
    """

    months: float = 0
    ms: float = 0
    text: str = ""
    number: float | None = None
    ends: tuple[datetime, datetime] | None = field(default=None, compare=False)

    @property
    def total(self) -> float:
        """All of it in milliseconds; a month has a 4800th of 400 years."""
        return self.ms + self.months * MONTH_MS

    @property
    def counted(self) -> float:
        """What it is beside a bare number: milliseconds, but of what the vault writes its number or minutes."""
        if self.number is not None:
            return self.number
        return self.total / 60_000 if self.text else self.total


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit or currency, as in `12,90 €`: it counts as the number, and shows as written."""

    number: float
    unit: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class LinkValue:
    """A link: `target` is what stands in it before `|`, or an address; `source` the note in which it stands."""

    target: str
    display: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class File:
    """A file of the vault."""

    record: Record


@dataclass(frozen=True, slots=True, eq=False)
class This:
    """The note that a base is shown in: its properties by name, and `file`. Compared, it is that file."""

    record: Record


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression as it is written, with its flags."""

    source: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Media:
    """What only an app can draw: an `image`, an `icon`, or `html`; here it is its text."""

    kind: str
    text: str


DAY_MS = 86_400_000
MONTH_MS = 146_097 / 4_800 * DAY_MS

TYPES: Mapping[type, str] = {
    type(None): "null", bool: "boolean", int: "number", float: "number", Quantity: "number", str: "string",
    Named: "string", Date: "date", Duration: "duration", tuple: "list", LinkValue: "link", File: "file", This: "file",
    Pattern: "regexp", Media: "media",
}  # fmt: skip


def type_of(value: Value) -> str:
    """The language's name of a value's type."""
    return TYPES.get(type(value), "object")


def is_truthy(value: Value) -> bool:
    """Null, false, 0, empty text, an empty list and an empty object are not."""
    if value is True or value is False or value is None:
        return value is True
    if isinstance(value, Quantity):
        return bool(value.number)
    if isinstance(value, Duration):
        return bool(value.total)
    return bool(value) if isinstance(value, None | bool | int | float | str | tuple | Mapping) else True


def is_empty(value: Value) -> bool:
    """Whether there is nothing: null, text, a list or an object with nothing in it. 0 and false are something."""
    return value is None or (isinstance(value, str | tuple | Mapping) and not value)


def tidy(number: float) -> int | float | None:
    """A number in the form in which it is shown: 5.0 as 5; None for what is no number (a division by zero)."""
    if not math.isfinite(number):
        return None
    return int(number) if number == int(number) and abs(number) < 2**53 else number


def text_of(value: Value) -> str:
    """A value as text, as `toString()` gives it and tables show it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return str(value)
        case int() | float():
            return _number_text(value)
        case Date():
            return value.when.isoformat(" ", "seconds") if value.timed else value.when.date().isoformat()
        case Duration():
            return value.text or _duration_text(value)
        case Quantity():
            return value.text or f"{_number_text(value.number)} {value.unit}".strip()
        case LinkValue():
            return value.display or value.target
        case File() | This():
            return str(value.record.file("name"))
        case Pattern():
            return f"/{value.source}/{value.flags}"
        case Media():
            return value.text
        case tuple():
            return ", ".join(map(text_of, value))
    return "{" + ", ".join(f"{name}: {text_of(item)}" for name, item in value.items()) + "}"


def plain(value: Value) -> JSON:
    """A value as JSON: dates as ISO text, durations in milliseconds or as the vault writes them, links as `[[…]]`."""
    match value:
        case None | bool() | int() | float():
            return value
        case Date():
            return value.when.isoformat(timespec="seconds") if value.timed else value.when.date().isoformat()
        case Duration():
            return value.text or tidy(value.total)
        case Quantity():
            return value.text or tidy(value.number)
        case LinkValue():
            return f"[[{value.target}|{value.display}]]" if value.display else f"[[{value.target}]]"
        case File() | This():
            return f"[[{value.record.path}]]"
        case tuple():
            return [plain(item) for item in value]
        case Mapping():
            return {str(name): plain(item) for name, item in value.items()}
    return text_of(value)


def _number_text(number: float) -> str:
    shown = tidy(number)
    if shown is None:
        return ""
    return str(shown) if isinstance(shown, int) else f"{round(shown, 12):.15g}"


_STEPS = (("year", 365.2425 * DAY_MS), ("month", MONTH_MS), ("day", float(DAY_MS)), ("hour", 3_600_000.0),
          ("minute", 60_000.0), ("second", 1_000.0))  # fmt: skip


def _duration_text(value: Duration) -> str:
    """Its two largest units: `3 days 2 hours`."""
    rest, parts = abs(value.total), list[str]()
    for unit, length in _STEPS:
        count = int((rest + 0.5) // length)
        rest = max(0.0, rest - count * length)
        if count:
            parts.append(f"{count} {unit}{'s' if count != 1 else ''}")
        if len(parts) == 2:
            break
    return ("-" if value.total < 0 else "") + (" ".join(parts) or "0 seconds")
