"""Values, list items and tasks in the store: written with their note, found by name and value, gone with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tarsd.parse import Fact, Item, Note, Task, parse
from tarsd.store import Batch, Prepared, Store, rows_of
from tests.support.stored import note


def with_data(path: str, text: str) -> Prepared:
    return replace(note(path, text), data=rows_of(parse(text, path)))


def filled(store: Store, notes: dict[str, str]) -> dict[str, int]:
    """Puts these notes; their ids by path."""
    store.apply(Batch(put=[with_data(path, text) for path, text in notes.items()]))
    return {row.path: row.id for row in store.notes.titles()}


def paths(store: Store, ids: Iterable[int]) -> list[str]:
    names = {row.id: row.path for row in store.notes.titles()}
    return sorted(names[file_id] for file_id in ids)


BOOKS = {
    "a.md": "---\nrating: 4.5\nread: true\nfinished: 2026-02-08\nby: '[[People/Ada L]]'\n---\ntime:: 1h 40m\n",
    "b.md": "---\nRating: 3\nread: false\nfinished: 14.07.2026\nby: '[[Ada L|Ada]]'\n---\ntime:: 20 min\n",
    "c.md": "---\nrating: four-ish\nstatus: [To Read, on hold]\nfinished: 2026-02-08T10:00\n---\nspent:: 12,90 €\n",
}


def test_what_is_written_is_what_is_read(store: Store) -> None:
    text = "---\na: 1\nb: 2.5\nc: true\nd: 'true'\n---\n## H\n- x [e:: f]\n- [ ] t #u 📅 2026-01-01 [g:: h]\n"
    ids = filled(store, {"a.md": text, "b.md": "nothing"})
    read = parse(text, "a.md")
    assert store.facts.of() == store.facts.of(ids.values()) == {ids["a.md"]: read.facts}
    assert store.facts.items() == {ids["a.md"]: (Item(8, "x", "H"),)}
    expected = Task(9, " ", "t #u", "H", due="2026-01-01", tags=("u",), fields={"g": "h"})
    assert store.facts.tasks([ids["a.md"]]) == {ids["a.md"]: (expected,)}
    assert not any((store.facts.of([ids["b.md"]]), store.facts.tasks([ids["b.md"]]), store.facts.of([])))
    values = [fact.value for fact in store.facts.of()[ids["a.md"]]]
    assert [type(value) for value in values] == [int, float, bool, str, str]


def test_facts_can_be_those_of_some_names_only(store: Store) -> None:
    ids = filled(store, BOOKS)
    some = store.facts.of(keys=["rating", "time"])
    assert [(fact.name, fact.value) for fact in some[ids["b.md"]]] == [("Rating", 3), ("time", "20 min")]
    assert store.facts.of([ids["b.md"]], keys=["time"]) == {ids["b.md"]: (Fact("time", "20 min", 7, "field"),)}


@pytest.mark.parametrize(
    ("key", "op", "value", "expected"),
    [
        ("rating", ">=", 4, "a"), ("rating", "<", 4.0, "b"), ("rating", "=", 3, "b"), ("rating", "exists", 0, "abc"),
        ("rating", "=", "Four-ish", "c"), ("read", "=", 1, ""), ("read", "=", "true", "a"),
        ("finished", "=", "2026-02-08", "ac"), ("finished", ">", "2026-02-08", "b"),
        ("finished", "<=", "08.02.2026", "ac"),
        ("finished", ">", "2026-02-08T09:00", "bc"), ("by", "=", "ada l", "ab"), ("status", "=", "to  read", "c"),
        ("status", "=", "ON HOLD", "c"), ("spent", ">", 12, "c"), ("nothing", "exists", 0, ""),
        ("by", "exists", 0, "ab"),
    ],
)  # fmt: skip
def test_notes_are_found_by_a_comparison(store: Store, key: str, op: object, value: object, expected: str) -> None:
    filled(store, BOOKS)
    found = store.facts.having(key, op, value)  # type: ignore[arg-type]
    assert paths(store, found) == [f"{letter}.md" for letter in expected]


def test_durations_compare_by_their_minutes(store: Store) -> None:
    filled(store, BOOKS)
    assert paths(store, store.facts.having("time", ">", 60, minutes=True)) == ["a.md"]
    assert paths(store, store.facts.having("time", "<=", 20, minutes=True)) == ["b.md"]


def test_names_are_counted_by_notes_and_spelled_as_mostly(store: Store) -> None:
    ids = filled(store, BOOKS | {"d.md": "rating:: 5\nrating:: [[x]]\n"})
    names = store.facts.names()
    assert next(iter(names)) == "rating"
    assert (names["rating"].shown, names["rating"].notes) == ("rating", 4)
    assert names["rating"].kinds == {"number": 3, "text": 1, "link": 1}
    assert store.facts.names([ids["c.md"], ids["d.md"]])["rating"].kinds == {"number": 2}
    assert "spent" not in store.facts.names([ids["c.md"]])


def test_values_are_counted_by_notes(store: Store) -> None:
    ids = filled(store, {"a.md": "x:: Red\nx:: red", "b.md": "x:: red", "c.md": "x:: [[B/Blue]]\nx:: 5"})
    assert [notes for _, notes in store.facts.values("x")] == [2, 1]
    assert store.facts.values("x", [ids["a.md"], ids["b.md"]]) == [("[[B/Blue]]", 1)]


def test_facts_change_go_and_move_with_their_note(store: Store) -> None:
    filled(store, BOOKS | {"t.md": "- [ ] a\n- b [c:: d]\n"})
    ids = filled(store, {"a.md": "rating:: 1\n"})
    assert [fact.value for fact in store.facts.of()[ids["a.md"]]] == ["1"]
    store.apply(Batch(move=[(("", "t.md"), ("", "u.md"))]))
    assert {*store.facts.tasks()} == {*store.facts.items()} == {ids["t.md"]}
    store.apply(Batch(delete=[("", path) for path in ("a.md", "b.md", "c.md", "u.md")]))
    assert not any((store.facts.of(), store.facts.items(), store.facts.tasks(), store.facts.names()))


def test_rows_that_no_note_has_are_taken_away(store: Store) -> None:
    filled(store, BOOKS | {"t.md": "- [ ] a\n- b [c:: d]\n"})
    with store.database.write() as db:
        db.execute(
            "UPDATE facts SET file_id = file_id + 100; UPDATE tasks SET file_id = 100; UPDATE items SET file_id = 9"
        )
    store.check()
    assert not any((store.facts.of(), store.facts.items(), store.facts.tasks()))


def test_a_note_of_thousands_of_values_is_written(store: Store) -> None:
    read: Note = parse("".join(f"k{number}:: {number}\n" for number in range(3_000)), "a.md")
    store.apply(Batch(put=[replace(note("a.md", "x"), data=rows_of(read))]))
    assert len(next(iter(store.facts.of().values()))) == 3_000 == len(store.facts.names())


def test_values_that_are_not_of_the_declared_type_are_named(store: Store) -> None:
    filled(store, BOOKS | {"d.md": "rating:: none\n"})
    found = store.facts.misfits("", {"rating": "number", "finished": "date", "read": "checkbox", "by": "multitext"})
    assert [(row.path, row.line, "'rating' is no number" in row.reason) for row in found] == [("c.md", 2, True)]
    assert store.facts.misfits("other", {"rating": "number"}) == store.facts.misfits("", {}) == []
