"""The listener on TCP in this process, in front of an application that repeats what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tarsd.config import HttpSettings
from tarsd.daemon.listener import TcpListener
from tests.support.application import Stub
from tests.support.rawhttp import TOKEN, Reply, exchange, message


@dataclass
class Place:
    """A listener in this process, in front of a stub."""

    listener: TcpListener
    engine: Stub
    token: list[str | None]

    @property
    def port(self) -> int:
        return int(self.listener.url.rpartition(":")[2])

    async def __call__(self, method: str, path: str, body: bytes = b"", **more: Any) -> Reply:
        return await asyncio.to_thread(exchange, self.port, message(self.port, method, path, body, **more))


NAMED = HttpSettings(enabled=True, port=0, allowed_hosts=("pi.local", "tars.example:443"))


@contextlib.asynccontextmanager
async def opened(folder: Path, settings: HttpSettings = NAMED, **more: Any) -> AsyncIterator[Place]:
    """A listener with a token that can be changed."""
    token: list[str | None] = [TOKEN]
    listener = TcpListener(settings, folder / "port", **{"read": lambda: token[0], **more})
    engine = Stub(folder)
    assert await listener.open(engine)
    try:
        yield Place(listener, engine, token)
    finally:
        await engine.chat.close()
        await listener.close()
