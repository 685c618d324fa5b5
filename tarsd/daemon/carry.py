"""Vectors that go to another machine, and those that come from one: what a model has made is not made twice."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Protocol

from tarsd.index import Indexer
from tarsd.protocol import VectorsRequest
from tarsd.store import Space, Store
from tarsd.store.transfer import export_vectors, import_vectors

Json = dict[str, Any]


class Threads(Protocol):
    """As `Engine.thread`."""

    def __call__(self, work: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        """`work(*arguments)` in a thread."""
        ...


async def export(opened: Callable[[], Store], thread: Threads) -> AsyncGenerator[Json, None]:
    """As `server.Engine.vectors`: objects that `VectorsRequest` reads, with the model's name for people.

    `opened` waits for the store; its errors are raised before the first object.
    """
    store = await thread(opened)
    spaces = {space.fingerprint: space for space in await thread(store.spaces)}
    batches = export_vectors(store)
    while (batch := await thread(next, batches, None)) is not None:
        fingerprint, rows = batch
        space = spaces.get(fingerprint)
        packed = [[hash.hex(), base64.b64encode(data).decode()] for hash, data in rows if space and _fits(data, space)]
        if space and packed:
            yield {"type": "vectors", "model": fingerprint, "name": space.name, "dim": space.dim, "rows": packed}


def _fits(vector: bytes, space: Space) -> bool:
    """Whether the bytes are as many as a vector of the space has; of a model's older width some may be left."""
    return len(vector) == 2 * space.dim


def add(store: Store, indexer: Indexer, request: VectorsRequest) -> Json:
    """As `server.Engine.add_vectors`. `fits`: whether they are of the configured model, None while that is not known.

    Raises BadRequest for vectors that are none, or not those of this model.
    """
    added = import_vectors(store, request.model, request.rows)
    return {"added": added, "known": len(request.rows) - added, "fits": indexer.took_in(request.model)}
