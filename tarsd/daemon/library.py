"""The notes as turns and tools see them: passages, live text, lists, and which links lead anywhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from tarsd.chat import Retrieval
from tarsd.chunk import Chunk, chunk
from tarsd.config import Config
from tarsd.daemon.naming import fold, fold_path, matching, names_of
from tarsd.errors import NotFound, PathRefused, Refused, TarsdError, VaultUnavailable
from tarsd.index.prepare import is_local_only
from tarsd.memory import holds_private
from tarsd.parse import parse
from tarsd.passage import anchor
from tarsd.providers.base import Evidence
from tarsd.search import Hit, Searcher
from tarsd.store import ChunkRow, NoteRow
from tarsd.tools import NoteEntry, NoteView
from tarsd.vault import Vault, content_hash, decode
from tarsd.writing import Loaded

MAYBE = 0.25


class Shelf:
    """The real `chat.Library` and `tools.Library`. `searcher` gives the searcher, and waits or raises without one.

    `private_paths` are the vault's notes that are ours and private whatever they say of themselves: those of
    conversations, whose properties somebody may have taken out.
    """

    def __init__(
        self,
        searcher: Callable[[], Searcher],
        vaults: Mapping[str, Vault],
        config: Config,
        *,
        behind: Callable[[], int],
        notices: Callable[[], list[str]],
        private_paths: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self._searcher = searcher
        self._vaults = vaults
        self._config = config
        self._behind = behind
        self._notices = notices
        self._private_paths = private_paths
        self._names: tuple[int, dict[str, NoteRow]] = (-1, {})

    # -------------------------------------------------------------------------------------------- passages

    def retrieve(self, query: str, limit: int, *, local: bool, memory: bool, private: bool = False) -> Retrieval:
        """As `chat.Library.retrieve`."""
        searcher, sealed = self._searcher(), self._sealed()
        results = searcher.search(query, limit=limit, evidence=True, here=private)
        found = _evident(results.hits, sealed)
        if len(found) < len(results.hits):  # a conversation took the place of notes
            found = _evident(searcher.search(query, limit=3 * limit, evidence=True, here=private).hits, sealed)[:limit]
        hits = [hit for hit in found if memory or hit.memory_type not in ("semantic", "procedural")]
        if not local:
            hits = self.looked_at(hits)
        held = [] if local else [hit for hit in hits if hit.local_only and hit.relevance >= MAYBE]
        passages = tuple(_evidence(hit) for hit in hits if local or not hit.local_only)
        return Retrieval(passages, results.degraded, tuple(dict.fromkeys(hit.path for hit in held)))

    def looked_at(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits by what holds on disk now: the index learns a moment later that a note became private, or went."""
        private: dict[tuple[str, str], bool | None] = {}
        for hit in hits:
            key = (hit.collection, hit.path)
            if key not in private:
                private[key] = self.private_now(key, hit.local_only)
        held = [(hit, private[hit.collection, hit.path]) for hit in hits]
        return [replace(hit, local_only=hit.local_only or now) for hit, now in held if now is not None]

    def private_now(self, key: tuple[str, str], before: bool) -> bool | None:
        """Whether the note at (collection, path) is private on disk now, None when it is gone or not to be read.

        `before` is what the index says, which holds while the vault is away.
        """
        try:
            return self.view(*key).local_only or before
        except VaultUnavailable:
            return before
        except TarsdError:
            return None

    def find(self, query: str, limit: int, *, local: bool, private: bool = False) -> Sequence[Evidence]:
        """As `tools.Library.find`."""
        return self.retrieve(query, limit, local=local, memory=False, private=private).passages

    def around(self, passage: Evidence) -> Sequence[Evidence]:
        """As `chat.Library.around`."""
        store = self._searcher().store
        row = store.note((passage.collection, passage.path))
        if row is None or (not row.memory_type and _is_in(row, self._sealed())):
            return []
        chunks = store.chunks_of(row.id)
        at = next((n for n, one in enumerate(chunks) if one.start_line == passage.start_line), None)
        if at is None:
            return []
        beside = [chunks[n] for n in (at - 1, at + 1) if 0 <= n < len(chunks)]
        return [_passage(row, one) for one in beside]

    def attach(self, name: str, *, local: bool) -> Sequence[Evidence]:
        """As `chat.Library.attach`: read from the vault, so that what was typed a moment ago is in it."""
        try:
            view = self.open(name)
        except VaultUnavailable:
            return self._stored(name, local)
        if view.local_only and not local:
            raise _private(name)
        note = parse(view.loaded.text, view.path)
        if view.ours and not note.memory_type:
            raise _conversation(view.title)
        return [_passage(view, one, attached=True) for one in chunk(note, self._config.chunk)]

    def _stored(self, name: str, local: bool) -> Sequence[Evidence]:
        """What is known of a note while the vault is away."""
        row = self._row(name)
        if row is None:
            raise NotFound(f"There is no note “{name}” to read.")
        sealed = _is_in(row, self._sealed())
        if (sealed or row.local_only) and not local:
            raise _private(name)
        if (sealed or row.ours) and not row.memory_type:
            raise _conversation(row.title)
        row = replace(row, local_only=row.local_only or sealed)
        return [_passage(row, one, attached=True) for one in self._searcher().store.chunks_of(row.id)]

    # -------------------------------------------------------------------------------------------- notes

    def open(self, name: str) -> NoteView:
        """As `tools.Library.open`."""
        row = self._row(name)
        return self.view(*(row.key if row is not None else ("", name if "." in name[-7:] else f"{name}.md")))

    def view(self, collection: str, path: str) -> NoteView:
        """The note at a path as it is on disk now; raises as `open`."""
        vault = self._vaults[collection]
        missing = NotFound(f"There is no note “{path.removesuffix('.md')}” to read.")
        try:
            vault.resolve(path)
        except PathRefused:
            raise missing from None
        info = vault.scan([path]).files.get((collection, path))
        if info is None:
            raise missing
        raw = vault.read(info)
        text = decode(raw)
        note = parse(text.text, path)
        sealed = not collection and fold_path(path) in self._sealed()
        private = sealed or is_local_only(path, note, self._config.privacy.local_only, text.text)
        # somebody may have taken out the property by which a note of lines is known as ours
        private = private or (not collection and self._is_own(path) and holds_private(text.text))
        loaded = Loaded(path, raw, text.text, text.encoding, content_hash(raw))
        return NoteView(path, note.title, private, note.ours or sealed, loaded, collection)

    def _is_own(self, path: str) -> bool:
        return fold_path(path).startswith(f"{fold_path(self._config.memory_folder)}/")

    def session_note(self, conversation: str) -> str | None:
        """As `chat.Library.session_note`."""
        store = self._searcher().store
        ours = {row.id: row.path for row in store.titles() if row.ours and not row.memory_type and not row.collection}
        properties = store.properties(ours) if ours else {}
        found = (path for id, path in ours.items() if properties.get(id, {}).get("id") == conversation)
        return next(found, None)

    def private(self, paths: Collection[str]) -> bool:
        """As `chat.Library.private`; a note that is gone is judged by its folder."""
        if not self._sealed().isdisjoint(map(fold_path, paths)):
            return True
        rules = self._config.privacy.local_only
        wanted = set(paths)
        rows = [row for row in self._searcher().store.titles() if row.path in wanted]
        gone = wanted - {row.path for row in rows}
        return any(row.local_only for row in rows) or any(is_local_only(one, parse("", one), rules) for one in gone)

    def exists(self, name: str) -> bool:
        """As `chat.Library.exists`."""
        try:
            return self._row(name) is not None
        except TarsdError:
            return False

    def check(self, path: str) -> None:
        """As `chat.Library.check`."""
        self._vaults[""].resolve(path)

    def behind(self) -> int:
        """As `chat.Library.behind`."""
        return self._behind()

    def notices(self) -> list[str]:
        """As `chat.Library.notices`."""
        return self._notices()

    def evident(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits without those in our own conversations; those in notes that are private by our logs are marked."""
        return _evident(hits, self._sealed())

    def parted(self, rows: Sequence[NoteRow]) -> tuple[list[NoteRow], list[NoteRow]]:
        """The notes that may leave this machine and those that may not, by the index and by our logs."""
        sealed = self._sealed()
        parts: tuple[list[NoteRow], list[NoteRow]] = ([], [])
        for row in rows:
            parts[row.local_only or _is_in(row, sealed)].append(row)
        return parts

    def _sealed(self) -> frozenset[str]:
        return frozenset(map(fold_path, self._private_paths()))

    def _row(self, name: str) -> NoteRow | None:
        """The note that a link with this target leads to: by path, by the end of a path, by title, by alias."""
        store = self._searcher().store
        generation = store.generation
        if self._names[0] != generation:
            self._names = (generation, names_of(store.titles()))
        return self._names[1].get(fold(name))

    def list(self, folder: str, tag: str, recent: bool, limit: int, *, local: bool) -> Sequence[NoteEntry]:
        """As `tools.Library.list`."""
        sealed = self._sealed()
        rows = [
            replace(row, local_only=True) if _is_in(row, sealed) else row
            for row in matching(self._searcher().store.titles(), folder, tag, recent=recent)
            if local or not (row.local_only or _is_in(row, sealed))
        ]
        return [
            NoteEntry(row.path, row.title, row.mtime_ns / 1e9, row.tags, row.local_only, row.collection)
            for row in rows[:limit]
        ]


def _is_in(one: NoteRow | Hit, sealed: Collection[str]) -> bool:
    return bool(sealed) and not one.collection and fold_path(one.path) in sealed


def _evident(hits: Sequence[Hit], sealed: Collection[str]) -> list[Hit]:
    """What may be a source, by all that is known: no conversation, and private is private."""
    found = [replace(hit, local_only=True) if _is_in(hit, sealed) else hit for hit in hits]
    return [hit for hit in found if hit.memory_type or not _is_in(hit, sealed)]


def _conversation(title: str) -> Refused:
    return Refused(f"“{title}” is a conversation with tars and is not used as a source.")


def _private(name: str) -> Refused:
    """`name` is what was asked for: what the note calls itself is private too."""
    return Refused(f"“{name}” is private and would leave this machine: it is not read.")


def _evidence(hit: Hit) -> Evidence:
    return Evidence(
        number=0,
        path=hit.path,
        title=hit.title,
        heading=hit.heading,
        link=f"[[{hit.link}]]",
        start_line=hit.start_line,
        end_line=hit.end_line,
        text=hit.text,
        relevance=hit.relevance,
        collection=hit.collection,
        local_only=hit.local_only,
        memory=hit.memory_type or "",
    )


def _passage(about: NoteRow | NoteView, one: Chunk | ChunkRow, *, attached: bool = False) -> Evidence:
    target = about.path.removesuffix(".md")
    return Evidence(
        number=0,
        path=about.path,
        title=about.title,
        heading=one.heading,
        link=f"[[{target}#{anchor(one.heading)}]]" if one.heading else f"[[{target}]]",
        start_line=one.start_line,
        end_line=one.end_line,
        text=one.text,
        relevance=1.0 if attached else 0.0,
        collection=about.collection,
        attached=attached,
        local_only=about.local_only,
    )
