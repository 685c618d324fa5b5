"""What each kind of server says of the tokens of a request, and what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tarsd.config.settings import UsageSettings
from tarsd.parse.tokens import tokens
from tarsd.providers.anthropic import AnthropicProvider
from tarsd.providers.base import Provider, complete
from tarsd.providers.counting import estimate
from tarsd.providers.ollama import OllamaProvider
from tarsd.providers.openai import OpenAIProvider
from tarsd.usage import Ledger, Metered, Spending
from tests.support.doubles.anthropic import AnthropicDouble
from tests.support.doubles.ollama import OllamaDouble
from tests.support.doubles.openai import OpenAIDouble, sse
from tests.support.doubles.script import Cut, Raw
from tests.support.provider_contract import ask

SAID = "Eighty degrees."
REQUEST = ask("How hot is green tea?", system="Be brief. " * 20)
Made = tuple[OpenAIDouble | AnthropicDouble | OllamaDouble, Provider]


def openai(read: Any, written: Any) -> Made:
    double = OpenAIDouble()
    text = sse({"id": "c", "choices": [{"index": 0, "delta": {"content": SAID}, "finish_reason": "stop"}]})
    usage = {"prompt_tokens": read, "completion_tokens": written}
    chunk = b"" if read is None else sse({"choices": [], "usage": usage})  # some servers send none
    double.enqueue(Raw(text + chunk + b"data: [DONE]\n\n"))
    return double, OpenAIProvider(double.model, base_url=f"{double.url}/v1", key=None)


def anthropic(read: Any, written: Any) -> Made:
    double = AnthropicDouble()
    counts = {"input_tokens": read, "output_tokens": written}
    zero = dict.fromkeys(("cache_creation_input_tokens", "cache_read_input_tokens", "input_tokens"), 0)
    first = zero | ({} if read is None else counts) | {"output_tokens": 1}
    steps: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"content": [], "usage": first}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": SAID}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": written}},
        {"type": "message_stop"},
    ]
    double.enqueue(*(Raw(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode()) for one in steps), Cut())
    return double, AnthropicProvider(double.model, base_url=double.url, key="sk-ant-double")


def ollama(read: Any, written: Any) -> Made:
    double = OllamaDouble()
    counts = {"prompt_eval_count": read, "eval_count": written} if read is not None else {}
    line = {"message": {"role": "assistant", "content": SAID}, "done": True, "done_reason": "stop", **counts}
    double.enqueue(Raw(json.dumps(line).encode() + b"\n"))
    return double, OllamaProvider(double.model, host=double.url)


@pytest.mark.parametrize("make", [openai, anthropic, ollama])
@pytest.mark.parametrize(
    ("read", "written"),
    [(300, 20), (-300, "20"), (10**30, 10**30), (None, None), ("many", None), (True, [20]), (300.5, {})],
)
async def test_counts_are_taken_as_they_are_or_estimated(
    make: Callable[[Any, Any], Made], read: Any, written: Any, tmp_path: Path
) -> None:
    double, provider = make(read, written)
    spending = Spending(Ledger(tmp_path, lambda: date(2026, 11, 30)), UsageSettings())
    with double:
        assert (await complete(Metered(provider, spending), REQUEST)).text == SAID
        await provider.close()
    told = spending.report("2026-11")["total"]
    counted = (300, 20) if read == 300 else (estimate(REQUEST), tokens(SAID))
    assert (told["input_tokens"], told["output_tokens"], told["requests"]) == (*counted, 1)
    assert told["estimated"] == int(read != 300)
