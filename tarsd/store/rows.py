"""What the store takes in and gives out: plain frozen values, one per kind of row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tarsd.passage import Key, NoteRow, Passage
from tarsd.vault import FileInfo

Role = Literal["table", "model"]
MAX_K = 4096

NOT_READ = ""
"""The reason of a chunk in which a model has nothing to read, such as another script: no fault, and no problem."""

LinkTuple = tuple[int, str, str, str, str, bool]
"""A link's line, target, heading, block, text and embed: plain, for thousands go from process to process."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """What the store knows of one file, for comparing with the disk; `disk` is its spelling there, `stamp` as in scans.
    """

    collection: str
    path: str
    disk: str
    size: int
    mtime_ns: int
    id: int
    hash: str
    chunker: str
    state: str
    stamp: int = 0

    @property
    def key(self) -> Key:
        return (self.collection, self.path)


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One link of a note; `target_path` is None while it points at nothing."""

    source_path: str
    line: int
    target: str
    heading: str
    block: str
    text: str
    embed: bool
    target_path: str | None


@dataclass(frozen=True, slots=True)
class Space:
    """One set of comparable vectors: an embedder's fingerprint and what of the index it covers.

    `vectors` of `chunks` are there, and of these `talk_vectors` of `talk_chunks` are of conversations; `coverage` is
    the ratio of the others, notes and memory, and `talk_coverage` that of conversations (1.0 where there are none).
    """

    id: int
    name: str
    fingerprint: str
    dim: int
    role: Role
    state: Literal["building", "active"]
    vectors: int = 0
    chunks: int = 0
    talk_vectors: int = 0
    talk_chunks: int = 0

    @property
    def coverage(self) -> float:
        return _share(self.vectors - self.talk_vectors, self.chunks - self.talk_chunks)

    @property
    def talk_coverage(self) -> float:
        return _share(self.talk_vectors, self.talk_chunks)


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """Something about one file that a person may want to mend; line 0 means the file as a whole."""

    collection: str
    path: str
    line: int
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The index in numbers. `states` counts files per state, skipped ones included ("ok" are the notes).

    Of the `chunks`, `of_conversations` are those of session notes and summaries.
    """

    notes: int
    chunks: int
    of_conversations: int
    keywords: int
    failed: int
    not_read: int
    held_back: int
    states: Mapping[str, int]
    spaces: tuple[Space, ...]

    @property
    def of_notes(self) -> int:
        """The chunks that statistics are made of."""
        return self.chunks - self.of_conversations


class FactRows(NamedTuple):
    """What the tables of facts, list items and tasks hold of a note, without its id; plain, as `LinkTuple`."""

    facts: tuple[tuple[Any, ...], ...] = ()
    items: tuple[tuple[Any, ...], ...] = ()
    tasks: tuple[tuple[Any, ...], ...] = ()


NO_FACTS = FactRows()


@dataclass(frozen=True, slots=True)
class Prepared:
    """One note, read, parsed and cut: everything the store keeps of it, without vectors.

    `disk` is the file in the disk's own spelling, `hash` that of its bytes; `properties` is JSON; `words` is the text
    of the properties, found with the first passage.
    """

    note: NoteRow
    disk: str
    hash: str
    chunker: str
    properties: str
    words: str
    problems: tuple[tuple[int, str, str], ...]
    passages: tuple[Passage, ...]
    links: tuple[LinkTuple, ...]
    stamp: int = 0
    data: FactRows = NO_FACTS

    @property
    def key(self) -> Key:
        return self.note.key


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes of one transaction, performed in this order: deletions, moves, restats, states, marks, puts.

    A restat keeps of a file how it is spelled on disk, its size and its time. A move takes the row of an old key to a
    new one; a put of the new key belongs with it, since a title may come from the file's name. A mark says whether a
    note is local only.
    """

    put: Sequence[Prepared] = ()
    delete: Sequence[Key] = ()
    move: Sequence[tuple[Key, Key]] = ()
    restat: Sequence[FileInfo] = ()
    state: Sequence[tuple[Key, str]] = ()
    mark: Sequence[tuple[Key, bool]] = ()


class EmbedJob(NamedTuple):
    """A passage that wants a vector, and how often none could be made; of its note, title and aliases are known."""

    passage: Passage
    tries: int = 0


def _share(part: int, whole: int) -> float:
    return min(1.0, part / whole) if whole > 0 else 1.0
