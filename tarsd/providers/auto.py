"""`auto`: a chat model of the Ollama on this machine if there is one, else answers without a model.

Only a loopback address is asked, and only models that work on this machine are taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import Final
from urllib.parse import urlsplit

from tarsd.errors import ContextTooLong, ProviderError
from tarsd.providers.base import (
    Forwarding,
    ModelRequest,
    Notice,
    Provider,
    ProviderEvent,
    StreamEnd,
    Text,
    ToolCall,
)
from tarsd.providers.extractive import ExtractiveProvider
from tarsd.providers.ollama import OllamaProvider, choose_model, connect
from tarsd.providers.refused_tools import blamed

ASK_S: Final = 1.0
FRESH_S: Final = 30.0


class AutoProvider(Forwarding):
    """Another provider, chosen in `prepare` and again every `fresh_s` seconds; looks like the chosen one.

    `ask_s` is what the question whether there is an Ollama may cost a turn. Raises ConfigError for a host that is none.
    """

    def __init__(
        self, *, host: str, context: int = 0, ask_s: float = ASK_S, fresh_s: float = FRESH_S, ca_file: str = ""
    ) -> None:
        self._server = connect(host, ca_file=ca_file)
        self._ca_file = ca_file
        self._context = context
        self._ask_s = ask_s
        self._fresh_s = fresh_s
        self._fresh_until = 0.0
        self._extractive = ExtractiveProvider()
        self._models: dict[str, OllamaProvider] = {}  # kept, so that a model keeps its window
        self._chosen = ""
        self._lock = asyncio.Lock()
        self._inner: Provider = self._extractive

    async def prepare(self) -> None:
        """As `Provider.prepare`; never raises, for there is always an answer without a model."""
        async with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._chosen = await self._choose()
                self._fresh_until = time.monotonic() + self._fresh_s
            delegate = self._models.get(self._chosen)
            if delegate is not None:
                try:
                    await delegate.prepare()
                except ProviderError:
                    delegate = None
            # A name of this machine's may lead elsewhere, as its server says only when it is asked about it.
            self._inner = delegate if delegate is not None and delegate.local else self._extractive

    async def _choose(self) -> str:
        """The name of the model to use, "" for none."""
        if not self._server.local or not await self._answers():
            return ""
        try:
            await self._server.load()
            async with asyncio.timeout(self._ask_s):
                model = await choose_model(self._server, self._chosen)
        except (ProviderError, TimeoutError):
            return ""
        if model and model not in self._models:
            self._models[model] = OllamaProvider(
                model, host=self._server.host, context=self._context, ca_file=self._ca_file
            )
        return model

    async def _answers(self) -> bool:
        """Whether anybody listens, before anything is loaded to ask more."""
        place = urlsplit(self._server.host)
        try:
            async with asyncio.timeout(self._ask_s):
                _, writer = await asyncio.open_connection(place.hostname, place.port)
        except (OSError, TimeoutError):
            return False
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """As `Provider.stream`; where the model fails before it has said anything, the notes are quoted after all."""
        model, said = self._inner.name, False
        try:
            async with contextlib.aclosing(super().stream(request)) as events:
                async for event in events:
                    said = said or isinstance(event, Text | ToolCall | StreamEnd)
                    yield event
            if said:
                return
            reason = "it gave an empty answer"
        except ContextTooLong:
            raise
        except ProviderError as error:
            if said or self._inner.quotes or request.messages[-1].role == "tool":
                raise
            if blamed(error.said, request.tools):  # without those it may answer
                raise
            reason = error.message.rstrip(".")
        yield Notice(f"{model} did not answer ({reason}); this answer quotes the notes.")
        async with contextlib.aclosing(self._extractive.stream(request)) as events:
            async for event in events:
                yield event

    def _failed(self, error: ProviderError) -> None:
        self._fresh_until = 0.0  # it may be gone: look again before the next answer

    async def close(self) -> None:
        self._fresh_until = 0.0
        await self._server.close()
        for model in self._models.values():
            await model.close()
