"""The threads of the index: one that looks at paths, and one in which the model's vectors are made.

They survive every error, and begin again after a pause that grows.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tarsd.errors import TarsdError
from tarsd.passage import Key

R = TypeVar("R")

log = logging.getLogger(__name__)


@dataclass
class IndexJob(Generic[R]):
    """Something to look at: `paths` None means everything. `done` gets the report, or the error."""

    paths: frozenset[Key] | None
    full: bool = False
    progress: Callable[[int, int, str], None] | None = None
    done: Callable[[R | None, TarsdError | None], None] | None = None


class _Thread(ABC):
    """A thread of the daemon that ends when it is asked to, and rests after an error, longer each time."""

    def __init__(self, name: str, first_pause_s: float, longest_pause_s: float) -> None:
        self._first_pause_s = self._pause_s = first_pause_s
        self._longest_pause_s = longest_pause_s
        self._condition = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def _run(self) -> None: ...

    @property
    def stopping(self) -> bool:
        """For the work, to end early."""
        return self._stopping

    def ask_to_stop(self) -> None:
        """End after the step at hand."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()

    def stop(self, timeout: float) -> bool:
        """End after the step at hand; False when that took longer than `timeout` seconds."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _rest(self, wanted: Callable[[], bool] = lambda: False) -> None:
        """A pause, ended early by a request or by the end."""
        deadline = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, self._longest_pause_s)
        with self._condition:
            while not (self._stopping or wanted()) and (left := deadline - time.monotonic()) > 0:
                self._condition.wait(left)


class EmbeddingThread(_Thread):
    """Runs `work(stopped)`, which returns when `stopped()` and deals with a model that does not answer."""

    def __init__(self, name: str = "tarsd-embed") -> None:
        super().__init__(name, first_pause_s=2.0, longest_pause_s=300.0)
        self.failure = ""
        self.begun = False

    def start(self, work: Callable[[Callable[[], bool]], object]) -> None:
        """Begin, once."""
        self._work = work
        self.begun = True
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._work(lambda: self._stopping)
            except Exception as error:
                log.error("embedding failed", exc_info=error)
                self.failure = type(error).__name__
            self._rest()
            self.failure = ""


class Worker(_Thread, Generic[R]):
    """Looks at paths, which are gathered and merged: one set at a time, forever. What failed stays on the list.

    `work(job)` is called in the thread, one job at a time, after `prepare()` has succeeded once. `trouble` is what
    keeps it from its work now.
    """

    def __init__(
        self,
        name: str,
        prepare: Callable[[], None],
        work: Callable[[IndexJob[R]], R],
        *,
        first_pause_s: float = 1.0,
        longest_pause_s: float = 60.0,
    ) -> None:
        super().__init__(name, first_pause_s, longest_pause_s)
        self.trouble: TarsdError | None = None
        self._prepare = prepare
        self._work = work
        self._paths: set[Key] = set()
        self._hurry = False
        self._jobs: list[IndexJob[R]] = []
        self._running: IndexJob[R] | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def look(self, paths: Iterable[Key], *, hurry: bool = False) -> None:
        """Put paths on the list; in a hurry even a pause after a failure ends, for what failed may be mended."""
        with self._condition:
            self._paths.update(paths)
            self._hurry = self._hurry or hurry
            self._condition.notify_all()

    def ask(self, job: IndexJob[R]) -> None:
        """Do a job as soon as the one that runs is finished; its error is only its caller's."""
        with self._condition:
            if not self._stopping:
                self._jobs.append(job)
                self._condition.notify_all()
                return
        _tell(job, None, TarsdError("The daemon is stopping."))

    @property
    def waiting(self) -> int:
        """How many paths are on the list, the ones just looked at included."""
        with self._condition:
            running = self._running.paths if self._running is not None else None
            return len(self._paths | (running or frozenset()))

    @property
    def busy(self) -> bool:
        """Whether it looks at something."""
        return self._running is not None

    def stop(self, timeout: float) -> bool:
        """End after the step at hand, and tell those whose jobs are not done; False when it took longer."""
        ended = super().stop(timeout)
        self._refuse_jobs(TarsdError("The daemon is stopping."))
        return ended

    # -------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        prepared = False
        while not self._stopping:
            job: IndexJob[R] | None = None
            try:
                if not prepared:
                    self._prepare()
                    prepared = True
                job = self._next()
                if job is None:
                    return
                report = self._work(job)
            except Exception as caught:
                error = _as_ours(caught, quiet=self._stopping)
                failing, self._running = job, None
                if failing is not None and failing.done is not None:
                    _tell(failing, None, error)
                    continue
                if failing is None:
                    self._refuse_jobs(error)
                else:
                    self.look(failing.paths or ())
                self.trouble = error
                self._rest(lambda: bool(self._jobs) or self._hurry)
                self._hurry = False
                continue
            self._running = None
            self.trouble = None
            self._pause_s = self._first_pause_s
            _tell(job, report, None)

    def _next(self) -> IndexJob[R] | None:
        with self._condition:
            while not (self._stopping or self._jobs or self._paths):
                self._condition.wait()
            if self._stopping:
                return None
            if self._jobs:
                self._running = self._jobs.pop(0)
            else:
                self._running = IndexJob(frozenset(self._paths))
                self._paths.clear()
                self._hurry = False
            return self._running

    def _refuse_jobs(self, error: TarsdError) -> None:
        with self._condition:
            jobs, self._jobs = self._jobs, []
        for job in jobs:
            _tell(job, None, error)


def _as_ours(error: Exception, *, quiet: bool) -> TarsdError:
    if isinstance(error, TarsdError):
        if not quiet:
            log.warning("indexing has to wait", extra={"code": error.code})
        return error
    log.error("indexing failed", exc_info=error)
    return TarsdError(
        f"Indexing failed inside the daemon ({type(error).__name__}); tarsd tries again.", "See the log for details."
    )


def _tell(job: IndexJob[Any], report: Any, error: TarsdError | None) -> None:
    if job.done is not None:
        with contextlib.suppress(RuntimeError):  # the loop it would tell has ended
            job.done(report, error)
