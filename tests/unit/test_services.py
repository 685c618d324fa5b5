"""The daemon as a service: the files that are written, what is asked of launchd and systemd, and what they refuse."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd import services
from tarsd.config import load, socket_path, vault_id
from tarsd.errors import ConfigError, Conflict, NotFound, Refused, TarsdError
from tarsd.services import CommandRunner, Launch, Machine, ServiceError, launchd, log, program
from tarsd.services.base import CommandResult
from tests.support.engine import until
from tests.support.stub import Run, Stub
from tests.support.supervisors import NOBODY, UID, System

ROOT = Path(__file__).parents[2]
AWKWARD = """/Users/ada & söhne/<No "tes"> 100% $HOME ${X} %h {a;b} \\x 'q' 👩‍🚀\u00a0z"""
PLATFORMS = ["darwin", "linux"]
Start = Callable[..., System]


def launch_of(*arguments: str, **environment: str) -> Launch:
    return Launch("0123456789ab", "Notes", arguments, {"HOME": "/Users/ada", **environment})


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """`on("darwin")`: the system that the commands meet."""
    begun: list[System] = []

    def start(platform: str, **more: Any) -> System:
        begun.append(System(tmp_path / f"{platform}-{len(begun)}", monkeypatch, platform, **more))
        return begun[-1]

    yield start
    for one in begun:
        one.__exit__(None, None, None)


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
    thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield status
    stub.shutdown()
    thread.join()
    stub.server_close()


# ------------------------------------------------------------------------------------------------ the files


def sample(platform: str) -> tuple[Path, str]:
    """The file that shows what a service looks like, and its text; `python -m tests.unit.test_services` writes both."""
    home, language = ("/Users/ada", "en_US.UTF-8") if platform == "darwin" else ("/home/ada", "C.UTF-8")
    arguments = (f"{home}/tarsd/.venv/bin/python3", *program.MODULE, "run", "--vault", f"{home}/Notes")
    environment = {"HOME": home, "PATH": program.PATHS[platform], "LANG": language, "LC_ALL": language}
    launch = Launch("ceec6202af61", "Notes", arguments, environment)
    machine = Machine(platform, {"HOME": home}, UID, CommandRunner({}))
    file = ROOT / ("launchd/md.tarsd.plist" if platform == "darwin" else "systemd/tarsd.service")
    return file, services.service(launch.vault_id, machine).text(launch)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_samples_are_what_would_be_written(platform: str) -> None:
    file, text = sample(platform)
    assert file.read_text(encoding="utf-8") == text
    assert [one.name for one in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_any_path_comes_back_out_of_the_file(platform: str, on: Start) -> None:
    service = services.service("0123456789ab", on(platform).machine)
    launch = launch_of(f"{AWKWARD}/bin/python3", "run", "--vault", AWKWARD, PATH=f"{AWKWARD}:/bin", TARSD_HOME=AWKWARD)
    service.file.parent.mkdir(parents=True)
    service.file.write_text(service.text(launch), encoding="utf-8")
    assert tuple(service.arguments()) == launch.arguments
    assert services.vault_of(service) == Path(AWKWARD)
    assert services.installed(on(platform).machine) == []


def test_a_property_list_says_what_launchd_must_know(on: Start) -> None:
    service = services.service("0123456789ab", on("darwin").machine)
    launch = launch_of("/v/bin/python3", "run", PATH="/a & b:/<c>")
    agent = plistlib.loads(service.text(launch).encode())
    assert agent == {
        "Label": "md.tarsd.0123456789ab",
        "ProgramArguments": ["/v/bin/python3", "run"],
        "EnvironmentVariables": {"HOME": "/Users/ada", "PATH": "/a & b:/<c>"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},  # a second daemon exits with 0, and must not come again and again
        "ThrottleInterval": 30,
        "ExitTimeOut": 20,
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": "/dev/null",
        "ProcessType": "Standard",
        "LowPriorityIO": True,
    }


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_a_property_list_keeps_other_ends_of_lines(on: Start, sign: str) -> None:
    service = services.service("0123456789ab", on("darwin").machine)
    launch = launch_of("/v/bin/python3", "--vault", f"/a{sign}b", TARSD_HOME=f"/c{sign} d")
    agent = plistlib.loads(service.text(launch).encode())
    assert agent["ProgramArguments"] == list(launch.arguments)
    assert agent["EnvironmentVariables"] == launch.environment


@pytest.mark.parametrize("sign", ["\ufffe", "\uffff"])
def test_a_property_list_cannot_hold_everything(on: Start, sign: str) -> None:
    service = services.service("0123456789ab", on("darwin").machine)
    for launch in (launch_of("/v/bin/python3", f"/a{sign}"), launch_of("/v/bin/python3", TARSD_HOME=f"/a{sign}")):
        with pytest.raises(ServiceError, match=rf"U\+{ord(sign):X}") as caught:
            service.text(launch)
        assert caught.value.hint


def test_a_unit_says_what_systemd_must_know(on: Start) -> None:
    service = services.service("0123456789ab", on("linux").machine)
    launch = Launch("0123456789ab", "100 % \\", ("/v/bin/python3", "run", "--vault", "/a b"), {"PATH": "/a $b:/100%"})
    lines = service.text(launch).splitlines()
    for line in (
        "Description=tars: 100 %% \\, indexed and watched",
        'ExecStart=:/v/bin/python3 run --vault "/a b"',
        'Environment="PATH=/a $b:/100%%"',
        "Type=notify",
        "NotifyAccess=main",
        "WatchdogSec=60",
        "Restart=on-failure",
        "RestartPreventExitStatus=0 2 78",  # systemd calls an end before READY=1 a failure, even with 0
        "StandardOutput=null",
        "StandardError=null",
        "NoNewPrivileges=yes",
        "WantedBy=default.target",
    ):
        assert line in lines
    assert not [line for line in lines if line.startswith(("ProtectHome", "PrivateTmp", "MemoryDenyWriteExecute"))]


def test_the_templates_are_part_of_the_package() -> None:
    from tarsd.services.base import TEMPLATES

    assert TEMPLATES.relative_to(Path(services.__file__).parent.parent) == Path("data/services")
    assert '"data/**/*"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------ what is started


def test_the_program_is_the_python_of_this_installation(vault: Path, on: Start) -> None:
    found = program.launch(load(vault=vault), on("linux").machine)
    name = found.arguments[0]
    assert os.path.dirname(name) == os.path.join(sys.prefix, "bin")
    assert os.path.samefile(name, sys.executable)
    assert found.arguments[1:] == ("-P", "-m", "tarsd.cli", "run", "--vault", str(vault))


def python_in(folder: Path, *names: str) -> Path:
    """An environment whose Python is this one."""
    (folder / "bin").mkdir(parents=True)
    for name in names:
        (folder / "bin" / name).symlink_to(os.path.realpath(sys.executable))
    return folder


def test_the_name_that_outlives_an_upgrade_is_taken(tmp_path: Path) -> None:
    venv = python_in(tmp_path / "venv", "python", "python3", "python3.11")
    assert program.interpreter(str(venv), str(venv / "bin" / "python3.11")) == str(venv / "bin" / "python3")
    venv = python_in(tmp_path / "other", "python3.11")
    assert program.interpreter(str(venv), str(venv / "bin" / "python3.11")) == str(venv / "bin" / "python3.11")


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexec pyenv exec python3\n", "#!/usr/bin/env bash\nexec asdf exec python\n"]
)
@pytest.mark.report("https://github.com/daymade/claude-code-skills/issues/622")
def test_a_shim_is_replaced_by_what_it_stands_for(tmp_path: Path, text: str) -> None:
    shim = tmp_path / "shims" / "python3"
    shim.parent.mkdir()
    shim.write_text(text)
    shim.chmod(0o755)
    venv = python_in(tmp_path / "venv", "python3")
    assert program.interpreter(str(venv), str(shim)) == str(venv / "bin" / "python3")
    assert program.is_shim("/home/ada/.local/share/mise/shims/python3")  # which is no script
    (venv / "bin" / "python3").unlink()
    (venv / "bin" / "python3").symlink_to(shim)
    with pytest.raises(ServiceError, match="no Python that a service can start") as caught:
        program.interpreter(str(venv), str(shim))
    assert "to stay" in caught.value.hint


@pytest.mark.parametrize(
    "prefix",
    [
        "/home/ada/.cache/uv/archive-v0/Xy",
        "/Users/ada/Library/Caches/uv/environments-v2/ab",
        "/home/a/.local/pipx/.cache/d",
    ],
)
@pytest.mark.report("https://github.com/daymade/claude-code-skills/issues/622")
def test_an_installation_that_does_not_stay_is_refused(prefix: str) -> None:
    with pytest.raises(ServiceError, match="from a cache") as caught:
        program.interpreter(prefix)
    assert "uv tool install tarsd" in caught.value.hint


def test_macos_is_to_allow_what_really_runs(tmp_path: Path) -> None:
    framework = tmp_path / "Python.framework" / "Versions" / "3.13"
    (framework / "bin").mkdir(parents=True)
    (framework / "bin" / "python3.13").write_text("")
    (tmp_path / "venv").mkdir()
    name = tmp_path / "venv" / "python3"
    name.symlink_to(framework / "bin" / "python3.13")
    assert services.allowed_program(str(name)) == str(framework / "bin" / "python3.13")
    (framework / "Resources" / "Python.app").mkdir(parents=True)
    assert services.allowed_program(str(name)) == str(framework / "Resources" / "Python.app")


def test_the_environment_is_spelled_out_and_holds_no_key(
    vault: Path, home: Path, on: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = on("linux")
    monkeypatch.setenv("XDG_STATE_HOME", "/states")
    monkeypatch.setenv("TARSD_CONFIG", str(home / "c.toml"))
    for name in ("TARSD_OPENAI_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TARSD_TCP_KEY", "TODOIST_API_TOKEN"):
        monkeypatch.setenv(name, "sk-secret")
    (home / "c.toml").write_text("")
    found = program.launch(load(vault=vault), system.machine).environment
    assert found == {
        "HOME": str(system.home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TARSD_HOME": str(home),
        "TARSD_CONFIG": str(home / "c.toml"),
        "XDG_STATE_HOME": "/states",
    }
    mac = program.launch(load(vault=vault), on("darwin").machine).environment
    assert (mac["PATH"], mac["LC_ALL"]) == ("/usr/bin:/bin:/usr/sbin:/sbin", "en_US.UTF-8")


def test_commands_of_mcp_servers_are_found(vault: Path, home: Path, on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    system = on("darwin")
    tools = home / "R&D <tools>"
    tools.mkdir()
    (tools / "uvx").write_text("")
    (tools / "uvx").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tools}")
    servers = '[[mcp]]\nname = "a"\ncommand = ["uvx", "x"]\n[[mcp]]\nname = "b"\ncommand = ["no-such-server"]\n'
    (home / "config.toml").write_text(servers)
    config = load(vault=vault)
    launch = program.launch(config, system.machine)
    assert launch.environment["PATH"] == f"{tools}:/usr/bin:/bin:/usr/sbin:/sbin"
    agent = plistlib.loads(services.service(launch.vault_id, system.machine).text(launch).encode())
    assert agent["EnvironmentVariables"]["PATH"] == launch.environment["PATH"]
    assert program.notices(config, launch, system.machine) == [
        "The MCP server b cannot be started: there is no no-such-server here."
    ]


def test_what_only_this_shell_has_is_said(vault: Path, home: Path, on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = on("linux").machine
    (home / "config.toml").write_text('[chat]\nmodel = "anthropic:claude"\n')
    for name, value in {
        "ANTHROPIC_API_KEY": "sk-secret",
        "OPENAI_API_KEY": "sk-unused",
        "TARSD_EMBEDDING": "table",
        "OLLAMA_HOST": "http://127.0.0.1:7777",
    }.items():
        monkeypatch.setenv(name, value)
    config, machine = load(vault=vault), on("linux").machine
    said = program.notices(config, program.launch(config, machine), machine)
    assert [one.split(" ")[0] for one in said[:-1]] == ["embedding.model", "ollama.host"]
    assert "'minilm' for the service" in said[0]
    assert said[-1].endswith("So that the service has it: tarsd key set anthropic")
    assert "sk-" not in " ".join(said)
    monkeypatch.setenv("OLLAMA_HOST", "")
    monkeypatch.setenv("TARSD_EMBEDDING", "")
    (home / "keys.json").write_text('{"anthropic": "sk-kept"}')
    (home / "keys.json").chmod(0o600)
    config, machine = load(vault=vault), on("linux").machine
    assert program.notices(config, program.launch(config, machine), machine) == []


def test_faults_that_only_the_service_would_meet_are_found(
    vault: Path, home: Path, on: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text('[embedding]\nmodel = "nonsense"\n')
    monkeypatch.setenv("TARSD_EMBEDDING", "table")
    config = load(vault=vault)
    with pytest.raises(ConfigError, match="nonsense"):
        program.launch(config, on("linux").machine)


def test_a_service_is_no_business_of_root(vault: Path, on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load(vault=vault)
    root = Machine("linux", dict(os.environ), 0, CommandRunner({}))
    owner, real = 0, os.stat

    def stat_of(path: Any, **more: Any) -> os.stat_result:
        values = list(real(path, **more))
        if path == vault:
            values[stat.ST_UID] = owner
        return os.stat_result(values)

    monkeypatch.setattr(os, "stat", stat_of)
    assert program.launch(config, root).vault_id == config.vault_id  # a vault of root's own
    sudo = Machine("linux", {**os.environ, "SUDO_UID": "1000"}, 0, CommandRunner({}))
    with pytest.raises(Refused, match="not root's") as caught:
        program.launch(config, sudo)
    assert "without sudo" in caught.value.hint
    owner = 1000
    with pytest.raises(Refused):
        program.launch(config, root)


@pytest.mark.parametrize("name", ["a\nb", "a\x7fb", "a\udcffb"])
def test_a_path_that_no_file_can_hold_is_refused(tmp_path: Path, name: str, on: Start) -> None:
    machine = on("linux").machine
    with pytest.raises(ServiceError, match="cannot be told this path"):
        program.launch(load(vault=tmp_path / name), machine)


def test_it_is_tried_with_nothing_but_its_own_environment(vault: Path, on: Start) -> None:
    machine = on("linux").machine
    launch = program.launch(load(vault=vault), machine)
    program.check(launch, machine)
    broken = Launch(launch.vault_id, "", launch.arguments, {**launch.environment, "PYTHONHOME": "/nowhere"})
    with pytest.raises(ServiceError, match="does not start outside of this shell"):
        program.check(broken, machine)


# ------------------------------------------------------------------------------------------------ launchd

AGENT = "gui/501/md.tarsd.0123456789ab"
LAUNCH = launch_of("/bin/true", "run", "--vault", "/v")


def agent_on(on: Start) -> tuple[System, services.Service]:
    system = on("darwin")
    return system, services.service("0123456789ab", system.machine)


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


def test_launchd_needs_a_moment_after_the_old_one(on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchd, "PAUSE_S", 0.01)
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
        ("print", 112, "Could not find domain for: gui/501\n", "no session of this user", "Log in at the Mac"),
        ("bootstrap", 125, "Bootstrap failed: 125: Domain does not support specified action\n",
         "no session", "over SSH"),
        ("bootstrap", 5, "Bootstrap failed: 5: Input/output error\nTry re-running the command as root\n",
         "launchctl bootstrap failed: Bootstrap failed: 5: Input/output error.", "plutil -lint"),
        ("bootstrap", 1, "Bootstrap failed: 1: Operation not permitted\n", "not permitted", "Login Items"),
        ("bootstrap", 13, "Bootstrap failed: 13: Permission denied\n", "Permission denied", "your own"),
        ("bootstrap", 99, "", "exit code 99", "tarsd service status"),
        ("bootout", 150, "Boot-out failed: 150: Operation not permitted\n", "launchctl bootout failed", "status"),
    ],
)  # fmt: skip
def test_what_launchd_refuses_is_said(
    on: Start, monkeypatch: pytest.MonkeyPatch, verb: str, code: int, text: str, message: str, hint: str
) -> None:
    monkeypatch.setattr(launchd, "PAUSE_S", 0.01)
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
        ("\tstate = spawn scheduled\n\tlast exit code = 78: EX_CONFIG\n", (0, 78, True, "configuration has faults")),
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


# ------------------------------------------------------------------------------------------------ systemd

UNIT = "tarsd-0123456789ab.service"


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
    with pytest.raises(ServiceError, match="No systemd of this user is running") as caught:
        service.install(LAUNCH)
    assert "tarsd run" in caught.value.hint
    assert not service.file.exists()
    service.file.parent.mkdir(parents=True)
    service.file.write_text("old")
    state = service.state()
    assert (state.installed, state.running) == (True, False)
    assert "No systemd" in state.reason
    assert service.uninstall()  # a file that nobody has loaded can go all the same
    assert not service.file.exists()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_supervisor_that_is_not_there_or_hangs(platform: str, on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    system = on(platform)
    service = services.service("0123456789ab", system.machine)
    command = "launchctl" if platform == "darwin" else "systemctl"
    (system.home.parent / "bin" / command).write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    with pytest.raises(ServiceError, match=r"has not answered within 0\.2 s"):
        system.machine.runner.run(command, "print", timeout=0.2)
    (system.home.parent / "bin" / command).write_text("no program")
    with pytest.raises(ServiceError, match="cannot be started"):
        service.install(LAUNCH)
    system.without(command)
    with pytest.raises(services.CommandMissing, match=f"no command {command}") as caught:
        service.install(LAUNCH)
    assert "tarsd run" in caught.value.hint
    assert not service.file.exists()


def test_other_systems_have_no_services() -> None:
    with pytest.raises(ServiceError, match="no services on freebsd14"):
        services.service("0123456789ab", Machine("freebsd14", {}, 1, CommandRunner({})))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"ActiveState": "active", "MainPID": "9", "Result": "success"}, (9, None, False, "")),
        ({"ActiveState": "activating", "MainPID": "9", "SubState": "start"}, (9, None, False, "")),
        ({"ActiveState": "inactive", "Result": "success", "ExecMainCode": "1"}, (0, 0, False, "")),
        ({"ActiveState": "failed", "Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "78"},
         (0, 78, True, "configuration has faults")),
        ({"ActiveState": "failed", "Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "203"},
         (0, 203, True, "cannot be started")),
        ({"ActiveState": "failed", "Result": "protocol", "ExecMainCode": "1"}, (0, 0, True, "another daemon")),
        ({"ActiveState": "failed", "Result": "watchdog", "ExecMainCode": "3", "ExecMainStatus": "6"},
         (0, None, True, "hung")),
        ({"ActiveState": "failed", "Result": "start-limit-hit", "ExecMainCode": "2"},
         (0, None, True, "again and again")),
        ({"ActiveState": "activating", "SubState": "auto-restart", "Result": "oom-kill", "ExecMainCode": "2"},
         (0, None, True, "no memory")),
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
    service.install(LAUNCH)
    assert [one.name for one in service.file.parent.iterdir()] == [service.file.name]
    assert stat.S_IMODE(service.file.stat().st_mode) & 0o022 == 0  # launchd takes no file that others can change


def test_a_complaint_is_its_first_line() -> None:
    assert CommandResult(1, "", "\nFailed to stop: no.\nSee the log.\n").complaint == "Failed to stop: no"
    assert CommandResult(7, "", "").complaint == "exit code 7"


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
    assert f"● Started, pid {NOBODY}, and does not answer" in out
    assert f"tarsd-{vault_id(vault)}.log" in out
    system.ended(78)
    code, out, _ = run("service", "status", "--vault", str(vault))
    assert code == 4
    assert out.startswith(
        "● Failed. The configuration has faults (exit code 78).\n  They are told by: tarsd config check.\n"
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
    assert "● Another daemon serves this vault: process 77\n  End that one with tarsd stop" in out
    system.ended(0)
    assert run("service", "status", "--vault", str(vault))[0] == 4


@pytest.mark.report("https://github.com/daymade/claude-code-skills/issues/622")
def test_a_file_of_before_is_noticed(on: Start, run: Run, vault: Path, answering: dict[str, Any]) -> None:
    system = on("linux")
    run("service", "install", "--vault", str(vault))
    file = services.service(vault_id(vault), system.machine).file
    text = file.read_text()
    for old, said in (
        (text.replace("WatchdogSec=60", "WatchdogSec=99"), "installed by another version, or with other variables"),
        (text.replace(f"{sys.prefix}/bin/python3", "/bin/sh"), f"starts /bin/sh, and this is {sys.prefix}/bin/python3"),
        (text.replace(f"{sys.prefix}/bin/python3", "/old/bin/python3.9"), "that it starts is gone: /old/bin/python3.9"),
        ("[Unit]\n", "is no file of tarsd's any more"),
    ):
        file.write_text(old)
        code, out, _ = run("service", "status", "--vault", str(vault))
        assert code == 0  # it runs all the same
        assert said in out
        assert "Install it anew: tarsd service install" in out
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
        f"Stopped, and removed {file}",
        f"  left: {home / 'config.toml'}",
        f"  left: {home / 'state' / vault_id(vault)}",
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
    assert out.count("there is:") == 2
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


def test_a_log_is_followed_over_its_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PAUSE_S", 0.01)
    file = tmp_path / "x.log"
    with pytest.raises(FileNotFoundError):
        next(log.lines(file, 1, follow=True))
    file.write_text("older\nold\n")
    seen: list[str] = []

    def collect() -> None:
        for one in log.lines(file, 1, follow=True):
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


# ------------------------------------------------------------------------------------------------ a real systemd

STAGE = """
set -e
mkdir "$CGROUP"
echo $$ > "$CGROUP/cgroup.procs"
exec unshare --mount --pid --fork --kill-child --cgroup sh -c '
    set -e
    mount --make-rprivate /
    mount -t proc proc /proc
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
    chmod 700 "$XDG_RUNTIME_DIR"
    /usr/lib/systemd/systemd --user >/dev/null 2>&1 &
    for _ in $(seq 100); do
        systemctl --user is-system-running >/dev/null 2>&1 && exec "$PYTHON" -c "$SCRIPT"
        sleep 0.1
    done
    exit 77' || exit 77
