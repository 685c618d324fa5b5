"""A real model behind a real server: what the stand-ins only play."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tarsd.errors import ContextTooLong
from tarsd.providers.base import Message, ModelRequest, Notice, StreamEnd, Text, Usage
from tarsd.providers.openai import OpenAIProvider, models
from tests.support.doubles.llama import NO_WHEEL, Llama
from tests.support.provider_contract import LOOKUP, ask, collect, done_in, eventually, text_of, until_error

pytestmark = pytest.mark.skipif(bool(NO_WHEEL), reason=NO_WHEEL)


@pytest.fixture(scope="module")
def llama() -> Iterator[Llama]:
    with Llama(context=1024) as server:
        yield server


@pytest.fixture
async def provider(llama: Llama) -> AsyncIterator[OpenAIProvider]:
    one = OpenAIProvider(llama.model, base_url=f"{llama.url}/v1", key=None)
    yield one
    await one.close()


def question(text: str, *, most: int = 24) -> ModelRequest:
    return ModelRequest("You are a helpful assistant.", (Message("user", text),), max_tokens=most)


async def test_a_real_reply_arrives_piece_by_piece_with_its_tokens(provider: OpenAIProvider) -> None:
    await provider.prepare()
    assert provider.local and provider.window == 1024
    events = await collect(provider, question("What is the capital of France?"))
    assert "Paris" in text_of(events)
    assert sum(isinstance(event, Text) for event in events) > 3
    used = next(event for event in events if isinstance(event, Usage))
    assert used.input_tokens > 10 and 0 < used.output_tokens <= 24
    assert isinstance(events[-1], StreamEnd) and events[-1].stop_reason in ("stop", "length")


async def test_a_reply_that_reaches_its_limit_says_so(provider: OpenAIProvider) -> None:
    events = await collect(provider, question("Tell me a long story.", most=5))
    assert isinstance(events[-1], StreamEnd) and events[-1].stop_reason == "length"


async def test_the_conversation_goes_on(provider: OpenAIProvider) -> None:
    first = question("What is the capital of France?")
    events = await collect(provider, first)
    done = done_in(events)
    assert done is not None
    said = Message("assistant", text_of(events), raw=done.raw)
    request = ModelRequest(first.system, (*first.messages, said, Message("user", "And of Italy?")), max_tokens=24)
    assert "Rome" in text_of(await collect(provider, request))


async def test_a_reply_is_stopped_by_leaving(llama: Llama, provider: OpenAIProvider) -> None:
    def slot() -> dict[str, Any]:
        with urllib.request.urlopen(f"{llama.url}/slots") as reply:
            return dict(json.load(reply)[0])

    stream = provider.stream(question("Write a long story about a fox and a lighthouse.", most=900))
    async for event in stream:
        if isinstance(event, Text):
            break
    assert slot()["is_processing"]
    await stream.aclose()
    most = 0
    while (now := slot())["is_processing"]:
        most = max(most, now["next_token"][0]["n_decoded"])
        await asyncio.sleep(0.01)
    assert most < 500, "it was stopped, and did not come to its end"
    assert text_of(await collect(provider, question("Say hello.", most=4)))


async def test_a_prompt_beyond_the_context_is_told_with_its_size(llama: Llama, provider: OpenAIProvider) -> None:
    _, error = await until_error(provider, question("tea " * 3000))
    assert isinstance(error, ContextTooLong) and provider.window == llama.context
    assert text_of(await collect(provider, question("Say hello.", most=4)))


async def test_a_model_that_knows_no_tools_still_answers(provider: OpenAIProvider) -> None:
    request = replace(ask("What is the weather in Oslo?", tools=(LOOKUP,)), max_tokens=24)
    events = await collect(provider, request)
    assert text_of(events) and done_in(events) is not None
    assert provider.tools is not any(isinstance(event, Notice) for event in events)


async def test_the_model_is_listed(llama: Llama) -> None:
    (info,) = await models(base_url=f"{llama.url}/v1", key=None)
    assert (info.id, info.local, info.context) == (f"openai:{llama.model}", True, 1024)


async def test_a_server_that_ends_takes_its_process_along() -> None:
    with Llama(context=256) as server:
        process = server._process
        assert process.poll() is None
    await eventually(lambda: process.poll() is not None)
