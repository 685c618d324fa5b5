"""All SQL. Two files: `index.db`, a cache of one vault, and `embeddings.db`, the vectors of all vaults."""

from tarsd.passage import Key, NoteRow
from tarsd.store.facts import Facts, Name, rows_of
from tarsd.store.keywords import stem
from tarsd.store.rows import (
    MAX_K,
    NOT_READ,
    Batch,
    Counts,
    EmbedJob,
    FactRows,
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
    "COLUMNS", "MAX_K", "NOT_READ", "Batch", "Counts", "EmbedJob", "FactRows", "Facts", "FileRow", "Key", "LinkRow",
    "Name", "NoteRow", "Prepared", "ProblemRow", "Role", "Space", "Store", "rows_of", "stem",
]  # fmt: skip
