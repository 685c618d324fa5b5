"""aiohttp's runner; what it refuses before any route or middleware is told is answered in our form, too."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import web

from tarsd.errors import BadRequest, TarsdError
from tarsd.protocol import error_json
from tarsd.server.routes import json_reply


class MalformedRequest(BadRequest):
    """What came is no HTTP, or its body is not what its headers say."""

    status = 400


INSIDE_S = 1.0


class Runner(web.AppRunner):
    """As `web.AppRunner`."""

    async def drain(self) -> None:
        """Let nobody in any more, and wait a moment for those who are inside."""
        loop = asyncio.get_running_loop()
        for site in self.sites:
            for listening in getattr(site._server, "sockets", ()):
                loop.remove_reader(listening.fileno())
        # who was just let in is not among the connections yet, and is thrown out when the site is closed before
        await asyncio.sleep(INSIDE_S / 20)
        for site in list(self.sites):
            await site.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(INSIDE_S):
                while self.server is not None and self.server.connections:
                    await asyncio.sleep(INSIDE_S / 20)

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            try:
                return await made.request_handler(request)
            except web.HTTPExpectationFailed as error:  # the only one that is raised outside of the middlewares
                refusal = MalformedRequest("What the header Expect asks for is not done here.", "Leave it out.")
                return json_reply(error_json(refusal), error.status)

        return _Server(handle, request_factory=made.request_factory, **self._kwargs)


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


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
        error = TarsdError("The daemon failed at this request.", "Its log says where.")
        if 400 <= status < 500:
            error = MalformedRequest(
                "This is no HTTP request that can be read.", "Send HTTP/1.1, as any HTTP client does."
            )
        reply = json_reply(error_json(error), error.status)
        reply.headers["Server"] = "tarsd"
        reply.force_close()
        return reply
