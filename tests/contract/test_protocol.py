"""The words on the socket: strict reading, unbreakable writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd import protocol
from tarsd.errors import BadRequest
from tarsd.protocol import Event, decode, encode, query_number, read_event

READERS: list[Callable[[Mapping[str, Any]], object]] = [
    protocol.SearchRequest.read,
    protocol.RelatedRequest.read,
    protocol.WhyRequest.read,
    protocol.ReindexRequest.read,
    protocol.TurnRequest.read,
    protocol.ChatRequest.read,
    protocol.RenameRequest.read,
    protocol.Approval.read,
    protocol.WriteReport.read,
    protocol.RememberRequest.read,
    protocol.ForgetRequest.read,
    protocol.FeedbackRequest.read,
    protocol.ReviewDecisions.read,
]
FIELDS = [
    "query", "mode", "limit", "min_score", "filters", "path", "paths", "full", "conversation", "message", "notes",
    "selection", "writer", "request_id", "conversation_id", "title", "allow",
    "approvals", "always", "ok", "hash", "error", "kind", "text", "section", "replace", "line", "turn", "verdict",
    "note", "review", "decisions",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(body=st.dictionaries(st.sampled_from(FIELDS), VALUES), reader=st.sampled_from(READERS))
def test_reading_gives_a_request_or_names_the_field(body: dict[str, Any], reader: Callable[[Any], object]) -> None:
    try:
        reader(body)
    except BadRequest as error:
        assert error.field in FIELDS
        assert error.message


@given(raw=st.binary())
def test_any_bytes_are_an_object_or_refused(raw: bytes) -> None:
    try:
        assert isinstance(decode(raw), dict)
    except BadRequest as error:
        assert error.status in (400, 422)


@given(value=VALUES)
def test_anything_can_be_written(value: object) -> None:
    written = encode(value).decode()
    assert json.loads(written, parse_constant=pytest.fail) is not None or written == "null"
    assert "\n" not in written


def test_writing_replaces_what_json_and_utf8_cannot_hold() -> None:
    assert (
        encode({"a": float("nan"), "b": "x\ud800y", "c": [float("inf")]}) == '{"a":null,"b":"x�y","c":[null]}'.encode()
    )
    assert encode({"emoji": "👩‍🚀"}) == '{"emoji":"👩‍🚀"}'.encode()
    assert b"\n" not in encode({"text": "two\nlines"})


@pytest.mark.parametrize(
    "raw",
    [
        b"{", b"[1]", b'"x"', b"nonsense", b"\xff\xfe", b'{"a": NaN}', b'{"a": -Infinity}', b'{"a":' + b"[" * 100_000,
        b'{"a":' + b"9" * 5000 + b"}", b"\0",
    ],
)  # fmt: skip
def test_malformed_bodies_are_refused(raw: bytes) -> None:
    with pytest.raises(BadRequest):
        decode(raw)


def test_an_empty_body_is_an_empty_object() -> None:
    assert decode(b"") == decode(b" \n") == {}
    assert decode(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": 3}, "query"),
        ({"query": "x" * 10_001}, "query"),
        ({"query": "a\0b"}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": 201}, "limit"),
        ({"query": "x", "limit": True}, "limit"),
        ({"query": "x", "limit": 2.5}, "limit"),
        ({"query": "x", "mode": "magic"}, "mode"),
        ({"query": "x", "mode": []}, "mode"),
        ({"query": "x", "min_score": "high"}, "min_score"),
        ({"query": "x", "filters": ["tag"]}, "filters"),
        ({"query": "x", "filters": {"tag": 5}}, "tag"),
    ],
)
def test_a_search_that_cannot_be_meant_names_its_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        protocol.SearchRequest.read(body)
    assert caught.value.field == field
    assert caught.value.status == 422
    assert caught.value.as_json()["field"] == field


def test_unknown_fields_are_ignored_and_null_means_absent() -> None:
    assert protocol.SearchRequest.read({"query": "x", "limit": None, "later": 1}) == protocol.SearchRequest("x")


def test_events_survive_the_log() -> None:
    event = Event(3, "done", {"text": "x", "citations": []})
    assert event.last
    assert read_event(json.loads(encode(event.as_json()))) == event


@pytest.mark.parametrize("value", ["-1", "x", "1e3", "１", "9" * 30, "61", " 5"])
def test_numbers_in_a_url_are_checked(value: str) -> None:
    with pytest.raises(BadRequest):
        query_number(value, "wait", 0, 60)


def test_numbers_in_a_url_have_defaults() -> None:
    assert query_number(None, "wait", 7, 60) == query_number("", "wait", 7, 60) == 7
    assert query_number("60", "wait", 7, 60) == 60


def test_the_table_of_routes_has_no_doubles() -> None:
    assert len({(route.method, route.path) for route in protocol.ROUTES}) == len(protocol.ROUTES)


def test_a_plain_chat_has_a_conversation_that_can_be_read() -> None:
    assert protocol.ChatRequest.read({"message": "x"}).conversation == "default"
    assert protocol.ChatRequest.read({"message": "x", "conversation_id": None}).conversation == "default"
    for empty in ("", "  "):
        with pytest.raises(BadRequest) as caught:
            protocol.ChatRequest.read({"message": "x", "conversation_id": empty})
        assert (caught.value.field, caught.value.status) == ("conversation_id", 422)


def test_decisions_are_read_one_by_one() -> None:
    body = {
        "review": "r",
        "decisions": [
            {"id": "a", "action": "apply"},
            {"id": "b", "action": "edit", "text": "So."},
            {"id": "c", "action": "drop"},
        ],
    }
    read = protocol.ReviewDecisions.read(body)
    assert [(one.proposal, one.action, one.text) for one in read.decisions] == [
        ("a", "apply", ""), ("b", "edit", "So."), ("c", "drop", ""),
    ]  # fmt: skip
    for wrong in ({"id": "a"}, {"action": "apply"}, {"id": "a", "action": "edit"}, {"id": "a", "action": "x"}, "a"):
        with pytest.raises(BadRequest):
            protocol.ReviewDecisions.read({"review": "r", "decisions": [wrong]})
