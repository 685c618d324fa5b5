"""The values of a note, each with its line: properties, Dataview's inline fields, and the list items that carry them.

Pure. What a value is (a number, a date, a link) is read of it elsewhere, by `kinds`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from tarsd.parse.inline import WIKILINK
from tarsd.parse.properties import JSON

Scalar: TypeAlias = "str | int | float | bool"

Source = Literal["property", "field", "item"]

LONGEST = 10_000
"""Most characters of a value; what is longer stands for nothing that anybody compares."""

_NAME_CHARS = 100
_SYMBOLS = "\u00a9\u00ae\u2190-\u2bff\ufe0f\u200d\U0001f000-\U0001faff"  # emoji, and what joins them
_FIRST = rf"[*_~=]{{0,3}}(?:[^\W_]|[{_SYMBOLS}])"
_WHOLE = re.compile(
    rf"[ \t]*(?P<name>{_FIRST}[\w \t/{_SYMBOLS}-]{{0,98}}?[*_~=]{{0,3}}[ \t]{{0,3}})::(?P<value>(?!:).*)"
)
_OPENING = re.compile(rf"[\[(][ \t]*(?P<name>{_FIRST}[^\n:\[\](){{}}`|<>\"\\]{{0,98}}?)::(?!:)")
_BRACKET = re.compile(r"[\[\]()]")
_PAIRS = {"]": "[", ")": "("}
_EMPHASIS = re.compile(r"^([*_~=]{1,3})(.+?)\1$")
_MARKS = "*_~="
_BLANKS = re.compile(r"[\s_-]+")
_BETWEEN_LINKS = re.compile(r"\s*,\s*")


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a property or an inline field, with the 1-based line of the file on which it stands.

    `name` is as written, of nested maps "a.b"; `value` as `properties` reads it, of an inline field its text. Several
    values of one name are several facts, in the file's order. Of a list item that is no task, `source` is "item", and
    `item` its line: facts with one `item` belong together.
    """

    name: str
    value: Scalar
    line: int
    source: Source
    item: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A list item that carries fields: its line, its text without them, and the heading above it."""

    line: int
    text: str
    heading: str = ""


class Field(NamedTuple):
    """An inline field in a line, at [start, end) with its brackets."""

    name: str
    value: str
    start: int
    end: int


@lru_cache(maxsize=4_000)
def key_of(name: str) -> str:
    """The name in the form in which names are compared: case, emphasis marks, and blanks, `_` or `-` say nothing."""
    plain = _BLANKS.sub(" ", unicodedata.normalize("NFC", _bare(name)).casefold()).strip()
    return unicodedata.normalize("NFC", plain)


def fields_of(line: str, text: str = "") -> list[Field]:
    """The fields in a line: those in brackets, else the line as a whole.

    `line` is without what marks its place in lists and quotes, and blank where there is code; `text` is the same with
    the code in it, from which values are taken.
    """
    if "::" not in line:
        return []
    text = text or line
    found = list(_bracketed(line, text))
    if not found and (whole := _WHOLE.match(line)):
        name, value = whole["name"].strip(), text[whole.start("value") : whole.end("value")].strip()
        opened = name[: len(name) - len(name.lstrip(_MARKS))]
        if opened and value.startswith(opened) and not name.endswith(opened):
            value = value.removeprefix(opened).strip()  # **name::** value
        found.append(Field(_bare(name), value, whole.start("name"), len(line)))
    return found


def _bracketed(line: str, text: str) -> Iterator[Field]:
    """The fields in `[…]` and `(…)`, none inside another."""
    openings = {match.start(): match for match in _OPENING.finditer(line)}
    closed = _closed(line) if openings else {}
    at = 0
    for start, match in openings.items():
        end = closed.get(start, -1)
        if start < at or end < match.end():
            continue
        linked = line[start] == "[" and (line[end + 1 : end + 2] == "(" or line[max(start - 1, 0) : start] == "[")
        if linked:  # [[a:: b]] and [a:: b](c)
            continue
        at = end + 1
        yield Field(_bare(match["name"].strip()), text[match.end() : end].strip(), start, at)


def _closed(line: str) -> dict[int, int]:
    """Where each bracket stands that is closed, and where it is."""
    waiting: dict[str, list[int]] = {"[": [], "(": []}
    found: dict[int, int] = {}
    for match in _BRACKET.finditer(line):
        kind = _PAIRS.get(match[0])
        if kind is None:
            waiting[match[0]].append(match.start())
        elif waiting[kind]:
            found[waiting[kind].pop()] = match.start()
    return found


def _bare(name: str) -> str:
    """The name without the emphasis around it."""
    name = name.strip()
    while match := _EMPHASIS.match(name):
        name = match[2].strip()
    return name.lstrip("*~=").rstrip("*~=") or name


def without(text: str, fields: Iterable[Field]) -> str:
    """The text without these fields, which stand in it in this order."""
    parts: list[str] = []
    at = 0
    for field in fields:
        parts.append(text[at : field.start])
        at = field.end
    return " ".join("".join((*parts, text[at:])).split())


def facts_of(name: str, value: JSON, line: int, source: Source, item: int = 0) -> Iterator[Fact]:
    """The facts that a value is: none if it is empty, several if it is links with commas between them."""
    if value is None or isinstance(value, dict | list):
        return
    if isinstance(value, str):
        value = value.strip()
        for part in _links_apart(value):
            if part:
                yield Fact(name[:_NAME_CHARS], part[:LONGEST], line, source, item)
        return
    yield Fact(name[:_NAME_CHARS], value, line, source, item)


def _links_apart(text: str) -> Sequence[str]:
    if text.count("[[") < 2 or not text.startswith("[[") or len(text) > LONGEST:
        return (text,)
    links = [match[0] for match in WIKILINK.finditer(text)]
    between = _BETWEEN_LINKS.sub("", WIKILINK.sub("", text))
    return links if not between else (text,)
