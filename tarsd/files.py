"""Files that are written whole or not at all, and are safely on the disk before they take another's place."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

DRAFTS = ".tarsd-*.tmp"
"""The files beside others that a kill left behind. The dot keeps scan, watch, Obsidian and its Sync away from them."""


@contextlib.contextmanager
def created(file: Path, mode: int | None = 0o600) -> Iterator[BinaryIO]:
    """A new file to write to; it is on the disk when the block ends, and gone if the block fails. Raises OSError.

    Nothing that was there is opened, and no link is followed. `mode` is exact; None means as the umask has it.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(file, flags, 0o666 if mode is None else 0o600)
    try:
        with open(handle, "wb") as stream:
            yield stream
            stream.flush()
            if mode is not None:
                with contextlib.suppress(OSError):  # disks without modes refuse it
                    os.fchmod(handle, mode)
            os.fsync(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            file.unlink()
        raise


@contextlib.contextmanager
def beside(target: Path, data: bytes, mode: int | None = 0o600) -> Iterator[Path]:
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
def replacing(target: Path, mode: int | None = 0o600) -> Iterator[BinaryIO]:
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


def replace(target: Path, data: bytes, mode: int | None = 0o600) -> None:
    """Put `data` in the place of what `target` holds, in one step. Raises OSError."""
    with replacing(target, mode) as stream:
        stream.write(data)


def _draft(target: Path) -> Path:
    return target.parent / DRAFTS.replace("*", secrets.token_hex(8))
