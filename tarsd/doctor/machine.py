"""The machine: its clock, and the room on its disks."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import time
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tarsd.doctor.finding import Check, Finding, fault, number, ok, warning
from tarsd.doctor.subject import DoctorContext

BUILT: Final = 2026
"""No clock that shows an earlier year is right."""
LOOK_S: Final = 0.2
JUMP_S: Final = 0.1
AHEAD_S: Final = 60.0
PLACES: Final = 3
LITTLE: Final = 1_000_000_000
NEXT_TO_NOTHING: Final = 100_000_000
TIMES: Final = 3
"""A rebuild needs this many times the index's size, for a moment."""
LONG_WAL: Final = 256_000_000


def clock(subject: DoctorContext) -> Finding:
    """Whether the clock shows a time that can be, and runs evenly."""
    wall, even = subject.clocks
    time.sleep(max(0.0, even + LOOK_S - time.monotonic()))
    drift = (time.time() - wall) - (time.monotonic() - even)
    now = datetime.datetime.now(datetime.UTC)
    if now.year < BUILT:
        return fault(
            f"The clock shows {now:%Y-%m-%d}, which is in the past.", "Set the clock: timedatectl set-ntp true"
        )
    if abs(drift) > JUMP_S:
        return warning(f"The clock jumped by {drift:.1f} s during the check.", "Does another program set the clock?")
    return ok(f"{now:%Y-%m-%d %H:%M} UTC, and it runs evenly.")


def zone(subject: DoctorContext) -> Finding:
    """Whether the time zone is known: dates in notes are taken in it."""
    named = subject.env.get("TZ", "").lstrip(":")
    if named and not os.path.isabs(named) and named[0].isalpha() and "/" in named:
        try:
            zoneinfo.ZoneInfo(named)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            return warning(f"TZ names “{named}”, which is not a known time zone; UTC is used.", "Correct TZ.")
    local = datetime.datetime.now().astimezone()
    return ok(f"{local.tzname()}, UTC{local.isoformat()[-6:]}.")


def future(subject: DoctorContext) -> Finding:
    """Notes with a modification time in the future: they would come first in every list of recent notes."""
    limit = time.time_ns() + int(AHEAD_S * 1e9)
    notes = sorted(info.path for info in subject.scan.files.values() if info.mtime_ns > limit)
    if not notes:
        return ok("No note has a date in the future.")
    text = f"{number(len(notes), 'note')} with a date in the future"
    return warning(f"{text}: {', '.join(notes[:PLACES])}.", "Reset it: touch FILE", public=f"{text}.")


def space(subject: DoctorContext) -> Iterator[Finding]:
    """The room that is left for index, conversations and notes; places on one disk are told as one."""
    paths = subject.config.paths
    places = {"index": paths.cache, "conversations": paths.state}
    places |= {"vault": subject.root} if subject.readable else {}
    disks: dict[int, tuple[Path, list[str]]] = {}
    for name, place in places.items():
        there = next(folder for folder in (place, *place.parents) if folder.exists())
        disks.setdefault(os.stat(there).st_dev, (there, []))[1].append(name)
    index = _size(paths.index_db) + _size(paths.files_db)
    for there, names in disks.values():
        free = shutil.disk_usage(there).free
        told = f"{free / 1e9:.1f} GB free for {', '.join(names)}"
        if free < NEXT_TO_NOTHING:
            yield fault(f"{told}: too little to continue.", "Free some space.")
        elif free < LITTLE or ("index" in names and free < TIMES * index):
            yield warning(f"{told}: little.", "Free some space.")
        else:
            yield ok(f"{told}.")


def sizes(subject: DoctorContext) -> Finding:
    """How large the index is, and what has not been written into it yet."""
    paths = subject.config.paths
    files = {"index": paths.index_db, "index of files": paths.files_db, "cache of vectors": paths.embeddings_db}
    logs = {name: _size(Path(f"{path}-wal")) for name, path in files.items()}
    told = ", ".join(f"{name} {_size(path) / 1e6:.1f} MB" for name, path in files.items())
    told += f", their logs {sum(logs.values()) / 1e6:.1f} MB"
    if max(logs.values()) > LONG_WAL:
        return warning(f"{told}: such a long log slows everything down.", f"tarsd stop; then: {subject.start}")
    return ok(f"{told}.")


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


CHECKS: Final = (
    Check("Clock", "time", clock),
    Check("Clock", "zone", zone),
    Check("Clock", "notes", future),
    Check("Disk", "space", space),
    Check("Disk", "index", sizes),
)
