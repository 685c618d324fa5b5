"""The grammar of expressions: text becomes a tree whose nodes know their place. Nothing is evaluated here.

The parser is made when the first expression is read. Its work grows with the text's length alone, and both the length
and the depth of what it takes are limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from tarsd.bases.faults import BasesError
from tarsd.bases.values import Pattern, Value, tidy

MAX_CHARS = 20_000
MAX_DEPTH = 100

_GRAMMAR = r"""
?start: either
?either: both (OR both)*
?both: same (AND same)*
?same: order (EQUAL order)*
?order: sum (COMPARE sum)*
?sum: product ((PLUS | MINUS) product)*
?product: unary ((TIMES | SLASH | MODULO) unary)*
?unary: chain | (NOT | MINUS) unary -> prefix
?chain: atom | chain "." NAME -> member | chain "." NAME "(" [arguments] ")" -> method
      | chain "[" either "]" -> index
?atom: NUMBER -> number | STRING -> string | REGEX -> regex | NAME -> name
     | NAME "(" [arguments] ")" -> function | "(" either ")" -> group
     | "[" [arguments] "]" -> items | "{" [pair ("," pair)*] "}" -> object
arguments: either ("," either)*
pair: (STRING | NAME | NUMBER) ":" either
OR: "||"
AND: "&&"
EQUAL: /[=!]==?/
COMPARE: /[<>]=?/
PLUS: "+"
MINUS: "-"
TIMES: "*"
SLASH: "/"
MODULO: "%"
NOT: "!"
NAME: /[^\W\d][\w$]*/
NUMBER: /\d+(\.\d+)?([eE][+-]?\d+)?/
STRING: /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/s
REGEX: /\/(?![*\/])(?:[^\/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/
%ignore /\s+/
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of an expression: where it begins, how deep it is nested, and how many nodes it has."""

    line: int = 1
    column: int = 1
    depth: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number, text, true, false, null, or a regular expression."""

    value: Value


@dataclass(frozen=True, slots=True)
class BareName(Node):
    """A bare name: a property of the note, `file`, `this`, or a variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`subject.name`."""

    subject: Node
    name: str


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`subject[key]`."""

    subject: Node
    key: Node


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """`name(arguments)`, or `subject.name(arguments)`."""

    subject: Node | None
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Prefix(Node):
    """`!operand` or `-operand`."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Operation(Node):
    """Operands with operators between them, all of one rank: `a + b - c`, `a && b && c`."""

    operands: tuple[Node, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Items(Node):
    """`[a, b]`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Object(Node):
    """`{"a": b}`."""

    pairs: tuple[tuple[str, Node], ...]


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below one."""
    match node:
        case Member():
            return (node.subject,)
        case Index():
            return (node.subject, node.key)
        case FunctionCall():
            return (*((node.subject,) if node.subject else ()), *node.arguments)
        case Prefix():
            return (node.operand,)
        case Operation():
            return node.operands
        case Items():
            return node.items
        case Object():
            return tuple(value for _, value in node.pairs)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


@lru_cache(maxsize=512)
def parse(text: str) -> Node:
    """The tree of an expression. Raises `BasesError` with line and column for what is no expression, or too much."""
    if len(text) > MAX_CHARS:
        raise BasesError(f"This expression has more than {MAX_CHARS:,} characters", "Shorten it.", line=1, column=1)
    if not text.strip():
        raise BasesError("There is no expression here", 'Write one, such as rating > 3 or file.hasTag("book").')
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, VisitError

    try:
        node: Node = _builder().transform(_parser().parse(text))
    except VisitError as error:
        raise error.orig_exc from None
    except UnexpectedCharacters as error:
        raise _unreadable(text, error.line, error.column, error.pos_in_stream or 0) from None
    except UnexpectedInput as error:
        token = getattr(error, "token", None)
        at = len(text.rstrip()) if token is None or token.type == "$END" else int(token.start_pos)
        before = text[:at]
        raise _unreadable(text, before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1, at) from None
    return node


def names_of(node: Node, owner: str) -> set[str]:
    """The names that an expression takes from `owner`: `x` of `formula.x` and of `formula["x"]`."""
    return {
        found
        for part in walk(node)
        if isinstance(part, Member | Index)
        and part.subject == BareName(owner, line=part.subject.line, column=part.subject.column)
        and (found := member_name(part))
    }


def member_name(node: Member | Index) -> str:
    """The name in `.name` and `["name"]`, "" where it is to be computed."""
    if isinstance(node, Member):
        return node.name
    return node.key.value if isinstance(node.key, Literal) and isinstance(node.key.value, str) else ""


def _unreadable(text: str, line: int, column: int, at: int) -> BasesError:
    rest = text[at:]
    if not rest.strip():
        return BasesError("The expression ends too early", "A bracket, a value or a quotation mark is missing.",
                          line=line, column=column)  # fmt: skip
    word = re.match(r"\w+|\S", rest)
    said = word[0] if word else rest[:1]
    hint = "Check what is before it: an operator such as == or && may be missing."
    if named := _spaced_name(text, at):
        hint += f" A property name with spaces is written note[{json.dumps(named, ensure_ascii=False)}]."
    if said in "\"'":
        hint = "A quotation mark is not closed."
    elif said == "=" or (said in "><!" and rest[1:2] == "="):
        hint = "Write == to compare."
    elif said.casefold() in _WORDS:
        hint = f"Write {_WORDS[said.casefold()]} for {said}."
    elif said in "&|":
        hint = f"Write {said * 2}."
    return BasesError(f"{said[:40]!r} is not allowed here", hint, line=line, column=column)


def _spaced_name(text: str, at: int) -> str:
    """The words that stand side by side around a place, "" where it is none between two of them."""
    before, after = _LAST_WORD.search(text[max(at - 100, 0) : at]), _NEXT_WORDS.match(text[at : at + 100])
    return f"{before[1]} {after[0]}" if before and after else ""


_LAST_WORD = re.compile(r"\b([^\W\d]\w*) +$")
_NEXT_WORDS = re.compile(r"[^\W\d]\w*(?:[ ]+[^\W\d]\w*)*")
_WORDS = {"and": "&&", "or": "||", "not": "!", "is": "==", "in": ".contains()", "like": ".contains()"}


@cache
def _parser() -> Any:
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", lexer="contextual", propagate_positions=True)


def _made(kind: type[Node], place: Any, below: Sequence[Node], *values: Any, deeper: int = 1) -> Node:
    """A node at a place of lark's, with the nodes below it. Raises `BasesError` where that is nested too deeply."""
    depth = deeper + max((node.depth for node in below), default=0)
    line, column = place.line, place.column
    if depth > MAX_DEPTH:
        raise BasesError(
            f"This is nested more than {MAX_DEPTH} deep", "Split it into formulas.", line=line, column=column
        )
    return kind(*values, line=line, column=column, depth=depth, size=1 + sum(node.size for node in below))


@cache
def _builder() -> Any:
    """What makes nodes of lark's tree, from below and without recursion."""
    from lark import v_args
    from lark.visitors import Transformer_NonRecursive

    def operation(_: Any, meta: Any, parts: list[Any]) -> Node:
        operands, operators = tuple(parts[::2]), tuple(str(sign)[:2] for sign in parts[1::2])
        return _made(Operation, meta, operands, operands, operators)

    @v_args(meta=True)
    class Builder(Transformer_NonRecursive):  # type: ignore[type-arg]
        either = both = same = order = sum = product = operation

        def prefix(self, meta: Any, parts: list[Any]) -> Node:
            return _made(Prefix, meta, parts[1:], str(parts[0]), parts[1])

        def member(self, meta: Any, parts: list[Any]) -> Node:
            return _made(Member, meta, parts[:1], parts[0], str(parts[1]))

        def method(self, meta: Any, parts: list[Any]) -> Node:
            subject, name, given = parts
            return _made(FunctionCall, name, (subject, *(given or ())), subject, str(name), given or ())

        def index(self, meta: Any, parts: list[Any]) -> Node:
            return _made(Index, meta, parts, *parts)

        def function(self, meta: Any, parts: list[Any]) -> Node:
            name, given = parts
            return _made(FunctionCall, name, given or (), None, str(name), given or ())

        def group(self, meta: Any, parts: list[Any]) -> Node:
            _made(Node, meta, parts)
            node: Node = parts[0]
            return replace(node, depth=node.depth + 1)

        def arguments(self, meta: Any, parts: list[Any]) -> tuple[Node, ...]:
            return tuple(parts)

        def items(self, meta: Any, parts: list[Any]) -> Node:
            given = parts[0] or ()
            return _made(Items, meta, given, given)

        def pair(self, meta: Any, parts: list[Any]) -> tuple[str, Node]:
            key, value = parts
            return _unquoted(key) if key.type == "STRING" else str(key), value

        def object(self, meta: Any, parts: list[Any]) -> Node:
            pairs = tuple(part for part in parts if part is not None)
            return _made(Object, meta, [value for _, value in pairs], pairs)

        def number(self, meta: Any, parts: list[Any]) -> Node:
            text = str(parts[0])
            value = int(text) if text.isdigit() and len(text) < 16 else tidy(float(text))
            return _made(Literal, meta, (), value)

        def string(self, meta: Any, parts: list[Any]) -> Node:
            return _made(Literal, meta, (), _unquoted(parts[0]))

        def regex(self, meta: Any, parts: list[Any]) -> Node:
            source, _, flags = str(parts[0])[1:].rpartition("/")
            return _made(Literal, meta, (), Pattern(source, flags))

        def name(self, meta: Any, parts: list[Any]) -> Node:
            word = str(parts[0])
            known = word in _CONSTANTS
            return _made(Literal, meta, (), _CONSTANTS[word]) if known else _made(BareName, meta, (), word)

    return Builder()


def _unquoted(token: str) -> str:
    return _ESCAPE.sub(lambda match: _escaped(match[1]), str(token)[1:-1])


_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None, "undefined": None}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)


def _escaped(sign: str) -> str:
    if len(sign) > 1:
        code = int(sign[1:].strip("{}"), 16)
        return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(sign, sign)
