"""The keyword index: rows of words for each passage, lists of passages for an expression, and its vocabulary."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from tarsd.store import schema
from tarsd.store.database import Database, fetch, listed
from tarsd.words import ASCII_SEPARATORS, CATEGORIES, index_text, marks, parts_of_names, segment, stems_of_text

_STEMMER = "porter"
# Of a note's names, what goes into the row of every passage.
_TAGS = 64
_ALIASES = 32
_NAME_CHARS = 120
_REPEATED_CHARS = 800
_MERGED_PAGES = 500
_LISTED = 2_000
_MERGES = 40


@functools.cache
def _porter() -> apsw.FTS5Tokenizer:
    options = ["unicode61", "remove_diacritics", "0", "categories", CATEGORIES, "separators", ASCII_SEPARATORS]
    return apsw.Connection(":memory:").fts5_tokenizer(_STEMMER, options)


_stemming = threading.Lock()


@functools.lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The form in which the index stores a folded word; "" if it is not a word."""
    with _stemming:
        tokens = _porter()(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
    return str(tokens[0][0]) if tokens else ""  # type: ignore[index]


class KeywordSearch:
    """FTS5 over all passages; a row has the id of its passage. `db` is the connection of a running transaction.

    Notes are one table and `conversations` another; what is asked, is asked of one of them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def fts(
        self,
        match: str,
        weights: Sequence[float],
        limit: int,
        files: Collection[int] | None = None,
        *,
        conversations: bool = False,
    ) -> list[tuple[int, float]]:
        """(chunk id, BM25 score > 0), best first, for an FTS5 expression.

        `weights` go with `schema.COLUMNS` (title, aliases, tags, headings, body, anchors, forms); `files` restricts the
        answer to chunks of these file ids. An expression that FTS5 cannot read raises StoreError.
        """
        rank = f"bm25({', '.join(format(float(weight), 'g') for weight in weights)})"
        table = schema.KEYWORD_TABLES[conversations]
        sql = f"SELECT rowid, -rank FROM {table} WHERE {table} MATCH ? AND rank MATCH ?"
        values: list[str | int] = [match, rank]
        if files is not None:
            sql += " AND rowid IN (SELECT c.id FROM json_each(?) j JOIN chunks c ON c.file_id = j.value)"
            values.append(listed(files))
        with self._database.reader() as db:
            return fetch(db, f"{sql} ORDER BY rank LIMIT ?", (*values, limit))

    def holding(self, expression: str, chunk_ids: Collection[int], *, conversations: bool = False) -> set[int]:
        """Those of some passages that match an FTS5 expression."""
        table = schema.KEYWORD_TABLES[conversations]
        sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ?"
        with self._database.reader() as db:
            # To list what matches is quicker than to ask of each passage, unless very many match.
            found = fetch(db, f"{sql} LIMIT ?", (expression, _LISTED))
            if len(found) == _LISTED:
                sql = f"{sql} AND rowid IN (SELECT value FROM json_each(?))"
                found = fetch(db, sql, (expression, listed(chunk_ids)))
        return {row[0] for row in found}.intersection(chunk_ids)

    # Vocabulary

    def frequencies(self, expressions: Iterable[str], *, conversations: bool = False) -> dict[str, int]:
        """How many chunks match each of these FTS5 expressions."""
        table = schema.KEYWORD_TABLES[conversations]
        sql = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"
        with self._database.reader() as db:
            return {match: int(db.execute(sql, (match,)).get) for match in dict.fromkeys(expressions)}

    def words_from(self, start: str, limit: int) -> list[str]:
        """Words of notes (stemmed, folded) that begin with `start`, in alphabetical order, at most `limit`."""
        with self._database.reader() as db:
            if db.execute("SELECT 1 FROM temp.sqlite_schema WHERE name = 'vocabulary'").get is None:
                # The table is virtual and temporary, but SQLite counts its making as a write.
                db.execute(
                    "PRAGMA query_only = 0; CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'fts', 'row');"
                    "PRAGMA query_only = 1"
                )
            sql = "SELECT term FROM temp.vocabulary WHERE term >= ?1 AND term < ?2 LIMIT ?3"
            return [row[0] for row in fetch(db, sql, (start, start + "\U0010ffff", limit))]

    def languages(self) -> list[str]:
        """The languages (ISO 639-1) of which the index keeps stems of notes."""
        return [language for language, mark in marks().items() if self.words_from(mark, 1)]

    # Within a transaction

    def add(self, db: apsw.Connection, file_id: int, chunk_ids: Iterable[int]) -> None:
        """Rows for stored passages of one note."""
        names = (
            "SELECT path, title, aliases, tags, words, anchors, language, "
            f"{schema.OF_CONVERSATION} FROM files WHERE id = ?"
        )
        texts = "SELECT c.id, c.seq, c.trail, c.text FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value"
        for path, title, aliases, tags, words, anchors, language, conversation in fetch(db, names, (file_id,)):
            chunks = fetch(db, texts, (listed(chunk_ids),))
            table = schema.KEYWORD_TABLES[conversation]
            db.executemany(
                f"INSERT INTO {table}(rowid, {', '.join(schema.COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                _rows(path, title, json.loads(aliases), json.loads(tags), words, anchors, language, chunks),
            )

    def drop(self, db: apsw.Connection, chunk_ids: Iterable[int]) -> None:
        """Remove the rows of passages."""
        ids = [(chunk_id,) for chunk_id in chunk_ids]
        for table in schema.KEYWORD_TABLES:
            db.executemany(f"DELETE FROM {table} WHERE rowid = ?", ids)

    def rewrite_first(self, db: apsw.Connection, file_id: int) -> None:
        """Write the row of a note's first passage again; it holds the names that other notes use for it."""
        sql = "SELECT id FROM chunks WHERE file_id = ? AND seq = 0"
        first = [row[0] for row in fetch(db, sql, (file_id,))]
        self.drop(db, first)
        self.add(db, file_id, first)

    # Health

    def check(self) -> str:
        """Add and remove rows until there is one for each passage; a sentence about it, "" where nothing was wrong."""
        if self._database.meta("keywords") != schema.KEYWORDS:
            self.rebuild()
            return "The keyword index is from another version and is being rebuilt."
        with self._database.write() as db:
            surplus = fetch(db, schema.SURPLUS_WORDS)
            self.drop(db, (row[0] for row in surplus))
            lacking = self._fill(db, f"WHERE id NOT IN ({schema.HAVE_WORDS})")
        if not lacking and not surplus:
            return ""
        return f"The keyword index was wrong: {lacking} passages added, {len(surplus)} removed."

    def rebuild(self) -> None:
        """Rebuild the keyword index from the stored passages."""
        with self._database.write() as db:
            for table in schema.KEYWORD_TABLES:
                db.execute(f"INSERT INTO {table}({table}) VALUES ('delete-all')")
            self._fill(db)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('keywords', ?)", (schema.KEYWORDS,))

    def _fill(self, db: apsw.Connection, where: str = "") -> int:
        """Add the rows of these chunks, note by note, so that a note's names are read once; how many they were."""
        found = fetch(db, f"SELECT file_id, id FROM chunks {where} ORDER BY file_id, seq")
        for file_id, group in groupby(found, key=itemgetter(0)):
            self.add(db, file_id, [row[1] for row in group])
        return len(found)

    def merge(self) -> None:
        """Merge the segments that many small changes leave, in short transactions."""
        for table in schema.KEYWORD_TABLES:
            for _ in range(_MERGES):
                with self._database.write() as db:
                    before = db.total_changes()
                    db.execute(f"INSERT INTO {table}({table}, rank) VALUES ('merge', ?)", (_MERGED_PAGES,))
                    if db.total_changes() - before < 2:  # as SQLite says it: nothing was left to merge
                        break


def _rows(
    path: str, title: str, aliases: Sequence[str], tags: Sequence[str], words: str, anchors: str,
    language: str, chunks: Iterable[tuple[int, int, str, str]],
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    """The rows of chunks (id, seq, trail as JSON, text) of one note; the title column also holds file name and folders.

    Each chunk is found by what its note is called, but all of that stands with the first only: many tags in the row
    of every chunk would cost chunks × tags.
    """
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0]
    short: list[str] | None = None
    for chunk_id, seq, trail, text in chunks:
        first = seq == 0
        if first:
            called = [_called(title, stem, folder), "\n".join(aliases), "\n".join(tags)]
        else:
            if short is None:
                some = (_called(title[:_REPEATED_CHARS], stem, folder), _some(aliases, _ALIASES), _some(tags, _TAGS))
                short = [index_text(names) for names in some]
            called = short
        headings = "\n".join(json.loads(trail)) if trail != "[]" else ""
        body = f"{text}\n{words}" if first else text
        rest = (headings, body, anchors if first else "")
        named = "\n".join((title, *aliases, headings, body))
        forms = " ".join((*stems_of_text(named, language), *parts_of_names(named)))
        yield (chunk_id, *(map(index_text, called) if first else called), *map(index_text, rest), segment(forms))


def _called(title: str, stem: str, folder: str) -> str:
    return "\n".join((title, folder) if stem == title else (title, stem, folder))


def _some(names: Sequence[str], most: int) -> str:
    """The first names, as many as are worth repeating in each row."""
    kept: list[str] = []
    room = _REPEATED_CHARS
    for name in names[:most]:
        shown = name[:_NAME_CHARS]
        if len(shown) > room:
            break
        kept.append(shown)
        room -= len(shown) + 1
    return "\n".join(kept)
