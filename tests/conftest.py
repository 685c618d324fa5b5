"""Fixtures for everybody: a home of its own for each test, a vault, a real daemon process, and a stand-in for it."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import keyring
import pytest
from hypothesis import HealthCheck, settings

from tarsd import cli, foreign
from tarsd.client import Client
from tarsd.config import load
from tarsd.embed import e5_files
from tarsd.errors import ClientError
from tests.support import forked, keyrings
from tests.support.multilingual import made_in
from tests.support.stub import Run, Stub

ROOT = Path(__file__).parents[1]

# no test depends on how fast this machine is
settings.register_profile("tarsd", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tarsd")


KEPT = ("PATH", "TMPDIR", "LANG", "LC_", "TZ", "TERM", "PYTHON", "PYTEST_", "VIRTUAL_ENV", "COV", keyrings.MARK)
"""What a test may know of the environment of whoever runs it: how these names begin."""


def pytest_configure() -> None:
    """From here on, a canary stands in place of the real keyring, also for child processes.

    Ctrl-C is heard again where a shell began this in the background: there it is ignored, by all children too.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ[keyrings.MARK] = str(Path(tempfile.mkdtemp(prefix="canary-")) / "mark")
    os.environ["PYTHON_KEYRING_BACKEND"] = keyrings.CANARY
    keyring.set_keyring(keyrings.Canary())  # type: ignore[no-untyped-call]


def pytest_unconfigure() -> None:
    forked.end()
    shutil.rmtree(Path(os.environ[keyrings.MARK]).parent, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Which order it was, to have it again."""
    seed = config.getoption("randomly_seed", None)
    if seed is not None:
        terminalreporter.write_line(f"in the random order of --randomly-seed={seed}")


@pytest.fixture(autouse=True)
def home(own_place_of_the_module: None) -> Iterator[Path]:
    """An empty TARSD_HOME; its path is short, for a socket's path holds 103 bytes.

    With it come an empty HOME, an environment without anything of the person who runs the tests, and no keyring, here
    and in processes that a test starts. A test that reaches another keyring all the same fails.
    """
    with own_place() as folder:
        yield folder
    mark = Path(os.environ[keyrings.MARK])
    if mark.exists():
        reached = mark.read_text(encoding="utf-8")
        mark.unlink()
        pytest.fail(f"The keyring of whoever runs the tests was reached:\n{reached}")


@pytest.fixture(scope="session")
def e5_shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the multilingual model, made once for all processes of this run."""
    base = tmp_path_factory.getbasetemp()
    return made_in((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "models")


@pytest.fixture
def e5_folder(e5_shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the multilingual model's files, which the program finds there."""
    monkeypatch.setattr(e5_files, "models_folder", lambda: e5_shared.parent)
    return e5_shared


@pytest.fixture(autouse=True, scope="module")
def own_place_of_the_module() -> Iterator[None]:
    """The same for what the tests of a module share."""
    with own_place():
        yield


@contextlib.contextmanager
def own_place() -> Iterator[Path]:
    """The TARSD_HOME of a home and an environment with nothing in them, and without a keyring."""
    base, before = Path(tempfile.mkdtemp(prefix="t", dir="/tmp")), keyring.get_keyring()
    user, folder = base / "h", base / "t"
    settings = user / ".config" / "python_keyring" / "keyringrc.cfg"  # for processes that get HOME and nothing else
    for made in (settings.parent, folder):
        made.mkdir(mode=0o700, parents=True)
    settings.write_text(f"[backend]\ndefault-keyring={keyrings.CANARY}\nkeyring-path={ROOT}\n")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if not name.startswith(KEPT)]:
            patch.delenv(name)
        patch.setenv("HOME", str(user))
        patch.setenv("TARSD_HOME", str(folder))
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        patch.setattr(foreign, "_secrets", set())  # what another test's keys are is no business of this one's
        keyring.set_keyring(keyrings.NoRing())
        try:
            yield folder
        finally:
            keyring.set_keyring(before)
            shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def ring(home: Path) -> keyrings.Ring:
    """A keyring in memory, for this test and this process."""
    ring = keyrings.Ring()
    keyring.set_keyring(ring)
    return ring


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """An empty vault that Obsidian has opened before."""
    folder = tmp_path / "vault"
    (folder / ".obsidian").mkdir(parents=True)
    return folder


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """An empty folder with a short path, for what holds sockets."""
    folder = Path(tempfile.mkdtemp(prefix="s", dir="/tmp")).resolve()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def stub(home: Path, vault: Path) -> Iterator[Stub]:
    """A stand-in for the vault's daemon; what it answers is put into `replies`."""
    stub = Stub(home / "0123456789ab.sock")
    stub.replies["GET /v1/hello"] = {"name": "tarsd", "vault": {"id": "x", "name": "vault", "path": str(vault)}}
    stub.replies["GET /v1/status"] = {"chat": {"model": "extractive", "state": "ready", "local": True}}
    with stub.answering():
        yield stub


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("search", "tea")` -> exit code, stdout, stderr; `stdin` is what comes through a pipe."""

    def go(*arguments: str, program: str = "tarsd", stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            (cli.main if program == "tarsd" else cli.tars)(list(arguments))
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return go


class Daemon:
    """A real daemon process and a client of it."""

    def __init__(self, vault: Path, env: Mapping[str, str]) -> None:
        self.vault = vault
        self.env = {**os.environ, "TARSD_EMBEDDING": "table", "TARSD_CHAT": "extractive", **env}
        self.config = load(vault=vault, env=self.env)
        self.client = Client(self.config.paths.socket, timeout=60)
        self.process: forked.Process = self.spawn()

    def spawn(self) -> forked.Process:
        """Another process of the same daemon."""
        return forked.start(["run", "--vault", str(self.vault)], self.env)

    def wait(self, what: Callable[[dict[str, Any]], bool] = lambda status: status["behind"] == 0) -> dict[str, Any]:
        """The status as soon as `what` holds of it; by default when the index is complete."""
        begun = time.monotonic()
        while True:
            try:
                status = self.client.get("/v1/status")
                if what(status):
                    return status
            except ClientError:
                if self.process.poll() is not None:
                    _, errors = self.process.communicate()
                    raise AssertionError(f"ended with {self.process.returncode}: {errors.decode()[-2000:]}") from None
                status = {}
            waited = time.monotonic() - begun
            assert waited < 300, status  # a bound for what hangs, not a speed: others use the machine, too
            time.sleep(min(0.02 + waited / 20, 0.1))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """The exit code after a signal."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.communicate(timeout=30)
        return self.process.returncode

    def restart(self, how: signal.Signals = signal.SIGTERM) -> dict[str, Any]:
        """Stop, start again, and wait for the index."""
        self.stop(how)
        self.process = self.spawn()
        return self.wait()


@pytest.fixture
def daemon(vault: Path) -> Iterator[Callable[..., Daemon]]:
    """`daemon()` starts one on the vault and waits for its index; `daemon(wait=False, TARSD_CHAT="fake")` as well."""
    started: list[Daemon] = []

    def start(folder: Path = vault, *, wait: bool = True, **env: str) -> Daemon:
        one = Daemon(folder, env)
        started.append(one)
        if wait:
            one.wait()
        return one

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate(timeout=30)
