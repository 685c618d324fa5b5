"""A stand-in for Anthropic's Messages API: it streams what it is told, has a prompt cache, and refuses bad bodies."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.doubles.script import Call, Cut, Fail, Raw, Say, Step, Think
from tests.support.doubles.server import ABORT, Double, Reply
from tests.support.doubles.server import Call as HttpCall

LOOKS_BACK: Final = 20
"""So many blocks before a cache mark may the end of a known prefix lie."""


@dataclass(frozen=True)
class Stop:
    """How the message ends; without it, with "tool_use" after calls and with "end_turn" otherwise."""

    reason: str
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Block:
    """A whole block of any kind, without deltas."""

    content: Mapping[str, Any]


@dataclass(frozen=True)
class Pieces:
    """A call of a tool whose arguments are sent in these pieces, valid or not; unfinished ones are never closed."""

    name: str
    pieces: Sequence[str]
    finished: bool = True


@dataclass
class _Writer:
    """The events of one message."""

    usage: Mapping[str, int]
    index: int = -1
    kind: str = ""
    words: int = 0
    items: list[bytes | float | object] = field(default_factory=list)

    def event(self, name: str, **data: Any) -> None:
        body = json.dumps({"type": name, **data}, ensure_ascii=False)
        self.items.append(f"event: {name}\ndata: {body}\n\n".encode())

    def start(self, block: Mapping[str, Any]) -> None:
        self.stop()
        self.index += 1
        self.kind = str(block["type"])
        self.event("content_block_start", index=self.index, content_block=block)

    def delta(self, kind: str, **data: Any) -> None:
        self.words += 1
        self.event("content_block_delta", index=self.index, delta={"type": kind, **data})

    def stop(self) -> None:
        if self.kind:
            self.event("content_block_stop", index=self.index)
        self.kind = ""


class AnthropicDouble(Double):
    """Answers each chat request with the steps of one `enqueue`, or with "ok".

    `key` is the one it takes ("": any), `lists` whether it has a list of models, `page` how many stand on a page of
    it. `Fail.kind` may name a code too: "rate_limit_error:enforced_spend_limit_reached".
    """

    model = "claude-sonnet-5-5"

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.key = ""
        self.lists = True
        self.page = 1
        self.models: list[dict[str, Any]] = [
            model("claude-opus-5-5", max_input_tokens=1_000_000),
            model(self.model),
            model("claude-haiku-4-5", lifecycle="deprecated", max_input_tokens=None),
        ]
        self._script: deque[tuple[Step | Stop | Block | Pieces, ...]] = deque()
        self._signed: dict[str, str] = {}
        self._known: set[str] = set()
        self._calls = 0

    def enqueue(self, *steps: Step | Stop | Block | Pieces) -> None:
        """What the next chat request that has none yet is answered with."""
        self._script.append(steps)

    @property
    def requests(self) -> list[Any]:
        """The bodies of the chat requests."""
        return [call.body for call in self.calls if (call.method, call.path) == ("POST", "/v1/messages")]

    def config(self) -> str:
        """Settings that make this the chat model."""
        return f'[chat]\nmodel = "anthropic:{self.model}"\n\n[anthropic]\nbase_url = "{self.url}"\n'

    def env(self) -> dict[str, str]:
        """The variables that hold a key it takes."""
        return {"TARSD_ANTHROPIC_KEY": self.key if self.key else "sk-ant-double"}

    def reply(self, call: HttpCall) -> Reply:
        token = call.headers.get("authorization", "").removeprefix("Bearer ")
        if not token or token != (self.key if self.key else token):
            return _failed(Fail(401, "invalid bearer token", "authentication_error"))
        if call.path == "/v1/messages" and call.method == "POST":
            return self._message(call.body)
        if call.path == "/v1/messages/count_tokens":
            return Reply(json={"input_tokens": _size(call.body)})
        if call.path.startswith("/v1/models") and self.lists:
            return self._listed(call)
        return Reply(json="404 page not found", status=404)

    def _listed(self, call: HttpCall) -> Reply:
        wanted = call.path.removeprefix("/v1/models").strip("/")
        if wanted:
            found = next((one for one in self.models if one["id"] == wanted), None)
            return Reply(json=found) if found else _failed(Fail(404, f"model: {wanted}", "not_found_error"))
        ids = [one["id"] for one in self.models]
        first = ids.index(call.query["after_id"]) + 1 if "after_id" in call.query else 0
        shown = self.models[first : first + self.page]
        ends = (
            {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {"first_id": None, "last_id": None}
        )
        return Reply(json={"data": shown, "has_more": first + self.page < len(ids), **ends})

    # -------------------------------------------------------------------------------------------- messages

    def _message(self, body: Mapping[str, Any]) -> Reply:
        with self._lock:
            steps = self._script.popleft() if self._script else (Say("ok"),)
            fault = self._fault(body)
            usage = {} if fault else self._cached(body)
        if fault:
            return _failed(Fail(400, fault, "invalid_request_error"))
        if body["model"] not in [one["id"] for one in self.models]:
            return _failed(Fail(404, f"model: {body['model']}", "not_found_error"))
        if isinstance(steps[0], Fail):
            return _failed(steps[0])
        return Reply(
            stream=self._events(steps, usage, body["model"]),
            content_type="text/event-stream; charset=utf-8",
            headers={"request-id": "req_011"},
        )

    def _events(
        self, steps: Sequence[Step | Stop | Block | Pieces], usage: Mapping[str, int], model: str
    ) -> Iterator[bytes | float | object]:
        writer = _Writer(usage)
        message: dict[str, Any] = {
            "id": "msg_01", "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None,
            "stop_sequence": None, "usage": {**usage, "output_tokens": 1},
        }  # fmt: skip
        writer.event("message_start", message=message)
        writer.event("ping")
        stop = Stop("end_turn")
        for step in steps:
            if isinstance(step, Stop):
                stop = step
                break
            if isinstance(step, Call | Pieces):
                stop = Stop("tool_use")
            ends = self._step(step, writer)
            yield from writer.items
            writer.items.clear()
            if ends:
                return
        writer.stop()
        delta: dict[str, Any] = {"stop_reason": stop.reason, "stop_sequence": None}
        delta |= {} if stop.details is None else {"stop_details": dict(stop.details)}
        writer.event("message_delta", delta=delta, usage={"output_tokens": 1 + writer.words})
        writer.event("message_stop")
        yield from writer.items

    def _step(self, step: Step | Stop | Block | Pieces, writer: _Writer) -> bool:
        """Whether the connection ends with this step."""
        if isinstance(step, Say):
            if writer.kind != "text":
                writer.start({"type": "text", "text": ""})
            for word in re.findall(r"\s*\S+\s*|\s+", step.text):
                writer.items.append(step.pause)
                writer.delta("text_delta", text=word)
        elif isinstance(step, Think):
            signature = "Eq" + hashlib.sha256(step.text.encode()).hexdigest()
            self._signed[signature] = step.text
            writer.start({"type": "thinking", "thinking": "", "signature": ""})
            for start in range(0, len(step.text), 7):
                writer.delta("thinking_delta", thinking=step.text[start : start + 7])
            writer.delta("signature_delta", signature=signature)
        elif isinstance(step, Call):
            text = json.dumps(dict(step.arguments), ensure_ascii=False) if step.arguments else ""
            self._use(writer, step.name, ["", *(text[start : start + 8] for start in range(0, len(text), 8))])
        elif isinstance(step, Pieces):
            self._use(writer, step.name, step.pieces)
            writer.kind = writer.kind if step.finished else ""
        elif isinstance(step, Block):
            writer.start(step.content)
        elif isinstance(step, Raw):
            writer.items.append(step.data)
        elif isinstance(step, Fail):
            writer.event("error", **{key: value for key, value in _error(step).items() if key != "type"})
            return True
        elif isinstance(step, Cut):
            # a torn connection takes with it what its reader has not fetched yet
            writer.items += [0.1, ABORT] if step.abort else []
            return True
        return False

    def _use(self, writer: _Writer, name: str, pieces: Sequence[str]) -> None:
        with self._lock:
            self._calls += 1
            id = f"toolu_{self._calls:02}"
        writer.start({"type": "tool_use", "id": id, "name": name, "input": {}})
        for piece in pieces:
            writer.delta("input_json_delta", partial_json=piece)

    # -------------------------------------------------------------------------------------------- what is refused

    def _fault(self, body: Mapping[str, Any]) -> str:
        """What the server would not take in this body, or ""."""
        if unknown := set(body) - {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream"}:
            return f"{sorted(unknown)[0]}: Extra inputs are not permitted"
        messages = body.get("messages")
        if not isinstance(body.get("max_tokens"), int) or not messages or messages[0]["role"] != "user":
            return "max_tokens or messages: Field required"
        blocks = list(_blocks(body))
        if sum("cache_control" in block for block in blocks) > 4:
            return "A maximum of 4 blocks with cache_control may be provided."
        if any(block.get("type") == "text" and not block["text"].strip() for block in blocks):
            return "messages: text content blocks must contain non-whitespace text"
        used = any(block.get("type") in ("tool_use", "tool_result") for block in blocks)
        if used and not body.get("tools"):
            return "Requests which include `tool_use` or `tool_result` blocks must define tools."
        for tool in body.get("tools", ()):
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool["name"]) or tool["input_schema"].get("type") != "object":
                return "tools.0.custom: invalid"
            if {"oneOf", "allOf", "anyOf"} & set(tool["input_schema"]):
                return "tools.0.input_schema: oneOf, allOf and anyOf are not supported at the top level"
        return self._disorder(messages)

    def _disorder(self, messages: Sequence[Mapping[str, Any]]) -> str:
        wanted: list[str] = []
        seen: set[str] = set()
        for message in messages:
            content = message["content"]
            results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
            if sorted(results) != sorted(wanted) or any(
                block["type"] != "tool_result" for block in content[: len(results)]
            ):
                return "messages: each `tool_use` must have its `tool_result`, first in the next message"
            wanted = [block["id"] for block in content if block["type"] == "tool_use"]
            if len({*wanted, *seen}) != len(wanted) + len(seen):
                return "messages: `tool_use` ids must be unique"
            seen |= set(wanted)
            for block in content:
                if block["type"] == "thinking" and self._signed.get(block["signature"]) != block["thinking"]:
                    return "messages: `thinking` blocks in the latest assistant message cannot be modified"
        return "messages: `tool_use` without a `tool_result` at the end" if wanted else ""

    def _cached(self, body: Mapping[str, Any]) -> dict[str, int]:
        """What is read from the cache, what is written to it, and what is neither, in tokens of four letters."""
        digest, size, marks = hashlib.sha256(), 0, []
        ends: list[tuple[str, int]] = []
        for block in _blocks(body):
            plain = {key: value for key, value in block.items() if key != "cache_control"}
            digest.update(json.dumps(plain, sort_keys=True).encode())
            size += _size(plain)
            ends.append((digest.hexdigest(), size))
            if "cache_control" in block:
                marks.append(len(ends) - 1)
        near = {place for mark in marks for place in range(max(0, mark - LOOKS_BACK), mark + 1)}
        read = max((ends[place][1] for place in near if ends[place][0] in self._known), default=0)
        marked = ends[marks[-1]][1] if marks else 0
        self._known |= {ends[mark][0] for mark in marks}
        return {
            "input_tokens": size - max(marked, read),
            "cache_creation_input_tokens": max(marked - read, 0),
            "cache_read_input_tokens": read,
        }


def model(id: str, **more: Any) -> dict[str, Any]:
    """A model as it stands in the list."""
    about = {"type": "model", "id": id, "display_name": id.title(), "created_at": "2026-02-04T00:00:00Z"}
    return about | {"lifecycle": "active", "max_input_tokens": 500_000, "max_tokens": 64_000} | more


def _blocks(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Everything that can hold a cache mark, in the order in which it is read."""
    yield from body.get("tools", ())
    yield from body.get("system", ())
    for message in body["messages"]:
        yield from message["content"]


def _size(thing: object) -> int:
    return len(json.dumps(thing)) // 4 + 1


def _error(fail: Fail) -> dict[str, Any]:
    kind, _, code = fail.kind.partition(":")
    details = {"details": {"error_code": code}} if code else {}
    return {"type": "error", "error": {"type": kind, "message": fail.message, **details}, "request_id": "req_011"}


def _failed(fail: Fail) -> Reply:
    headers = {"x-should-retry": "false", "request-id": "req_011", **fail.headers}
    return Reply(json=_error(fail), status=fail.status, headers=headers)
