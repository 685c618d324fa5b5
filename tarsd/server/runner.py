"""Serves an application on sockets; what aiohttp refuses before any middleware is told is answered in our form, too."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from aiohttp import web

from tarsd.errors import BadRequest, TarsdError
from tarsd.protocol import error_json
from tarsd.server.routes import json_reply

INSIDE_S = 1.0
CLOSE_S = 1.0


class MalformedRequest(BadRequest, status=400):
    """What came is no HTTP, or its body is not what its headers say."""


class Runner:
    """An application behind listening sockets; `connection` says how long one may be idle and the like."""

    def __init__(self, app: web.Application, **connection: Any) -> None:
        self._app = web.AppRunner(app)
        self._server: web.Server | None = None
        self._connection = {"access_log": None, **connection}
        self._listening: list[asyncio.Server] = []

    async def setup(self) -> None:
        """Start the application; nobody is let in yet."""
        await self._app.setup()
        assert self._app.server is not None
        handle = self._app.server.request_handler

        async def handle_or_refuse(request: web.BaseRequest) -> web.StreamResponse:
            try:
                return await handle(request)
            except web.HTTPExpectationFailed as error:  # the only one that is raised outside of the middlewares
                refusal = MalformedRequest("The header Expect is not supported.", "Leave it out.")
                return json_reply(error_json(refusal), error.status)

        self._server = web.Server(handle_or_refuse, request_factory=self._app.server.request_factory)

    async def listen(self, **where: Any) -> set[int]:
        """Let in who connects to a `sock`, or to a `host` and `port`; the ports. Raises as `loop.create_server`."""
        server, loop = self._server, asyncio.get_running_loop()
        assert server is not None
        listening = await loop.create_server(
            lambda: _Connection(server, loop=loop, **self._connection), backlog=128, **where
        )
        self._listening.append(listening)
        return {int(open_socket.getsockname()[1]) for open_socket in listening.sockets if "port" in where}

    async def drain(self) -> None:
        """Let nobody in any more, and wait a moment for those who are inside."""
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            for open_socket in listening.sockets:
                loop.remove_reader(open_socket.fileno())
        # who was just let in is not among the connections yet, and is thrown out when the socket is closed before
        await asyncio.sleep(INSIDE_S / 20)
        self._shut()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(INSIDE_S):
                while self._server is not None and self._server.connections:
                    await asyncio.sleep(INSIDE_S / 20)

    async def cleanup(self) -> None:
        """End all connections, and the application."""
        self._shut()
        await asyncio.sleep(0)  # what has come in by now is begun
        if self._server is not None:
            self._server.pre_shutdown()
            await self._server.shutdown(CLOSE_S)
        await self._app.cleanup()

    def _shut(self) -> None:
        for listening in self._listening:
            listening.close()
        self._listening.clear()


class _Connection(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        super().handle_error(request, status, exc, message)  # its log, and its end when half an answer is sent
        error = TarsdError("The daemon failed on this request.", "See the daemon's log for details.")
        if 400 <= status < 500:
            error = MalformedRequest("This is not a valid HTTP request.", "Send HTTP/1.1.")
        reply = json_reply(error_json(error), error.status)
        reply.headers["Server"] = "tarsd"
        reply.force_close()
        return reply
