"""`tarsd doctor`: every check against its fault and against all being well; the runner; the output; the report."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import tarsd
from tarsd import doctor, services
from tarsd.config import vault_id
from tarsd.doctor import CHECKS, Check, DoctorContext, ReportLine, examine, machine, program, vault, watching
from tarsd.doctor import daemon as outside
from tarsd.doctor.finding import Skip, fault, ok
from tarsd.errors import EXIT_OK, EXIT_REFUSED, EXIT_USAGE, NotFound
from tarsd.services import ServiceState
from tarsd.vault import Vault
from tests.conftest import Daemon
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Say
from tests.support.engine import write
from tests.support.screen import CODES, Screen
from tests.support.stub import Run, Stub

Start = Callable[..., Daemon]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No keyring, no home and no service of whoever runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "ada").mkdir()


@pytest.fixture
def subject(vault: Path) -> DoctorContext:
    """The vault, known and readable, with one note."""
    write(vault, "Boiler.md", "# Boiler\n\nThe gauge should read 1.2 bar when cold.\n")
    return settled(vault)


def settled(vault: Path) -> DoctorContext:
    subject = DoctorContext(vault)
    look(subject, "Settings", "file")
    look(subject, "Vault", "folder")
    look(subject, "Vault", "notes")
    return subject


def look(subject: DoctorContext, group: str, name: str) -> list[ReportLine]:
    """The lines of one check."""
    (check,) = [one for one in CHECKS if (one.group, one.name) == (group, name)]
    return list(examine(subject, [check]))


def one(subject: DoctorContext, group: str, name: str) -> ReportLine:
    (line,) = look(subject, group, name)
    return line


def well(line: ReportLine) -> bool:
    return line.state == "ok" and not line.hint


@pytest.fixture
def stand_in(subject: DoctorContext) -> Iterator[Stub]:
    """A stand-in for the daemon, at the vault's own socket; `stand_in.replies` is what it says."""
    import threading

    stub = Stub(subject.config.paths.socket)
    hello = {"version": tarsd.__version__, "protocol": 1, "features": ["check"]}
    stub.replies["GET /v1/hello"] = hello | {"vault": {"path": str(subject.config.vault)}}
    stub.replies["GET /v1/status"] = {"process": {"pid": 7, "uptime_s": 100}, "behind": 0, "problems": []}
    stub.replies["GET /v1/notes"] = {"notes": []}
    stub.replies["POST /v1/check"] = []
    thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield stub
    stub.shutdown()
    thread.join()
    stub.server_close()


def says(stub: Stub, **status: Any) -> None:
    stub.replies["GET /v1/status"] |= status


# ------------------------------------------------------------------------------------------------ the runner


def checks(*looks: Callable[[DoctorContext], Any], seconds: float = 5.0) -> list[Check]:
    return [Check("Test", f"check {number}", one, seconds) for number, one in enumerate(looks)]


def test_whatever_a_check_does_it_is_a_line() -> None:
    def skips(subject: DoctorContext) -> Any:
        raise Skip("There is nothing.")

    def fails(subject: DoctorContext) -> Any:
        yield ok("So far.")
        raise NotFound("It is gone.", "Look for it.")

    def breaks(subject: DoctorContext) -> Any:
        raise ZeroDivisionError("of a note's text")

    def leaves(subject: DoctorContext) -> Any:
        sys.exit(3)

    lines = list(examine(DoctorContext(), checks(skips, fails, breaks, leaves, lambda subject: fault("No.", "Yes."))))
    assert [(line.name, line.state, line.text, line.hint) for line in lines] == [
        ("check 0", "skipped", "There is nothing.", ""),
        ("check 1", "ok", "So far.", ""),
        ("check 1", "fault", "It is gone.", "Look for it."),
        ("check 2", "fault", "This check failed by itself (ZeroDivisionError).", lines[3].hint),
        ("check 3", "fault", "This check failed by itself (SystemExit).", lines[3].hint),
        ("check 4", "fault", "No.", "Yes."),
    ]
    assert "--report" in lines[3].hint and all(line.ms >= 0 for line in lines)


def test_what_hangs_is_left_behind_and_all_of_it_ends() -> None:
    def hangs(subject: DoctorContext) -> Any:
        time.sleep(3600)

    started = time.monotonic()
    lines = list(
        examine(DoctorContext(), checks(hangs, seconds=0.1) + checks(lambda subject: ok("Here."), hangs), seconds=0.5)
    )
    assert [line.state for line in lines] == ["fault", "ok", "fault"]
    assert "did not end within 0 s" in lines[0].text
    assert [line.state for line in examine(DoctorContext(), checks(hangs), seconds=-1.0)] == ["skipped"]
    assert time.monotonic() - started < 60


