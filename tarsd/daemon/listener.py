"""The listener on TCP, which is there only when it is asked for; without it, or when it fails, the socket serves on."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tarsd import files, keys
from tarsd.app import Application
from tarsd.config import HttpSettings
from tarsd.server import Runner, application
from tarsd.server.guard import BODY_S, Guard, Token, bracketed, is_local

AGAIN_S = 30.0
HEAD_S = 20.0
LINGER_S = 2.0
FIRST_PORT = 8427
PORTS = 100
"""How many ports are tried, for as many vaults side by side."""

OPEN = "Other machines can reach it, and the connection is not encrypted."
TUNNEL = "Use a tunnel, or a proxy with a certificate."

Json = dict[str, Any]

log = logging.getLogger(__name__)


class TcpListener:
    """Built with the daemon, opened in its loop. `head_s` and `body_s` bound how long a request may take to arrive.

    The port that was found by itself, from `first_port` on, is kept in the file `kept`: clients were told it.
    """

    def __init__(
        self,
        settings: HttpSettings,
        kept: Path,
        *,
        read: Callable[[], str | None] = lambda: keys.get("tcp"),
        head_s: float = HEAD_S,
        body_s: float = BODY_S,
        first_port: int = FIRST_PORT,
    ) -> None:
        self._settings = settings
        self._kept = kept
        self._tried = range(first_port, first_port + PORTS)
        self._read = read
        self._head_s = head_s
        self._body_s = body_s
        self._token: Token | None = None
        self._runner: Runner | None = None
        self._failure: tuple[str, str] | None = None
        self.url = ""

    async def keep(self, app: Application) -> None:
        """Listen, and where that fails try again, until it is listening."""
        while self._settings.enabled and not await self.open(app):
            await asyncio.sleep(AGAIN_S)

    async def open(self, app: Application) -> bool:
        """Listen once; whether that worked. Why it did not is in the state."""
        settings = self._settings
        there: Application = weakref.proxy(app)  # as in `application`
        self._token = Token(self._read, lambda work: there.thread(work))
        guard = Guard(settings, self._token, body_s=self._body_s)
        runner = Runner(
            application(app, guard=guard),
            keepalive_timeout=self._head_s,  # it is counted from the connection on: so it bounds the head as well
            lingering_time=LINGER_S,
        )
        await runner.setup()
        try:
            ports = await self._bind(runner)
        except (OSError, ValueError) as error:  # a name that is none fails as a UnicodeError, or for its NUL
            await runner.cleanup()
            if self._failure is None:
                log.error("cannot listen on TCP", extra={"reason": type(error).__name__, "port": settings.port})
            self._failure = _failure(error, settings, self._tried)
            return False
        if settings.port is None:
            self._keep(min(ports))
        guard.listens(ports)
        self._runner, self._failure = runner, None
        self.url = f"http://{bracketed(settings.host or '0.0.0.0')}:{min(ports)}"
        log.info("listening on TCP", extra={"port": min(ports)})
        return True

    async def _bind(self, runner: Runner) -> set[int]:
        *taken, last = self._ports()
        for port in taken:
            try:
                return await runner.listen(host=self._settings.host or None, port=port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        return await runner.listen(host=self._settings.host or None, port=last)

    def _ports(self) -> list[int]:
        """Those to try, in order: the one that was set; else the one found before, and then all from the first on."""
        if self._settings.port is not None:
            return [self._settings.port]
        return list(dict.fromkeys([*self._found_before(), *self._tried]))

    def _found_before(self) -> Iterable[int]:
        try:
            kept = self._kept.read_text(encoding="ascii")[:8].strip() if self._kept.is_file() else ""
            return [int(kept)] if int(kept) in self._tried else []
        except (OSError, ValueError):
            return []

    def _keep(self, port: int) -> None:
        with contextlib.suppress(OSError):  # a full disk: it is looked for again at the next start
            files.replace(self._kept, f"{port}\n".encode("ascii"))

    def state(self) -> Json:
        """For the status. Blocks while it looks for a token that is not there yet."""
        enabled = self._settings.enabled
        name = "failed" if self._failure else "listening" if self._runner else "starting" if enabled else "off"
        trouble = self._trouble()
        reason, hint = trouble or ((OPEN, TUNNEL) if enabled and not is_local(self._settings.host) else ("", ""))
        return {
            "enabled": enabled,
            "url": self.url,
            "state": name if trouble is None or self._failure else "no token",
            "reason": reason,
            "hint": hint,
        }

    def _trouble(self) -> tuple[str, str] | None:
        """What keeps everybody out."""
        if self._failure is not None or self._runner is None or self._token is None:
            return self._failure
        if not self._token.known:
            self._token.look()
        return self._token.trouble

    async def drain(self) -> None:
        """Accept no more connections; finish the open ones."""
        if self._runner is not None:
            await self._runner.drain()

    async def close(self) -> None:
        """End all connections. It may be opened again."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()


def _failure(error: Exception, settings: HttpSettings, tried: range) -> tuple[str, str]:
    """Why it does not listen, and what to do."""
    number = error.errno if isinstance(error, OSError) and not isinstance(error, socket.gaierror) else None
    if number == errno.EADDRINUSE and settings.port is None:
        return f"All ports from {tried[0]} to {tried[-1]} are in use.", "Set another one under [http]."
    if number == errno.EADDRINUSE:
        return f"Port {settings.port} is used by another program.", "Set another port under [http]."
    if number in (errno.EACCES, errno.EPERM):
        return f"This user may not use port {settings.port}.", "Set a port above 1023 under [http]."
    # what several addresses said comes as one error without a number
    if number is None or number == errno.EADDRNOTAVAIL:
        return f"“{settings.host}” is not an address of this machine.", "Set another host under [http]."
    return f"Listening on TCP failed ({errno.errorcode.get(number, number)}).", "See [http] in the config."
