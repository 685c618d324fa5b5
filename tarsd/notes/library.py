"""The notes in the index and on disk, and which of them are private. `Reader` decides who may read what."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from tarsd.chunk import with_properties
from tarsd.config import Config
from tarsd.errors import NotFound, PathRefused, StoreError, TarsdError, VaultUnavailable
from tarsd.index.files import suffixes, text_of
from tarsd.index.prepare import is_private, note_row
from tarsd.memory import holds_private, session_name, sessions_of
from tarsd.notes.note_view import NoteView
from tarsd.notes.resolve import NameIndex, file_of, fold, fold_path, link_target
from tarsd.parse import JSON, Note, access, parse
from tarsd.passage import Key, NoteRow, Origin, Passage
from tarsd.query import Executor
from tarsd.search import Searcher
from tarsd.store import Batch
from tarsd.vault import FileInfo, Vault, content_hash, decode, kind_of, nfc
from tarsd.writing import Loaded

CONVERSATIONS = frozenset({"session", "summary"})
"""Values of the property `tars` whose notes hold a conversation; the others' lines name the ones they come from."""
WITHOUT_LOG = frozenset({"mcp", "review"})
"""What a line may name as where it comes from that is no conversation: its own mark counts alone."""

T = TypeVar("T")

SETTLED_S = 2.0
"""A file that is older than this has another time stamp when it changes, on any disk."""


@dataclass(frozen=True)
class _Stated:
    """Whether a note is private by its text, tags and path; and for our own notes, what they were made from.

    That are the `sessions` that its lines name, or the `conversation` that it holds and the `sources` of that.
    """

    private: bool
    ours: bool = False
    sessions: frozenset[str] = frozenset()
    conversation: str | None = None
    sources: JSON = None


@dataclass
class _Inquiry:
    """One look at whether something is private: the verdicts so far, and what was `asked` already.

    What was made of each other is followed once.
    """

    leaves: dict[Key, bool | None] = field(default_factory=dict)
    asked: set[object] = field(default_factory=set)


MOST_KEPT = 4
"""What is made of the whole index for one audience is large."""


