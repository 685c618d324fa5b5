"""Reported faults of plugin, daemon and operation; tests are named for them."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tarsd
from tarsd.client import Client
from tarsd.config.places import find_sockets, short_folder
from tests.conftest import Daemon
from tests.engine import write

ROOT = Path(__file__).parent.parent
Start = Callable[..., Daemon]


@pytest.mark.parametrize(("size", "letter"), [(60, "h"), (80, "h"), (80, "ü"), (100, "ü"), (120, "日")])
def test_c117_socket_path_too_long(
    vault: Path, short_tmp: Path, daemon: Start, monkeypatch: pytest.MonkeyPatch, size: int, letter: str
) -> None:
    write(vault, "Quorl.md", "A quorl is a brass wedge.")
    free = size - len(os.fsencode(short_tmp)) - 1
    letters = letter * (free // len(letter.encode()))
    user = short_tmp / (letters + "-" * (free - len(letters.encode())))
    user.mkdir()
    assert len(os.fsencode(user)) == size
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("TARSD_HOME")
    monkeypatch.setenv("HOME", str(user))
    one = daemon()
    (socket,) = find_sockets(vault)
    assert socket == one.config.paths.socket
    assert socket.parent == (user / ".tarsd" if size < 79 else short_folder())
    assert len(os.fsencode(socket)) <= 103
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert Client.find(vault).get("/v1/hello")["vault"]["path"] == str(vault)
    command = [sys.executable, "-c", "from tarsd.cli import main; main()", "search", "wedge", "--vault", str(vault)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "Quorl.md" in found.stdout
    assert one.stop() == 0
    assert not socket.exists()


def test_c133_plugin_on_mobile_and_review() -> None:
    node = shutil.which("node", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if node is None:
        pytest.skip("there is no Node; scripts/test brings one")
    shipped = Path(tarsd.__file__).parent / "data" / "plugin" / "main.js"
    script = ROOT / "obsidian-plugin" / "scripts" / "mobile-load.mjs"
    done = subprocess.run([node, script, shipped], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "main.js: loads without Node, asks for obsidian\n"), done.stderr
