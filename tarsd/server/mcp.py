"""MCP over HTTP: the server of `tarsd mcp` behind a route of the TCP listener.

The SDK speaks ASGI; here that is made of aiohttp's request and reply. There are no sessions, so nothing but POST is
answered: neither a stream that waits for what the server might say, nor an end of what never began.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from aiohttp import web

from tarsd.app import Application
from tarsd.errors import BadRequest
from tarsd.protocol import error_json, read_audience
from tarsd.server.routes import LOOK_S, has_left, json_reply

PATH = "/mcp"

Message = MutableMapping[str, Any]
Asgi = Callable[
    [dict[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


def add_mcp(app: web.Application, served: Application) -> None:
    """Serve it."""
    route = _McpRoute(weakref.proxy(served))  # as in `application`
    app.router.add_post(PATH, route.answer)
    app.on_cleanup.append(route.close)


class _McpRoute:
    def __init__(self, served: Application) -> None:
        self._served = served
        self._servers: dict[bool, Any] = {}
        self._lock = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        # as with every client of MCP: a model elsewhere, if nobody says that it is one on this machine
        server = await self._server(local=read_audience(request.query) == "here")
        return await through(server, request)

    async def _server(self, *, local: bool) -> Any:
        async with self._lock:
            if local not in self._servers:
                # the SDK takes seconds and much memory on a small machine, so only those who use it load it
                kind = await asyncio.to_thread(_load)
                self._servers[local] = kind(self._served.config.paths.socket, local=local)
            return self._servers[local]

    async def close(self, app: web.Application) -> None:
        for server in self._servers.values():
            await server.close()


def _load() -> Any:
    from tarsd.mcp_stdio.http import HttpServer

    return HttpServer


async def through(application: Asgi, request: web.Request) -> web.StreamResponse:
    """The answer of an ASGI application to a request; a refusal that is not in JSON is told in our words."""
    body: list[bytes] = [await request.read()]
    reply: web.StreamResponse | None = None
    refused = 0

    async def receive() -> Message:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        while not has_left(request):
            await asyncio.sleep(LOOK_S)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal reply, refused
        if message["type"] == "http.response.start":
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]}
            if message["status"] >= 400 and not headers.get("content-type", "").startswith("application/json"):
                refused = message["status"]
                return
            headers.pop("connection", None)  # that is aiohttp's
            reply = web.StreamResponse(status=message["status"], headers=headers)
            await reply.prepare(request)
        elif reply is not None:
            with contextlib.suppress(ConnectionError):  # it is told by `receive`
                if message.get("body"):
                    await reply.write(message["body"])
                if not message.get("more_body"):
                    await reply.write_eof()

    await application(_scope(request), receive, send)
    if refused:
        error = BadRequest(
            "This is not a request of MCP.",
            "Send JSON as application/json, and accept application/json and text/event-stream.",
        )
        return json_reply(error_json(error), refused)
    if reply is None:
        raise ConnectionResetError  # the client has left before there was an answer
    return reply


def _scope(request: web.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "query_string": request.query_string.encode(),
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
    }
