"""What the store takes in and gives out: plain frozen values, one per kind of row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tarsd.passage import Key, NoteRow

Role = Literal["table", "model"]
MAX_K = 4096

NOT_READ = ""
"""The reason of a chunk in which a model has nothing to read, such as another script: no fault, and no problem."""

# One chunk as it crosses process borders: seq, heading, trail (JSON), first line, last line, text, hash, tokens.
ChunkTuple = tuple[int, str, str, int, int, str, bytes, int]
# One link: line, target, heading, block, text, embed.
LinkTuple = tuple[int, str, str, str, str, bool]


@dataclass(frozen=True, slots=True)
class FileRow:
    """What the store knows of one file, for comparing with the disk."""

    id: int
    collection: str
    path: str
    disk: str
    size: int
    mtime_ns: int
    hash: str
    chunker: str
    local_only: bool
    state: str
    indexed_at: float

    @property
    def key(self) -> Key:
        return (self.collection, self.path)


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One chunk with its note; lines are the file's own, from 1."""

    id: int
    note: NoteRow
    seq: int
    heading: str
    trail: tuple[str, ...]
    start_line: int
    end_line: int
    text: str
    tokens: int


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

    `vectors` of `chunks` are there; `coverage` is their ratio (1.0 for an empty index).
    """

    id: int
    name: str
    fingerprint: str
    dim: int
    role: Role
    state: Literal["building", "active"]
    vectors: int = 0
    chunks: int = 0

    @property
    def coverage(self) -> float:
        return min(1.0, self.vectors / self.chunks) if self.chunks else 1.0


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
    """The index in numbers. `states` counts files per state, skipped ones included ("ok" are the notes)."""

    notes: int
    chunks: int
    keywords: int
    failed: int
    not_read: int
    held_back: int
    states: Mapping[str, int]
    spaces: tuple[Space, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """One note, read, parsed and cut: everything the store keeps of it, without vectors.

    `properties` is JSON; `words` is the text of the properties, found with the first chunk.
    """

    collection: str
    path: str
    disk: str
    size: int
    mtime_ns: int
    hash: str
    chunker: str
    kind: str
    title: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    properties: str
    words: str
    memory_type: str
    ours: bool
    local_only: bool
    problems: tuple[tuple[int, str, str], ...]
    chunks: tuple[ChunkTuple, ...]
    links: tuple[LinkTuple, ...]
    state: str = "ok"

    @property
    def key(self) -> Key:
        return (self.collection, self.path)


@dataclass(frozen=True, slots=True)
class Stat:
    """A file with known content whose size, times or spelling on disk changed."""

    collection: str
    path: str
    disk: str
    size: int
    mtime_ns: int

    @property
    def key(self) -> Key:
        return (self.collection, self.path)


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes of one transaction, performed in this order: deletions, moves, restats, states, puts.

    A move takes the row of an old key to a new one; a put of the new key belongs with it, since a title may
    come from the file's name.
    """

    put: Sequence[Prepared] = ()
    delete: Sequence[Key] = ()
    move: Sequence[tuple[Key, Key]] = ()
    restat: Sequence[Stat] = ()
    state: Sequence[tuple[Key, str]] = ()


@dataclass(frozen=True, slots=True)
class Pending:
    """A chunk that wants a vector, with what its embedding input is made of."""

    hash: bytes
    path: str
    title: str
    aliases: tuple[str, ...]
    trail: tuple[str, ...]
    text: str
    tokens: int
    tries: int


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A file that the last scan saw and left out, with the reason."""

    collection: str
    path: str
    state: str
    reason: str
    hint: str


@dataclass(frozen=True)
class Dump:
    """The index in canonical form: no row ids, everything sorted; two equal indexes have equal dumps."""

    files: list[tuple[Any, ...]] = field(default_factory=list)
    chunks: list[tuple[Any, ...]] = field(default_factory=list)
    links: list[tuple[Any, ...]] = field(default_factory=list)
    keywords: list[tuple[Any, ...]] = field(default_factory=list)
    vectors: list[tuple[Any, ...]] = field(default_factory=list)
