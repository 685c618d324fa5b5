"""A note as a model may read it: whole, by section, block or lines, without what no reader sees. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tarsd.notes import NoteView
from tarsd.passage import Passage
from tarsd.providers.text import cap
from tarsd.writing.places import Outline

READ_CHARS = 8_000
OUTLINE = 30


@dataclass(frozen=True)
class Excerpt:
    """Lines of a note, counted from 1, both included; `cut` when more of what was asked for follows."""

    first: int
    last: int
    text: str
    heading: str = ""
    cut: bool = False


def section(outline: Outline, wanted: str) -> tuple[int, int, str]:
    """First and last line and the heading's text of `Heading`, `Heading#Sub` or `^block`.

    Raises NotFound, and Conflict if several fit.
    """
    if wanted.startswith("^"):
        place = outline.block(wanted)
        return place.start + 1, max(place.end, place.id_line + 1), ""
    place = outline.section(wanted)
    heading = next(heading for heading in outline.note.headings if heading.end_line == place.start)
    return heading.line, place.end, heading.text


def passage(lines: list[str], first: int, last: int, heading: str = "") -> Excerpt:
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
    return Excerpt(first, end, text, heading, end < last)


def evidence(view: NoteView, part: Excerpt) -> Passage:
    """The excerpt as a source that can be cited."""
    trail = (part.heading,) if part.heading else ()
    return Passage(part.text, part.first, part.last, trail, note=view.note, relevance=1.0)
