"""The routes on the socket: parse, call, stream. Everything else is in the `app.Application` that is handed in.

Every error leaves as `{"error": {code, message, hint}}`; a traceback goes to the log and never to the wire.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
import time
import weakref
from collections.abc import Awaitable, Callable

from aiohttp import http_exceptions, web

from tarsd.app import Application
from tarsd.errors import BadRequest, NotFound, Refused, TarsdError
from tarsd.protocol import HEARTBEAT_S, MAX_BODY, ROUTES, error_json
from tarsd.server.guard import Guard
from tarsd.server.mcp import add_mcp
from tarsd.server.page import add_page
from tarsd.server.routes import HEARTBEAT, LEFT_S, Routes, json_reply
from tarsd.server.runner import MalformedRequest, Runner

__all__ = ["Guard", "Runner", "application", "peer_uid"]

log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TooLarge(BadRequest, code="too_large", status=413):
    """A body over the limit."""


class WrongMethod(BadRequest, code="wrong_method", status=405):
    """The route exists, with another method."""


def application(
    served: Application, *, heartbeat: float = HEARTBEAT_S, left_s: float = LEFT_S, guard: Guard | None = None
) -> web.Application:
    """The server as an aiohttp application; the caller brings a socket, and keeps what is served.

    A turn that is to end with its reader is stopped `left_s` seconds after he has gone. With a guard the server is for
    TCP and has the page, and MCP.
    """
    app = web.Application(middlewares=[_answer, *([guard.middleware] if guard else [])], client_max_size=MAX_BODY)
    if guard is not None:
        app.on_response_prepare.append(guard.finish)
        add_page(app.router)  # a browser reaches no Unix socket, and no client of MCP speaks HTTP over one
        add_mcp(app, served)
    app[HEARTBEAT] = heartbeat
    # aiohttp keeps every handler that was called, and all that hangs on it, for as long as the process lives
    routes = Routes(weakref.proxy(served), left_s)
    for route in ROUTES:
        app.router.add_route(route.method, route.path, getattr(routes, route.name))
    return app


@web.middleware
async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    time.tzset()  # the system's zone may have changed, after a journey: "today" is today there
    try:
        _check_peer(request)
        return await handler(request)
    except TarsdError as error:
        return _error_reply(error)
    except web.HTTPException as error:
        return _error_reply(_in_our_words(request, error))
    except (web.RequestPayloadError, http_exceptions.HttpProcessingError):
        reply = _error_reply(
            MalformedRequest(
                "The body is not encoded as its headers say.", "Send plain JSON with the right Content-Length."
            )
        )
        reply.force_close()  # where the next request begins is unknown
        return reply
    except ConnectionError:
        # nobody is there to read this; raised, it would be logged as a fault of ours
        return _error_reply(MalformedRequest("The connection closed during the request."))
    except Exception:
        log.exception("a request failed", extra={"route": _route_name(request)})
        return _error_reply(TarsdError("The daemon failed on this request.", "See the daemon's log for details."))


def _error_reply(error: TarsdError) -> web.Response:
    return json_reply(error_json(error), error.status)


def _in_our_words(request: web.Request, error: web.HTTPException) -> TarsdError:
    """aiohttp's own refusals in our words."""
    if isinstance(error, web.HTTPNotFound):
        return NotFound("There is no such route.", "tarsd help routes lists them.")
    if isinstance(error, web.HTTPMethodNotAllowed):
        return WrongMethod(
            f"This route does not support {request.method}.", f"It supports {', '.join(sorted(error.allowed_methods))}."
        )
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return TooLarge(f"The body is larger than {MAX_BODY // 1024 // 1024} MB.")
    if 400 <= error.status < 500:
        return MalformedRequest("The request cannot be read.")
    return TarsdError("The daemon failed on this request.")


def _route_name(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else ""


# ------------------------------------------------------------------------------------------------ who is calling


def peer_uid(connection: socket.socket) -> int | None:
    """The user id at the other end of a Unix socket, None where the system does not tell."""
    try:
        if sys.platform == "linux":
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", raw)[1])
        if sys.platform == "darwin":
            raw = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: struct xucred
            return int(struct.unpack_from("2I", raw)[1])
    except OSError:
        return None
    return None


def _check_peer(request: web.Request) -> None:
    connection = request.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX:
        return
    # asyncio hands out a wrapper that has getsockopt, too
    uid = peer_uid(connection)
    if uid is not None and uid not in (os.getuid(), 0):
        raise Refused("This daemon belongs to another user.")
