"""Keys: where they are looked for, and that they are kept from others."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace

import pytest

from tarsd import keys
from tarsd.errors import BadRequest, ConfigError
from tests.support.keyrings import Ring

Env = dict[str, str]


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return {"TARSD_HOME": str(tmp_path / "home")}


def test_there_may_be_none(env: Env) -> None:
    assert keys.get("openai", env) is None
    assert keys.source("openai", env) is None
    assert keys.remove("openai", env) is False


def test_our_variable_then_the_keyring_then_the_file_then_the_vendors_variable(env: Env, ring: Ring) -> None:
    env["OPENAI_API_KEY"] = "vendor"
    assert (keys.get("openai", env), keys.source("openai", env)) == ("vendor", "OPENAI_API_KEY")
    ring.priority = 0.5  # type: ignore[assignment]
    assert keys.put("openai", "file", env) == str(Path(env["TARSD_HOME"]) / "keys.json")
    assert keys.get("openai", env) == "file"
    ring.priority = 5
    ring.kept["tarsd", "openai"] = "ring"
    assert (keys.get("openai", env), keys.source("openai", env)) == ("ring", "the system keyring")
    env["TARSD_OPENAI_KEY"] = " ours \n"
    assert (keys.get("openai", env), keys.source("openai", env)) == ("ours", "TARSD_OPENAI_KEY")


def test_the_keyring_is_used_where_there_is_one(env: Env, ring: Ring) -> None:
    assert keys.put("anthropic", "k\n", env) == "the system keyring"
    assert ring.kept == {("tarsd", "anthropic"): "k"}
    assert not (Path(env["TARSD_HOME"]) / "keys.json").exists()
    assert keys.remove("anthropic", env) is True
    assert keys.get("anthropic", env) is None


def test_a_keyring_that_fails_is_passed_over(env: Env, ring: Ring) -> None:
    ring.broken = True
    env["ANTHROPIC_API_KEY"] = "vendor"
    assert keys.get("anthropic", env) == "vendor"


def test_the_file_is_private_and_replaced_whole(env: Env) -> None:
    keys.put("openai", "one", env)
    keys.put("todoist", "two", env)
    file = Path(env["TARSD_HOME"]) / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == ["keys.json"]
    assert (keys.get("openai", env), keys.get("todoist", env)) == ("one", "two")
    assert keys.remove("openai", env) is True
    assert (keys.get("openai", env), keys.get("todoist", env)) == (None, "two")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
@pytest.mark.report("https://github.com/SystemSculpt/obsidian-systemsculpt-ai/issues/327")
def test_a_file_that_others_can_read_is_refused(env: Env, mode: int) -> None:
    keys.put("openai", "sk-secret", env)
    file = Path(env["TARSD_HOME"]) / "keys.json"
    file.chmod(mode)
    with pytest.raises(ConfigError, match=f"mode {mode:04o}") as caught:
        keys.get("openai", env)
    assert "chmod 600" in caught.value.hint
    assert "sk-secret" not in f"{caught.value!r} {caught.value} {caught.value.hint}"


@pytest.mark.parametrize("text", ["", "sk-secret", '["sk-secret"]', '{"openai": 1, "x": "sk-secret"}'])
def test_a_broken_file_is_named_and_not_quoted(env: Env, text: str) -> None:
    keys.put("openai", "x", env)
    (Path(env["TARSD_HOME"]) / "keys.json").write_text(text)
    with pytest.raises(ConfigError, match="is not a key file") as caught:
        keys.get("openai", env)
    assert "sk-secret" not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.hint}"


@pytest.mark.parametrize("key", ["", "  ", "a b", "a\nb", "a\x00"])
def test_what_cannot_be_a_key_is_refused(env: Env, key: str) -> None:
    with pytest.raises(BadRequest):
        keys.put("openai", key, env)


def test_unknown_names_are_refused(env: Env) -> None:
    with pytest.raises(BadRequest, match="no key named"):
        keys.get("nobody", env)


@pytest.fixture
def first_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FrameType]]:
    """As before the keyring is loaded; the stacks of those who ask for a backend are kept, as its backends do."""
    stacks: list[FrameType] = []
    backend = SimpleNamespace(priority=5, get_password=lambda service, name: "ring")

    def get_keyring() -> SimpleNamespace:
        if not stacks:
            stacks.append(sys._getframe())
        return backend

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_keyring=get_keyring))
    keys._loaded_keyring.cache_clear()
    yield stacks
    stacks.clear()
    keys._loaded_keyring.cache_clear()


def test_the_keyrings_loading_keeps_nothing_of_who_asked(env: Env, first_use: list[FrameType]) -> None:
    """Backends that cannot be loaded keep their error for ever, and it the stack: a whole daemon's parts."""
    assert keys.get("openai", env) == "ring"
    frame: FrameType | None = first_use[0]
    names = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    assert "get" not in names and test_the_keyrings_loading_keeps_nothing_of_who_asked.__name__ not in names
