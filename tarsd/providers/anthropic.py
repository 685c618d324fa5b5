"""Claude models through Anthropic's own SDK, or any server that speaks its Messages API.

The SDK takes seconds to load, so that is done in a thread, with the first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tarsd.errors import AnswerCut, ProviderError, ProviderRefused
from tarsd.providers import anthropic_wire as wire
from tarsd.providers.base import ModelInfo, ModelRequest, Notice, ProviderEvent, Usage
from tarsd.providers.counting import CUT, ReadCheck, ReasoningRoom
from tarsd.providers.openai_stream import ChunkReader
from tarsd.transport import client_options, proxy_for
from tarsd.upstream import Kind, count, fault, lost, unmade

if TYPE_CHECKING:
    import anthropic

    Client = anthropic.AsyncAnthropic

WINDOW: Final = 200_000
"""Tokens that every current model reads; taken where the server does not tell."""
CONNECT_S: Final = 5.0
LISTING_S: Final = 10.0
REST_S: Final = 300.0
"""How long a server is not asked again for what it did not tell."""
DRAIN_S: Final = 0.2
PAUSES: Final = 4
"""How often a model that paused is asked to go on within one request."""
MOST_MODELS: Final = 1000
URL_HINT: Final = "Check anthropic.base_url."
KEY_HINT: Final = "Run: tarsd key set anthropic"
HINTS: Final[Mapping[Kind, str]] = {
    "key": KEY_HINT,
    "denied": "The key has no access to this model. To set another key: tarsd key set anthropic",
    "missing": "`tarsd models` lists them; set chat.model to one of them, or check anthropic.base_url.",
    "late": "Ask again, or check anthropic.base_url.",
    "refused": "Check chat.model and anthropic.base_url.",
    "failed": "Try again later.",
    "away": "Check the internet connection and anthropic.base_url.",
    "silent": "Check the internet connection and anthropic.base_url.",
}


class AnthropicProvider:
    """`anthropic:MODEL`. It counts as remote at every address: what answers on this machine passes the text on.

    `silence_s` is the longest that the server may say nothing; it sends signs of life while a model thinks.
    """

    quotes = False
    local = False
    tools = True
    sees = False

    def __init__(
        self, model: str, *, base_url: str, key: str | None, silence_s: float = 120.0, ca_file: str = ""
    ) -> None:
        self.name = f"anthropic:{model}"
        self.window = WINDOW
        self._model = model
        self._most = 0  # tokens of a reply, 0: not known
        self._ask_at = 0.0
        self._server = _AnthropicClient(base_url, key, silence_s, ca_file)
        self._client: Client | None = None
        self._check = ReadCheck()
        self._room = ReasoningRoom()

    async def prepare(self) -> None:
        """As `Provider.prepare`: asks how much the model reads; a server that does not tell is no obstacle."""
        client = await self._connected()
        if time.monotonic() < self._ask_at:
            return
        try:
            info: Any = await client.models.retrieve(self._model, timeout=min(LISTING_S, self._server.silence_s))
            window, most = count(info.max_input_tokens), count(info.max_tokens)
            self.sees = wire.sees(info)
        except Exception as error:
            if self._server.is_final(error):
                raise self._server.failure(error, self._model) from None
            window = most = 0
        self._ask_at = float("inf") if window else time.monotonic() + REST_S
        self.window = window if window else self.window
        self._most = most if most else self._most

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        async with contextlib.aclosing(self._room.stream(self._answer, request, self.window)) as events:
            async for event in events:
                yield event

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """The answer to one request, however often the model pauses in it."""
        client = await self._connected()
        body = wire.body(request, self._model, self._most)
        asked: list[Any] = body["messages"]
        before: list[dict[str, Any]] = []
        spent = Usage(0, 0)
        for left in range(PAUSES, -1, -1):
            reply = wire.MessageDecoder()
            async with contextlib.aclosing(self._events(client, body, reply)) as events:
                try:
                    async for event in events:
                        yield event
                except ProviderError:
                    if reply.counts:  # what was read is known from the beginning
                        yield reply.usage(spent)
                    raise
            if reply.counts:
                first, spent = not spent.input_tokens, reply.usage(spent)
                yield spent
                if first and self._check.is_cut(request, spent.input_tokens):
                    yield Notice(CUT.format(model=self._model, read=spent.input_tokens))
            if reply.reason != "pause_turn" or not left or not reply.content():
                break
            before += reply.content()
            body["messages"] = [*asked, {"role": "assistant", "content": list(before)}]
        for event in reply.end(before):
            yield event

    async def close(self) -> None:
        """As `Provider.close`; used again, it connects again."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> Client:
        self._server.check_key()
        if self._client is None:
            client = await self._server.connected()
            if self._client is None:
                self._client = client
            else:
                await client.close()
        return self._client

    async def _events(
        self, client: Client, body: Mapping[str, Any], reply: wire.MessageDecoder
    ) -> AsyncGenerator[ProviderEvent, None]:
        """One request; what comes is put into `reply`, and told as it comes."""
        answers = False
        try:
            async with await client.messages.create(**body, stream=True) as stream:
                answers = True
                # read as bytes: the SDK goes by the label of the answer and by the names of its events, which
                # proxies and servers of other makers leave out or change
                chunks = ChunkReader(self._server.place)
                async with contextlib.aclosing(stream.response.aiter_bytes()) as pieces:
                    async for piece in pieces:
                        for chunk in chunks.feed(piece):
                            for event in reply.feed(chunk):
                                yield event
                        if reply.finished or chunks.done or chunks.page:
                            break
                    with contextlib.suppress(Exception):  # read to the end, a connection can be used again
                        async with asyncio.timeout(DRAIN_S):
                            async for _ in pieces:
                                pass
                if not reply.finished:
                    for chunk in chunks.end():
                        for event in reply.feed(chunk):
                            yield event
                if chunks.page:
                    raise ProviderError(f"{self._server.place} sent a web page, not an answer.", URL_HINT)
                if not reply.blocks and reply.reason is None:
                    raise AnswerCut(f"{self._server.place} sent an empty answer.", "Ask again.")
        except wire.EventFailure as error:
            found = fault(0, error.body, stream.response.headers, secret=self._server.key, sent=body)
            raise found.chat_error(self._server.place, self._model, HINTS) from None
        except Exception as error:
            raise self._server.failure(error, self._model, answers=answers, sent=body) from None


