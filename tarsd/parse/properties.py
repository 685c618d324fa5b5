"""The property block of a note: YAML 1.2 as Obsidian reads it, line by line where the block as a whole is broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import yaml

from tarsd.parse.scalars import BOOLS, NULLS, is_no_date, scalar

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"

MAX_BLOCK_CHARS = 1_000_000
MAX_TEXT_CHARS = 20_000
_MAX_NODES = 50_000
_MAX_DEPTH = 60
_MAX_DROPPED = 20

_KEY = re.compile(r"""^(?:"[^"]*"|'[^']*'|[^\s#\-?&*!|>%@`"'{}\[\],][^:]*|-[^\s:][^:]*):+(?=\s|$)""")
_RULE = re.compile(r"---[ \t]*")
_TAGS = frozenset(("tag", "tags"))
_LISTS = _TAGS | {"alias", "aliases"}
_SWITCHES = frozenset(("cssclass", "cssclasses", "permalink", "publish"))
"""Of Obsidian: how and where a note is shown, and not what it says; plugins have theirs (`kanban-plugin`)."""
_JSON_MARKS = re.compile(r"""["'\[\]]+(?:\s*,\s*["'\[\]]+)*""")
_TEMPLATES = (("{{", "}}"), ("<%", "%>"))
_HASH_VALUE = re.compile(r"(#[^\s#].*?)(?=\s+#\s|\s*$)")
_HASH_ITEM = re.compile(r"([ \t]*(?:-[ \t]+)+)(#[^\s#].*?)(?=\s+#\s|\s*$)")
_LEAD = re.compile(r"[ \t]*(?:-[ \t]+)*")
_LITERAL = re.compile(r"[|>][-+\d]{0,2}(?:\s|$)|\"[^\"]*$|'[^']*$")
"""A value of which the next lines, if they stand further in, are text as it is."""
_HASH_FLOW = re.compile(r"""("[^"]*"|'[^']*')|(?<=[\[,\s])(#[^\s#,\[\]"']+)""")
_COLON = "mapping values are not allowed"
_LOADER = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
"""Finds no types: `scalar` does, by YAML 1.2 and not 1.1. libyaml's parser is ten times as fast as PyYAML's own."""

TWICE = "appears twice; keep one of them."
"""How a fault ends that says so of a property."""
HINT = "In the note's properties, put the value in quotes or fix the line."


class Leaf(NamedTuple):
    """A value that is no list or mapping, with the 1-based line on which it stands."""

    name: str
    value: str | int | float | bool
    line: int


@dataclass(frozen=True)
class PropertyBlock:
    """What the block at the top of a note says.

    `end` is the number of lines it takes, both rules included (0: there is none). `lines` are these as they stand,
    blank where there is nothing to read: rules, title, tags and aliases, what is empty or a template's, and switches,
    which are `text`, for keyword search. `leaves` are all values that are no list or mapping, each as
    (name, value, 1-based line): of nested mappings the name is "a.b", of a list each item is one. `faults` are
    (1-based line, reason).
    """

    end: int = 0
    values: dict[str, JSON] = field(default_factory=dict)
    title: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    text: str = ""
    leaves: tuple[Leaf, ...] = ()
    faults: tuple[tuple[int, str], ...] = ()

    @property
    def doubled(self) -> tuple[str, ...]:
        """What is said of each property that is there twice."""
        return tuple(reason for _, reason in self.faults if reason.endswith(TWICE))


NONE = PropertyBlock()


def read(lines: Sequence[str]) -> PropertyBlock:
    """The block at the very start of `lines`; `NONE` where the opening `---` is only a rule."""
    if not lines or not _RULE.fullmatch(lines[0]):
        return NONE
    end = next((i for i in range(1, len(lines)) if lines[i].startswith("---") and _RULE.fullmatch(lines[i])), 0)
    if not end:
        return NONE
    faults: list[tuple[int, str]] = []
    block = lines[1:end]
    if sum(map(len, block)) > MAX_BLOCK_CHARS:
        return PropertyBlock(end + 1, lines=("",) * (end + 1), faults=((1, "The properties are too long to read."),))
    written = block
    block = _quoted(block, faults)
    try:
        loaded, noted = _load(block)
        noted.tell(faults, range(len(block)))
        placed = noted.placed_at(range(len(block)))
    except _Fault:
        if not any(_KEY.match(line) for line in block):
            return NONE
        loaded, placed = _salvage(block, faults)
    if loaded is None and any(line.strip() and not line.lstrip().startswith("#") for line in block):
        return NONE
    shown, text = _readable(written, {line - 2 for line, _ in faults})
    found = PropertyBlock(end + 1, lines=("", *shown, ""), text=text, faults=tuple(faults))
    return _finish(loaded or {}, placed, found)


