"""What the supervisor is told while the event loop runs: that it does, and what the daemon is doing."""

from __future__ import annotations

import asyncio
import contextlib

from tarsd.app import Application
from tarsd.daemon.notify import is_heard, notify, watchdog_seconds
from tarsd.errors import TarsdError

LOOK_S = 2.0
EXTEND_S = 10.0
"""How much more time to end is asked for, several times in that time: for as long as the loop turns."""


async def pulse(stopping: asyncio.Event) -> None:
    """Say that the loop runs: as often as the supervisor asks for it, and from the order to stop until the end.

    A loop that hangs says nothing, and the supervisor ends it.
    """
    pause = watchdog_seconds()
    while is_heard():
        if stopping.is_set():
            notify(f"EXTEND_TIMEOUT_USEC={int(EXTEND_S * 1e6)}")
            await asyncio.sleep(EXTEND_S / 5)
            continue
        if pause is not None:
            notify("WATCHDOG=1")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await stopping.wait()


async def report_activity(app: Application, name: str, look_s: float = LOOK_S) -> None:
    """Tell the supervisor what the daemon of the vault `name` is doing: looked at every `look_s` seconds."""
    last = ""
    while is_heard():
        with contextlib.suppress(TarsdError):
            if (now := await _activity(app, name)) != last:
                notify(f"STATUS={now}")
                last = now
        await asyncio.sleep(look_s)


async def _activity(app: Application, name: str) -> str:
    """Cheap while there is nothing to tell, for it is asked all the time."""
    if not app.indexing.behind() and not app.indexing.notices():
        return f"Serving {name}"
    status = await app.thread(app.status)
    if status["watch"]["state"] == "waiting" and status["watch"]["hint"]:
        return "Waiting for the vault"
    done, left = status["counts"]["notes"], status["behind"]
    if not left:
        return f"Serving {name}"
    return f"Indexing {done} of {done + left}" if done else "Indexing"
