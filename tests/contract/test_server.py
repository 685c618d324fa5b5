"""The routes over a real socket, in front of an engine of a few lines: shapes, statuses, streams, and no 5xx ever."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import aiohttp
import pytest
from aiohttp import web

from tarsd.daemon.log import JsonLines, spare_clients
from tarsd.errors import StoreError, VaultUnavailable
from tarsd.protocol import (
    MAX_BODY,
    ROUTES,
)
from tarsd.providers.base import StreamEnd, Text
from tarsd.server import application, peer_uid
from tarsd.tools import build
from tests.support.application import Stub


@pytest.fixture
def engine(tmp_path: Path) -> Stub:
    return Stub(tmp_path)


@pytest.fixture
async def server(engine: Stub, home: Path) -> AsyncIterator[Path]:
    runner = web.AppRunner(application(engine, heartbeat=0.05, left_s=0.05), access_log=None)
    await runner.setup()
    path = home / "s.sock"
    await web.UnixSite(runner, str(path)).start()
    yield path
    await engine.chat.close()
    await runner.cleanup()


class Http:
    """A client that gives status and JSON."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def __call__(self, method: str, path: str, body: object = None, **more: Any) -> tuple[int, Any]:
        if body is not None:
            more["data"] = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        async with self.session.request(method, f"http://tarsd{path}", **more) as reply:
            return reply.status, json.loads(await reply.read())

    async def lines(self, method: str, path: str, body: object = None) -> list[dict[str, Any]]:
        data = None if body is None else json.dumps(body)
        async with self.session.request(method, f"http://tarsd{path}", data=data) as reply:
            assert reply.status == 200
            return [json.loads(line) for line in (await reply.read()).splitlines()]


@pytest.fixture
async def http(server: Path) -> AsyncIterator[Http]:
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(server))) as session:
        yield Http(session)


def turn_of(message: str, request_id: str = "r", conversation: str = "c") -> dict[str, str]:
    return {"conversation": conversation, "message": message, "request_id": request_id}


async def test_plain_replies(http: Http) -> None:
    assert await http("GET", "/v1/hello") == (200, {"name": "tarsd", "protocol": 1})
    assert await http("GET", "/v1/status") == (200, {"behind": 0})
    status, reply = await http("POST", "/v1/search", {"query": "tea", "mode": "fts", "later": "ignored"})
    assert (status, reply["query"], reply["mode"], reply["limit"]) == (200, "tea", "fts", 10)


async def test_errors_have_one_form(http: Http, engine: Stub) -> None:
    cases: list[tuple[str, str, object, int, str]] = [
        ("GET", "/v1/nothing", None, 404, "not_found"),
        ("GET", "/", None, 404, "not_found"),
        ("DELETE", "/v1/search", None, 405, "wrong_method"),
        ("HEAD", "/v1/hello", None, 405, ""),
        ("POST", "/v1/search", b"{", 400, "malformed_json"),
        ("POST", "/v1/search", b'{"query": "\xff"}', 400, "malformed_json"),
        ("POST", "/v1/search", b'{"query":' + b"[" * 200_000, 400, "malformed_json"),
        ("POST", "/v1/search", [], 422, "bad_request"),
        ("POST", "/v1/search", {"query": 1}, 422, "bad_request"),
        ("POST", "/v1/related", {"path": "../../etc/passwd"}, 400, "path_refused"),
        ("POST", "/v1/turns", {**turn_of("x"), "notes": ["../x"]}, 400, "path_refused"),
        ("GET", "/v1/turns/none/events", None, 404, "not_found"),
        ("POST", "/v1/turns/none/stop", None, 404, "not_found"),
        ("POST", "/v1/turns/none/approvals/1", {"allow": True}, 404, "not_found"),
        ("GET", "/v1/conversations/none", None, 404, "not_found"),
        ("PATCH", "/v1/conversations/none", {"title": "x"}, 404, "not_found"),
        ("DELETE", "/conversations/none", None, 404, "not_found"),
    ]
    for method, path, body, status, code in cases:
        if method == "HEAD":
            async with http.session.head(f"http://tarsd{path}") as reply:
                assert reply.status == status
            continue
        got, error = await http(method, path, body)
        assert (got, error["error"]["code"]) == (status, code), path
        assert set(error["error"]) >= {"code", "message", "hint"}