def _is_template(value: str) -> bool:
    """Whether a value is still a template's placeholder."""
    return any(end in line.partition(start)[2] for line in value.split("\n") for start, end in _TEMPLATES)


def _strings(value: JSON, split: str) -> list[str]:
    """A property's value as a list of strings, as Obsidian reads tags and aliases: a scalar is split at `split`."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)  # a list that was written as text
    if isinstance(value, str):
        return [part for part in (p.strip() for p in re.split(split, value)) if part]
    return [stripped for text in _flat(value) if (stripped := text.strip())]


def _flat(value: JSON) -> Iterator[str]:
    """Every value of lists in lists, and of keys where none was meant, as text; a key without a value is one itself."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from [key] if item is None else _flat(item)
    elif isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield _plain(value)


class _Fault(Exception):
    """The lines are no YAML mapping; `line` is 0-based within them."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class _Placed(NamedTuple):
    """A value that is no list or mapping: the keys that lead to it, its line, and whether it is an item of a list."""

    keys: tuple[str, ...]
    value: JSON
    line: int
    listed: bool


@dataclass
class _Noted:
    """What was read: `faults` are what is not as it was meant, (line, reason), `placed` all values; lines 0-based."""

    faults: list[tuple[int, str]] = field(default_factory=list)
    placed: list[_Placed] = field(default_factory=list)

    def placed_at(self, numbers: Sequence[int]) -> list[_Placed]:
        """The values with their lines in the file; `numbers` as in `tell`."""
        return [one._replace(line=numbers[min(one.line, len(numbers) - 1)] + 2) for one in self.placed]

    def tell(self, faults: list[tuple[int, str]], numbers: Sequence[int]) -> None:
        """Adds them to those of the block; `numbers` are the lines that were read, 0-based in the block."""
        faults += [(numbers[min(line, len(numbers) - 1)] + 2, reason) for line, reason in self.faults]

    def add(self, values: dict[str, JSON], key: str, value: JSON, line: int) -> None:
        """Puts a property with those of before; of two with one name, lists hold the items of both."""
        if key not in values:
            values[key] = value
            return
        before = values[key]
        self.faults.append((line, f"The property {key[:60]!r} {TWICE}"))
        if isinstance(before, dict) and isinstance(value, dict):
            for inner, item in value.items():
                if inner in before and before[inner] == item:
                    continue
                self.add(before, inner, item, line)
        elif isinstance(before, list) or isinstance(value, list) or key.casefold() in _LISTS:
            both = [item for items in (before, value) for item in (items if isinstance(items, list) else [items])]
            values[key] = [item for at, item in enumerate(both) if item is not None and item not in both[:at]]
        elif value is not None:
            values[key] = value


def _quoted(block: Sequence[str], faults: list[tuple[int, str]]) -> list[str]:
    """The lines, with quotes around what begins with `#` where a value should be: to YAML it is a comment."""

    def quotes(match: re.Match[str]) -> str:
        return match[1] if match[1] else "'" + match[2] + "'"

    lines = list(block)
    style = ""
    literal = -1  # the column of a key whose text is in the lines below it
    for number, line in enumerate(lines):
        lead = _LEAD.match(line)
        inside = lead.end() if lead else 0
        if literal >= 0 and (not line.strip() or _width_of(line) > literal):
            continue
        literal = -1
        key = _KEY.match(line[inside:]) if not inside or style != "flow" else None
        value = line[inside + key.end() :].lstrip() if key else line[inside:]
        if key:
            style = "items" if not value or value.startswith("#") or inside else ""
            literal = _width_of(line) if _LITERAL.match(value) else -1
            if (found := _HASH_VALUE.match(value)) and not _goes_on(lines, number + 1, inside):
                lines[number] = line[: inside + key.end()] + " '" + found[1].replace("'", "''") + "'"
        elif "#" in line and style == "items" and (item := _HASH_ITEM.match(line)):
            lines[number] = item[1] + "'" + item[2].replace("'", "''") + "'"
        if value.startswith("[") and (key or style == "items"):
            style = "flow"
        if "#" in line and style == "flow":
            before, bracket, after = line.rpartition("]")
            lines[number] = _HASH_FLOW.sub(quotes, before or after) + bracket + (after if bracket else "")
        if style == "flow" and "]" in line:
            style = "items" if inside else ""
        if lines[number] != line:
            faults.append((number + 2, "In properties, # starts a comment; here it is read as a value."))
    return lines


def _width_of(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _goes_on(lines: Sequence[str], start: int, column: int) -> bool:
    """Whether the value of a key at this column is in the lines from `start` on: what stands beside it is a comment."""
    line = next((lines[at] for at in range(start, len(lines)) if lines[at].strip()), "")
    return _width_of(line) > column or (_width_of(line) == column and line.lstrip().startswith("- "))


def _load(block: Sequence[str]) -> tuple[dict[str, JSON] | None, _Noted]:
    """The mapping that the lines are; None if they are no mapping; _Fault if they are no YAML."""
    _check_depth(block)
    source = "\n".join(block) + "\n"
    try:
        node = _LOADER(source).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _Fault(mark.line if mark else 0, str(error.problem or error.context)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        position = getattr(error, "position", 0)  # a reader error counts characters
        line = min(source.count("\n", 0, position), max(len(block) - 1, 0))
        raise _Fault(line, str(error).split("\n")[0]) from None
    if not isinstance(node, yaml.MappingNode):
        return None, _Noted()
    convert = _Converter(source)
    return convert.mapping(node, 0), convert.noted


def _check_depth(block: Sequence[str]) -> None:
    """libyaml's composer recurses in C, where no RecursionError saves the process."""
    depth = 0
    for number, line in enumerate(block):
        if ("- - -" in line and line.count("- ") > _MAX_DEPTH) or "? ? ?" in line:
            raise _Fault(number, "nested too deeply")
        if "[" in line or "{" in line or depth:
            for char in line:
                if char in "[{":
                    depth += 1
                    if depth > _MAX_DEPTH:
                        raise _Fault(number, "nested too deeply")
                elif char in "]}" and depth:
                    depth -= 1
        indent = len(line) - len(line.lstrip(" "))
        if indent > 500:
            raise _Fault(number, "indented too deeply")


