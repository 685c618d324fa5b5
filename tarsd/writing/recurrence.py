"""The day on which a recurring task comes next, by the common rules of the Tasks plugin. Pure."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, TypeAlias, cast

from tarsd.errors import Refused

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _WEEKDAYS)
_RULE = re.compile(
    r"every(?: (?P<every>\d{1,3}|other))?"
    r"(?: (?P<unit>day|week|month|year)s?| (?P<weekday>weekday)s?|"
    rf" (?P<named>(?:{_DAY})(?:(?:, ?| and |, and )(?:{_DAY}))*))"
    r"(?: on (?:the )?(?P<on>.+?))?(?P<done> when done)?",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r",? and |, ?")
_NUMBER = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.IGNORECASE)
_LAST = ("last", "last day")
_Unit: TypeAlias = Literal["day", "week", "month", "year"]
HINT = (
    "Known rules: every day, every 3 days, every week on Monday, Friday, every weekday, every 2 months, "
    "every month on the 15th, every month on the last, every year, each also with “when done”."
)
_FURTHEST = 1_500
"""Months in which a day must be found: 31 February never comes."""


@dataclass(frozen=True)
class Rule:
    """How a task recurs: every so many `unit`s, on these `weekdays` (0 is Monday) or `days` of the month (-1: last).

    `when_done`: counted from the day on which it was done.
    """

    unit: _Unit
    every: int = 1
    weekdays: frozenset[int] = frozenset()
    days: tuple[int, ...] = ()
    when_done: bool = False

    def next(self, after: date) -> date:
        """The first day of the rule after this one, from which it counts. Raises `Refused` where there is none.

        A month that is too short has its last day in place of the one that is counted to, but not of one that the rule
        names: that month is passed over.
        """
        try:
            if self.unit == "day":
                return after + timedelta(days=self.every)
            if self.unit == "week":
                return self._in_weeks(after)
            if self.days:
                return self._on_days(after)
            return _months_later(after, self.every * (12 if self.unit == "year" else 1))
        except (OverflowError, ValueError):
            raise Refused("The task would recur after the year 9999, or never.", "Change its rule.") from None

    def _in_weeks(self, after: date) -> date:
        if not self.weekdays:
            return after + timedelta(weeks=self.every)
        monday = after - timedelta(days=after.weekday())
        rest = [day for day in range(after.weekday() + 1, 7) if day in self.weekdays]
        return monday + timedelta(days=rest[0]) if rest else monday + timedelta(
            weeks=self.every, days=min(self.weekdays)
        )  # fmt: skip

    def _on_days(self, after: date) -> date:
        for months in range(0, _FURTHEST, self.every):
            first = _months_later(after.replace(day=1), months)
            length = calendar.monthrange(first.year, first.month)[1]
            days = {length if day < 0 else day for day in self.days}
            found = [first.replace(day=day) for day in sorted(days) if day <= length]
            later = [day for day in found if day > after]
            if later:
                return later[0]
        raise ValueError


def read_rule(text: str) -> Rule:
    """The rule that the words say. Raises `Refused` for one that is not known."""
    found = _RULE.fullmatch(" ".join(text.replace("!", "").split()))
    if found is None:
        raise _unknown(text)
    every = 2 if (found["every"] or "").casefold() == "other" else int(found["every"] or 1)
    on, done = (found["on"] or "").casefold(), bool(found["done"])
    unit = "week" if found["weekday"] or found["named"] else found["unit"].casefold()
    if not every or (on and (found["weekday"] or found["named"] or unit in ("day", "year"))):
        raise _unknown(text)
    if found["weekday"]:
        if every > 1:
            raise _unknown(text)
        return Rule("week", 1, frozenset(range(5)), when_done=done)
    weekdays, days = list[int](), list[int]()
    for part in _SEPARATOR.split((found["named"] or on).casefold()) if found["named"] or on else ():
        name = part.removeprefix("the ")
        number = _NUMBER.fullmatch(name)
        if unit == "week" and re.fullmatch(_DAY, name):
            weekdays.append(next(at for at, day in enumerate(_WEEKDAYS) if day.startswith(name[:3])))
        elif unit == "month" and name in _LAST:
            days.append(-1)
        elif unit == "month" and number and 1 <= int(number[1]) <= 31:
            days.append(int(number[1]))
        else:
            raise _unknown(text)
    return Rule(cast(_Unit, unit), every, frozenset(weekdays), tuple(sorted(days)), done)


def _unknown(text: str) -> Refused:
    shown = " ".join(text.split())[:60]
    return Refused(f"Unknown recurrence rule “{shown}”; nothing was changed.", HINT)


def _months_later(day: date, months: int) -> date:
    """The same day so many months later, or the last one of a month that is too short."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
