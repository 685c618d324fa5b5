"""A deterministic embedder without a model: hashed bags of words, so that texts that share words are near.

It counts what it is asked, and can be told to fail in each way that a real server has been seen to fail.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Sequence

import numpy as np

from tarsd.embed.base import Kind, Vectors, fingerprint, is_bad, normalised, nothing, unusable


class FakeEmbedder:
    """`calls`, `texts` (how many) and `seen` (all texts, in order) count; the other attributes make it misbehave.

    `error`: raised by each call until it is set to None again. `errors`: raised one by one, one a call, before
    anything else. `zeros` / `nans`: texts for which this holds come back as the server's zero or NaN vector would,
    that is as a row that is unusable this time. `refuse`: a bad row for good, as of texts that a server refuses.
    """

    former = ""
    local = True
    max_tokens = 512
    batch = 32

    def __init__(self, dim: int = 64, *, name: str | None = None, salt: str = "") -> None:
        self.name = name if name is not None else ("fake" if dim == 64 else f"fake:{dim}")
        self.dim = dim
        self.fingerprint = fingerprint("fake", self.name, dim, salt)
        self.calls = 0
        self.texts = 0
        self.seen: list[str] = []
        self.closed = False
        self.error: Exception | None = None
        self.errors: list[Exception] = []
        self.zeros: Callable[[str], bool] | None = None
        self.nans: Callable[[str], bool] | None = None
        self.refuse: Callable[[str], bool] | None = None
        self._salt = salt
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), dim]; a text without any letter or digit is a bad row."""
        with self._lock:
            self.calls += 1
            self.texts += len(texts)
            self.seen.extend(texts)
            error = self.errors.pop(0) if self.errors else self.error
        if error is not None:
            raise error
        if not texts:
            return nothing(0, self.dim)
        return np.stack([self._row(text) for text in texts])

    def ask_again(self) -> None:
        """Nobody is asked."""

    def close(self) -> None:
        self.closed = True

    def _row(self, text: str) -> Vectors:
        row = np.zeros((1, self.dim))
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.blake2b((self._salt + word).encode(), digest_size=8).digest()
            # Two places a word keep different words apart even at few dimensions.
            for half in (digest[:4], digest[4:]):
                at = int.from_bytes(half, "big")
                row[0, at % self.dim] += 1.0 if at & 0x80000000 else -1.0
        if self.refuse is not None and self.refuse(text):
            row[:] = np.nan
        elif any(lies is not None and lies(text) for lies in (self.zeros, self.nans)):
            return np.asarray(unusable(1, self.dim)[0], dtype=np.float32)
        unit = normalised(row)
        if is_bad(unit)[0] and np.isfinite(row).all() and re.search(r"\w", text):
            # Words that cancel each other out exactly still deserve a vector.
            row[0, len(text) % self.dim] = 1.0
            unit = normalised(row)
        vector: Vectors = unit[0]
        return vector
