"""The checks of the daemon, of its service, and of the machine below it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd import services
from tarsd.config import vault_id
from tarsd.doctor import DoctorContext, machine
from tarsd.doctor import daemon as outside
from tarsd.services import ServiceState
from tests.support.engine import write
from tests.support.stub import Stub
from tests.system.doctor.conftest import Serving, Start, look, one, says, settled, well


def test_no_daemon_is_a_fault_with_a_command(subject: DoctorContext, home: Path, vault: Path, tmp_path: Path) -> None:
    line = one(subject, "Daemon", "answers")
    assert (line.state, line.hint) == ("fault", f"tarsd run --vault {vault}")
    for name in ("version", "problems", "behind", "TCP"):
        assert one(subject, "Daemon", name).state == "skipped"
    assert one(subject, "Index", "daemon").state == "skipped"
    write(tmp_path / "ada", f".config/systemd/user/tarsd-{vault_id(vault)}.service", "")
    if sys.platform == "linux":
        assert one(subject, "Daemon", "answers").hint == "tarsd service start"
    write(home, "config.toml", f'[vault]\npath = "{vault}"\n')
    configured = DoctorContext()
    look(configured, "Settings", "file")
    assert configured.start == "tarsd run"


def test_a_daemon_that_answers(daemon: Start, subject: DoctorContext) -> None:
    running = daemon()
    assert one(subject, "Daemon", "answers").text == f"Process {running.process.pid} answers."
    for name in ("socket", "answers", "version", "problems", "behind", "log"):
        assert well(one(subject, "Daemon", name)), name
    assert one(subject, "Daemon", "TCP").state == "skipped"
    assert well(one(subject, "File watching", "daemon"))
    assert {line.state for line in look(subject, "Index", "daemon")} == {"ok", "skipped"}


def test_a_suspended_daemon_is_named_with_what_wakes_it(daemon: Start, subject: DoctorContext) -> None:
    running = daemon()
    running.process.send_signal(signal.SIGSTOP)
    try:
        line = one(subject, "Daemon", "answers")
        assert (line.state, line.hint) == ("fault", f"kill -CONT {running.process.pid}")
        assert "suspended" in line.text and str(running.process.pid) in line.text
    finally:
        running.process.send_signal(signal.SIGCONT)
    assert well(one(subject, "Daemon", "answers"))


@pytest.fixture
def listening(subject: DoctorContext) -> Iterator[socket.socket]:
    """Somebody listens on the daemon's socket; it is up to the test what is answered."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(subject.config.paths.socket))
        server.listen()
        yield server


def test_a_daemon_that_hangs_is_named(
    subject: DoctorContext, listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "HELLO_S", 0.2)
    lock = subject.config.paths.lock
    assert "fuser" in one(subject, "Daemon", "answers").hint
    write(lock.parent, lock.name, f"{os.getpid()}\n")
    assert one(subject, "Daemon", "answers").hint.startswith(f"kill -KILL {os.getpid()}; then: tarsd run")
    lock.unlink()
    os.mkfifo(lock)
    assert "fuser" in one(subject, "Daemon", "answers").hint


def test_what_listens_and_is_no_daemon(subject: DoctorContext, listening: socket.socket) -> None:
    import threading

    def answer() -> None:
        connection, _ = listening.accept()
        connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    line = one(subject, "Daemon", "answers")
    thread.join()
    assert (line.state, line.text) == ("fault", "The program on the socket is not tarsd.")


def test_a_socket_that_cannot_be(subject: DoctorContext, tmp_path: Path) -> None:
    assert well(one(subject, "Daemon", "socket"))
    subject.config.paths.socket.write_text("mine")
    line = one(subject, "Daemon", "socket")
    assert (line.state, "not a socket" in line.text) == ("fault", True)


