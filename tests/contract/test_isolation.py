"""That no test reaches anything of the person who runs it: each has a home, an environment and a keyring of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import keyring
import pytest

from tarsd import keys
from tests.support import keyrings

LOOK = [sys.executable, "-c", "from tarsd import keys; print(keys.get('openai'))"]


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a canary writes here, so that this test does not fail by it."""
    monkeypatch.setenv(keyrings.MARK, str(tmp_path / "mark"))
    return tmp_path / "mark"


def looked(env: dict[str, str]) -> str:
    """What a process with this environment finds for a key."""
    done = subprocess.run(LOOK, env=env, cwd="/", capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_nothing_is_left_of_the_environment(home: Path) -> None:
    assert Path(os.environ["HOME"]).parent == home.parent != Path("/tmp")
    assert list(home.iterdir()) == []
    assert not {name for name in os.environ if name.endswith(("_KEY", "_TOKEN", "_HOST")) or name.startswith("XDG_")}
    assert {name for name in os.environ if name.startswith("TARSD_")} == {"TARSD_HOME"}


def test_there_is_no_keyring_here_and_none_in_a_process(mark: Path) -> None:
    assert keys.put("openai", "sk-test") == str(keys.key_file(os.environ))
    assert looked({**os.environ}) == "sk-test"
    assert not mark.exists()


def test_a_canary_tells_who_reaches_the_real_keyring(mark: Path) -> None:
    keyring.set_keyring(keyrings.Canary())  # type: ignore[no-untyped-call]
    assert keys.get("openai") is None
    assert "test_a_canary_tells" in mark.read_text(encoding="utf-8")


@pytest.mark.parametrize("by", ["variable", "home"])
def test_a_canary_tells_of_a_process_as_well(mark: Path, by: str) -> None:
    env = {name: os.environ[name] for name in ("HOME", keyrings.MARK)}
    env |= (
        {"PYTHON_KEYRING_BACKEND": keyrings.CANARY, "PYTHONPATH": str(Path(__file__).parents[2])}
        if by != "home"
        else {}
    )
    assert looked(env) == "None"
    assert "keys.py" in mark.read_text(encoding="utf-8")
