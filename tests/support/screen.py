"""A command at a real terminal, for tests: what is typed goes in, what it shows comes out."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from typing import Self

LONG = 60.0
START = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
{before}
from tarsd.cli import {program}
{program}({arguments!r})
"""
BACK_AND_ON = re.compile(r"(?:\x08|\x1b\[(\d+)D)\x1b\[(\d+)C")
"""How prompt_toolkit shows a blank at the end of a prompt: the cursor goes back to the start, and one further on."""
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;;[^\x1b]*\x1b\\|\r")


class Screen:
    """`with Screen(["chat"]) as screen`: `type` lines, `see` what is expected, `end` with its exit code.

    `before` is Python that runs first.
    """

    def __init__(self, arguments: Sequence[str], *, program: str = "main", before: str = "", **env: str) -> None:
        ours, theirs = os.openpty()
        self._ours = ours
        self._bytes = b""
        self._at = 0
        code = START.format(before=before, program=program, arguments=list(arguments))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **env},
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)

    @property
    def raw(self) -> str:
        """All that was sent to the terminal."""
        return self._bytes.decode("utf-8", "ignore")  # the last letter may be there by half

    @property
    def text(self) -> str:
        """All that was shown, without colours."""
        return CODES.sub("", BACK_AND_ON.sub(lambda found: " " * (int(found[2]) - int(found[1] or 1)), self.raw))

    def type(self, text: str, *, enter: bool = True) -> None:
        """Keys are pressed."""
        os.write(self._ours, text.encode() + (b"\n" if enter else b""))

    def reads_keys(self) -> None:
        """Wait until single keys are read: a prompt is seen a moment before that."""
        deadline = time.monotonic() + LONG
        while termios.tcgetattr(self._ours)[3] & termios.ICANON:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def see(self, wanted: str) -> str:
        """Wait until this is shown, after what was seen before; what stands before it."""
        deadline = time.monotonic() + LONG
        while True:
            found = self.text.find(wanted, self._at)
            if found >= 0:
                between = self.text[self._at : found]
                self._at = found + len(wanted)
                return between
            assert self._read(deadline), f"{wanted!r} is not in {self.text[self._at :]!r}"

    def interrupt(self, wanted: str) -> str:
        """Press Ctrl-C, and see what is expected."""
        self.type("\x03", enter=False)
        return self.see(wanted)

    def end(self) -> int:
        """The exit code, once it has ended."""
        deadline = time.monotonic() + LONG
        while self._read(deadline):
            pass
        return self.process.wait(LONG)

    def _read(self, deadline: float) -> bool:
        """Whether more came."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        block = b""
        if ready:
            with contextlib.suppress(OSError):  # Linux says so when the other end is closed
                block = os.read(self._ours, 1 << 16)
        self._bytes += block
        return bool(block)
