"""What the operating system knows of this process, and giving memory back to it."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import ParamSpec, TypeVar

M_ARENA_MAX = -8
HEAPS = 2

P = ParamSpec("P")
T = TypeVar("T")


def resident_mb(pid: int | str = "self") -> float:
    """Resident memory in MB; where it cannot be asked for, the most that this process ever had."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError, IndexError):
        if pid != "self":
            return 0.0
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / 1e6 if sys.platform == "darwin" else most / 1e3


def share_heaps() -> None:
    """Before the first thread: glibc gives each a heap of its own, and what is free in one is no use to the others."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)
        except (OSError, AttributeError):
            return


def give_memory_back() -> None:
    """After much work: collect garbage, and let glibc return free memory."""
    gc.collect()
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError):
            return


class DaemonThreads(Executor):
    """A pool whose threads never hold up the end of the process, whatever they hang in."""

    def __init__(self, count: int, name: str) -> None:
        self._lock = Lock()
        self._running = 0
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As `Executor.submit`."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._count(1)
        self._queue.put(run)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Threads end when they are idle; this does not wait for them."""
        for _ in self._threads:
            self._queue.put(None)

    @property
    def busy(self) -> bool:
        """Whether anything runs, or waits for a thread."""
        return self._running > 0

    def _count(self, change: int) -> None:
        with self._lock:
            self._running += change

    def _work(self) -> None:
        while (run := self._queue.get()) is not None:
            run()
            self._count(-1)
            run = None
