"""The commands about the service and its log."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd import services
from tarsd.config import load, socket_path, vault_id
from tarsd.errors import TarsdError
from tarsd.services import ServiceError, log
from tests.support.engine import until
from tests.support.stub import Run, Stub
from tests.support.supervisors import NOBODY
from tests.unit.services.conftest import PLATFORMS, Start, launch_of


@pytest.fixture
def answering(vault: Path) -> Iterator[dict[str, Any]]:
    """A daemon answers for the vault: what it says of itself."""
    status: dict[str, Any] = {
        "vault": {"path": str(vault)},
        "watch": {"state": "events"},
        "counts": {"notes": 3, "chunks": 4},
        "process": {"pid": NOBODY, "version": "0.1.0"},
    }
    stub = Stub(socket_path(vault_id(vault)))
    stub.replies["GET /v1/status"] = status
    stub.replies["GET /v1/hello"] = {"version": "0.1.0"}
    with stub.answering():
        yield status


# ------------------------------------------------------------------------------------------------ the commands


@pytest.mark.parametrize("platform", PLATFORMS)
def test_install_shows_what_it_sees(platform: str, on: Start, run: Run, vault: Path, answering: dict[str, Any]) -> None:
    system = on(platform)
    code, out, err = run("service", "install", "--vault", str(vault))
    file = services.service(vault_id(vault), system.machine).file
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == [
        f"Installed {file}",
        f"● Running, pid {NOBODY}",
        "  ● Up to date · 3 notes · 4 passages",
    ]
    assert ("loginctl enable-linger" in out) == (platform == "linux")
    code, out, _ = run("service", "status", "--vault", str(vault))
    assert (code, out.splitlines()[0]) == (0, f"● Running, pid {NOBODY}")
    assert "Install it anew" not in out
    code, out, _ = run("service", "--json", "--vault", str(vault))
    reply = json.loads(out)
    assert code == 0
    assert reply["vault"] == {"id": vault_id(vault), "path": str(vault)}
    assert (reply["installed"], reply["answers"], reply["pid"], reply["file"]) == (True, True, NOBODY, str(file))
    assert reply["daemon"]["counts"]["notes"] == 3
    assert (reply["allow"], reply["notices"], reply["failed"]) == (None, [], False)
    assert reply["lingers"] is (False if platform == "linux" else None)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_print_prints_and_does_nothing(platform: str, on: Start, run: Run, vault: Path) -> None:
    system = on(platform)
    code, out, _ = run("service", "install", "--print", "--vault", str(vault))
    machine = system.machine
    service = services.service(vault_id(vault), machine)
    assert (code, out) == (0, service.text(services.launch(load(vault=vault), machine)))
    assert json.loads(run("service", "install", "--print", "--json", "--vault", str(vault))[1])["text"] == out
    assert system.calls() == []
    assert list(system.home.iterdir()) == []


def test_install_waits_for_the_vault_with_it(
    on: Start, run: Run, tmp_path: Path, vault: Path, answering: dict[str, Any]
) -> None:
    on("linux")
    answering["watch"] = {"state": "waiting", "reason": "The vault folder /x is not there.", "hint": "Connect it."}
    code, out, _ = run("service", "install", "--vault", str(vault))
    assert code == 0
    assert "● Vault not available" in out
    assert "  The vault folder /x is not there.\n  Connect it.\n" in out


def test_what_has_not_come_up_is_said(on: Start, run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsd.cli.service_state.WAIT_S", 0.0)
    system = on("darwin")
    code, out, _ = run("service", "install", "--vault", str(vault))
    assert code == 4
    assert f"● Started, pid {NOBODY}, but not answering" in out
    assert f"tarsd-{vault_id(vault)}.log" in out
    system.ended(78)
    code, out, _ = run("service", "status", "--vault", str(vault))
    assert code == 4
    assert out.startswith(
        "● Failed. The configuration has errors (exit code 78).\n  See them with: tarsd config check.\n"
    )
    code, out, _ = run("service", "restart", "--vault", str(vault))
    assert code == 4 and "Started" in out
    code, out, _ = run("service", "stop", "--vault", str(vault))
    assert (code, out) == (0, "Stopped. It starts again when you log in, or with: tarsd service start\n")
    code, out, _ = run("service", "status", "--vault", str(vault))
    assert code == 3
    assert out.startswith("● Stopped\n  Start it with: tarsd service start\n")
    assert json.loads(run("service", "stop", "--json", "--vault", str(vault))[1]) == {"stopped": True}


def test_a_daemon_beside_the_service_is_named(
    on: Start, run: Run, vault: Path, answering: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsd.cli.service_state.WAIT_S", 0.0)
    system = on("linux")
    answering["process"]["pid"] = 77
    code, out, _ = run("service", "install", "--vault", str(vault))
    assert code == 4
    assert "● Another daemon already serves this vault: process 77\n  Stop it with tarsd stop" in out
    system.ended(0)
    assert run("service", "status", "--vault", str(vault))[0] == 4


@pytest.mark.report("https://github.com/daymade/claude-code-skills/issues/622")
def test_a_file_of_before_is_noticed(on: Start, run: Run, vault: Path, answering: dict[str, Any]) -> None:
    system = on("linux")
    run("service", "install", "--vault", str(vault))
    file = services.service(vault_id(vault), system.machine).file
    text = file.read_text()
    for old, said in (
        (text.replace("WatchdogSec=60", "WatchdogSec=99"), "by another version or with other environment variables"),
        (text.replace(f"{sys.prefix}/bin/python3", "/bin/sh"), f"starts /bin/sh, but this is {sys.prefix}/bin/python3"),
        (text.replace(f"{sys.prefix}/bin/python3", "/old/bin/python3.9"), "program is missing: /old/bin/python3.9"),
        ("[Unit]\n", "was changed by something else"),
    ):
        file.write_text(old)
        code, out, _ = run("service", "status", "--vault", str(vault))
        assert code == 0  # it runs all the same
        assert said in out
        assert "Install it again: tarsd service install" in out
    assert run("service", "install", "--vault", str(vault))[0] == 0
    assert file.read_text() == text


def test_faults_in_the_config_are_told_with_the_state(
    on: Start, run: Run, vault: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsd.cli.service_state.WAIT_S", 0.0)
    system = on("darwin")
    run("service", "install", "--vault", str(vault))
    (home / "config.toml").write_text('[chat]\nmodel = "nonsense"\n')
    system.ended(78)
    code, out, _ = run("service", "status", "--vault", str(vault))
    assert code == 4
    assert "config.toml:2: chat.model" in out
    system.calls()
    assert run("service", "install", "--vault", str(vault))[0] == 78
    assert system.calls() == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_uninstall_leaves_the_rest_and_says_so(
    platform: str, on: Start, run: Run, vault: Path, home: Path, answering: dict[str, Any]
) -> None:
    system = on(platform)
    (home / "config.toml").write_text(f'[vault]\npath = "{vault}"\n')
    run("service", "install")
    (home / "state" / vault_id(vault)).mkdir(parents=True)
    file = services.service(vault_id(vault), system.machine).file
    code, out, _ = run("service", "uninstall")
    assert code == 0
    assert out.splitlines()[:3] == [
        f"Stopped and removed {file}",
        f"  still there: {home / 'config.toml'}",
        f"  still there: {home / 'state' / vault_id(vault)}",
    ]
    assert "tarsd uninstall --purge" in out
    assert [one for one in system.home.rglob("*") if one.is_file()] == []
    code, out, _ = run("service", "uninstall", "--json")
    assert code == 1
    assert json.loads(out)["uninstalled"] is False
    assert run("service", "uninstall")[:2] == (1, "No service is installed for this vault.\n")
    code, out, err = run("service", "status")
    assert (code, out) == (1, f"No service is installed for {vault}.\n")
    assert "tarsd service install" in err
    for verb in ("start", "stop", "restart"):
        code, _, err = run("service", verb)
        assert code == 1
        assert "tarsd service install" in err


def test_whose_service_is_meant(
    on: Start, run: Run, vault: Path, tmp_path: Path, home: Path, answering: dict[str, Any]
) -> None:
    system = on("linux")
    assert run("service", "status")[0] == 78  # no config, no service, no vault
    run("service", "install", "--vault", str(vault))
    assert json.loads(run("service", "status", "--json")[1])["vault"]["path"] == str(vault)  # the only one
    other = tmp_path / "other"
    other.mkdir()
    services.service(vault_id(other), system.machine).install(launch_of("/bin/true", "--vault", str(other)))
    code, _, err = run("service", "status")
    assert code == 2
    assert "2 services are installed" in err
    assert str(vault) in err and str(other) in err
    third = tmp_path / "third"
    code, out, _ = run("service", "status", "--vault", str(third))
    assert code == 1
    assert out.count("installed:") == 2
    assert json.loads(run("service", "status", "--json", "--vault", str(third))[1])["installed"] is False
    (home / "config.toml").write_text(f'[vault]\npath = "{other}"\n')
    assert json.loads(run("service", "status", "--json")[1])["vault"]["path"] == str(other)


def test_errors_are_json_for_programs(on: Start, run: Run, vault: Path) -> None:
    on("linux").answer("show", 1, err="Failed to connect to bus: No medium found\n")
    code, out, _ = run("service", "install", "--json", "--vault", str(vault))
    assert code == 4
    assert json.loads(out)["error"]["code"] == "service_failed"


# ------------------------------------------------------------------------------------------------ the log


def records(*events: str) -> str:
    found = (
        {"time": "2026-11-28T05:20:11.123Z", "level": "info", "event": one, "logger": "tarsd.x", "n": 1}
        for one in events
    )
    return "".join(json.dumps(one) + "\n" for one in found)


def test_logs_shows_the_end_of_the_log(on: Start, run: Run, vault: Path, home: Path) -> None:
    on("linux")
    file = home / "logs" / f"tarsd-{vault_id(vault)}.log"
    code, _, err = run("service", "logs", "--vault", str(vault))
    assert code == 1
    assert str(file) in err
    file.parent.mkdir()
    file.with_name(f"{file.name}.1").write_text(records("one", "two"))
    file.write_text(records("three") + "no JSON \x1b[31m\n")
    code, out, err = run("service", "logs", "-n", "3", "--vault", str(vault))
    assert code == 0
    assert out.splitlines() == [
        "2026-11-28 05:20:11 info two n=1", "2026-11-28 05:20:11 info three n=1", "no JSON ␛[31m"
    ]  # fmt: skip
    assert str(file) in err
    out = run("service", "logs", "--lines", "2", "--json", "--vault", str(vault))[1]
    assert json.loads(out.splitlines()[0])["event"] == "three"
    assert run("service", "logs", "-n", "0", "--vault", str(vault))[1] == ""


def test_a_log_is_followed_over_its_rotation(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    with pytest.raises(FileNotFoundError):
        next(log.lines(file, 1, follow=True, pause_s=0.01))
    file.write_text("older\nold\n")
    seen: list[str] = []

    def collect() -> None:
        for one in log.lines(file, 1, follow=True, pause_s=0.01):
            seen.append(one)
            if one == "end":
                return

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    until(lambda: seen == ["old"])
    with file.open("a") as stream:
        stream.write("se")
        stream.flush()
        stream.write("cond\n")
        file.rename(tmp_path / "x.log.1")
        stream.write("last of the old\n")
    file.write_text("new\n")
    until(lambda: seen[1:] == ["second", "last of the old", "new"], lambda: seen)
    with file.open("a") as stream:
        stream.write("end\n")
    thread.join(10)
    assert seen[-1] == "end"


def test_every_error_says_what_to_do(on: Start) -> None:
    for code in (0, 1, 2, 4, 78, 203):
        reason, hint = services.base.ended(code)
        assert reason.endswith(".") and "tarsd" in hint
    assert issubclass(ServiceError, TarsdError)
