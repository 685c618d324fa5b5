"""File events, or polling where there are none, as sets of paths to look at; None says "look at everything".

Events name paths and nothing else: the truth is read from disk. As in `vault`, symbolic links are not followed. What
events may have missed (a dead observer, an overflow, an exchanged disk) ends in a look at everything.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import VaultUnavailable
from ..vault import Vault, nfc
from .filesystem import filesystem_of, is_silent
from .observer import Observer, OverflowHandler, end, is_alive, is_partial, native_observer, observe

if TYPE_CHECKING:
    from ..config import WatchSettings

__all__ = ["WatchState", "Watcher"]

log = logging.getLogger(__name__)

STORM = 512
"""More paths than this at once are answered with one look at everything, which is cheaper."""

MAX_DEATHS = 3
"""An observer that died so often since the last rescan is not started again before the next one."""

_COUNTS = frozenset({"created", "modified", "closed", "moved", "deleted", "attrib"})
_CONTENT_OF_FOLDER = frozenset({"modified", "attrib"})


@dataclass(frozen=True)
class WatchState:
    """How the vault is watched now; `reason` and `hint` are sentences where it is not by events.

    `restarts`: how often the watch had died or fallen silent, and was started again.
    """

    mode: Literal["events", "polling", "waiting", "stopped"]
    reason: str = ""
    hint: str = ""
    restarts: int = 0


class Watcher:
    """Calls `on_paths` from its own thread with relative paths (files, or folders with all below) that changed.

    The first call is None, made once the watch stands: whatever changes during the look that follows is seen as well.
    Further changes during a call are collected, so that there is never more than one at a time.
    """

    def __init__(
        self,
        vault: Vault,
        settings: WatchSettings,
        on_paths: Callable[[set[str] | None], None],
        *,
        make_observer: Callable[[], Observer] = native_observer,
        filesystem: Callable[[Path], str] = filesystem_of,
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._on_paths = on_paths
        self._make_observer = make_observer
        self._filesystem = filesystem
        self._settings_files = frozenset(nfc(str(file)) for file in vault.settings_files)
        self._state = WatchState("waiting", "File watching is starting.")
        self._wake = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        # Guarded by _wake: what is to be looked at, since when, and what later.
        self._paths: set[str] = set()
        self._everything = False
        self._first = self._last = 0.0
        self._later: list[tuple[float, tuple[str, ...] | None]] = []
        self._next_check = 0.0
        self._doubt = False
        # What events told of since the last rescan, None when that may be anything.
        self._told: set[str] | None = set()
        # Known to the thread alone.
        self._observer: Observer | None = None
        self._identity: tuple[int, int] | None = None
        self._seen: dict[str, object] | None = None
        self._untold: set[str] = set()
        self._restarts = 0
        self._next_rescan = 0.0
        self._retry_events = False
        self._deaths = 0
        self._poll_took = 0.0

    @property
    def state(self) -> WatchState:
        """How the vault is watched at this moment."""
        return replace(self._state, restarts=self._restarts)

    def start(self) -> None:
        """Begin, in a thread of its own; returns at once. A vault that is not there yet is waited for."""
        self._thread = threading.Thread(target=self._run, name="tarsd-watch", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the watch; waits for a call of `on_paths` that is under way, at most `timeout` seconds."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def look(self, paths: Iterable[str] | None, after_s: float = 0.0) -> None:
        """Have these paths (None: everything) delivered again, for instance when a file had not settled."""
        with self._wake:
            self._later.append((time.monotonic() + after_s, None if paths is None else tuple(paths)))
            self._wake.notify_all()

    # ------------------------------------------------------------------------------------------------------ the thread

    def _run(self) -> None:
        handler = OverflowHandler(self._distrust)
        loggers = [logging.getLogger(name) for name in ("watchdog", "fsevents")]
        for logger in loggers:
            logger.addHandler(handler)
        try:
            while True:
                with self._wake:
                    if self._stopping:
                        return
                    wait = self._due() - time.monotonic()
                    if wait > 0:
                        self._wake.wait(wait)
                        continue
                    deliver, paths = self._take()
                    check = time.monotonic() >= self._next_check
                if deliver:
                    self._deliver(paths)
                if check:
                    self._guarded_check()
        finally:
            for logger in loggers:
                logger.removeHandler(handler)
            self._close()
            self._state = WatchState("stopped")

    def _due(self) -> float:
        return min([self._next_check, self._complete(), *(at for at, _ in self._later)])

    def _complete(self) -> float:
        """When what was gathered is delivered: after a moment without further changes, or when it has waited enough."""
        if not self._everything and not self._paths:
            return math.inf
        return min(self._last + self._settings.debounce_s, self._first + self._settings.max_wait_s)

    def _take(self) -> tuple[bool, set[str] | None]:
        now = time.monotonic()
        for item in [item for item in self._later if item[0] <= now]:
            self._later.remove(item)
            for path in (None,) if item[1] is None else item[1]:
                self._add(path, now - self._settings.max_wait_s)
        if now < self._complete():
            return False, None
        paths = None if self._everything else self._paths
        self._paths, self._everything = set(), False
        return True, paths

    def _deliver(self, paths: set[str] | None) -> None:
        try:
            self._on_paths(paths)
        except Exception as fault:  # the watch outlives whatever its listener meets; the next rescan makes up for it
            log.error("looking at changed notes failed: %s", _without_text(fault))

    # ---------------------------------------------------------------------------------------------------------- events

    def dispatch(self, event: Any) -> None:
        """What watchdog calls for each event, in its thread. Never raises: that would end the thread unnoticed."""
        try:
            kind, folder = event.event_type, bool(event.is_directory)
            if kind not in _COUNTS or (folder and kind in _CONTENT_OF_FOLDER):
                return
            for path in (event.src_path, getattr(event, "dest_path", "")):
                if path:
                    self._changed(os.fsdecode(path), folder)
        except Exception as fault:
            log.warning("a file event could not be read: %s", _without_text(fault))
            self._distrust()

    def _changed(self, path: str, folder: bool) -> None:
        relative = self._vault.key_of(path, folder=folder)
        with self._wake:
            if relative == "" or nfc(path) in self._settings_files:
                self._told = None
            elif relative is not None and self._told is not None:
                self._told.add(relative)
                if len(self._told) > STORM:
                    self._told = None
        if relative == "":
            self._distrust()  # the root itself went or came
        elif relative is not None:
            self._mark(relative)
        elif nfc(path) in self._settings_files:  # other notes may be excluded, or of other days
            self._mark(None)

    def _mark(self, path: str | None, *, at_once: bool = False) -> None:
        with self._wake:
            idle = not self._everything and not self._paths
            now = time.monotonic()
            self._add(path, now - self._settings.max_wait_s if at_once else now)
            if idle or at_once:
                self._wake.notify_all()

    def _add(self, path: str | None, since: float) -> None:
        if not self._everything and not self._paths:
            self._first = since
        self._first = min(self._first, since)
        self._last = time.monotonic()
        if path is not None and not self._everything:
            self._paths.add(path)
        if path is None or len(self._paths) > STORM:
            self._everything, self._paths = True, set()

    def _distrust(self) -> None:
        """Events may be missing: check now, and look at everything."""
        with self._wake:
            self._told = None
            if not self._doubt:
                self._doubt = True
                self._next_check = min(self._next_check, time.monotonic() + self._settings.debounce_s)
                self._wake.notify_all()

    # ---------------------------------------------------------------------------------------------------------- health

    def _guarded_check(self) -> None:
        with self._wake:
            doubt, self._doubt = self._doubt, False
        try:
            self._check(doubt)
        except VaultUnavailable as fault:
            self._close()
            self._identity = None
            if self._state.mode != "waiting" or self._state.reason != fault.message:
                log.warning("the vault cannot be watched: %s", fault.message)
            self._state = WatchState("waiting", fault.message, fault.hint)
            with self._wake:  # on its return everything is looked at
                self._paths, self._everything = set(), False
        except Exception as fault:
            log.error("checking the watch failed: %s", _without_text(fault))
        # A large vault is polled less often, so that this never takes more than a twentieth of a core.
        pause = 20 * self._poll_took if self._observer is None else 0.0
        with self._wake:
            self._next_check = time.monotonic() + max(self._settings.poll_s, pause)

    def _check(self, doubt: bool) -> None:
        identity = self._vault.check()
        if identity != self._identity:
            self._arm(identity)
            return
        if self._observer is not None and not is_alive(self._observer):
            self._deaths += 1
            self._restarts += 1
            log.warning("the file watch had died and is started again")
            self._arm(identity)
            return
        rescan = time.monotonic() >= self._next_rescan
        if rescan:
            self._deaths = 0
        partial = rescan and self._observer is not None and is_partial(self._observer, str(self._vault.root))
        if partial or (rescan and self._retry_events):
            self._arm(identity)
            return
        if self._observer is None:
            self._poll()
        elif self._is_silent(rescan):
            self._restarts += 1
            log.warning("the file watch had fallen silent and is started again")
            self._arm(identity)
            return
        if rescan or doubt:
            self._next_rescan = time.monotonic() + self._settings.reconcile_s
            self._mark(None, at_once=True)

    def _arm(self, identity: tuple[int, int]) -> None:
        """Watch the root that is there now, by events if possible, and have everything looked at."""
        self._close()
        self._identity = identity
        self._retry_events = False
        state = self._told_to_poll()
        if state is None:
            try:
                if self._deaths > MAX_DEATHS:
                    raise OSError(errno.ECHILD, "the watch keeps dying")
                self._observer = observe(self, str(self._vault.root), self._make_observer)
                state = WatchState("events")
            except Exception as fault:
                self._retry_events = True
                state = self._failed(fault)
                if state != self._state:
                    log.warning("%s %s", state.reason, state.hint)
        self._seen = None
        self._untold = set()
        if self._observer is None:
            self._poll()
        self._state = state
        self._next_rescan = time.monotonic() + self._settings.reconcile_s
        self._mark(None, at_once=True)

    def _told_to_poll(self) -> WatchState | None:
        every = f"every {self._settings.poll_s:g} s"
        if self._settings.mode == "polling":
            return WatchState("polling", f"Polling is on: the vault is checked {every}.")
        kind = self._filesystem(self._vault.root) if self._settings.mode == "auto" else ""
        if is_silent(kind):
            return WatchState(
                "polling",
                f"The vault lies on {kind}, which does not report changes from other machines: it is checked {every}.",
                'If all changes are made on this machine, set mode = "events" under [watch].',
            )
        return None

    def _failed(self, fault: Exception) -> WatchState:
        limits = {errno.ENOSPC: ("watches", 524288), errno.EMFILE: ("instances", 1024)}
        number = fault.errno if isinstance(fault, OSError) else None
        instead = f"the vault is checked every {self._settings.poll_s:g} s instead."
        if number in limits:
            name, enough = limits[number]
            return WatchState(
                "polling",
                f"The system's limit of file {name} is reached: {instead}",
                f"sudo sysctl fs.inotify.max_user_{name}={enough}",
            )
        why = fault.strerror if isinstance(fault, OSError) and fault.strerror else type(fault).__name__
        return WatchState("polling", f"File events are not available ({why}): {instead}", "tarsd doctor tells more.")

    def _poll(self) -> None:
        started = time.monotonic()
        scan = self._vault.scan()
        seen: dict[str, object] = {item.path: item.state for item in scan.skipped}
        seen |= {file.path: (file.size, file.mtime_ns, file.stamp, file.location) for file in scan.files.values()}
        if self._seen is not None:
            for path, _ in seen.items() ^ self._seen.items():
                self._mark(path)
        self._seen = seen
        self._poll_took = time.monotonic() - started

    def _is_silent(self, rescan: bool) -> bool:
        """Whether notes have changed of which no event told. Asked twice, for events may still be on their way."""
        if self._untold:
            untold, self._untold = self._untold, set()
            with self._wake:
                return not all(_is_told(path, self._told) for path in untold)
        if self._seen is not None and not rescan:
            return False
        with self._wake:
            told, self._told = self._told, set()
        scan = self._vault.scan()
        seen: dict[str, object] = {file.path: (file.size, file.mtime_ns) for file in scan.files.values()}
        if self._seen is not None:
            changed = {path for path, _ in seen.items() ^ self._seen.items() if path in seen or not scan.keeps(path)}
            with self._wake:
                self._untold = {path for path in changed if not (_is_told(path, told) or _is_told(path, self._told))}
        self._seen = seen
        return False

    def _close(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            end(observer)


def _is_told(path: str, told: set[str] | None) -> bool:
    """Whether an event told of a note or of a folder above it."""
    return told is None or path in told or any(path[:at] in told for at, char in enumerate(path) if char == "/")


def _without_text(fault: Exception) -> str:
    """What went wrong and where, without the message, which may quote a note."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" if trace is not None else ""
    return type(fault).__name__ + place
