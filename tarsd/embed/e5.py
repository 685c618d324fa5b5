"""The multilingual model, multilingual-e5-small in int8 on onnxruntime; its files come with `tarsd[multilingual]`.

The word table is mapped, so that all processes share its pages; only the encoder's weights are each process's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tarsd.embed import e5_files
from tarsd.embed.base import Kind, Vectors, fingerprint, normalised, nothing, prefixes
from tarsd.embed.session import ModelSession
from tarsd.embed.unigram import Unigram

DIM: Final = 384
MAX_TOKENS: Final = 512
_BEGIN, _END = 0, 2


class E5:
    """Builtin and local. Files are made at the first text if they are not there yet; `rest_s` as of MiniLM."""

    name: Final = "e5"
    dim: Final = DIM
    fingerprint: Final = fingerprint("e5", e5_files.DATA_SHA256, e5_files.FORM, MAX_TOKENS)
    former: Final = ""
    local: Final = True
    max_tokens: Final = MAX_TOKENS
    batch: Final = 32

    def __init__(
        self, threads: int = 1, *, rest_s: float | None = None, rested: Callable[[], object] = lambda: None
    ) -> None:
        self._session = ModelSession(
            lambda: e5_files.made() / e5_files.GRAPH, threads, rest_s=rest_s, rested=self._let_go
        )
        self._rested = rested
        self._tables: tuple[Unigram, NDArray[np.uint8]] | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), 384] of the first 512 tokens each; texts without a letter or digit are bad rows.

        One run a text, for the reasons that MiniLM has. Raises ModelMissing where its files are not to be had.
        """
        session = self._session.opened()
        tokenizer, words = self._opened()
        prefix = prefixes("e5")[kind == "query"]
        out = nothing(len(texts), DIM)
        for at, text in enumerate(texts):
            if any(map(str.isalnum, text)):
                ids = [_BEGIN, *tokenizer.ids(prefix + text, MAX_TOKENS - 2), _END]
                (out[at],) = session.run(["pooled"], {"words": e5_files.widened(words[ids])[None]})[0]
        return normalised(out)

    def ask_again(self) -> None:
        """Nobody is asked."""

    def close(self) -> None:
        self._session.close()
        self._tables = None

    def _let_go(self) -> None:
        self._tables = None
        self._rested()

    def _opened(self) -> tuple[Unigram, NDArray[np.uint8]]:
        with self._lock:
            if self._tables is None:
                folder = e5_files.made()
                self._tables = Unigram(folder), np.load(folder / "words.npy", mmap_mode="r")
            return self._tables


_worker: E5 | None = None


def embed_batch(texts: Sequence[str], threads: int = 2) -> Vectors:
    """float32 [len(texts), 384] for use in a child process, as `minilm.embed_batch`."""
    global _worker
    if _worker is None:
        _worker = E5(threads)
    return _worker.embed(texts, "document")
