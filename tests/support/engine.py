"""The engine in this process, for tests: a vault, its index, search and watch, with a fake model that counts."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from tarsd import embed
from tarsd.app import Application
from tarsd.app.assistant import Assistant
from tarsd.app.indexing import Indexing
from tarsd.config import Config, WatchSettings, load
from tarsd.embed.base import Embedder
from tarsd.embed.fake import FakeEmbedder
from tarsd.index import Indexer, Report
from tarsd.notes import NoteLibrary
from tarsd.passage import Passage
from tarsd.search import Mode, Results
from tarsd.store import FileRow, Key, LinkRow, ProblemRow, Space, Store
from tarsd.vault import Skipped, Vault
from tarsd.watch import Watcher

LONG = 60.0
"""Seconds after which something that should happen has not happened."""

FAST = WatchSettings(debounce_s=0.05, max_wait_s=0.5, reconcile_s=3600, poll_s=0.1, grace_empty_s=0.3)


NOTES = {
    "harbour.md": "# Harbour\n\nThe harbour light is oiled on Fridays.\n",
    "rope.md": "# Rope\n\nA bowline holds the dinghy.\n",
    "tea.md": "# Tea\n\nSencha is steeped at seventy degrees.\n",
}


def until(condition: Callable[[], object], what: object = "") -> None:
    """Wait until the condition holds; it is asked again and again, less often the longer it takes."""
    begun = time.monotonic()
    while not condition():
        waited = time.monotonic() - begun
        assert waited < LONG, what() if callable(what) else what
        time.sleep(min(0.01 + waited / 20, 0.1))


def write(root: Path, path: str, text: str | bytes) -> Path:
    """A file with its folders."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode() if isinstance(text, str) else text)
    return target


def fill(root: Path, count: int = 0) -> None:
    """Some notes, and `count` more of one passage each."""
    for path, text in NOTES.items():
        write(root, path, text)
    for number in range(count):
        write(root, f"more/n{number}.md", f"Entry {number}: item {number * 7919 % 1000} of the ledger\n")


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder by its path: bytes and time."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def embed_all(indexer: Indexer) -> int:
    """Everything that wants a vector gets it, if the model delivers; how many vectors that made."""

    def cached() -> int:
        with indexer.store.database.reader() as db:
            return int(db.execute("SELECT count(*) FROM emb.vectors").get)

    before = cached()
    indexer.background.drain(lambda: False)
    return cached() - before


class KnownPrivate(Assistant):
    """An assistant whose conversations' logs name these notes as private."""

    private: frozenset[str] = frozenset()

    def private_paths(self) -> frozenset[str]:
        return self.private


