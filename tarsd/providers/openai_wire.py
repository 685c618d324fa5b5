"""The chat format of OpenAI as its many servers speak it: requests written, streams and errors read. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tarsd.providers.base import (
    Message,
    ModelRequest,
    ProviderEvent,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
    Usage,
    arguments_of,
    tool_call,
)
from tarsd.providers.thinking import Splitter
from tarsd.upstream import count

REASONING = ("reasoning_content", "reasoning")
"""Where servers put a model's reasoning; some fill both with the same text."""

_CACHED = ("prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens")
"""What servers call the tokens that they had read before, beside OpenAI's own name."""

# What we read of a call and of a message; all else goes back as it came, for signatures of reasoning stand there.
_CALL_FIELDS = ("index", "id", "type", "function")
_FIELDS = (*REASONING, "role", "content", "refusal", "tool_calls", "function_call")

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


def body(request: ModelRequest, model: str, *, limit: str, usage: bool, tools: bool) -> dict[str, Any]:
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


def messages(request: ModelRequest) -> list[dict[str, Any]]:
    """The conversation, the rules first."""
    rules = [{"role": "system", "content": request.system}] if request.system else []
    wire = [_message(message) for message in request.messages]
    _tell_apart(wire)
    return rules + wire


def _tell_apart(wire: list[dict[str, Any]]) -> None:
    """Give each call its own id: some servers number the calls of every answer from zero, which gateways reject."""
    ids: set[str] = set()
    now: dict[str, str] = {}
    for number, message in enumerate(wire):
        if message["role"] == "tool":
            message["tool_call_id"] = now.get(message["tool_call_id"], message["tool_call_id"])
        elif calls := message.get("tool_calls"):
            now = {call["id"]: f"call_{number}_{nth}" for nth, call in enumerate(calls) if call["id"] in ids}
            message["tool_calls"] = [{**call, "id": now.get(call["id"], call["id"])} for call in calls]
            ids |= {call["id"] for call in message["tool_calls"]}


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        text = f"Error: {message.text}" if message.failed else message.text
        return {"role": "tool", "tool_call_id": message.call_id, "content": text}
    if message.role == "assistant" and isinstance(message.raw, AssistantMessage):
        return dict(message.raw.message)
    sent: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.pictures:
        urls = (f"data:{picture.media_type};base64,{picture.base64}" for picture in message.pictures)
        pictures = ({"type": "image_url", "image_url": {"url": url}} for url in urls)
        sent["content"] = [{"type": "text", "text": message.text}, *pictures]
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

    `empty` as long as there were neither words nor calls in it.

    The SDK checks nothing of what it hands on, so every field may be missing or of another type.
    """

    def __init__(self) -> None:
        self.begun = False
        self.empty = True
        self._finish = ""
        self._remark: Mapping[str, Any] | None = None
        self._refused = False
        self._usage: Usage | None = None
        self._calls: list[_Partial] = []
        self._splitter = Splitter()
        self._reasoning: dict[str, list[str]] = {}
        self._extra: dict[str, Any] = {}

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
        if _is_remark(chunk):
            self._remark = chunk
            return
        self.begun = True
        self._usage = _usage(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            for event in self._delta(delta):
                self.empty = False
                yield event
            self.empty = self.empty and not self._calls
        self._finish = str(choice.get("finish_reason") or self._finish)

    def in_place(self) -> None:
        """Raise StreamFailure for words in place of an answer: so gateways tell errors, under a good status."""
        if self._remark is not None and not self.begun:
            raise StreamFailure(self._remark)

    def end(self) -> Iterator[ProviderEvent]:
        """What remains when the stream has ended: the calls, the tokens, and Done if the server has said so."""
        yield from self._splitter.end()
        self._calls = [call for call in self._calls if self.finished or call.whole]
        calls = [call.complete() for call in self._calls]
        if self._finish == "length" and any(call.problem for call in calls):
            calls = []  # cut in the middle of a call
        yield from calls
        if self._usage:
            yield self._usage
        if self.finished or calls:
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
            yield from self._splitter.feed(text)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refused = True
            yield Text(refusal)
        for key, value in _unknown(delta, _FIELDS).items():
            known = self._extra.get(key)
            if isinstance(value, list) and isinstance(known, list):
                value = [*known, *value]  # parts come one after the other
            self._extra[key] = value
        deltas = delta.get("tool_calls")
        for call in deltas if isinstance(deltas, list) else []:
            self._merge(call)
        if isinstance(old := delta.get("function_call"), Mapping):
            self._merge({"index": 0, "function": old})

    def _merge(self, delta: object) -> None:
        """A piece of a call goes to the call of its index, or of its id, or to the last one."""
        if not isinstance(delta, Mapping):
            return
        function = delta.get("function")
        function = function if isinstance(function, Mapping) else {}
        index, id, name = delta.get("index"), str(delta.get("id") or ""), str(function.get("name") or "")
        arguments = function.get("arguments")
        piece = "" if arguments is None else arguments if isinstance(arguments, str) else json.dumps(arguments)
        there = [begun for begun in reversed(self._calls) if index is not None and begun.index == index]
        call = next((begun for begun in there if id and begun.id == id), there[0] if there else None)
        if index is None and self._calls and (not id or id == self._calls[-1].id):
            call = self._calls[-1]
        if call is None or call.is_over(id, name, piece):
            name = name or (call.name if call else "")
            call = _Partial(index)
            self._calls.append(call)
        call.extra |= _unknown(delta, _CALL_FIELDS)
        call.id = call.id or ("" if any(begun.id == id for begun in self._calls) else id)  # some give one id to all
        call.name += name if name != call.name else ""
        if piece.strip() and (call.empty or (call.arguments == piece and call.whole) or not isinstance(arguments, str)):
            call.arguments = piece
        else:
            call.arguments += piece

    def _message(self, calls: list[ToolCall]) -> dict[str, Any]:
        text = self._splitter.said
        message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
        if calls:
            message |= self._extra
            message["tool_calls"] = [
                partial.extra | _call(call) for call, partial in zip(calls, self._calls, strict=True)
            ]
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
        self.extra: dict[str, Any] = {}

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are an object."""
        return self.arguments.strip().endswith("}") and not arguments_of(self.arguments)[1]

    @property
    def empty(self) -> bool:
        """Whether the arguments are those that some servers begin with, before the real ones."""
        return self.arguments.strip() == "{}"

    def is_over(self, id: str, name: str, piece: str) -> bool:
        """Whether what comes is of another call, though it has the same number: some servers number every call 0."""
        other = bool(id) and id != self.id
        if name and other and self.id:
            return True
        if not self.whole or not piece.strip() or (self.empty and name in ("", self.name)):
            return False
        again = piece.lstrip().startswith("{") and not name and piece != self.arguments
        return other or again or (bool(name) and (not id or piece != self.arguments))

    def complete(self) -> ToolCall:
        return tool_call(self.id, self.name, self.arguments)


