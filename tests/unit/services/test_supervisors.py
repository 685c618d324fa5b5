"""What launchd and systemd are asked, in which order, and what their answers mean."""

from __future__ import annotations

import os
import plistlib
import stat
from pathlib import Path

import pytest

from tarsd import services
from tarsd.errors import Conflict, NotFound
from tarsd.services import CommandRunner, Machine, ServiceError, launchd
from tarsd.services.base import CommandResult
from tests.support.supervisors import NOBODY, System
from tests.unit.services.conftest import PLATFORMS, UNIT, Start, launch_of

LAUNCH = launch_of("/bin/true", "run", "--vault", "/v")


# ------------------------------------------------------------------------------------------------ launchd

AGENT = "gui/501/md.tarsd.0123456789ab"


def agent_on(on: Start) -> tuple[System, services.Service]:
    system = on("darwin")
    return system, launchd.LaunchAgent("0123456789ab", system.machine, pause_s=0.01)


def test_launchd_is_asked_in_order(on: Start) -> None:
    system, service = agent_on(on)
    service.install(LAUNCH)
    assert service.file == system.home / "Library/LaunchAgents/md.tarsd.0123456789ab.plist"
    assert system.calls() == [
        "launchctl print gui/501",
        f"launchctl bootout {AGENT}",
        f"launchctl enable {AGENT}",
        f"launchctl bootstrap gui/501 {service.file}",
    ]
    assert services.installed(system.machine) == [("0123456789ab", service.file)]
    state = service.state()
    assert (state.installed, state.loaded, state.pid, state.failed) == (True, True, NOBODY, False)
    system.calls()
    service.install(launch_of("/bin/false"))  # over the older one
    assert plistlib.loads(service.file.read_bytes())["ProgramArguments"] == ["/bin/false"]
    assert system.calls()[1:] == [
        f"launchctl bootout {AGENT}",
        f"launchctl print {AGENT}",
        f"launchctl enable {AGENT}",
        f"launchctl bootstrap gui/501 {service.file}",
    ]
    service.restart()
    service.start()
    assert [one for one in system.calls() if " print " not in one] == [
        f"launchctl kickstart -k {AGENT}",
        f"launchctl kickstart {AGENT}",
    ]
    service.stop()
    assert service.state() == services.ServiceState(installed=True)
    service.start()
    assert service.state().running
    assert service.uninstall()
    assert not service.file.exists()
    assert service.state() == services.ServiceState(installed=False)
    assert not service.uninstall()
    assert services.installed(system.machine) == []


def test_launchd_needs_a_moment_after_the_old_one(on: Start) -> None:
    system, service = agent_on(on)
    service.install(LAUNCH)
    system.answer("bootout", 36, err="Boot-out failed: 36: Operation now in progress\n")
    system.answer("print", 0, "gui/501 = {\n}\n", times=1)
    system.answer("print", 0, f"{AGENT} = {{\n\tstate = running\n\tpid = 7\n}}\n", times=2)
    system.answer("print", 113, err="Could not find service\n")
    system.answer("bootstrap", 5, err="Bootstrap failed: 5: Input/output error\n", times=2)
    (system.folder / "loaded").unlink()
    system.calls()
    service.install(LAUNCH)
    verbs = [one.split()[1] for one in system.calls()]
    assert verbs == [
        *["print", "bootout", "print", "print", "print", "enable"],
        *["bootstrap", "print"] * 2,
        "bootstrap",
    ]
    assert service.state().running


