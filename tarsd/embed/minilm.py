"""The built-in model, all-MiniLM-L6-v2 in int8 on onnxruntime: questions in the daemon, notes in a child process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tarsd.chunk import token_ids
from tarsd.embed.base import Kind, Vectors, fingerprint, normalised, nothing
from tarsd.embed.session import ModelSession
from tarsd.embed.table import KNOWN_SHARE, MARK, WORD, load_kinds

DIM: Final = 384
# SHA-256 of model.onnx; a test and scripts/models compare it with the file, so that no start has to.
MODEL_SHA256: Final = "253a81468554d2b2c6089b68c7dcd0ce58a24a75a3400bf16c86b904da09403d"
MAX_TOKENS: Final = 256
_CLS, _SEP = 101, 102
_MODEL: Final = Path(str(files("tarsd"))) / "data" / "minilm" / "model.onnx"


class MiniLM:
    """Builtin and local. The session (about 45 MB) opens at the first text and goes with `close`.

    With `rest_s` it also goes after so many seconds without a text; then `rested` is called, from another thread.
    """

    name: Final = "minilm"
    dim: Final = DIM
    fingerprint: Final = fingerprint("minilm", MODEL_SHA256, MAX_TOKENS)
    former: Final = ""
    local: Final = True
    max_tokens: Final = MAX_TOKENS
    batch: Final = 32

    def __init__(
        self, threads: int = 1, *, rest_s: float | None = None, rested: Callable[[], object] = lambda: None
    ) -> None:
        self._session = ModelSession(lambda: _MODEL, threads, rest_s=rest_s, rested=rested)
        self._kinds: NDArray[np.uint8] | None = None

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), 384] of the first 256 tokens each; texts in scripts it cannot read are bad rows.

        One run a text: there is no padding to compute, memory stays that of one text, and as activations are
        quantised over a whole run, a text's vector would otherwise depend on its neighbours.
        """
        session = self._session.opened()
        out = nothing(len(texts), DIM)
        for at, text in enumerate(texts):
            ids = token_ids(text)[: MAX_TOKENS - 2]
            if self._readable(ids):
                tokens = np.array([[_CLS, *ids, _SEP]], dtype=np.int64)
                inputs = {
                    "input_ids": tokens,
                    "attention_mask": np.ones_like(tokens),
                    "token_type_ids": np.zeros_like(tokens),
                }
                (states,) = session.run(["last_hidden_state"], inputs)
                out[at] = states[0].mean(axis=0)
        return normalised(out)

    def ask_again(self) -> None:
        """Nobody is asked."""

    def close(self) -> None:
        self._session.close()

    def _readable(self, ids: Sequence[int]) -> bool:
        """Whether enough of the words are words to the model.

        Text of unknown words has one and the same vector, and a bag of Cyrillic letters is near to any other (0.5 to
        0.7 for notes about nothing in common), so that such notes would look relevant to all questions.
        """
        if self._kinds is None:
            self._kinds = load_kinds()
        kinds = self._kinds[np.asarray(ids, dtype=np.intp)]
        words = int(np.count_nonzero(kinds == WORD))
        return words > 0 and words >= KNOWN_SHARE * int(np.count_nonzero(kinds != MARK))


_worker: MiniLM | None = None


def embed_batch(texts: Sequence[str], threads: int = 2) -> Vectors:
    """float32 [len(texts), 384] for use in a child process: it can be pickled and keeps its session between calls."""
    global _worker
    if _worker is None:
        _worker = MiniLM(threads)
    return _worker.embed(texts, "document")
