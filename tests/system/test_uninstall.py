"""Taking tarsd away: what goes, what stays, and that nothing is left but the notes."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarsd import keys, services
from tarsd.cli import uninstall
from tarsd.client import Client
from tarsd.config import socket_path, vault_id
from tarsd.config.places import models_folder, paths
from tarsd.errors import EXIT_NOTHING, EXIT_OK, EXIT_REFUSED, EXIT_USAGE, ClientError
from tarsd.services import traces
from tests.conftest import Daemon
from tests.support.engine import until, write
from tests.support.pdfs import pdf
from tests.support.pdfs import write as write_bytes
from tests.support.stub import Run
from tests.support.supervisors import System

Machine = Callable[[str], System]
NOTES = {"Tea.md": "# Tea\n\nGreen tea at 80 degrees.\n", ".obsidian/app.json": "{}", "tars/Memory.md": "- Tea\n"}


@pytest.fixture
def machine(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """`machine("linux")`: a person's machine, with nothing of tarsd but the program; services are real processes."""
    begun: list[System] = []

    def start(platform: str) -> System:
        monkeypatch.delenv("TARSD_HOME")
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        begun.append(System(short_tmp / platform, monkeypatch, platform, spawn=True))
        return begun[-1]

    yield start
    for one in begun:
        one.__exit__(None, None, None)


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All that is below a folder by its path: mode, and content of files or target of links."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (stat.S_IFMT(mode), content)
    return found


def indexed(vault: Path) -> None:
    """Its daemon has an index of it."""
    client = Client(socket_path(vault_id(vault)))

    def ready() -> bool:
        try:
            return bool(client.get("/v1/status")["behind"] == 0)
        except ClientError:
            return False

    until(ready)


# The whole way


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_no_trace_is_left_but_the_notes(run: Run, machine: Machine, platform: str) -> None:
    system = machine(platform)
    vault = system.home / "Notes"
    for path, text in NOTES.items():
        write(vault, path, text)
    write_bytes(vault / "Tea.pdf", pdf([["Black tea is drunk at four."]]))
    before = everything(system.home)

    assert run("init", "--vault", str(vault))[0] == EXIT_OK
    config = paths(vault_id(vault), os.environ).config_file
    config.write_text(config.read_text().replace("[embedding]\n", '[embedding]\nmodel = "table"\n'))
    code, out, err = run("service", "install")
    assert code == EXIT_OK, out + err
    indexed(vault)
    keys.put("openai", "sk-test")
    until(lambda: "Tea.pdf" in run("search", "kind:pdf", "black")[1])
    assert paths(vault_id(vault), os.environ).files_db.exists()
    assert run("search", "tea")[0] == EXIT_OK
    assert run("ask", "what about tea?")[0] == EXIT_OK
    assert len(everything(system.home)) > len(before) + 10
    # what the model's runtime left with an earlier version; and what is another program's
    runtime = "Library/Application Support" if platform == "darwin" else ".cache"
    for name in ("deviceid", "onnxruntime.db", "onnxruntime.db-wal"):
        write(system.home, f"{runtime}/Microsoft/DeveloperTools/.onnxruntime/{name}", "1")
    edge = f"{runtime}/Microsoft/Edge/deviceid"
    write(system.home, edge, "theirs")
    theirs = {path: what for path, what in everything(system.home).items() if Path(edge).is_relative_to(path)}

    code, out, err = run("uninstall", "--purge", "--yes")
    assert (code, "Removed." in out) == (EXIT_OK, True), out + err
    left = everything(system.home)
    written = {path for path in left if path.startswith("Notes/tars/") and path not in before}
    assert all("sessions" in path for path in written), "what tars wrote for the person stays"
    assert {path: what for path, what in left.items() if path not in written} == before | theirs
    assert str(vault / "tars") in out
    assert not system.machine.env.get("TARSD_HOME") and services.installed() == []
    assert run("uninstall", "--purge", "--yes")[0] == EXIT_NOTHING


