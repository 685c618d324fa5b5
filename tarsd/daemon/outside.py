"""What models outside of the daemon read: passages, lists and notes, as a prompt would hold them.

Our own conversations are no sources, comments and what no reader sees are left out, and a model on another machine
gets nothing of a private note, neither text nor name, by what holds on disk now. Nor does it learn what is in one, or
what one is called, by guessing: no count and no error depends on how a request fits private notes.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tarsd.config import Config
from tarsd.daemon.library import Shelf
from tarsd.daemon.naming import entry, matching, named
from tarsd.errors import Conflict, NotFound
from tarsd.parse import parse
from tarsd.protocol import Audience, RelatedRequest, SearchRequest, query_number
from tarsd.providers.text import printable, visible
from tarsd.search import MAX_LIMIT, Hit, Results, Searcher
from tarsd.store import NoteRow
from tarsd.tools.reading import shown_lines, target
from tarsd.vault import Vault, nfc
from tarsd.vault.files import Unreadable
from tarsd.vault.names import safe_parts

MOST_LISTED = 250
MOST_NAMED = 10
"""So many of the notes that share a name are told."""

Json = dict[str, Any]


class Outside:
    """For the audiences "here" and "elsewhere". Called from threads.

    The `withheld` of a reply is the number of private notes in the whole index, the same whatever was asked.
    """

    def __init__(self, searcher: Callable[[], Searcher], shelf: Shelf, vault: Vault, config: Config) -> None:
        self._searcher = searcher
        self._shelf = shelf
        self._vault = vault
        self._config = config

    def search(self, request: SearchRequest) -> Json:
        """The hits of a query. Raises `StoreError`."""

        def find(limit: int) -> Results:
            wanted = (request.query, request.mode, limit, request.min_score, request.filters)
            return searcher.search(*wanted, evidence=True, without=private)

        searcher = self._searcher()
        private: frozenset[int] = frozenset()
        if request.audience == "elsewhere":  # the words of private notes would show in the relevance of all others
            private = frozenset(row.id for row in self._shelf.parted(searcher.store.titles())[1])
        return self._hits(find, request.limit, request.audience)

    def related(self, request: RelatedRequest) -> Json:
        """The hits for a note that is in the index. Raises as `note`."""
        name = _name(request.path)
        row = self._row(name, request.audience)
        if row is None or (request.audience == "elsewhere" and self._shelf.private_now(row.key, row.local_only)):
            raise _missing(name)
        key = row.key

        def find(limit: int) -> Results:
            return Results(tuple(self._searcher().related(key, limit)), None, 0.0)

        return self._hits(find, request.limit, request.audience)

    def _hits(self, find: Callable[[int], Results], limit: int, audience: Audience) -> Json:
        """The best `limit` hits that may be shown; looked for further down where some may not."""
        started = time.perf_counter()
        for most in (limit, min(3 * limit, MAX_LIMIT), MAX_LIMIT):
            found = find(most)
            hits = [hit for hit in self._shelf.evident(found.hits) if hit.memory_type or not hit.ours]
            if audience == "elsewhere":
                hits = self._shelf.looked_at(hits)
            shown = [hit for hit in hits if audience == "here" or not hit.local_only][:limit]
            if len(shown) == limit or len(found.hits) < most:
                break
        reply: Json = {"hits": [_clean(hit).as_json() for hit in shown], "withheld": self._withheld(audience)}
        reply |= {"degraded": found.degraded} if found.degraded else {}
        return reply | {"took_ms": round((time.perf_counter() - started) * 1000, 2)}

    def notes(self, filters: Mapping[str, str], audience: Audience) -> Json:
        """The notes that were changed last, the person's own; `total` counts all that there are."""
        most = min(query_number(filters.get("recent"), "recent", 0, 10_000) or MOST_LISTED, MOST_LISTED)
        every = matching(
            self._searcher().store.titles(),
            filters.get("folder", ""),
            filters.get("tag", ""),
            recent=True,
            name=filters.get("name", ""),
        )
        own = [row for row in every if not row.ours]
        rows = self._shelf.parted(own)[0] if audience == "elsewhere" else own
        total = len(rows)
        shown: list[NoteRow] = []
        for row in rows:
            if len(shown) == most:
                break
            private = audience == "elsewhere" and self._shelf.private_now(row.key, row.local_only)
            total -= bool(private)
            if private is False:
                shown.append(row)
        return {"notes": [entry(row) for row in shown], "total": total, "withheld": self._withheld(audience)}

    def _withheld(self, audience: Audience) -> int:
        return len(self._shelf.parted(self._searcher().store.titles())[1]) if audience == "elsewhere" else 0

    def note(self, given: str, audience: Audience) -> Json:
        """The note that `[[given]]` leads to, as it is in the vault now.

        Raises `NotFound`, `PathRefused`, `VaultUnavailable`, and `Conflict` where several notes have the name. A
        private note is not there for a model elsewhere: no error tells it from one that does not exist.
        """
        name = _name(given)
        row = self._row(name, audience)
        if row is not None:
            collection, path = row.key
        else:  # it may be too new for the index
            collection, path = "", name if "." in name[-7:] else f"{name}.md"
            if audience == "here":  # which tells of links that lead out of the vault
                self._vault.resolve(path)
        try:
            view = self._shelf.view(collection, path)
        except NotFound:
            raise _missing(name) from None
        except Unreadable:
            if row is None and audience == "elsewhere":  # it may be private, and nobody can look
                raise _missing(name) from None
            raise
        if view.local_only and audience == "elsewhere":
            raise _missing(name)
        note = parse(view.loaded.text, path, include_comments=self._config.include_comments)
        lines = [line.replace("\n", " ") for line in shown_lines(view, note)]
        return {
            "path": path,
            "collection": collection,
            "title": note.title,
            "aliases": list(note.aliases),
            "tags": list(note.tags),
            "properties": note.properties,
            "text": _shown("\n".join(lines)),
            "hash": view.loaded.hash,
        }

    def _row(self, name: str, audience: Audience) -> NoteRow | None:
        """The note in the index with this path, name or alias. Raises `Conflict`."""
        rows: Sequence[NoteRow] = self._searcher().store.titles()
        if audience == "elsewhere":
            rows, _ = self._shelf.parted(rows)
        found = named(rows, name)
        if audience == "elsewhere" and len(found) > 1:  # the index learns a moment later that a note became private
            found = [row for row in found if self._shelf.private_now(row.key, row.local_only) is False]
        if len(found) > 1:
            places = [f"{row.collection}/{row.path}" if row.collection else row.path for row in found]
            listed = ", ".join(sorted(places)[:MOST_NAMED]) + (", …" if len(places) > MOST_NAMED else "")
            raise Conflict(f"{len(found)} notes go by the name “{name}”.", f"Give the path of one: {listed}.")
        return found[0] if found else None


def _name(given: str) -> str:
    """The note's name in what may be a whole `[[link]]`. Raises `PathRefused`."""
    name = nfc(target(given)[0]) or given
    safe_parts(name)
    return name


def _missing(name: str) -> NotFound:
    return NotFound(f"There is no note “{name}” that may be read here.", "Search for it; private notes are withheld.")


def _clean(hit: Hit) -> Hit:
    return dataclasses.replace(hit, title=_shown(hit.title), heading=_shown(hit.heading), text=_shown(hit.text))


def _shown(text: str) -> str:
    return visible(printable(text))
