"""Who gets what of the notes: one reader for each audience.

Our own conversations are no sources, and a model on another machine gets nothing of a private note, neither text nor
name, by what holds on disk now. Somebody else's model elsewhere does not learn either what is in one, or what one is
called, by guessing: no count and no error depends on how a request fits private notes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Any
from urllib.parse import unquote

from tarsd.ask import Answer
from tarsd.bases.table import Table
from tarsd.dates import is_template
from tarsd.errors import Conflict, NotFound, Refused, TarsdError, VaultUnavailable
from tarsd.notes import asking, querying
from tarsd.notes.library import NoteLibrary
from tarsd.notes.note_view import NoteView, entry, told
from tarsd.notes.overview import overview
from tarsd.notes.pictures import VaultPicture, open_picture
from tarsd.notes.resolve import file_of, fold_path, link_target, matching, stands_in
from tarsd.parse import parse
from tarsd.passage import Key, NoteRow, Origin, Passage
from tarsd.protocol import Audience, RelatedRequest, SearchRequest, query_number
from tarsd.providers.text import printable, visible
from tarsd.query import MOST_SHOWN, ShownRows, VaultQuery, shown_rows, table_json
from tarsd.search import MAX_LIMIT, MAYBE, Results, Scope
from tarsd.vault import nfc
from tarsd.vault.files import Unreadable
from tarsd.vault.names import safe_parts

MOST_LISTED = 250
AWAY = "The folder of the notes is missing. These results are from the last index."
MOST_NAMED = 10  # of the notes that share a name

Json = dict[str, Any]


@dataclass(frozen=True)
class Retrieval:
    """Passages for a query, best first, without numbers; `degraded` says what of the search did not work.

    `withheld` are the paths of private notes that would have been among them, were the model on this machine.
    """

    passages: tuple[Passage, ...]
    degraded: str | None = None
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True)
class Within:
    """Where a search is to look; "" for anywhere. `folder` and `tag` are meant with what is below them.

    `after`, `before` and `on` are days, months or years of a note's date; `where` is a condition of Bases.
    """

    folder: str = ""
    tag: str = ""
    after: str = ""
    before: str = ""
    on: str = ""
    where: str = ""

    @property
    def days(self) -> dict[str, str]:
        """The conditions on the date."""
        found = {name: getattr(self, name) for name in ("after", "before", "on")}
        return {name: value for name, value in found.items() if value.strip()}


ANYWHERE = Within()


class Reader:
    """The notes for one audience, made for each thing that is asked. Called from threads.

    "person" is who owns the notes; "here" and "elsewhere" are other programs' models, on this machine or not. Without
    `model_is_local` the words go to a model on another machine, whoever asks. `is_told`: may know what is withheld.
    """

    def __init__(self, library: NoteLibrary, audience: Audience = "person", model_is_local: bool = True) -> None:
        self._library = library
        self._audience = audience
        self.sees_private = model_is_local and audience != "elsewhere"
        self.is_told = audience != "elsewhere"

    # -------------------------------------------------------------------------------------------- passages for a turn

    def retrieve(
        self, query: str, limit: int, *, memory: bool = False, private: bool = False, within: Within = ANYWHERE
    ) -> Retrieval:
        """The best passages for a query; `memory`: facts and rules are among them. Raises `StoreError`.

        `private`: the query may hold text of private notes, and must not leave this machine to be embedded. For what
        is wrong in `within`, raises `BadRequest`.
        """
        searcher, library = self._library.searcher(), self._library
        scope = Scope(
            conversations=False,
            leaves=not private,
            only=self._only(within),
            files=self._files(within, leaves=not private),
        )
        filters = within.days
        results = searcher.search(query, limit=limit, filters=filters, scope=scope)
        rules = querying.dates_of(library)

        def quotable(hits: Sequence[Passage]) -> list[Passage]:
            """Those that say something of the person: no templates."""
            return [hit for hit in library.marked(hits) if not is_template(hit.path, rules)]

        found = quotable(results.hits)
        if len(found) < len(results.hits):  # a conversation or a template took the place of notes
            found = quotable(searcher.search(query, limit=3 * limit, filters=filters, scope=scope).hits)[:limit]
        found = [hit for hit in found if memory or hit.note.memory_type not in ("semantic", "procedural")]
        if self.sees_private:
            return Retrieval(tuple(found), results.degraded)
        found = library.looked_at(found)
        held = [hit.path for hit in found if hit.local_only and hit.relevance >= MAYBE]
        told = () if self._audience == "elsewhere" else tuple(dict.fromkeys(held))
        return Retrieval(tuple(hit for hit in found if not hit.local_only), results.degraded, told)

    def _only(self, within: Within) -> frozenset[int] | None:
        """The notes (ids) in a folder, with a tag, and of which a condition is true; None for all."""
        found: set[int] | None = None
        if within.folder or within.tag:
            found = {row.id for row in matching(self._library.rows(), within.folder, within.tag, recent=False)}
        if within.where.strip():
            library = self._library
            about, hidden = querying.vault_facts(library, others=False), self._not_known
            true = library.queries.having(within.where, library.searcher().store, about, querying.moment(), hidden)
            found = true if found is None else found & true
        return None if found is None else frozenset(found)

    def _files(self, within: Within, *, leaves: bool = True) -> Scope | None:
        """Where among the files that are no notes a search looks; None for nowhere.

        They have no tags and no properties of Bases. Nothing of private ones is known to a model elsewhere.
        """
        files = self._library.searcher().files
        if files is None or within.tag or within.where.strip():
            return None
        rows = files.store.notes.titles() if within.folder or not self.sees_private else []
        hidden = frozenset() if self.sees_private else frozenset(row.id for row in rows if row.local_only)
        only = None
        if within.folder:
            only = frozenset(row.id for row in matching(rows, within.folder, "", recent=False))
        return Scope(leaves=leaves, hidden=hidden, only=only)

    def overview(self) -> str:
        """The commonest properties, tags and folders of the notes, for whoever asks; nothing of private ones.

        What a model is told in every turn makes no turn private, so private notes count for no audience.
        """
        hidden = querying.withheld(self._library)
        return self._library.kept(f"overview {sorted(hidden)}", lambda: overview(self._library, hidden))

    def answer(self, question: str, today: date) -> Answer | None:
        """The exact answer of the vault's data to a question; None for one that ordinary search has to answer.

        Raises `StoreError`.
        """
        hidden = frozenset() if self.sees_private else querying.withheld(self._library)
        return asking.answer(self._library, question, today, hidden)

    def around(self, passage: Passage) -> Sequence[Passage]:
        """The passages right before and after this one in its note, as they are indexed. Raises `StoreError`."""
        store = self._library.searcher().store
        row = store.notes.note(passage.note.key)
        if row is None:
            return []
        beside = self._library.marked(store.notes.passages_of(row.id))
        at = next((n for n, other in enumerate(beside) if other.start_line == passage.start_line), None)
        return [] if at is None else [beside[n] for n in (at - 1, at + 1) if 0 <= n < len(beside)]

    def attach(self, name: str) -> Sequence[Passage]:
        """All passages of the note with this path, name or alias, read from the vault: as it is now.

        Raises `NotFound`, `PathRefused`, and `Refused` for a conversation, or a private note that the model may not
        see; who asks from elsewhere is not told which of these it is.
        """
        try:
            return [replace(passage, attached=True, relevance=1.0) for passage in self._attach(name)]
        except TarsdError:
            if self._audience == "elsewhere":
                raise _missing(name) from None
            raise

    def _attach(self, name: str) -> Sequence[Passage]:
        try:
            view = self._library.open(name)
        except VaultUnavailable:
            note, passages = self._library.stored(name)
        except NotFound as error:
            if self._audience == "person" and self.sees_private:
                raise NotFound(error.message, self._library.suggestion(name)) from None
            raise
        else:
            note, passages = view.note, self._library.passages(view)
        if note.local_only and not self.sees_private:
            raise _private(name)
        if note.ours and not note.memory_type:
            raise Refused(f"“{note.title}” is a conversation with tars and not used as a source.")
        return passages

    def picture(self, name: str, folder: str = "") -> VaultPicture:
        """A picture of the vault, seen from a note in `folder`. Raises as `open_picture`, and `Refused` as `attach`."""
        try:
            found = open_picture(self._library, name, folder)
        except TarsdError:
            if self._audience == "elsewhere":
                raise _missing(name) from None
            raise
        if found.local_only and not self.sees_private:
            raise _missing(name) if self._audience == "elsewhere" else _private(name)
        return found

    # -------------------------------------------------------------------------------------------- notes for tools

    def open(self, name: str) -> NoteView:
        """The note with this path, title or alias, as it is on disk now.

        Raises `NotFound`, `Unreadable`, `StoreError`. A private note that the model may not see is none.
        """
        if self.sees_private:
            return self._library.open(name)
        library = self._library
        rows = [row for row in library.named(name) if library.private_now(row) is False]
        try:
            view = library.view(rows[0].key) if rows else library.file(name, private=False) or library.open(name)
        except Unreadable:  # it may be private, and nobody can look
            raise _missing(name) from None
        if view.local_only:
            raise _missing(name)
        return view

    def mentioned(self, text: str) -> list[NoteRow]:
        """The notes whose paths stand in what another program was asked or said, private as they are now.

        In any spelling: of another system, of an address, or in JSON. Raises `StoreError`.
        """
        said = fold_path(unquote(text).replace("\\\\", "/").replace("\\", "/"))
        rows = [row for row in self._library.rows() if stands_in(fold_path(row.path), said)]
        return [replace(row, local_only=row.local_only or self._library.private_now(row) is not False) for row in rows]

    def origins(self, view: NoteView, first: int, last: int) -> tuple[Origin, ...]:
        """What is kept of these lines with everything that is made of them: the passages in which they stand."""
        held = self._library.passages(view)
        return tuple(passage.origin for passage in held if passage.start_line <= last and passage.end_line >= first)

    def open_path(self, path: str) -> NoteView:
        """As `open`, the note at exactly this path of the vault."""
        return self._allowed(self._library.view(("", path)), path)

    def _allowed(self, view: NoteView, name: str) -> NoteView:
        if view.local_only and not self.sees_private:
            raise _private(name)
        return view

    def listing(self, folder: str, tag: str, recent: bool, limit: int) -> Sequence[NoteRow]:
        """Notes in a folder (and below) and with a tag, "" for any; by path, or the last changed first."""
        rows = matching(self._library.rows(), folder, tag, recent=recent)
        if self.sees_private:
            return rows[:limit]
        open_now = (row for row in rows if not row.local_only and self._library.private_now(row) is False)
        return list(islice(open_now, limit))

    # -------------------------------------------------------------------------------------------- over the socket

    def search(self, request: SearchRequest) -> Json:
        """The hits of a query. Raises `StoreError`."""
        searcher = self._library.searcher()
        only = self._only(Within(where=request.where))
        files = self._files(Within(where=request.where))
        scope = Scope(conversations=self._audience == "person", hidden=self._hidden, only=only, files=files)

        def find(limit: int) -> Results:
            return searcher.search(request.query, request.mode, limit, request.min_score, request.filters, scope)

        return self._hits(find, request.limit)

    def related(self, request: RelatedRequest) -> Json:
        """The hits for the note that is meant, as by `key_of`. Raises `NotFound`, `Conflict`, `PathRefused`."""
        searcher = self._library.searcher()
        key = self._owned(request.path) if self._audience == "person" else self._indexed(request.path).key

        def find(limit: int) -> Results:
            return Results(tuple(searcher.related(key, limit)))

        return self._hits(find, request.limit)

    def _hits(self, find: Callable[[int], Results], limit: int) -> Json:
        """The best `limit` hits that may be shown; looked for further down where some may not."""
        started = time.perf_counter()
        for most in (limit, min(3 * limit, MAX_LIMIT), MAX_LIMIT):
            found = find(most)
            shown = self._shown(found.hits)[:limit]
            if self._audience == "person" or len(shown) == limit or len(found.hits) < most:
                break
        reply: Json = {"hits": [self._clean(hit) for hit in shown]} | self._withheld()
        away = self._library.away()
        if away and self._audience == "elsewhere":  # which is not told where the notes lie
            away = AWAY
        said = " ".join(filter(None, (away, found.degraded)))
        reply |= {"degraded": said} if said else {}
        return reply | {"took_ms": round((time.perf_counter() - started) * 1000, 2)}

    def _shown(self, hits: Sequence[Passage]) -> list[Passage]:
        if self._audience == "person":
            return list(hits)
        sources = [hit for hit in self._library.marked(hits) if hit.note.memory_type or not hit.note.ours]
        if self.sees_private:
            return sources
        return [hit for hit in self._library.looked_at(sources) if not hit.local_only]

    def _clean(self, hit: Passage) -> Json:
        reply = hit.as_hit()
        if self._audience == "person":
            return reply
        return reply | {name: _seen(reply[name]) for name in ("title", "heading", "text")}

    def query(self, query: VaultQuery, base: str = "") -> Json:
        """The rows, groups and sums of a query, as if there were no notes but those that may be seen.

        `base` is the path or name of a .base file, or of a note with blocks of one, that the query is of; without
        another `this` it is that as well. Raises `BadRequest` for what cannot be read, and as `open`.
        """
        started = time.perf_counter()
        reply = table_json(self._table(query, base)) | self._withheld()
        return reply | {"took_ms": round((time.perf_counter() - started) * 1000, 2)}

    def rows(self, query: VaultQuery, base: str = "", most: int = MOST_SHOWN, first: int = 1) -> ShownRows:
        """As `query`, at most so many rows, with the lines that they rest on, numbered from `first`; counts of all."""
        return shown_rows(self._table(query, base), querying.live_lines(self._library), most, first)

    def _table(self, query: VaultQuery, base: str) -> Table:
        store = self._library.searcher().store
        hidden = self._not_known
        if base:
            view = self.open(base)
            text, line, shown = querying.base_of(view, query.view, self.open)
            query = replace(query, base=text, base_line=line, view=shown, this=query.this or view.path)
        about = querying.vault_facts(self._library, others=self.sees_private and bool(query.base))
        return self._library.queries.run(query, store, about, querying.moment(), hidden)

    def notes(self, filters: Mapping[str, str]) -> Json:
        """Notes by folder, tag and name; with `recent` the last changed. `total` counts all that there are.

        A model gets the person's own notes only, always the last changed first, and at most 250.
        """
        recent = query_number(filters.get("recent"), "recent", 0, 10_000)
        wanted = {name: filters.get(name, "") for name in ("folder", "tag", "name")}
        if self._audience == "person":
            rows = matching(self._library.rows(), **wanted, recent=bool(recent))
            return {"notes": [entry(row) for row in (rows[:recent] if recent else rows)], "total": len(rows)}
        every = matching(self._library.rows(), **wanted, recent=True)
        rows = [row for row in every if not row.ours and (self.sees_private or not row.local_only)]
        most, total = min(recent or MOST_LISTED, MOST_LISTED), len(rows)
        shown: list[NoteRow] = []
        for row in rows:
            if len(shown) == most:
                break
            private = not self.sees_private and self._library.private_now(row)
            total -= bool(private)
            if private is False:
                shown.append(row)
        return {"notes": [entry(row) for row in shown], "total": total} | self._withheld()

    def note(self, given: str) -> Json:
        """A note as it is in the vault now: for a person the one at a path, for a model what `[[given]]` leads to.

        Of a file that is no note, what was read of it.
        Raises `NotFound`, `PathRefused`, `VaultUnavailable`, and `Conflict` where several notes have the name. A
        private note is not there for a model elsewhere: no error tells it from one that does not exist.
        """
        if self._audience == "person":
            return self._whole(given)
        name = _name(given)
        row = self._row(name)
        if row is None and self._audience == "here":  # which is told of links that lead out of the vault
            self._library.check(file_of(name))
        if row is None and (file := self._library.file(name, private=self.sees_private)) is not None:
            return told(file.note, file.path, _seen(file.loaded.text), file.loaded.hash, collection=file.collection)
        try:
            view = self._library.view(row.key if row is not None else ("", file_of(name)))
        except NotFound:
            raise _missing(name) from None
        except Unreadable:
            if row is None and not self.sees_private:  # it may be private, and nobody can look
                raise _missing(name) from None
            raise
        if view.local_only and not self.sees_private:
            raise _missing(name)
        note = parse(view.loaded.text, view.path, include_comments=self._library.config.include_comments)
        text = _seen("\n".join(line.replace("\n", " ") for line in view.lines(note)))
        return told(note, view.path, text, view.loaded.hash, collection=view.collection)

    def _whole(self, path: str) -> Json:
        """The note at a path of the vault with every byte of its text, comments included."""
        self._library.check(path)
        try:
            info, loaded = self._library.load(("", nfc(path)))
        except NotFound:
            file = self._library.file(path)
            if file is not None and file.note.key == ("", nfc(path)):
                stamp = file.note.mtime_ns / 1e9
                return told(file.note, file.path, file.loaded.text, file.loaded.hash, modified=stamp)
            raise NotFound("There is no such note.", "GET /v1/notes lists them.") from None
        note = parse(loaded.text, info.path, include_comments=True)
        return told(note, info.path, loaded.text, loaded.hash, modified=info.mtime_ns / 1e9)

    @property
    def _not_known(self) -> frozenset[int]:
        """The notes (ids) that a query is answered without."""
        hidden = frozenset() if self.sees_private else querying.withheld(self._library)
        if self._audience != "person":
            hidden |= {row.id for row in self._library.rows() if row.of_conversation}
        return hidden

    @cached_property
    def _hidden(self) -> frozenset[int]:
        """The notes (ids) of which nothing may show, not even in the relevance of others."""
        if self.sees_private:
            return frozenset()
        return frozenset(row.id for row in self._library.rows() if row.local_only)

    def _withheld(self) -> Json:
        """For a model: the number of private notes in the whole index, the same whatever was asked."""
        return {} if self._audience == "person" else {"withheld": len(self._hidden)}

    def _indexed(self, given: str) -> NoteRow:
        name = _name(given)
        row = self._row(name)
        if row is None or (not self.sees_private and self._library.private_now(row)):
            raise _missing(name)
        return row

    def _owned(self, given: str) -> Key:
        """The note in the index that its owner means. Raises `NotFound`, with a name that is spelled almost so."""
        library = self._library
        key = library.key_of(given)
        if library.searcher().store.notes.note(key) is None and not os.path.lexists(
            library.vaults[key[0]].root / key[1]
        ):
            hint = library.suggestion(given) or "GET /v1/notes lists them."
            raise NotFound(f"There is no note “{link_target(given)[0]}” in the vault.", hint)
        return key

    def _row(self, name: str) -> NoteRow | None:
        """The note in the index with this path, name or alias. Raises `Conflict`."""
        found = self._library.named(name, self._hidden)
        if len(found) > 1 and not self.sees_private:  # the index learns a moment later that a note became private
            found = [row for row in found if self._library.private_now(row) is False]
        if len(found) > 1:
            places = sorted(f"{row.collection}/{row.path}".lstrip("/") for row in found)
            listed = ", ".join(places[:MOST_NAMED]) + (", …" if len(places) > MOST_NAMED else "")
            raise Conflict(f"{len(found)} notes have the name “{name}”.", f"Give the path of one: {listed}.")
        return found[0] if found else None


def _name(given: str) -> str:
    """The note's name in what may be a whole `[[link]]`. Raises `PathRefused`."""
    name = nfc(link_target(given)[0]) or given
    safe_parts(name)
    return name


def _missing(name: str) -> NotFound:
    return NotFound(f"There is no note “{name}” that may be read here.", "Search for it; private notes are withheld.")


def _private(name: str) -> Refused:
    """`name` is what was asked for: what the note calls itself is private too."""
    return Refused(f"“{name}” is private and would leave this machine, so it is not read.")


def _seen(text: str) -> str:
    return visible(printable(text))
