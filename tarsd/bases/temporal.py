"""Dates and durations of the Bases language: how they are read from text, and how they are reckoned with. Pure."""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timedelta
from functools import lru_cache

from tarsd.bases.values import DAY_MS, MONTH_MS, Date, Duration

_UNITS = {
    "y": (12.0, 0.0), "M": (1.0, 0.0), "w": (0.0, 7.0 * DAY_MS), "d": (0.0, float(DAY_MS)), "h": (0.0, 3_600_000.0),
    "m": (0.0, 60_000.0), "s": (0.0, 1_000.0), "ms": (0.0, 1.0),
}  # fmt: skip
_LONG = {
    "year": "y", "month": "M", "week": "w", "day": "d", "hour": "h", "minute": "m", "second": "s",
    "millisecond": "ms", "min": "m", "sec": "s", "mo": "M",
}  # fmt: skip
_PART = re.compile(r"\s*([-+]?)\s*(\d{1,9}(?:\.\d{1,9})?)\s*([A-Za-z]{1,12})\s*,?")
_DATE = re.compile(
    r"\s*(\d{4})-(\d{1,2})(?:-(\d{1,2})(?:[T ]\s*(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,6})\d*)?)?"
    r"\s*(Z|[-+]\d\d:?\d\d)?)?)?\s*",
    re.ASCII | re.IGNORECASE,
)


@lru_cache(maxsize=4_096)
def read_date(text: str) -> Date | None:
    """A date in the form YYYY-MM-DD, with or without HH:mm(:ss); None for anything else, and for 30 February.

    One with a time zone becomes a moment of this machine's clock.
    """
    match = _DATE.fullmatch(text[:64]) if len(text) <= 64 else None
    if match is None or match[3] is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        when = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        if fraction:
            when += timedelta(microseconds=int(fraction.ljust(6, "0")))
        if zone:
            zoned = datetime.fromisoformat(when.isoformat() + ("+00:00" if zone in "Zz" else zone))
            when = zoned.astimezone().replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None
    return Date(when, hour is not None)


@lru_cache(maxsize=4_096)
def read_duration(text: str) -> Duration | None:
    """A length of time such as `1 week`, `2h`, `1M`, `1h 40m`; None for anything else. `M` are months, `m` minutes."""
    if not text or len(text) > 100:
        return None
    months = ms = 0.0
    at, sign = 0, 1
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            return None
        unit = match[3] if match[3] in _UNITS else _LONG.get(match[3].lower().removesuffix("s"), "")
        if not unit:
            return None
        sign = {"-": -1, "+": 1}.get(match[1], sign)
        months += sign * float(match[2]) * _UNITS[unit][0]
        ms += sign * float(match[2]) * _UNITS[unit][1]
        at = match.end()
    return Duration(months, ms)


def shift(when: Date, by: Duration, sign: int = 1) -> Date | None:
    """A date moved by a duration: first by months of the calendar, then by the rest. None outside the years 1 to 9999.

    31 January and a month is the last day of February. What moves by whole days leaves a day a day.
    """
    whole = int(by.months)
    ms = by.ms + (by.months - whole) * MONTH_MS
    try:
        moved = _months_later(when.when, sign * whole) + timedelta(milliseconds=sign * ms)
    except (ValueError, OverflowError):
        return None
    return Date(moved, when.timed or bool(ms % DAY_MS))


def between(later: Date, earlier: Date) -> Duration:
    """The time from one date to another."""
    gap = later.when - earlier.when
    return Duration(0, gap / timedelta(milliseconds=1), ends=(later.when, earlier.when))


def length_in(value: Duration, unit: str) -> float | None:
    """A duration in `years`, `months`, `weeks`, `days`, `hours`, `minutes`, `seconds` or `milliseconds`."""
    if unit in ("years", "months"):
        months = _months_between(*value.ends) if value.ends else value.months + value.ms / MONTH_MS
        return months / 12 if unit == "years" else months
    lengths = {
        "weeks": 7 * DAY_MS, "days": DAY_MS, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000, "milliseconds": 1,
    }  # fmt: skip
    return value.total / lengths[unit] if unit in lengths else None


def relative(date: Date, now: datetime) -> str:
    """How far a date is from now, in words: `3 days ago`, `in a month`; a day is so many days from today."""
    if not date.timed:
        now = now.replace(hour=0, minute=0, second=0, microsecond=0)
    gap = (date.when - now).total_seconds()
    if not gap and not date.timed:
        return "today"
    words = _words(abs(gap))
    return f"in {words}" if gap > 0 else f"{words} ago"


def epoch_ms(when: datetime) -> float | None:
    """Milliseconds since 1970 began in Greenwich; None for a moment before what the system's clock knows."""
    try:
        return when.timestamp() * 1000
    except (ValueError, OverflowError, OSError):
        return None


def _months_later(when: datetime, months: int) -> datetime:
    index = when.year * 12 + when.month - 1 + months
    year, month = index // 12, index % 12 + 1
    if not 1 <= year <= 9999:
        raise ValueError
    return when.replace(year=year, month=month, day=min(when.day, calendar.monthrange(year, month)[1]))


def _months_between(later: datetime, earlier: datetime) -> float:
    """Months of the calendar between two moments, and the part of one that is left."""
    if later < earlier:
        return -_months_between(earlier, later)
    whole = (later.year - earlier.year) * 12 + later.month - earlier.month
    try:
        if _months_later(earlier, whole) > later:
            whole -= 1
        start, end = _months_later(earlier, whole), _months_later(earlier, whole + 1)
    except ValueError:
        return float(whole)
    return whole + (later - start) / (end - start)


def _words(seconds: float) -> str:
    minutes, hours, days = round(seconds / 60), round(seconds / 3_600), round(seconds / 86_400)
    months, years = round(days / 30.436875), round(days / 365.2425)
    steps = (
        (seconds < 45, "a few seconds"), (minutes <= 1, "a minute"), (minutes < 45, f"{minutes} minutes"),
        (hours <= 1, "an hour"), (hours < 22, f"{hours} hours"), (days <= 1, "a day"), (days < 26, f"{days} days"),
        (months <= 1, "a month"), (months < 11, f"{months} months"), (years <= 1, "a year"),
    )  # fmt: skip
    return next((words for fits, words in steps if fits), f"{years} years")
