"""The only code that touches vault files: scan, bounded reading, contained paths, and atomic, checked writing."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from ..config.rules import folded
from ..errors import Conflict, NotFound, PathRefused, TarsdError, VaultUnavailable
from .files import MAX_BYTES, Unreadable, move_away, read_file, sweep, write_new, write_over
from .names import KINDS, Kind, Rules, fold_name, is_conflict_copy, kind_of, nfc, safe_parts
from .scan import FileInfo, Key, Scan, Skipped, State, Walk, list_folder, settled, stamp_of, wanted
from .text import Decoded, content_hash, decode, encode

__all__ = [
    "KINDS", "MAX_BYTES", "Decoded", "FileInfo", "Key", "Kind", "Rules", "Scan", "Skipped", "State", "Unreadable",
    "Vault", "content_hash", "decode", "encode", "fold_name",
    "is_conflict_copy", "kind_of", "nfc", "read_file", "settled", "stamp_of",
]  # fmt: skip

TRASH = ".trash"
"""Where Obsidian keeps what it deletes, when it keeps it in the vault."""

_OF_DATES = (
    "daily-notes.json", "templates.json", "core-plugins.json", "community-plugins.json",
    "plugins/periodic-notes/data.json", "plugins/templater-obsidian/data.json",
)  # fmt: skip
"""Settings of Obsidian that say which notes are of which day."""


class Vault:
    """A folder of notes; `collection` is "" for the vault itself and the name of any further folder.

    `kinds` are what is looked for, by the ends of names; of `others`, too, it is answered what leaves them out.
    Only what is in one of the `folders` is found, where any are named.
    """

    def __init__(
        self,
        root: Path,
        collection: str = "",
        exclude: Iterable[str] = (),
        *,
        max_bytes: int = MAX_BYTES,
        kinds: Mapping[str, Kind] = KINDS,
        others: Mapping[str, Kind] | None = None,
        folders: Iterable[str] = (),
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self.collection = collection
        self.settings_file = self.root / ".obsidian" / "app.json"
        self.settings_files = (self.settings_file, *(self.root / ".obsidian" / name for name in _OF_DATES))
        self._exclude = tuple(exclude)
        self._max_bytes = max_bytes
        self._kinds = kinds
        self._known = {**kinds, **(others or {})}
        self._folders = tuple(f"{folded(nfc(top)).strip('/')}/" for top in folders)
        self._top = str(self.root)
        self._prefix = nfc(self._top).rstrip("/") + "/"
        self._stamp: tuple[int, int, int] | None = None
        self._filters: tuple[str, ...] = ()
        self._rules: Rules | None = None
        self._settings_broken = False

    def check(self) -> tuple[int, int]:
        """Device and inode of the root, once it can be listed; raises VaultUnavailable."""
        try:
            info = os.stat(self._top)
            with os.scandir(self._top):
                return info.st_dev, info.st_ino
        except OSError as fault:
            raise self._unavailable(fault) from None

    def _unavailable(self, fault: OSError) -> VaultUnavailable:
        again = "tarsd then continues by itself."
        if fault.errno in (errno.ENOENT, errno.ENOTDIR):
            return VaultUnavailable(
                f"The vault folder {self._top} is missing.", f"If it is on a disk or network share, connect it; {again}"
            )
        if fault.errno == errno.EPERM:  # macOS says this, and asks nobody, where a folder is private
            return VaultUnavailable(
                f"No access to {self._top}: the system does not allow it.",
                f"On macOS, allow {os.path.realpath(sys.executable)} in System Settings > Privacy & Security > "
                f"Full Disk Access; {again}",
            )
        if fault.errno == errno.EACCES:
            return VaultUnavailable(
                f"No access to {self._top}: permission denied.", f"Let this user list and enter the folder; {again}"
            )
        return VaultUnavailable(f"The vault {self._top} cannot be read: {fault.strerror}.", f"Check the disk; {again}")

    def rules(self) -> Rules:
        """The exclusion rules, read again when Obsidian's settings file changed."""
        try:
            info = os.stat(self.settings_file)
            stamp = (info.st_mtime_ns, info.st_size, stamp_of(info))
            if stamp != self._stamp:
                raw = json.loads(decode(read_file(str(self.settings_file))).text)
                filters = raw.get("userIgnoreFilters") if isinstance(raw, dict) else None
                known = tuple(rule for rule in filters if isinstance(rule, str)) if isinstance(filters, list) else ()
                self._stamp, self._filters, self._rules, self._settings_broken = stamp, known, None, False
        except (FileNotFoundError, NotADirectoryError, NotFound):
            if self._filters:
                self._filters, self._rules = (), None
            self._stamp, self._settings_broken = None, False
        except (OSError, ValueError, RecursionError, TarsdError):
            # What was left out stays left out: half a settings file must not open what was closed.
            self._settings_broken = True
        rules = self._rules
        if rules is None:
            rules = self._rules = Rules(self._exclude, self._filters)
        return rules

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """All note files, or those at and below the relative `paths`. Raises VaultUnavailable, also if it went mid-way.

        Two names that differ only in Unicode form are two files: the composed one has the path, the other is known by
        its own spelling, and reported as a "twin".
        """
        before = self.check()
        rules = self.rules()
        walk = Walk(self._top, self.collection, rules, self._max_bytes, self._kinds)
        try:
            walk.run(None if paths is None else wanted(paths))
        except OSError as fault:
            raise self._unavailable(fault) from None
        if self.check() != before:
            raise VaultUnavailable(
                f"The vault {self._top} was replaced while it was being read.", "tarsd reads it again."
            )
        settings = ".obsidian/app.json"
        if self._settings_broken:
            why = "Obsidian's settings cannot be read; excluded files stay excluded."
            walk.skipped.append(Skipped(self.collection, settings, "unreadable", why, "Open the vault in Obsidian."))
        for rule in rules.broken:
            why = f"The excluded-files rule {rule} is not a valid expression."
            hint = "Write the rule under `exclude` in config.toml."
            walk.skipped.append(Skipped(self.collection, settings, "unreadable", why, hint))
        files = {key: file for key, file in walk.files.items() if self._inside(key[1])}
        return Scan(files, tuple(walk.skipped), walk.marker, frozenset(walk.blind))

    def names(self) -> list[str]:
        """The relative paths of all files and folders, a folder's with "/" at its end, whatever is left out.

        Nothing below a hidden folder. Raises VaultUnavailable.
        """
        self.check()
        found: list[str] = []
        for folder, folders, files in os.walk(self._top):
            above = folder[len(self._top) :].lstrip("/")
            above += "/" if above else ""
            found += [f"{above}{name}/" for name in folders]
            found += [above + name for name in files]
            folders[:] = [name for name in folders if name[0] != "."]
        return found

    def excluded_by(self, relative: str, *, folder: bool | None = None) -> str | None:
        """Why a path is not looked at, in one sentence; None if it is. Answers from memory.

        `folder` None: not known what it is.
        """
        path = nfc(relative)
        parts = path.split("/")
        if any(part.startswith(".") for part in parts):
            return "It is hidden: its name or a folder above it starts with a dot."
        if folder is False and kind_of(parts[-1], self._known) is None:
            return "It is not a note."
        rules = self._rules if self._rules is not None else self.rules()
        as_folder = folder or (folder is None and kind_of(path, self._known) is None)
        rule = rules.hit(path + "/" if as_folder else path)
        if rule:
            return f"It is excluded by the rule {rule}."
        return None if as_folder or self._inside(path) else "It is in none of the folders that `files.folders` names."

    def _inside(self, path: str) -> bool:
        return not self._folders or folded(path).startswith(self._folders)

    def key_of(self, absolute_path: str | bytes | os.PathLike[str], *, folder: bool | None = None) -> str | None:
        """The relative NFC path of an absolute one; "" for the root, None if it is outside or ignored."""
        path = nfc(os.fsdecode(absolute_path))
        if path + "/" == self._prefix:
            return ""
        relative = path[len(self._prefix) :]
        if not path.startswith(self._prefix) or any("\ud800" <= char <= "\udfff" for char in relative):
            return None
        return relative if self.excluded_by(relative, folder=folder) is None else None

    def resolve(self, relative: str, *, excluded: bool = False) -> Path:
        """A relative path on disk, existing or not. Raises PathRefused; `excluded` lets excluded paths pass.

        Names match exactly or in composed form, never by a disk's own loose rules, and never through a link.
        """
        parts = safe_parts(relative)
        if not excluded and (rule := self.rules().hit(nfc(relative))):
            raise PathRefused(f"This path is excluded by the rule {rule}.", "Change that rule, or choose another path.")
        here = self._top
        for number, part in enumerate(parts):
            entry = _entry(here, part)
            if entry is None:
                # exFAT and SMB drop such an ending, so that the name would reach another file than it says.
                if any(rest[-1] in " ." for rest in parts[number:]):
                    raise PathRefused("This path is not allowed: a name ends with a dot or a space.", "Leave that out.")
                return Path(here, *parts[number:])
            if entry.is_symlink():
                raise PathRefused("This path is not allowed: it goes through a link.", "Give the path of its target.")
            here = entry.path
        return Path(here)

    def read(self, info: FileInfo) -> bytes:
        """The raw bytes of a scanned file; raises NotFound if it vanished, Unreadable if they cannot be had now."""
        return read_file(info.location, self._max_bytes)

    def create(self, relative: str, data: bytes) -> str:
        """Make a new note, with its folders; returns its content hash. Raises Conflict if the name is taken."""
        taken = Conflict(f"There is already a note at {relative}.", "Choose another name.")
        write_new(self._target(relative), data, taken)
        return content_hash(data)

    def replace(self, relative: str, data: bytes, if_hash: str) -> str:
        """Put `data` in place of a note whose raw bytes still hash to `if_hash`; returns the new content hash.

        Raises Conflict if the note changed or is gone. File mode and extended attributes stay.
        """
        changed = Conflict(f"{relative} changed since it was read.", "Read it again, then repeat the change.")
        write_over(self._target(relative), data, lambda raw: content_hash(raw) == if_hash, changed)
        return content_hash(data)

    def discard(self, relative: str, if_hash: str) -> str:
        """Move a note whose raw bytes still hash to `if_hash` into Obsidian's trash; returns its path there.

        Raises Conflict if the note changed or is gone. Nothing is deleted.
        """
        changed = Conflict(f"{relative} changed since it was written.", "Check it and delete it yourself.")
        trash = self.root / TRASH
        away = move_away(self._target(relative), trash, lambda raw: content_hash(raw) == if_hash, changed)
        return f"{TRASH}/{away.name}"

    def restore(self, trashed: str, relative: str, if_hash: str) -> None:
        """Move what `discard` put into the trash back to where it was.

        Raises Conflict if it is another by now, or gone, or if something has taken its place.
        """
        away = self.root / TRASH / Path(trashed).name
        try:
            raw = away.read_bytes()
        except OSError:
            raw = b""
        if content_hash(raw) != if_hash:
            raise Conflict(f"{trashed} is no longer in the trash.", "Look for it in your backups.")
        self.create(relative, raw)
        with contextlib.suppress(OSError):
            away.unlink()

    def sweep(self, relative: str, known: Container[str | None]) -> None:
        """Remove the temporary files that a crash left beside a note.

        One whose content hash is `known` is deleted. Another may hold what somebody saved at that very moment: it goes
        into Obsidian's trash. Raises as `discard`.
        """
        target = self._target(relative)
        sweep(target, self.root / TRASH, lambda raw: content_hash(raw) in known)

    def _target(self, relative: str) -> Path:
        self.check()
        target = self.resolve(relative, excluded=True)
        if kind_of(target.name) is None:
            raise PathRefused("Only notes can be written: .md, .canvas and .base.", "Add the ending .md.")
        return target


def _entry(folder: str, name: str) -> os.DirEntry[str] | None:
    composed = nfc(name)
    try:
        alike = [entry for entry in list_folder(folder) if entry.name == name or nfc(entry.name) == composed]
    except OSError:
        return None
    return min(alike, key=lambda entry: (entry.name != name, entry.name != composed), default=None)