class _Converter:
    """YAML nodes → JSON values, so that no value is lost to a Python type, and aliases stay bounded."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.budget = _MAX_NODES
        self.noted = _Noted()

    def mapping(self, node: yaml.MappingNode, depth: int, keys: tuple[str, ...] = ()) -> dict[str, JSON]:
        values: dict[str, JSON] = {}
        for key, value in node.value:
            name = self.key(key)
            self.noted.add(values, name, self.value(value, depth + 1, (*keys, name)), key.start_mark.line)
        return values

    def key(self, node: yaml.Node) -> str:
        return node.value if isinstance(node, yaml.ScalarNode) else self.literal(node)

    def literal(self, node: yaml.Node) -> str:
        return self.source[node.start_mark.index : node.end_mark.index].strip()

    def value(self, node: yaml.Node, depth: int, keys: tuple[str, ...], *, listed: bool = False) -> JSON:
        self.budget -= 1
        if self.budget < 0 or depth > 2 * _MAX_DEPTH:
            raise _Fault(node.start_mark.line, "too many values")
        if isinstance(node, yaml.SequenceNode) and not self.is_link(node):
            return [self.value(item, depth + 1, keys, listed=True) for item in node.value]
        if isinstance(node, yaml.MappingNode) and all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            return self.mapping(node, depth, keys)
        value = self.single(node)
        self.noted.placed.append(_Placed(keys, value, node.start_mark.line, listed))
        return value

    def single(self, node: yaml.Node) -> JSON:
        """The value of a node that is no list or mapping, or only looks like one."""
        if isinstance(node, yaml.ScalarNode):
            if node.style:
                return str(node.value)
            if is_no_date(node.value):
                self.noted.faults.append((node.start_mark.line, "This date does not exist; it is read as text."))
            return scalar(node.value)
        if isinstance(node, yaml.SequenceNode):
            return f"[[{self.literal(node.value[0])[1:-1].strip()}]]"
        return self.literal(node)  # {{placeholder}} is a mapping whose key is a mapping

    def is_link(self, node: yaml.SequenceNode) -> bool:
        """Whether it is an unquoted [[link]]."""
        items = node.value
        if not node.flow_style or len(items) != 1 or not isinstance(items[0], yaml.SequenceNode):
            return False
        inner = self.literal(items[0])[1:-1] if items[0].flow_style else ""
        return "[" not in inner and bool(inner.strip())


def _salvage(block: Sequence[str], faults: list[tuple[int, str]]) -> tuple[dict[str, JSON], list[_Placed]]:
    """Every property that can be read by itself; the lines that cannot are faults (1-based in the file)."""
    values: dict[str, JSON] = {}
    placed: list[_Placed] = []
    for start, lines in _groups(block):
        group = list(enumerate(lines, start))
        for _ in range(_MAX_DROPPED):
            if not any(line.strip() for _, line in group):
                break
            try:
                loaded, noted = _load([line for _, line in group])
                if loaded is None:
                    raise _Fault(0, "not a property")
            except _Fault as fault:
                at = min(fault.line, len(group) - 1)
                while at > 0 and not group[at][1].strip():
                    at -= 1
                number, line = group[at]
                faults.append((number + 2, f"This line of the properties cannot be read: {fault.reason}."))
                if at == 0:  # without its key the rest of the property means nothing
                    key, colon, value = line.partition(": ")
                    if len(group) == 1 and colon and fault.reason.startswith(_COLON):
                        double = _Noted()
                        double.add(values, key.strip(), value.strip(), 0)
                        double.tell(faults, [number])
                        placed.append(_Placed((key.strip(),), value.strip(), number + 2, False))
                    break
                del group[at]
            else:
                numbers = [number for number, _ in group]
                noted.tell(faults, numbers)
                placed += noted.placed_at(numbers)
                doubles = _Noted()
                for key, item in loaded.items():
                    doubles.add(values, key, item, 0)
                doubles.tell(faults, numbers)
                break
    return values, placed


def _groups(block: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines that begin at a top-level key, with their 0-based start; a line before the first key alone."""
    start, lines = 0, list[str]()
    for number, line in enumerate(block):
        belongs = not line.strip() or (line[0] in " \t#-" and not _KEY.match(line))
        if belongs and lines and _KEY.match(lines[0]):
            lines.append(line)
            continue
        if lines:
            yield start, lines
        start, lines = number, [line]
    if lines:
        yield start, lines


