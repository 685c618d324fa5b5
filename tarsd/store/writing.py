"""Changes of notes: one short transaction for whole notes, then links and what depends on them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from tarsd.passage import Key
from tarsd.store import links
from tarsd.store.database import fetch
from tarsd.store.rows import Batch, Prepared
from tarsd.store.spaces import Spaces
from tarsd.store.text import segment
from tarsd.vault import Skipped

_FTS = "INSERT INTO fts(rowid, title, aliases, tags, headings, body, anchors) VALUES (?, ?, ?, ?, ?, ?, ?)"
_SETTLED_AT_ONCE = 4_000
# Of a note's names, what goes into the row of every chunk.
_TAGS = 64
_ALIASES = 32
_NAME_CHARS = 120
_REPEATED_CHARS = 800


def fts_rows(
    path: str, title: str, aliases: Sequence[str], tags: Sequence[str], words: str, anchors: str,
    chunks: Iterable[tuple[int, int, str, str]],
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    """The rows of chunks (id, seq, trail as JSON, text) of one note; the title column also holds file name and folders.

    Each chunk is found by what its note is called, but all of that stands with the first only: many tags in the row
    of every chunk would cost chunks × tags.
    """
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0]
    short: list[str] | None = None
    for chunk_id, seq, trail, text in chunks:
        first = seq == 0
        if first:
            called = [_called(title, stem, folder), "\n".join(aliases), "\n".join(tags)]
        else:
            if short is None:
                some = (_called(title[:_REPEATED_CHARS], stem, folder), _some(aliases, _ALIASES), _some(tags, _TAGS))
                short = [segment(one) for one in some]
            called = short
        body = f"{text}\n{words}" if first else text
        rest = ("\n".join(_list(trail)), body, anchors if first else "")
        yield (chunk_id, *(map(segment, called) if first else called), *map(segment, rest))


def _called(title: str, stem: str, folder: str) -> str:
    return "\n".join((title, folder) if stem == title else (title, stem, folder))


def _some(names: Sequence[str], most: int) -> str:
    """The first names, as many as are worth repeating in each row."""
    kept: list[str] = []
    room = _REPEATED_CHARS
    for name in names[:most]:
        shown = name[:_NAME_CHARS]
        if len(shown) > room:
            break
        kept.append(shown)
        room -= len(shown) + 1
    return "\n".join(kept)


class Writing(Spaces):
    """The write side of notes. One thread at a time gets in; nothing slow happens inside."""

    def __init__(self, index: Path, embeddings: Path, *, use_vec: bool = True) -> None:
        super().__init__(index, embeddings, use_vec=use_vec)
        self._number()

    def _number(self) -> None:
        # Ids are never used twice while we run, so an id held by a running search cannot mean another chunk.
        self._next_file = int(self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM files").get)
        self._next_chunk = int(self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").get)

    def reopen(self) -> None:
        """As the base; what was in memory is forgotten with the old file."""
        with self._lock:
            self._codes.clear()
            self._notes = self._counts = self._covered = self._known_spaces = None
            self._embedders.clear()
            super().reopen()
            self._number()

    def apply(self, batch: Batch, *, settle: bool = True) -> None:
        """Perform a batch in one transaction; each note in it changes as a whole or not at all.

        Without `settle`, links and anchor texts are left for a later `settle()`; that they are is remembered.
        """
        gone: list[int] = []
        with self._transaction(self._db) as db:
            removed = self._delete(db, batch.delete, gone)
            for old, new in batch.move:
                self._move(db, old, new)
            db.executemany(
                "UPDATE files SET disk = ?, size = ?, mtime_ns = ? WHERE collection = ? AND path = ?",
                ((one.disk, one.size, one.mtime_ns, one.collection, one.path) for one in batch.restat),
            )
            db.executemany(
                "UPDATE files SET state = ? WHERE collection = ? AND path = ?",
                ((state, *key) for key, state in batch.state),
            )
            first_chunk = self._next_chunk
            for note in batch.put:
                self._put(db, note, gone)
            self._drop_chunks(db, gone)
            for space in self._plain_spaces().values() if batch.put else ():
                self._insert_codes(db, space, range(first_chunk, self._next_chunk))
            if settle:
                self._settle(db, _SETTLED_AT_ONCE)
            touched = (
                [key for key, _ in batch.state] + [one.key for one in batch.put] + [one.key for one in batch.restat]
            )
            self._after.append(lambda: self._refresh_notes(removed, touched))

    def settle(self) -> None:
        """Resolve the links and rewrite the anchor texts that earlier batches left over."""
        tables = ("dirty_keys", "dirty_files", "dirty_anchors")
        dirty = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables)
        while True:
            with self.reader() as db:
                if not db.execute(f"SELECT {dirty}").get:
                    return
            with self._transaction(self._db) as db:
                self._settle(db, _SETTLED_AT_ONCE)

    def set_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Replace the list of files that the last full scan left out."""
        if list(skipped) == self.skipped():
            return
        with self._transaction(self._db) as db:
            db.execute("DELETE FROM skipped")
            db.executemany(
                "INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?)",
                ((one.collection, one.path, one.state, one.reason, one.hint) for one in skipped),
            )

    # Within a transaction

    def _delete(self, db: apsw.Connection, keys: Sequence[Key], gone: list[int]) -> list[int]:
        removed = []
        for key in keys:
            file_id = db.execute("SELECT id FROM files WHERE collection = ? AND path = ?", key).get
            if file_id is None:
                continue
            removed.append(file_id)
            self._unlink(db, file_id)
            db.execute("INSERT OR IGNORE INTO dirty_keys SELECT key FROM names WHERE file_id = ?", (file_id,))
            gone += (row[0] for row in db.execute("SELECT id FROM chunks WHERE file_id = ?", (file_id,)))
            for table in ("links", "names", "dirty_files", "dirty_anchors"):
                db.execute(f"DELETE FROM {table} WHERE file_id = ?", (file_id,))
            db.execute("DELETE FROM files WHERE id = ?", (file_id,))
        return removed

    def _unlink(self, db: apsw.Connection, file_id: int) -> None:
        """What this note's links said of others is no longer so."""
        db.execute(
            "INSERT OR IGNORE INTO dirty_anchors SELECT target_file FROM links "
            "WHERE file_id = ? AND target_file IS NOT NULL",
            (file_id,),
        )

    def _move(self, db: apsw.Connection, old: Key, new: Key) -> None:
        file_id = db.execute("SELECT id FROM files WHERE collection = ? AND path = ?", old).get
        if file_id is None:
            return
        db.execute("INSERT OR IGNORE INTO dirty_keys SELECT key FROM names WHERE file_id = ?", (file_id,))
        db.execute("DELETE FROM names WHERE file_id = ?", (file_id,))
        db.execute("UPDATE files SET collection = ?, path = ? WHERE id = ?", (*new, file_id))
        # Its anchors leave out its own name, which has changed.
        db.execute("INSERT OR IGNORE INTO dirty_anchors VALUES (?)", (file_id,))

    def _put(self, db: apsw.Connection, prepared: Prepared, gone: list[int]) -> None:
        note = prepared.note
        known = db.execute("SELECT id, anchors FROM files WHERE collection = ? AND path = ?", note.key).fetchone()
        file_id, anchors = known if known else (self._next_file, "")
        columns = (
            prepared.disk, note.size, note.mtime_ns, prepared.hash, prepared.chunker, note.title, _json(note.aliases),
            _json(note.tags), prepared.properties, prepared.words, note.kind, note.memory_type, note.ours,
            note.local_only, _json(prepared.problems), note.state, time.time(),
        )  # fmt: skip
        if known:
            self._unlink(db, file_id)
            db.execute("DELETE FROM links WHERE file_id = ?", (file_id,))
            gone += (row[0] for row in db.execute("SELECT id FROM chunks WHERE file_id = ?", (file_id,)))
            db.execute(
                "UPDATE files SET disk = ?, size = ?, mtime_ns = ?, hash = ?, chunker = ?, title = ?, aliases = ?, "
                "tags = ?, properties = ?, words = ?, kind = ?, memory_type = ?, ours = ?, local_only = ?, "
                "problems = ?, state = ?, indexed_at = ? WHERE id = ?",
                (*columns, file_id),
            )
        else:
            self._next_file += 1
            holes = ", ".join("?" * (len(columns) + 3))
            db.execute(f"INSERT INTO files VALUES ({holes}, '')", (file_id, *note.key, *columns))
        self._put_names(db, file_id, links.keys_of(note.path, note.aliases), bool(known))
        first = self._next_chunk
        self._next_chunk += len(prepared.passages)
        db.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (id, file_id, p.seq, p.heading, _json(p.trail), p.start_line, p.end_line, p.hash, p.tokens, p.text)
                for id, p in enumerate(prepared.passages, first)
            ),
        )
        db.executemany(
            _FTS,
            fts_rows(
                note.path, note.title, note.aliases, note.tags, prepared.words, anchors,
                ((id, p.seq, _json(p.trail), p.text) for id, p in enumerate(prepared.passages, first)),
            ),
        )  # fmt: skip
        if prepared.links:
            db.executemany(
                "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (
                    (file_id, line, target, links.key_of(target), heading, block, text, embed)
                    for line, target, heading, block, text, embed in prepared.links
                ),
            )
            db.execute("INSERT OR IGNORE INTO dirty_files VALUES (?)", (file_id,))

    def _put_names(self, db: apsw.Connection, file_id: int, names: list[tuple[str, bool]], known: bool) -> None:
        if known:
            old = {
                (key, bool(alias))
                for key, alias in db.execute("SELECT key, alias FROM names WHERE file_id = ?", (file_id,))
            }
            if old == set(names):
                return
            db.execute("DELETE FROM names WHERE file_id = ?", (file_id,))
            changed = {key for key, _ in old ^ set(names)}
        else:
            changed = {key for key, _ in names}
        db.executemany("INSERT INTO names VALUES (?, ?, ?)", ((key, file_id, alias) for key, alias in names))
        db.executemany("INSERT OR IGNORE INTO dirty_keys VALUES (?)", ((key,) for key in changed))

    def _drop_chunks(self, db: apsw.Connection, gone: list[int]) -> None:
        rows = [(one,) for one in gone]
        if rows:
            db.executemany("DELETE FROM fts WHERE rowid = ?", rows)
            db.executemany("DELETE FROM chunks WHERE id = ?", rows)
            for space_id in self._plain_spaces():
                db.executemany(f"DELETE FROM vec_{space_id} WHERE chunk_id = ?", rows)
            dead = np.array(gone, dtype=np.int64)
            self._after.append(lambda: self._forget_codes(dead))

    def _forget_codes(self, dead: npt.NDArray[np.int64]) -> None:
        for codes in self._codes.values():
            codes.remove(dead)

    def _settle(self, db: apsw.Connection, limit: int) -> None:
        """Do up to `limit` files' worth of what is dirty."""
        keys = [row[0] for row in db.execute("SELECT key FROM dirty_keys LIMIT ?", (limit,))]
        files = [row[0] for row in db.execute("SELECT file_id FROM dirty_files LIMIT ?", (limit,))]
        if keys or files:
            self._resolve(db, keys, files)
            db.executemany("DELETE FROM dirty_keys WHERE key = ?", ((key,) for key in keys))
            db.executemany("DELETE FROM dirty_files WHERE file_id = ?", ((one,) for one in files))
            if len(keys) == limit or len(files) == limit:
                return
        targets = [row[0] for row in db.execute("SELECT file_id FROM dirty_anchors LIMIT ?", (limit,))]
        self._rewrite_anchors(db, targets)
        db.executemany("DELETE FROM dirty_anchors WHERE file_id = ?", ((one,) for one in targets))

    def _resolve(self, db: apsw.Connection, keys: Sequence[str], files: Sequence[int]) -> None:
        found = fetch(
            db,
            "SELECT l.rowid, l.target, l.target_key, l.target_file, f.id, f.collection, f.path "
            "FROM links l JOIN files f ON f.id = l.file_id WHERE l.rowid IN ("
            "SELECT rowid FROM links WHERE file_id IN (SELECT value FROM json_each(?1)) UNION "
            "SELECT rowid FROM links WHERE target_key IN (SELECT value FROM json_each(?2)))",
            (json.dumps(files), json.dumps(keys, ensure_ascii=False)),
        )
        wanted = json.dumps(sorted({row[2] for row in found}), ensure_ascii=False)
        bearers: dict[tuple[str, str], list[links.LinkTarget]] = {}
        for key, alias, file_id, collection, path in fetch(
            db,
            "SELECT n.key, n.alias, f.id, f.collection, f.path FROM json_each(?) j "
            "CROSS JOIN names n ON n.key = j.value CROSS JOIN files f ON f.id = n.file_id",
            (wanted,),
        ):
            bearer = links.LinkTarget(file_id, links.path_fold(path), path, bool(alias))
            bearers.setdefault((collection, key), []).append(bearer)
        changed: list[tuple[int | None, int]] = []
        heard: set[int | None] = set()
        for row, target, key, old, source, collection, path in found:
            new = links.resolve(target, path, bearers.get((collection, key), ())) if target else source
            if new != old:
                changed.append((new, row))
            # Also when it stays: the note was written anew, and its link texts may differ.
            heard |= {old, new} - {source}
        db.executemany("UPDATE links SET target_file = ? WHERE rowid = ?", changed)
        heard.discard(None)
        db.executemany("INSERT OR IGNORE INTO dirty_anchors VALUES (?)", ((one,) for one in heard))

    def _rewrite_anchors(self, db: apsw.Connection, targets: Sequence[int]) -> None:
        """Collect what others call these notes; where that changed, write the row of their first chunk anew."""
        listed = json.dumps(targets)
        texts: dict[int, list[tuple[str, int]]] = {}
        for target, text, number in fetch(
            db,
            "SELECT l.target_file, l.text, count(*) FROM json_each(?) j CROSS JOIN links l ON l.target_file = j.value "
            "WHERE l.text != '' AND l.file_id != l.target_file GROUP BY 1, 2",
            (listed,),
        ):
            texts.setdefault(target, []).append((text, number))
        sql = "SELECT f.id, f.path, f.anchors FROM json_each(?) j CROSS JOIN files f ON f.id = j.value"
        for file_id, path, old in fetch(db, sql, (listed,)):
            new = links.anchors(texts.get(file_id, ()), path)
            if new != old:
                self._rewrite_first(db, file_id, new)

    def _rewrite_first(self, db: apsw.Connection, file_id: int, anchors: str) -> None:
        db.execute("UPDATE files SET anchors = ? WHERE id = ?", (anchors, file_id))
        first = [row[0] for row in db.execute("SELECT id FROM chunks WHERE file_id = ? AND seq = 0", (file_id,))]
        db.executemany("DELETE FROM fts WHERE rowid = ?", ((one,) for one in first))
        self._add_keywords(db, file_id, first)

    def _add_keywords(self, db: apsw.Connection, file_id: int, ids: Sequence[int]) -> None:
        """Rows of the keyword index for stored chunks of one note, as `_put` writes them."""
        sql = "SELECT path, title, aliases, tags, words, anchors FROM files WHERE id = ?"
        for path, title, aliases, tags, words, anchors in fetch(db, sql, (file_id,)):
            sql = (
                "SELECT c.id, c.seq, c.trail, c.text FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value "
                "ORDER BY c.seq"
            )
            chunks = fetch(db, sql, (json.dumps(ids),))
            db.executemany(_FTS, fts_rows(path, title, _list(aliases), _list(tags), words, anchors, chunks))

    def _refresh_notes(self, removed: Iterable[int], touched: Sequence[Key]) -> None:
        """Bring the notes held in memory up to date after a commit."""
        notes = self._notes
        if notes is None:
            return
        for file_id in removed:
            notes.pop(file_id, None)
        for row in map(self.note, touched):
            if row is not None:
                notes[row.id] = row


def _list(text: str) -> list[str]:
    found: list[str] = json.loads(text) if text != "[]" else []
    return found


def _json(values: Iterable[Any]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
