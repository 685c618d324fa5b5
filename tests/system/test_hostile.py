"""Hundreds of malformed and hostile requests on both listeners of one daemon: all are refused, and nothing happens."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import io
import json
import random
import re
import shutil
import socket
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from tarsd.errors import BadRequest
from tarsd.protocol import MAX_BODY, ROUTES, Route, requests
from tarsd.server.page import FILES
from tests.conftest import Daemon
from tests.support.engine import contents, write
from tests.support.rawhttp import TOKEN

SECONDS = 30.0
"""After so long without a byte a request counts as unanswered."""

QUIET = 0.3
"""How long is listened to what need not be answered at all."""

GROWTH_MB = 120.0
PEAK_MB = 700.0
MARK = "owned-by-somebody"
"""Stands in much that is sent, and may stand in no log."""

ACTS = {"shutdown", "undo_memory", "review"}
"""What these do is asked for by their method and path alone, so that no body is a wrong one."""

BODILESS = {"GET", "DELETE"}

# ------------------------------------------------------------------------------------------------ the listeners


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Wire(io.BytesIO):
    """Bytes as a socket, for the parser of answers."""

    def makefile(self, mode: str) -> Wire:
        return self

    def close(self) -> None:
        """More answers may follow."""


@dataclass(frozen=True)
class Door:
    """One of the listeners, with the token where it asks for one."""

    name: str
    address: Any
    host: str

    def message(self, method: str, target: str, body: bytes = b"", **headers: str) -> bytes:
        """A request as bytes; an empty header is left out."""
        given = {"Host": self.host, "Connection": "close", "Authorization": f"Bearer {TOKEN}"}
        given |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def connect(self) -> socket.socket:
        if isinstance(self.address, str):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(SECONDS)
            connection.connect(self.address)
            return connection
        return socket.create_connection(self.address, timeout=SECONDS)

    def answers(self, raw: bytes, *, quiet: float = SECONDS, head: bool = False) -> list[Answer]:
        """Everything that comes back until the other side closes, or says nothing for `quiet` seconds."""
        received = b""
        with self.connect() as connection:
            with contextlib.suppress(ConnectionError):  # an answer may come before all is sent
                connection.sendall(raw)
            connection.settimeout(quiet)
            try:
                while block := connection.recv(1 << 16):
                    received += block
                    connection.settimeout(quiet if whole(received, head=head) else SECONDS)
            except TimeoutError:
                assert whole(received, head=head) and quiet < SECONDS, f"no end of the answer to {raw[:300]!r}"
            except ConnectionError:
                pass
        return list(parsed(received, head=head))

    def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
        """The one answer to a whole request."""
        (answer,) = self.answers(self.message(method, target, body, **headers), head=method == "HEAD")
        return answer


def whole(received: bytes, *, head: bool) -> bool:
    """Whether no answer in it is cut off."""
    try:
        list(parsed(received, head=head))
    except http.client.HTTPException:
        return False
    return True


def parsed(received: bytes, *, head: bool) -> Iterator[Answer]:
    wire = Wire(received)
    while wire.tell() < len(received):
        reply = http.client.HTTPResponse(cast("socket.socket", wire), method="HEAD" if head else "GET")
        reply.begin()
        headers = {name.lower(): value for name, value in reply.getheaders()}
        yield Answer(reply.status, headers, reply.read())


@dataclass(frozen=True)
class Place:
    """The daemon and its two listeners."""

    daemon: Daemon
    home: Path
    doors: tuple[Door, Door]

    def files(self) -> dict[str, object]:
        state = self.daemon.config.paths.state
        return {"vault": contents(self.daemon.vault), "config": contents(self.home)["config.toml"],
                "state": contents(state), "keys": sorted(path.name for path in self.home.iterdir())}  # fmt: skip

    def told(self) -> dict[str, object]:
        get = self.daemon.client.get
        return {"memory": get("/v1/memory"), "conversations": get("/v1/conversations"), "hello": get("/v1/hello"),
                "pid": get("/v1/status")["process"]["pid"]}  # fmt: skip

    def megabytes(self, field: str) -> float:
        text = Path(f"/proc/{self.daemon.process.pid}/status").read_text(encoding="ascii")
        return int(next(line for line in text.splitlines() if line.startswith(field)).split()[1]) / 1024

    def log(self) -> str:
        return "".join(path.read_text(encoding="utf-8") for path in (self.home / "logs").glob("*.log*"))


@pytest.fixture(scope="module")
def alive() -> Iterator[Place]:
    """One daemon for all of this, with a note, something remembered and a conversation that could be lost."""
    home = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    vault = home / "v"
    (vault / ".obsidian").mkdir(parents=True)
    write(vault, "Quorl.md", "---\nstatus: done\n---\n# Quorl\n\nA quorl is the brass wedge.\n")
    write(home, "secret.md", "Not in the vault.\n")
    (home / "config.toml").write_text("[http]\nenabled = true\nport = 0\n", encoding="utf-8")
    daemon = Daemon(vault, {"TARSD_HOME": str(home), "TARSD_TCP_KEY": TOKEN})
    try:
        state = daemon.wait(lambda status: bool(status["behind"] == 0 and status["http"]["state"] == "listening"))
        port = int(state["http"]["url"].rpartition(":")[2])
        doors = (
            Door("socket", str(daemon.config.paths.socket), "tarsd"),
            Door("TCP", ("127.0.0.1", port), f"127.0.0.1:{port}"),
        )
        daemon.client.post("/v1/memory", {"kind": "semantic", "text": "The quorl is mine"})
        daemon.client.post("/chat", {"conversation_id": "kept", "message": "What is a quorl?"})
        yield Place(daemon, home, doors)
    finally:
        daemon.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def place(alive: Place) -> Iterator[Place]:
    """The daemon; at the end nothing may have changed, and it must answer as before."""
    alive.daemon.wait()
    told, files, size = alive.told(), alive.files(), alive.megabytes("VmRSS")
    yield alive
    alive.daemon.client.timeout = 10.0
    assert alive.told() == told
    now = alive.files()
    assert {name: now[name] for name in now if now[name] != files[name]} == {}
    assert alive.daemon.process.poll() is None
    if Path("/proc/self/status").exists():
        assert alive.megabytes("VmRSS") < size + GROWTH_MB
        assert alive.megabytes("VmHWM") < PEAK_MB
    log = alive.log()
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line for line in lines if line["level"] in ("error", "critical")] == []
    assert "Traceback" not in log
    assert MARK not in log
    assert TOKEN not in log
    assert (alive.home / "secret.md").read_text(encoding="utf-8") == "Not in the vault.\n"


def sound(answer: Answer, about: object, *, head: bool = False) -> int:
    """An answer that may be given to anything: no 5xx, no traceback, and errors in our form."""
    assert 200 <= answer.status < 500, (answer, about)
    assert b"Traceback" not in answer.body and b'File "' not in answer.body, about
    assert b"Not in the vault" not in answer.body, about
    if answer.status >= 400 and not head:
        assert answer.headers["content-type"].startswith("application/json"), (answer, about)
        error = json.loads(answer.body)["error"]
        assert error["code"] and error["message"], about
    return answer.status


# ------------------------------------------------------------------------------------------------ fields and bodies

KNOWN = sorted(
    {
        name
        for kind in vars(requests).values()
        if isinstance(kind, type) and issubclass(kind, requests.RequestBody)
        for name in kind.__struct_encode_fields__
    }
)
"""Every field that any request has."""

VALID: dict[str, dict[str, Any]] = {
    "search": {"query": MARK, "mode": "fts", "limit": 3, "min_score": 0.1, "filters": {"tag": "x"}},
    "related": {"path": "Quorl.md", "limit": 3},
    "why": {"path": "Quorl.md", "query": MARK},
    "reindex": {"paths": ["Quorl.md"], "full": False},
    "plain_index": {"paths": ["Quorl.md"], "full": False},
    "check": {"model": False},
    "start_turn": {"conversation": "x", "message": MARK, "request_id": "r", "notes": ["Quorl.md"], "selection": "s",
                   "selection_note": "Quorl.md", "writer": "daemon", "approvals": True, "audience": "person"},
    "plain_chat": {"conversation_id": "x", "message": MARK},
    "approve": {"allow": True, "always": True},
    "report_write": {"ok": True, "hash": "x", "error": "x"},
    "remember": {"kind": "semantic", "text": MARK, "section": "s", "replace": "r", "conversation": "c"},
    "forget": {"line": MARK},
    "feedback": {"turn": "x", "verdict": "good", "note": MARK},
    "apply_review": {"review": "x", "decisions": [{"id": "x", "action": "edit", "text": MARK}]},
    "rename_conversation": {"title": MARK},
    "add_vectors": {"model": "0" * 16, "dim": 2, "rows": [["0" * 32, "AAAAAA=="]]},
}  # fmt: skip
"""Bodies that would be taken. On their own they are never sent."""

WRONG: tuple[Any, ...] = (
    {}, [], [[]], [{}], [None], [1, "x"], {"x": {"y": []}}, True, -1, 0.5, 10**400, 1e300, "", "  ", "\ud800x", "a\0b",
    ["\ud800"], [["0" * 32, "\ud800"]], {"\ud800": "x"}, {"tag": 5}, "\u202e\u0000",
)  # fmt: skip
NO_JSON: tuple[bytes, ...] = (
    b"[]", b'"x"', b"null", b"1", b"true", b"{", b"}", b"{}{}", b"{,}", b'{"a":1,}', b"{'a': 1}", b'{"a"}', b"\x00",
    b"\xff\xfe{\x00}\x00", b'{"query": "\xff"}', b'{"query": "\xed\xa0\x80"}', b'{"limit": NaN}',
    b'{"limit": Infinity}',
    b'{"min_score": -Infinity}', b'{"min_score": 1e999}', b'{"limit": 1' + b"0" * 5000 + b"}", b"[" * 10_000,
    b'{"a":' * 10_000, b'{"query": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", b"{" * 100_000, b'{"query": "\\ud800"}',
    b'{"query": "\\u0000"}', b'{"query": "a", "query": 5}', b"a=b&c=d", b"<x/>",
    b"--x\r\nContent-Disposition: form-data",
    b'{"query": "' + MARK.encode(),
)  # fmt: skip
TYPES = ("", "text/plain", "text/plain;charset=utf-16", "application/x-www-form-urlencoded",
         "application/json; charset=x",
         "multipart/form-data; boundary=x", "\u00ff", "application/json, text/html", "x" * 3000)  # fmt: skip


def filled(route: Route, value: str = "nothing") -> str:
    """The route's path with `value` for each of its parameters."""
    return re.sub(r"\{\w+[^}]*\}", lambda _: value, route.path)


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def test_no_field_of_any_route_takes_what_it_should_not(place: Place) -> None:
    sent = 0
    for door in place.doors:
        for route in ROUTES:
            if route.name in ACTS:
                continue
            target, whole = filled(route), VALID.get(route.name, {})
            bodies = [dict.fromkeys(KNOWN, value) | {"zzz": value} for value in WRONG]
            bodies += [whole | {name: value} for name in whole for value in (*WRONG, "x" * 200_001)]
            bodies += [
                {key: value for key, value in whole.items() if key != name} for name in whole if name not in EXTRA
            ]
            for body in bodies:
                if fits(route.name, body):
                    continue
                status = sound(door.ask(route.method, target, as_json(body)), (route, str(body)[:300]))
                assert status < 300 or status in (400, 404, 409, 413, 422), (route, str(body)[:300])
                sent += 1
    assert sent > 1000


