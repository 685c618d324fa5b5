"""The read side: keyword and vector lists, the rows behind them, titles and counts. Any number of threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from tarsd.errors import StoreError
from tarsd.passage import Key, NoteRow, Passage
from tarsd.store import schema
from tarsd.store.codes import Codes, pack
from tarsd.store.database import Database, fetch
from tarsd.store.rows import (
    MAX_K,
    NOT_READ,
    Counts,
    FileRow,
    LinkRow,
    ProblemRow,
    Role,
    Space,
)
from tarsd.vault import Skipped

_NOTE = "id, collection, path, title, aliases, tags, kind, memory_type, ours, local_only, mtime_ns, size, state"
_FILE = "collection, path, disk, size, mtime_ns, id, hash, chunker, state"
# Candidates compared exactly, per hit wanted: what keeps recall of the one-bit codes above 0.99.
_OVERSAMPLE = 4
_LEAST = 400


def fits(dim: int) -> str:
    """The condition that a cached vector `v` has the length of its space: any other counts as missing."""
    return f"length(v.vector) = {2 * dim}"


def _ids(values: Iterable[int]) -> str:
    return json.dumps([int(value) for value in values])


def note_row(row: Any) -> NoteRow:
    """A NoteRow from its columns, with the lists unpacked."""
    aliases, tags = tuple(json.loads(row[4])), tuple(json.loads(row[5]))
    return NoteRow(*(*row[:4], aliases, tags, *row[6:8], bool(row[8]), bool(row[9]), *row[10:]))


class Reading(Database):
    """Everything that search, status and the tools ask of the index."""

    def __init__(self, index: Path, embeddings: Path, *, use_vec: bool = True) -> None:
        self._codes: dict[int, Codes] = {}
        self._loading: set[int] = set()
        self._notes: dict[int, NoteRow] | None = None
        self._cache_lock = threading.Lock()
        self._known_spaces: dict[int, Space] | None = None
        self._covered: tuple[int, tuple[Space, ...]] | None = None
        self._counts: tuple[int, Counts] | None = None
        self._embedders: dict[str, int] = {}
        super().__init__(index, embeddings, use_vec=use_vec)

    # Files and notes

    def rows(self, collection: str | None = None, paths: Iterable[str] | None = None) -> dict[Key, FileRow]:
        """Known files by key: all, those of a collection, or of these those at and below some paths."""
        wheres: list[tuple[str, tuple[str, ...]]] = [("", ())]
        if collection is not None:
            wheres = [(" WHERE collection = ?", (collection,))]
        if collection is not None and paths is not None:
            # "0" follows "/".
            where = " WHERE collection = ? AND (path = ? OR (path > ? AND path < ?))"
            wheres = [(where, (collection, path, f"{path}/", f"{path}0")) for path in paths]
        found: dict[Key, FileRow] = {}
        with self.reader() as db:
            for where, values in wheres:
                for row in fetch(db, f"SELECT {_FILE} FROM files{where}", values):
                    found[row[0], row[1]] = FileRow(*row)
        return found

    def known(self, collection: str) -> int:
        """How many files of a collection are in the index."""
        with self.reader() as db:
            return int(db.execute("SELECT count(*) FROM files WHERE collection = ?", (collection,)).get)

    def titles(self) -> list[NoteRow]:
        """All notes, without order; rows of unchanged notes are the same objects from call to call."""
        return list(self._note_map().values())

    def note(self, key: Key) -> NoteRow | None:
        """The note at (collection, path), None if it is not in the index."""
        with self.reader() as db:
            row = db.execute(f"SELECT {_NOTE} FROM files WHERE collection = ? AND path = ?", key).fetchone()
        return note_row(row) if row else None

    def properties(self, file_ids: Collection[int] | None = None) -> dict[int, dict[str, Any]]:
        """Frontmatter properties by file id; of all notes that have any when no ids are given."""
        sql = "SELECT id, properties FROM files WHERE properties != '{}'"
        with self.reader() as db:
            if file_ids is None:
                found = db.execute(sql)
            else:
                found = db.execute(f"{sql} AND id IN (SELECT value FROM json_each(?))", (_ids(file_ids),))
            return {row[0]: json.loads(row[1]) for row in found}

    def _note_map(self) -> dict[int, NoteRow]:
        notes = self._notes
        if notes is None:
            with self._publish:
                if self._notes is None:
                    with self.reader() as db:
                        found = (note_row(row) for row in db.execute(f"SELECT {_NOTE} FROM files"))
                        self._notes = {row.id: row for row in found}
                notes = self._notes
        return notes

    # Lists for search

    def fts(
        self, match: str, weights: Sequence[float], limit: int, files: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """(chunk id, BM25 score > 0), best first, for an FTS5 expression.

        `weights` go with `schema.COLUMNS` (title, aliases, tags, headings, body, anchors); `files` restricts the
        answer to chunks of these file ids. An expression that FTS5 cannot read raises StoreError.
        """
        rank = f"bm25({', '.join(format(float(weight), 'g') for weight in weights)})"
        sql = "SELECT rowid, -rank FROM fts WHERE fts MATCH ? AND rank MATCH ?"
        values: list[str | int] = [match, rank]
        if files is not None:
            sql += " AND rowid IN (SELECT c.id FROM json_each(?) j JOIN chunks c ON c.file_id = j.value)"
            values.append(_ids(files))
        with self.reader() as db:
            return fetch(db, f"{sql} ORDER BY rank LIMIT ?", (*values, limit))

    def knn(
        self, space_id: int, query: npt.ArrayLike, k: int, files: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """(chunk id, cosine) of the k (at most 4096) nearest chunks of one space, best first.

        A zero or non-finite query has no neighbours. A query of another length raises StoreError.
        """
        space = self._space(space_id)
        vector = np.asarray(query, dtype=np.float32).reshape(-1)
        if vector.size != space.dim:
            raise StoreError(f"A vector of {vector.size} numbers cannot be compared with {space.dim}: another model.")
        norm = float(np.linalg.norm(vector))
        k = min(k, MAX_K)
        if k <= 0 or not np.isfinite(norm) or norm == 0.0:
            return []
        count = max(k, min(max(_OVERSAMPLE * k, _LEAST), MAX_K))
        found, vectors = self._candidates(space, vector, count, files)
        if not len(found):
            return []
        scores = vectors @ (vector / norm)
        best = np.argsort(-scores, kind="stable")[:k]
        return [(int(found[i]), float(scores[i])) for i in best]

    def vectors(self, space_id: int, chunk_ids: Iterable[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """(int64[n] ids, float32[n, dim] unit vectors) of those of the chunks that have one in this space."""
        space = self._space(space_id)
        sql = (
            "SELECT c.id, v.vector FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value "
            f"CROSS JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash AND {fits(space.dim)}"
        )
        with self.reader() as db:
            rows = fetch(db, sql, (_ids(chunk_ids), self._embedder(db, space.fingerprint)))
        return _matrix(rows, space.dim)

    def hits(self, chunk_ids: Iterable[int]) -> list[Passage]:
        """The passages with their notes, in the order asked for; ids that are gone are left out."""
        notes = self._note_map()
        wanted = list(chunk_ids)
        sql = (
            "SELECT c.id, c.file_id, c.seq, c.trail, c.start_line, c.end_line, c.text, c.tokens, c.hash "
            "FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value"
        )
        with self.reader() as db:
            rows = fetch(db, sql, (_ids(wanted),))
        return [_passage(row, notes[row[1]]) for row in rows if row[1] in notes]

    def chunks_of(self, file_id: int) -> list[Passage]:
        """All passages of one note, in reading order."""
        with self.reader() as db:
            ids = [row[0] for row in db.execute("SELECT id FROM chunks WHERE file_id = ? ORDER BY seq", (file_id,))]
        return self.hits(ids)

    def links_from(self, file_id: int) -> list[LinkRow]:
        """The links a note holds, in reading order."""
        return self._links("l.file_id = ? ORDER BY l.rowid", file_id)

    def links_to(self, file_id: int) -> list[LinkRow]:
        """The links that point at a note, by source."""
        return self._links("l.target_file = ? ORDER BY s.path, l.rowid", file_id)

    def _links(self, where: str, file_id: int) -> list[LinkRow]:
        sql = (
            "SELECT s.path, l.line, l.target, l.heading, l.block, l.text, l.embed, t.path FROM links l "
            f"JOIN files s ON s.id = l.file_id LEFT JOIN files t ON t.id = l.target_file WHERE {where}"
        )
        with self.reader() as db:
            return [LinkRow(*(*row[:6], bool(row[6]), row[7])) for row in fetch(db, sql, (file_id,))]

    # Spaces

    def spaces(self) -> tuple[Space, ...]:
        """All spaces with their coverage."""
        known, generation = self._covered, self.generation
        if known is None or known[0] != generation:
            with self.reader() as db:
                chunks = int(db.execute("SELECT count(*) FROM chunks").get)
                covered = tuple(
                    replace(space, vectors=self._vector_count(db, space.id), chunks=chunks)
                    for space in self._plain_spaces().values()
                )
            known = self._covered = (generation, covered)
        return known[1]

    def space_for(self, fingerprint: str) -> Space | None:
        """The space of an embedder, None while nothing was embedded by it."""
        return next((space for space in self.spaces() if space.fingerprint == fingerprint), None)

    def active_space(self, role: Role) -> Space | None:
        """The complete space of a role, None while there is none."""
        return next((space for space in self.spaces() if space.role == role and space.state == "active"), None)

    def _plain_spaces(self) -> dict[int, Space]:
        """Spaces by id, without their numbers."""
        known = self._known_spaces
        if known is None:
            with self.reader() as db:
                rows = fetch(db, "SELECT id, name, fingerprint, dim, role, state FROM spaces ORDER BY id")
            known = self._known_spaces = {row[0]: Space(*row) for row in rows}
        return known

    def _space(self, space_id: int) -> Space:
        space = self._plain_spaces().get(space_id)
        if space is None:
            raise StoreError("These vectors are not in the index any more.")
        return space

    def _embedder(self, db: apsw.Connection, fingerprint: str) -> int:
        """The number of a fingerprint in the embedding cache, -1 if it is not there."""
        known = self._embedders.get(fingerprint)
        if known is None:
            found = db.execute("SELECT id FROM emb.embedders WHERE fingerprint = ?", (fingerprint,)).get
            if found is None:
                return -1
            known = self._embedders[fingerprint] = int(found)
        return known

    def _candidates(
        self, space: Space, vector: npt.NDArray[np.float32], count: int, files: Collection[int] | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The `count` chunks that are near by their codes, as (int64[n] ids, float32[n, dim] vectors)."""
        only = None if files is None else self._chunk_ids(files)
        codes = self._codes.get(space.id)
        if codes is None and not self.vec0:
            codes = self.warm(space.id)
        if codes is not None:
            ids, refs = codes.search(vector, count, only)
            # Texts that occur twice have two ids and one vector.
            owners: dict[int, list[int]] = {}
            for chunk, ref in zip(ids.tolist(), refs.tolist(), strict=True):
                owners.setdefault(ref, []).append(chunk)
            sql = (
                "SELECT v.id, v.vector FROM json_each(?) j "
                f"CROSS JOIN emb.vectors v ON v.id = j.value AND {fits(space.dim)}"
            )
            with self.reader() as db:
                rows = fetch(db, sql, (_ids(owners),))
            return _matrix([(chunk, blob) for ref, blob in rows for chunk in owners[ref]], space.dim)
        self._warm_soon(space.id)
        sql = f"SELECT chunk_id FROM vec_{space.id} WHERE code MATCH vec_bit(?) AND k = ?"
        values: tuple[Any, ...] = (pack(vector.reshape(1, -1)).tobytes(), count)
        if only is not None:
            sql, values = f"{sql} AND chunk_id IN (SELECT value FROM json_each(?))", (*values, _ids(only))
        with self.reader() as db:
            near = [row[0] for row in db.execute(sql, values)]
        return self.vectors(space.id, near)

    def _chunk_ids(self, files: Collection[int]) -> npt.NDArray[np.int64]:
        sql = "SELECT c.id FROM json_each(?) j CROSS JOIN chunks c ON c.file_id = j.value"
        with self.reader() as db:
            return np.array([row[0] for row in db.execute(sql, (_ids(files),))], dtype=np.int64)

    # Resident codes

    def warm(self, space_id: int) -> Codes:
        """Load the codes of a space into memory, where they answer several times faster than the table."""
        with self._publish:
            known = self._codes.get(space_id)
            if known is None:
                space = self._space(space_id)
                with self.reader() as db:
                    coded = dict(fetch(db, f"SELECT chunk_id, code FROM vec_{space_id}"))
                    number = self._embedder(db, space.fingerprint)
                    sql = "SELECT c.id, v.id FROM chunks c JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash"
                    rows = [(chunk, ref) for chunk, ref in fetch(db, sql, (number,)) if chunk in coded]
                width = pack(np.zeros((1, space.dim), np.float32)).shape[1]
                data = np.frombuffer(b"".join(coded[chunk] for chunk, _ in rows), np.uint8)
                places = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
                known = Codes(space.dim, places[:, 0], places[:, 1], data.reshape(len(rows), width))
                self._codes[space_id] = known
            return known

    def _warm_soon(self, space_id: int) -> None:
        with self._cache_lock:
            if space_id in self._loading:
                return
            self._loading.add(space_id)

        def load() -> None:
            try:
                self.warm(space_id)
            except StoreError:
                pass  # closed meanwhile, or damaged: whoever asks next is told
            finally:
                self._loading.discard(space_id)

        threading.Thread(target=load, name="tarsd-codes", daemon=True).start()

    def cool(self) -> None:
        """Give the memory of the resident codes back; the next query loads them again."""
        with self._publish:
            self._codes.clear()

    # Numbers

    def counts(self) -> Counts:
        """The index in numbers, per leg; cheap to ask again until something is committed."""
        known, generation = self._counts, self.generation
        if known is not None and known[0] == generation:
            return known[1]
        with self.reader() as db:
            states: dict[str, int] = {}
            for sql in (
                "SELECT state, count(*) FROM files GROUP BY state",
                "SELECT state, count(*) FROM skipped GROUP BY state",
            ):
                for state, number in db.execute(sql):
                    states[state] = states.get(state, 0) + number
            counts = Counts(
                notes=int(db.execute("SELECT count(*) FROM files").get),
                chunks=int(db.execute("SELECT count(*) FROM chunks").get),
                keywords=int(db.execute("SELECT count(*) FROM fts_docsize").get),
                failed=self._failed_count(db, "!="),
                not_read=self._failed_count(db, "="),
                held_back=int(
                    db.execute(
                        "SELECT count(*) FROM chunks WHERE file_id IN (SELECT id FROM files WHERE local_only)"
                    ).get
                ),
                states=states,
                spaces=self.spaces(),
            )
        self._counts = (generation, counts)
        return counts

    @staticmethod
    def _failed_count(db: apsw.Connection, comparison: str) -> int:
        """Chunks without a vector of a model: for a reason, or ("=") as it has nothing to read in them."""
        sql = (
            "SELECT count(*) FROM chunks c JOIN failed x ON x.hash = c.hash "
            f"JOIN spaces s ON s.fingerprint = x.fingerprint AND s.role = 'model' WHERE x.reason {comparison} ?"
        )
        return int(db.execute(sql, (NOT_READ,)).get)

    def _vector_count(self, db: apsw.Connection, space_id: int) -> int:
        return int(db.execute(f"SELECT count(*) FROM {schema.vec_ids(space_id, self.vec0)}").get)

    def problems(self) -> list[ProblemRow]:
        """What is wrong with single notes: their own faults, and chunks that no vector could be made of."""
        found: list[ProblemRow] = []
        with self.reader() as db:
            for collection, path, listed in db.execute(
                "SELECT collection, path, problems FROM files WHERE problems != '[]' ORDER BY collection, path"
            ):
                found += [ProblemRow(collection, path, *one) for one in json.loads(listed)]
            for collection, path, line, reason in db.execute(
                "SELECT f.collection, f.path, c.start_line, x.reason FROM failed x JOIN chunks c ON c.hash = x.hash "
                "JOIN files f ON f.id = c.file_id JOIN spaces s ON s.fingerprint = x.fingerprint AND s.role = 'model' "
                "WHERE x.reason != ? ORDER BY 1, 2, 3",
                (NOT_READ,),
            ):
                hint = "Found by its words only. `tarsd reindex --full` has it tried again."
                found.append(ProblemRow(collection, path, line, f"no vector: {reason}", hint))
        return found

    def skipped(self) -> list[Skipped]:
        """Files the last scan left out, with the reason."""
        with self.reader() as db:
            sql = "SELECT collection, path, state, reason, hint FROM skipped ORDER BY collection, path"
            return [Skipped(*row) for row in db.execute(sql)]


def _matrix(rows: Sequence[Any], dim: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """(id, float16 blob) rows as arrays."""
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    data = np.frombuffer(b"".join([row[1] for row in rows]), np.float16).reshape(len(rows), dim)
    return ids, data.astype(np.float32)


def _passage(row: Sequence[Any], note: NoteRow) -> Passage:
    id, _, seq, trail, start_line, end_line, text, tokens, hash = row
    headings = tuple(json.loads(trail)) if trail != "[]" else ()
    return Passage(text, start_line, end_line, headings, seq, tokens, hash, note, id)
