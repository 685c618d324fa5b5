"""All that is known of watchdog: how its observer is started, ended, and asked if it still sees everything."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol


class ThreadHealth(Protocol):
    """What of a thread is asked for its health."""

    def is_alive(self) -> bool:
        """Does it run?"""


class Observer(ThreadHealth, Protocol):
    """The part of watchdog's observer that is used here."""

    @property
    def emitters(self) -> Collection[ThreadHealth]:
        """The threads that produce events."""

    def schedule(self, handler: Any, path: str, *, recursive: bool, event_filter: Any) -> object:
        """Watch below `path`."""

    def start(self) -> None:
        """Raises OSError when a limit of the system is reached."""

    def stop(self) -> None:
        """Ask all threads to end."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for that."""


def native_observer() -> Observer:
    """watchdog's own choice for this system, not started."""
    from watchdog.observers import Observer as Native  # late: no command but the daemon's needs it

    # with each folder that moves; the watch is in order, and `is_partial` and every look at everything find what is not
    warnings.filterwarnings("ignore", r"Callback with id '.*' (already exists|does not exist)", RuntimeWarning)
    return Native()


def observe(handler: Any, top: str, make: Callable[[], Observer]) -> Observer:
    """A running observer that calls `handler.dispatch(event)`; raises OSError where the system allows no more."""
    observer = make()
    try:
        observer.schedule(handler, top, recursive=True, event_filter=_event_filter())
        observer.start()
        if is_partial(observer, top):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except BaseException:
        end(observer)
        raise
    return observer


def end(observer: Observer) -> None:
    """Stop all threads of an observer, in whatever state it is."""
    with contextlib.suppress(Exception):
        observer.stop()
    with contextlib.suppress(Exception):
        observer.join(2.0)


def is_alive(observer: Observer) -> bool:
    """Do all of its threads run?"""
    threads: list[ThreadHealth] = [observer, *observer.emitters]
    reader = getattr(observer, "_inotify_fd", None)  # one more thread in watchdog 7
    if isinstance(reader, threading.Thread):
        threads.append(reader)
    return len(observer.emitters) > 0 and all(thread.is_alive() for thread in threads)


def is_partial(observer: Observer, top: str) -> bool:
    """Is there a folder without a watch? watchdog passes over those that the system's limit leaves out."""
    watched = _watched(observer)
    if watched is None:
        return False
    missing = [folder for folder in _folders(top) if folder not in watched]
    if missing:  # those made a moment ago are still on their way
        time.sleep(0.2)
        watched = _watched(observer) or set()
    return any(folder not in watched and os.path.isdir(folder) for folder in missing)


def _watched(observer: Observer) -> set[str] | None:
    """The folders with a watch; None where watchdog keeps no such list, since there a failed watch raises."""
    watched: set[str] = set()
    for emitter in observer.emitters:
        known = getattr(getattr(emitter, "_inotify", None), "_active_callbacks_by_path", None)
        if known is None:
            return None
        watched.update(os.fsdecode(path) for path in list(known))
    return watched


def _folders(top: str) -> Iterable[str]:
    for folder, names, _ in os.walk(top):
        names[:] = [name for name in names if name[0] != "." and not os.path.islink(os.path.join(folder, name))]
        yield folder


def _event_filter() -> list[type]:
    """The events that count. Reading a note makes none, neither here nor in the kernel."""
    from watchdog import events

    names = "FileCreated FileModified FileMoved FileDeleted FileClosed FileAttrib DirCreated DirMoved DirDeleted"
    found = (getattr(events, f"{name}Event", None) for name in names.split())  # FileAttrib came with watchdog 7
    return [event for event in found if event is not None]


class OverflowHandler(logging.Handler):
    """watchdog says only in its log that a queue ran over or a thread met something unexpected."""

    def __init__(self, on_warning: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._on_warning = on_warning

    def emit(self, record: logging.LogRecord) -> None:
        self._on_warning()
