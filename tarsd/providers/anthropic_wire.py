"""Anthropic's Messages as data: a request as the server takes it, and a reply as it grows out of events. Pure.

What stays the same from request to request comes first, and is marked for the server's cache.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from tarsd.providers.base import (
    Message,
    ModelRequest,
    Notice,
    Picture,
    ProviderEvent,
    StreamEnd,
    Thinking,
    ToolCall,
    Usage,
    arguments_of,
)
from tarsd.providers.text import sound
from tarsd.providers.thinking import Splitter
from tarsd.upstream import count

_RAW: Final = "anthropic"
_CACHED: Final = {"type": "ephemeral"}
_PARTS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
_ENDS: Final[dict[str, Literal["length", "refusal"]]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refusal",
}
_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_CHOICES: Final = ("oneOf", "allOf", "anyOf")
_NO_ID = re.compile(r"[^A-Za-z0-9_-]")


def body(request: ModelRequest, model: str, most: int) -> dict[str, Any]:
    """The arguments of a request, the stable first, with at most the four cache marks that the server allows."""
    messages = conversation(request.messages)
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": min(request.max_tokens, most) if most else request.max_tokens,
        "messages": messages,
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": sound(request.system), "cache_control": _CACHED}]
    tools: list[dict[str, Any]] = [
        {"name": tool.name, "description": sound(tool.description), "input_schema": _schema(tool.schema)}
        for tool in request.tools
    ]
    if tools:
        tools[-1]["cache_control"] = _CACHED
    elif names := _called(messages):
        # calls in a conversation without tools are refused
        tools = [{"name": name, "description": "", "input_schema": {"type": "object"}} for name in names]
        body["tool_choice"] = {"type": "none"}
    if tools:
        body["tools"] = tools
    _mark(messages)
    return body


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object's schema; choices between whole objects, which the server refuses, are left out."""
    return {"type": "object", **{name: part for name, part in schema.items() if name not in _CHOICES}}


def conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation in turns of user and assistant; all results of one round are in one message, and come first.

    Each call has exactly one result, for the server refuses anything else: a missing one is made up.
    """
    wire: list[dict[str, Any]] = []
    open_calls: list[tuple[str, str]] = []
    ids: set[str] = set()

    def add(role: str, blocks: list[dict[str, Any]]) -> None:
        if wire and wire[-1]["role"] == role:
            wire[-1]["content"] += blocks
        elif blocks:
            wire.append({"role": role, "content": blocks})

    def settle() -> None:
        add("user", [_result(own, "This call was not made.", failed=True) for _, own in open_calls])
        open_calls.clear()

    for number, message in enumerate(messages):
        if message.role == "tool":
            place = next((n for n, (id, _) in enumerate(open_calls) if id == message.call_id), None)
            if place is None:
                add("user", _text(f"Result of {message.name}: {message.text}"))
            else:
                add("user", [_result(open_calls.pop(place)[1], message.text, failed=message.failed)])
            continue
        settle()
        if message.role == "user":
            add("user", [*map(_picture, message.pictures), *_text(message.text)])
            continue
        blocks = _blocks_of(message.raw)
        if blocks is None:
            blocks = _text(message.text)
            for nth, call in enumerate(message.calls):
                own = _NO_ID.sub("_", call.id)
                own = own if own and own not in ids else f"call_{number}_{nth}"  # another provider's may come again
                ids.add(own)
                blocks.append({"type": "tool_use", "id": own, "name": call.name, "input": dict(call.arguments)})
                open_calls.append((call.id, own))
        else:
            open_calls += [(block["id"], block["id"]) for block in blocks if block.get("type") == "tool_use"]
        add("assistant", blocks)
    settle()
    for turn in wire:
        turn["content"].sort(key=lambda block: turn["role"] == "user" and block["type"] != "tool_result")
    return wire


def _blocks_of(raw: object) -> list[dict[str, Any]] | None:
    """The blocks of an assistant's message as this provider gave them away; None for another's."""
    return list(raw[_RAW]) if isinstance(raw, dict) and isinstance(raw.get(_RAW), list) else None


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": sound(text)}] if text.strip() else []


def _picture(picture: Picture) -> dict[str, Any]:
    source = {"type": "base64", "media_type": picture.media_type, "data": picture.base64}
    return {"type": "image", "source": source}


def sees(model: object) -> bool:
    """Whether what the server says of a model names pictures among what it reads."""
    pictures = getattr(getattr(model, "capabilities", None), "image_input", None)
    return getattr(pictures, "supported", None) is True


def _result(call: str, text: str, *, failed: bool) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": sound(text)}
    return block | {"is_error": True} if failed else block


def _called(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the tools that were called, each once."""
    blocks = (block for message in messages for block in message["content"])
    return list(dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use"))


def _mark(messages: list[dict[str, Any]]) -> None:
    """Cache marks: where the history ends, which the next turn sends again, and at the end of a round of calls.

    The passages of the last question are not sent again by the next turn, and are not worth a mark of their own.
    """
    asked = [n for n, message in enumerate(messages) if _is_question(message)]
    places = {asked[-1] - 1} if asked and asked[-1] else set()
    if messages and any(block["type"] == "tool_result" for block in messages[-1]["content"]):
        places.add(len(messages) - 1)
    for place in places:
        blocks = messages[place]["content"]
        if blocks[-1]["type"] in ("text", "tool_use", "tool_result"):
            blocks[-1] = {**blocks[-1], "cache_control": _CACHED}


def _is_question(message: Mapping[str, Any]) -> bool:
    return message["role"] == "user" and any(block["type"] != "tool_result" for block in message["content"])


# ------------------------------------------------------------------------------------------------ what comes


class EventFailure(Exception):
    """The server told a failure in place of an event; `body` is what it said."""

    def __init__(self, body: object) -> None:
        super().__init__()
        self.body = body


class MessageDecoder:
    """One message as it grows. Its calls are told at the end, and not when it was cut or refused.

    Blocks are counted as they begin: servers of other makers give the same index to several.
    """

    def __init__(self) -> None:
        self.blocks: dict[int, dict[str, Any]] = {}
        self.reason: str | None = None
        self.finished = False
        self._places: dict[object, int] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self.counts: dict[str, int] = {}
        self._explanation = ""
        self._splitter = Splitter()

    def feed(self, event: object) -> Iterator[ProviderEvent]:
        """Our events for one event of the stream, or for a whole message, from servers that do not stream.

        Unknown kinds are ignored. Raises `EventFailure`, or `ValueError` for what has another shape.
        """
        event = _object(event)
        kind = event.get("type")
        if kind == "error" or event.get("error"):
            raise EventFailure(event)
        if kind == "message":
            yield from self._whole(event)
        elif kind == "message_start":
            self._count(_object(event.get("message")).get("usage"))
            self.counts.pop("output_tokens", None)  # it has only begun
        elif kind == "content_block_start":
            yield from self._start(event.get("index"), event.get("content_block"))
        elif kind == "content_block_delta":
            yield from self._grow(event.get("index"), _object(event.get("delta")))
        elif kind == "message_delta":
            yield from self._stop(_object(event.get("delta")), event.get("usage"))
        elif kind == "message_stop":
            self.finished = True

    def _whole(self, message: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        for index, block in enumerate(message.get("content") or []):
            yield from self._start(index, block)
        yield from self._stop(message, message.get("usage"))
        self.finished = True

    def _start(self, index: object, block: object) -> Iterator[ProviderEvent]:
        place = self._places[index] = len(self.blocks)
        self.blocks[place] = dict(_object(block))
        yield from self._said(self.blocks[place].get("type"), self.blocks[place])

    def _grow(self, index: object, delta: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        place = self._places.get(index, -1)
        if part := _PARTS.get(str(delta.get("type"))):
            piece = delta.get(part)
            if not isinstance(piece, str):
                raise ValueError(f"a {part} that is no text")
            self._pieces.setdefault((place, part), []).append(piece)
            yield from self._said(part, {part: piece})
        elif delta.get("type") == "citations_delta" and place in self.blocks:
            block = self.blocks[place]
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]

    def _stop(self, delta: Mapping[str, Any], usage: object) -> Iterator[ProviderEvent]:
        self._count(usage)
        reason = delta.get("stop_reason")
        if self.reason is None and reason:
            yield from self._splitter.end()
        self.reason = str(reason) if reason else self.reason
        details = delta.get("stop_details")
        self._explanation = str(details.get("explanation") or "") if isinstance(details, Mapping) else ""

    def _count(self, usage: object) -> None:
        """Counts are of everything so far, and later ones replace earlier ones."""
        if isinstance(usage, Mapping):
            self.counts |= {name: count(usage[name]) for name in _COUNTS if usage.get(name) is not None}

    def usage(self, before: Usage) -> Usage:
        """The tokens of this message and of those before it in the same request."""
        fresh, written, cached, output = (self.counts.get(name, 0) for name in _COUNTS)
        return before + Usage(fresh + written + cached, output, cached, written)

    def content(self) -> list[dict[str, Any]]:
        """The blocks as the server wants them back: all that was signed unchanged, without blank text."""
        blocks: list[dict[str, Any]] = []
        for index in sorted(self.blocks):
            block = dict(self.blocks[index])
            for part in ("text", "thinking", "signature"):
                if (index, part) in self._pieces:
                    block[part] = str(block.get(part) or "") + "".join(self._pieces[index, part])
            if "input" in block:
                block["input"], _ = self._arguments(index)
            if block.get("type") != "text" or str(block.get("text", "")).strip():
                blocks.append(block)
        return blocks

    def _arguments(self, index: int) -> tuple[dict[str, Any], str]:
        """The arguments of a call, and what is wrong with them."""
        text = "".join(self._pieces.get((index, "partial_json"), ()))
        if text.strip() == "null":  # which others send for no arguments
            return {}, "The arguments are no JSON object."
        given = self.blocks[index].get("input")
        return arguments_of(text if text.strip() or not isinstance(given, dict) else given)

    def _call(self, index: int) -> ToolCall:
        block = self.blocks[index]
        return ToolCall(str(block.get("id", "")), str(block.get("name", "")), *self._arguments(index))

    def end(self, before: Sequence[dict[str, Any]]) -> Iterator[ProviderEvent]:
        """The calls, and how it ended; nothing when it was cut. `before` are blocks of the same message."""
        if self.reason is None:
            yield from self._splitter.end()
            return
        calls = [self._call(index) for index in sorted(self.blocks) if self.blocks[index].get("type") == "tool_use"]
        whole = self.reason == "tool_use" or not any(call.problem for call in calls)
        if calls and whole and self.reason not in _ENDS:  # other makers' servers say "end_turn" with calls, too
            yield from calls
            yield StreamEnd("tools", raw={_RAW: [*before, *self.content()]})
            return
        if self.reason == "refusal" and self._explanation:
            yield Notice(self._explanation)
        elif self.reason == "model_context_window_exceeded":
            yield Notice("The model's context is full, so the answer ends here.")
        yield StreamEnd(_ENDS.get(self.reason, "stop"))

    def _said(self, kind: object, block: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        """The text or the reasoning in a piece of a block, if there is any."""
        if kind == "text" and block.get("text"):
            yield from self._splitter.feed(sound(str(block["text"])))
        elif kind == "thinking" and block.get("thinking"):
            self._splitter.apart()
            yield Thinking(sound(str(block["thinking"])))


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("no object")
    return value
