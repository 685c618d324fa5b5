"""The daemon's log file: its last lines, and those that come."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

PAUSE_S = 0.3


def lines(file: Path, count: int, *, follow: bool = False, pause_s: float = PAUSE_S) -> Iterator[str]:
    """The last `count` lines, also of what was moved away before; with `follow`, for ever those that come as well,
    looked for every `pause_s` seconds.

    The file may be moved away and made anew meanwhile. Raises OSError when it cannot be read.
    """
    with _opened(file) as stream:
        last: deque[str] = deque(maxlen=count)
        older = file.with_name(f"{file.name}.1")
        if older.exists():
            with _opened(older) as before:
                last.extend(before)
        last.extend(stream)
        yield from (line.rstrip("\n") for line in last)
        if follow:
            yield from _coming(stream, file, pause_s)
    while follow:
        try:
            with _opened(file) as stream:
                yield from _coming(stream, file, pause_s)
        except FileNotFoundError:
            time.sleep(pause_s)


def _opened(file: Path) -> TextIO:
    return open(file, encoding="utf-8", errors="replace")


def _coming(stream: TextIO, file: Path, pause_s: float) -> Iterator[str]:
    """The lines of an open file until another one has its name, and all of it has been read."""
    part = ""
    while True:
        moved = not _is_open(stream, file)
        while piece := stream.readline():
            part += piece
            if part.endswith("\n"):
                yield part.rstrip("\n")
                part = ""
        if moved:
            return
        time.sleep(pause_s)


def _is_open(stream: TextIO, file: Path) -> bool:
    try:
        return os.path.samestat(os.stat(file), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False
