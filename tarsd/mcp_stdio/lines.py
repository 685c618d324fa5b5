"""Standard input as the SDK reads it, line by line, without what would keep a line from being answered."""

from __future__ import annotations

import io
import os
import re

import anyio

_ESCAPE = re.compile(r"\\(?:u(?P<pair>d[89ab]..\\ud[c-f]..)|u(?P<lone>d[89a-f]..)|.)", re.IGNORECASE)
"""An escape in JSON; halves of a character come in pairs, or mean nothing."""


class _Lines(io.TextIOWrapper):
    """Text whose lines are cleaned."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as its own class does
        """The next line, "" at the end."""
        return cleaned(super().readline(size))


def cleaned(line: str) -> str:
    r"""A line of JSON in which half a character (`\ud83d`) is U+FFFD: the SDK would drop the message, unanswered."""
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape["lone"] else escape[0], line)


def take_input() -> anyio.AsyncFile[str]:
    """The process's standard input, from here on; whoever else reads it, a child for instance, finds it at its end."""
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # never closed: a thread may still wait for a line when the process ends
    return anyio.wrap_file(_Lines(os.fdopen(wire, "rb", closefd=False), encoding="utf-8", errors="replace"))
