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


GERMAN = "Am Abend gab es Suppe, und danach habe ich noch ein Kapitel in dem Buch über die Nordsee gelesen."
ENGLISH = "In the evening there was soup, and after that I read another chapter of the book about the sea."
FRENCH = "Le soir il y avait de la soupe, et après cela je suis allé dans le jardin avec ma sœur et les enfants."

CHINESE = "晚上喝了汤，之后我又读了一章关于北海的书，然后给妹妹写了一封信。"


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([GERMAN] * 12, True),
        ([GERMAN] * 6 + [FRENCH] * 6 + [ENGLISH] * 8, True),
        ([FRENCH] * 4 + [GERMAN] * 5 + [ENGLISH] * 10, True),
        ([FRENCH] + [ENGLISH] * 12, False),
        ([ENGLISH] * 12, False),
        ([CHINESE] * 12, True),
        ([CHINESE] * 6 + [GERMAN] * 5 + [ENGLISH] * 10, True),
        ([CHINESE] * 5 + [ENGLISH] * 10, True),
        ([CHINESE] + [ENGLISH] * 12, False),
        ([GERMAN] * 9, False),
        (["12 × 34"] * 12, False),
    ],
)
def test_a_vault_that_is_not_in_english_is_told_what_helps(tmp_path: Path, texts: list[str], told: bool) -> None:
    with Engine(tmp_path, model=None, processes=1, embedding=TABLE) as engine:
        for number, text in enumerate(texts):
            write(engine.vault, f"{number}.md", text)
        engine.index()
        engine.indexing.history.passed(engine.indexing.vaults, engine.store.notes, whole=True)
        status = engine.app.status()
    assert bool(status["advice"]) is told
    assert all("not in English" in advice and "tarsd model use e5" in advice for advice in status["advice"])
    assert status["problems"] == [], "nothing is wrong"
