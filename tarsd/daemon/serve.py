"""The event loop: the server on its socket, the signals, and the order of stopping and restarting."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tarsd.app import Application
from tarsd.app.indexing import Indexing
from tarsd.app.process import give_memory_back
from tarsd.config import Config
from tarsd.daemon.console import Console, keep
from tarsd.daemon.listener import TcpListener
from tarsd.daemon.lock import listen
from tarsd.daemon.notify import notify
from tarsd.daemon.reload import ConfigReloader
from tarsd.daemon.supervised import pulse, report_activity
from tarsd.errors import TarsdError
from tarsd.server import Runner, application

REQUESTS_S = 10.0
"""How long new settings wait for requests, once nobody is let in any more."""
LOOK_S = 30.0
LET_GO_S = 5.0
"""Threads of parts that are no more, such as those of a file watch, have ended by then."""

log = logging.getLogger(__name__)


def serve(config: Config, server: socket.socket, load: Callable[[], Config], shown_on: Console | None = None) -> None:
    """Serve on a listening socket until a signal or a client ends it; `load` reads the settings when they change.

    `shown_on`: the terminal of whoever runs this, if it is one.
    """
    asyncio.run(_run(config, server, load, shown_on))


async def _run(config: Config, server: socket.socket, load: Callable[[], Config], shown_on: Console | None) -> None:
    stopping, started = asyncio.Event(), time.monotonic()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    reloader = ConfigReloader(config, load)
    # without a terminal it asks for the settings to be read; with one, it says that the terminal was closed
    loop.add_signal_handler(signal.SIGHUP, stopping.set if os.isatty(0) else reloader.ask)
    pulses = asyncio.create_task(pulse(stopping))
    listener = SocketListener(config, server)
    last: Config | None = None
    try:
        while not stopping.is_set():
            try:
                parts = await _build(config, listener, stopping, started, shown_on)
            except Exception:
                if last is None:
                    raise
                log.exception("the daemon cannot be built for the new settings")
                config, last = last, None
                reloader.refuse(config)
                continue
            last = config
            config = await _serve(parts, listener, stopping, reloader)
            del parts
            if shown_on is not None and not stopping.is_set():
                shown_on.say("The settings have changed and are in force.")
            give_memory_back()  # of the parts that are no more
            loop.call_later(LET_GO_S, give_memory_back)
    finally:
        pulses.cancel()
        listener.close()


async def _build(
    config: Config,
    listener: SocketListener,
    stopping: asyncio.Event,
    started: float | None = None,
    shown_on: Console | None = None,
) -> Parts:
    """All parts for these settings, begun and behind the open socket."""
    loop = asyncio.get_running_loop()
    tcp = TcpListener(config.http, config.paths.state / "port")
    indexing = partial(Indexing, on_event=shown_on.hear) if shown_on is not None else Indexing
    stop = partial(loop.call_soon_threadsafe, stopping.set)
    app = Application(config, stop, tcp.state, indexing=indexing, started=started)
    app.start()
    await app.assistant.start()
    runner = Runner(application(app))
    await runner.setup()
    await listener.open(runner)
    return Parts(app, runner, tcp, shown_on)


async def _serve(parts: Parts, listener: SocketListener, stopping: asyncio.Event, reloader: ConfigReloader) -> Config:
    """Serve until the end or until there are other settings; those to go on with."""
    app, runner, tcp = parts.app, parts.runner, parts.tcp
    ended = asyncio.create_task(stopping.wait())
    chores: list[asyncio.Task[Any]] = [
        ended,
        asyncio.create_task(listener.keep(runner)),
        asyncio.create_task(tcp.keep(app)),
        asyncio.create_task(report_activity(app, app.config.vault.name)),
    ]
    if parts.shown_on is not None:
        chores.append(asyncio.create_task(keep(parts.shown_on, app.indexing)))
    config = app.config
    try:
        while not stopping.is_set():
            reloaded = asyncio.create_task(reloader.wait(app.settings_say, lambda: app.busy))
            chores.append(reloaded)
            await asyncio.wait([reloaded, ended], return_when=asyncio.FIRST_COMPLETED)
            if stopping.is_set():
                break
            config = reloaded.result()
            urgent = config.privacy != app.config.privacy
            await asyncio.gather(runner.drain(), tcp.drain())
            if urgent:
                await app.chat.close()  # turns end now, requests were asked before and are answered
            await app.requests_done(REQUESTS_S)  # a search may take longer than that on a busy machine, and is not cut
            if urgent or not app.busy:
                break
            # somebody asked at the last moment: they are answered first
            await listener.open(runner)
            await tcp.close()
            chores.append(asyncio.create_task(tcp.keep(app)))
            reloader.refuse(app.config)
            reloader.ask()
        return config
    finally:
        if stopping.is_set():
            notify("STOPPING=1", "STATUS=Stopping")
        for chore in chores:
            chore.cancel()
        await app.assistant.close()
        await asyncio.gather(runner.cleanup(), tcp.close())
        await asyncio.to_thread(app.close)


@dataclass(frozen=True)
class Parts:
    """What is built anew for other settings."""

    app: Application
    runner: Runner
    tcp: TcpListener
    shown_on: Console | None = None


class SocketListener:
    """The listening socket. It stays open while the parts behind it are rebuilt: new connections wait."""

    def __init__(self, config: Config, server: socket.socket) -> None:
        self._path = config.paths.socket
        self._server = server

    async def open(self, runner: Runner) -> None:
        """Let a server answer."""
        await runner.listen(sock=self._server.dup())  # a runner closes what it is given

    async def keep(self, runner: Runner) -> None:
        """Listen again when the socket file was removed, as tools do that clean up /tmp."""
        while True:
            await asyncio.sleep(LOOK_S)
            if os.path.lexists(self._path):
                with contextlib.suppress(OSError):
                    os.utime(self._path)  # what is in use is not tidied away
                continue
            try:
                fresh = listen(self._path)
            except TarsdError as error:
                log.error("the socket had been removed and cannot be made anew", extra={"code": error.code})
                continue
            self.close()
            self._server = fresh
            await self.open(runner)
            log.warning("the socket had been removed and was made anew")

    def close(self) -> None:
        """Nobody is let in any more."""
        self._server.close()
