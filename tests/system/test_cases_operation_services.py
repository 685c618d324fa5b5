"""Reported faults of services: stolen sockets, locks of the dead, folders that macOS guards, logs that grow."""

from __future__ import annotations

import json
import logging
import os
import plistlib
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from tarsd import services
from tarsd.client import Client
from tarsd.config import load, vault_id
from tarsd.daemon.log import Repeats, set_up
from tarsd.errors import NoDaemon
from tarsd.services import CommandRunner, Machine
from tests.conftest import Daemon
from tests.support.engine import until
from tests.support.stub import Run
from tests.support.supervisors import UID, System

Start = Callable[..., Daemon]
LAUNCHD_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
NOBODY = 65534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def second(one: Daemon) -> tuple[int, str, str]:
    """Another process of the same daemon: how it ended, and what it said."""
    process = one.spawn()
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.report("https://github.com/python/asyncio/issues/425")
def test_nobody_takes_the_socket_of_a_daemon_that_lives(vault: Path, daemon: Start) -> None:
    one = daemon()
    inode = one.config.paths.socket.stat().st_ino
    for _ in range(2):
        code, said, _ = second(one)
        assert code == 0  # a supervisor must not start it again and again
        assert f"already runs for this vault: process {one.process.pid}" in said
    assert one.config.paths.socket.stat().st_ino == inode
    assert one.client.get("/v1/status")["process"]["pid"] == one.process.pid
    one.stop(signal.SIGKILL)
    assert one.config.paths.socket.exists()  # stale
    assert one.restart()["process"]["pid"] == one.process.pid
    one.stop()
    one.config.paths.socket.write_text("precious")
    code, _, complaint = second(one)
    assert code == 4
    assert "not a socket" in complaint
    assert one.config.paths.socket.read_text() == "precious"


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.report("https://github.com/aio-libs/aiohttp/issues/4155")
def test_the_socket_is_private_under_any_umask(vault: Path, home: Path, daemon: Start, mask: int) -> None:
    home.chmod(0o777)
    before = os.umask(mask)
    try:
        one = daemon(wait=False)
    finally:
        os.umask(before)
    one.wait()
    assert mode(one.config.paths.socket.parent) == 0o700
    assert mode(one.config.paths.socket) == 0o600


STRANGER = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
with socket.socket(socket.AF_UNIX) as connection:
    connection.settimeout(30)
    try:
        connection.connect(sys.argv[1])
        connection.sendall(b"GET /v1/hello HTTP/1.1\\r\\nHost: tarsd\\r\\nConnection: close\\r\\n\\r\\n")
        print(connection.makefile().read())
    except PermissionError:
        print("no way in")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user, to try it")