EXTRA = {"notes", "selection", "selection_note", "writer", "approvals", "audience", "section", "replace",
         "conversation",
         "note", "always", "hash", "error", "mode", "limit", "min_score", "filters", "paths", "full", "model",
         "conversation_id", "kind"}  # fmt: skip
"""Fields that may be left out."""


def fits(name: str, body: dict[str, Any]) -> bool:
    """Whether this body would be taken by a route that then does something."""
    readers: dict[str, Callable[[Any], object]] = {
        "start_turn": requests.TurnRequest.read, "plain_chat": requests.ChatRequest.read,
        "remember": requests.RememberRequest.read, "feedback": requests.FeedbackRequest.read,
    }  # fmt: skip
    if name not in readers:
        return False
    try:
        readers[name](json.loads(as_json(body)))
    except BadRequest:
        return False
    return True


def test_no_body_is_anything_but_an_object_of_json(place: Place) -> None:
    rng = random.Random(131)
    for door in place.doors:
        for route in ROUTES:
            if route.name in ACTS or route.method in BODILESS:
                continue
            for body in NO_JSON:
                answer = door.ask(route.method, filled(route), body, Content_Type=rng.choice(TYPES))
                status = sound(answer, (route, body[:200]))
                assert status in (200, 400, 404, 422), (route, body[:200], status)


