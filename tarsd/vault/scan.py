"""The walk through a vault: every note file with size and time, and all that is passed over, with the reason.

Symbolic links are never followed, here as in `watch`: what one points at inside the vault is read where it lies, what
lies outside is not read at all. Both are reported.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from .files import DOWNLOAD, SPLIT, dataless
from .names import KINDS, Kind, Rules, is_conflict_copy, kind_of, nfc

State = Literal["excluded", "conflict", "not_downloaded", "unreadable", "too_large", "outside", "duplicate", "twin"]
Key = tuple[str, str]
"""(collection, path): what a file is known by everywhere."""

KEPT: frozenset[State] = frozenset({"not_downloaded", "unreadable"})
"""States in which what is known of a file stays: it is there, and merely cannot be read now."""


class FileInfo(NamedTuple):  # thousands are made at a time, at a third of a dataclass's cost
    """A note file on disk: `path` is NFC and relative, `location` absolute in the disk's own spelling.

    `stamp` differs where size and time may be alike: see `stamp_of`.
    """

    collection: str
    path: str
    location: str
    size: int
    mtime_ns: int
    kind: Kind
    stamp: int = 0

    @property
    def key(self) -> Key:
        """(collection, path)."""
        return self.collection, self.path


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is not read, and why. A "twin" is read all the same: it is only a warning."""

    collection: str
    path: str
    state: State
    reason: str
    hint: str = ""

    @property
    def key(self) -> Key:
        """(collection, path)."""
        return self.collection, self.path


@dataclass(frozen=True)
class Scan:
    """What is on disk. `marker`: the folder `.obsidian` is there, which the mount point of an absent disk lacks."""

    files: dict[Key, FileInfo]
    skipped: tuple[Skipped, ...]
    marker: bool
    unreadable_dirs: frozenset[str]

    def keeps(self, path: str) -> bool:
        """May `path` still exist although it is not among the files? Then its index entry must stay."""
        return path in self._kept or _is_at_or_below(path, self.unreadable_dirs)

    @cached_property
    def _kept(self) -> frozenset[str]:
        return frozenset(item.path for item in self.skipped if item.state in KEPT)


def _is_at_or_below(path: str, folders: frozenset[str]) -> bool:
    if path in folders:
        return True
    return bool(folders) and any(path[:at] in folders for at, char in enumerate(path) if char == "/")


def settled(info: FileInfo, now: float, grace_s: float = 5.0) -> bool:
    """Is an empty file meant to be empty? Tools that truncate and then write leave one for a moment.

    `now` is time.time(). A note with text counts at once: what follows brings its own event.
    """
    return info.size > 0 or abs(now - info.mtime_ns / 1e9) >= grace_s


def stamp_of(info: os.stat_result) -> int:
    """64 bits of what says that a file is another one, or was written, though its size and time are as before.

    The inode, the time of its last change, and when it was made where the system tells. The same in every process.
    """
    born = getattr(info, "st_birthtime", None)
    return hash((info.st_ino, info.st_ctime_ns) if born is None else (info.st_ino, info.st_ctime_ns, born))


Wanted = dict[str, Any]
"""The names to look at in a folder, each with its own Wanted, or None for all that lies below."""


def wanted(paths: Iterable[str]) -> Wanted | None:
    """Relative paths as a tree, in NFC; None, for everything, if the root is among them."""
    root: Wanted = {}
    for path in paths:
        *folders, last = [part for part in nfc(path).split("/") if part not in ("", ".")] or [""]
        if not last:
            return None
        here: Wanted | None = root
        for folder in folders:
            here = here.setdefault(folder, {}) if here is not None else None
        if here is not None:
            here[last] = None
    return root


def list_folder(folder: str) -> list[os.DirEntry[str]]:
    """All entries of a folder, in no order."""
    with os.scandir(folder) as entries:
        return list(entries)


