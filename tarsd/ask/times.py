"""Times in a question: text and today → days from … to, with the place in the text. Pure; the rules are tables.

A row of a table is a pattern, what it means, an example and its days, seen from Saturday, 28 November 2026. A pattern
is a regular expression over folded text with classes in braces, such as `last {period}`; what it means is a function
of `MEANINGS` and whole numbers, such as `unit -1`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Any

from tarsd.ask.days import MEANINGS, ONE_DAY, Days, in_year
from tarsd.ask.tables import SPACED, load, simplified

_NEAR_YEARS = 10
"""A bare number that is a year as near as this is one."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """The days `first` to `last`, both included, that `text[start:stop]` of a question names.

    `yearless`: the text names no year, and nothing that is counted from today: they come again every year.
    `several`: the text names the first and the last of them.
    """

    start: int
    stop: int
    first: date
    last: date
    yearless: bool = False
    several: bool = False

    @property
    def iso(self) -> tuple[str, str]:
        """Both days as they are compared with those of notes."""
        return self.first.isoformat(), self.last.isoformat()


def find(text: str, today: date, languages: Sequence[str], *, future: bool = False) -> list[TimeSpan]:
    """The times that a text names, in its order; of the first language that finds any.

    `future`: what comes again, such as a weekday, is meant as the next one and not as the last.
    """
    plain = simplified(text)
    for language in languages or ["any"]:
        found = _within(plain, today, language, future)
        if found:
            return found
    return []


def _within(plain: str, today: date, language: str, future: bool) -> list[TimeSpan]:
    rules = _rules(language)
    spans = []
    for match in rules.expression.finditer(plain):
        row = rules.meanings[match.lastgroup or ""]
        near = match[0].isdigit() and abs(int(match[0]) - today.year) <= _NEAR_YEARS
        if row.bare and not near and rules.unclear.search(match[0]) and not rules.clears.search(plain[: match.start()]):
            continue
        days = _days(row, match, today, future, rules)
        if days is not None:
            several = row.meaning in ("range", "months")
            spans.append(TimeSpan(match.start(), match.end(), *days, yearless=row.yearless(match), several=several))
    return list(_joined(plain, spans, rules))


def _joined(plain: str, spans: Sequence[TimeSpan], rules: _Rules) -> Iterator[TimeSpan]:
    """The spans with the words before and between them that open them on one side, or make one of two."""
    rest = list(spans)
    while rest:
        span = rest.pop(0)
        before = plain[: span.start]
        if (
            rest
            and rules.link.fullmatch(plain[span.stop : rest[0].start])
            and ((pair := rules.between.search(before)) or rules.to.fullmatch(plain[span.stop : rest[0].start]))
        ):
            other = rest.pop(0)
            first, last = span.first, other.last
            if first > last and span.yearless:
                first = in_year(first, last.year)
            yield replace(
                span,
                start=pair.start() if pair else span.start,
                stop=other.stop,
                first=min(first, last),
                last=last,
                several=True,
            )
            continue
        yield _opened(span, plain, rules)


def _opened(span: TimeSpan, plain: str, rules: _Rules) -> TimeSpan:
    before, after = plain[: span.start], plain[span.stop :]
    if span.several:
        pair = rules.between.search(before)
        return replace(span, start=pair.start()) if pair else span
    for name, (lead, trail) in rules.sides.items():
        here, there = lead.search(before) if lead else None, trail.match(after) if trail else None
        if not here and not there:
            continue
        start = here.start() if here else span.start
        stop = span.stop + (there.end() if there else 0)
        days = {
            "since": (span.first, date.max),
            "until": (date.min, span.last),
            "before": (date.min, span.first - ONE_DAY),
            "after": (span.last + ONE_DAY, date.max),
        }[name]
        return TimeSpan(start, stop, *days)
    return span


# ------------------------------------------------------------------------------------------------ rules


@dataclass(frozen=True)
class _Row:
    """What one pattern means; `bare` ones name a month, season or year alone, which may be another word."""

    meaning: str
    given: tuple[Any, ...]
    bare: bool

    def yearless(self, match: re.Match[str]) -> bool:
        year = any(said and name.startswith(f"{match.lastgroup}_y_") for name, said in match.groupdict().items())
        return not year and not self.given and self.meaning in ("date", "month", "range", "months", "feast")


@dataclass(frozen=True)
class _Rules:
    """The rules of a language, ready to use."""

    expression: re.Pattern[str]
    meanings: Mapping[str, _Row]
    classes: Mapping[str, Mapping[str, Any]]
    unclear: re.Pattern[str]
    clears: re.Pattern[str]
    sides: Mapping[str, tuple[re.Pattern[str] | None, re.Pattern[str] | None]]
    between: re.Pattern[str]
    link: re.Pattern[str]
    to: re.Pattern[str]


_NUMBER = {
    "d": r"[0-3]?\d",
    "d2": r"[0-3]?\d",
    "y": r"(?:19|20)\d\d",
    "mm": r"[01]?\d",
    "ww": r"[0-5]?\d",
    "q": "[1-4]",
}
_NEVER = re.compile(r"(?!)")


@cache
def _rules(language: str) -> _Rules:
    everywhere = load("any")["times"]
    table = everywhere if language == "any" else load(language)["times"]
    classes = _classes(language, table)
    edges = (r"(?<!\w)(?:", r")(?!\w)") if language in SPACED else (r"(?<!\d)(?:", r")(?!\d)")
    meanings: dict[str, _Row] = {}
    parts = []
    for number, (pattern, meaning, *_) in enumerate(
        [*everywhere["rules"], *(table["rules"] if table is not everywhere else ())]
    ):
        name = f"r{number}"
        said, *given = meaning.split()
        meanings[name] = _Row(
            said, tuple(int(one) if one.lstrip("-").isdigit() else one for one in given), _bare(pattern)
        )
        parts.append(f"(?P<{name}>{_expression(pattern, name, classes, table)})")
    return _Rules(
        re.compile(edges[0] + "|".join(parts) + edges[1]),
        meanings,
        classes,
        re.compile("^(?:" + "|".join([*map(simplified, table["unclear"]), _NUMBER["y"]]) + ")$"),
        _words_before(table.get("clears", ""), language),
        {
            name: (
                _words_before(table[name], language) if table.get(name) else None,
                re.compile(rf"\s*(?:{simplified(table[name + ' behind'])})") if table.get(f"{name} behind") else None,
            )
            for name in ("since", "until", "before", "after")
        },
        _words_before(table.get("between", ""), language),
        re.compile(
            rf"\s*(?:{simplified(table.get('and', '')) or '(?!)'}|{simplified(table.get('to', '')) or '(?!)'})\s*"
        ),
        re.compile(rf"\s*(?:{simplified(table.get('to', '')) or '(?!)'})\s*"),
    )


def _bare(pattern: str) -> bool:
    return bool(re.fullmatch(r"(?:\{(?:month|season|y)\})(?:\( \{y\}\)\?)?", pattern))


def _words_before(listed: str, language: str) -> re.Pattern[str]:
    if not listed:
        return _NEVER
    edge = r"(?<!\w)" if language in SPACED else ""
    return re.compile(rf"{edge}(?:{simplified(listed)})\s*$")


def _classes(language: str, table: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Of each class the words, folded, and what they stand for."""
    names = load("names").get(language, {"months": [], "short": [], "weekdays": []})
    more = table.get("names", {})
    months = [[*said, *more.get(str(at), [])] for at, said in enumerate(names["months"], 1)]
    short = [[*said, *names["short"][at]] for at, said in enumerate(months)]
    days = [[*said, *more.get(f"day {at}", [])] for at, said in enumerate(names["weekdays"])]
    made: dict[str, dict[str, Any]] = {
        "m": {name: at for at, said in enumerate(short, 1) for name in said},
        "month": {name: at for at, said in enumerate(months, 1) for name in said},
        "wd": {name: at for at, said in enumerate(days) for name in said if len(name) > 1},
    }
    made["month2"] = made["month"]
    for name in ("n", "nth", "unit", "period", "season"):
        made[name] = {word: int(value) if value.lstrip("-").isdigit() else value
                      for value, words in table.get(name, {}).items() for word in words.split("|")}  # fmt: skip
    made["feast"] = {word: spec for spec, words in table.get("feasts", {}).items() for word in words.split("|")}
    return {name: {simplified(word): value for word, value in words.items()} for name, words in made.items()}


