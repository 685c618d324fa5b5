"""What a chat model is to us: one method that turns a request into a stream of events.

A provider knows nothing of turns, sessions or the socket. A stream that ends without `StreamEnd` was cut.
"""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import astuple, dataclass, field
from typing import Any, Literal, Protocol

from tarsd.errors import ProviderError
from tarsd.passage import Passage


@dataclass(frozen=True)
class ToolSpec:
    """A tool the model may call; `schema` is the JSON schema of its arguments, an object.

    `outside`: it is of an MCP server.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    outside: bool = False


@dataclass(frozen=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class Thinking:
    """A piece of the model's own reasoning; never part of the answer."""

    text: str


@dataclass(frozen=True)
class Retract:
    """All `Text` of this stream so far was reasoning after all, and no part of the answer."""


@dataclass(frozen=True)
class ToolCall:
    """A complete call of a tool; `arguments` is {} when the model gave none. `problem` says what it got wrong."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str = ""


def arguments_of(given: object) -> tuple[dict[str, Any], str]:
    """The arguments of a call, given as an object or as JSON, once or twice; and what is wrong with them."""
    for _ in range(2):
        if isinstance(given, str):
            try:
                given = json.loads(given, strict=False) if given.strip() else None
            except (ValueError, RecursionError):
                return {}, "The arguments are no valid JSON."
    if given is None:
        return {}, ""
    return (given, "") if isinstance(given, dict) else ({}, "The arguments are no JSON object.")


def tool_call(id: str, name: object, arguments: object) -> ToolCall:
    """A call as a server gave it, any part of which may be missing or of another type."""
    parsed, problem = arguments_of(arguments)
    name = name if isinstance(name, str) else ""
    problem = problem if name else "The call names no tool."
    return ToolCall(id or f"call_{uuid.uuid4().hex[:12]}", name, parsed, problem)


@dataclass(frozen=True)
class Usage:
    """Tokens read and written so far in this request; those read from a cache, or put into it, are among the read."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Waiting:
    """Why nothing comes yet: a model that is being loaded, a rate limit. For the reader, at once."""

    text: str


@dataclass(frozen=True)
class Notice:
    """Something the answer has to say of itself: that a part of the prompt was not read."""

    text: str


@dataclass(frozen=True)
class StreamEnd:
    """The provider says that it is finished, and why.

    "stop"; "tools": it wants its calls answered; "length": the reply was cut; "refusal": it will not answer.
    `raw` is what the provider wants to see again in `Message.raw` while this turn goes on (signed reasoning, ids).
    """

    stop_reason: Literal["stop", "tools", "length", "refusal"] = "stop"
    raw: Any = None


ProviderEvent = Text | Thinking | Retract | ToolCall | Usage | Waiting | Notice | StreamEnd


@dataclass(frozen=True)
class Picture:
    """A picture that goes along with a message; `media_type` is image/jpeg, image/png or image/webp."""

    name: str
    media_type: str
    data: bytes = field(repr=False)

    @property
    def base64(self) -> str:
        return b64encode(self.data).decode("ascii")


@dataclass(frozen=True)
class Message:
    """One message of the conversation; `pictures` go along with a user's.

    `calls` belong to an assistant; a "tool" message answers the call `call_id` of the tool `name`, `failed` or not.
    `raw` is the provider's own form of an assistant's message, from its `StreamEnd`; used instead of text and calls.
    """

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    failed: bool = False
    raw: Any = None
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class ModelRequest:
    """Everything a provider is asked with; the last user message is the question, its passages already in the text.

    `system` stays the same from turn to turn, so that it can be cached. `evidence` are the passages again, for
    providers that quote; `closest` are near misses, to be named as such and never cited. `query` is the question as
    it was searched for, follow-ups resolved. `max_tokens` bounds the reply.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    evidence: tuple[Passage, ...] = ()
    closest: tuple[Passage, ...] = ()
    query: str = ""
    max_tokens: int = 2048


@dataclass(frozen=True)
class ModelInfo:
    """A chat model that a provider offers: `id` is what `chat.model` takes, `context` its window in tokens or 0."""

    id: str
    local: bool
    context: int = 0
    tools: bool | None = None
    note: str = ""

    def as_json(self) -> dict[str, object]:
        """As it stands in `GET /v1/models`."""
        return {
            "id": self.id, "local": self.local, "context": self.context, "tools": self.tools, "note": self.note
        }  # fmt: skip


class Provider(Protocol):
    """A chat model; all of these may change in `prepare`, and nowhere else."""

    @property
    def name(self) -> str:
        """As `chat.model` spells it."""
        ...

    @property
    def local(self) -> bool:
        """False when text leaves this machine."""
        ...

    @property
    def quotes(self) -> bool:
        """Whether it only quotes the evidence; then it gets no rules, no memory and no tools."""
        ...

    async def prepare(self) -> None:
        """Find out what has to be known before a request is made (which model, how large); cheap once it is known.

        Raises `ProviderError`.
        """
        ...

    @property
    def window(self) -> int:
        """How many tokens a request may take, its reply included; right after `prepare`."""
        ...

    @property
    def tools(self) -> bool:
        """Whether the model can call tools; right after `prepare`."""
        ...

    @property
    def sees(self) -> bool:
        """Whether the model can look at pictures, as far as its server says; right after `prepare`."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Answer, piece by piece. Closing the iterator closes the connection at once.

        Raises `ProviderError`. A stream that ends without `StreamEnd` was cut. No retries are made in here.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Forwarding(ABC):
    """A provider that stands before another one, which only `prepare` may change, and looks like it."""

    _inner: Provider

    @property
    def name(self) -> str:
        """As `Provider.name`; so for the rest."""
        return self._inner.name

    @property
    def local(self) -> bool:
        return self._inner.local

    @property
    def quotes(self) -> bool:
        return self._inner.quotes

    @property
    def window(self) -> int:
        return self._inner.window

    @property
    def tools(self) -> bool:
        return self._inner.tools

    @property
    def sees(self) -> bool:
        return self._inner.sees

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        try:
            async with aclosing(self._inner.stream(request)) as events:
                async for event in events:
                    yield event
        except ProviderError as error:
            self._failed(error)
            raise

    @abstractmethod
    def _failed(self, error: ProviderError) -> None:
        """The other one could not answer."""


@dataclass(frozen=True)
class Reply:
    """A whole reply; `cut` when it ended before the provider was finished, `refused` when there is no answer in it."""

    text: str
    cut: bool = False
    refused: bool = False


async def complete(provider: Provider, request: ModelRequest) -> Reply:
    """The answer to a request of which no piece is shown before the last has come. Raises `ProviderError`."""
    pieces: list[str] = []
    done: StreamEnd | None = None
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            if isinstance(event, Text):
                pieces.append(event.text)
            elif isinstance(event, Retract):
                pieces.clear()
            elif isinstance(event, StreamEnd):
                done = event
    return Reply("".join(pieces), done is None, done is not None and done.stop_reason == "refusal")