def test_a_body_is_bounded_in_every_encoding(place: Place) -> None:
    large = b'{"query": "' + b"x" * MAX_BODY + b'"}'
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (large[: 1 << 20],) * 9) + b"0\r\n\r\n"
    bombs = {"gzip": gzip.compress(b" " * 50_000_000), "deflate": zlib.compress(b" " * 50_000_000)}
    empty_lists = b'{"paths": [' + b"[]," * (MAX_BODY // 3 - 10) + b"[]]}"
    for door in place.doors:
        for target in ("/v1/search", "/v1/turns", "/v1/vectors"):
            assert sound(door.ask("POST", target, large), target) == 413
        chunks = door.message("POST", "/v1/search", Transfer_Encoding="chunked", Content_Length="") + chunked
        assert [sound(answer, "chunked") for answer in door.answers(chunks)] == [413]
        for name, body in bombs.items():
            assert sound(door.ask("POST", "/v1/search", body, Content_Encoding=name), name) in (400, 413)
    assert sound(place.doors[1].ask("POST", "/v1/reindex", empty_lists), "empty lists") == 422


# ------------------------------------------------------------------------------------------------ HTTP itself


def smuggled(door: Door) -> bytes:
    """What must never be taken for a request of its own."""
    return door.message("POST", "/v1/shutdown")


def malformed(door: Door) -> Iterable[bytes]:
    """What must be refused or dropped, whole and with more behind it."""
    inner = smuggled(door)
    chunks = b"5\r\n{   }\r\n0\r\n\r\n"
    ask = door.message

    def heads(**headers: str) -> bytes:
        return ask("POST", "/v1/search", b"", **{"Connection": "keep-alive", "Content_Length": "", **headers})

    for coding in ("chunked", "Chunked", "chunked, identity", "identity, chunked", "xchunked", "gzip, chunked",
                   "chunked;x",
                   " chunked", "chunked\t", "\x0bchunked", "chunked\r\nTransfer-Encoding: x", "identity"):  # fmt: skip
        yield heads(Transfer_Encoding=coding, Content_Length="4") + chunks + inner
        yield heads(Transfer_Encoding=coding, Content_Length=str(len(chunks + inner))) + chunks + inner
    for length in ("-1", "+4", "0x4", "4,4", "4 4", "4\r\nContent-Length: 5", "9" * 30, "",
                   "４".encode().decode("latin-1"),
                   "1e3", " ", "4;x"):  # fmt: skip
        yield heads(Content_Length=length or "x") + b"{  }" + inner
    for size in (b"-1", b"0x5", b"5 ;x", b"g", b"f" * 20, b"5\n", b"", b" 5", b"5;\x00"):
        yield heads(Transfer_Encoding="chunked") + size + b"\r\n{   }\r\n0\r\n\r\n" + inner
    yield heads(Transfer_Encoding="chunked") + b"5\r\n{   }XX0\r\n\r\n" + inner
    for line in (b"GET", b"GET /v1/hello", b"GET  /v1/hello HTTP/1.1", b"GET /v1/hello HTTP/1.1 x",
                 b"GET /v1/hello HTTP/9.9",
                 b"GET /v1/hello http/1.1", b"GET\t/v1/hello\tHTTP/1.1", b" GET /v1/hello HTTP/1.1",
                 b"G\x00T / HTTP/1.1",
                 b"GET /v1/\x00hello HTTP/1.1", b"GET /\xff\xfe HTTP/1.1", b"GET /v1/hello HTTP/1.1\r",
                 b"\xc3\xa9 / HTTP/1.1",
                 b"PRI * HTTP/2.0", b"GET /v1/" + b"x" * 100_000 + b" HTTP/1.1", b"{}",
                 b"<policy-file-request/>"):  # fmt: skip
        yield line + b"\r\nHost: " + door.host.encode() + b"\r\nConnection: close\r\n\r\n" + inner
    for header in (b"X", b": x", b"X : y", b"X\x00: y", b"X: a\x00b", b" X: y", b"X: y\r\n folded", b"X: a\rb",
                   b"X\r\n: y",
                   b"X: " + b"y" * 100_000, b"X" * 100_000 + b": y", b"\r\n".join(b"X%d: y" % n for n in range(5000)),
                   b"Host: evil.example", b"Content-Length: 4\r\nContent-Length: 4"):  # fmt: skip
        yield b"GET /v1/status HTTP/1.1\r\nHost: " + door.host.encode() + b"\r\n" + header + b"\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    yield bytes.fromhex("16030100c8010000c40303") + bytes(range(200))
    yield b"\x05\x01\x00"
    yield b"\x00" * 4096
    yield b"\n" * 10_000
    yield b"SSH-2.0-x\r\n"
    yield b"GET /v1/hello\r\n"
    yield b"\r\n\r\n\r\n" + b"\xff" * 100


def test_what_is_no_http_is_refused_in_json_and_nothing_is_smuggled(place: Place) -> None:
    seen: dict[int, int] = {}
    for door in place.doors:
        for raw in malformed(door):
            for answer in door.answers(raw, quiet=QUIET):
                status = sound(answer, raw[:300])
                seen[status] = seen.get(status, 0) + 1
                if b"shutdown" in raw:
                    assert b"stopping" not in answer.body, raw[:300]
    assert seen[400] > 100, seen


def peculiar(door: Door) -> Iterable[tuple[str, str, bytes, dict[str, str]]]:
    """Whole requests that are odd."""
    body = as_json({"query": "brass"})
    for method in ("TRACE", "CONNECT", "PUT", "PROPFIND", "PURGE", "get", "X" * 30, "OPTIONS", "HEAD"):
        for target in ("/v1/shutdown", "/v1/memory", "*", "/", "127.0.0.1:80", "/v1/conversations/kept"):
            yield method, target, b"", {}
    for target in ("http://evil.example/v1/shutdown", "//evil.example/v1/shutdown", "/v1//shutdown", "/v1/./shutdown#x",
                   "/v1/shutdown/", "/V1/shutdown", "/v1/%73hutdown%00", "/%2e%2e/v1/shutdown", "/v1/shutdown;x", "*",
                   "/%zz", "/%", "?", "/v1/shutdown%0d%0aX:y", "/v1/x/../../../../etc/passwd", "/v1/notes?recent=-1",
                   "/v1/notes?recent=" + "9" * 5000, "/v1/notes?audience=x", "/v1/notes?tag=%ff", "/v1/notes?%00=%00",
                   "/v1/turns/x/events?after=1e3", "/v1/turns/x/events?wait=61",
                   "/v1/turns/x/events?after=%F0%9D%9F%8F",
                   "/v1/notes/Quorl.md?audience=%00"):  # fmt: skip
        yield "GET", target, b"", {}
    for headers in ({"Expect": "100-continue"}, {"Expect": "x"}, {"Upgrade": "websocket",
                    "Connection": "Upgrade, close"},
                    {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings, close", "HTTP2_Settings": "AAMAAABk"},
                    {"Range": "bytes=0-9"}, {"Range": "bytes=9-0,-1,x"}, {"If_None_Match": '"x", *, "'},
                    {"If_Match": '"x"'},
                    {"If_Modified_Since": "x"}, {"Accept": "x/x;q=0"}, {"Accept_Encoding": "br;q=x"},
                    {"Cookie": "a=b;" * 900},
                    {"X_HTTP_Method_Override": "DELETE"}, {"X_Forwarded_For": "127.0.0.1"}, {"Via": "x" * 5000},
                    {"Content_Encoding": "gzip"}, {"Content_Encoding": "deflate"}, {"Content_Encoding": "br"},
                    {"Content_Encoding": "zstd"}, {"Content_Encoding": "gzip, gzip"}, {"Content_Encoding": "x"},
                    {"Transfer_Encoding": "identity"}, {"Trailer": "Host"}, {"Content_Length": str(len(body) - 3)},
                    {"Connection": "close, Host, Authorization"}, {"Forwarded": f"host={MARK}"}):  # fmt: skip
        yield "POST", "/v1/search", body, headers
        if "Content_Length" not in headers:
            yield "GET", "/v1/notes", b"", headers
            yield "GET", "/", b"", headers
    for lie in (gzip.compress(body)[:-4], zlib.compress(body)[:-2], gzip.compress(body) + b"x" * 9, body):
        for coding in ("gzip", "deflate", "br", "zstd"):
            yield "POST", "/v1/search", lie, {"Content_Encoding": coding}


def test_whole_requests_that_are_odd_do_nothing(place: Place) -> None:
    for door in place.doors:
        for method, target, body, headers in peculiar(door):
            raw = door.message(method, target, body, **headers)
            head = method == "HEAD" and target.startswith("/")  # what cannot be read is answered with a body
            # a proxy's request may wait for more, and a body that is longer than it says is the next request
            for answer in door.answers(raw, quiet=QUIET if method == "CONNECT" else SECONDS, head=head):
                sound(answer, raw[:300], head=head)
                assert b"stopping" not in answer.body, raw[:300]
    socket_door, tcp = place.doors
    assert tcp.ask("GET", "/", Range="bytes=0-9").status == 200
    for path in FILES:
        assert sound(socket_door.ask("GET", path), path) == 404
        for method in ("POST", "DELETE", "PUT"):
            assert sound(tcp.ask(method, path, b"{}"), path) == 405
        for other in (
            f"{path}/../../secret.md",
            f"{path}%00",
            f"/%2e%2e{path}",
            f"{path}%2f..%2fkeys.json",
            f"{path}.bak",
        ):
            assert sound(tcp.ask("GET", other), other) in (400, 404)


def test_over_tcp_only_our_names_and_origins_come_in(place: Place) -> None:
    door = place.doors[1]
    for route in (*ROUTES, Route("POST", "/mcp", "mcp")):
        target = filled(route)
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1", "[::1]", f"{door.host}.", "a b", "\u00ff"):
            assert sound(door.ask(route.method, target, b"{}", Host=host), (route, host)) in (400, 403)
        for origin in (
            "https://evil.example",
            "null",
            f"https://{door.host}.evil.example",
            "file://",
            "app://x",
            "\u00ff",
        ):
            assert sound(door.ask(route.method, target, b"{}", Origin=origin), (route, origin)) == 403
        for token in ("", "Bearer ", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}\u00ff"):
            assert sound(door.ask(route.method, target, b"{}", Authorization=token), (route, token)) in (401, 429)


# ------------------------------------------------------------------------------------------------ paths

OUTSIDE = [
    line for line in (Path(__file__).parents[1] / "fixtures" / "paths.txt").read_text("utf-8").splitlines() if line
]
OUTSIDE += ["../secret.md", "../../../../../../etc/passwd", "..", ".", "/", "\\\\host\\share\\x", "a\0b.md", "%00",
            "....//....//x.md", "..;/x.md", "\uff0e\uff0e/x.md", "x" * 5000, "a/" * 2000, "file:///etc/passwd",
            ".obsidian/app.json", "tars/../../secret.md", "\ud800.md", "Quorl.md/../../secret.md"]  # fmt: skip
"""Those of the report that the test below names, and more of their kind."""


@pytest.mark.report("https://github.com/MarkusPfundstein/mcp-obsidian/issues/150")
def test_no_path_leads_out_of_the_vault(place: Place) -> None:
    with_paths = [route for route in ROUTES if "{" in route.path]
    assert len(with_paths) > 10
    for door in place.doors:
        for bad in OUTSIDE:
            once = quote(bad.encode("utf-8", "surrogatepass"), safe="")
            plain = quote(bad.encode("utf-8", "surrogatepass"), safe="/\\.")
            for route in with_paths:
                whole = as_json(VALID.get(route.name, {}))
                for value in (once, quote(once, safe=""), plain):
                    answer = door.ask(route.method, filled(route, value), whole)
                    status = sound(answer, (route, value[:200]))
                    # a path of dots may lead to another route, which takes another method
                    elsewhere = value == plain and {"..", "."} & set(bad.replace("\\", "/").split("/"))
                    assert status in (400, 404, 405, 409, 414, 422) or (elsewhere and route.method == "GET"), (
                        route,
                        value,
                    )
            for name, field in (("related", "path"), ("why", "path"), ("start_turn", "notes"), ("reindex", "paths")):
                route = next(one for one in ROUTES if one.name == name)
                if field == "paths" and bad in (".", "/"):  # all of the vault
                    continue
                given = {field: bad if field == "path" else [bad]}
                answer = door.ask(route.method, route.path, as_json(VALID[name] | given))
                assert sound(answer, (name, bad[:200])) in (400, 404, 422), (name, bad[:200])


# ------------------------------------------------------------------------------------------------ MCP

VERSIONS = ("", "2025-03-26", "2025-11-25", "2026-07-28", "1999-01-01", "x" * 3000, "\u00ff")
HOSTILE_CALLS: tuple[Any, ...] = (
    {}, [], [[]], None, 5, "x", [{}] * 50, {"jsonrpc": "1.0"}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 1},
    {"jsonrpc": "2.0", "id": None, "method": "ping"}, {"jsonrpc": "2.0", "id": {}, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1, "method": MARK}, {"jsonrpc": "2.0", "id": 10**400, "method": "ping"},
    {"jsonrpc": "2.0", "id": "x" * 100_000, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 1, "result": {}},
    {"jsonrpc": "2.0", "method": "notifications/" + MARK}, {"jsonrpc": "2.0", "id": 1, "method": "tools/list",
    "params": 5}, {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, {"jsonrpc": "2.0", "id": 1, "method": "\ud800"},
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": MARK}},
    {"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "debug"}},
    {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "file:///etc/passwd"}},
    {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
)  # fmt: skip


def calls() -> Iterator[dict[str, Any]]:
    """Calls of tools and resources that want what they may not have."""
    for number, bad in enumerate(OUTSIDE):
        about: dict[str, Any] = {"name": "read_note", "arguments": {"path": bad}}
        yield {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": about}
        uri = f"tarsd://note/{quote(bad.encode('utf-8', 'surrogatepass'), safe='')}"
        yield {"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": {"uri": uri}}
    for wrong in WRONG:
        about = {"name": "search_notes", "arguments": {"query": wrong}}
        yield {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": about}
        yield {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": wrong, "arguments": wrong}}
        yield {"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "ask_my_notes",
               "arguments": wrong}}  # fmt: skip


def test_mcp_takes_nothing_that_it_should_not(place: Place) -> None:
    door, seen = place.doors[1], set()
    accepts: dict[str, Any] = {"Accept": "application/json, text/event-stream"}
    bodies = [*NO_JSON, *map(as_json, (*HOSTILE_CALLS, *WRONG)), *map(as_json, calls())]
    for number, body in enumerate(bodies):
        version = VERSIONS[number % len(VERSIONS)] if body in NO_JSON else ""
        for given in {version, "2025-11-25", *((VERSIONS[3:]) if number % 5 == 0 else ())}:
            answer = door.ask("POST", "/mcp", body, **accepts, MCP_Protocol_Version=given)
            seen.add(sound(answer, (given[:20], body[:300])))
            assert b"secret" not in answer.body or b"secret" in body, body[:300]
    for kind in TYPES:
        for accept in ("", "text/html", "application/json", "text/event-stream", "*/*;q=0", "\u00ff"):
            answer = door.ask("POST", "/mcp", as_json({}), Content_Type=kind, Accept=accept)
            seen.add(sound(answer, (kind, accept)))
    large = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "' + b"x" * MAX_BODY + b'"}}'
    assert sound(door.ask("POST", "/mcp", large, **accepts), "large") == 413
    for method in ("GET", "DELETE", "PUT", "PATCH", "HEAD"):
        answer = door.ask(method, "/mcp", **accepts, Mcp_Session_Id="x", Last_Event_ID="1")
        assert sound(answer, method, head=method == "HEAD") == 405
    assert seen <= {200, 202, 400, 404, 406, 415, 422} and {200, 400} <= seen


# ------------------------------------------------------------------------------------------------ half and dropped


def requests_without_effect(door: Door) -> list[bytes]:
    keep: dict[str, str] = {"Connection": "keep-alive"}
    return [
        door.message("POST", "/v1/search", as_json({"query": "brass wedge"}), **keep),
        door.message("POST", "/v1/why", as_json({"path": "Quorl.md", "query": "brass"}), **keep),
        door.message("GET", "/v1/notes/Quorl.md", b"", **keep),
        door.message("GET", "/v1/status", b"", **keep),
        door.message("POST", "/v1/reindex", as_json({"paths": ["Quorl.md"]}), **keep),
        door.message("POST", "/v1/check", as_json({"model": False}), **keep),
    ]


def test_half_requests_and_readers_that_go_hold_nothing_up(place: Place) -> None:
    rng = random.Random(7)
    torn = struct.pack("ii", 1, 0)
    for door in place.doors:
        whole = requests_without_effect(door)
        held = []
        for number in range(120):
            raw = rng.choice(whole)
            held.append(connection := door.connect())
            connection.sendall(raw[: rng.randrange(1, len(raw) + 1)])
            if number % 3 == 0:
                continue  # it says nothing more
            if number % 3 == 1:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, torn)
            connection.close()
        assert door.ask("GET", "/v1/hello").status == 200
        held.append(slow := door.connect())
        body = as_json({"query": "brass wedge"})
        raw = door.message("POST", "/v1/search", body)
        for at in range(0, len(raw), 7):
            slow.sendall(raw[at : at + 7])
        answer = http.client.HTTPResponse(slow)
        answer.begin()
        assert (answer.status, json.loads(answer.read())["hits"][0]["path"]) == (200, "Quorl.md")
        for connection in held:
            connection.close()


def test_many_requests_in_one_breath_are_answered_in_order(place: Place) -> None:
    for door in place.doors:
        hello = door.message("GET", "/v1/hello", Connection="keep-alive")
        unknown = door.message("GET", "/v1/nothing", Connection="keep-alive")
        last = door.message("GET", "/v1/hello")
        statuses = [sound(answer, "pipelined") for answer in door.answers((hello + unknown) * 100 + last)]
        assert statuses == [200, 404] * 100 + [200]
        statuses = [sound(answer, "then rubbish") for answer in door.answers(hello + b"\x00rubbish\r\n\r\n" + hello)]
        assert statuses in ([200, 400], [400]), statuses


def test_any_damage_to_a_request_is_survived(place: Place) -> None:
    rng = random.Random(20)
    count = 0
    for door in place.doors:
        whole = requests_without_effect(door)
        for _ in range(220):
            raw = bytearray(rng.choice(whole))
            for _ in range(rng.choice((1, 1, 2, 8))):
                at = rng.randrange(len(raw))
                match rng.randrange(4):
                    case 0:
                        raw[at] = rng.randrange(256)
                    case 1:
                        del raw[at : at + rng.randrange(1, 20)]
                    case 2:
                        raw[at:at] = rng.randbytes(rng.randrange(1, 9))
                    case _:
                        raw[at:at] = raw[at : at + rng.randrange(1, 60)]
            # its last answer may be one that waits for more of it
            for answer in door.answers(bytes(raw) + b"\r\n\r\n", quiet=0.05):
                sound(answer, bytes(raw))
                count += 1
    assert count > 200
