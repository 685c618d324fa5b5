"""A note as a model may read it: whole, by section, block or lines, without what no reader sees. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tarsd.parse import Note, source_lines
from tarsd.passage import anchor
from tarsd.providers.base import Evidence
from tarsd.providers.text import cap
from tarsd.tools.base import NoteView
from tarsd.writing.places import Outline

READ_CHARS = 8_000
OUTLINE = 30

_LINK = re.compile(r"!?\[\[([^\[\]|#^]*)([#^][^\[\]|]*)?(?:\|[^\[\]]*)?\]\]")


@dataclass(frozen=True)
class Passage:
    """Lines of a note, counted from 1, both included; `cut` when more of what was asked for follows."""

    first: int
    last: int
    text: str
    heading: str = ""
    cut: bool = False


def target(name: str) -> tuple[str, str]:
    """A note's name as models write it (`[[Note#Heading|alias]]`, `Note`), apart from the heading or `^block`."""
    name = name.strip()
    match = _LINK.fullmatch(name)
    if match is None:
        return name.strip("[]").strip(), ""
    return match[1].strip(), (match[2] or "").removeprefix("#").strip()


def shown_lines(view: NoteView, note: Note) -> list[str]:
    """The note's lines with their own numbers, comments blank; a `.base` is read as its source."""
    source = source_lines(view.loaded.text)
    if note.path.lower().endswith(".base"):
        return source
    body = note.body_line - 1
    return [*source[:body], *note.lines[body:]]


def section(outline: Outline, wanted: str) -> tuple[int, int, str]:
    """First and last line and the heading's text of `Heading`, `Heading#Sub` or `^block`.

    Raises NotFound, and Conflict if several fit.
    """
    if wanted.startswith("^"):
        place = outline.block(wanted)
        return place.start + 1, max(place.end, place.id_line + 1), ""
    place = outline.section(wanted)
    heading = next(one for one in outline.note.headings if one.end_line == place.start)
    return heading.line, place.end, heading.text


def passage(lines: list[str], first: int, last: int, heading: str = "") -> Passage:
    """Those lines, as many as fit, without empty ones at the ends."""
    while first < last and not lines[first - 1].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    size, end = 0, first - 1
    for number in range(first, last + 1):
        size += len(lines[number - 1]) + 1
        if size > READ_CHARS and end >= first:
            break
        end = number
    text = cap("\n".join(lines[first - 1 : end]), READ_CHARS + 1)
    return Passage(first, end, text, heading, end < last)


def evidence(view: NoteView, part: Passage) -> Evidence:
    """The passage as a source that can be cited."""
    name = view.path.removesuffix(".md")
    link = f"[[{name}#{anchor(part.heading)}]]" if part.heading else f"[[{name}]]"
    return Evidence(
        0, view.path, view.title, part.heading, link, part.first, part.last, part.text, 1.0, view.collection,
        local_only=view.local_only,
    )  # fmt: skip
