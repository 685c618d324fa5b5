"""All SQL. Two files: `index.db`, a cache of one vault, and `embeddings.db`, the vectors of all vaults."""

from tarsd.passage import Key, NoteRow
from tarsd.store.keywords import stem
from tarsd.store.rows import (
    MAX_K,
    NOT_READ,
    Batch,
    Counts,
    EmbedJob,
    FileRow,
    LinkRow,
    Prepared,
    ProblemRow,
    Role,
    Space,
)
from tarsd.store.schema import COLUMNS
from tarsd.store.store import Store

__all__ = [
    "COLUMNS", "MAX_K", "NOT_READ", "Batch", "Counts", "EmbedJob", "FileRow", "Key", "LinkRow",
    "NoteRow", "Prepared", "ProblemRow", "Role", "Space", "Store", "stem",
]  # fmt: skip
