"""An answer of an OpenAI-compatible server is read by its bytes; reasoning has room; a prompt that was cut is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tarsd.errors import AnswerCut, ContextTooLong, ProviderBusy, ProviderError
from tarsd.providers.base import Notice, ProviderEvent, Usage, Waiting
from tarsd.providers.ollama import OllamaProvider
from tarsd.providers.openai import OpenAIProvider
from tarsd.providers.openai_stream import ChunkReader
from tests.support.doubles.ollama import OllamaDouble
from tests.support.doubles.openai import OpenAIDouble, sse
from tests.support.doubles.script import Raw
from tests.support.doubles.server import Reply
from tests.support.provider_contract import always, ask, collect, done_in, text_of, thought_in, until_error

LABELS = ["text/event-stream", "application/json", "text/plain; charset=utf-8", "application/x-ndjson", "text/html", ""]
USED = {"prompt_tokens": 10, "completion_tokens": 5}


def chunk(text: str | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


DONE = b"data: [DONE]\n\n"
CHUNKS = [chunk("Grüße, "), chunk("all “[1]”."), chunk(None, "stop"), {"id": "c", "choices": [], "usage": USED}]
MESSAGE = {"role": "assistant", "content": "Grüße, all “[1]”."}
ONE = {"id": "c", "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}], "usage": USED}
EVENTS = "".join(f"data: {json.dumps(one)}\n\n" for one in CHUNKS)
WHOLE: dict[str, str] = {
    "events": EVENTS + "data: [DONE]\n\n",
    "events, ended by returns": EVENTS.replace("\n", "\r\n") + "data: [DONE]\r\n\r\n",
    "events, ended by old returns": EVENTS.replace("\n", "\r"),
    "events without blanks": EVENTS.replace("data: ", "data:") + "data:[DONE]",
    "events without blank lines": EVENTS.replace("\n\n", "\n"),
    "events after a mark of order": "\ufeff" + EVENTS,
    "events with comments and names": f": ping\n\nevent: ping\ndata:\n\nretry: 9\nid: 1\nevent: message\n{EVENTS}: end",
    "events over several lines": "".join(
        "".join(f"data: {line}\n" for line in json.dumps(one, indent=1).split("\n")) + "\n" for one in CHUNKS
    ),
    "a whole answer as an event": f"data: {json.dumps(ONE)}\n\ndata: [DONE]\n\n",
    "an object on each line": "".join(json.dumps(one) + "\n" for one in CHUNKS),
    "an object on each line, and a mark": "".join(json.dumps(one) + "\n" for one in CHUNKS) + "[DONE]\n",
    "objects on one line": "".join(json.dumps(one) for one in CHUNKS),
    "a whole answer": json.dumps(ONE),
    "a whole answer in letters": json.dumps(ONE, ensure_ascii=False),
    "a whole answer on many lines": "\n  \n" + json.dumps(ONE, indent=2) + "\n",
    "a whole answer, and a mark": json.dumps(ONE) + "data: [DONE]\n\n",
    "a whole answer, and a mark below": json.dumps(ONE) + "\n\ndata: [DONE]\n\n",
    "a list of chunks": json.dumps(CHUNKS),
    "a list of chunks on many lines": json.dumps(CHUNKS, indent=2),
}


@asynccontextmanager
async def server(window: int = 0) -> AsyncIterator[tuple[OpenAIDouble, OpenAIProvider]]:
    with OpenAIDouble() as double:
        provider = OpenAIProvider(double.model, base_url=f"{double.url}/v1", key=None, context=window, silence_s=60)
        yield double, provider
        await provider.close()


async def answered(*pieces: bytes, label: str = "text/event-stream") -> list[ProviderEvent]:
    async with server() as (double, provider):
        always(double, Reply(stream=list(pieces), content_type=label))
        return await collect(provider, ask("hello"))


@pytest.mark.report("https://github.com/decolua/9router/issues/3492")
@pytest.mark.report("https://github.com/JetBrains/junie/issues/78")
@pytest.mark.parametrize("label", LABELS[:3])
@pytest.mark.parametrize("body", ["events", "an object on each line", "a whole answer", "a list of chunks"])
async def test_an_answer_is_read_by_its_bytes_whatever_it_is_called(body: str, label: str) -> None:
    events = await answered(WHOLE[body].encode(), label=label)
    assert text_of(events) == "Grüße, all “[1]”." and done_in(events) is not None
    assert [event for event in events if isinstance(event, Usage)] == [Usage(10, 5)]


@pytest.mark.parametrize("label", LABELS[3:])
async def test_no_label_keeps_an_answer_from_being_read(label: str) -> None:
    assert text_of(await answered(WHOLE["events"].encode(), label=label)) == "Grüße, all “[1]”."


def read(*pieces: bytes) -> list[Any]:
    reader = ChunkReader("it")
    return [one for piece in pieces for one in reader.feed(piece)] + list(reader.end())


@pytest.mark.report("https://github.com/SamSaffron/term-llm/pull/454")
@pytest.mark.parametrize("body", WHOLE)
def test_every_wrapping_holds_the_same_chunks_at_any_cut(body: str) -> None:
    data = WHOLE[body].encode()
    expected = [ONE] if "whole" in body else CHUNKS
    assert read(data) == expected
    assert read(*(data[at : at + 1] for at in range(len(data)))) == expected
    for cut in range(0, len(data), 7):
        assert read(data[:cut], data[cut:]) == expected


@pytest.mark.parametrize("body", ["events", "an object on each line", "events over several lines"])
def test_a_chunk_is_given_as_soon_as_it_is_whole(body: str) -> None:
    reader, data = ChunkReader("it"), WHOLE[body].encode()
    end = data.index(b"stop")
    assert list(reader.feed(data[:end])) == CHUNKS[:2]


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "Rate limit reached.", "code": 429}},
        [{"error": {"message": "Rate limit reached.", "code": 429}}],
        {"object": "error", "message": "Rate limit reached.", "code": 429},
    ],
)
@pytest.mark.parametrize("label", LABELS[:3])
@pytest.mark.parametrize("event", [True, False])
async def test_an_error_is_one_whatever_it_is_called(error: object, label: str, event: bool) -> None:
    async with server() as (double, provider):
        body = sse(error) if event else json.dumps(error).encode()
        always(double, Reply(stream=[body], content_type=label))
        _, told = await until_error(provider, ask("hello"))
        assert isinstance(told, ProviderBusy)


async def test_an_event_that_calls_itself_an_error_is_one() -> None:
    async with server() as (double, provider):
        data = sse({"message": "The prompt exceeds the context length of 4096 tokens."})
        always(double, Reply(stream=[b"event: error\n" + data], content_type="text/event-stream"))
        _, told = await until_error(provider, ask("hello"))
        assert isinstance(told, ContextTooLong) and told.window == 4096


@pytest.mark.parametrize("label", LABELS[:2])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\n <!doctype html><title>Welcome</title>", "web page"),
        (b"Internal error\n", "invalid answer"),
        (b"data: {not JSON}\n\n", "invalid answer"),
        (b"data: soon\n\n", "invalid answer"),
        (b'{"choices": [', "invalid answer"),
        (b'data: {"choices": [\n\n' + sse(CHUNKS[0]), "invalid answer"),
        (b"", "empty answer"),
        (b": ping\n\n", "empty answer"),
        (b'data: {"choices": []}\n\ndata: [DONE]\n\n', "empty answer"),
        (b'data: {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}\n\ndata: [DONE]\n\n', "empty answer"),
        (b'data: {"choices": [], "usage": {"prompt_tokens": 5}}\n\n', "empty answer"),
        (b'{"object": "chat.completion", "choices": []}', "empty answer"),
        (b"data: [DONE]\n\n", "empty answer"),
    ],
)
async def test_what_is_no_answer_is_told(body: bytes, said: str, label: str) -> None:
    async with server() as (double, provider):
        always(double, Reply(stream=[body], content_type=label))
        _, told = await until_error(provider, ask("hello"))
        assert isinstance(told, AnswerCut if said != "web page" else ProviderError) and said in told.message


# ------------------------------------------------------------------------------------------------ room for reasoning


def thought(*finish: str) -> Sequence[bytes]:
    """A reply that is reasoning alone."""
    parts = [{"choices": [{"index": 0, "delta": {"reasoning_content": "Let me think …"}}]}, chunk(None, *finish)]
    return [*(sse(part) for part in parts), *([DONE] if finish else [])]


@pytest.mark.report("https://github.com/sipeed/picoclaw/issues/966")
@pytest.mark.parametrize(
    "eaten",
    [thought("length"), [sse(chunk("<think>Let me")), sse(chunk(None, "length"))], [sse(chunk(None, "length"))]],
    ids=["in its field", "between tags", "hidden"],
)
async def test_a_reply_used_up_by_reasoning_is_asked_for_again_with_room(eaten: Sequence[bytes]) -> None:
    async with server(window=16_000) as (double, provider):
        double.enqueue(Raw(b"".join(eaten) + DONE))
        events = await collect(provider, ask("hello"))
        assert text_of(events) == "ok" and any(isinstance(event, Waiting) for event in events)
        await collect(provider, ask("and now?"))
        assert [body["max_tokens"] for body in double.requests] == [2048, 6144, 6144]


async def test_a_model_that_reasons_has_room_from_then_on_and_others_have_not() -> None:
    async with server(window=16_000) as (double, provider):
        await collect(provider, ask("hello"))
        double.enqueue(Raw(b"".join([*thought(), sse(chunk("Nine.", "stop"))])))
        assert thought_in(await collect(provider, ask("when?")))
        await collect(provider, ask("and now?"))
        assert [body["max_tokens"] for body in double.requests] == [2048, 2048, 6144]


async def test_there_is_no_second_try_without_room_or_after_a_word_or_another_time() -> None:
    async with server(window=2100) as (double, provider):
        double.enqueue(Raw(b"".join(thought("length"))))
        assert (end := done_in(await collect(provider, ask("hello " * 20)))) and end.stop_reason == "length"
        assert len(double.requests) == 1
    async with server(window=16_000) as (double, provider):
        double.enqueue(Raw(sse(chunk("Nine")) + sse(chunk(None, "length")) + DONE))
        assert text_of(await collect(provider, ask("when?"))).startswith("Nine") and len(double.requests) == 1
        for _ in range(3):
            double.enqueue(Raw(b"".join(thought("length"))))
        await collect(provider, ask("and now?"))
        assert len(double.requests) == 3


async def test_a_model_of_ollama_that_reasons_in_tags_gets_room_too() -> None:
    with OllamaDouble() as double:
        eaten = {"message": {"role": "assistant", "content": "<think>Let me"}, "done": True, "done_reason": "length"}
        double.enqueue(Raw(json.dumps(eaten).encode() + b"\n"))
        provider = OllamaProvider(double.model, host=double.url)
        assert text_of(await collect(provider, ask("hello"))) == "ok"
        await provider.close()
        first, second = (body["options"]["num_predict"] for body in double.requests)
    assert second == first + 4096


# ------------------------------------------------------------------------------------------------ prompts that were cut

LONG = "The meeting ran long and there was no time to cook dinner, so we ordered soup instead. " * 300


def counted(read: int, **more: Any) -> Raw:
    usage = {"prompt_tokens": read, "completion_tokens": 5, **more}
    return Raw(sse(chunk("ok", "stop")) + sse({"choices": [], "usage": usage}) + DONE)


async def notices(*steps: Raw, texts: Sequence[str] = (LONG,), listed: dict[str, Any] | None = None) -> list[str]:
    """What the last answer has to say of itself."""
    async with server() as (double, provider):
        double.listed = [{**double.listed[0], **(listed or {})}]
        events: list[ProviderEvent] = []
        for number, step in enumerate(steps):
            double.enqueue(step)
            await provider.prepare()
            events = await collect(provider, ask(*texts[: 2 * number + 1]))
        return [event.text for event in events if isinstance(event, Notice)]


@pytest.mark.report("https://github.com/itayinbarr/little-coder/issues/128")
@pytest.mark.report("https://github.com/ollama/ollama/issues/17427")
@pytest.mark.parametrize("read", [2050, 1026, 300])
async def test_a_usage_far_below_what_was_sent_is_said(read: int) -> None:
    (said,) = await notices(counted(read))
    assert f"{read:,} tokens" in said and "left out" in said


@pytest.mark.parametrize(
    "usage",
    [
        {"read": 0},
        {"read": 12},
        {"read": 5600},
        {"read": 300, "prompt_tokens_details": {"cached_tokens": 5300}},
        {"read": 300, "prompt_cache_hit_tokens": 5300},
        {"read": 300, "cache_read_input_tokens": 5300},
        {"read": 5600, "prompt_tokens_details": {"cached_tokens": 5000}},
    ],
)
async def test_a_usage_that_may_be_right_is_not(usage: dict[str, Any]) -> None:
    assert await notices(counted(usage.pop("read"), **usage)) == []


async def test_a_server_that_counts_only_what_is_new_is_not_accused() -> None:
    assert await notices(counted(5600), counted(60), texts=(LONG, "ok", "And now?")) == []
    assert len(await notices(counted(5600), counted(1026), texts=(LONG, "ok", f"And {LONG}"))) == 1


async def test_half_of_ollamas_window_is_what_it_leaves_of_a_prompt() -> None:
    numbers = " ".join(str(n * 7919 % 997) for n in range(900))
    assert len(await notices(counted(2050), texts=(numbers,), listed={"owned_by": "library"})) == 1
    assert await notices(counted(2050), texts=(numbers,)) == []
