"""What a written value is: a number with its unit, a date, a duration, a check box, a link, or text. Pure but for
`property_types`, which reads what Obsidian is told of properties."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from tarsd.dates import SETTINGS_BYTES, written_day
from tarsd.errors import NotFound
from tarsd.parse.fields import Scalar, key_of
from tarsd.parse.inline import WIKILINK
from tarsd.vault import Unreadable, decode, read_file

CHECKED = ("number", "checkbox", "date", "datetime")
"""The types of Obsidian's properties that not every value has."""
Kind = Literal["number", "date", "datetime", "duration", "checkbox", "link", "text"]

_LONGEST = 200
"""A longer value is text."""

_CODES = "EUR USD GBP CHF JPY CNY RMB SEK NOK DKK PLN CZK HUF RUB TRY INR BRL MXN ARS AUD CAD NZD SGD HKD KRW ZAR ILS"
_CURRENCIES = (
    "US$", "A$", "C$", "CA$", "NZ$", "R$", "€", "$", "£", "¥", "￥", "₽", "₹", "₩", "₺", "₴", "₪", "฿", "₫", "₿",
    "Fr.", "SFr.", "Rs.", "Rs", "kr", "kr.", *_CODES.split(),
)  # fmt: skip
"""What stands before an amount; behind a number any word is its unit."""
_SAME_CURRENCIES = {
    "EUR": "€", "USD": "$", "US$": "$", "GBP": "£", "JPY": "¥", "￥": "¥", "RUB": "₽", "INR": "₹", "RS": "₹",
    "RS.": "₹", "KRW": "₩", "TRY": "₺", "ILS": "₪", "BRL": "R$", "AUD": "A$", "CAD": "C$", "CA$": "C$", "NZD": "NZ$",
    "RMB": "CNY", "FR.": "CHF", "SFR.": "CHF", "KR.": "KR",
}  # fmt: skip
_KNOWN_CURRENCIES = frozenset(name.upper() for name in _CURRENCIES)

MINUTES = {
    1 / 60: "s sec secs second seconds sek sekunde sekunden seg segundo segundos seconde secondes secondi сек 秒 秒間",
    1: "min mins minute minutes minuten minuto minutos minuti minuut мин минут минута минуты 分 分間 分钟 分鐘",
    60: "h hr hrs hour hours std stunde stunden hora horas heure heures ora ore uur uren ч час часа часов "
    "時間 小时 小時",
    1440: "d day days tag tage tagen día días dia dias jour jours giorno giorni dag dagen день дня дней 日間 天",
    10080: "wk wks week weeks woche wochen semana semanas semaine semaines settimana settimane weken "
    "неделя недели недель 週間 周",
}
"""The minutes of units of time; months and years have no fixed number of them. A lone `m` is metres."""
_UNITS = {name: minutes for minutes, names in MINUTES.items() for name in names.split()}

