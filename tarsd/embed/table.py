"""The instant table: one 256-number row a WordPiece token, so that a vault has vectors seconds after it is seen.

The rows are WordLlama's, carried over to MiniLM's vocabulary (scripts/models), because the chunker has those token
ids already. A text is the sum of its tokens' rows, each weighted by 1 + ln(how often it occurs).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tarsd.chunk import token_ids
from tarsd.embed.base import Kind, Vectors, fingerprint, normalised, nothing

DIM: Final = 256
# SHA-256 of vectors.npy; a test compares it with the file, so that a start needs no hashing of 8 MB.
VECTORS_SHA256: Final = "4907e4b1fa39621d69e5935e0b47595736153f93cbe74000568b94d5129fdca7"
UNKNOWN, MARK, WORD = 0, 1, 2
# Where fewer of a text's words than this are known, the few that are would speak for all the others.
KNOWN_SHARE: Final = 0.25
# Texts a matrix product: few enough that their common vocabulary stays small, enough to keep BLAS busy.
_BLOCK: Final = 48
_FOLDER: Final = Path(str(files("tarsd"))) / "data" / "table"


@dataclass(frozen=True)
class _Data:
    vectors: NDArray[np.int8]
    scales: NDArray[np.float32]
    kinds: NDArray[np.uint8]


class TableEmbedder:
    """Builtin, local, without a model; 10,000 chunks and more a second and core."""

    name: Final = "table"
    dim: Final = DIM
    fingerprint: Final = fingerprint("table", VECTORS_SHA256, "1+ln")
    former: Final = ""
    local: Final = True
    max_tokens: Final = 100_000
    batch: Final = 512

    def __init__(self) -> None:
        self._loaded: _Data | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), 256]; a text with too few known words is a bad row. Documents and queries alike."""
        return self.embed_ids([token_ids(text) for text in texts])

    def embed_ids(self, ids: Sequence[Sequence[int] | NDArray[np.integer]]) -> Vectors:
        """The same for texts whose token ids (`chunk.token_ids`) are at hand: the fast path of indexing."""
        data = self._data()
        out = nothing(len(ids), DIM)
        for start in range(0, len(ids), _BLOCK):
            block = [np.asarray(text_ids, dtype=np.intp) for text_ids in ids[start : start + _BLOCK]]
            out[start : start + len(block)] = _block(data, block)
        return out

    def ask_again(self) -> None:
        """Nobody is asked."""

    def close(self) -> None:
        self._loaded = None

    def _data(self) -> _Data:
        with self._lock:
            if self._loaded is None:
                # Mapped, so that processes share the pages and only those in use count.
                vectors = np.load(_FOLDER / "vectors.npy", mmap_mode="r")
                self._loaded = _Data(vectors, np.load(_FOLDER / "scales.npy"), load_kinds())
            return self._loaded


def load_kinds() -> NDArray[np.uint8]:
    """uint8 [30522]: whether each token of MiniLM's vocabulary is UNKNOWN, a MARK or (part of) a WORD to the table."""
    kinds: NDArray[np.uint8] = np.load(_FOLDER / "kinds.npy")
    return kinds


def _block(data: _Data, block: list[NDArray[np.intp]]) -> Vectors:
    """The rows of a few texts by one matrix product over the tokens they have in common."""
    lengths = np.fromiter((len(ids) for ids in block), dtype=np.intp, count=len(block))
    flat = np.concatenate(block) if block else np.zeros(0, dtype=np.intp)
    owner = np.repeat(np.arange(len(block)), lengths)
    kinds = data.kinds[flat]
    words = kinds == WORD
    known = np.bincount(owner[words], minlength=len(block))
    wordlike = np.bincount(owner[kinds != MARK], minlength=len(block))
    flat, owner = flat[words], owner[words]

    present = np.zeros(len(data.kinds), dtype=np.bool_)
    present[flat] = True
    tokens = np.flatnonzero(present)
    place = np.zeros(len(data.kinds), dtype=np.intp)
    place[tokens] = np.arange(len(tokens))
    counts = np.bincount(owner * len(tokens) + place[flat], minlength=len(block) * len(tokens))
    weights = np.zeros(len(counts), dtype=np.float32)
    some = np.flatnonzero(counts)
    weights[some] = 1.0 + np.log(counts[some])
    weights = weights.reshape(len(block), len(tokens)) * data.scales[tokens]

    vectors = normalised(weights @ data.vectors[tokens].astype(np.float32))
    vectors[known < KNOWN_SHARE * np.maximum(wordlike, 1)] = np.nan
    return vectors
