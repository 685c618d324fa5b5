"""Vectors: the cache that all vaults share, and the spaces of this index that are made from it."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from tarsd.errors import StoreError
from tarsd.passage import NoteRow, Passage
from tarsd.store import schema
from tarsd.store.codes import code_bits, pack
from tarsd.store.database import fetch
from tarsd.store.reading import Reading, fits
from tarsd.store.rows import EmbedJob, Role, Space

MAX_TRIES = 3
_SLICE = 2_000


class Spaces(Reading):
    """The write side of vectors. A code in a space always has its vector in the cache: the cache is written first."""

    def ensure_space(self, name: str, fingerprint: str, dim: int, role: Role) -> Space:
        """The space of an embedder, made if need be and filled with what the cache already has."""
        known = self.space_for(fingerprint)
        if known is None:
            with self._transaction(self._db) as db:
                db.execute(
                    "INSERT INTO spaces(name, fingerprint, dim, role, state) VALUES (?, ?, ?, ?, 'building')",
                    (name, fingerprint, dim, role),
                )
                db.execute(schema.vec_table(db.last_insert_rowid(), code_bits(dim), self.vec0))
                self._after.append(lambda: self._forget_space(0))
            known = self.space_for(fingerprint)
            assert known is not None
        self.adopt(known.id)
        return known

    def activate(self, space_id: int) -> None:
        """The space is complete: from now on it stands for its role, and the role's other spaces are dropped."""
        space = self._space(space_id)
        with self._transaction(self._db) as db:
            db.execute("UPDATE spaces SET state = 'active' WHERE id = ?", (space_id,))
            self._after.append(lambda: self._forget_space(0))
        for other in self.spaces():
            if other.role == space.role and other.id != space_id:
                self.drop_space(other.id)

    def drop_space(self, space_id: int) -> None:
        """Remove a space from the index; its vectors stay in the cache."""
        with self._transaction(self._db) as db:
            db.execute(f"DROP TABLE IF EXISTS vec_{space_id}")
            db.execute("DELETE FROM spaces WHERE id = ?", (space_id,))
            self._after.append(lambda: self._forget_space(space_id))

    def _forget_space(self, space_id: int) -> None:
        self._known_spaces = None
        self._codes.pop(space_id, None)

    def cache_vectors(
        self, fingerprint: str, hashes: Sequence[bytes], vectors: npt.NDArray[np.floating[Any]]
    ) -> tuple[int, list[int]]:
        """Put vectors (float[n, dim], one per hash) into the cache; how many were new, and the positions of bad ones.

        Known ones stay as they are, unless they have another length than these. Bad is what cannot be compared: not
        finite, or without length.
        """
        data = np.asarray(vectors, dtype=np.float32)
        norms = np.linalg.norm(data, axis=1)
        good = np.isfinite(norms) & (norms > 0)
        unit = (data[good] / norms[good, None]).astype(np.float16)
        added = 0
        if good.any():
            with self._transaction(self._vectors) as db:
                number = _register(db, fingerprint)
                before = db.total_changes()
                wanted = [hash for hash, fine in zip(hashes, good, strict=True) if fine]
                db.executemany(
                    # One of another length can be read into no space; kept, its text would stay missing for ever.
                    "INSERT INTO vectors(embedder, hash, vector, used) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT(embedder, hash) DO UPDATE SET vector = excluded.vector, used = excluded.used "
                    "WHERE length(vector) != length(excluded.vector)",
                    ((number, hash, row.tobytes(), today()) for hash, row in zip(wanted, unit, strict=True)),
                )
                added = db.total_changes() - before
        return added, [int(position) for position in np.flatnonzero(~good)]

    def cached(self, fingerprint: str, hashes: Sequence[bytes]) -> set[bytes]:
        """Which of the hashes have a vector of this embedder already."""
        with self.reader() as db:
            number = self._embedder(db, fingerprint)
            sql = "SELECT 1 FROM emb.vectors WHERE embedder = ? AND hash = ?"
            return {hash for hash in hashes if db.execute(sql, (number, hash)).get}

    def put_vectors(self, space_id: int, hashes: Sequence[bytes], vectors: npt.NDArray[np.floating[Any]]) -> list[int]:
        """Cache vectors and give them to every chunk with these hashes; the positions of bad vectors.

        Vectors of another length than the space's raise StoreError.
        """
        space = self._space(space_id)
        width = np.asarray(vectors).shape[1]
        if len(hashes) and width != space.dim:
            raise StoreError(f"Vectors of {width} numbers cannot be kept beside those of {space.dim}: another model.")
        _, bad = self.cache_vectors(space.fingerprint, hashes, vectors)
        spoiled = set(bad)
        fine = [hash for position, hash in enumerate(hashes) if position not in spoiled]
        with self._transaction(self._db) as db:
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
        with self.reader() as db:
            ids = [row[0] for row in db.execute(sql, (self._embedder(db, space.fingerprint),))]
        for start in range(0, len(ids), _SLICE):
            with self._transaction(self._db) as db:
                self._insert_codes(db, space, ids[start : start + _SLICE])
        return len(ids)

    def missing(self, space_id: int, limit: int, *, local: bool, later: Collection[bytes] = ()) -> list[EmbedJob]:
        """Passages without a vector, each text once, of the newest notes first.

        Left out: what failed `MAX_TRIES` times, the hashes in `later`, and without `local` the notes that must not
        leave this machine.
        """
        space = self._space(space_id)
        sql = (
            "SELECT c.hash, f.title, f.aliases, c.trail, c.text, c.tokens, coalesce(x.tries, 0) "
            "FROM chunks c JOIN files f ON f.id = c.file_id "
            "LEFT JOIN failed x ON x.hash = c.hash AND x.fingerprint = ?1 "
            f"WHERE c.id NOT IN (SELECT {self._vec_key(space_id)}) AND coalesce(x.tries, 0) < ?2 "
            "AND (?3 OR NOT EXISTS (SELECT 1 FROM chunks d JOIN files g ON g.id = d.file_id "
            "WHERE d.hash = c.hash AND g.local_only)) "
            "AND (?5 = '[]' OR hex(c.hash) NOT IN (SELECT value FROM json_each(?5))) "
            "ORDER BY f.mtime_ns DESC, f.id, c.seq LIMIT ?4"
        )
        found: dict[bytes, EmbedJob] = {}
        with self.reader() as db:
            rows = fetch(db, sql, (space.fingerprint, MAX_TRIES, local, limit, _hexes(later)))
        for hash, title, aliases, trail, text, tokens, tries in rows:
            if hash not in found:
                note = NoteRow(title=title, aliases=tuple(json.loads(aliases)))
                passage = Passage(text, 0, 0, tuple(json.loads(trail)), tokens=tokens, hash=hash, note=note)
                found[hash] = EmbedJob(passage, tries)
        return list(found.values())

    def count_missing(self, space_id: int, *, local: bool, later: Collection[bytes] = ()) -> int:
        """How many chunks `missing` would still hand out, duplicates counted."""
        space = self._space(space_id)
        sql = (
            "SELECT count(*) FROM chunks c JOIN files f ON f.id = c.file_id "
            "LEFT JOIN failed x ON x.hash = c.hash AND x.fingerprint = ?1 "
            f"WHERE c.id NOT IN (SELECT {self._vec_key(space_id)}) AND coalesce(x.tries, 0) < ?2 "
            "AND (?3 OR NOT f.local_only) AND (?4 = '[]' OR hex(c.hash) NOT IN (SELECT value FROM json_each(?4)))"
        )
        with self.reader() as db:
            return int(db.execute(sql, (space.fingerprint, MAX_TRIES, local, _hexes(later))).get)

    def fail(self, fingerprint: str, failures: Sequence[tuple[bytes, str]], *, permanent: bool = False) -> None:
        """Note that no vector could be made of these hashes, with the reason; permanent ones are not tried again."""
        tries = MAX_TRIES if permanent else 1
        with self._transaction(self._db) as db:
            db.executemany(
                "INSERT INTO failed VALUES (?1, ?2, ?3, ?4) ON CONFLICT(hash, fingerprint) "
                "DO UPDATE SET tries = min(tries + ?3, ?5), reason = ?4",
                ((hash, fingerprint, tries, reason, MAX_TRIES) for hash, reason in failures),
            )

    def forgive(self, fingerprint: str) -> None:
        """Forget the failures of an embedder, so that everything is tried again."""
        with self._transaction(self._db) as db:
            db.execute("DELETE FROM failed WHERE fingerprint = ?", (fingerprint,))

    # For the layers above

    def _vec_key(self, space_id: int) -> str:
        """`column FROM table` listing the chunk ids of a space."""
        return f"{'rowid' if self.vec0 else 'chunk_id'} FROM {schema.vec_ids(space_id, self.vec0)}"

    def _insert_codes(self, db: apsw.Connection, space: Space, ids: Sequence[int]) -> None:
        """Codes for those of the chunks whose vector is cached, in the table and in memory."""
        number = self._embedder(db, space.fingerprint)
        sql = (
            "SELECT c.id, v.vector, v.id FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value "
            f"CROSS JOIN emb.vectors v ON v.embedder = ? AND v.hash = c.hash AND {fits(space.dim)}"
        )
        rows = fetch(db, sql, (json.dumps(list(ids)), number)) if ids else []
        places = np.array([(row[0], row[2]) for row in rows], dtype=np.int64).reshape(len(rows), 2)
        data = np.frombuffer(b"".join(row[1] for row in rows), np.float16).reshape(len(rows), space.dim)
        codes = pack(data)
        value = "vec_bit(?)" if self.vec0 else "?"
        db.executemany(
            f"INSERT INTO vec_{space.id}(chunk_id, code) VALUES (?, {value})",
            ((row[0], code.tobytes()) for row, code in zip(rows, codes, strict=True)),
        )

        def remember() -> None:
            resident = self._codes.get(space.id)
            if resident is not None:
                resident.add(places[:, 0], places[:, 1], codes)

        self._after.append(remember)


def _hexes(hashes: Collection[bytes]) -> str:
    return json.dumps([hash.hex().upper() for hash in hashes])


def today() -> int:
    """The day, counted from 1970 in UTC."""
    return int(time.time() // 86_400)


def _register(db: apsw.Connection, fingerprint: str) -> int:
    db.execute("INSERT OR IGNORE INTO embedders(fingerprint) VALUES (?)", (fingerprint,))
    return int(db.execute("SELECT id FROM embedders WHERE fingerprint = ?", (fingerprint,)).get)