def test_a_long_path_is_told(vault: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TARSD_HOME", str(tmp_path / ("x" * 100)))
    assert "too long" in one(settled(vault), "Daemon", "socket").text


def test_an_upgrade_without_a_restart(subject: DoctorContext, stand_in: Stub) -> None:
    look(subject, "Daemon", "answers")
    assert well(one(subject, "Daemon", "version"))
    stand_in.replies["GET /v1/hello"]["version"] = "0.0.1"
    look(subject, "Daemon", "answers")
    line = one(subject, "Daemon", "version")
    assert (line.state, "0.0.1" in line.text, line.hint) == ("warning", True, f"tarsd stop; then: {subject.start}")
    stand_in.replies["GET /v1/hello"]["protocol"] = 9
    look(subject, "Daemon", "answers")
    assert one(subject, "Daemon", "version").state == "fault"
    stand_in.replies["GET /v1/hello"] |= {"features": [], "vault": {"path": "/elsewhere"}}
    line = one(subject, "Daemon", "answers")
    assert (line.state, line.public) == ("warning", "It serves another vault.")
    assert "cannot check itself" in one(subject, "Index", "daemon").text


def test_what_the_daemon_complains_of(subject: DoctorContext, stand_in: Stub) -> None:
    general = {
        "path": "",
        "collection": "",
        "line": 0,
        "reason": "The disk is full: 0 left.",
        "hint": "Free some space.",
    }
    files = [
        {"path": f"Secret{n}.md", "collection": "work", "line": n, "reason": "Broken: 'my text'", "hint": "Mend it."}
        for n in range(7)
    ]
    says(stand_in, problems=[general, *files], behind=3)
    look(subject, "Daemon", "answers")
    lines = look(subject, "Daemon", "problems")
    assert [line.state for line in lines] == ["warning"] * 3
    assert (lines[0].text, lines[0].hint) == ("The disk is full: 0 left.", "Free some space.")
    named = "work/Secret0.md, work/Secret1.md:1, work/Secret2.md:2"
    assert lines[1].text == f"Broken: 'my text': {named}, and 4 more."
    assert (lines[2].text, lines[2].hint) == ("8 problems in all.", "tarsd status --all")
    assert [line.public for line in lines[:2]] == ["All: The disk is full", "7 notes: Broken"]
    assert one(subject, "Daemon", "behind").state == "warning"
    says(stand_in, process={"pid": 7, "uptime_s": 3})
    look(subject, "Daemon", "answers")
    assert well(one(subject, "Daemon", "behind"))


@pytest.mark.parametrize(
    ("http", "state"),
    [
        ({"enabled": False}, "skipped"),
        ({"enabled": True, "state": "listening", "url": "http://127.0.0.1:8427"}, "ok"),
        (
            {"enabled": True, "state": "listening", "url": "http://0.0.0.0:1", "reason": "Open.", "hint": "Close."},
            "warning",
        ),
        ({"enabled": True, "state": "failed", "reason": "Port 8427 is taken.", "hint": "Set another."}, "fault"),
        ({"enabled": True, "state": "no token", "reason": "There is none.", "hint": "tarsd token"}, "fault"),
    ],
)
def test_the_listener(subject: DoctorContext, stand_in: Stub, http: dict[str, Any], state: str) -> None:
    says(stand_in, http=http)
    look(subject, "Daemon", "answers")
    line = one(subject, "Daemon", "TCP")
    assert (line.state, line.hint) == (state, http.get("hint", ""))


@pytest.mark.parametrize(
    ("stands", "state", "hint"),
    [
        (ServiceState(False), "skipped", "tarsd service install"),
        (ServiceState(True, loaded=True, pid=7), "ok", ""),
        (ServiceState(True, loaded=True, pid=8), "warning", "tarsd stop; then: tarsd service start"),
        (ServiceState(True, loaded=False), "warning", "tarsd service start"),
        (
            ServiceState(True, loaded=True, exit_code=78, failed=True, reason="It has failed.", hint="Look."),
            "fault",
            "Look.",
        ),
    ],
)
def test_the_service(
    subject: DoctorContext, stand_in: Stub, monkeypatch: pytest.MonkeyPatch, stands: ServiceState, state: str, hint: str
) -> None:
    look(subject, "Daemon", "answers")
    monkeypatch.setattr(services, "service", lambda identity: Serving(stands))
    line = one(subject, "Daemon", "service")
    assert (line.state, line.hint) == (state, hint)


def test_a_log_that_grows_and_grows(subject: DoctorContext) -> None:
    logs = subject.config.paths.logs
    assert well(one(subject, "Daemon", "log"))
    logs.mkdir()
    with (logs / f"tarsd-{subject.config.vault_id}.log").open("wb") as file:
        file.truncate(60_000_000)
    assert one(subject, "Daemon", "log").state == "warning"


# ------------------------------------------------------------------------------------------------ clock and disk


def test_the_clock(subject: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    assert well(one(subject, "Clock", "time"))
    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + 3600.0)
        assert "jumped by 3600" in one(subject, "Clock", "time").text
    monkeypatch.setattr(machine, "BUILT", 9999)
    assert one(subject, "Clock", "time").state == "fault"


def test_the_time_zone(subject: DoctorContext) -> None:
    for named, state in (("", "ok"), ("UTC0", "ok"), ("Europe/Berlin", "ok"), ("Europe/Nowhere", "warning")):
        subject.env = {**os.environ, "TZ": named}
        assert one(subject, "Clock", "zone").state == state, named


def test_notes_from_the_future(subject: DoctorContext, vault: Path) -> None:
    assert well(one(subject, "Clock", "notes"))
    then = time.time() + 1e7
    os.utime(vault / "Boiler.md", (then, then))
    look(subject, "Vault", "notes")
    line = one(subject, "Clock", "notes")
    assert (line.state, line.text) == ("warning", "1 note with a date in the future: Boiler.md.")


def test_room_on_the_disk(subject: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {line.state for line in look(subject, "Disk", "space")} <= {"ok", "warning"}
    usage = shutil.disk_usage("/")
    for free, state in ((5e9, "ok"), (9e8, "warning"), (9e7, "fault")):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: usage._replace(free=int(free)))
        assert look(subject, "Disk", "space")[0].state == state
    paths = subject.config.paths
    paths.cache.mkdir(parents=True)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=int(5e9)))
    for index in (paths.index_db, paths.files_db):
        with index.open("wb") as file:
            file.truncate(int(1e9))
    assert look(subject, "Disk", "space")[0].state == "warning", "less than three times both indexes"


