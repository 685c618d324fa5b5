"""A provider that needs a key, which may come, or be changed, while the daemon runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from tarsd.errors import ProviderRefused
from tarsd.providers.base import Provider, ProviderEvent, Request


class Keyed:
    """Stands before the provider that `make` builds from a key.

    The key is read once; after the server has refused it, it is read again, and with another one the provider is
    built anew. Whoever follows the hint `tarsd key set` need not start the daemon again.
    """

    def __init__(self, make: Callable[[str | None], Provider], key: Callable[[], str | None]) -> None:
        self._make = make
        self._read = key
        self._key = key()
        self._refused = False
        self._inner = make(self._key)

    @property
    def name(self) -> str:
        """As `Provider.name`; so for the rest."""
        return self._inner.name

    @property
    def local(self) -> bool:
        return self._inner.local

    @property
    def passages(self) -> int:
        return self._inner.passages

    @property
    def per_note(self) -> int:
        return self._inner.per_note

    @property
    def quotes(self) -> bool:
        return self._inner.quotes

    @property
    def window(self) -> int:
        return self._inner.window

    @property
    def tools(self) -> bool:
        return self._inner.tools

    async def prepare(self) -> None:
        """As `Provider.prepare`."""
        if self._refused:
            await self._renew()
        try:
            await self._inner.prepare()
        except ProviderRefused:
            if not await self._renew():
                self._refused = True
                raise
            await self._inner.prepare()

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """As `Provider.stream`."""
        try:
            async with aclosing(self._inner.stream(request)) as events:
                async for event in events:
                    yield event
        except ProviderRefused:
            self._refused = True
            raise

    async def close(self) -> None:
        """As `Provider.close`."""
        await self._inner.close()

    async def _renew(self) -> bool:
        """Build the provider anew if there is another key now."""
        self._refused = False
        fresh = self._read()
        if fresh == self._key:
            return False
        await self._inner.close()
        self._key, self._inner = fresh, self._make(fresh)
        return True
