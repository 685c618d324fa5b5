"""Vectors of passages: spaces made from the cache, what still lacks a vector, and the nearest to a query."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from tarsd.errors import StoreError
from tarsd.passage import NoteRow, Passage
from tarsd.store import schema
from tarsd.store.cache import VectorCache
from tarsd.store.codes import Bytes, Codes, code_bits, pack
from tarsd.store.database import Database, fetch, listed
from tarsd.store.rows import MAX_K, EmbedJob, Role, Space

MAX_TRIES = 3
_SLICE = 2_000
# Candidates compared exactly, per hit wanted: what keeps recall of the one-bit codes above 0.99.
_OVERSAMPLE = 4
_LEAST = 400
_SLACK_ROWS = 2_048
# Chunks of session notes and summaries.
_TALK = f"SELECT c.id FROM (SELECT id FROM files WHERE {schema.OF_CONVERSATION}) f JOIN chunks c ON c.file_id = f.id"


def fits(dim: int) -> str:
    """The condition that a cached vector `v` has the length of its space: any other counts as missing."""
    return f"length(v.vector) = {2 * dim}"


class Vectors:
    """The spaces of the index. A vector itself is in the cache; a space holds its code, one bit a number.

    `db` is the connection of a running transaction.
    """

    def __init__(self, database: Database, cache: VectorCache) -> None:
        self._database, self._cache = database, cache
        self._codes: dict[int, tuple[Codes, Codes]] = {}
        self._loading: set[int] = set()
        self._loading_lock = threading.Lock()
        self._plain: dict[int, Space] | None = None
        self._covered: tuple[int, tuple[Space, ...]] | None = None
        database.after_reopen.append(self._reset)

    def _reset(self) -> None:
        with self._database.publishing:
            self._codes.clear()
            self._plain = self._covered = None

    # Spaces

    def spaces(self) -> tuple[Space, ...]:
        """All spaces with their coverage."""
        known, generation = self._covered, self._database.generation
        if known is None or known[0] != generation:
            with self._database.reader() as db:
                chunks = int(db.execute("SELECT count(*) FROM chunks").get)
                talk = [row[0] for row in db.execute(_TALK)]
                covered = tuple(
                    replace(
                        space,
                        vectors=self._vector_count(db, space.id),
                        chunks=chunks,
                        talk_vectors=self._vector_count(db, space.id, talk),
                        talk_chunks=len(talk),
                    )
                    for space in self._plain_spaces().values()
                )
            known = self._covered = (generation, covered)
        return known[1]

    def space_for(self, fingerprint: str) -> Space | None:
        """The space of an embedder, None while nothing was embedded by it."""
        return next((space for space in self.spaces() if space.fingerprint == fingerprint), None)

    def ensure_space(self, name: str, fingerprint: str, dim: int, role: Role) -> Space:
        """The space of an embedder, made if need be and filled with what the cache already has."""
        known = self.space_for(fingerprint)
        if known is None:
            with self._database.write() as db:
                db.execute(
                    "INSERT INTO spaces(name, fingerprint, dim, role, state) VALUES (?, ?, ?, ?, 'building')",
                    (name, fingerprint, dim, role),
                )
                db.execute(schema.vec_table(db.last_insert_rowid(), code_bits(dim), self._database.vec0))
                self._database.after_commit(lambda: self._forget_space(0))
            known = self.space_for(fingerprint)
            assert known is not None
        self.adopt(known.id)
        return known

    def rename(self, old: str, new: str) -> None:
        """An embedder that has no space is the one that had another fingerprint before: its vectors are kept."""
        self._cache.rename(old, new)
        with self._database.write() as db:
            for table in ("spaces", "failed"):
                db.execute(f"UPDATE OR IGNORE {table} SET fingerprint = ? WHERE fingerprint = ?", (new, old))
            self._database.after_commit(lambda: self._forget_space(0))

    def activate(self, space_id: int) -> None:
        """The space is complete: from now on it stands for its role, and the role's other spaces are dropped."""
        space = self._space(space_id)
        with self._database.write() as db:
            db.execute("UPDATE spaces SET state = 'active' WHERE id = ?", (space_id,))
            self._database.after_commit(lambda: self._forget_space(0))
        for older in self.spaces():
            if older.role == space.role and older.id != space_id:
                self.drop_space(older.id)

    def drop_space(self, space_id: int) -> None:
        """Remove a space from the index; its vectors stay in the cache."""
        with self._database.write() as db:
            db.execute(f"DROP TABLE IF EXISTS vec_{space_id}")
            db.execute("DELETE FROM spaces WHERE id = ?", (space_id,))
            self._database.after_commit(lambda: self._forget_space(space_id))

    def _forget_space(self, space_id: int) -> None:
        self._plain = None
        self._codes.pop(space_id, None)

    def _plain_spaces(self) -> dict[int, Space]:
        """Spaces by id, without their numbers."""
        known = self._plain
        if known is None:
            with self._database.reader() as db:
                rows = fetch(db, "SELECT id, name, fingerprint, dim, role, state FROM spaces ORDER BY id")
            known = self._plain = {row[0]: Space(*row) for row in rows}
        return known

    def _space(self, space_id: int) -> Space:
        space = self._plain_spaces().get(space_id)
        if space is None:
            raise StoreError("These vectors are no longer in the index.")
        return space

    def _vector_count(self, db: apsw.Connection, space_id: int, among: Sequence[int] | None = None) -> int:
        """How many chunks have a code, of all or of some."""
        key = self._vec_key(space_id)
        if among is None:
            return int(db.execute(f"SELECT count(*) FROM (SELECT {key})").get)
        sql = f"SELECT count(*) FROM json_each(?) WHERE value IN (SELECT {key})"
        return int(db.execute(sql, (listed(among),)).get) if among else 0

    # Lists for search

    def knn(
        self,
        space_id: int,
        query: npt.ArrayLike,
        k: int,
        files: Collection[int] | None = None,
        *,
        conversations: bool = False,
    ) -> list[tuple[int, float]]:
        """(chunk id, cosine) of the k (at most 4096) nearest chunks of one space, best first.

        They are of notes, or of `conversations`; `files` restricts the answer to chunks of these file ids.
        A zero or non-finite query has no neighbours. A query of another length raises StoreError.
        """
        space = self._space(space_id)
        vector = np.asarray(query, dtype=np.float32).reshape(-1)
        if vector.size != space.dim:
            raise StoreError(f"Cannot compare {vector.size} dimensions with {space.dim}: different models.")
        norm = float(np.linalg.norm(vector))
        k = min(k, MAX_K)
        if k <= 0 or not np.isfinite(norm) or norm == 0.0:
            return []
        count = max(k, min(max(_OVERSAMPLE * k, _LEAST), MAX_K))
        found, vectors = self._candidates(space, vector, count, files, conversations)
        if not len(found):
            return []
        scores = vectors @ (vector / norm)
        best = np.argsort(-scores, kind="stable")[:k]
        return [(int(found[i]), float(scores[i])) for i in best]

    def of(self, space_id: int, chunk_ids: Iterable[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """(int64[n] ids, float32[n, dim] unit vectors) of those of the chunks that have one in this space."""
        space = self._space(space_id)
        sql = (
            "SELECT c.id, v.vector FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value "
            f"CROSS JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash AND {fits(space.dim)}"
        )
        with self._database.reader() as db:
            rows = fetch(db, sql, (listed(chunk_ids), self._cache.number(db, space.fingerprint)))
        return _matrix(rows, space.dim)

    def _candidates(
        self,
        space: Space,
        vector: npt.NDArray[np.float32],
        count: int,
        files: Collection[int] | None,
        conversations: bool,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The `count` chunks that are near by their codes, as (int64[n] ids, float32[n, dim] vectors)."""
        only = None if files is None else self._chunk_ids(files)
        codes = self._codes.get(space.id)
        with self._database.reader() as db:
            talk = [] if codes is not None else [row[0] for row in db.execute(_TALK)]
        if codes is None and (not self._database.vec0 or count + len(talk) > MAX_K):
            codes = self.warm(space.id)
        if codes is not None:
            ids, refs = codes[conversations].search(vector, count, only)
            # Texts that occur twice have two ids and one vector.
            owners: dict[int, list[int]] = {}
            for chunk, ref in zip(ids.tolist(), refs.tolist(), strict=True):
                owners.setdefault(ref, []).append(chunk)
            sql = (
                "SELECT v.id, v.vector FROM json_each(?) j "
                f"CROSS JOIN emb.vectors v ON v.id = j.value AND {fits(space.dim)}"
            )
            with self._database.reader() as db:
                rows = fetch(db, sql, (listed(owners),))
            return _matrix([(chunk, blob) for ref, blob in rows for chunk in owners[ref]], space.dim)
        self._warm_soon(space.id)
        # The table holds both kinds; there is room for all of the other one among the nearest.
        sql = f"SELECT chunk_id FROM vec_{space.id} WHERE code MATCH vec_bit(?) AND k = ?"
        values: tuple[Any, ...] = (pack(vector.reshape(1, -1)).tobytes(), count + len(talk))
        if only is None and conversations:
            only = np.array(talk, dtype=np.int64)
        if only is not None:
            sql, values = f"{sql} AND chunk_id IN (SELECT value FROM json_each(?))", (*values, listed(only))
        with self._database.reader() as db:
            near = [row[0] for row in db.execute(sql, values)]
        talking = set(talk)
        return self.of(space.id, [chunk for chunk in near if (chunk in talking) == conversations][:count])

    def _chunk_ids(self, files: Collection[int]) -> npt.NDArray[np.int64]:
        sql = "SELECT c.id FROM json_each(?) j CROSS JOIN chunks c ON c.file_id = j.value"
        with self._database.reader() as db:
            return np.array([row[0] for row in db.execute(sql, (listed(files),))], dtype=np.int64)

    # Resident codes

    def warm(self, space_id: int) -> tuple[Codes, Codes]:
        """Load the codes of a space into memory, where they answer several times faster than the table.

        Those of notes, and those of conversations.
        """
        with self._database.publishing:
            known = self._codes.get(space_id)
            if known is None:
                space = self._space(space_id)
                with self._database.reader() as db:
                    coded = dict(fetch(db, f"SELECT chunk_id, code FROM vec_{space_id}"))
                    number = self._cache.number(db, space.fingerprint)
                    sql = "SELECT c.id, v.id FROM chunks c JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash"
                    rows = [(chunk, ref) for chunk, ref in fetch(db, sql, (number,)) if chunk in coded]
                    talk = [row[0] for row in db.execute(_TALK)]
                width = pack(np.zeros((1, space.dim), np.float32)).shape[1]
                data = np.frombuffer(b"".join(coded[chunk] for chunk, _ in rows), np.uint8).reshape(len(rows), width)
                places = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
                known = Codes(space.dim), Codes(space.dim)
                _add(known, places, data, np.isin(places[:, 0], talk))
                self._codes[space_id] = known
            return known

    def _warm_soon(self, space_id: int) -> None:
        with self._loading_lock:
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

    def miscoded(self, space_id: int, chunk_ids: Iterable[int]) -> list[int]:
        """Those of the chunks whose code in a space is not the one of their vector."""
        ids, vectors = self.of(space_id, chunk_ids)
        sql = f"SELECT chunk_id, code FROM vec_{space_id} WHERE chunk_id IN (SELECT value FROM json_each(?))"
        with self._database.reader() as db:
            codes: dict[int, bytes] = dict(fetch(db, sql, (listed(ids),)))
        wanted = zip(ids.tolist(), pack(vectors), strict=True)
        return [chunk for chunk, code in wanted if chunk in codes and codes[chunk] != code.tobytes()]

    # What lacks a vector

    def put(self, space_id: int, hashes: Sequence[bytes], vectors: npt.NDArray[np.floating[Any]]) -> list[int]:
        """Cache vectors and give them to every chunk with these hashes; the positions of bad vectors.

        Vectors of another length than the space's raise StoreError.
        """
        space = self._space(space_id)
        width = np.asarray(vectors).shape[1]
        if len(hashes) and width != space.dim:
            raise StoreError(f"Vectors with {width} dimensions cannot be stored with {space.dim}: different models.")
        _, bad = self._cache.put(space.fingerprint, hashes, vectors)
        spoiled = set(bad)
        fine = [hash for position, hash in enumerate(hashes) if position not in spoiled]
        with self._database.write() as db:
            sql = f"SELECT id FROM chunks WHERE hash = ? AND id NOT IN (SELECT {self._vec_key(space_id)})"
            self._insert_codes(db, space, [row[0] for hash in fine for row in db.execute(sql, (hash,))])
            db.executemany(
                "DELETE FROM failed WHERE hash = ? AND fingerprint = ?", ((hash, space.fingerprint) for hash in fine)
            )
        return bad

    def adopt(self, space_id: int) -> int:
        """Give codes to all chunks whose vector the cache has and the space has not; how many."""
        space = self._space(space_id)
        sql = (
            f"SELECT c.id FROM chunks c JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash "
            f"AND {fits(space.dim)} WHERE c.id NOT IN (SELECT {self._vec_key(space_id)})"
        )
        with self._database.reader() as db:
            ids = [row[0] for row in db.execute(sql, (self._cache.number(db, space.fingerprint),))]
        for start in range(0, len(ids), _SLICE):
            with self._database.write() as db:
                self._insert_codes(db, space, ids[start : start + _SLICE])
        return len(ids)

    def missing(self, space_id: int, limit: int, *, local: bool, later: Collection[bytes] = ()) -> list[EmbedJob]:
        """Passages without a vector, each text once, of the newest notes first.

        Left out: what failed `MAX_TRIES` times, the hashes in `later`, and without `local` the notes that must not
        leave this machine.
        """
        space = self._space(space_id)
        columns = "c.hash, f.title, f.aliases, c.trail, c.text, c.tokens, coalesce(x.tries, 0)"
        sql = f"SELECT {columns} {self._wanting(space_id)} ORDER BY f.mtime_ns DESC, f.id, c.seq LIMIT ?5"
        found: dict[bytes, EmbedJob] = {}
        with self._database.reader() as db:
            rows = fetch(db, sql, (space.fingerprint, MAX_TRIES, local, _hexes(later), limit))
        for hash, title, aliases, trail, text, tokens, tries in rows:
            if hash not in found:
                note = NoteRow(title=title, aliases=tuple(json.loads(aliases)))
                passage = Passage(text, 0, 0, tuple(json.loads(trail)), tokens=tokens, hash=hash, note=note)
                found[hash] = EmbedJob(passage, tries)
        return list(found.values())

    def count_missing(self, space_id: int, *, local: bool, later: Collection[bytes] = ()) -> int:
        """How many chunks `missing` would still hand out, duplicates counted."""
        values = (self._space(space_id).fingerprint, MAX_TRIES, local, _hexes(later))
        with self._database.reader() as db:
            return int(db.execute(f"SELECT count(*) {self._wanting(space_id)}", values).get)

    def _wanting(self, space_id: int) -> str:
        """The passages without a vector; ?1 to ?4 are fingerprint, `MAX_TRIES`, `local` and `later`."""
        return (
            "FROM chunks c JOIN files f ON f.id = c.file_id "
            "LEFT JOIN failed x ON x.hash = c.hash AND x.fingerprint = ?1 "
            f"WHERE c.id NOT IN (SELECT {self._vec_key(space_id)}) AND coalesce(x.tries, 0) < ?2 "
            "AND (?3 OR NOT EXISTS (SELECT 1 FROM chunks d JOIN files g ON g.id = d.file_id "
            "WHERE d.hash = c.hash AND g.local_only)) "
            "AND (?4 = '[]' OR hex(c.hash) NOT IN (SELECT value FROM json_each(?4)))"
        )

    def fail(self, fingerprint: str, failures: Sequence[tuple[bytes, str]], *, permanent: bool = False) -> None:
        """Note that no vector could be made of these hashes, with the reason; permanent ones are not tried again."""
        tries = MAX_TRIES if permanent else 1
        with self._database.write() as db:
            db.executemany(
                "INSERT INTO failed VALUES (?1, ?2, ?3, ?4) ON CONFLICT(hash, fingerprint) "
                "DO UPDATE SET tries = min(tries + ?3, ?5), reason = ?4",
                ((hash, fingerprint, tries, reason, MAX_TRIES) for hash, reason in failures),
            )

    def forgive(self, fingerprint: str) -> None:
        """Forget the failures of an embedder, so that everything is tried again."""
        with self._database.write() as db:
            db.execute("DELETE FROM failed WHERE fingerprint = ?", (fingerprint,))

    # Within a transaction

    def add_known(self, db: apsw.Connection, chunk_ids: Sequence[int]) -> None:
        """Give new chunks a code in every space for which the cache has their vector."""
        for space in self._plain_spaces().values():
            self._insert_codes(db, space, chunk_ids)

    def drop(self, db: apsw.Connection, chunk_ids: Sequence[int]) -> None:
        """Remove chunks from all spaces."""
        for space_id in self._plain_spaces():
            db.executemany(f"DELETE FROM vec_{space_id} WHERE chunk_id = ?", ((chunk_id,) for chunk_id in chunk_ids))
        dead = np.array(chunk_ids, dtype=np.int64)

        def forget() -> None:
            for resident in self._codes.values():
                for codes in resident:
                    codes.remove(dead)

        self._database.after_commit(forget)

    def _vec_key(self, space_id: int) -> str:
        """`column FROM table` listing the chunk ids of a space."""
        return f"{'rowid' if self._database.vec0 else 'chunk_id'} FROM {schema.vec_ids(space_id, self._database.vec0)}"

    def _insert_codes(self, db: apsw.Connection, space: Space, ids: Sequence[int]) -> None:
        """Codes for those of the chunks whose vector is cached, in the table and in memory."""
        number = self._cache.number(db, space.fingerprint)
        sql = (
            f"SELECT c.id, v.vector, v.id, c.file_id IN (SELECT id FROM files WHERE {schema.OF_CONVERSATION}) "
            "FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value "
            f"CROSS JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash AND {fits(space.dim)}"
        )
        rows = fetch(db, sql, (listed(ids), number)) if ids else []
        places = np.array([(row[0], row[2]) for row in rows], dtype=np.int64).reshape(len(rows), 2)
        talk = np.array([row[3] for row in rows], dtype=bool)
        data = np.frombuffer(b"".join(row[1] for row in rows), np.float16).reshape(len(rows), space.dim)
        codes = pack(data)
        value = "vec_bit(?)" if self._database.vec0 else "?"
        db.executemany(
            f"INSERT INTO vec_{space.id}(chunk_id, code) VALUES (?, {value})",
            ((row[0], code.tobytes()) for row, code in zip(rows, codes, strict=True)),
        )

        def remember() -> None:
            resident = self._codes.get(space.id)
            if resident is not None:
                _add(resident, places, codes, talk)

        self._database.after_commit(remember)

    # Health

    def check(self) -> list[str]:
        """Compare the spaces with the passages and the cache, and mend them; a sentence for each that differed."""
        said = []
        for space in self.spaces():
            with self._database.write() as db:
                sql = (
                    f"SELECT {self._vec_key(space.id)} EXCEPT SELECT c.id FROM chunks c "
                    "JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash"
                )
                wrong = [(row[0],) for row in db.execute(sql, (self._cache.number(db, space.fingerprint),))]
                db.executemany(f"DELETE FROM vec_{space.id} WHERE chunk_id = ?", wrong)
                if wrong:
                    self._database.after_commit(lambda number=space.id: self._forget_space(number))  # type: ignore[misc]
            adopted = self.adopt(space.id)
            if wrong or adopted:
                said.append(f"The vectors of {space.name} were wrong: {adopted} added, {len(wrong)} removed.")
        return said

    def compact(self) -> None:
        """Rebuild code tables that are mostly empty."""
        for space in self.spaces() if self._database.vec0 else ():
            with self._database.reader() as db:
                held = int(db.execute(f"SELECT coalesce(sum(size), 0) FROM vec_{space.id}_chunks").get)
            if held <= 2 * space.vectors + _SLACK_ROWS:
                continue
            with self._database.write() as db:
                rows = fetch(db, f"SELECT chunk_id, code FROM vec_{space.id}")
                db.execute(f"DROP TABLE vec_{space.id}")
                db.execute(schema.vec_table(space.id, code_bits(space.dim), virtual=True))
                db.executemany(f"INSERT INTO vec_{space.id}(chunk_id, code) VALUES (?, vec_bit(?))", rows)


def _add(
    resident: tuple[Codes, Codes], places: npt.NDArray[np.int64], codes: Bytes, talk: npt.NDArray[np.bool]
) -> None:
    """Add codes to those of notes, or of conversations where `talk` says so; `places` are chunk ids and references."""
    for kind, which in zip(resident, (~talk, talk), strict=True):
        kind.add(places[which, 0], places[which, 1], codes[which])


def _matrix(rows: Sequence[Any], dim: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """(id, float16 blob) rows as arrays."""
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    data = np.frombuffer(b"".join([row[1] for row in rows]), np.float16).reshape(len(rows), dim)
    return ids, data.astype(np.float32)


def _hexes(hashes: Collection[bytes]) -> str:
    return json.dumps([hash.hex().upper() for hash in hashes])