def test_without_purge_only_the_service_goes(run: Run, machine: Machine) -> None:
    system = machine("linux")
    vault = system.home / "Notes"
    write(vault, "Tea.md", "# Tea\n")
    run("init", "--vault", str(vault))
    assert run("service", "install")[0] == EXIT_OK
    indexed(vault)
    places = paths(vault_id(vault), os.environ)
    code, out, _ = run("uninstall", "--yes", "--json")
    reply = json.loads(out)
    assert (code, reply["failed"]) == (EXIT_OK, [])
    assert services.installed() == [] and not places.socket.exists()
    for kept in (places.config_file, places.index_db, places.embeddings_db, places.state):
        assert kept.exists()
    left = {one["what"]: one["bytes"] for one in reply["left"]}
    assert set(left) == {"index", "vectors", "conversations, undo", "log", "settings"}
    assert left["index"] > 10_000
    assert {one["why"] for one in reply["left"]} == {"removed with --purge"}
    code, out, _ = run("uninstall", "--purge", "--yes")
    assert (code, "What stays" in out) == (EXIT_OK, False)
    assert sorted(everything(system.home)) == ["Notes", "Notes/Tea.md"], "nothing of its own is left"


# Asking


@pytest.fixture
def one(daemon: Callable[..., Daemon], vault: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Daemon:
    """A daemon on a vault, in a home of its own without services."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(vault, "Tea.md", "# Tea\n")
    one = daemon()
    one.wait(lambda status: status["behind"] == status["files"]["pending"] == 0)  # both indexes are there
    return one


def test_nothing_goes_without_a_yes(
    run: Run, one: Daemon, vault: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(everything(home))
    code, out, err = run("uninstall", "--purge", "--vault", str(vault))
    assert (code, "Not removed." in err) == (EXIT_REFUSED, True)
    for what in ("daemon", "index", "vectors", "conversations, undo", "log"):
        assert f"\n  {what} " in out
    assert f"{one.config.paths.cache}  (" in out
    monkeypatch.setattr(uninstall, "somebody", lambda: True)
    code, out, _ = run("uninstall", "--purge", "--vault", str(vault), stdin="\n")
    assert (code, "Nothing removed." in out) == (EXIT_OK, True)
    assert sorted(everything(home)) == before and one.client.alive()
    code, out, _ = run("uninstall", "--purge", "--vault", str(vault), stdin="y\n")
    assert (code, "Removed." in out, one.client.alive()) == (EXIT_OK, True, False)
    assert not home.exists() or everything(home) == {}
    assert (vault / "Tea.md").exists()


def test_a_daemon_that_does_not_end_keeps_everything(
    run: Run, one: Daemon, vault: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "END_S", 0.2)
    one.config.paths.socket.unlink()  # as tools that tidy /tmp do
    code, _, err = run("uninstall", "--purge", "--yes", "--vault", str(vault))
    assert (code, "The daemon does not stop." in err) == (EXIT_REFUSED, True)
    assert one.config.paths.index_db.exists() and one.process.poll() is None


# Several vaults


def test_what_is_shared_goes_with_the_last_vault(
    run: Run, one: Daemon, daemon: Callable[..., Daemon], vault: Path, tmp_path: Path, home: Path
) -> None:
    other = tmp_path / "other"
    write(other, "Coffee.md", "# Coffee\n")
    second = daemon(other)
    (home / "config.toml").write_text("[embedding]\nmodel = 'table'\n")
    keys.put("openai", "sk-test")
    write(models_folder(), "some-model/words.npy", "bytes")
    code, out, _ = run("uninstall", "--purge", "--yes")
    assert code == EXIT_USAGE, "which one?"
    code, out, _ = run("uninstall", "--purge", "--yes", "--vault", str(vault))
    assert (code, "What stays, and why:" in out) == (EXIT_OK, True)
    told = dict(re.findall(r"^  (vectors|models|settings|keys) .*?(?:; |: )(.*?)\)?$", out, re.MULTILINE))
    assert set(told.values()) == {"another vault uses it"} and set(told) == {"vectors", "models", "settings", "keys"}
    shared = [one.config.paths.embeddings_db, home / "config.toml", home / "keys.json", models_folder()]
    assert all(path.exists() for path in shared)
    assert second.client.alive() and second.config.paths.index_db.exists()
    assert not one.config.paths.cache.exists() and not one.config.paths.state.exists()
    code, out, _ = run("uninstall", "--purge", "--yes")
    assert code == EXIT_OK, "only one is left"
    assert not any(path.exists() for path in shared)
    assert not home.exists() or everything(home) == {}


def test_the_config_of_a_vault_that_was_never_indexed_stays(
    run: Run, one: Daemon, vault: Path, tmp_path: Path, home: Path
) -> None:
    other = tmp_path / "other"
    write(other, "Coffee.md", "# Coffee\n")
    assert run("init", "--vault", str(other))[0] == EXIT_OK
    code, out, _ = run("uninstall", "--purge", "--yes", "--vault", str(vault))
    assert (code, f"; {other} uses it)" in out) == (EXIT_OK, True), "whose it is, where that is known"
    assert (home / "config.toml").exists() and not one.config.paths.cache.exists()
    assert run("uninstall", "--purge", "--yes")[0] == EXIT_OK
    assert not home.exists() or everything(home) == {}


def test_folders_above_its_own_stay(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, vault = tmp_path / "h", tmp_path / "Notes"
    write(vault, "Tea.md", "# Tea\n")
    for name, value in {"HOME": str(home), "TARSD_HOME": str(home / "mine" / "own")}.items():
        monkeypatch.setenv(name, value)
    write(home / "mine" / "own" / "state" / vault_id(vault), "port", "8427")
    assert run("uninstall", "--purge", "--yes", "--vault", str(vault))[0] == EXIT_OK
    assert (home / "mine").is_dir() and not (home / "mine" / "own").exists()


# What must never go


def test_the_plugin_goes_only_when_asked(run: Run, one: Daemon, vault: Path, tmp_path: Path) -> None:
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    write(folder, "main.js", "x")
    write(vault / ".obsidian" / "plugins" / "other", "main.js", "x")
    assert run("uninstall", "--yes", "--vault", str(vault))[0] == EXIT_OK
    assert folder.exists()
    assert run("uninstall", "--yes", "--plugin", "--vault", str(vault))[0] == EXIT_OK
    assert not folder.exists() and (folder.parent / "other" / "main.js").exists()
    source = tmp_path / "source"
    write(source, "main.js", "x")
    folder.symlink_to(source)
    assert run("uninstall", "--yes", "--plugin", "--vault", str(vault))[0] == EXIT_OK
    assert not folder.is_symlink() and (source / "main.js").exists(), "a link goes, and not what it leads to"


def test_what_lies_in_the_vault_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = tmp_path / "Notes"
    write(vault, "Tea.md", "# Tea\n")
    monkeypatch.setenv("TARSD_HOME", str(vault / "own"))
    write(vault / "own" / "cache" / vault_id(vault), "index.db", "x")
    before = everything(vault)
    code, _, err = run("uninstall", "--purge", "--yes", "--vault", str(vault))
    assert (code, "are inside each other; nothing was removed" in err) == (EXIT_REFUSED, True)
    assert everything(vault) == before

    inner = tmp_path / "home" / "state" / "Notes"
    write(inner, "Tea.md", "# Tea\n")
    monkeypatch.setenv("TARSD_HOME", str(tmp_path / "home"))
    inner.parent.joinpath(vault_id(inner)).symlink_to(inner)
    code, out, err = run("uninstall", "--purge", "--yes", "--vault", str(inner))
    assert (inner / "Tea.md").read_text() == "# Tea\n", out + err


def test_links_in_our_folders_are_not_followed(run: Run, one: Daemon, vault: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, "keep.txt", "x")
    (one.config.paths.state / "link").symlink_to(elsewhere)
    one.stop()
    shutil.rmtree(one.config.paths.cache)
    one.config.paths.cache.symlink_to(elsewhere)
    assert run("uninstall", "--purge", "--yes", "--vault", str(vault))[0] == EXIT_OK
    assert (elsewhere / "keep.txt").exists()
    assert not one.config.paths.cache.is_symlink() and not one.config.paths.state.exists()


def test_what_cannot_be_removed_is_said(run: Run, one: Daemon, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = traces.remove

    def failing(trace: traces.InstalledFile) -> None:
        if trace.what == "index":
            raise PermissionError(13, "Permission denied")
        real(trace)

    monkeypatch.setattr(traces, "remove", failing)
    code, out, err = run("uninstall", "--purge", "--yes", "--vault", str(vault))
    assert (code, "Removed everything else." in out) == (EXIT_REFUSED, True)
    assert f"{one.config.paths.cache} cannot be removed: Permission denied." in err
    assert not one.config.paths.state.exists()


def test_it_does_not_need_a_sound_config(run: Run, one: Daemon, vault: Path, home: Path) -> None:
    (home / "config.toml").write_text("[vault\n")
    code, out, err = run("uninstall", "--purge", "--yes", "--vault", str(vault))
    assert code == EXIT_OK, out + err
    assert not home.exists() or everything(home) == {}


def test_nothing_to_remove_is_said(run: Run, vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    code, out, _ = run("uninstall", "--purge", "--vault", str(vault))
    assert (code, "There is nothing" in out) == (EXIT_OK, True)
    code, out, _ = run("uninstall", "--json", "--vault", str(vault))
    assert (code, json.loads(out)["removed"]) == (EXIT_OK, [])
