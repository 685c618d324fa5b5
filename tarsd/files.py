"""Files that are written whole or not at all, and are safely on the disk before they take another's place.

Whatever is made has the mode that is meant for it: the umask decides nothing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

DRAFTS = ".tarsd-*.tmp"
"""The files beside others that a kill left behind. The dot keeps scan, watch, Obsidian and its Sync away from them."""


def make_folder(folder: Path, mode: int | None = 0o700) -> None:
    """Make sure of a folder; it and what is missing above it get exactly `mode`, for None that of the folder above.

    Raises OSError. A folder that is there stays as it is.
    """
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
        return
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_folder(folder.parent, mode)
        make_folder(folder, mode)
        return
    with contextlib.suppress(OSError):  # disks without modes refuse it
        os.chmod(folder, mode if mode is not None else os.stat(folder.parent).st_mode & 0o2777)


def mode_in(folder: Path) -> int:
    """The mode of a new file that is as open to others as its folder. Raises OSError."""
    return stat.S_IMODE(os.stat(folder).st_mode) & 0o666


def open_private(file: Path | str, flags: int) -> int:
    """A handle of a file that only its owner can read and write, made if `flags` say so. Raises OSError."""
    handle = os.open(file, flags | os.O_CLOEXEC, 0o600)
    if stat.S_IMODE(os.fstat(handle).st_mode) != 0o600:
        with contextlib.suppress(OSError):
            os.fchmod(handle, 0o600)
    return handle


@contextlib.contextmanager
def created(file: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A new file to write to; it is on the disk when the block ends, and gone if the block fails. Raises OSError.

    Nothing that was there is opened, and no link is followed. `mode` is exact.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(file, flags, 0o600)
    try:
        with open(handle, "wb") as stream:
            yield stream
            stream.flush()
            with contextlib.suppress(OSError):  # disks without modes refuse it
                os.fchmod(handle, mode)
            os.fsync(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            file.unlink()
        raise


@contextlib.contextmanager
def beside(target: Path, data: bytes, mode: int = 0o600) -> Iterator[Path]:
    """A file in the folder of `target` that holds `data`; what is left of it afterwards is removed. Raises OSError."""
    draft = _draft(target)
    with created(draft, mode) as stream:
        stream.write(data)
    try:
        yield draft
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


@contextlib.contextmanager
def replacing(target: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `target`, or of a link there, when the block ends well.

    Raises OSError.
    """
    draft = _draft(target)
    try:
        with created(draft, mode) as stream:
            yield stream
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def replace(target: Path, data: bytes, mode: int = 0o600) -> None:
    """Put `data` in the place of what `target` holds, in one step. Raises OSError."""
    with replacing(target, mode) as stream:
        stream.write(data)


def _draft(target: Path) -> Path:
    return target.parent / DRAFTS.replace("*", secrets.token_hex(8))
