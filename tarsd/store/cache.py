"""The cache of vectors that all vaults share, by (passage hash, embedder): what was embedded once is never again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from tarsd.store.database import Database, fetch

_TOUCHED_DAYS = 7
_KEPT_DAYS = 90
_CONDEMNED_DAYS = 7
_SLICE = 2_000


class VectorCache:
    """Vectors of unit length, as float16. Written before the index, so that a code there always has its vector here."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers: dict[str, int] = {}
        database.after_reopen.append(self._numbers.clear)

    def number(self, db: apsw.Connection, fingerprint: str) -> int:
        """The number of an embedder in the cache, -1 if it is not there."""
        known = self._numbers.get(fingerprint)
        if known is None:
            found = db.execute("SELECT id FROM emb.embedders WHERE fingerprint = ?", (fingerprint,)).get
            if found is None:
                return -1
            known = self._numbers[fingerprint] = int(found)
        return known

    def put(
        self, fingerprint: str, hashes: Sequence[bytes], vectors: npt.NDArray[np.floating[Any]]
    ) -> tuple[int, list[int]]:
        """Keep vectors (float[n, dim], one per hash); how many were new, and the positions of bad ones.

        Known ones stay as they are, unless they have another length than these. Bad is what cannot be compared: not
        finite, or without length.
        """
        data = np.asarray(vectors, dtype=np.float32)
        norms = np.linalg.norm(data, axis=1)
        good = np.isfinite(norms) & (norms > 0)
        unit = (data[good] / norms[good, None]).astype(np.float16)
        added = 0
        if good.any():
            with self._database.write_cache() as db:
                db.execute("INSERT OR IGNORE INTO embedders(fingerprint) VALUES (?)", (fingerprint,))
                number = int(db.execute("SELECT id FROM embedders WHERE fingerprint = ?", (fingerprint,)).get)
                before = db.total_changes()
                wanted = [hash for hash, fine in zip(hashes, good, strict=True) if fine]
                db.executemany(
                    # One of another length can be read into no space; kept, its text would stay missing for ever.
                    "INSERT INTO vectors(embedder, hash, vector, used) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT(embedder, hash) DO UPDATE SET vector = excluded.vector, used = excluded.used "
                    "WHERE length(vector) != length(excluded.vector)",
                    ((number, hash, row.tobytes(), _today()) for hash, row in zip(wanted, unit, strict=True)),
                )
                added = db.total_changes() - before
        return added, [int(position) for position in np.flatnonzero(~good)]

    def rename(self, old: str, new: str) -> None:
        """The vectors of one fingerprint are those of another from now on, unless that has some."""
        with self._database.write_cache() as db:
            db.execute("UPDATE OR IGNORE embedders SET fingerprint = ? WHERE fingerprint = ?", (new, old))
        self._numbers.clear()

    def known(self, fingerprint: str, hashes: Sequence[bytes]) -> set[bytes]:
        """Which of the hashes have a vector of this embedder already."""
        with self._database.reader() as db:
            number = self.number(db, fingerprint)
            sql = "SELECT 1 FROM emb.vectors WHERE embedder = ? AND hash = ?"
            return {hash for hash in hashes if db.execute(sql, (number, hash)).get}

    def tidy(self) -> None:
        """Once a day, when the index is complete: keep the vectors of its passages, and drop those that none has.

        Other vaults share the cache, and only their own daemons know what they use: so each marks what it uses. What
        nobody marked for three months is condemned, and dropped at the earliest a week later: a clock that was wrong
        for a day must not cost what took hours to make.
        """
        day = _today()
        if self._database.meta("tidied") == day:
            return
        with self._database.reader() as db:
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
            with self._database.write_cache() as db:
                ids = [(day, row[0]) for row in mine[start : start + _SLICE]]
                db.executemany("UPDATE vectors SET used = ? WHERE id = ?", ids)
        for start in range(0, len(dead), _SLICE):
            with self._database.write_cache() as db:
                db.executemany("DELETE FROM vectors WHERE id = ? AND used < 0", dead[start : start + _SLICE])
        with self._database.write_cache() as db:
            # from a daemon that does not know these days yet, or whose clock was ahead
            db.execute("UPDATE vectors SET used = ?1 WHERE used = 0 OR used > ?1 OR -used > ?1", (day,))
            old = "used BETWEEN 1 AND ?1 - ?2 OR used < 0 AND -used < ?1 - ?2"
            db.execute(f"UPDATE vectors SET used = -?1 WHERE {old}", (day, _KEPT_DAYS))
        self._database.set_meta("tidied", day)


def _today() -> int:
    """The day, counted from 1970 in UTC."""
    return int(time.time() // 86_400)
