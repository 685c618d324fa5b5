"""The daemon looks at itself: the index against the disk and its own legs, and one round trip to every model.

It reports and repairs nothing. What it asks of a model is a fixed text; nothing of a note is sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from tarsd.chat import TurnServices
from tarsd.embed.base import Embedder, is_bad
from tarsd.errors import ProviderBusy, RateLimited, TarsdError
from tarsd.index.index_check import CheckResult, IndexCheck
from tarsd.protocol import CheckRequest
from tarsd.providers.base import Message, ModelRequest, Provider, StreamEnd, Text, Thinking, Waiting
from tarsd.search import Searcher
from tarsd.vault import Vault

STEP_S: Final = 15.0
EMBED_S: Final = 20.0
CHAT_S: Final = 25.0
TOTAL_S: Final = 40.0
SENTENCE: Final = "The kettle stands on the stove."
QUESTION: Final = "This is a test of the connection. Answer with one word: ready."
REPLY_TOKENS: Final = 512
"""Room for a model that thinks first."""
BUILT_IN: Final = ("table", "minilm", "e5", "fake")

Json = dict[str, Any]
T = TypeVar("T")

log = logging.getLogger(__name__)


class RunInThread(Protocol):
    """`Application.thread`."""

    async def __call__(self, work: Callable[..., T], *arguments: Any) -> T:
        """`work(*arguments)` in a thread."""


class HealthCheck:
    """One look. `searcher` and `embedders` wait for the index, or raise what keeps it from being opened."""

    def __init__(
        self,
        searcher: Callable[[], Searcher],
        embedders: Callable[[], Sequence[Embedder]],
        vaults: Mapping[str, Vault],
        services: TurnServices,
        behind: Callable[[], int],
        thread: RunInThread,
    ) -> None:
        self._embedders = embedders
        self._providers = {"chat": services.provider, "chat fallback": services.fallback}
        self._soundness = IndexCheck(lambda: searcher().store, vaults, behind)
        self._thread = thread
        self._end = time.monotonic() + TOTAL_S

    async def run(self, request: CheckRequest) -> AsyncGenerator[Json, None]:
        """A line for each thing that was looked at, in a fixed order; the models are asked meanwhile."""
        models = [
            asyncio.create_task(self._line("Models", name, work, seconds))
            for name, work, seconds in await self._models(request)
        ]
        try:
            for name, look in self._soundness.steps:
                yield await self._line("Index", name, lambda look=look: self._thread(look), STEP_S)  # type: ignore[misc]
            for model in models:
                yield await model
        finally:
            for model in models:
                model.cancel()

    async def _models(self, request: CheckRequest) -> list[tuple[str, Callable[[], Awaitable[CheckResult]], float]]:
        """What is asked of models: the name of the check, the work, and how long it may take."""
        found: list[tuple[str, Callable[[], Awaitable[CheckResult]], float]] = []
        try:
            embedders = await self._thread(self._embedders)
        except TarsdError:  # the first look at the index tells it
            embedders = []
        for one in embedders:
            asked = request.model or one.name.partition(":")[0] in BUILT_IN
            found.append(("meaning", self._embed(one) if asked else _not_asked, EMBED_S))
        for name, provider in self._providers.items():
            if provider is not None:
                found.append((name, self._chat(provider) if request.model else _not_asked, CHAT_S))
        return found

    def _embed(self, embedder: Embedder) -> Callable[[], Awaitable[CheckResult]]:
        return lambda: self._thread(round_trip, embedder)

    def _chat(self, provider: Provider) -> Callable[[], Awaitable[CheckResult]]:
        return lambda: ask(provider)

    async def _line(self, group: str, name: str, work: Callable[[], Awaitable[CheckResult]], seconds: float) -> Json:
        """What came of a check, in the form in which it is sent; it may fail in any way."""
        started = time.monotonic()
        seconds = min(seconds, self._end - started)
        try:
            async with asyncio.timeout(seconds):
                verdict = (
                    await work() if seconds > 0 else CheckResult("skipped", "There was no time left for this check.")
                )
        except TimeoutError:
            verdict = CheckResult(
                "fault", f"No answer within {seconds:.0f} s.", "Whatever it waits for is busy or hangs."
            )
        except (ProviderBusy, RateLimited) as error:
            verdict = CheckResult("warning", error.message, error.hint)
        except TarsdError as error:
            verdict = CheckResult("fault", error.message, error.hint)
        except Exception as error:
            log.error("a check failed", exc_info=error, extra={"check": name})
            verdict = CheckResult("fault", f"The check failed ({type(error).__name__}).", "See the log for details.")
        return {
            "type": "check",
            "group": group,
            "name": name,
            "state": verdict.state,
            "text": verdict.text,
            "hint": verdict.hint,
            "paths": list(verdict.paths),
            "ms": round((time.monotonic() - started) * 1000, 1),
        }


async def _not_asked() -> CheckResult:
    return CheckResult("skipped", "Not asked.")


def round_trip(embedder: Embedder) -> CheckResult:
    """Embed a sentence twice. Raises EmbedError where nothing comes back."""
    rows = np.concatenate([embedder.embed([SENTENCE], "document") for _ in range(2)])
    if is_bad(rows).any():
        return CheckResult("fault", f"{embedder.name} cannot embed a plain sentence.", "Is it an embedding model?")
    if float(rows[0] @ rows[1]) < 0.999:
        text = f"{embedder.name} gives a different vector for the same sentence each time."
        return CheckResult("fault", text, "Check the model's server.")
    where = "" if embedder.local else ", not on this machine"
    return CheckResult("ok", f"{embedder.name}{where}: {rows.shape[1]} dimensions, the same vector each time.")


async def ask(provider: Provider, *, seconds: float = CHAT_S - 1) -> CheckResult:
    """A question that wants one word; raises ProviderError with what the server says.

    A model that has begun, or is being loaded, is no fault when the time is over.
    """
    started = time.monotonic()
    first, waiting = 0.0, ""
    try:
        async with asyncio.timeout(seconds):
            await provider.prepare()
            if provider.quotes:
                return CheckResult("skipped", "No model: answers quote passages.")
            request = ModelRequest("", (Message("user", QUESTION),), max_tokens=REPLY_TOKENS)
            async with aclosing(provider.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Waiting):
                        waiting = event.text
                    if isinstance(event, Text | Thinking):
                        first = first or time.monotonic() - started
                    if isinstance(event, StreamEnd):
                        return _answered(provider, first)
    except TimeoutError:
        if first:
            return _answered(provider, first)
        if waiting:
            return CheckResult("warning", f"{waiting} No answer within {seconds:.0f} s.", "Try again later.")
        raise
    return CheckResult("fault", "The answer broke off.", "Check the log of the model's server.")


def _answered(provider: Provider, first: float) -> CheckResult:
    if not first:
        return CheckResult("fault", f"{provider.name} gave an empty answer.", "Is it a chat model?")
    where = "on this machine" if provider.local else "not on this machine"
    return CheckResult("ok", f"{provider.name}, {where}: first word after {first:.2f} s.")
