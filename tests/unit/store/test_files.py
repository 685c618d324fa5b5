"""The store's files: damaged, busy, full, of another format; and their upkeep."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tarsd.errors import DiskFull, StoreError
from tarsd.store import Batch, Store, schema
from tarsd.vault import Skipped
from tests.support.index_dump import dump
from tests.support.stored import WEIGHTS, digest, filled, found, note, vector


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
    assert ("rebuilt" in store.database.notice) == ((name, damage) != ("embeddings.db", "empty"))
    assert (tmp_path / f"{name}.corrupt-1").exists() == (damage != "empty")
    if name == "index.db":
        assert store.notes.rows() == {}
        filled(store, note("a.md", "alive"))
        assert found(store, "alive") == ["a.md"]
        assert store.cache.known("f1", [digest("text 3 " * 200)])
    else:
        assert len(store.notes.rows()) == 50
        store.check()
        space = store.vectors.space_for("f1")
        assert space is not None and space.vectors == 0
        assert store.vectors.count_missing(space.id, local=True) == 50
    store.close()


def test_damage_met_while_running_is_told_and_mended(tmp_path: Path) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    filled(store, *(note(f"{i}.md", f"text {i} " * 200) for i in range(50)))
    store.close()
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    told: list[bool] = []
    store.database.on_damage = lambda: told.append(True)
    garble(tmp_path / "index.db")
    with pytest.raises(StoreError, match="damaged"):
        for _ in range(3):
            dump(store)
            store.database.reopen() if not store.database.damaged else None
    store.database.reopen()
    assert not store.database.damaged and store.notes.rows() == {}
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
    assert [opened_store.database.notice for opened_store in opened] == [""] * 4
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
    assert "format" in other.database.notice and other.notes.rows() == {}
    assert other.cache.known("f1", [digest("one")])
    other.close()


def test_an_index_made_with_the_other_kind_of_codes_is_rebuilt(tmp_path: Path) -> None:
    for use_vec, rows in ((True, 0), (True, 1), (False, 0), (False, 1), (True, 0)):
        store = Store(tmp_path / "index.db", tmp_path / "embeddings.db", use_vec=use_vec)
        assert store.database.vec0 == use_vec and len(store.notes.rows()) == rows
        space = filled(store, note("a.md", "one"))
        assert len(store.vectors.knn(space, vector("q"), 3)) == 1
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
    before = dump(store)
    pages = store.database._db.execute("PRAGMA page_count").get
    store.database._db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall()
    big = note("b.md", *(f"long text {i} " * 50 for i in range(200)))
    with pytest.raises(DiskFull):
        store.apply(Batch(put=[big]))
    assert dump(store) == before
    store.database._db.execute("PRAGMA max_page_count = 1000000").fetchall()
    store.apply(Batch(put=[big]))
    assert len(store.notes.rows()) == 2


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    store.close()
    with pytest.raises(StoreError):
        store.notes.rows()
    with pytest.raises(StoreError):
        store.apply(Batch(put=[note("a.md", "one")]))


# Upkeep


def test_a_whole_index_needs_no_repair(store: Store) -> None:
    filled(store, note("a.md", "one", "two", linked=[("b", "bee")]), note("b.md", "three"))
    before = dump(store)
    assert store.check() == []
    store.maintain()
    assert dump(store) == before


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
    before = dump(store)
    store.vectors.warm(space)
    store.database._db.execute(loss)
    store.database.reopen()
    assert len(store.check()) == 1
    assert dump(store) == before
    assert store.check() == []


def test_a_note_without_passages_is_read_again(store: Store) -> None:
    filled(store, note("a.md", "one"), note("b.md", "two"))
    store.database._db.execute("DELETE FROM chunks WHERE file_id = (SELECT id FROM files WHERE path = 'a.md')")
    assert store.check()
    assert store.notes.rows()["", "a.md"].hash == ""
    assert store.notes.rows()["", "b.md"].hash != ""


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
    store.notes.set_skipped(rows)
    generation = store.database.generation
    store.notes.set_skipped(rows)
    assert store.notes.skipped() == rows and store.database.generation == generation
    assert store.counts().states == {"conflict": 1}


def test_remembered_values_survive(store: Store) -> None:
    store.database.set_meta("x", 1)
    store.database.set_meta("x", "two")
    assert store.database.meta("x") == "two" and store.database.meta("y") is None


def test_properties_and_problems_come_back_as_they_went_in(store: Store) -> None:
    one = note("a.md", "one")
    object.__setattr__(one, "properties", json.dumps({"status": "open"}))
    object.__setattr__(one, "problems", ((3, "broken", "mend it"),))
    store.apply(Batch(put=[one, note("b.md", "two")]))
    row = store.notes.note(("", "a.md"))
    assert row is not None
    assert store.notes.properties() == {row.id: {"status": "open"}} == store.notes.properties([row.id])
    assert [(p.path, p.line, p.reason, p.hint) for p in store.problems()] == [("a.md", 3, "broken", "mend it")]


def test_the_tables_are_made_once_and_files_are_private(store: Store, tmp_path: Path) -> None:
    assert (tmp_path / "index.db").stat().st_mode & 0o077 == 0
    assert "CREATE TABLE IF NOT EXISTS" not in schema.INDEX.sql + schema.EMBEDDINGS.sql


def test_all_names_are_found_at_the_first_chunk_and_some_at_every_one(store: Store) -> None:
    tags, aliases = [f"tag{i}" for i in range(500)], [f"alias{i}" for i in range(500)]
    filled(store, note("a.md", "one", "two", "three", tags=tags, aliases=aliases, words="prop"))
    filled(store, note("b.md", "four", linked=[("a", "shown")]))

    def seqs(word: str) -> list[int]:
        return sorted(
            hit.seq for hit in store.notes.passages(chunk for chunk, _ in store.search.fts(word, WEIGHTS, 99))
        )

    def check() -> None:
        assert seqs("tag0") == seqs("alias0") == seqs("tag63") == seqs("alias31") == [0, 1, 2]
        assert seqs("tag64") == seqs("tag499") == seqs("alias32") == seqs("alias499") == [0]
        assert seqs("shown") == seqs("prop") == [0]

    check()  # the row of the first chunk was written again, for what b.md calls it
    before = dump(store)
    store.search.rebuild()
    assert dump(store) == before
    with store.database.write() as db:
        db.execute("DELETE FROM fts")
    assert store.check() == ["The keyword index was wrong: 4 passages added, 0 removed."]
    assert dump(store) == before
    check()


def test_one_name_without_end_is_not_repeated_in_full(store: Store) -> None:
    tags = ["x" * 100 + f" y{'z' * 200} end", *(f"{'w' * 100}{i}" for i in range(20))]
    filled(store, note("a.md", "one", "two", tags=tags))
    assert len(store.search.fts("end", WEIGHTS, 9)) == len(store.search.fts(f"{'w' * 100}19", WEIGHTS, 9)) == 1
    assert len(store.search.fts("x" * 100, WEIGHTS, 9)) == 2


def test_a_keyword_index_of_another_version_is_made_anew_and_nothing_else(store: Store, tmp_path: Path) -> None:
    assert store.check() == []
    space = filled(store, note("a.md", "one", "two", tags=["t"]))
    before = dump(store)
    with store.database.write() as db:  # as an index of before this number
        db.execute("DELETE FROM meta WHERE key = 'keywords'")
        db.execute("INSERT INTO fts(fts) VALUES ('delete-all')")
        db.executemany("INSERT INTO fts(rowid, tags) SELECT id, 'other' FROM chunks WHERE ?", [(1,)])
    store.close()
    other = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    assert other.database.notice == ""
    (said,) = other.check()
    assert "another version" in said and other.check() == []
    assert dump(other) == before and other.cache.known("f1", [digest("one")])
    assert len(other.vectors.knn(space, vector("one"), 3)) == 2
    other.close()


def test_an_index_of_the_format_before_is_rebuilt_and_its_vectors_are_kept(tmp_path: Path, store: Store) -> None:
    filled(store, note("a.md", "one"))
    store.close()
    db = apsw.Connection(str(tmp_path / "index.db"))
    db.execute(f"DROP TABLE facts; DROP TABLE tasks; PRAGMA user_version = {schema.INDEX.format - 1}")
    db.close()
    other = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    assert "another format and is rebuilt" in other.database.notice and not other.notes.rows()
    assert other.cache.known("f1", [digest("one")])
    other.apply(Batch(put=[note("a.md", "one")]))
    assert len(other.notes.rows()) == 1
    other.close()
