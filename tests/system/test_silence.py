"""No command, and no daemon, asks anything of the network that the settings do not name, or leaves files elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarsd.config import short_folder, socket_path, vault_id
from tarsd.config.places import paths
from tests.support.commands import commands
from tests.support.engine import write
from tests.support.supervisors import System
from tests.support.watching import Network

MAIN = "import sys; from tarsd.cli import main; sys.argv[0] = 'tarsd'; main()"

BEFORE = {
    "tarsd init": ["--vault", "{vault}"],
    "tarsd model list": [],
    "tarsd model use": ["minilm"],
    "tarsd config check": [],
    "tarsd config path": [],
    "tarsd config socket": [],
    "tarsd completion": ["bash"],
    "tarsd help": ["search"],
}
"""Without a daemon."""
WITH = {
    "tarsd status": ["--wait"],
    "tarsd search": ["tea"],
    "tarsd sgrep": ["tea"],
    "tarsd svec": ["a hot drink"],
    "tarsd related": ["Tea"],
    "tarsd why": ["Tea", "kettle"],
    "tarsd ask": ["how hot is green tea?"],
    "tarsd chat": [],
    "tarsd sessions list": [],
    "tarsd sessions show": ["nobody"],
    "tarsd sessions rename": ["nobody", "Somebody"],
    "tarsd sessions delete": ["nobody", "--yes"],
    "tarsd memory remember": ["My kettle is blue"],
    "tarsd memory list": [],
    "tarsd memory forget": ["kettle", "--yes"],
    "tarsd memory undo": [],
    "tarsd review begin": [],
    "tarsd review apply": ["nothing"],
    "tarsd prompts list": [],
    "tarsd prompts add": ["weekly", "--yes"],
    "tarsd models": [],
    "tarsd usage": [],
    "tarsd doctor": [],
    "tarsd key set": ["todoist"],
    "tarsd key list": [],
    "tarsd key remove": ["todoist"],
    "tarsd token": [],
    "tarsd plugin install": ["--vault", "{vault}"],
    "tarsd plugin status": ["--vault", "{vault}"],
    "tarsd mcp": [],
    "tarsd reindex": ["--full"],
    "tarsd notes": ["--where", 'file.ext == "md"'],
    "tarsd base": ["Tea.md"],
    "tarsd digest": [],
    "tarsd tasks list": [],
    "tarsd tasks done": ["Tea.md:1", "--yes"],
    "tarsd tasks add": ["Descale the kettle", "--to", "Tea.md", "--yes"],
    "tarsd index export": ["{folder}/vectors"],
    "tarsd index import": ["{folder}/vectors"],
    "tarsd stop": [],
}
"""With one that runs, `tarsd run`."""
AFTER = {
    "tarsd service install": [],
    "tarsd service status": [],
    "tarsd service logs": [],
    "tarsd service stop": [],
    "tarsd service start": [],
    "tarsd service restart": [],
    "tarsd service uninstall": [],
    "tarsd uninstall": ["--purge", "--plugin", "--yes"],
}
"""With services; they, and what they start, are watched by the hook alone."""
ALL = {"tarsd run": ["--vault", "{vault}"], **BEFORE, **WITH, **AFTER}
SAID = {"tarsd chat": "how hot is green tea?\n", "tarsd key set": "canary0todoist0token\n"}


def test_no_command_is_forgotten() -> None:
    assert sorted(ALL) == sorted(name for name, _ in commands())


class Machine:
    """A person's machine with a vault, on which everything is watched."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        patch.delenv("TARSD_HOME")
        patch.delenv("XDG_RUNTIME_DIR", raising=False)
        self.network = Network(folder / "watch")
        self.system = System(folder, patch, sys.platform, spawn=True)
        self.folder, self.vault, self.tmp = folder, self.system.home / "Notes", folder / "tmp"
        self.tmp.mkdir()
        write(self.vault, ".obsidian/app.json", "{}")
        write(self.vault, "Tea.md", "# Tea\n\nGreen tea at 80 degrees, from the kettle.\n")
        for name, value in {**self.network.env, "TMPDIR": str(self.tmp)}.items():
            patch.setenv(name, value)
        self.complaints: list[str] = []

    def command(self, name: str) -> list[str]:
        given = [text.format(vault=self.vault, folder=self.folder) for text in ALL[name]]
        command = [sys.executable, "-c", MAIN, *name.split()[1:], *given]
        # strace would wait for the services that a command starts
        return command if name in AFTER else self.network.watched(command)

    def run(self, name: str) -> None:
        """Run a command to its end; it may refuse, and must not break."""
        done = subprocess.run(
            self.command(name), input=SAID.get(name, ""), capture_output=True, text=True, cwd=self.tmp, timeout=100
        )
        print(name, done.returncode, done.stdout[-300:], done.stderr[-300:])
        if done.returncode not in range(100) or "Traceback" in done.stderr:
            self.complaints.append(f"{name}: {done.returncode} {done.stderr[-2000:]}")

    def left(self) -> set[str]:
        """The files outside of the vault and of all places that are ours."""
        ours = paths(vault_id(self.vault), os.environ)
        roots = [ours.config_file.parent, ours.cache.parent, ours.state.parent, ours.logs, ours.socket.parent]
        roots += [self.vault, self.system.home / "Library" / "LaunchAgents", self.system.home / ".config" / "systemd"]
        every = [path for folder in (self.system.home, self.tmp) for path in folder.rglob("*") if not path.is_dir()]
        return {str(path) for path in every if not any(path.is_relative_to(root) for root in roots)}


