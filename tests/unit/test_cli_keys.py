"""The commands about keys: where they are kept and found, and that nobody gets to see one."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tarsd import keys
from tarsd.errors import EXIT_CONFIG, EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from tests.support.keyrings import Ring
from tests.support.screen import Screen
from tests.support.stub import Run

KEY = "sk-secret-0123"


def test_a_key_comes_through_a_pipe_into_the_keyring(run: Run, ring: Ring) -> None:
    assert run("key", "set", "anthropic", stdin=f"{KEY}\n") == (EXIT_OK, "Saved in the system keyring.\n", "")
    assert ring.kept == {("tarsd", "anthropic"): KEY}
    assert run("key", "remove", "anthropic")[:2] == (EXIT_OK, "Removed the key anthropic.\n")
    assert ring.kept == {}
    assert run("key", "remove", "anthropic")[:2] == (EXIT_OK, "There is no key anthropic.\n")


def test_without_a_keyring_it_is_in_a_file_for_its_owner_alone(run: Run, home: Path) -> None:
    file = home / "keys.json"
    code, out, _ = run("key", "set", "openai", "--json", stdin=KEY)
    assert (code, json.loads(out)) == (EXIT_OK, {"name": "openai", "source": str(file)})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert keys.get("openai") == KEY
    code, out, _ = run("key", "remove", "openai", "--json")
    assert json.loads(out) == {"name": "openai", "removed": True, "source": None}


def test_keys_are_listed_by_where_they_are(run: Run, ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    ring.kept["tarsd", "todoist"] = KEY
    monkeypatch.setenv("TARSD_OPENAI_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for command in (["key"], ["key", "list"]):
        code, out, err = run(*command)
        assert (code, err) == (EXIT_OK, "")
        assert [line.split(None, 1) for line in out.splitlines()] == [
            ["openai", "TARSD_OPENAI_KEY"],
            ["anthropic", "ANTHROPIC_API_KEY"],
            ["todoist", "the system keyring"],
            ["tcp", "none"],
        ]
    code, out, _ = run("key", "--json")
    assert KEY not in out
    assert {one["name"]: one["source"] for one in json.loads(out)["keys"]}["tcp"] is None


def test_what_goes_before_or_is_left_is_told(run: Run, ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARSD_OPENAI_KEY", "other")
    assert "TARSD_OPENAI_KEY is also set and takes precedence." in run("key", "set", "openai", stdin=KEY)[2]
    assert "TARSD_OPENAI_KEY still contains one." in run("key", "remove", "openai")[2]


def test_a_key_is_never_an_argument(run: Run, ring: Ring) -> None:
    code, out, err = run("key", "set", "openai", KEY)
    assert (code, KEY in out + err, ring.kept) == (EXIT_USAGE, False, {})
    assert "Do not give the key as an argument" in err


@pytest.mark.parametrize(("name", "stdin"), [("openai", ""), ("openai", "a b"), ("nobody", KEY)])
def test_what_is_no_key_is_refused_and_not_repeated(run: Run, ring: Ring, name: str, stdin: str) -> None:
    code, out, err = run("key", "set", name, stdin=stdin)
    assert (code, out, ring.kept) == (EXIT_USAGE, "", {})
    assert KEY not in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize("command", [["set", "openai"], ["remove", "openai"]])
def test_a_keyring_that_is_locked_is_told_in_a_sentence(run: Run, ring: Ring, command: list[str]) -> None:
    ring.kept["tarsd", "openai"] = KEY
    ring.locked = True
    code, _, err = run("key", *command, stdin=KEY)
    assert (code, KEY in err) == (EXIT_REFUSED, False)
    assert err.startswith("The key cannot be saved or removed: RuntimeError.\n")


def test_a_file_that_others_can_read_is_told(run: Run, home: Path) -> None:
    run("key", "set", "openai", stdin=KEY)
    (home / "keys.json").chmod(0o644)
    code, out, err = run("key", "list")
    assert (code, out) == (EXIT_CONFIG, "")
    assert "chmod 600" in err
    assert KEY not in err


def test_at_a_terminal_a_key_is_typed_unseen(home: Path) -> None:
    with Screen(["key", "set", "anthropic"]) as screen:
        screen.see("Key anthropic (hidden): ")
        screen.type(KEY)
        screen.see(f"Saved in {home}/keys.json.")
        assert screen.end() == EXIT_OK
        assert KEY not in screen.raw
    assert json.loads((home / "keys.json").read_text()) == {"anthropic": KEY}


def test_a_key_that_is_not_typed_after_all(home: Path) -> None:
    with Screen(["key", "set", "anthropic"]) as screen:
        screen.see("(hidden): ")
        screen.type("\x04", enter=False)
        screen.see("No key was given.")
        assert screen.end() == EXIT_USAGE
    assert not (home / "keys.json").exists()