async def test_faults_of_the_engine_are_told_without_a_traceback(http: Http, engine: Stub) -> None:
    engine.fault = StoreError("The index cannot be used.", "Wait.")
    assert await http("POST", "/v1/search", {"query": "x"}) == (
        503,
        {"error": {"code": "index_unavailable", "message": "The index cannot be used.", "hint": "Wait."}},
    )
    engine.fault = ZeroDivisionError("secret words")
    status, reply = await http("POST", "/v1/search", {"query": "x"})
    assert status == 500
    assert "secret" not in json.dumps(reply)
    assert "Traceback" not in json.dumps(reply)


async def test_large_bodies(http: Http) -> None:
    status, _ = await http("POST", "/v1/search", b" " * 2_000_000 + b'{"query": "x"}')
    assert status == 200
    assert (await http("POST", "/v1/search", {"query": "x" * 200_000}))[0] == 422
    status, reply = await http("POST", "/v1/search", b" " * (MAX_BODY + 1))
    assert (status, reply["error"]["code"]) == (413, "too_large")


async def test_a_turn_as_a_stream_and_as_a_long_poll(http: Http, engine: Stub) -> None:
    engine.provider.enqueue([Text("港の灯り 👩‍🚀"), Text(" Größe"), StreamEnd()])
    status, reply = await http("POST", "/v1/turns", turn_of("hello"))
    assert status == 202
    path = f"/v1/turns/{reply['turn']}/events"
    lines = await http.lines("GET", path)
    assert lines[-1] == {"type": "end"}
    assert [line["type"] for line in lines[:-1]] == ["retrieved", "token", "token", "usage", "done"]
    assert lines[-2]["text"] == "港の灯り 👩‍🚀 Größe"
    status, polled = await http("GET", f"{path}?after=2&wait=20")
    assert (status, [event["seq"] for event in polled["events"]], polled["ended"]) == (200, [3, 4, 5], True)
    assert await http("GET", f"{path}?after=99&wait=20") == (200, {"events": [], "ended": True})
    assert (await http("GET", f"{path}?after=-1"))[0] == 422
    assert (await http("GET", f"{path}?wait=1000"))[0] == 422
    assert await http.lines("GET", f"{path}?after=5") == [{"type": "end"}]


async def test_a_long_poll_waits_and_ends_empty(http: Http, engine: Stub) -> None:
    engine.provider.enqueue([60.0])
    _, reply = await http("POST", "/v1/turns", turn_of("hello"))
    path = f"/v1/turns/{reply['turn']}/events"
    await http("GET", f"{path}?wait=20")
    assert await http("GET", f"{path}?after=1&wait=0") == (200, {"events": [], "ended": False})
    assert await http("GET", f"{path}?after=1&wait=1") == (200, {"events": [], "ended": False})


async def test_silence_is_filled_with_heartbeats(http: Http, engine: Stub) -> None:
    engine.provider.enqueue([Text("a"), 0.3, StreamEnd()])
    _, reply = await http("POST", "/v1/turns", turn_of("hello"))
    lines = await http.lines("GET", f"/v1/turns/{reply['turn']}/events")
    assert {"type": "heartbeat"} in lines
    assert [line["seq"] for line in lines if "seq" in line] == [1, 2, 3, 4]


async def test_a_lost_reader_stops_nothing_and_stop_does(http: Http, engine: Stub) -> None:
    engine.provider.enqueue([Text("begun"), 60.0])
    _, reply = await http("POST", "/v1/turns", turn_of("hello"))
    path = f"/v1/turns/{reply['turn']}"
    async with http.session.get(f"http://tarsd{path}/events") as stream:
        await stream.content.readline()
    assert (await http("GET", f"{path}/events?after=2&wait=0"))[1]["ended"] is False
    assert await http("POST", f"{path}/stop") == (200, {"turn": reply["turn"], "stopped": True})
    assert (await http("POST", f"{path}/approvals/1", {"allow": True}))[0] == 409
    assert (await http("POST", f"{path}/stop"))[0] == 200
    _, found = await http("GET", "/v1/conversations/c")
    assert (found["turns"][0]["text"], found["turns"][0]["state"]) == ("begun", "stopped")