@pytest.mark.parametrize(
    ("verb", "code", "text", "message", "hint"),
    [
        ("print", 112, "Could not find domain for: gui/501\n", "no session for this user", "Log in at the Mac"),
        ("bootstrap", 125, "Bootstrap failed: 125: Domain does not support specified action\n",
         "no session", "SSH alone"),
        ("bootstrap", 5, "Bootstrap failed: 5: Input/output error\nTry re-running the command as root\n",
         "launchctl bootstrap failed: Bootstrap failed: 5: Input/output error.", "plutil -lint"),
        ("bootstrap", 1, "Bootstrap failed: 1: Operation not permitted\n", "not permitted", "Login Items"),
        ("bootstrap", 13, "Bootstrap failed: 13: Permission denied\n", "Permission denied", "you own the file"),
        ("bootstrap", 99, "", "exit code 99", "tarsd service status"),
        ("bootout", 150, "Boot-out failed: 150: Operation not permitted\n", "launchctl bootout failed", "status"),
    ],
)  # fmt: skip
def test_what_launchd_refuses_is_said(on: Start, verb: str, code: int, text: str, message: str, hint: str) -> None:
    system, service = agent_on(on)
    if verb == "bootout":
        service.install(LAUNCH)
    system.answer(verb, code, err=text, times=launchd.TRIES)
    with pytest.raises(ServiceError) as caught:
        service.install(LAUNCH)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "as root" not in caught.value.message + caught.value.hint
    assert service.file.exists() == (verb != "print")  # without a session nothing is even written


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("\tstate = running\n\tpid = 81\n\tlast exit code = 1\n", (81, None, False, "")),
        ("\tstate = not running\n\tlast exit code = 0\n", (0, 0, False, "another daemon")),
        ("\tstate = spawn scheduled\n\tlast exit code = 78: EX_CONFIG\n", (0, 78, True, "configuration has errors")),
        ("\tstate = not running\n\tlast exit code = (never exited)\n", (0, None, False, "")),
        ("\tstate = waiting\n\tlast terminating signal = Killed: 9\n", (0, None, True, "signal (Killed: 9)")),
        (
            "\tstate = not running\n\tlast exit code = 1\n\tdomain = {\n\t\tstate = active\n\t}\n",
            (0, 1, True, "code 1"),
        ),
    ],
)
def test_what_launchd_knows_of_it(on: Start, out: str, expected: tuple[int, int | None, bool, str]) -> None:
    system, service = agent_on(on)
    system.answer("print", 0, f"{AGENT} = {{\n\tenvironment = {{\n\t\tSECRET => x\n\t}}\n{out}}}\n")
    state = service.state()
    assert state.loaded
    assert (state.pid, state.exit_code, state.failed) == expected[:3]
    assert expected[3] in state.reason
    assert "SECRET" not in repr(state)


def unit_on(on: Start) -> tuple[System, services.Service]:
    system = on("linux")
    return system, services.service("0123456789ab", system.machine)


def test_systemd_is_asked_in_order(on: Start) -> None:
    system, service = unit_on(on)
    service.install(LAUNCH)
    assert service.file == system.home / ".config/systemd/user" / UNIT
    show, *calls = system.calls()
    assert show.startswith(f"systemctl --user show {UNIT} --property=")
    assert calls == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable {UNIT}",
        f"systemctl --user reset-failed {UNIT}",
        f"systemctl --user --no-block restart {UNIT}",
    ]
    assert service.state() == services.ServiceState(installed=True, loaded=True, pid=NOBODY)
    service.start()
    service.stop()
    assert [one for one in system.calls() if " show " not in one] == [
        f"systemctl --user reset-failed {UNIT}",
        f"systemctl --user --no-block start {UNIT}",
        f"systemctl --user stop {UNIT}",
    ]
    assert not service.state().running
    service.restart()
    assert service.state().running
    wants = service.file.parent / "default.target.wants" / UNIT
    wants.parent.mkdir()
    wants.symlink_to(service.file)
    system.calls()
    assert service.uninstall()
    assert [one.split()[2] for one in system.calls()] == ["show", "stop", "disable", "daemon-reload", "reset-failed"]
    assert not service.file.exists() and not os.path.lexists(wants)
    assert not service.uninstall()
    assert services.installed(system.machine) == []