class Engine:
    """`with Engine(tmp, copy_of=folder) as engine`: the daemon's own parts without a process, stepped through by hand.

    Settings that differ from the default come as sections: `chunk=ChunkSettings(tokens=100)`. `model` is any embedder,
    or None for none; `indexer` and `store` make these parts, as `partial(Indexer, few=3)` does.
    """

    def __init__(
        self,
        tmp: Path,
        copy_of: Path | None = None,
        *,
        model: Embedder | bool | None = True,
        table: Embedder | None = None,
        processes: int = 2,
        indexer: Callable[..., Indexer] = Indexer,
        store: Callable[..., Store] = Store,
        **config: Any,
    ) -> None:
        self.vault = tmp / "v"
        self._home = tmp / "h"
        if copy_of is not None and not self.vault.exists():
            shutil.copytree(copy_of, self.vault)
        (self.vault / ".obsidian").mkdir(parents=True, exist_ok=True)
        self.model: FakeEmbedder = FakeEmbedder()
        self._embedder: Embedder | None = self.model if model is True else model or None
        if isinstance(self._embedder, FakeEmbedder):
            self.model = self._embedder
        self._table = table
        self._parts: dict[str, Any] = {"indexer": partial(indexer, processes=processes), "store": store}
        self._sections = config
        self._before = contents(self.vault)
        self._open = False

    # Life

    def __enter__(self) -> Self:
        if not self._open:
            self._build()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _build(self, **watcher: Any) -> None:
        env = {"TARSD_HOME": str(self._home), "TARSD_EMBEDDING": "fake", "TARSD_CHAT": "extractive"}
        self.config: Config = replace(load(vault=self.vault, env=env), **{"watch": FAST} | self._sections)
        table = self._table or embed.make(replace(self.config.embedding, model="table"))
        self.events: list[dict[str, Any]] = []
        self.progress: list[tuple[int, int, str]] = []
        self.reports: list[Report] = []
        """Of the passes that the daemon's own workers made."""
        parts: Callable[..., Indexing] = partial(
            Indexing,
            embedders=[table] if self._embedder is None else [table, self._embedder],
            in_background=False,
            watcher=partial(Watcher, **watcher),
            on_event=self._heard,
            pause_s=0.1,
            **self._parts,
        )
        self.app = Application(self.config, lambda: None, indexing=parts, assistant=KnownPrivate)
        self.indexing = self.app.indexing
        self.indexing.open()
        assert self.indexing.store is not None and self.indexing.indexer is not None
        self.store, self.indexer, self.searcher = self.indexing.store, self.indexing.indexer, self.indexing.searcher()
        self._open = True

    def _heard(self, event: dict[str, Any]) -> None:
        if event["type"] == "passed":
            self.reports.append(event["report"])
        else:
            self.events.append(event)

    def stop(self) -> None:
        """As a proper end of the daemon."""
        if self._open:
            self.app.close()
            self._open = False

    def restart(
        self, model: Embedder | None = None, *, before: Callable[[Path], object] | None = None, **config: Any
    ) -> None:
        """Stop, let `before` have the closed index, start with another model or settings if any are given."""
        path = self.config.paths.index_db
        self.stop()
        if before is not None:
            before(path)
        if model is not None:
            self._embedder = model
        if isinstance(model, FakeEmbedder):
            self.model = model
        self._sections |= config
        self._build()

    def move_vault(self, to: Path) -> None:
        """The same notes under another path, with the same home."""
        self.stop()
        shutil.copytree(self.vault, to)
        self.vault = to
        self._build()

    # Indexing

    def reconcile(self, paths: Iterable[str] | None = None, *, full: bool = False, force: bool = False) -> Report:
        """One pass."""
        return self.indexer.reconcile(paths, full=full, force=force, progress=lambda *step: self.progress.append(step))

    def embed(self) -> int:
        """Everything that wants a vector gets it, if the model delivers."""
        return embed_all(self.indexer)

    def index(self) -> Report:
        """A pass and all vectors."""
        report = self.reconcile()
        self.embed()
        return report

    def embed_in_background(self) -> None:
        """As the daemon does it, in a thread."""
        self.indexing.embed()

    def watch(self, **stand_ins: Any) -> None:
        """Watch as the daemon does, with `Watcher`'s stand-ins if any are given; waits for the first pass."""
        if stand_ins:
            self.stop()
            self._build(**stand_ins)
        self.app.start()
        until(lambda: self.reports)

    @property
    def watcher(self) -> Watcher:
        """What watches the vault."""
        return self.indexing._watchers[""]

    @property
    def vaults(self) -> Mapping[str, Vault]:
        """The vault and its collections."""
        return self.indexing.vaults

    @property
    def library(self) -> NoteLibrary:
        """The notes as readers get them."""
        return self.app.library

    def keep_private(self, *paths: str) -> None:
        """From here on the conversations' logs say that these notes are private."""
        assert isinstance(self.app.assistant, KnownPrivate)
        self.app.assistant.private = frozenset(paths)

    @property
    def trouble(self) -> str:
        """What keeps the workers from their work."""
        return " ".join(reason for reason, _ in self.indexing.problems())

    def quiet(self) -> int:
        """The number of passes, once no more of them come."""
        workers = (self.indexing._long, self.indexing._short)
        while True:
            count = len(self.reports)
            end = time.monotonic() + 5 * self.config.watch.debounce_s + 0.2
            while time.monotonic() < end and len(self.reports) == count:
                time.sleep(0.01)
            if len(self.reports) == count and not any(worker.busy or worker.waiting for worker in workers):
                return count

    # What is known

    def answer(self, query: str, mode: Mode = "hybrid", limit: int = 20, **more: Any) -> Results:
        """A search with all it says."""
        return self.searcher.search(query, mode, limit, **more)

    def search(self, query: str, mode: Mode = "hybrid", limit: int = 20) -> Sequence[Passage]:
        """The hits of a search."""
        return self.answer(query, mode, limit).hits

    def found(self, query: str, mode: Mode = "fts") -> list[str]:
        """The notes that a search gives, best first, each once."""
        return list(dict.fromkeys(hit.path for hit in self.search(query, mode)))

    def rows(self) -> dict[str, FileRow]:
        """The known notes of the vault by path."""
        return {row.path: row for key, row in self.store.notes.rows().items() if not key[0]}

    def paths(self) -> list[str]:
        """The known notes of the vault."""
        return sorted(self.rows())

    def problems(self) -> list[ProblemRow]:
        """What is wrong with single notes."""
        return self.store.problems()

    def skipped(self) -> list[Skipped]:
        """What was left out, and why."""
        return self.store.notes.skipped()

    def links(self, path: str) -> list[LinkRow]:
        """The links of a note, resolved."""
        return self.store.notes.links_from(self.rows()[path].id)

    def space(self) -> Space:
        """The model's space."""
        assert self._embedder is not None
        found = self.store.vectors.space_for(self._embedder.fingerprint)
        assert found is not None
        return found

    def status(self) -> dict[str, Any]:
        """What GET /v1/status says."""
        return self.app.status()

    def assert_vault_unchanged(self) -> None:
        """No byte and no time of the vault was touched since the engine was made."""
        assert contents(self.vault) == self._before


def forget_time(path: Path, seconds: float = 100.0) -> None:
    """Set a file's time back, so that nothing about it counts as new."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def key(path: str) -> Key:
    """The key of a note of the vault."""
    return ("", path)
