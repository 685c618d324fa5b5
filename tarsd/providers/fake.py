"""A provider that says what it was told to: for tests, and for trying the streaming without a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from tarsd.providers.base import ModelRequest, ProviderEvent, StreamEnd, Text, Usage


class FakeProvider:
    """Replies are enqueued as a string or as a list of events and pauses in seconds; an exception is raised.

    With nothing enqueued it repeats the question word by word. `requests` keeps what it was asked, `closed` counts
    the streams that ended, whatever way.
    """

    name = "fake"
    quotes = False

    def __init__(
        self,
        *replies: str | Sequence[ProviderEvent | float | Exception],
        local: bool = True,
        window: int = 100_000,
        tools: bool = True,
        sees: bool = False,
    ) -> None:
        self.local = local
        self.window = window
        self.tools = tools
        self.sees = sees
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self._replies = list(replies)

    def enqueue(self, reply: str | Sequence[ProviderEvent | float | Exception]) -> None:
        """Add a reply for a later request."""
        self._replies.append(reply)

    async def prepare(self) -> None:
        """As `Provider.prepare`: nothing has to be known."""

    async def close(self) -> None:
        """As `Provider.close`."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        self.requests.append(request)
        reply = self._replies.pop(0) if self._replies else request.query or request.messages[-1].text
        try:
            if isinstance(reply, str):
                words = reply.split(" ")
                for number, word in enumerate(words):
                    yield Text(word if number == len(words) - 1 else word + " ")
                    await asyncio.sleep(0)
                yield Usage(len(request.messages[-1].text.split()), len(words))
                yield StreamEnd()
                return
            for item in reply:
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, int | float):
                    await asyncio.sleep(item)
                else:
                    yield item
        finally:
            self.closed += 1
