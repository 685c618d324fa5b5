"""A passage of a note: one type all the way from the cutter to the citation.

The cutter gives text, lines, heading trail and hash; the index adds the note and a number; a search adds score,
relevance and reasons; a turn adds the number by which an answer cites it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from tarsd.parse.inline import WIKILINK, name_and_place
from tarsd.vault.names import KINDS

_NOT_IN_LINKS = re.compile(r"[:#|^\\\[\]]|%%")
_NO_WIKILINK = re.compile(r"[#|^\\\[\]%`$<\n]|\A\s|\s\Z|\s/|/\s|\s\s|\.md\Z", re.IGNORECASE)
_MARKUP = re.compile(r"[\\`*_\[\]<>#^|~$]+|%%+|==+")
_ENCODED = re.compile(r"!?\[[^\[\]\n]*\]\(\s*(<[^<>\n]+>|[^\s()<>]+)\s*\)")
_OUTSIDE = re.compile(r"<?(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)

Key = tuple[str, str]
"""(collection, path): the vault itself is the collection "", paths are NFC with "/"."""


class Origin(NamedTuple):
    """A note that something was made from: where it lay then, and the hash of the passage of it, hexadecimal or ""."""

    collection: str
    path: str
    hash: str = ""


@dataclass(frozen=True, slots=True)
class NoteRow:
    """One note without its text, as the index knows it; `id` is 0 where it comes from the file itself.

    `memory_type` is semantic, procedural, episodic or ""; `ours`: tarsd wrote it (a conversation, or memory);
    `local_only`: nothing of it may leave this machine; `language` is ISO 639-1, "" where it cannot be told. `date` is
    the day it is of, as YYYY-MM-DD, "" where neither properties nor name say one.
    """

    id: int = 0
    collection: str = ""
    path: str = ""
    title: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    kind: str = ""
    memory_type: str = ""
    ours: bool = False
    local_only: bool = False
    mtime_ns: int = 0
    size: int = 0
    state: str = "ok"
    language: str = ""
    date: str = ""

    @property
    def key(self) -> Key:
        return (self.collection, self.path)

    @property
    def of_conversation(self) -> bool:
        """Whether it is a session note or a summary: found, but in no statistic, for it repeats what was asked."""
        return self.ours and self.memory_type in ("", "episodic")

    @property
    def of_file(self) -> bool:
        """Whether it is no note but a file that was read, such as a PDF: in an index of its own."""
        return self.kind not in ("", *KINDS.values())

    @property
    def origin(self) -> Origin:
        """As that of a passage, without its hash."""
        return Origin(self.collection, self.path)


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a note; `start_line` and `end_line` are the file's own, from 1, both included.

    `trail` are the headings above it, outermost first; `seq` counts the passages of a note from 0; `hash` is
    BLAKE2b-16 over explicit title, aliases, trail and text, so that renaming the file changes none; `tokens` are
    those of `chunk.count_tokens`. `id` is the index's number, 0 outside of it. `score` (0-1) orders one answer,
    `relevance` (0-1) means the same in every answer, `why` gives the reasons, most telling first. `number` is the
    citation `[n]`, 0 while it has none; `attached` notes were chosen by the person and are relevant whatever their
    figure says. `place` is what stands behind the `#` of a link to it where the heading leads to a twin of it:
    headings joined by `#`, a `^block`, or "".
    """

    text: str
    start_line: int
    end_line: int
    trail: tuple[str, ...] = ()
    seq: int = 0
    tokens: int = 0
    hash: bytes = b""
    note: NoteRow = NoteRow()
    id: int = 0
    score: float = 0.0
    relevance: float = 0.0
    why: tuple[str, ...] = ()
    number: int = 0
    attached: bool = False
    place: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Passages cross from process to process by thousands: a dataclass's own way takes twice as long."""
        return Passage, _VALUES(self)

    @property
    def heading(self) -> str:
        """The innermost heading above the passage, "" without one."""
        return self.trail[-1] if self.trail else ""

    @property
    def path(self) -> str:
        return self.note.path

    @property
    def title(self) -> str:
        return self.note.title

    @property
    def collection(self) -> str:
        return self.note.collection

    @property
    def local_only(self) -> bool:
        return self.note.local_only

    @property
    def origin(self) -> Origin:
        """What is kept of it with everything that is made from it."""
        return Origin(self.collection, self.path, self.hash.hex())

    @property
    def link(self) -> str:
        """How a note links to it, without the brackets: `Note#Heading`."""
        target, place = self.path.removesuffix(".md"), self._place
        return f"{target}#{place}" if place else target

    @property
    def full_link(self) -> str:
        """The whole link as it stands in a note, brackets included."""
        return link_to(self.path, self._place)

    @property
    def _place(self) -> str:
        return anchor(self.heading) if self.place is None else self.place

    def as_hit(self) -> dict[str, Any]:
        """The passage as a search result on the socket."""
        return {
            "path": self.path,
            "title": self.title,
            "heading": self.heading,
            "start_line": self.start_line,
            "end_line": self.end_line,
            "text": self.text,
            "score": round(self.score, 4),
            "relevance": round(self.relevance, 3),
            "why": list(self.why),
            "collection": self.collection,
            "memory_type": self.note.memory_type or None,
            "link": self.link,
        }

    def as_source(self) -> dict[str, Any]:
        """The passage as the source of an answer, in events and replies; the text itself stays in the vault."""
        return {
            "n": self.number,
            "path": self.path,
            "title": self.title,
            "heading": self.heading,
            "link": self.full_link,
            "start_line": self.start_line,
            "end_line": self.end_line,
            "relevance": self.relevance,
            "collection": self.collection,
            "attached": self.attached,
        }


