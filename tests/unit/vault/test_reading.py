"""Reading notes, and which paths are refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.errors import NotFound, PathRefused
from tarsd.vault import (
    Unreadable,
    Vault,
    decode,
    encode,
)
from tests.unit.vault.conftest import Evicted, write


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
