"""Everything behind the routes: the index and its threads, search, turns. Built once, by hand, in `Engine.__init__`."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, TypeVar

import tarsd
from tarsd import embed, keys
from tarsd.config import Config
from tarsd.daemon import carry, status
from tarsd.daemon.assistant import Assistant
from tarsd.daemon.check import HealthCheck
from tarsd.daemon.embedding import EmbeddingThread
from tarsd.daemon.library import Shelf
from tarsd.daemon.listener import TcpListener
from tarsd.daemon.naming import entry, matching
from tarsd.daemon.outside import Outside
from tarsd.daemon.process import DaemonThreads, give_memory_back, resident_mb
from tarsd.daemon.worker import IndexJob, Key, Worker
from tarsd.embed.base import Embedder
from tarsd.errors import NotFound, PathRefused, StoreError, TarsdError
from tarsd.index import Indexer, Report
from tarsd.parse import parse
from tarsd.protocol import (
    FEATURES,
    PROTOCOL,
    Audience,
    CheckRequest,
    ReindexRequest,
    RelatedRequest,
    SearchRequest,
    VectorsRequest,
    WhyRequest,
    query_number,
    read_audience,
)
from tarsd.search import Hit, Searcher
from tarsd.store import ProblemRow, SkippedRow, Store, examine
from tarsd.vault import Vault, content_hash, decode, nfc
from tarsd.watch import Watcher, WatchState
from tarsd.why import why

THREADS, FEW_THREADS = 8, 3
LOAD_S = 20.0
REST_S = 60.0
PROGRESS_S = 0.05
INDEXED_S = 3.0
SAID_S = 3600.0
"""How long what was mended by itself stays among the problems."""

Json = dict[str, Any]
T = TypeVar("T")

log = logging.getLogger(__name__)


class _Stopping(Exception):
    """Thrown through a running pass to end it between two notes."""


class Engine:
    """The daemon's parts; `stop` is called when a client asks it to end."""

    def __init__(self, config: Config, stop: Callable[[], object]) -> None:
        self.config = config
        self._stop = stop
        self._started = time.monotonic()
        self._loaded = threading.Event()
        self._said: list[tuple[float, str, str]] = []
        self._of_settings = ("", "")
        self._passes = 0
        self._emptied: set[Key] = set()
        self._churn = 0
        self._looks = status.ScanHistory()
        self._pool = DaemonThreads(FEW_THREADS if config.performance.small else THREADS, "tarsd-request")
        self._vaults = {"": Vault(config.vault, "", config.exclude)}
        self._vaults |= {one.name: Vault(one.root, one.name, config.exclude) for one in config.collections}
        self._store: Store | None = None
        self._search: Searcher | None = None
        self._embedders: list[Embedder] = []
        self._indexer: Indexer | None = None
        shelf = Shelf(
            self._searcher,
            self._vaults,
            config,
            behind=self.behind,
            notices=self.notices,
            private_paths=self._private_paths,
        )
        self._outside = Outside(self._searcher, shelf, self._vaults[""], config)
        say = functools.partial(self._say, for_ever=True)
        self.assistant = Assistant(config, self._vaults[""], shelf, self._pool, say, self._indexed)
        self.chat = self.assistant.chat
        # a pass over single notes does not wait for one over everything
        self._long: Worker[Report] = Worker("tarsd-index", self._prepare, self._work)
        self._short: Worker[Report] = Worker("tarsd-edits", self._wait_for_index, self._work)
        self._embedding = EmbeddingThread()
        self._watchers = {name: self._watcher(name, vault) for name, vault in self._vaults.items()}
        self.listener = TcpListener(config.http, config.paths.state / "port")

    def _watcher(self, name: str, vault: Vault) -> Watcher:
        def changed(paths: set[str] | None) -> None:
            if paths is None:
                self._long.look({(name, "")}, hurry=True)
            else:
                self._short.look((name, path) for path in paths)

        return Watcher(vault, self.config.watch, changed)

    # -------------------------------------------------------------------------------------------- life

    def start(self) -> None:
        """Begin to load and index; returns at once."""
        self._long.start()
        self._short.start()
        for watcher in self._watchers.values():
            watcher.start()

    def close(self) -> None:
        """End all work, at most a few seconds; what is half done is done at the next start."""
        self._embedding.ask_to_stop()
        for watcher in self._watchers.values():
            watcher.stop(0.5)
        if not (self._short.stop(2.0) and self._long.stop(4.0)):
            log.warning("the index thread did not end in time")
        self._embedding.stop(2.0)
        if self._indexer is not None:
            self._indexer.close()
        if self._store is not None:
            with contextlib.suppress(StoreError):
                self._store.close()
        self._pool.shutdown(wait=False)

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer, or for the end of a pass."""
        return self.chat.busy or self._passes > 0

    def shutdown(self) -> None:
        """As `server.Engine.shutdown`."""
        self._stop()

    async def thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """As `server.Engine.thread`."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    # -------------------------------------------------------------------------------------------- in the index thread

    def _prepare(self) -> None:
        store = Store(self.config.paths.index_db, self.config.paths.embeddings_db)
        settings = self.config.embedding
        if settings.model.startswith("openai:"):
            settings = dataclasses.replace(settings, openai_key=keys.get("openai"))
        table = embed.make(dataclasses.replace(settings, model="table"))
        model: Embedder | None = None
        if settings.model != "table":
            rest_s = REST_S if self.config.performance.small else None
            model = embed.make(settings, rest_s=rest_s, rested=give_memory_back)
        self._store = store
        self._search = Searcher(store, self.config.search, table, model)
        self._embedders = [table] if model is None else [table, model]
        self._indexer = Indexer(
            self.config,
            list(self._vaults.values()),
            store,
            table,
            model,
            self._event,
            busy=lambda: self._pool.busy,
            private_paths=self._private_paths,
        )
        self._loaded.set()
        if model is not None:
            self._embedding.start(self._indexer.embed_pending)
        log.info("the index is open")

    def _wait_for_index(self) -> None:
        while not self._loaded.wait(0.2):
            if self._short.stopping:
                raise TarsdError("The daemon is stopping.")

    def _work(self, job: IndexJob[Report]) -> Report:
        assert self._indexer is not None and self._store is not None
        if self._store.damaged:  # met by a reader: only a pass that touches everything meets it as well
            job = dataclasses.replace(job, paths=None, full=True)

        def progress(event: Json) -> None:
            if self._long.stopping:
                raise _Stopping
            if job.progress is not None:
                job.progress(event["done"], event["total"], event["path"])

        try:
            report = self._indexer.reconcile(job.paths, full=job.full, progress=progress)
        except _Stopping:
            raise TarsdError("The daemon is stopping.") from None
        whole = job.paths is None or any(not path for _, path in job.paths)
        self._looks.passed(self._vaults, self._store.skipped(), whole=whole)
        if report.again_s is not None:
            for name, watcher in self._watchers.items():
                watcher.look(_below(name, job.paths), report.again_s)
        self._churn += report.added + report.changed
        if self._churn > 100:
            self._churn = 0
            give_memory_back()
        return report

    def _event(self, event: Json) -> None:
        """What the index tells of itself, from any of its threads."""
        kind = event["type"]
        if kind == "damaged":
            log.error("the index is damaged and is made anew")
            self._long.look({(name, "") for name in self._vaults}, hurry=True)
        elif kind == "emptied":
            self._emptied.add((event["collection"], event["path"]))
        elif kind == "repaired":
            log.warning("the index was repaired")
            self._say(str(event["reason"]), "Nothing to do.")
        elif kind == "rebuilding":
            self._say("The index was damaged and was made anew.", "Nothing to do; your notes are untouched.")

    def _say(self, reason: str, hint: str, *, for_ever: bool = False) -> None:
        until = float("inf") if for_ever else time.monotonic() + SAID_S
        self._said.append((until, reason, hint))

    def settings_say(self, reason: str, hint: str) -> None:
        """What keeps new settings out, shown in the status; empty texts when nothing does."""
        self._of_settings = (reason, hint)

    # -------------------------------------------------------------------------------------------- state

    def _searcher(self) -> Searcher:
        """The searcher, waited for while the daemon starts. Raises what keeps the index from being opened."""
        deadline = time.monotonic() + LOAD_S
        while not self._loaded.wait(0.1):
            if (trouble := self._long.trouble) is not None:
                raise trouble.error
            if time.monotonic() > deadline:
                break
        if self._search is None:
            raise StoreError("The index is still being opened.", "Try again in a moment.")
        return self._search

    def behind(self) -> int:
        """Notes that changed on disk and are not indexed yet; at least 1 until the first pass is complete."""
        return max(self._short.waiting, self._indexer.behind if self._indexer is not None else 1)

    def _troubles(self) -> list[TarsdError]:
        return [worker.trouble.error for worker in (self._long, self._short) if worker.trouble is not None]

    def _states(self) -> dict[str, WatchState]:
        return {name: watcher.state for name, watcher in self._watchers.items()}

    def notices(self) -> list[str]:
        """What answers must say now."""
        own = self._states()[""]
        index = self._indexer.state if self._indexer is not None else None
        if own.mode == "waiting" and own.hint:
            return [f"{own.reason} This comes from what was indexed before."]
        if index is not None and index.reason:
            return [index.reason]
        if troubles := self._troubles():
            return [troubles[0].message]
        if self._indexer is None or index is None or index.name == "starting":
            return ["The index is still being built, so that notes may be missing here."]
        return []

    def hello(self) -> Json:
        """As `server.Engine.hello`."""
        vault = self.config.vault
        return {
            "name": "tarsd",
            "version": tarsd.__version__,
            "protocol": PROTOCOL,
            "vault": {"id": self.config.vault_id, "name": vault.name, "path": str(vault)},
            "collections": [{"name": one.name, "path": str(one.root)} for one in self.config.collections],
            "chat_model": self.assistant.provider.name,
            "embedding_model": self.config.embedding.model,
            "features": list(FEATURES),
        }

    def status(self) -> Json:
        """As `server.Engine.status`."""
        general = [(reason, hint) for until, reason, hint in self._said if until > time.monotonic()]
        general += [(error.message, error.hint) for error in self._troubles()]
        general += [self._of_settings] if self._of_settings[0] else []
        http = self.listener.state()
        if http["state"] in ("failed", "no token"):
            general.append((http["reason"], http["hint"]))
        counts, files, skipped, vectors = None, list[ProblemRow](), list[SkippedRow](), None
        indexed: Mapping[Key, float] = {}
        if self._store is not None and self._indexer is not None:
            state = self._indexer.state
            if state.reason:
                general.append((state.reason, state.hint))
            if not self._store.vec0:
                general.append(("sqlite-vec cannot be loaded; vectors are compared in memory.", "Install tarsd anew."))
            try:
                counts, files, skipped = self._store.counts(), self._store.problems(), self._store.skipped()
                files += self._now_empty(self._store)
                indexed = examine.indexed_at(self._store, [(row.collection, row.path) for row in files])
                vectors = self._indexer.embedding
            except StoreError as error:
                general.append((error.message, error.hint))
        if vectors is not None and vectors.reason:
            general.append((vectors.reason, vectors.hint))
        if self._embedding.failure:
            general.append((f"Embedding failed ({self._embedding.failure}); it begins again.", "The log says where."))
        states, behind = self._states(), self.behind()
        return {
            "vault": self.hello()["vault"],
            "watch": status.watching(states),
            "counts": status.counted(counts, skipped, behind, self._looks.within),
            "behind": behind,
            "embedding": status.embedding(vectors, self.config.embedding.model, counts),
            "chat": self.assistant.state(),
            "http": http,
            "problems": status.problems(general, states, files, skipped, at=self._looks.at, indexed=indexed),
            "left_out": status.left_out(skipped, self._looks.at),
            "process": {
                "pid": os.getpid(),
                "version": tarsd.__version__,
                "uptime_s": round(time.monotonic() - self._started, 1),
                "rss_mb": round(resident_mb(), 1),
            },
        }

    def _now_empty(self, store: Store) -> list[ProblemRow]:
        """Notes that had text and are empty now."""
        rows = [(key, store.note(key)) for key in sorted(self._emptied)]
        reason, hint = "It has become empty; what was in it is found no more.", "If that was a mistake, restore it."
        return [ProblemRow(*key, 0, reason, hint) for key, row in rows if row is not None and row.state == "empty"]

    # -------------------------------------------------------------------------------------------- search and notes

    def search(self, request: SearchRequest) -> Json:
        """As `server.Engine.search`."""
        if request.audience != "person":
            return self._outside.search(request) | {"behind": self.behind()}
        found = self._searcher().search(request.query, request.mode, request.limit, request.min_score, request.filters)
        return self._hits(found.hits, found.took_ms) | ({"degraded": found.degraded} if found.degraded else {})

    def related(self, request: RelatedRequest) -> Json:
        """As `server.Engine.related`."""
        if request.audience != "person":
            return self._outside.related(request) | {"behind": self.behind()}
        started = time.perf_counter()
        hits = self._searcher().related(self._key(request.path), request.limit)
        return self._hits(hits, round((time.perf_counter() - started) * 1000, 2))

    def _hits(self, hits: Sequence[Hit], took_ms: float) -> Json:
        return {"hits": [hit.as_json() for hit in hits], "behind": self.behind(), "took_ms": took_ms}

    def why(self, request: WhyRequest) -> Json:
        """As `server.Engine.why`."""
        key, searcher = self._key(request.path), self._searcher()
        return why(searcher.store, searcher, list(self._vaults.values()), key, request.query).as_json()

    def notes(self, filters: Mapping[str, str]) -> Json:
        """As `server.Engine.notes`."""
        audience = read_audience(filters)
        if audience != "person":
            return self._outside.notes(filters, audience) | {"behind": self.behind()}
        recent = query_number(filters.get("recent"), "recent", 0, 10_000)
        every = self._searcher().store.titles()
        wanted = {name: filters.get(name, "") for name in ("folder", "tag", "name")}
        rows = matching(every, **wanted, recent=bool(recent))
        shown = rows[:recent] if recent else rows
        return {"notes": [entry(row) for row in shown], "total": len(rows)}

    def note(self, path: str, audience: Audience) -> Json:
        """As `server.Engine.note`."""
        if audience != "person":
            return self._outside.note(path, audience)
        vault = self._vaults[""]
        vault.resolve(path)
        info = vault.scan([path]).files.get(("", nfc(path)))
        if info is None:
            raise NotFound("There is no such note.", "GET /v1/notes lists them.")
        raw = vault.read(info)
        text = decode(raw)
        note = parse(text.text, info.path, include_comments=True)
        return {
            "path": info.path,
            "title": note.title,
            "aliases": list(note.aliases),
            "tags": list(note.tags),
            "properties": note.properties,
            "text": text.text,
            "hash": content_hash(raw),
            "modified": info.mtime_ns / 1e9,
        }

    def _key(self, path: str) -> Key:
        """The note that is meant: in the vault, or else in the first collection that has it."""
        self._vaults[""].resolve(path, excluded=True)
        store = self._searcher().store
        places = [(name, nfc(path)) for name in self._vaults]
        return next((key for key in places if store.note(key) is not None), places[0])

    # -------------------------------------------------------------------------------------------- indexing on request

    async def reindex(self, request: ReindexRequest) -> AsyncGenerator[Json, None]:
        """As `server.Engine.reindex`."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Json | TarsdError] = asyncio.Queue()
        last = 0.0

        def tell(item: Json | TarsdError) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, item)

        def progress(done: int, total: int, path: str) -> None:
            nonlocal last
            if done < total and time.monotonic() - last < PROGRESS_S:
                return
            last = time.monotonic()
            with contextlib.suppress(RuntimeError):  # the loop has ended; the pass goes on
                tell({"type": "progress", "done": done, "total": total, "path": path})

        def done(report: Report | None, error: TarsdError | None) -> None:
            tell(error or {"type": "report", **(dataclasses.asdict(report) if report is not None else {})})

        scope = self._scope(request.paths)
        worker = self._long if scope is None or request.full else self._short
        worker.ask(IndexJob(scope, request.full, progress, done))
        self._passes += 1
        try:
            while True:
                item = await queue.get()
                if isinstance(item, TarsdError):
                    raise item
                yield item
                if item["type"] == "report":
                    return
        finally:
            self._passes -= 1

    def check(self, request: CheckRequest) -> AsyncGenerator[Json, None]:
        """As `server.Engine.check`."""

        def embedders() -> list[Embedder]:
            self._searcher()
            return self._embedders

        look = HealthCheck(self._searcher, embedders, self._vaults, self.assistant.chat.means, self.behind, self.thread)
        return look.run(request)

    def vectors(self) -> AsyncGenerator[Json, None]:
        """As `server.Engine.vectors`."""
        return carry.export(lambda: self._searcher().store, self.thread)

    def add_vectors(self, request: VectorsRequest) -> Json:
        """As `server.Engine.add_vectors`."""
        store = self._searcher().store
        assert self._indexer is not None
        return carry.add(store, self._indexer, request)

    def _private_paths(self) -> frozenset[str]:
        return self.assistant.private_paths()

    async def _indexed(self, paths: Sequence[str]) -> None:
        """Until these notes are in the index as they are now, but not for long: what was just written is found."""
        with contextlib.suppress(TarsdError, TimeoutError):
            async with (
                asyncio.timeout(INDEXED_S),
                contextlib.aclosing(self.reindex(ReindexRequest(tuple(paths)))) as steps,
            ):
                async for _ in steps:
                    pass

    def _scope(self, paths: tuple[str, ...]) -> frozenset[Key] | None:
        wanted = {nfc(path).strip("/") for path in paths}
        if not wanted or wanted & {"", "."}:
            return None
        for path in paths:
            if path.startswith("/"):
                raise PathRefused("This path is refused: it is absolute.", "Give one relative to the vault.")
        for path in wanted:
            self._vaults[""].resolve(path, excluded=True)
        return frozenset(("", path) for path in wanted)


def _below(collection: str, paths: frozenset[Key] | None) -> list[str] | None:
    """Those of the paths that are in a collection, None for all of it."""
    if paths is None or (collection, "") in paths:
        return None
    return [path for name, path in paths if name == collection]
