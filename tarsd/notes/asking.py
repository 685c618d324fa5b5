"""Questions that the vault's data answers exactly: what of the index they are asked of, for one audience."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from tarsd.ask import Answer, Sheet, Vocabulary, ask
from tarsd.dates import is_template
from tarsd.notes.library import NoteLibrary
from tarsd.notes.querying import dates_of, live_lines
from tarsd.search import parse_query
from tarsd.store import Store

_MOST_HITS = 5_000
_LANGUAGE = (1,) * 7


def answer(library: NoteLibrary, question: str, today: date, hidden: Collection[int] = ()) -> Answer | None:
    """The exact answer to a question, as if the notes with `hidden` ids were not there; None for ordinary search.

    Raises `StoreError`.
    """
    store = library.searcher().store
    vault = library.kept(f"vocabulary {sorted(hidden)}", lambda: _vocabulary(library, store, hidden))
    live = live_lines(library)

    def holding(text: str) -> set[int]:
        words = [term.expression for term in parse_query(text).terms if not term.whole]
        hits = store.search.fts(" AND ".join(words), _LANGUAGE, _MOST_HITS) if words else []
        return set(store.notes.files_of([chunk for chunk, _ in hits]).values()).intersection(vault.sheets)

    return ask(question, today, vault, holding, lambda id: live(vault.sheets[id].note))


def _vocabulary(library: NoteLibrary, store: Store, hidden: Collection[int]) -> Vocabulary:
    """What the notes of the person say as data: no templates, and nothing that tarsd wrote."""
    rules = dates_of(library)
    rows = {
        row.id: row for row in library.rows()
        if row.kind == "note" and not (row.ours or row.collection or row.id in hidden or is_template(row.path, rules))
    }  # fmt: skip
    facts, items, tasks = store.facts.of(), store.facts.items(), store.facts.tasks()
    links: dict[int, set[int]] = {}
    nowhere: dict[str, int] = {}
    for source, target, name in store.notes.every_link():
        if target is None:
            target = nowhere.setdefault(name, -len(nowhere) - 1) if source in rows else None
        if target is not None and target != source:
            links.setdefault(source, set()).add(target)
    sheets = {
        id: Sheet(row, facts.get(id, ()), items.get(id, ()), tasks.get(id, ()), frozenset(links.get(id, ())))
        for id, row in rows.items()
    }
    return Vocabulary(sheets, {id: name for name, id in nowhere.items()})
