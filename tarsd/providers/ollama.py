"""Chat models of an Ollama server, on this machine or another one.

The window is set with every request and stays the same for a model: Ollama's own default is small, what is over it is
dropped without a word, and another value than last time loads the model anew.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from tarsd.config.spelling import ollama_host
from tarsd.errors import ChatModelMissing, ConfigError, ProviderError, ProviderRefused
from tarsd.providers.base import (
    ModelInfo,
    ModelRequest,
    Notice,
    ProviderEvent,
    Usage,
    Waiting,
)
from tarsd.providers.counting import CUT, ReadCheck, ReasoningRoom, estimate, halved
from tarsd.providers.ollama_server import OllamaServer, no_chat
from tarsd.providers.ollama_wire import (
    ReplyDecoder,
    can_chat,
    context_of,
    entries,
    info,
    is_cloud,
    is_remote,
    message_json,
    name_of,
    own_window,
    tool_json,
)
from tarsd.upstream import count, model_info, ollama_name

WINDOW: Final = 16_384
"""What a model is loaded with when nobody says otherwise: room for passages and a conversation in modest memory."""
ENOUGH: Final = 8192
"""The smallest window of an already loaded model that is kept, so that it need not be loaded anew."""
NO_TOOLS: Final = "{model} cannot call tools here, so it answered without them."
SILENCE_S: Final = 300.0
"""A large model may have to be read from a slow disk before the first word."""
FRESH_S: Final = 60.0
NEWEST: Final[tuple[int, ...]] = (1, 0, 0)
SHIFT_LOADS: Final = (0, 30, 0)
"""Since then `shift` is a flag of the engine: another value than that of the last request loads the model anew."""
COUNTS_CACHED: Final = (0, 30, 1)
"""Since then the tokens that were read count what was in the cache."""
ASIDE_S: Final = 3.0
"""What a question may take that an answer does not depend on."""


class OllamaProvider:
    """`ollama:MODEL`; `context` bounds its window (0: no bound). The server is first asked in `prepare`.

    Raises ConfigError for a host that is none.
    """

    quotes = False

    def __init__(
        self, model: str, *, host: str, context: int = 0, silence_s: float = SILENCE_S, ca_file: str = ""
    ) -> None:
        self.name = f"ollama:{model}"
        self._model = model
        self._context = context
        self._server = connect(host, silence_s, ca_file)
        self._elsewhere = is_cloud(model)  # the server only passes its work on
        self.local = self._server.local and not self._elsewhere
        self._num_ctx = 0
        self._tools = self._reasons = self._sees = self._streamed = False
        self._answering = 0
        self._never: set[str] = set()  # what the server said it can do, and then would not
        self._release: tuple[int, ...] = NEWEST
        self._check = ReadCheck()
        self._room = ReasoningRoom()
        self._fresh_until = 0.0

    @property
    def window(self) -> int:
        return self._num_ctx or self._context or WINDOW

    @property
    def tools(self) -> bool:
        return self._tools

    @property
    def sees(self) -> bool:
        return self._sees

    async def prepare(self) -> None:
        """As `Provider.prepare`: what the model can do, and the window it gets from now on."""
        if time.monotonic() < self._fresh_until:
            return
        shown = await self._server.ask("POST", "/api/show", {"model": self._model}, model=self._model)
        abilities = shown.get("capabilities")
        abilities = abilities if isinstance(abilities, list) else []
        if abilities and "completion" not in abilities:
            raise no_chat(self._model)
        able = set(map(str, abilities)) - self._never
        self._tools, self._reasons, self._sees = (name in able for name in ("tools", "thinking", "vision"))
        self._elsewhere = is_remote(shown) or is_cloud(self._model)
        self.local = self._server.local and not self._elsewhere
        if not self._num_ctx:
            running = None
            with contextlib.suppress(ProviderError):
                running = await self._running()
            self._release = await self._version()
            most = model_info(shown, "context_length")
            there = (most,) if self._elsewhere else (own_window(shown.get("parameters")), context_of(running))
            self._num_ctx = choose_window(self._context, most, there)
        self._fresh_until = time.monotonic() + FRESH_S

    async def close(self) -> None:
        self._fresh_until = 0.0
        await self._server.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        await self.prepare()
        self._room.given |= self._reasons
        if not self._elsewhere and (why := await self._not_loaded() or self._occupied()):
            yield Waiting(why)
        self._streamed = True
        self._answering += 1
        try:
            async with contextlib.aclosing(self._room.stream(self._answer, request, self.window)) as events:
                async for event in events:
                    yield event
        finally:
            self._answering -= 1

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """The answer to one request."""
        while True:
            answer = ReplyDecoder()
            try:
                async with contextlib.aclosing(self._server.chat(self._body(request))) as lines:
                    async for line in lines:
                        for event in answer.read(line):
                            yield event
                        if line.get("done") is True:
                            break
                    else:
                        for event in answer.end():
                            yield event
                        return  # cut: whoever asked notices the missing end
                break
            except ChatModelMissing:
                self._fresh_until = 0.0
                raise
            except ProviderRefused as error:
                if answer.begun or not (ability := self._refused(error)):
                    raise
                if ability == "tools" and request.tools:
                    yield Notice(NO_TOOLS.format(model=self._model))
        read, written = (count(line.get(key)) for key in ("prompt_eval_count", "eval_count"))
        if read or written:
            yield Usage(read, written)
        if await self._unread(request, read):
            yield Notice(CUT.format(model=self._model, read=read))
        yield answer.done(line.get("done_reason"))

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        """The request as JSON."""
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: dict[str, Any] = {
            "model": self._model,
            "messages": system + [message_json(message) for message in request.messages],
            "stream": True,
            "options": {"num_ctx": self.window, "num_predict": request.max_tokens},
            # Too long is an error that is told, not a prompt without its beginning.
            "truncate": False,
        }
        if self._release < SHIFT_LOADS:
            body["shift"] = False
        if self._reasons:
            body["think"] = True
        if request.tools and self.tools:
            body["tools"] = [tool_json(tool) for tool in request.tools]
        return body

    async def _not_loaded(self) -> str:
        """Why the first word may take long, if it may."""
        try:
            running = await self._running()
        except ProviderError:
            return ""
        if running is None:
            return f"{self._model} is being loaded by Ollama …"
        if not self._streamed and context_of(running) not in (0, self._num_ctx):
            return f"{self._model} is being loaded again by Ollama, with room for more text …"
        return ""

    def _occupied(self) -> str:
        """Why an answer of a loaded model may take long: many servers work on one after the other."""
        return f"{self._model} is busy with another question; this one may have to wait …" if self._answering else ""

    async def _running(self) -> Mapping[str, Any] | None:
        """This model's entry among those in memory, where the same weights may stand under another name."""
        running = entries(await self._server.ask("GET", "/api/ps", seconds=ASIDE_S))
        own = self._among(running)
        if own is not None or not running:
            return own
        known = self._among(entries(await self._server.ask("GET", "/api/tags", seconds=ASIDE_S)))
        digest = known.get("digest") if known else None
        return next((entry for entry in running if digest and entry.get("digest") == digest), None)

    def _among(self, listed: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        full = ollama_name(self._model).lower()
        return next((entry for entry in listed if name_of(entry).lower() == full), None)

    async def _version(self) -> tuple[int, ...]:
        with contextlib.suppress(ProviderError):
            said = (await self._server.ask("GET", "/api/version", seconds=ASIDE_S)).get("version")
            if match := re.match(r"(\d+)\.(\d+)\.(\d+)", str(said)):
                return tuple(int(part) for part in match.groups())
        return NEWEST

    async def _unread(self, request: ModelRequest, read: int) -> bool:
        """Whether the model clearly saw less than it was sent; the estimate is rather too high, so doubts are none."""
        whole = self._release >= COUNTS_CACHED
        sent, cut = estimate(request), self._check.is_cut(request, read, whole=whole)
        if not read or read > 0.75 * sent:
            return False
        if sent > self._num_ctx and halved(read, self._num_ctx):
            return True
        if cut or not whole:
            return cut
        running = None
        with contextlib.suppress(ProviderError):
            running = await self._running()
        real = context_of(running)
        return real < self._num_ctx and halved(read, real)

    def _refused(self, error: ProviderRefused) -> str:
        """What the server was wrong about, and is not asked of it again from now on; "" for any other refusal."""
        for ability in {"tools", "thinking"} - self._never:
            if f"does not support {ability}" in error.message:
                self._never.add(ability)
                self._tools, self._reasons = self._tools and ability != "tools", self._reasons and ability == "tools"
                return ability
        return ""


def choose_window(context: int, trained: int, there: Sequence[int]) -> int:
    """The window in tokens: the setting's, else one that is there already and large enough, else a modest one.

    `trained` is the most that the model has learnt (0: unknown), `there` what it was given by others, best first.
    """
    wanted = context or next((size for size in there if size >= ENOUGH), WINDOW)
    return min(wanted, trained) if trained else wanted


def connect(host: str, silence_s: float = SILENCE_S, ca_file: str = "") -> OllamaServer:
    """The server at any spelling of a host. Raises ConfigError."""
    try:
        url = ollama_host(host)
    except ValueError as error:
        raise ConfigError([f"ollama.host {error}."], 'Write it like "http://127.0.0.1:11434".') from None
    return OllamaServer(url, silence_s, ca_file)


async def models(*, host: str, ca_file: str = "") -> list[ModelInfo]:
    """The chat models that a server has, the most recently changed first. Raises `ProviderError`."""
    server = connect(host, ca_file=ca_file)
    try:
        return [info(entry, server.local) for entry in await chat_entries(server)]
    finally:
        await server.close()


async def chat_entries(server: OllamaServer) -> list[Mapping[str, Any]]:
    """The entries of /api/tags that can chat, the most recently changed first. Raises `ProviderError`."""
    able = [entry for entry in entries(await server.ask("GET", "/api/tags")) if can_chat(entry) and name_of(entry)]
    return sorted(able, key=lambda entry: str(entry.get("modified_at")), reverse=True)


async def choose_model(server: OllamaServer, current: str = "") -> str:
    """The model on the server's own machine that is ready soonest, "" if it has none. Raises `ProviderError`.

    One that is in memory comes first, `current` before others; else the one that was changed last.
    """
    own = [name_of(entry) for entry in await chat_entries(server) if not is_remote(entry)]
    loaded = [name for entry in entries(await server.ask("GET", "/api/ps")) if (name := name_of(entry)) in own]
    candidates = loaded or own
    return current if current in candidates else next(iter(candidates), "")
