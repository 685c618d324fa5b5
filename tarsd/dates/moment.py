"""Dates written and read the way Obsidian's settings ask for: the format strings of moment.js. Pure.

They are written in its English, and read in the languages of `_MONTH_NAMES`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from functools import cache, lru_cache

from tarsd.words import fold

_MONTH_NAMES = tuple(
    tuple(names.split())
    for names in (
        "January February March April May June July August September October November December",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Jänner Feber März April Mai Juni Juli August September Oktober November Dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "januari februari maart april mei juni juli augustus september oktober november december",
        "januari februari mars april maj juni juli augusti september oktober november december",
        "januar februar marts april maj juni juli august september oktober november december",
        "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
        "leden únor březen duben květen červen červenec srpen září říjen listopad prosinec",
        "ledna února března dubna května června července srpna září října listopadu prosince",
        "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
        "січень лютий березень квітень травень червень липень серпень вересень жовтень листопад грудень",
        "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
        "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
        "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月",
    )
)
_MONTHS = _MONTH_NAMES[0]
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def write(when: datetime, pattern: str) -> str:
    """`when` in the form of `pattern`; text in [brackets] stands as it is, as does what is no token."""
    return _TOKEN.sub(
        lambda match: match[0][1:-1] if match[0][0] == "[" else _TOKENS[match[0]](when), _spelled(pattern)
    )


def plain(text: str) -> str:
    """`text` with the digits and dashes of every script as ASCII, composed, in half width."""
    if text.isascii():
        return text
    text = "".join(
        str(unicodedata.decimal(char)) if char.isdecimal() and not char.isascii() else char
        for char in unicodedata.normalize("NFKC", text)
    )
    return _DASH.sub("-", text)


def find(path: str, pattern: str, *, at_home: bool = False) -> date | None:
    """The first day that the last part of `path` names in the form of `pattern`; folders in it must stand above.

    A form with the whole date may have text around it; another one is the whole name, or its beginning where `at_home`
    says that such names are usual. With a year of two digits it says nothing elsewhere.
    """
    folders, last, kinds, whole = _expression(pattern)
    above, name = map(plain, path.rpartition("/")[::2])  # parted first: a wide solidus stands in names
    upper: Iterable[str] = ()
    if folders:
        found = re.search(rf"(?:^|/){folders}$", above, re.IGNORECASE)
        if found is None:
            return None
        upper = found.groups()
    fit = re.fullmatch(last, name, re.IGNORECASE)
    matches: Iterable[re.Match[str]] = [fit] if fit and (at_home or "short" not in kinds) else []
    if not fit and whole:
        matches = (match for match in re.finditer(BEFORE + last + AFTER, name, re.IGNORECASE))
    elif not fit and at_home:
        start = re.match(last + r"(?![^\W_])", name, re.IGNORECASE)
        matches = [start] if start else []
    for match in matches:
        day = None if is_version(match) else _day(zip(kinds, (*upper, *match.groups()), strict=True))
        if day is not None:
            return day
    return None


def is_version(match: re.Match[str]) -> bool:
    """Whether the text before a date shows that it is a version number, as in v1.2.2026."""
    before = match.string[: match.start()]
    return bool(_VERSION.search(before)) and ("." in match[0] or before[-1] != " ")


@lru_cache(maxsize=64)
def _expression(pattern: str) -> tuple[str, str, tuple[str, ...], bool]:
    """Expressions for the folders and the name that `pattern` makes, what their groups are, and whether the name alone
    says a day of a year of four digits.
    """
    pattern = _spelled(pattern.strip("/"))
    parts: list[str] = [""]
    kinds: list[list[str]] = [[]]
    ends = 0
    for match in _TOKEN.finditer(pattern + "[]"):
        literal = pattern[ends : match.start()] + (match[0][1:-1] if match[0][0] == "[" else "")
        ends = match.end()
        for number, piece in enumerate(literal.split("/")):
            if number:
                parts.append("")
                kinds.append([])
            parts[-1] += re.escape(plain(piece))
        if match[0][0] != "[":
            kind, expression = _READ.get(match[0], ("", r"\d+"))
            parts[-1] += expression
            kinds[-1] += [kind] if kind else []
    said = {kind.removesuffix("-name") for kind in kinds[-1]}
    whole = {"year", "month", "day"} <= said or {"year", "day of year"} <= said
    return "/".join(parts[:-1]), parts[-1], tuple(kind for group in kinds for kind in group), whole


def _day(said: Iterable[tuple[str, str]]) -> date | None:
    """The day of these values; None where one is missing, two contradict each other, or there is no such day."""
    values: dict[str, int] = {}
    for kind, text in said:
        number: int | None = None
        if kind == "month-name":
            kind, number = "month", _month(text)
        elif kind == "short":
            kind, number = "year", int(text) + (1900 if int(text) > 68 else 2000)
        else:
            number = int(text)
        if number is None or values.setdefault(kind, number) != number:
            return None
    try:
        if "day of year" in values and "day" not in values:
            day = date(values["year"], 1, 1) + timedelta(days=values["day of year"] - 1)
            return day if day.year == values["year"] else None
        return date(values["year"], values["month"], values["day"])
    except (KeyError, ValueError, OverflowError):
        return None


@cache
def _months() -> dict[str, int]:
    return {fold(name): number for names in _MONTH_NAMES for number, name in enumerate(names, 1)}


def _month(word: str) -> int | None:
    """The month of a name, or of its beginning as far as only one month begins so."""
    digits = re.match(r"\d+", word)
    if digits:
        return int(digits[0])
    key = fold(word.rstrip("."))
    if key in _months():
        return _months()[key]
    found = {number for name, number in _months().items() if name.startswith(key)} if len(key) >= 3 else set()
    return found.pop() if len(found) == 1 else None


def _spelled(pattern: str) -> str:
    """The pattern with the tokens that its long ones stand for."""
    return _TOKEN.sub(lambda match: _LONG.get(match[0], match[0]), pattern)


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
}
_LONG = {
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "LLL": "MMMM D, YYYY h:mm A",
    "LL": "MMMM D, YYYY",
    "LT": "h:mm A",
    "L": "MM/DD/YYYY",
}
_WORD = r"[^\W\d_]+(?:-[^\W\d_]+)?\.?"
_ORDINAL = r"(?:[^\W\d_]{1,3}|\.)?"
_READ: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("YYYY", "Y"), ("year", r"(\d{4})")),
    "YY": ("short", r"(\d\d)"),
    **dict.fromkeys(("MMMM", "MMM"), ("month-name", rf"(\d\d?[月월]|{_WORD})")),
    "MM": ("month", r"(\d\d)"),
    "M": ("month", r"(\d\d?)"),
    "Mo": ("month", rf"(\d\d?){_ORDINAL}"),
    "DDDD": ("day of year", r"(\d{3})"),
    "DDD": ("day of year", r"(\d{1,3})"),
    "DDDo": ("day of year", rf"(\d{{1,3}}){_ORDINAL}"),
    "DD": ("day", r"(\d\d)"),
    "D": ("day", r"(\d\d?)"),
    "Do": ("day", rf"(\d\d?){_ORDINAL}"),
    **dict.fromkeys(("dddd", "ddd", "dd", "A", "a"), ("", _WORD)),
    **dict.fromkeys(("Qo", "do", "wo", "Wo"), ("", rf"\d+{_ORDINAL}")),
    **dict.fromkeys(("Z", "ZZ"), ("", r"[-+]\d\d:?\d\d")),
}
"""What a token says, and as what it is read; the others are numbers that say nothing of the day."""

_TOKEN = re.compile(r"\[[^\[\]]*\]|" + "|".join(sorted((*_TOKENS, *_LONG), key=len, reverse=True)))
_DASH = re.compile("[\u2010-\u2015\u2212]")
BEFORE = r"(?<![A-Za-z0-9])(?<![0-9][.,])"
AFTER = r"(?![0-9])(?![.,][0-9])"
_VERSION = re.compile(r"(?<![^\W_])(?:v|ver|version|rev|build)\.? ?$", re.IGNORECASE)
