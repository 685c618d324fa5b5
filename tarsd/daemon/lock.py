"""One daemon per vault and one socket per daemon: a lock held for life decides, never a pid or a file that exists."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import time
from pathlib import Path

from tarsd import files
from tarsd.config import SOCKET_BYTES
from tarsd.errors import Conflict, Refused, StoreError

BACKLOG = 128


class AlreadyRunning(Conflict, code="already_running", exit_code=0):
    """Another daemon holds the lock of this vault; `pid` is what it wrote there, 0 if that cannot be read."""

    def __init__(self, pid: int) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(
            f"A daemon already runs for this vault: {who}.", "See it with tarsd status, stop it with tarsd stop."
        )
        self.pid = pid


class Lock:
    """An flock on a file that is never removed. The pid in it is only information."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    def take(self) -> None:
        """Raises `AlreadyRunning`, or `StoreError` when the file cannot be made."""
        try:
            private_folder(self._path.parent)
            handle = files.open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        except OSError as error:
            raise StoreError(f"The lock {self._path} cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = _pid_in(handle)
            os.close(handle)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise AlreadyRunning(pid) from None
            raise StoreError(f"The lock {self._path} cannot be locked: {error.strerror}.") from error
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a pid in it
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        self._handle = handle

    def release(self) -> None:
        """Let go; the file stays, for a removed one could be locked twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _pid_in(handle: int) -> int:
    """The pid of the holder, which may be about to write it."""
    for _ in range(10):
        text = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
        if text.isdigit():
            return int(text)
        time.sleep(0.02)
    return 0


def private_folder(folder: Path) -> None:
    """Make sure of a folder that only we can use.

    Raises `Refused` when it is somebody else's or a link, `StoreError` when it cannot be made.
    """
    try:
        files.make_folder(folder)
        about = folder.lstat()
    except FileExistsError:
        raise Refused(f"{folder} is not a folder.", "Move it away.") from None
    except OSError as error:
        hint = "Set TARSD_HOME to a folder that you can write to."
        raise StoreError(f"The folder {folder} cannot be created: {error.strerror}.", hint) from error
    if not stat.S_ISDIR(about.st_mode):
        raise Refused(f"{folder} is not a folder.", "Move it away; links are not followed here.")
    if about.st_uid != os.getuid():
        raise Refused(f"{folder} belongs to another user.", "Remove it, or set TARSD_HOME to a folder of your own.")
    home = folder == Path.home()
    if about.st_mode & (0o022 if home else 0o077):
        folder.chmod(stat.S_IMODE(about.st_mode) & (~0o022 if home else 0o700))


def listen(path: Path) -> socket.socket:
    """A listening socket at `path`, 0600 before anybody can know of it. To be called with the lock held.

    A stale socket is replaced; what answers, or is no socket, is left alone: `Conflict`.
    """
    if len(os.fsencode(path)) > SOCKET_BYTES:
        raise Refused(f"The socket path {path} is too long.", "Set TARSD_HOME to a shorter folder.")
    private_folder(path.parent)
    _check_free(path)
    draft = path.with_name(f".{os.getpid():x}")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        # the umask is the whole process's; under another name in a private folder there is time for chmod
        server.bind(os.fsencode(draft))
        draft.chmod(0o600)
        server.listen(BACKLOG)
        draft.replace(path)
    except BaseException as error:
        server.close()
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            raise StoreError(f"The socket {path} cannot be created: {error.strerror}.") from error
        raise
    server.setblocking(False)
    return server


def _check_free(path: Path) -> None:
    try:
        about = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(about.st_mode):
        raise Conflict(f"{path} is in the way: it is not a socket.", "Move it away; tarsd does not delete it.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(os.fsencode(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except OSError:
            pass  # full backlog or no permission: somebody is there
    raise Conflict(f"Another program listens on {path}.", "Stop it first.")


def remove_socket(path: Path) -> None:
    """Remove the socket at the end. Call it with the lock held; other files are left alone."""
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
