"""What runs between us and an MCP server: its messages, watched for their end, and what it says on standard error."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Collection
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tarsd import foreign
from tarsd.config import McpServer
from tarsd.providers.text import visible
from tarsd.tools.mcp_wire import answered, is_answer

GARBAGE = 1000
"""Lines on standard output that are no MCP, before a server is given up."""

_KEY_NAME = re.compile(r"key|token|secret|passw|auth|credential|pat\b", re.IGNORECASE)
_KEY_LOOK = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[^\s/]{16,}")


class MonitoredStream:
    """A stream of messages that tells when it ends, and when too much of it is none.

    Lists of tools are sorted out, and answers of tools brought into form.
    """

    def __init__(
        self,
        inner: Any,
        ended: Callable[[], None],
        flooded: Callable[[], None],
        sort_out: Callable[[list[Any]], list[Any]],
    ) -> None:
        self.last_context: Any = None  # the sender's context variables, where the stream carries them
        self._inner = inner
        self._ended = ended
        self._flooded = flooded
        self._sort_out = sort_out

    async def __aiter__(self) -> AsyncGenerator[Any, None]:
        garbage = 0
        try:
            async for item in self._inner:
                self.last_context = getattr(self._inner, "last_context", None)
                if isinstance(item, Exception):
                    garbage += 1
                    if garbage == GARBAGE:
                        self._flooded()
                else:
                    result = getattr(item.message, "result", None)
                    if isinstance(result, dict) and isinstance(result.get("tools"), list):
                        result["tools"] = self._sort_out(result["tools"])
                    elif isinstance(result, dict) and is_answer(result):
                        result |= answered(result)
                yield item
        except Exception:
            self._ended()
            raise
        self._ended()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        left: bool | None = await self._inner.__aexit__(kind, error, trace)
        return left


class Stderr(asyncio.Protocol):
    """Where a child's complaints go: its last line is kept for `state`, without what the child was `sent`."""

    def __init__(self, sent: Collection[object] = ()) -> None:
        self._sent = sent
        self._tail = b""
        self._file: Any = None
        self._transport: asyncio.BaseTransport | None = None

    @property
    def last(self) -> str:
        """The last line that says anything."""
        lines = [line for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return complaint(lines[-1], self._sent) if lines else ""

    async def open(self) -> Any:
        """A file that a child can write to; open until `close`."""
        self.close()
        self._tail = b""
        reading, writing = os.pipe()
        self._file = os.fdopen(writing, "w")
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(reading, "rb", 0))
        return self._file

    def data_received(self, data: bytes) -> None:
        """As `asyncio.Protocol`."""
        self._tail = (self._tail + data)[-4000:]

    def close(self) -> None:
        """Stop listening."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._transport is not None:
            self._transport.close()
            self._transport = None


def load() -> None:
    """Load the SDK; its own complaints are ours to tell, and quote what servers say."""
    import anyio  # noqa: F401
    import httpx2  # noqa: F401
    import mcp.client.stdio
    import mcp.client.streamable_http  # noqa: F401

    for name in ("mcp", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def secrets_of(server: McpServer) -> list[str]:
    """What of a server's settings may be a key: by the name of the variable, or by its look."""
    url = urlsplit(server.url)
    named = [*server.env.items(), *parse_qsl(url.query), *zip(server.command, server.command[1:], strict=False)]
    found = [value for name, value in named if _KEY_NAME.search(name) or _KEY_LOOK.fullmatch(value)]
    return [*found, *(argument.partition("=")[2] for argument in server.command), url.password or ""]


def line(text: object) -> str:
    """A name that a server gives, as one short line."""
    return " ".join(visible(str(text)[:2000]).split())[:200]


def complaint(text: object, sent: object = None) -> str:
    """What a server says is wrong, as one short line; `sent` is what it was sent, and may repeat."""
    return foreign.told(visible(str(text)[:2000]), sent, longest=200)
