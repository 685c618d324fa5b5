"""Dates written the way Obsidian's settings ask for: the format strings of moment.js, in its English. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def write(when: datetime, pattern: str) -> str:
    """`when` in the form of `pattern`; text in [brackets] stands as it is, as does what is no token."""
    return _TOKEN.sub(lambda match: match[0][1:-1] if match[0][0] == "[" else _TOKENS[match[0]](when), pattern)


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 <= number % 100 <= 20 else endings.get(number % 10, 'th')}"


def _sunday(day: date) -> date:
    """The first day of the week; in moment's English that is a Sunday."""
    return day - timedelta(days=day.isoweekday() % 7)


def _week_year(when: datetime) -> int:
    """The year of the week: that of its last day, since the week with 1 January is the first."""
    return (_sunday(when.date()) + timedelta(days=6)).year


def _week(when: datetime) -> int:
    return (_sunday(when.date()) - _sunday(date(_week_year(when), 1, 1))).days // 7 + 1


def _weekday(when: datetime) -> int:
    return when.isoweekday() % 7


def _zone(when: datetime, separator: str) -> str:
    offset = when.strftime("%z") or "+0000"
    return f"{offset[:3]}{separator}{offset[3:5]}"


def _long(when: datetime) -> str:
    return f"{_MONTHS[when.month - 1]} {when.day}, {when.year}"


def _clock(when: datetime) -> str:
    return f"{when.hour % 12 or 12}:{when.minute:02} {'AM' if when.hour < 12 else 'PM'}"


_TOKENS: dict[str, Callable[[datetime], str]] = {
    "YYYY": lambda at: f"{at.year:04}",
    "YY": lambda at: f"{at.year % 100:02}",
    "Y": lambda at: str(at.year),
    "gggg": lambda at: f"{_week_year(at):04}",
    "gg": lambda at: f"{_week_year(at) % 100:02}",
    "GGGG": lambda at: f"{at.isocalendar().year:04}",
    "GG": lambda at: f"{at.isocalendar().year % 100:02}",
    "Q": lambda at: str((at.month + 2) // 3),
    "Qo": lambda at: _ordinal((at.month + 2) // 3),
    "MMMM": lambda at: _MONTHS[at.month - 1],
    "MMM": lambda at: _MONTHS[at.month - 1][:3],
    "MM": lambda at: f"{at.month:02}",
    "Mo": lambda at: _ordinal(at.month),
    "M": lambda at: str(at.month),
    "DDDD": lambda at: f"{at.timetuple().tm_yday:03}",
    "DDDo": lambda at: _ordinal(at.timetuple().tm_yday),
    "DDD": lambda at: str(at.timetuple().tm_yday),
    "DD": lambda at: f"{at.day:02}",
    "Do": lambda at: _ordinal(at.day),
    "D": lambda at: str(at.day),
    "dddd": lambda at: _DAYS[_weekday(at)],
    "ddd": lambda at: _DAYS[_weekday(at)][:3],
    "dd": lambda at: _DAYS[_weekday(at)][:2],
    "do": lambda at: _ordinal(_weekday(at)),
    "d": lambda at: str(_weekday(at)),
    "e": lambda at: str(_weekday(at)),
    "E": lambda at: str(at.isoweekday()),
    "ww": lambda at: f"{_week(at):02}",
    "wo": lambda at: _ordinal(_week(at)),
    "w": lambda at: str(_week(at)),
    "WW": lambda at: f"{at.isocalendar().week:02}",
    "Wo": lambda at: _ordinal(at.isocalendar().week),
    "W": lambda at: str(at.isocalendar().week),
    "HH": lambda at: f"{at.hour:02}",
    "H": lambda at: str(at.hour),
    "hh": lambda at: f"{at.hour % 12 or 12:02}",
    "h": lambda at: str(at.hour % 12 or 12),
    "kk": lambda at: f"{at.hour or 24:02}",
    "k": lambda at: str(at.hour or 24),
    "mm": lambda at: f"{at.minute:02}",
    "m": lambda at: str(at.minute),
    "ss": lambda at: f"{at.second:02}",
    "s": lambda at: str(at.second),
    "SSS": lambda at: f"{at.microsecond // 1000:03}",
    "A": lambda at: "AM" if at.hour < 12 else "PM",
    "a": lambda at: "am" if at.hour < 12 else "pm",
    "X": lambda at: str(int(at.timestamp())),
    "x": lambda at: str(int(at.timestamp() * 1000)),
    "ZZ": lambda at: _zone(at, ""),
    "Z": lambda at: _zone(at, ":"),
    "LLLL": lambda at: f"{_DAYS[_weekday(at)]}, {_long(at)} {_clock(at)}",
    "LLL": lambda at: f"{_long(at)} {_clock(at)}",
    "LL": _long,
    "L": lambda at: at.strftime("%m/%d/%Y"),
    "LT": _clock,
}
_TOKEN = re.compile(r"\[[^\[\]]*\]|" + "|".join(sorted(_TOKENS, key=len, reverse=True)))
