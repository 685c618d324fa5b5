"""The functions of the Bases language that are no list's: global ones, and those of each type of value."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TypeAlias

from tarsd.bases import patterns
from tarsd.bases.faults import BasesError
from tarsd.bases.operators import as_number, link_of, place_of
from tarsd.bases.scope import RowScope
from tarsd.bases.temporal import epoch_ms, read_date, read_duration, relative
from tarsd.bases.values import (
    Date,
    Duration,
    File,
    LinkValue,
    Media,
    Pattern,
    This,
    Value,
    is_empty,
    is_truthy,
    text_of,
    tidy,
    type_of,
)
from tarsd.dates import moment

Arguments: TypeAlias = Sequence[Value]
Run: TypeAlias = Callable[[RowScope, Value, Arguments], Value]


@dataclass(frozen=True, slots=True)
class Function:
    """A function, with how many arguments it takes; `run` gets the scope, the value it is of, and the arguments."""

    run: Run
    low: int = 0
    high: int = 0


ANY = 1_000
"""As `high`: any number of arguments."""


def date_of(value: Value) -> Date | None:
    """The date that a value is or says; None for nothing. Raises `BasesError` for what is no date."""
    if value is None or isinstance(value, Date):
        return value
    found: Date | None = None
    if isinstance(value, LinkValue | File | This | str):
        found = read_date(text_of(value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = _from_epoch(value)
    if found is None:
        raise BasesError(
            f"{text_of(value)[:60]!r} is not a date", "A date is written YYYY-MM-DD or YYYY-MM-DD HH:mm:ss."
        )
    return found


def _from_epoch(ms: float) -> Date | None:
    try:
        return Date(datetime.fromtimestamp(ms / 1000), True)
    except (ValueError, OverflowError, OSError):
        return None


def _duration(scope: RowScope, _: Value, given: Arguments) -> Value:
    value = given[0]
    if value is None or isinstance(value, Duration):
        return value
    found = read_duration(text_of(value)) if isinstance(value, str) else None
    if found is None and isinstance(value, int | float) and not isinstance(value, bool):
        found = Duration(0, value)
    if found is None:
        raise BasesError(
            f"{text_of(value)[:60]!r} is not a duration", 'A duration is written "1 week", "2h", "3d" or "1M".'
        )
    return found


def _number(scope: RowScope, _: Value, given: Arguments) -> Value:
    value = given[0]
    if value is None:
        return None
    if isinstance(value, Date):
        ms = epoch_ms(value.when)
        return None if ms is None else tidy(ms)
    number = as_number(value)
    if number is None:
        raise BasesError(f"{text_of(value)[:60]!r} is not a number", "isType() tells texts from numbers.")
    return tidy(number)


def _extreme(pick: Callable[[Sequence[float]], float]) -> Run:
    def run(scope: RowScope, _: Value, given: Arguments) -> Value:
        values = [item for value in given for item in (value if isinstance(value, tuple) else (value,))]
        dates = [value for value in values if isinstance(value, Date)]
        if dates:
            moments = [
                date.when.timestamp() if date.when.year > 1970 else float(date.when.toordinal()) for date in dates
            ]
            return dates[moments.index(pick(moments))]
        numbers = [number for value in values if value is not None and (number := as_number(value)) is not None]
        return tidy(pick(numbers)) if numbers else None

    return run


def _link(scope: RowScope, _: Value, given: Arguments) -> Value:
    target, display = given[0], text_of(given[1]) if len(given) > 1 else ""
    if target is None:
        return None
    if isinstance(target, LinkValue):
        return LinkValue(target.target, display or target.display, target.source)
    if isinstance(target, File | This):
        return LinkValue(target.record.path, display or text_of(target))
    return link_of(text_of(target), display, scope.record.path)


def file_of(value: Value, scope: RowScope) -> File | None:
    """The file that a value is, links to or names by its path; None where there is none."""
    if isinstance(value, File | This):
        return File(value.record)
    if value is None or not isinstance(value, LinkValue | str):
        return None
    link = value if isinstance(value, LinkValue) else link_of(value, "", scope.record.path)
    found = scope.lookup.find(link.target, link.source)
    return File(found) if found else None


def _media(kind: str) -> Run:
    return lambda scope, _, given: None if given[0] is None else Media(kind, text_of(given[0]))


def _empty(scope: RowScope, _: Value, given: Arguments) -> Value:
    return is_empty(given[0])


def _today(scope: RowScope, _: Value, given: Arguments) -> Value:
    return Date(scope.now.replace(hour=0, minute=0, second=0, microsecond=0))


GLOBAL: Mapping[str, Function] = {
    "date": Function(lambda scope, _, given: date_of(given[0]), 1, 1),
    "duration": Function(_duration, 1, 1),
    "empty": Function(_empty, 1, 1),
    "escapeHTML": Function(lambda scope, _, given: html.escape(text_of(given[0])).replace("&#x27;", "&#39;"), 1, 1),
    "file": Function(lambda scope, _, given: file_of(given[0], scope), 1, 1),
    "html": Function(_media("html"), 1, 1),
    "icon": Function(_media("icon"), 1, 1),
    "image": Function(_media("image"), 1, 1),
    "link": Function(_link, 1, 2),
    "list": Function(lambda scope, _, given: given[0] if isinstance(given[0], tuple) else
                     () if given[0] is None else (given[0],), 1, 1),
    "max": Function(_extreme(max), 1, ANY),
    "min": Function(_extreme(min), 1, ANY),
    "not": Function(lambda scope, _, given: not is_truthy(given[0]), 1, 1),
    "now": Function(lambda scope, _, given: Date(scope.now, True)),
    "number": Function(_number, 1, 1),
    "today": Function(_today),
}  # fmt: skip
"""Without `if`, of which only one branch is evaluated. `empty` and `not` are what bases had before 1.9.2."""


def _is_type(scope: RowScope, subject: Value, given: Arguments) -> Value:
    asked = text_of(given[0]).casefold()
    return {"bool": "boolean", "text": "string", "array": "list", "regex": "regexp"}.get(asked, asked) in (
        type_of(subject), subject.kind if isinstance(subject, Media) else "",
    )  # fmt: skip


_ANY = {
    "isTruthy": Function(lambda scope, subject, _: is_truthy(subject)),
    "isType": Function(_is_type, 1, 1),
    "toString": Function(lambda scope, subject, _: _counted(text_of(subject), scope)),
    "isEmpty": Function(lambda scope, subject, _: is_empty(subject)),
}


def _counted(text: str, scope: RowScope) -> str:
    scope.budget.text(len(text))
    return text


def _date(subject: Value) -> Date:
    assert isinstance(subject, Date)
    return subject


def _format(scope: RowScope, subject: Value, given: Arguments) -> Value:
    pattern = text_of(given[0])
    if len(pattern) > 200:
        raise BasesError("This is too long to be a date's format", 'Write a format such as "YYYY-MM-DD".')
    return moment.write(_date(subject).when, pattern)


_DATES = {
    "date": Function(
        lambda scope, subject, _: Date(_date(subject).when.replace(hour=0, minute=0, second=0, microsecond=0))
    ),
    "format": Function(_format, 1, 1),
    "time": Function(lambda scope, subject, _: _date(subject).when.strftime("%H:%M:%S")),
    "relative": Function(lambda scope, subject, _: relative(_date(subject), scope.now)),
}


def _some(needle: Callable[[str, str], bool], quantifier: Callable[[Sequence[bool]], bool]) -> Run:
    def run(scope: RowScope, subject: Value, given: Arguments) -> Value:
        text = text_of(subject)
        scope.budget.charge(len(given) * (1 + len(text) // 100))
        return quantifier([value is not None and needle(text, text_of(value)) for value in given])

    return run


def _within(text: str, part: str) -> bool:
    return part in text


def _replace(scope: RowScope, subject: Value, given: Arguments) -> Value:
    text, pattern, by = text_of(subject), given[0], text_of(given[1])
    if isinstance(pattern, Pattern):
        return patterns.replace(pattern, text, by, scope.budget)
    part = text_of(pattern)
    scope.budget.text(len(text) + (text.count(part) if part else len(text) + 1) * len(by))
    return text.replace(part, by)


def _split(scope: RowScope, subject: Value, given: Arguments) -> Value:
    text, separator = text_of(subject), given[0]
    if isinstance(separator, Pattern):
        parts = patterns.split(separator, text, scope.budget)
    else:
        part = text_of(separator)
        scope.budget.items(text.count(part) if part else len(text))
        parts = text.split(part) if part else list(text)
    return tuple(parts[: _whole(given[1], "split")] if len(given) > 1 and given[1] is not None else parts)


def _whole(value: Value, name: str) -> int:
    number = as_number(value)
    if number is None or not math.isfinite(number):
        raise BasesError(f"{name}() takes a number here and not a {type_of(value)}", "Write a number such as 2.")
    return int(number)


def cut(scope: RowScope, subject: Value, given: Arguments) -> Value:
    """`slice()` of texts and lists; below 0 it counts from the end."""
    start = _whole(given[0], "slice") if given and given[0] is not None else 0
    end = _whole(given[1], "slice") if len(given) > 1 and given[1] is not None else None
    if isinstance(subject, tuple):
        return subject[start:end]
    return text_of(subject)[start:end]


def _repeat(scope: RowScope, subject: Value, given: Arguments) -> Value:
    text, count = text_of(subject), max(0, _whole(given[0], "repeat"))
    scope.budget.text(len(text) * count)
    return text * count


_PRECISE = Context(prec=200)
_WORD = re.compile(r"(?<![\w'’])[^\W\d_]")

_STRINGS = {
    "contains": Function(_some(_within, all), 1, 1),
    "containsAll": Function(_some(_within, all), 1, ANY),
    "containsAny": Function(_some(_within, any), 1, ANY),
    "endsWith": Function(_some(str.endswith, all), 1, 1),
    "startsWith": Function(_some(str.startswith, all), 1, 1),
    "lower": Function(lambda scope, subject, _: _counted(text_of(subject).lower(), scope)),
    "replace": Function(_replace, 2, 2),
    "repeat": Function(_repeat, 1, 1),
    "reverse": Function(lambda scope, subject, _: _counted(text_of(subject)[::-1], scope)),
    "slice": Function(cut, 1, 2),
    "split": Function(_split, 1, 2),
    "title": Function(
        lambda scope, subject, _: _WORD.sub(lambda word: word[0].upper(), _counted(text_of(subject), scope))
    ),
    "trim": Function(lambda scope, subject, _: _counted(text_of(subject).strip(), scope)),
    "upper": Function(lambda scope, subject, _: _counted(text_of(subject).upper(), scope)),
}


def _amount(subject: Value) -> float:
    number = as_number(subject)
    assert number is not None
    return number


def rounded(number: float, digits: int) -> int | float | None:
    """A number with so many decimals; a half goes up, away from minus infinity, as JavaScript rounds."""
    digits = max(-15, min(15, digits))
    if digits == 0:
        return tidy(math.floor(number + 0.5)) if abs(number) < 2**52 else tidy(number)
    scale = Decimal(10) ** digits
    whole = (Decimal(repr(float(number))) * scale + Decimal("0.5")).to_integral_value("ROUND_FLOOR")
    return tidy(float(whole / scale))


def _fixed(scope: RowScope, subject: Value, given: Arguments) -> Value:
    digits = _whole(given[0], "toFixed") if given else 0
    if not 0 <= digits <= 100:
        raise BasesError("toFixed() takes 0 to 100 decimals", "Write a number such as 2.")
    if abs(_amount(subject)) >= 1e21:
        return text_of(subject)
    return f"{Decimal(_amount(subject)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _PRECISE):f}"


_NUMBERS = {
    "abs": Function(lambda scope, subject, _: tidy(abs(_amount(subject)))),
    "ceil": Function(lambda scope, subject, _: tidy(math.ceil(_amount(subject)))),
    "floor": Function(lambda scope, subject, _: tidy(math.floor(_amount(subject)))),
    "round": Function(
        lambda scope, subject, given: rounded(_amount(subject), _whole(given[0], "round") if given else 0), 0, 1
    ),
    "toFixed": Function(_fixed, 0, 1),
}


def links_to(source: File | This, target: Value, scope: RowScope) -> bool:
    """Whether a file links to another one, which may be a file, a link, or text."""
    links = source.record.file("links")
    if not isinstance(links, tuple) or target is None:
        return False
    wanted = target if isinstance(target, LinkValue | File | This) else link_of(text_of(target), "", scope.record.path)
    place = place_of(wanted, scope)
    scope.budget.charge(len(links))
    return any(isinstance(link, LinkValue) and place_of(link, scope) == place for link in links)


def _has_link(scope: RowScope, subject: Value, given: Arguments) -> Value:
    assert isinstance(subject, File | This)
    return links_to(subject, given[0], scope)


def _links_to(scope: RowScope, subject: Value, given: Arguments) -> Value:
    file = file_of(subject, scope)
    return file is not None and links_to(file, given[0], scope)


def _has_tag(scope: RowScope, subject: Value, given: Arguments) -> Value:
    assert isinstance(subject, File | This)
    tags = subject.record.file("tags")
    has = [text_of(tag).lstrip("#").casefold() for tag in tags] if isinstance(tags, tuple) else []
    names = (text_of(item) for value in given for item in (value if isinstance(value, tuple) else (value,)))
    wanted = [name.lstrip("#").strip("/").casefold() for name in names]
    scope.budget.charge(len(has) * len(wanted))
    return any(tag == name or tag.startswith(f"{name}/") for name in wanted if name for tag in has)


def _in_folder(scope: RowScope, subject: Value, given: Arguments) -> Value:
    assert isinstance(subject, File | This)
    folder, asked = text_of(subject.record.file("folder")).strip("/"), text_of(given[0]).strip("/")
    return not asked or folder == asked or folder.startswith(f"{asked}/")


def _has_property(scope: RowScope, subject: Value, given: Arguments) -> Value:
    assert isinstance(subject, File | This)
    return text_of(given[0]) in subject.record.properties()


def _as_link(scope: RowScope, subject: Value, given: Arguments) -> Value:
    assert isinstance(subject, File | This)
    return LinkValue(subject.record.path, text_of(given[0]) if given else text_of(subject))


_FILES = {
    "asLink": Function(_as_link, 0, 1),
    "hasLink": Function(_has_link, 1, 1),
    "hasProperty": Function(_has_property, 1, 1),
    "hasTag": Function(_has_tag, 1, ANY),
    "inFolder": Function(_in_folder, 1, 1),
}

_LINKS = {
    "asFile": Function(lambda scope, subject, _: file_of(subject, scope)),
    "linksTo": Function(_links_to, 1, 1),
}


def _keys(scope: RowScope, subject: Value, _: Arguments) -> Value:
    assert isinstance(subject, Mapping)
    return tuple(subject)


def _values(scope: RowScope, subject: Value, _: Arguments) -> Value:
    assert isinstance(subject, Mapping)
    return tuple(subject.values())


def _matches(scope: RowScope, subject: Value, given: Arguments) -> Value:
    assert isinstance(subject, Pattern)
    return given[0] is not None and patterns.search(subject, text_of(given[0]), scope.budget)


METHODS: Mapping[str, Mapping[str, Function]] = {
    "any": _ANY,
    "date": _DATES,
    "file": _FILES,
    "link": {**_STRINGS, **_LINKS},
    "number": _NUMBERS,
    "object": {"keys": Function(_keys), "values": Function(_values)},
    "regexp": {"matches": Function(_matches, 1, 1)},
    "string": _STRINGS,
}
"""By type and name; those of lists are in `lists`."""
