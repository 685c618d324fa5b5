"""Prepared notes with vectors, put into a store without a vault."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from tarsd.passage import NoteRow, Passage
from tarsd.store import Batch, Prepared, Store, links

WEIGHTS = (4.0, 3.0, 2.0, 2.0, 1.0, 1.0)


DIM = 96


def digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def vector(text: str, dim: int = DIM) -> np.ndarray:
    seed = int.from_bytes(digest(text)[:4], "big")
    return np.random.default_rng(seed).standard_normal(dim)


def note(
    path: str,
    *texts: str,
    linked: Sequence[tuple[str, str]] = (),
    aliases: Sequence[str] = (),
    tags: Sequence[str] = (),
    mtime: int = 0,
    local_only: bool = False,
    words: str = "",
    collection: str = "",
) -> Prepared:
    """A prepared note: one chunk a text; `linked` are (target, shown text)."""
    row = NoteRow(
        collection=collection,
        path=path,
        title=path.rpartition("/")[2].removesuffix(".md"),
        aliases=tuple(aliases),
        tags=tuple(tags),
        kind="note",
        local_only=local_only,
        mtime_ns=mtime,
        size=len("".join(texts)),
    )
    return Prepared(
        note=row,
        disk=f"/{path}",
        hash=digest(repr(texts)).hex(),
        chunker="c1",
        properties="{}",
        words=words,
        problems=(),
        passages=tuple(
            Passage(text, i + 1, i + 1, seq=i, tokens=3, hash=digest(text), note=row) for i, text in enumerate(texts)
        ),
        links=tuple((i + 1, target, "", "", text, False) for i, (target, text) in enumerate(linked)),
    )


def filled(store: Store, *notes: Prepared, fingerprint: str = "f1") -> int:
    """Put notes with their vectors; the id of the space."""
    space = store.vectors.ensure_space("table", fingerprint, DIM, "table")
    texts = [passage.text for prepared in notes for passage in prepared.passages]
    if texts:
        store.cache.put(fingerprint, [digest(text) for text in texts], np.array([vector(text) for text in texts]))
    store.apply(Batch(put=notes))
    return space.id


def found(store: Store, match: str) -> list[str]:
    return [hit.note.path for hit in store.notes.passages(chunk for chunk, _ in store.search.fts(match, WEIGHTS, 20))]


def at(path: str, alias: bool = False) -> links.LinkTarget:
    return links.LinkTarget(sum(path.encode()), links.path_fold(path), path, alias)