class NoteLibrary:
    """Every note of the vault and its collections. `searcher` gives the searcher, and waits or raises without one.

    `private_paths` are the vault's notes that are ours and private whatever they say of themselves: those of
    conversations, whose properties somebody may have taken out. `drew_on` gives what a conversation drew on by its
    log, None without one; it is named as comments name it. `behind`, `notices` and `away` are the index's own.
    """

    def __init__(
        self,
        searcher: Callable[[], Searcher],
        vaults: Mapping[str, Vault],
        config: Config,
        *,
        behind: Callable[[], int] = lambda: 0,
        notices: Callable[[], list[str]] = list,
        away: Callable[[], str] = str,
        private_paths: Callable[[], Collection[str]] = frozenset,
        drew_on: Callable[[str], Collection[Origin] | None] = lambda session: None,
    ) -> None:
        self.searcher = searcher
        self.queries = Executor()
        self.behind = behind
        self.notices = notices
        self.away = away
        self.config = config
        self.vaults = vaults
        self._private_paths = private_paths
        self._drew_on = drew_on
        self._names: tuple[int, NameIndex] = (-1, NameIndex(()))
        self._held: tuple[int, dict[str, list[list[JSON]]]] = (-1, {})
        self._read: dict[Key, tuple[tuple[int, ...], _Stated]] = {}
        self._kept: tuple[int, dict[str, Any]] = (-1, {})

    # -------------------------------------------------------------------------------------------- in the index

    def rows(self) -> Sequence[NoteRow]:
        """All notes as the index knows them, marked as private by the conversations' logs as well."""
        private = self._private()
        rows = self.searcher().store.notes.titles()
        return [self._marked(row, private) for row in rows] if private else rows

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """What is made of the whole index, the same as long as that does; only the last few by name are kept."""
        generation = self.searcher().store.database.generation
        known, kept = self._kept
        if known != generation or name not in kept:
            others = list(kept.items())[1 - MOST_KEPT :] if known == generation else []
            kept = {**dict(others), name: make()}
            self._kept = (generation, kept)
        return cast(T, kept[name])

    def named(self, name: str, hidden: Collection[int] = ()) -> list[NoteRow]:
        """The notes that a link with this target may mean, as `NameIndex.find`. Raises `StoreError`."""
        private = self._private()
        return [self._marked(row, private) for row in self._index_of_names().find(name, hidden)]

    def _index_of_names(self) -> NameIndex:
        store = self.searcher().store
        generation = store.database.generation
        if self._names[0] != generation:
            self._names = (generation, NameIndex(store.notes.titles()))
        return self._names[1]

    def exists(self, name: str, *, private: bool = True) -> bool:
        """Whether a link with this target leads to a note, `private` or not; False if unknown."""
        try:
            return any(private or not row.local_only for row in self.named(name))
        except TarsdError:
            return False

    def key_of(self, name: str) -> Key:
        """The note that its owner means by this path, name, alias or whole `[[link]]`; a path goes first.

        Where there is none in the index, the path in the vault at which it would be. Raises `PathRefused`.
        """
        self.check(name, excluded=True)
        store = self.searcher().store
        places = [(collection, nfc(name)) for collection in self.vaults]
        if (exact := next((key for key in places if store.notes.note(key) is not None), None)) is not None:
            return exact
        target = nfc(link_target(name)[0]) or name
        self.check(target, excluded=True)
        if rows := self.named(target):
            return rows[0].key
        return self.unindexed(target) or places[0]

    def unindexed(self, target: str) -> Key | None:
        """A file of this path, or name, that is not in the index; None where there is none that can be seen."""
        wanted = fold(target)
        with contextlib.suppress(VaultUnavailable):
            for collection, vault in self.vaults.items():
                files = (path for path in vault.names() if not path.endswith("/"))
                named = [nfc(path) for path in files if f"/{fold(path)}".endswith(f"/{wanted}")]
                if named:
                    return collection, min(named, key=lambda path: (fold(path) != wanted, path.count("/"), path))
        return None

    def suggestion(self, name: str) -> str:
        """For the owner of the notes: “Did you mean …?” with a name that is spelled almost so, "" without one."""
        close = self._index_of_names().close_to(link_target(name)[0])
        return f"Did you mean “{close}”?" if close else ""

    def session_note(self, conversation: str) -> str | None:
        """The path of the note that holds a conversation, wherever the person moved it."""
        notes = self.searcher().store.notes
        ours = {row.id: row.path for row in notes.titles() if row.ours and not row.memory_type and not row.collection}
        properties = notes.properties(ours) if ours else {}
        found = (path for id, path in ours.items() if properties.get(id, {}).get("id") == conversation)
        return next(found, None)

    def marked(self, passages: Sequence[Passage]) -> list[Passage]:
        """What may be a source, by all that is known: no conversation, no prompt, and private is private."""
        passages = [passage for passage in passages if not self.instructs(passage.note)]
        private = self._private()
        if not private:
            return passages
        found = [replace(passage, note=self._marked(passage.note, private)) for passage in passages]
        return [passage for passage in found if passage.note.memory_type or not _is_in(passage.note, private)]

    def instructs(self, note: NoteRow) -> bool:
        """Whether it is a prompt or of a skill, which tell the assistant what to do and nothing of the person."""
        own = fold_path(self.config.memory_folder)
        return not note.collection and fold_path(note.path).startswith((f"{own}/prompts/", f"{own}/skills/"))

    def stored(self, name: str) -> tuple[NoteRow, list[Passage]]:
        """A note by name with its passages, as the index has them; while the vault is away nothing else is known."""
        rows = self.named(name)
        if not rows:
            raise NotFound(f"There is no readable note “{name}”.")
        passages = self.searcher().store.notes.passages_of(rows[0].id)
        return rows[0], [replace(passage, note=rows[0]) for passage in passages]

    # -------------------------------------------------------------------------------------------- on disk

    def check(self, path: str, *, excluded: bool = False) -> None:
        """Refuse a path that leaves the vault, or (without `excluded`) is left out of it. Raises `PathRefused`."""
        self.vaults[""].resolve(path, excluded=excluded)

    def open(self, name: str) -> NoteView:
        """The note with this path, title or alias, as it is on disk now. Raises as `view`, and `StoreError`."""
        rows = self.named(name)
        if not rows and (view := self.file(name)) is not None:
            return view
        return self.view(rows[0].key if rows else ("", file_of(name)))

    def file(self, name: str, *, private: bool = True) -> NoteView | None:
        """A file that is no note, with what was read of it as its text; None where there is none of this name.

        Without `private`, those that are private now are not known.
        """
        try:
            files = self.searcher().files
        except StoreError:  # without an index there are notes, and no files
            return None
        if files is None:
            return None
        notes = files.store.notes
        rows = [replace(row, local_only=self._by_rule(row)) for row in notes.titles()]
        hidden = () if private else {row.id for row in rows if row.local_only}
        found = [row for row in NameIndex(rows).find(name, hidden) if self._file_private(row) is not None]
        if not found:
            return None
        row = found[0]
        text = text_of(notes.passages_of(row.id))
        return NoteView(row, Loaded(row.path, text.encode(), text, "utf-8", content_hash(text.encode())))

    def load(self, key: Key) -> tuple[FileInfo, Loaded]:
        """The file at (collection, path) as it is on disk now. Raises `NotFound`, `Unreadable`, `VaultUnavailable`."""
        collection, path = key
        vault = self.vaults[collection]
        missing = NotFound(f"There is no note “{path.removesuffix('.md')}” to read.")
        try:
            vault.resolve(path)
        except PathRefused:
            raise missing from None
        info = vault.scan([path]).files.get(key)
        if info is None:
            raise missing
        raw = vault.read(info)
        decoded = decode(raw)
        return info, Loaded(path, raw, decoded.text, decoded.encoding, content_hash(raw))

    def view(self, key: Key) -> NoteView:
        """The note at (collection, path), and whether it is private, as it is on disk now. Raises as `load`."""
        info, loaded = self.load(key)
        note = parse(loaded.text, info.path)
        stated = self._stated(info.key, note, loaded.text)
        private = stated.private or (stated.ours and self._follows(info.key, stated, _Inquiry()))
        ours = note.ours or self._is_listed(info.key)
        row = note_row(info, loaded.raw, note, ours=ours, local_only=private)
        return NoteView(row, loaded)

    def passages(self, view: NoteView) -> list[Passage]:
        """All passages of a note as it is now; of a file, as it was read."""
        files = self.searcher().files if view.note.of_file else None
        if files is not None:
            return [replace(passage, note=view.note) for passage in files.store.notes.passages_of(view.note.id)]
        note = parse(view.loaded.text, view.path)
        return [replace(passage, note=view.note) for passage in with_properties(note, self.config.chunk)]

    # -------------------------------------------------------------------------------------------- private or not

    def private_now(self, row: NoteRow) -> bool | None:
        """Whether a note is private on disk now, None when it is gone or not to be read.

        What the index says holds while the vault is away: it learns a moment later what became private.
        """
        if row.of_file:
            return self._file_private(row)
        try:
            return self.view(row.key).local_only or row.local_only
        except VaultUnavailable:
            return row.local_only
        except TarsdError:
            return None

    def private_by_rule(self, path: str, note: Note, text: str) -> bool:
        """Whether a file that is no note of the index, such as one of a skill, is private by the rules."""
        return access.is_local_only(path, note, self.config.privacy.local_only, text)

    def private_file(self, key: Key) -> bool | None:
        """As `private_now`, of the file at (collection, path) that is no note."""
        return self._file_private(NoteRow(collection=key[0], path=key[1]))

    def _file_private(self, row: NoteRow) -> bool | None:
        """As `private_now`, of a file that is no note: its folder says it."""
        vault = self.vaults.get(row.collection)
        if vault is None:
            return None
        try:
            there = vault.resolve(row.path)
        except TarsdError:  # left out by now, perhaps by Obsidian's settings
            return None
        if not os.path.lexists(there) and os.path.isdir(vault.root):
            return None
        return self._by_rule(row)

    def _by_rule(self, row: NoteRow) -> bool:
        return row.local_only or is_private(row.path, self.config.privacy.local_only)

    def looked_at(self, passages: Sequence[Passage]) -> list[Passage]:
        """The passages by what holds of their notes on disk now; those of notes that went are left out."""
        private = {passage.note.key: self.private_now(passage.note) for passage in passages}
        return [
            passage if passage.local_only or not now else replace(passage, note=replace(passage.note, local_only=True))
            for passage in passages
            if (now := private[passage.note.key]) is not None
        ]

    def any_private(self, origins: Iterable[Origin]) -> bool:
        """Whether what was made from these must stay on this machine, as they are now: moved, tagged, under new rules.

        A note that is no more where it was is the one that has its passage now; one that is nowhere counts as private.
        """
        return self._any_private(origins, _Inquiry())

    def session_private(self, session: str) -> bool:
        """Whether what was learnt in a conversation, named as in a comment, must stay on this machine now."""
        return self._session_private(session, _Inquiry())

    def remark(self) -> list[str]:
        """Bring the index's marks of our own notes in line with what these were made from; the paths that changed."""
        store = self.searcher().store
        wrong: list[tuple[Key, bool]] = []
        inquiry = _Inquiry()
        for row in [row for row in store.notes.titles() if row.ours]:
            inquiry.asked.clear()
            private = self._private_at(row.key, inquiry)
            if private is not None and private != row.local_only:
                wrong.append((row.key, private))
        if wrong:
            store.apply(Batch(mark=wrong))
        return [path for (_, path), _ in wrong]

    def _any_private(self, origins: Iterable[Origin], inquiry: _Inquiry) -> bool:
        fresh = set(origins) - inquiry.asked
        inquiry.asked |= fresh
        return any(self._origin_private(origin, inquiry) for origin in fresh)

    def _origin_private(self, origin: Origin, inquiry: _Inquiry) -> bool:
        """Whether a source note is private now, or unknown."""
        place = (origin.collection, nfc(origin.path))
        here = self._private_at(place, inquiry)
        if here:
            return True
        try:
            searcher = self.searcher()
            stores = [one.store for one in (searcher, searcher.files) if one is not None and origin.hash]
            rows = [row for store in stores for row in store.notes.holding(bytes.fromhex(origin.hash))]
        except (StoreError, ValueError):
            rows = []
        keys = {row.key for row in rows}
        if here is False and (place in keys or not keys):
            return False
        # it was moved; what lies in its place now, if anything does, is another note
        moved = {self._private_at(key, inquiry) for key in keys - {place}}
        return True in moved or (here is None and False not in moved)

    def _private_at(self, key: Key, inquiry: _Inquiry) -> bool | None:
        """Whether the note at (collection, path) is private on disk now, None when none can be read there."""
        if key in inquiry.asked:
            return False
        if key not in inquiry.leaves and kind_of(key[1], suffixes(self.config.files.kinds)) is not None:
            inquiry.leaves[key] = self.private_file(key)
        if key not in inquiry.leaves:
            try:
                stated = self._stated_at(key)
            except VaultUnavailable:
                row = self.searcher().store.notes.note(key)
                inquiry.leaves[key] = None if row is None else row.local_only
            except TarsdError:
                inquiry.leaves[key] = None
            else:
                if stated.ours and not stated.private:
                    return self._follows(key, stated, inquiry)
                inquiry.leaves[key] = stated.private
        return inquiry.leaves[key]

    def _stated_at(self, key: Key) -> _Stated:
        """What the note at (collection, path) says now; read only when its file is another one. Raises as `load`."""
        collection, path = key
        if collection not in self.vaults:
            raise NotFound(f"There is no collection “{collection}”.")
        version = _version(self.vaults[collection].root / path)
        known = self._read.get(key)
        if known is not None and known[0] == version:
            return known[1]
        _, loaded = self.load(key)
        stated = self._stated(key, parse(loaded.text, path), loaded.text)
        if version is not None:
            self._read[key] = (version, stated)
        return stated

    def _stated(self, key: Key, note: Note, text: str) -> _Stated:
        # somebody may have taken out the property by which a note of lines is known as ours
        own = not key[0] and fold_path(key[1]).startswith(f"{fold_path(self.config.memory_folder)}/")
        private = access.is_local_only(key[1], note, self.config.privacy.local_only, text)
        private = private or (own and holds_private(text)) or self._is_listed(key)
        if not (own or note.ours):
            return _Stated(private)
        if note.properties.get("tars") not in CONVERSATIONS:
            return _Stated(private, True, sessions_of(text))
        return _Stated(
            private, True, conversation=str(note.properties.get("id", "")), sources=note.properties.get("sources")
        )

    def _follows(self, key: Key, stated: _Stated, inquiry: _Inquiry) -> bool:
        """Whether one of our own notes, not marked private itself, is private because of its sources."""
        inquiry.asked.add(key)
        if stated.conversation is None:
            return any(self._session_private(session, inquiry) for session in stated.sessions)
        origins = self._origins_of(stated.conversation, stated.sources)
        return origins is None or self._any_private(origins, inquiry)

    def _session_private(self, session: str, inquiry: _Inquiry) -> bool:
        name = session_name(session)
        if not name or name in WITHOUT_LOG or name in inquiry.asked:
            return False
        inquiry.asked.add(name)
        origins = self._origins_of(name)
        return origins is None or self._any_private(origins, inquiry)

    def _origins_of(self, session: str, sources: JSON = None) -> Collection[Origin] | None:
        """The notes that a conversation used: by its log, else by the `sources` of its notes; None if unknown."""
        name = session_name(session)
        found = self._drew_on(name) if name else None
        if found is not None:
            return found
        listed = [sources] if isinstance(sources, list) else self._sources_of(name)
        return [origin for names in listed for one in names for origin in self._named_origins(str(one))] or (
            [] if listed else None
        )

    def _sources_of(self, session: str) -> list[list[JSON]]:
        """The property `sources` of the notes of a conversation, wherever they are."""
        if not session:
            return []
        try:
            store = self.searcher().store
        except StoreError:
            return []
        generation = store.database.generation
        if self._held[0] != generation:
            ours = [row.id for row in store.notes.titles() if row.ours]
            held: dict[str, list[list[JSON]]] = {}
            for about in store.notes.properties(ours).values():
                if about.get("tars") in CONVERSATIONS and isinstance(about.get("sources"), list):
                    held.setdefault(session_name(str(about.get("id", ""))), []).append(about["sources"])
            self._held = (generation, held)
        return self._held[1].get(session, [])

    def _named_origins(self, name: str) -> list[Origin]:
        """The notes that an entry of `sources` names; one that leads nowhere is told as where it would be."""
        target = link_target(name)[0]
        return [row.origin for row in self.named(target)] or [Origin("", file_of(target))]

    def _is_listed(self, key: Key) -> bool:
        return not key[0] and fold_path(key[1]) in self._private()

    def _private(self) -> frozenset[str]:
        return frozenset(map(fold_path, self._private_paths()))

    @staticmethod
    def _marked(row: NoteRow, private: Collection[str]) -> NoteRow:
        return replace(row, local_only=True, ours=True) if _is_in(row, private) else row


def _is_in(row: NoteRow, private: Collection[str]) -> bool:
    return bool(private) and not row.collection and fold_path(row.path) in private


def _version(file: Path) -> tuple[int, ...] | None:
    """What tells a file's content from that of before; None if it is not there, or changed a moment ago."""
    try:
        about = os.stat(file)
    except (OSError, ValueError):
        return None
    young = time.time() - max(about.st_mtime, about.st_ctime) < SETTLED_S
    return None if young else (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
