"""The thread in which the model's vectors are made; should it fail, it begins again after a pause."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0

log = logging.getLogger(__name__)


class EmbeddingThread:
    """Runs `work(stop)`, which returns when `stop` is set and deals with a model that does not answer."""

    def __init__(self) -> None:
        self.failure = ""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[threading.Event], object]) -> None:
        """Begin, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(work,), name="tarsd-embed", daemon=True)
            self._thread.start()

    def ask_to_stop(self) -> None:
        """End after the batch at hand."""
        self._stopping.set()

    def stop(self, timeout: float) -> bool:
        """End, and wait at most so many seconds; False when it still works then."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def _run(self, work: Callable[[threading.Event], object]) -> None:
        pause = FIRST_PAUSE_S
        while not self._stopping.is_set():
            try:
                work(self._stopping)
            except Exception as error:
                log.error("embedding failed", exc_info=error)
                self.failure = type(error).__name__
            if self._stopping.wait(pause):
                return
            pause = min(2 * pause, LONGEST_PAUSE_S)
            self.failure = ""
