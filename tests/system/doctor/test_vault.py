"""The checks of the vault, and of how it is watched."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarsd import services
from tarsd.config import PrivacySettings
from tarsd.doctor import CHECKS, Check, DoctorContext, examine, vault, watching
from tarsd.services import ServiceState
from tarsd.vault import Vault
from tests.support.engine import write
from tests.support.stub import Stub
from tests.system.doctor.conftest import Serving, Start, keyed, look, one, says, settled, well


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
    assert "never opened in Obsidian" in one(subject, "Vault", "Obsidian").text


def test_rules_that_match_nothing_are_named(subject: DoctorContext, vault: Path) -> None:
    assert one(subject, "Vault", "rules").text == "There are none."
    write(vault, "Private/a.md", "mine")
    subject.config = replace(subject.config, exclude=("Privat/",), privacy=PrivacySettings(local_only=("private/",)))
    line = one(subject, "Vault", "rules")
    assert (line.state, line.text) == ("warning", 'vault.exclude: the rule "Privat/" matches nothing in the vault.')
    assert line.public is not None and "Privat" not in line.public
    subject.config = replace(subject.config, exclude=())
    assert well(one(subject, "Vault", "rules"))


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
    assert "is missing" in one(settled(vault), "Vault", "folder").text


def test_the_program_of_the_service_is_the_one_to_allow(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "scandir", refusing(errno.EPERM, vault))
    monkeypatch.setattr(
        services, "service", lambda identity: Serving(ServiceState(True), ["/opt/tars/bin/python3", "-m"])
    )
    assert "/opt/tars/bin/python3" in one(settled(vault), "Vault", "folder").hint


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
    assert line.text == "2 notes are not downloaded: 1 in iCloud, 1 without their bytes."
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
    assert line.public == "1 second version from a sync tool."


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
    assert one(subject, "Vault", "own folder").text == "tars/ does not exist yet and can be created."
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
