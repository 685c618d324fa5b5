"""One call that brings the index in line with the disk: start-up scan, watcher and `tarsd reindex` alike."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from tarsd.children import ChildDied, Pool
from tarsd.chunk import chunker_id
from tarsd.config import Config
from tarsd.dates import DateRules, date_rules
from tarsd.embed.base import Embedder
from tarsd.embed.table import TableEmbedder
from tarsd.errors import DiskFull, StoreError, TarsdError, VaultUnavailable
from tarsd.index import prepare
from tarsd.index.background import Background, embed_texts
from tarsd.index.guards import ChangeGuard
from tarsd.index.plan import in_scope, pairs, plan
from tarsd.index.report import IndexState, Report
from tarsd.store import Batch, FileRow, Key, Store
from tarsd.vault import Scan, Skipped, Vault

Event = dict[str, Any]
OnEvent = Callable[[Event], None]
Progress = Callable[[int, int, str], None]
"""Notes done, notes in all, and the path of the last one."""

FEW = 24
_MANY = 500
_LOOK_AGAIN_S = 5.0
# An emptied vault may be one that a sync tool or a remount fills again, and these take their time.
SECOND_LOOK_S = 30.0
GROUP_NOTES = 96
_GROUP_BYTES = 400_000


@dataclass
class _Pass:
    """A running pass: what it found, the notes still to do, and those a shorter pass has dealt with since it began.

    `full` reads unchanged files, too; it and `force` believe a scan that lost most of the notes.
    """

    full: bool
    force: bool
    progress: Progress
    total: int = 0
    done: int = 0
    left: set[Key] = field(default_factory=set)
    overtaken: set[Key] = field(default_factory=set)
    report: Report = field(default_factory=Report)

    def count(self, **more: int) -> None:
        self.report = replace(self.report, **{name: getattr(self.report, name) + n for name, n in more.items()})

    def again(self, seconds: float) -> None:
        known = self.report.again_s
        self.report = replace(self.report, again_s=seconds if known is None else min(known, seconds))


class Indexer:
    """Keeps a store true to its vaults. `reconcile` may be called from any thread; so may everything else.

    A pass over single paths does not wait for one over everything: whoever comes second to a note wins. `background`
    makes the vectors of the model, in a thread of its own. An emptied vault is believed after `second_look_s` seconds;
    up to `few` notes are prepared in this process, and at most `group_notes` are stored together.
    """

    def __init__(
        self,
        config: Config,
        vaults: Sequence[Vault],
        store: Store,
        table: Embedder,
        model: Embedder | None = None,
        on_event: OnEvent | None = None,
        *,
        busy: Callable[[], bool] = lambda: False,
        processes: int = 2,
        second_look_s: float = SECOND_LOOK_S,
        few: int = FEW,
        group_notes: int = GROUP_NOTES,
        private_paths: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self.store = store
        self.repaired: tuple[str, ...] = ()
        self._vaults = {vault.collection: vault for vault in vaults}
        self._config = config
        self.second_look_s, self._few, self._group_notes = second_look_s, few, group_notes
        self._table = table
        self._on_event = on_event if on_event is not None else lambda event: None
        rules = config.privacy.local_only
        digest = hashlib.sha256(json.dumps([rules, prepare.LOCAL_ONLY]).encode()).hexdigest()[:8]
        cut = prepare.within(config.chunk, model.max_tokens if model is not None else None)
        self._settings = prepare.PrepareSettings(
            cut,
            config.include_comments,
            rules,
            f"{chunker_id(cut, config.include_comments)}-{digest}",
            isinstance(table, TableEmbedder),
        )
        self._dates: dict[str, DateRules] = {}
        self._private_paths = private_paths
        small = config.performance.small
        self._pool, self._ahead = Pool(1 if small else processes, nice=5), 2 if small else 6
        self.background = Background(store, model, Pool(1, nice=10), busy, small=small)
        self._long = threading.Lock()
        self._short = threading.Lock()
        self._apply_lock = threading.Lock()
        self._running: list[_Pass] = []
        # What a pass that ended early had still to do; a new set each time, since `behind` reads it without a lock.
        self._left: frozenset[Key] = frozenset()
        self._start_lock = threading.Lock()
        self._started = False
        self._scanned = False
        self._trouble: IndexState | None = None
        self._faults: dict[str, IndexState] = {}
        self._guards = ChangeGuard(store, config.watch.grace_empty_s)
        store.database.on_damage = lambda: self._on_event({"type": "damaged"})

    # What others ask

    @property
    def state(self) -> IndexState:
        """How the index stands to the disk."""
        faults = [self._faults[name] for name in sorted(self._faults)]
        if self._trouble is not None:
            return self._trouble
        if faults:
            return faults[0]
        if not self._scanned:
            return IndexState("starting")
        return IndexState("indexing" if self._running else "ready")

    @property
    def behind(self) -> int:
        """Notes changed on disk and not yet indexed; at least 1 until the first scan is complete."""
        open_work = self._left.union(*(running.left for running in list(self._running)))
        return max(len(open_work), 0 if self._scanned else 1)

    def close(self) -> None:
        """End the child processes. The store stays open."""
        self.background.close()
        self._pool.close()

    # A pass

    def reconcile(
        self,
        paths: Iterable[str | Key] | None = None,
        *,
        full: bool = False,
        force: bool = False,
        progress: Progress = lambda done, total, path: None,
    ) -> Report:
        """Bring the index in line with the disk: everything, or only what is at and below the paths.

        Paths are relative to the vault; (collection, path) for another collection, "" for all of it. `full` reads
        unchanged files, too; it and `force` believe a scan that lost most of the notes. Raises VaultUnavailable
        (all rows are kept) and DiskFull (nothing is lost, and the next pass goes on).
        """
        begun = time.monotonic()
        scopes = self._scopes(paths)
        short = paths is not None and not full and all(scope is not None for scope in scopes.values())
        with self._short if short else self._long:
            run = _Pass(full, force or full, progress)
            with self._apply_lock:
                self._running.append(run)
            try:
                try:
                    self._run(run, scopes)
                except StoreError:
                    if not self.store.database.damaged:
                        raise
                    scopes = self._scopes(None)
                    self._rebuild(run, scopes)
                self._trouble = None
                self._settled(scopes)
            except DiskFull as error:
                self._trouble = IndexState("disk_full", error.message, error.hint)
                raise
            finally:
                with self._apply_lock:
                    self._left |= run.left
                    self._running.remove(run)
        report = replace(run.report, seconds=time.monotonic() - begun)
        if report.changed + report.moved + report.removed > _MANY:
            self.store.maintain()
        if not short and self._scanned:
            self.store.cache.tidy()
        return report

    def _settled(self, scopes: Mapping[str, set[str] | None]) -> None:
        """A pass came to its end: in its scope nothing is left over from one that did not."""
        with self._apply_lock:
            self._left = frozenset(
                key for key in self._left if key[0] not in scopes or not in_scope(key[1], scopes[key[0]])
            )

    def _done(self, run: _Pass, keys: Collection[Key]) -> None:
        with self._apply_lock:
            run.left.difference_update(keys)
            if self._left:
                self._left = self._left.difference(keys)

    def _rebuild(self, run: _Pass, scopes: Mapping[str, set[str] | None]) -> None:
        self._trouble = IndexState("rebuilding", "The index was damaged and is being rebuilt.", "Nothing to do.")
        self._on_event({"type": "rebuilding"})
        self.store.database.reopen()
        self._started = False
        run.full = run.force = False
        run.total = run.done = 0
        run.left.clear()
        self._run(run, scopes)

    def _scopes(self, paths: Iterable[str | Key] | None) -> dict[str, set[str] | None]:
        """Per collection the wanted paths, None for all of it."""
        if paths is None:
            return dict.fromkeys(self._vaults)
        scopes: dict[str, set[str] | None] = {}
        for path in paths:
            collection, relative = ("", path) if isinstance(path, str) else path
            scope = scopes.setdefault(collection, set())
            if not relative.strip("/"):
                scopes[collection] = None
            elif scope is not None:
                scope.add(relative.strip("/"))
        return {name: scope for name, scope in scopes.items() if name in self._vaults}

    def _run(self, run: _Pass, scopes: Mapping[str, set[str] | None]) -> None:
        self._start(run)
        whole = self.store.notes.rows() if any(scope is None for scope in scopes.values()) else {}
        self._purge(run, whole)
        if run.full:
            self.background.forgive()
        unavailable: VaultUnavailable | None = None
        for collection, scope in scopes.items():
            if scope is None:
                own = {key: row for key, row in whole.items() if key[0] == collection}
            else:
                own = self.store.notes.rows(collection, scope)
            try:
                self._collection(run, self._vaults[collection], scope, own)
            except VaultUnavailable as error:
                self._faults[collection] = IndexState("unavailable", error.message, error.hint)
                if not collection:
                    unavailable = error
        self.store.settle()
        if unavailable is not None:
            raise unavailable
        # A further collection that is not there is a fault of its own and keeps nobody from the vault.
        self._scanned = self._scanned or (all(scope is None for scope in scopes.values()) and "" in scopes)

    def _start(self, run: _Pass) -> None:
        """Once: the space of the table, and a comparison of the legs of the index."""
        with self._start_lock:
            if not self._started:
                self._prepare_store(run)
                self._started = True

    def _prepare_store(self, run: _Pass) -> None:
        repaired = self.store.check()
        if self.store.database.notice:
            repaired.insert(0, self.store.database.notice)
        space = self.store.vectors.ensure_space(self._table.name, self._table.fingerprint, self._table.dim, "table")
        added = self.background.top_up(space.id, self._table)
        if added:
            repaired.append(f"{added} missing vectors were added.")
        self.store.vectors.activate(space.id)
        self.store.maintain()
        if not self.background.has_model:
            for older in self.store.vectors.spaces():
                if older.role == "model":
                    self.store.vectors.drop_space(older.id)
        self.repaired = tuple(repaired)
        run.report = replace(run.report, repaired=self.repaired)
        for sentence in repaired:
            self._on_event({"type": "repaired", "reason": sentence})

    def _purge(self, run: _Pass, rows: dict[Key, FileRow]) -> None:
        """A collection that is configured no more is forgotten."""
        gone = [key for key in rows if key[0] not in self._vaults]
        for start in range(0, len(gone), self._group_notes):
            self.store.apply(Batch(delete=gone[start : start + self._group_notes]))
        for key in gone:
            del rows[key]
        run.count(removed=len(gone))

    def _collection(self, run: _Pass, vault: Vault, scope: set[str] | None, rows: Mapping[Key, FileRow]) -> None:
        collection, root = vault.collection, vault.check()
        scan = vault.scan(scope)
        chunker = self._settings_of(collection, anew=scope is None).chunker
        todo = plan(scan, rows, chunker, scope=scope, full=run.full)
        if scope is not None and self._guards.wants_all(collection, todo, self.second_look_s):
            # Too much to believe from a partial look.
            scope, scan, rows = None, vault.scan(), self.store.notes.rows(collection)
            todo = plan(scan, rows, chunker, scope=None, full=run.full)
        doubt, doubted = None, False
        if not run.force and scope is None:
            doubt = self._guards.doubt(vault, root, scan, rows, todo, self.second_look_s, _LOOK_AGAIN_S)
        if doubt is not None:
            self._faults[collection], again = doubt
            run.again(again)
            todo = replace(todo, vanished=(), empty=())
        elif scope is None:
            told = self._faults.pop(collection, None)
            doubted = told is not None and told.name == "suspicious"
            self._guards.believed(vault, root, scan)
        self._note_skipped(collection, scope, scan)
        run.count(unchanged=todo.unchanged, skipped=len(scan.skipped))
        jobs = [prepare.ReadJob(info, self._known(rows.get(info.key), chunker, run.full)) for info in todo.read]
        emptied, later = self._guards.emptied(todo, scan, force=run.force)
        for info in emptied:
            jobs.append(prepare.ReadJob(info))
            self._on_event({"type": "emptied", "collection": info.collection, "path": info.path})
        if later is not None:
            run.again(later)
        run.left.update((job.info.key for job in jobs), todo.vanished)
        run.total += len(jobs) + len(todo.vanished)
        states = [*todo.kept, *((key, "ok" if rows[key].size else "empty") for key in todo.revived)]
        if states:
            self.store.apply(Batch(state=states))
        removed = self._stream(run, jobs, rows, todo.vanished)
        if not run.force and not doubted:
            self._guards.removed(collection, removed)

    def _known(self, row: FileRow | None, chunker: str, full: bool) -> str:
        """The hash at which a file needs no second look; none if it must be cut anew whatever it says."""
        if row is None or full or row.chunker != chunker:
            return ""
        return row.hash

    def _settings_of(self, collection: str, *, anew: bool = False) -> prepare.PrepareSettings:
        """How notes of a collection are prepared. `anew` looks at Obsidian's settings; half a file changes nothing."""
        rules = self._dates.get(collection)
        if anew or rules is None:
            names = self._config.dates.properties
            try:
                rules = date_rules(self._vaults[collection].root, names)
            except TarsdError:
                rules = rules or DateRules(names)
            self._dates[collection] = rules
        return replace(self._settings, dates=rules, chunker=f"{self._settings.chunker}-{rules.digest}")

    def _note_skipped(self, collection: str, scope: set[str] | None, scan: Scan) -> None:
        found = {row.key: row for row in scan.skipped}
        kept = [
            row for row in self.store.notes.skipped() if row.collection != collection or not in_scope(row.path, scope)
        ]
        self.store.notes.set_skipped([*kept, *found.values()])

    # Reading and storing

    def _stream(
        self,
        run: _Pass,
        jobs: Sequence[prepare.ReadJob],
        rows: Mapping[Key, FileRow],
        vanished: Sequence[Key],
    ) -> int:
        """Read, prepare and store; a new note with the content of a vanished one is that note, moved.

        How many notes were removed.
        """
        before = run.report.removed
        moved_from = pairs(rows[key] for key in vanished)
        left = set(vanished)
        few = len(jobs) <= self._few
        for done in self._prepared(jobs):
            self._store_group(run, done, rows, moved_from, left, few)
            run.done += len(done.prepared) + len(done.same) + len(done.gone) + len(done.failed)
            self._done(run, done.keys)
            last = done.prepared[-1].note.path if done.prepared else ""
            run.progress(run.done, run.total, last)
        self._done(run, set(vanished) - left)
        gone = sorted(left)
        for start in range(0, len(gone), self._group_notes):
            with self._apply_lock:
                part = [key for key in gone[start : start + self._group_notes] if key not in run.overtaken]
                self.store.apply(Batch(delete=part), settle=few)
                self._overtake(run, part)
            run.done += len(gone[start : start + self._group_notes])
            self._done(run, gone[start : start + self._group_notes])
            run.count(removed=len(part))
            if few and len(gone) <= self._few:
                self._on_event({"type": "stored", "removed": part})
            run.progress(run.done, run.total, part[-1][1] if part else "")
        if jobs or gone:
            self.background.wake()
        return run.report.removed - before

    def _store_group(
        self,
        run: _Pass,
        done: prepare.PreparedBatch,
        rows: Mapping[Key, FileRow],
        moved_from: dict[str, list[Key]],
        left: set[Key],
        few: bool,
    ) -> None:
        if self._settings.table and done.vectors is not None:
            added, _ = self.store.cache.put(self._table.fingerprint, done.hashes, done.vectors)
        else:
            added = embed_texts(self.store, self._table, done.prepared)
        with self._apply_lock:
            put = [note for note in done.prepared if note.key not in run.overtaken]
            moves: list[tuple[Key, Key]] = []
            for note in put:
                while note.key not in rows and moved_from.get(note.hash):
                    old = moved_from[note.hash].pop()
                    if old not in run.overtaken:
                        moves.append((old, note.key))
                        left.discard(old)
                        break
            same = [info for info in done.same if info.key not in run.overtaken]
            # A file that went while we looked: its deletion is an event of its own, or found by the next pass.
            states = [(bad.key, bad.state) for bad in done.failed]
            self.store.apply(Batch(put=put, move=moves, restat=same, state=states), settle=few)
            self._overtake(run, [note.key for note in put] + [old for old, _ in moves])
        if done.failed:
            known = {row.key: row for row in (*self.store.notes.skipped(), *done.failed)}
            self.store.notes.set_skipped(list(known.values()))
        new = [note.key for note in put if note.key not in rows]
        changed = [note.key for note in put if note.key in rows]
        if few:
            come = sorted({*new} - {key for _, key in moves})
            self._on_event({"type": "stored", "added": come, "changed": changed, "moved": moves})
        run.count(
            added=len(new) - len(moves),
            moved=len(moves),
            changed=len(changed),
            unchanged=len(done.same),
            failed=len(done.failed),
            embedded=added,
        )

    def _overtake(self, run: _Pass, keys: Iterable[Key]) -> None:
        """Tell the other running passes that what they know of these notes is out of date."""
        fresh = set(keys)
        for running in self._running:
            if running is not run:
                running.overtaken |= fresh

    def _prepared(self, jobs: Sequence[prepare.ReadJob]) -> Iterator[prepare.PreparedBatch]:
        """The jobs' results, group by group: here for a few notes, in child processes for many."""
        if not jobs:
            return
        settings = self._settings_of(jobs[0].info.collection)
        settings = replace(settings, private=frozenset(path.casefold() for path in self._private_paths()))
        if len(jobs) <= self._few and sum(job.info.size for job in jobs) <= _GROUP_BYTES:
            yield prepare.prepare_group(jobs, settings)
            return
        waiting = deque(_groups(jobs, self._group_notes))
        running: deque[tuple[list[prepare.ReadJob], Future[prepare.PreparedBatch]]] = deque()
        try:
            while waiting or running:
                while waiting and len(running) < self._ahead:
                    group = waiting.popleft()
                    running.append((group, self._pool.submit("tarsd.index.prepare:prepare_group", group, settings)))
                group, future = running.popleft()
                try:
                    yield future.result()
                except ChildDied:
                    yield from self._one_by_one(group, settings)
        finally:
            for _, future in running:
                future.cancel()

    def _one_by_one(
        self, group: Sequence[prepare.ReadJob], settings: prepare.PrepareSettings
    ) -> Iterator[prepare.PreparedBatch]:
        """After a child died: each note alone, so that the one to blame is found and only it is left out."""
        for job in group:
            try:
                yield self._pool.call("tarsd.index.prepare:prepare_group", [job], settings)
            except ChildDied:
                info = job.info
                why = "Reading this note crashed."
                row = Skipped(info.collection, info.path, "unreadable", why, "Please report this.")
                yield prepare.PreparedBatch(failed=[row])


def _groups(jobs: Sequence[prepare.ReadJob], most: int) -> Iterator[list[prepare.ReadJob]]:
    group: list[prepare.ReadJob] = []
    size = 0
    for job in jobs:
        if group and (len(group) >= most or size + job.info.size > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(job)
        size += job.info.size
    if group:
        yield group
