"""Notes that belong to a note: near in meaning, linked with it, or named by it."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tarsd.errors import NotFound
from tarsd.passage import Key, NoteRow, Passage
from tarsd.search.titles import TitleIndex
from tarsd.search.vectors import VectorSpaces
from tarsd.store import Store

_NEIGHBOURS = 100
# Passages of a long note that look for neighbours of their own, besides the mean of all.
_QUERIES = 8
_LINKED, _SHARED, _NAMED = 0.15, 0.05, 0.1
_READ = 200_000


@dataclass
class _Candidate:
    nearness: float = 0.0
    chunk_id: int | None = None
    bonus: float = 0.0
    reasons: list[str] = field(default_factory=list)


def related(store: Store, spaces: VectorSpaces, titles: Sequence[TitleIndex], key: Key, limit: int) -> list[Passage]:
    """The notes nearest to the one at (collection, path), itself excluded, each with its nearest passage.

    `relevance` is the nearness in meaning, with what links add. Raises NotFound for a note that is not in the index.
    """
    note = store.notes.note(key)
    if note is None:
        raise NotFound(f"{key[1]} is not in the index.", "`tarsd why` tells why a note is not found.")
    chunks = store.notes.passages_of(note.id)
    found: defaultdict[int, _Candidate] = defaultdict(_Candidate)
    _by_meaning(store, spaces, note, chunks, found)
    _by_links(store, note, found)
    text = "\n".join(chunk.text for chunk in chunks)[:_READ]
    for file_id in {file_id for names in titles for file_id in names.mentioned(text)}:
        _add(found[file_id], _NAMED, "named in the note")
    found.pop(note.id, None)
    ranked = sorted(found.items(), key=lambda item: (-(item[1].nearness + item[1].bonus), item[0]))
    hits: list[Passage] = []
    for file_id, candidate in ranked:
        if len(hits) >= limit:
            break
        rows = (
            store.notes.passages([candidate.chunk_id])
            if candidate.chunk_id is not None
            else store.notes.opening(file_id)
        )
        if rows:
            value = min(1.0, candidate.nearness + candidate.bonus)
            hits.append(replace(rows[0], score=value, relevance=value, why=tuple(candidate.reasons)))
    return hits


def _add(candidate: _Candidate, bonus: float, reason: str) -> None:
    candidate.bonus += bonus
    candidate.reasons.append(reason)


def _by_meaning(
    store: Store, spaces: VectorSpaces, note: NoteRow, chunks: list[Passage], found: defaultdict[int, _Candidate]
) -> None:
    space = spaces.best_space()
    if space is None:
        return
    own, vectors = store.vectors.of(space.id, [chunk.id for chunk in chunks])
    if not len(own):
        return
    mean = vectors.mean(axis=0)
    step = max(1, math.ceil(len(vectors) / _QUERIES))
    queries = [mean] if len(vectors) == 1 else [mean, *vectors[::step]]
    mine = set(own.tolist())
    nearest: dict[int, float] = {}
    kinds = (False, True) if store.notes.conversations() else (False,)
    for query, kind in itertools.product(queries, kinds):
        most = _NEIGHBOURS + min(len(mine), _NEIGHBOURS)
        for chunk_id, cosine in store.vectors.knn(space.id, query, most, conversations=kind):
            if chunk_id not in mine:
                nearest[chunk_id] = max(cosine, nearest.get(chunk_id, -1.0))
    ids, rows = store.vectors.of(space.id, nearest)
    length = float(np.linalg.norm(mean))
    to_mean = dict(zip(ids.tolist(), (rows @ (mean / length)).tolist(), strict=True)) if length else {}
    for chunk_id, file_id in store.notes.files_of(nearest).items():
        # The mean says what the note is about, the nearest passage whether any part of it is.
        value = max(0.0, 0.5 * (to_mean.get(chunk_id, 0.0) + nearest[chunk_id]))
        candidate = found[file_id]
        if value > candidate.nearness:
            candidate.nearness, candidate.chunk_id = value, chunk_id
    for file_id, candidate in found.items():
        if file_id != note.id:
            candidate.reasons.append(f"meaning {candidate.nearness:.2f} ({space.name})")


def _by_links(store: Store, note: NoteRow, found: defaultdict[int, _Candidate]) -> None:
    by_path = {row.path: row.id for row in store.notes.titles() if row.collection == note.collection}
    out = {link.target_path for link in store.notes.links_from(note.id) if link.target_path}
    into = {link.source_path for link in store.notes.links_to(note.id)}
    for path in out | into:
        if path in by_path:
            _add(found[by_path[path]], _LINKED, "linked from here" if path in out else "links here")
    shared: Counter[str] = Counter()
    for path in sorted(out)[:50]:
        if path in by_path:
            shared.update({link.source_path for link in store.notes.links_to(by_path[path])})
    for path, count in shared.most_common(200):
        if path in by_path and by_path[path] != note.id:
            what = "1 link in common" if count == 1 else f"{count} links in common"
            _add(found[by_path[path]], min(0.15, _SHARED * math.log2(1 + count)), what)
