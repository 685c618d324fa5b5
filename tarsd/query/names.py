"""The notes of a vault by their names, and what their values are; what queries keep from one to the next."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from tarsd.bases import Date, Duration, LinkValue, Quantity, Value
from tarsd.bases.operators import link_of, number_in
from tarsd.bases.temporal import read_date
from tarsd.bases.values import Named, tidy
from tarsd.kinds import kind_of
from tarsd.parse import Fact
from tarsd.parse.fields import key_of
from tarsd.passage import NoteRow
from tarsd.store import links
from tarsd.store.links import LinkTarget

T = TypeVar("T")
Embeds = Sequence[tuple[str, str, bool]]


SHOWN_FILES = frozenset((
    "avif", "bmp", "gif", "jpeg", "jpg", "png", "svg", "webp", "flac", "m4a", "mp3", "ogg", "wav", "webm", "3gp", "mkv",
    "mov", "mp4", "ogv", "pdf",
))  # fmt: skip
"""The endings of the files, beside notes, canvases and bases, that Obsidian shows."""
KEPT_NOTES = 20_000
"""Of a vault with more notes nothing that was read is kept for the next query."""
KEPT_COLUMNS = 64


class NoteNames:
    """The notes of a vault, by path, and by the names that links give them; made once for each state of the index.

    What was read of all notes is kept with them, as far as `keep` says.
    """

    def __init__(self, rows: Iterable[NoteRow]) -> None:
        self.rows = {row.id: row for row in sorted(rows, key=lambda row: row.path)}
        self.keeps = len(self.rows) <= KEPT_NOTES
        self.places: dict[int, dict[str, Value]] = {}
        self._kept: dict[object, Any] = {}
        self._targets: dict[str, list[LinkTarget]] = {}
        for row in self.rows.values():
            for key, alias in links.keys_of(row.path, row.aliases):
                self._targets.setdefault(key, []).append(LinkTarget(row.id, links.path_fold(row.path), row.path, alias))

    def keep(self, name: object, read: Callable[[], T]) -> T:
        """What `read` gives, which is of all notes; kept for the next query where there is room."""
        if name in self._kept:
            found: T = self._kept[name]
            return found
        made = read()
        if self.keeps:
            if len(self._kept) >= KEPT_COLUMNS:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[name] = made
        return made

    def several(self, target: str) -> bool:
        """Whether more notes than one have the name that a link's target ends with."""
        return len(self._targets.get(link_key(target), ())) > 1

    def find(self, target: str, source: str, hidden: Collection[int]) -> int | None:
        """The id of the note that a link means; those with `hidden` ids are not known."""
        found = self._targets.get(link_key(target))
        if not found:
            return None
        known = [candidate for candidate in found if candidate.id not in hidden] if hidden else found
        return links.resolve(target, source, known)


@functools.lru_cache(maxsize=8_192)
def link_key(target: str) -> str:
    """The name by which a link's target is looked up."""
    return links.key_of(target)


def strict_value(raw: str | int | float, declared: str, path: str) -> Value:
    """A property's value as Obsidian reads it; `declared` is its type in `types.json`, `path` that of its note."""
    if not isinstance(raw, str):
        return tidy(raw)
    if raw.startswith("[[") and raw.endswith("]]"):
        return link_of(raw, "", path)
    if declared == "number":
        number = number_in(raw)
        return raw if number is None else number
    if declared in ("", "date", "datetime") and raw[:1].isdigit():
        return read_date(raw) or raw
    return raw


@functools.lru_cache(maxsize=16_384)
def _read(raw: str, declared: str) -> Value:
    """Of text without links: the same whichever note it is in."""
    found = kind_of(raw, declared)
    if found.kind == "number" and found.number is not None:
        return Quantity(found.number, found.unit, raw)
    if found.kind in ("date", "datetime"):
        return read_date(found.iso) or raw
    if found.kind == "duration" and found.minutes is not None:
        return Duration(0, found.minutes * 60_000, raw, found.number)
    if found.kind == "checkbox":
        return raw.strip().casefold() == "true"
    return raw


def lenient_value(raw: str | int | float, declared: str, path: str) -> Value:
    """A value with its unit, its date in any form, or its length of time; as `strict_value` otherwise."""
    if not isinstance(raw, str):
        return tidy(raw)
    if raw[:1] in "[!":
        target = kind_of(raw, declared).target
        if target:
            link = link_of(raw, "", path)
            return link if link.target else LinkValue(target, "", path)
    return _read(raw, declared)


def by_key(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """Facts by the keys of their names."""
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(key_of(fact.name), []).append(fact)
    return found


def moment_of(seconds: float) -> Date:
    """A time in seconds since 1970."""
    return Date(datetime.fromtimestamp(seconds), True)


def place_fields(path: str) -> dict[str, Value]:
    """The fields of `file` that its path says."""
    folder, _, name = path.rpartition("/")
    basename, dot, ending = name.rpartition(".")
    shown = basename if ending.lower() == "md" and dot else name
    return {
        "name": Named(shown, name), "basename": basename if dot else name, "ext": ending if dot else "",
        "folder": folder, "path": path,
    }  # fmt: skip
