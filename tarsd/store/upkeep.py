"""Health of the index: start-up comparison of its legs, repairs, giving space back, the canonical dump."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw
import numpy as np

from tarsd.store import schema
from tarsd.store.codes import code_bits
from tarsd.store.database import fetch
from tarsd.store.rows import Dump
from tarsd.store.spaces import today
from tarsd.store.writing import Writing

_SLACK_ROWS = 2_048
_SLACK_PAGES = 100
_TOUCHED_DAYS = 7
_KEPT_DAYS = 90
_CONDEMNED_DAYS = 7
_SLICE = 2_000
_MERGED_PAGES = 500
_MERGES = 40


class Store(Writing):
    """The index of one vault and the embedding cache behind it; every statement of SQL is in this family."""

    def check(self) -> list[str]:
        """Compare the legs of the index and repair what differs; one sentence for each repair."""
        return [said for said in (self._check_files(), self._check_keywords(), *self._check_vectors()) if said]

    def _check_files(self) -> str:
        with self._transaction(self._db) as db:
            orphans = db.execute("SELECT count(*) FROM chunks WHERE file_id NOT IN (SELECT id FROM files)").get
            if orphans:
                gone = [
                    row[0] for row in db.execute("SELECT id FROM chunks WHERE file_id NOT IN (SELECT id FROM files)")
                ]
                self._drop_chunks(db, gone)
            for table in ("links", "names"):
                db.execute(f"DELETE FROM {table} WHERE file_id NOT IN (SELECT id FROM files)")
            db.execute("DELETE FROM failed WHERE hash NOT IN (SELECT hash FROM chunks)")
            # Without chunks a note has lost them: an impossible hash makes the next pass read it again.
            bare = "id NOT IN (SELECT file_id FROM chunks) AND state = 'ok' AND hash != ''"
            lost = db.execute(f"SELECT count(*) FROM files WHERE {bare}").get
            if lost:
                db.execute(f"UPDATE files SET hash = '', mtime_ns = -1 WHERE {bare}")
        parts = [f"{orphans} passages without a note removed"] if orphans else []
        parts += [f"{lost} notes without passages are read again"] if lost else []
        return f"The index had gaps: {', '.join(parts)}." if parts else ""

    def _check_keywords(self) -> str:
        with self.reader() as db:
            old = db.execute("SELECT value FROM meta WHERE key = 'keywords'").get != schema.KEYWORDS
        if old:
            self.rebuild_keywords()
            return "The keyword index was made by another version and is made anew."
        with self._transaction(self._db) as db:
            extra = "SELECT id FROM fts_docsize WHERE id NOT IN (SELECT id FROM chunks)"
            surplus = db.execute(extra).fetchall()
            db.executemany("DELETE FROM fts WHERE rowid = ?", surplus)
            lacking = self._fill_keywords(db, "WHERE id NOT IN (SELECT id FROM fts_docsize)")
        if not lacking and not surplus:
            return ""
        return f"The keyword index differed: {lacking} passages added, {len(surplus)} removed."

    def rebuild_keywords(self) -> None:
        """Make the keyword index anew from the stored passages."""
        with self._transaction(self._db) as db:
            db.execute("INSERT INTO fts(fts) VALUES ('delete-all')")
            self._fill_keywords(db)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('keywords', ?)", (schema.KEYWORDS,))

    def _fill_keywords(self, db: apsw.Connection, where: str = "") -> int:
        """Add the rows of these chunks, note by note, so that a note's names are read once; how many they were."""
        found = fetch(db, f"SELECT file_id, id FROM chunks {where} ORDER BY file_id, seq")
        for file_id, group in groupby(found, key=itemgetter(0)):
            self._add_keywords(db, file_id, [row[1] for row in group])
        return len(found)

    def _check_vectors(self) -> list[str]:
        said = []
        for space in self.spaces():
            with self._transaction(self._db) as db:
                sql = (
                    f"SELECT {self._vec_key(space.id)} EXCEPT SELECT c.id FROM chunks c "
                    "JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash"
                )
                wrong = [(row[0],) for row in db.execute(sql, (self._embedder(db, space.fingerprint),))]
                db.executemany(f"DELETE FROM vec_{space.id} WHERE chunk_id = ?", wrong)
                if wrong:
                    self._after.append(lambda number=space.id: self._forget_space(number))  # type: ignore[misc]
            adopted = self.adopt(space.id)
            if wrong or adopted:
                said.append(f"The vectors of {space.name} differed: {adopted} added, {len(wrong)} removed.")
        return said

    def maintain(self) -> None:
        """Give space back: code tables that are mostly holes are rebuilt, free pages returned to the disk."""
        for space in self.spaces() if self.vec0 else ():
            with self.reader() as db:
                held = int(db.execute(f"SELECT coalesce(sum(size), 0) FROM vec_{space.id}_chunks").get)
            if held > 2 * space.vectors + _SLACK_ROWS:
                self._rebuild_codes(space.id)
        for _ in range(_MERGES):
            with self._transaction(self._db) as db:
                before = db.total_changes()
                db.execute("INSERT INTO fts(fts, rank) VALUES ('merge', ?)", (_MERGED_PAGES,))
                if db.total_changes() - before < 2:  # as SQLite says it: nothing was left to merge
                    break
        with self._lock, self._translated():
            for db in (self._db, self._vectors):
                free = int(db.execute("PRAGMA main.freelist_count").get)
                if free > _SLACK_PAGES and free > int(db.execute("PRAGMA main.page_count").get) // 4:
                    db.execute("PRAGMA main.incremental_vacuum").fetchall()
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def tidy(self) -> None:
        """Once a day, when the index is complete: keep the vectors of its passages, and drop those that none has.

        Other vaults share the cache, and only their own daemons know what they use: so each marks what it uses. What
        nobody marked for three months is condemned, and dropped at the earliest a week later: a clock that was wrong
        for a day must not cost what took hours to make.
        """
        day = today()
        if self.meta("tidied") == day:
            return
        with self.reader() as db:
            mine = fetch(
                db,
                "SELECT id FROM emb.vectors WHERE (used < ? OR used > ?) AND hash IN (SELECT hash FROM chunks)",
                (day - _TOUCHED_DAYS, day),
            )
            dead = fetch(
                db,
                "SELECT id FROM emb.vectors WHERE used < 0 AND -used BETWEEN ? AND ? "
                "AND hash NOT IN (SELECT hash FROM chunks)",
                (day - _KEPT_DAYS, day - _CONDEMNED_DAYS),
            )
        for start in range(0, len(mine), _SLICE):
            with self._transaction(self._vectors) as db:
                ids = [(day, row[0]) for row in mine[start : start + _SLICE]]
                db.executemany("UPDATE vectors SET used = ? WHERE id = ?", ids)
        for start in range(0, len(dead), _SLICE):
            with self._transaction(self._vectors) as db:
                db.executemany("DELETE FROM vectors WHERE id = ? AND used < 0", dead[start : start + _SLICE])
        with self._transaction(self._vectors) as db:
            # from a daemon that does not know these days yet, or whose clock was ahead
            db.execute("UPDATE vectors SET used = ?1 WHERE used = 0 OR used > ?1 OR -used > ?1", (day,))
            old = "used BETWEEN 1 AND ?1 - ?2 OR used < 0 AND -used < ?1 - ?2"
            db.execute(f"UPDATE vectors SET used = -?1 WHERE {old}", (day, _KEPT_DAYS))
        self.set_meta("tidied", day)

    def _rebuild_codes(self, space_id: int) -> None:
        space = self._space(space_id)
        with self._transaction(self._db) as db:
            rows = db.execute(f"SELECT chunk_id, code FROM vec_{space_id}").fetchall()
            db.execute(f"DROP TABLE vec_{space_id}")
            db.execute(schema.vec_table(space_id, code_bits(space.dim), self.vec0))
            db.executemany(f"INSERT INTO vec_{space_id}(chunk_id, code) VALUES (?, vec_bit(?))", rows)

    def dump(self) -> Dump:
        """The whole index in canonical form, for comparing two of them; slow."""
        with self.reader() as db:
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
            db.execute("PRAGMA query_only = 0")
            db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab(main, fts, 'instance')")
            keywords = db.execute(
                f"SELECT t.term, t.col, t.offset, {chunk} FROM temp.terms t LEFT JOIN chunks c ON c.id = t.doc "
                "LEFT JOIN files f ON f.id = c.file_id ORDER BY 1, 4, 5, 6, 2, 3"
            ).fetchall()
            db.execute("PRAGMA query_only = 1")
            vectors = []
            for space in sorted(self.spaces(), key=lambda one: one.fingerprint):
                vectors += db.execute(
                    f"SELECT ?, {chunk}, v.code FROM vec_{space.id} v LEFT JOIN chunks c ON c.id = v.chunk_id "
                    "LEFT JOIN files f ON f.id = c.file_id ORDER BY 2, 3, 4",
                    (space.fingerprint,),
                ).fetchall()
        for space_id, codes in self._codes.items():
            self._compare_resident(space_id, codes)
        return Dump(files, chunks, links, keywords, vectors)

    def _compare_resident(self, space_id: int, codes: Any) -> None:
        with self.reader() as db:
            ids = np.array([row[0] for row in db.execute(f"SELECT chunk_id FROM vec_{space_id}")], dtype=np.int64)
        held = codes.ids()
        if not np.array_equal(np.sort(held), np.sort(ids)):
            raise AssertionError(f"resident codes of space {space_id} differ from its table")
