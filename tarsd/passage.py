"""A passage of a note: one type all the way from the cutter to the citation.

The cutter gives text, lines, heading trail and hash; the index adds the note and a number; a search adds score,
relevance and reasons; a turn adds the number by which an answer cites it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

from tarsd.parse.inline import WIKILINK

_NOT_IN_LINKS = re.compile(r"[:#|^\\\[\]]|%%")

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
    `local_only`: nothing of it may leave this machine.
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

    @property
    def key(self) -> Key:
        return (self.collection, self.path)

    @property
    def origin(self) -> Origin:
        """As that of a passage, without its hash."""
        return Origin(self.collection, self.path)


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a note; `start_line` and `end_line` are the file's own, from 1, both included.

    `trail` are the headings above it, outermost first; `seq` counts the passages of a note from 0; `hash` is
    BLAKE2b-16 over explicit title, aliases, trail and text, so that renaming the file changes none; `tokens` are
    MiniLM's. `id` is the index's number, 0 outside of it. `score` (0-1) orders one answer, `relevance` (0-1) means the
    same in every answer, `why` gives the reasons, most telling first. `number` is the citation `[n]`, 0 while it has
    none; `attached` notes were chosen by the person and are relevant whatever their figure says.
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
        target = self.path.removesuffix(".md")
        return f"{target}#{anchor(self.heading)}" if self.heading else target

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
            "link": f"[[{self.link}]]",
            "start_line": self.start_line,
            "end_line": self.end_line,
            "relevance": self.relevance,
            "collection": self.collection,
            "attached": self.attached,
        }


_VALUES = attrgetter(*(field.name for field in fields(Passage)))


def anchor(heading: str) -> str:
    """The heading as Obsidian writes it behind the `#` of a link."""
    return " ".join(_NOT_IN_LINKS.sub(" ", WIKILINK.sub(_words, heading)).split())


def _words(link: re.Match[str]) -> str:
    return link["target"] if link["text"] is None else link["text"]
