"""What the tests of doctor share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import tarsd
from tarsd.doctor import CHECKS, Check, DoctorContext, Finding, examine
from tarsd.services import ServiceState
from tests.conftest import Daemon
from tests.support.engine import write
from tests.support.stub import Stub

ROOT = Path(__file__).parents[3]

Start = Callable[..., Daemon]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No keyring, no home and no service of whoever runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "ada").mkdir()


@pytest.fixture
def subject(vault: Path) -> DoctorContext:
    """The vault, known and readable, with one note."""
    write(vault, "Boiler.md", "# Boiler\n\nThe gauge should read 1.2 bar when cold.\n")
    return settled(vault)


def settled(vault: Path) -> DoctorContext:
    subject = DoctorContext(vault)
    look(subject, "Settings", "file")
    look(subject, "Vault", "folder")
    look(subject, "Vault", "notes")
    return subject


def look(subject: DoctorContext, group: str, name: str) -> list[Finding]:
    """The lines of one check."""
    (check,) = [one for one in CHECKS if (one.group, one.name) == (group, name)]
    return list(examine(subject, [check]))


def one(subject: DoctorContext, group: str, name: str) -> Finding:
    (line,) = look(subject, group, name)
    return line


def well(line: Finding) -> bool:
    return line.state == "ok" and not line.hint


@pytest.fixture
def stand_in(subject: DoctorContext) -> Iterator[Stub]:
    """A stand-in for the daemon, at the vault's own socket; `stand_in.replies` is what it says."""

    stub = Stub(subject.config.paths.socket)
    hello = {"version": tarsd.__version__, "protocol": 1, "features": ["check"]}
    stub.replies["GET /v1/hello"] = hello | {"vault": {"path": str(subject.config.vault)}}
    stub.replies["GET /v1/status"] = {"process": {"pid": 7, "uptime_s": 100}, "behind": 0, "problems": []}
    stub.replies["GET /v1/notes"] = {"notes": []}
    stub.replies["POST /v1/check"] = []
    with stub.answering():
        yield stub


def says(stub: Stub, **status: Any) -> None:
    stub.replies["GET /v1/status"] |= status


def checks(*looks: Callable[[DoctorContext], Any], seconds: float = 5.0) -> list[Check]:
    return [Check("Test", f"check {number}", one, seconds) for number, one in enumerate(looks)]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`packages("name", "code")` installs a package of this code, which tarsd is said to need, and nothing else."""
    folder = tmp_path / "site"

    def install(name: str, code: str) -> None:
        write(folder, f"{name}.py", code)
        write(folder, f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        write(folder, f"{name}-1.0.dist-info/top_level.txt", name)
        monkeypatch.setattr(metadata, "requires", lambda package: ["click>=8", f"{name}>=1", 'pytest; extra == "test"'])

    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
    return install


def keyed(home: Path, vault: Path, settings: str) -> DoctorContext:
    write(home, "config.toml", f'[vault]\npath = "{vault}"\n{settings}')
    return settled(vault)


class Serving:
    """A service that stands as it is told to."""

    def __init__(self, state: ServiceState, arguments: Sequence[str] = ()) -> None:
        self._state, self._arguments = state, arguments

    def state(self) -> ServiceState:
        return self._state

    def arguments(self) -> Sequence[str]:
        return self._arguments
