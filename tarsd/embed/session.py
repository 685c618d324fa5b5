"""A model's session on onnxruntime: opened at the first text, let go of after a while without one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


class ModelSession:
    """Opens the model at `path()` when it is needed. For any thread.

    With `rest_s` it is closed after so many seconds without a text; then `rested` is called, from another thread.
    """

    def __init__(
        self, path: Callable[[], Path], threads: int, *, rest_s: float | None, rested: Callable[[], object]
    ) -> None:
        self._path, self._threads = path, threads
        self._rest_s, self._rested = rest_s, rested
        self._used = 0.0
        self._timer: threading.Timer | None = None
        self._session: onnxruntime.InferenceSession | None = None
        self._lock = threading.Lock()

    def opened(self) -> onnxruntime.InferenceSession:
        """The session, for a text now. Raises what `path` raises."""
        with self._lock:
            self._used = time.monotonic()
            if self._rest_s is not None and self._timer is None:
                self._watch(self._rest_s)
            if self._session is None:
                path = self._path()
                import onnxruntime

                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = self._threads
                options.inter_op_num_threads = 1
                options.log_severity_level = 3
                # The arena keeps the largest run's memory for ever; without spinning, idle threads cost nothing.
                options.enable_cpu_mem_arena = False
                options.enable_mem_pattern = False
                options.add_session_config_entry("session.intra_op.allow_spinning", "0")
                self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            return self._session

    def close(self) -> None:
        """Let go of it; it opens again when it is needed."""
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
