"""Whether the system reports file changes: makes one and waits for it; and how the running daemon watches."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tarsd.doctor.finding import Check, Finding, fault, number, ok, skipped, warning
from tarsd.doctor.subject import DoctorContext

EVENT_S: Final = 5.0
LIMITS: Final = Path("/proc/sys/fs/inotify")
ENOUGH: Final = {"max_user_watches": 524_288, "max_user_instances": 1024}
FEW_INSTANCES: Final = 16


class _Listener:
    """What an observer calls: it waits for the first event at a path, whatever it tells."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.heard: queue.SimpleQueue[str] = queue.SimpleQueue()

    def dispatch(self, event: Any) -> None:
        if os.fsdecode(event.src_path) == self._path:
            self.heard.put(event.event_type)


def events(subject: DoctorContext) -> Finding:
    """Make a hidden, empty file in the vault, remove it at once, and wait until the system reports it."""
    from tarsd.watch.filesystem import filesystem_of, is_silent
    from tarsd.watch.observer import end, native_observer

    root, mode = subject.root, subject.config.watch.mode
    if mode == "polling" or (mode == "auto" and is_silent(filesystem_of(root))):
        return skipped("Not needed: the vault is checked every few seconds.")
    if not os.access(root, os.W_OK | os.X_OK):
        return skipped("Not tried: the vault is read-only.")
    # Obsidian, its Sync and tarsd itself pass over names that begin with a dot.
    path = str(root / f".tarsd-doctor-{secrets.token_hex(4)}")
    listener, observer = _Listener(path), native_observer()
    try:
        observer.schedule(listener, str(root), recursive=False, event_filter=None)
        observer.start()
        _make_and_remove(path)
        listener.heard.get(timeout=EVENT_S)
    except queue.Empty:
        hint = 'If changes are found late, set mode = "polling" under [watch].'
        return fault(f"A file was made in the vault, but the system did not report it within {EVENT_S:.0f} s.", hint)
    except OSError as error:
        return fault(f"The system gives no file events: {error.strerror}.", _raise("max_user_watches"))
    finally:
        end(observer)
    return ok("A file was made in the vault, and the system reported it.")


def _make_and_remove(path: str) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.close(handle)
    finally:
        os.unlink(path)


def limits(subject: DoctorContext) -> Iterator[Finding]:
    """How many folders the system lets a user watch, against how many there are."""
    if sys.platform != "linux":
        yield skipped(f"There are none on {sys.platform}.")
        return
    collections = (collection.root for collection in subject.config.collections)
    folders = sum(_folders(root) for root in (subject.root, *collections))
    allowed = _limit("max_user_watches")
    told = f"{number(folders, 'folder')} to watch, {allowed:,} allowed"
    if folders > allowed:
        yield fault(f"{told}: the rest is only checked every few seconds.", _raise("max_user_watches"))
    elif folders > allowed // 2:
        yield warning(f"{told} for all programs of this user together.", _raise("max_user_watches"))
    else:
        yield ok(f"{told}.")
    instances = _limit("max_user_instances")
    if instances < FEW_INSTANCES:
        yield warning(f"Only {instances} programs may watch files at a time.", _raise("max_user_instances"))


def _limit(name: str) -> int:
    return int((LIMITS / name).read_text(encoding="ascii"))


def _raise(name: str) -> str:
    return f"sudo sysctl fs.inotify.{name}={ENOUGH[name]}"


def _folders(root: Path) -> int:
    """The folders below and with the root that are watched: not the hidden ones, not through links."""
    count = 0
    for _, names, _ in os.walk(root):
        count += 1
        names[:] = [name for name in names if name[0] != "."]
    return count


def watch(subject: DoctorContext) -> Finding:
    """How the running daemon watches."""
    about = subject.status.get("watch") or {}
    state, reason, hint = (str(about.get(name) or "") for name in ("state", "reason", "hint"))
    public = f"State: {state}."
    if state == "events":
        restarts = int(about.get("restarts") or 0)
        again = f" It had stopped reporting and was restarted {number(restarts, 'time')}." if restarts else ""
        return ok(f"The daemon gets file events.{again}")
    if state == "polling":
        asked = subject.config.watch.mode == "polling"
        return ok(reason) if asked else warning(reason, hint, public=public)
    with contextlib.suppress(ValueError):
        if float((subject.status.get("process") or {}).get("uptime_s") or 0) < 5 and not hint:
            return skipped("The daemon is starting.")
    return fault(reason or "The daemon does not watch the vault.", hint, public=public)


CHECKS: Final = (
    Check("File watching", "events", events, EVENT_S + 5),
    Check("File watching", "limits", limits, 10.0),
    Check("File watching", "daemon", watch),
)