@pytest.mark.report("https://github.com/aio-libs/aiohttp/issues/4155")
def test_another_user_is_turned_away(vault: Path, home: Path, daemon: Start) -> None:
    one = daemon()

    def stranger() -> str:
        command = [sys.executable, "-c", STRANGER, str(one.config.paths.socket)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    assert stranger() == "no way in\n"
    one.config.paths.socket.chmod(0o777)
    assert stranger() == "no way in\n"  # the folder is closed as well
    for folder in (home, home.parent):
        folder.chmod(0o755)
    reply = stranger()  # and behind both, it is asked who is calling
    assert reply.startswith("HTTP/1.1 403")
    assert "belongs to another user" in reply
    assert one.client.get("/v1/hello")["name"] == "tarsd"


@pytest.mark.parametrize("content", ["somebody", "", "garbage\0\xff", "999999999\n"])
@pytest.mark.report("https://github.com/getpaseo/paseo/issues/1304")
def test_the_lock_of_a_dead_daemon_stops_nobody(vault: Path, home: Path, daemon: Start, content: str) -> None:
    one = daemon()
    one.stop(signal.SIGKILL)
    other = subprocess.Popen(["sleep", "60"])
    try:
        one.config.paths.lock.write_text(str(other.pid) if content == "somebody" else content, encoding="latin-1")
        assert one.restart()["process"]["pid"] == one.process.pid
        assert one.config.paths.lock.read_text() == f"{one.process.pid}\n"
        assert other.poll() is None
        one.config.paths.socket.unlink()  # the lock decides, whatever lies at the socket's place
        code, said, _ = second(one)
        assert code == 0
        assert f"process {one.process.pid}" in said
        assert not one.config.paths.socket.exists()
    finally:
        other.kill()
        other.wait(10)


@pytest.mark.report("https://github.com/getpaseo/paseo/issues/1304")
def test_a_home_that_was_moved_with_its_lock(vault: Path, home: Path, short_tmp: Path, daemon: Start) -> None:
    one = daemon()
    one.stop(signal.SIGKILL)
    shutil.copytree(home, short_tmp / "h", ignore=lambda _, names: [name for name in names if name.endswith(".sock")])
    moved = daemon(TARSD_HOME=str(short_tmp / "h"))
    assert moved.client.get("/v1/status")["process"]["pid"] == moved.process.pid


SHIM = """
import errno, os

real = os.scandir

def scandir(folder="."):
    if os.fspath(folder) == os.environ["TEST_GUARDED"] and os.path.exists(os.environ["TEST_DENIED"]):
        raise PermissionError(errno.EPERM, "Operation not permitted")
    return real(folder)

os.scandir = scandir
"""
"""As macOS guards Documents, Desktop and disks: it asks nobody, and says EPERM."""


@pytest.mark.report("https://github.com/openclaw/openclaw/issues/78049")
def test_access_that_macos_denies_is_named_and_waited_for(
    vault: Path, home: Path, tmp_path: Path, daemon: Start, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (vault / "a.md").write_text("Sencha is steeped at seventy degrees.")
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "sitecustomize.py").write_text(SHIM)
    denied = tmp_path / "denied"
    denied.touch()
    paths = os.pathsep.join([str(tmp_path / "shim"), os.environ.get("PYTHONPATH", "")])
    one = daemon(wait=False, PYTHONPATH=paths, TEST_GUARDED=str(vault), TEST_DENIED=str(denied))
    one.wait(lambda status: status["watch"]["state"] == "waiting" and bool(status["watch"]["hint"]))
    with System(tmp_path / "mac", monkeypatch, "darwin") as system:
        monkeypatch.setattr("tarsd.cli.service_state.WAIT_S", 0.0)
        run("service", "install", "--vault", str(vault))
        (system.folder / "pid").write_text(str(one.process.pid))  # launchd has started this one
        code, out, _ = run("service", "status", "--vault", str(vault))
        assert code == 0
        assert f"No access to {vault}" in out
        allow = os.path.realpath(sys.executable)
        assert f"Allow {allow} in System Settings > Privacy & Security > Full Disk Access" in out
        assert json.loads(run("service", "--json", "--vault", str(vault))[1])["allow"] == allow
        denied.unlink()
        status = one.wait(lambda status: status["counts"]["notes"] == 1 and status["behind"] == 0)
        assert status["watch"]["state"] != "waiting"
        assert "Full Disk Access" not in run("service", "status", "--vault", str(vault))[1]
    denied.touch()  # taken away again: what is known stays known, by the same process
    one.wait(lambda status: status["watch"]["state"] == "waiting")
    assert one.client.post("/v1/search", {"query": "sencha"})["hits"]
    denied.unlink()
    status = one.wait(lambda status: status["watch"]["state"] != "waiting" and status["behind"] == 0)
    assert (status["counts"]["notes"], status["process"]["pid"]) == (1, one.process.pid)


@pytest.mark.report("https://github.com/daymade/claude-code-skills/issues/622")
def test_what_is_launched_is_one_program_that_stays(
    vault: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with System(tmp_path / "mac", monkeypatch, "darwin") as system:
        monkeypatch.setattr("tarsd.cli.service_state.WAIT_S", 0.0)
        for name in ("uv", "python3", "tarsd"):  # as `uv run` and a version manager leave the PATH
            shim = system.home.parent / "bin" / name
            shim.write_text("#!/bin/sh\nexit 99\n")
            shim.chmod(0o755)
        monkeypatch.setenv("UV", str(system.home.parent / "bin" / "uv"))
        run("service", "install", "--vault", str(vault))
        file = services.service(vault_id(vault), system.machine).file
        agent = plistlib.loads(file.read_bytes())
        program = agent["ProgramArguments"][0]
        assert os.path.isabs(program) and not services.program.is_shim(program)
        assert os.path.samefile(program, sys.executable)
        assert not {"uv", "uvx", "sh", "env"} & {os.path.basename(one) for one in agent["ProgramArguments"]}
        # an upgrade of Python takes the program away
        file.write_bytes(file.read_bytes().replace(program.encode(), b"/opt/python3.11/bin/python3"))
        _, out, _ = run("service", "status", "--vault", str(vault))
        assert "Its program is missing: /opt/python3.11/bin/python3. Install it again" in out


@pytest.mark.report("https://github.com/coalesce-labs/catalyst/issues/1480")
def test_it_needs_nothing_of_a_shell(vault: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (vault / "a.md").write_text("tea")
    monkeypatch.delenv("TARSD_HOME")
    monkeypatch.setenv("HOME", str(short_tmp))
    machine = Machine("darwin", {"HOME": str(short_tmp), "PATH": os.environ["PATH"]}, UID, CommandRunner({}))
    launch = services.launch(load(vault=vault), machine)
    agent = plistlib.loads(services.service(launch.vault_id, machine).text(launch).encode())
    bare = {"HOME": str(short_tmp), "PATH": LAUNCHD_PATH}
    process = subprocess.Popen(
        agent["ProgramArguments"], env=bare, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        client = Client(short_tmp / ".tarsd" / f"{launch.vault_id}.sock")
        until(lambda: process.poll() is None and client.alive())
        until(lambda: client.get("/v1/status")["counts"]["notes"] == 1)
    finally:
        process.terminate()
        process.wait(30)
    assert process.returncode == 0


@pytest.mark.parametrize("platform", ["darwin", "linux"])
@pytest.mark.report("https://github.com/coalesce-labs/catalyst/issues/1480")
def test_a_service_from_its_file_alone(
    platform: str, vault: Path, home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the command to a daemon that answers: the stand-in starts what the file says, with what it says, in /."""
    tools = tmp_path / "R&D <tools> 100%"
    tools.mkdir()
    (tools / "server").write_text("#!/bin/sh\n")
    (tools / "server").chmod(0o755)
    (home / "config.toml").write_text(
        f'[vault]\npath = "{vault}"\n[embedding]\nmodel = "table"\n[chat]\nmodel = "openai:m"\n'
        '[[mcp]]\nname = "s"\ncommand = ["server"]\n'
    )
    with System(tmp_path / platform, monkeypatch, platform, spawn=True) as system:
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tools}")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-shell")
        code, out, err = run("service", "install")
        assert code == 0, out + err
        assert f"● Running, pid {system.pid}" in out
        assert "tarsd key set openai" in out
        environ = Path(f"/proc/{system.pid}/environ")
        if environ.exists():
            given = dict(one.split("=", 1) for one in environ.read_text().split("\0") if one)
            assert given["PATH"].split(":")[0] == str(tools)
            assert "sk-of-this-shell" not in given.values()
        assert second_of(run) == 0
        first = system.pid
        os.kill(first, signal.SIGKILL)
        until(
            lambda: run("service", "status")[0] == 4
        )  # what a supervisor that starts it again would show for a moment
        assert run("service", "start")[0] == 0
        assert system.pid != first
        assert run("service", "restart")[0] == 0
        assert run("service", "stop")[0] == 0
        with pytest.raises(NoDaemon):
            Client.find().get("/v1/hello")
        assert run("service", "uninstall")[0] == 0
        assert services.installed(system.machine) == []


def second_of(run: Run) -> int:
    """How another daemon on the configured vault ends."""
    command = [sys.executable, "-P", "-m", "tarsd.cli", "run"]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode


@pytest.mark.report("https://github.com/manaflow-ai/subrouter/issues/333")
def test_an_hour_of_trouble_makes_a_small_log(vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    # by its full name: in the package, `log` is its logger
    monkeypatch.setattr(import_module("tarsd.daemon.log"), "Repeats", lambda: Repeats(lambda: now))
    set_up(tmp_path / "logs", "tarsd-x")
    provider, index = logging.getLogger("tarsd.chat"), logging.getLogger("tarsd.index")
    try:
        for second in range(3600):  # a provider that is down, and a bad note that is saved each minute
            now = float(second)
            provider.warning("the model cannot be reached, try %d", second, extra={"code": "model_unreachable"})
            for _ in range(2):
                index.error("a note cannot be read", exc_info=UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x" * 1000))
    finally:
        logging.basicConfig(level=logging.WARNING, force=True)
    (file,) = (tmp_path / "logs").iterdir()
    assert file.stat().st_size < 100_000
    written = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(written) == 120  # each once a minute
    held = [line.get("repeated", 0) for line in written if line["logger"] == "tarsd.chat"]
    assert held == [0, *[59] * 59]
    assert sum(line.get("repeated", 0) + 1 for line in written) + 59 + 119 == 3600 * 3  # nothing is lost in the count
    # and what is different each time is bounded by size
    set_up(tmp_path / "logs", "tarsd-x")
    try:
        for number in range(2_100):
            provider.info("step", extra={"number": number, "path": "x" * 10_000})
    finally:
        logging.basicConfig(level=logging.WARNING, force=True)
    assert sum(one.stat().st_size for one in (tmp_path / "logs").iterdir()) < 20_000_000


@pytest.mark.parametrize("platform", ["darwin", "linux"])
@pytest.mark.report("https://github.com/manaflow-ai/subrouter/issues/333")
def test_the_service_keeps_no_second_log(platform: str, vault: Path) -> None:
    machine = Machine(platform, {"HOME": "/h", "PATH": ""}, UID, CommandRunner({}))
    text = services.service("0123456789ab", machine).text(services.launch(load(vault=vault), machine))
    if platform == "darwin":
        agent = plistlib.loads(text.encode())
        assert (agent["StandardOutPath"], agent["StandardErrorPath"]) == ("/dev/null", "/dev/null")
    else:
        assert {"StandardOutput=null", "StandardError=null"} <= set(text.splitlines())
