"""The command `token`: a token is made, and shown once."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tarsd import keys
from tarsd.errors import EXIT_OK, EXIT_REFUSED
from tests.support.keyrings import Ring
from tests.support.stub import Run, Stub


def test_a_token_is_made_and_shown_once(run: Run, home: Path) -> None:
    code, out, err = run("token")
    token = out.strip()
    assert (code, len(token), out) == (EXIT_OK, 43, f"{token}\n")
    assert keys.get("tcp") == token
    assert stat.S_IMODE((home / "keys.json").stat().st_mode) == 0o600
    assert f"Saved in {home}/keys.json; it is not shown again." in err
    assert "Settings → Tarsd → Token" in err
    code, out, err = run("token")
    assert (code, out) == (EXIT_OK, f"There is already a token, saved in {home}/keys.json. It is not shown again.\n")
    assert "tarsd token --rotate" in err
    assert token not in out + err
    assert keys.get("tcp") == token


def test_another_one_takes_its_place(run: Run) -> None:
    first = run("token")[1].strip()
    code, out, _ = run("token", "--rotate")
    assert (code, keys.get("tcp")) == (EXIT_OK, out.strip())
    assert out.strip() != first
    assert run("token", "--rotate")[1].strip() not in (first, out.strip())


def test_it_is_kept_in_the_keyring_where_there_is_one(run: Run, ring: Ring) -> None:
    token = run("token")[1].strip()
    assert ring.kept == {("tarsd", "tcp"): token}
    ring.locked = True
    code, out, err = run("token", "--rotate")
    assert (code, out) == (EXIT_REFUSED, "")
    assert err.startswith("The token cannot be saved: RuntimeError.\n")
    assert keys.get("tcp") == token


def test_a_token_of_the_environment_is_not_replaced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARSD_TCP_KEY", "from-the-environment")
    code, out, err = run("token")
    assert (code, out) == (EXIT_OK, "There is already a token, saved in TARSD_TCP_KEY. It is not shown again.\n")
    code, out, err = run("token", "--rotate")
    assert (code, out) == (EXIT_REFUSED, "")
    assert "TARSD_TCP_KEY" in err
    assert "from-the-environment" not in err


def test_for_programs(run: Run, stub: Stub, home: Path) -> None:
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
        ({"http": {"enabled": True, "url": "http://127.0.0.1:1"}}, "listens at http://127.0.0.1:1"),
        (
            {"http": {"enabled": True, "url": "", "reason": "Port 1 is taken.", "hint": "Set another."}},
            "1 is taken. Set",
        ),
        ((500, {"error": {}}), "enabled = true under [http]"),
    ],
)
def test_it_says_where_the_token_is_good_for(run: Run, stub: Stub, status: object, said: str) -> None:
    stub.replies["GET /v1/status"] = status
    assert said in run("token")[2]
