"""The engine in this process, for tests: a vault, its index, search and watch, with a fake model that counts."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from tarsd import embed
from tarsd.app import status
from tarsd.config import Config, WatchSettings, load
from tarsd.embed.base import Embedder
from tarsd.embed.fake import FakeEmbedder
from tarsd.index import Indexer, Report
from tarsd.index.worker import IndexJob, Worker
from tarsd.passage import Passage
from tarsd.search import Mode, Results, Searcher
from tarsd.store import FileRow, Key, LinkRow, ProblemRow, Space, Store
from tarsd.vault import Skipped, Vault
from tarsd.watch import Watcher

LONG = 60.0
"""Seconds after which something that should happen has not happened."""

FAST = WatchSettings(debounce_s=0.05, max_wait_s=0.5, reconcile_s=3600, poll_s=0.1, grace_empty_s=0.3)


def until(condition: Callable[[], object], what: object = "") -> None:
    """Wait until the condition holds; it is asked again and again."""
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.01)


def write(root: Path, path: str, text: str | bytes) -> Path:
    """A file with its folders."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode() if isinstance(text, str) else text)
    return target


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


class Engine:
    """`with Engine(tmp, copy_of=folder) as engine`: built as the daemon builds it, and stepped through by hand.

    Settings that differ from the default come as sections: `chunk=ChunkSettings(tokens=100)`. `model` is any embedder,
    or None for none.
    """

    def __init__(
        self,
        tmp: Path,
        copy_of: Path | None = None,
        *,
        model: Embedder | bool | None = True,
        table: Embedder | None = None,
        processes: int = 2,
        busy: Callable[[], bool] = lambda: False,
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
        self._processes = processes
        self._busy = busy
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

    def _build(self) -> None:
        env = {"TARSD_HOME": str(self._home), "TARSD_EMBEDDING": "fake"}
        sections = {"watch": FAST} | self._sections
        self.config: Config = dataclasses.replace(load(vault=self.vault, env=env), **sections)
        self.vaults = [Vault(self.config.vault, "", self.config.exclude)]
        self.store = Store(self.config.paths.index_db, self.config.paths.embeddings_db)
        table = self._table
        if table is None:
            table = embed.make(dataclasses.replace(self.config.embedding, model="table"))
        self.events: list[dict[str, Any]] = []
        self.progress: list[tuple[int, int, str]] = []
        self.searcher = Searcher(self.store, self.config.search, table, self._embedder)
        self.indexer = Indexer(
            self.config,
            self.vaults,
            self.store,
            table,
            self._embedder,
            self.events.append,
            busy=self._busy,
            processes=self._processes,
        )
        self.watcher: Watcher | None = None
        self.reports: list[Report] = []
        self._workers: list[Worker[Report]] = []
        self._stop = threading.Event()
        self._embedding: threading.Thread | None = None
        self._open = True

    def stop(self) -> None:
        """As a proper end of the daemon."""
        if not self._open:
            return
        self._stop.set()
        if self.watcher is not None:
            self.watcher.stop()
        for worker in self._workers:
            worker.stop(LONG)
        self.indexer.close()
        if self._embedding is not None:
            self._embedding.join(LONG)
        self.store.close()
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
        return self.indexer.reconcile(
            paths, full=full, force=force, progress=lambda *step: self.progress.append(step)
        )

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
        self._embedding = threading.Thread(target=self.indexer.background.run, args=(self._stop.is_set,), daemon=True)
        self._embedding.start()

    def watch(self, **stand_ins: Any) -> Watcher:
        """Watch as the daemon does: one worker for everything, one for single notes; waits for the first pass."""
        long: Worker[Report] = Worker("test-long", lambda: None, self._work, first_pause_s=0.1)
        short: Worker[Report] = Worker("test-short", lambda: None, self._work, first_pause_s=0.1)

        def changed(paths: set[str] | None) -> None:
            if paths is None:
                long.look({("", "")}, hurry=True)
            else:
                short.look(("", path) for path in paths)

        self._workers = [long, short]
        self.watcher = Watcher(self.vaults[0], self.config.watch, changed, **stand_ins)
        for worker in self._workers:
            worker.start()
        self.watcher.start()
        until(lambda: self.reports)
        return self.watcher

    def _work(self, job: IndexJob[Report]) -> Report:
        report = self.indexer.reconcile(job.paths, full=job.full)
        self.reports.append(report)
        if report.again_s is not None and self.watcher is not None:
            paths = None if job.paths is None or ("", "") in job.paths else [path for _, path in job.paths]
            self.watcher.look(paths, report.again_s)
        return report

    @property
    def trouble(self) -> str:
        """What keeps the workers from their work."""
        return " ".join(worker.trouble.message for worker in self._workers if worker.trouble is not None)

    def quiet(self) -> int:
        """The number of passes, once no more of them come."""
        while True:
            count = len(self.reports)
            end = time.monotonic() + 5 * self.config.watch.debounce_s + 0.2
            while time.monotonic() < end and len(self.reports) == count:
                time.sleep(0.01)
            if len(self.reports) == count and not any(one.busy or one.waiting for one in self._workers):
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
        """What GET /v1/status says of files, vectors and problems."""
        state, vectors, counts = self.indexer.state, self.indexer.background.status(), self.store.counts()
        general = [(one.reason, one.hint) for one in (state, vectors) if one.reason]
        general += [(sentence, "") for sentence in self.indexer.repaired]
        watched = {"": self.watcher.state} if self.watcher is not None else {}
        return {
            "state": state.name,
            "watch": status.watching(watched),
            "counts": status.counted(counts, self.skipped(), self.indexer.behind),
            "embedding": status.embedding(vectors, self.config.embedding.model, counts),
            "problems": status.problems(general, watched, self.problems(), self.skipped()),
        }

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
