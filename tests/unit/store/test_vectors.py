"""Vectors in the store, and the codes that stand for them in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarsd.errors import StoreError
from tarsd.store import NOT_READ, Batch, Store
from tarsd.store.codes import Codes, _nearest, pack
from tarsd.store.vectors import MAX_TRIES
from tests.support.index_dump import dump
from tests.support.stored import DIM, digest, filled, note, vector


@pytest.mark.parametrize("use_vec", [True, False])
@pytest.mark.parametrize("resident", [True, False])
def test_knn_is_exact_where_candidates_cover_the_index(tmp_path: Path, use_vec: bool, resident: bool) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db", use_vec=use_vec)
    texts = [f"text {i}" for i in range(300)]
    space = filled(store, note("a.md", *texts[:150]), note("b.md", *texts[150:]))
    if resident:
        store.vectors.warm(space)
    query = vector("question")
    matrix = np.array([vector(text) / np.linalg.norm(vector(text)) for text in texts])
    best = [texts[i] for i in np.argsort(-(matrix @ query))[:10]]
    hits = store.vectors.knn(space, query, 10)
    assert [row.text for row in store.notes.passages(chunk for chunk, _ in hits)] == best
    cosine = float(matrix[texts.index(best[0])] @ query / np.linalg.norm(query))
    assert hits[0][1] == pytest.approx(cosine, abs=2e-3)
    only = [row.id for row in store.notes.titles() if row.path == "b.md"]
    assert {hit.note.path for hit in store.notes.passages(c for c, _ in store.vectors.knn(space, query, 10, only))} == {
        "b.md"
    }
    store.close()


def test_resident_codes_follow_edits_and_deletions(store: Store) -> None:
    space = filled(store, note("a.md", "one", "two"), note("b.md", "three"))
    store.vectors.warm(space)
    filled(store, note("a.md", "four"))
    store.apply(Batch(delete=[("", "b.md")]))
    assert [row.text for row in store.notes.passages(c for c, _ in store.vectors.knn(space, vector("one"), 9))] == [
        "four"
    ]
    dump(store)  # compares the resident codes with the table
    store.database.reopen()
    assert len(store.vectors.knn(space, vector("one"), 9)) == 1


@pytest.mark.parametrize("bad", [np.zeros(DIM), np.full(DIM, np.nan), np.full(DIM, np.inf)])
def test_a_query_without_direction_has_no_neighbours(store: Store, bad: np.ndarray) -> None:
    space = filled(store, note("a.md", "one"))
    assert store.vectors.knn(space, bad, 5) == []


def test_any_k_is_survived_and_another_models_query_is_refused(store: Store) -> None:
    space = filled(store, note("a.md", "one", "two"))
    assert [len(store.vectors.knn(space, vector("q"), k)) for k in (-1, 0, 1, 4096, 1_000_000)] == [0, 0, 1, 2, 2]
    with pytest.raises(StoreError):
        store.vectors.knn(space, vector("q", 32), 5)
    with pytest.raises(StoreError):
        store.vectors.knn(space + 1, vector("q"), 5)


def test_vectors_that_cannot_be_compared_are_not_taken(store: Store) -> None:
    space = filled(store)
    store.apply(Batch(put=[note("a.md", "one", "two", "three")]))
    rows = np.array([np.zeros(DIM), vector("two"), np.full(DIM, np.nan)])
    assert store.vectors.put(space, [digest("one"), digest("two"), digest("three")], rows) == [0, 2]
    assert [row.text for row in store.notes.passages(c for c, _ in store.vectors.knn(space, vector("q"), 5))] == ["two"]


def test_a_known_text_keeps_its_first_vector(store: Store) -> None:
    space = filled(store, note("a.md", "one"))
    assert store.cache.put("f1", [digest("one")], np.array([vector("other")]))[0] == 0
    filled(store, note("b.md", "one"))
    scores = [score for _, score in store.vectors.knn(space, vector("one"), 5)]
    assert scores == pytest.approx([1.0, 1.0], abs=1e-2)


def test_missing_is_newest_first_each_text_once_and_keeps_private_notes_back(store: Store) -> None:
    space = store.vectors.ensure_space("model", "m1", DIM, "model").id
    store.apply(
        Batch(
            put=[
                note("old.md", "old", "both", mtime=1),
                note("new.md", "new", "both", mtime=3),
                note("mine.md", "secret", mtime=2, local_only=True),
            ]
        )
    )
    assert [job.passage.text for job in store.vectors.missing(space, 10, local=True)] == [
        "new",
        "both",
        "secret",
        "old",
    ]
    assert [job.passage.text for job in store.vectors.missing(space, 10, local=False)] == ["new", "both", "old"]
    assert store.vectors.count_missing(space, local=False) == 4
    assert store.counts().held_back == 1
    store.apply(Batch(put=[note("copy.md", "secret", mtime=4)]))
    assert "secret" not in [job.passage.text for job in store.vectors.missing(space, 10, local=False)]


def test_failures_are_counted_shown_and_forgiven(store: Store) -> None:
    space = store.vectors.ensure_space("model", "m1", DIM, "model").id
    store.apply(Batch(put=[note("a.md", "one", "two")]))
    for _ in range(MAX_TRIES):
        assert len(store.vectors.missing(space, 9, local=True)) == 2
        store.vectors.fail("m1", [(digest("two"), "too long")])
    assert [job.passage.text for job in store.vectors.missing(space, 9, local=True)] == ["one"]
    assert store.counts().failed == 1
    assert [(one.path, one.line, one.reason) for one in store.problems()] == [("a.md", 2, "no vector: too long")]
    store.vectors.forgive("m1")
    assert store.problems() == [] and len(store.vectors.missing(space, 9, local=True)) == 2
    store.vectors.fail("m1", [(digest("one"), NOT_READ)], permanent=True)
    assert store.problems() == [] and (store.counts().failed, store.counts().not_read) == (0, 1)
    assert [job.passage.text for job in store.vectors.missing(space, 9, local=True)] == ["two"]


def test_a_new_model_is_built_beside_the_old_one_and_the_way_back_costs_nothing(store: Store) -> None:
    store.apply(Batch(put=[note("a.md", "one", "two")]))
    old = store.vectors.ensure_space("old", "m1", DIM, "model")
    store.vectors.put(old.id, [digest("one"), digest("two")], np.array([vector("one"), vector("two")]))
    store.vectors.activate(old.id)
    new = store.vectors.ensure_space("new", "m2", 32, "model")
    store.vectors.put(new.id, [digest("one")], np.array([vector("one", 32)]))
    assert {space.fingerprint: (space.state, space.coverage) for space in store.vectors.spaces()} == {
        "m1": ("active", 1.0),
        "m2": ("building", 0.5),
    }
    store.vectors.put(new.id, [digest("two")], np.array([vector("two", 32)]))
    store.vectors.activate(new.id)
    assert [space.fingerprint for space in store.vectors.spaces()] == ["m2"]
    back = store.vectors.ensure_space("old", "m1", DIM, "model")
    assert back.id != old.id and store.vectors.count_missing(back.id, local=True) == 0


def test_vectors_are_shared_between_vaults(store: Store, tmp_path: Path) -> None:
    filled(store, note("a.md", "one"))
    other = Store(tmp_path / "other.db", tmp_path / "embeddings.db")
    space = other.vectors.ensure_space("table", "f1", DIM, "table").id
    other.apply(Batch(put=[note("b.md", "one")]))
    assert other.vectors.count_missing(space, local=True) == 0
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
        codes = Codes(64)
        codes.add(numbers, numbers, pack(vectors))

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
    codes = Codes(64)
    codes.add(numbers, numbers, pack(vectors))
    query = vectors[140_000]
    assert codes.search(query, 20)[0][0] == 140_000
    codes.remove(numbers[:100_000])
    assert len(codes) == 50_000 and codes.search(query, 20)[0][0] == 140_000
    everything = _nearest(codes._view, pack(query.reshape(1, -1)), 300, None)
    distance = np.bitwise_count(pack(vectors[100_000:]) ^ pack(query.reshape(1, -1))).sum(axis=1)
    assert sorted(distance[everything]) == sorted(distance)[:300]
