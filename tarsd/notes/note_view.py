"""A note, or a file that is none, as readers and tools are given one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tarsd.parse import Note, source_lines
from tarsd.passage import NoteRow
from tarsd.writing import Loaded

Json = dict[str, Any]


@dataclass(frozen=True)
class NoteView:
    """A note as it is on disk now: its path, its kind, and its current text."""

    note: NoteRow
    loaded: Loaded

    @property
    def path(self) -> str:
        return self.note.path

    @property
    def title(self) -> str:
        return self.note.title

    @property
    def local_only(self) -> bool:
        return self.note.local_only

    @property
    def ours(self) -> bool:
        """Whether it is a conversation with tarsd, or memory."""
        return self.note.ours

    @property
    def collection(self) -> str:
        return self.note.collection

    def lines(self, note: Note) -> list[str]:
        """The lines of `note`, which is this text parsed, with their own numbers; a `.base` is read as its source."""
        source = source_lines(self.loaded.text)
        if note.path.lower().endswith(".base"):
            return source
        body = note.body_line - 1
        return [*source[:body], *note.lines[body:]]


def entry(row: NoteRow) -> Json:
    """A note as it stands in a list."""
    return {
        "path": row.path,
        "collection": row.collection,
        "title": row.title,
        "aliases": list(row.aliases),
        "tags": list(row.tags),
        "modified": row.mtime_ns / 1e9,
    }


def told(note: Note | NoteRow, path: str, text: str, hash: str, **more: str | float) -> Json:
    """A note, or a file that is none: then the text is Markdown, with each page under a heading."""
    return {
        "path": path,
        "title": note.title,
        "aliases": list(note.aliases),
        "tags": list(note.tags),
        "properties": note.properties if isinstance(note, Note) else {},
        "text": text,
        "hash": hash,
    } | more
