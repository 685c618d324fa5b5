"""The listener on TCP: who is let in, what a page on the web gets, and that nothing hostile has any effect."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd import keys
from tarsd.config import HttpSettings
from tarsd.daemon.listener import OPEN, TcpListener
from tarsd.errors import ConfigError
from tarsd.protocol import ROUTES
from tarsd.providers.base import StreamEnd, Text
from tarsd.server.guard import APPS, PEERS, TRIES, WINDOW_S, Token, Tries, is_local
from tests.conftest import Daemon
from tests.support.application import Stub
from tests.support.engine import contents, write
from tests.support.listener import Place, opened
from tests.support.rawhttp import TOKEN, exchange, message

Start = Callable[..., Daemon]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path) as one:
        yield one


async def test_the_token_lets_in(place: Place) -> None:
    reply = await place("GET", "/v1/hello")
    assert (reply.status, reply.json["name"]) == (200, "tarsd")
    assert reply.headers["vary"] == "Origin"
    assert reply.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in reply.headers
    assert "aiohttp" not in reply.headers["server"]
    assert (await place("GET", "/v1/nothing")).code == "not_found"
    reply = await place("POST", "/v1/search", b'{"query": "tea"}')
    assert (reply.status, reply.json["query"]) == (200, "tea")


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer x", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN} x", "Bearer é"],
)
async def test_without_it_nobody_comes_in(place: Place, header: str) -> None:
    for path in ("/v1/hello", "/v1", "/v1/nothing", f"/v1/hello?token={TOKEN}"):
        reply = await place("GET", path, token=None, Authorization=header)
        assert (reply.status, reply.code) == (401, "unauthorized")
        assert reply.headers["www-authenticate"] == "Bearer"
        assert "tarsd token" in reply.json["error"]["hint"]
        assert TOKEN not in reply.body.decode()
    for path in ("/v1/shutdown", "/mcp", "/mcp?audience=here"):
        assert (await place("POST", path, token=None, Authorization=header)).status == 401
    assert not place.engine.stopping


async def test_two_tokens_are_none(place: Place) -> None:
    raw = message(place.port, "GET", "/v1/hello").replace(b"Connection", b"Authorization: Bearer x\r\nConnection")
    assert (await asyncio.to_thread(exchange, place.port, raw)).status == 401


@pytest.mark.parametrize(
    "known",
    ["127.0.0.1:{}", "localhost:{}", "LocalHost:{}", "[::1]:{}", "pi.local", "pi.local:{}", "tars.example:443"],
)
async def test_it_answers_to_its_own_names(place: Place, known: str) -> None:
    assert (await place("GET", "/v1/hello", Host=known.format(place.port))).status == 200


@pytest.mark.parametrize(
    "foreign",
    ["evil.example:{}", "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost:{}.evil.example", "tars.example:{}",
     "pi.local:1", "user@127.0.0.1:{}", "127.0.0.1:{}, evil.example", "0x7f.1:{}", "pi.local.:{}"],
)  # fmt: skip
async def test_a_foreign_name_is_refused_on_every_route(place: Place, foreign: str) -> None:
    for method, path in [*((route.method, route.path) for route in ROUTES), ("GET", "/"), ("POST", "/mcp"),
                         ("GET", "/mcp"), ("DELETE", "/mcp"), ("OPTIONS", "/mcp"), ("OPTIONS", "*"),
                         ("OPTIONS", "/v1/hello"), ("TRACE", "/nothing")]:  # fmt: skip
        for token in (TOKEN, None):
            reply = await place(method, path, token=token, Host=foreign.format(place.port))
            assert (reply.status, reply.code) == (403, "refused"), (method, path)
    assert not place.engine.stopping


async def test_two_names_are_no_name_and_none_is_none(place: Place) -> None:
    raw = message(place.port, "GET", "/v1/hello").replace(b"Connection", b"Host: evil.example\r\nConnection")
    assert (await asyncio.to_thread(exchange, place.port, raw)).status in (400, 403)
    none = message(place.port, "GET", "/v1/hello", Host="")
    assert (await asyncio.to_thread(exchange, place.port, none)).status == 400
    none = none.replace(b"HTTP/1.1", b"HTTP/1.0")
    assert (await asyncio.to_thread(exchange, place.port, none)).status == 403


@pytest.mark.parametrize(
    "foreign",
    ["https://evil.example", "null", "", "http://localhost:3000", "https://localhost", "app://obsidian.md.evil.example",
     "app://obsidian.md/", "app://OBSIDIAN.md", "http://127.0.0.1", "ionic://localhost", "*", "file://",
     "http://localhost, app://obsidian.md", "//pi.local", "ftp://pi.local"],
)  # fmt: skip
async def test_a_page_from_elsewhere_is_refused_on_every_route(place: Place, foreign: str) -> None:
    for method, path in [*((route.method, route.path) for route in ROUTES), ("GET", "/"), ("POST", "/mcp"),
                         ("GET", "/mcp"), ("OPTIONS", "/v1/search")]:  # fmt: skip
        asks: dict[str, Any] = {"Access_Control_Request_Method": "POST"} if method == "OPTIONS" else {}
        raw = message(place.port, method, path, **asks).replace(
            b"Connection", f"Origin: {foreign}\r\nConnection".encode()
        )
        reply = await asyncio.to_thread(exchange, place.port, raw)
        assert (reply.status, reply.code) == (403, "refused"), (method, path)
        assert not [name for name in reply.headers if name.startswith("access-control")]
    assert not place.engine.stopping


@pytest.mark.parametrize("origin", [*APPS, "http://127.0.0.1:{}", "http://localhost:{}", "https://pi.local"])
async def test_the_apps_and_own_pages_are_answered(place: Place, origin: str) -> None:
    origin = origin.format(place.port)
    for method, path, token, status in [
        ("GET", "/v1/hello", TOKEN, 200), ("GET", "/v1/hello", None, 401), ("GET", "/v1/none", TOKEN, 404),
        ("POST", "/v1/search", TOKEN, 422),
    ]:  # fmt: skip
        reply = await place(method, path, token=token, Origin=origin)
        assert reply.status == status
        assert reply.headers["access-control-allow-origin"] == origin
        assert reply.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in reply.headers


async def test_a_preflight_needs_no_token_and_lets_nothing_else_through(place: Place) -> None:
    asks: dict[str, Any] = {"Origin": APPS[0], "Access_Control_Request_Method": "POST"}
    asks["Access_Control_Request_Headers"] = "authorization,content-type"
    reply = await place("OPTIONS", "/v1/turns", token=None, **asks)
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == APPS[0]
    assert set(reply.headers["access-control-allow-methods"].split(", ")) == {route.method for route in ROUTES}
    assert reply.headers["access-control-allow-headers"] == "authorization, content-type"
    assert int(reply.headers["access-control-max-age"]) > 0
    assert "access-control-allow-private-network" not in reply.headers
    reply = await place("OPTIONS", "/v1/turns", token=None, **asks, Access_Control_Request_Private_Network="true")
    assert reply.headers["access-control-allow-private-network"] == "true"
    assert (await place("OPTIONS", "/v1/turns", token=None)).status == 401
    assert (await place("OPTIONS", "/v1/turns", token=None, Origin=APPS[0])).status == 401
    assert (await place("POST", "/v1/shutdown", token=None, **asks)).status == 401
    assert not place.engine.stopping


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"])
async def test_a_form_that_a_page_posts_does_nothing(place: Place, kind: str) -> None:
    body = b'{"query": "tea"}'
    assert (await place("POST", "/v1/shutdown", body, token=None, Content_Type=kind)).status == 401
    reply = await place("POST", "/v1/shutdown", body, token=None, Content_Type=kind, Origin="https://evil.example")
    assert reply.status == 403
    assert not place.engine.stopping


async def test_a_token_that_is_made_later_is_found(tmp_path: Path) -> None:
    kept: list[str | None] = [None]
    async with opened(tmp_path, read=lambda: kept[0]) as place:
        assert place.listener.state()["state"] == "no token"
        assert "tarsd token" in place.listener.state()["hint"]
        reply = await place("GET", "/v1/hello")
        assert (reply.status, reply.json["error"]["hint"]) == (401, "Make one with: tarsd token.")
        kept[0] = TOKEN
        assert (await place("GET", "/v1/hello")).status == 200
        assert place.listener.state()["state"] == "listening"


async def test_another_token_takes_the_place_of_the_old_one_at_its_first_use(place: Place) -> None:
    assert (await place("GET", "/v1/hello")).status == 200
    place.token[0] = "another-token-0123456789"
    assert (await place("GET", "/v1/hello", token=place.token[0])).status == 200
    assert (await place("GET", "/v1/hello")).status == 401


async def test_too_many_wrong_tokens_are_told_to_wait(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(TRIES):
        assert (await place("GET", "/v1/hello", token=f"guess-{number}")).status == 401
    reply = await place("GET", "/v1/hello", token="one-more")
    assert (reply.status, reply.code) == (429, "too_many_tries")
    assert 1 <= int(reply.headers["retry-after"]) <= WINDOW_S
    assert (await place("GET", "/v1/hello", token=None)).status == 401, "no token is no guess"
    assert (await place("GET", "/v1/hello")).status == 200, "others come through the same tunnel"
    told = [record.getMessage() for record in caplog.records]
    assert told == ["too many wrong tokens over TCP"]
    assert "guess" not in caplog.text


def test_tries_are_forgotten_after_a_while_and_few_are_remembered() -> None:
    now = [0.0]
    tries = Tries(lambda: now[0])
    for _ in range(TRIES):
        assert tries.wait("a") == 0
        tries.add("a")
    assert tries.wait("a") == WINDOW_S
    assert tries.wait("b") == 0
    now[0] = WINDOW_S - 0.5
    assert tries.wait("a") == 1
    now[0] = WINDOW_S
    assert tries.wait("a") == 0
    assert tries.add("a") == 1
    for number in range(10 * PEERS):
        tries.add(str(number))
    assert len(tries._seen) == PEERS


async def test_an_old_token_is_not_taken_for_long_and_many_ask_once() -> None:
    now, kept, looks = [0.0], ["first-token-0123456"], [0]

    def read() -> str:
        looks[0] += 1
        return kept[0]

    async def thread(work: Callable[[], None]) -> None:
        await asyncio.to_thread(work)

    token = Token(read, thread, lambda: now[0])
    assert all(await asyncio.gather(*(token.fits("first-token-0123456") for _ in range(20))))
    assert looks == [1]
    kept[0] = "other-token-0123456"
    now[0] = 4.0
    assert await token.fits("first-token-0123456")
    now[0] = 5.0
    assert not await token.fits("first-token-0123456", again=False)
    assert await token.fits("other-token-0123456", again=False)
    assert looks == [2]


@pytest.mark.parametrize("kept", ["short", None, ConfigError(["/home/x/keys.json: others can read"], "Run: chmod")])
async def test_a_token_that_cannot_be_used_is_told_in_the_status_alone(tmp_path: Path, kept: Any) -> None:
    def read() -> str | None:
        if isinstance(kept, Exception):
            raise kept
        return kept if kept is None else str(kept)

    async with opened(tmp_path, read=read) as place:
        reply = await place("GET", "/v1/hello", token="short")
        assert (reply.status, reply.json["error"]["hint"]) == (401, "Make one with: tarsd token.")
        state = place.listener.state()
    assert (state["state"], "keys.json" in state["reason"]) == ("no token", isinstance(kept, Exception))
    assert state["hint"]


async def test_streams_and_long_polls(place: Place) -> None:
    place.engine.provider.enqueue([Text("half "), 0.05, Text("whole"), StreamEnd()])
    body = b'{"conversation": "c", "message": "hello", "request_id": "r"}'
    turn = (await place("POST", "/v1/turns", body)).json["turn"]
    reply = await place("GET", f"/v1/turns/{turn}/events", Origin=APPS[1])
    assert reply.headers["access-control-allow-origin"] == APPS[1]
    assert reply.headers["vary"] == "Origin"
    assert b'"text":"half "' in reply.body
    assert b'{"type":"end"}' in reply.body
    polled = (await place("GET", f"/v1/turns/{turn}/events?after=2&wait=20")).json
    assert ([event["type"] for event in polled["events"]], polled["ended"]) == (["token", "usage", "done"], True)
    reply = await place("GET", f"/v1/turns/{turn}/events", token="wrong")
    assert (reply.status, b"half" in reply.body) == (401, False)


async def test_a_head_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async with opened(tmp_path, head_s=0.2) as place:
        for begun in (b"", b"GET /v1/hello HTTP/1.1\r\nHost: x\r\n"):
            assert (await asyncio.to_thread(exchange, place.port, begun)).status == 0


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async with opened(tmp_path, body_s=0.2) as place:
        raw = message(place.port, "POST", "/v1/search", b"", Content_Length="100") + b'{"query"'
        reply = await asyncio.to_thread(exchange, place.port, raw)
        assert (reply.status, reply.code) == (408, "too_slow")
        reply = await asyncio.to_thread(exchange, place.port, raw.replace(TOKEN.encode(), b"x"))
        assert reply.status == 401, "who may not come in is told before a body is read"


async def test_a_body_is_bounded(place: Place) -> None:
    reply = await place("POST", "/v1/search", b" " * (8 * 1024 * 1024 + 1))
    assert (reply.status, reply.code) == (413, "too_large")


@pytest.mark.parametrize(
    ("host", "port", "reason"),
    [("127.0.0.1", -1, "is used"), ("no such host", 0, "not an address of this machine"),
     ("203.0.113.9", 0, "not an address of this machine"), ("x" * 100, 0, "not an address of this machine")],
)  # fmt: skip
async def test_where_it_cannot_listen_it_says_why(tmp_path: Path, host: str, port: int, reason: str) -> None:
    engine = Stub(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1] if port < 0 else port
        listener = TcpListener(HttpSettings(enabled=True, host=host, port=port), tmp_path / "port")
        assert not await listener.open(engine)
        state = listener.state()
        assert (state["enabled"], state["state"], state["url"]) == (True, "failed", "")
        assert reason in state["reason"]
        assert "[http]" in state["hint"]
    if host == "127.0.0.1":
        assert await listener.open(engine), "it is tried again"
        assert listener.state()["url"] == f"http://127.0.0.1:{port}"
    await listener.close()
    await engine.chat.close()


async def test_a_listener_for_other_machines_says_so_and_answers_to_its_address(tmp_path: Path) -> None:
    async with opened(tmp_path, HttpSettings(enabled=True, host="0.0.0.0", port=0)) as place:
        assert (place.listener.state()["state"], place.listener.state()["reason"]) == ("listening", OPEN)
        assert (await place("GET", "/v1/hello")).status == 200
        assert (await place("GET", "/v1/hello", Host=f"evil.example:{place.port}")).status == 403
        assert (await place("GET", "/v1/hello", Host=f"0.0.0.0:{place.port}")).status == 403


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("", False),
     ("192.168.1.2", False), ("pi.local", False)],
)  # fmt: skip
def test_what_is_only_of_this_machine(host: str, local: bool) -> None:
    assert is_local(host) is local


async def test_each_vault_finds_a_port_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first = taken.getsockname()[1]
        free = HttpSettings(enabled=True)
        async with opened(tmp_path, free, first_port=first) as one:
            assert first < one.port < first + 100
            assert (await one("GET", "/v1/hello")).status == 200
            (tmp_path / "other").mkdir()
            async with opened(tmp_path / "other", free, first_port=first) as other:
                found = other.port
                assert found not in (first, one.port)
    async with opened(tmp_path / "other", free, first_port=first) as again:
        assert again.port == found, "although earlier ones are free now"
    (tmp_path / "other" / "port").write_text("0\nrubbish")
    async with opened(tmp_path / "other", free, first_port=first) as again:
        assert first <= again.port < first + 100


def test_it_is_off_unless_asked_for(tmp_path: Path) -> None:
    state = TcpListener(HttpSettings(), tmp_path / "port").state()
    assert state == {"enabled": False, "url": "", "state": "off", "reason": "", "hint": ""}


# ------------------------------------------------------------------------------------------------ a real daemon


@pytest.fixture
def listening(daemon: Start, home: Path, vault: Path) -> Iterator[tuple[Daemon, int]]:
    (home / "config.toml").write_text("[http]\nenabled = true\nport = 0\n", encoding="utf-8")
    write(vault, "Quorl.md", "# Quorl\n\nA quorl is the brass wedge.\n")
    one = daemon(vault)
    state = one.wait(lambda status: bool(status["behind"] == 0 and status["http"]["url"]))
    assert state["http"]["state"] == "no token"
    assert "There is no token yet" in json.dumps(state["problems"])
    yield one, int(state["http"]["url"].rpartition(":")[2])


def test_a_daemon_takes_a_token_without_a_restart_and_another_one(listening: tuple[Daemon, int]) -> None:
    daemon, port = listening
    assert exchange(port, message(port, "GET", "/v1/hello")).status == 401
    keys.put("tcp", TOKEN)
    reply = exchange(port, message(port, "GET", "/v1/hello"))
    assert (reply.status, reply.json["vault"]["path"]) == (200, str(daemon.vault))
    status = exchange(port, message(port, "GET", "/v1/status")).json
    assert (status["http"]["state"], status["problems"]) == ("listening", [])
    found = exchange(port, message(port, "POST", "/v1/search", b'{"query": "brass wedge"}')).json
    assert [hit["path"] for hit in found["hits"]] == ["Quorl.md"]
    keys.put("tcp", "another-token-0123456789")
    assert exchange(port, message(port, "GET", "/v1/hello", token="another-token-0123456789")).status == 200
    assert exchange(port, message(port, "GET", "/v1/hello")).status == 401
    assert daemon.client.get("/v1/hello")["name"] == "tarsd", "the socket needs no token"


def test_hostile_requests_have_no_effect(listening: tuple[Daemon, int], home: Path) -> None:
    daemon, port = listening
    keys.put("tcp", TOKEN)
    assert exchange(port, message(port, "GET", "/v1/hello")).status == 200
    before = contents(daemon.vault)
    rng = random.Random(129)
    hosts = [f"127.0.0.1:{port}", f"evil.example:{port}", "evil.example", "", "\x7f", "x" * 5000, f"[::1]:{port}"]
    origins = ["", "https://evil.example", "null", "http://localhost:8080", *APPS]
    tokens = [None, "", "x", TOKEN[:-1], TOKEN.upper(), "\u00ff" * 10, "x" * 5000]
    bodies = [
        b"",
        b"{}",
        b'{"kind": "semantic", "text": "owned"}',
        b'{"message": "owned"}',
        b"\xff\x00",
        b"a=b",
        b"{" * 99,
    ]
    paths = ["/v1/notes/..%2f..%2fetc%2fpasswd", "/v1/notes/%00", "/v1//shutdown", "//evil.example/v1/shutdown",
             "http://evil.example/v1/shutdown", "/v1/shutdown#x", "*", "/%zz"]  # fmt: skip
    seen = set()
    for _ in range(200):
        route = rng.choice(ROUTES)
        path = rng.choice([route.path, "/v1/shutdown", "/v1/memory", *paths])
        method = rng.choice([route.method, "POST", "GET", "OPTIONS", "DELETE", "TRACE", "CONNECT", "X" * 20])
        headers = {"Host": rng.choice(hosts), "Origin": rng.choice(origins)}
        headers |= rng.choice([{}, {"Content_Type": "text/plain"}, {"Access_Control_Request_Method": "POST"},
                               {"X_Forwarded_For": "127.0.0.1"}, {"Transfer_Encoding": "chunked"},
                               {"Content_Length": "-1"}, {"Upgrade": "websocket"}, {"Expect": "x"}])  # fmt: skip
        raw = message(port, method, path, rng.choice(bodies), token=rng.choice(tokens), **headers)
        reply = exchange(port, raw)
        assert reply.status in (0, 204, 400, 401, 403, 417, 429), raw[:200]
        assert TOKEN not in reply.body.decode("latin-1")
        assert reply.headers.get("access-control-allow-origin", APPS[0]) in APPS
        seen.add(reply.status)
    assert {401, 403, 429} <= seen
    assert contents(daemon.vault) == before
    assert daemon.client.get("/v1/conversations") == {"conversations": []}
    assert exchange(port, message(port, "GET", "/v1/hello")).status == 200
    assert daemon.process.poll() is None
    text = "".join(path.read_text(encoding="utf-8") for path in (home / "logs").glob("*.log"))
    assert TOKEN[:-1] not in text
    assert "evil" not in text
    assert "owned" not in text


def test_a_port_that_is_taken_stops_nothing(daemon: Start, home: Path, vault: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (home / "config.toml").write_text(f"[http]\nenabled = true\nport = {port}\n", encoding="utf-8")
        one = daemon(vault)
        state = one.wait(lambda status: bool(status["http"]["state"] == "failed"))
        (problem,) = state["problems"]
        assert problem["reason"] == f"Port {port} is used by another program."
        assert problem["hint"] == "Set another port under [http]."
        assert one.client.get("/v1/hello")["name"] == "tarsd"
    assert one.stop() == 0


def test_a_daemon_ends_in_time_with_connections_open(listening: tuple[Daemon, int]) -> None:
    daemon, port = listening
    keys.put("tcp", TOKEN)
    with socket.create_connection(("127.0.0.1", port)) as idle, socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"GET /v1/hello HTTP/1.1\r\n")
        idle.sendall(message(port, "GET", "/v1/hello").replace(b"Connection: close\r\n", b""))
        assert idle.recv(12) == b"HTTP/1.1 200"
        assert daemon.stop() == 0
