"""One setting is written into the config, and nothing else of it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarsd.cli.config import TEMPLATE
from tarsd.config.edit import set_value
from tarsd.errors import Refused


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[embedding]\nmodel = "e5"\n'),
        ("[vault]\npath = '/n'", "[vault]\npath = '/n'\n\n[embedding]\nmodel = \"e5\"\n"),
        ('[embedding]\n  model = "a#b" # why\n[chat]\n', '[embedding]\n  model = "e5" # why\n[chat]\n'),
        ('[chat]\nmodel = "auto"\n[ embedding ] # x\n', '[chat]\nmodel = "auto"\n[ embedding ] # x\nmodel = "e5"\n'),
        ('[embedding]\r\nmodel = "a"\r\n', '[embedding]\r\nmodel = "e5"\r\n'),
    ],
)
def test_only_its_line_changes(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(before.encode())
    file.chmod(0o640)
    assert set_value(file, "embedding", "model", "e5")
    assert file.read_bytes().decode() == after and file.stat().st_mode & 0o777 == 0o640
    assert not set_value(file, "embedding", "model", "e5")


def test_the_template_keeps_its_comments_and_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "config.toml"
    text = TEMPLATE.format(path='"/notes"')
    real.write_text(text)
    link.symlink_to(real)
    assert set_value(link, "embedding", "model", "e5") and link.is_symlink()
    assert real.read_text().replace('model = "e5"\n', "", 1) == text


@pytest.mark.parametrize(
    "text", ['embedding.model = "a"\n', 'embedding = {model = "a"}\n', "[embedding\n", "embedding = 3\n"]
)
def test_what_cannot_be_changed_safely_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(Refused) as refused:
        set_value(file, "embedding", "model", "e5")
    assert refused.value.hint and file.read_text() == text
