"""Who comes in over TCP: only by a name of ours, from a known origin, with the token. The Unix socket needs none of it.

A page on the web reaches a port of this machine, under any name that it likes; so all of it is asked of every request,
whatever its route, and before a byte of its body is read. Only the files of our own page need no token.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection

from aiohttp import web

from tarsd.config import HttpSettings
from tarsd.errors import BadRequest, Refused, TarsdError
from tarsd.protocol import error_json
from tarsd.server.page import FILES
from tarsd.server.routes import json_reply

APPS = ("app://obsidian.md", "capacitor://localhost", "http://localhost")
"""The origins of Obsidian on the desktop, on iOS and on Android."""

LOCAL = ("localhost", "127.0.0.1", "[::1]")
EVERYWHERE = ("", "0.0.0.0", "::")
SHORTEST = 16
"""Characters of a token; with fewer it could be guessed."""

KEPT_S = 5.0
"""For how long a token is taken without looking whether it is still the one."""

TRIES = 10
WINDOW_S = 60.0
PEERS = 256
BODY_S = 60.0

MAKE = "Make one with: tarsd token."
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
    "Access-Control-Allow-Headers": "authorization, content-type",
    "Access-Control-Max-Age": "600",
}

log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Thread = Callable[[Callable[[], None]], Awaitable[None]]


class Unauthorized(Refused, code="unauthorized", status=401):
    """No token, or a wrong one."""


class TooMany(Refused, code="too_many_tries", status=429):
    """Too many wrong tokens from that address."""


class TooSlow(BadRequest, code="too_slow", status=408):
    """The body did not arrive in time."""


class Token:
    """The token as it is kept now: looked up when a request comes and it is not known, so that no restart is needed.

    `read` may block; `thread` runs what blocks.
    """

    def __init__(
        self, read: Callable[[], str | None], thread: Thread, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._thread = thread
        self._clock = clock
        self._lock = asyncio.Lock()
        self._value: str | None = None
        self._since = -math.inf
        self.trouble: tuple[str, str] | None = None

    @property
    def known(self) -> bool:
        """Whether there was one when it was last looked up."""
        return self._value is not None

    def look(self) -> None:
        """Read it; blocks. Never raises: what is wrong is kept in `trouble`, as a sentence and a hint."""
        try:
            value, trouble = self._read(), None
        except TarsdError as error:
            value, trouble = None, (error.message, error.hint)
        if trouble is None and value is None:
            trouble = ("There is no token yet, so nobody can connect over TCP.", MAKE)
        elif value is not None and len(value) < SHORTEST:
            value = None
            trouble = (f"The token has fewer than {SHORTEST} characters and is not accepted.", f"{MAKE[:-1]} --rotate.")
        self._value, self.trouble, self._since = value, trouble, self._clock()

    async def fits(self, given: str, *, again: bool = True) -> bool:
        """Whether this is the token; with `again`, it may have been made a moment ago."""
        if self._clock() - self._since >= KEPT_S:
            await self._look_once(self._since)
        if self._same(given):
            return True
        if again:
            await self._look_once(self._since)
        return again and self._same(given)

    async def _look_once(self, since: float) -> None:
        """Many that ask at once are answered by one look."""
        async with self._lock:
            if self._since == since:
                await self._thread(self.look)

    def _same(self, given: str) -> bool:
        known = self._value
        return known is not None and hmac.compare_digest(_bytes(known), _bytes(given))


class Tries:
    """Wrong tokens by where they came from: a bounded memory of the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait(self, peer: str) -> int:
        """Seconds until this peer may try again; 0 while it may."""
        since, count = self._seen.get(peer, (0.0, 0))
        left = since + WINDOW_S - self._clock()
        return max(1, math.ceil(left)) if count >= TRIES and left > 0 else 0

    def add(self, peer: str) -> int:
        """One more; how many they are."""
        now = self._clock()
        since, count = self._seen.pop(peer, (now, 0))
        if now - since >= WINDOW_S:
            since, count = now, 0
        self._seen[peer] = (since, count + 1)
        while len(self._seen) > PEERS:
            self._seen.popitem(last=False)
        return count + 1


