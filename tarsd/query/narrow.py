"""Which notes a condition can be true of, as far as the index knows without reading them.

What is found here is tested again by the condition itself: a part that the index cannot answer narrows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from tarsd.bases import BasesError, Date, Duration, LinkValue, Record, RowScope, Value
from tarsd.bases.evaluate import compile_node
from tarsd.bases.grammar import BareName, FunctionCall, Index, Literal, Member, Node, Operation, member_name, walk
from tarsd.bases.operators import link_of
from tarsd.bases.table import Nothing
from tarsd.bases.values import Named
from tarsd.parse.fields import key_of
from tarsd.passage import NoteRow
from tarsd.query.names import NoteNames, place_fields
from tarsd.store import Store
from tarsd.store.facts import Comparison

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


@dataclass
class Narrowed:
    """The notes that are left, and the folders that the condition names as the only ones."""

    rows: list[NoteRow]
    folders: list[str] = field(default_factory=list)


def conjuncts(node: Node) -> Iterator[Node]:
    """The parts of a condition that must all hold."""
    if isinstance(node, Operation) and node.operators[0] == "&&":
        for operand in node.operands:
            yield from conjuncts(operand)
    else:
        yield node


def narrow(
    condition: Node | None, rows: Iterable[NoteRow], store: Store, names: NoteNames, now: datetime, *, bare: bool
) -> Narrowed:
    """The rows that may pass a condition. `bare` says that a bare name is a property of the note."""
    found = Narrowed(list(rows))
    if condition is None:
        return found
    narrower = _Narrower(store, names, now, bare)
    ids: set[int] | None = None
    for part in conjuncts(condition):
        test = narrower.of_row(part, found.folders)
        if test:
            found.rows = [row for row in found.rows if test(row)]
            continue
        known = narrower.of_facts(part)
        if known is not None:
            ids = known if ids is None else ids & known
    if ids is not None:
        found.rows = [row for row in found.rows if row.id in ids]
    return found


class _Narrower:
    def __init__(self, store: Store, names: NoteNames, now: datetime, bare: bool) -> None:
        self.store, self.names, self.now, self.bare = store, names, now, bare

    def of_row(self, part: Node, folders: list[str]) -> Callable[[NoteRow], bool] | None:
        """A test of what the index has of every note: its place, its tags and its day."""
        if isinstance(part, FunctionCall) and _is_file(part.subject) and part.arguments:
            values = [argument.value for argument in part.arguments if isinstance(argument, Literal)]
            texts = [value for value in values if isinstance(value, str)]
            if len(texts) != len(part.arguments):
                return None
            if part.name == "inFolder":
                folder = texts[0].strip("/")
                folders.append(folder)
                return (lambda row: row.path.startswith(f"{folder}/")) if folder else None
            if part.name == "hasTag":
                tags = tuple(f"{text.lstrip('#').strip('/').casefold()}/" for text in texts)
                return lambda row: any(f"{tag.casefold()}/".startswith(tags) for tag in row.tags)
        if isinstance(part, Operation) and len(part.operands) == 2 and part.operators[0] in _TURNED:
            return self._compared_row(part, folders)
        return None

    def _compared_row(self, part: Operation, folders: list[str]) -> Callable[[NoteRow], bool] | None:
        sign, (left, right) = part.operators[0], part.operands
        name = _file_field(left)
        if not name and (name := _file_field(right)):
            left, right, sign = right, left, _TURNED[sign]
        if name not in ("day", "folder", "path", "name", "ext", "basename") or not self._is_constant(right):
            return None
        value = self._constant(right)
        if name == "day":
            if not isinstance(value, Date):
                return None
            day, timed = value.when.date().isoformat(), value.timed
            return lambda row: bool(row.date) and _day_fits(row.date, sign, day, timed)
        if sign != "==" or not isinstance(value, str):
            return None
        if name == "folder":
            folders.append(value)
        return lambda row: value in _forms(place_fields(row.path)[name])

    def of_facts(self, part: Node) -> set[int] | None:
        """The notes with such a value, by the store's index; None where it cannot tell."""
        if isinstance(part, FunctionCall):
            return self._linking(part)
        if not isinstance(part, Operation) or len(part.operands) != 2 or part.operators[0] not in _TURNED:
            return None
        sign, (left, right) = part.operators[0], part.operands
        name = self._property(left)
        if not name and (name := self._property(right)):
            left, right, sign = right, left, _TURNED[sign]
        if not name or not self._is_constant(right):
            return None
        return self._having(name, sign, self._constant(right))

    def _having(self, name: str, sign: str, value: Value) -> set[int] | None:
        facts, key = self.store.facts, key_of(name)
        op: Comparison = "=" if sign == "==" else "<=" if sign[0] == "<" else ">="
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, int | float):
            found = facts.having(key, op, float(value)) | facts.having(key, op, value / 60_000, minutes=True)
            return found | facts.having(key, "=", str(value)) if op == "=" else found
        if isinstance(value, Duration):
            in_ms = facts.having(key, op, value.total)
            return in_ms | facts.having(key, op, value.total / 60_000, minutes=True)
        if isinstance(value, Date):
            return facts.having(key, op, value.when.date().isoformat())
        if isinstance(value, str) and op == "=" and value.strip() and not value.strip()[0].isdigit():
            return facts.having(key, "=", value)
        return None

    def _linking(self, call: FunctionCall) -> set[int] | None:
        """The notes that link to one: `file.hasLink("X")`, `file.links.contains(link("X"))`."""
        if len(call.arguments) != 1 or not self._is_constant(call.arguments[0]):
            return None
        by_file = call.name == "hasLink" and _is_file(call.subject)
        by_links = call.name == "contains" and call.subject is not None and _file_field(call.subject) == "links"
        if not by_file and not by_links:
            return None
        value = self._constant(call.arguments[0])
        link = link_of(value) if isinstance(value, str) else value
        target = self.names.find(link.target, "", ()) if isinstance(link, LinkValue) else None
        return None if target is None else set(self.store.notes.backlinks(target).get(target, ())) | {target}

    def _property(self, node: Node) -> str:
        if isinstance(node, BareName) and self.bare and node.name not in ("file", "this", "note", "formula"):
            return node.name
        if isinstance(node, Member | Index) and isinstance(node.subject, BareName) and node.subject.name == "note":
            return member_name(node) if self.bare else ""
        return ""

    @staticmethod
    def _is_constant(node: Node) -> bool:
        return not any(isinstance(part, BareName) for part in walk(node)) and node.size < 20

    def _constant(self, node: Node) -> Value:
        try:
            return compile_node(node)(RowScope(Nothing(), self, self.now))
        except BasesError:
            return None

    def find(self, link: str, source: str) -> Record | None:
        """A constant leads nowhere."""
        return None


def _is_file(node: Node | None) -> bool:
    return isinstance(node, BareName) and node.name == "file"


def _file_field(node: Node) -> str:
    return member_name(node) if isinstance(node, Member | Index) and _is_file(node.subject) else ""


def _forms(value: Value) -> tuple[str, ...]:
    return (str(value), value.also) if isinstance(value, Named) else (str(value),)


def _day_fits(own: str, sign: str, day: str, timed: bool) -> bool:
    if sign == "==":
        return own == day
    if sign[0] == "<":
        return own <= day if sign == "<=" or timed else own < day
    return own >= day if sign == ">=" else own > day
