"""The notes as a turn sees them: search for passages, live text for attached notes, and which links lead anywhere."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence

from tarsd.chat import Found
from tarsd.chunk import anchor, chunk
from tarsd.config import ChunkSettings
from tarsd.errors import NotFound, PathRefused, Refused, TarsdError, VaultUnavailable
from tarsd.parse import parse
from tarsd.providers.base import Evidence
from tarsd.search import Hit, Searcher
from tarsd.store import NoteRow
from tarsd.vault import Vault, decode

PRIVATE = "Passages of private notes were left out, for this chat model is not on this machine."


class Shelf:
    """The real `chat.Library`. `searcher` gives the searcher, and waits or raises while there is none."""

    def __init__(
        self,
        searcher: Callable[[], Searcher],
        vaults: Mapping[str, Vault],
        settings: ChunkSettings,
        *,
        local: bool,
        behind: Callable[[], int],
        notices: Callable[[], list[str]],
    ) -> None:
        self._searcher = searcher
        self._vaults = vaults
        self._settings = settings
        self._local = local
        self._behind = behind
        self._notices = notices
        self._names: tuple[int, dict[str, NoteRow]] = (-1, {})

    def find(self, query: str, limit: int) -> Found:
        """As `chat.Library.find`."""
        results = self._searcher().search(query, limit=limit, evidence=True)
        passages = [_evidence(hit) for hit in results.hits if not hit.ours and (self._local or not hit.local_only)]
        said = [results.degraded] if results.degraded else []
        if not self._local and any(hit.local_only for hit in results.hits):
            said.append(PRIVATE)
        return Found(tuple(passages), " ".join(said) or None)

    def attach(self, name: str) -> Sequence[Evidence]:
        """As `chat.Library.attach`: read from the vault, so that what was typed a moment ago is in it."""
        row = self._row(name)
        collection, path = row.key if row is not None else ("", name if "." in name[-7:] else f"{name}.md")
        if row is not None and row.local_only and not self._local:
            raise Refused(f"“{row.title}” is private and this chat model is not on this machine: it is not read.")
        try:
            return self._read(collection, path)
        except VaultUnavailable:
            if row is None:
                raise
            stored = self._searcher().store.chunks_of(row.id)
            return [
                _attached(collection, path, row.title, one.heading, one.start_line, one.end_line, one.text)
                for one in stored
            ]

    def _read(self, collection: str, path: str) -> list[Evidence]:
        vault = self._vaults[collection]
        missing = NotFound(f"There is no note “{path.removesuffix('.md')}” to read.")
        try:
            vault.resolve(path)
        except PathRefused:
            raise missing from None
        info = vault.scan([path]).files.get((collection, path))
        if info is None:
            raise missing
        note = parse(decode(vault.read(info)).text, path)
        if note.ours:
            raise Refused(f"“{note.title}” is a conversation with tars and is not used as a source.")
        return [
            _attached(collection, path, note.title, one.heading, one.start_line, one.end_line, one.text)
            for one in chunk(note, self._settings)
        ]

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

    def _row(self, name: str) -> NoteRow | None:
        """The note that a link with this target leads to: by path, by the end of a path, by title, by alias."""
        store = self._searcher().store
        generation = store.generation
        if self._names[0] != generation:
            self._names = (generation, _names(store.titles()))
        return self._names[1].get(_fold(name))


def _names(rows: Sequence[NoteRow]) -> dict[str, NoteRow]:
    """Every name a note can be called by; of several notes the one with the shortest path has it, paths go first."""
    names: dict[str, NoteRow] = {}
    shortest = sorted(rows, key=lambda row: (row.collection != "", row.path.count("/"), len(row.path), row.path))
    for row in shortest:
        parts = _fold(row.path).split("/")
        for start in range(len(parts)):
            names.setdefault("/".join(parts[start:]), row)
    for row in shortest:
        for name in (row.title, *row.aliases):
            names.setdefault(_fold(name), row)
    return names


def _fold(name: str) -> str:
    folded = unicodedata.normalize("NFC", name).strip().strip("/").casefold()
    return folded.removesuffix(".md")


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
    )


def _attached(collection: str, path: str, title: str, heading: str, first: int, last: int, text: str) -> Evidence:
    target = path.removesuffix(".md")
    link = f"[[{target}#{anchor(heading)}]]" if heading else f"[[{target}]]"
    return Evidence(0, path, title, heading, link, first, last, text, 1.0, collection, attached=True)