class Guard:
    """Stands before the routes of the TCP listener. `body_s` is the longest that a body may take."""

    def __init__(self, settings: HttpSettings, token: Token, *, body_s: float = BODY_S) -> None:
        self._settings = settings
        self._token = token
        self._tries = Tries()
        self._body_s = body_s
        self._hosts: frozenset[str] = frozenset()

    def listens(self, ports: Collection[int]) -> None:
        """The ports that it listens on are known: so are its names."""
        own = [*LOCAL, *([bracketed(self._settings.host)] if self._settings.host not in EVERYWHERE else [])]
        found = {f"{name}:{port}" for name in own for port in ports}
        found |= set(own) if 80 in ports else set()
        for name in map(bracketed, self._settings.allowed_hosts):
            found |= {name, *(f"{name}:{port}" for port in ports)}
        self._hosts = frozenset(name.lower() for name in found)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse, answer a preflight, or let it in once its body is here."""
        try:
            if not self._is_ours(request):
                raise Refused("This daemon does not accept that host name.", "Add it to allowed_hosts under [http].")
            origins = request.headers.getall("Origin", [])
            if origins and not self._known(request):
                raise Refused(
                    "This daemon does not accept requests from that page.",
                    "Only Obsidian and the daemon's own page may send them.",
                )
            if origins and request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
                return web.Response(status=204, headers=PREFLIGHT)
            if request.path in FILES:  # the page itself needs no token
                return await handler(request)
            await self._check_token(request)
            await self._read_body(request)
        except (Unauthorized, TooMany, TooSlow) as error:
            return self._reply(request, error)
        return await handler(request)

    async def finish(self, request: web.Request, response: web.StreamResponse) -> None:
        """What stands at the head of every reply; streams as well."""
        headers = response.headers
        headers["Vary"] = "Origin"
        headers["Server"] = "tarsd"
        headers["X-Content-Type-Options"] = "nosniff"
        headers.setdefault("Cache-Control", "no-store")
        if "Origin" in request.headers and self._known(request):
            headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
            headers["Access-Control-Expose-Headers"] = "Retry-After"
            asks = request.headers.get("Access-Control-Request-Private-Network", "").lower() == "true"
            if request.method == "OPTIONS" and asks:
                headers["Access-Control-Allow-Private-Network"] = "true"

    # -------------------------------------------------------------------------------------------- names and origins

    def _is_ours(self, request: web.Request) -> bool:
        given = [name.strip().lower() for name in request.headers.getall("Host", [])]
        if len(given) != 1:
            return False
        # an address in numbers is no name that somebody else could point here
        here = request.get_extra_info("sockname")
        return given[0] in self._hosts or (bool(here) and given[0] == f"{bracketed(str(here[0]))}:{here[1]}")

    def _known(self, request: web.Request) -> bool:
        given = request.headers.getall("Origin", [])
        if len(given) != 1:
            return False
        scheme, found, name = given[0].partition("://")
        if given[0] in APPS:
            return True
        own = name in self._hosts or name == request.headers.get("Host", "").lower()
        return bool(found) and scheme in ("http", "https") and own and self._is_ours(request)

    # -------------------------------------------------------------------------------------------- the token, the body

    async def _check_token(self, request: web.Request) -> None:
        given = _bearer(request)
        if given is None:
            raise Unauthorized("A token is required.", "Send it as a bearer token; see: tarsd token.")
        peer = _peer(request)
        blocked = self._tries.wait(peer) > 0
        # many may come through one tunnel: whoever has the token is not kept out by those who have it not
        if await self._token.fits(given, again=not blocked):
            return
        if blocked:
            raise TooMany("Too many wrong tokens from that address.", "Wait a minute. See: tarsd token.")
        if self._tries.add(peer) == TRIES:
            log.warning("too many wrong tokens over TCP", extra={"peer": peer})
        if self._token.trouble is not None:
            raise Unauthorized("No token is set, so nobody can connect.", MAKE)
        raise Unauthorized("The token is wrong.", "Make a new one with: tarsd token --rotate.")

    async def _read_body(self, request: web.Request) -> None:
        """It is kept by the request, for the route to read."""
        if not request.body_exists:
            return
        try:
            async with asyncio.timeout(self._body_s):
                await request.read()
        except TimeoutError:
            raise TooSlow("The body did not arrive in time.", "Try again.") from None

    def _reply(self, request: web.Request, error: TarsdError) -> web.Response:
        reply = json_reply(error_json(error), error.status)
        if isinstance(error, Unauthorized):
            reply.headers["WWW-Authenticate"] = "Bearer"
        if isinstance(error, TooMany):
            reply.headers["Retry-After"] = str(self._tries.wait(_peer(request)) or 1)
        if isinstance(error, TooSlow):
            reply.force_close()
        return reply


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if isinstance(_address(host), ipaddress.IPv6Address) else host


def is_local(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bearer(request: web.Request) -> str | None:
    given = request.headers.getall("Authorization", [])
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _peer(request: web.Request) -> str:
    """Where it comes from; all addresses that one machine has for itself in IPv6 are one."""
    name = (request.remote or "").partition("%")[0]
    address = _address(name)
    if isinstance(address, ipaddress.IPv6Address):
        return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
    return name if address is None else str(address)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
