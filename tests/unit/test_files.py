"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tarsd import files


def test_a_file_is_replaced_with_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "a"
    for mode, expected in ((0o600, 0o600), (0o640, 0o640), (None, 0o644)):
        before = os.umask(0o022)
        try:
            files.replace(target, str(mode).encode(), mode)
        finally:
            os.umask(before)
        assert target.read_bytes() == str(mode).encode() and stat.S_IMODE(target.stat().st_mode) == expected
    assert os.listdir(tmp_path) == ["a"]


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