_AMOUNT = r"[0-9]{1,3}(?:[.,'’ \u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)?|[.,][0-9]+"
_BEFORE = "|".join(map(re.escape, sorted(_CURRENCIES, key=len, reverse=True)))
_NUMBER = re.compile(
    rf"(?P<sign>[-+−]?)[ \u00a0]?(?:(?P<before>{_BEFORE})[ \u00a0]?(?P<sign_behind>[-−]?))?(?P<amount>{_AMOUNT})"
    r"(?:[ \u00a0]?(?P<unit>/[ ]?[0-9]{1,4}|[^\s\d\[\](){}<>:;,!?\"=#*_|\\@+-][^\s\d\[\](){}<>:;,!?\"=#*_|\\@]{0,15}))?"
)
_ORDINAL = re.compile(r"st|nd|rd|th", re.IGNORECASE)
_PART = re.compile(r"([0-9]+(?:[.,][0-9]+)?)[ \u00a0]?([^\W\d_]+)\.?(?:[ ](?:and|und|y|e|et|en|и)[ ]|,[ ]|[ \u00a0])?")
_CLOCK = re.compile(r"([0-9]{1,3}):([0-5][0-9])[ \u00a0]?(?:h|hrs?|Std\.?)")
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?[ ]?(?P<zone>[Zz]|[-+]\d{2}:?\d{2})?"
_YEAR_FIRST = re.compile(rf"(?P<year>\d{{4}})([-/.])(?P<month>\d{{1,2}})\2(?P<day>\d{{1,2}})(?:(?:[Tt]|[ ]+){_TIME})?")
_YEAR_LAST = re.compile(rf"(?P<day>\d{{1,2}})\.[ ]?(?P<month>\d{{1,2}})\.[ ]?(?P<year>\d{{4}})(?:,?[ ]+{_TIME})?")
_CJK = re.compile(r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日")
_MARKDOWN_LINK = re.compile(r"\[[^\[\]\n]*\]\(<?([^()<>\s]+)>?\)")
_WIDE = {ord(wide): str(digit) for digit, wide in enumerate("０１２３４５６７８９")}
_BOOLS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a value says; `text` is the value as written.

    `number` is there with a `unit` ("€", "p.", "/5") or without, also for `8 h` and `20 min`, of which `minutes` is the
    duration (`1h 40m` has that alone). `iso` is a day as YYYY-MM-DD, or a time as YYYY-MM-DDTHH:MM[:SS][zone]; `target`
    what a link points to. `no_date` says that it is written as a date, but no calendar has it.
    """

    kind: Kind
    text: str
    number: float | None = None
    unit: str = ""
    minutes: float | None = None
    iso: str = ""
    target: str = ""
    no_date: bool = False

    @property
    def day(self) -> str:
        """The day of a date or a time, "" if it is none."""
        return self.iso[:10]


def currency_of(unit: str) -> str:
    """The currency that a unit stands for, one for `€` and `EUR`; "" for any other unit."""
    name = unit.upper()
    return _SAME_CURRENCIES.get(name, name) if name in _KNOWN_CURRENCIES else ""


def main_currency(units: Iterable[str]) -> str:
    """The currency of most of these units, the first of several; "" if none is one. Others are not added to it."""
    found = [currency for unit in units if (currency := currency_of(unit))]
    return max(dict.fromkeys(found), key=found.count, default="")


@lru_cache(maxsize=20_000, typed=True)
def kind_of(value: Scalar, declared: str = "") -> Reading:
    """What the value is: as `declared` in types.json (text, number, checkbox, date, datetime) if it fits, else by its
    look. A value that does not fit is text.

    Declared text still has its number or day: everything is text to Obsidian that it was told nothing of.
    """
    found = _look(value)
    if declared in ("text", "multitext", "aliases", "tags"):
        return replace(found, kind="link" if found.kind == "link" else "text")
    if declared == "number":
        return replace(found, kind="number" if found.number is not None else "text")
    if declared == "checkbox":
        return replace(found, kind="checkbox" if found.kind == "checkbox" else "text")
    if declared == "date":
        return replace(found, kind="date" if found.iso else "text", iso=found.day)
    if declared == "datetime":
        return replace(found, kind="datetime" if found.iso else "text")
    return found


def fits(value: Scalar, declared: str) -> bool:
    """Whether the value is what `types.json` declares; of a type that is not known, every value is."""
    return declared not in CHECKED or kind_of(value, declared).kind == declared


def _look(value: Scalar) -> Reading:
    if isinstance(value, bool):
        return Reading("checkbox", str(value).lower(), number=float(value))
    if isinstance(value, int | float):
        return Reading("number", str(value), number=float(value))
    text = value.strip()
    if not text or len(text) > _LONGEST:
        return Reading("text", value)
    if text[0] in "[!":
        if link := WIKILINK.fullmatch(text):
            return Reading("link", value, target=link["target"].strip())
        if link := _MARKDOWN_LINK.fullmatch(text):
            return Reading("link", value, target=link[1])
    if text.casefold() in _BOOLS:
        return Reading("checkbox", value, number=_BOOLS[text.casefold()])
    text = text.translate(_WIDE)
    if not any(char.isdigit() for char in text):
        return Reading("text", value)
    for form in (_YEAR_FIRST, _YEAR_LAST, _CJK):
        if found := form.fullmatch(text):
            return _date(value, found.groupdict())
    if day := written_day(text):
        return Reading("date", value, iso=day.isoformat())
    return _quantity(value, text)


def _date(value: str, said: Mapping[str, str | None]) -> Reading:
    try:
        day = date(int(said["year"] or 0), int(said["month"] or 0), int(said["day"] or 0))
        if not said.get("hour"):
            return Reading("date", value, iso=day.isoformat())
        hour, minute, second = (int(said[part] or 0) for part in ("hour", "minute", "second"))
        time = datetime(day.year, day.month, day.day, hour, minute, second)
    except ValueError:
        return Reading("text", value, no_date=True)
    zone = (said["zone"] or "").upper()
    zone = f"{zone[:3]}:{zone[3:]}" if len(zone) == 5 else zone
    return Reading("datetime", value, iso=time.isoformat(timespec="auto" if second else "minutes") + zone)


def _quantity(value: str, text: str) -> Reading:
    minutes = _duration(text)
    found = _NUMBER.fullmatch(text)
    number = _amount(found["amount"]) if found else None
    if found is None or number is None or (found["unit"] and _ORDINAL.fullmatch(found["unit"])):
        return Reading("text" if minutes is None else "duration", value, minutes=minutes)
    if found["sign"] in ("-", "−") or found["sign_behind"]:
        number = -number
    unit = (found["before"] or found["unit"] or "").replace(" ", "")
    return Reading("number" if minutes is None else "duration", value, number=number, unit=unit, minutes=minutes)


def _amount(text: str) -> float | None:
    """The number of digits with separators: one before exactly three digits parts thousands, but a single point."""
    digits = re.sub(r"['’ \u00a0\u202f]", "", text)
    commas, points = digits.count(","), digits.count(".")
    if commas and points:
        last = max(digits.rfind(","), digits.rfind("."))
        whole, rest = digits[:last], digits[last + 1 :]
        if digits[last] in whole:
            return None
        digits = re.sub("[.,]", "", whole) + "." + rest
    elif commas > 1 or points > 1:
        digits = re.sub("[.,]", "", digits)
    elif commas:
        whole, _, rest = digits.partition(",")
        digits = whole + rest if whole and len(rest) == 3 and whole != "0" else f"{whole}.{rest}"
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
        return None  # a number of a telephone, or another name
    return float(digits)


def _duration(text: str) -> float | None:
    """The minutes of `1h 40m`, `20 min`, `2 hours and 5 minutes`, `1:30 h`."""
    if clock := _CLOCK.fullmatch(text):
        return int(clock[1]) * 60 + int(clock[2])
    total, at, hours = 0.0, 0, False
    for part in _PART.finditer(text):
        unit = part[2].casefold()
        minutes = 1 if unit == "m" and hours else _UNITS.get(unit)
        if part.start() != at or minutes is None:
            return None
        total += float(part[1].replace(",", ".")) * minutes
        at, hours = part.end(), hours or minutes == 60
    return total if at == len(text) and at else None


def property_types(vault: Path) -> Mapping[str, str]:
    """The types of properties that Obsidian's `types.json` declares, by the key of their names; {} where it is not
    there or cannot be read."""
    try:
        loaded = json.loads(decode(read_file(str(vault / ".obsidian" / "types.json"), SETTINGS_BYTES)).text)
    except (NotFound, Unreadable, ValueError, RecursionError):
        return {}
    types = loaded.get("types") if isinstance(loaded, dict) else None
    if not isinstance(types, dict):
        return {}
    return {key_of(name): kind for name, kind in types.items() if isinstance(kind, str)}
