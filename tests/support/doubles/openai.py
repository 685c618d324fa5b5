"""A stand-in for the servers that speak OpenAI's chat format; `dialect` says which of them it takes after."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.doubles import script
from tests.support.doubles.script import Cut, Fail, Raw, Say, Step, Think
from tests.support.doubles.server import ABORT, Call, Double, Reply

USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 5,
    "total_tokens": 17,
    "prompt_tokens_details": {"cached_tokens": 4},
}


class OpenAIDouble(Double):
    """`with OpenAIDouble() as server`: answers chat requests with what was enqueued, else with "ok".

    Dialects: "llamacpp", "vllm", "lmstudio", "ollama" and "openai" differ in the first chunk, in where reasoning
    stands, in how calls are cut and in how an error in a stream looks. `refuse` may answer a chat request before its
    steps are used up, by what its body holds. `listed` is what `/models` says, `native` the answers at other paths.
    """

    def __init__(self, port: int = 0, *, dialect: str = "llamacpp", model: str = "small-model") -> None:
        super().__init__(port)
        self.dialect = dialect
        self.model = model
        self.refuse: Callable[[Mapping[str, Any]], Fail | None] = lambda body: None
        self.listed: list[dict[str, Any]] = [{"id": model, "object": "model", "created": 1, "owned_by": "someone"}]
        self.native: dict[str, Any] = {}
        self._steps: list[tuple[Step, ...]] = []
        self._guard = threading.Lock()

    def enqueue(self, *steps: Step) -> None:
        """The next chat request is answered by these."""
        with self._guard:
            self._steps.append(steps)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of the chat requests, in order."""
        return [call.body for call in self.calls if call.path == "/v1/chat/completions"]

    def config(self) -> str:
        """Lines of a config file that make this the chat model."""
        return f'[chat]\nmodel = "openai:{self.model}"\n\n[openai]\nbase_url = "{self.url}/v1"\n'

    def env(self) -> dict[str, str]:
        """The environment that goes with it."""
        return {"TARSD_OPENAI_KEY": "sk-double"}

    def reply(self, call: Call) -> Reply:
        """As `Double.reply`."""
        if call.path == "/v1/models":
            return Reply({"object": "list", "data": self.listed})
        if call.path in self.native:
            return Reply(self.native[call.path])
        if call.path != "/v1/chat/completions" or call.method != "POST":
            return Reply({"error": {"message": f"Unexpected endpoint {call.path}", "type": "not_found_error"}}, 404)
        if refusal := self.refuse(call.body):
            return failed(refusal)
        with self._guard:
            steps = self._steps.pop(0) if self._steps else (Say("ok"),)
        if steps and isinstance(steps[0], Fail):
            return failed(steps[0])
        usage = bool((call.body.get("stream_options") or {}).get("include_usage"))
        return Reply(stream=self.stream(steps, usage=usage), content_type="text/event-stream")

    def stream(self, steps: tuple[Step, ...], *, usage: bool) -> Iterator[bytes | float | object]:
        """The stream of an answer: every step, the end, the count of tokens, and the mark."""
        if self.dialect in ("llamacpp", "openai"):
            yield self.chunk({"role": "assistant", "content": None})
        else:
            yield self.chunk({"role": "assistant", "content": ""})
        calls = 0
        for step in steps:
            match step:
                case Say(text, pause):
                    for word in re.findall(r"\s*\S+\s*|\s+", text):
                        yield from (pause,) if pause else ()
                        yield self.chunk({"content": word})
                case Think(text):
                    key = "reasoning_content" if self.dialect in ("llamacpp", "lmstudio") else "reasoning"
                    yield self.chunk({key: text})
                case script.Call(name, arguments):
                    yield from self.call(calls, name, json.dumps(dict(arguments)) if arguments else "")
                    calls += 1
                case Fail():
                    yield from self.broken(step)
                    return
                case Cut(abort):
                    yield from (ABORT,) if abort else ()
                    return
                case Raw(data):
                    yield data
        yield b": ping\n\n"
        yield self.chunk({}, "tool_calls" if calls else "stop")
        if usage:
            yield sse({**self.frame(), "choices": [], "usage": USAGE})
        yield b"data: [DONE]\n\n"

    def call(self, index: int, name: str, arguments: str) -> Iterator[bytes]:
        """A call of a tool: whole from Ollama, in pieces from the others."""
        first = {"index": index, "id": f"call_{index}", "type": "function"}
        if self.dialect == "ollama":
            whole = {**first, "function": {"name": name, "arguments": arguments or "{}"}}
            yield self.chunk({"content": "", "tool_calls": [whole]})
            return
        yield self.chunk({"tool_calls": [{**first, "function": {"name": name, "arguments": ""}}]})
        for place in range(0, len(arguments), 5):
            piece = {"arguments": arguments[place : place + 5]}
            yield self.chunk({"tool_calls": [{"index": index, "function": piece}]})

    def broken(self, fail: Fail) -> Iterator[bytes]:
        """An error after the first byte; Ollama has none, and just ends."""
        error = {"message": fail.message, "type": fail.kind, "code": fail.status}
        match self.dialect:
            case "lmstudio":
                yield b"event: error\n" + sse({"error": {"message": fail.message}})
            case "vllm":
                yield sse({"error": error}) + b"data: [DONE]\n\n"
            case "ollama":
                yield self.chunk({})
            case _:
                yield sse({"error": error})

    def frame(self) -> dict[str, Any]:
        """What every chunk has."""
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.model}

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        """An event of the stream."""
        return sse({**self.frame(), "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}]})


def sse(data: object) -> bytes:
    """A server-sent event."""
    return f"data: {json.dumps(data)}\n\n".encode()


def failed(fail: Fail) -> Reply:
    """An error before the first byte."""
    error = {"message": fail.message, "type": fail.kind, "param": None, "code": fail.status}
    return Reply({"error": error}, fail.status, fail.headers)