class Walk:
    """One walk from `top`; afterwards `files`, `skipped`, `blind` (folders that could not be listed) and `marker`."""

    def __init__(
        self, top: str, collection: str, rules: Rules, max_bytes: int, kinds: Mapping[str, Kind] = KINDS
    ) -> None:
        self.files: dict[Key, FileInfo] = {}
        self.skipped: list[Skipped] = []
        self.blind: set[str] = set()
        self.marker = False
        self._top = top
        self._collection = collection
        self._rules = rules
        self._max_bytes = max_bytes
        self._kinds = kinds
        self._what = "note" if kinds is KINDS else "file"

    def run(self, names: Wanted | None) -> None:
        """Walk what `names` wants; raises OSError only if `top` itself cannot be listed."""
        stack: list[tuple[str, str, Wanted | None]] = [(self._top, "", names)]
        while stack:
            folder, rel, names = stack.pop()
            try:
                entries = list_folder(folder)
            except OSError as fault:
                if not rel:
                    raise
                if fault.errno not in (errno.ENOENT, errno.ENOTDIR):  # else it went after its parent was listed
                    self.blind.add(rel[:-1])
                    self._skip(rel[:-1], "unreadable", f"The folder cannot be listed: {fault.strerror}.")
                continue
            for entry in entries:
                name = nfc(entry.name)
                if name[0] == ".":
                    self.marker = self.marker or (not rel and name == ".obsidian")
                    if name.endswith(".icloud") and (names is None or name[1:-7] in names):
                        self._stub(rel + name[1:-7])
                    continue
                if names is not None and name not in names:
                    continue
                path = rel + name
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if self._enters(path):
                            stack.append((entry.path, path + "/", None if names is None else names[name]))
                    elif entry.is_symlink():
                        self._link(entry, path)
                    elif kind := kind_of(name, self._kinds):
                        self._file(entry, path, kind)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError as fault:
                    self._skip(path, "unreadable", f"It cannot be read: {fault.strerror}.")
        found = self.files
        self.skipped = [s for s in self.skipped if s.state != "not_downloaded" or (s.collection, s.path) not in found]

    def _skip(self, path: str, state: State, reason: str, hint: str = "") -> None:
        self.skipped.append(Skipped(self._collection, path, state, reason, hint))

    def _enters(self, path: str) -> bool:
        if not self._printable(path):
            return False
        if self._rules.active and (rule := self._rules.hit(path + "/")):
            self._skip(path, "excluded", f"The folder is excluded by the rule {rule}.")
            return False
        return True

    def _passes(self, path: str) -> bool:
        if self._rules.active and (rule := self._rules.hit(path)):
            self._skip(path, "excluded", f"The {self._what} is excluded by the rule {rule}.")
            return False
        if is_conflict_copy(path):
            hint = "Compare it with the original, then delete it."
            self._skip(path, "conflict", f"A sync tool made a second version of a {self._what}.", hint)
            return False
        return True

    def _file(self, entry: os.DirEntry[str], path: str, kind: Kind) -> None:
        if not self._printable(path) or not self._passes(path):
            return
        info = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(info.st_mode):
            if stat.S_ISFIFO(info.st_mode):
                self._skip(path, "not_downloaded", "It is a pipe, not a file.")
            else:
                self._skip(path, "unreadable", "This is not a regular file.")
        elif dataless(info):
            self._skip(path, "not_downloaded", f"The {self._what} is not downloaded.", DOWNLOAD)
        elif info.st_size > self._max_bytes:
            self._skip(path, "too_large", f"The {self._what} is larger than {self._max_bytes // 1_000_000} MB.", SPLIT)
        else:
            file = FileInfo(self._collection, path, entry.path, info.st_size, info.st_mtime_ns, kind, stamp_of(info))
            first = self.files.setdefault((self._collection, path), file)
            if first is not file:
                self._twins(path, file, first)

    def _twins(self, path: str, *both: FileInfo) -> None:
        spelled = {file.location[len(self._top) :].lstrip("/"): file for file in both}
        owner, *others = sorted(spelled, key=lambda raw: (raw != path, raw))
        self.files[self._collection, path] = spelled[owner]
        for raw in others:
            self.files[self._collection, raw] = spelled[raw]._replace(path=raw)
            why = f"Another {self._what} has the same name in another Unicode form; both are read."
            self._skip(raw, "twin", why, "Rename one of the two.")

    def _stub(self, path: str) -> None:
        if kind_of(path, self._kinds) and self._printable(path) and self._passes(path):
            self._skip(path, "not_downloaded", f"The {self._what} is only in iCloud.", DOWNLOAD)

    def _link(self, entry: os.DirEntry[str], path: str) -> None:
        if (kind_of(path, self._kinds) is None and "." in entry.name) or not self._printable(path):
            return
        # Judged by its words alone: to follow it could wait for a dead network share.
        target = os.path.normpath(os.path.join(os.path.dirname(entry.path), os.readlink(entry.path)))
        if nfc(target + "/").startswith(nfc(self._top).rstrip("/") + "/"):
            self._skip(path, "duplicate", "A link inside the vault is skipped; its target is read anyway.")
        else:
            hint = "To search its target, add that folder as a [[collection]] in config.toml."
            self._skip(path, "outside", "A link out of the vault is skipped.", hint)

    def _printable(self, path: str) -> bool:
        if path.isascii():
            return True
        try:
            path.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(path).decode(errors="replace")
            self._skip(shown, "unreadable", "Its name is not valid UTF-8.", "Rename it.")
            return False
        return True
