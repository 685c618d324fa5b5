"""The whole index in canonical form, so that two of them can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tarsd.store import Store, schema


@dataclass(frozen=True)
class Dump:
    """An index without row ids, everything sorted; two equal indexes have equal dumps."""

    files: list[tuple[Any, ...]]
    chunks: list[tuple[Any, ...]]
    links: list[tuple[Any, ...]]
    facts: list[tuple[Any, ...]]
    keywords: list[tuple[Any, ...]]
    vectors: list[tuple[Any, ...]]


def dump(store: Store) -> Dump:
    """Reads everything. Raises AssertionError where the codes in memory differ from those of the file."""
    with store.database.reader() as db:
        files = db.execute(
            "SELECT collection, path, hash, chunker, title, aliases, tags, properties, words, kind, memory_type, "
            "ours, local_only, problems, state, anchors FROM files ORDER BY 1, 2"
        ).fetchall()
        chunk = "f.collection, f.path, c.seq"
        chunks = db.execute(
            f"SELECT {chunk}, c.heading, c.trail, c.start_line, c.end_line, c.text, c.hash, c.tokens "
            "FROM chunks c LEFT JOIN files f ON f.id = c.file_id ORDER BY 1, 2, 3"
        ).fetchall()
        links = db.execute(
            "SELECT f.collection, f.path, l.line, l.target, l.heading, l.block, l.text, l.embed, t.path "
            "FROM links l LEFT JOIN files f ON f.id = l.file_id LEFT JOIN files t ON t.id = l.target_file "
            "ORDER BY 1, 2, 3, 4, 5, 6, 7"
        ).fetchall()
        files_by_id = {row[0]: row[1:] for row in db.execute("SELECT id, collection, path FROM files")}
        facts: list[tuple[Any, ...]] = []
        for table in schema.FACT_TABLES:
            rows = db.execute(f"SELECT * FROM {table}").fetchall()
            facts += sorted((table, *files_by_id.get(row[0], ("", "")), *map(str, row[1:])) for row in rows)
        db.execute("PRAGMA query_only = 0")
        keywords = []
        for table in schema.KEYWORD_TABLES:
            terms = f"temp.terms_{table}"
            db.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS {terms} USING fts5vocab(main, {table}, 'instance')")
            keywords += db.execute(
                f"SELECT '{table}', t.term, t.col, t.offset, {chunk} FROM {terms} t LEFT JOIN chunks c ON c.id = t.doc "
                "LEFT JOIN files f ON f.id = c.file_id ORDER BY 2, 5, 6, 7, 3, 4"
            ).fetchall()
        db.execute("PRAGMA query_only = 1")
        vectors = []
        for space in sorted(store.vectors.spaces(), key=lambda space: space.fingerprint):
            vectors += db.execute(
                f"SELECT ?, {chunk}, v.code FROM vec_{space.id} v LEFT JOIN chunks c ON c.id = v.chunk_id "
                "LEFT JOIN files f ON f.id = c.file_id ORDER BY 2, 3, 4",
                (space.fingerprint,),
            ).fetchall()
    _check_resident(store)
    return Dump(files, chunks, links, facts, keywords, vectors)


def _check_resident(store: Store) -> None:
    for space_id, resident in store.vectors._codes.items():
        with store.database.reader() as db:
            ids = [row[0] for row in db.execute(f"SELECT chunk_id FROM vec_{space_id} ORDER BY chunk_id")]
        held = sorted(id for codes in resident for id in codes.ids().tolist())
        assert held == ids, f"resident codes of space {space_id} differ from its table"