_VALUES = attrgetter(*(field.name for field in fields(Passage)))


def link_to(path: str, place: str = "") -> str:
    """A link to a note, or to a place in it, an `anchor`, several joined by `#`, or a `^block`, that Obsidian opens.

    `[[Note#Heading]]`; where the path holds what no wikilink can, a Markdown link with the path encoded.
    """
    target = path.removesuffix(".md")
    if not _NO_WIKILINK.search(target):
        return f"[[{target}#{place}]]" if place else f"[[{target}]]"
    name = " ".join(_MARKUP.sub(" ", target.rpartition("/")[2]).split()) or "note"
    return f"[{name}]({quote(path, safe='/')}{'#' + quote(place, safe='^#') if place else ''})"


class HeadingPlaces:
    """What leads to each of a note's headings (level, text) where its text alone leads to a twin of it.

    Made once for a note, in time that grows with the number of its headings.
    """

    def __init__(self, headings: Sequence[tuple[int, str]]) -> None:
        self._anchors = [anchor(text) for _, text in headings]
        self._levels = [level for level, _ in headings]
        self._names = [name.casefold() for name in self._anchors]
        self._first: dict[str, int] = {}
        self._deeper: dict[tuple[str, int], list[int]] = {}  # by name and level, the headings below that level
        self._parents: list[int] = []
        trail: list[int] = []
        for at, (level, name) in enumerate(zip(self._levels, self._names, strict=True)):
            self._first.setdefault(name, at)
            for above in range(level):
                self._deeper.setdefault((name, above), []).append(at)
            while trail and self._levels[trail[-1]] >= level:
                trail.pop()
            self._parents.append(trail[-1] if trail else -1)
            trail.append(at)

    def place(self, index: int, blocks: Sequence[str] = ()) -> str | None:
        """What stands behind the `#` of a link to this heading; None if its text alone leads to it.

        The fewest headings above it that do, else one of the `blocks` below it, else "".
        """
        if not self._names[index] or self._first[self._names[index]] == index:
            return None
        path, above = [index], self._parents[index]
        while above >= 0:
            path.insert(0, above)
            if all(self._names[at] for at in path) and self._led_to(path) == index:
                return "#".join(self._anchors[at] for at in path)
            above = self._parents[above]
        return f"^{blocks[0]}" if blocks else ""

    def _led_to(self, path: Sequence[int]) -> int | None:
        """The heading that Obsidian finds: each part in turn, the first of its name that is deeper."""
        found, level = -1, 0
        for part in path:
            places = self._deeper.get((self._names[part], level), [])
            next_one = bisect_right(places, found)
            if next_one == len(places):
                return None
            found = places[next_one]
            level = self._levels[found]
        return found


def read_link(link: str) -> tuple[str, str] | None:
    """(note, place): what a link leads to, the inverse of `link_to`; the note without ".md". None for no such link."""
    link = link.strip()
    if wiki := WIKILINK.fullmatch(link):
        return name_and_place(wiki["target"])
    encoded = _ENCODED.fullmatch(link)
    if encoded is None or _OUTSIDE.match(encoded[1]):
        return None
    path, _, place = encoded[1].strip("<>").partition("#")
    return unquote(path).removesuffix(".md"), unquote(place)


def anchor(heading: str) -> str:
    """The heading as Obsidian writes it behind the `#` of a link."""
    return " ".join(_NOT_IN_LINKS.sub(" ", WIKILINK.sub(_words, heading)).split())


def _words(link: re.Match[str]) -> str:
    return link["target"] if link["text"] is None else link["text"]
