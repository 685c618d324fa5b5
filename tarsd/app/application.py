"""Everything behind the routes. Built once, by hand, in `Application.__init__`; its methods are the use cases."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, TypeVar

import tarsd
from tarsd.app import status
from tarsd.app.assistant import Assistant
from tarsd.app.health import HealthCheck
from tarsd.app.indexing import Indexing
from tarsd.app.process import DaemonThreads, resident_mb
from tarsd.config import Config
from tarsd.embed.auto import advice
from tarsd.embed.base import Embedder
from tarsd.errors import StoreError
from tarsd.index.files import suffixes
from tarsd.notes import NoteLibrary, Reader
from tarsd.notes.digest import digest
from tarsd.passage import Key
from tarsd.protocol import (
    FEATURES,
    PROTOCOL,
    Audience,
    CheckRequest,
    DigestRequest,
    QueryRequest,
    ReindexRequest,
    RelatedRequest,
    SearchRequest,
    TasksRequest,
    VectorsRequest,
    WhyRequest,
    read_audience,
)
from tarsd.query import VaultQuery, task_query
from tarsd.store import ProblemRow
from tarsd.store.transfer import export_vectors, import_vectors
from tarsd.vault import Skipped, Vault, kind_of
from tarsd.why import why

THREADS, FEW_THREADS = 8, 3

Json = dict[str, Any]
T = TypeVar("T")


class Application:
    """The daemon's parts; `stop` is called when a client asks it to end, `http` tells how the TCP listener stands.

    `indexing` and `assistant` build these parts, as `Indexing` and `Assistant` do. `started`: when the daemon did, by
    the monotonic clock, if that was before.

    Methods that are not coroutines may block, and run in threads; all raise `TarsdError`.
    """

    def __init__(
        self,
        config: Config,
        stop: Callable[[], object],
        http: Callable[[], Json] = lambda: {"state": "off"},
        *,
        indexing: Callable[..., Indexing] = Indexing,
        assistant: Callable[..., Assistant] = Assistant,
        started: float | None = None,
    ) -> None:
        self.config = config
        self._stop = stop
        self._http = http
        self._started = time.monotonic() if started is None else started
        self._settings_problem = ("", "")
        self._pool = DaemonThreads(FEW_THREADS if config.performance.small else THREADS, "tarsd-request")
        others = suffixes(config.files.kinds)
        vaults = {"": Vault(config.vault, "", config.exclude, others=others)}
        vaults |= {
            collection.name: Vault(collection.root, collection.name, config.exclude, others=others)
            for collection in config.collections
        }
        self.indexing = indexing(
            config,
            vaults,
            busy=lambda: self._pool.busy,
            private_paths=lambda: self.assistant.private_paths(),
            remark=lambda: self.library.remark(),
        )
        self.library: NoteLibrary = NoteLibrary(
            self.indexing.searcher,
            vaults,
            config,
            behind=self.indexing.behind,
            notices=self.indexing.notices,
            away=self.indexing.away,
            private_paths=lambda: self.assistant.private_paths(),
            drew_on=lambda session: self.assistant.drew_on(session),
        )
        self.assistant: Assistant = assistant(config, self.library, self._pool, self.indexing.indexed)
        self.chat = self.assistant.chat

    # -------------------------------------------------------------------------------------------- life

    def start(self) -> None:
        """Begin to load and index; returns at once."""
        self.indexing.start()

    def close(self) -> None:
        """Stop all work within a few seconds; unfinished work is done at the next start."""
        self.indexing.close()
        self._pool.shutdown(wait=False)

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer, or for the end of a pass."""
        return self.chat.busy or self.indexing.busy

    async def requests_done(self, within_s: float) -> None:
        """Until no request is worked on in the threads, such as a search; not longer than `within_s` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._pool.busy:
                    await asyncio.sleep(0.02)

    def shutdown(self) -> None:
        """Begin to stop."""
        self._stop()

    async def thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """`work(*arguments)` in the pool for requests."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    # -------------------------------------------------------------------------------------------- state

    def settings_say(self, reason: str, hint: str) -> None:
        """What keeps new settings out, shown in the status; empty texts when nothing does."""
        self._settings_problem = (reason, hint)

    def hello(self) -> Json:
        """Who answers; never blocks."""
        vault = self.config.vault
        return {
            "name": "tarsd",
            "version": tarsd.__version__,
            "protocol": PROTOCOL,
            "vault": {"id": self.config.vault_id, "name": vault.name, "path": str(vault)},
            "collections": [
                {"name": collection.name, "path": str(collection.root)} for collection in self.config.collections
            ],
            "chat_model": self.assistant.provider.name,
            "embedding_model": self.indexing.model_name,
            "features": list(FEATURES),
        }

    def status(self) -> Json:
        """The state of everything, answered at any time."""
        indexing = self.indexing
        general = [*indexing.problems(), *self.assistant.problems, *self.assistant.skills.problems()]
        general += self.assistant.spending.problems()
        general += [self._settings_problem] if self._settings_problem[0] else []
        http = self._http()
        if http["state"] in ("failed", "no token"):
            general.append((http["reason"], http["hint"]))
        auto = indexing.auto
        counts, files, skipped, vectors = None, list[ProblemRow](), list[Skipped](), None
        indexed: Mapping[Key, float] = {}
        if indexing.store is not None and indexing.indexer is not None:
            store, state = indexing.store, indexing.indexer.state
            if state.reason:
                general.append((state.reason, state.hint))
            try:
                counts, files, skipped = store.counts(), store.problems(), store.notes.skipped()
                files += [*indexing.now_empty(), *indexing.misfits()]
                indexed = store.notes.indexed_at([(row.collection, row.path) for row in files])
                vectors = indexing.indexer.background.status()
            except StoreError as error:
                general.append((error.message, error.hint))
        left = list(skipped)
        if indexing.files_store is not None:
            with contextlib.suppress(StoreError):
                files += indexing.files_store.problems()
                known = {row.key for row in skipped}
                skipped += [row for row in indexing.files_store.notes.skipped() if row.key not in known]
        if vectors is not None and vectors.reason:
            general.append((vectors.reason, vectors.hint))
        embedding = status.embedding(vectors, indexing.model_name, counts, auto.reason if auto is not None else "")
        watching, behind, history = indexing.watching(), indexing.behind(), indexing.history
        return {
            "vault": self.hello()["vault"],
            "watch": status.watching(watching),
            "counts": status.counted(counts, left, behind, history.within),
            "files": indexing.files_state(),
            "behind": behind,
            "embedding": embedding,
            "chat": self.assistant.state(),
            "usage": self.assistant.spending.status(),
            "http": http,
            "problems": status.problems(general, watching, files, skipped, at=history.at, indexed=indexed),
            "left_out": status.left_out(skipped, history.at),
            "advice": advice(indexing.model_name, *history.languages, auto.trouble if auto is not None else None),
            "process": {
                "pid": os.getpid(),
                "version": tarsd.__version__,
                "uptime_s": round(time.monotonic() - self._started, 1),
                "rss_mb": round(resident_mb(), 1),
            },
        }

    # -------------------------------------------------------------------------------------------- search and notes

    def search(self, request: SearchRequest) -> Json:
        """Hits, best first."""
        return Reader(self.library, request.audience).search(request) | {"behind": self.indexing.behind()}

    def related(self, request: RelatedRequest) -> Json:
        """Hits for a note, itself excluded."""
        return Reader(self.library, request.audience).related(request) | {"behind": self.indexing.behind()}

    def query(self, request: QueryRequest) -> Json:
        """Rows of notes, tasks or list items, or a view of a base."""
        asked = VaultQuery(
            request.rows, request.where, request.columns, request.sort, request.group, request.summaries, request.limit,
            request.text, view=request.view, this=request.this,
        )  # fmt: skip
        return Reader(self.library, request.audience).query(asked, request.base) | {"behind": self.indexing.behind()}

    def tasks(self, request: TasksRequest) -> Json:
        """Rows of tasks."""
        asked = task_query(
            request.state, date.today(), due=request.due, folder=request.folder, tag=request.tag, words=request.words,
            limit=request.limit,
        )  # fmt: skip
        return Reader(self.library, request.audience).query(asked) | {"behind": self.indexing.behind()}

    def digest(self, request: DigestRequest) -> Json:
        """The digest of today."""
        reader = Reader(self.library, request.audience)
        return digest(reader, date.today(), request.limit) | {"behind": self.indexing.behind()}

    def notes(self, filters: Mapping[str, str]) -> Json:
        """The notes by folder, tag or how recent they are."""
        audience = read_audience(filters)
        behind = {} if audience == "person" else {"behind": self.indexing.behind()}
        return Reader(self.library, audience).notes(filters) | behind

    def note(self, path: str, audience: Audience) -> Json:
        """One note as it is in the vault now; for a model also by a name that leads to it."""
        return Reader(self.library, audience).note(path)

    def why(self, request: WhyRequest) -> Json:
        """Why the note that a path, name, alias or link means is or is not found."""
        key, searcher = self.library.key_of(request.path), self.indexing.searcher()
        vaults = list(self.indexing.vaults.values())
        if searcher.files is not None and kind_of(key[1], suffixes(self.config.files.kinds)) is not None:
            searcher, vaults = searcher.files, list(self.indexing.file_vaults.values())
        close = partial(self.library.suggestion, request.path)
        return why(searcher.store, searcher, vaults, key, request.query, close).as_json()

    # -------------------------------------------------------------------------------------------- the index

    def reindex(self, request: ReindexRequest) -> AsyncGenerator[Json, None]:
        """Progress and then a report; continues even if nobody reads it."""
        return self.indexing.reindex(request)

    def check(self, request: CheckRequest) -> AsyncGenerator[Json, None]:
        """What is found when everything is looked at, a line each; nothing is repaired."""
        indexing = self.indexing

        def embedders() -> Sequence[Embedder]:
            indexing.searcher()
            return indexing.embedders

        look = HealthCheck(
            indexing.searcher, embedders, indexing.vaults, self.chat.services, indexing.behind, self.thread
        )
        return look.run(request)

    async def vectors(self) -> AsyncGenerator[Json, None]:
        """The model's vectors of the passages that are here, some with every object."""
        searcher = await self.thread(self.indexing.searcher)
        batches = export_vectors(searcher.store)
        while (batch := await self.thread(next, batches, None)) is not None:
            yield batch

    def add_vectors(self, request: VectorsRequest) -> Json:
        """Take in vectors that were made elsewhere; nothing of a request is kept when a part of it is bad.

        `fits` of the reply: whether they are of the configured model, None while that is not known.
        """
        store = self.indexing.searcher().store
        assert self.indexing.indexer is not None
        added = import_vectors(store, request.model, request.rows)
        fits = self.indexing.indexer.background.took_in(request.model)
        return {"added": added, "known": len(request.rows) - added, "fits": fits}
