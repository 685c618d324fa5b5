"""Real processes: one daemon per vault, private sockets, signals, restarts, logs."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tarsd.app.process import DaemonThreads, resident_mb
from tarsd.client import Client
from tarsd.config import load
from tarsd.daemon.lock import AlreadyRunning, Lock, listen, private_folder, remove_socket
from tarsd.daemon.log import JsonLines, Repeats, set_up
from tarsd.daemon.notify import notify, watchdog_seconds
from tarsd.errors import ClientError, Conflict, NoDaemon, Refused, StoreError, TarsdError, VaultUnavailable
from tarsd.index.worker import IndexJob, Worker
from tarsd.passage import Key
from tests.conftest import Daemon
from tests.support.stub import KeepsFaults

Start = Callable[..., Daemon]


def write(vault: Path, **notes: str) -> None:
    for name, text in notes.items():
        (vault / f"{name}.md").write_text(text, encoding="utf-8")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


# ------------------------------------------------------------------------------------------------ from outside


def test_it_indexes_answers_and_ends(vault: Path, daemon: Start) -> None:
    write(vault, Quorl="# Quorl\n\nA quorl is the brass wedge that holds the ferry ramp level.\n", Other="Tide tables.")
    one = daemon()
    client = one.client
    hello = client.get("/v1/hello")
    assert (hello["name"], hello["protocol"], hello["vault"]["path"]) == ("tarsd", 1, str(vault))
    status = client.get("/v1/status")
    assert status["counts"]["notes"] == 2
    assert status["process"]["pid"] == one.process.pid
    assert status["problems"] == []
    hits = client.post("/v1/search", {"query": "brass wedge"})["hits"]
    assert hits[0]["path"] == "Quorl.md"
    reply = client.post("/chat", {"message": "what is a quorl?"})
    assert "> A quorl is the brass wedge that holds the ferry ramp level." in reply["reply"]
    assert [source["path"] for source in reply["sources"]] == ["Quorl.md"]
    why = client.post("/v1/why", {"path": "Quorl.md", "query": "brass wedge"})
    assert why["final_rank"] == 1
    assert [hit["path"] for hit in client.post("/v1/related", {"path": "Quorl.md"})["hits"]] in (["Other.md"], [])
    with pytest.raises(ClientError) as caught:
        client.post("/v1/related", {"path": "Nowhere.md"})
    assert caught.value.code == "not_found"
    assert client.get("/v1/notes/Quorl.md")["text"].startswith("# Quorl")
    assert [note["path"] for note in client.get("/v1/notes?recent=1")["notes"]] != []
    write(vault, Later="The zeppelin leaves at noon.")
    one.wait(lambda status: status["counts"]["notes"] == 3 and status["behind"] == 0)
    assert client.post("/v1/search", {"query": "zeppelin"})["hits"][0]["path"] == "Later.md"
    assert one.stop() == 0
    assert not one.config.paths.socket.exists()


def test_every_path_is_contained(vault: Path, daemon: Start) -> None:
    write(vault, A="tea")
    client = daemon().client
    cases = (Path(__file__).parents[1] / "fixtures" / "paths.txt").read_text(encoding="utf-8").splitlines()
    for text in [*cases, "", "a/\0b"]:
        path = text.encode().decode("unicode_escape") if "\\u0000" in text else text
        for route, body in (
            ("/v1/related", {"path": path}),
            ("/v1/why", {"path": path, "query": "tea"}),
            ("/v1/turns", {"conversation": "c", "message": "m", "request_id": "r", "notes": [path]}),
            ("/v1/reindex", {"paths": [path]}),
        ):
            if route == "/v1/reindex" and not path:
                continue  # nothing means everything
            with pytest.raises(TarsdError) as caught:
                list(client.stream(route, body)) if route == "/v1/reindex" else client.post(route, body)
            assert caught.value.code in ("path_refused", "bad_request"), (route, path)


def test_a_second_daemon_names_the_first_and_touches_nothing(vault: Path, daemon: Start) -> None:
    one = daemon()
    inode = one.config.paths.socket.stat().st_ino
    second = one.spawn()
    said, _ = second.communicate(timeout=30)
    assert second.returncode == 0
    assert str(one.process.pid) in said.decode()
    assert one.config.paths.socket.stat().st_ino == inode
    assert one.client.get("/v1/status")["process"]["pid"] == one.process.pid


def test_a_killed_daemon_is_followed_by_the_next(vault: Path, daemon: Start) -> None:
    write(vault, A="tea")
    one = daemon()
    one.stop(signal.SIGKILL)
    assert one.config.paths.socket.exists()
    with pytest.raises(NoDaemon):
        one.client.get("/v1/hello")
    status = one.restart()
    assert status["counts"]["notes"] == 1


@pytest.mark.parametrize("content", ["{pid}", "", "garbage\0", "999999999"])
def test_a_pid_file_left_behind_stops_nobody(vault: Path, daemon: Start, content: str) -> None:
    one = daemon()
    one.stop(signal.SIGKILL)
    one.config.paths.lock.write_text(content.format(pid=os.getpid()))
    one.restart()
    assert one.config.paths.lock.read_text() == f"{one.process.pid}\n"


def test_a_file_at_the_socket_path_is_never_deleted(vault: Path, daemon: Start) -> None:
    one = daemon()
    one.stop()
    one.config.paths.socket.write_text("precious")
    again = one.spawn()
    _, errors = again.communicate(timeout=30)
    assert again.returncode == 4
    assert "not a socket" in errors.decode()
    assert one.config.paths.socket.read_text() == "precious"


@pytest.mark.parametrize("umask", [0o000, 0o277])
def test_everything_is_private_under_any_umask(vault: Path, home: Path, daemon: Start, umask: int) -> None:
    before = os.umask(umask)
    try:
        one = daemon()
    finally:
        os.umask(before)
    for message in ("hello", "hello again"):  # the second makes a note of it
        one.client.post("/chat", {"conversation_id": "c", "message": message})
    paths = one.config.paths
    assert mode(paths.socket) == 0o600
    for folder in (home, paths.cache, paths.cache.parent, paths.state, paths.state.parent, paths.logs):
        assert mode(folder) == 0o700, folder
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) >= 5
    assert [path for path in files if mode(path) != 0o600] == []
    assert [path for path in home.rglob("*") if path.is_dir() and mode(path) != 0o700] == []
    like = mode(vault)
    made = [path for path in vault.rglob("tars/**/*")]
    assert made and [path for path in made if mode(path) != (like if path.is_dir() else like & 0o666)] == []


def test_an_answer_cut_by_a_kill_is_kept_and_marked(vault: Path, daemon: Start) -> None:
    one = daemon(TARSD_CHAT="extractive")
    body = {"conversation": "c", "message": "what is this?", "request_id": "r1"}
    turn = one.client.post("/v1/turns", body)["turn"]
    list(one.client.stream(f"/v1/turns/{turn}/events"))
    log = next((one.config.paths.state / "conversations").glob("*.jsonl"))
    one.stop(signal.SIGKILL)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # as if the kill had come in the middle of the last write
    one.restart()
    (kept,) = one.client.get("/v1/conversations/c")["turns"]
    assert (kept["message"], kept["state"]) == ("what is this?", "interrupted")
    assert one.client.post("/v1/turns", body)["turn"] == turn
    assert list(one.client.stream(f"/v1/turns/{turn}/events"))[-1]["type"] == "failed"
    assert one.client.post("/chat", {"conversation_id": "c", "message": "again?"})["turn"] != turn


def test_ready_comes_when_it_listens_and_stopping_when_it_ends(vault: Path, home: Path, daemon: Start) -> None:
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with channel:
        channel.bind(str(home / "n"))
        channel.settimeout(30)
        one = daemon(wait=False, NOTIFY_SOCKET=str(home / "n"), WATCHDOG_USEC="300000")
        first = channel.recv(1000).decode()
        assert "READY=1" in first
        assert one.client.alive()
        assert "WATCHDOG=1" in channel.recv(1000).decode()
        one.wait()
        assert one.stop() == 0
        said = ""
        while "STOPPING=1" not in said:
            said = channel.recv(1000).decode()


def test_signals(vault: Path, daemon: Start) -> None:
    one = daemon()
    one.process.send_signal(signal.SIGHUP)
    assert one.wait()["behind"] == 0
    assert one.stop(signal.SIGINT) == 0
    one.process = one.spawn()
    one.wait()
    assert one.client.post("/v1/shutdown") == {"stopping": True}
    one.process.communicate(timeout=30)
    assert one.process.returncode == 0


def test_a_bad_setting_ends_with_78(vault: Path, home: Path) -> None:
    (home / "config.toml").write_text('[embedding]\nmodel = "nonsense"\n')
    done = subprocess.run(
        [sys.executable, "-c", "from tarsd.cli import main; main()", "run", "--vault", str(vault)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 78
    assert "nonsense" in done.stderr


def test_a_vault_that_comes_later_and_goes_again(tmp_path: Path, daemon: Start) -> None:
    vault = tmp_path / "drive" / "vault"
    one = daemon(vault, wait=False)
    status = one.wait(lambda status: status["watch"]["state"] == "waiting" and bool(status["problems"]))
    assert status["behind"] >= 1
    assert "is missing" in json.dumps(status["problems"])
    (vault / ".obsidian").mkdir(parents=True)
    write(vault, Tea="Sencha is steeped at seventy degrees.")
    one.wait(lambda status: status["counts"]["notes"] == 1 and status["behind"] == 0)
    vault.rename(tmp_path / "away")
    status = one.wait(lambda status: status["watch"]["state"] == "waiting")
    assert status["counts"]["notes"] == 1
    reply = one.client.post("/chat", {"message": "how is sencha steeped?"})
    assert "seventy degrees" in reply["reply"]
    assert "from the last index" in reply["reply"]
    for route, body in (("/v1/search", {"query": "sencha"}), ("/v1/related", {"path": "Tea"})):
        told = one.client.post(route, body)["degraded"]
        assert str(vault) in told and "from the last index" in told, route
        told = one.client.post(route, body | {"audience": "elsewhere"})["degraded"]
        assert str(vault) not in told and "from the last index" in told, route
    with pytest.raises(ClientError) as caught:
        list(one.client.stream("/v1/reindex", {}))
    assert caught.value.code == "vault_unavailable"
    (tmp_path / "away").rename(vault)
    status = one.wait(lambda status: status["watch"]["state"] != "waiting" and status["behind"] == 0)
    assert "degraded" not in one.client.post("/v1/search", {"query": "sencha"})
    assert status["counts"]["notes"] == 1


@pytest.mark.parametrize("damage", ["middle", "half", "empty", "text"])
def test_a_damaged_index_is_rebuilt_and_it_is_said(vault: Path, daemon: Start, damage: str) -> None:
    write(vault, **{f"N{number}": f"note {number} about tea\n" * 20 for number in range(60)})
    one = daemon()
    one.stop()
    index = one.config.paths.index_db
    raw = index.read_bytes()
    index.write_bytes(
        {
            "middle": raw[: len(raw) // 2 - 2048] + b"\xa5" * 4096 + raw[len(raw) // 2 + 2048 :],
            "half": raw[: len(raw) // 2],
            "empty": b"",
            "text": b"this is no database at all " * 200,
        }[damage]
    )
    one.process = one.spawn()
    status = one.wait(lambda status: status["behind"] == 0 and status["counts"]["notes"] == 60)
    if damage != "middle":  # a page that nobody reads is nobody's trouble
        assert "index" in json.dumps(status["problems"])
    assert one.client.post("/v1/search", {"query": "tea"})["hits"]
    assert len(list(vault.glob("*.md"))) == 60


def test_the_log_holds_no_text_and_no_question(vault: Path, home: Path, daemon: Start) -> None:
    write(vault, Secret="xylophone marmalade")
    one = daemon()
    one.client.post("/v1/search", {"query": "xylophone"})
    one.client.post("/chat", {"message": "marmalade?"})
    _, errors = one.process.communicate() if one.stop() else (b"", b"")
    (log,) = one.config.paths.logs.glob("*.log")
    text = log.read_text() + errors.decode()
    assert "xylophone" not in text
    assert "marmalade" not in text
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()][-1] == "stopped"


# ------------------------------------------------------------------------------------------------ lock and socket


def test_the_lock_is_for_one(tmp_path: Path) -> None:
    one, other = Lock(tmp_path / "a" / "lock"), Lock(tmp_path / "a" / "lock")
    one.take()
    with pytest.raises(AlreadyRunning) as caught:
        other.take()
    assert caught.value.pid == os.getpid()
    assert caught.value.exit_code == 0
    one.release()
    other.take()
    other.release()


def test_a_folder_that_is_not_ours_alone_is_mended_or_refused(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir(mode=0o777)
    loose.chmod(0o777)
    private_folder(loose)
    assert mode(loose) == 0o700
    (tmp_path / "link").symlink_to(loose)
    with pytest.raises(Refused):
        private_folder(tmp_path / "link")
    (tmp_path / "file").write_text("x")
    with pytest.raises((Refused, StoreError)):
        private_folder(tmp_path / "file")


def test_a_socket_is_private_and_a_stale_one_is_replaced(home: Path) -> None:
    path = home / "d" / "s.sock"
    for _ in range(2):  # the second time over the stale one of the first
        with listen(path) as server:
            assert mode(path) == 0o600
            assert server.getsockname()
            assert [entry.name for entry in path.parent.iterdir()] == ["s.sock"]
    with listen(path), pytest.raises(Conflict):
        listen(path)
    remove_socket(path)
    assert not path.exists()
    path.write_text("precious")
    remove_socket(path)
    assert path.exists()


def test_a_path_too_long_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="too long"):
        listen(tmp_path / ("ä" * 60) / "s.sock")


# ------------------------------------------------------------------------------------------------ the worker


class Bench:
    """A worker with a scripted job: what it was given, and what to raise next."""

    def __init__(self) -> None:
        self.seen: list[frozenset[Key] | None] = []
        self.faults: list[Exception] = []
        self.prepared = 0
        self.did = threading.Condition()
        self.gate = threading.Event()
        self.gate.set()
        self.worker: Worker[int] = Worker("bench", self.prepare, self.work, first_pause_s=0.01, longest_pause_s=0.02)

    def prepare(self) -> None:
        self.prepared += 1

    def work(self, job: IndexJob[int]) -> int:
        self.gate.wait(10)
        with self.did:
            self.seen.append(job.paths)
            self.did.notify_all()
        if self.faults:
            raise self.faults.pop(0)
        return len(self.seen)

    def until(self, count: int) -> None:
        with self.did:
            assert self.did.wait_for(lambda: len(self.seen) >= count, 10)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_paths_are_gathered_while_it_works(bench: Bench) -> None:
    bench.gate.clear()
    bench.worker.start()
    bench.worker.look([("", "a")])
    while not bench.worker.busy:
        time.sleep(0.001)
    for name in "bcb":
        bench.worker.look([("", name)])
    assert bench.worker.waiting == 3
    bench.gate.set()
    bench.until(2)
    assert bench.seen == [frozenset({("", "a")}), frozenset({("", "b"), ("", "c")})]
    assert bench.worker.stop(5)


@pytest.mark.parametrize("fault", [VaultUnavailable("away"), ZeroDivisionError("secret")])
def test_what_failed_is_tried_again(bench: Bench, fault: Exception) -> None:
    bench.faults = [fault, fault]
    bench.worker.start()
    bench.worker.look([("", "a")])
    bench.until(3)
    assert bench.seen == [frozenset({("", "a")})] * 3
    bench.worker.look([("", "b")])
    bench.until(4)
    assert bench.worker.stop(5)
    assert bench.worker.trouble is None


def test_trouble_is_told_until_it_is_over(bench: Bench) -> None:
    bench.faults = [ZeroDivisionError("secret")] * 50
    bench.worker.start()
    bench.worker.look([("", "a")])
    bench.until(2)
    trouble = bench.worker.trouble
    assert trouble is not None
    assert "ZeroDivisionError" in trouble.message
    assert "secret" not in trouble.message
    assert bench.worker.stop(5)


def test_a_job_tells_its_caller(bench: Bench) -> None:
    told: list[tuple[int | None, TarsdError | None]] = []
    bench.faults = [StoreError("no")]
    bench.worker.start()
    for _ in range(2):
        bench.worker.ask(IndexJob(None, done=lambda report, error: told.append((report, error))))
    bench.until(2)
    assert bench.worker.stop(5)
    bench.worker.ask(IndexJob(None, done=lambda report, error: told.append((report, error))))
    assert [report for report, _ in told] == [None, 2, None]
    assert [error.message if error else "" for _, error in told] == ["no", "", "The daemon is stopping."]


# ------------------------------------------------------------------------------------------------ log and the rest


def record(message: str, level: int = logging.WARNING, name: str = "tarsd.x", **extra: object) -> logging.LogRecord:
    made = logging.LogRecord(name, level, __file__, 1, message, (), None)
    vars(made).update(extra)
    return made


def test_lines_are_json_with_the_fields_and_without_the_texts_of_errors() -> None:
    try:
        raise ValueError("the note says: marmalade")
    except ValueError:
        made = record("failed", number=3)
        made.exc_info = sys.exc_info()
    line = json.loads(JsonLines().format(made))
    assert (line["event"], line["level"], line["number"], line["error"]) == ("failed", "warning", 3, "ValueError")
    assert "marmalade" not in json.dumps(line)
    foreign = logging.LogRecord("httpx", logging.WARNING, "", 1, "asked %s", ("marmalade",), None)
    assert "marmalade" not in JsonLines().format(foreign)


def test_what_repeats_is_counted() -> None:
    now = 0.0
    gate = Repeats(lambda: now)
    assert [gate.filter(record(f"try {number}")) for number in range(5)] == [True, False, False, False, False]
    assert gate.filter(record("other"))
    assert gate.filter(record("try 9", logging.INFO))
    now = 61.0
    again = record("try 7")
    assert gate.filter(again)
    assert json.loads(JsonLines().format(again))["repeated"] == 4


def test_an_hour_of_errors_stays_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_up(tmp_path / "logs", "t")
    try:
        noisy = logging.getLogger("tarsd.noisy")
        for number in range(12_000):
            noisy.info("step %d", number, extra={"path": "x" * 1000})
            noisy.warning("the provider is down, try %d", number)
        logging.getLogger("httpx").info("marmalade")
    finally:
        logging.basicConfig(level=logging.WARNING, force=True)
    files = list((tmp_path / "logs").iterdir())
    assert 1 < len(files) <= 3
    assert sum(file.stat().st_size for file in files) < 20_000_000
    assert all(mode(file) == 0o600 for file in files)
    assert "marmalade" not in capsys.readouterr().err


def test_systemd_is_told_only_where_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    notify("READY=1")
    assert watchdog_seconds() is None
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    assert watchdog_seconds() == 10
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert watchdog_seconds() is None


def test_threads_of_the_pool_hold_nobody_up() -> None:
    pool = DaemonThreads(2, "t")
    assert pool.submit(divmod, 7, 2).result(10) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 7, 0).result(10)
    pool.shutdown()
    assert resident_mb() > 5


def test_a_client_finds_it_without_being_told_where(
    vault: Path, daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = daemon()
    assert Client.find().get("/v1/hello")["vault"]["path"] == str(one.vault)


def test_the_key_of_an_embedding_server_goes_to_it_and_nowhere_else(vault: Path, home: Path, daemon: Start) -> None:
    seen: list[str | None] = []

    class Server(KeepsFaults, ThreadingHTTPServer):
        pass

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers["authorization"])
            texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
            data = [{"object": "embedding", "index": i, "embedding": [1.0] * 8} for i in range(len(texts))]
            body = json.dumps({"object": "list", "model": "m", "data": data, "usage": {}}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    write(vault, Quorl="A quorl is a brass wedge.")
    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        load(vault=vault).paths.config_file.write_text(
            f'[openai]\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\n', encoding="utf-8"
        )
        one = daemon(TARSD_EMBEDDING="openai:m", TARSD_OPENAI_KEY="sk-quite-secret")
        one.wait(lambda status: status["embedding"]["state"] == "complete")
        assert one.stop() == 0
        server.shutdown()
    server.check()
    assert set(seen) == {"Bearer sk-quite-secret"}
    for file in [path for root in (home, vault) for path in root.rglob("*") if path.is_file()]:
        assert b"sk-quite-secret" not in file.read_bytes(), file
