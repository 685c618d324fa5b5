"""What stood in a note before each change, kept in the state folder so that the change can be taken back."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from tarsd import files
from tarsd.errors import DiskFull, NotFound, StoreError
from tarsd.vault import content_hash
from tarsd.writing.changes import Change, Op

KEPT_DAYS = 30
MAX_BYTES = 200_000_000
"""Most that is kept in all; beyond it the oldest go."""

Kind = Literal["note", "memory", "session"]
State = Literal["planned", "written", "failed", "undone"]

_ID = re.compile(r"w-[0-9a-f]{12}-[0-9a-f]{8}")


@dataclass(frozen=True)
class JournalEntry:
    """A change that was made, or was to be made.

    `before` and `after` are SHA-256 hashes of the note's bytes, None where there is no note; `size` is the number of
    bytes it had. `at` is seconds since 1970. `undoes` is the id of the change that this one takes back. `absorbed` are
    the notes that went into the trash with it: (path, path in the trash, SHA-256).
    """

    id: str
    path: str
    op: Op | Literal["discard"]
    before: str | None
    after: str | None
    size: int
    kind: Kind
    conversation: str
    by: str
    at: float
    state: State = "planned"
    undoes: str = ""
    absorbed: Sequence[Sequence[str]] = ()


class Journal:
    """A folder with two files for each entry: its description, and the bytes that were there before.

    What is appended to leaves its bytes in the note itself, so that long notes that grow cost nothing. Safe to use
    from several threads; one process at a time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._stamp = 0

    def keep(self, change: Change, kind: Kind, conversation: str, by: str, *, undoes: str = "") -> str:
        """Record a change that is about to be made; returns its id. Raises StoreError, DiskFull."""
        raw = change.before
        size = len(raw) if raw is not None else 0
        entry = JournalEntry(
            self._new_id(), change.path, change.op, change.if_hash, change.hash, size, kind, conversation, by,
            time.time(), undoes=undoes,
        )  # fmt: skip
        self._add(entry, None if raw is None or change.after.startswith(raw) else raw)
        return entry.id

    def keep_discarded(self, path: str, raw: bytes, kind: Kind, conversation: str, by: str, *, undoes: str) -> str:
        """Record that the note with these bytes is about to go into the trash; returns the id. Raises as `keep`."""
        entry = JournalEntry(
            self._new_id(), path, "discard", content_hash(raw), None, len(raw), kind, conversation, by,
            time.time(), undoes=undoes,
        )  # fmt: skip
        self._add(entry, raw)
        return entry.id

    def get(self, id: str) -> JournalEntry:
        """The entry with this id. Raises NotFound."""
        with self._lock:
            entry = self._read(id)
        if entry is None:
            raise NotFound("There is no such change.", f"Changes are kept for {KEPT_DAYS} days.")
        return entry

    def before(self, entry: JournalEntry, now: bytes) -> bytes | None:
        """The bytes from before the change, given those that it made of them; None if they were not kept whole."""
        if entry.before is None:
            return None
        try:
            raw = self._file(entry.id, ".before").read_bytes()
        except OSError:
            raw = now[: entry.size]
        return raw if content_hash(raw) == entry.before else None

    def last(self, kind: Kind) -> JournalEntry | None:
        """The latest change of this kind that stands and takes none back: what an undo without an id means."""
        with self._lock:
            for entry in self.entries():
                if entry.kind == kind and entry.state == "written" and not entry.undoes:
                    return entry
        return None

    def settle(self, id: str, state: State) -> None:
        """Record what became of a change. Never raises: the note is what it is, and an undo goes by the hashes."""
        with self._lock, contextlib.suppress(StoreError):
            entry = self._read(id)
            if entry is not None:
                self._describe(replace(entry, state=state))

    def absorbed(self, id: str, notes: Sequence[Sequence[str]]) -> None:
        """Record which notes went into the trash with a change; never raises, as `settle`."""
        with self._lock, contextlib.suppress(StoreError):
            entry = self._read(id)
            if entry is not None:
                self._describe(replace(entry, absorbed=notes))

    def entries(self) -> Iterator[JournalEntry]:
        """All entries, the latest first; torn and foreign files are passed over."""
        for id in sorted(self._ids(), reverse=True):
            entry = self._read(id)
            if entry is not None:
                yield entry

    def prune(self, *, days: float = KEPT_DAYS, max_bytes: int = MAX_BYTES) -> int:
        """Delete entries that are too old, and the oldest while all take too much space; returns how many."""
        oldest, total, gone = time.time() - days * 86_400, 0, 0
        with self._lock:
            for id in sorted(self._ids(), reverse=True):
                kept = [self._file(id, ending) for ending in (".json", ".before")]
                for file in kept:
                    with contextlib.suppress(OSError):
                        total += file.stat().st_size
                entry = self._read(id)
                if entry is None or entry.at < oldest or total > max_bytes:
                    gone += 1
                    for file in kept:
                        with contextlib.suppress(OSError):
                            file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                for leftover in self._folder.glob(".*.tmp"):
                    leftover.unlink(missing_ok=True)
        return gone

    # -------------------------------------------------------------------------------------------- the files

    def _new_id(self) -> str:
        """Ids sort as they were given, also within a millisecond."""
        with self._lock:
            self._stamp = max(int(time.time() * 1000), self._stamp + 1)
            return f"w-{self._stamp:012x}-{secrets.token_hex(4)}"

    def _add(self, entry: JournalEntry, before: bytes | None) -> None:
        with self._lock:
            if before is not None:  # first, so that a description never promises what is not there
                self._put(self._file(entry.id, ".before"), before)
            self._describe(entry)

    def _describe(self, entry: JournalEntry) -> None:
        self._put(self._file(entry.id, ".json"), json.dumps(asdict(entry)).encode())

    def _read(self, id: str) -> JournalEntry | None:
        if not _ID.fullmatch(id):
            return None
        try:
            raw = json.loads(self._file(id, ".json").read_bytes())
            entry = JournalEntry(**raw)
            return entry if entry.id == id and isinstance(entry.path, str) and isinstance(entry.at, float) else None
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def _ids(self) -> set[str]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return set()
        return {name.rsplit(".", 1)[0] for name in names if _ID.fullmatch(name.rsplit(".", 1)[0])}

    def _file(self, id: str, ending: str) -> Path:
        return self._folder / f"{id}{ending}"

    def _put(self, file: Path, data: bytes) -> None:
        """Write the file whole or not at all, readable by nobody else."""
        try:
            files.make_folder(self._folder)
            os.chmod(self._folder, 0o700)
            files.replace(file, data)
        except OSError as error:
            kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
            message = f"The note was not changed, as its old text cannot be kept for undo: {error.strerror}."
            raise kind(message, f"Check {self._folder}.") from error
