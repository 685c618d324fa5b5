"""Chat models of OpenAI, or of any server that speaks its chat format: llama.cpp, LM Studio, vLLM, Ollama's /v1.

What a server cannot do (tools, the name of a limit, counting tokens) is found out by its refusal of a request, which
is then repeated once without that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, Final

import httpx2
import openai

from tarsd.errors import ProviderError, ProviderUnreachable
from tarsd.providers import openai_wire as wire
from tarsd.providers.base import ModelInfo, ModelRequest, Notice, ProviderEvent, ToolSpec, Usage, Waiting
from tarsd.providers.counting import CUT, ReadCheck, ReasoningRoom, estimate, halved
from tarsd.providers.openai_server import URL_HINT, HttpFailure, OpenAIServer
from tarsd.providers.openai_stream import ChunkReader
from tarsd.providers.refused_tools import blamed
from tarsd.upstream import CLOUD, Fault, ResponseTimeout, count, ollama_name, tokens

DRAIN_S: Final = 0.2
REST_S: Final = 3.0
"""How long the count of tokens and the mark of the end are waited for, once the model is finished."""
QUIET_S: Final = 3.0
"""After so long without an answer of a server on this machine it is said why."""
LOADING_S: Final = 300.0
"""How long a server is waited for that says that it loads the model, in all."""
LOCAL_WINDOW: Final = 8_192
OLLAMA_WINDOW: Final = 4_096  # what it may load a model with; it cuts the rest of a prompt and says nothing
REMOTE_WINDOW: Final = 32_000
HOSTED_WINDOW: Final = 128_000
OLLAMA: Final = "library"
"""As whose Ollama lists its models."""
NO_TOOLS: Final = "The model behind {where} cannot call tools here, so it answered without them."
NO_PICTURES: Final = "The model behind {where} cannot look at pictures, so it answered without them."

_NO_CHAT: Final = ("embed", "whisper", "tts", "dall-e", "moderation", "gpt-image", "sora", "transcribe", "realtime")


class OpenAIProvider:
    """The provider `openai:MODEL`; see the module. Local servers need no key.

    `context` bounds its window, and is the window where a server does not tell one (0: no bound).
    """

    quotes = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        key: str | None,
        context: int = 0,
        silence_s: float | None = None,
        quiet_s: float = QUIET_S,
        loading_s: float = LOADING_S,
        ca_file: str = "",
    ) -> None:
        self.name = f"openai:{model}"
        self._context = context
        self._quiet_s = quiet_s
        self._loading_s = loading_s
        self._loading = False
        self._model = model
        self._server = OpenAIServer(base_url, key, silence_s, ca_file)
        # Ollama's own /v1 on this machine passes its cloud models on.
        self.local = self._server.loopback and not model.endswith(CLOUD)
        self._limit = "max_completion_tokens" if self._server.hosted else "max_tokens"
        self._check = ReadCheck()
        self._room = ReasoningRoom()
        self._forget()

    def _forget(self) -> None:
        """What was found out about the server; another one may stand there next time."""
        self._known = False
        usual = HOSTED_WINDOW if self._server.hosted else LOCAL_WINDOW if self.local else REMOTE_WINDOW
        self._window = self._context or usual
        self._tools = True
        self._sees = True
        self._usage = True
        self._cuts = 0  # the window of an Ollama, which cuts what is longer and says nothing

    async def prepare(self) -> None:
        """As `Provider.prepare`: how long a prompt may be, asked once."""
        if self._known:
            return
        self._server.check_key()
        if not self._server.hosted:  # it does not tell
            try:
                reply = await self._server.get("models")
            except ResponseTimeout:
                return
            except ProviderUnreachable:
                self._forget()
                raise
            except ProviderError:  # it may still chat; the next turn asks again
                return
            entry = _entry(reply, self._model)
            self._sees = wire.tells_pictures(entry) is not False
            loaded, ollama = await self._loaded(entry), entry.get("owned_by") == OLLAMA
            self._cuts = (loaded or OLLAMA_WINDOW) if ollama else 0
            if not loaded:
                if ollama:
                    self._window = self._at_most(OLLAMA_WINDOW)
                self._known = not self._server.loopback  # here the model may only have to be loaded
                return
            self._window = self._at_most(loaded)
        self._known = True

    def _at_most(self, loaded: int) -> int:
        return min(loaded, self._context or loaded)

    @property
    def window(self) -> int:
        return self._window

    @property
    def tools(self) -> bool:
        """As `Provider.tools`; False once a server has refused a request for its tools."""
        return self._tools

    @property
    def sees(self) -> bool:
        """As `Provider.sees`: until a server says no, or has refused a picture; few say it."""
        return self._sees

    async def close(self) -> None:
        await self._server.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        async with aclosing(self._room.stream(self._answer, request, self.window)) as events:
            async for event in events:
                yield event

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """The answer to one request."""
        self._server.check_key()
        tools, sees = self._tools, self._sees
        opening = asyncio.create_task(self._open(request))
        try:
            done, _ = await asyncio.wait({opening}, timeout=self._quiet_s)
            if not done and (self._server.loopback or self._loading):
                yield Waiting(f"{self._server.where} is still loading the model, or reading the prompt.")
            stream = await opening
        except BaseException:
            await _dropped(opening)
            raise
        try:
            if tools and not self._tools and request.tools:
                yield Notice(NO_TOOLS.format(where=self._server.where))
            if sees and not self._sees:
                yield Notice(NO_PICTURES.format(where=self._server.where))
            reader = wire.StreamDecoder()
            async with aclosing(self._chunks(stream, reader)) as chunks:
                async for chunk in chunks:
                    for event in reader.feed(chunk):
                        yield event
            reader.in_place()
            if reader.empty and not reader.finished:
                raise self._nothing(request)
            for event in reader.end():
                yield event
                if isinstance(event, Usage) and self._is_cut(request, event):
                    yield Notice(CUT.format(model=self._model, read=event.input_tokens))
        except wire.StreamFailure as error:
            sent = wire.body(request, self._model, limit=self._limit, usage=self._usage, tools=False)
            raise self._told(self._server.fault(error.body, sent=sent), begun=reader.begun) from None
        except (ValueError, RecursionError):
            raise self._server.cut("sent an invalid answer") from None
        finally:
            with suppress(httpx2.HTTPError, OSError):
                await stream.close()

    async def _open(self, request: ModelRequest) -> openai.AsyncStream[object]:
        """The stream of the answer; what the server refuses by name is left out, each thing once."""
        left_out: set[str] = set()
        waited_s, self._loading = 0.0, False
        while True:
            asked = request if self._sees else _without_pictures(request)
            body = wire.body(asked, self._model, limit=self._limit, usage=self._usage, tools=self._tools)
            try:
                return await self._server.post("chat/completions", body)
            except HttpFailure as error:
                if error.fault.kind == "loading" and waited_s < self._loading_s:
                    pause_s = min(error.fault.wait_s or 1.0, 10.0, self._loading_s - waited_s)
                    waited_s, self._loading = waited_s + pause_s, True
                    await asyncio.sleep(pause_s)
                    continue
                change = "" if error.fault.kind == "too long" else self._change(error.fault.said, body, request.tools)
                if not change or change in left_out:
                    raise self._told(error.fault) from None
                left_out.add(change)
            except ProviderUnreachable:
                self._forget()
                raise

    def _change(self, said: str, body: Mapping[str, Any], tools: Sequence[ToolSpec]) -> str:
        """Leave out or rename what the server does not take; the name of it, or "" when nothing can be done."""
        if "tools" in body and wire.no_tools(said) and not blamed(said, tools):
            self._tools = False
            return "tools"
        pictured = any(isinstance(message.get("content"), list) for message in body["messages"])
        if pictured and wire.no_pictures(said):
            self._sees = False
            return "pictures"
        if wire.other_limit(said):
            other = "max_tokens" if "max_completion_tokens" in body else "max_completion_tokens"
            self._limit = other
            return "limit"
        if "stream_options" in body and wire.no_usage(said):
            self._usage = False
            return "usage"
        return ""

    async def _chunks(
        self, stream: openai.AsyncStream[object], reader: wire.StreamDecoder
    ) -> AsyncGenerator[object, None]:
        """The chunks of a stream; what breaks it is told as a ProviderError, or passed over when all was said."""
        chunks = ChunkReader(self._server.where)
        try:
            async with (
                aclosing(stream.response.aiter_bytes()) as pieces,
                aclosing(_until_finished(pieces, reader)) as timely,
            ):
                async for piece in timely:
                    for chunk in chunks.feed(piece):
                        yield chunk
                    if chunks.done or chunks.page:
                        break
                with suppress(TimeoutError, httpx2.HTTPError):  # read to the end, a connection can be used again
                    async with asyncio.timeout(DRAIN_S):
                        async for _ in pieces:
                            pass
            for chunk in chunks.end():
                yield chunk
            if chunks.page:
                raise ProviderError(f"{self._server.where} sent a web page, not an answer.", URL_HINT)
        except (openai.APIConnectionError, httpx2.HTTPError, httpx2.StreamError) as error:
            if reader.finished:
                return
            if not reader.begun:
                self._forget()
                raise self._server.unreachable(error) from None
            raise self._server.cut("broke off") from None

    def _is_cut(self, request: ModelRequest, usage: Usage) -> bool:
        """Whether the server read clearly less than it was sent; what it may have had in a cache counts as read."""
        read = usage.input_tokens
        if self._check.is_cut(request, read + usage.cached_tokens):
            return True
        return halved(read, self._cuts) and estimate(request) > 1.2 * read

    def _told(self, fault: Fault, *, begun: bool = False) -> ProviderError:
        """The error that came in place of an answer, or of the rest of one; what it says of the window is kept."""
        if fault.kind == "too long" and fault.window:
            self._window = self._at_most(fault.window)
        return self._server.failure(fault, self._model, begun=begun)

    def _nothing(self, request: ModelRequest) -> ProviderError:
        """A stream without a word; LM Studio answers so when the prompt is too long."""
        said = "".join(message.text for message in request.messages) + request.system
        if self._server.loopback and tokens(said) > 0.9 * self._window:
            return self._server.failure(Fault("too long", 0, ""), self._model)
        return self._server.cut("sent an empty answer")

    async def _loaded(self, entry: Mapping[str, Any]) -> int:
        """The context window, in tokens, that the server has loaded the model with; 0 if it does not say."""
        if told := _told_context(entry):
            return told
        meta = _meta(entry)
        if entry.get("owned_by") == "llamacpp" or meta:
            settings = (await self._server.native("props")).get("default_generation_settings")
            loaded = count(settings.get("n_ctx")) if isinstance(settings, Mapping) else 0
            return loaded or count(meta.get("n_ctx_train"))
        if not self._server.loopback:
            return 0
        if entry.get("owned_by") == OLLAMA:
            running = (await self._server.native("api/ps")).get("models")
            for entry in _mappings(running):
                if _same_name(entry.get("name") or entry.get("model"), self._model):
                    return count(entry.get("context_length"))
            return 0
        for listed in _mappings((await self._server.native("api/v1/models")).get("models")):  # LM Studio
            for instance in _mappings(listed.get("loaded_instances")):
                config = instance.get("config")
                if self._model in (listed.get("key"), instance.get("id")) and isinstance(config, Mapping):
                    return count(config.get("context_length"))
        return 0


def _without_pictures(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=tuple(replace(message, pictures=()) for message in request.messages))


async def _dropped(opening: asyncio.Task[openai.AsyncStream[object]]) -> None:
    """Give a request up, whether or not the answer has come by now."""
    opening.cancel()
    (stream,) = await asyncio.gather(opening, return_exceptions=True)
    if isinstance(stream, openai.AsyncStream):
        await stream.close()


async def models(*, base_url: str, key: str | None, ca_file: str = "") -> list[ModelInfo]:
    """The chat models that the server at `base_url` offers; embedding models it names as such are left out."""
    server = OpenAIServer(base_url, key, None, ca_file)
    try:
        server.check_key()
        entries = [entry for entry in _mappings(_data(await server.get("models"))) if isinstance(entry.get("id"), str)]
    finally:
        await server.close()
    infos = []
    for entry in entries:
        id, able = str(entry["id"]), entry.get("capabilities")
        if any(word in id.lower() for word in _NO_CHAT) or (isinstance(able, list) and able == ["embedding"]):
            continue
        context = _told_context(entry) or count(_meta(entry).get("n_ctx_train"))
        local = server.loopback and not id.endswith(CLOUD)
        infos.append(ModelInfo(f"openai:{id}", local, context))
    return infos


def _same_name(listed: object, model: str) -> bool:
    """Whether Ollama lists a model under this name: case does not count, and no tag means `:latest`."""
    return isinstance(listed, str) and ollama_name(listed).lower() == ollama_name(model).lower()


def _meta(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = entry.get("meta")
    return meta if isinstance(meta, Mapping) else {}


def _told_context(entry: Mapping[str, Any]) -> int:
    """How many tokens the model of an entry of `/models` reads as the server has loaded it, 0 where it does not say."""
    told = (_meta(entry).get("n_ctx"), *map(entry.get, ("max_model_len", "context_length", "context_window")))
    return next(filter(None, map(count, told)), 0)


def _data(reply: object) -> object:
    return reply.get("data") if isinstance(reply, Mapping) else reply


def _mappings(items: object) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _entry(reply: object, model: str) -> Mapping[str, Any]:
    """What `/models` says of a model: the entry of its name, or the only one of a server that takes any name."""
    entries = _mappings(_data(reply))
    for entry in entries:
        aliases, id = entry.get("aliases"), entry.get("id")
        if id == model or (entry.get("owned_by") == OLLAMA and _same_name(id, model)):
            return entry
        if isinstance(aliases, list) and model in aliases:
            return entry
    return entries[0] if len(entries) == 1 else {}


async def _until_finished(pieces: AsyncIterator[bytes], reader: wire.StreamDecoder) -> AsyncGenerator[bytes, None]:
    """The bytes of a stream; some servers say that the model is finished, and leave the connection open."""
    last: float | None = None
    while True:
        if reader.finished and last is None:
            last = asyncio.get_running_loop().time() + REST_S
        try:
            async with asyncio.timeout_at(last):
                piece = await anext(pieces, None)
        except TimeoutError:
            return
        if piece is None:
            return
        yield piece
