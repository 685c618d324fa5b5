"""The command `token`: a token is made, and shown once."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import keyring
import pytest

from tarsd import keys
from tarsd.errors import EXIT_OK, EXIT_REFUSED
from tests.support.stub import Run, Stub
from tests.unit.test_keys import Ring


@pytest.fixture
def no_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "get_keyring", lambda: 1 / 0)


def test_a_token_is_made_and_shown_once(run: Run, no_ring: None, home: Path) -> None:
    code, out, err = run("token")
    token = out.strip()
    assert (code, len(token), out) == (EXIT_OK, 43, f"{token}\n")
    assert keys.get("tcp") == token
    assert stat.S_IMODE((home / "keys.json").stat().st_mode) == 0o600
    assert f"It is kept in {home}/keys.json, and not shown again." in err
    assert "Settings → Tarsd → Token" in err
    code, out, err = run("token")
    assert (code, out) == (EXIT_OK, f"There is a token, kept in {home}/keys.json. It is not shown again.\n")
    assert "tarsd token --rotate" in err
    assert token not in out + err
    assert keys.get("tcp") == token


def test_another_one_takes_its_place(run: Run, no_ring: None) -> None:
    first = run("token")[1].strip()
    code, out, _ = run("token", "--rotate")
    assert (code, keys.get("tcp")) == (EXIT_OK, out.strip())
    assert out.strip() != first
    assert run("token", "--rotate")[1].strip() not in (first, out.strip())


def test_it_is_kept_in_the_keyring_where_there_is_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    monkeypatch.setattr(keyring, "get_keyring", lambda: ring)
    token = run("token")[1].strip()
    assert ring.kept == {("tarsd", "tcp"): token}

    def locked(self: Ring, *given: str) -> None:
        raise RuntimeError(f"locked {given}")

    monkeypatch.setattr(Ring, "set_password", locked)
    code, out, err = run("token", "--rotate")
    assert (code, out) == (EXIT_REFUSED, "")
    assert err.startswith("The token cannot be kept: RuntimeError.\n")
    assert keys.get("tcp") == token


def test_a_token_of_the_environment_is_not_replaced(run: Run, no_ring: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARSD_TCP_KEY", "from-the-environment")
    code, out, err = run("token")
    assert (code, out) == (EXIT_OK, "There is a token, kept in TARSD_TCP_KEY. It is not shown again.\n")
    code, out, err = run("token", "--rotate")
    assert (code, out) == (EXIT_REFUSED, "")
    assert "TARSD_TCP_KEY" in err
    assert "from-the-environment" not in err


def test_for_programs(run: Run, no_ring: None, stub: Stub, home: Path) -> None:
    http = {"enabled": True, "url": "http://127.0.0.1:8427", "state": "listening", "reason": "", "hint": ""}
    stub.replies["GET /v1/status"] = {"http": http}
    made = json.loads(run("token", "--json")[1])
    assert made == {"made": True, "token": keys.get("tcp"), "source": f"{home}/keys.json", "http": http}
    assert json.loads(run("token", "--json")[1]) == {**made, "made": False, "token": None}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, "enabled = true under [http]"),
        ({"http": {"enabled": False}}, "does not listen on TCP"),
        ({"http": {"enabled": True, "url": "http://127.0.0.1:1"}}, "listens on http://127.0.0.1:1"),
        (
            {"http": {"enabled": True, "url": "", "reason": "Port 1 is taken.", "hint": "Set another."}},
            "1 is taken. Set",
        ),
        ((500, {"error": {}}), "enabled = true under [http]"),
    ],
)
def test_it_says_where_the_token_is_good_for(run: Run, no_ring: None, stub: Stub, status: object, said: str) -> None:
    stub.replies["GET /v1/status"] = status
    assert said in run("token")[2]
