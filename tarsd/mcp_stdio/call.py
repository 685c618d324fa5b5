"""One call of a tool, at work in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property

from tarsd.mcp_stdio.link import DaemonLink


class Call:
    """What a tool has besides its arguments: the daemon, a way to tell how it goes, and what ends it early."""

    def __init__(self, connect: Callable[[], DaemonLink], tell: Callable[[str], None] = lambda said: None) -> None:
        self.tell = tell
        self._connect = connect
        self._lock = threading.Lock()
        self._cancelled = False
        self._stop: Callable[[], None] | None = None

    @cached_property
    def link(self) -> DaemonLink:
        """The daemon, found when it is first needed. Raises as `DaemonLink.open`."""
        return self._connect()

    def when_cancelled(self, stop: Callable[[], None]) -> None:
        """Have `stop` called when the call is cancelled; at once, if it was already."""
        with self._lock:
            self._stop = stop
            late = self._cancelled
        if late:
            stop()

    def cancel(self) -> None:
        """The client does not want the answer any more, or is gone. Blocks until what runs in the daemon is stopped."""
        with self._lock:
            self._cancelled = True
            stop = self._stop
        if stop is not None:
            stop()