async def test_conversations(http: Http) -> None:
    name = "a/b ä?#%2F"
    _, reply = await http("POST", "/chat", {"conversation_id": name, "message": "hello there"})
    assert reply["reply"] == "hello there"
    assert reply["sources"] == []
    quoted = "a%2Fb%20%C3%A4%3F%23%252F"
    from yarl import URL

    async def at(method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body)
        async with http.session.request(method, URL(f"http://tarsd{path}", encoded=True), data=data) as got:
            return got.status, await got.json()

    assert (await at("GET", f"/v1/conversations/{quoted}"))[1]["id"] == name
    assert (await at("PATCH", f"/v1/conversations/{quoted}", {"title": " New "}))[1]["title"] == "New"
    (listed,) = (await http("GET", "/conversations"))[1]["conversations"]
    assert (listed["id"], listed["title"], listed["turns"]) == (name, "New", 1)
    assert await at("DELETE", f"/v1/conversations/{quoted}") == (200, {"deleted": name})
    assert (await http("GET", "/v1/conversations"))[1] == {"conversations": []}


async def test_the_plain_chat_tells_failures(http: Http, engine: Stub) -> None:
    engine.provider.enqueue([Text("half")])
    status, reply = await http("POST", "/chat", {"message": "x"})
    assert (status, reply["reply"], reply["error"]["code"]) == (500, "half", "answer_cut")


@pytest.mark.report("https://github.com/jonigl/ollama-mcp-bridge/issues/69")
async def test_a_plain_chat_ends_with_its_caller(http: Http, engine: Stub) -> None:
    engine.provider.enqueue([Text("begun"), 60.0])
    asking = asyncio.create_task(http("POST", "/chat", {"conversation_id": "gone", "message": "x"}))
    while not (engine.chat.sessions.summaries() and (await engine.chat.conversation("gone")).turns[0].text):
        await asyncio.sleep(0.01)
    asking.cancel()
    assert await state_of_last(engine, "gone") == ("stopped", "begun")


async def state_of_last(engine: Stub, conversation: str) -> tuple[str, str]:
    """How the conversation's last turn ended, and what it said."""
    while (last := (await engine.chat.conversation(conversation)).turns[-1]).state == "running":
        await asyncio.sleep(0.01)
    return last.state, last.text


@pytest.mark.parametrize("way", ["stream", "poll", "nobody"])
async def test_a_turn_that_is_to_end_with_its_reader_does(http: Http, engine: Stub, way: str) -> None:
    engine.provider.enqueue([Text("begun"), 60.0])
    _, reply = await http("POST", "/v1/turns", turn_of("hello") | {"stop_when_left": True})
    path = f"/v1/turns/{reply['turn']}/events"
    if way == "stream":
        async with http.session.get(f"http://tarsd{path}") as stream:
            while b"begun" not in await stream.content.readline():
                pass
    elif way == "poll":
        await http("GET", f"{path}?wait=1")
    state, text = await state_of_last(engine, "c")
    assert (state, text) == ("stopped", "begun" if way == "stream" else text)


async def test_a_reader_that_comes_back_keeps_its_turn(http: Http, engine: Stub) -> None:
    engine.provider.enqueue([Text("begun"), 0.3, Text(" and done"), StreamEnd("stop")])
    _, reply = await http("POST", "/v1/turns", turn_of("hello") | {"stop_when_left": True})
    path = f"/v1/turns/{reply['turn']}/events"
    async with http.session.get(f"http://tarsd{path}") as stream:
        await stream.content.readline()
    assert (await http.lines("GET", f"{path}?after=1"))[-2]["text"] == "begun and done"


