"""Rows as text: Markdown with links and numbers for people, lines for models, and what each row rests on."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tarsd.cli.query import _sums, show
from tarsd.cli.terminal import Terminal
from tarsd.notes import Reader
from tarsd.protocol import Audience
from tarsd.query import ShownRows, VaultQuery, as_lines, as_markdown, task_query
from tests.support.engine import Engine, write

NOTES = {
    "Books/Dune.md": "---\nrating: 5\nauthor: '[[Frank Herbert]]'\nprice: 12.90 €\nsaid: a|b [1] c\n---\n# Dune\n",
    "Books/A | B.md": "---\nrating: 4\nprice: free\ngenre: [sf, '[[Old]]']\n---\nText\n",
    "Books/砂.md": "---\nrating: 3\n---\n\n# 砂\n\n読んだ。\n",
    "Boat.md": "# Boat\n\n1. [ ] Order varnish 📅 2026-11-30 [2]\n> - [/] Sand | the hull\n- [x] Sail ✅ 2026-11-01\n"
    "- Oil [spent:: 3 €]\n",
    "Secret/Debt.md": "---\nrating: 5\nprice: 1000 €\n---\n\n- [ ] Pay it\n",
    "Ratings.base": "filters: rating > 0\nviews:\n  - name: All\n    order: [file.name, rating]\n    limit: 2\n",
    "picture.png": "no picture",
    "Pictures.base": "filters: file.ext == 'png'\nviews:\n  - name: All\n    order: [file.name]\n",
}
TODAY = date(2026, 11, 29)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("shown"), model=None)
    for path, text in NOTES.items():
        write(engine.vault, path, text)
    with engine:
        privacy = replace(engine.config.privacy, local_only=("Secret",))
        engine.stop()
        engine.restart(privacy=privacy)
        engine.index()
        yield engine


def rows(
    engine: Engine, query: VaultQuery, base: str = "", most: int = 100, audience: Audience = "person"
) -> ShownRows:
    return Reader(engine.library, audience).rows(query, base, most)


BOOKS = VaultQuery("notes", 'file.inFolder("Books")', ("rating", "price"), ("-rating",), summaries={"price": "sum"})


def test_notes_are_a_table_whose_rows_link_to_them_and_are_cited(engine: Engine) -> None:
    shown = rows(engine, BOOKS)
    assert as_markdown(shown).split("\n") == [
        "3 notes.  ",
        "Sum of price: 12.9 € (of 1 value, 1 left out).",
        "",
        "| Note | rating | price |",
        "| --- | --- | --- |",
        "| [[Books/Dune]] [1] | 5 | 12.90 € |",
        "| [A B](Books/A%20%7C%20B.md) [2] | 4 | free |",
        "| [[Books/砂]] [3] | 3 |  |",
    ]
    first, second, third = shown.passages
    assert first and (first.start_line, first.end_line, first.number) == (2, 4, 1)
    assert first.text == "rating: 5\nauthor: '[[Frank Herbert]]'\nprice: 12.90 €"
    assert second and second.text == "rating: 4\nprice: free"
    assert third and (third.start_line, third.text) == (2, "rating: 3")


def test_notes_without_columns_are_a_list_with_their_first_lines(engine: Engine) -> None:
    shown = rows(engine, VaultQuery("notes", 'file.inFolder("Books")', ("file.name",), ("file.name",)))
    assert as_markdown(shown).split("\n\n")[1].count("\n- ") == 2
    assert [passage.text for passage in shown.passages if passage] == ["Text", "# Dune", "読んだ。"]


def test_what_is_in_a_cell_stays_in_it_and_cites_nothing(engine: Engine) -> None:
    text = as_markdown(rows(engine, VaultQuery("notes", "said", ("said", "author"))))
    assert r"| a\|b \[1] c | [[Frank Herbert]] |" in text
    text = as_markdown(rows(engine, VaultQuery("notes", "genre", ("genre",))))
    assert "| sf, [[Old]] |" in text


def test_tasks_are_check_boxes_as_they_stand(engine: Engine) -> None:
    shown = rows(engine, replace(task_query("all", TODAY, folder=""), sort=("line",), where='file.name == "Boat.md"'))
    assert as_markdown(shown).split("\n")[2:] == [
        r"- [ ] Order varnish 📅 2026-11-30 \[2] — [[Boat]] [1]",
        "- [/] Sand | the hull — [[Boat]] [2]",
        "- [x] Sail ✅ 2026-11-01 — [[Boat]] [3]",
    ]
    assert [passage.start_line for passage in shown.passages if passage] == [3, 4, 5]


def test_list_items_are_a_list(engine: Engine) -> None:
    shown = rows(engine, VaultQuery("items", "spent", ("spent",)))
    assert as_markdown(shown) == "1 item.\n\n- Oil [spent:: 3 €] — [[Boat]] [1]"


def test_groups_have_their_counts_and_sums(engine: Engine) -> None:
    text = as_markdown(rows(engine, replace(BOOKS, group="rating")))
    assert "**5** (1; Sum of price: 12.9 € (of 1 value))\n\n| Note |" in text


def test_what_is_not_shown_is_counted(engine: Engine) -> None:
    shown = rows(engine, BOOKS, most=1)
    assert as_markdown(shown).startswith("3 notes; the first is shown.")
    assert len(shown.rows) == 1 and len(shown.notes) == 3
    assert as_markdown(rows(engine, VaultQuery("notes", "rating > 9"))) == "Nothing matches."


def test_bases_and_files_that_are_no_notes(engine: Engine) -> None:
    assert as_markdown(rows(engine, VaultQuery(), "Ratings.base")).count("| [") == 2
    shown = rows(engine, VaultQuery(), "Pictures.base")
    assert as_markdown(shown) == "1 file.\n\n- [[picture.png]]"
    assert shown.passages == (None,) and shown.notes == ()


def test_a_model_gets_a_line_for_each_row_and_the_total_of_all(engine: Engine) -> None:
    said, lines = as_lines(rows(engine, BOOKS, most=2))
    assert said.split("\n") == [
        "3 notes; the first 2 are shown.",
        "Sum of price: 12.9 € (of 1 value, 1 left out).",
        "Columns: path | rating | price",
    ]
    assert lines == ("Books/Dune.md | 5 | 12.90 €", "Books/A | B.md | 4 | free")
    said, lines = as_lines(rows(engine, task_query("open", TODAY, words="varnish")))
    assert lines[0].startswith("Boat.md:3 | [ ] Order varnish")
    assert "Columns: path:line | task | due" in said


def test_somebody_elsewhere_gets_no_row_count_or_sum_of_private_notes(engine: Engine) -> None:
    every = VaultQuery("notes", "rating == 5", ("rating",), summaries={"price": "sum"})
    here, elsewhere = rows(engine, every), rows(engine, every, audience="elsewhere")
    assert "Secret/Debt" in as_markdown(here) and "2 notes" in as_markdown(here)
    assert any(note.local_only for note in here.notes)
    for text in (as_markdown(elsewhere), *as_lines(elsewhere)[0:1]):
        assert "Secret" not in text and "1 note." in text and "12.9 € (of 1 value)" in text


def test_a_note_that_went_meanwhile_keeps_its_row(engine: Engine, tmp_path: Path) -> None:
    gone = engine.vault / "Books/砂.md"
    text = gone.read_bytes()
    gone.unlink()
    try:
        shown = rows(engine, BOOKS)
        assert "[[Books/砂]] [3] | 3 |" in as_markdown(shown)
        assert shown.passages[2] is not None and shown.passages[2].text == ""
    finally:
        gone.write_bytes(text)


@pytest.mark.parametrize(
    ("query", "entries"),
    [
        (VaultQuery("tasks", "file.name == 'Boat' && open"), ["- [ ] Order varnish \\[2]", "- [/] Sand | the hull"]),
        (VaultQuery("items", "file.name == 'Boat'"), ["- Oil"]),
    ],
)
def test_rows_of_a_note_that_went_say_what_the_index_knows_of_them(
    engine: Engine, query: VaultQuery, entries: list[str]
) -> None:
    target = engine.vault / "Boat.md"
    kept = target.read_bytes()
    target.unlink()
    try:
        said = as_markdown(rows(engine, query))
    finally:
        target.write_bytes(kept)
    assert [entry.partition(" — ")[0] for entry in said.split("\n")[2:]] == entries


def test_sums_are_of_one_currency_and_durations_are_said_in_words(engine: Engine) -> None:
    for name, price, time in (("A", "1.034,50 €", "1h 05m"), ("B", "EUR 2", "2 h"), ("C", "$9", ""), ("D", "¥500", "")):
        write(engine.vault, f"Mixed/{name}.md", f"---\nprice: {price}\ntime: {time}\n---\n")
    engine.index()
    query = VaultQuery("notes", 'file.inFolder("Mixed")', summaries={"price": "sum", "time": "sum"})
    assert as_markdown(rows(engine, query)).split("\n\n")[0].split("  \n") == [
        "4 notes.",
        "Sum of price: 1036.5 € (of 2 values, 2 left out).",
        "Sum of time: 3 hours 5 minutes (of 2 values).",
    ]
    sums = Reader(engine.library, "person").query(query)["summaries"]
    assert (sums["price"]["value"], sums["price"]["text"]) == (1036.5, "1036.5 €")
    assert sums["time"]["text"] == "3 hours 5 minutes" and sums["time"]["minutes"] == 185
    assert "sum of time: 3 hours 5 minutes (of 2 values)" in _sums(sums, {})


def test_sums_of_a_base_have_its_titles(engine: Engine) -> None:
    for name, price in (("A", "12"), ("B", "7.5"), ("C", "lots"), ("D", "$ 9")):
        write(engine.vault, f"Shop/{name}.md", f"---\nprice: {price}\nrating: 2\n---\n")
    base = "filters: file.inFolder('Shop')\nproperties:\n  note.price:\n    displayName: Cost\nviews:\n  - name: All\n"
    base += "    order: [file.name, price]\n    summaries:\n      price: Sum\n      rating: Average\n"
    write(engine.vault, "Shop.base", base)
    engine.index()
    shown = rows(engine, VaultQuery(), "Shop.base")
    expected = ["Sum of Cost: 19.5 (of 2 values, 2 left out).", "Average of rating: 2 (of 4 values)."]
    assert as_markdown(shown).split("\n\n")[0].split("  \n")[1:] == expected
    assert expected[0] in as_lines(shown)[0]
    reply = Reader(engine.library, "person").query(VaultQuery(), "Shop.base")
    assert {"sum of Cost: 19.5 (of 2 values, 2 left out)", "average of rating: 2 (of 4 values)"} <= set(
        show(reply, None, Terminal(io.StringIO()))
    )


def test_durations_of_a_base_are_said_in_words(engine: Engine) -> None:
    write(engine.vault, "Trips/A.md", "---\nstart: 2026-01-02\nend: 2026-01-05\n---\n")
    write(engine.vault, "Trips/B.md", "---\nstart: 2026-01-02\n---\n")
    base = "filters: file.inFolder('Trips')\nformulas:\n  took: end - start\n  both: '[end - start, 1]'\nviews:\n"
    base += "  - name: All\n    order: [file.name, formula.took, formula.both]\n    groupBy: formula.took\n"
    write(engine.vault, "Trips.base", f"{base}    summaries: {{formula.took: Sum}}\n")
    engine.index()
    reply = Reader(engine.library, "person").query(VaultQuery(), "Trips.base")
    first, second = reply["rows"]
    assert first["values"]["formula.took"] == 3 * 86_400_000 and "texts" not in second
    assert first["texts"] == {"formula.took": "3 days", "formula.both": "3 days, 1"}
    lines = show(reply, None, Terminal(io.StringIO()))
    assert lines[0] == "3 days  1  sum of took: 3 days (of 1 value)"
    assert lines[2].split() == ["Trips/A.md", "3", "days", "3", "days,", "1"]
