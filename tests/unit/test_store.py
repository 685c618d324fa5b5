"""The store: notes, links, vectors, damaged files, repairs; and what each must survive."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarsd.errors import DiskFull, StoreError
from tarsd.passage import NoteRow, Passage
from tarsd.store import NOT_READ, Batch, FileStat, Prepared, Store, links, schema, segment
from tarsd.store.codes import Codes, _nearest, pack
from tarsd.store.spaces import MAX_TRIES
from tarsd.vault import Skipped

WEIGHTS = (4.0, 3.0, 2.0, 2.0, 1.0, 1.0)
DIM = 96


def digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def vector(text: str, dim: int = DIM) -> np.ndarray:
    seed = int.from_bytes(digest(text)[:4], "big")
    return np.random.default_rng(seed).standard_normal(dim)


def note(
    path: str,
    *texts: str,
    linked: Sequence[tuple[str, str]] = (),
    aliases: Sequence[str] = (),
    tags: Sequence[str] = (),
    mtime: int = 0,
    local_only: bool = False,
    words: str = "",
    collection: str = "",
) -> Prepared:
    """A prepared note: one chunk a text; `linked` are (target, shown text)."""
    row = NoteRow(
        collection=collection,
        path=path,
        title=path.rpartition("/")[2].removesuffix(".md"),
        aliases=tuple(aliases),
        tags=tuple(tags),
        kind="note",
        local_only=local_only,
        mtime_ns=mtime,
        size=len("".join(texts)),
    )
    return Prepared(
        note=row,
        disk=f"/{path}",
        hash=digest(repr(texts)).hex(),
        chunker="c1",
        properties="{}",
        words=words,
        problems=(),
        passages=tuple(
            Passage(text, i + 1, i + 1, seq=i, tokens=3, hash=digest(text), note=row) for i, text in enumerate(texts)
        ),
        links=tuple((i + 1, target, "", "", text, False) for i, (target, text) in enumerate(linked)),
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    yield one
    one.close()


def filled(store: Store, *notes: Prepared, fingerprint: str = "f1") -> int:
    """Put notes with their vectors; the id of the space."""
    space = store.ensure_space("table", fingerprint, DIM, "table")
    texts = [passage.text for prepared in notes for passage in prepared.passages]
    if texts:
        store.cache_vectors(fingerprint, [digest(text) for text in texts], np.array([vector(text) for text in texts]))
    store.apply(Batch(put=notes))
    return space.id


def found(store: Store, match: str) -> list[str]:
    return [hit.note.path for hit in store.hits(chunk for chunk, _ in store.fts(match, WEIGHTS, 20))]


# Notes


def test_a_note_is_found_by_its_words_name_folder_alias_tag_property_and_gone_when_deleted(store: Store) -> None:
    filled(store, note("Trips/Lisbon.md", "tram twenty-eight", aliases=["Lisboa"], tags=["travel/city"], words="ferry"))
    for word in ("tram", "lisbon", "trips", "lisboa", "city", "ferry"):
        assert found(store, word) == ["Trips/Lisbon.md"], word
    assert [score > 0 for _, score in store.fts("tram", WEIGHTS, 5)] == [True]
    store.apply(Batch(delete=[("", "Trips/Lisbon.md")]))
    assert found(store, "tram OR lisbon") == []
    assert store.titles() == [] and store.rows() == {}
    assert store.counts().chunks == store.counts().keywords == 0


def test_an_edit_replaces_all_of_a_note_and_ids_are_not_used_again(store: Store) -> None:
    filled(store, note("a.md", "one", "two"))
    old = [chunk for chunk, _ in store.fts("one OR two", WEIGHTS, 5)]
    kept = store.titles()[0]
    filled(store, note("a.md", "three"))
    assert store.titles()[0].id == kept.id
    assert store.hits(old) == []
    assert [hit.text for hit in store.chunks_of(kept.id)] == ["three"]
    assert not set(old) & {chunk for chunk, _ in store.fts("three", WEIGHTS, 5)}


def test_hits_come_in_the_order_asked_for_with_their_note(store: Store) -> None:
    filled(store, note("a.md", "one", "two"), note("b.md", "three"))
    ids = [hit.id for row in store.titles() for hit in store.chunks_of(row.id)]
    assert [hit.id for hit in store.hits(reversed(ids))] == ids[::-1]
    assert {hit.note.path for hit in store.hits(ids)} == {"a.md", "b.md"}


def test_fts_can_be_restricted_to_files_and_says_when_it_cannot_read_a_query(store: Store) -> None:
    filled(store, note("a.md", "word"), note("b.md", "word"))
    only = next(row.id for row in store.titles() if row.path == "b.md")
    assert [hit.note.path for hit in store.hits(c for c, _ in store.fts("word", WEIGHTS, 9, [only]))] == ["b.md"]
    with pytest.raises(StoreError):
        store.fts('"open', WEIGHTS, 5)


def test_title_rows_of_unchanged_notes_are_the_same_objects(store: Store) -> None:
    filled(store, note("a.md", "one"), note("b.md", "two"))
    before = {row.path: row for row in store.titles()}
    filled(store, note("b.md", "three", aliases=["bee"]))
    after = {row.path: row for row in store.titles()}
    assert after["a.md"] is before["a.md"]
    assert after["b.md"].aliases == ("bee",)


def test_restat_and_state_touch_nothing_else(store: Store) -> None:
    filled(store, note("a.md", "one"))
    before = store.dump()
    store.apply(Batch(restat=[FileStat("", "a.md", "/a.md", 7, 99)]))
    assert store.dump() == before
    assert store.rows()["", "a.md"].mtime_ns == 99
    store.apply(Batch(state=[(("", "a.md"), "not_downloaded")]))
    assert store.counts().states == {"not_downloaded": 1}
    assert store.titles()[0].state == "not_downloaded"


def test_rows_of_a_path_are_the_file_or_what_lies_below_it(store: Store) -> None:
    filled(store, *(note(path) for path in ("a.md", "a/b.md", "a/c/d.md", "a0.md", "ab/c.md")))
    filled(store, note("a/b.md", collection="other"))
    assert sorted(store.rows("", ["a"])) == [("", "a/b.md"), ("", "a/c/d.md")]
    assert sorted(store.rows("", ["a.md", "a/c", "none"])) == [("", "a.md"), ("", "a/c/d.md")]
    assert len(store.rows("")) == store.known("") == 5 and len(store.rows()) == 6
    assert store.known("nowhere") == 0


def test_generation_changes_with_every_commit(store: Store) -> None:
    seen = {store.generation}
    filled(store, note("a.md", "one"))
    seen.add(store.generation)
    store.apply(Batch(delete=[("", "a.md")]))
    assert len(seen | {store.generation}) == 3


def test_a_batch_happens_as_a_whole_or_not_at_all(store: Store) -> None:
    filled(store, note("a.md", "one"))
    before = store.dump()
    broken = note("c.md", "three")
    object.__setattr__(broken.passages[0], "hash", None)
    with pytest.raises(StoreError):
        store.apply(Batch(put=[note("a.md", "two"), broken], delete=[("", "a.md")]))
    assert store.dump() == before
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
    match = " AND ".join(f'"{segment(part).strip()}"' for part in query.split())
    assert found(store, match) == ["x.md"]


# Links


def at(path: str, alias: bool = False) -> links.LinkTarget:
    return links.LinkTarget(sum(path.encode()), links.path_fold(path), path, alias)


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
    target = next(row.id for row in store.titles() if row.path == "b.md")
    assert [link.source_path for link in store.links_to(target)] == ["a.md"]
    filled(store, note("a.md", "see"))
    assert found(store, "notebook") == []


def test_a_link_finds_a_note_that_comes_later_and_loses_one_that_goes(store: Store) -> None:
    filled(store, note("a.md", "see", linked=[("b", "blue notebook")]))
    source = store.titles()[0].id
    assert [link.target_path for link in store.links_from(source)] == [None]
    filled(store, note("deep/b.md", "other"))
    assert found(store, "notebook") == ["deep/b.md"]
    filled(store, note("b.md", "nearer"))
    assert found(store, "notebook") == ["b.md"]
    store.apply(Batch(delete=[("", "b.md")]))
    assert found(store, "notebook") == ["deep/b.md"]


def test_a_move_takes_the_row_along_and_settles_links(store: Store) -> None:
    space = filled(store, note("a.md", "see", linked=[("b", "blue notebook")]), note("b.md", "other"))
    row = store.rows()["", "b.md"]
    store.apply(Batch(move=[(("", "b.md"), ("", "c.md"))], put=[note("c.md", "other")]))
    assert store.rows()["", "c.md"].id == row.id
    assert found(store, "notebook") == []
    assert ("", "b.md") not in store.rows()
    assert store.space_for("f1") is not None and store.count_missing(space, local=True) == 0


def test_late_settling_comes_to_the_same(store: Store, tmp_path: Path) -> None:
    notes = [
        note("a.md", "x", linked=[("b", "bee"), ("c", "sea")]),
        note("d/b.md", "y", linked=[("a", "ay"), ("c", "see")], aliases=["c"]),
        note("c.md", "z", linked=[("A", "eh")]),
    ]
    filled(store, *notes)
    other = Store(tmp_path / "other.db", tmp_path / "embeddings.db")
    other.ensure_space("table", "f1", DIM, "table")
    for one in reversed(notes):
        other.apply(Batch(put=[one]), settle=False)
    other.close()
    other = Store(tmp_path / "other.db", tmp_path / "embeddings.db")
    other.settle()
    assert other.dump() == store.dump()
    other.close()


# Vectors


@pytest.mark.parametrize("use_vec", [True, False])
@pytest.mark.parametrize("resident", [True, False])
def test_knn_is_exact_where_candidates_cover_the_index(tmp_path: Path, use_vec: bool, resident: bool) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db", use_vec=use_vec)
    texts = [f"text {i}" for i in range(300)]
    space = filled(store, note("a.md", *texts[:150]), note("b.md", *texts[150:]))
    if resident:
        store.warm(space)
    query = vector("question")
    matrix = np.array([vector(text) / np.linalg.norm(vector(text)) for text in texts])
    best = [texts[i] for i in np.argsort(-(matrix @ query))[:10]]
    hits = store.knn(space, query, 10)
    assert [row.text for row in store.hits(chunk for chunk, _ in hits)] == best
    cosine = float(matrix[texts.index(best[0])] @ query / np.linalg.norm(query))
    assert hits[0][1] == pytest.approx(cosine, abs=2e-3)
    only = [row.id for row in store.titles() if row.path == "b.md"]
    assert {hit.note.path for hit in store.hits(c for c, _ in store.knn(space, query, 10, only))} == {"b.md"}
    store.close()


def test_resident_codes_follow_edits_and_deletions(store: Store) -> None:
    space = filled(store, note("a.md", "one", "two"), note("b.md", "three"))
    store.warm(space)
    filled(store, note("a.md", "four"))
    store.apply(Batch(delete=[("", "b.md")]))
    assert [row.text for row in store.hits(c for c, _ in store.knn(space, vector("one"), 9))] == ["four"]
    store.dump()  # compares the resident codes with the table
    store.cool()
    assert len(store.knn(space, vector("one"), 9)) == 1


@pytest.mark.parametrize("bad", [np.zeros(DIM), np.full(DIM, np.nan), np.full(DIM, np.inf)])
def test_a_query_without_direction_has_no_neighbours(store: Store, bad: np.ndarray) -> None:
    space = filled(store, note("a.md", "one"))
    assert store.knn(space, bad, 5) == []


def test_any_k_is_survived_and_another_models_query_is_refused(store: Store) -> None:
    space = filled(store, note("a.md", "one", "two"))
    assert [len(store.knn(space, vector("q"), k)) for k in (-1, 0, 1, 4096, 1_000_000)] == [0, 0, 1, 2, 2]
    with pytest.raises(StoreError):
        store.knn(space, vector("q", 32), 5)
    with pytest.raises(StoreError):
        store.knn(space + 1, vector("q"), 5)


def test_vectors_that_cannot_be_compared_are_not_taken(store: Store) -> None:
    space = filled(store)
    store.apply(Batch(put=[note("a.md", "one", "two", "three")]))
    rows = np.array([np.zeros(DIM), vector("two"), np.full(DIM, np.nan)])
    assert store.put_vectors(space, [digest("one"), digest("two"), digest("three")], rows) == [0, 2]
    assert [row.text for row in store.hits(c for c, _ in store.knn(space, vector("q"), 5))] == ["two"]


def test_a_known_text_keeps_its_first_vector(store: Store) -> None:
    space = filled(store, note("a.md", "one"))
    assert store.cache_vectors("f1", [digest("one")], np.array([vector("other")]))[0] == 0
    filled(store, note("b.md", "one"))
    scores = [score for _, score in store.knn(space, vector("one"), 5)]
    assert scores == pytest.approx([1.0, 1.0], abs=1e-2)


def test_missing_is_newest_first_each_text_once_and_keeps_private_notes_back(store: Store) -> None:
    space = store.ensure_space("model", "m1", DIM, "model").id
    store.apply(
        Batch(
            put=[
                note("old.md", "old", "both", mtime=1),
                note("new.md", "new", "both", mtime=3),
                note("mine.md", "secret", mtime=2, local_only=True),
            ]
        )
    )
    assert [job.passage.text for job in store.missing(space, 10, local=True)] == ["new", "both", "secret", "old"]
    assert [job.passage.text for job in store.missing(space, 10, local=False)] == ["new", "both", "old"]
    assert store.count_missing(space, local=False) == 4
    assert store.counts().held_back == 1
    store.apply(Batch(put=[note("copy.md", "secret", mtime=4)]))
    assert "secret" not in [job.passage.text for job in store.missing(space, 10, local=False)]


def test_failures_are_counted_shown_and_forgiven(store: Store) -> None:
    space = store.ensure_space("model", "m1", DIM, "model").id
    store.apply(Batch(put=[note("a.md", "one", "two")]))
    for _ in range(MAX_TRIES):
        assert len(store.missing(space, 9, local=True)) == 2
        store.fail("m1", [(digest("two"), "too long")])
    assert [job.passage.text for job in store.missing(space, 9, local=True)] == ["one"]
    assert store.counts().failed == 1
    assert [(one.path, one.line, one.reason) for one in store.problems()] == [("a.md", 2, "no vector: too long")]
    store.forgive("m1")
    assert store.problems() == [] and len(store.missing(space, 9, local=True)) == 2
    store.fail("m1", [(digest("one"), NOT_READ)], permanent=True)
    assert store.problems() == [] and (store.counts().failed, store.counts().not_read) == (0, 1)
    assert [job.passage.text for job in store.missing(space, 9, local=True)] == ["two"]


def test_a_new_model_is_built_beside_the_old_one_and_the_way_back_costs_nothing(store: Store) -> None:
    store.apply(Batch(put=[note("a.md", "one", "two")]))
    old = store.ensure_space("old", "m1", DIM, "model")
    store.put_vectors(old.id, [digest("one"), digest("two")], np.array([vector("one"), vector("two")]))
    store.activate(old.id)
    new = store.ensure_space("new", "m2", 32, "model")
    store.put_vectors(new.id, [digest("one")], np.array([vector("one", 32)]))
    assert {space.fingerprint: (space.state, space.coverage) for space in store.spaces()} == {
        "m1": ("active", 1.0),
        "m2": ("building", 0.5),
    }
    assert store.active_space("model") == store.space_for("m1")
    store.put_vectors(new.id, [digest("two")], np.array([vector("two", 32)]))
    store.activate(new.id)
    assert [space.fingerprint for space in store.spaces()] == ["m2"]
    back = store.ensure_space("old", "m1", DIM, "model")
    assert back.id != old.id and store.count_missing(back.id, local=True) == 0


def test_vectors_are_shared_between_vaults(store: Store, tmp_path: Path) -> None:
    filled(store, note("a.md", "one"))
    other = Store(tmp_path / "other.db", tmp_path / "embeddings.db")
    space = other.ensure_space("table", "f1", DIM, "table").id
    other.apply(Batch(put=[note("b.md", "one")]))
    assert other.count_missing(space, local=True) == 0
    other.close()


# Codes


@settings(max_examples=60)
@given(st.data())
def test_codes_are_what_a_plain_comparison_says(data: st.DataObject) -> None:
    dim = data.draw(st.sampled_from([8, 64, 100, 256]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    codes, known = Codes(dim), dict[int, np.ndarray]()
    for _ in range(data.draw(st.integers(1, 4))):
        drawn = rng.integers(1, 10_000, data.draw(st.integers(0, 40)))
        fresh = np.array(sorted(set(drawn.tolist()) - known.keys()), dtype=np.int64)
        rows = rng.standard_normal((len(fresh), dim))
        codes.add(fresh, -fresh, pack(rows))
        known |= dict(zip(fresh.tolist(), rows > 0, strict=True))
        dead = [one for one in known if rng.random() < 0.3]
        codes.remove(np.array(dead, dtype=np.int64))
        for one in dead:
            del known[one]
    query, count = rng.standard_normal(dim), data.draw(st.integers(20, 50))
    assert len(codes) == len(known) and set(codes.ids().tolist()) == known.keys()
    for only in (None, np.array([one for one in known if one % 2], dtype=np.int64)):
        got, refs = codes.search(query, count, only)
        wanted = {one: float(known[one] @ query) for one in (known if only is None else only.tolist())}
        best = sorted(wanted.values(), reverse=True)[:count]
        assert [wanted[one] for one in got.tolist()] == pytest.approx(best, abs=1e-3)
        assert (refs == -got).all()


def test_what_is_added_or_removed_during_a_search_of_the_codes_mixes_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = np.array([vector(str(number), 64) for number in range(4000)])
    numbers = np.arange(4000, dtype=np.int64)
    for change in (
        lambda codes: codes.add(numbers + 9000, numbers, pack(vectors)),
        lambda codes: codes.remove(numbers[:3000]),  # so many that the rest moves together
    ):
        codes = Codes(64, numbers, numbers, pack(vectors))

        def meanwhile(query: np.ndarray, codes: Codes = codes, change: Callable[[Codes], None] = change) -> np.ndarray:
            change(codes)
            return pack(query)

        with monkeypatch.context() as patch:
            patch.setattr("tarsd.store.codes.pack", meanwhile)
            ids, refs = codes.search(vectors[3999], 2000)
        assert ids[0] == 3999
        there = ids != -1
        assert np.array_equal(ids[there], refs[there])


def test_many_codes_are_compared_slab_by_slab() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((150_000, 64)).astype(np.float32)
    numbers = np.arange(150_000)
    codes = Codes(64, numbers, numbers, pack(vectors))
    query = vectors[140_000]
    assert codes.search(query, 20)[0][0] == 140_000
    codes.remove(numbers[:100_000])
    assert len(codes) == 50_000 and codes.search(query, 20)[0][0] == 140_000
    everything = _nearest(codes._view, pack(query.reshape(1, -1)), 300, None)
    distance = np.bitwise_count(pack(vectors[100_000:]) ^ pack(query.reshape(1, -1))).sum(axis=1)
    assert sorted(distance[everything]) == sorted(distance)[:300]


# Files that are not what they should be


def garble(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        for at in range(4096, size, 4096):
            file.seek(at)
            file.write(b"\xff" * 512)


def stray_log(path: Path) -> None:
    garble(path)
    Path(f"{path}-wal").write_bytes(os.urandom(9000))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "middle": garble,
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("this is no database\n" * 500),
    "stray log": stray_log,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["index.db", "embeddings.db"])
def test_a_damaged_file_is_moved_aside_and_said(tmp_path: Path, damage: str, name: str) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    filled(store, *(note(f"{i}.md", f"text {i} " * 200) for i in range(50)))
    store.close()
    DAMAGES[damage](tmp_path / name)
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    assert ("rebuilt" in store.notice) == ((name, damage) != ("embeddings.db", "empty"))
    assert (tmp_path / f"{name}.corrupt-1").exists() == (damage != "empty")
    if name == "index.db":
        assert store.rows() == {}
        filled(store, note("a.md", "alive"))
        assert found(store, "alive") == ["a.md"]
        assert store.cached("f1", [digest("text 3 " * 200)])
    else:
        assert len(store.rows()) == 50
        store.check()
        space = store.space_for("f1")
        assert space is not None and space.vectors == 0
        assert store.count_missing(space.id, local=True) == 50
    store.close()


def test_damage_met_while_running_is_told_and_mended(tmp_path: Path) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    filled(store, *(note(f"{i}.md", f"text {i} " * 200) for i in range(50)))
    store.close()
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    told: list[bool] = []
    store.on_damage = lambda: told.append(True)
    garble(tmp_path / "index.db")
    with pytest.raises(StoreError, match="damaged"):
        for _ in range(3):
            store.dump()
            store.reopen() if not store.damaged else None
    store.reopen()
    assert not store.damaged and store.rows() == {}
    store.close()


def test_two_programs_may_open_new_files_at_once(tmp_path: Path) -> None:
    opened: list[Store] = []

    def start(name: str) -> None:
        opened.append(Store(tmp_path / name, tmp_path / "embeddings.db"))

    threads = [threading.Thread(target=start, args=(f"{i}.db",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.notice for one in opened] == [""] * 4
    for one in opened:
        one.close()


def test_only_a_few_damaged_files_are_kept(tmp_path: Path) -> None:
    for _ in range(6):
        (tmp_path / "index.db").write_text("no database " * 1000)
        Store(tmp_path / "index.db", tmp_path / "embeddings.db").close()
    assert sorted(path.name for path in tmp_path.glob("*.corrupt-*")) == [f"index.db.corrupt-{i}" for i in (4, 5, 6)]


def test_another_format_is_rebuilt_without_the_vectors_being_lost(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store, note("a.md", "one"))
    db = apsw.Connection(str(tmp_path / "index.db"))
    db.execute("PRAGMA user_version = 999")
    db.close()
    other = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    assert "format" in other.notice and other.rows() == {}
    assert other.cached("f1", [digest("one")])
    other.close()


def test_an_index_made_with_the_other_kind_of_codes_is_rebuilt(tmp_path: Path) -> None:
    for use_vec, rows in ((True, 0), (True, 1), (False, 0), (False, 1), (True, 0)):
        store = Store(tmp_path / "index.db", tmp_path / "embeddings.db", use_vec=use_vec)
        assert store.vec0 == use_vec and len(store.rows()) == rows
        space = filled(store, note("a.md", "one"))
        assert len(store.knn(space, vector("q"), 3)) == 1
        store.close()


def test_a_writer_waits_for_another_program_and_readers_do_not(store: Store, tmp_path: Path) -> None:
    filled(store, note("a.md", "one"))
    other = apsw.Connection(str(tmp_path / "index.db"))
    other.execute("BEGIN IMMEDIATE")
    done = threading.Event()

    def write() -> None:
        store.apply(Batch(put=[note("b.md", "two")]))
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert found(store, "one") == ["a.md"]
    assert not done.wait(0.2)
    other.execute("COMMIT")
    thread.join(10)
    assert done.is_set() and found(store, "two") == ["b.md"]
    other.close()


def test_a_full_disk_is_said_and_nothing_is_lost(store: Store) -> None:
    filled(store, note("a.md", "one"))
    before = store.dump()
    pages = store._db.execute("PRAGMA page_count").get
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall()
    big = note("b.md", *(f"long text {i} " * 50 for i in range(200)))
    with pytest.raises(DiskFull):
        store.apply(Batch(put=[big]))
    assert store.dump() == before
    store._db.execute("PRAGMA max_page_count = 1000000").fetchall()
    store.apply(Batch(put=[big]))
    assert len(store.rows()) == 2


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    store.close()
    with pytest.raises(StoreError):
        store.rows()
    with pytest.raises(StoreError):
        store.apply(Batch(put=[note("a.md", "one")]))


# Upkeep


def test_a_whole_index_needs_no_repair(store: Store) -> None:
    filled(store, note("a.md", "one", "two", linked=[("b", "bee")]), note("b.md", "three"))
    before = store.dump()
    assert store.check() == []
    store.maintain()
    assert store.dump() == before


@pytest.mark.parametrize(
    "loss",
    [
        "DELETE FROM fts WHERE rowid = 1",
        "INSERT INTO fts(fts) VALUES ('delete-all')",
        "INSERT INTO fts(rowid, body) VALUES (77, 'ghost')",
        "DELETE FROM vec_1",
        "DELETE FROM vec_1 WHERE chunk_id = 2",
    ],
)
def test_a_leg_that_lost_rows_is_repaired(store: Store, loss: str) -> None:
    space = filled(store, note("a.md", "one", "two", linked=[("b", "bee")]), note("b.md", "three"))
    before = store.dump()
    store.warm(space)
    store._db.execute(loss)
    store.cool()
    assert len(store.check()) == 1
    assert store.dump() == before
    assert store.check() == []


def test_a_note_without_passages_is_read_again(store: Store) -> None:
    filled(store, note("a.md", "one"), note("b.md", "two"))
    store._db.execute("DELETE FROM chunks WHERE file_id = (SELECT id FROM files WHERE path = 'a.md')")
    assert store.check()
    assert store.rows()["", "a.md"].hash == ""
    assert store.rows()["", "b.md"].hash != ""


def test_churn_does_not_grow_the_index(tmp_path: Path) -> None:
    def build(rounds: int) -> int:
        folder = tmp_path / str(rounds)
        store = Store(folder / "index.db", folder / "embeddings.db")
        notes = [note(f"{i}.md", *(f"text {i} {j}" for j in range(8))) for i in range(150)]
        filled(store, *notes)
        for turn in range(rounds):
            filled(store, *(note(f"{i}.md", *(f"text {i} {j} {turn}" for j in range(8))) for i in range(150)))
            store.maintain()
        store.apply(Batch(delete=[one.key for one in notes[15:]]))
        store.maintain()
        store.close()
        return (folder / "index.db").stat().st_size

    assert build(5) <= 2 * build(0)


def test_skipped_files_are_remembered(store: Store) -> None:
    rows = [Skipped("", "x.md", "conflict", "a copy", "delete it")]
    store.set_skipped(rows)
    generation = store.generation
    store.set_skipped(rows)
    assert store.skipped() == rows and store.generation == generation
    assert store.counts().states == {"conflict": 1}


def test_remembered_values_survive(store: Store) -> None:
    store.set_meta("x", 1)
    store.set_meta("x", "two")
    assert store.meta("x") == "two" and store.meta("y") is None


def test_properties_and_problems_come_back_as_they_went_in(store: Store) -> None:
    one = note("a.md", "one")
    object.__setattr__(one, "properties", json.dumps({"status": "open"}))
    object.__setattr__(one, "problems", ((3, "broken", "mend it"),))
    store.apply(Batch(put=[one, note("b.md", "two")]))
    row = store.note(("", "a.md"))
    assert row is not None
    assert store.properties() == {row.id: {"status": "open"}} == store.properties([row.id])
    assert [(p.path, p.line, p.reason, p.hint) for p in store.problems()] == [("a.md", 3, "broken", "mend it")]


def test_the_tables_are_made_once_and_files_are_private(store: Store, tmp_path: Path) -> None:
    assert (tmp_path / "index.db").stat().st_mode & 0o077 == 0
    assert "CREATE TABLE IF NOT EXISTS" not in schema.INDEX.sql + schema.EMBEDDINGS.sql


def test_all_names_are_found_at_the_first_chunk_and_some_at_every_one(store: Store) -> None:
    tags, aliases = [f"tag{i}" for i in range(500)], [f"alias{i}" for i in range(500)]
    filled(store, note("a.md", "one", "two", "three", tags=tags, aliases=aliases, words="prop"))
    filled(store, note("b.md", "four", linked=[("a", "shown")]))

    def seqs(word: str) -> list[int]:
        return sorted(hit.seq for hit in store.hits(chunk for chunk, _ in store.fts(word, WEIGHTS, 99)))

    def check() -> None:
        assert seqs("tag0") == seqs("alias0") == seqs("tag63") == seqs("alias31") == [0, 1, 2]
        assert seqs("tag64") == seqs("tag499") == seqs("alias32") == seqs("alias499") == [0]
        assert seqs("shown") == seqs("prop") == [0]

    check()  # the row of the first chunk was written again, for what b.md calls it
    before = store.dump()
    store.rebuild_keywords()
    assert store.dump() == before
    with store._transaction(store._db) as db:
        db.execute("DELETE FROM fts")
    assert store.check() == ["The keyword index differed: 4 passages added, 0 removed."]
    assert store.dump() == before
    check()


def test_one_name_without_end_is_not_repeated_in_full(store: Store) -> None:
    tags = ["x" * 100 + f" y{'z' * 200} end", *(f"{'w' * 100}{i}" for i in range(20))]
    filled(store, note("a.md", "one", "two", tags=tags))
    assert len(store.fts("end", WEIGHTS, 9)) == len(store.fts(f"{'w' * 100}19", WEIGHTS, 9)) == 1
    assert len(store.fts("x" * 100, WEIGHTS, 9)) == 2


def test_a_keyword_index_of_another_version_is_made_anew_and_nothing_else(store: Store, tmp_path: Path) -> None:
    assert store.check() == []
    space = filled(store, note("a.md", "one", "two", tags=["t"]))
    before = store.dump()
    with store._transaction(store._db) as db:  # as an index of before this number
        db.execute("DELETE FROM meta WHERE key = 'keywords'")
        db.execute("INSERT INTO fts(fts) VALUES ('delete-all')")
        db.executemany("INSERT INTO fts(rowid, tags) SELECT id, 'other' FROM chunks WHERE ?", [(1,)])
    store.close()
    other = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    assert other.notice == ""
    (said,) = other.check()
    assert "another version" in said and other.check() == []
    assert other.dump() == before and other.cached("f1", [digest("one")])
    assert len(other.knn(space, vector("one"), 3)) == 2
    other.close()


# What the cache keeps, and for how long


@pytest.fixture
def days(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`days(10)` lets ten days pass; the clock may go back, too."""
    now = [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])

    def days(number: int) -> None:
        now[0] += number * 86_400

    return days


