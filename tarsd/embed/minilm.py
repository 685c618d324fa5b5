"""The built-in model, all-MiniLM-L6-v2 in int8 on onnxruntime: questions in the daemon, notes in a child process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from tarsd.chunk import token_ids
from tarsd.embed.base import Kind, Vectors, fingerprint, normalised, nothing
from tarsd.embed.table import KNOWN_SHARE, MARK, WORD, load_kinds

if TYPE_CHECKING:
    import onnxruntime

DIM: Final = 384
# SHA-256 of model.onnx; a test and scripts/models compare it with the file, so that no start has to.
MODEL_SHA256: Final = "253a81468554d2b2c6089b68c7dcd0ce58a24a75a3400bf16c86b904da09403d"
MAX_TOKENS: Final = 256
_CLS, _SEP = 101, 102


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
        self._threads = threads
        self._rest_s, self._rested = rest_s, rested
        self._used = 0.0
        self._timer: threading.Timer | None = None
        self._session: onnxruntime.InferenceSession | None = None
        self._kinds: NDArray[np.uint8] | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), 384] of the first 256 tokens each; texts in scripts it cannot read are bad rows.

        One run a text: there is no padding to compute, memory stays that of one text, and as activations are
        quantised over a whole run, a text's vector would otherwise depend on its neighbours.
        """
        session = self._opened()
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
        with self._lock:
            self._session = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _watch(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._rest)
        self._timer.daemon = True
        self._timer.start()

    def _rest(self) -> None:
        """Close the session, if nothing was asked for so long; who embeds at this moment keeps it till the end."""
        assert self._rest_s is not None
        with self._lock:
            self._timer = None
            left = self._used + self._rest_s - time.monotonic()
            if self._session is not None and left > 0:
                self._watch(left)
                return
            self._session = None
        self._rested()

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

    def _opened(self) -> onnxruntime.InferenceSession:
        with self._lock:
            self._used = time.monotonic()
            if self._rest_s is not None and self._timer is None:
                self._watch(self._rest_s)
            if self._session is None:
                import onnxruntime

                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = self._threads
                options.inter_op_num_threads = 1
                options.log_severity_level = 3
                # The arena keeps the largest run's memory for ever; without spinning, idle threads cost nothing.
                options.enable_cpu_mem_arena = False
                options.enable_mem_pattern = False
                options.add_session_config_entry("session.intra_op.allow_spinning", "0")
                path = Path(str(files("tarsd"))) / "data" / "minilm" / "model.onnx"
                self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            return self._session


_worker: MiniLM | None = None


def embed_batch(texts: Sequence[str], threads: int = 2) -> Vectors:
    """float32 [len(texts), 384] for use in a child process: it can be pickled and keeps its session between calls."""
    global _worker
    if _worker is None:
        _worker = MiniLM(threads)
    return _worker.embed(texts, "document")
