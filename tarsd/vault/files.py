"""One file at a time: reading that never waits, and writing that is whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from .. import files
from ..errors import Conflict, NotFound, Refused, TarsdError, VaultUnavailable

MAX_BYTES = 20_000_000
SF_DATALESS, UF_COMPRESSED = 0x4000_0000, 0x20
SAVING_S = 0.5
DOWNLOAD = "Open it in Finder or Obsidian, or choose Keep Downloaded; until then, its last version is still found."
SPLIT = "Split it, or move it out of the vault."

_HERE, _SWAP = -100, 2  # AT_FDCWD; RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS

Why = Literal["unreadable", "not_downloaded", "too_large"]


class Unreadable(TarsdError, code="unreadable", status=409):
    """A file is there, and its bytes cannot be had now; `state` says why, in the words of `Skipped`."""

    def __init__(self, message: str, hint: str = "", *, state: Why = "unreadable") -> None:
        super().__init__(message, hint)
        self.state: Why = state


def dataless(info: os.stat_result) -> bool:
    """Has the system given the file's bytes back to a cloud? Reading it would download it, and wait for that."""
    flags: int = getattr(info, "st_flags", 0)
    if flags & SF_DATALESS:
        return True
    return info.st_blocks == 0 and info.st_size > 0 and not flags & UF_COMPRESSED