"""
"""A systemd of this user in namespaces of its own: it sees no other, and all that it started ends with the test."""

SCRIPT = """
import json, os, signal, subprocess, sys, time

def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    return done.returncode, done.stdout, done.stderr

def service(verb):
    code, out, err = run(sys.executable, "-P", "-m", "tarsd.cli", "service", verb, "--json")
    return {"code": code, **json.loads(out)}

def shown(*names):
    lines = run("systemctl", "--user", "show", os.environ["UNIT"], "--property=" + ",".join(names))[1].splitlines()
    return dict(line.split("=", 1) for line in lines)

def until(name, value):
    end = time.monotonic() + 60
    while not shown(name)[name].startswith(value) and time.monotonic() < end:
        time.sleep(0.1)
    return shown(name)[name]

seen = {"install": service("install")}
seen["told"] = until("StatusText", "Serving no")
seen["verify"] = run("systemd-analyze", "--user", "verify", seen["install"]["file"])
pid = seen["install"]["pid"]
seen["command"] = open(f"/proc/{pid}/cmdline").read().split(chr(0))[:-1]
seen["given"] = open(f"/proc/{pid}/environ").read()
seen["limits"] = shown("NoNewPrivileges", "Nice", "LimitCORE", "WatchdogUSec")
os.kill(pid, signal.SIGKILL)
until("NRestarts", "1")
until("SubState", "running")
seen["again"] = service("status")
seen["stop"] = service("stop")
seen["stopped"] = service("status")
other = subprocess.Popen([sys.executable, "-P", "-m", "tarsd.cli", "run"], stdout=-3, stderr=-3)
end = time.monotonic() + 60
while service("status")["daemon"] is None and time.monotonic() < end:
    time.sleep(0.1)
