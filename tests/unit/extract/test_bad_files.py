"""What bad input gets: text where there is some, else one sentence with what to do. Never more than the limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tarsd.extract import Reader
from tests.unit.extract.bad_files import ALL, Bad


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    one = Reader()
    yield one
    one.close()


@pytest.mark.parametrize("bad", ALL, ids=[bad.name for bad in ALL])
def test_bad_input_gives_text_or_a_sentence(bad: Bad, reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bad.make())
    found = reader.read(path, bad.kind)
    text = "\n".join(page.text for page in found.pages)
    assert "root:" not in text
    assert bad.says.casefold() in (found.problem if bad.fails else text).casefold(), found
    if bad.fails or not text.strip():
        assert found.problem.endswith(".") and found.hint and "\n" not in found.problem, found


def test_there_are_enough_of_them() -> None:
    assert len({bad.name for bad in ALL}) == len(ALL) >= 40