@pytest.mark.parametrize("which", ["index_db", "files_db"])
def test_a_log_of_an_index_that_is_never_written_back(subject: DoctorContext, which: str) -> None:
    assert well(one(subject, "Disk", "index"))
    index: Path = getattr(subject.config.paths, which)
    index.parent.mkdir(parents=True)
    with Path(f"{index}-wal").open("wb") as file:
        file.truncate(300_000_000)
    assert one(subject, "Disk", "index").state == "warning"


# ------------------------------------------------------------------------------------------------ what the daemon sends


def test_the_daemons_own_lines_are_passed_on(subject: DoctorContext, stand_in: Stub) -> None:
    stand_in.replies["POST /v1/check"] = [
        {"type": "check", "group": "Index", "name": "notes", "state": "fault", "text": "2 notes differ.",
         "hint": "tarsd reindex --full", "paths": ["a.md", "b.md"], "ms": 12.5},
        {"type": "check", "group": "Models", "name": "chat", "state": "fault", "text": "Org acme has no credit.",
         "hint": "", "paths": [], "ms": 1.0},
        {"type": "check", "group": "Models", "name": "later", "state": "unheard of", "text": "?", "ms": 1.0},
    ]  # fmt: skip
    look(subject, "Daemon", "answers")
    lines = look(subject, "Index", "daemon")
    assert [(line.group, line.name, line.state, line.ms) for line in lines] == [
        ("Index", "notes", "fault", 12.5),
        ("Models", "chat", "fault", 1.0),
        ("Models", "later", "fault", 1.0),
    ]
    assert (lines[0].text, lines[0].public) == ("2 notes differ. a.md, b.md", "2 notes differ.")
    assert lines[1].public == "It failed."
    assert stand_in.asked[-1] == ("POST /v1/check", {"model": True})
    subject.model = False
    look(subject, "Index", "daemon")
    assert stand_in.asked[-1] == ("POST /v1/check", {"model": False})


def test_a_stream_that_breaks_off_is_a_fault(subject: DoctorContext, stand_in: Stub) -> None:
    look(subject, "Daemon", "answers")
    stand_in.replies["POST /v1/check"] = (500, {"error": {"message": "It broke.", "hint": "See the log for details."}})
    line = one(subject, "Index", "daemon")
    assert (line.state, line.text, line.public) == ("fault", "It broke.", "It failed (error).")


def test_what_would_help_is_told_though_nothing_is_wrong(stand_in: Stub, subject: DoctorContext) -> None:
    says(stand_in, advice=["Most notes are not in English. A model helps: tarsd model use e5"])
    look(subject, "Daemon", "answers")
    helps = one(subject, "Models", "languages")
    assert one(subject, "Daemon", "problems").state == "ok" and helps.state == "warning"
    assert helps.text.startswith("Most notes") and "tarsd model use e5" in helps.text
