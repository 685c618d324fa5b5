"""The commands `token` and `plugin`: a token is shown once, and three files get into a vault and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import keyring
import pytest

import tarsd
from tarsd import keys
from tarsd.cli import plugin
from tarsd.errors import EXIT_CONFIG, EXIT_NOTHING, EXIT_OK, EXIT_REFUSED
from tests.engine import contents, write
from tests.stub import Run, Stub
from tests.test_keys import Ring


@pytest.fixture
def no_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "get_keyring", lambda: 1 / 0)


# The token


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


# The plugin


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "built"
    write(folder, "main.js", "new code")
    write(folder, "styles.css", "new style")
    write(folder, "manifest.json", json.dumps({"id": "tarsd", "version": "1.2.3"}))
    write(folder, "data.json", "not for others")
    return folder


def test_the_three_files_are_copied_and_nothing_else(run: Run, vault: Path, built: Path) -> None:
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    code, out, _ = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert code == EXIT_OK
    assert out == f"Tarsd 1.2.3 is in {folder}.\n{plugin.ENABLE}\n"
    assert sorted(contents(vault)) == sorted(f".obsidian/plugins/tarsd/{name}" for name in plugin.FILES)
    assert (folder / "main.js").read_text() == "new code"


def test_an_older_one_is_brought_up_to_date_and_keeps_its_settings(run: Run, vault: Path, built: Path) -> None:
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    for name in ("main.js", "styles.css", "data.json"):
        write(folder, name, "old")
    write(folder, "manifest.json", json.dumps({"id": "tarsd", "version": "0.9.0"}))
    write(vault, ".obsidian/community-plugins.json", '["dataview", "tarsd"]')
    code, out, _ = run("plugin", "status", "--vault", str(vault))
    assert (code, out) == (EXIT_OK, f"Tarsd 0.9.0 is in {folder}, enabled.\n")
    code, out, _ = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code, out) == (EXIT_OK, f"Tarsd 1.2.3 is in {folder} (before: 0.9.0).\n{plugin.AGAIN}\n")
    assert {path.name: path.read_text() for path in folder.iterdir() if path.name != "manifest.json"} == {
        "main.js": "new code",
        "styles.css": "new style",
        "data.json": "old",
    }
    again = json.loads(run("plugin", "install", "--vault", str(vault), "--from", str(built), "--json")[1])
    assert again == {
        "installed": "1.2.3",
        "before": "1.2.3",
        "copied": True,
        "enabled": True,
        "folder": str(folder),
    }


def test_where_it_is_not_installed(run: Run, vault: Path) -> None:
    code, out, err = run("plugin", "--vault", str(vault))
    assert (code, out) == (EXIT_NOTHING, f"The plugin is not in {vault}.\n")
    assert "tarsd plugin install" in err
    code, out, _ = run("plugin", "status", "--vault", str(vault), "--json")
    assert code == EXIT_NOTHING
    assert json.loads(out)["installed"] is None


def test_the_configured_vault_or_the_one_of_the_daemon(
    run: Run, stub: Stub, vault: Path, built: Path, home: Path
) -> None:
    assert run("plugin", "install", "--from", str(built))[0] == EXIT_OK
    assert (vault / ".obsidian/plugins/tarsd/main.js").exists()
    other = home / "other"
    (other / ".obsidian").mkdir(parents=True)
    write(home, "config.toml", f'[vault]\npath = "{other}"\n')
    assert run("plugin", "install", "--from", str(built))[0] == EXIT_OK
    assert (other / ".obsidian/plugins/tarsd/main.js").exists()


def test_without_any_vault_it_says_so(run: Run, built: Path) -> None:
    assert run("plugin", "install", "--from", str(built))[0] == EXIT_CONFIG


@pytest.mark.parametrize(
    ("breaks", "said"),
    [
        (lambda vault, built: shutil.rmtree(vault), "There is no folder"),
        (lambda vault, built: (vault / ".obsidian").rmdir(), "is no vault of Obsidian's yet"),
        (lambda vault, built: (built / "main.js").unlink(), "does not hold the plugin"),
        (lambda vault, built: write(built, "manifest.json", '{"id": "other", "version": "1"}'), "does not hold"),
        (lambda vault, built: write(built, "manifest.json", "{"), "does not hold the plugin"),
        (lambda vault, built: write(vault, ".obsidian/plugins", "a file"), "cannot be written"),
        (
            lambda vault, built: ((built / "main.js").unlink(), write(built, "package.json", "{}")),
            "is not built.\nRun: cd",
        ),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    run: Run, vault: Path, built: Path, breaks: object, said: str
) -> None:
    assert callable(breaks)
    breaks(vault, built)
    before = contents(vault)
    code, out, err = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code, out) in ((EXIT_REFUSED, ""), (EXIT_NOTHING, ""))
    assert said in err.replace(f"{os.linesep}", "\n")
    assert contents(vault) == before


def test_a_folder_that_is_linked_to_the_source_is_left_alone(run: Run, vault: Path, built: Path) -> None:
    (vault / ".obsidian" / "plugins").mkdir()
    (vault / ".obsidian" / "plugins" / "tarsd").symlink_to(built)
    before = contents(built)
    code, out, _ = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code, "nothing is to be copied" in out) == (EXIT_OK, True)
    assert contents(built) == before


def test_what_came_with_the_package_goes_before_the_source_tree(
    run: Run, vault: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tarsd, "__file__", str(tmp_path / "site" / "tarsd" / "__init__.py"))
    code, _, err = run("plugin", "install", "--vault", str(vault))
    assert (code, "did not come with this tarsd" in err) == (EXIT_NOTHING, True)
    tree = tmp_path / "site" / "obsidian-plugin"
    write(tree, "package.json", "{}")
    code, _, err = run("plugin", "install", "--vault", str(vault))
    assert (code, "npm run build" in err) == (EXIT_NOTHING, True)
    shutil.copytree(built, tree, dirs_exist_ok=True)
    assert run("plugin", "install", "--vault", str(vault))[1].startswith("Tarsd 1.2.3 is in")
    write(tmp_path, "site/tarsd/data/plugin/manifest.json", json.dumps({"id": "tarsd", "version": "2.0.0"}))
    for name in ("main.js", "styles.css"):
        write(tmp_path, f"site/tarsd/data/plugin/{name}", "packed")
    assert run("plugin", "status", "--vault", str(vault))[2] == "Version 2.0.0 came with tarsd: tarsd plugin install\n"
    assert run("plugin", "install", "--vault", str(vault))[1].startswith("Tarsd 2.0.0 is in")
