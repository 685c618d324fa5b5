"""A passage as people and clients see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tarsd.passage import anchor
from tarsd.search import words
from tarsd.store import ChunkRow


@dataclass(frozen=True)
class Hit:
    """A passage of a note. Lines are the file's own, from 1; `score` orders one answer (0-1), `relevance` (0-1) means
    the same in every answer; `link` is how a note links to it; `why` gives the reasons, most telling first."""

    path: str
    title: str
    heading: str
    start_line: int
    end_line: int
    text: str
    score: float
    relevance: float
    why: tuple[str, ...]
    collection: str
    memory_type: str | None
    link: str
    chunk_id: int
    local_only: bool = False
    ours: bool = False

    def as_json(self) -> dict[str, Any]:
        """The hit as the socket sends it."""
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
            "memory_type": self.memory_type,
            "link": self.link,
        }


def searched_text(row: ChunkRow) -> str:
    """All that a passage can be found by but links and properties, folded for comparing with query words."""
    note = row.note
    return words.fold("\n".join((row.text, *row.trail, note.title, *note.aliases, *note.tags, note.path)))


def make_hit(row: ChunkRow, score: float, relevance: float, why: Sequence[str]) -> Hit:
    """The hit for a stored chunk."""
    note = row.note
    target = note.path.removesuffix(".md")
    link = f"{target}#{anchor(row.heading)}" if row.heading else target
    return Hit(
        note.path,
        note.title,
        row.heading,
        row.start_line,
        row.end_line,
        row.text,
        score,
        relevance,
        tuple(why),
        note.collection,
        note.memory_type or None,
        link,
        row.id,
        note.local_only,
        note.ours,
    )
