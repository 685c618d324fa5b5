"""What a scan of a vault finds, and the rules of what is left out."""

from __future__ import annotations

import errno
import json
import os
import pickle
import socket
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tarsd.errors import VaultUnavailable
from tarsd.vault import (
    FileInfo,
    Rules,
    Scan,
    Unreadable,
    Vault,
    is_conflict_copy,
    settled,
    stamp_of,
)
from tests.unit.vault.conftest import NFC, NFD, Evicted, paths, write


class Entry:
    """A directory entry whose stat is changed by a function."""

    def __init__(self, real: os.DirEntry[str], change: Callable[[str, os.stat_result], Any]) -> None:
        self._real = real
        self._change = change
        self.name, self.path = real.name, real.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._real.is_dir(follow_symlinks=follow_symlinks)

    def is_symlink(self) -> bool:
        return self._real.is_symlink()

    def stat(self, *, follow_symlinks: bool = True) -> Any:
        return self._change(self.name, self._real.stat(follow_symlinks=follow_symlinks))


def shim_stat(monkeypatch: pytest.MonkeyPatch, change: Callable[[str, os.stat_result], Any]) -> None:
    import tarsd.vault.scan as scan

    real = scan.list_folder
    monkeypatch.setattr(scan, "list_folder", lambda folder: [Entry(entry, change) for entry in real(folder)])


def states(scan: Scan) -> dict[str, str]:
    return {item.path: item.state for item in scan.skipped}


def exclude_in_obsidian(root: Path, *filters: str) -> None:
    write(root, ".obsidian/app.json", text=json.dumps({"userIgnoreFilters": list(filters)}))


names_apart = pytest.mark.skipif(
    sys.platform == "darwin", reason="macOS disks take these names for one, or refuse them"
)


# ---------------------------------------------------------------------------------------------------------------- scan


def test_the_scan_finds_notes_of_all_kinds_and_nothing_else(vault: Path) -> None:
    write(vault, "a.md", "b/c/d.MD", "board.canvas", "table.base", "photo.png", "plain.txt", "b/no ending")
    write(vault, ".hidden.md", ".git/x.md", ".trash/t.md", ".obsidian/x.md", "b/.secret/y.md", ".a.md.tmp", "a.md~")
    scan = Vault(vault, "work").scan()
    assert {path: info.kind for (_, path), info in scan.files.items()} == {
        "a.md": "note",
        "b/c/d.MD": "note",
        "board.canvas": "canvas",
        "table.base": "base",
    }
    assert scan.skipped == () and scan.marker and scan.unreadable_dirs == frozenset()
    info = scan.files["work", "a.md"]
    assert info.key == ("work", "a.md") and info.location == str(vault / "a.md") and info.size == 5
    assert info.mtime_ns == (vault / "a.md").stat().st_mtime_ns
    assert pickle.loads(pickle.dumps(info)) == info


def test_a_scan_of_some_paths_looks_at_these_files_and_below_these_folders(vault: Path) -> None:
    write(vault, "a.md", "b/c.md", "b/d/e.md", "bc/f.md", "g/h.md")
    look = Vault(vault)
    assert paths(look.scan(["a.md"])) == {"a.md"}
    assert paths(look.scan(["b", "g/h.md"])) == {"b/c.md", "b/d/e.md", "g/h.md"}
    assert paths(look.scan(["b/c.md", "b"])) == paths(look.scan(["b", "b/c.md"])) == {"b/c.md", "b/d/e.md"}
    assert paths(look.scan(["gone.md", "b/c.md/", "../a.md", ".obsidian"])) == {"b/c.md"}
    assert paths(look.scan([""])) == paths(look.scan()) and paths(look.scan([])) == set()
    scan = look.scan(["b/", "./a.md", "é.md"])
    assert scan.marker and paths(scan) == {"a.md", "b/c.md", "b/d/e.md"}


@names_apart
@pytest.mark.report("https://github.com/d12frosted/vulpea/issues/383")
def test_composed_and_decomposed_names(vault: Path) -> None:
    write(vault, NFD, "sub/" + NFD)
    look = Vault(vault)
    scan = look.scan()
    assert paths(scan) == {NFC, "sub/" + NFC}
    assert Path(scan.files["", NFC].location).name == NFD
    assert paths(look.scan([NFC])) == paths(look.scan([NFD])) == {NFC}
    assert look.key_of(vault / NFD) == look.key_of(vault / NFC) == NFC
    assert look.resolve(NFC) == look.resolve(NFD) == vault / NFD
    write(vault, NFC, text="the composed one\n")
    twins = look.scan()
    assert paths(twins) == {NFC, NFD, "sub/" + NFC} and states(twins) == {NFD: "twin"}
    assert Path(twins.files["", NFC].location).name == NFC and Path(twins.files["", NFD].location).name == NFD
    assert paths(look.scan([NFC])) == {NFC, NFD}
    assert look.resolve(NFC) == vault / NFC and look.resolve(NFD) == vault / NFD