def read_file(location: str, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file of at most `limit` bytes. Never waits for a pipe or a download.

    Raises NotFound if it vanished, Unreadable otherwise.
    """
    try:
        fd = os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound("The file no longer exists.") from None
    except OSError as fault:
        raise Unreadable(f"The file cannot be opened: {fault.strerror}.", "Check its permissions.") from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable("This is not a regular file.")
        if dataless(info):
            raise Unreadable("The file is not downloaded.", DOWNLOAD, state="not_downloaded")
        parts, left = [], limit + 1
        while left > 0 and (part := os.read(fd, min(left, info.st_size + 1))):
            parts.append(part)
            left -= len(part)
        if left <= 0:
            raise Unreadable(f"The file is larger than {limit // 1_000_000} MB.", SPLIT, state="too_large")
        return b"".join(parts)
    except OSError as fault:
        raise Unreadable(f"The file cannot be read: {fault.strerror}.", "Check the disk.") from None
    finally:
        os.close(fd)


def write_new(target: Path, data: bytes, taken: Conflict) -> None:
    """Make the file and its folders; raises `taken` if there is anything of that name, and never overwrites it."""
    with _translated():
        if os.path.lexists(target):
            raise taken
        files.make_folder(target.parent, None)
        mode = files.mode_in(target.parent)
        with files.beside(target, data, mode) as temporary:
            try:
                os.link(temporary, target)
            except FileExistsError:
                raise taken from None
            except OSError:  # exFAT and some shares have no hard links
                try:
                    with files.created(target, mode) as stream:
                        stream.write(data)
                except FileExistsError:
                    raise taken from None
        _sync_folder(target.parent)


def write_over(target: Path, data: bytes, same: Callable[[bytes], bool], changed: Conflict) -> None:
    """Replace the file's bytes if `same` accepts those that are there; raises `changed` if not, or if it is gone."""
    with _translated():
        try:
            mode = stat.S_IMODE(os.lstat(target).st_mode)
            if not mode & stat.S_IWUSR:
                raise Refused(f"{target.name} is read-only.", "Make it writable first.")
            with files.beside(target, data, mode) as draft:
                temporary = str(draft)
                _copy_attributes(str(target), temporary)
                if not same(raw := read_file(str(target))) or (not raw and not _stays_empty(target)):
                    raise changed
                if not _exchange(temporary, str(target)):
                    os.replace(temporary, target)
                elif not _still(same, temporary):
                    _put_back(temporary, str(target), data)
                    raise changed
        except (FileNotFoundError, NotADirectoryError, NotFound):
            raise changed from None
        _sync_folder(target.parent)


def move_away(target: Path, folder: Path, same: Callable[[bytes], bool], changed: Conflict, *, name: str = "") -> Path:
    """Move the file into `folder` if `same` accepts its bytes; returns its new path. Existing files there are kept.

    It is called `name` there, or what it is called now, with a number where that is taken.

    Raises `changed` if it does not, or if the file is gone. Nothing is ever deleted.
    """
    with _translated():
        try:
            if not same(read_file(str(target))):
                raise changed
            with contextlib.suppress(FileExistsError):
                files.make_folder(folder, None)
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                raise Refused(f"{folder.name} is not a folder.", "Replace it with a folder.")
            away = _free(folder, Path(name if name else target.name))
            os.rename(target, away)
            if not _still(same, str(away)):  # it was saved a moment ago: back with it, if nothing took its place
                with contextlib.suppress(OSError):
                    os.link(away, target)
                    os.unlink(away)
                raise changed
        except (FileNotFoundError, NotADirectoryError, NotFound):
            raise changed from None
        _sync_folder(target.parent)
        _sync_folder(folder)
        return away


def sweep(target: Path, folder: Path, known: Callable[[bytes], bool]) -> None:
    """Delete the temporary files beside `target` whose bytes are `known`, and move others into `folder`.

    They are there for good if the daemon was killed while it wrote.
    """
    for left in sorted(target.parent.glob(files.DRAFTS)):
        with contextlib.suppress(Conflict), _translated():
            if _still(known, str(left)):
                left.unlink(missing_ok=True)
            else:
                move_away(left, folder, lambda raw: True, Conflict(f"{left.name} no longer exists."), name=target.name)


def _free(folder: Path, wanted: Path) -> Path:
    taken = {name.casefold() for name in os.listdir(folder)}
    number, name = 1, wanted.name
    while name.casefold() in taken:
        number += 1
        name = f"{wanted.stem} {number}{wanted.suffix}"
    return folder / name


def _still(same: Callable[[bytes], bool], location: str) -> bool:
    try:
        return same(read_file(location))
    except TarsdError:
        return False


def _stays_empty(target: Path) -> bool:
    """Is an empty file meant to be empty? An editor that saves in place leaves one for a moment."""
    time.sleep(min(max(SAVING_S - (time.time() - os.stat(target).st_mtime), 0.0), SAVING_S))
    return not read_file(str(target))


def _put_back(temporary: str, target: str, ours: bytes) -> None:
    """Undo an exchange: somebody saved the file at the very moment, and what was saved last is to stay."""
    there = ours
    for _ in range(100):
        with contextlib.suppress(TarsdError):
            theirs = read_file(temporary)
            if not _exchange(temporary, target) or read_file(temporary) == there:
                return
            there = theirs  # saved once more meanwhile: that newer text, now put aside, goes back in its place


def _exchange(first: str, second: str) -> bool:
    """Swap two files' names in one step, so that the replaced file can still be checked. False if unsupported."""
    try:
        libc = ctypes.CDLL(None)
        names = os.fsencode(first), os.fsencode(second)
        if sys.platform == "darwin":
            return bool(libc.renamex_np(*names, _SWAP) == 0)
        return bool(libc.renameat2(_HERE, names[0], _HERE, names[1], _SWAP) == 0)
    except (OSError, AttributeError):
        return False


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Tell in words what the system refuses to write."""
    try:
        yield
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise VaultUnavailable("No space left on the vault's disk; nothing changed.", "Free some space.") from None
        raise Refused(f"The vault cannot be written to: {fault.strerror}.", "Check its permissions.") from None


def _copy_attributes(source: str, target: str) -> None:
    """Extended attributes and access lists (Finder tags live there), as far as the disk lets us."""
    with contextlib.suppress(OSError, AttributeError):
        if sys.platform == "darwin":
            acl, xattr = 1 << 0, 1 << 2
            ctypes.CDLL(None).copyfile(os.fsencode(source), os.fsencode(target), None, acl | xattr)
        else:
            for name in os.listxattr(source):
                os.setxattr(target, name, os.getxattr(source, name))


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
