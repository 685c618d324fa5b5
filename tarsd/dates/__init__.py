"""The day that a note is of: what its properties say, else its name, else none. Never the time of its last change."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tarsd.dates import moment
from tarsd.dates.settings import FORMAT, SETTINGS_BYTES, read_settings, template_folders
from tarsd.parse import JSON
from tarsd.vault import KINDS, nfc
from tarsd.words import fold

__all__ = ["SETTINGS_BYTES", "DateRules", "date_rules", "day_of", "is_template", "written_day"]

PROPERTIES = (
    "date", "day", "created", "created at", "created on", "creation date", "date created", "date added", "datum",
    "erstellt", "fecha", "data", "dato", "tarih", "дата", "日期", "日付", "날짜",
)  # fmt: skip
"""Names of properties that say a note's day, the most telling first; case, spaces, `-` and `_` make no difference."""

_WRITTEN = ("LL", "D MMMM YYYY", "Do MMMM YYYY", "MMMM Do, YYYY", "MMMM Do YYYY")
_LONGEST_DAY = 40
_MONTH_WORD = r"(?:\d\d?[月월]|[^\W\d_]+\.?)"
_WRITTEN_DAY = re.compile(
    rf"(?:\d\d?(?:st|nd|rd|th|\.)?[ ](?:of |de |do )?{_MONTH_WORD}|{_MONTH_WORD}[ ]\d\d?(?:st|nd|rd|th)?),?[ ]"
    r"(?:de |del )?\d{4}",
    re.IGNORECASE,
)
_OF = re.compile(r" (?:of|de|del|do) ", re.IGNORECASE)
_LINK = re.compile(r"!?\[\[([^\]|#^]+)")
_COMPACT = (
    r"((?:19|20)\d\d)(\d\d)(\d\d)(?:T?(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?Z?)?(?![A-Za-z0-9])"  # as in 202603091430
)
_ISO = r"([12]\d{3})(?:([-_])(\d\d?)\2(\d\d?)|([./])(\d\d)\5(\d\d))(?![0-9])(?![.,][0-9])"
_IN_NAMES = re.compile(rf"(?<![0-9])(?<![0-9][.,]){_ISO}|{moment.BEFORE}{_COMPACT}", re.IGNORECASE)
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/._])(\d\d?)\2(\d\d?)(?![0-9])|{_COMPACT}$")
_YEAR_LAST = re.compile(r"(\d\d?)([-/.])(\d\d?)\2(\d{4})(?![0-9])")


@dataclass(frozen=True)
class DateRules:
    """How a vault writes dates: the `properties` to ask first, the `format` of daily notes' names and their `folder`.

    What lies at or below `templates` has no date: what is written there is for notes that are made of it.
    """

    properties: tuple[str, ...] = ()
    format: str = FORMAT
    folder: str = ""
    templates: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """8 hex digits that change whenever a note's date may be another one."""
        return hashlib.blake2b(repr((self, PROPERTIES)).encode(), digest_size=4).hexdigest()


def date_rules(vault: Path, properties: Sequence[str] = ()) -> DateRules:
    """The rules of the vault at this place. Raises `ToolError` for a settings file that cannot be read."""
    daily = read_settings(vault)
    templates = (*template_folders(vault), *([daily.template] if daily.template.strip() else []))
    return DateRules(tuple(properties), daily.format, daily.folder, templates)


def day_of(path: str, properties: Mapping[str, JSON], rules: DateRules) -> str:
    """The note's day as YYYY-MM-DD, "" where neither its properties nor its name say one."""
    if is_template(path, rules):
        return ""
    named: dict[str, JSON] = {}
    for name, value in properties.items():
        named.setdefault(_key(name), value)
    asked = (*map(_key, rules.properties), *_KEYS)
    for key in (key for key in asked if key in named):
        day = _of_value(named[key], rules)
        if day:
            return day.isoformat()
    day = _of_name(path, rules)
    return day.isoformat() if day else ""


def is_template(path: str, rules: DateRules) -> bool:
    """Whether the file is a template for notes: its properties say nothing about any note."""
    where = _place(path) if rules.templates else ""
    return any(where == _place(top) or where.startswith(f"{_place(top)}/") for top in rules.templates)


def written_day(text: str) -> date | None:
    """The day that a text with the name of its month says and nothing else: `14 March 2026`, `March 14th, 2026`."""
    if len(text) > _LONGEST_DAY or not _WRITTEN_DAY.fullmatch(text):
        return None
    return next((day for form in _WRITTEN if (day := moment.find(_OF.sub(" ", text), form))), None)


def _of_name(path: str, rules: DateRules) -> date | None:
    """The first day in the last part of a path, in the vault's own form if it has that."""
    if not any(map(str.isdigit, path)):
        return None
    path = _without_ending(path)
    home = rules.folder.strip(" /")
    at_home = not home or _place(path).startswith(f"{_place(home)}/")
    found = moment.find(path, rules.format, at_home=at_home)
    if found:
        return found
    for match in _IN_NAMES.finditer(moment.plain(path.rpartition("/")[2])):
        day = None if moment.is_version(match) else _of_numbers(match)
        if day:
            return day
    return None


def _of_value(value: JSON, rules: DateRules) -> date | None:
    """The day of a property's value; of a list, that of its first item. A number is one only as in 20260309."""
    while isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = moment.plain(str(value)[:200]).strip().strip("\"'").strip()
    link = _LINK.match(text)
    if link:
        return _of_name(link[1].strip(), rules)
    first = _YEAR_FIRST.match(text)
    if first:
        return _of_numbers(first)
    for form in (rules.format, *_WRITTEN):
        day = moment.find(text, form, at_home=form == rules.format)
        if day:
            return day
    last = _YEAR_LAST.match(text)
    if not last:
        return None
    days = {_calendar(last[4], last[3], last[1])}
    if last[2] != ".":
        days.add(_calendar(last[4], last[1], last[3]))
    days.discard(None)
    return days.pop() if len(days) == 1 else None  # 03/04/2026 is one day here and another one there


def _of_numbers(match: re.Match[str]) -> date | None:
    """The day of a match with year, month and day in this order; separators are among the groups."""
    return _calendar(*[group for group in match.groups() if group and group.isdigit()])


def _calendar(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


@functools.lru_cache(maxsize=1_000)
def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", fold(name))


def _place(path: str) -> str:
    """A path in the form in which places are compared."""
    return _without_ending(nfc(path).strip(" /").casefold())


def _without_ending(path: str) -> str:
    stem, dot, ending = path.rpartition(".")
    return stem.removesuffix(".excalidraw") if dot and f".{ending.lower()}" in KINDS else path


_KEYS = tuple(map(_key, PROPERTIES))  # what the names are compared as