def cached(embeddings: Path) -> int:
    with contextlib.closing(apsw.Connection(str(embeddings))) as db:
        return int(db.execute("SELECT count(*) FROM vectors").get)


def two_vaults(folder: Path) -> tuple[Store, Store]:
    """Two stores with one cache, each with a note that has a vector there."""
    made = []
    for name in ("one", "two"):
        store = Store(folder / f"{name}.db", folder / "embeddings.db")
        store.apply(Batch(put=[note(f"{name}.md", name)]))
        store.put_vectors(store.ensure_space("m", "m:1", 4, "model").id, [digest(name)], np.ones((1, 4)))
        made.append(store)
    return made[0], made[1]


def test_vectors_that_no_vault_uses_are_dropped_after_three_months(tmp_path: Path, days: Callable[[int], None]) -> None:
    one, two = two_vaults(tmp_path)
    one.apply(Batch(delete=[("", "one.md")]))
    for _ in range(9):
        days(10)
        two.tidy()  # the other vault's daemon runs as well, and marks what it uses
        one.tidy()
        assert cached(tmp_path / "embeddings.db") == 2, "it may come back"
    for _ in range(3):
        days(8)
        one.tidy()
        two.tidy()
    assert cached(tmp_path / "embeddings.db") == 1
    one.close()
    two.close()


