"""What the tools that leave this machine share: an HTTP client, and words for what can go wrong with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tarsd.errors import ToolError
from tarsd.transport import client_options, proxy_for
from tarsd.upstream import lost, unmade

if TYPE_CHECKING:
    import httpx

CONNECT_S = 5.0
READ_S = 20.0


@asynccontextmanager
async def client(
    service: str, url: str, ca_file: str, rewrite: Callable[[httpx.Request], Awaitable[None]] | None = None
) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client for the server of `service` at `url`; no redirect is followed. Raises `ToolError`."""
    for name in ("httpx", "httpcore"):  # they log addresses with everything that is asked
        logging.getLogger(name).setLevel(logging.WARNING)

    def make() -> httpx.AsyncClient:
        import httpx

        hooks: dict[str, list[Any]] = {"request": [rewrite]} if rewrite else {}
        limits = httpx.Timeout(READ_S, connect=CONNECT_S)
        return httpx.AsyncClient(timeout=limits, event_hooks=hooks, **client_options(httpx, url, ca_file))

    try:
        made = await asyncio.to_thread(make)  # reading the system's certificates takes a while
    except Exception as error:
        raise ToolError(*unmade(error).words(service)) from None
    async with made:
        yield made


def obstacle(service: str, url: str, error: BaseException) -> tuple[str, str] | None:
    """A sentence and a hint where a proxy, a certificate or the environment is to blame for a lost connection."""
    found = lost(error, READ_S, proxy=proxy_for(url)[0]) if isinstance(error, Exception) else None
    return found.words(service) if found and found.kind in ("certificate", "tls", "proxy", "setup") else None


def unreachable(service: str, url: str, error: Exception, *, changes: bool = False) -> ToolError:
    """The error for a connection that was not made, or broke; with `changes` the call may have had its effect."""
    import httpx

    if found := obstacle(service, url, error):
        return ToolError(*found)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ToolError(f"{service} cannot be reached.", "Check the internet connection; nothing was done.")
    doubt = " It may have made the change: check before trying again." if changes else ""
    return ToolError(f"{service} broke off or did not answer in time.{doubt}")


def text_of(value: object, limit: int = 500) -> str:
    """A text on one line, and not without end."""
    return " ".join(str(value).split())[:limit]
