"""Files that are no notes, judged by the rules of the moment at which somebody reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tarsd.config import PrivacySettings
from tarsd.errors import NotFound, TarsdError
from tarsd.notes import Reader
from tests.support.engine import Engine, until, write
from tests.support.pdfs import pdf

FOLDERS = ("Open", "Büro", "Papers/Old")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An index of three PDFs that learns of no change any more."""
    with Engine(tmp_path, model=None) as engine:
        write(engine.vault, "Garden.md", "The tomatoes need water.\n")
        for folder in FOLDERS:
            (engine.vault / folder).mkdir(parents=True)
            (engine.vault / folder / "plan.pdf").write_bytes(pdf([[f"The zeppelin of {folder} lands."]]))
        engine.watch()
        until(lambda: engine.indexing.files_state()["read"] == 3)
        engine.watcher.stop(5.0)
        yield engine


def found(engine: Engine, *, elsewhere: bool) -> set[str]:
    reader = Reader(engine.library, "elsewhere" if elsewhere else "person")
    return {passage.path for passage in reader.retrieve("zeppelin lands", 8).passages}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_file_is_private_as_soon_as_the_settings_say_so(engine: Engine, folder: str) -> None:
    path = f"{folder}/plan.pdf"
    assert path in found(engine, elsewhere=True)
    engine.library.config = replace(engine.config, privacy=PrivacySettings(local_only=(f"{folder}/",)))
    assert path in found(engine, elsewhere=False) and path not in found(engine, elsewhere=True)
    elsewhere = Reader(engine.library, "elsewhere")
    with pytest.raises(NotFound):
        elsewhere.open(path)
    assert elsewhere.open("plan.pdf").path != path, "one of the others that have this name"
    assert Reader(engine.library).open(path).local_only


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_file_is_left_out_as_soon_as_obsidian_says_so(engine: Engine, folder: str) -> None:
    path = f"{folder}/plan.pdf"
    assert Reader(engine.library).open(path).path == path
    write(engine.vault, ".obsidian/app.json", json.dumps({"userIgnoreFilters": [f"{folder}/"]}))
    assert path not in found(engine, elsewhere=True)
    with pytest.raises(TarsdError):
        Reader(engine.library).open(path)


def test_what_was_made_from_a_file_follows_it_when_it_moves(engine: Engine) -> None:
    (passage,) = engine.library.passages(engine.library.open("Open/plan.pdf"))
    assert not engine.library.any_private([passage.origin])
    (engine.vault / "Private").mkdir()
    (engine.vault / "Open" / "plan.pdf").rename(engine.vault / "Private" / "plan.pdf")
    assert engine.library.any_private([passage.origin]), "nobody knows yet where it is"
    files = engine.indexing.files
    assert files is not None and files.reconcile().moved == 1
    assert not engine.library.any_private([passage.origin])
    engine.library.config = replace(engine.config, privacy=PrivacySettings(local_only=("Private/",)))
    assert engine.library.any_private([passage.origin])
