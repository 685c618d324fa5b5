"""The vocabulary of the keyword index: how many chunks hold a word, which words begin alike, whose chunk is whose."""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw

from tarsd.store.database import fetch
from tarsd.store.reading import Reading

_STEMMER = "porter"


def frequencies(store: Reading, expressions: Iterable[str]) -> dict[str, int]:
    """How many chunks match each of these FTS5 expressions."""
    sql = "SELECT count(*) FROM fts WHERE fts MATCH ?"
    with store.reader() as db:
        return {one: int(db.execute(sql, (one,)).get) for one in dict.fromkeys(expressions)}


def words_from(store: Reading, start: str, limit: int) -> list[str]:
    """Indexed words (stemmed, folded) that begin with `start`, in alphabetical order, at most `limit`."""
    with store.reader() as db:
        _vocabulary(db)
        sql = "SELECT term FROM temp.vocabulary WHERE term >= ?1 AND term < ?2 LIMIT ?3"
        return [row[0] for row in fetch(db, sql, (start, start + "\U0010ffff", limit))]


def _vocabulary(db: apsw.Connection) -> None:
    if db.execute("SELECT 1 FROM temp.sqlite_schema WHERE name = 'vocabulary'").get is None:
        # The table is virtual and temporary, but SQLite counts its making as a write.
        db.execute(
            "PRAGMA query_only = 0; CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'fts', 'row');"
            "PRAGMA query_only = 1"
        )


def stems(store: Reading, words: Iterable[str]) -> dict[str, str]:
    """The form under which the index keeps each word; words without letters or digits are left out."""
    found: dict[str, str] = {}
    with store.reader() as db:
        stemmer = db.fts5_tokenizer(_STEMMER, ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"])
        for word in words:
            tokens = stemmer(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
            if tokens:
                found[word] = str(tokens[0][0])  # type: ignore[index]
    return found


def files_of(store: Reading, chunk_ids: Iterable[int]) -> dict[int, int]:
    """The file id of each chunk that is still there."""
    sql = "SELECT c.id, c.file_id FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value"
    with store.reader() as db:
        return dict(fetch(db, sql, (json.dumps([int(one) for one in chunk_ids]),)))


def sizes(store: Reading, file_ids: Iterable[int]) -> dict[int, int]:
    """How many chunks each of these notes has."""
    sql = "SELECT j.value, (SELECT max(seq) + 1 FROM chunks WHERE file_id = j.value) FROM json_each(?) j"
    with store.reader() as db:
        return {file_id: count or 0 for file_id, count in fetch(db, sql, (json.dumps([int(i) for i in file_ids]),))}


def sample(store: Reading, count: int) -> list[int]:
    """Up to `count` chunk ids, evenly spread over the index; the same ones while it does not change."""
    with store.reader() as db:
        first, last = fetch(db, "SELECT coalesce(min(id), 0), coalesce(max(id), -1) FROM chunks")[0]
        step = max(1, (last - first + 1) // count)
        points = json.dumps(list(range(first, last + 1, step))[:count])
        sql = "SELECT (SELECT min(id) FROM chunks WHERE id >= j.value) FROM json_each(?) j"
        return list(dict.fromkeys(row[0] for row in fetch(db, sql, (points,))))