def test_all_checks_together_cannot_take_longer_than_a_minute() -> None:
    assert doctor.TOTAL_S < 60
    names = [(check.group, check.name) for check in CHECKS]
    assert len(set(names)) == len(names)
    groups = list(dict.fromkeys(group for group, _ in names))
    assert groups == [group for index, group in enumerate(groups) if group not in groups[:index]]


# ------------------------------------------------------------------------------------------------ the program


def test_python_is_told_by_its_real_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = one(DoctorContext(), "Program", "Python")
    assert well(line) and os.path.realpath(sys.executable) in line.text
    shim = tmp_path / ".pyenv" / "shims" / "python"
    shim.parent.mkdir(parents=True)
    shim.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(shim))
    line = one(DoctorContext(), "Program", "Python")
    assert line.state == "warning" and str(shim) in line.text and os.path.realpath(shim) in line.hint
    monkeypatch.setattr(program, "OLDEST", (99, 0))
    assert one(DoctorContext(), "Program", "Python").state == "fault"
    assert program._origin("/home/ada/.local/share/uv/python/cpython-3.12/bin/python3.12") == " (of uv)"


def test_sqlite_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert well(one(DoctorContext(), "Program", "SQLite"))
    import sqlite_vec

    from tarsd.store import examine as store

    monkeypatch.setattr(sqlite_vec, "loadable_path", lambda: "/nowhere/vec0")
    line = one(DoctorContext(), "Program", "SQLite")
    assert (line.state, "in memory" in line.text, "sqlite-vec" in line.hint) == ("warning", True, True)
    monkeypatch.setattr(store, "_keywords", lambda db: "")
    assert one(DoctorContext(), "Program", "SQLite").state == "fault"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`packages("name", "code")` installs a package of this code, which tarsd is said to need, and nothing else."""
    folder = tmp_path / "site"

    def install(name: str, code: str) -> None:
        write(folder, f"{name}.py", code)
        write(folder, f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        write(folder, f"{name}-1.0.dist-info/top_level.txt", name)
        monkeypatch.setattr(metadata, "requires", lambda package: ["click>=8", f"{name}>=1", 'pytest; extra == "test"'])

    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
    return install


def test_every_package_is_imported_elsewhere(
    packages: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    packages("quorl", "")
    assert one(DoctorContext(), "Program", "packages").text == "All 2 packages can be imported."
    packages("quorl", "raise ImportError('made for another machine')")
    line = one(DoctorContext(), "Program", "packages")
    assert line.state == "fault" and "quorl cannot be imported: ImportError: made for another machine" in line.text
    assert line.hint.endswith("quorl")
    packages("quorl", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert "ended by SIGILL" in one(DoctorContext(), "Program", "packages").text
    packages("quorl", "import time; time.sleep(3600)")
    monkeypatch.setattr(program, "RUN_S", 1.0)
    line = one(DoctorContext(), "Program", "packages")
    assert line.state == "warning" and "it was at quorl" in line.text
    monkeypatch.setattr(metadata, "requires", lambda package: ["nonesuch-thing>=1"])
    assert one(DoctorContext(), "Program", "packages").text == "Not installed: nonesuch-thing."


def test_how_it_is_installed_says_how_it_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert program._reinstall("apsw").endswith("-m pip install --force-reinstall apsw")
    monkeypatch.setattr(sys, "prefix", "/home/ada/.local/share/uv/tools/tarsd")
    assert program._reinstall("apsw") == "uv tool install --reinstall tarsd"
    monkeypatch.setattr(sys, "prefix", "/home/ada/.local/share/pipx/venvs/tarsd")
    assert program._reinstall("apsw") == "pipx reinstall tarsd"


def test_the_models_in_the_package_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert well(one(DoctorContext(), "Program", "own models"))
    write(tmp_path / "site", "onnxruntime.py", "raise ImportError('no such instruction')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}:{ROOT}")
    line = one(DoctorContext(), "Program", "own models")
    assert line.state == "fault" and "minilm" in line.text and "no such instruction" in line.text


# ------------------------------------------------------------------------------------------------ the settings


def test_settings_without_a_fault(home: Path, vault: Path) -> None:
    assert "is not there" in one(DoctorContext(vault), "Settings", "file").text
    write(home, "config.toml", f'[vault]\npath = "{vault}"\n')
    assert well(one(DoctorContext(), "Settings", "file"))


def test_every_fault_of_the_settings_is_a_line(home: Path, vault: Path) -> None:
    write(home, "config.toml", f'[vault]\npath = "{vault}"\nfolder = "x"\n[chat]\nmodel = "gpt"\n')
    subject = DoctorContext()
    lines = look(subject, "Settings", "file")
    assert [line.state for line in lines] == ["fault", "fault"]
    assert "vault.folder" in lines[0].text and "chat.model" in lines[1].text
    assert [line.public for line in lines] == ["A fault on line 3.", "A fault on line 5."]
    assert subject.config.vault == vault, "the vault is known all the same"


@pytest.mark.parametrize("what", ["no TOML", "a pipe", "bytes"])
def test_a_config_that_cannot_be_read_keeps_nobody_waiting(home: Path, vault: Path, what: str) -> None:
    if what == "a pipe":
        os.mkfifo(home / "config.toml")
    else:
        write(home, "config.toml", b"[vault" if what == "no TOML" else b"\xff\xfe\x00")
    line = one(DoctorContext(), "Settings", "file")
    assert line.state == "fault" and str(home) in line.text
    assert look(DoctorContext(vault), "Settings", "file")[0].state == "fault"


def test_without_any_vault_it_says_how_to_name_one(home: Path) -> None:
    subject = DoctorContext()
    assert "tarsd init" in one(subject, "Settings", "file").text
    assert one(subject, "Vault", "folder").state == "skipped"
    assert one(subject, "Daemon", "answers").state == "skipped"


def test_the_only_daemon_says_which_vault_is_meant(daemon: Start, vault: Path) -> None:
    daemon()
    subject = DoctorContext()
    assert well(one(subject, "Settings", "file")) and subject.config.vault == vault
    assert well(one(subject, "Daemon", "answers"))


def test_places_that_others_may_open_are_faults(subject: DoctorContext, home: Path) -> None:
    paths = subject.config.paths
    for folder in (paths.state.parent, paths.state, paths.logs):
        folder.mkdir(mode=0o700)
    for file in (paths.lock, home / "keys.json", paths.config_file):
        file.touch(mode=0o600)
    assert well(one(subject, "Settings", "access"))
    paths.logs.chmod(0o750)
    (home / "keys.json").chmod(0o644)
    paths.config_file.chmod(0o666)
    lines = {line.hint: line for line in look(subject, "Settings", "access")}
    assert set(lines) == {
        f"chmod 700 {paths.logs}",
        f"chmod 600 {home / 'keys.json'}",
        f"chmod 644 {paths.config_file}",
    }
    assert {line.state for line in lines.values()} == {"fault"}
    assert "write to" in lines[f"chmod 644 {paths.config_file}"].text
    for command in lines:
        subprocess.run(command, shell=True, check=True)
    assert well(one(subject, "Settings", "access"))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_places_of_another_user_are_faults(subject: DoctorContext) -> None:
    logs = subject.config.paths.logs
    logs.mkdir(mode=0o700)
    os.chown(logs, 12345, -1)
    assert "belongs to another user" in one(subject, "Settings", "access").text


def keyed(home: Path, vault: Path, settings: str) -> DoctorContext:
    write(home, "config.toml", f'[vault]\npath = "{vault}"\n{settings}')
    return settled(vault)


def test_keys_are_asked_for_and_never_shown(home: Path, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one(keyed(home, vault, ""), "Settings", "keys").text == "The settings ask for none."
    settings = '[chat]\nmodel = "anthropic:claude"\nfallback = "openai:gpt"\n[http]\nenabled = true\n'
    lines = look(keyed(home, vault, settings), "Settings", "keys")
    assert [line.hint for line in lines] == ["tarsd key set anthropic", "tarsd key set openai", "tarsd token"]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-1")
    write(home, "keys.json", json.dumps({"openai": "sk-secret-2", "tcp": "sk-secret-3"})).chmod(0o600)
    lines = look(keyed(home, vault, settings), "Settings", "keys")
    assert [line.state for line in lines] == ["ok"] * 3
    assert "a service does not see it" in lines[0].text and str(home / "keys.json") in lines[1].text
    assert "sk-secret" not in "".join(str(line) for line in lines)
    (home / "keys.json").chmod(0o644)
    assert look(keyed(home, vault, settings), "Settings", "keys")[-1].hint.startswith("Run: chmod 600")


def test_a_server_of_ones_own_needs_no_key(home: Path, vault: Path) -> None:
    settings = '[chat]\nmodel = "openai:qwen"\n[openai]\nbase_url = "http://127.0.0.1:8080/v1"\n'
    assert well(one(keyed(home, vault, settings), "Settings", "keys"))


@pytest.mark.parametrize(
    ("reply", "state", "words"),
    [
        ({"state": "ready", "models": [{"id": "ollama:qwen3:4b"}]}, "ok", "chat ollama:qwen3:4b"),
        ({"state": "ready", "models": []}, "ok", "chat ollama:qwen3:4b"),
        ({"state": "ready", "models": [{"id": "ollama:other"}]}, "warning", "is not among the 1 model"),
        ({"state": "unreachable", "reason": "Ollama does not answer.", "hint": "Start it."}, "warning", "not answer"),
    ],
)
def test_models_that_are_named_are_looked_for(
    home: Path, stand_in: Stub, vault: Path, reply: dict[str, Any], state: str, words: str
) -> None:
    subject = keyed(home, vault, '[chat]\nmodel = "ollama:qwen3:4b"\n')
    stand_in.replies["GET /v1/models"] = {"providers": [{"provider": "ollama", **reply}]}
    line = one(subject, "Models", "names")
    assert (line.state, words in line.text) == (state, True)
    subject.model = False
    assert one(subject, "Models", "names").state == "skipped"


# ------------------------------------------------------------------------------------------------ the vault


def refusing(number: int, root: Path) -> Callable[..., Any]:
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        if str(path) == str(root):
            raise PermissionError(number, os.strerror(number))
        return real(path)

    return scandir


def test_a_vault_that_is_there(subject: DoctorContext, vault: Path) -> None:
    assert well(one(subject, "Vault", "folder")) and well(one(subject, "Vault", "Obsidian"))
    assert one(subject, "Vault", "notes").text == "1 note."
    (vault / ".obsidian").rmdir()
    assert "never opened it" in one(subject, "Vault", "Obsidian").text


@pytest.mark.report("https://github.com/openclaw/openclaw/issues/78049")
def test_a_vault_that_is_not(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program to be allowed is named, and nothing else of the vault is looked at."""
    monkeypatch.setattr(os, "scandir", refusing(errno.EPERM, vault))
    subject = settled(vault)
    line = one(subject, "Vault", "folder")
    assert line.state == "fault" and "Full Disk Access" in line.hint
    assert services.allowed_program(sys.executable) in line.hint
    assert line.public is not None and str(vault) not in line.public
    for check in CHECKS:
        if check.group in ("Vault", "File watching") and check.name not in ("folder", "daemon"):
            assert {line.state for line in examine(subject, [check])} == {"skipped"}, check
    monkeypatch.undo()
    shutil.rmtree(vault)
    assert "is not there" in one(settled(vault), "Vault", "folder").text