def _readable(block: Sequence[str], faulty: set[int]) -> tuple[list[str], str]:
    """The lines, blank where there is nothing to read, and the switches as text; what was `faulty` is to be read."""
    shown = [""] * len(block)
    switches: list[str] = []
    room = MAX_TEXT_CHARS
    for start, lines in _groups(block):
        key = _KEY.match(lines[0])
        name = key[0].rstrip(":").strip("\"'").casefold() if key else ""
        rest = [lines[0][key.end() :].strip(), *map(str.strip, lines[1:])] if key else []
        value = "\n".join(part for part in rest if part)
        known = name in _LISTS or name == "title" or (key and value in NULLS)
        if known and faulty.isdisjoint(range(start, start + len(lines))):
            continue
        if name in _SWITCHES or name.endswith("-plugin"):
            switches.append("" if value in BOOLS else value)
        elif value in BOOLS:
            switches.append(f"{name} {value}")
        else:
            for number, line in enumerate(lines, start):
                room -= len(line) + 1
                shown[number] = "" if room < 0 or _is_template(line) else line.rstrip()
    return shown, "\n".join(filter(None, switches))[:MAX_TEXT_CHARS]


def _finish(values: dict[str, JSON], placed: list[_Placed], block: PropertyBlock) -> PropertyBlock:
    if block.doubled:
        placed = _kept(values, placed)
    title, aliases, tags = "", list[str](), list[str]()
    for key, value in values.items():
        folded = key.casefold()
        if folded in _LISTS:
            values[key] = found = _names(folded, value)  # type: ignore[assignment]
            (tags if folded in _TAGS else aliases).extend(found)
        elif folded == "title" and isinstance(value, (str, int, float)) and not isinstance(value, bool):
            title = "" if _is_template(str(value)) else " ".join(str(value).split())
    return replace(
        block,
        values=values,
        title=title,
        aliases=tuple(dict.fromkeys(aliases)),
        tags=tuple(tags),
        leaves=tuple(_leaves_of(placed)),
    )


def _names(key: str, value: JSON) -> list[str]:
    """The tags or aliases that a property's value means; `key` is casefolded."""
    if key not in _TAGS:
        return _strings(value, ",")
    parts = [part for text in _strings(value, r"[,\s]+") for part in _JSON_MARKS.split(text)]
    return [tag for text in parts if (tag := text.strip().lstrip("#").strip("/"))]


def _leaves_of(placed: Iterable[_Placed]) -> Iterator[Leaf]:
    for keys, value, line, listed in placed:
        if len(keys) == 1 and keys[0].casefold() in _LISTS:
            for name in _names(keys[0].casefold(), [value] if listed else value):
                yield Leaf(keys[0], name, line)
        elif value is not None and value != "" and not isinstance(value, dict | list):
            yield Leaf(".".join(keys), value, line)


def _kept(values: Mapping[str, JSON], placed: Sequence[_Placed]) -> list[_Placed]:
    """Those of the values that are in `values`, where of two with one name one was dropped: the last of each."""
    wanted: dict[tuple[str, ...], list[JSON]] = {}

    def walk(keys: tuple[str, ...], value: JSON) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk((*keys, key), item)
        elif isinstance(value, list):
            for item in value:
                walk(keys, item)
        else:
            wanted.setdefault(keys, []).append(value)

    walk((), dict(values))
    kept: list[_Placed] = []
    for one in reversed(placed):
        left = wanted.get(one.keys, [])
        if one.value in left:
            left.remove(one.value)
            kept.append(one)
    return kept[::-1]


def _leaves(value: JSON) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value


def _plain(value: JSON) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
        return ", ".join(_leaves(value))
    return str(value)
