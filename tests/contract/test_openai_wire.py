"""Streams and errors of OpenAI's format, in every shape that its servers give them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tarsd.providers.base import (
    Message,
    ModelRequest,
    ProviderEvent,
    Retract,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
)
from tarsd.providers.openai_wire import StreamDecoder, StreamFailure, messages
from tarsd.upstream import fault
from tests.support.provider_contract import calls_in, done_in, text_of, thought_in


def read(*deltas: Mapping[str, Any], finish: str = "stop") -> list[ProviderEvent]:
    """The events of a stream of these deltas."""
    reader = StreamDecoder()
    events: list[ProviderEvent] = []
    for delta in deltas:
        events += reader.feed({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    events += reader.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [*events, *reader.end()]


def piece(name: str | None = None, arguments: object = None, **more: object) -> dict[str, Any]:
    """A delta with a piece of a call."""
    return {"tool_calls": [{**more, "function": {"name": name, "arguments": arguments}}]}


def called(events: Iterable[ProviderEvent]) -> list[tuple[str, dict[str, Any]]]:
    """Names and arguments of the calls, all of them faultless."""
    calls = calls_in(events)
    assert not any(call.problem for call in calls)
    assert len({call.id for call in calls}) == len(calls), "ids are unique"
    return [(call.name, dict(call.arguments)) for call in calls]


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([piece("t", "", index=0, id="a"), piece(None, '{"x"', index=0), piece(None, ": 1}", index=0)], [{"x": 1}]),
        ([piece("t", '{"x": 1}', id="a"), piece("t", '{"x": 2}', id="b")], [{"x": 1}, {"x": 2}]),
        ([piece("t", '{"x"', id="a"), piece(None, ": 1}")], [{"x": 1}]),
        ([piece("t", '{"x": 1}', index=0, id="a"), piece("t", '{"x": 2}', index=0, id="b")], [{"x": 1}, {"x": 2}]),
        (
            [
                piece("t", "", index=0, id="a"),
                piece("t", "", index=1, id="b"),
                piece(None, '{"x": 1}', index=0),
                piece(None, '{"x": 2}', index=1),
            ],
            [{"x": 1}, {"x": 2}],
        ),
        ([piece("t", {"x": 1}, index=0)], [{"x": 1}]),
        ([piece("t", '"{\\"x\\": 1}"', index=0)], [{"x": 1}]),
        ([piece("t", '{"x": "a\nb"}', index=0)], [{"x": "a\nb"}]),
        ([piece("t", None, index=0, id="a")], [{}]),
        ([piece("t", "null", index=0, id="a")], [{}]),
        ([piece("t", '{"x": 1}', index=0, id=None), piece("t", '{"x": 2}', index=1, id=None)], [{"x": 1}, {"x": 2}]),
        ([piece("t", '{"x": 1}', index=0, id="a"), piece("t", '{"x": 2}', index=1, id="a")], [{"x": 1}, {"x": 2}]),
        ([piece("t", "", index=0, id="a"), piece("t", '{"x": 1}', index=0, id="a")], [{"x": 1}]),
        ([piece("t", '{"x": 1}', index=0), piece("t", '{"x": 2}', index=0)], [{"x": 1}, {"x": 2}]),
        ([piece("t", '{"x": 1}'), piece("t", '{"x": 2}')], [{"x": 1}, {"x": 2}]),
        ([piece("t", '{"x": 1}', index=0, id="a"), piece("t", '{"x": 2}', index=0, id="a")], [{"x": 1}, {"x": 2}]),
        (
            [
                piece("t", "", index=0, id="a"),
                piece("t", "", index=0, id="b"),
                piece(None, '{"x": 1}', index=0, id="a"),
                piece(None, '{"x": 2}', index=0, id="b"),
            ],
            [{"x": 1}, {"x": 2}],
        ),
        ([piece("t", "{}", index=0, id="a"), piece(None, '{"x"', index=0), piece(None, ": 1}", index=0)], [{"x": 1}]),
        ([piece("t", {}, index=0, id="a"), piece("t", {"x": 1}, index=0, id="a")], [{"x": 1}]),
        ([piece("t", "{}", index=0), piece("t", '{"x": 1}', index=0, id="a")], [{"x": 1}]),
        ([piece("t", "{}", index=0, id="a"), piece("t", "{}", index=0, id="b")], [{}, {}]),
        ([piece("t", '{"x": 1}', index=0, id="a"), piece("t", '{"x": 1}', index=0, id="a")], [{"x": 1}]),
        ([piece("t", '{"x"', index=0, id="a"), piece(None, ": 1}", index=0, id="b")], [{"x": 1}]),
        (
            [piece("t", "", index=0, id="a"), piece("", '{"x": 1}', index=0), piece("", '{"x": 2}', index=0)],
            [{"x": 1}, {"x": 2}],
        ),
        (
            [
                piece("t", '{"x": 1}', index=0, id="a"),
                piece(None, '{"x"', index=0),
                piece(None, ": 2}", index=0),
                piece(None, '{"x": 3}', index=0),
            ],
            [{"x": 1}, {"x": 2}, {"x": 3}],
        ),
        (
            [piece("t", '{"x": {"y"', index=0), piece(None, ": 1}", index=0), piece(None, "}", index=0)],
            [{"x": {"y": 1}}],
        ),
        ([{"function_call": {"name": "t", "arguments": '{"x"'}}, {"function_call": {"arguments": ": 1}"}}], [{"x": 1}]),
    ],
    ids=[
        "in pieces",
        "no index",
        "no index in pieces",
        "all 0",
        "mixed",
        "an object",
        "wrapped twice",
        "raw line end",
        "nothing",
        "null",
        "no ids",
        "one id for all",
        "name repeated",
        "one number, no ids",
        "neither number nor ids",
        "one number and one id",
        "one number, ids tell",
        "placeholder, pieces",
        "placeholder, objects",
        "placeholder, id later",
        "two without arguments",
        "told twice",
        "fresh id for each piece",
        "one number, no other mark",
        "one number, no other mark, in pieces",
        "an object in an object",
        "the old way",
    ],
)
def test_calls_are_put_together_however_they_come(deltas: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    for finish in ("tool_calls", "stop", "function_call"):
        events = read(*deltas, finish=finish)
        assert called(events) == [("t", arguments) for arguments in expected]
        assert isinstance(done := events[-1], StreamEnd) and done.stop_reason == "tools"


@pytest.mark.parametrize("arguments", ['{"x": 1}', {"x": 1}, "{}"])
def test_a_whole_call_is_made_without_an_announced_end(arguments: object) -> None:
    reader = StreamDecoder()
    events = list(reader.feed({"choices": [{"delta": piece("t", arguments, index=0, id="a")}]})) + list(reader.end())
    assert [name for name, _ in called(events)] == ["t"]
    assert isinstance(done := events[-1], StreamEnd) and done.stop_reason == "tools"


@pytest.mark.parametrize("arguments", ['{"x": ', "", None, '{"x": {"y": 1}'])
def test_half_a_call_without_an_announced_end_is_none(arguments: object) -> None:
    reader = StreamDecoder()
    events = list(reader.feed({"choices": [{"delta": piece("t", arguments, index=0, id="a")}]})) + list(reader.end())
    assert calls_in(events) == [] and done_in(events) is None


SIGNED = {"google": {"thought_signature": "c2ln"}}


@pytest.mark.parametrize(
    "deltas",
    [
        [piece("t", '{"x": 1}', index=0, id="a", extra_content=SIGNED), piece("t", "{}", index=1, id="b")],
        [
            piece("t", "", index=0, id="a"),
            piece(None, '{"x": 1}', index=0, extra_content=SIGNED),
            piece("t", "{}", index=1, id="b"),
        ],
        [piece("t", '{"x": 1}', index=0, id="a", extra_content=SIGNED), piece("t", "{}", index=0, id="b")],
    ],
    ids=["whole", "on a later piece", "all 0"],
)
def test_what_we_do_not_know_of_a_call_or_message_goes_back_as_it_came(deltas: list[dict[str, Any]]) -> None:
    first, second = {"type": "x", "data": "1"}, {"type": "x", "data": "2"}
    pieces: list[dict[str, Any]] = [
        {"content": "so", "reasoning_details": [first], "audio": None},
        {"reasoning_details": [second]},
    ]
    done = done_in(read(*pieces, *deltas))
    assert done is not None
    message = done.raw.message
    assert message["reasoning_details"] == [first, second] and "audio" not in message
    signed, plain = message["tool_calls"]
    assert signed["extra_content"] == SIGNED and set(plain) == {"id", "type", "function"}


def test_ids_that_a_server_gives_again_are_told_apart() -> None:
    said: list[Message] = [Message("user", "q")]
    for query in ("a", "b", "c"):
        events = read(piece("t", json.dumps({"x": query}), index=0, id="call_0", extra_content={"sig": query}))
        (call,), done = calls_in(events), done_in(events)
        assert done is not None
        said += [Message("assistant", "", (call,), raw=done.raw), Message("tool", query, call_id=call.id, name="t")]
    sent = messages(ModelRequest("", tuple(said)))
    made = [(one["id"], one["extra_content"]) for message in sent for one in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert made == [("call_0", {"sig": "a"}), ("call_3_0", {"sig": "b"}), ("call_5_0", {"sig": "c"})]
    assert answered == [id for id, _ in made]
    assert messages(ModelRequest("", tuple(said))) == sent, "what was kept is not touched"


def test_a_name_may_come_in_pieces() -> None:
    assert called(read(piece("look", "", index=0, id="a"), piece("up", "{}", index=0))) == [("lookup", {})]


@pytest.mark.parametrize("arguments", ['{"x": ', "[1]", '"word"', "7", "{'x': 1}"])
def test_a_faulty_call_says_what_is_wrong_and_is_not_repeated_to_the_server(arguments: str) -> None:
    events = read(piece("t", arguments, index=0, id="a"))
    (call,) = calls_in(events)
    assert "arguments" in call.problem and dict(call.arguments) == {}
    done = done_in(events)
    assert done is not None and done.raw.message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_call_without_a_name_says_so() -> None:
    (call,) = calls_in(read(piece(None, "{}", index=0, id="a")))
    assert "names no tool" in call.problem


def test_a_reply_cut_in_the_middle_of_a_call_was_cut() -> None:
    events = read({"content": "Let me"}, piece("t", '{"x": ', index=0, id="a"), finish="length")
    assert calls_in(events) == [] and isinstance(events[-1], StreamEnd) and events[-1].stop_reason == "length"


@pytest.mark.parametrize(
    ("finish", "reason"), [("stop", "stop"), ("length", "length"), ("content_filter", "refusal"), ("eos", "stop")]
)
def test_why_it_ended_is_told(finish: str, reason: str) -> None:
    assert isinstance(done := read({"content": "x"}, finish=finish)[-1], StreamEnd) and done.stop_reason == reason


def test_a_refusal_is_text_and_told() -> None:
    events = read({"refusal": "I will not."})
    assert (
        text_of(events) == "I will not." and isinstance(events[-1], StreamEnd) and events[-1].stop_reason == "refusal"
    )


def test_text_and_calls_on_the_last_chunk_count() -> None:
    reader = StreamDecoder()
    events = [*reader.feed({"choices": [{"delta": {"content": "all", **piece("t", "{}")}, "finish_reason": "stop"}]})]
    events += reader.end()
    assert text_of(events) == "all" and called(events) == [("t", {})]


def test_reasoning_that_stands_in_both_fields_is_read_once() -> None:
    events = read({"reasoning": "hm", "reasoning_content": "hm"}, {"content": "yes"})
    assert (thought_in(events), text_of(events)) == ("hm", "yes")


def test_content_in_parts_is_read() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    events = read({"content": [thinking, {"type": "text", "text": "yes"}, None, {"type": "odd"}]})
    assert (thought_in(events), text_of(events)) == ("hm", "yes")


def test_reasoning_in_the_text_is_told_apart_and_not_sent_back() -> None:
    events = read({"content": "<think>hm"}, {"content": "</think>yes"})
    assert (thought_in(events), text_of(events)) == ("hm", "yes")
    events = read({"content": "they ask for "}, {"content": "x</think>"}, {"content": "yes"})
    assert any(isinstance(event, Retract) for event in events)
    done = done_in(events)
    assert done is not None and done.raw.message["content"] == "yes"


@pytest.mark.parametrize(
    "body",
    [
        {"detail": "Not authenticated"},
        {"detail": [{"msg": "Not authenticated", "loc": ["header"]}]},
        {"code": 1001, "message": "Not authenticated", "success": False},
        {"code": 500, "msg": "Not authenticated", "data": None},
    ],
)
def test_an_error_that_no_field_calls_so_is_one(body: dict[str, Any]) -> None:
    reader = StreamDecoder()
    assert list(reader.feed(body)) == [] and not reader.begun
    with pytest.raises(StreamFailure) as caught:
        reader.in_place()
    assert fault(0, caught.value.body).text == "Not authenticated"


def test_a_state_before_an_answer_is_no_error() -> None:
    reader = StreamDecoder()
    list(reader.feed({"status": "queued", "message": "You are third in line."}))
    events = list(reader.feed({"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]}))
    reader.in_place()
    assert text_of([*events, *reader.end()]) == "yes"


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None, "reasoning": 3}}], "usage": None},
        {"choices": [{"delta": {"content": 7, "tool_calls": [None, 3]}}], "usage": {"prompt_tokens": "many"}},
        {"choices": {"0": "x"}, "usage": 3},
    ],
)
def test_odd_chunks_say_nothing(chunk: dict[str, Any]) -> None:
    reader = StreamDecoder()
    assert list(reader.feed(chunk)) == []
    assert not any(isinstance(event, Text | Thinking | ToolCall | StreamEnd) for event in reader.end())


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("request (9001 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096),
        ("This model's maximum context length is 8192 tokens. However, you requested 9001 tokens", 8192),
        ("'max_tokens' is too large: 2048. This model's maximum context length is 4096 tokens and your request", 4096),
        ("the model is loaded with context length of only 4096 tokens, which is not enough", 4096),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", 0),
        ("Prompt is too long", 0),
        ("Please reduce the length of the messages or completion.", 0),
        ("the request exceeds the available context size. try increasing the context size", 0),
    ],
)
def test_overflows_are_known_by_their_words(text: str, window: int) -> None:
    found = fault(400, {"error": {"message": text}})
    assert found.kind == "too long" and found.window == window


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000.",
        "max_tokens is too large: 200000",
        "Invalid schema for function 'lookup'",
        "missing field messages",
        "",
    ],
)
def test_other_errors_are_no_overflows(text: str) -> None:
    assert fault(400, {"error": {"message": text}}).kind != "too long"
