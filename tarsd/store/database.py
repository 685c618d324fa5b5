"""Connections to the two files: opening, checking, moving a damaged one aside, transactions, error translation."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw

from tarsd import files
from tarsd.errors import DiskFull, StoreError
from tarsd.store import schema

BUSY_MS = 5_000
_RETRIES = 3
_IDLE_READERS = 4
_KEPT_ASIDE = 3
_SLACK_PAGES = 100
# A larger file is not read through at each start; its damage is met, and mended, when a statement comes upon it.
_CHECKED_BYTES = 1_000_000_000
_SIDE_FILES = ("", "-wal", "-shm", "-journal")


def fetch(db: apsw.Connection, sql: str, values: Any = ()) -> list[Any]:
    """All rows of a query; the types of the columns are those of the SQL."""
    return db.execute(sql, values).fetchall()


def listed(ids: Iterable[int]) -> str:
    """Ids as a JSON list, for `json_each(?)`."""
    return json.dumps([int(id) for id in ids])


def load_vec(db: apsw.Connection) -> bool:
    """Load sqlite-vec into a connection; False where it is missing or does not fit this machine."""
    try:
        import sqlite_vec

        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.enable_load_extension(False)
        db.execute("SELECT vec_version()").fetchall()
    except (ImportError, OSError, AttributeError, apsw.Error):
        return False
    return True


class _Unusable(Exception):
    """The file cannot serve as our database; `aside` says whether it is worth keeping for a look."""

    def __init__(self, reason: str, aside: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.aside = aside


class Database:
    """One writer connection behind a lock, a pool of reading ones; `index.db` with `embeddings.db` attached as `emb`.

    `notice` says in one sentence what had to be rebuilt at opening ("" if nothing); `damaged` is set as soon as a
    statement meets a malformed page, and then `on_damage` is called once, from the thread that met it. `generation`
    moves on with every change of the index. Whoever fills a cache from the file holds `publishing` meanwhile, and so
    never sees the new file without its cache being told, nor the other way round; `after_reopen` is called for those
    who keep something of it in memory.
    """

    def __init__(self, index: Path, embeddings: Path, *, use_vec: bool = True, busy_ms: int = BUSY_MS) -> None:
        self.index, self.embeddings = index, embeddings
        self.notice = ""
        self.damaged = ""
        self.on_damage: Callable[[], None] | None = None
        self.generation = 0
        self.vec0 = False
        self._use_vec = use_vec
        self._busy_ms = busy_ms
        self._lock = threading.RLock()
        self._pool_lock = threading.Lock()
        self.publishing = threading.RLock()
        self.after_reopen: list[Callable[[], None]] = []
        self._after_commit: list[Callable[[], None]] = []
        self._readers: list[apsw.Connection] = []
        self._closed = False
        self._epoch = 0
        self._open_files()

    def _open_files(self) -> None:
        for path in (self.index, self.embeddings):
            files.make_folder(path.parent)
        with self._translated():
            self._vectors = self._ensure(self.embeddings, schema.EMBEDDINGS, "the embedding cache", shared=True)
            self._db = self._ensure(self.index, schema.INDEX, "the index", shared=False)
            self._attach(self._db)
            self._match_vec_kind()

    # Opening

    def _ensure(self, path: Path, tables: schema.Tables, what: str, *, shared: bool) -> apsw.Connection:
        """A connection to a file that is ours, whole and of this format; anything else is replaced by a new one."""
        try:
            return self._connect_checked(path, tables, shared)
        except _Unusable as unusable:
            kept = _put_aside(path, keep=unusable.aside)
            where = f" (kept as {kept})" if kept else ""
            self.notice = f"{self.notice} {what.capitalize()} {unusable.reason} and is rebuilt{where}.".strip()
        return self._connect_checked(path, tables, shared)

    def _connect_checked(self, path: Path, tables: schema.Tables, shared: bool) -> apsw.Connection:
        if path.is_dir():
            raise StoreError(f"{path} is a folder, not a file.", "Move it away; the index is rebuilt.")
        # A shared file that is empty may just be being made by another vault's daemon.
        emptied = not shared and path.exists() and path.stat().st_size == 0
        if not path.exists():  # what SQLite puts beside a file gets the file's mode
            with contextlib.suppress(OSError):
                os.close(files.open_private(path, os.O_RDWR | os.O_CREAT))
        db = apsw.Connection(str(path))
        try:
            db.set_busy_timeout(self._busy_ms)
            if _create(db, tables):
                if emptied:
                    self.notice = f"{self.notice} {path.name} was empty and is rebuilt.".strip()
            else:
                _verify(db, tables)
            _tune(db)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            db.close()
            raise _Unusable("was damaged", aside=True) from error
        except BaseException:
            db.close()
            raise
        return db

    def _attach(self, db: apsw.Connection) -> None:
        self.vec0 = self._use_vec and load_vec(db)
        db.execute("ATTACH DATABASE ? AS emb", (str(self.embeddings),))

    def _match_vec_kind(self) -> None:
        """Rebuild an index whose code tables are of the other kind (the extension was added or removed)."""
        kind = "vec0" if self.vec0 else "plain"
        known = self._db.execute("SELECT value FROM meta WHERE key = 'codes'").get
        if known is not None and known != kind:
            self._db.close()
            _put_aside(self.index, keep=False)
            self.notice = "sqlite-vec was added or removed: the index is rebuilt."
            self._db = self._connect_checked(self.index, schema.INDEX, False)
            self._attach(self._db)
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('codes', ?)", (kind,))

    def reopen(self) -> None:
        """Close and open again; a damaged file is moved aside and replaced. For use after `damaged` was set."""
        with self._lock:
            self.close()
            self._epoch += 1
            self._closed, self.damaged, self.notice = False, "", ""
            self._open_files()
            self.generation += 1
            for action in self.after_reopen:
                action()

    def close(self) -> None:
        """Close every connection; the store cannot be used afterwards."""
        with self._lock, self._pool_lock:
            self._closed = True
            for db in self._readers:
                db.close()
            self._readers.clear()
            with contextlib.suppress(apsw.Error):
                self._db.execute("PRAGMA optimize")
            self._db.close()
            self._vectors.close()

    # Statements

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError) as error:
            first, self.damaged = not self.damaged, str(error) or "malformed"
            if first and self.on_damage is not None:
                self.on_damage()
            raise StoreError("The index is damaged and will be rebuilt.", "Nothing to do.") from error
        except apsw.FullError as error:
            raise DiskFull(
                "No disk space left for the index.", "Free some disk space; indexing then continues by itself."
            ) from error
        except (apsw.BusyError, apsw.LockedError) as error:
            raise StoreError("The index is locked by another program.", "Close that program.") from error
        except (apsw.ConnectionClosedError, apsw.ThreadingViolationError) as error:
            raise StoreError("The index is closed.") from error
        except apsw.Error as error:
            raise StoreError(f"The index cannot be used: {error}.", "See `tarsd doctor`.") from error

    @contextlib.contextmanager
    def reader(self) -> Iterator[apsw.Connection]:
        """A reading connection of one's own; never waits for the writer."""
        with self._translated():
            with self._pool_lock:
                if self._closed:
                    raise StoreError("The index is closed.")
                db = self._readers.pop() if self._readers else None
                epoch = self._epoch
            if db is None:
                db = apsw.Connection(str(self.index), flags=apsw.SQLITE_OPEN_READWRITE)
                db.set_busy_timeout(self._busy_ms)
                if self.vec0:
                    load_vec(db)
                db.execute("ATTACH DATABASE ? AS emb", (str(self.embeddings),))
                db.execute("PRAGMA query_only = 1; PRAGMA cache_size = -4000; PRAGMA temp_store = MEMORY")
            try:
                yield db
            except apsw.Error:
                db.close()
                raise
            else:
                with self._pool_lock:
                    if self._closed or epoch != self._epoch or len(self._readers) >= _IDLE_READERS:
                        db.close()
                    else:
                        self._readers.append(db)

    def write(self) -> contextlib.AbstractContextManager[apsw.Connection]:
        """One write transaction on the index."""
        return self._transaction(self._db)

    def write_cache(self) -> contextlib.AbstractContextManager[apsw.Connection]:
        """One write transaction on the cache of vectors."""
        return self._transaction(self._vectors)

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run an action together with the commit of the running transaction; not if it fails."""
        self._after_commit.append(action)

    @contextlib.contextmanager
    def _transaction(self, db: apsw.Connection) -> Iterator[apsw.Connection]:
        with self._lock, self._translated():
            _patiently(db, "BEGIN IMMEDIATE")
            try:
                yield db
                with self.publishing:
                    db.execute("COMMIT")
                    self.generation += db is self._db
                    for action in self._after_commit:
                        action()
            except BaseException:
                with contextlib.suppress(apsw.Error):
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                raise
            finally:
                self._after_commit.clear()

    def give_back(self) -> None:
        """Return free pages to the disk, where there are many."""
        with self._lock, self._translated():
            for db in (self._db, self._vectors):
                free = int(db.execute("PRAGMA main.freelist_count").get)
                if free > _SLACK_PAGES and free > int(db.execute("PRAGMA main.page_count").get) // 4:
                    db.execute("PRAGMA main.incremental_vacuum").fetchall()
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def meta(self, key: str) -> Any:
        """A remembered value, None if there is none."""
        with self.reader() as db:
            return db.execute("SELECT value FROM meta WHERE key = ?", (key,)).get

    def set_meta(self, key: str, value: str | int | float | None) -> None:
        """Remember a value under a key."""
        with self.write() as db:
            db.execute("INSERT INTO meta VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET value = ?2", (key, value))


def _create(db: apsw.Connection, tables: schema.Tables) -> bool:
    """Make the tables in a file that has none. Two programs may do so at once: the second finds the first's."""
    if db.execute("PRAGMA schema_version").get != 0:
        return False
    _patiently(db, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
    _patiently(db, "BEGIN IMMEDIATE")
    fresh = bool(db.execute("SELECT count(*) FROM sqlite_schema").get == 0)
    if fresh:
        db.execute(tables.sql)
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = {tables.format}")
    db.execute("COMMIT")
    return fresh


def _verify(db: apsw.Connection, tables: schema.Tables) -> None:
    """Bring an older format up to date; raise when the file is damaged, somebody else's or of another format."""
    ours = db.execute("PRAGMA application_id").get == schema.APPLICATION_ID
    if not ours:
        raise _Unusable("was not made by tarsd", aside=True)
    _upgrade(db, tables)
    if db.execute("PRAGMA user_version").get != tables.format:
        raise _Unusable("had another format", aside=tables.kept)
    small = db.execute("PRAGMA page_count").get * 4096 <= _CHECKED_BYTES
    if small and db.execute("PRAGMA quick_check(1)").get != "ok":
        raise _Unusable("was damaged", aside=True)


def _upgrade(db: apsw.Connection, tables: schema.Tables) -> None:
    """One step at a time, each in a transaction; another vault's daemon may be at it, too."""
    while db.execute("PRAGMA user_version").get in tables.upgrades:
        _patiently(db, "BEGIN IMMEDIATE")
        found = int(db.execute("PRAGMA user_version").get)
        if found in tables.upgrades:
            db.execute(tables.upgrades[found])
            db.execute(f"PRAGMA user_version = {found + 1}")
        db.execute("COMMIT")


def _tune(db: apsw.Connection) -> None:
    db.execute(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16000;"
        "PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 33554432"
    )


def _patiently(db: apsw.Connection, sql: str) -> None:
    """Run what SQLite may refuse at once, without waiting, while another program is at the same."""
    for attempt in range(_RETRIES):
        try:
            db.execute(sql)
            return
        except apsw.BusyError:
            if attempt == _RETRIES - 1:
                raise
            time.sleep(0.1)


def _put_aside(path: Path, *, keep: bool) -> str:
    """Take a database file (and what belongs to it) out of the way; the name it is kept under, "" if removed."""
    if not keep:
        for suffix in _SIDE_FILES:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        return ""
    tails = (old.name.rpartition("-")[2] for old in path.parent.glob(f"{path.name}.corrupt-*"))
    taken = sorted(int(tail) for tail in tails if tail.isdigit())
    number = taken[-1] + 1 if taken else 1
    for old in taken[: max(0, len(taken) + 1 - _KEPT_ASIDE)]:
        Path(f"{path}.corrupt-{old}").unlink(missing_ok=True)
    os.replace(path, f"{path}.corrupt-{number}")
    for suffix in _SIDE_FILES[1:]:
        # A log left beside the new file would be replayed into it.
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    return f"{path.name}.corrupt-{number}"
