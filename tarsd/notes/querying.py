"""What a query needs of the vault beside the index, and which notes it must not know of."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime

from tarsd.bases.document import blocks
from tarsd.dates import DateRules, date_rules
from tarsd.errors import BadRequest, TarsdError
from tarsd.kinds import property_types
from tarsd.notes.library import NoteLibrary, NoteView
from tarsd.parse import source_lines
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


def base_of(view: NoteView) -> tuple[str, int]:
    """The text of a base, and the line at which it begins: a .base file, or the first ```base block of a note."""
    if view.path.lower().endswith(".base"):
        return view.loaded.text or "\n", 1
    for text, line in blocks(view.loaded.text):
        return text, line
    hint = "Name a .base file, or a note with a ```base block."
    raise BadRequest(f"There is no base in {view.path}.", hint, field="base")


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