def test_the_program_of_the_service_is_the_one_to_allow(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "scandir", refusing(errno.EPERM, vault))
    monkeypatch.setattr(
        services, "service", lambda identity: Serving(ServiceState(True), ["/opt/tars/bin/python3", "-m"])
    )
    assert "/opt/tars/bin/python3" in one(settled(vault), "Vault", "folder").hint


class Serving:
    """A service that stands as it is told to."""

    def __init__(self, state: ServiceState, arguments: Sequence[str] = ()) -> None:
        self._state, self._arguments = state, arguments

    def state(self) -> ServiceState:
        return self._state

    def arguments(self) -> Sequence[str]:
        return self._arguments


def test_a_share_that_does_not_answer_costs_one_check(subject: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    subject.readable = False
    monkeypatch.setattr(Vault, "check", lambda self: time.sleep(3600))
    hanging = [Check("Vault", "folder", vault.folder, 0.2)]
    others = [check for check in CHECKS if check.group in ("Vault", "File watching", "Disk") and check.name != "folder"]
    lines = list(examine(subject, hanging + others))
    assert lines[0].state == "fault" and "does not answer" in lines[0].hint
    assert {line.state for line in lines[1:]} == {"ok", "skipped"}
    assert [line.name for line in lines if line.state == "ok" and line.group != "Disk"] == ["downloads", "conflicts"]


def test_notes_are_counted_and_what_cannot_be_read_is_named(subject: DoctorContext, vault: Path) -> None:
    os.close(os.open(os.fsencode(vault) + b"/\xff.md", os.O_CREAT))
    line = one(subject, "Vault", "notes")
    assert line.state == "warning" and "1 cannot be read" in line.text and line.hint
    assert line.public == "1 note; 1 cannot be read."
    (vault / "Boiler.md").unlink()
    os.unlink(os.fsencode(vault) + b"/\xff.md")
    assert "right folder" in one(subject, "Vault", "notes").hint


def test_notes_in_a_cloud_are_counted(subject: DoctorContext, vault: Path) -> None:
    assert well(one(subject, "Vault", "downloads"))
    write(vault, ".Away.md.icloud", b"bplist00")
    with (vault / "Dataless.md").open("wb") as file:
        file.truncate(5000)
    look(subject, "Vault", "notes")
    line = one(subject, "Vault", "downloads")
    assert line.text == "2 notes are not downloaded: 1 as stubs of iCloud, 1 without their bytes."
    assert (line.state, "Keep Downloaded" in line.hint) == ("warning", True)


def test_a_pipe_is_no_note_that_could_be_downloaded(subject: DoctorContext, vault: Path) -> None:
    os.mkfifo(vault / "Pipe.md")
    line = one(subject, "Vault", "notes")
    assert (line.state, line.text) == ("warning", "1 note; 1 cannot be read: Pipe.md.")
    assert well(one(subject, "Vault", "downloads"))


def test_second_versions_are_named(subject: DoctorContext, vault: Path) -> None:
    assert well(one(subject, "Vault", "conflicts"))
    write(vault, "Boiler.sync-conflict-20260101-120000-ABCDEFG.md", "x")
    look(subject, "Vault", "notes")
    line = one(subject, "Vault", "conflicts")
    assert (line.state, "Boiler.sync-conflict" in line.text) == ("warning", True)
    assert line.public == "1 second version kept by a sync tool."


@contextmanager
def read_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder that cannot be written to; root writes everywhere, and is told that it could not."""
    folder.chmod(0o555)
    try:
        with monkeypatch.context() as patch:
            if os.getuid() == 0:
                patch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
            yield
    finally:
        folder.chmod(0o755)


def test_whether_memory_can_be_written_is_asked_not_tried(
    subject: DoctorContext, vault: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(vault.rglob("*"))
    assert one(subject, "Vault", "own folder").text == "tars/ is not there yet, and can be made."
    assert sorted(vault.rglob("*")) == before
    (vault / "tars").mkdir()
    assert one(subject, "Vault", "own folder").text == "tars/ can be written to."
    with read_only(vault / "tars", monkeypatch):
        line = one(subject, "Vault", "own folder")
        assert (line.state, line.hint) == ("warning", f"chmod u+rwx {vault / 'tars'}")
        none = keyed(home, vault, "[memory]\nenabled = false\nsession_notes = false\n")
        assert one(none, "Vault", "own folder").state == "skipped"


def test_the_file_system_is_named(
    subject: DoctorContext, vault: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert well(one(subject, "Vault", "file system"))
    monkeypatch.setattr("tarsd.watch.filesystem.filesystem_of", lambda path: "nfs4")
    assert one(subject, "Vault", "file system").state == "warning"
    events = keyed(home, vault, '[watch]\nmode = "events"\n')
    assert "polling" in one(events, "Vault", "file system").hint
    monkeypatch.setattr(os.path, "lexists", lambda path: True)  # every name is there in another case as well
    assert "one name" in one(subject, "Vault", "file system").text


# ------------------------------------------------------------------------------------------------ watching


def test_an_event_is_made_and_heard_and_nothing_is_left(subject: DoctorContext, vault: Path) -> None:
    before = sorted(vault.rglob("*"))
    assert well(one(subject, "File watching", "events"))
    assert sorted(vault.rglob("*")) == before


class Deaf:
    """An observer to whom nobody tells anything, or that cannot be started."""

    emitters = ()

    def __init__(self, fault: OSError | None = None) -> None:
        self._fault = fault

    def schedule(self, *_: Any, **__: Any) -> None:
        pass

    def start(self) -> None:
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        pass

    join = stop


def test_events_that_do_not_come_are_a_fault(
    subject: DoctorContext, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "EVENT_S", 0.1)
    monkeypatch.setattr("tarsd.watch.observer.native_observer", Deaf)
    before = sorted(vault.rglob("*"))
    line = one(subject, "File watching", "events")
    assert (line.state, "polling" in line.hint) == ("fault", True)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("tarsd.watch.observer.native_observer", lambda: Deaf(full))
    line = one(subject, "File watching", "events")
    assert (line.state, line.hint) == ("fault", "sudo sysctl fs.inotify.max_user_watches=524288")
    with read_only(vault, monkeypatch):
        assert one(subject, "File watching", "events").state == "skipped"
    assert sorted(vault.rglob("*")) == before


@pytest.mark.parametrize(("mode", "kind"), [("polling", "ext4"), ("auto", "nfs4")])
def test_where_nobody_waits_for_events_none_is_made(
    home: Path, vault: Path, monkeypatch: pytest.MonkeyPatch, mode: str, kind: str
) -> None:
    monkeypatch.setattr("tarsd.watch.filesystem.filesystem_of", lambda path: kind)
    assert one(keyed(home, vault, f'[watch]\nmode = "{mode}"\n'), "File watching", "events").state == "skipped"


def test_a_hidden_file_wakes_no_daemon(daemon: Start, subject: DoctorContext, vault: Path) -> None:
    before = daemon().wait()
    assert well(one(subject, "File watching", "events"))
    time.sleep(0.5)  # longer than a change waits for quiet
    after = subject.client(10).get("/v1/status")
    assert (after["counts"], after["problems"]) == (before["counts"], before["problems"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these limits")
def test_limits_of_watches(
    subject: DoctorContext, vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(subject, "File watching", "limits")[0].state == "ok"
    monkeypatch.setattr(watching, "LIMITS", tmp_path)
    for folder in ("a/b", "c", ".hidden/d"):
        (vault / folder).mkdir(parents=True)
    for allowed, instances, states in ((100, 128, ["ok"]), (6, 8, ["warning", "warning"]), (3, 128, ["fault"])):
        write(tmp_path, "max_user_watches", f"{allowed}\n")
        write(tmp_path, "max_user_instances", f"{instances}\n")
        lines = look(subject, "File watching", "limits")
        assert [line.state for line in lines] == states and "4 folders" in lines[0].text
        assert all(line.hint.startswith("sudo sysctl fs.inotify.") for line in lines if line.state != "ok")


@pytest.mark.parametrize(
    ("watch", "state"),
    [
        ({"state": "events"}, "ok"),
        ({"state": "polling", "reason": "The vault lies on nfs4.", "hint": "Set it."}, "warning"),
        ({"state": "waiting", "reason": "No access to the vault.", "hint": "Allow it."}, "fault"),
        ({"state": "stopped"}, "fault"),
    ],
)
def test_how_the_daemon_watches(subject: DoctorContext, stand_in: Stub, watch: dict[str, str], state: str) -> None:
    assert one(subject, "File watching", "daemon").state == "skipped"
    says(stand_in, watch=watch)
    look(subject, "Daemon", "answers")
    line = one(subject, "File watching", "daemon")
    assert (line.state, line.hint) == (state, watch.get("hint", ""))


# ------------------------------------------------------------------------------------------------ the daemon


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
    assert (line.state, line.text) == ("fault", "What listens on the socket is no tarsd.")


def test_a_socket_that_cannot_be(subject: DoctorContext, tmp_path: Path) -> None:
    assert well(one(subject, "Daemon", "socket"))
    subject.config.paths.socket.write_text("mine")
    line = one(subject, "Daemon", "socket")
    assert (line.state, "no socket" in line.text) == ("fault", True)


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
    assert "cannot look at itself" in one(subject, "Index", "daemon").text


def test_what_the_daemon_complains_of(subject: DoctorContext, stand_in: Stub) -> None:
    general = {"path": "", "collection": "", "line": 0, "reason": "The disk is full: 0 left.", "hint": "Free some."}
    files = [
        {"path": f"Secret{n}.md", "collection": "work", "line": n, "reason": "Broken: 'my text'", "hint": "Mend it."}
        for n in range(7)
    ]
    says(stand_in, problems=[general, *files], behind=3)
    look(subject, "Daemon", "answers")
    lines = look(subject, "Daemon", "problems")
    assert [line.state for line in lines] == ["warning"] * 6
    assert (lines[0].text, lines[0].hint) == ("The disk is full: 0 left.", "Free some.")
    assert lines[2].text == "work/Secret1.md:1: Broken: 'my text'"
    assert (lines[5].text, lines[5].hint) == ("… and 3 more problems.", "tarsd status --all")
    assert [line.public for line in lines[:2]] == ["All: The disk is full", "A note: Broken"]
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
        jumps = iter([0.0, 3600.0])
        patch.setattr(time, "time", lambda: real() + next(jumps))
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
    index = subject.config.paths.index_db
    index.parent.mkdir(parents=True)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=int(5e9)))
    with index.open("wb") as file:
        file.truncate(int(2e9))
    assert look(subject, "Disk", "space")[0].state == "warning", "less than three times the index"


def test_a_log_of_the_index_that_is_never_written_back(subject: DoctorContext) -> None:
    assert well(one(subject, "Disk", "index"))
    index = subject.config.paths.index_db
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
    stand_in.replies["POST /v1/check"] = (500, {"error": {"message": "It broke.", "hint": "The log says where."}})
    line = one(subject, "Index", "daemon")
    assert (line.state, line.text, line.public) == ("fault", "It broke.", "It failed (error).")


# ------------------------------------------------------------------------------------------------ the command


QUICK = tuple(check for check in CHECKS if check.name not in ("packages", "own models"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks that start another Python."""
    monkeypatch.setattr(doctor.examine, "__defaults__", (QUICK,))


def test_json_and_exit_codes(run: Run, quick: None, daemon: Start, subject: DoctorContext, vault: Path) -> None:
    code, out, err = run("doctor", "--vault", str(vault), "--json")
    reply = json.loads(out)
    assert (code, reply["ok"], err, set(reply)) == (EXIT_REFUSED, False, "", {"ok", "checks"})
    assert {tuple(line) for line in reply["checks"]} == {("group", "name", "state", "text", "hint", "ms")}
    assert [line["name"] for line in reply["checks"] if line["state"] == "fault"] == ["answers"]
    daemon()
    code, out, _ = run("doctor", "--vault", str(vault), "--json", "--no-model")
    assert (code, json.loads(out)["ok"]) == (EXIT_OK, True)
    write(vault, "Bad.md", "---\na: [\n---\n")
    subject.client(10).post("/index")
    code, out, _ = run("doctor", "--vault", str(vault))
    assert (code, "1 warning." in out) == (EXIT_OK, True), "warnings are no fault"


def test_it_ends_with_four_wherever_nothing_is_right(run: Run, quick: None, home: Path) -> None:
    write(home, "config.toml", "[vault")
    code, out, err = run("doctor")
    assert (code, err) == (EXIT_REFUSED, "") and "Traceback" not in out and "1 fault." in out


@pytest.mark.parametrize("width", [60, 96])
def test_it_fits_the_terminal(home: Path, subject: DoctorContext, vault: Path, width: int) -> None:
    write(vault, "A note with quite a long name (conflicted copy 2026-01-01).md", "x")
    with Screen(["doctor", "--vault", str(vault)], COLUMNS=str(width)) as screen:
        assert screen.end() == EXIT_REFUSED
    rows = [CODES.sub("", row.rpartition("\x1b[K")[2]).rstrip() for row in screen.raw.split("\n")]
    assert [row for row in rows if len(row) > width and not row.strip().startswith("tarsd run")] == []
    assert max(map(len, rows)) > width - 20, "it uses the width that there is"
    assert re.search(r"\x1b\[31m✗\x1b\[0m answers", screen.raw) and "\x1b[32m✓" in screen.raw
    assert rows.count("Vault") == 1 and rows[-2:] == ["1 fault and 1 warning.", ""]
    assert not [row for row in rows if row.startswith("  …")], "what was waited for is gone"


def test_the_whole_of_it_in_another_process(daemon: Start, vault: Path) -> None:
    write(vault, "a.md", "Tea.\n")
    one = daemon()
    command = [sys.executable, "-m", "tarsd.cli", "doctor", "--vault", str(vault), "--json"]
    done = subprocess.run(command, env=one.env, capture_output=True, text=True, timeout=110, check=False)
    reply = json.loads(done.stdout)
    assert [line for line in reply["checks"] if line["state"] == "fault"] == [], done.stderr
    assert (done.returncode, done.stderr) == (EXIT_OK, "")
    assert {"Index", "Models", "Program"} <= {line["group"] for line in reply["checks"]}


def test_a_report_replaces_no_file(run: Run, quick: None, subject: DoctorContext, tmp_path: Path, vault: Path) -> None:
    mine = write(tmp_path, "mine.md", "mine")
    code, _, err = run("doctor", "--vault", str(vault), "--report", str(mine))
    assert (code, mine.read_text(), "stays as it is" in err) == (EXIT_REFUSED, "mine", True)
    code, out, _ = run("doctor", "--vault", str(vault), "--report", str(tmp_path / "fresh.md"))
    assert code == EXIT_REFUSED and "Read it before you give it away" in out
    assert stat.S_IMODE((tmp_path / "fresh.md").stat().st_mode) == 0o600
    assert (tmp_path / "fresh.md").read_text().startswith("# tarsd report\n")
    assert run("doctor", "--json", "--report", "-")[0] == EXIT_USAGE
    code, _, err = run("doctor", "--vault", str(vault), "--report", str(tmp_path / "no" / "such.md"))
    assert (code, "cannot be written" in err) == (EXIT_REFUSED, True)


# ------------------------------------------------------------------------------------------------ the report

TELLTALES = {
    "Zanzibar": "the vault", "Quetzal": "a folder", "Pemberton": "a note", "Xylophone": "a title",
    "Marzipan": "an alias", "kumquat": "a tag", "saffron": "a sub-tag", "Wolverine": "the text",
    "Ocelot": "a question", "Ptarmigan": "an answer", "Gnocchi": "a rule", "Tamarillo": "a private folder",
    "Cassowary": "a collection", "Jalapeno": "its folder", "Axolotl": "a note in it", "Mandrill": "a property",
    "Tarragon": "a conflict", "Narwhal": "a broken note", "Bandicoot": "an MCP server", "sk-double": "a key",
    "Okapi": "a place", "Umbrella": "the home",
}  # fmt: skip


def test_a_report_holds_nothing_private(
    run: Run, quick: None, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, daemon: Start
) -> None:
    user = tmp_path / "Umbrella"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("USER", "Umbrella")
    monkeypatch.setattr(socket, "gethostname", lambda: "okapi-host.local")
    root, other = user / "Zanzibar", user / "Jalapeno"
    (root / ".obsidian").mkdir(parents=True)
    write(
        root,
        "Quetzal/Pemberton.md",
        "---\naliases: [Marzipan]\ntags: [kumquat/saffron]\nMandrill: Mandrill\n---\n# Xylophone\n\nWolverine.\n",
    )
    write(root, "Quetzal/Narwhal.md", "---\nMandrill: *Mandrill\n---\nWolverine\n")
    write(root, "Gnocchi/Left.md", "Wolverine")
    write(root, "Tarragon (conflicted copy 2026-01-01).md", "Wolverine")
    write(root, ".Narwhal 2.md.icloud", "x")
    os.close(os.open(os.fsencode(root) + b"/Narwhal\xff.md", os.O_CREAT))
    write(other, "Axolotl.md", "Wolverine")
    then = time.time() + 1e7
    os.utime(root / "Quetzal" / "Pemberton.md", (then, then))
    with OpenAIDouble() as double:
        own, _, rest = double.config().partition("\n\n")
        settings = f"""
[vault]
path = "{root}"
exclude = ["Gnocchi/"]
[[collection]]
name = "Cassowary"
path = "{other}"
[privacy]
local_only = ["Tamarillo/"]
[tools]
weather_place = "Okapi"
[[mcp]]
name = "Bandicoot"
command = ["/nowhere/Bandicoot"]
"""
        write(home, "config.toml", f"{own}\n{settings}\n{rest}")
        running = daemon(root, TARSD_CHAT="", **double.env())
        double.enqueue(Say("Ptarmigan"))
        running.client.post("/chat", {"message": "Where is the Ocelot?"})
        running.client.post("/v1/search", {"query": "Ocelot Wolverine"})
        running.wait()
        shutil.move(other, user / "away")  # the log now speaks of a path
        running.wait(lambda status: any("not there" in one["reason"] for one in status["problems"]))
        log = running.config.paths.logs / f"tarsd-{running.config.vault_id}.log"
        until_logged(log, "cannot be watched")
        with log.open("a") as file:  # whatever may come to stand there one day
            file.write(json.dumps({"event": "reading Pemberton: Wolverine", "path": "x/Pemberton.md"}) + "\n")
            file.write("Wolverine\n")
        double.enqueue(Say("Ptarmigan"))
        _, out, _ = run("doctor", "--report", "-")
    assert out.startswith("# tarsd report\n")
    for word, what in TELLTALES.items():
        assert word.lower() not in out.lower(), (
            f"{what}: {[row for row in out.splitlines() if word.lower() in row.lower()]}"
        )
    assert not re.search(r"/tmp/pytest|/home/|/root", out)
    for wanted in (
        "cannot be watched",
        "note-",
        "`privacy.local_only` = 1 set",
        "`mcp` = 1 set",
        "A note: ",
        "✓ Index",
    ):
        assert wanted in out, wanted


def until_logged(log: Path, words: str) -> None:
    deadline = time.monotonic() + 60
    while words not in log.read_text():
        assert time.monotonic() < deadline, words
        time.sleep(0.05)


def test_a_report_without_anything_to_look_at(run: Run, quick: None, home: Path) -> None:
    code, out, _ = run("doctor", "--report", "-")
    assert (
        code == EXIT_REFUSED and "It is not known which vault is meant." in out and "There is none to be read." in out
    )


def test_a_log_that_is_a_pipe_keeps_nobody_waiting(run: Run, quick: None, subject: DoctorContext, vault: Path) -> None:
    logs = subject.config.paths.logs
    logs.mkdir()
    os.mkfifo(logs / f"tarsd-{subject.config.vault_id}.log")
    assert "There is none to be read." in run("doctor", "--vault", str(vault), "--report", "-")[1]


def test_a_user_without_an_account_has_a_report(
    run: Run, quick: None, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pwd

    monkeypatch.setattr(pwd, "getpwuid", lambda number: {}[number])
    assert run("doctor", "--vault", str(vault), "--report", "-")[1].startswith("# tarsd report")


def test_names_are_hidden_as_whole_words() -> None:
    from tarsd.doctor.scrub import Redactor

    scrub = Redactor({"/home/ada": "~", "ada": "user"}, {"Tea": "note-1", "Tea/Pot.md": "note-2.md", "A": "note-3"})
    assert scrub.places("/home/ada/x of ada, not Canada") == "~/x of user, not Canada"
    assert scrub.names("A Team reads Tea/Pot.md and Tea in /home/ada") == "A Team reads note-2.md and note-1 in ~"
