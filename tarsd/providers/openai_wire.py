"""The chat format of OpenAI as its many servers speak it: requests written, streams and errors read. Pure."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tarsd.providers.base import (
    Message,
    ProviderEvent,
    Request,
    Retract,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from tarsd.providers.thinking import Splitter

REASONING = ("reasoning_content", "reasoning")
"""Where servers put a model's reasoning; some fill both with the same text."""

_REASONS: Mapping[str, Literal["stop", "tools", "length", "refusal"]] = {
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refusal",
}


class StreamFailure(Exception):
    """An error that came inside a stream; `body` is what the server sent as such."""

    def __init__(self, body: object) -> None:
        super().__init__("error in a stream")
        self.body = body


@dataclass(frozen=True)
class AssistantMessage:
    """`StreamEnd.raw`: an assistant's message in the server's own form, reasoning and ids included."""

    message: Mapping[str, Any]


# ------------------------------------------------------------------------------------------------ requests


def body(request: Request, model: str, *, limit: str, usage: bool, tools: bool) -> dict[str, Any]:
    """The body of a request; `limit` is the server's name for the bound of the reply."""
    sent: dict[str, Any] = {"model": model, "messages": messages(request), "stream": True, limit: request.max_tokens}
    if usage:
        sent["stream_options"] = {"include_usage": True}
    if tools and request.tools:
        sent["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
            }
            for tool in request.tools
        ]
    return sent


def messages(request: Request) -> list[dict[str, Any]]:
    """The conversation, the rules first."""
    rules = [{"role": "system", "content": request.system}] if request.system else []
    return rules + [_message(one) for one in request.messages]


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        text = f"Error: {message.text}" if message.failed else message.text
        return {"role": "tool", "tool_call_id": message.call_id, "content": text}
    if message.role == "assistant" and isinstance(message.raw, AssistantMessage):
        return dict(message.raw.message)
    sent: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        sent["content"] = message.text or None
        sent["tool_calls"] = [_call(call) for call in message.calls]
    return sent


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)  # always valid: templates parse it again
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


# ------------------------------------------------------------------------------------------------ streams