def test_no_command_and_no_daemon_asks_the_network_or_leaves_files_elsewhere(
    short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(short_tmp, monkeypatch)
    for name in BEFORE:
        machine.run(name)
    daemon = subprocess.Popen(
        machine.command("tarsd run"), cwd=machine.tmp, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        socket = socket_path(vault_id(machine.vault))
        while not socket.exists() and daemon.poll() is None:
            time.sleep(0.05)
        for name in WITH:
            machine.run(name)
        daemon.wait(60)
    finally:
        if daemon.poll() is None:
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()
    assert (machine.vault / ".obsidian" / "plugins" / "tarsd" / "main.js").exists()
    assert machine.left() == set()
    for name in AFTER:
        machine.run(name)
        assert machine.left() == set(), name
    assert machine.complaints == []
    assert machine.network.found() == []
    systemd = {machine.system.home / ".config" / path for path in ("", "systemd", "systemd/user")}  # not ours to remove
    left = {path for path in machine.system.home.rglob("*") if machine.vault not in (path, *path.parents)}
    assert left <= systemd
    assert short_folder() != machine.tmp and list(machine.tmp.iterdir()) == []


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    "code",
    [
        "socket.create_connection(('192.0.2.1', 9), timeout=0.01)",
        "socket.getaddrinfo('telemetry.example.org', 443)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', ('2001:db8::1', 53))",
        "subprocess.run([sys.executable, '-c', 'import socket; socket.gethostbyname(\"far.example.org\")'])",
    ],
)
def test_what_would_be_seen_of_the_network(tmp_path: Path, native: bool, code: str) -> None:
    network = Network(tmp_path / "watch", native)
    if native and not network.native:
        pytest.skip("no strace here that may watch: native libraries are not seen")
    line = f"import contextlib, socket, subprocess, sys\nwith contextlib.suppress(OSError):\n    {code}"
    subprocess.run(network.watched([sys.executable, "-c", line]), env=os.environ | network.env, timeout=60)
    assert network.found()
    if native:  # and by the system calls alone, as of a library that is not Python's
        (tmp_path / "watch" / "network").write_text("")
        seen = network.found()
        assert seen or "getaddrinfo" in code or "gethostbyname" in code  # a system without a resolver asks nobody
