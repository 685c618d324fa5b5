"""Child processes for work that would hold up everybody else: parsing many notes, embedding in the background.

A child is a plain Python process that reads calls from its standard input and ends with it, so it cannot outlive
us, and nothing of how we were started is run again in it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

_CHILD = "from tarsd.children import serve; serve()"
_STOP_S = 2.0
_BEGUN = b"\n"
"""What a child says before it runs a call."""


class ChildDied(Exception):
    """The child ended, or did not answer in time, while it worked on a call."""


class ChildTooSlow(ChildDied):
    """It had to be ended because it did not answer in time."""


class _NotStarted(Exception):
    """The child ended before it began to work on its call: something keeps such processes from running at all."""


class _Child:
    """A process that answers one call at a time; `broken` until it has answered the last one."""

    def __init__(self, nice: int) -> None:
        self.broken = False
        # Several children share the cores: a matrix product that takes all of them makes everybody slower.
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(nice)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, name: str, arguments: tuple[Any, ...], timeout: float) -> Any:
        """Run "module:function" in the child. Its exceptions are raised here.

        Raises `_NotStarted` if it could not even load the function, ChildDied if it broke later.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        self.broken = True
        try:
            pickle.dump((name, arguments), stdin, pickle.HIGHEST_PROTOCOL)
            stdin.flush()
        except OSError as error:
            raise _NotStarted from error
        try:
            # One answer a call, so nothing of it can be in the buffer already.
            _wait(stdout, timeout)
            if os.read(stdout.fileno(), len(_BEGUN)) != _BEGUN:
                raise _NotStarted
            _wait(stdout, timeout)
            fine, value = pickle.load(stdout)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError) as error:
            raise ChildDied(str(error)) from error
        self.broken = False
        if not fine:
            raise value
        return value

    def stop(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _wait(answers: IO[bytes], timeout: float) -> None:
    if not select.select([answers], [], [], timeout)[0]:
        raise ChildTooSlow("no answer in time")


class Pool:
    """Up to `size` children, started when needed, ended by `close()` or after `idle_s` without work.

    Where no child can be started, a call runs `here`, in this process, or raises ChildDied.
    """

    def __init__(
        self, size: int, *, nice: int = 10, timeout_s: float = 300.0, idle_s: float = 30.0, here: bool = True
    ) -> None:
        self._size, self._nice, self._timeout, self._idle, self._here = size, nice, timeout_s, idle_s, here
        self._lock = threading.Lock()
        self._free: list[_Child] = []
        self._busy: set[_Child] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._timer: threading.Timer | None = None
        self._used = 0.0
        self._closed = False

    def submit(self, name: str, *arguments: Any) -> Future[Any]:
        """Queue a call of "module:function"; the future raises what it raised, or ChildDied."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._size, thread_name_prefix="tarsd-pool")
            return self._threads.submit(self.call, name, *arguments)

    def call(self, name: str, *arguments: Any) -> Any:
        """Run a call in a child and wait for it."""
        try:
            child = self._take()
        except OSError as error:
            return self._run_here(name, arguments, error)
        try:
            return child.call(name, arguments, self._timeout)
        except _NotStarted as error:
            if self._closed:
                raise ChildDied("closed") from None
            reason = error
        finally:
            self._give(child)
        return self._run_here(name, arguments, reason)

    def _run_here(self, name: str, arguments: tuple[Any, ...], reason: Exception) -> Any:
        if not self._here:
            raise ChildDied("no child could be started") from reason
        return resolve(name)(*arguments)

    @property
    def closed(self) -> bool:
        """Whether `close` was called: whatever ends now ends for that."""
        return self._closed

    def pids(self) -> list[int]:
        """The children that run now."""
        with self._lock:
            return [child.pid for child in (*self._free, *self._busy)]

    def _take(self) -> _Child:
        with self._lock:
            if self._closed:
                raise ChildDied("closed")
            child = self._free.pop() if self._free else _Child(self._nice)
            self._busy.add(child)
            return child

    def _give(self, child: _Child) -> None:
        with self._lock:
            self._busy.discard(child)
            self._used = time.monotonic()
            if not self._closed and not child.broken:
                self._free.append(child)
                if self._timer is None:
                    self._start_timer(self._idle)
                return
        child.stop()

    def _start_timer(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._rest)
        self._timer.daemon = True
        self._timer.start()

    def _rest(self) -> None:
        with self._lock:
            self._timer = None
            left = self._used + self._idle - time.monotonic()
            if self._closed or (not self._free and not self._busy):
                return
            if self._busy or left > 0:
                self._start_timer(max(left, 1.0))
                return
            idle, self._free = self._free, []
        for child in idle:
            child.stop()

    def close(self) -> None:
        """End all children; calls that run are cut off."""
        with self._lock:
            self._closed = True
            children = [*self._free, *self._busy]
            self._free.clear()
            threads, self._threads = self._threads, None
            if self._timer is not None:
                self._timer.cancel()
        for child in children:
            child.stop()
        if threads is not None:
            threads.shutdown(wait=True, cancel_futures=True)


def resolve(name: str) -> Callable[..., Any]:
    """The function that "module:function" names."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def serve() -> None:
    """The child: answer calls from standard input until it ends."""
    # What a library prints must not get between the answers.
    calls: IO[bytes] = os.fdopen(os.dup(0), "rb")
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    with contextlib.suppress(OSError):
        os.nice(int(sys.argv[1]))
    while True:
        try:
            name, arguments = pickle.load(calls)
        except (EOFError, OSError):
            return
        try:
            function = resolve(name)
            answers.write(_BEGUN)
            answers.flush()
            answer: tuple[bool, Any] = (True, function(*arguments))
        except Exception as error:
            answer = (False, error)
        try:
            pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
        except OSError:
            return
