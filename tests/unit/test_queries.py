"""Queries over the index: notes, tasks and list items by conditions, with groups and sums, and privacy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tarsd.bases import BasesError
from tarsd.errors import BadRequest, NotFound
from tarsd.notes import Reader
from tarsd.protocol import Audience
from tarsd.query import VaultQuery, task_query
from tests.support.engine import Engine, write

NOTES = {
    ".obsidian/templates.json": '{"folder": "Templates"}',
    ".obsidian/types.json": '{"types": {"code": "text", "due": "date"}}',
    "Books/Dune.md": "---\nrating: 5\npages: 412 p.\nauthor: '[[Herbert]]'\ngenre: [sf, classic]\n"
    "finished: 2026-02-03\nprice: 12,90 €\ncode: '0412'\n---\n# Dune\n\nread in:: 2 h\n",
    "Books/Emma.md": "---\nrating: 4\npages: 474\nauthor: '[[Austen|Jane]]'\ngenre: classic\nfinished: 01.07.2026\n"
    "price: € 7.00\n---\nText about [[Dune]]. #novel/english\n",
    "Books/Ulysses.md": "---\nrating: four-ish\nprice: free\ntime: 1h 40m\n---\n",
    "Films/Stalker.md": "---\nRating: 5\ntime: 20 min\ndue: 2026-03-01\n---\n![[Books/Dune]]\n",
    "Templates/Book.md": "---\nrating: 5\n---\n",
    "People/Herbert.md": "# Herbert\n",
    "Daily/2026-03-14.md": "- [ ] Oil the hinge 📅 2026-03-20 ⏫ #home\n- [x] Buy rope ✅ 2026-03-14\n"
    "  - [ ] a blue one [due:: 2026-04-01]\n- [-] Old thing\n- Trains [spent:: 212.00 €] [for:: travel]\n"
    "- Coffee [spent:: 3,50 €] [for:: coffee]\nmood:: 4\n",
    "Secret/Debt.md": "---\nrating: 5\nprice: 1000 €\n---\n[[Dune]]\n\n"
    "- [ ] Pay it 📅 2026-03-20\n- Loan [spent:: 900 €]\n",
    "All.base": "filters:\n  and:\n    - rating > 3\n    - file.ext == 'md'\nviews:\n  - name: Good\n"
    "    order: [file.name, price]\n    summaries: {price: Sum, rating: Sum}\n"
    "  - name: Mine\n    filters: author == this\n",
    "Overview.md": "```base\nfilters: file.hasLink(this)\n```\n\n[[Dune]]\n",
    "Links.md": "[[Overview]]\n",
    "picture.png": "no picture",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("query")
    engine = Engine(folder, model=None)
    for path, text in NOTES.items():
        write(engine.vault, path, text)
    with engine:
        config = engine.config
        engine.stop()
        engine.restart(privacy=replace(config.privacy, local_only=("Secret",)))
        engine.index()
        yield engine


def ask(engine: Engine, query: VaultQuery, audience: Audience = "person", base: str = "") -> dict[str, Any]:
    return Reader(engine.library, audience).query(query, base)


def paths(engine: Engine, where: str, audience: Audience = "here") -> list[str]:
    reply = ask(engine, VaultQuery(where=where), audience)
    assert not reply["problems"]
    return [row["path"] for row in reply["rows"]]


DUNE, EMMA, ULYSSES, STALKER = "Books/Dune.md", "Books/Emma.md", "Books/Ulysses.md", "Films/Stalker.md"

CONDITIONS = [
    ("rating > 4 && !file.inFolder('Secret')", [DUNE, STALKER]),
    ("4 < rating && !file.inFolder('Secret')", [DUNE, STALKER]),
    ("rating == 5 && price", [DUNE, "Secret/Debt.md"]),
    ("rating == 'four-ish'", [ULYSSES]),
    ("price < 10", [EMMA]),
    ("pages > 450", [EMMA]),
    ("time > duration('1h')", [ULYSSES]),
    ("time < 30", [STALKER]),
    ("time.minutes == 100", [ULYSSES]),
    ("finished > date('2026-05-01')", [EMMA]),
    ("finished.month == 2", [DUNE]),
    ("due < date('2026-04-01')", [STALKER]),
    ("genre.contains('classic')", [DUNE, EMMA]),
    ("list(genre).contains('sf')", [DUNE]),
    ("author == link('Herbert')", [DUNE]),
    ("author == 'Herbert'", [DUNE]),
    ("code == '0412'", [DUNE]),
    ("note['READ_IN'] == '2 h'", [DUNE]),
    ("mood == 4", ["Daily/2026-03-14.md"]),
    ("file.day == date('2026-03-14')", ["Daily/2026-03-14.md"]),
    ("file.day > date('2026-05-01')", []),
    ("file.hasTag('novel')", [EMMA]),
    ("file.inFolder('Books') && file.name.contains('m')", [EMMA]),
    ("file.hasLink('Books/Dune') && !file.inFolder('Secret')", [EMMA, STALKER, "Overview.md"]),
    ("file.embeds.length > 0", [STALKER]),
    ("file.backlinks.contains(file('Books/Dune'))", ["People/Herbert.md"]),
    ("file.path == 'Books/Emma.md'", [EMMA]),
    ("file.inFolder('Templates')", ["Templates/Book.md"]),
]


@pytest.mark.parametrize(("where", "found"), CONDITIONS)
def test_a_condition_finds_its_notes(engine: Engine, where: str, found: list[str]) -> None:
    assert paths(engine, where) == found


@pytest.mark.parametrize(("where", "found"), CONDITIONS)
def test_the_index_narrows_nothing_away(engine: Engine, where: str, found: list[str]) -> None:
    own = [path for path in found if not path.startswith("Templates/")]  # these are there only if they are named
    assert paths(engine, f"({where}) || false") == own


def test_rows_have_values_lines_groups_and_sums(engine: Engine) -> None:
    query = VaultQuery(
        where="file.inFolder('Books')",
        columns=("rating", "price", "file.basename.lower()"),
        sort=("-rating",),
        group="genre",
        summaries={"price": "sum", "rating": "average", "time": "sum"},
        limit=2,
    )
    reply = ask(engine, query)
    assert [row["title"] for row in reply["rows"]] == ["Dune", "Emma"]
    assert [row["values"]["price"] for row in reply["rows"]] == ["12,90 €", "€ 7.00"]
    assert reply["rows"][0]["lines"] == {"rating": 2, "price": 7}
    assert reply["rows"][1]["values"]["file.basename.lower()"] == "emma"
    assert reply["total"] == 3
    assert reply["summaries"]["price"] == {"fn": "Sum", "value": 19.9, "of": 2, "skipped": 1, "text": "19.9 €"}
    assert reply["summaries"]["rating"] == {"fn": "Average", "value": 4.5, "of": 2, "skipped": 1}
    assert reply["summaries"]["time"]["minutes"] == 100
    groups = {group["key"]: (group["count"], group["summaries"]["price"]["value"]) for group in reply["groups"]}
    assert groups == {"classic": (2, 19.9), "sf": (1, 12.9), None: (1, None)}


@pytest.mark.parametrize(("sort", "last"), [("rating", "four-ish"), ("-rating", "four-ish")])
def test_what_is_of_another_kind_comes_behind_in_both_directions(engine: Engine, sort: str, last: str) -> None:
    reply = ask(engine, VaultQuery(where="file.inFolder('Books')", columns=("rating",), sort=(sort,)))
    assert reply["rows"][-1]["values"]["rating"] == last


@pytest.mark.parametrize(
    ("times", "order"),
    [(["1h 15m", "40", "35 min"], "cba"), (["90", "1h", "2 h"], "bac"), (["5", "3", "4"], "bca")],
)
def test_a_bare_number_among_durations_is_sorted_as_minutes(tmp_path: Path, times: list[str], order: str) -> None:
    with Engine(tmp_path, model=None) as own:
        for name, time in zip("abc", times, strict=True):
            write(own.vault, f"{name}.md", f"---\ntime: {time}\n---\nX.\n")
        own.index()
        for sort, wanted in (("time", order), ("-time", order[::-1])):
            rows = ask(own, VaultQuery(sort=(sort,)))["rows"]
            assert "".join(row["path"][0] for row in rows) == wanted


def test_tasks_are_rows_with_their_own_names(engine: Engine) -> None:
    def found(where: str) -> list[str]:
        reply = ask(engine, VaultQuery("tasks", f"({where}) && !file.inFolder('Secret')", sort=("due",)))
        return [row["text"] for row in reply["rows"]]

    assert found("open") == ["Oil the hinge #home", "a blue one"]
    assert found('status == "x"') == ["Buy rope"]
    assert found("priority == 'high' && tags.contains('home')") == ["Oil the hinge #home"]
    assert found("mood == 4 && parent > 0") == ["a blue one"]
    assert found("due == date('2026-04-01')") == ["a blue one"]


def test_what_list_items_say_is_their_notes_too_and_not_that_of_other_items(engine: Engine) -> None:
    whole = ask(engine, VaultQuery("notes", "spent && file.day", ("spent",), summaries={"spent": "sum"}))
    assert [row["path"] for row in whole["rows"]] == ["Daily/2026-03-14.md"]
    assert whole["summaries"]["spent"]["value"] == 215.5
    items = ask(engine, VaultQuery("items", 'for == "coffee"', ("spent", "mood")))
    assert [(row["values"]["spent"], row["values"]["mood"]) for row in items["rows"]] == [("3,50 €", "4")]
    assert not ask(engine, VaultQuery("items", "spent.length > 1"))["rows"]


def test_list_items_with_fields_are_rows(engine: Engine) -> None:
    query = VaultQuery("items", "spent && !file.inFolder('Secret')", ("for",), ("-spent",), "for", {"spent": "sum"})
    reply = ask(engine, query)
    assert [row["values"]["for"] for row in reply["rows"]] == ["travel", "coffee"]
    assert reply["rows"][0]["line"] == 5 and "Trains" in reply["rows"][0]["text"]
    assert reply["summaries"]["spent"]["value"] == 215.5


TODAY = date(2026, 3, 18)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"due": "week"}, ["Oil the hinge #home"]), ({"due": "before:2026-03-21"}, ["Oil the hinge #home"]),
        ({"due": "after:week"}, ["a blue one"]), ({"due": "2026-04-01"}, ["a blue one"]), ({"due": "today"}, []),
        ({"tag": "#home"}, ["Oil the hinge #home"]), ({"folder": "Daily", "words": "BLUE one"}, ["a blue one"]),
        ({"folder": "Books"}, []),
    ],
)  # fmt: skip
def test_tasks_are_asked_for_as_people_do(engine: Engine, asked: dict[str, str], found: list[str]) -> None:
    reply = ask(engine, task_query("open", TODAY, **asked), "elsewhere")  # type: ignore[arg-type]
    assert [row["text"] for row in reply["rows"]] == found


def test_a_day_that_is_none_is_refused_in_words() -> None:
    for due in ("soon", "before:", "between:2026-01-01", "2026-02-30"):
        with pytest.raises(BadRequest, match="is not a due date"):
            task_query("open", TODAY, due=due)


def test_a_base_shows_what_obsidian_would(engine: Engine) -> None:
    reply = ask(engine, VaultQuery(), base="All.base")
    assert [row["values"]["file.name"] for row in reply["rows"]] == ["Dune", "Emma", "Stalker", "Debt", "Book"]
    assert reply["summaries"]["note.rating"]["value"] == 24  # `Rating` is another spelling of the same property
    assert reply["summaries"]["note.price"]["value"] is None  # to Obsidian, `12,90 €` is text
    mine = ask(engine, VaultQuery(view="mine", this="People/Herbert.md"), base="All.base")
    assert [row["path"] for row in mine["rows"]] == [DUNE]


def test_a_block_of_a_note_is_a_base_of_which_the_note_is_this(engine: Engine) -> None:
    reply = ask(engine, VaultQuery(), base="Overview")
    assert [row["path"] for row in reply["rows"]] == ["Links.md"]
    with pytest.raises(BadRequest, match="no base in"):
        ask(engine, VaultQuery(), base="Links")
    with pytest.raises(NotFound):
        ask(engine, VaultQuery(), base="Nothing.base")
    with pytest.raises(NotFound, match="this"):
        ask(engine, VaultQuery(this="Nothing"), base="All.base")


def test_other_files_are_rows_of_bases_and_of_nothing_else(engine: Engine) -> None:
    pictures = VaultQuery(base="filters: file.ext == 'png'\n")
    assert [row["path"] for row in ask(engine, pictures)["rows"]] == ["picture.png"]
    assert paths(engine, "file.ext == 'png'") == []
    assert ask(engine, pictures, "elsewhere")["rows"] == []


PROBES = [
    VaultQuery(where="rating > 0", summaries={"price": "sum", "rating": "unique"}),
    VaultQuery(where="price"),
    VaultQuery("tasks"),
    VaultQuery("items", summaries={"spent": "sum"}, group="spent"),
    VaultQuery(where="file.backlinks.length > 0", columns=("file.backlinks", "file.backlinks.length")),
    VaultQuery(where="file.name == 'Dune'", columns=("file('Secret/Debt').properties", "link('Debt').asFile()")),
    VaultQuery(base="views: [{order: [file.name, file.backlinks], summaries: {price: Sum, file.name: Unique}}]"),
]


@pytest.mark.parametrize("probe", PROBES)
def test_what_is_private_is_in_no_row_count_or_sum_for_a_model_elsewhere(engine: Engine, probe: VaultQuery) -> None:
    shown = ask(engine, probe, "elsewhere")
    target = engine.vault / "Secret/Debt.md"
    kept = target.read_bytes()
    said = str([shown["rows"], shown["groups"], shown["summaries"], shown["problems"]])
    assert "Debt" not in said.replace("file('Secret/Debt')", "").replace("link('Debt')", "")
    assert "1000" not in said and "900" not in said
    target.unlink()
    try:
        engine.index()
        without = ask(engine, probe, "elsewhere")
    finally:
        target.write_bytes(kept)
        engine.index()
    for name in ("took_ms", "withheld"):
        shown.pop(name), without.pop(name)
    assert shown == without


def test_a_note_that_became_private_a_moment_ago_is_not_in_it(engine: Engine) -> None:
    target = engine.vault / EMMA
    kept = target.read_bytes()
    probe = VaultQuery(where="rating > 0", summaries={"price": "sum"})
    assert EMMA in str(ask(engine, probe, "elsewhere"))
    engine.vault.joinpath("Secret/Emma.md").write_bytes(kept)
    target.unlink()
    try:
        assert "Emma" not in str(ask(engine, probe, "elsewhere"))
    finally:
        os.replace(engine.vault / "Secret/Emma.md", target)
        engine.index()


def test_a_model_elsewhere_does_not_learn_of_a_private_note_by_its_name(engine: Engine) -> None:
    for name in ("Secret/Debt.md", "Secret/Nothing.md"):
        with pytest.raises(NotFound):
            ask(engine, VaultQuery(this=name, base="views: []"), "elsewhere")
        with pytest.raises(NotFound):
            ask(engine, VaultQuery(), "elsewhere", base=name)


@pytest.mark.parametrize(
    "query",
    [VaultQuery(where="rating >"), VaultQuery(columns=("x(",)), VaultQuery(sort=("-(",)), VaultQuery(group="a b")],
)
def test_what_cannot_be_read_is_refused_with_its_place(engine: Engine, query: VaultQuery) -> None:
    with pytest.raises(BasesError) as caught:
        ask(engine, query)
    assert caught.value.line == 1 and caught.value.as_json()["code"] == "bad_expression"


def test_a_summary_that_there_is_not_is_refused(engine: Engine) -> None:
    with pytest.raises(BadRequest, match="no summary 'mode'"):
        ask(engine, VaultQuery(summaries={"rating": "mode"}))


def test_what_fails_for_some_rows_is_said_once(engine: Engine) -> None:
    reply = ask(engine, VaultQuery(where="file.inFolder('Books')", columns=("rating.abs()",)))
    assert [row["values"]["rating.abs()"] for row in reply["rows"]] == [5, 4, None]
    assert reply["problems"] == ["rating.abs(): abs() does not work on a string (line 1, column 8)."]


def test_a_changed_note_is_seen_by_the_next_query(engine: Engine, tmp_path: Path) -> None:
    target = engine.vault / ULYSSES
    kept = target.read_bytes()
    target.write_text("---\nrating: 1\n---\n", encoding="utf-8")
    engine.index()
    try:
        assert paths(engine, "rating < 2") == [ULYSSES]
    finally:
        target.write_bytes(kept)
        engine.index()
    assert paths(engine, "rating < 2") == []