@names_apart
def test_twin_folders_keep_all_their_notes(vault: Path) -> None:
    composed, decomposed = "é", unicodedata.normalize("NFD", "é")
    write(vault, f"{composed}/a.md", f"{decomposed}/a.md", f"{decomposed}/b.md")
    scan = Vault(vault).scan()
    assert paths(scan) == {f"{composed}/a.md", f"{decomposed}/a.md", f"{composed}/b.md"}
    assert Path(scan.files["", f"{composed}/b.md"].location).parent.name == decomposed


@names_apart
@pytest.mark.report("https://github.com/basicmachines-co/basic-memory/issues/1281")
def test_names_that_differ_in_case_are_two_notes(vault: Path) -> None:
    write(vault, "config.md", "Config.md")
    assert paths(Vault(vault).scan()) == {"config.md", "Config.md"}
    (vault / "config.md").unlink()
    assert paths(Vault(vault).scan(["config.md", "Config.md"])) == {"Config.md"}


@names_apart
def test_a_name_that_is_no_text_is_reported(vault: Path) -> None:
    for name in (b"caf\xe9.md", b"caf\xe9.png"):
        Path(os.fsdecode(os.fsencode(vault) + b"/" + name)).write_bytes(b"x")
    os.mkdir(os.fsencode(vault) + b"/\xe9")
    scan = Vault(vault).scan()
    assert scan.files == {} and states(scan) == {
        "caf\N{REPLACEMENT CHARACTER}.md": "unreadable",
        "\N{REPLACEMENT CHARACTER}": "unreadable",
    }
    json.dumps(sorted(states(scan)))
    assert Vault(vault).key_of(os.fsencode(vault) + b"/caf\xe9.md") is None


@pytest.mark.report("https://github.com/andrewbrereton/obsidian-to-ical-plugin/issues/41")
def test_conflict_copies_are_left_out_and_told(vault: Path) -> None:
    copies = [
        "Plan.sync-conflict-20260112-003022-ABCDEF7.md",
        "Plan (Sam's conflicted copy 2026-01-12).md",
        "Plan (conflicted copy 2026-01-12 093000).md",
        "Plan (Conflicted copy laptop 202601120930).md",
        "Plan (SFConflict sam@example.org 2026-01-12-09-30-00).md",
        "Plan_conflict-20260112-093000.md",
        "Plan_nas_Jan-12-093000-2026_Conflict.md",
        "Plan (In Konflikt stehende Kopie von Sam 2026-01-12).md",
        "sub/Plan (Sam's conflicted copy 2026-01-12 (1)).md",
    ]
    genuine = ["Plan.md", "Meeting 2.md", "Meeting (1).md", "On conflict.md", "Conflicted copy of a painting.md"]
    write(vault, *copies, *genuine)
    scan = Vault(vault).scan()
    assert paths(scan) == set(genuine)
    assert states(scan) == dict.fromkeys(copies, "conflict")
    assert all(item.hint for item in scan.skipped)
    assert is_conflict_copy("計画 (競合コピー 2026-01-12).md")


@pytest.mark.report("https://github.com/atomantic/PortOS/issues/3707")
def test_what_is_not_downloaded_is_kept_and_never_opened(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        vault, "here.md", "evicted.md", "flagged.md", "empty.md", ".Stub.md.icloud", ".here.md.icloud", ".x.png.icloud"
    )
    (vault / "empty.md").write_bytes(b"")
    os.mkfifo(vault / "pipe.md")

    def change(name: str, real: os.stat_result) -> Any:
        if name == "flagged.md":
            return Evicted(real, flags=0x4000_0000)
        return Evicted(real) if name == "evicted.md" else real

    shim_stat(monkeypatch, change)
    scan = Vault(vault).scan()
    assert paths(scan) == {"here.md", "empty.md"}
    gone = {"evicted.md", "flagged.md", "Stub.md", "pipe.md"}
    assert states(scan) == dict.fromkeys(gone, "not_downloaded")
    assert all(scan.keeps(path) for path in gone) and not scan.keeps("deleted.md")
    assert states(Vault(vault).scan(["Stub.md"])) == {"Stub.md": "not_downloaded"}


