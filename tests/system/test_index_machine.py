"""Any sequence of changes, crashes and restarts, and then one pass: the index is what a fresh build would be."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tarsd.children import Pool, resolve
from tarsd.config import Config, PrivacySettings, WatchSettings, load
from tarsd.embed.fake import FakeEmbedder
from tarsd.index import Indexer
from tarsd.store import Store
from tarsd.store.database import Database
from tarsd.vault import Vault
from tests.support.engine import embed_all
from tests.support.index_dump import Dump, dump

NAMES = ["a.md", "b.md", "B.md", "Ä.md", "x/a.md", "x/b.md", "x/y/c.md", "z/a.md", "board.canvas"]
FOLDERS = ["x", "x/y", "z", "new"]
PIECES = [
    "",
    "# Head\n",
    "plain words\n",
    "other words\n",
    "[[a]] and [[b|the second]]\n",
    "[[x/a|path link]] ![[c]] [md](../a.md)\n",
    "[[ä|umlaut]] [[nick|by its name]]\n",
    "#tag/deep %% hidden %%\n",
    "\n---\n\nmore text after a rule\n",
]
FRONTS = ["", "---\naliases: [nick]\n---\n", "---\ntitle: Named\ntags: [one, private]\n---\n", "---\nbroken: [\n---\n"]

paths = st.sampled_from(NAMES)
texts = st.tuples(st.sampled_from(FRONTS), st.lists(st.sampled_from(PIECES), max_size=4)).map(
    lambda pair: pair[0] + "".join(pair[1])
)


class Crash(BaseException):
    """The process ends here."""


class CrashingDatabase(Database):
    """Ends at the n-th transaction, right before or right after its commit."""

    left = -1
    after = False

    @contextlib.contextmanager
    def _transaction(self, db: apsw.Connection) -> Iterator[apsw.Connection]:
        self.left -= 1
        with super()._transaction(db) as inner:
            yield inner
            if self.left == 0 and not self.after:
                raise Crash
        if self.left == 0 and self.after:
            raise Crash


class Machine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
        self.vault = self.home / "vault"
        (self.vault / ".obsidian").mkdir(parents=True)
        (self.vault / "keep.md").write_text("always here [[a]] [[c|see]]")
        config = load(vault=self.vault, env={"TARSD_HOME": str(self.home), "HOME": str(self.home)})
        self.config: Config = replace(
            config, watch=WatchSettings(grace_empty_s=0.0), privacy=PrivacySettings(("z/", "#private"))
        )
        self.builds = 0
        self.touched: set[str] = set()
        self.open()

    def made(self, name: str) -> tuple[Store, Indexer]:
        store = Store(self.home / name, self.home / "embeddings.db")
        model = FakeEmbedder(16)
        model.local = False
        table, vaults = FakeEmbedder(24, name="table"), [Vault(self.vault)]
        # few notes already count as many here, so that late settling and several transactions take part
        return store, Indexer(self.config, vaults, store, table, model, few=3, group_notes=2)

    def open(self) -> None:
        self.store, self.indexer = self.made("index.db")
        assert isinstance(self.store.database, CrashingDatabase)
        self.crashing = self.store.database

    def teardown(self) -> None:
        if hasattr(self, "home"):
            self.indexer.close()
            self.store.close()
            shutil.rmtree(self.home)

    def contents(self) -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in self.vault.rglob("*") if file.is_file()}

    def saw(self, *names: str) -> None:
        self.touched.update(names)

    @rule(path=paths, text=texts)
    def write(self, path: str, text: str) -> None:
        file = self.vault / path
        if not any(parent.is_file() for parent in file.parents):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            self.saw(path)

    @rule(path=paths)
    def delete(self, path: str) -> None:
        (self.vault / path).unlink(missing_ok=True)
        self.saw(path)

    @rule(old=paths, new=paths)
    def rename(self, old: str, new: str) -> None:
        source, target = self.vault / old, self.vault / new
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            self.saw(old, new)

    @rule(old=st.sampled_from(FOLDERS), new=st.sampled_from(FOLDERS))
    def move_folder(self, old: str, new: str) -> None:
        source, target = self.vault / old, self.vault / new
        if source.is_dir() and not target.exists() and source not in target.parents:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            self.saw(old, new)

    @rule(path=paths)
    def touch(self, path: str) -> None:
        if (self.vault / path).is_file():
            os.utime(self.vault / path, ns=(0, time.time_ns() - 10**10))
            self.saw(path)

    @rule()
    def look_where_it_happened(self) -> None:
        if self.touched:
            self.indexer.reconcile(sorted(self.touched))
            self.touched.clear()

    @rule(when=st.integers(1, 12), after=st.booleans(), embed=st.booleans())
    def crash(self, when: int, after: bool, embed: bool) -> None:
        self.crashing.left, self.crashing.after = when, after
        try:
            self.indexer.reconcile()
            if embed:
                embed_all(self.indexer)
        except Crash:
            self.indexer.close()
            self.store.close()
            self.open()
        self.crashing.left = -1

    @rule()
    def embed(self) -> None:
        embed_all(self.indexer)

    @rule(query=st.sampled_from(["words", "second", "umlaut"]))
    def warm(self, query: str) -> None:
        for space in self.store.vectors.spaces():
            self.store.vectors.warm(space.id)
        self.store.search.fts(query, (1.0,) * 6, 5)
        self.store.notes.titles()

    @rule()
    def restart(self) -> None:
        self.indexer.close()
        self.store.close()
        self.open()

    @rule()
    def compare(self) -> None:
        before = self.contents()
        self.indexer.reconcile()
        embed_all(self.indexer)
        self.touched.clear()
        assert self.contents() == before
        assert self.indexer.behind == 0 and self.indexer.state.name == "ready"
        assert self.store.check() == []
        mine, fresh = dump(self.store), self.fresh()
        for part in ("files", "chunks", "links", "keywords", "vectors"):
            assert getattr(mine, part) == getattr(fresh, part), part
        stored = {row.key: row for row in self.store.notes.titles()}
        assert {key: self.store.notes.note(key) for key in stored} == stored
        assert stored.keys() == self.store.notes.rows().keys()

    def fresh(self) -> Dump:
        self.builds += 1
        store, build = self.made(f"fresh{self.builds}.db")
        build.reconcile()
        embed_all(build)
        found = dump(store)
        build.close()
        store.close()
        return found

    @invariant()
    def nothing_is_damaged(self) -> None:
        if hasattr(self, "store"):
            assert not self.store.database.damaged


def test_the_index_is_always_what_a_fresh_build_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsd.store.store.Database", CrashingDatabase)
    monkeypatch.setattr(Pool, "submit", _here)
    machine = Machine.TestCase
    machine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
    machine().runTest()


def _here(self: object, name: str, *arguments: object) -> object:
    future: Future[object] = Future()
    future.set_result(resolve(name)(*arguments))
    return future
