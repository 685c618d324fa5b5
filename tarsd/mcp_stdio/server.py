"""The server on standard input and output, and how it ends. Standard output belongs to the protocol alone."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import threading
from pathlib import Path
from typing import NoReturn

from mcp.server.stdio import stdio_server

from tarsd.errors import EXIT_OK
from tarsd.mcp_stdio.handlers import Handlers
from tarsd.mcp_stdio.lines import take_input
from tarsd.mcp_stdio.link import DaemonLink

LAST_S = 1.0
"""How long the end may take."""


def serve(vault: Path | None, *, local: bool) -> NoReturn:
    """Serve until standard input ends or a signal comes; ends the process.

    `vault` names the daemon, if not the configured or only one; `local`: the client's model runs on this machine, and
    may see private notes.
    """
    asyncio.run(_StdioServer(Handlers(functools.partial(DaemonLink.open, vault, local=local))).run())
    os._exit(EXIT_OK)


class _StdioServer:
    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._sdk = handlers.sdk
        self._flushed = threading.Event()

    async def run(self) -> None:
        """Serve until the client is gone."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, 128 + number)
        ending = None
        with contextlib.suppress(ExceptionGroup):  # nobody reads what is said here any more
            async with stdio_server(stdin=take_input()) as (incoming, outgoing):
                try:
                    await self._sdk.run(incoming, outgoing, self._sdk.create_initialization_options())
                finally:  # already here, for the last answer may wait for somebody to read it
                    ending = self._end(EXIT_OK, flush=True)
        self._flushed.set()
        if ending is not None:
            ending.join()

    def _end(self, code: int, *, flush: bool = False) -> threading.Thread:
        """Begin to end: stop what runs in the daemon, let the last answers out if `flush`, and leave, soon.

        The process is left without ceremony: threads that wait for standard input or for the daemon must not hold it.
        """

        def end() -> None:
            try:
                self._handlers.cancel_all(LAST_S)
                if flush:
                    self._flushed.wait(LAST_S)
            finally:
                os._exit(code)

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        return ending
