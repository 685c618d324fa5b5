"""Writing notes: never over what somebody else wrote."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tarsd.errors import Conflict, PathRefused, Refused, VaultUnavailable
from tarsd.vault import (
    Vault,
    content_hash,
)
from tests.unit.vault.conftest import NFC, NFD, write


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.rglob("*") if path.suffix == ".tmp"]


def test_a_new_note_never_overwrites(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Vault(vault)
    assert look.create("new/folder/a.md", b"first") == content_hash(b"first")
    with pytest.raises(Conflict):
        look.create("new/folder/a.md", b"second")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)  # it appears after we looked
    with pytest.raises(Conflict):
        look.create("new/folder/a.md", b"second")

    def no_links(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(Conflict):
        look.create("new/folder/a.md", b"second")
    look.create("b.md", b"without hard links")
    assert (vault / "b.md").read_bytes() == b"without hard links"
    assert (vault / "new/folder/a.md").read_bytes() == b"first" and leftovers(vault) == []


def test_only_notes_are_written(vault: Path) -> None:
    for path in ("script.sh", "no ending", "a.md/b"):
        with pytest.raises(PathRefused):
            Vault(vault).create(path, b"x")
    write(vault, "file.md")
    with pytest.raises(Refused):
        Vault(vault).create("file.md/below.md", b"x")


def test_a_note_is_replaced_only_in_the_version_that_was_read(vault: Path) -> None:
    write(vault, "sub/a.md", text="one")
    (vault / "sub/a.md").chmod(0o640)
    look = Vault(vault)
    new = look.replace("sub/a.md", b"two", content_hash(b"one"))
    assert (vault / "sub/a.md").read_bytes() == b"two" and new == content_hash(b"two")
    assert stat.S_IMODE((vault / "sub/a.md").stat().st_mode) == 0o640
    with pytest.raises(Conflict):
        look.replace("sub/a.md", b"three", content_hash(b"one"))
    with pytest.raises(Conflict):
        look.replace("sub/gone.md", b"three", new)
    assert (vault / "sub/a.md").read_bytes() == b"two" and not (vault / "sub/gone.md").exists()
    assert leftovers(vault) == []


def test_a_replaced_note_keeps_its_name_on_disk_and_its_attributes(vault: Path) -> None:
    write(vault, NFD, text="one")
    try:
        os.setxattr(vault / NFD, "user.tag", b"red")
        tagged = True
    except OSError:  # this disk has none
        tagged = False
    Vault(vault).replace(NFC, b"two", content_hash(b"one"))
    assert os.listdir(vault) == [".obsidian", NFD] or os.listdir(vault) == [NFD, ".obsidian"]
    assert not tagged or os.getxattr(vault / NFD, "user.tag") == b"red"


def test_an_edit_between_reading_and_writing_wins(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(vault, "a.md", text="one")
    real = os.fsync

    def meanwhile(fd: int) -> None:
        write(vault, "a.md", text="typed just now")
        real(fd)

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(Conflict):
        Vault(vault).replace("a.md", b"two", content_hash(b"one"))
    assert (vault / "a.md").read_text() == "typed just now" and leftovers(vault) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_changes_nothing(vault: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    write(vault, "a.md", text="one")

    def full(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    expected = Refused if number == errno.EIO else VaultUnavailable
    with pytest.raises(expected):
        Vault(vault).replace("a.md", b"two", content_hash(b"one"))
    with pytest.raises(expected):
        Vault(vault).create("b.md", b"two")
    monkeypatch.undo()
    assert (vault / "a.md").read_text() == "one" and leftovers(vault) == [] and not (vault / "b.md").exists()


def test_nothing_is_written_into_a_vault_that_is_away(tmp_path: Path) -> None:
    with pytest.raises(VaultUnavailable):
        Vault(tmp_path / "unmounted").create("a.md", b"x")
    assert not (tmp_path / "unmounted").exists()


def test_temporary_files_are_no_notes_and_no_events(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = os.link

    def spy(source: str, target: str) -> None:
        seen.append(os.path.relpath(source, vault))
        assert Vault(vault).scan().files == {}
        real(source, target)

    monkeypatch.setattr(os, "link", spy)
    Vault(vault).create("a.md", b"x")
    assert len(seen) == 1 and Vault(vault).excluded_by(seen[0])


def test_a_read_only_note_is_not_replaced(vault: Path) -> None:
    write(vault, "a.md", text="one")
    (vault / "a.md").chmod(0o444)
    with pytest.raises(Refused, match="read-only"):
        Vault(vault).replace("a.md", b"two", content_hash(b"one"))
    assert (vault / "a.md").read_text() == "one" and leftovers(vault) == []


def test_a_hard_linked_copy_keeps_its_bytes(vault: Path, tmp_path: Path) -> None:
    write(vault, "a.md", text="one")
    os.link(vault / "a.md", tmp_path / "backup.md")
    Vault(vault).replace("a.md", b"two", content_hash(b"one"))
    assert (vault / "a.md").read_text() == "two" and (tmp_path / "backup.md").read_text() == "one"


@pytest.mark.parametrize("how", ["in place", "beside and renamed"])
@pytest.mark.report("https://github.com/alangrainger/obsidian-frontmatter-modified-date/issues/32")
def test_a_save_at_the_very_moment_of_writing_wins(vault: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    import tarsd.vault.files as files

    write(vault, "a.md", text="one")
    write(vault, "probe one.md", "probe two.md")
    if not files._exchange(str(vault / "probe one.md"), str(vault / "probe two.md")):
        pytest.skip("this disk cannot exchange two names in one step")
    real, saves = files._exchange, ["typed just now", "and a moment later"]

    def save() -> None:
        if how == "in place":
            write(vault, "a.md", text=saves.pop(0))
        else:
            write(vault, "new.md", text=saves.pop(0))
            os.replace(vault / "new.md", vault / "a.md")

    def exchange(one: str, other: str) -> bool:
        if saves:  # after the check, before each exchange
            save()
        return real(one, other)

    monkeypatch.setattr(files, "_exchange", exchange)
    with pytest.raises(Conflict):
        Vault(vault).replace("a.md", b"two", content_hash(b"one"))
    assert (vault / "a.md").read_text() == "and a moment later" and leftovers(vault) == []


def test_where_names_cannot_be_exchanged_a_note_is_replaced_all_the_same(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tarsd.vault.files as files

    monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    write(vault, "a.md", text="one")
    Vault(vault).replace("a.md", b"two", content_hash(b"one"))
    assert (vault / "a.md").read_text() == "two" and leftovers(vault) == []


def test_a_discarded_note_lies_in_the_trash(vault: Path) -> None:
    look = Vault(vault)
    for number in ("", " 2", " 3"):
        write(vault, "sub/Plan.md", text=f"text{number}")
        assert look.discard("sub/Plan.md", content_hash(f"text{number}".encode())) == f".trash/Plan{number}.md"
        assert not (vault / "sub/Plan.md").exists()
        assert (vault / f".trash/Plan{number}.md").read_text() == f"text{number}"
    assert look.scan().files == {}
    write(vault, "a.md", text="one")
    for path, hash in (("a.md", content_hash(b"two")), ("gone.md", content_hash(b"one"))):
        with pytest.raises(Conflict):
            look.discard(path, hash)
    with pytest.raises(PathRefused):
        look.discard(".obsidian/app.json", "")
    assert (vault / "a.md").read_text() == "one"


def test_a_note_saved_while_it_is_discarded_comes_back(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(vault, "a.md", text="one")
    real = os.rename

    def meanwhile(source: Path, target: Path) -> None:
        write(vault, "a.md", text="typed just now")
        real(source, target)

    monkeypatch.setattr(os, "rename", meanwhile)
    with pytest.raises(Conflict):
        Vault(vault).discard("a.md", content_hash(b"one"))
    assert (vault / "a.md").read_text() == "typed just now" and os.listdir(vault / ".trash") == []


def test_the_trash_is_a_folder_in_the_vault(vault: Path, tmp_path: Path) -> None:
    write(vault, "a.md", text="one")
    (tmp_path / "elsewhere").mkdir()
    (vault / ".trash").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused):
        Vault(vault).discard("a.md", content_hash(b"one"))
    assert (vault / "a.md").read_text() == "one" and os.listdir(tmp_path / "elsewhere") == []


def test_what_a_crash_left_is_cleared_and_a_strangers_text_is_kept(vault: Path) -> None:
    write(vault, "sub/a.md", text="new")
    write(vault, "sub/.tarsd-0123456789abcdef.tmp", text="old")
    write(vault, "sub/.tarsd-fedcba9876543210.tmp", text="typed just then")
    Vault(vault).sweep("sub/a.md", (content_hash(b"old"), content_hash(b"new"), None))
    assert leftovers(vault) == [] and (vault / "sub/a.md").read_text() == "new"
    assert {file.name: file.read_text() for file in (vault / ".trash").iterdir()} == {"a.md": "typed just then"}
    Vault(vault).sweep("no folder/a.md", ())
