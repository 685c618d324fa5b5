"""What the index says of itself when it is asked whether it is whole. Only reads; repairs are `Store.check`'s."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, Literal

import apsw

from tarsd.store import schema
from tarsd.store.database import fetch, load_vec
from tarsd.store.rows import Space
from tarsd.store.store import Store
from tarsd.store.vectors import fits

_STEPS: Final = 20_000
"""Steps of SQLite's machine between two looks at the clock."""
_MOST_FAULTS: Final = 5

Gap = tuple[str, int]
"""What is wrong, in words that go on after a number ("passages have no words"), and the row where it is."""

_GAPS: Final = (
    ("passages without a note", "SELECT id FROM chunks WHERE file_id NOT IN (SELECT id FROM files)"),
    ("links without a note", "SELECT rowid FROM links WHERE file_id NOT IN (SELECT id FROM files)"),
    ("names without a note", "SELECT rowid FROM names WHERE file_id NOT IN (SELECT id FROM files)"),
    *(
        (f"{table} belong to no note", f"SELECT file_id FROM {table} WHERE file_id NOT IN (SELECT id FROM files)")
        for table in schema.FACT_TABLES
    ),
    (
        "notes without passages",
        "SELECT id FROM files WHERE state = 'ok' AND hash != '' AND id NOT IN (SELECT file_id FROM chunks)",
    ),
    ("passages without words", f"SELECT id FROM chunks WHERE id NOT IN ({schema.HAVE_WORDS})"),
    ("words without a passage", schema.SURPLUS_WORDS),
)


@dataclass(frozen=True)
class SqliteFeatures:
    """The database engine as it is installed here: `fts5` and `vec` are "" where they do not work."""

    sqlite: str
    fts5: str
    vec: str


def engine() -> SqliteFeatures:
    """Open an empty database in memory, and have it look for a word and for a vector."""
    db = apsw.Connection(":memory:")
    try:
        return SqliteFeatures(apsw.sqlite_lib_version(), _keywords(db), _vectors(db))
    finally:
        db.close()


def _keywords(db: apsw.Connection) -> str:
    try:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(body); INSERT INTO words VALUES ('a word')")
        return "fts5" if db.execute("SELECT count(*) FROM words WHERE words MATCH 'word'").get == 1 else ""
    except apsw.Error:
        return ""


def _vectors(db: apsw.Connection) -> str:
    if not load_vec(db):
        return ""
    try:
        db.execute("CREATE VIRTUAL TABLE near USING vec0(id INTEGER PRIMARY KEY, code bit[8])")
        db.execute("INSERT INTO near(id, code) VALUES (1, vec_bit(x'0f')), (2, vec_bit(x'f0'))")
        found = fetch(db, "SELECT id FROM near WHERE code MATCH vec_bit(x'f1') AND k = 1")
        return str(db.execute("SELECT vec_version()").get) if found == [(2,)] else ""
    except apsw.Error:
        return ""


def gaps(store: Store) -> set[Gap]:
    """Where the legs of the index differ: rows of one that have nothing to go with in another.

    What a thread is about to add is a gap as well: only what is still there at a second look is a fault.
    """
    found: set[Gap] = set()
    with store.database.reader() as db:
        db.execute("BEGIN")  # one state of the index for all of these
        try:
            for what, sql in _GAPS:
                found |= {(what, row[0]) for row in fetch(db, sql)}
            for space in store.vectors.spaces():
                found |= _gaps_of_space(db, space)
        finally:
            db.execute("COMMIT")
    return found


def _gaps_of_space(db: apsw.Connection, space: Space) -> set[Gap]:
    """The vectors are read after the index: they are written before it."""
    codes = f"SELECT chunk_id FROM vec_{space.id}"
    wanted = f"JOIN emb.vectors v ON v.embedder = ?1 AND v.hash = c.hash AND {fits(space.dim)}"
    embedder = db.execute("SELECT coalesce(max(id), -1) FROM emb.embedders WHERE fingerprint = ?", (space.fingerprint,))
    number = (embedder.get,)
    queries = (
        (f"vectors of {space.name} without a passage", f"{codes} EXCEPT SELECT id FROM chunks", ()),
        (
            f"vectors of {space.name} missing from the cache",
            f"{codes} INTERSECT SELECT id FROM chunks EXCEPT SELECT c.id FROM chunks c {wanted}",
            number,
        ),
        (f"passages without a vector of {space.name}", f"SELECT c.id FROM chunks c {wanted} EXCEPT {codes}", number),
    )
    return {(what, row[0]) for what, sql, values in queries for row in fetch(db, sql, values)}


def malformed(store: Store, which: Literal["main", "emb"], seconds: float) -> list[str] | None:
    """What SQLite's own check finds in the index (main) or the cache of vectors (emb); None if that takes too long."""
    end = time.monotonic() + seconds
    with store.database.reader() as db:
        db.execute("BEGIN")  # one state of the index for both
        db.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        try:
            # FTS5 keeps what it knows of its segments from one search to the next, and only a search looks whether it
            # is still true: checked by itself, segments that were merged since count as corruption
            for table in schema.KEYWORD_TABLES:
                fetch(db, f"SELECT rowid FROM {table} WHERE {table} MATCH 'x' LIMIT 1")
            said = [str(row[0]) for row in db.execute(f"PRAGMA {which}.quick_check({_MOST_FAULTS})")]
        except apsw.InterruptError:
            return None
        finally:
            db.set_progress_handler(None)
            db.execute("COMMIT")
    return [] if said == ["ok"] else said
