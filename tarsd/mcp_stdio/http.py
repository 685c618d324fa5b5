"""The same server for requests over HTTP, as an ASGI application; it keeps no sessions, so every request stands alone.

That is MCP's streamable HTTP, in its version without a handshake and in those before it. Sessions would be lost
whenever the daemon is built anew for other settings, which few clients survive. The price: in the older versions a call
is cancelled by a message of its own, which finds nothing here; there only a client that leaves stops its call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from tarsd.client import Client
from tarsd.mcp_stdio.handlers import Handlers
from tarsd.mcp_stdio.lines import cleaned
from tarsd.mcp_stdio.link import ANSWER_S, DaemonLink
from tarsd.protocol import MAX_BODY

LAST_S = 1.0

Message = MutableMapping[str, Any]


class HttpServer:
    """In front of the daemon on this socket. To be made in the event loop that it runs in, and closed there.

    `local`: its clients' models run on this machine, and may see private notes.
    """

    def __init__(self, socket_path: Path, *, local: bool) -> None:
        client = Client(socket_path, timeout=ANSWER_S)
        self._handlers = Handlers(lambda: DaemonLink.over(client, local=local))
        self._manager = StreamableHTTPSessionManager(self._handlers.sdk, stateless=True, max_request_body_size=MAX_BODY)
        self._ready = asyncio.Event()
        self._running = asyncio.create_task(self._run(), name="mcp over http")

    async def _run(self) -> None:
        async with self._manager.run():  # to be left by the task that entered it
            self._ready.set()
            await asyncio.Event().wait()

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request, whose body comes in one piece."""

        async def take() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                message["body"] = cleaned(message["body"].decode("utf-8", "replace")).encode()
            return message

        await self._ready.wait()
        await self._manager.handle_request(scope, take, send)

    async def close(self) -> None:
        """End all requests, and what runs in the daemon for them."""
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running
        await asyncio.to_thread(self._handlers.cancel_all, LAST_S)
