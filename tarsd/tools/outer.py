"""What the tools that leave this machine share: an HTTP client, and words for what can go wrong with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tarsd.errors import ToolError
from tarsd.upstream import is_loopback

if TYPE_CHECKING:
    import httpx

CONNECT_S = 5.0
READ_S = 20.0


@asynccontextmanager
async def client(
    url: str, rewrite: Callable[[httpx.Request], Awaitable[None]] | None = None
) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client for the server at `url`; no proxy is asked for a server on this machine, no redirect is followed."""
    import httpx

    for name in ("httpx", "httpcore"):  # they log addresses with everything that is asked
        logging.getLogger(name).setLevel(logging.WARNING)

    def make() -> httpx.AsyncClient:
        hooks: dict[str, list[Any]] = {"request": [rewrite]} if rewrite else {}
        limits = httpx.Timeout(READ_S, connect=CONNECT_S)
        return httpx.AsyncClient(timeout=limits, trust_env=not is_loopback(httpx.URL(url).host), event_hooks=hooks)

    made = await asyncio.to_thread(make)  # reading the system's certificates takes a while
    async with made:
        yield made


def unreachable(service: str, error: Exception, *, changes: bool = False) -> ToolError:
    """The error for a connection that was not made, or broke; with `changes` the call may have had its effect."""
    import httpx

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ToolError(f"{service} cannot be reached.", "Check the connection to the internet; nothing was done.")
    doubt = " It is not known whether it took the change: look before trying again." if changes else ""
    return ToolError(f"{service} broke off, or did not answer in time.{doubt}")


def text_of(value: object, limit: int = 500) -> str:
    """A text on one line, and not without end."""
    return " ".join(str(value).split())[:limit]
