"""What a query needs of the vault beside the index, and which notes it must not know of."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import datetime

from tarsd.bases import BasesError
from tarsd.bases.document import blocks, read_base
from tarsd.dates import DateRules, date_rules
from tarsd.errors import BadRequest, NotFound, TarsdError
from tarsd.kinds import property_types
from tarsd.notes.library import NoteLibrary
from tarsd.notes.note_view import NoteView
from tarsd.parse import parse, source_lines
from tarsd.passage import Key, NoteRow
from tarsd.query import Vaults
from tarsd.vault import stamp_of


def dates_of(library: NoteLibrary) -> DateRules:
    """How the vault of a library writes dates, and where its templates are, as its settings say now."""
    names = library.config.dates.properties
    try:
        return date_rules(library.vaults[""].root, names)
    except TarsdError:
        return DateRules(names)


def vault_facts(library: NoteLibrary, *, others: bool) -> Vaults:
    """The vault of a library; with the names of its `others`, the files that are no notes."""
    vault = library.vaults[""]

    def listed() -> list[str]:
        try:
            found = vault.names() if others else []
        except TarsdError:
            return []
        return [name for name in found if not name.endswith("/") and not vault.excluded_by(f"{name}.md", folder=False)]

    return Vaults(vault.root, property_types(vault.root), dates_of(library), listed)


def withheld(library: NoteLibrary) -> frozenset[int]:
    """The notes (ids) that a model elsewhere must not know of: private ones, by the index or by what is on disk now.

    Only files that are others than those that were indexed are read.
    """
    store, root = library.searcher().store, str(library.vaults[""].root)
    files = store.notes.rows("")
    hidden = set()
    for row in library.rows():
        if row.collection:
            continue
        file = files.get(row.key)
        if row.local_only or file is None:
            hidden.add(row.id)
            continue
        try:
            about = os.stat(os.path.join(root, file.disk))  # thousands of them: a Path each costs more than the look
            same = (about.st_size, about.st_mtime_ns, stamp_of(about)) == (file.size, file.mtime_ns, file.stamp)
        except (OSError, ValueError):
            same = False
        if not same and library.private_now(row) is not False:
            hidden.add(row.id)
    return frozenset(hidden)


def base_of(view: NoteView, name: str, opened: Callable[[str], NoteView]) -> tuple[str, int, str]:
    """The text of a base, the line at which it begins, and the name of the view to show, "" for the first.

    Of a note it is the first of its ```base blocks, or without any the first base that it embeds; with the `name` of a
    view the first of them all that has it. `opened` reads a base that is embedded. Raises `BadRequest`, and as that.
    """
    if _is_base(view.path):
        return view.loaded.text or "\n", 1, name
    found = [(text, line, name) for text, line in blocks(view.loaded.text)]
    if name or not found:
        embedded = [link for link in parse(view.loaded.text, view.path).links if link.embed and _is_base(link.target)]
        missing: NotFound | None = None
        for link in embedded:
            try:
                found.append((opened(link.target).loaded.text or "\n", 1, name or link.heading))
            except NotFound as error:
                missing = missing or error
        if not found and missing is not None:
            raise missing
    if not found:
        hint = "Name a .base file, or a note that embeds one or has a ```base block."
        raise BadRequest(f"There is no base in {view.path}.", hint, field="base")
    if not name or len(found) == 1:
        return found[0]
    views: dict[str, None] = {}
    for text, line, _ in found:
        with contextlib.suppress(BasesError):
            base = read_base(text, line)
            if base.has_view(name):
                return text, line, name
            views |= dict.fromkeys(repr(one.name.strip()) for one in base.views if one.name.strip())
    hint = f"Their views are {', '.join(views)}." if views else "Their views have no names."
    raise BadRequest(f"No base in {view.path} has a view {name[:60]!r}.", hint, field="view")


def _is_base(target: str) -> bool:
    return target.lower().endswith(".base")


def live_lines(library: NoteLibrary) -> Callable[[NoteRow], Sequence[str]]:
    """The lines of notes as they are now, each read once; none of one that cannot be read."""
    read: dict[Key, Sequence[str]] = {}

    def lines(note: NoteRow) -> Sequence[str]:
        if note.key not in read:
            try:
                read[note.key] = source_lines(library.view(note.key).loaded.text)
            except TarsdError:  # it went a moment ago, or the vault is away
                read[note.key] = ()
        return read[note.key]

    return lines


def moment() -> datetime:
    """Now, by the clock of this machine, without time zone."""
    return datetime.now().replace(microsecond=0)
