"""Notes, their passages and links: what was indexed of them, read by any number of threads and changed by one."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import apsw

from tarsd.passage import Key, NoteRow, Passage
from tarsd.store import facts, links, schema
from tarsd.store.database import Database, fetch, listed
from tarsd.store.rows import Batch, FileRow, LinkRow, Prepared
from tarsd.vault import Skipped

_NOTE = (
    "id, collection, path, title, aliases, tags, kind, memory_type, ours, local_only, mtime_ns, size, state, language, "
    "date"
)
_COLUMNS = (
    "id, collection, path, disk, size, mtime_ns, hash, chunker, title, aliases, tags, properties, words, kind, "
    "memory_type, ours, local_only, problems, state, indexed_at, stamp, language, date"
)
_PROPERTY = re.compile(r"[^\s:][^:\n]*:(?:\s|$)")
_FILE = "collection, path, disk, size, mtime_ns, id, hash, chunker, state, stamp"
_PASSAGE = "c.text, c.start_line, c.end_line, c.trail, c.seq, c.tokens, c.hash, c.file_id, c.id, c.heading"


class Notes:
    """What the index holds of the notes, but words and vectors. `db` is the connection of a running transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_id: dict[int, NoteRow] | None = None
        self._reset()
        database.after_reopen.append(self._reset)

    def _reset(self) -> None:
        with self._database.publishing, self._database.reader() as db:
            self._by_id = None
            # Ids are never used twice while we run, so an id held by a running search cannot mean another chunk.
            self._next_file = int(db.execute("SELECT coalesce(max(id), 0) + 1 FROM files").get)
            self._next_chunk = int(db.execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").get)

    # Files and notes

    def rows(self, collection: str | None = None, paths: Iterable[str] | None = None) -> dict[Key, FileRow]:
        """Known files by key: all, those of a collection, or of these those at and below some paths."""
        wheres: list[tuple[str, tuple[str, ...]]] = [("", ())]
        if collection is not None:
            wheres = [(" WHERE collection = ?", (collection,))]
        if collection is not None and paths is not None:
            # "0" follows "/".
            where = " WHERE collection = ? AND (path = ? OR (path > ? AND path < ?))"
            wheres = [(where, (collection, path, f"{path}/", f"{path}0")) for path in paths]
        found: dict[Key, FileRow] = {}
        with self._database.reader() as db:
            for where, values in wheres:
                for row in fetch(db, f"SELECT {_FILE} FROM files{where}", values):
                    found[row[0], row[1]] = FileRow(*row)
        return found

    def known(self, collection: str) -> int:
        """How many files of a collection are in the index."""
        with self._database.reader() as db:
            return int(db.execute("SELECT count(*) FROM files WHERE collection = ?", (collection,)).get)

    def titles(self) -> list[NoteRow]:
        """All notes, without order; rows of unchanged notes are the same objects from call to call."""
        return list(self._all().values())

    def conversations(self) -> list[NoteRow]:
        """Session notes and summaries."""
        notes = self._all()
        with self._database.reader() as db:
            found = fetch(db, f"SELECT id FROM files WHERE {schema.OF_CONVERSATION}")
        return [notes[row[0]] for row in found if row[0] in notes]

    def note(self, key: Key) -> NoteRow | None:
        """The note at (collection, path), None if it is not in the index."""
        with self._database.reader() as db:
            row = db.execute(f"SELECT {_NOTE} FROM files WHERE collection = ? AND path = ?", key).fetchone()
        return _note(row) if row else None

    def properties(self, file_ids: Collection[int] | None = None) -> dict[int, dict[str, Any]]:
        """Frontmatter properties by file id; of all notes that have any when no ids are given."""
        sql = "SELECT id, properties FROM files WHERE properties != '{}'"
        with self._database.reader() as db:
            if file_ids is None:
                found = db.execute(sql)
            else:
                found = db.execute(f"{sql} AND id IN (SELECT value FROM json_each(?))", (listed(file_ids),))
            return {row[0]: json.loads(row[1]) for row in found}

    def indexed_at(self, keys: Sequence[Key]) -> dict[Key, float]:
        """When each of these notes was indexed last, in seconds since 1970; without those that are not known."""
        sql = (
            "SELECT f.collection, f.path, f.indexed_at FROM json_each(?) j "
            "CROSS JOIN files f ON f.collection = j.value ->> 0 AND f.path = j.value ->> 1"
        )
        with self._database.reader() as db:
            return {(name, path): at for name, path, at in fetch(db, sql, (json.dumps(keys),))}

    def skipped(self) -> list[Skipped]:
        """Files the last scan left out, with the reason."""
        with self._database.reader() as db:
            sql = "SELECT collection, path, state, reason, hint FROM skipped ORDER BY collection, path"
            return [Skipped(*row) for row in db.execute(sql)]

    def set_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Replace the list of files that the last full scan left out."""
        if list(skipped) == self.skipped():
            return
        with self._database.write() as db:
            db.execute("DELETE FROM skipped")
            db.executemany(
                "INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?)",
                ((row.collection, row.path, row.state, row.reason, row.hint) for row in skipped),
            )

    def _all(self) -> dict[int, NoteRow]:
        notes = self._by_id
        if notes is None:
            with self._database.publishing:
                if self._by_id is None:
                    with self._database.reader() as db:
                        found = (_note(row) for row in db.execute(f"SELECT {_NOTE} FROM files"))
                        self._by_id = {row.id: row for row in found}
                notes = self._by_id
        return notes

    # Passages

    def passages(self, chunk_ids: Iterable[int]) -> list[Passage]:
        """The passages with these ids, in the order asked for; ids that are gone are left out."""
        return self._passages("json_each(?) j CROSS JOIN chunks c ON c.id = j.value", listed(chunk_ids))

    def passages_of(self, file_id: int) -> list[Passage]:
        """All passages of one note, in reading order."""
        return self._passages("chunks c WHERE c.file_id = ? ORDER BY c.seq", file_id)

    def opening(self, file_id: int) -> list[Passage]:
        """The passage that a note's text begins with, or its properties where it has no other."""
        rows = self.passages_of(file_id)[:2]
        properties = rows and rows[0].start_line > 1 and not rows[0].trail and _PROPERTY.match(rows[0].text)
        return rows[-1:] if properties else rows[:1]

    def _passages(self, where: str, value: str | int) -> list[Passage]:
        notes = self._all()
        with self._database.reader() as db:
            rows = fetch(db, f"SELECT {_PASSAGE} FROM {where}", (value,))
        return [_passage(row, notes[row[7]]) for row in rows if row[7] in notes]

    def holding(self, hash: bytes) -> list[NoteRow]:
        """The notes that have a passage with this hash."""
        notes = self._all()
        with self._database.reader() as db:
            found = fetch(db, "SELECT DISTINCT file_id FROM chunks WHERE hash = ?", (hash,))
        return [notes[row[0]] for row in found if row[0] in notes]

    def files_of(self, chunk_ids: Iterable[int]) -> dict[int, int]:
        """The file id of each chunk that is still there."""
        sql = "SELECT c.id, c.file_id FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value"
        with self._database.reader() as db:
            return dict(fetch(db, sql, (listed(chunk_ids),)))

    def sizes(self, file_ids: Iterable[int]) -> dict[int, int]:
        """How many chunks each of these notes has."""
        sql = "SELECT j.value, (SELECT max(seq) + 1 FROM chunks WHERE file_id = j.value) FROM json_each(?) j"
        with self._database.reader() as db:
            return {file_id: count or 0 for file_id, count in fetch(db, sql, (listed(file_ids),))}

    def sample(self, count: int, *, conversations: bool = False) -> list[int]:
        """Up to `count` chunk ids, evenly spread over the notes; the same ones while these do not change.

        Of `conversations` only if they are wanted, and then of them alone.
        """
        not_ = "" if conversations else "NOT"
        sql = f"SELECT id FROM chunks WHERE file_id {not_} IN (SELECT id FROM files WHERE {schema.OF_CONVERSATION})"
        with self._database.reader() as db:
            first = db.execute(f"{sql} ORDER BY id LIMIT 1").get
            last = db.execute(f"{sql} ORDER BY id DESC LIMIT 1").get
            if first is None or last is None:
                return []
            step = max(1, (last - first + 1) // count)
            points = listed(range(first, last + 1, step)[:count])
            near = f"SELECT ({sql} AND id >= j.value ORDER BY id LIMIT 1) FROM json_each(?) j"
            return list(dict.fromkeys(row[0] for row in fetch(db, near, (points,))))

    def sample_texts(self, count: int) -> list[str]:
        """The texts of the passages of `sample`, none of conversations."""
        sql = "SELECT c.text FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value"
        with self._database.reader() as db:
            return [row[0] for row in db.execute(sql, (listed(self.sample(count)),))]

    # Links

    def links_from(self, file_id: int) -> list[LinkRow]:
        """The links a note holds, in reading order."""
        return self._links("l.file_id = ? ORDER BY l.rowid", file_id)

    def links_to(self, file_id: int) -> list[LinkRow]:
        """The links that point at a note, by source."""
        return self._links("l.target_file = ? ORDER BY s.path, l.rowid", file_id)

    def link_targets(self, file_ids: Collection[int] | None = None) -> dict[int, list[tuple[str, str, bool]]]:
        """The links of these notes (None: of all) by id, in reading order: target, text, and whether they embed."""
        found: dict[int, list[tuple[str, str, bool]]] = {}
        with self._database.reader() as db:
            some = "" if file_ids is None else " WHERE file_id IN (SELECT value FROM json_each(?))"
            sql = f"SELECT file_id, target, text, embed FROM links{some} ORDER BY rowid"
            for file_id, target, text, embed in fetch(db, sql, () if file_ids is None else (listed(file_ids),)):
                found.setdefault(file_id, []).append((target, text, bool(embed)))
        return found

    def backlinks(self, file_id: int | None = None) -> dict[int, list[int]]:
        """By the id of each note, or of this one, the ids of those that link to it."""
        sql = "SELECT DISTINCT target_file, file_id FROM links WHERE target_file IS NOT NULL AND target_file != file_id"
        found: dict[int, list[int]] = {}
        with self._database.reader() as db:
            own = "" if file_id is None else " AND target_file = ?"
            for target, source in fetch(db, sql + own, () if file_id is None else (file_id,)):
                found.setdefault(target, []).append(source)
        return found

    def every_link(self) -> list[tuple[int, int | None, str]]:
        """Of all links the id of the note, that of the one it leads to, None for none, and what it is written to."""
        with self._database.reader() as db:
            return fetch(db, "SELECT DISTINCT file_id, target_file, target FROM links ORDER BY file_id, target_file")

    def _links(self, where: str, file_id: int) -> list[LinkRow]:
        sql = (
            "SELECT s.path, l.line, l.target, l.heading, l.block, l.text, l.embed, t.path FROM links l "
            f"JOIN files s ON s.id = l.file_id LEFT JOIN files t ON t.id = l.target_file WHERE {where}"
        )
        with self._database.reader() as db:
            return [LinkRow(*(*row[:6], bool(row[6]), row[7])) for row in fetch(db, sql, (file_id,))]

    # Within a transaction

    def apply(self, db: apsw.Connection, batch: Batch) -> tuple[list[int], dict[int, Sequence[int]]]:
        """Perform a batch; the ids of the chunks that are gone, and those of the new ones by file id."""
        removed, gone = self._delete(db, batch.delete)
        for old, new in batch.move:
            self._move(db, old, new)
        db.executemany(
            "UPDATE files SET disk = ?, size = ?, mtime_ns = ?, stamp = ? WHERE collection = ? AND path = ?",
            ((info.location, info.size, info.mtime_ns, info.stamp, *info.key) for info in batch.restat),
        )
        db.executemany(
            "UPDATE files SET state = ? WHERE collection = ? AND path = ?",
            ((state, *key) for key, state in batch.state),
        )
        db.executemany(
            "UPDATE files SET local_only = ? WHERE collection = ? AND path = ?",
            ((private, *key) for key, private in batch.mark),
        )
        added: dict[int, Sequence[int]] = {}
        for prepared in batch.put:
            file_id, new_ids = self._put(db, prepared, gone)
            added[file_id] = new_ids
        self.drop_passages(db, gone)
        touched = [key for key, _ in (*batch.state, *batch.mark)]
        touched += [prepared.key for prepared in batch.put] + [info.key for info in batch.restat]
        self._database.after_commit(lambda: self._refresh(removed, touched))
        return gone, added

    def drop_passages(self, db: apsw.Connection, chunk_ids: Iterable[int]) -> None:
        """Remove passages; their words and vectors are removed by who keeps them."""
        db.executemany("DELETE FROM chunks WHERE id = ?", ((chunk_id,) for chunk_id in chunk_ids))

    def _delete(self, db: apsw.Connection, keys: Sequence[Key]) -> tuple[list[int], list[int]]:
        removed: list[int] = []
        gone: list[int] = []
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
            facts.drop(db, file_id)
            db.execute("DELETE FROM files WHERE id = ?", (file_id,))
        return removed, gone

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

    def _put(self, db: apsw.Connection, prepared: Prepared, gone: list[int]) -> tuple[int, range]:
        note = prepared.note
        known = db.execute("SELECT id FROM files WHERE collection = ? AND path = ?", note.key).get
        file_id: int = known or self._next_file
        columns = (
            prepared.disk, note.size, note.mtime_ns, prepared.hash, prepared.chunker, note.title, _json(note.aliases),
            _json(note.tags), prepared.properties, prepared.words, note.kind, note.memory_type, note.ours,
            note.local_only, _json(prepared.problems), note.state, time.time(), prepared.stamp,
            note.language, note.date,
        )  # fmt: skip
        if known:
            self._unlink(db, file_id)
            db.execute("DELETE FROM links WHERE file_id = ?", (file_id,))
            facts.drop(db, file_id)
            gone += (row[0] for row in db.execute("SELECT id FROM chunks WHERE file_id = ?", (file_id,)))
            db.execute(
                "UPDATE files SET disk = ?, size = ?, mtime_ns = ?, hash = ?, chunker = ?, title = ?, aliases = ?, "
                "tags = ?, properties = ?, words = ?, kind = ?, memory_type = ?, ours = ?, local_only = ?, "
                "problems = ?, state = ?, indexed_at = ?, stamp = ?, language = ?, date = ? WHERE id = ?",
                (*columns, file_id),
            )
        else:
            self._next_file += 1
            holes = ", ".join("?" * (len(columns) + 3))
            db.execute(f"INSERT INTO files({_COLUMNS}) VALUES ({holes})", (file_id, *note.key, *columns))
        facts.put(db, file_id, prepared.data)
        self._put_names(db, file_id, links.keys_of(note.path, note.aliases), bool(known))
        chunk_ids = range(self._next_chunk, self._next_chunk + len(prepared.passages))
        self._next_chunk = chunk_ids.stop
        db.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    *(id, file_id, p.seq, p.heading if p.place is None else p.place),
                    *(_json(p.trail), p.start_line, p.end_line, p.hash, p.tokens, p.text),
                )
                for id, p in zip(chunk_ids, prepared.passages, strict=True)
            ),
        )
        if prepared.links:
            db.executemany(
                "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (
                    (file_id, line, target, links.key_of(target), heading, block, text, embed)
                    for line, target, heading, block, text, embed in prepared.links
                ),
            )
            db.execute("INSERT OR IGNORE INTO dirty_files VALUES (?)", (file_id,))
        return file_id, chunk_ids

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

    def settle(self, db: apsw.Connection, limit: int) -> list[int]:
        """Resolve links and collect anchor texts, up to `limit` files' worth of what is dirty.

        The ids of the files that others call something else than before: the words of their first passage changed.
        """
        keys = [row[0] for row in db.execute("SELECT key FROM dirty_keys LIMIT ?", (limit,))]
        files = [row[0] for row in db.execute("SELECT file_id FROM dirty_files LIMIT ?", (limit,))]
        if keys or files:
            self._resolve(db, keys, files)
            db.executemany("DELETE FROM dirty_keys WHERE key = ?", ((key,) for key in keys))
            db.executemany("DELETE FROM dirty_files WHERE file_id = ?", ((file_id,) for file_id in files))
            if len(keys) == limit or len(files) == limit:
                return []
        targets = [row[0] for row in db.execute("SELECT file_id FROM dirty_anchors LIMIT ?", (limit,))]
        renamed = self._collect_anchors(db, targets)
        db.executemany("DELETE FROM dirty_anchors WHERE file_id = ?", ((file_id,) for file_id in targets))
        return renamed

    def unsettled(self) -> bool:
        """Whether links or anchor texts wait to be settled."""
        tables = ("dirty_keys", "dirty_files", "dirty_anchors")
        dirty = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables)
        with self._database.reader() as db:
            return bool(db.execute(f"SELECT {dirty}").get)

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
        touched: set[int | None] = set()
        for row, target, key, old, source, collection, path in found:
            new = links.resolve(target, path, bearers.get((collection, key), ())) if target else source
            if new != old:
                changed.append((new, row))
            # Also when it stays: the note was written anew, and its link texts may differ.
            touched |= {old, new} - {source}
        db.executemany("UPDATE links SET target_file = ? WHERE rowid = ?", changed)
        touched.discard(None)
        db.executemany("INSERT OR IGNORE INTO dirty_anchors VALUES (?)", ((file_id,) for file_id in touched))

    def _collect_anchors(self, db: apsw.Connection, targets: Sequence[int]) -> list[int]:
        """Collect what others call these notes; those of them where that changed."""
        wanted = listed(targets)
        texts: dict[int, list[tuple[str, int]]] = {}
        for target, text, number in fetch(
            db,
            "SELECT l.target_file, l.text, count(*) FROM json_each(?) j CROSS JOIN links l ON l.target_file = j.value "
            "WHERE l.text != '' AND l.file_id != l.target_file "
            f"AND l.file_id NOT IN (SELECT id FROM files WHERE {schema.OF_CONVERSATION}) GROUP BY 1, 2",
            (wanted,),
        ):
            texts.setdefault(target, []).append((text, number))
        sql = "SELECT f.id, f.path, f.anchors FROM json_each(?) j CROSS JOIN files f ON f.id = j.value"
        changed: list[tuple[str, int]] = []
        for file_id, path, old in fetch(db, sql, (wanted,)):
            new = links.anchors(texts.get(file_id, ()), path)
            if new != old:
                changed.append((new, file_id))
        db.executemany("UPDATE files SET anchors = ? WHERE id = ?", changed)
        return [file_id for _, file_id in changed]

    def _refresh(self, removed: Iterable[int], touched: Sequence[Key]) -> None:
        """Bring the notes held in memory up to date after a commit."""
        notes = self._by_id
        if notes is None:
            return
        for file_id in removed:
            notes.pop(file_id, None)
        for row in map(self.note, touched):
            if row is not None:
                notes[row.id] = row


def _note(row: Sequence[Any]) -> NoteRow:
    """A NoteRow from its columns, with the lists unpacked."""
    aliases, tags = tuple(json.loads(row[4])), tuple(json.loads(row[5]))
    return NoteRow(*(*row[:4], aliases, tags, *row[6:8], bool(row[8]), bool(row[9]), *row[10:]))


def _passage(row: Sequence[Any], note: NoteRow) -> Passage:
    text, start_line, end_line, trail, seq, tokens, hash, _, id, heading = row
    headings = tuple(json.loads(trail)) if trail != "[]" else ()
    place = None if heading == (headings[-1] if headings else "") else heading
    return Passage(text, start_line, end_line, headings, seq, tokens, hash, note, id, place=place)


def _json(values: Iterable[Any]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
