"""systemd's readiness protocol, and nothing where there is no systemd."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(*lines: str) -> None:
    """Tell the supervisor `READY=1`, `STATUS=…`, `WATCHDOG=1` or `STOPPING=1`; a lost message does no harm.

    One assignment each: a line end within one, as a folder's name may hold, becomes a blank.
    """
    if not is_heard():
        return
    address = os.environ["NOTIFY_SOCKET"]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.setblocking(False)
        channel.connect("\0" + address[1:] if address[0] == "@" else address)
        channel.send("\n".join(line.replace("\n", " ") for line in lines).encode(errors="replace"))


def is_heard() -> bool:
    """Whether a supervisor listens: at a socket file, or at an abstract name that begins with @."""
    return os.environ.get("NOTIFY_SOCKET", "").startswith(("/", "@"))


def watchdog_seconds() -> float | None:
    """How often to say `WATCHDOG=1`: a third of what the supervisor allows, None if it does not watch."""
    allowed = os.environ.get("WATCHDOG_USEC", "")
    if not allowed.isdigit() or os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(allowed) / 3e6