def _expression(pattern: str, rule: str, classes: Mapping[str, Mapping[str, Any]], table: Mapping[str, Any]) -> str:
    counted = itertools.count()

    def of_class(match: re.Match[str]) -> str:
        name = match[1]
        group = f"(?P<{rule}_{name}_{next(counted)}>"
        if name in _NUMBER:
            ending = table.get("ordinal", "") if name in ("d", "d2") else ""
            return f"{group}{_NUMBER[name]}){ending}"
        words = sorted(classes[name], key=len, reverse=True)
        any_word = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in words) or "(?!)"
        ending = r"\.?" if name == "m" else ""
        digits = r"\d{1,3}|" if name == "n" else ""
        return f"{group}{digits}{any_word}){ending}"

    spaced = simplified(pattern).replace(" ?", r"\s*").replace(" ", r"\s+")
    return re.sub(r"\{(\w+)\}", of_class, spaced)


def _days(row: _Row, match: re.Match[str], today: date, future: bool, rules: _Rules) -> Days | None:
    """The days of a match; None where there are no such days."""
    rule = match.lastgroup or ""
    values: dict[str, Any] = {"future": future}
    for name, said in match.groupdict().items():
        if said is None or not name.startswith(f"{rule}_"):
            continue
        kind = name.split("_")[1]
        said = re.sub(r"\s+", " ", said)
        values[kind] = (
            int(said) if said.isdigit() and kind not in ("m", "month", "month2") else rules.classes[kind][said]
        )
    values.setdefault("m", values.get("month", values.get("mm")))
    try:
        return MEANINGS[row.meaning](today, values, *row.given)
    except (ValueError, IndexError, OverflowError):
        return None
