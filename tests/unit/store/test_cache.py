"""What the cache of vectors keeps, and for how long."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import numpy as np
import pytest

from tarsd.store import Batch, Store, schema
from tests.support.stored import digest, note


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
        store.vectors.put(store.vectors.ensure_space("m", "m:1", 4, "model").id, [digest(name)], np.ones((1, 4)))
        made.append(store)
    return made[0], made[1]


def test_vectors_that_no_vault_uses_are_dropped_after_three_months(tmp_path: Path, days: Callable[[int], None]) -> None:
    one, two = two_vaults(tmp_path)
    one.apply(Batch(delete=[("", "one.md")]))
    for _ in range(9):
        days(10)
        two.cache.tidy()  # the other vault's daemon runs as well, and marks what it uses
        one.cache.tidy()
        assert cached(tmp_path / "embeddings.db") == 2, "it may come back"
    for _ in range(3):
        days(8)
        one.cache.tidy()
        two.cache.tidy()
    assert cached(tmp_path / "embeddings.db") == 1
    one.close()
    two.close()


@pytest.mark.parametrize("jump", [3650, -800, 100_000])
def test_a_wrong_clock_costs_no_vectors(tmp_path: Path, days: Callable[[int], None], jump: int) -> None:
    one, two = two_vaults(tmp_path)
    for _ in range(4):
        days(jump)
        one.cache.tidy()
        days(1)
        one.cache.tidy()
        days(-jump)
        one.cache.tidy()
        two.cache.tidy()
    for _ in range(20):
        days(7)
        one.cache.tidy()
        two.cache.tidy()
    assert cached(tmp_path / "embeddings.db") == 2
    one.close()
    two.close()


def test_a_daemon_that_does_not_know_these_days_yet_loses_nothing(tmp_path: Path, days: Callable[[int], None]) -> None:
    one, two = two_vaults(tmp_path)
    with contextlib.closing(apsw.Connection(str(tmp_path / "embeddings.db"))) as db:
        db.execute("INSERT INTO vectors(embedder, hash, vector) VALUES (1, x'00', x'0000')")
    one.cache.tidy()
    days(60)
    one.cache.tidy()
    assert cached(tmp_path / "embeddings.db") == 3
    one.close()
    two.close()


def test_a_cache_of_a_newer_format_is_put_aside_and_not_removed(tmp_path: Path) -> None:
    for store in two_vaults(tmp_path):
        store.close()
    with contextlib.closing(apsw.Connection(str(tmp_path / "embeddings.db"))) as db:
        db.execute("PRAGMA user_version = 99")
    store = Store(tmp_path / "one.db", tmp_path / "embeddings.db")
    assert "kept as embeddings.db.corrupt-1" in store.database.notice
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
    assert store.database.notice == ""
    store.close()
    with contextlib.closing(apsw.Connection(str(path))) as db:
        assert db.execute("SELECT used FROM vectors").get == 0


def test_another_format_of_the_index_embeds_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    store.apply(Batch(put=[note("One.md", "tea")]))
    space = store.vectors.ensure_space("m", "m:1", 4, "model")
    store.vectors.put(space.id, [digest("tea")], np.ones((1, 4)))
    store.close()
    monkeypatch.setattr(schema, "INDEX", schema.INDEX._replace(format=schema.INDEX.format + 1))
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    assert "another format" in store.database.notice
    assert store.counts().chunks == 0
    store.apply(Batch(put=[note("One.md", "tea")]))
    store.vectors.ensure_space("m", "m:1", 4, "model")
    assert [space.vectors for space in store.vectors.spaces()] == [1]
    store.close()
