"""The index of one vault and its vector cache: the parts, and operations on several of them."""

from __future__ import annotations

import json
from pathlib import Path

import apsw

from tarsd.store import schema
from tarsd.store.cache import VectorCache
from tarsd.store.database import BUSY_MS, Database, fetch
from tarsd.store.facts import Facts
from tarsd.store.keywords import KeywordSearch
from tarsd.store.notes import Notes
from tarsd.store.rows import NOT_READ, Batch, Counts, ProblemRow
from tarsd.store.vectors import Vectors

_SETTLED_AT_ONCE = 4_000
_OF_CONVERSATIONS = (
    f"SELECT count(*) FROM chunks WHERE file_id IN (SELECT id FROM files WHERE {schema.OF_CONVERSATION})"
)


class Store:
    """`notes`, their `facts`, `search` (their words), `vectors` and the `cache` of these, in one `database`.

    Readers are any number of threads; one at a time writes, and nothing slow happens inside.
    """

    def __init__(self, index: Path, embeddings: Path, *, use_vec: bool = True, busy_ms: int = BUSY_MS) -> None:
        self.database = Database(index, embeddings, use_vec=use_vec, busy_ms=busy_ms)
        self.notes = Notes(self.database)
        self.facts = Facts(self.database)
        self.search = KeywordSearch(self.database)
        self.cache = VectorCache(self.database)
        self.vectors = Vectors(self.database, self.cache)
        self._counts: tuple[int, Counts] | None = None

    def close(self) -> None:
        """Close every connection; the store cannot be used afterwards."""
        self.database.close()

    # Changes

    def apply(self, batch: Batch, *, settle: bool = True) -> None:
        """Perform a batch in one transaction; each note in it changes as a whole or not at all.

        Without `settle`, links and anchor texts are left for a later `settle()`; that they are is remembered.
        """
        with self.database.write() as db:
            gone, added = self.notes.apply(db, batch)
            if gone:
                self.search.drop(db, gone)
                self.vectors.drop(db, gone)
            for file_id, chunk_ids in added.items():
                self.search.add(db, file_id, chunk_ids)
            if added:
                self.vectors.add_known(db, [chunk_id for chunk_ids in added.values() for chunk_id in chunk_ids])
            if settle:
                self._settle(db)

    def settle(self) -> None:
        """Resolve the links and rewrite the anchor texts that earlier batches left over."""
        while self.notes.unsettled():
            with self.database.write() as db:
                self._settle(db)

    def _settle(self, db: apsw.Connection) -> None:
        for file_id in self.notes.settle(db, _SETTLED_AT_ONCE):
            self.search.rewrite_first(db, file_id)

    # Health

    def check(self) -> list[str]:
        """Compare the legs of the index and repair what differs; one sentence for each repair."""
        return [said for said in (self._check_files(), self.search.check(), *self.vectors.check()) if said]

    def _check_files(self) -> str:
        with self.database.write() as db:
            sql = "SELECT id FROM chunks WHERE file_id NOT IN (SELECT id FROM files)"
            orphans = [row[0] for row in fetch(db, sql)]
            if orphans:
                self.notes.drop_passages(db, orphans)
                self.search.drop(db, orphans)
                self.vectors.drop(db, orphans)
            for table in ("links", "names", *schema.FACT_TABLES):
                db.execute(f"DELETE FROM {table} WHERE file_id NOT IN (SELECT id FROM files)")
            db.execute("DELETE FROM failed WHERE hash NOT IN (SELECT hash FROM chunks)")
            # Without chunks a note has lost them: an impossible hash makes the next pass read it again.
            bare = "id NOT IN (SELECT file_id FROM chunks) AND state = 'ok' AND hash != ''"
            lost = db.execute(f"SELECT count(*) FROM files WHERE {bare}").get
            if lost:
                db.execute(f"UPDATE files SET hash = '', mtime_ns = -1 WHERE {bare}")
        parts = [f"{len(orphans)} passages without a note removed"] if orphans else []
        parts += [f"{lost} notes without passages read again"] if lost else []
        return f"The index had gaps: {', '.join(parts)}." if parts else ""

    def maintain(self) -> None:
        """Give space back: code tables that are mostly holes are rebuilt, free pages returned to the disk."""
        self.vectors.compact()
        self.search.merge()
        self.database.give_back()

    # Numbers

    def counts(self) -> Counts:
        """The index in numbers, per leg; cheap to ask again until something is committed."""
        known, generation = self._counts, self.database.generation
        if known is not None and known[0] == generation:
            return known[1]
        with self.database.reader() as db:
            listed = "SELECT state FROM files UNION ALL SELECT state FROM skipped"
            private = "SELECT count(*) FROM chunks WHERE file_id IN (SELECT id FROM files WHERE local_only)"
            counts = Counts(
                notes=int(db.execute("SELECT count(*) FROM files").get),
                chunks=int(db.execute("SELECT count(*) FROM chunks").get),
                keywords=sum(
                    int(db.execute(f"SELECT count(*) FROM {table}_docsize").get) for table in schema.KEYWORD_TABLES
                ),
                of_conversations=int(db.execute(_OF_CONVERSATIONS).get),
                failed=_failed_count(db, "!="),
                not_read=_failed_count(db, "="),
                held_back=int(db.execute(private).get),
                states=dict(fetch(db, f"SELECT state, count(*) FROM ({listed}) GROUP BY state")),
                spaces=self.vectors.spaces(),
            )
        self._counts = (generation, counts)
        return counts

    def problems(self) -> list[ProblemRow]:
        """What is wrong with single notes: their own faults, and chunks that no vector could be made of."""
        found: list[ProblemRow] = []
        with self.database.reader() as db:
            for collection, path, problems in db.execute(
                "SELECT collection, path, problems FROM files WHERE problems != '[]' ORDER BY collection, path"
            ):
                found += [ProblemRow(collection, path, *problem) for problem in json.loads(problems)]
            for collection, path, line, reason in db.execute(
                "SELECT f.collection, f.path, c.start_line, x.reason FROM failed x JOIN chunks c ON c.hash = x.hash "
                "JOIN files f ON f.id = c.file_id JOIN spaces s ON s.fingerprint = x.fingerprint AND s.role = 'model' "
                "WHERE x.reason != ? ORDER BY 1, 2, 3",
                (NOT_READ,),
            ):
                hint = "Found by its words only. To try again: `tarsd reindex --full`"
                found.append(ProblemRow(collection, path, line, f"no vector: {reason}", hint))
        return found


def _failed_count(db: apsw.Connection, comparison: str) -> int:
    """Chunks without a vector of a model: for a reason, or ("=") as it has nothing to read in them."""
    sql = (
        "SELECT count(*) FROM chunks c JOIN failed x ON x.hash = c.hash "
        f"JOIN spaces s ON s.fingerprint = x.fingerprint AND s.role = 'model' WHERE x.reason {comparison} ?"
    )
    return int(db.execute(sql, (NOT_READ,)).get)