@pytest.mark.parametrize("jump", [3650, -800, 100_000])
def test_a_wrong_clock_costs_no_vectors(tmp_path: Path, days: Callable[[int], None], jump: int) -> None:
    one, two = two_vaults(tmp_path)
    for _ in range(4):
        days(jump)
        one.tidy()
        days(1)
        one.tidy()
        days(-jump)
        one.tidy()
        two.tidy()
    for _ in range(20):
        days(7)
        one.tidy()
        two.tidy()
    assert cached(tmp_path / "embeddings.db") == 2
    one.close()
    two.close()


def test_a_daemon_that_does_not_know_these_days_yet_loses_nothing(tmp_path: Path, days: Callable[[int], None]) -> None:
    one, two = two_vaults(tmp_path)
    with contextlib.closing(apsw.Connection(str(tmp_path / "embeddings.db"))) as db:
        db.execute("INSERT INTO vectors(embedder, hash, vector) VALUES (1, x'00', x'0000')")
    one.tidy()
    days(60)
    one.tidy()
    assert cached(tmp_path / "embeddings.db") == 3
    one.close()
    two.close()


def test_a_cache_of_a_newer_format_is_put_aside_and_not_removed(tmp_path: Path) -> None:
    for store in two_vaults(tmp_path):
        store.close()
    with contextlib.closing(apsw.Connection(str(tmp_path / "embeddings.db"))) as db:
        db.execute("PRAGMA user_version = 99")
    store = Store(tmp_path / "one.db", tmp_path / "embeddings.db")
    assert "kept as embeddings.db.corrupt-1" in store.notice
    store.close()
    assert cached(tmp_path / "embeddings.db.corrupt-1") == 2


def test_a_cache_of_an_older_format_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.db"
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        db.execute(schema.EMBEDDINGS.sql.replace(",\n    used INTEGER NOT NULL DEFAULT 0", ""))
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = 1")
        db.execute("INSERT INTO embedders VALUES (1, 'm:1')")
        db.execute("INSERT INTO vectors(embedder, hash, vector) VALUES (1, x'00', x'0000')")
    store = Store(tmp_path / "index.db", path)
    assert store.notice == ""
    store.close()
    with contextlib.closing(apsw.Connection(str(path))) as db:
        assert db.execute("SELECT used FROM vectors").get == 0


def test_another_format_of_the_index_embeds_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    store.apply(Batch(put=[note("One.md", "tea")]))
    space = store.ensure_space("m", "m:1", 4, "model")
    store.put_vectors(space.id, [digest("tea")], np.ones((1, 4)))
    store.close()
    monkeypatch.setattr(schema, "INDEX", schema.INDEX._replace(format=schema.INDEX.format + 1))
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    assert "another format" in store.notice
    assert store.counts().chunks == 0
    store.apply(Batch(put=[note("One.md", "tea")]))
    store.ensure_space("m", "m:1", 4, "model")
    assert [space.vectors for space in store.spaces()] == [1]
    store.close()
