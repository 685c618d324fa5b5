"""What a chat model is to us: one method that turns a request into a stream of events.

A provider knows nothing of turns, sessions or the socket. A stream that ends without `Done` was cut.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tarsd.errors import TarsdError


@dataclass(frozen=True)
class Evidence:
    """A passage of a note as it is shown to the model and to the person.

    `number` is its citation `[n]`, from 1; lines are the file's own, counted from 1, both included; `link` is the
    ready `[[Note#Heading]]`; `attached` notes were chosen by the person and are relevant whatever their figure says.
    """

    number: int
    path: str
    title: str
    heading: str
    link: str
    start_line: int
    end_line: int
    text: str
    relevance: float
    collection: str = ""
    attached: bool = False

    def as_json(self) -> dict[str, object]:
        """A source as it stands in events and replies; the text itself stays in the vault."""
        return {
            "n": self.number,
            "path": self.path,
            "title": self.title,
            "heading": self.heading,
            "link": self.link,
            "start_line": self.start_line,
            "end_line": self.end_line,
            "relevance": self.relevance,
            "collection": self.collection,
            "attached": self.attached,
        }


@dataclass(frozen=True)
class ToolSpec:
    """A tool the model may call; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class Thinking:
    """A piece of the model's own reasoning; never part of the answer."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """A complete call of a tool."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Usage:
    """Tokens read and written so far in this request."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Done:
    """The provider says that it is finished, and why: "stop", "length", "tools", "refusal"."""

    stop_reason: str = "stop"


ProviderEvent = Text | Thinking | ToolCall | Usage | Done


@dataclass(frozen=True)
class Message:
    """One message of the conversation; `calls` belong to an assistant, `call_id` answers one of them."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True)
class Request:
    """Everything a provider is asked with; the last message is the question.

    `query` is the question as it was searched for, follow-ups resolved. `closest` are passages under the threshold
    of relevance: near misses, to be named as such and never cited.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    closest: tuple[Evidence, ...] = ()
    query: str = ""
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class AnswerCut(TarsdError):
    """The stream of a chat model ended before the model was finished."""

    code = "answer_cut"
    status = 502


class Provider(Protocol):
    """A chat model. `local` is False when text leaves this machine.

    `passages` is how many passages of the notes help it, `per_note` how many of them may be of one note.
    """

    name: str
    local: bool
    passages: int
    per_note: int

    def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """Answer, piece by piece. Closing the iterator ends the work at once; raises `TarsdError`."""
        ...
