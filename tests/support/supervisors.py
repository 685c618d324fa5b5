"""A system with a supervisor of its own: stand-ins for its commands on the PATH, and a home folder beside them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tarsd import services
from tarsd.services import CommandRunner, Machine

UID = 501
NOBODY = 4242
"""The process of a service that is not really started."""

COMMANDS = ("launchctl", "systemctl", "loginctl")
DOUBLE = Path(__file__).parent / "doubles" / "supervisor.py"


class System:
    """`with System(tmp, monkeypatch, "darwin") as system`: what the commands in this process meet as their machine.

    With `spawn`, services are real processes; they end with the block.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, platform: str, *, spawn: bool = False) -> None:
        self.home = folder / "home"
        self.folder = folder / "supervisor"
        self.platform = platform
        self._bin = folder / "bin"
        for one in (self.home, self.folder / "answers", self._bin):
            one.mkdir(parents=True)
        for name in COMMANDS:
            program = self._bin / name
            program.write_text(f"#!{sys.executable} -SE\n{DOUBLE.read_text(encoding='utf-8')}")
            program.chmod(0o755)
        self._spawn = spawn
        if spawn:
            (self.folder / "spawn").write_text("yes")
        patch.setenv("HOME", str(self.home))
        patch.setenv("PATH", str(self._bin))  # and never the commands of the machine that runs the tests
        patch.setenv("TEST_SUPERVISOR", str(self.folder))
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "SUDO_UID"):
            patch.delenv(name, raising=False)
        patch.setattr(services.Machine, "here", classmethod(lambda _: self.machine))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spawn and self.pid and not (self.folder / "exit").exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    @property
    def machine(self) -> Machine:
        """As the commands find it."""
        return Machine(self.platform, dict(os.environ), UID, CommandRunner(os.environ))

    @property
    def pid(self) -> int:
        """The process that was started last."""
        file = self.folder / "pid"
        return int(file.read_text()) if file.exists() else 0

    def calls(self) -> list[str]:
        """What was asked of the supervisor since the last time."""
        file = self.folder / "calls"
        found = [" ".join(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
        file.unlink(missing_ok=True)
        return found

    def answer(self, verb: str, code: int, out: str = "", err: str = "", *, times: int = 1) -> None:
        """Have it answer so, the next time (or times) that it is asked this."""
        with open(self.folder / "answers" / verb, "a") as file:
            file.write((json.dumps([code, out, err]) + "\n") * times)

    def ended(self, code: int) -> None:
        """The service has ended with this exit code, or by this signal if it is negative."""
        (self.folder / "exit").write_text(str(code))
        (self.folder / "pid").unlink(missing_ok=True)

    def without(self, command: str) -> None:
        """The supervisor's command is not there."""
        (self._bin / command).unlink()