def _is_remark(chunk: Mapping[str, Any]) -> bool:
    """Whether the data is not part of an answer but has words: an unmarked error, or a state."""
    said = (chunk.get("message"), chunk.get("detail"), chunk.get("msg"))
    return not {"choices", "usage"} & set(chunk) and any(word and isinstance(word, str | list) for word in said)


def _unknown(given: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """What we do not know of a message or a call."""
    return {key: value for key, value in given.items() if key not in known and value is not None}


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
    nested = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    cached = max(map(count, (nested, *map(usage.get, _CACHED))))
    read = count(usage.get("prompt_tokens"))
    return Usage(read if read >= cached else read + cached, count(usage.get("completion_tokens")), cached)


# ------------------------------------------------------------------------------------------------ errors

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


_NO_PICTURES = re.compile(
    r"(?:image|vision|picture|multi-?modal|mmproj)[^.]{0,80}(?:not|n't|unsupported|un-?able|missing|invalid|only)"
    r"|(?:not|n't|no|missing|unsupported|only)[^.]{0,80}(?:image|vision|multi-?modal|mmproj)"
    # a server that takes a message as a text alone says so of what was in its place
    r"|content[^.]{0,40}(?:must be|should be|expected|invalid type)[^.]{0,30}string",
    re.IGNORECASE,
)


def no_tools(said: str) -> bool:
    """Whether an error says that the server or the model cannot call tools."""
    return bool(_NO_TOOLS.search(said))


def no_pictures(said: str) -> bool:
    """Whether an error says that the server or the model cannot look at pictures."""
    return bool(_NO_PICTURES.search(said))


def tells_pictures(entry: Mapping[str, Any]) -> bool | None:
    """Whether a model sees, by its entry in a server's list; None where that does not say."""
    able, built, given = entry.get("capabilities"), entry.get("architecture"), entry.get("input_modalities")
    if isinstance(able, Mapping) and isinstance(able.get("vision"), bool):
        return bool(able["vision"])
    if entry.get("type") in ("vlm", "llm"):  # LM Studio
        return bool(entry["type"] == "vlm")
    given = built.get("input_modalities") if isinstance(built, Mapping) else given
    named = able if isinstance(able, list) else given
    return bool({"vision", "image", "multimodal"} & set(map(str, named))) if isinstance(named, list) else None


def other_limit(said: str) -> bool:
    """Whether an error says that the server has another name for the bound of the reply."""
    return bool(_LIMIT.search(said))


def no_usage(said: str) -> bool:
    """Whether an error says that the server does not know the option that asks for counts."""
    return "stream_options" in said or "include_usage" in said