class StreamDecoder:
    """Fed with the chunks of one stream; gives back events. `begun` and `finished` tell how far it is.

    The SDK checks nothing of what it hands on, so every field may be missing or of another type.
    """

    def __init__(self) -> None:
        self.begun = False
        self._finish = ""
        self._refused = False
        self._usage: Usage | None = None
        self._calls: list[_Partial] = []
        self._splitter = Splitter()
        self._text: list[str] = []
        self._reasoning: dict[str, list[str]] = {}

    @property
    def finished(self) -> bool:
        """Whether the server has said that the model is finished."""
        return bool(self._finish)

    def feed(self, chunk: object) -> Iterator[ProviderEvent]:
        """The events of a chunk (or of a whole reply, from servers that do not stream). Raises Broken, ValueError."""
        if not isinstance(chunk, Mapping):
            raise ValueError("a chunk that is no object")
        if chunk.get("error"):
            raise StreamFailure(chunk["error"])
        if chunk.get("object") == "error":
            raise StreamFailure(chunk)
        self.begun = True
        self._usage = _usage(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            yield from self._delta(delta)
        self._finish = str(choice.get("finish_reason") or self._finish)

    def end(self) -> Iterator[ProviderEvent]:
        """What remains when the stream has ended: the calls, the tokens, and Done if the server has said so."""
        yield from self._said(self._splitter.end())
        calls = [call.complete() for call in self._calls] if self.finished else []
        if self._finish == "length" and any(call.problem for call in calls):
            calls = []  # cut in the middle of a call
        yield from calls
        if self._usage:
            yield self._usage
        if self.finished:
            reason = _REASONS.get(self._finish, "stop")
            reason = "tools" if calls else "stop" if reason == "tools" else reason
            yield StreamEnd("refusal" if self._refused else reason, raw=AssistantMessage(self._message(calls)))

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        thought, text = _parts(delta.get("content"))
        for key in REASONING:
            if isinstance(more := delta.get(key), str) and more:
                self._reasoning.setdefault(key, []).append(more)
                thought = more
                break
        if thought:
            self._splitter.apart()
            yield Thinking(thought)
        if text:
            yield from self._said(self._splitter.feed(text))
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refused = True
            yield Text(refusal)
        deltas = delta.get("tool_calls")
        for call in deltas if isinstance(deltas, list) else []:
            self._merge(call)
        if isinstance(old := delta.get("function_call"), Mapping):
            self._merge({"index": 0, "function": old})

    def _said(self, pieces: list[Text | Thinking | Retract]) -> Iterator[ProviderEvent]:
        for piece in pieces:
            if isinstance(piece, Text):
                self._text.append(piece.text)
            elif isinstance(piece, Retract):
                self._text.clear()
            yield piece

    def _merge(self, delta: object) -> None:
        """A piece of a call goes to the call of its index, or of its id, or to the last one."""
        if not isinstance(delta, Mapping):
            return
        function = delta.get("function")
        function = function if isinstance(function, Mapping) else {}
        index, id, name = delta.get("index"), str(delta.get("id") or ""), str(function.get("name") or "")
        call = next((one for one in reversed(self._calls) if index is not None and one.index == index), None)
        if index is None and self._calls and (not id or id == self._calls[-1].id):
            call = self._calls[-1]
        if call is None or (name and id and call.id and id != call.id):  # some number every call 0
            call = _Partial(index)
            self._calls.append(call)
        call.id = call.id or ("" if any(one.id == id for one in self._calls) else id)  # some give one id to all
        call.name += name if name != call.name else ""
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments += arguments
        elif arguments is not None:
            call.arguments = json.dumps(arguments)

    def _message(self, calls: list[ToolCall]) -> dict[str, Any]:
        text = "".join(self._text)
        message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
        if calls:
            message["tool_calls"] = [_call(call) for call in calls]
            # models that reason between calls want to read on from it, and by the same name
            message |= {key: "".join(parts) for key, parts in self._reasoning.items()}
        return message


class _Partial:
    """A call whose pieces are still coming."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = ""

    def complete(self) -> ToolCall:
        problem = "" if self.name else "The call names no tool."
        arguments: object = {}
        try:
            arguments = json.loads(self.arguments, strict=False) if self.arguments.strip() else {}
            if isinstance(arguments, str):  # wrapped twice
                arguments = json.loads(arguments, strict=False) if arguments.strip() else {}
        except (ValueError, RecursionError):
            problem = problem or "The arguments are no valid JSON."
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            arguments, problem = {}, problem or "The arguments are no JSON object."
        return ToolCall(self.id or f"call_{uuid.uuid4().hex[:12]}", self.name, arguments, problem)


def _parts(content: object) -> tuple[str, str]:
    """Reasoning and text of a delta's content: a string, or the list of parts that some models send."""
    if isinstance(content, str):
        return "", content
    thought, text = "", ""
    for part in content if isinstance(content, list) else []:
        if not isinstance(part, Mapping):
            continue
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thought += inner if isinstance(inner, str) else _parts(inner)[1]
        elif isinstance(part.get("text"), str):
            text += part["text"]
    return thought, text


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    return Usage(number(usage.get("prompt_tokens")), number(usage.get("completion_tokens")), number(cached))


def number(value: object) -> int:
    """A count of tokens, or 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


# ------------------------------------------------------------------------------------------------ errors

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|available context size"
    r"|context (?:length|size|window)[^.]{0,80}(?:exceed|too (?:long|small|large)|overflow|only)"
    r"|(?:exceed|larger than|longer than|overflow)[^.]{0,80}context|context the overflows"
    r"|(?:prompt|input|request)[^.]{0,30} (?:is )?too long|reduce the length of",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"(?:context (?:length|size|window)(?: is| of)?(?: only)?|available context size) \(?(\d{3,8})", re.IGNORECASE
)
_NO_TOOLS = re.compile(
    r"--jinja|--enable-auto-tool-choice|--tool-call-parser"
    r"|(?:not support|unsupported|no endpoints)[^.]{0,60}\b(?:tools?|function)\b"
    r"|\b(?:tools?|tool use|tool_choice|function calling)\b[^.]{0,60}(?:not support|unsupported|not enabled)",
    re.IGNORECASE,
)
_NO_SUCH_FIELD = r"(?:support|unrecogni[sz]ed|unknown|unexpected|extra|not permitted|not allowed|instead)"
_LIMIT = re.compile(
    rf"{_NO_SUCH_FIELD}.{{0,80}}max_(?:completion_)?tokens|max_(?:completion_)?tokens.{{0,80}}{_NO_SUCH_FIELD}",
    re.IGNORECASE | re.DOTALL,
)
_ECHO = re.compile(r"""['"]input['"]\s*:.*""", re.DOTALL)
"""Where a server repeats what it was sent."""
_AGAIN = re.compile(r"try again in (?:(\d+)m)?([\d.]+)(ms|s)\b", re.IGNORECASE)


@dataclass(frozen=True)
class ErrorDetail:
    """An error of whatever shape: its text (one short line), what kind it calls itself, the status it names or 0."""

    text: str
    kind: str = ""
    status: int = 0
    context: int = 0

    @property
    def too_long(self) -> bool:
        """The prompt was more than the model reads."""
        return bool(_TOO_LONG.search(f"{self.kind} {self.text}"))

    @property
    def window(self) -> int:
        """How many tokens the model reads, if the error tells; else 0."""
        found = _WINDOW.search(self.text)
        return self.context or (int(found[1]) if found else 0)

    @property
    def no_tools(self) -> bool:
        """The server or the model cannot call tools."""
        return bool(_NO_TOOLS.search(self.text))

    @property
    def other_limit(self) -> bool:
        """The server has another name for the bound of the reply."""
        return bool(_LIMIT.search(self.text))

    @property
    def no_usage(self) -> bool:
        """The server does not know the option that asks for counts."""
        return "stream_options" in self.text or "include_usage" in self.text

    @property
    def no_model(self) -> bool:
        """The model is unknown, whatever the status."""
        return bool(
            re.search(r"model_not_found|no models? (?:is )?loaded|not a valid model", f"{self.kind} {self.text}", re.I)
            or re.search(r"\bmodel\b.{0,120}(?:not found|not exist|not available|unknown)", self.text, re.I)
        )

    @property
    def spent(self) -> bool:
        """Not a matter of waiting: no credit, or a limit of spending."""
        return bool(re.search(r"insufficient_quota|billing|credit|quota|spend", f"{self.kind} {self.text}", re.I))

    @property
    def busy(self) -> bool:
        """Overloaded, or a rate limit, by its name alone."""
        return bool(re.search(r"overloaded|rate.?limit|unavailable|loading model", f"{self.kind} {self.text}", re.I))

    @property
    def wait_s(self) -> float | None:
        """Seconds that the text asks to wait."""
        if not (found := _AGAIN.search(self.text)):
            return None
        try:
            seconds = float(found[2])
        except ValueError:
            return None
        return int(found[1] or 0) * 60 + seconds / (1000 if found[3].lower() == "ms" else 1)


def problem(body: object) -> ErrorDetail:
    """What an error says: an object, a plain string, a list of faults, or anything else."""
    if isinstance(body, Mapping):
        inner = body.get("error")
        if isinstance(inner, Mapping | str) and inner:
            return problem(inner)
        text = body.get("message") or body.get("detail") or ""
        kind = " ".join(str(body[key]) for key in ("type", "code") if isinstance(body.get(key), str | int))
        code = body.get("code")
        status = int(code) if isinstance(code, str | int) and re.fullmatch(r"[45]\d\d", str(code)) else 0
        return ErrorDetail(_line(text), kind, status, number(body.get("n_ctx")))
    return ErrorDetail(_line(body))


def _line(text: object) -> str:
    """One short line; of a list of faults their messages, for these do not repeat the prompt."""
    if isinstance(text, list):
        text = "; ".join(str(one.get("msg") or one.get("message") or "") for one in text if isinstance(one, Mapping))
    if not isinstance(text, str) or text.lstrip().startswith("<"):
        return ""
    return " ".join(_ECHO.sub("", text).split())[:300]
