"""Vectors that were made on one machine, for another one that has the same notes: nothing is embedded twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tarsd.errors import BadRequest
from tarsd.store.database import fetch
from tarsd.store.upkeep import Store

BATCH = 256
HASH_BYTES = 16
MOST_NUMBERS = 8_192
"""The longest vector that any setting allows."""

Row = tuple[bytes, bytes]
"""A passage's hash, and its vector as float16[dim] in bytes, little-endian."""


def export_vectors(store: Store) -> Iterator[tuple[str, list[Row]]]:
    """What the cache has for the passages of this vault, at most 256 rows at a time, each with its fingerprint.

    The instant table's are left out: they are made faster than they are carried.
    """
    names = {space.fingerprint for space in store.spaces() if space.role == "model"}
    for name in sorted(names):
        last = b""
        while True:
            with store.reader() as db:
                rows = fetch(
                    db,
                    "SELECT v.hash, v.vector FROM emb.vectors v JOIN emb.embedders e ON e.id = v.embedder "
                    "WHERE e.fingerprint = ? AND v.hash > ? AND v.hash IN (SELECT hash FROM chunks) "
                    "ORDER BY v.hash LIMIT ?",
                    (name, last, BATCH),
                )
            if not rows:
                break
            yield name, [(bytes(row[0]), bytes(row[1])) for row in rows]
            last = rows[-1][0]


def import_vectors(store: Store, fingerprint: str, rows: Sequence[Row]) -> int:
    """Put vectors into the cache, and give them to the passages that are here; how many were new.

    Raises BadRequest when they are not what `export_vectors` gives.
    """
    widths = {len(vector) for _, vector in rows}
    hashes = [hash for hash, _ in rows]
    if len(widths) != 1 or not all(0 < width <= 2 * MOST_NUMBERS and width % 2 == 0 for width in widths):
        raise BadRequest("The vectors are not all of one length.", "Export them anew.", field="rows")
    if any(len(hash) != HASH_BYTES for hash in hashes):
        raise BadRequest("A passage's hash has another length.", "Export them anew.", field="rows")
    data = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f2").reshape(len(rows), -1)
    added, bad = store.cache_vectors(fingerprint, hashes, data.astype(np.float32))
    if bad:
        raise BadRequest(f"{len(bad)} vectors cannot be compared with anything.", "Export them anew.", field="rows")
    return added
