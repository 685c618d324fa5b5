"""What the tests of index share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarsd.config import WatchSettings, load
from tarsd.embed.base import Embedder
from tarsd.embed.fake import FakeEmbedder
from tarsd.index import Indexer, Report
from tarsd.store import FileRow, Key, Store
from tarsd.vault import FileInfo, Vault

WEIGHTS = (1.0,) * 6


class Bench:
    """A vault, its store and its indexer, with the fake embedder as the table."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root, self.home = root, home
        self.config = replace(load(vault=root), watch=WatchSettings(grace_empty_s=0.0))
        self.table = FakeEmbedder(32, name="table")
        self.model: Embedder | None = None
        self.events: list[dict[str, Any]] = []
        self.open()

    def open(self, **changes: Any) -> None:
        """(Re)start, with changes to the configuration."""
        self.config = replace(self.config, **changes)
        self.store = Store(self.home / "index.db", self.home / "embeddings.db")
        vaults = [Vault(self.root, exclude=self.config.exclude)]
        vaults += [Vault(one.root, one.name) for one in self.config.collections]
        self.indexer = Indexer(self.config, vaults, self.store, self.table, self.model, self.events.append)

    def close(self) -> None:
        self.indexer.close()
        self.store.close()

    def restart(self, **changes: Any) -> None:
        self.close()
        self.open(**changes)

    def write(self, path: str, text: str | bytes, *, age: float = 10.0, root: Path | None = None) -> Path:
        """A note that was last changed `age` seconds ago."""
        file = (root or self.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        when = time.time_ns() - int(age * 1e9) + 1
        os.utime(file, ns=(when, when))
        return file

    def run(self, *paths: str | Key, **options: Any) -> Report:
        return self.indexer.reconcile(paths or None, **options)

    @property
    def state(self) -> str:
        return self.indexer.state.name

    def paths(self) -> list[str]:
        return sorted(path for _, path in self.store.notes.rows())

    def find(self, word: str) -> list[str]:
        return sorted(
            hit.note.path for hit in self.store.notes.passages(c for c, _ in self.store.search.fts(word, WEIGHTS, 99))
        )

    def coverage(self, fingerprint: str) -> float:
        space = self.store.vectors.space_for(fingerprint)
        return space.coverage if space is not None else -1.0


@pytest.fixture
def bench(vault: Path, home: Path) -> Iterator[Bench]:
    one = Bench(vault, home)
    yield one
    one.close()


def info(path: str, size: int = 10, mtime: int = 100) -> FileInfo:
    return FileInfo("", path, f"/v/{path}", size, mtime, "note")


def row(path: str, size: int = 10, mtime: int = 100, state: str = "ok") -> FileRow:
    return FileRow("", path, f"/v/{path}", size, mtime, 1, "h", "c", state)
