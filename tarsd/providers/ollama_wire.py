"""Ollama's wire format: what a request looks like, what the lines of an answer and the lists of models say. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tarsd.providers.base import (
    Message,
    ModelInfo,
    ProviderEvent,
    StreamEnd,
    Thinking,
    ToolCall,
    ToolSpec,
    tool_call,
)
from tarsd.providers.text import sound
from tarsd.providers.thinking import Splitter
from tarsd.upstream import CLOUD, count

_FIELDS = ("role", "content", "thinking", "tool_calls")
"""What we read of a message; all else goes back as it came."""


@dataclass(frozen=True)
class _OllamaMessage:
    """An assistant's message in this server's own form."""

    message: Mapping[str, Any]


class ReplyDecoder:
    """The lines of one answer, and what they come to."""

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._thought: list[str] = []
        self._calls: list[ToolCall] = []
        self._sent: list[Mapping[str, Any]] = []  # the calls as they came
        self._extra: dict[str, Any] = {}
        self.begun = False

    def read(self, line: Mapping[str, Any]) -> list[ProviderEvent]:
        """What a line says; calls may stand on any of them, the last one included."""
        self.begun = True
        message = line.get("message")
        message = message if isinstance(message, dict) else {}
        events: list[ProviderEvent] = []
        thinking, content, calls = (message.get(key) for key in ("thinking", "content", "tool_calls"))
        self._extra |= {key: value for key, value in message.items() if key not in _FIELDS and value is not None}
        if isinstance(thinking, str) and thinking:
            thinking = sound(thinking)
            self._splitter.apart()
            self._thought.append(thinking)
            events.append(Thinking(thinking))
        if isinstance(content, str) and content:
            events += self._splitter.feed(sound(content))
        if line.get("done") is True:
            events += self.end()
        for call in calls if isinstance(calls, list) else []:
            self._calls.append(self._call(call))
            self._sent.append(call if isinstance(call, dict) else {})
            events.append(self._calls[-1])
        return events

    def end(self) -> Sequence[ProviderEvent]:
        """What the splitter held back."""
        return self._splitter.end()

    def done(self, reason: object) -> StreamEnd:
        """How it ended; the server says "stop" when it waits for tools, too."""
        if self._calls:
            said: dict[str, Any] = {**self._extra, "role": "assistant", "content": self._splitter.said}
            if self._thought:
                said["thinking"] = "".join(self._thought)
            said["tool_calls"] = [_as_it_came(*pair) for pair in zip(self._sent, self._calls, strict=True)]
            return StreamEnd("tools", _OllamaMessage(said))
        return StreamEnd("length" if reason == "length" else "stop")

    def _call(self, call: object) -> ToolCall:
        call = call if isinstance(call, dict) else {}
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        id = call.get("id")
        fresh = isinstance(id, str) and id not in {call.id for call in self._calls}
        return tool_call(str(id) if fresh else "", function.get("name"), function.get("arguments"))


def message_json(message: Message) -> Mapping[str, Any]:
    """A message as it is sent; in the server's own form where `raw` is of this server."""
    if isinstance(message.raw, _OllamaMessage):
        return message.raw.message
    if message.role == "tool":
        text = f"Error: {message.text}" if message.failed else message.text
        return {"role": "tool", "tool_name": message.name, "tool_call_id": message.call_id, "content": text}
    calls = {"tool_calls": [_call(call) for call in message.calls]} if message.calls else {}
    pictures = {"images": [picture.base64 for picture in message.pictures]} if message.pictures else {}
    return {"role": message.role, "content": message.text, **calls, **pictures}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "function": {"name": call.name, "arguments": dict(call.arguments)}}


def _as_it_came(sent: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
    """A call with whatever else the server said of it: its place among others, signatures."""
    ours, function = _call(call), sent.get("function")
    own = function if isinstance(function, dict) else {}
    return {**sent, **ours, "function": {**own, **ours["function"]}}


def tool_json(tool: ToolSpec) -> dict[str, Any]:
    """A tool with its whole schema."""
    parameters = {"type": "object", "properties": {}, **_plain(tool.schema)}
    about = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": about}


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without `true` in the place of a property's schema, which the server cannot read."""
    plain = dict(schema)
    for key in ("properties", "$defs"):
        if isinstance(inner := plain.get(key), Mapping):
            plain[key] = {name: _plain(part) if isinstance(part, Mapping) else {} for name, part in inner.items()}
    return plain


def info(entry: Mapping[str, Any], local: bool) -> ModelInfo:
    """A model of /api/tags; `local` is whether the server is on this machine."""
    details = entry.get("details")
    details = details if isinstance(details, dict) else {}
    abilities, remote = entry.get("capabilities"), is_remote(entry)
    size = " ".join(str(details[key]) for key in ("parameter_size", "quantization_level") if details.get(key))
    return ModelInfo(
        f"ollama:{name_of(entry)}",
        local and not remote,
        count(details.get("context_length")),
        "tools" in abilities if isinstance(abilities, list) else None,
        "runs on another machine" if remote else size,
    )


def can_chat(entry: Mapping[str, Any]) -> bool:
    """As the server says; older ones do not, and then the family tells."""
    abilities, details = entry.get("capabilities"), entry.get("details")
    if isinstance(abilities, list):
        return "completion" in abilities
    family = str(details.get("family")) if isinstance(details, dict) else ""
    return "bert" not in family and "embed" not in name_of(entry)


def is_remote(entry: Mapping[str, Any]) -> bool:
    """Whether the server passes the model's work on to another machine; `entry` is of a list or of /api/show."""
    return any(entry.get(key) for key in ("remote_host", "remote_model")) or is_cloud(name_of(entry))


def is_cloud(model: str) -> bool:
    """Whether a name can only be that of a model on another machine."""
    return model.endswith(CLOUD)


def entries(reply: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The models of /api/tags or /api/ps."""
    models = reply.get("models")
    return [entry for entry in models if isinstance(entry, dict)] if isinstance(models, list) else []


def name_of(entry: Mapping[str, Any]) -> str:
    """The name with its tag."""
    return str(entry.get("name") or entry.get("model") or "")


def context_of(running: Mapping[str, Any] | None) -> int:
    """The window that a model in memory has, 0 where there is none."""
    return count(running.get("context_length")) if running else 0


def own_window(parameters: object) -> int:
    """`num_ctx` of the model's own file."""
    match = re.search(r"^num_ctx\s+(\d+)\s*$", parameters, re.MULTILINE) if isinstance(parameters, str) else None
    return int(match[1]) if match else 0
