"""What the status says of vectors, and that it says nothing is left when nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarsd.config import EmbeddingSettings
from tests.support.engine import Engine, write

TABLE = EmbeddingSettings(model="table")
FOREIGN = {
    "Cyrillic": ("Лодка стоит у причала.", "причала"),
    "Greek": ("Το πλοίο φεύγει αύριο.", "πλοίο"),
    "Arabic": ("السفينة في الميناء", "الميناء"),
    "Hebrew": ("הסירה עוגנת בנמל", "בנמל"),
    "Devanagari": ("नाव घाट पर खड़ी है", "घाट"),
    "Thai": ("เรืออยู่ที่ท่าเรือ", "ท่าเรือ"),
    "Han": ("船停在港口里", "港口"),
    "Kana": ("ふねはみなとにある", "みなと"),
    "Hangul": ("배가 항구에 있다", "항구"),
    "emoji": ("🔥🌊", "🔥"),
}


@pytest.mark.parametrize("script", FOREIGN)
def test_what_the_table_cannot_read_is_found_by_words_and_is_no_work_that_is_left(tmp_path: Path, script: str) -> None:
    text, word = FOREIGN[script]
    with Engine(tmp_path, model=None, processes=1, embedding=TABLE) as engine:
        write(engine.vault, "Plain.md", "The harbour light is oiled on Fridays.")
        write(engine.vault, "f.md", text)
        engine.index()
        about = engine.app.status()["embedding"]
        hits = engine.searcher.search(word).hits
    assert (about["state"], about["remaining"]) == ("ready", 0)
    assert about["done"] + about.get("not_read", 0) == 2
    assert "f.md" in [hit.note.path for hit in hits]


def test_a_vault_that_the_table_reads_says_nothing_of_scripts(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None, processes=1, embedding=TABLE) as engine:
        write(engine.vault, "Plain.md", "The harbour light is oiled on Fridays.")
        engine.index()
        assert engine.app.status()["embedding"] == {"model": "table", "state": "ready", "done": 1, "remaining": 0}


def test_what_does_not_fit_obsidians_types_and_no_date_is_a_problem_of_its_note(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None, processes=1, embedding=TABLE) as engine:
        write(engine.vault, ".obsidian/types.json", '{"types": {"rating": "number", "status": "text"}}')
        write(engine.vault, "a.md", "---\nrating: four-ish\nstatus: 5\n---\n- [ ] Burgee 📅 2026-02-30\n")
        write(engine.vault, "b.md", "---\nrating: 4\n---\n")
        engine.index()
        found = engine.app.status()["problems"]
    assert [(row["path"], row["line"]) for row in found if row["path"]] == [("a.md", 5), ("a.md", 2)]
    assert all(row["hint"] for row in found)
