"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarsd import files, keys
from tarsd.daemon.lock import Lock, listen
from tarsd.daemon.log import _PrivateFile
from tarsd.store import Store
from tarsd.vault import Vault
from tarsd.writing import Journal, create


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o277])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    """What a shell, a launcher or a strict machine may have set."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.report("https://github.com/hschmidt/EnvPane/issues/16")
def test_a_file_is_replaced_with_the_mode_that_was_asked_for(tmp_path: Path, mask: int) -> None:
    target = tmp_path / "a"
    for wanted in (0o600, 0o640, 0o644):
        files.replace(target, str(wanted).encode(), wanted)
        assert target.read_bytes() == str(wanted).encode() and mode(target) == wanted
    assert os.listdir(tmp_path) == ["a"]
    for _ in range(2):
        os.close(files.open_private(tmp_path / "b", os.O_RDWR | os.O_CREAT))
        assert mode(tmp_path / "b") == 0o600
        (tmp_path / "b").chmod(0o666)


@pytest.mark.report("https://github.com/nlf/dlite/issues/74")
def test_folders_get_the_mode_that_is_meant_those_above_as_well(tmp_path: Path, mask: int) -> None:
    files.make_folder(tmp_path / "a" / "b" / "c")
    files.make_folder(tmp_path / "agents" / "user", 0o755)
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault").chmod(0o750)
    files.make_folder(tmp_path / "vault" / "x" / "y", None)
    modes = {str(path.relative_to(tmp_path)): mode(path) for path in tmp_path.rglob("*")}
    assert modes == {
        "a": 0o700, "a/b": 0o700, "a/b/c": 0o700, "agents": 0o755, "agents/user": 0o755,
        "vault": 0o750, "vault/x": 0o750, "vault/x/y": 0o750,
    }  # fmt: skip
    (tmp_path / "a").chmod(0o755)
    files.make_folder(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o755
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        files.make_folder(tmp_path / "file")


def test_notes_are_as_open_as_their_folder(tmp_path: Path, mask: int) -> None:
    tmp_path.chmod(0o750)
    vault = Vault(tmp_path)
    hash = vault.create("New/Deep/a.md", b"mine")
    assert [mode(tmp_path / path) for path in ("New", "New/Deep", "New/Deep/a.md")] == [0o750, 0o750, 0o640]
    (tmp_path / "New/Deep/a.md").chmod(0o604)
    hash = vault.replace("New/Deep/a.md", b"other", hash)
    assert mode(tmp_path / "New/Deep/a.md") == 0o604
    trashed = vault.discard("New/Deep/a.md", hash)
    assert [mode(tmp_path / path) for path in (".trash", trashed)] == [0o750, 0o604]


def test_what_we_keep_for_ourselves_is_ours_alone(tmp_path: Path, mask: int) -> None:
    home = tmp_path / "home" / "tarsd"
    env = {"TARSD_HOME": str(home), "TARSD_NO_KEYRING": "1"}
    store = Store(home / "cache/index.db", home / "cache/embeddings.db")
    store.database.set_meta("a", 1)
    os.close(files.open_private(home / "x.jsonl", os.O_RDWR | os.O_CREAT))
    keys._write({"tcp": "x"}, env)
    lock = Lock(home / "state/daemon.lock")
    lock.take()
    server = listen(home / "s.sock")
    _PrivateFile(home / "tarsd.log").close()
    journal = Journal(home / "journal")
    journal.keep(create("a.md", "mine"), "note", "c", "daemon")
    made = {str(path.relative_to(tmp_path)): mode(path) for path in tmp_path.rglob("*")}
    folders = {path for path in made if (tmp_path / path).is_dir()}
    assert {"home", "home/tarsd", "home/tarsd/cache", "home/tarsd/state", "home/tarsd/journal"} <= folders
    assert {"home/tarsd/s.sock", "home/tarsd/cache/index.db", "home/tarsd/cache/index.db-wal"} <= set(made)
    assert {path: oct(made[path]) for path in made if made[path] != (0o700 if path in folders else 0o600)} == {}
    server.close()
    lock.release()
    store.close()


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("kept")
    (tmp_path / "a").symlink_to("elsewhere")
    with pytest.raises(FileExistsError), files.created(tmp_path / "a"):
        raise AssertionError
    files.replace(tmp_path / "a", b"new")
    assert (tmp_path / "elsewhere").read_text() == "kept"
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "a").read_bytes() == b"new"


def test_what_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ZeroDivisionError), files.replacing(target) as stream:
        stream.write(b"half")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), files.beside(target, b"new"):
        raise ZeroDivisionError
    with pytest.raises(OSError):
        files.replace(tmp_path / "folder", b"new")
    assert target.read_text() == "old" and sorted(os.listdir(tmp_path)) == ["a", "folder"]