seen["beside"] = service("start")
seen["beside"]["state"] = until("ActiveState", "failed"), shown("Result", "SubState", "NRestarts")
seen["other"] = other.pid
other.terminate()
other.wait(30)
seen["start"] = service("start")
seen["uninstall"] = service("uninstall")
seen["gone"] = shown("LoadState", "MainPID")
print(json.dumps(seen))
"""


def cgroups() -> Path | None:
    """Where the tree of control groups is mounted, in which a systemd works."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return next((Path(line.split()[4]) for line in mounts if " - cgroup2 " in line), None)


@pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or os.path.isdir("/run/systemd/system"),
    reason="a systemd of its own needs root in a container or machine that has none running",
)
def test_a_real_systemd_takes_it(vault: Path, home: Path, tmp_path: Path) -> None:
    programs = ("systemctl", "systemd-analyze", "unshare")
    tree = cgroups()
    if tree is None or any(shutil.which(one) is None for one in programs):
        pytest.skip("systemd, unshare or control groups are not there")
    root = tmp_path / """no "tes" 100% $HOME ${X} %h \\ 'q' ü"""
    (root / ".obsidian").mkdir(parents=True)
    (root / "a.md").write_text("tea")
    (home / "config.toml").write_text(f"[vault]\npath = {json.dumps(str(root))}\n[embedding]\nmodel = 'table'\n")
    group = tree / f"tarsd-test-{os.getpid()}"
    env = {**os.environ, "HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": "/run/user/0", "CGROUP": str(group)}
    env |= {"UNIT": f"tarsd-{vault_id(root)}.service", "PYTHON": sys.executable, "SCRIPT": SCRIPT}
    try:
        done = subprocess.run(["sh", "-c", STAGE], env=env, capture_output=True, text=True, timeout=110, check=False)
    finally:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    if done.returncode == 77:
        pytest.skip(f"no namespaces for a systemd of its own: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["install"]["code"], seen["install"]["answers"]) == (0, True)
    assert seen["told"].startswith('Serving no "tes" 100%')
    assert seen["verify"] == [0, "", ""]
    assert seen["command"][1:] == ["-P", "-m", "tarsd.cli", "run", "--vault", str(root)]
    assert {"LC_ALL=C.UTF-8", f"TARSD_HOME={home}", "PATH=/usr/local/bin:/usr/bin:/bin"} <= {*seen["given"].split("\0")}
    assert seen["limits"] == {"NoNewPrivileges": "yes", "Nice": "5", "LimitCORE": "0", "WatchdogUSec": "1min"}
    assert seen["again"]["answers"] and seen["again"]["pid"] != seen["install"]["pid"]
    assert (seen["stop"]["code"], seen["stopped"]["code"], seen["stopped"]["failed"]) == (0, 3, False)
    assert seen["beside"]["code"] == 4
    assert seen["beside"]["daemon"]["process"]["pid"] == seen["other"]
    # systemd calls an end before READY=1 a failure, and must not try it again and again
    assert seen["beside"]["state"] == ["failed", {"Result": "protocol", "SubState": "failed", "NRestarts": "0"}]
    assert seen["start"]["code"] == 0
    assert seen["uninstall"]["code"] == 0
    assert seen["gone"] == {"LoadState": "not-found", "MainPID": "0"}


if __name__ == "__main__":
    for one in PLATFORMS:
        target, content = sample(one)
        target.write_text(content, encoding="utf-8")