@pytest.mark.report("https://github.com/guard/rb-inotify/issues/21")
def test_links_are_not_followed_and_loops_end(vault: Path, tmp_path: Path) -> None:
    write(vault, "a/real.md")
    write(tmp_path / "outside", "far.md")
    (vault / "a/up").symlink_to("..")
    (vault / "linked").symlink_to(tmp_path / "outside")
    (vault / "other.md").symlink_to("a/real.md")
    (vault / "far.md").symlink_to("../outside/far.md")
    (vault / "self.md").symlink_to("self.md")
    (vault / "photo.png").symlink_to("/dev/zero")
    scan = Vault(vault).scan()
    assert paths(scan) == {"a/real.md"}
    assert states(scan) == {
        "a/up": "duplicate",
        "other.md": "duplicate",
        "self.md": "duplicate",
        "linked": "outside",
        "far.md": "outside",
    }
    assert paths(Vault(vault).scan(["a/up/a/real.md", "linked/far.md"])) == set()


def test_what_is_no_ordinary_file_is_reported(vault: Path, home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / "s.md"))
        os.replace(home / "s.md", vault / "s.md")
        assert states(Vault(vault).scan()) == {"s.md": "unreadable"}
    (vault / "folder.md").mkdir()
    write(vault, "folder.md/inside.md")
    assert paths(Vault(vault).scan()) == {"folder.md/inside.md"}


def test_a_huge_file_is_not_read(vault: Path) -> None:
    write(vault, "small.md", "huge.md")
    (vault / "huge.md").write_bytes(b"x" * 101)
    look = Vault(vault, max_bytes=100)
    scan = look.scan()
    assert paths(scan) == {"small.md"} and states(scan) == {"huge.md": "too_large"} and not scan.keeps("huge.md")
    info = scan.files["", "small.md"]
    (vault / "small.md").write_bytes(b"x" * 101)
    with pytest.raises(Unreadable) as caught:
        look.read(info)
    assert caught.value.state == "too_large"
    (vault / "small.md").write_bytes(b"x" * 100)
    assert len(look.read(info)) == 100


