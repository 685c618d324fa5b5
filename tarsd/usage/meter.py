"""A provider that counts: every request to a model goes through one of these, whatever it is made for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from tarsd.errors import AnswerCut, ProviderError
from tarsd.parse.tokens import tokens
from tarsd.providers.base import (
    Forwarding,
    ModelRequest,
    Notice,
    Provider,
    ProviderEvent,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
    Usage,
    Waiting,
)
from tarsd.providers.counting import estimate
from tarsd.usage.ledger import MOST, Spent
from tarsd.usage.spending import Spending, spender


class Metered(Forwarding):
    """Looks like the other provider; tells `spending` what each request took, however it ended.

    `prepare` and `stream` raise `CeilingReached` for a model that costs once the month's ceiling is reached.
    """

    def __init__(self, inner: Provider, spending: Spending) -> None:
        self._inner = inner
        self._spending = spending

    async def prepare(self) -> None:
        await self._inner.prepare()
        self._spending.check(self.name, self.local)

    async def close(self) -> None:
        await self._inner.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        name, local, quotes, asker = self.name, self.local, self.quotes, spender.get()
        self._spending.check(name, local)
        count, asked = _Count(request), True
        try:
            async with aclosing(self._inner.stream(request)) as events:
                async for event in events:
                    count.take(event)
                    yield event
        except ProviderError as error:
            asked = isinstance(error, AnswerCut)  # others that come before any word mean that nothing was read
            raise
        finally:
            if not quotes and (asked or count.begun):
                self._spending.add(name, local, asker, count.spent())

    def _failed(self, error: ProviderError) -> None:
        """Nothing depends on it."""


class _Count:
    """What a request takes, by what its server says of it, and by an estimate where that cannot be."""

    def __init__(self, request: ModelRequest) -> None:
        self.begun = self._ended = False
        self._request = request
        self._told = Usage(0, 0)
        self._said: list[str] = []

    def take(self, event: ProviderEvent) -> None:
        """Count an event in."""
        self.begun = self.begun or not isinstance(event, Waiting | Notice)
        match event:
            case Text(text) | Thinking(text):
                self._said.append(text)
            case ToolCall():
                self._said.append(f"{event.name}{dict(event.arguments)}")
            case Usage():
                self._told = event
            case StreamEnd():
                self._ended = True

    def spent(self) -> Spent:
        """What it came to so far."""
        told, said = self._told, "".join(self._said)
        read, written = (count if count <= MOST else 0 for count in (told.input_tokens, told.output_tokens))
        sure = bool(read) and self._ended and bool(written or not said)
        if not (written and self._ended):  # before its end a server has counted some of it at most
            written = max(written, min(tokens(said), MOST) if said else 0)
        if not read:
            told = Usage(0, 0)
            specs = (f"{tool.name}{tool.description}{dict(tool.schema)}" for tool in self._request.tools)
            read = min(estimate(self._request) + sum(map(tokens, specs)), MOST)
        cached = min(told.cached_tokens, read)
        return Spent(read, written, cached, min(told.cache_write_tokens, read - cached), 1, int(not sure))