def test_units_lie_where_the_user_keeps_settings(on: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    system = on("linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    service = services.service("0123456789ab", system.machine)
    assert service.file == tmp_path / "settings/systemd/user" / UNIT
    system.answer("enable", 1, err=f"Failed to enable unit: Unit file {UNIT} does not exist.\n")
    with pytest.raises(ServiceError) as caught:
        service.install(LAUNCH)
    assert "XDG_CONFIG_HOME" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "Failed to connect to bus: No medium found\n",
        "Failed to connect to user scope bus via local transport: $DBUS_SESSION_BUS_ADDRESS and $XDG_RUNTIME_DIR not "
        "defined (consider using --machine=<user>@.host --user to connect to bus of other user)\n",
        "System has not been booted with systemd as init system (PID 1). Can't operate.\nFailed to connect to bus\n",
    ],
)
def test_without_a_manager_nothing_is_written(on: Start, text: str) -> None:
    system, service = unit_on(on)
    system.answer("show", 1, err=text, times=4)
    with pytest.raises(ServiceError, match="systemd is not running for this user") as caught:
        service.install(LAUNCH)
    assert "tarsd run" in caught.value.hint
    assert not service.file.exists()
    service.file.parent.mkdir(parents=True)
    service.file.write_text("old")
    state = service.state()
    assert (state.installed, state.running) == (True, False)
    assert "systemd is not running" in state.reason
    assert service.uninstall()  # a file that nobody has loaded can go all the same
    assert not service.file.exists()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_supervisor_that_is_not_there_or_hangs(platform: str, on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    system = on(platform)
    service = services.service("0123456789ab", system.machine)
    command = "launchctl" if platform == "darwin" else "systemctl"
    (system.home.parent / "bin" / command).write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    with pytest.raises(ServiceError, match=r"did not answer within 0\.2 s"):
        system.machine.runner.run(command, "print", timeout=0.2)
    (system.home.parent / "bin" / command).write_text("no program")
    with pytest.raises(ServiceError, match="cannot be started"):
        service.install(LAUNCH)
    system.without(command)
    with pytest.raises(services.CommandMissing, match=f"command {command} was not found") as caught:
        service.install(LAUNCH)
    assert "tarsd run" in caught.value.hint
    assert not service.file.exists()


def test_other_systems_have_no_services() -> None:
    with pytest.raises(ServiceError, match="not supported on freebsd14"):
        services.service("0123456789ab", Machine("freebsd14", {}, 1, CommandRunner({})))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"ActiveState": "active", "MainPID": "9", "Result": "success"}, (9, None, False, "")),
        ({"ActiveState": "activating", "MainPID": "9", "SubState": "start"}, (9, None, False, "")),
        ({"ActiveState": "inactive", "Result": "success", "ExecMainCode": "1"}, (0, 0, False, "")),
        ({"ActiveState": "failed", "Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "78"},
         (0, 78, True, "configuration has errors")),
        ({"ActiveState": "failed", "Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "203"},
         (0, 203, True, "cannot be started")),
        ({"ActiveState": "failed", "Result": "protocol", "ExecMainCode": "1"}, (0, 0, True, "another daemon")),
        ({"ActiveState": "failed", "Result": "watchdog", "ExecMainCode": "3", "ExecMainStatus": "6"},
         (0, None, True, "hung")),
        ({"ActiveState": "failed", "Result": "start-limit-hit", "ExecMainCode": "2"},
         (0, None, True, "failed too often")),
        ({"ActiveState": "activating", "SubState": "auto-restart", "Result": "oom-kill", "ExecMainCode": "2"},
         (0, None, True, "out of memory")),
        ({"ActiveState": "failed", "Result": "resources"}, (0, None, True, "resources")),
    ],
)  # fmt: skip
def test_what_systemd_knows_of_it(
    on: Start, shown: dict[str, str], expected: tuple[int, int | None, bool, str]
) -> None:
    system, service = unit_on(on)
    values = {"LoadState": "loaded", "MainPID": "0", "ExecMainCode": "0", "ExecMainStatus": "0", **shown}
    system.answer("show", 0, "".join(f"{name}={value}\n" for name, value in values.items()))
    state = service.state()
    assert (state.pid, state.exit_code, state.failed) == expected[:3]
    assert expected[3] in state.reason
    assert bool(state.reason) == bool(expected[3])


@pytest.mark.parametrize(
    ("code", "out", "err", "expected"),
    [
        (0, "Linger=yes\n", "", True),
        (0, "Linger=no\n", "", False),
        (1, "", "Failed to get user: User ID 501 is not logged in or lingering\n", False),
        (1, "", "Failed to connect to bus: Host is down\n", None),
    ],
)
def test_whether_it_lingers(on: Start, code: int, out: str, err: str, expected: bool | None) -> None:
    system, service = unit_on(on)
    assert isinstance(service, services.UserUnit)
    system.answer("show-user", code, out, err)
    assert service.lingers() is expected
    assert system.calls() == ["loginctl show-user 501 --property=Linger"]
    system.without("loginctl")
    assert service.lingers() is None


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_file_is_written_whole_or_not_at_all(platform: str, on: Start) -> None:
    service = services.service("0123456789ab", on(platform).machine)
    for verb in (service.start, service.stop, service.restart):
        with pytest.raises(NotFound, match="No service is installed"):
            verb()
    service.file.parent.parent.mkdir(parents=True, exist_ok=True)
    service.file.parent.write_text("in the way")
    with pytest.raises(Conflict, match="cannot be written"):
        service.install(LAUNCH)
    service.file.parent.unlink()
    for mask in (0o000, 0o022, 0o277):
        before = os.umask(mask)
        try:
            service.install(LAUNCH)
        finally:
            os.umask(before)
        assert [one.name for one in service.file.parent.iterdir()] == [service.file.name]
        assert stat.S_IMODE(service.file.stat().st_mode) == 0o644  # launchd takes no file that others can change
        assert stat.S_IMODE(service.file.parent.stat().st_mode) == 0o755
        service.file.unlink()
        service.file.parent.rmdir()


def test_a_complaint_is_its_first_line() -> None:
    assert CommandResult(1, "", "\nFailed to stop: no.\nSee the log.\n").complaint == "Failed to stop: no"
    assert CommandResult(7, "", "").complaint == "exit code 7"
