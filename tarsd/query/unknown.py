"""Names in a query that no note has: what is said of them, with those that are spelled almost so."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from tarsd.bases.grammar import BareName, Index, Member, Node, member_name, walk
from tarsd.parse.fields import key_of
from tarsd.query.request import RowKind
from tarsd.store import Store

_NO_PROPERTIES = frozenset({"file", "this", "note", "formula", "value", "index", "acc"})
"""Bare names of the language itself."""
_OF_ITEMS = frozenset({"text", "heading", "line"})
_MOST = 5
_LONGEST = 60


def unknown_names(nodes: Iterable[Node], rows: RowKind, store: Store, hidden: Collection[int] = ()) -> list[str]:
    """A sentence for each property that expressions name and no note has, as if there were no `hidden` notes.

    Tasks have names of their own, each its fields, so that of those nothing is said.
    """
    if rows == "tasks":
        return []
    asked = {key_of(name): name for node in nodes for name in _properties(node) if name}
    if rows == "items":
        asked = {key: name for key, name in asked.items() if key not in _OF_ITEMS}
    missing = store.facts.unknown(asked, hidden) if asked else set()
    if not missing:
        return []
    known = store.facts.names(hidden)
    told = []
    for key in sorted(missing)[:_MOST]:
        near = [f"“{known[one].shown[:_LONGEST]}”" for one in difflib.get_close_matches(key[:_LONGEST], known, 3)]
        there = f"; there is {' and '.join(near)}" if near else ""
        told.append(f"No note has a property “{asked[key][:_LONGEST]}”{there}.")
    return told


def _properties(node: Node) -> Iterable[str]:
    for part in walk(node):
        if isinstance(part, BareName) and part.name not in _NO_PROPERTIES:
            yield part.name
        elif isinstance(part, Member | Index) and isinstance(part.subject, BareName) and part.subject.name == "note":
            yield member_name(part)
