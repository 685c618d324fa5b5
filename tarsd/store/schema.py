"""The tables of the two database files, and the format numbers that decide whether a file is ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tarsd.words import ASCII_SEPARATORS, CATEGORIES


class Tables(NamedTuple):
    """What a file holds. One of another format is made anew, unless `upgrades` leads from its format to this one.

    `kept` says that it is then moved aside and not removed.
    """

    sql: str
    format: int
    upgrades: Mapping[int, str]
    kept: bool


# What a row of the keyword index is made of. Another number has that leg alone made anew, from the stored passages.
KEYWORDS = 4
APPLICATION_ID = 0x74617273  # "tars"

COLUMNS = ("title", "aliases", "tags", "headings", "body", "anchors", "forms")
"""Columns of the keyword index, in the order in which weights are given.

`forms` are stems of the language that a note is in, and parts of names such as parseHeaderLine.
"""

# Text is folded before it comes here. Marks belong to the letters they sit on (Mn, Mc): without them Hindi and Tamil
# words fall apart.
TOKENIZER = f"porter unicode61 remove_diacritics 0 categories ''{CATEGORIES}'' separators ''{ASCII_SEPARATORS}''"

OF_CONVERSATION = "ours AND memory_type IN ('', 'episodic')"
"""What `NoteRow.of_conversation` says, as a condition on `files`."""

KEYWORD_TABLES = ("fts", "fts_conversations")
"""The words of notes, and those of conversations. FTS5's statistics are those of a whole table: in one of their own,
conversations change none of the notes'."""

HAVE_WORDS = " UNION ALL ".join(f"SELECT id FROM {table}_docsize" for table in KEYWORD_TABLES)
SURPLUS_WORDS = f"SELECT id FROM ({HAVE_WORDS}) WHERE id NOT IN (SELECT id FROM chunks)"


def _keywords(table: str) -> str:
    return f"""
CREATE VIRTUAL TABLE {table} USING fts5(
    {", ".join(COLUMNS)}, content='', contentless_delete=1, tokenize='{TOKENIZER}');
INSERT INTO {table}({table}, rank) VALUES('automerge', 8);
"""


TASK_COLUMNS = (
    "line", "status", "text", "heading", "parent", "due", "scheduled", "start", "created", "done", "cancelled",
    "priority", "recurrence", "id",
)  # fmt: skip
FACT_TABLES = ("facts", "items", "tasks")

# `said` is what a value is compared by: the day of a date, the name of a linked note, or the folded text.
_FACTS = f"""
CREATE TABLE facts(
    file_id INTEGER NOT NULL, seq INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, value NOT NULL,
    kind TEXT NOT NULL, said TEXT NOT NULL, number REAL, minutes REAL, line INTEGER NOT NULL, source INTEGER NOT NULL,
    item INTEGER NOT NULL, PRIMARY KEY(file_id, seq)) WITHOUT ROWID;
CREATE INDEX facts_key ON facts(key, said, number, minutes, kind);
CREATE TABLE items(
    file_id INTEGER NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, heading TEXT NOT NULL,
    PRIMARY KEY(file_id, line)) WITHOUT ROWID;
CREATE TABLE tasks(
    file_id INTEGER NOT NULL, {", ".join(TASK_COLUMNS)}, tags TEXT NOT NULL, fields TEXT NOT NULL,
    PRIMARY KEY(file_id, line)) WITHOUT ROWID;
"""

_INDEX = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files(
    id INTEGER PRIMARY KEY, collection TEXT NOT NULL, path TEXT NOT NULL, disk TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, hash TEXT NOT NULL, chunker TEXT NOT NULL,
    title TEXT NOT NULL, aliases TEXT NOT NULL, tags TEXT NOT NULL, properties TEXT NOT NULL, words TEXT NOT NULL,
    kind TEXT NOT NULL, memory_type TEXT NOT NULL, ours INTEGER NOT NULL, local_only INTEGER NOT NULL,
    problems TEXT NOT NULL, state TEXT NOT NULL, indexed_at REAL NOT NULL, anchors TEXT NOT NULL DEFAULT '',
    stamp INTEGER NOT NULL DEFAULT 0, language TEXT NOT NULL DEFAULT '', date TEXT NOT NULL DEFAULT '',
    UNIQUE(collection, path));
