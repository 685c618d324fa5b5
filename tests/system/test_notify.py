"""What a supervisor hears of a real daemon: that it is ready, what it does, that its loop turns, that it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd.daemon import supervised
from tarsd.daemon.notify import is_heard, notify
from tests.conftest import Daemon

Start = Callable[..., Daemon]

LONG = 30.0
SHIM = """
import os, signal, time

def hang(*_):
    while not os.path.exists(os.environ["TEST_RELEASE"]):
        time.sleep(0.01)

signal.signal(signal.SIGUSR1, hang)
"""
"""SIGUSR1 is handled in the thread of the event loop: it stands still until a file appears."""


class Supervisor:
    """The socket of a supervisor, at a path or under an abstract name."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._channel.bind("\0" + address[1:] if address.startswith("@") else address)
        self._channel.settimeout(LONG)

    def hear(self) -> list[str]:
        """The lines of the next message."""
        return self._channel.recv(4096).decode().splitlines()

    def until(self, *wanted: str) -> list[str]:
        """All lines up to the one that is the last of those wanted, in their order."""
        heard: list[str] = []
        left = list(wanted)
        while left:
            for line in self.hear():
                heard.append(line)
                if left and line == left[0]:
                    del left[0]
        return heard

    def silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        self._channel.settimeout(seconds)
        try:
            self.hear()
        except TimeoutError:
            return True
        finally:
            self._channel.settimeout(LONG)
        return False

    def close(self) -> None:
        self._channel.close()


@pytest.fixture(params=["path", "abstract"])
def supervisor(request: pytest.FixtureRequest, home: Path) -> Iterator[Supervisor]:
    one = Supervisor(str(home / "n") if request.param == "path" else f"@tarsd-test-{os.getpid()}")
    yield one
    one.close()


def test_a_life_as_the_supervisor_hears_it(supervisor: Supervisor, vault: Path, daemon: Start) -> None:
    (vault / "a.md").write_text("tea")
    one = daemon(wait=False, NOTIFY_SOCKET=supervisor.address, WATCHDOG_USEC="300000")
    assert supervisor.hear() == ["READY=1", "STATUS=Serving vault"]
    assert one.client.alive()  # whoever hears that it is ready finds it
    supervisor.until("WATCHDOG=1")
    one.wait()
    supervisor.until("STATUS=Serving vault", "WATCHDOG=1", "WATCHDOG=1")
    one.process.send_signal(signal.SIGTERM)
    heard = supervisor.until("STOPPING=1", "STATUS=Stopping")
    extended = "EXTEND_TIMEOUT_USEC=10000000"
    while extended not in heard:
        heard += supervisor.hear()
    assert one.stop() == 0


def test_a_vault_that_comes_later_is_waited_for(home: Path, tmp_path: Path, daemon: Start) -> None:
    supervisor = Supervisor(str(home / "n"))
    vault = tmp_path / "drive" / "vault"
    one = daemon(vault, wait=False, NOTIFY_SOCKET=supervisor.address)
    assert supervisor.hear()[0] == "READY=1"  # a state, and no failure
    supervisor.until("STATUS=Waiting for the vault")
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "a.md").write_text("tea")
    supervisor.until("STATUS=Serving vault")
    assert one.wait()["counts"]["notes"] == 1
    assert one.stop() == 0
    supervisor.close()


def test_a_loop_that_hangs_is_heard_no_more(vault: Path, home: Path, daemon: Start) -> None:
    supervisor = Supervisor(str(home / "n"))
    (home / "shim").mkdir()
    (home / "shim" / "sitecustomize.py").write_text(SHIM)
    release = home / "release"
    paths = os.pathsep.join([str(home / "shim"), os.environ.get("PYTHONPATH", "")])
    one = daemon(NOTIFY_SOCKET=supervisor.address, WATCHDOG_USEC="150000", PYTHONPATH=paths, TEST_RELEASE=str(release))
    supervisor.until("WATCHDOG=1")
    one.process.send_signal(signal.SIGUSR1)
    while not supervisor.silent(1.0):  # twenty times the pause between two of them
        pass
    assert one.process.poll() is None
    release.touch()
    supervisor.until("WATCHDOG=1")
    assert one.stop() == 0
    supervisor.close()


def test_nothing_is_said_where_nobody_listens(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    assert not is_heard()
    asyncio.run(supervised.pulse(asyncio.Event()))
    asyncio.run(supervised.report_activity(None, "x"))  # type: ignore[arg-type]
    for address in ("relative", "", "vsock:2:9"):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        assert not is_heard()
        notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(home / "nobody"))
    notify("READY=1")


def test_a_name_cannot_say_more_than_a_name(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    supervisor = Supervisor(str(home / "n"))
    monkeypatch.setenv("NOTIFY_SOCKET", supervisor.address)
    notify("READY=1", "STATUS=Serving a\nMAINPID=1 \udcff")
    assert supervisor.hear() == ["READY=1", "STATUS=Serving a MAINPID=1 ?"]
    supervisor.close()


class Parts:
    """What `report_activity` asks of the application, and of its index."""

    def __init__(self) -> None:
        self.indexing = self
        self.left, self.done, self.noticed = 0, 0, list[str]()
        self.watch = {"state": "events", "hint": ""}
        self.asked = 0

    def behind(self) -> int:
        return self.left

    def notices(self) -> list[str]:
        return self.noticed

    def status(self) -> dict[str, Any]:
        self.asked += 1
        return {"watch": self.watch, "counts": {"notes": self.done}, "behind": self.left}

    async def thread(self, work: Callable[[], Any]) -> Any:
        return work()


async def test_what_it_is_at(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    supervisor = Supervisor(str(home / "n"))
    monkeypatch.setenv("NOTIFY_SOCKET", supervisor.address)
    parts = Parts()
    telling = asyncio.create_task(supervised.report_activity(parts, "Notes", look_s=0.01))  # type: ignore[arg-type]

    async def heard() -> str:
        (line,) = await asyncio.to_thread(supervisor.hear)
        return line

    assert await heard() == "STATUS=Serving Notes"
    assert parts.asked == 0  # nothing is counted while there is nothing to tell
    parts.left = 6571
    assert await heard() == "STATUS=Indexing"
    parts.done, parts.left = 120, 6451
    assert await heard() == "STATUS=Indexing 120 of 6571"
    parts.watch = {"state": "waiting", "hint": "Connect it."}
    assert await heard() == "STATUS=Waiting for the vault"
    parts.left, parts.noticed = 0, ["The vault is not there."]
    parts.watch = {"state": "events", "hint": ""}
    assert await heard() == "STATUS=Serving Notes"
    telling.cancel()
    supervisor.close()
