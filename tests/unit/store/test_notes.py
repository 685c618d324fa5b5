"""Notes and links in the store: written, found, moved, deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarsd.errors import StoreError
from tarsd.store import Batch, Store, links
from tarsd.vault import FileInfo
from tarsd.words import index_text
from tests.support.index_dump import dump
from tests.support.stored import DIM, WEIGHTS, at, filled, found, note


def test_a_note_is_found_by_its_words_name_folder_alias_tag_property_and_gone_when_deleted(store: Store) -> None:
    filled(store, note("Trips/Lisbon.md", "tram twenty-eight", aliases=["Lisboa"], tags=["travel/city"], words="ferry"))
    for word in ("tram", "lisbon", "trips", "lisboa", "city", "ferry"):
        assert found(store, word) == ["Trips/Lisbon.md"], word
    assert [score > 0 for _, score in store.search.fts("tram", WEIGHTS, 5)] == [True]
    store.apply(Batch(delete=[("", "Trips/Lisbon.md")]))
    assert found(store, "tram OR lisbon") == []
    assert store.notes.titles() == [] and store.notes.rows() == {}
    assert store.counts().chunks == store.counts().keywords == 0


def test_an_edit_replaces_all_of_a_note_and_ids_are_not_used_again(store: Store) -> None:
    filled(store, note("a.md", "one", "two"))
    old = [chunk for chunk, _ in store.search.fts("one OR two", WEIGHTS, 5)]
    kept = store.notes.titles()[0]
    filled(store, note("a.md", "three"))
    assert store.notes.titles()[0].id == kept.id
    assert store.notes.passages(old) == []
    assert [hit.text for hit in store.notes.passages_of(kept.id)] == ["three"]
    assert not set(old) & {chunk for chunk, _ in store.search.fts("three", WEIGHTS, 5)}


def test_hits_come_in_the_order_asked_for_with_their_note(store: Store) -> None:
    filled(store, note("a.md", "one", "two"), note("b.md", "three"))
    ids = [hit.id for row in store.notes.titles() for hit in store.notes.passages_of(row.id)]
    assert [hit.id for hit in store.notes.passages(reversed(ids))] == ids[::-1]
    assert {hit.note.path for hit in store.notes.passages(ids)} == {"a.md", "b.md"}


def test_fts_can_be_restricted_to_files_and_says_when_it_cannot_read_a_query(store: Store) -> None:
    filled(store, note("a.md", "word"), note("b.md", "word"))
    only = next(row.id for row in store.notes.titles() if row.path == "b.md")
    assert [
        hit.note.path for hit in store.notes.passages(c for c, _ in store.search.fts("word", WEIGHTS, 9, [only]))
    ] == ["b.md"]
    with pytest.raises(StoreError):
        store.search.fts('"open', WEIGHTS, 5)


def test_title_rows_of_unchanged_notes_are_the_same_objects(store: Store) -> None:
    filled(store, note("a.md", "one"), note("b.md", "two"))
    before = {row.path: row for row in store.notes.titles()}
    filled(store, note("b.md", "three", aliases=["bee"]))
    after = {row.path: row for row in store.notes.titles()}
    assert after["a.md"] is before["a.md"]
    assert after["b.md"].aliases == ("bee",)


def test_restat_and_state_touch_nothing_else(store: Store) -> None:
    filled(store, note("a.md", "one"))
    before = dump(store)
    store.apply(Batch(restat=[FileInfo("", "a.md", "/a.md", 7, 99, "note")]))
    assert dump(store) == before
    assert store.notes.rows()["", "a.md"].mtime_ns == 99
    store.apply(Batch(state=[(("", "a.md"), "not_downloaded")]))
    assert store.counts().states == {"not_downloaded": 1}
    assert store.notes.titles()[0].state == "not_downloaded"


def test_rows_of_a_path_are_the_file_or_what_lies_below_it(store: Store) -> None:
    filled(store, *(note(path) for path in ("a.md", "a/b.md", "a/c/d.md", "a0.md", "ab/c.md")))
    filled(store, note("a/b.md", collection="other"))
    assert sorted(store.notes.rows("", ["a"])) == [("", "a/b.md"), ("", "a/c/d.md")]
    assert sorted(store.notes.rows("", ["a.md", "a/c", "none"])) == [("", "a.md"), ("", "a/c/d.md")]
    assert len(store.notes.rows("")) == store.notes.known("") == 5 and len(store.notes.rows()) == 6
    assert store.notes.known("nowhere") == 0


def test_generation_changes_with_every_commit(store: Store) -> None:
    seen = {store.database.generation}
    filled(store, note("a.md", "one"))
    seen.add(store.database.generation)
    store.apply(Batch(delete=[("", "a.md")]))
    assert len(seen | {store.database.generation}) == 3


def test_a_batch_happens_as_a_whole_or_not_at_all(store: Store) -> None:
    filled(store, note("a.md", "one"))
    before = dump(store)
    broken = note("c.md", "three")
    object.__setattr__(broken.passages[0], "hash", None)
    with pytest.raises(StoreError):
        store.apply(Batch(put=[note("a.md", "two"), broken], delete=[("", "a.md")]))
    assert dump(store) == before
    assert found(store, "one") == ["a.md"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("系统使用缓存来提高速度", "缓存"),
        ("全文検索エンジンの仕組み", "検索"),
        ("ระบบค้นหาข้อมูล", "ค้นหา"),
        ("BBtool 缓存 setup", "bbtool 缓存"),
        ("مرحبا بالعالم الجديد", "بالعالم"),
        ("हिन्दी में खोज", "खोज"),
    ],
)
def test_words_of_every_script_are_found_by_keyword(store: Store, text: str, query: str) -> None:
    filled(store, note("x.md", text), note("y.md", "nothing of it"))
    match = " AND ".join(f'"{index_text(part).strip()}"' for part in query.split())
    assert found(store, match) == ["x.md"]


@pytest.mark.parametrize(
    ("target", "source", "files", "expected"),
    [
        ("Note", "a.md", ["Note.md"], "Note.md"),
        ("note", "a.md", ["deep/er/Note.md"], "deep/er/Note.md"),
        ("Note.md", "a.md", ["x/Note.md"], "x/Note.md"),
        ("Note", "x/a.md", ["Note.md", "x/Note.md"], "Note.md"),
        ("Note", "x/a.md", ["y/Note.md", "x/Note.md"], "x/Note.md"),
        ("Note", "x/a.md", ["longer/Note.md", "y/Note.md"], "y/Note.md"),
        ("Note", "x/a.md", ["y/Note.md", "x/deep/Note.md"], "x/deep/Note.md"),
        ("y/Note", "x/a.md", ["y/Note.md", "x/Note.md"], "y/Note.md"),
        ("y/Note", "a.md", ["x/y/Note.md", "x/Note.md"], "x/y/Note.md"),
        ("./Note", "x/a.md", ["Note.md", "x/Note.md"], "x/Note.md"),
        ("../Note", "x/a.md", ["Note.md", "x/Note.md"], "Note.md"),
        ("/Note", "x/a.md", ["Note.md", "x/Note.md"], "Note.md"),
        ("/Note", "x/a.md", ["x/Note.md"], None),
        ("Cafe\u0301", "a.md", ["Café.md"], "Café.md"),
        ("z/Note", "a.md", ["x/Note.md"], None),
    ],
)
def test_links_lead_where_obsidian_leads_them(target: str, source: str, files: list[str], expected: str | None) -> None:
    candidates = [at(path) for path in files]
    assert links.resolve(target, source, candidates) == (None if expected is None else at(expected).id)


def test_a_name_goes_before_an_alias() -> None:
    assert links.resolve("N", "a.md", [at("b/x.md", True), at("z/n.md")]) == at("z/n.md").id
    assert links.resolve("N", "a.md", [at("b/x.md", True), at("b.md", True)]) == at("b.md").id


def test_link_texts_find_their_target_and_go_with_the_link(store: Store) -> None:
    filled(store, note("a.md", "see", linked=[("b", "the blue notebook")]), note("b.md", "other"))
    assert found(store, "notebook") == ["b.md"]
    target = next(row.id for row in store.notes.titles() if row.path == "b.md")
    assert [link.source_path for link in store.notes.links_to(target)] == ["a.md"]
    filled(store, note("a.md", "see"))
    assert found(store, "notebook") == []


def test_a_link_finds_a_note_that_comes_later_and_loses_one_that_goes(store: Store) -> None:
    filled(store, note("a.md", "see", linked=[("b", "blue notebook")]))
    source = store.notes.titles()[0].id
    assert [link.target_path for link in store.notes.links_from(source)] == [None]
    filled(store, note("deep/b.md", "other"))
    assert found(store, "notebook") == ["deep/b.md"]
    filled(store, note("b.md", "nearer"))
    assert found(store, "notebook") == ["b.md"]
    store.apply(Batch(delete=[("", "b.md")]))
    assert found(store, "notebook") == ["deep/b.md"]


def test_a_move_takes_the_row_along_and_settles_links(store: Store) -> None:
    space = filled(store, note("a.md", "see", linked=[("b", "blue notebook")]), note("b.md", "other"))
    row = store.notes.rows()["", "b.md"]
    store.apply(Batch(move=[(("", "b.md"), ("", "c.md"))], put=[note("c.md", "other")]))
    assert store.notes.rows()["", "c.md"].id == row.id
    assert found(store, "notebook") == []
    assert ("", "b.md") not in store.notes.rows()
    assert store.vectors.space_for("f1") is not None and store.vectors.count_missing(space, local=True) == 0


def test_late_settling_comes_to_the_same(store: Store, tmp_path: Path) -> None:
    notes = [
        note("a.md", "x", linked=[("b", "bee"), ("c", "sea")]),
        note("d/b.md", "y", linked=[("a", "ay"), ("c", "see")], aliases=["c"]),
        note("c.md", "z", linked=[("A", "eh")]),
    ]
    filled(store, *notes)
    other = Store(tmp_path / "other.db", tmp_path / "embeddings.db")
    other.vectors.ensure_space("table", "f1", DIM, "table")
    for one in reversed(notes):
        other.apply(Batch(put=[one]), settle=False)
    other.close()
    other = Store(tmp_path / "other.db", tmp_path / "embeddings.db")
    other.settle()
    assert dump(other) == dump(store)
    other.close()