async def test_the_day_is_that_of_where_the_machine_is_now(
    http: Http, engine: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = toolbox_clock()
    days = []
    try:
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kolkata"):  # the first two never have one date
            monkeypatch.setenv("TZ", zone)
            engine.provider.enqueue([Text("so"), StreamEnd("stop")])
            await http("POST", "/chat", {"message": zone})
            now = datetime.now(ZoneInfo(zone))
            assert f"Today is {now:%A}, {now.date()}." in engine.provider.requests[-1].system
            assert (clock().utcoffset(), clock().date()) == (now.utcoffset(), now.date())
            days.append(now.date())
        assert days[0] != days[1]
    finally:
        monkeypatch.undo()
        time.tzset()


def toolbox_clock() -> Callable[[], datetime]:
    """The clock that tools have where none is handed in."""
    clock = inspect.signature(build).parameters["now"].default
    assert callable(clock)
    return clock  # type: ignore[no-any-return]


async def test_reindex_streams_and_plain_index_reports(http: Http, engine: Stub) -> None:
    engine.steps = [{"type": "progress", "done": 1, "total": 2, "path": "a.md"}, {"type": "report", "changed": 2}]
    assert await http.lines("POST", "/v1/reindex", {}) == [*engine.steps, {"type": "end"}]
    assert await http("POST", "/index") == (200, {"changed": 2})
    engine.steps = [VaultUnavailable("The vault is away.")]
    status, reply = await http("POST", "/v1/reindex", {})
    assert (status, reply["error"]["code"]) == (503, "vault_unavailable")
    engine.steps = [{"type": "progress"}, 0.1, VaultUnavailable("The vault is away.")]
    lines = await http.lines("POST", "/v1/reindex", {})
    assert [line["type"] for line in lines if line["type"] != "heartbeat"] == ["progress", "error", "end"]


async def test_shutdown(http: Http, engine: Stub) -> None:
    assert (await http("POST", "/v1/shutdown"))[0] == 200
    assert engine.stopping


def fill(path: str, value: str) -> str:
    for name in ("{turn}", "{call}", "{conversation}", "{path:.*}"):
        path = path.replace(name, value)
    return path


JUNK: list[bytes] = [
    b"", b"\0", b"null", b"[]", b"{", b'{"a":', b"\xff\xfe\x00", b'{"query":"\\ud800"}', b'{"query":"a\\u0000b"}',
    b'{"query":1e999}', b'{"limit":' + b"9" * 400 + b',"query":"x"}', b'{"query":' + b'{"a":' * 5000, b'{"query":{}}',
    b'{"path":"\\ud83d","query":"x"}', b'{"message":["x"],"conversation":{},"request_id":0}', b'{"paths":[1,null]}',
    b'{"paths":"x","full":"yes"}', b'{"allow":"maybe"}', b'{"title":""}', b'{"title":7}', b"a=b&c=d", b'"\\ud800"',
    b'{"filters":{"\\ud800":"x"},"query":"x"}', b'{"conversation":"\\ud800","message":"x","request_id":"x"}',
]  # fmt: skip
TARGETS = [
    "x",
    "%00",
    "%ff",
    "..",
    "%2e%2e%2f%2e%2e",
    "%252e",
    "a" * 3000,
    "%F0%9F%98%80",
    "%ED%A0%80",
    "a%0Ab",
    "%",
    "%zz",
]


async def raw(path: Path, request: bytes) -> int:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(request)
    line = await reader.readline()
    writer.close()
    return int(line.split()[1]) if line else 0


async def test_no_body_and_no_target_makes_it_fail(server: Path, engine: Stub) -> None:
    def message(method: str, target: str, body: bytes) -> bytes:
        return f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    for route in ROUTES:
        for body in JUNK:
            status = await raw(server, message(route.method, fill(route.path, "x"), body))
            assert 200 <= status < 500, (route, body)
        if "{" in route.path:
            for target in TARGETS:
                status = await raw(server, message(route.method, fill(route.path, target), b"{}"))
                assert 200 <= status < 500, (route, target)
        for query in ("?after=x", "?wait=%00", "?" + "a=b&" * 500, "?recent=-1&folder=%ff&tag=%ED%A0%80"):
            assert 200 <= await raw(server, message(route.method, fill(route.path, "x") + query, b"")) < 500


async def test_what_is_no_http_is_refused(server: Path) -> None:
    for junk in (
        b"\0\1\2\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /chat HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        assert await raw(server, junk) in (0, 400)
    assert 400 <= await raw(server, b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n") < 500
    assert await raw(server, b"GET /v1/hello HTTP/1.1\r\nHost: x\r\n\r\n") == 200


async def test_random_bodies(server: Path) -> None:
    """A seeded walk over bodies like those of the routes, with values of any kind."""
    import random

    rng = random.Random(5)
    values: list[Any] = [None, True, -1, 0, 10**30, 1.5, "", "x", "../x", "é" * 300, [], ["x"], [None], {}, {"a": "b"}]
    names = ["query", "path", "paths", "full", "limit", "mode", "min_score", "filters", "conversation", "message",
             "request_id", "notes", "selection", "writer", "title", "allow", "conversation_id"]  # fmt: skip
    posts = [route for route in ROUTES if route.method in ("POST", "PATCH")]
    for _ in range(400):
        route = rng.choice(posts)
        body = json.dumps({name: rng.choice(values) for name in rng.sample(names, rng.randrange(len(names)))}).encode()
        head = f"{route.method} {fill(route.path, 'x')} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        assert 200 <= await raw(server, head.encode() + body) < 500, (route, body)


def test_the_peer_is_known() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert peer_uid(one) in (os.getuid(), None)


async def test_another_user_is_refused(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    monkeypatch.setattr("tarsd.server.peer_uid", lambda connection: 4343)
    status, reply = await http("GET", "/v1/hello")
    assert (status, reply["error"]["code"]) == (403, "refused")


async def test_a_body_that_is_not_what_its_headers_say(
    server: Path, http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    body = b'{"query": "x"}'
    for encoding in ("gzip", "deflate"):
        status, reply = await http("POST", "/v1/search", body, headers={"Content-Encoding": encoding})
        assert (status, reply["error"]["code"]) == (400, "bad_request")
        assert reply["error"]["hint"]
    head = b"POST /v1/search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert await raw(server, head + b"zz\r\nnonsense\r\n") in (0, 400)
    assert not [one for one in caplog.records if one.name.startswith("tarsd")], "a client's fault is none of ours"


async def test_a_connection_that_ends_is_no_fault(http: Http, engine: Stub, caplog: pytest.LogCaptureFixture) -> None:
    engine.fault = ConnectionResetError("gone")
    assert (await http("POST", "/v1/search", {"query": "x"}))[0] == 400
    assert caplog.records == []


async def test_an_impossible_date_names_the_query(http: Http) -> None:
    status, reply = await http("POST", "/v1/search", {"query": "tea after:2026-13-01"})
    assert (status, reply["error"]["field"]) == (422, "query")
    assert (await http("POST", "/v1/why", {"path": "a.md", "query": "before:2026-02-30"}))[0] == 422
    assert (await http("POST", "/v1/search", {"query": "after:banana"}))[0] == 422
    assert (await http("POST", "/v1/search", {"query": "tea tag:"}))[0] == 422
    assert (await http("POST", "/v1/search", {"query": "[status: banana"}))[0] == 200


async def test_a_plain_chat_needs_a_name_or_none(http: Http) -> None:
    status, reply = await http("POST", "/chat", {"conversation_id": "", "message": "x"})
    assert (status, reply["error"]["field"]) == (422, "conversation_id")


async def test_the_log_of_unreadable_requests_is_readable(server: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert await raw(server, b"GET / HTTP/1.1\r\nBad Header\r\n\r\n") in (0, 400)
    made = next(one for one in caplog.records if one.name == "aiohttp.server")
    assert spare_clients(made)
    line = json.loads(JsonLines().format(made))
    assert (line["level"], "%s" in line["event"]) == ("warning", False)
    ours = logging.LogRecord("aiohttp.server", logging.ERROR, "", 1, "%d%% of %(x)s", (3,), None)
    ours.exc_info = (ValueError, ValueError("x"), None)
    assert spare_clients(ours)
    line = json.loads(JsonLines().format(ours))
    assert (line["level"], line["event"]) == ("error", "(int)% of (…)")
