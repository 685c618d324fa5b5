"""What a person sees who runs the daemon at a terminal: how far the index is, then a line for each change.

It goes to the terminal alone: names of notes have no place in a log.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tarsd.errors import TarsdError
from tarsd.passage import Key

if TYPE_CHECKING:
    from tarsd.app.indexing import Indexing

LOOK_S = 0.5
SETTLED_S = 2.0
"""A rate is told once it was measured for so long."""


@dataclass(frozen=True)
class Look:
    """How far the index is: notes that are left to read, passages without a vector of the model, and all there are."""

    notes: int = 0
    notes_left: int = 0
    passages: int = 0
    passages_left: int = 0
    trouble: str = ""
    """What keeps it from going on, in a sentence."""


def look(indexing: Indexing) -> Look:
    """How far the index is now; blocks for a moment."""
    left, watching = indexing.behind(), indexing.watching()[""]
    if watching.mode == "waiting" and watching.hint:
        return Look(trouble=watching.reason)
    if indexing.store is None or indexing.indexer is None:
        return Look(notes_left=left)
    try:
        counts, vectors = indexing.store.counts(), indexing.indexer.background.status()
    except TarsdError as error:
        return Look(notes_left=left, trouble=error.message)
    return Look(counts.states.get("ok", 0), left, counts.chunks, vectors.remaining, "" if left else vectors.reason)


class Console:
    """Writes to a terminal; `terse` without a line that changes. A text stream, too: the log writes above that line.

    `hear` is called from the threads of the index.
    """

    def __init__(self, stream: TextIO, *, terse: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._terse = terse
        self._clock = clock
        self._lock = threading.RLock()
        self._line = ""
        self._step = ("", 0, 0.0)  # what is being done, how much of it there was at first, and since when
        self._told = 0
        self._ready = self._up_to_date = False

    @classmethod
    def of_terminal(cls) -> Console | None:
        """The one for the terminal that errors go to; None where that is a file, a pipe or a supervisor's."""
        if sys.stderr is None or not sys.stderr.isatty():
            return None
        return cls(sys.stderr, terse=os.environ.get("TERM", "") in ("", "dumb"))

    # -------------------------------------------------------------------------------------------- as a stream

    def write(self, text: str) -> int:
        """Text with its end of line, above the line that changes."""
        with self._lock:
            shown, self._line = self._line, ""
            self._stream.write(("\r\x1b[K" if shown else "") + text)
            self._progress(shown)
        return len(text)

    def flush(self) -> None:
        """As of a stream."""
        self._stream.flush()

    # -------------------------------------------------------------------------------------------- what is told

    def begin(self, vault: Path) -> None:
        """The daemon is about to start."""
        self.write(f"tarsd watches {_plain(vault)}. Press Ctrl-C to stop.\n")

    def say(self, text: str) -> None:
        """A line with the time of day."""
        self.write(f"{time.strftime('%H:%M:%S')}  {text}\n")

    def end(self) -> None:
        """The daemon has ended."""
        self._progress("")
        self.write("Stopped.\n")

    def hear(self, event: Mapping[str, Any]) -> None:
        """An event of the index: what a pass has stored. Nothing of the first pass, whose progress is shown."""
        if not self._ready:
            return
        if event["type"] == "stored":
            for what in ("added", "changed", "removed"):
                for key in event.get(what, ()):
                    self.say(f"{what:<8} {_name(key)}")
                    self._told += 1
            for before, after in event.get("moved", ()):
                self.say(f"{'moved':<8} {_name(before)} → {_name(after)}")
                self._told += 1
        elif event["type"] == "passed":
            report, told = event["report"], self._told
            counts = {name: getattr(report, name) for name in ("added", "changed", "moved", "removed")}
            if sum(counts.values()) > told:  # too many to be named
                said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
                self.say(f"{said} in {report.seconds:.1f} s")
            self._told = 0

    def show(self, now: Look) -> None:
        """How far it is: the line that changes, and a line that stays at the end of it."""
        if now.trouble:
            self._step = ("", 0, 0.0)
            self._progress(now.trouble)
        elif now.notes_left:
            self._progress(self._work("Reading notes", now.notes_left, now.notes_left))
        elif now.passages_left:
            self._ready = True
            self._progress(self._work("Embedding passages", now.passages_left, now.passages))
        else:
            worked, self._step = self._step[0], ("", 0, 0.0)
            self._progress("")
            if not self._up_to_date or worked == "Embedding passages":
                self.say(f"Up to date: {_count(now.notes, 'note')}, {_count(now.passages, 'passage')}.")
            self._ready = self._up_to_date = True

    def _work(self, name: str, left: int, total: int) -> str:
        """A step with its progress, its rate, and the time left."""
        at = self._clock()
        if self._step[0] != name:
            self._step = (name, left, at)
        first, since = self._step[1], self._step[2]
        if left > first:  # more has come
            self._step = (name, first := left, since := at)
        total = max(total, first)
        if total == 1:
            return f"{name} …"
        told = f"{name}: {total - left:,} of {total:,}"
        done, seconds = first - left, at - since
        if done and seconds >= SETTLED_S:
            told += f" · {done / seconds:,.0f} a second · {_duration(left * seconds / done)} left"
        return told

    def _progress(self, text: str) -> None:
        """Replace the line that changes; an empty text takes it away."""
        if self._terse:
            return
        with self._lock:
            if text != self._line:
                self._stream.write(f"\r\x1b[K{text[: max(20, _columns(self._stream) - 1)]}")
                self._stream.flush()
            self._line = text


async def keep(console: Console, indexing: Indexing) -> None:
    """Show how far the index is, for as long as the daemon serves."""
    while True:
        console.show(await asyncio.to_thread(look, indexing))
        await asyncio.sleep(LOOK_S)


def _plain(text: object) -> str:
    """A name without anything that could command the terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in str(text))


def _name(key: Key) -> str:
    return _plain("/".join(filter(None, key)))


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(1, seconds):.0f} s"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
