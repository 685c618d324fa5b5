"""The client against sockets that answer byte by byte, break off, lie, or are not there."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarsd import client as client_module
from tarsd.client import Client, lines
from tarsd.errors import EXIT_NO_DAEMON, EXIT_NOTHING, EXIT_REFUSED, EXIT_USAGE, ClientError, NoDaemon
from tests.support.stub import Stub

STREAM = '{"t":"港の灯り 👩‍🚀 Größe"}\r\n\n{"t":" : [\\"x\\"]"}\n{"type":"heartbeat"}\n{"type":"end"}'.encode()
EXPECTED = [{"t": "港の灯り 👩‍🚀 Größe"}, {"t": ' : ["x"]'}]

Serve = Callable[..., Client]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: a socket's may have 103 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def serve(folder: Path) -> Iterator[Serve]:
    """Answers the next request with `blocks`, one send each, and closes; `requests` collects what was asked."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start(
        blocks: list[bytes], *, hold: threading.Event | None = None, requests: list[bytes] | None = None
    ) -> Client:
        path = folder / f"{len(opened)}.sock"
        listener = socket.socket(socket.AF_UNIX)
        opened.append(listener)
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                asked = connection.recv(1 << 20)
                if requests is not None:
                    requests.append(asked)
                for block in blocks:
                    try:
                        connection.sendall(block)
                    except OSError:
                        return
                if hold:
                    hold.wait(10)

        threads.append(threading.Thread(target=answer))
        threads[-1].start()
        return Client(path)

    yield start
    for listener in opened:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(10)


def reply(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def chunked(blocks: list[bytes], *, end: bool = True) -> bytes:
    body = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(block), block) for block in blocks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + (b"0\r\n\r\n" if end else b"")


def one_by_one(raw: bytes) -> list[bytes]:
    return [raw[n : n + 1] for n in range(len(raw))]


def test_a_reply_is_read(serve: Serve) -> None:
    asked: list[bytes] = []
    got = serve([reply(b'{"a":"\xc3\xa4"}')], requests=asked).post("/v1/search", {"query": "tea 茶"})
    assert got == {"a": "ä"}
    head, _, body = asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/search HTTP/1.1\r\n")
    assert json.loads(body) == {"query": "tea 茶"}


def test_paths_of_notes_are_quoted(serve: Serve) -> None:
    asked: list[bytes] = []
    serve([reply(b"{}")], requests=asked).get("/v1/notes/Über uns/a b.md?x=1")
    assert asked[0].startswith(b"GET /v1/notes/%C3%9Cber%20uns/a%20b.md?x=1 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "raw",
    [
        reply(STREAM),
        chunked([STREAM]),
        chunked(one_by_one(STREAM)),
        b"HTTP/1.1 200 OK\r\n\r\n" + STREAM,
    ],
    ids=["length", "chunked", "tiny chunks", "until close"],
)
@pytest.mark.parametrize("split", [one_by_one, lambda raw: [raw]], ids=["byte by byte", "at once"])
@pytest.mark.report("https://github.com/0xPlaygrounds/rig/issues/1758")
def test_streams_cut_anywhere_arrive_whole(serve: Serve, raw: bytes, split: Callable[[bytes], list[bytes]]) -> None:
    assert list(serve(split(raw)).stream("/v1/x", {})) == EXPECTED


@pytest.mark.report("https://github.com/aio-libs/aiohttp/issues/4453")
def test_a_line_of_megabytes_is_one_event(serve: Serve) -> None:
    text = "é" * 1_000_000
    raw = json.dumps({"t": text}, ensure_ascii=False).encode() + b'\n{"type":"end"}\n'
    blocks = [raw[n : n + 8191] for n in range(0, len(raw), 8191)]
    assert list(serve([chunked(blocks)]).stream("/v1/x")) == [{"t": text}]


def test_lines_come_as_soon_as_they_are_whole(serve: Serve) -> None:
    hold = threading.Event()
    client = serve([b'HTTP/1.1 200 OK\r\n\r\n{"n":1}\n{"n"'], hold=hold)
    events = client.stream("/v1/x")
    assert next(events) == {"n": 1}
    hold.set()
    with pytest.raises(ClientError):
        next(events)


def test_lines_of_any_blocks() -> None:
    assert list(lines(iter([b"", b"a\r\nb", b"", b"c\n\n \n", b"d"]))) == [b"a", b"bc", b"d"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        reply(b'{"a":1}\n')[:-3],
        chunked([b'{"a":1}\n'], end=False),
        chunked([b'{"a":1}\n']),
        b'HTTP/1.1 200 OK\r\n\r\n{"a":1}\n',
    ],
)
def test_a_part_is_never_taken_for_the_whole(serve: Serve, raw: bytes) -> None:
    with pytest.raises(ClientError) as caught:
        list(serve([raw]).stream("/v1/x"))
    assert caught.value.code == "cut"


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [("422 No", EXIT_USAGE), ("400 No", EXIT_USAGE), ("404 No", EXIT_NOTHING), ("403 No", EXIT_REFUSED), ("503", 4)],
)
def test_errors_keep_the_daemons_own_words(serve: Serve, status: str, exit_code: int) -> None:
    body = b'{"error":{"code":"c","message":"What happened.","hint":"What to do."}}'
    with pytest.raises(ClientError) as caught:
        serve([reply(body, status)]).get("/v1/x")
    error = caught.value
    assert (error.message, error.hint, error.code, error.exit_code) == ("What happened.", "What to do.", "c", exit_code)


