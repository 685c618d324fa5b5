"""The vault on disk: scan, reading, contained paths, atomic writing."""

from __future__ import annotations

import errno
import json
import os
import pickle
import socket
import stat
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.errors import Conflict, NotFound, PathRefused, Refused, VaultUnavailable
from tarsd.vault import (
    FileInfo,
    Rules,
    Scan,
    Unreadable,
    Vault,
    content_hash,
    decode,
    encode,
    is_conflict_copy,
    settled,
)

NFC = unicodedata.normalize("NFC", "Příští schůzka é.md")
NFD = unicodedata.normalize("NFD", NFC)

names_apart = pytest.mark.skipif(
    sys.platform == "darwin", reason="macOS disks take these names for one, or refuse them"
)


def write(root: Path, *names: str, text: str = "text\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def exclude_in_obsidian(root: Path, *filters: str) -> None:
    write(root, ".obsidian/app.json", text=json.dumps({"userIgnoreFilters": list(filters)}))


def paths(scan: Scan) -> set[str]:
    return {path for _, path in scan.files}


def states(scan: Scan) -> dict[str, str]:
    return {item.path: item.state for item in scan.skipped}


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


class Evicted:
    """What stat says of a file that is in the cloud only."""

    def __init__(self, real: os.stat_result, flags: int = 0) -> None:
        self.st_mode, self.st_size, self.st_mtime_ns = real.st_mode, real.st_size, real.st_mtime_ns
        self.st_blocks = 0 if not flags else real.st_blocks
        self.st_flags = flags


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
    assert scan.skipped == () and scan.root_ok and scan.marker and scan.unreadable_dirs == frozenset()
    info = scan.files["work", "a.md"]
    assert info.key == ("work", "a.md") and info.disk == vault / "a.md" and info.size == 5
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
    assert scan.marker and scan.asked == frozenset({"b", "a.md", "é.md"})
    assert all(scan.covers(path) for path in ("b", "b/x/y.md", "a.md", unicodedata.normalize("NFD", "é.md")))
    assert not any(scan.covers(path) for path in ("bc/f.md", "a.mdx", "x/b", "")) and look.scan().covers("anything")


@names_apart
@pytest.mark.report("https://github.com/d12frosted/vulpea/issues/383")
def test_composed_and_decomposed_names(vault: Path) -> None:
    write(vault, NFD, "sub/" + NFD)
    look = Vault(vault)
    scan = look.scan()
    assert paths(scan) == {NFC, "sub/" + NFC}
    assert scan.files["", NFC].disk.name == NFD
    assert paths(look.scan([NFC])) == paths(look.scan([NFD])) == {NFC}
    assert look.key_of(vault / NFD) == look.key_of(vault / NFC) == NFC
    assert look.resolve(NFC) == look.resolve(NFD) == vault / NFD
    write(vault, NFC, text="the composed one\n")
    twins = look.scan()
    assert paths(twins) == {NFC, NFD, "sub/" + NFC} and states(twins) == {NFD: "twin"}
    assert twins.files["", NFC].disk.name == NFC and twins.files["", NFD].disk.name == NFD
    assert paths(look.scan([NFC])) == {NFC, NFD}
    assert look.resolve(NFC) == vault / NFC and look.resolve(NFD) == vault / NFD


@names_apart
def test_twin_folders_keep_all_their_notes(vault: Path) -> None:
    composed, decomposed = "é", unicodedata.normalize("NFD", "é")
    write(vault, f"{composed}/a.md", f"{decomposed}/a.md", f"{decomposed}/b.md")
    scan = Vault(vault).scan()
    assert paths(scan) == {f"{composed}/a.md", f"{decomposed}/a.md", f"{composed}/b.md"}
    assert scan.files["", f"{composed}/b.md"].disk.parent.name == decomposed


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
        with pytest.raises(VaultUnavailable, match="is not there"):
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
    assert look.ignores("Work/Plan.md") and look.ignores("log-1.md") and not look.ignores("log-1.md", folder=True)
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
        assert look.ignores(ignored, folder=False)
    assert look.ignores("Private", folder=True) and not look.ignores("Private.md", folder=False)
    assert look.excluded_by("Private/x.md") == "It is left out by the rule Private/."
    assert look.excluded_by("ok.md") is None


# ------------------------------------------------------------------------------------------------------------- reading


def test_reading_one_file(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(vault, "a.md", "b.md", "c.md", "d.md", "e.md")
    look = Vault(vault)
    files = look.scan().files
    assert look.read(files["", "a.md"]) == b"text\n"
    (vault / "b.md").unlink()
    with pytest.raises(NotFound):
        look.read(files["", "b.md"])
    os.replace(vault / "c.md", vault / "b.md")
    os.mkfifo(vault / "c.md")
    (vault / "d.md").unlink()
    (vault / "d.md").symlink_to("a.md")
    (vault / "e.md").unlink()
    (vault / "e.md").mkdir()
    for name in ("c.md", "d.md", "e.md"):
        with pytest.raises(Unreadable) as caught:
            look.read(files["", name])
        assert caught.value.state == "unreadable"
    real = os.fstat
    with monkeypatch.context() as shim, pytest.raises(Unreadable) as caught:
        shim.setattr(os, "fstat", lambda fd: Evicted(real(fd)))
        look.read(files["", "a.md"])
    assert caught.value.state == "not_downloaded"


@pytest.mark.parametrize(
    ("raw", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("Zürich\r\nx\ry\n".encode(), "Zürich\r\nx\ry\n", "utf-8"),
        (b"\xef\xbb\xbf# A\n", "# A\n", "utf-8-sig"),
        (b"\xff\xfe" + "gantries\n".encode("utf-16-le"), "gantries\n", "utf-16-le"),
        (b"\xfe\xff" + "gantries\n".encode("utf-16-be"), "gantries\n", "utf-16-be"),
        (b"\xff\xfe\0\0" + "gantries\n".encode("utf-32-le"), "gantries\n", "utf-32-le"),
        (b"\0\0\xfe\xff" + "gantries\n".encode("utf-32-be"), "gantries\n", "utf-32-be"),
        ("already \N{REPLACEMENT CHARACTER}".encode(), "already \N{REPLACEMENT CHARACTER}", "utf-8"),
    ],
)
def test_text_that_survives(raw: bytes, text: str, encoding: str) -> None:
    read = decode(raw)
    assert (read.text, read.encoding, read.lossless, read.problem, read.line) == (text, encoding, True, None, 0)
    assert encode(read.text, read.encoding) == raw


@pytest.mark.parametrize(
    ("raw", "word", "line"),
    [
        (b"one\r\ntwo\rCaf\xe9 menu: quiche\n", "quiche", 3),  # github.com/HKUDS/DeepTutor/issues/922
        (b"before\0after: hawser\n", "hawser", 1),
        (b"\xff\xfea\0\n\0b", "a\n", 2),
        (b"\xff\xfe\0\xd8a\0", "a", 1),
    ],
)
def test_text_that_does_not(raw: bytes, word: str, line: int) -> None:
    read = decode(raw)
    assert word in read.text and "\N{REPLACEMENT CHARACTER}" in read.text and "\0" not in read.text
    assert not read.lossless and read.problem and read.hint and read.line == line
    pickle.dumps(read)


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.text().map(lambda text: b"\xff\xfe" + text.encode("utf-16-le", "replace"))
)
def test_any_bytes_are_text_and_lossless_means_it(raw: bytes) -> None:
    read = decode(raw)
    assert "\0" not in read.text and (read.problem is None) == read.lossless
    if read.lossless:
        assert encode(read.text, read.encoding) == raw


# --------------------------------------------------------------------------------------------------------------- paths

REFUSED = [
    "../../etc/passwd",  # github.com/MarkusPfundstein/mcp-obsidian/issues/150
    "..%2f..%2fetc%2fpasswd",
    "%252e%252e/x.md",
    "/etc/passwd",
    "C:\\Windows\\x.md",
    "C:/Windows/x.md",
    "..\\..\\x.md",
    "note.md/../../../x",
    "./././../x.md",
    "~/x.md",
    "~root/x.md",
    ".obsidian/plugins/x/data.json",
    ".git/config",
    "foo\\u0000.md",
    "foo\0.md",
    "\u2024\u2024/x.md",
    "a/\u2025/x.md",
    "..\uff0fx.md",
    "a/" * 400 + "x.md",
    "x" * 300 + ".md",
    "é" * 130 + "/" + "é" * 120 + "/" + "é" * 127 + "/" + "é" * 127 + "/x.md",
    "",
    "  ",
    "a//x.md",
    "a/./x.md",
    "a/",
    "x.md.",
    "x.md ",
    "new./x.md",
    "a\nb.md",
    "\udce9.md",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("path", REFUSED)
def test_paths_that_are_refused(vault: Path, path: str) -> None:
    look = Vault(vault)
    for use in (look.resolve, lambda p: look.create(p, b"x"), lambda p: look.replace(p, b"x", "")):
        with pytest.raises(PathRefused):
            use(path)
    assert sorted(p.name for p in vault.rglob("*")) == [".obsidian"]


@pytest.mark.parametrize(
    "path",
    [
        "a.md",
        "Ordner/ä ö.md",
        "日本/メモ.md",
        "100% sure.md",
        "a…b.md",
        "50／50.md",
        "~draft.md",
        "Q: what.md",
        "x..y.md",
        "etc./a.md",
    ],
)
def test_paths_that_are_fine(vault: Path, path: str) -> None:
    (vault / "etc.").mkdir()
    assert Vault(vault).resolve(path) == vault / path


def test_paths_through_links_and_into_excluded_folders_are_refused(vault: Path, tmp_path: Path) -> None:
    write(vault, "a/x.md", "Private/p.md")
    (vault / "out").symlink_to(tmp_path)
    (vault / "in").symlink_to("a")
    (vault / "link.md").symlink_to("a/x.md")
    look = Vault(vault, exclude=["Private/"])
    for path in ("out/x.md", "in/x.md", "link.md", "Private/p.md", "private/new.md"):
        with pytest.raises(PathRefused):
            look.resolve(path)
    assert look.resolve("Private/p.md", excluded=True) == vault / "Private/p.md"
    with pytest.raises(PathRefused):
        look.create("out/new.md", b"x")
    assert not (tmp_path / "new.md").exists()


@given(st.text(alphabet="./\\~%2e5c\0 ․‥／:aC", max_size=12))
def test_whatever_resolves_lies_inside(path: str) -> None:
    look = Vault(Path("/nonexistent/vault"))
    try:
        found = look.resolve(path)
    except PathRefused:
        return
    assert Path(os.path.normpath(found)).is_relative_to(look.root) and found != look.root


# ------------------------------------------------------------------------------------------------------------- writing


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
    assert len(seen) == 1 and Vault(vault).ignores(seen[0])


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
