"""What reading a file may cost and do: time and text by an allowance, and what the system takes from the child process.

Other people's files are read by large libraries, so a fault in these must not reach further than the child: it has
1 GB of memory, can write no file, start no process and open no connection.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

MEMORY = 1 << 30
TIME_S = 60.0
"""After these a child that reads is ended."""
SOFT_S, CHARACTERS = 45.0, 20_000_000
"""After these a reader stops by itself and hands over what it has."""
PICTURES_S = 25.0
"""After these it begins with no further picture: one takes a slow machine long."""
TOO_MUCH = "it would take too long or too much memory"

_DENIED = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.system",
           "pty.spawn", "urllib.", "http.client.", "ftplib.", "smtplib.", "webbrowser.", "os.remove", "os.rename",
           "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink", "os.chmod", "os.chown",
           "os.utime")  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class Allowance:
    """What one file may still take."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SOFT_S
        self._left = CHARACTERS

    @property
    def has_time_for_picture(self) -> bool:
        """Whether text recognition may begin with another one."""
        return time.monotonic() < self._end - SOFT_S + PICTURES_S

    def spend(self, characters: int) -> bool:
        """Whether reading goes on after so many more characters."""
        self._left -= characters
        return self._left > 0 and time.monotonic() < self._end


def confine() -> None:
    """Take from this process, for good, what reading a file does not need. What a system does not offer is left out."""
    sys.addaudithook(_refuse)
    try:
        import resource
    except ImportError:  # not on Windows
        return
    # What may be written, not what is mapped: libraries and threads reserve far more addresses than they use. Where
    # the system counts only addresses, or nothing of it, the other limit holds, or the parent's.
    memory = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    for limit, most in (
        (memory, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))
    if sys.platform == "linux":
        _without_network()


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
    if event.startswith(_DENIED) or (writes and arguments[0] != os.devnull):
        raise PermissionError(f"{event} is not allowed here")


def _without_network() -> None:
    """A network namespace of its own, in which there is nothing, where the system grants it to this user."""
    import ctypes

    new_user, new_net = 0x10000000, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(AttributeError):
        if libc.unshare(new_net):
            libc.unshare(new_user | new_net)


def allow_time() -> None:
    """Let the system end this process when the next file takes too long and no parent is left to do so."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime + 2 * TIME_S)
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