CREATE INDEX files_conversations ON files(id) WHERE {OF_CONVERSATION};
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL, seq INTEGER NOT NULL, heading TEXT NOT NULL,
    trail TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, hash BLOB NOT NULL,
    tokens INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX chunks_file ON chunks(file_id, seq);
CREATE INDEX chunks_hash ON chunks(hash);
CREATE TABLE names(key TEXT NOT NULL, file_id INTEGER NOT NULL, alias INTEGER NOT NULL);
CREATE INDEX names_key ON names(key);
CREATE INDEX names_file ON names(file_id);
CREATE TABLE links(
    file_id INTEGER NOT NULL, line INTEGER NOT NULL, target TEXT NOT NULL, target_key TEXT NOT NULL,
    heading TEXT NOT NULL, block TEXT NOT NULL, text TEXT NOT NULL, embed INTEGER NOT NULL, target_file INTEGER);
CREATE INDEX links_file ON links(file_id);
CREATE INDEX links_key ON links(target_key);
CREATE INDEX links_target ON links(target_file);
{_FACTS}CREATE TABLE dirty_keys(key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE dirty_files(file_id INTEGER PRIMARY KEY);
CREATE TABLE dirty_anchors(file_id INTEGER PRIMARY KEY);
CREATE TABLE spaces(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, fingerprint TEXT NOT NULL UNIQUE, dim INTEGER NOT NULL,
    role TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE failed(
    hash BLOB NOT NULL, fingerprint TEXT NOT NULL, tries INTEGER NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY(hash, fingerprint)) WITHOUT ROWID;
CREATE TABLE skipped(
    collection TEXT NOT NULL, path TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, hint TEXT NOT NULL,
    PRIMARY KEY(collection, path)) WITHOUT ROWID;
{"".join(map(_keywords, KEYWORD_TABLES))}
INSERT INTO meta VALUES('keywords', {KEYWORDS});
"""

# `used` is the day, counted from 1970, on which a vault last had a passage with this hash; 0 is unknown, and a
# negative number the day on which it was found that none had one for a long time.
_EMBEDDINGS = """
CREATE TABLE embedders(id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE);
CREATE TABLE vectors(
    id INTEGER PRIMARY KEY, embedder INTEGER NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL,
    used INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX vectors_key ON vectors(embedder, hash);
"""
_USED = "ALTER TABLE vectors ADD COLUMN used INTEGER NOT NULL DEFAULT 0"

INDEX = Tables(_INDEX, 5, {}, kept=False)
"""The index can be made anew from the notes, with the vectors of the cache: another format embeds nothing again."""

EMBEDDINGS = Tables(_EMBEDDINGS, 2, {1: _USED}, kept=True)
"""The cache costs hours to make: every older format has an upgrade."""


def vec_table(space_id: int, bits: int, virtual: bool) -> str:
    """The table of a space's codes: sqlite-vec's, or a plain one where the extension cannot be loaded."""
    if virtual:
        return f"CREATE VIRTUAL TABLE vec_{space_id} USING vec0(chunk_id INTEGER PRIMARY KEY, code bit[{bits}])"
    return f"CREATE TABLE vec_{space_id}(chunk_id INTEGER PRIMARY KEY, code BLOB NOT NULL)"


def vec_ids(space_id: int, virtual: bool) -> str:
    """A table that lists the chunk ids of a space, and what its id column is called."""
    return f"vec_{space_id}_rowids" if virtual else f"vec_{space_id}"