def test_an_error_within_a_stream_is_raised(serve: Serve) -> None:
    raw = b'{"n":1}\n{"type":"error","error":{"code":"disk_full","message":"No space.","hint":""}}\n{"type":"end"}\n'
    with pytest.raises(ClientError, match=r"No space\."):
        list(serve([reply(raw)]).stream("/v1/x"))


@pytest.mark.parametrize(
    "raw", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n", b"x" * 100_000, reply(b"[1]"), reply(b"<a>")]
)
def test_strangers_on_the_socket_are_named(serve: Serve, raw: bytes) -> None:
    with pytest.raises(ClientError, match=r"not tarsd|not JSON"):
        serve([raw]).get("/v1/hello")


def test_silence_ends(serve: Serve) -> None:
    hold = threading.Event()
    client = Client(serve([b"HTTP/1.1 200 OK\r\n"], hold=hold).socket_path, timeout=0.05)
    with pytest.raises(ClientError) as caught:
        client.get("/v1/hello")
    hold.set()
    assert caught.value.code == "timeout"


def test_no_daemon_says_how_to_start_it(folder: Path) -> None:
    with pytest.raises(NoDaemon) as caught:
        Client(folder / "none.sock").get("/v1/hello")
    assert caught.value.exit_code == EXIT_NO_DAEMON
    assert "tarsd run" in caught.value.hint


def test_a_socket_left_behind_is_no_daemon(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "dead.sock"))
    assert not Client(folder / "dead.sock").alive()


def test_the_only_daemon_is_found_and_dead_sockets_are_passed_over(serve: Serve, folder: Path) -> None:
    env = {"TARSD_HOME": str(folder)}
    with pytest.raises(NoDaemon):
        Client.find(env=env)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "dead.sock"))
    living = serve([])
    assert Client.find(env=env).socket_path == living.socket_path


def test_of_several_daemons_one_must_be_named(folder: Path) -> None:
    listeners = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for name, listener in zip("ab", listeners, strict=True):
        listener.bind(str(folder / f"{name}.sock"))
        listener.listen()

    def answer(listener: socket.socket) -> None:
        for _ in range(2):  # a look whether it lives, then the question
            connection, _ = listener.accept()
            with connection:
                if connection.recv(4096):
                    connection.sendall(reply(b'{"vault":{"path":"/V%d"}}' % listener.fileno()))

    threads = [threading.Thread(target=answer, args=(listener,)) for listener in listeners]
    for thread in threads:
        thread.start()
    with pytest.raises(ClientError, match="2 daemons are running") as caught:
        Client.find(env={"TARSD_HOME": str(folder)})
    assert all(f"/V{listener.fileno()}" in caught.value.hint for listener in listeners)
    for thread in threads:
        thread.join(10)
    for listener in listeners:
        listener.close()


@pytest.mark.report("https://github.com/cocoindex-io/cocoindex-code/issues/267")
def test_a_folder_that_others_can_write_to_is_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "short_folder", lambda: folder)
    os.chmod(folder, 0o777)
    with pytest.raises(ClientError, match="is not private to you") as caught:
        Client(folder / "x.sock").get("/v1/hello")
    assert caught.value.code == "refused"


@pytest.mark.parametrize(
    ("below", "mode", "fine"),
    [
        ("", 0o777, False),  # the socket's own folder
        ("", 0o1777, False),  # where anybody can listen first, sticky or not
        ("", 0o757, False),
        ("", 0o700, True),
        ("", 0o755, True),
        ("a", 0o777, False),  # the folder can be replaced
        ("a", 0o757, False),
        ("a", 0o1777, True),  # as /tmp: it cannot
        ("a/b", 0o777, False),
        ("a/b", 0o755, True),
    ],
)
def test_nothing_is_sent_to_a_socket_that_others_can_put_in_place(
    short_tmp: Path, below: str, mode: int, fine: bool
) -> None:
    folder = short_tmp / "t" / below
    folder.mkdir(parents=True)
    (short_tmp / "t").chmod(mode)
    stub = Stub(folder / "0123456789ab.sock")
    stub.replies["GET /v1/hello"] = {"name": "tarsd"}
    with stub.answering():
        client = Client(folder / "0123456789ab.sock")
        if fine:
            assert client.get("/v1/hello")["name"] == "tarsd"
        else:
            with pytest.raises(ClientError, match="is not private to you") as caught:
                client.get("/v1/hello")
            assert caught.value.code == "refused" and stub.asked == []
    (short_tmp / "t").chmod(0o700)
