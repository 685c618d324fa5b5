"""What the tests of services share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd import services
from tarsd.services import CommandRunner, Launch, Machine, program
from tests.support.supervisors import UID, System

ROOT = Path(__file__).parents[3]

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


def sample(platform: str) -> tuple[Path, str]:
    """The sample of a service, its path and its text; `python -m tests.unit.services.test_files` writes them."""
    home, language = ("/Users/ada", "en_US.UTF-8") if platform == "darwin" else ("/home/ada", "C.UTF-8")
    arguments = (f"{home}/tarsd/.venv/bin/python3", *program.MODULE, "run", "--vault", f"{home}/Notes")
    environment = {"HOME": home, "PATH": program.PATHS[platform], "LANG": language, "LC_ALL": language}
    launch = Launch("ceec6202af61", "Notes", arguments, environment)
    machine = Machine(platform, {"HOME": home}, UID, CommandRunner({}))
    file = ROOT / ("launchd/md.tarsd.plist" if platform == "darwin" else "systemd/tarsd.service")
    return file, services.service(launch.vault_id, machine).text(launch)


UNIT = "tarsd-0123456789ab.service"
