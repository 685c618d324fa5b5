"""All SQL. Two files: `index.db`, a cache of one vault, and `embeddings.db`, the vectors of all vaults."""

from tarsd.passage import Key, NoteRow
from tarsd.store.rows import (
    MAX_K,
    NOT_READ,
    Batch,
    ChunkRow,
    ChunkTuple,
    Counts,
    Dump,
    FileRow,
    LinkRow,
    LinkTuple,
    Pending,
    Prepared,
    ProblemRow,
    Role,
    SkippedRow,
    Space,
    Stat,
)
from tarsd.store.schema import COLUMNS
from tarsd.store.text import is_spaceless, segment
from tarsd.store.upkeep import Store

__all__ = [
    "COLUMNS",
    "MAX_K",
    "NOT_READ",
    "Batch",
    "ChunkRow",
    "ChunkTuple",
    "Counts",
    "Dump",
    "FileRow",
    "Key",
    "LinkRow",
    "LinkTuple",
    "NoteRow",
    "Pending",
    "Prepared",
    "ProblemRow",
    "Role",
    "SkippedRow",
    "Space",
    "Stat",
    "Store",
    "is_spaceless",
    "segment",
]
