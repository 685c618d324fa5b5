"""Claude models: the contract of every provider, and what only their API does."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from tarsd.errors import (
    AnswerCut,
    ContextTooLong,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
)
from tarsd.providers import anthropic
from tarsd.providers.anthropic import AnthropicProvider
from tarsd.providers.base import (
    Message,
    ModelInfo,
    ModelRequest,
    Notice,
    ProviderEvent,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
    ToolSpec,
    Usage,
)
from tests.support.doubles.anthropic import AnthropicDouble, Block, Pieces, Stop, model
from tests.support.doubles.script import Call, Cut, Fail, Raw, Say, Think
from tests.support.doubles.server import Call as HttpCall
from tests.support.doubles.server import Reply
from tests.support.provider_contract import (
    KEY,
    LOOKUP,
    ProviderContract,
    Silence,
    always,
    ask,
    calls_in,
    collect,
    dead_url,
    done_in,
    eventually,
    text_of,
    thought_in,
    until_error,
)


def event(name: str, **data: Any) -> Raw:
    return Raw(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())


@asynccontextmanager
async def talk(*steps: Any) -> AsyncIterator[tuple[AnthropicDouble, AnthropicProvider]]:
    """A stand-in that answers its first request with `steps`, and a provider for it."""
    with AnthropicDouble() as double:
        if steps:
            double.enqueue(*steps)
        provider = AnthropicProvider(double.model, base_url=double.url, key=KEY)
        try:
            yield double, provider
        finally:
            await provider.close()


async def test_a_server_that_reads_only_a_part_of_the_prompt_is_told() -> None:
    long = ask("How is it?", system="The harbour lies in fog. " * 400)
    told_counts = {"input_tokens": 300, "cache_creation_input_tokens": 0, "output_tokens": 3}
    counted = event("message_delta", delta={"stop_reason": "end_turn"}, usage=told_counts)
    async with talk(Say("Foggy."), counted) as (_, provider):
        events = await collect(provider, long)
    told = [one.text for one in events if isinstance(one, Notice)]
    assert len(told) == 1 and "read only about 300 tokens" in told[0]


async def test_a_reply_that_went_into_reasoning_is_asked_for_again_with_room() -> None:
    async with talk(Think("Let me see … " * 20), Stop("max_tokens")) as (double, provider):
        double.enqueue(Say("Forty-two."))
        events = await collect(provider, replace(ask("What is it?"), max_tokens=50))
        asked = [call.body["max_tokens"] for call in double.calls if call.method == "POST"]
    assert text_of(events) == "Forty-two."
    assert asked[0] == 50 and asked[1] > 1000


def follow(request: ModelRequest, events: list[ProviderEvent], *answers: str) -> ModelRequest:
    """The next request of the same turn."""
    calls, done = calls_in(events), done_in(events)
    assert done is not None and len(calls) == len(answers)
    said = Message("assistant", text_of(events), calls=tuple(calls), raw=done.raw)
    results = (
        Message("tool", answer, call_id=call.id, name=call.name) for call, answer in zip(calls, answers, strict=True)
    )
    return replace(request, messages=(*request.messages, said, *results))


class TestAnthropic(ProviderContract):
    too_long: ClassVar[Fail] = Fail(400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error")
    overloaded: ClassVar[Fail] = Fail(529, "Overloaded", "overloaded_error")
    garbage: ClassVar[bytes] = b"event: content_block_delta\ndata: {nonsense\n\n"

    def double(self) -> AnthropicDouble:
        return AnthropicDouble()

    def make(self, url: str, model: str, *, silence_s: float = 60.0) -> AnthropicProvider:
        return AnthropicProvider(model, base_url=url, key=KEY, silence_s=silence_s)

    async def models(self, url: str) -> list[ModelInfo]:
        return await anthropic.models(base_url=url, key=KEY)

    async def test_window_and_tools_are_known_after_prepare(self) -> None:
        async with self.talk() as (_, provider):
            assert provider.window == 500_000 and provider.tools is True
            assert provider.local is False, "what listens on this machine passes the text on"
            assert provider.name == f"anthropic:{AnthropicDouble.model}"
            assert provider.quotes is False


# ------------------------------------------------------------------------------------------------ what is sent


async def test_a_request_holds_no_more_than_it_has_to() -> None:
    async with talk() as (double, provider):
        await collect(provider, ask("hello", system=""))
        (call,) = double.calls
    assert call.body == {
        "model": double.model,
        "max_tokens": 2048,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        "stream": True,
    }
    assert call.headers["authorization"] == f"Bearer {KEY}"


async def test_a_reply_is_never_asked_for_longer_than_the_model_gives() -> None:
    async with talk() as (double, provider):
        await provider.prepare()
        await collect(provider, replace(ask("hello"), max_tokens=100_000))
    assert double.requests[0]["max_tokens"] == 64_000


async def test_the_results_of_a_round_are_in_one_message_before_anything_else() -> None:
    calls = (ToolCall("a:1", "lookup", {"town": "Oslo"}), ToolCall("", "lookup", {"town": "Bergen"}))
    messages = (
        Message("user", "weather?"),
        Message("assistant", "Let me see.", calls=calls),
        Message("tool", "sun", call_id="a:1", name="lookup"),
        Message("tool", "gone", call_id="", name="lookup", failed=True),
        Message("user", "And hurry."),
    )
    async with talk() as (double, provider):
        assert done_in(await collect(provider, ModelRequest("", messages, tools=(LOOKUP,)))) is not None
    first, said, answers = double.requests[0]["messages"]
    assert first["role"] == answers["role"] == "user"
    assert [block["type"] for block in said["content"]] == ["text", "tool_use", "tool_use"]
    ids = [block["id"] for block in said["content"][1:]]
    assert ids[0] == "a_1" and ids[1]
    assert [(block["tool_use_id"], block["content"]) for block in answers["content"][:2]] == [
        (ids[0], "sun"),
        (ids[1], "gone"),
    ]
    assert [block.get("is_error", False) for block in answers["content"][:2]] == [False, True]
    assert answers["content"][2]["text"] == "And hurry."


async def test_a_call_that_was_never_answered_and_an_answer_to_no_call_are_taken() -> None:
    calls = (ToolCall("x", "lookup", {}), ToolCall("y", "lookup", {}))
    messages = (
        Message("user", "weather?"),
        Message("assistant", "", calls=calls),
        Message("tool", "sun", call_id="y", name="lookup"),
        Message("tool", "what was that?", call_id="z", name="lookup"),
        Message("assistant", ""),
        Message("user", "well?"),
        Message("assistant", "", calls=(ToolCall("x", "lookup", {}),)),
        Message("tool", "rain", call_id="x", name="lookup"),
    )
    async with talk() as (double, provider):
        assert text_of(await collect(provider, ModelRequest("", messages, tools=(LOOKUP,)))) == "ok"
    sent = json.dumps(double.requests[0])
    assert "not made" in sent and "what was that?" in sent


async def test_another_providers_own_form_of_a_message_is_not_sent() -> None:
    raw = {"role": "assistant", "content": "in another tongue"}
    async with talk() as (double, provider):
        messages = (Message("user", "a"), Message("assistant", "as text", raw=raw), Message("user", "b"))
        await collect(provider, ModelRequest("", messages))
    assert "as text" in json.dumps(double.requests[0]) and "another tongue" not in json.dumps(double.requests[0])


async def test_text_that_is_no_text_is_sent_all_the_same() -> None:
    async with talk() as (_, provider):
        assert text_of(await collect(provider, ask("half a pair \ud83d", system="\udc00"))) == "ok"


async def test_a_schema_that_the_server_refuses_is_made_simpler() -> None:
    schema = {"properties": {"a": {"anyOf": [{"type": "string"}]}}, "anyOf": [{"required": ["a"]}]}
    async with talk() as (double, provider):
        assert text_of(await collect(provider, ask("x", tools=(ToolSpec("t", "", schema),)))) == "ok"
    assert double.requests[0]["tools"][0]["input_schema"] == {"type": "object", "properties": schema["properties"]}


async def test_the_last_round_without_tools_may_look_back_at_calls() -> None:
    async with talk(Call("lookup", {"town": "Oslo"})) as (double, provider):
        request = ask("weather?", tools=(LOOKUP,))
        events = await collect(provider, request)
        last = replace(follow(request, events, "sun"), tools=())
        assert text_of(await collect(provider, last)) == "ok"
    assert double.requests[1]["tool_choice"] == {"type": "none"}


# ------------------------------------------------------------------------------------------------ the cache


async def test_rounds_and_turns_read_what_was_sent_before_from_the_cache() -> None:
    rules = "Answer only from the notes. " * 50

    async def used(provider: AnthropicProvider, request: ModelRequest) -> tuple[list[ProviderEvent], Usage]:
        events = await collect(provider, request)
        (usage,) = [one for one in events if isinstance(one, Usage)]
        return events, usage

    async with talk(Call("lookup", {"town": "Oslo"})) as (double, provider):
        request = ask("a", "b", "weather? " * 50, tools=(LOOKUP,), system=rules)
        events, first = await used(provider, request)
        double.enqueue(Call("lookup", {"town": "Bergen"}))
        request = follow(request, events, "sun")
        events, second = await used(provider, request)
        request = follow(request, events, "rain")
        _, third = await used(provider, request)
        turn = ask("a", "b", "weather?", "Sun in Oslo.", "And tomorrow?", tools=(LOOKUP,), system=rules)
        _, fourth = await used(provider, turn)
    assert first.cached_tokens == 0
    assert second.cached_tokens > len(rules) / 4, "tools, rules and history"
    assert third.cached_tokens > second.cached_tokens, "the round before as well"
    assert second.cached_tokens == fourth.cached_tokens, "the history of a turn serves the next one"
    assert all(one.input_tokens > one.cached_tokens for one in (second, third, fourth))


# ------------------------------------------------------------------------------------------------ what comes


async def test_signed_reasoning_goes_back_unchanged() -> None:
    hidden = Block({"type": "redacted_thinking", "data": "EmwKAhgB"})
    steps = (Think("they mean the\n cat  "), hidden, Say("Let me look."), Call("lookup", {"town": "Tromsø"}))
    async with talk(*steps) as (double, provider):
        request = ask("where?", tools=(LOOKUP,))
        events = await collect(provider, request)
        assert thought_in(events) == "they mean the\n cat  "
        assert text_of(await collect(provider, follow(request, events, "north"))) == "ok", "else it is refused"
    kinds = [block["type"] for block in double.requests[1]["messages"][1]["content"]]
    assert kinds == ["thinking", "redacted_thinking", "text", "tool_use"]


async def test_blank_text_beside_a_call_is_not_sent_back() -> None:
    async with talk(Say("\n\n"), Call("lookup")) as (_, provider):
        request = ask("where?", tools=(LOOKUP,))
        events = await collect(provider, request)
        assert text_of(await collect(provider, follow(request, events, "north"))) == "ok"


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("reason_of_next_year", "stop"),
        ("tool_use", "stop"),
    ],
)
async def test_every_end_has_a_meaning(reason: str, end: str) -> None:
    async with talk(Say("so far"), Stop(reason)) as (_, provider):
        events = await collect(provider, ask("go"))
    assert text_of(events) == "so far"
    assert isinstance(events[-1], StreamEnd) and (events[-1].stop_reason, events[-1].raw) == (end, None)


async def test_a_refusal_tells_its_reason_when_it_has_one() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "This could do harm."}
    async with talk(Stop("refusal", details)) as (_, provider):
        events = await collect(provider, ask("go"))
    assert Notice("This could do harm.") in events and events[-1] == StreamEnd("refusal")


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
async def test_no_call_is_made_that_was_cut_or_refused(reason: str) -> None:
    async with talk(Call("lookup", {"town": "Oslo"}), Stop(reason)) as (_, provider):
        assert not calls_in(await collect(provider, ask("go", tools=(LOOKUP,))))


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "reason_of_next_year"])
async def test_a_whole_call_is_made_whatever_the_end_is_called(reason: str) -> None:
    async with talk(Say("Let "), Call("lookup", {"town": "Oslo"}), Stop(reason)) as (_, provider):
        request = ask("go", tools=(LOOKUP,))
        events = await collect(provider, request)
        assert [dict(call.arguments) for call in calls_in(events)] == [{"town": "Oslo"}]
        assert text_of(await collect(provider, follow(request, events, "sun"))) == "ok"


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence"])
async def test_a_call_in_pieces_is_not_made_without_its_end(reason: str) -> None:
    async with talk(Say("Let "), Pieces("lookup", ['{"town": "Os']), Stop(reason)) as (_, provider):
        events = await collect(provider, ask("go", tools=(LOOKUP,)))
    assert not calls_in(events) and events[-1] == StreamEnd("stop")


@pytest.mark.parametrize("cut", [Cut(), Cut(abort=True), Fail(529, "Overloaded", "overloaded_error")])
@pytest.mark.parametrize("pieces", [("",), ('{"town": "Os',), ('{"town": "Oslo"}',)])
async def test_a_cut_within_a_call_makes_no_call(pieces: tuple[str, ...], cut: Cut | Fail) -> None:
    events: list[ProviderEvent] = []
    async with talk(Say("Let "), Pieces("lookup", pieces, finished=False), cut) as (_, provider):
        with contextlib.suppress(ProviderError):
            async for one in provider.stream(ask("go", tools=(LOOKUP,))):
                events.append(one)
    assert text_of(events) == "Let " and not calls_in(events) and done_in(events) is None


@pytest.mark.parametrize("text", ['{"town": ', "[1]", "null", "[" * 100_000])
async def test_arguments_that_make_no_sense_are_told_and_can_be_answered(text: str) -> None:
    async with talk(Pieces("lookup", [text])) as (_, provider):
        request = ask("go", tools=(LOOKUP,))
        events = await collect(provider, request)
        (call,) = calls_in(events)
        assert call.problem and call.arguments == {}
        assert text_of(await collect(provider, follow(request, events, "That was no JSON."))) == "ok"


async def test_a_call_that_comes_in_one_piece_is_read() -> None:
    whole = {"type": "tool_use", "id": "toolu_x", "name": "lookup", "input": {"town": "Oslo"}}
    async with talk(Block(whole), Stop("tool_use")) as (_, provider):
        (call,) = calls_in(await collect(provider, ask("go", tools=(LOOKUP,))))
    assert call == ToolCall("toolu_x", "lookup", {"town": "Oslo"})


TEA: dict[str, Any] = {"query": "tea"}
TWICE: list[tuple[int, str]] = [(0, "toolu_1"), (0, "toolu_2")]


@pytest.mark.parametrize("places", [TWICE, [(1, "toolu_1"), (0, "toolu_2")], [(0, "toolu_1"), (7, "toolu_2")]])
async def test_calls_are_found_whatever_their_numbers_are(places: list[tuple[int, str]]) -> None:
    steps: list[Raw] = []
    for number, (index, id) in enumerate(places):
        block = {"type": "tool_use", "id": id, "name": LOOKUP.name, "input": {}}
        steps += [
            event("content_block_start", index=index, content_block=block),
            event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": '{"query": '}),
            event(
                "content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": f'"{number}"}}'}
            ),
            event("content_block_stop", index=index),
        ]
    async with talk(*steps, Stop("tool_use")) as (_, provider):
        made = calls_in(await collect(provider, ask("go", tools=(LOOKUP,))))
    assert [(call.id, call.arguments) for call in made] == [("toolu_1", {"query": "0"}), ("toolu_2", {"query": "1"})]


def unnamed(*events: dict[str, Any]) -> bytes:
    """Events without the lines that name them."""
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in events)


SAID = {"type": "text", "text": "Well [1]."}
ASKED = {"type": "tool_use", "id": "toolu_1", "name": LOOKUP.name, "input": TEA}
STREAMED = (
    {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": SAID},
    {"type": "content_block_start", "index": 1, "content_block": ASKED},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)
WHOLE = {
    "type": "message", "role": "assistant", "content": [SAID, ASKED], "stop_reason": "tool_use",
    "usage": {"input_tokens": 3, "output_tokens": 5},
}  # fmt: skip


@pytest.mark.parametrize("label", ["text/event-stream", "application/json", "text/plain"])
@pytest.mark.parametrize(
    "body",
    [
        unnamed(*STREAMED),
        unnamed(*STREAMED).replace(b"\n", b"\r\n"),
        json.dumps(WHOLE).encode(),
        json.dumps(WHOLE, indent=2).encode(),
        unnamed(WHOLE),
        b"\n".join(json.dumps(one).encode() for one in STREAMED),
    ],
    ids=["no names", "CRLF", "one object", "indented", "one event", "lines"],
)
async def test_an_answer_is_read_whatever_it_is_called(body: bytes, label: str) -> None:
    async with talk() as (double, provider):
        always(double, Reply(stream=[body], content_type=label))
        events = await collect(provider, ask("go", tools=(LOOKUP,)))
    assert text_of(events) == "Well [1]." and [call.arguments for call in calls_in(events)] == [TEA]
    done = done_in(events)
    assert done is not None and done.stop_reason == "tools" and Usage(3, 5) in events


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty answer"),
        (unnamed(STREAMED[0], STREAMED[-1]), "empty answer"),
        (b'event: ping\ndata: {"type": "ping"}\n\n', "empty answer"),
        (b"<!doctype html><title>Welcome</title>", "web page"),
        (b"Internal error\n", "invalid answer"),
    ],
)
async def test_what_is_no_answer_is_told(body: bytes, said: str) -> None:
    async with talk() as (double, provider):
        always(double, Reply(stream=[body], content_type="text/event-stream"))
        _, told = await until_error(provider, ask("go"))
    assert said in told.message and told.hint


@pytest.mark.parametrize("named", [True, False])
async def test_an_error_within_the_stream_is_told_as_what_it_is(named: bool) -> None:
    fault = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    body = unnamed(*STREAMED[:2]) + (b"event: error\n" if named else b"") + unnamed(fault)
    async with talk() as (double, provider):
        always(double, Reply(stream=[body], content_type="text/event-stream"))
        events, told = await until_error(provider, ask("go"))
    assert isinstance(told, ProviderBusy) and text_of(events) == "Well [1]."


async def test_a_model_that_pauses_is_asked_to_go_on() -> None:
    async with talk(Think("long"), Say("one "), Stop("pause_turn")) as (double, provider):
        double.enqueue(Say("two "), Stop("pause_turn"))
        double.enqueue(Say("three"), Call("lookup", {"town": "Oslo"}))
        request = ask("count", tools=(LOOKUP,))
        events = await collect(provider, request)
        assert text_of(events) == "one two three"
        assert [one.stop_reason for one in events if isinstance(one, StreamEnd)] == ["tools"]
        assert text_of(await collect(provider, follow(request, events, "sun"))) == "ok"
    paused = double.requests[2]["messages"][-1]
    assert paused["role"] == "assistant" and [block["type"] for block in paused["content"]] == [
        "thinking",
        "text",
        "text",
    ]
    counts = [one for one in events if isinstance(one, Usage)]
    assert counts[0].input_tokens < counts[1].input_tokens < counts[2].input_tokens


@pytest.mark.parametrize("said", [Say("x"), Say(" ")])
async def test_a_model_that_pauses_for_ever_is_left(said: Say) -> None:
    async with talk() as (double, provider):
        for _ in range(20):
            double.enqueue(said, Stop("pause_turn"))
        events = await collect(provider, ask("go"))
    assert events[-1] == StreamEnd("length") and len(double.requests) < 10


async def test_what_nobody_knows_yet_is_passed_over() -> None:
    steps = (
        event("brand_new_event", foo=1),
        Say("all "),
        event("content_block_delta", index=0, delta={"type": "novel_delta", "x": 1}),
        event("content_block_delta", index=7, delta={"type": "citations_delta", "citation": {"type": "char_location"}}),
        Raw(b": a comment\n\n"),
        Say("well"),
        Block({"type": "novel_block", "x": {"y": 1}}),
    )
    async with talk(*steps) as (_, provider):
        events = await collect(provider, ask("go"))
    assert text_of(events) == "all well" and done_in(events) == StreamEnd("stop")


@pytest.mark.parametrize(
    "broken",
    [
        event("content_block_start", index=0, content_block="text"),
        event("content_block_delta", index=0, delta=None),
        event("content_block_delta", index=0, delta={"type": "text_delta"}),
        event("message_delta", usage={"output_tokens": "many"}),
        Raw(b"event: message_delta\ndata: []\n\n"),
        Raw(b"event: message_delta\ndata: \xff\xfe\n\n"),
    ],
)
async def test_events_of_the_wrong_shape_cut_the_answer(broken: Raw) -> None:
    async with talk(Say("half "), broken, Say("whole")) as (_, provider):
        events, error = await until_error(provider, ask("go"))
    assert isinstance(error, AnswerCut) and text_of(events) == "half "


async def test_half_a_letter_does_no_harm() -> None:
    half = Raw(
        b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, '
        b'"delta": {"type": "text_delta", "text": "x\\ud83d"}}\n\n'
    )
    async with talk(Say("a"), half) as (_, provider):
        text = text_of(await collect(provider, ask("go")))
    assert (text, text.encode()) == ("ax\ufffd", b"ax\xef\xbf\xbd")


async def test_a_server_that_keeps_the_connection_open_does_not_hold_the_answer_up() -> None:
    end = (event("message_delta", delta={"stop_reason": "end_turn"}, usage={}), event("message_stop"))
    async with talk(Say("done"), *end, Say("never", pause=600)) as (_, provider):
        assert done_in(await collect(provider, ask("go"))) == StreamEnd("stop")


# ------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("fail", "kind"),
    [
        (Fail(402, "pay", "billing_error"), ProviderRefused),
        (Fail(400, "Your credit balance is too low to access the API.", "invalid_request_error"), ProviderRefused),
        (Fail(429, "spent", "rate_limit_error:enforced_spend_limit_reached"), ProviderRefused),
        (Fail(429, "spent", "rate_limit_error:contract_spend_limit_reached"), ProviderRefused),
        (Fail(429, "slower", "rate_limit_error:ramp_limit_exceeded"), ProviderBusy),
        (Fail(503, "later", "api_error"), ProviderBusy),
        (Fail(529, "Overloaded", "overloaded_error"), ProviderBusy),
        (Fail(403, "not for you", "permission_error"), ProviderRefused),
        (Fail(413, "Request exceeds the maximum size", "request_too_large"), ContextTooLong),
        (Fail(400, "input length and `max_tokens` exceed context limit: 1 + 2 > 2", "x"), ContextTooLong),
        (Fail(400, "tools.0.name: too long", "invalid_request_error"), ProviderRefused),
        (Fail(504, "slow", "timeout_error"), ProviderUnreachable),
        (Fail(500, "broken", "api_error"), ProviderError),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
async def test_failures_are_told_apart(fail: Fail, kind: type[ProviderError], begun: bool) -> None:
    by_type = fail.kind.partition(":")[0] not in ("x", "request_too_large") and fail.status != 503
    if begun and not by_type:
        return  # in a stream there is no status
    async with talk(*(Say("half "),) * begun, fail) as (_, provider):
        events, error = await until_error(provider, ask("go"))
    assert type(error) is kind and error.hint
    assert text_of(events) == "half " * begun


async def test_the_key_is_not_shown_even_when_the_server_repeats_it() -> None:
    async with talk(Fail(400, f"bad {KEY}" + "x" * 5000, "invalid_request_error")) as (_, provider):
        _, error = await until_error(provider, ask("go"))
    assert KEY not in str(error) and "bad …" in error.message and len(error.message) < 400
    assert KEY not in repr(vars(provider))


@pytest.mark.parametrize("key", [None, "", "sk-\nx", "ключ"])
async def test_without_a_key_that_can_be_sent_nothing_is_asked(key: str | None) -> None:
    with AnthropicDouble() as double:
        provider = AnthropicProvider(double.model, base_url=double.url, key=key)
        for refused in (
            provider.prepare(),
            anext(provider.stream(ask("go"))),
            anthropic.models(base_url=double.url, key=key),
        ):
            with pytest.raises(ProviderRefused) as error:
                await refused
            assert "tarsd key set anthropic" in error.value.hint
        assert not double.calls


async def test_a_bad_key_is_told_before_the_first_question() -> None:
    async with talk() as (double, provider):
        double.key = "another"
        with pytest.raises(ProviderRefused):
            await provider.prepare()
        with pytest.raises(ProviderRefused):
            await anthropic.models(base_url=double.url, key=KEY)


async def test_the_question_does_not_follow_a_redirect() -> None:
    async with talk() as (double, provider):
        with AnthropicDouble() as other:
            always(double, Reply(status=307, headers={"location": f"{other.url}/v1/messages"}))
            _, error = await until_error(provider, ask("go"))
            assert not other.calls and error.message


# ------------------------------------------------------------------------------------------------ models


async def test_all_pages_of_the_models_are_read() -> None:
    with AnthropicDouble() as double:
        listed = await anthropic.models(base_url=double.url + "/v1/", key=KEY)
    assert listed == [
        ModelInfo("anthropic:claude-opus-5-5", local=False, context=1_000_000, tools=True),
        ModelInfo("anthropic:claude-sonnet-5-5", local=False, context=500_000, tools=True),
        ModelInfo("anthropic:claude-haiku-4-5", local=False, context=0, tools=True, note="deprecated"),
    ]


async def test_pages_without_end_are_left() -> None:
    with AnthropicDouble() as double:
        always(double, Reply(json={"data": [model("m")], "has_more": True, "first_id": "m", "last_id": "m"}))
        assert [one.id for one in await anthropic.models(base_url=double.url, key=KEY)] == ["anthropic:m"]


@pytest.mark.parametrize("answer", ["<html>", ["x"], {"data": ["x", {"id": 5}]}, {"data": "x"}, {}])
async def test_a_list_of_the_wrong_shape_is_told_or_empty(answer: Any) -> None:
    with AnthropicDouble() as double:
        always(double, Reply(json=answer))
        with contextlib.suppress(ProviderError):
            assert await anthropic.models(base_url=double.url, key=KEY) == []
        provider = AnthropicProvider("m", base_url=double.url, key=KEY)
        await provider.prepare()
        await provider.close()


async def test_a_server_without_a_list_is_used_all_the_same() -> None:
    async with talk() as (double, provider):
        double.lists = False
        await provider.prepare()
        await provider.prepare()
        assert provider.window == 200_000 and len(double.calls) == 1, "asked once"
        assert text_of(await collect(provider, ask("go"))) == "ok"
        assert await anthropic.models(base_url=double.url, key=KEY) == []


@pytest.mark.parametrize("status", [403, 404, 429, 500, 529])
async def test_a_list_that_fails_does_not_stop_the_question(status: int) -> None:
    async with talk() as (double, provider):
        answer = double.reply

        def reply(call: HttpCall) -> Reply:
            return answer(call) if call.method == "POST" else Reply(json="no", status=status)

        double.reply = reply  # type: ignore[method-assign]
        await provider.prepare()
        assert text_of(await collect(provider, ask("go"))) == "ok"


async def test_a_list_that_says_nothing_does_not_stop_the_question() -> None:
    silence = Silence()
    async with silence() as url:
        provider = AnthropicProvider("m", base_url=url, key=KEY, silence_s=0.2)
        await provider.prepare()
        assert provider.window == 200_000
        await eventually(lambda: silence.left == silence.asked)
        await provider.close()


async def test_no_server_is_told_before_the_first_question() -> None:
    provider = AnthropicProvider("m", base_url=dead_url(), key=KEY)
    with pytest.raises(ProviderUnreachable):
        await provider.prepare()
    await provider.close()


async def test_the_window_is_asked_for_once() -> None:
    async with talk() as (double, provider):
        await asyncio.gather(provider.prepare(), provider.prepare())
        count = len(double.calls)
        await provider.prepare()
        assert len(double.calls) == count and provider.window == 500_000


# ------------------------------------------------------------------------------------------------ the stand-in itself


async def test_the_stand_in_counts_tokens_and_says_how_to_be_used() -> None:
    with AnthropicDouble() as double:
        assert double.model in double.config() and double.url in double.config()
        assert set(double.env()) == {"TARSD_ANTHROPIC_KEY"}
        reply = double.reply(
            HttpCall("POST", "/v1/messages/count_tokens", {}, {"authorization": "Bearer x"}, {"messages": []})
        )
        assert reply.json["input_tokens"] > 0


async def test_pieces_of_text_and_of_reasoning_keep_their_order() -> None:
    async with talk(Think("a"), Say("b "), Think("c"), Say("d")) as (_, provider):
        events = await collect(provider, ask("go"))
    assert [one for one in events if isinstance(one, Text | Thinking)] == [
        Thinking("a"),
        Text("b "),
        Thinking("c"),
        Text("d"),
    ]
