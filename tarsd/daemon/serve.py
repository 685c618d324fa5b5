"""The event loop: the server on its socket, the signals, and the order in which everything ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket

from aiohttp import web

from tarsd.config import Config
from tarsd.daemon.engine import Engine
from tarsd.daemon.lock import listen
from tarsd.daemon.notify import notify, watchdog_seconds
from tarsd.errors import TarsdError
from tarsd.server import application

CLOSE_S = 1.0
LOOK_S = 30.0

log = logging.getLogger(__name__)


def serve(config: Config, server: socket.socket) -> None:
    """Serve on a listening socket until a signal or a client ends it."""
    asyncio.run(_run(config, server))


async def _run(config: Config, server: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: log.info("SIGHUP is ignored; restart to read the settings anew"))
    engine = Engine(config, lambda: loop.call_soon_threadsafe(stopping.set))
    engine.start()
    await engine.assistant.start()
    runner = web.AppRunner(application(engine), access_log=None, handle_signals=False, shutdown_timeout=CLOSE_S)
    await runner.setup()
    await web.SockSite(runner, server).start()
    chores = [
        asyncio.create_task(_watchdog()),
        asyncio.create_task(_keep_reachable(config, runner)),
        asyncio.create_task(engine.listener.keep(engine)),
    ]
    try:
        await stopping.wait()
    finally:
        notify("STOPPING=1", "STATUS=Stopping")
        for chore in chores:
            chore.cancel()
        await engine.assistant.close()
        await asyncio.to_thread(engine.close)
        await asyncio.gather(runner.cleanup(), engine.listener.close())


async def _watchdog() -> None:
    """Tell the supervisor that the loop turns."""
    pause = watchdog_seconds()
    while pause is not None:
        notify("WATCHDOG=1")
        await asyncio.sleep(pause)


async def _keep_reachable(config: Config, runner: web.AppRunner) -> None:
    """Listen anew when the socket file has been removed: tools that tidy /tmp do that."""
    path = config.paths.socket
    while True:
        await asyncio.sleep(LOOK_S)
        if os.path.lexists(path):
            with contextlib.suppress(OSError):
                os.utime(path)  # what is in use is not tidied away
            continue
        try:
            await web.SockSite(runner, listen(path)).start()
            log.warning("the socket had been removed and was made anew")
        except TarsdError as error:
            log.error("the socket had been removed and cannot be made anew", extra={"code": error.code})
