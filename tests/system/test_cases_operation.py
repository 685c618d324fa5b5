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
from tarsd.protocol import ROUTES
from tarsd.server import page
from tests.conftest import Daemon
from tests.support.engine import write
from tests.support.rawhttp import TOKEN, exchange, message

ROOT = Path(__file__).parents[2]
Start = Callable[..., Daemon]


@pytest.mark.parametrize(("size", "letter"), [(60, "h"), (80, "h"), (80, "ü"), (100, "ü"), (120, "日")])
@pytest.mark.report("https://github.com/cocoindex-io/cocoindex-code/issues/267")
def test_a_home_whose_path_is_long_has_a_socket_elsewhere(
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


@pytest.mark.report("https://github.com/tobi/qmd/issues/881")
def test_foreign_pages_are_refused_on_every_route(
    vault: Path, home: Path, daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(vault, "Quorl.md", "# Quorl\n\nA quorl is the brass wedge.\n")
    closed = daemon(vault)
    assert closed.client.get("/v1/status")["http"]["url"] == ""  # the socket alone, unless the settings want more
    assert closed.stop() == 0
    (home / "config.toml").write_text("[http]\nenabled = true\nport = 0\n", encoding="utf-8")
    one = daemon(vault, TARSD_TCP_KEY=TOKEN)
    state = one.wait(lambda status: bool(status["behind"] == 0 and status["http"]["state"] == "listening"))
    port = int(state["http"]["url"].rpartition(":")[2])
    paths = [route.path for route in ROUTES] + [*page.FILES, "/nothing"]
    for token in (TOKEN, None):
        for path in paths:
            for method, headers in (
                ("GET", {"Host": f"evil.example:{port}"}),
                ("GET", {"Origin": "https://evil.example"}),
                ("OPTIONS", {"Origin": "https://evil.example", "Access_Control_Request_Method": "POST"}),
                ("POST", {"Origin": "https://evil.example", "Content_Type": "application/x-www-form-urlencoded"}),
            ):
                reply = exchange(
                    port, message(port, method, path, b"query=wedge"[: 99 * (method == "POST")], token=token, **headers)
                )
                assert (reply.status, reply.code) == (403, "refused"), (method, path, headers)
                assert not [name for name in reply.headers if name.startswith("access-control")]
                assert b"wedge" not in reply.body
    assert exchange(port, message(port, "GET", "/v1/hello", token=None)).status == 401
    own = exchange(port, message(port, "GET", "/v1/hello", Origin="app://obsidian.md"))
    assert (own.status, own.headers["access-control-allow-origin"]) == (200, "app://obsidian.md")
    for near in ("app://obsidian.md.evil.example", "app://obsidian.md/", "app://OBSIDIAN.md", "null", "*"):
        assert exchange(port, message(port, "GET", "/v1/hello", Origin=near)).status == 403
    assert one.stop() == 0


@pytest.mark.report("https://github.com/eharris128/Obsidian-LLM-Plugin/issues/301")
def test_the_plugin_loads_on_a_phone() -> None:
    node = shutil.which("node", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if node is None:
        pytest.skip("there is no Node; scripts/test brings one")
    shipped = Path(tarsd.__file__).parent / "data" / "plugin" / "main.js"
    script = ROOT / "obsidian-plugin" / "scripts" / "mobile-load.mjs"
    done = subprocess.run([node, script, shipped], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "main.js: loads without Node, asks for obsidian\n"), done.stderr