def test_a_folder_that_cannot_be_listed_keeps_what_is_known(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(vault, "a/b/c.md", "ab.md")
    real = os.scandir

    def refusing(folder: str) -> Iterator[os.DirEntry[str]]:
        if folder.endswith("/a/b"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(folder)

    with monkeypatch.context() as shim:
        shim.setattr(os, "scandir", refusing)
        scan = Vault(vault).scan()
    assert scan.unreadable_dirs == {"a/b"} and states(scan) == {"a/b": "unreadable"}
    assert scan.keeps("a/b/c.md") and scan.keeps("a/b") and not scan.keeps("a/bc.md") and paths(scan) == {"ab.md"}


def test_files_and_folders_that_vanish_meanwhile_are_passed_over(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(vault, "a.md", "b.md", "c/d.md", "e/f.md")  # github.com/ggozad/haiku.rag/issues/403

    def vanish(name: str, real: os.stat_result) -> os.stat_result:
        if name == "b.md":
            raise FileNotFoundError
        if name == "a.md":
            (vault / "c/d.md").unlink()
            (vault / "c").rmdir()
            write(vault, "c")  # a file where a folder was
        return real

    shim_stat(monkeypatch, vanish)
    scan = Vault(vault).scan()
    assert paths(scan) == {"a.md", "e/f.md"} and scan.skipped == ()


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/565")
def test_a_vault_that_is_not_there(tmp_path: Path) -> None:
    for root in (tmp_path / "missing", tmp_path / "file"):
        (tmp_path / "file").write_text("")
        with pytest.raises(VaultUnavailable, match="is missing"):
            Vault(root).scan()


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/565")
def test_a_vault_that_goes_while_it_is_read(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(vault, "a.md", "b/c.md")

    def unmount(name: str, real: os.stat_result) -> os.stat_result:
        os.rename(vault, vault.with_name("away"))
        if name == "replaced":
            vault.mkdir()
        return real

    shim_stat(monkeypatch, unmount)
    with pytest.raises(VaultUnavailable):
        Vault(vault).scan()


@pytest.mark.parametrize(("number", "words"), [(errno.EPERM, "Full Disk Access"), (errno.EACCES, "list and enter")])
@pytest.mark.report("https://github.com/openclaw/openclaw/issues/78049")
def test_a_vault_without_access(vault: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    write(vault, "a.md")
    real = os.scandir

    def deny(folder: str) -> None:
        raise PermissionError(number, os.strerror(number))

    monkeypatch.setattr(os, "scandir", deny)
    with pytest.raises(VaultUnavailable, match="No access") as caught:
        Vault(vault).scan()
    assert words in caught.value.hint
    monkeypatch.setattr(os, "scandir", real)
    assert paths(Vault(vault).scan()) == {"a.md"}


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/539")
def test_an_empty_file_is_settled_after_a_while() -> None:
    def info(size: int, age_s: float) -> FileInfo:
        return FileInfo("", "a.md", "/a.md", size, int((1000 - age_s) * 1e9), "note")

    assert settled(info(3, 0), 1000)
    assert not settled(info(0, 1), 1000) and settled(info(0, 6), 1000)
    assert settled(info(0, 1), 1000, grace_s=0.5)
    assert settled(info(0, -3600), 1000), "a clock that is wrong does not make it wait for ever"


# --------------------------------------------------------------------------------------------------------------- rules


@names_apart
@pytest.mark.report("https://github.com/brianpetro/obsidian-smart-connections/issues/183")
def test_excluded_folders_match_whole_segments(vault: Path) -> None:
    write(
        vault,
        "Private/sub/x.md",
        "Private notes.md",
        "Work/Client A/a.md",
        "Work/Client AB/y.md",
        "private/z.md",
        "Hub.md",
    )
    scan = Vault(vault, exclude=["Private/", "Work/Client A"]).scan()
    assert paths(scan) == {"Private notes.md", "Work/Client AB/y.md", "Hub.md"}
    assert set(states(scan)) == {"Private", "private", "Work/Client A"}
    assert set(states(scan).values()) == {"excluded"}


@pytest.mark.parametrize(
    ("rule", "hits", "misses"),
    [
        (
            "Private/",
            ["Private/", "a/private/x.md", "Private/x.md"],
            ["Private.md", "Private", "NotPrivate/", "Privates/"],
        ),
        ("*.excalidraw.md", ["x.excalidraw.md", "a/b/Y.Excalidraw.md"], ["x.md", "excalidraw.md"]),
        ("/Top", ["Top/", "Top/x.md", "top"], ["a/Top/x.md", "Topping/"]),
        ("a/b", ["a/b/", "A/B/c.md", "a/b"], ["x/a/b/", "a/bc.md", "a/b.md"]),
        ("./a\\b/", ["a/b/c.md"], ["a/b"]),
        ("a/**", ["a/", "a/x.md", "a/b/c.md"], ["b/a/", "ab/"]),
        ("a/**/z.md", ["a/z.md", "a/b/c/z.md"], ["z.md", "a/zz.md"]),
        ("**/drafts", ["drafts/", "a/b/drafts/x.md"], ["mydrafts/"]),
        ("*/x.md", ["a/x.md"], ["x.md", "a/b/x.md"]),
        ("2024-0[1-3]*", ["2024-02-11.md", "d/2024-03.md"], ["2024-04-11.md"]),
        ("[!a]?.md", ["bc.md"], ["ab.md", "abc.md"]),
        ("Café.md", [unicodedata.normalize("NFC", "café.md")], ["cafe.md"]),
        ("a+(b).md", ["a+(b).md"], ["aab.md"]),
        ("x[", ["x["], ["x"]),
        ("  ", [], ["a.md", "/"]),
        ("/", [], ["a.md", "a/"]),
    ],
)
def test_rules_of_the_config(rule: str, hits: list[str], misses: list[str]) -> None:
    rules = Rules([rule])
    assert [path for path in hits if rules.hit(path) != rule] == []
    assert [path for path in misses if rules.hit(path)] == []
    assert rules.broken == []


def test_obsidians_own_excluded_files(vault: Path) -> None:
    write(
        vault, "Templates/t.md", "Templates2/t.md", "Work/Plan.md", "Work/Planned.md", "log-1.md", "x/log-2.md", "ok.md"
    )
    exclude_in_obsidian(vault, "Templates/", "Work/Plan", r"/^(?<stem>log)-\d\.md$/", "/[/", "#tag")
    look = Vault(vault)
    scan = look.scan()
    assert paths(scan) == {"Templates2/t.md", "Work/Planned.md", "x/log-2.md", "ok.md"}
    assert [item.path for item in scan.skipped if item.state == "unreadable"] == [".obsidian/app.json"]
    assert look.excluded_by("Work/Plan.md") and look.excluded_by("log-1.md")
    assert not look.excluded_by("log-1.md", folder=True)
    exclude_in_obsidian(vault, "x/")
    assert paths(look.scan()) == {
        "Templates/t.md",
        "Templates2/t.md",
        "Work/Plan.md",
        "Work/Planned.md",
        "log-1.md",
        "ok.md",
    }


@pytest.mark.parametrize("broken", ['{"userIgnoreFilters": ["Se', "", "\0", "[" * 10_000])
def test_half_a_settings_file_opens_nothing(vault: Path, broken: str) -> None:
    write(vault, "Secret/s.md", "ok.md")
    exclude_in_obsidian(vault, "Secret/")
    look = Vault(vault)
    assert paths(look.scan()) == {"ok.md"}
    write(vault, ".obsidian/app.json", text=broken)
    scan = look.scan()
    assert paths(scan) == {"ok.md"} and states(scan)[".obsidian/app.json"] == "unreadable"
    assert paths(Vault(vault).scan()) == {"Secret/s.md", "ok.md"}
    write(vault, ".obsidian/app.json", text='{"userIgnoreFilters": "Secret/"}')
    assert paths(look.scan()) == {"Secret/s.md", "ok.md"}
    (vault / ".obsidian/app.json").unlink()
    assert paths(look.scan()) == {"Secret/s.md", "ok.md"} and look.scan().skipped == ()


@pytest.mark.report("https://github.com/openclaw/openclaw/issues/77125")
def test_which_changes_are_no_reason_to_look(vault: Path) -> None:
    look = Vault(vault, exclude=["Private/"])
    assert look.key_of(vault) == "" and look.key_of(str(vault)) == ""
    assert look.key_of(vault / "a/b.md") == look.key_of(os.fsencode(vault / "a/b.md")) == "a/b.md"
    for outside in (
        vault.parent,
        vault.with_name("vault2") / "a.md",
        vault / ".tars/health.json",
        vault / "Private/x.md",
    ):
        assert look.key_of(outside) is None
    assert look.key_of(vault / "a.png") == "a.png" and look.key_of(vault / "a.png", folder=False) is None
    for ignored in ("a~.png", ".a.md.tmp", "a.md~", ".obsidian/x.md", "a/.git/x"):
        assert look.excluded_by(ignored, folder=False)
    assert look.excluded_by("Private", folder=True) and not look.excluded_by("Private.md", folder=False)
    assert look.excluded_by("Private/x.md") == "It is excluded by the rule Private/."
    assert look.excluded_by("ok.md") is None


OLD = {"st_ino": 7, "st_ctime_ns": 1_700_000_000_000_000_000}
BORN = {**OLD, "st_birthtime": 1_600_000_000.25}


@pytest.mark.parametrize("about", [OLD, BORN], ids=["Linux", "macOS"])
def test_a_files_stamp_says_that_it_is_another_file_or_was_written(about: dict[str, Any]) -> None:
    """As told by a copy with the old name, size and time; what is told of it elsewhere does not matter."""

    def stamp(**change: Any) -> int:
        return stamp_of(SimpleNamespace(**{**about, "st_mode": 0, "st_size": 3, "st_mtime_ns": 5, **change}))  # type: ignore[arg-type]

    assert stamp() == stamp(st_size=4, st_mtime_ns=6, st_mode=1)
    others = [{name: value + 1} for name, value in about.items()]
    assert len({stamp(), *(stamp(**other) for other in others)}) == 1 + len(others)


@pytest.mark.parametrize("how", ["in place", "moved over"])
def test_obsidians_settings_of_the_same_size_and_time_are_read_anew(vault: Path, how: str) -> None:
    exclude_in_obsidian(vault, "Old/")
    write(vault, "Old/a.md", "New/a.md")
    file = vault / ".obsidian" / "app.json"
    looked_at, about = Vault(vault), file.stat()
    assert paths(looked_at.scan()) == {"New/a.md"}
    other = file if how == "in place" else file.with_name("fresh")
    other.write_text('{"userIgnoreFilters": ["New/"]}')
    os.utime(other, ns=(about.st_atime_ns, about.st_mtime_ns))
    other.replace(file)
    assert paths(looked_at.scan()) == {"Old/a.md"}
