"""Processes that begin as a copy of one that has imported what a daemon needs: that is most of what a start costs.

The first, the nursery, belongs to the process of the tests and ends with it. It has one thread and runs nothing itself,
so that each copy begins as `tarsd` does when its modules are there. Where forking is not safe (macOS), and for those
settings that are read while modules are loaded, `start` begins a process of the usual kind.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

MODULES = (
    "tarsd.cli.run", "tarsd.app.process", "tarsd.daemon.serve", "tarsd.providers.openai", "tarsd.providers.anthropic",
    "tarsd.tools.mcp_connection",
)  # fmt: skip
EARLY = ("LD_", "MALLOC_", "OMP_", "OPENBLAS_", "PYTHON")
"""How the names of settings begin that are read when the interpreter or a library is loaded."""

START = "from tarsd.cli import main; main()"


class Forked:
    """What is used of `subprocess.Popen`, for a copy of the nursery; `stdout` and `stderr` are read to their end."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        out, into_out = os.pipe()
        err, into_err = os.pipe()
        self._ended, into_ended = os.pipe()
        given = (into_out, into_err, into_ended)
        self.stdout: IO[bytes] = os.fdopen(out, "rb")
        self.stderr: IO[bytes] = os.fdopen(err, "rb")
        self.args = ["tarsd", *arguments]
        self.returncode: int | Any = None  # as that of Popen
        try:
            self.pid = _nursery().fork({"argv": self.args, "env": dict(env), "cwd": os.getcwd()}, given)
        finally:
            for one in given:
                os.close(one)

    def poll(self) -> int | None:
        """The exit code, None while it runs; that of a signal is negative."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            said = os.read(self._ended, 16)
            os.close(self._ended)
            assert said, "the process that forks has ended"
            self.returncode = int(said)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """A signal, if it still runs: it is the nursery that waits for it, but tells only afterwards."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: None = None, timeout: float | None = None) -> tuple[bytes, bytes]:
        """All that it has printed, once it has ended."""
        end = None if timeout is None else time.monotonic() + timeout
        said = {self.stdout: b"", self.stderr: b""}
        with selectors.DefaultSelector() as waiting:
            for stream in said:
                if not stream.closed:
                    waiting.register(stream, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(None if end is None else max(0.0, end - time.monotonic()))
                if not ready and end is not None and time.monotonic() >= end:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
                for stream in (self.stdout, self.stderr):
                    if any(key.fileobj is stream for key, _ in ready):
                        block = os.read(stream.fileno(), 1 << 16)
                        said[stream] += block
                        if not block:
                            waiting.unregister(stream)
                            stream.close()
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        return said[self.stdout], said[self.stderr]


Process = subprocess.Popen[bytes] | Forked


def start(arguments: Sequence[str], env: Mapping[str, str]) -> Process:
    """`tarsd` with these arguments and this environment; what it prints can be read."""
    early = {name for name in {*env, *os.environ} if name.startswith(EARLY) and env.get(name) != os.environ.get(name)}
    if sys.platform != "linux" or early - {"PYTHON_KEYRING_BACKEND"}:
        command = [sys.executable, "-c", START, *arguments]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return Forked(arguments, env)


class _Nursery:
    """The process that forks, seen from that of the tests."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # a thread would not be there in a copy
            command = [sys.executable, "-P", __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def fork(self, what: Mapping[str, object], given: Sequence[int]) -> int:
        """The process id of a copy that runs this, with its stdout, its stderr and where its end is told."""
        line = json.dumps(what).encode()
        socket.send_fds(self._socket, [len(line).to_bytes(4, "big")], list(given))
        self._socket.sendall(line)
        return int.from_bytes(_exactly(self._socket, 4), "big")

    def end(self) -> None:
        """No more copies."""
        self._socket.close()
        self._process.wait()


_own: list[_Nursery] = []


def _nursery() -> _Nursery:
    if not _own:
        _own.append(_Nursery())
    return _own[0]


def end() -> None:
    """No more copies are needed."""
    while _own:
        _own.pop().end()


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        block = connection.recv(count - len(received))
        if not block:
            raise EOFError
        received += block
    return received


# In the nursery


def _requests(control: socket.socket) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """What is asked for; meanwhile the end of every copy is told."""
    told: dict[int, int] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([control.fileno(), woken], [], [])[0]
        if woken in ready:
            os.read(woken, 1 << 12)
            with contextlib.suppress(ChildProcessError):
                while (found := os.waitpid(-1, os.WNOHANG))[0]:
                    pipe = told.pop(found[0])
                    with contextlib.suppress(BrokenPipeError):
                        os.write(pipe, str(os.waitstatus_to_exitcode(found[1])).encode())
                    os.close(pipe)
        if control.fileno() in ready:
            head, given, _, _ = socket.recv_fds(control, 4, 3)
            if not head:
                return
            what = json.loads(_exactly(control, int.from_bytes(head, "big")))
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (woken, wake, given.pop(), *told.values()):
                    os.close(one)
                control.close()
                yield what, given
                return
            told[pid] = given.pop()
            for one in given:
                os.close(one)
            control.sendall(pid.to_bytes(4, "big"))


def _serve(control: socket.socket) -> bool:
    """In a copy true, when it is to run; in the nursery false, when all is over."""
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    for what, (out, err) in _requests(control):
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - what was there takes them for those of before
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(what["env"])
        os.chdir(what["cwd"])
        time.tzset()
        sys.argv = what["argv"]
        return True
    return False


if __name__ == "__main__":
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        from tarsd.cli import main

        main()