async def models(*, base_url: str, key: str | None, ca_file: str = "") -> list[ModelInfo]:
    """The models that the server offers; none where it keeps no list. Raises `ProviderError`."""
    server = _AnthropicClient(base_url, key, LISTING_S, ca_file)
    server.check_key()
    client = await server.connected()
    models_by_id: dict[str, ModelInfo] = {}
    try:
        async for model in client.models.list(limit=100):
            if isinstance(model.id, str):
                note = "" if model.lifecycle in ("active", None) else f"{model.lifecycle}"
                context = count(model.max_input_tokens)
                info = ModelInfo(f"anthropic:{model.id}", local=False, context=context, tools=True, note=note)
                if models_by_id.setdefault(model.id, info) is not info or len(models_by_id) >= MOST_MODELS:
                    break  # a server that gives the same page for ever
    except Exception as error:
        if getattr(error, "status_code", 0) not in (404, 405, 501):
            raise server.failure(error, "") from None
    finally:
        await client.close()
    return list(models_by_id.values())


# ------------------------------------------------------------------------------------------------ the server


@dataclass(frozen=True)
class _AnthropicClient:
    """Where requests go, and what its failures mean."""

    base_url: str
    key: str | None = field(repr=False)
    silence_s: float
    ca_file: str = ""

    @property
    def place(self) -> str:
        """How messages call it."""
        url = urlsplit(self.base_url)
        return "Anthropic" if url.hostname == "api.anthropic.com" else url.netloc.rpartition("@")[2] or self.base_url

    def check_key(self) -> None:
        """Raises ProviderRefused when there is no key, or one that cannot be sent."""
        if not self.key:
            raise ProviderRefused("There is no key for Anthropic.", KEY_HINT)
        if not self.key.isascii() or not self.key.isprintable():
            raise ProviderRefused("The key for Anthropic contains invalid characters.", KEY_HINT)

    async def connected(self) -> Client:
        """A client, made in a thread. Raises `ProviderError`."""
        try:
            return await asyncio.to_thread(self._connect)
        except Exception as error:
            raise unmade(error).chat_error(self.place, "", HINTS) from None

    def _connect(self) -> Client:
        """A client without retries, redirects and telemetry. The first call loads the SDK, which takes seconds."""
        import anthropic
        import anthropic.resources.messages
        import anthropic.resources.models
        import httpx2

        for name in ("anthropic", "httpx2", "httpcore2"):  # at lower levels they write whole requests
            logger = logging.getLogger(name)
            logger.setLevel(max(logging.WARNING, logger.level))
        timeout = httpx2.Timeout(self.silence_s, connect=min(CONNECT_S, self.silence_s))
        return anthropic.AsyncAnthropic(
            api_key=self.key,
            base_url=self.base_url.rstrip("/").removesuffix("/v1"),  # the SDK adds it
            max_retries=0,
            timeout=timeout,
            open_telemetry=False,
            http_client=anthropic.DefaultAsyncHttpxClient(
                **client_options(httpx2, self.base_url, self.ca_file), timeout=timeout, follow_redirects=False
            ),
        )

    def is_final(self, error: Exception) -> bool:
        """Whether a failed look at the model means that a request would fail too."""
        import anthropic
        import httpx2

        if isinstance(error, anthropic.APITimeoutError):
            return isinstance(error.__cause__, httpx2.ConnectTimeout)
        return isinstance(error, anthropic.APIConnectionError | anthropic.AuthenticationError | ProviderError)

    def failure(self, error: Exception, model: str, *, answers: bool = False, sent: object = None) -> ProviderError:
        """What to say of an exception, before or after the server `answers`, with a reply or with nonsense.

        `sent` as in `upstream.fault`.
        """
        import anthropic
        import httpx2

        if isinstance(error, ProviderError):
            return error
        if isinstance(error, anthropic.APIStatusError):
            # Errors in the middle of a stream come with status 200, and only their type says which they are.
            status = 0 if error.status_code == 200 else error.status_code
            return fault(status, error.body, error.response.headers, secret=self.key, sent=sent).chat_error(
                self.place, model, HINTS
            )
        if isinstance(error, anthropic.APIConnectionError | httpx2.TransportError):
            found = lost(error, self.silence_s, begun=answers, proxy=proxy_for(self.base_url)[0])
            return found.chat_error(self.place, model, HINTS)
        if answers:
            return AnswerCut(f"{self.place} sent an invalid answer.", "Ask again, or check anthropic.base_url.")
        return ProviderRefused(f"{self.place} sent an unreadable answer ({type(error).__name__}).", URL_HINT)
