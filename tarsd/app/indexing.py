"""The index at work: its store, watchers and threads, from the start to the end of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import Any

from tarsd import embed, keys
from tarsd.app.process import give_memory_back
from tarsd.app.status import SAMPLED, ScanHistory
from tarsd.children import ChildDied
from tarsd.config import Config
from tarsd.config.rules import CORRECT
from tarsd.embed.auto import ENGLISH, OTHERS, Auto, is_there
from tarsd.embed.base import Embedder
from tarsd.errors import PathRefused, StoreError, TarsdError
from tarsd.index import Indexer, Report
from tarsd.index.files import FileIndexer, file_vault, lacking, suffixes
from tarsd.index.worker import EmbeddingThread, IndexJob, Worker
from tarsd.kinds import property_types
from tarsd.passage import Key
from tarsd.protocol import ReindexRequest
from tarsd.search import Searcher
from tarsd.store import ProblemRow, Store
from tarsd.vault import Vault, kind_of, nfc
from tarsd.watch import Watcher, WatchState
from tarsd.words import share_not_english

LOAD_S = 20.0
REST_S = 60.0
PROGRESS_S = 0.05
INDEXED_S = 3.0
SAID_S = 3600.0
"""How long what was mended by itself stays among the problems."""

Json = dict[str, Any]

log = logging.getLogger(__name__)


class _Stopping(Exception):
    """Thrown through a running pass to end it between two notes."""


class Indexing:
    """Keeps the index of `vaults` true in threads of its own, once `start` was called.

    `busy`: whether somebody waits for an answer, who goes first. `private_paths` as in `NoteLibrary`; `remark` marks
    our own notes anew after what they were made from has changed. `embedders` are the table and, if there is one, the
    model, in place of those that the config names; without `in_background` the model's vectors are made only by
    `embed`. `store`, `indexer` and `watcher` build these parts, as the classes do; `on_event` hears what the index
    tells of itself, and of each pass that a worker ended. `pause_s`: as in `Worker`.
    """

    def __init__(
        self,
        config: Config,
        vaults: Mapping[str, Vault],
        *,
        busy: Callable[[], bool],
        private_paths: Callable[[], Collection[str]],
        remark: Callable[[], object] = lambda: None,
        embedders: Sequence[Embedder] = (),
        in_background: bool = True,
        store: Callable[..., Store] = Store,
        indexer: Callable[..., Indexer] = Indexer,
        watcher: Callable[..., Watcher] = Watcher,
        on_event: Callable[[Json], object] = lambda event: None,
        pause_s: float = 1.0,
    ) -> None:
        self.vaults = vaults
        self._of_files = suffixes(config.files.kinds)
        self.file_vaults = {
            name: file_vault(vault, config.files, config.exclude) for name, vault in vaults.items() if self._of_files
        }
        self.files_store: Store | None = None
        self.files: FileIndexer | None = None
        self.history = ScanHistory(config.exclude, config.privacy.local_only)
        self.store: Store | None = None
        self.indexer: Indexer | None = None
        self.embedders: Sequence[Embedder] = embedders
        self._config = config
        self._busy = busy
        self._private_paths = private_paths
        self._remark = remark
        self._in_background = in_background
        self._make_store, self._make_indexer, self._make_watcher = store, indexer, watcher
        self._on_event = on_event
        self._search: Searcher | None = None
        self._loaded = threading.Event()
        self._said: list[tuple[float, str, str]] = []
        self._emptied: set[Key] = set()
        self._asked = 0
        self._changed = 0
        # a pass over single notes does not wait for one over everything
        self._long: Worker[Report] = Worker("tarsd-index", self._prepare, self._work, first_pause_s=pause_s)
        self._short: Worker[Report] = Worker("tarsd-edits", self._wait_for_index, self._work, first_pause_s=pause_s)
        self._files: Worker[Report] = Worker("tarsd-files", self._open_files, self._work_files, first_pause_s=pause_s)
        self._embedding = EmbeddingThread()
        self._embedding_files = EmbeddingThread("tarsd-embed-files")
        self._watchers = {name: self._watcher(name, vault) for name, vault in vaults.items()}

    def _watcher(self, name: str, vault: Vault) -> Watcher:
        def changed(paths: set[str] | None) -> None:
            if paths is None:
                self._long.look({(name, "")}, hurry=True)
                self._files.look({(name, "")}, hurry=True)
                return
            # a folder is of both
            self._short.look((name, path) for path in paths if kind_of(path, self._of_files) is None)
            self._files.look((name, path) for path in paths if kind_of(path) is None)

        return self._make_watcher(vault, self._config.watch, changed)

    def start(self) -> None:
        """Begin to load and index; returns at once."""
        self._long.start()
        self._short.start()
        if self.file_vaults:
            self._files.start()
        for watcher in self._watchers.values():
            watcher.start()

    def close(self) -> None:
        """Stop all work within a few seconds; unfinished work is done at the next start."""
        self._embedding.ask_to_stop()
        self._embedding_files.ask_to_stop()
        self._files.ask_to_stop()
        if self.files is not None:
            self.files.close()
        for watcher in self._watchers.values():
            watcher.stop(0.5)
        if not (self._short.stop(2.0) and self._long.stop(4.0)):
            log.warning("the index thread did not end in time")
        self._files.stop(2.0)
        self._embedding.stop(2.0)
        self._embedding_files.stop(2.0)
        if self.indexer is not None:
            self.indexer.close()
        for embedder in self.embedders:
            embedder.close()
        for store in (self.store, self.files_store):
            if store is not None:
                with contextlib.suppress(StoreError):
                    store.close()

    # -------------------------------------------------------------------------------------------- in the index thread

    def _prepare(self) -> None:
        if not self._loaded.is_set():
            self.open()
        if self._in_background and len(self.embedders) > 1 and (self.auto is None or self.auto.chosen):
            self.embed()

    def open(self) -> None:
        """Open the index in the calling thread; otherwise the worker opens it. Raises `StoreError`."""
        config = self._config
        store = self._make_store(config.paths.index_db, config.paths.embeddings_db)
        self.embedders = self.embedders or self._configured()
        table, model = self.embedders[0], next(iter(self.embedders[1:]), None)
        self.store = store
        serving = model
        if isinstance(model, Auto):
            serving = model.serving(lambda fingerprint: _coverage(store, fingerprint))
            self._decide(model, share_not_english(store.notes.sample_texts(SAMPLED)))
        self._search = Searcher(store, config.search, table, serving)
        self.indexer = self._make_indexer(
            config,
            list(self.vaults.values()),
            store,
            table,
            model,
            self._event,
            busy=self._busy,
            private_paths=self._private_paths,
        )
        self._loaded.set()
        log.info("the index is open")

    def _open_files(self) -> None:
        """In the thread of the files: their index is opened once the notes' is there and was looked at."""
        if self.files is not None:
            return
        while not self._loaded.wait(0.2) or not self.history.counted:
            if self._files.stopping:
                raise TarsdError("The daemon is stopping.")
            time.sleep(0.05)
        assert self._search is not None
        config = self._config
        store = self._make_store(config.paths.files_db, config.paths.embeddings_db)
        table, model = self.embedders[0], next(iter(self.embedders[1:]), None)
        self.files_store = store
        vaults = list(self.file_vaults.values())
        self.files = files = FileIndexer(config, vaults, store, table, model, busy=self._busy, processes=1, few=0)
        self._search.files = Searcher(store, config.search, table, model)
        if self._in_background and model is not None:
            self._embedding_files.start(files.background.run)

    def _work_files(self, job: IndexJob[Report]) -> Report:
        assert self.files is not None and self.files_store is not None
        if self.files_store.database.damaged:
            job = dataclasses.replace(job, paths=None, full=True)

        def progress(done: int, total: int, path: str) -> None:
            if self._files.stopping:
                raise _Stopping
            if job.progress is not None:
                job.progress(done, total, path)
            while self._notes_wait() and not self._files.stopping:
                time.sleep(0.05)

        try:
            report = self.files.reconcile(job.paths, full=job.full, progress=progress)
        except (_Stopping, ChildDied):
            raise TarsdError("The daemon is stopping.") from None
        if report.again_s is not None:
            for name, watcher in self._watchers.items():
                watcher.look(_below(name, job.paths), report.again_s)
        return report

    def _notes_wait(self) -> bool:
        """Whether notes are being read: they go first."""
        return self._long.busy or self._short.waiting > 0

    def _decide(self, auto: Auto, languages: tuple[float, int]) -> None:
        """Choose the model; one that the index has vectors of is kept as long as the languages do not clearly differ.

        In an index without any passage nothing can be chosen, unless there is no choice.
        """
        assert self.store is not None
        spaces = [space.name for space in self.store.vectors.spaces() if space.name in (ENGLISH, OTHERS)]
        before = spaces[-1] if spaces else ""
        if not (before or languages[1] or self.history.counted) and is_there():
            return
        share, told = languages
        if auto.decide(before, share, told):
            log.info("the embedding model is chosen", extra={"model": auto.name, "not_english": round(share, 3)})
            if self.indexer is not None:
                self.indexer.background.wake()

    def embed(self) -> None:
        """Make the model's vectors from now on, in a thread."""
        assert self.indexer is not None
        self._embedding.start(self.indexer.background.run)

    def _configured(self) -> list[Embedder]:
        settings = self._config.embedding
        if settings.model.startswith("openai:"):
            settings = dataclasses.replace(settings, openai_key=keys.get("openai"))
        table = embed.make(dataclasses.replace(settings, model="table"))
        if settings.model == "table":
            return [table]
        rest_s = REST_S if self._config.performance.small else None
        return [table, embed.make(settings, rest_s=rest_s, rested=give_memory_back)]

    def _wait_for_index(self) -> None:
        while not self._loaded.wait(0.2):
            if self._short.stopping:
                raise TarsdError("The daemon is stopping.")

    def _work(self, job: IndexJob[Report]) -> Report:
        assert self.indexer is not None and self.store is not None
        if self.store.database.damaged:  # met by a reader: only a pass that touches everything meets it as well
            job = dataclasses.replace(job, paths=None, full=True)

        def progress(done: int, total: int, path: str) -> None:
            if self._long.stopping:
                raise _Stopping
            if job.progress is not None:
                job.progress(done, total, path)

        try:
            report = self.indexer.reconcile(job.paths, full=job.full, progress=progress)
        except _Stopping:
            raise TarsdError("The daemon is stopping.") from None
        if report.added or report.changed or report.moved or report.removed:
            with contextlib.suppress(StoreError):  # the next pass does it
                self._remark()
        whole = job.paths is None or any(not path for _, path in job.paths)
        self.history.passed(self.vaults, self.store.notes, whole=whole)
        if whole and self.auto is not None:
            self._decide(self.auto, self.history.languages)
            if self._in_background and not self._embedding.begun:
                self.embed()
        if report.again_s is not None:
            for name, watcher in self._watchers.items():
                watcher.look(_below(name, job.paths), report.again_s)
        self._changed += report.added + report.changed
        if self._changed > 100:
            self._changed = 0
            give_memory_back()
        self._on_event({"type": "passed", "report": report})
        return report

    def _event(self, event: Json) -> None:
        """Handles an event of the index, from any of its threads."""
        self._on_event(event)
        kind = event["type"]
        if kind == "damaged":
            log.error("the index is damaged and is made anew")
            self._long.look({(name, "") for name in self.vaults}, hurry=True)
        elif kind == "emptied":
            self._emptied.add((event["collection"], event["path"]))
        elif kind == "repaired":
            log.warning("the index was repaired")
            self._say(str(event["reason"]), "Nothing to do.")
        elif kind == "rebuilding":
            self._say("The index was damaged and has been rebuilt.", "Nothing to do; your notes are untouched.")

    def _say(self, reason: str, hint: str) -> None:
        self._said.append((time.monotonic() + SAID_S, reason, hint))

    # -------------------------------------------------------------------------------------------- state

    @property
    def auto(self) -> Auto | None:
        """The model that is chosen by the vault's languages, where the settings say so and the index is open."""
        return next((one for one in self.embedders if isinstance(one, Auto)), None)

    @property
    def model_name(self) -> str:
        """The embedding model, by its own name where it is chosen."""
        return self._config.embedding.model if self.auto is None else self.auto.name

    @property
    def busy(self) -> bool:
        """Whether somebody waits for the end of a pass."""
        return self._asked > 0

    def searcher(self) -> Searcher:
        """The searcher, waited for while the daemon starts. Raises what keeps the index from being opened."""
        deadline = time.monotonic() + LOAD_S
        while not self._loaded.wait(0.1):
            if (trouble := self._long.trouble) is not None:
                raise trouble
            if time.monotonic() > deadline:
                break
        if self._search is None:
            raise StoreError("The index is still being opened.", "Try again in a moment.")
        return self._search

    def behind(self) -> int:
        """Notes that changed on disk and are not indexed yet; at least 1 until the first pass is complete."""
        # the first pass is complete when what it leaves out is counted as well
        counting = self._long.busy and not self.history.counted
        return max(self._short.waiting, self.indexer.behind if self.indexer is not None else 1, int(counting))

    def files_state(self) -> Json:
        """How many files that are no notes were read, their passages, how many are still to do, and what to install."""
        counts = self.files_store.counts() if self.files_store is not None else None
        return {
            "read": counts.notes if counts is not None else 0,
            "chunks": counts.chunks if counts is not None else 0,
            "lacking": ", ".join(lacking(self._config.files.kinds)),
            "pending": self.files.behind if self.files is not None else int(bool(self.file_vaults)),
        }

    def watching(self) -> dict[str, WatchState]:
        """How the vault and each collection are watched now."""
        return {name: watcher.state for name, watcher in self._watchers.items()}

    def away(self) -> str:
        """What answers must say while the vault is not there, "" while it is."""
        own = self._watchers[""].state
        return f"{own.reason} This comes from the last index." if own.mode == "waiting" and own.hint else ""

    def notices(self) -> list[str]:
        """What answers must say now."""
        index = self.indexer.state if self.indexer is not None else None
        if away := self.away():
            return [away]
        if index is not None and index.reason:
            return [index.reason]
        if failures := self._failures():
            return [failures[0].message]
        if index is None or index.name == "starting":
            return ["The index is still being built; some notes may be missing here."]
        return []

    def problems(self) -> list[tuple[str, str]]:
        """What concerns the index as a whole: (reason, hint)."""
        found = [(reason, hint) for until, reason, hint in self._said if until > time.monotonic()]
        found += [(error.message, error.hint) for error in self._failures()]
        found += [(sentence, CORRECT) for sentence in self.history.idle_rules]
        if self._embedding.failure:
            found.append(
                (f"Embedding failed ({self._embedding.failure}); it starts again.", "See the log for details.")
            )
        if self.store is not None and not self.store.database.vec0:
            found.append(("sqlite-vec cannot be loaded; vectors are compared in memory.", "Reinstall tarsd."))
        return found

    def now_empty(self) -> list[ProblemRow]:
        """Notes that had text and are empty now."""
        store = self.store
        rows = [(key, store.notes.note(key)) for key in sorted(self._emptied)] if store is not None else []
        reason, hint = "It is now empty, so its text is no longer found.", "If that was a mistake, restore the note."
        return [ProblemRow(*key, 0, reason, hint) for key, row in rows if row is not None and row.state == "empty"]

    def misfits(self) -> list[ProblemRow]:
        """Values of properties that are not of the type that Obsidian has for them."""
        if self.store is None:
            return []
        facts = self.store.facts
        return [row for name, vault in self.vaults.items() for row in facts.misfits(name, property_types(vault.root))]

    def _failures(self) -> list[TarsdError]:
        return [worker.trouble for worker in (self._long, self._short) if worker.trouble is not None]

    # -------------------------------------------------------------------------------------------- on request

    async def reindex(self, request: ReindexRequest) -> AsyncGenerator[Json, None]:
        """Progress and then a report, of notes and with `files` in it of these; continues even if nobody reads it."""
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

        scope = self._scope(request.paths)
        of_files = scope if scope is None else frozenset(key for key in scope if kind_of(key[1]) is None)

        def done(notes: Report | None, error: TarsdError | None) -> None:
            said = {"type": "report", **(dataclasses.asdict(notes) if notes is not None else {})}

            def files_done(files: Report | None, error: TarsdError | None) -> None:
                tell(error or said | {"files": dataclasses.asdict(files) if files is not None else {}})

            if error is None and self.file_vaults and (of_files is None or of_files):
                self._files.ask(IndexJob(of_files, request.full, progress, files_done))
            else:
                tell(error or said)

        worker = self._long if scope is None or request.full else self._short
        worker.ask(IndexJob(scope, request.full, progress, done))
        self._asked += 1
        try:
            while True:
                item = await queue.get()
                if isinstance(item, TarsdError):
                    raise item
                yield item
                if item["type"] == "report":
                    return
        finally:
            self._asked -= 1

    async def indexed(self, paths: Sequence[str]) -> None:
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
                raise PathRefused("Absolute paths are not allowed.", "Give a path relative to the vault.")
        for path in wanted:
            self.vaults[""].resolve(path, excluded=True)
        return frozenset(("", path) for path in wanted)


def _below(collection: str, paths: frozenset[Key] | None) -> list[str] | None:
    """Those of the paths that are in a collection, None for all of it."""
    if paths is None or (collection, "") in paths:
        return None
    return [path for name, path in paths if name == collection]


def _coverage(store: Store, fingerprint: str) -> float:
    space = store.vectors.space_for(fingerprint)
    return space.coverage if space is not None else 0.0
