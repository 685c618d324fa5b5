"""The notes as they are: in the index, and on disk now; and what is private of them. `Reader` decides who gets what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tarsd.chunk import chunk
from tarsd.config import Config
from tarsd.errors import NotFound, PathRefused, TarsdError, VaultUnavailable
from tarsd.index.prepare import note_row
from tarsd.memory import holds_private
from tarsd.notes.resolve import NameIndex, file_of, fold_path
from tarsd.parse import Note, access, parse, source_lines
from tarsd.passage import Key, NoteRow, Passage
from tarsd.search import Searcher
from tarsd.vault import FileInfo, Vault, content_hash, decode, nfc
from tarsd.writing import Loaded


@dataclass(frozen=True)
class NoteView:
    """A note as it is on disk now: where it lies, what it is, and its live text."""

    note: NoteRow
    loaded: Loaded

    @property
    def path(self) -> str:
        return self.note.path

    @property
    def title(self) -> str:
        return self.note.title

    @property
    def local_only(self) -> bool:
        return self.note.local_only

    @property
    def ours(self) -> bool:
        """Whether it is a conversation with tarsd, or memory."""
        return self.note.ours

    @property
    def collection(self) -> str:
        return self.note.collection

    def lines(self, note: Note) -> list[str]:
        """The lines of `note`, which is this text parsed, with their own numbers; a `.base` is read as its source."""
        source = source_lines(self.loaded.text)
        if note.path.lower().endswith(".base"):
            return source
        body = note.body_line - 1
        return [*source[:body], *note.lines[body:]]


class NoteLibrary:
    """Every note of the vault and its collections. `searcher` gives the searcher, and waits or raises without one.

    `private_paths` are the vault's notes that are ours and private whatever they say of themselves: those of
    conversations, whose properties somebody may have taken out. `behind` and `notices` are the index's own.
    """

    def __init__(
        self,
        searcher: Callable[[], Searcher],
        vaults: Mapping[str, Vault],
        config: Config,
        *,
        behind: Callable[[], int] = lambda: 0,
        notices: Callable[[], list[str]] = list,
        private_paths: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self.searcher = searcher
        self.behind = behind
        self.notices = notices
        self.config = config
        self.vaults = vaults
        self._private_paths = private_paths
        self._names: tuple[int, NameIndex] = (-1, NameIndex(()))

    # -------------------------------------------------------------------------------------------- in the index

    def rows(self) -> Sequence[NoteRow]:
        """All notes as the index knows them, marked as private by the conversations' logs as well."""
        private = self._private()
        rows = self.searcher().store.notes.titles()
        return [self._marked(row, private) for row in rows] if private else rows

    def named(self, name: str, hidden: Collection[int] = ()) -> list[NoteRow]:
        """The notes that a link with this target may mean, as `NameIndex.find`. Raises `StoreError`."""
        store = self.searcher().store
        generation = store.database.generation
        if self._names[0] != generation:
            self._names = (generation, NameIndex(store.notes.titles()))
        private = self._private()
        return [self._marked(row, private) for row in self._names[1].find(name, hidden)]

    def exists(self, name: str) -> bool:
        """Whether a link with this target leads to a note; False while the index cannot tell."""
        try:
            return bool(self.named(name))
        except TarsdError:
            return False

    def key_of(self, path: str) -> Key:
        """The note with exactly this path: in the vault, or else in the first collection that has it."""
        self.check(path, excluded=True)
        store = self.searcher().store
        places = [(name, nfc(path)) for name in self.vaults]
        return next((key for key in places if store.notes.note(key) is not None), places[0])

    def session_note(self, conversation: str) -> str | None:
        """The path of the note that holds a conversation, wherever the person moved it."""
        notes = self.searcher().store.notes
        ours = {row.id: row.path for row in notes.titles() if row.ours and not row.memory_type and not row.collection}
        properties = notes.properties(ours) if ours else {}
        found = (path for id, path in ours.items() if properties.get(id, {}).get("id") == conversation)
        return next(found, None)

    def marked(self, passages: Sequence[Passage]) -> list[Passage]:
        """What may be a source, by all that is known: no conversation, and private is private."""
        private = self._private()
        if not private:
            return list(passages)
        found = [replace(passage, note=self._marked(passage.note, private)) for passage in passages]
        return [passage for passage in found if passage.note.memory_type or not _is_in(passage.note, private)]

    def stored(self, name: str) -> tuple[NoteRow, list[Passage]]:
        """A note by name with its passages, as the index has them; while the vault is away nothing else is known."""
        rows = self.named(name)
        if not rows:
            raise NotFound(f"There is no note “{name}” to read.")
        passages = self.searcher().store.notes.passages_of(rows[0].id)
        return rows[0], [replace(passage, note=rows[0]) for passage in passages]

    # -------------------------------------------------------------------------------------------- on disk

    def check(self, path: str, *, excluded: bool = False) -> None:
        """Refuse a path that leaves the vault, or (without `excluded`) is left out of it. Raises `PathRefused`."""
        self.vaults[""].resolve(path, excluded=excluded)

    def open(self, name: str) -> NoteView:
        """The note with this path, title or alias, as it is on disk now. Raises as `view`, and `StoreError`."""
        rows = self.named(name)
        return self.view(rows[0].key if rows else ("", file_of(name)))

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
        listed = not info.collection and fold_path(info.path) in self._private()
        private = listed or self._is_local_only(key, note, loaded.text)
        row = note_row(info, loaded.raw, note, ours=note.ours or listed, local_only=private, mtime_ns=info.mtime_ns)
        return NoteView(row, loaded)

    def passages(self, view: NoteView) -> list[Passage]:
        """All passages of a note as it is now."""
        note = parse(view.loaded.text, view.path)
        return [replace(passage, note=view.note) for passage in chunk(note, self.config.chunk)]

    # -------------------------------------------------------------------------------------------- private or not

    def private_now(self, row: NoteRow) -> bool | None:
        """Whether a note is private on disk now, None when it is gone or not to be read.

        What the index says holds while the vault is away: it learns a moment later what became private.
        """
        try:
            return self.view(row.key).local_only or row.local_only
        except VaultUnavailable:
            return row.local_only
        except TarsdError:
            return None

    def looked_at(self, passages: Sequence[Passage]) -> list[Passage]:
        """The passages by what holds of their notes on disk now; those of notes that went are left out."""
        private = {passage.note.key: self.private_now(passage.note) for passage in passages}
        return [
            passage if passage.local_only or not now else replace(passage, note=replace(passage.note, local_only=True))
            for passage in passages
            if (now := private[passage.note.key]) is not None
        ]

    def any_private(self, paths: Collection[str]) -> bool:
        """Whether any of these notes of the vault must not leave this machine; one that is gone by its folder."""
        if not self._private().isdisjoint(map(fold_path, paths)):
            return True
        wanted = set(paths)
        rows = [row for row in self.searcher().store.notes.titles() if row.path in wanted]
        gone = wanted - {row.path for row in rows}
        rules = self.config.privacy.local_only
        return any(row.local_only for row in rows) or any(
            access.is_local_only(path, parse("", path), rules) for path in gone
        )

    def _is_local_only(self, key: Key, note: Note, text: str) -> bool:
        if access.is_local_only(key[1], note, self.config.privacy.local_only, text):
            return True
        # somebody may have taken out the property by which a note of lines is known as ours
        own = not key[0] and fold_path(key[1]).startswith(f"{fold_path(self.config.memory_folder)}/")
        return own and holds_private(text)

    def _private(self) -> frozenset[str]:
        return frozenset(map(fold_path, self._private_paths()))

    @staticmethod
    def _marked(row: NoteRow, private: Collection[str]) -> NoteRow:
        return replace(row, local_only=True, ours=True) if _is_in(row, private) else row


def _is_in(row: NoteRow, private: Collection[str]) -> bool:
    return bool(private) and not row.collection and fold_path(row.path) in private
