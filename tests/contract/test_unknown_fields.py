"""What a server says beyond what we know of goes back to it within the turn, and nowhere else."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

from tarsd.providers.anthropic_wire import body as anthropic_body
from tarsd.providers.base import Message, ModelRequest, ProviderEvent, StreamEnd, ToolCall
from tarsd.providers.ollama_wire import ReplyDecoder, message_json
from tarsd.providers.openai import OpenAIProvider
from tarsd.providers.openai_wire import StreamDecoder, messages
from tarsd.tools import Result
from tarsd.tools.base import tool
from tests.support.doubles.openai import OpenAIDouble, sse
from tests.support.doubles.script import Raw
from tests.support.provider_contract import collect
from tests.support.turns import QUORL, Shelf, Talk, ask

CANARY = "ZQCANARYSIGNATURE"
FUNCTION = {"name": "look", "arguments": '{"query": "x"}'}
OPENAI = {
    "role": "assistant",
    "reasoning_details": [{"signature": CANARY}],
    "odd": CANARY,
    "tool_calls": [
        {"index": 0, "id": "c1", "type": "function", "function": FUNCTION, "extra_content": {"google": CANARY}}
    ],
}
OLLAMA = {
    "role": "assistant",
    "content": "",
    "odd": CANARY,
    "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": {"query": "x"}}, "signature": CANARY}],
}


def openai_raw() -> StreamEnd:
    decoder = StreamDecoder()
    chunk = {"choices": [{"delta": OPENAI, "finish_reason": "tool_calls"}]}
    return next(event for event in [*decoder.feed(chunk), *decoder.end()] if isinstance(event, StreamEnd))


def ollama_raw() -> StreamEnd:
    decoder = ReplyDecoder()
    decoder.read({"message": OLLAMA, "done": True})
    return decoder.done("stop")


ANTHROPIC = StreamEnd("tools", {"anthropic": [{"type": "thinking", "thinking": "", "signature": CANARY}]})
RAW = {"openai": openai_raw(), "ollama": ollama_raw(), "anthropic": ANTHROPIC}
SENT: dict[str, Callable[[ModelRequest], Any]] = {
    "openai": messages,
    "ollama": lambda request: [message_json(message) for message in request.messages],
    "anthropic": lambda request: anthropic_body(request, "m", 0)["messages"],
}


@pytest.mark.parametrize("to", SENT)
@pytest.mark.parametrize("said_by", RAW)
def test_only_the_provider_that_said_it_is_sent_it(said_by: str, to: str) -> None:
    step = Message("assistant", "", (ToolCall("c1", "look", {"query": "x"}),), raw=RAW[said_by].raw)
    request = ModelRequest("", (Message("user", "hello"), step, Message("tool", "found", call_id="c1", name="look")))
    assert (CANARY in json.dumps(SENT[to](request))) is (said_by == to)
    assert CANARY not in json.dumps(SENT[to](ModelRequest("", request.messages[:1])))


def look(query: Annotated[str, "what for"]) -> Result:
    """Look something up."""
    return Result(f"found {query}")


async def test_neither_notes_nor_logs_nor_later_turns_hold_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with OpenAIDouble() as double:
        chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": OPENAI, "finish_reason": "tool_calls"}]}
        double.enqueue(Raw(sse(chunk) + b"data: [DONE]\n\n"))
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key=None)
        talk = Talk(tmp_path, Shelf(QUORL), provider, tool(look), notes=True)
        turn = await talk.ended(ask("what is a quorl?"))
        await talk.ended(ask("and now?"))
        await talk.chat.close()
        await provider.close()
        first, back, later = (json.dumps(body) for body in double.requests)
    assert turn.events[-1].type == "done"
    assert [CANARY in body for body in (first, back, later)] == [False, True, False]
    assert CANARY not in str(turn.events) and CANARY not in caplog.text
    held = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert held and not [path for path in held if CANARY in path.read_text("utf-8", "replace")]


async def test_a_provider_shows_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with OpenAIDouble() as double:
        double.enqueue(Raw(sse({"choices": [{"index": 0, "delta": {**OPENAI, "tool_calls": None, "content": "ok"}}]})))
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key=None)
        events: list[ProviderEvent] = await collect(provider, ModelRequest("", (Message("user", "hello"),)))
        await provider.close()
    shown = [event for event in events if not isinstance(event, StreamEnd)]
    assert CANARY not in str(shown) and CANARY not in caplog.text
