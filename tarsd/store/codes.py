"""Binary codes of a space, resident in memory: signs of the vectors packed into words, compared by popcount."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.floating[Any]]
Bytes = npt.NDArray[np.uint8]

_GONE = -1
# Rows compared at a time: the working set of a slab stays in the processor's cache.
_SLAB = 32_768
# How many more rows are compared by numbers and signs than are wanted: bits alone lose 3 in 100 of the table's best.
_WIDER = 4


def code_bits(dim: int) -> int:
    """Bits in a code of a `dim`-dimensional vector: padded to whole 64-bit words."""
    return -(-dim // 64) * 64


def pack(vectors: Floats) -> Bytes:
    """Signs of float[n, dim] vectors as uint8[n, code_bits(dim) / 8]."""
    rows, dim = vectors.shape
    bits = np.packbits(vectors > 0, axis=1)
    width = code_bits(dim) // 8
    if bits.shape[1] == width:
        return bits
    padded = np.zeros((rows, width), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded


def _words(codes: Bytes) -> Words:
    """uint8[n, 8 w] codes as uint64[w, n]: word-major, so that each comparison runs over contiguous memory."""
    return np.ascontiguousarray(np.ascontiguousarray(codes).view(np.uint64).T)


class Codes:
    """Codes of one space with their chunk ids and where their vectors are. One writer at a time; readers never wait.

    Rows are only ever appended; a removed row keeps its code and loses its id, so a reader that holds the
    arrays sees at worst a chunk that is already gone, never a wrong one.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._width = code_bits(dim) // 64
        self._lock = threading.Lock()
        self._set(np.empty((2, 0), np.int64), np.empty((self._width, 0), np.uint64))

    def _set(self, ids: Ids, words: Words) -> None:
        """`ids` is int64[2, n]: chunk ids and vector references."""
        rows: int = ids.shape[1]
        self._ids, self._words, self._rows, self._dead = ids, words, rows, 0
        self._view: tuple[Ids, Words] = (ids, words)

    def __len__(self) -> int:
        return self._rows - self._dead

    def ids(self) -> Ids:
        """The chunk ids that have a code here, in no particular order."""
        ids: Ids = self._view[0][0]
        return np.compress(ids != _GONE, ids)

    def add(self, ids: Ids, refs: Ids, codes: Bytes) -> None:
        """Append rows: int64[n] ids that are not there yet, their int64[n] references, uint8[n, width] codes."""
        count = len(ids)
        if not count:
            return
        with self._lock:
            rows = self._rows
            if rows + count > self._ids.shape[1]:
                capacity = max(1024, rows + count, rows + rows // 4)
                grown_ids = np.full((2, capacity), _GONE, np.int64)
                grown_words = np.zeros((self._width, capacity), np.uint64)
                grown_ids[:, :rows] = self._ids[:, :rows]
                grown_words[:, :rows] = self._words[:, :rows]
                self._ids, self._words = grown_ids, grown_words
            self._ids[0, rows : rows + count] = ids
            self._ids[1, rows : rows + count] = refs
            self._words[:, rows : rows + count] = _words(codes)
            self._rows = rows + count
            self._view = (self._ids[:, : self._rows], self._words[:, : self._rows])

    def remove(self, ids: Ids) -> None:
        """Drop the rows of these ids; unknown ids are ignored."""
        if not len(ids):
            return
        with self._lock:
            own = self._ids[0, : self._rows]
            hit = np.isin(own, ids)
            own[hit] = _GONE
            self._dead += int(hit.sum())
            if self._dead > 1024 and self._dead > self._rows // 2:
                keep = np.flatnonzero(own != _GONE)
                self._set(self._ids[:, keep], np.ascontiguousarray(self._words[:, keep]))

    def search(self, vector: Floats, count: int, only: Ids | None = None) -> tuple[Ids, Ids]:
        """The `count` rows most like a float[dim] vector as int64[m] chunk ids and int64[m] references, best first.

        First by differing bits, then, among several times as many, by the vector's own numbers against the signs.
        `only` restricts the answer to these chunk ids.
        """
        view = ids, words = self._view  # one for all steps: a position in another one is another chunk
        rows = _nearest(view, pack(vector.reshape(1, -1)), _WIDER * count, only)
        codes = np.ascontiguousarray(words[:, rows].T).view(np.uint8)
        signs = np.unpackbits(codes, axis=1)[:, : self._dim].astype(np.float32)
        likeness = signs @ np.asarray(vector, np.float32)
        best = rows[np.argsort(-likeness, kind="stable")[:count]]
        return ids[0, best], ids[1, best]


def _nearest(view: tuple[Ids, Words], code: Bytes, count: int, only: Ids | None) -> npt.NDArray[np.intp]:
    """The positions of the `count` rows with the fewest differing bits, in no particular order."""
    (ids, _), words = view
    if not len(ids):
        return np.empty(0, np.intp)
    query = np.ascontiguousarray(code).view(np.uint64).reshape(-1)
    distance = np.empty(len(ids), np.uint16)
    scratch = np.empty(min(_SLAB, len(ids)), np.uint64)
    bits = np.empty(len(scratch), np.uint8)
    for start in range(0, len(ids), _SLAB):
        out = distance[start : start + _SLAB]
        part, ones = scratch[: len(out)], bits[: len(out)]
        for number, word in enumerate(query):
            np.bitwise_xor(words[number, start : start + _SLAB], word, out=part)
            np.bitwise_count(part, out=ones)
            if number:
                out += ones
            else:
                out[:] = ones
    usable = ids != _GONE
    if only is not None:
        usable &= np.isin(ids, only)
    if not usable.all():
        distance[~usable] = np.iinfo(np.uint16).max
    if count >= len(ids):
        return np.flatnonzero(usable)
    picked: npt.NDArray[np.intp] = np.flatnonzero(distance <= _nth_smallest(distance, count))
    picked = picked[usable[picked]]
    if len(picked) > count:
        picked = picked[np.argsort(distance[picked], kind="stable")[:count]]
    return picked


def _nth_smallest(distance: npt.NDArray[np.uint16], count: int) -> int:
    """The count-th smallest value; estimated from a sample first, since few rows are wanted of very many."""
    if len(distance) > 16 * count + 65_536:
        step = 16
        sample = np.sort(distance[::step])
        guess = int(sample[min(len(sample) - 1, count // step + 64)])
        below = distance[distance <= guess]
        if len(below) >= count:
            return int(np.partition(below, count - 1)[count - 1])
    return int(np.partition(distance, count - 1)[count - 1])
