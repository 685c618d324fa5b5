"""A provider that needs a key, which may come, change or go while the daemon runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from tarsd.errors import ProviderError, ProviderRefused
from tarsd.providers.base import Forwarding, Provider

FRESH_S = 10.0
"""How long a key is taken for the right one; after the server has refused it, not at all."""
READ_S = 3.0
"""Longest wait for a keyring, which may be locked; the key that was known serves on."""


class KeyedProvider(Forwarding):
    """Wraps the provider that `make` builds from a key, and rebuilds it when the key changes.

    Whoever follows the hint `tarsd key set` need not start the daemon again; answers under way are not cut.
    """

    def __init__(self, make: Callable[[str | None], Provider], key: Callable[[], str | None]) -> None:
        self._make = make
        self._read = key
        self._key: str | None = None
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()
        self._inner = make(None)
        self._retired: list[Provider] = []  # an answer may be under way on each of them

    async def prepare(self) -> None:
        """As `Provider.prepare`; raises ConfigError when the keys cannot be read."""
        async with self._lock:
            if time.monotonic() - self._read_at > FRESH_S:
                await self._reload()
        try:
            await self._inner.prepare()
        except ProviderError as error:
            self._failed(error)
            raise

    def _failed(self, error: ProviderError) -> None:
        if isinstance(error, ProviderRefused):
            self._read_at = float("-inf")

    async def close(self) -> None:
        for provider in (self._inner, *self._retired):
            await provider.close()

    async def _reload(self) -> None:
        """Read the key in a thread, and rebuild the provider if it changed."""
        first = self._read_at == float("-inf") and self._key is None
        try:
            async with asyncio.timeout(READ_S):
                fresh = await _beside(self._read)
        except TimeoutError:
            if first:
                raise ProviderRefused("The system keyring does not answer.", "Unlock it, then try again.") from None
            return
        self._read_at = time.monotonic()
        if fresh != self._key:
            self._retired.append(self._inner)
            self._key, self._inner = fresh, self._make(fresh)


async def _beside(work: Callable[[], str | None]) -> str | None:
    """`work()` in a daemon thread, which a stop does not wait for: a keyring may show a dialog and block."""
    answer: Future[str | None] = Future()
    answer.set_running_or_notify_cancel()

    def run() -> None:
        try:
            answer.set_result(work())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="tarsd-key", daemon=True).start()
    return await asyncio.wrap_future(answer)
