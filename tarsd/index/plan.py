"""Compares disk and store, as pure functions: what to read, what is gone, what only moved, and when to doubt it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tarsd.store import FileRow, Key
from tarsd.vault import FileInfo, Scan

FEW = 20
# A clock tick of a file system: a file written twice within one keeps its time stamp.
_TICK_NS = 50_000_000
_COARSE_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What one pass has to do. `read` is newest first; `kept` are known files that cannot be read now."""

    read: tuple[FileInfo, ...]
    vanished: tuple[Key, ...]
    kept: tuple[tuple[Key, str], ...]
    revived: tuple[Key, ...]
    empty: tuple[FileInfo, ...]
    unchanged: int


def in_scope(path: str, scope: Collection[str] | None) -> bool:
    """Whether a path is one of the wanted ones or below one; everything is in no scope at all."""
    if scope is None:
        return True
    return path in scope or any(not top or path.startswith(f"{top}/") for top in scope)


def plan(
    scan: Scan, rows: Mapping[Key, FileRow], chunker: str, *, scope: Collection[str] | None = None, full: bool = False
) -> Plan:
    """Compare the files of one collection with its rows. `full` reads everything again.

    A file that somebody pointed at is read, whatever its size and time say; so is one that looks like the vanished
    one that may have been moved over it.
    """
    files = scan.files
    gone = {(row.size, row.mtime_ns) for key, row in rows.items() if key not in files and in_scope(row.path, scope)}
    pointed_at = scope if scope is not None else ()
    read: list[FileInfo] = []
    revived: list[Key] = []
    empty: list[FileInfo] = []
    unchanged = 0
    for key, info in files.items():
        row = rows.get(key)
        same = row is not None and (row.chunker, row.size, row.mtime_ns, row.stamp) == (
            chunker, info.size, info.mtime_ns, info.stamp
        )  # fmt: skip
        if full or not same or info.path in pointed_at or (info.size, info.mtime_ns) in gone:
            (empty if row is not None and row.size > 0 and info.size == 0 else read).append(info)
        else:
            unchanged += 1
        if row is not None and row.state not in ("ok", "empty"):
            revived.append(key)
    vanished: list[Key] = []
    kept: list[tuple[Key, str]] = []
    states = {skipped.path: skipped.state for skipped in scan.skipped}
    for key, row in rows.items():
        if key in files or not in_scope(row.path, scope):
            continue
        if scan.keeps(row.path):
            state = states.get(row.path, "unreadable")
            if row.state != state:
                kept.append((key, state))
        else:
            vanished.append(key)
    read.sort(key=lambda info: -info.mtime_ns)
    return Plan(tuple(read), tuple(vanished), tuple(kept), tuple(revived), tuple(empty), unchanged)


def lost_too_much(known: int, lost: int) -> bool:
    """Whether a scan looks like an absent disk rather than like a tidied vault: all or most of its notes are gone.

    A few may always go, as long as any stays.
    """
    return known > 0 and (lost >= known or lost > max(FEW, known // 2))


def main_folders(paths: Collection[str]) -> dict[str, int]:
    """The folders that hold more than half of the paths, "" for everything, each with how many it holds."""
    found = {"": len(paths)}
    folder = ""
    while True:
        below = Counter(path[: path.find("/", len(folder)) + 1] for path in paths if path.startswith(folder))
        below.pop("", None)  # notes of the folder itself
        if not below:
            return found
        folder, count = below.most_common(1)[0]
        if 2 * count <= len(paths):
            return found
        found[folder] = count


def pairs(vanished: Iterable[FileRow]) -> dict[str, list[Key]]:
    """Vanished files by content hash, last path first, so that `pop()` takes them in order."""
    found: dict[str, list[Key]] = {}
    for row in sorted(vanished, key=lambda row: row.key, reverse=True):
        found.setdefault(row.hash, []).append(row.key)
    return found


def trusted_stamp(info: FileInfo, now_ns: int | None = None) -> int:
    """The stamp to remember for a file read now: -1 ("look again") when it may change without its time changing."""
    now = time.time_ns() if now_ns is None else now_ns
    tick = _COARSE_TICK_NS if info.mtime_ns % 1_000_000_000 == 0 else _TICK_NS
    return -1 if 0 <= now - info.mtime_ns < tick else info.stamp
