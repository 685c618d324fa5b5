"""What a service starts: which program, with which environment."""

from __future__ import annotations

import os
import plistlib
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tarsd import services
from tarsd.config import load
from tarsd.errors import ConfigError, Refused
from tarsd.services import CommandRunner, Launch, Machine, ServiceError, program
from tests.unit.services.conftest import Start


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
    with pytest.raises(ServiceError, match="A service cannot start this Python") as caught:
        program.interpreter(str(venv), str(shim))
    assert "permanently" in caught.value.hint


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
    assert "uv tool install" in caught.value.hint


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
        "The MCP server b cannot be started: no-such-server was not found."
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
    assert "'auto' for the service" in said[0]
    assert said[-1].endswith("To give it to the service: tarsd key set anthropic")
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
    with pytest.raises(Refused, match="not as root") as caught:
        program.launch(config, sudo)
    assert "without sudo" in caught.value.hint
    owner = 1000
    with pytest.raises(Refused):
        program.launch(config, root)


@pytest.mark.parametrize("name", ["a\nb", "a\x7fb", "a\udcffb"])
def test_a_path_that_no_file_can_hold_is_refused(tmp_path: Path, name: str, on: Start) -> None:
    machine = on("linux").machine
    with pytest.raises(ServiceError, match="A service cannot use this path"):
        program.launch(load(vault=tmp_path / name), machine)


def test_it_is_tried_with_nothing_but_its_own_environment(vault: Path, on: Start) -> None:
    machine = on("linux").machine
    launch = program.launch(load(vault=vault), machine)
    program.check(launch, machine)
    broken = Launch(launch.vault_id, "", launch.arguments, {**launch.environment, "PYTHONHOME": "/nowhere"})
    with pytest.raises(ServiceError, match="does not start outside this shell"):
        program.check(broken, machine)
