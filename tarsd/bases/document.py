"""A `.base` file, or a note's ```base block: YAML becomes filters, formulas and views.

What is wrong in it is named, and the rest of it works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import yaml

from tarsd.bases.evaluate import compile_expression
from tarsd.bases.faults import BasesError
from tarsd.bases.grammar import names_of, parse
from tarsd.bases.lists import SUMMARIES
from tarsd.bases.operators import as_number
from tarsd.bases.scope import Program, RowScope, TooMuch
from tarsd.bases.values import Value, is_truthy

MAX_CHARS = 200_000
MAX_DEPTH = 60
MAX_NODES = 20_000
VIEW_TYPES = ("table", "list", "cards", "map")
_DRAWN = ("image", "coordinates")
"""Keys of views whose property only an app can draw; here it is one more column."""

_LOADER = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
_FENCE = re.compile(r"[\s>]*(`{3,}|~{3,})([^`]*)$")


@dataclass(frozen=True)
class Condition:
    """A filter: a program with where its text stands, or `and`, `or`, `not` of further ones. `text` is for SQL."""

    kind: str
    parts: tuple[Condition, ...] = ()
    text: str = ""
    program: Program | None = None
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class View:
    """How the notes of a base are shown; `order`, `sort`, `group` and `summaries` have names such as `file.name`."""

    name: str = ""
    type: str = "table"
    condition: Condition | None = None
    order: tuple[str, ...] = ("file.name",)
    sort: tuple[tuple[str, bool], ...] = ()
    """Names, and whether the largest comes first."""
    group: tuple[str, bool] | None = None
    limit: int = 0
    summaries: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Base:
    """What a base says. `problems` are sentences about what in it cannot be read, with line and column."""

    condition: Condition | None = None
    formulas: Mapping[str, Program] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    summaries: Mapping[str, Program] = field(default_factory=dict)
    views: tuple[View, ...] = (View(),)
    problems: tuple[str, ...] = ()

    def view(self, name: str = "") -> View:
        """The view of a name, the first one for "". Raises `BasesError` where there is none."""
        if not name:
            return self.views[0]
        if found := self._named(name):
            return found
        names = ", ".join(repr(view.name) for view in self.views if view.name)
        raise BasesError(
            f"This base has no view {name[:60]!r}", f"Its views are {names}." if names else "It has one view."
        )

    def has_view(self, name: str) -> bool:
        """Whether a view has this name, in any case."""
        return self._named(name) is not None

    def _named(self, name: str) -> View | None:
        return next((view for view in self.views if view.name.casefold() == name.casefold()), None)


def holds(condition: Condition, scope: RowScope, problems: dict[str, int]) -> bool:
    """Whether a row passes a filter. A part that fails for it is not true; what failed is counted in `problems`."""
    if condition.kind == "and":
        return all(holds(part, scope, problems) for part in condition.parts)
    if condition.kind == "or":
        return any(holds(part, scope, problems) for part in condition.parts)
    if condition.kind == "not":
        return not any(holds(part, scope, problems) for part in condition.parts)
    assert condition.program is not None
    try:
        return is_truthy(condition.program(scope))
    except TooMuch:
        raise
    except BasesError as error:
        told = error.moved(condition.line, condition.column, "In a filter: ").message
        problems[told] = problems.get(told, 0) + 1
    except RecursionError:
        told = f"In a filter: this is nested too deeply (line {condition.line}, column {condition.column})."
        problems[told] = problems.get(told, 0) + 1
    return False


def blocks(text: str) -> Iterator[tuple[str, int]]:
    """The ```base blocks of a note, each with the 1-based line at which its YAML begins; none inside other code."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at].rstrip("\r"))
        at += 1
        if opening is None:
            continue
        lead = lines[at - 1][: lines[at - 1].index(opening[1][0])]
        start, inner = at, list[str]()
        while at < len(lines) and not re.match(rf"[\s>]*{opening[1][0]}{{{len(opening[1])},}}\s*$", lines[at]):
            line = lines[at].rstrip("\r")
            inner.append(line[len(lead) :] if line.startswith(lead) else line.lstrip(" >"))
            at += 1
        at += 1  # what closes one block opens no other
        if opening[2].strip() == "base":
            yield "\n".join(inner) + "\n", start + 1


def read_base(text: str, line: int = 1) -> Base:
    """The base of a text that begins at this line of its file. Raises `BasesError` for what is no YAML at all."""
    return _BaseReader(line).base(_compose(text, line))


def _compose(text: str, line: int) -> yaml.MappingNode | None:
    if len(text) > MAX_CHARS:
        raise BasesError(f"This base has more than {MAX_CHARS:,} characters", "Split it into several bases.")
    _check_depth(text, line)
    try:
        node = _LOADER(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = (mark.line + line, mark.column + 1) if mark else (line, 1)
        raise BasesError(
            f"The base is not valid YAML: {error.problem or error.context}", _QUOTES, line=at[0], column=at[1]
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BasesError(
            f"The base is not valid YAML: {str(error).splitlines()[0]}", _QUOTES, line=line, column=1
        ) from None
    if node is None:
        return None
    if not isinstance(node, yaml.MappingNode):
        raise BasesError(
            "A base starts with filters:, formulas:, properties: or views:",
            "Obsidian's help describes it on its page “Bases syntax”.",
            line=line,
            column=1,
        )
    return node


_QUOTES = "An expression with quotes, colons or a leading ! stands in single quotes: 'status == \"done\"'."


def _check_depth(text: str, line: int) -> None:
    """libyaml's composer recurses in C, where no RecursionError saves the process."""
    indents: list[int] = []
    flow = 0
    for number, row in enumerate(text.split("\n"), line):
        bare = row.lstrip(" ")
        if not bare or bare[0] == "#":
            continue
        width = len(row) - len(bare)
        dashes = re.match(r"(?:[-?:] +)*", bare)
        columns = [width, *(width + found.start() for found in re.finditer(r"[-?:] +", dashes[0] if dashes else ""))]
        for column in columns:
            while indents and indents[-1] >= column:
                indents.pop()
            indents.append(column)
        deepest = flow
        for char in bare if flow or "[" in bare or "{" in bare else "":
            flow += char in "[{"
            flow = max(0, flow - (char in "]}"))
            deepest = max(deepest, flow)
        if len(indents) + deepest > 2 * MAX_DEPTH:
            raise BasesError(f"The base is nested more than {MAX_DEPTH} deep", "Combine some of its filters.",
                             line=number, column=width + 1)  # fmt: skip


class _BaseReader:
    """Reads a base's nodes, and notes what is wrong with them."""

    def __init__(self, line: int) -> None:
        self.first = line
        self.problems: list[str] = []
        self.left = MAX_NODES

    def base(self, node: yaml.MappingNode | None) -> Base:
        parts = self.mapping(node)
        base = Base(condition=self.condition(parts.get("filters")))
        formulas, summaries = dict[str, Program](), dict[str, Program]()
        texts: dict[str, str] = {}
        for name, item in self.mapping(parts.get("formulas")).items():
            texts[name] = self.text(item)
            program = self.program(item, f"In the formula {name!r}: ", frozenset())
            formulas[name] = program or _failed(f"The formula {name!r} cannot be read")
        self.circles(texts)
        for name, item in self.mapping(parts.get("summaries")).items():
            program = self.program(item, f"In the summary {name!r}: ", frozenset({"values"}))
            summaries[name] = program or _failed(f"The summary {name!r} cannot be read")
        titles = {name: self.text(item) for name, item in self.mapping(parts.get("display")).items()}
        for name, item in self.mapping(parts.get("properties")).items():
            shown = self.mapping(item).get("displayName")
            if shown is not None and self.text(shown):
                titles[name] = self.text(shown)
        views = tuple(self.view(item, formulas, summaries) for item in self.sequence(parts.get("views")))
        for name, item in parts.items():
            if name not in ("filters", "formulas", "properties", "summaries", "views", "display"):
                self.tell(f"A base has no part {name[:60]!r}", item)
        return replace(
            base,
            formulas=formulas,
            titles={full_name(name): title for name, title in titles.items()},
            summaries=summaries,
            views=views or (View(),),
            problems=tuple(dict.fromkeys(self.problems)),
        )

    def circles(self, texts: Mapping[str, str]) -> None:
        """Names the formulas that need themselves."""
        needs: dict[str, set[str]] = {}
        for name, text in texts.items():
            try:
                needs[name] = names_of(parse(text), "formula") & texts.keys()
            except BasesError:
                needs[name] = set()
        told: set[str] = set()
        for name in needs:
            path, at = [name], 0
            came: dict[str, str] = {}
            while at < len(path):  # breadth first, so that the shortest circle is named
                for other in sorted(needs[path[at]]):
                    if other == name:
                        circle = [path[at]]
                        while circle[-1] != name:
                            circle.append(came[circle[-1]])
                        if told.isdisjoint(circle):
                            self.problems.append(f"Formulas are circular: {' → '.join((*reversed(circle), name))}.")
                        told.update(circle)
                        at = len(path)
                        break
                    if other not in came:
                        came[other] = path[at]
                        path.append(other)
                at += 1

    def view(self, node: yaml.Node, formulas: Mapping[str, Program], summaries: Mapping[str, Program]) -> View:
        parts = self.mapping(node)
        name, kind = self.text(parts.get("name")), self.text(parts.get("type")) or "table"
        if kind not in VIEW_TYPES:
            self.tell(f"There is no view of type {kind[:60]!r} here; shown as a table", parts["type"])
        order = [self.known(full_name(self.text(item)), item, formulas) for item in self.sequence(parts.get("order"))]
        drawn = [full_name(text) for key in _DRAWN if (text := self.text(parts.get(key)))]
        sort = []
        for item in self.sequence(parts.get("sort")):
            pair = self.mapping(item)
            if named := self.text(pair.get("property")) or self.text(pair.get("column")):
                sort.append(
                    (self.known(full_name(named), item, formulas), _descending(self.text(pair.get("direction"))))
                )
        group = None
        by = parts.get("groupBy")
        if isinstance(by, yaml.ScalarNode) and by.value:
            group = (self.known(full_name(by.value), by, formulas), False)
        elif by is not None and (named := self.text(self.mapping(by).get("property"))):
            group = (
                self.known(full_name(named), by, formulas),
                _descending(self.text(self.mapping(by).get("direction"))),
            )
        wanted = {}
        for key, item in self.mapping(parts.get("summaries")).items():
            if self.text(item) in summaries or self.text(item) in SUMMARIES or self.text(item) == "Unique":
                wanted[full_name(key)] = self.text(item)
            else:
                self.tell(f"There is no summary {self.text(item)[:60]!r}", item)
        limit = as_number(self.text(parts.get("limit"))) or 0
        return View(
            name,
            kind,
            self.condition(parts.get("filters")),
            tuple(dict.fromkeys([*order, *drawn])) or ("file.name",),
            tuple(sort),
            group,
            int(limit) if limit > 0 else 0,
            wanted,
        )

    def known(self, name: str, node: yaml.Node, formulas: Mapping[str, Program]) -> str:
        """A name that a view uses; one of a formula that there is not is told of."""
        if name.startswith("formula.") and name.removeprefix("formula.") not in formulas:
            self.tell(f"There is no formula {name.removeprefix('formula.')[:60]!r}", node)
        return name

    def condition(self, node: yaml.Node | None, depth: int = 0) -> Condition | None:
        """A filter without the parts that cannot be read; None where nothing is left."""
        if depth > MAX_DEPTH and node is not None:  # an alias may stand in what it stands for
            line, column = self.place(node)
            raise BasesError(f"The filters are nested more than {MAX_DEPTH} deep", "Combine some of them.",
                             line=line, column=column)  # fmt: skip
        if isinstance(node, yaml.MappingNode):
            found = []
            for kind, item in self.mapping(node).items():
                if kind not in ("and", "or", "not"):
                    self.tell(f"A filter is `and`, `or`, `not` or an expression, and not {kind[:60]!r}", item)
                    continue
                below = self.sequence(item) if isinstance(item, yaml.SequenceNode) else [item]
                parts = tuple(part for entry in below if (part := self.condition(entry, depth + 1)))
                if parts:
                    found.append(Condition(kind, parts))
            return None if not found else found[0] if len(found) == 1 else Condition("and", tuple(found))
        if isinstance(node, yaml.SequenceNode):
            parts = tuple(part for entry in self.sequence(node) if (part := self.condition(entry, depth + 1)))
            return Condition("and", parts) if parts else None
        if node is None or not self.text(node).strip():
            return None
        program = self.program(node, "This filter is skipped: ", frozenset())
        line, column = self.place(node)
        return program and Condition("", (), self.text(node), program, line, column)

    def program(self, node: yaml.Node, where: str, variables: frozenset[str]) -> Program | None:
        """The program of an expression, None where it cannot be read, which is told of."""
        try:
            return compile_expression(self.text(node), variables)
        except BasesError as error:
            self.problems.append(error.moved(*self.place(node), where).message)
            return None

    def place(self, node: yaml.Node) -> tuple[int, int]:
        """Line and column, from 1, at which a node's text begins."""
        quoted = isinstance(node, yaml.ScalarNode) and node.style in ("'", '"')
        block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
        return node.start_mark.line + self.first + block, 1 if block else node.start_mark.column + 1 + quoted

    def tell(self, what: str, node: yaml.Node) -> None:
        line, column = self.place(node)
        self.problems.append(f"{what} (line {line}, column {column}).")

    def mapping(self, node: yaml.Node | None) -> dict[str, yaml.Node]:
        if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
            return {}
        if not isinstance(node, yaml.MappingNode):
            self.tell("Names with values are expected here", node)
            return {}
        self.count(node)
        return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}

    def sequence(self, node: yaml.Node | None) -> list[yaml.Node]:
        if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.tell("A list is expected here", node)
            return []
        self.count(node)
        return list(node.value)

    def count(self, node: yaml.Node) -> None:
        """Aliases make much of little text."""
        self.left -= len(node.value) + 1
        if self.left < 0:
            line, column = self.place(node)
            raise BasesError(f"This base has more than {MAX_NODES:,} parts", "Split it.", line=line, column=column)

    def text(self, node: yaml.Node | None) -> str:
        return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def full_name(name: str) -> str:
    """A property's name with what it is of: `rating` is `note.rating`."""
    kind, dot, _ = name.partition(".")
    return name if dot and kind in ("file", "note", "formula") else f"note.{name}"


def _descending(direction: str) -> bool:
    return direction.strip().upper().startswith("DESC")


def _failed(why: str) -> Program:
    def fail(scope: RowScope) -> Value:
        raise BasesError(why, "See above.")

    return fail
