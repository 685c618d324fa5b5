"""What the rules of times mean: functions of today and of what a question says, to first and last day. Pure.

Values are those of a rule's classes: `d` and `d2` days, `m` and `month2` months, `y` the year, `n` a count, `nth` which
of several (-1 the last), `unit` and `period` names of units, `wd` a weekday from 0, Monday, and `future`, whether what
comes again is the next one and not the last. Raises `ValueError`, `IndexError` or `OverflowError` for what is no day.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from dateutil.easter import easter

Days = tuple[date, date]
Values = Mapping[str, Any]
ONE_DAY = timedelta(days=1)


def _day(today: date, _: Values, shift: int) -> Days:
    day = today + shift * ONE_DAY
    return day, day


def _shifted_unit(today: date, values: Values, shift: int, name: str = "") -> Days:
    name = name or values["period"]
    # right after a weekend, “this weekend” is still that one, unless it is about what is to come
    lately = (name, shift, values["future"]) == ("weekend", 0, False) and today.weekday() < 2
    return unit(today, name, shift - lately)


def unit(today: date, name: str, shift: int = 0) -> Days:
    """The day, week, weekend, month, quarter, half or year with `today` in it, or one that many before or after."""
    match name:
        case "day":
            return today + shift * ONE_DAY, today + shift * ONE_DAY
        case "week":
            monday = today - today.weekday() * ONE_DAY + 7 * shift * ONE_DAY
            return monday, monday + 6 * ONE_DAY
        case "weekend":
            # on a weekend, the last one is the one before it
            saturday = today + (5 - today.weekday()) * ONE_DAY + 7 * shift * ONE_DAY
            if shift < 0 and today.weekday() < 5 and shift == -1:
                saturday = today - (today.weekday() + 2) * ONE_DAY
            elif shift > 0 and today.weekday() < 5:
                saturday = today + (5 - today.weekday()) * ONE_DAY + 7 * (shift - 1) * ONE_DAY
            return saturday, saturday + ONE_DAY
        case "year":
            return date(today.year + shift, 1, 1), date(today.year + shift, 12, 31)
    size = {"month": 1, "quarter": 3, "half": 6}[name]
    index = today.year * 12 + today.month - 1
    start = (index // size + shift) * size
    return _months(start, size)


def _months(index: int, count: int = 1) -> Days:
    last = index + count - 1
    end = date(last // 12, last % 12 + 1, monthrange(last // 12, last % 12 + 1)[1])
    return date(index // 12, index % 12 + 1, 1), end


def _ago(today: date, values: Values, sign: int) -> Days:
    return unit(today, values.get("unit", values.get("period", "day")), sign * values.get("n", 1))


def _rolling(today: date, values: Values, sign: int) -> Days:
    """The last or next so many units, from today on."""
    count, name = values.get("n", 1), values.get("unit", values.get("period", "day"))
    far = _moved(today, name, sign * count)
    return (far + ONE_DAY, today) if sign < 0 else (today, far)


def _moved(day: date, name: str, shift: int) -> date:
    if name in ("day", "week", "weekend"):
        return day + shift * (1 if name == "day" else 7) * ONE_DAY
    months = day.year * 12 + day.month - 1 + shift * {"month": 1, "quarter": 3, "half": 6, "year": 12}[name]
    year, month = months // 12, months % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def _weekday(today: date, values: Values, which: int = 0) -> Days:
    """The last (-1) or next (1) day of a name; 0 is the last one too, or for the future the next one."""
    wanted = values["wd"]
    if which > 0 or (which == 0 and values["future"]):
        day = today + ((wanted - today.weekday() - 1) % 7 + 1) * ONE_DAY
    else:
        day = today - ((today.weekday() - wanted - 1) % 7 + 1) * ONE_DAY
    return day, day


def _weekday_of(today: date, values: Values, shift: int) -> Days:
    """The day of that name of this week, or of one that many weeks before or after."""
    day = unit(today, "week", shift)[0] + values["wd"] * ONE_DAY
    return day, day


def _weekend(today: date, values: Values) -> Days:
    """The weekend that is or was last, or for the future the next one that is not over."""
    this = unit(today, "weekend")
    return this if values["future"] or this[0] <= today else unit(today, "weekend", -1)


def in_year(day: date, year: int) -> date:
    return date(year, day.month, min(day.day, monthrange(year, day.month)[1]))


def _repeated(today: date, values: Values, make: Callable[[int], Days], which: int = 0) -> Days:
    """What comes every year: that of the year that is said, else the last one or, for the future, the next one.

    `which`: -1 the last one, 1 the next one; 8, 9 and 10 that of the last, this and next year.
    """
    if "y" in values:
        return make(values["y"])
    if which in (8, 9, 10):
        return make(today.year + which - 9)
    if which > 0 or (which == 0 and values["future"]):
        found = (
            days for year in (today.year - 1, today.year, today.year + 1, today.year + 2) for days in _made(make, year)
        )
        return next(days for days in found if days[1] >= today and (which == 0 or days[0] > today))
    years = range(today.year, today.year - 9, -1)  # nine: 29 February
    found = (days for year in (today.year + 1, *years) for days in _made(make, year))
    return next(days for days in found if days[0] <= today and (which == 0 or days[1] < today))


def _made(make: Callable[[int], Days], year: int) -> Iterator[Days]:
    try:
        yield make(year)
    except ValueError:  # 29 February
        return


def _date(today: date, values: Values) -> Days:
    def make(year: int) -> Days:
        day = date(year, values["m"], values["d"])
        return day, day

    return _repeated(today, values, make)


def _month(today: date, values: Values, which: int = 0) -> Days:
    return _repeated(today, values, lambda year: _months(year * 12 + values["m"] - 1), which)


def _year(_: date, values: Values) -> Days:
    return date(values["y"], 1, 1), date(values["y"], 12, 31)


def _range(today: date, values: Values) -> Days:
    if values["d"] > values["d2"]:
        raise ValueError
    return _repeated(
        today, values, lambda year: (date(year, values["m"], values["d"]), date(year, values["m"], values["d2"]))
    )


def _month_range(today: date, values: Values) -> Days:
    count = (values["month2"] - values["month"]) % 12 + 1
    return _repeated(today, values, lambda year: _months(year * 12 + values["month"] - 1, count))


def _nth(today: date, values: Values, nth: int = 0) -> Days:
    """The first, second … or last week, weekend, day or weekday of a month, or month or quarter of a year.

    The first week of a month are its first seven days.
    """
    nth = values.get("nth", nth)
    name = values.get("unit", "week")

    def make(year: int) -> Days:
        if values["m"] is None:
            if "y" not in values and name not in ("quarter", "half"):
                raise ValueError(name)
            return _nth_of_year(year, nth, name)
        first, last = _months(year * 12 + values["m"] - 1)
        if "wd" in values or name == "weekend":
            wanted = values.get("wd", 5)
            every = (first + n * ONE_DAY for n in range((last - first).days + 1))
            day = [one for one in every if one.weekday() == wanted][nth - 1 if nth > 0 else nth]
            return day, day + (0 if "wd" in values else 1) * ONE_DAY
        if name == "half" and nth in (1, 2, -1):
            middle = first + 14 * ONE_DAY
            return (first, middle) if nth == 1 else (middle + ONE_DAY, last)
        size = {"day": 1, "week": 7}.get(name, 0)
        if not size:  # no month has quarters or years
            raise ValueError(name)
        if nth < 0:
            return last - (size - 1) * ONE_DAY, last
        start = first + (nth - 1) * size * ONE_DAY
        return start, min(last, start + (size - 1) * ONE_DAY)

    if "period" in values:  # "the first week of last year" and the like
        return _nth_of_year(today.year, nth, name)
    return _repeated(today, values, make)


def _nth_of_year(year: int, nth: int, name: str) -> Days:
    if name == "week":
        return date(year, 1, 1) + 7 * (nth - 1) * ONE_DAY, date(year, 1, 7) + 7 * (nth - 1) * ONE_DAY
    size = {"month": 1, "quarter": 3, "half": 6}.get(name, 0)
    if not size or not 0 < abs(nth) <= 12 // size:
        raise ValueError
    return _months(year * 12 + (nth - 1 if nth > 0 else 12 // size + nth) * size, size)


def _third(today: date, values: Values, which: int) -> Days:
    """The beginning, the middle or the end of a month or year."""

    def make(year: int) -> Days:
        if values["m"] is None:
            return _months(year * 12 + 4 * (which - 1), 4)
        first, last = _months(year * 12 + values["m"] - 1)
        starts = (first, first + 10 * ONE_DAY, first + 20 * ONE_DAY, last + ONE_DAY)
        return starts[which - 1], starts[which] - ONE_DAY

    return _repeated(today, values, make)


def _week(today: date, values: Values) -> Days:
    def make(year: int) -> Days:
        monday = date.fromisocalendar(year, values["ww"], 1)
        return monday, monday + 6 * ONE_DAY

    return _repeated(today, values, make)


def _week_of(today: date, values: Values) -> Days:
    return unit(_date(today, values)[0], "week")


def _quarter(today: date, values: Values) -> Days:
    return _repeated(today, values, lambda year: _nth_of_year(year, values["q"], "quarter"))


_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}


def _season(today: date, values: Values, which: int = 0) -> Days:
    """Three whole months; a winter is that of the year in which it begins."""
    return _repeated(today, values, lambda year: _months(year * 12 + _SEASONS[values["season"]] - 1, 3), which)


def _feast(today: date, values: Values, which: int = 0) -> Days:
    return _repeated(today, values, lambda year: feast(values["feast"], year), which)


def feast(spec: str, year: int) -> Days:
    """The days of a feast: `12-24 12-26`, `easter -2 1` (days after Easter Sunday), `nth 11 3 4` (month, weekday,
    which of them) or `advent`.
    """
    kind, *rest = spec.split()
    if kind == "easter":
        days = [easter(year) + int(shift) * ONE_DAY for shift in rest or ["0"]]
    elif kind == "nth":
        month, weekday, which = map(int, rest)
        days = list(_nth(date(year, 1, 1), {"m": month, "wd": weekday, "nth": which, "y": year}))
    elif kind == "advent":
        christmas = date(year, 12, 25)
        days = [christmas - (christmas.weekday() + 1 + 21) * ONE_DAY, christmas - ONE_DAY]
    else:
        days = [date.fromisoformat(f"{year}-{day}") for day in (kind, *rest)]
        if days[-1] < days[0]:
            days[-1] = days[-1].replace(year=year + 1)
    return days[0], days[-1]


MEANINGS: Mapping[str, Callable[..., Days]] = {
    "day": _day, "unit": _shifted_unit, "ago": _ago, "rolling": _rolling, "weekday": _weekday,
    "weekdayof": _weekday_of, "weekend": _weekend, "date": _date,
    "month": _month, "year": _year, "range": _range, "months": _month_range, "nth": _nth, "third": _third,
    "week": _week, "weekof": _week_of, "quarter": _quarter, "season": _season, "feast": _feast,
}  # fmt: skip
