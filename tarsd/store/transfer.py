"""Vectors that were made on one machine, for another one that has the same notes: nothing is embedded twice."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tarsd.errors import BadRequest
from tarsd.store.database import fetch
from tarsd.store.rows import Space
from tarsd.store.store import Store
from tarsd.store.vectors import fits

BATCH = 256
HASH_BYTES = 16
MOST_NUMBERS = 8_192
"""The longest vector that any setting allows."""

AGAIN = "Export them again."

Row = tuple[bytes, bytes]
"""A passage's hash, and its vector as float16[dim] in bytes, little-endian."""


def export_vectors(store: Store) -> Iterator[dict[str, Any]]:
    """What the cache has for the passages of this vault, as objects that `VectorsRequest` reads, each 256 rows at most.

    The instant table's are left out: they are made faster than they are carried. `name` is the model's, for people.
    """
    spaces = [space for space in store.vectors.spaces() if space.role == "model"]
    for space in sorted(spaces, key=lambda space: space.fingerprint):
        last = b""
        while rows := _exported(store, space, last):
            packed = [[hash.hex(), base64.b64encode(vector).decode()] for hash, vector in rows]
            yield {
                "type": "vectors", "model": space.fingerprint, "name": space.name, "dim": space.dim, "rows": packed,
            }  # fmt: skip
            last = rows[-1][0]


def _exported(store: Store, space: Space, after: bytes) -> list[Row]:
    """The vectors whose passages' hashes follow `after`; those of a model's older width stay behind."""
    sql = (
        "SELECT v.hash, v.vector FROM emb.vectors v JOIN emb.embedders e ON e.id = v.embedder "
        f"WHERE e.fingerprint = ? AND {fits(space.dim)} AND v.hash > ? AND v.hash IN (SELECT hash FROM chunks) "
        "ORDER BY v.hash LIMIT ?"
    )
    with store.database.reader() as db:
        return [(bytes(hash), bytes(vector)) for hash, vector in fetch(db, sql, (space.fingerprint, after, BATCH))]


def import_vectors(store: Store, fingerprint: str, rows: Sequence[Row]) -> int:
    """Put vectors into the cache, and give them to the passages that are here; how many were new.

    Raises BadRequest, and keeps none of them, when they are not what `export_vectors` gives.
    """
    widths = {len(vector) for _, vector in rows}
    hashes = [hash for hash, _ in rows]
    if len(widths) != 1 or not all(0 < width <= 2 * MOST_NUMBERS and width % 2 == 0 for width in widths):
        raise BadRequest("The vectors have different lengths.", AGAIN, field="rows")
    if any(len(hash) != HASH_BYTES for hash in hashes):
        raise BadRequest("A passage's hash has the wrong length.", AGAIN, field="rows")
    data = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f2").reshape(len(rows), -1)
    vectors = data.astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1)
    bad = int(np.count_nonzero(~np.isfinite(norms) | (norms == 0)))
    if bad:
        raise BadRequest(f"{bad} of the vectors are invalid.", AGAIN, field="rows")
    new = len(set(hashes) - store.cache.known(fingerprint, hashes))
    space = store.vectors.space_for(fingerprint)
    dim = space.dim if space is not None else _dim(store, fingerprint)
    if dim not in (0, vectors.shape[1]):
        message = f"Vectors of this model have {dim} dimensions, but these have {vectors.shape[1]}."
        raise BadRequest(message, AGAIN, field="dim")
    if space is None:
        store.cache.put(fingerprint, hashes, vectors)
        space = store.vectors.space_for(fingerprint)  # made meanwhile, it may have been filled before these were there
    if space is not None:
        store.vectors.put(space.id, hashes, vectors)
    return new


def _dim(store: Store, fingerprint: str) -> int:
    """How many numbers a vector of this model has in the cache, where other vaults' are as well; 0 if there is none."""
    with store.database.reader() as db:
        found = db.execute(
            "SELECT length(v.vector) FROM emb.embedders e JOIN emb.vectors v ON v.embedder = e.id "
            "WHERE e.fingerprint = ? LIMIT 1",
            (fingerprint,),
        ).get
    return int(found or 0) // 2
