"""Runs expressions: each is compiled once into nested functions, and these are called for each note.

Nothing here has a side effect but on the scope's budget. What could run away is bounded: the text and the depth of an
expression by `grammar`, work and memory by the budget, and how deep values and formulas are nested below.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache

from tarsd.bases.faults import BasesError
from tarsd.bases.functions import ANY, GLOBAL
from tarsd.bases.grammar import (
    BareName,
    FunctionCall,
    Index,
    Items,
    Literal,
    Member,
    Node,
    Object,
    Operation,
    Prefix,
    member_name,
    parse,
)
from tarsd.bases.lists import METHODS, run_filter, run_map, run_reduce
from tarsd.bases.operators import ARITHMETIC, as_number, equal, ordered
from tarsd.bases.record import Lookup, Record
from tarsd.bases.scope import Budget, Program, RowScope, TooMuch
from tarsd.bases.temporal import length_in
from tarsd.bases.values import (
    Date,
    Duration,
    File,
    This,
    Value,
    is_truthy,
    tidy,
    type_of,
)

__all__ = ["Budget", "Program", "RowScope", "TooMuch", "compile_expression", "evaluate", "run"]

MAX_NESTED = 50
"""Lists in lists, and formulas that need formulas."""

_LAMBDAS = {"filter": (1, 1), "map": (1, 1), "reduce": (1, 2)}
_VARIABLES = {"filter": ("value", "index"), "map": ("value", "index"), "reduce": ("value", "index", "acc")}
_NAMES = frozenset(name for methods in METHODS.values() for name in methods) | _LAMBDAS.keys()
_NULL: Mapping[str, Value] = {"isEmpty": True, "isTruthy": False, "toString": ""}
_NO = frozenset((
    "contains", "containsAll", "containsAny", "endsWith", "startsWith", "hasLink", "hasProperty", "hasTag", "inFolder",
    "linksTo", "matches",
))  # fmt: skip
"""Of null, these are false; whatever else is asked of it is null."""


@lru_cache(maxsize=1_024)
def compile_expression(text: str, variables: frozenset[str] = frozenset()) -> Program:
    """An expression as a function of a scope; `variables` are names that are found in `RowScope.values`.

    Raises `BasesError` with line and column for what cannot be read, and for functions that there are not.
    """
    return _compile(parse(text), variables)


def compile_node(node: Node) -> Program:
    """A part of an expression as a function of a scope. Raises `BasesError` for functions that there are not."""
    return _compile(node, frozenset())


def evaluate(
    expression: str,
    record: Record,
    lookup: Lookup,
    now: datetime,
    *,
    this: Record | None = None,
    budget: Budget | None = None,
) -> Value:
    """The value of an expression for one note; `now` is without time zone, by the clock of the vault's owner.

    Raises `BasesError` as `compile_expression` does, for functions of another type than the value's, and for what is
    more work than the budget allows.
    """
    scope = RowScope(record, lookup, now, this)
    if budget is not None:
        scope.budget = budget
    return run(compile_expression(expression), scope)


def run(program: Program, scope: RowScope) -> Value:
    """What a program gives in a scope. Raises `BasesError`, also for a value of lists in lists without end."""
    try:
        value = program(scope)
        if type(value) is tuple or type(value) is dict:
            _check_depth(value)
    except RecursionError:
        raise BasesError("This is nested too deeply", "Make lists of values, and not of lists.") from None
    return value


def _check_depth(value: Value) -> None:
    level: Iterable[Value] = [value]
    for _ in range(MAX_NESTED):
        level = [
            part
            for item in level
            if isinstance(item, tuple | Mapping)
            for part in (item if isinstance(item, tuple) else item.values())
        ]
        if not level:
            return
    raise RecursionError


def _compile(node: Node, variables: frozenset[str]) -> Program:
    program = _COMPILERS[type(node)](node, variables)
    return program


def _placed(node: Node, run: Program) -> Program:
    """The program, whose errors say where they come from."""

    def placed(scope: RowScope) -> Value:
        try:
            return run(scope)
        except BasesError as error:
            raise _at(error, node) from None

    return placed


def _at(error: BasesError, node: Node) -> BasesError:
    """The error with the place of this node, if it has none."""
    return error if error.line else type(error)(error.said, error.hint, line=node.line, column=node.column)


def _literal(node: Literal, variables: frozenset[str]) -> Program:
    value = node.value
    return lambda scope: value


def _name(node: BareName, variables: frozenset[str]) -> Program:
    name = node.name
    if name in variables:
        return lambda scope: scope.values.get(name)
    if name == "file":
        return lambda scope: File(scope.record)
    if name == "this":
        return lambda scope: None if scope.this is None else This(scope.this)
    if name == "note":
        return lambda scope: scope.record.properties()
    if name == "formula":
        return lambda scope: {}
    return lambda scope: scope.record.property(name)


def _member(node: Member | Index, variables: frozenset[str]) -> Program:
    name, owner = member_name(node), node.subject
    if name and isinstance(owner, BareName) and owner.name not in variables:
        if owner.name == "note":
            return lambda scope: scope.record.property(name)
        if owner.name == "formula":
            return _placed(node, lambda scope: formula_value(name, scope))
        if owner.name == "file" and name not in ("file", "properties"):
            return lambda scope: scope.record.file(name)
    subject = _compile(owner, variables)
    if isinstance(node, Member):
        return lambda scope: member(subject(scope), name)
    key = _compile(node.key, variables)
    return _placed(node, lambda scope: _item(subject(scope), key(scope)))


def member(value: Value, name: str) -> Value:
    """`value.name`: a field of a date, duration, text, list or file, a property of `this`, or a key of an object."""
    match value:
        case None:
            return None
        case File() | This():
            if name == "file":
                return File(value.record)
            if isinstance(value, This):
                return value.record.property(name)
            return value.record.properties() if name == "properties" else value.record.file(name)
        case Date():
            if name == "millisecond":
                return value.when.microsecond // 1_000
            return getattr(value.when, name) if name in _DATE_FIELDS else None
        case Duration():
            length = length_in(value, name)
            return None if length is None else tidy(length)
        case str() | tuple():
            return len(value) if name == "length" else None
        case Mapping():
            return value.get(name)
    return None


_DATE_FIELDS = frozenset(("year", "month", "day", "hour", "minute", "second"))


def _item(value: Value, key: Value) -> Value:
    if isinstance(value, tuple | str) and isinstance(key, int | float) and not isinstance(key, bool):
        at = int(key)
        return value[at] if at == key and 0 <= at < len(value) else None
    return member(value, key) if isinstance(key, str) else None


def formula_value(name: str, scope: RowScope) -> Value:
    """What a formula of the base gives for the row; each is evaluated once."""
    if name in scope.results:
        return scope.results[name]
    program = scope.formulas.get(name)
    if program is None:
        raise BasesError(f"There is no formula {name[:60]!r}", "The base's formulas are listed under `formulas`.")
    if name in scope.running:
        circle = " → ".join((*scope.running[scope.running.index(name) :], name))
        raise BasesError(f"Formulas are circular: {circle}", "Take one of them out of the other.")
    if len(scope.running) >= MAX_NESTED:
        raise BasesError(f"More than {MAX_NESTED} formulas need each other", "Combine some of them.")
    outer, running = scope.values, scope.running
    scope.values, scope.running = {}, (*running, name)
    try:
        value = run(program, scope)
    finally:
        scope.values, scope.running = outer, running
    scope.results = {**scope.results, name: value}
    return value


def _prefix(node: Prefix, variables: frozenset[str]) -> Program:
    operand = _compile(node.operand, variables)
    if node.operator == "!":
        return lambda scope: not is_truthy(operand(scope))
    return _placed(node, lambda scope: _negative(operand(scope)))


def _negative(value: Value) -> Value:
    if isinstance(value, Duration):
        return Duration(-value.months, -value.ms)
    number = None if value is None else as_number(value)
    if number is None and value is not None:
        raise BasesError(f"- takes no {type_of(value)}", "Only numbers can be calculated with.")
    return None if number is None else tidy(-number)


def _operation(node: Operation, variables: frozenset[str]) -> Program:
    programs = [_compile(operand, variables) for operand in node.operands]
    sign = node.operators[0]
    if sign in ("&&", "||"):
        return _logical(programs, sign == "||")
    if len(programs) == 2 and sign in _COMPARISONS:
        return _comparison(sign, *programs)
    steps = [(_STEPS[sign], program) for sign, program in zip(node.operators, programs[1:], strict=True)]
    first = programs[0]

    def reckon(scope: RowScope) -> Value:
        value = first(scope)
        for step, program in steps:
            value = step(value, program(scope), scope)
        return value

    return _placed(node, reckon)


def _logical(programs: list[Program], stop: bool) -> Program:
    """What `&&` and `||` come to: the first operand that is `stop` decides. A loop takes half of the time of all()."""

    def decide(scope: RowScope) -> Value:
        for program in programs:
            if is_truthy(program(scope)) is stop:
                return stop
        return not stop

    return decide


def _comparison(sign: str, left: Program, right: Program) -> Program:
    if sign == "==":
        return lambda scope: equal(left(scope), right(scope), scope)
    if sign == "!=":
        return lambda scope: not equal(left(scope), right(scope), scope)
    test = ordered(sign)
    return lambda scope: test(left(scope), right(scope))


_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def _step(sign: str) -> Callable[[Value, Value, RowScope], Value]:
    test = ordered(sign)
    return lambda left, right, scope: test(left, right)


_STEPS: Mapping[str, Callable[[Value, Value, RowScope], Value]] = {
    **ARITHMETIC,
    **{sign: _step(sign) for sign in ("<", "<=", ">", ">=")},
    "==": equal,
    "!=": lambda left, right, scope: not equal(left, right, scope),
}


def _items(node: Items, variables: frozenset[str]) -> Program:
    programs = [_compile(item, variables) for item in node.items]
    return lambda scope: tuple([program(scope) for program in programs])


def _object(node: Object, variables: frozenset[str]) -> Program:
    programs = {name: _compile(value, variables) for name, value in node.pairs}
    return lambda scope: {name: program(scope) for name, program in programs.items()}


def _call(node: FunctionCall, variables: frozenset[str]) -> Program:
    if node.subject is None:
        return _global(node, variables)
    if node.name not in _NAMES:
        raise _unknown(node, _NAMES)
    subject = _compile(node.subject, variables)
    name, bodies = node.name, node.arguments
    if name in _LAMBDAS:
        _check_count(node, *_LAMBDAS[name])
        return _placed(node, _each(node, subject, variables))
    takes = [methods[name] for methods in METHODS.values() if name in methods]
    _check_count(node, min(found.low for found in takes), max(found.high for found in takes))
    by_type = {kind: methods[name] for kind, methods in METHODS.items() if name in methods}
    arguments = [_compile(body, variables) for body in bodies]
    everyone = by_type.get("any")
    only = arguments[0] if len(arguments) == 1 else None

    def call(scope: RowScope) -> Value:
        value = subject(scope)
        if value is None and name != "isType":
            return _NULL.get(name, False if name in _NO else None)
        function = by_type.get(type_of(value), everyone)
        if function is None:
            raise BasesError(
                f"{name}() does not work on a {type_of(value)}", _kinds(name), line=node.line, column=node.column
            )
        scope.budget.charge(1)
        given = (only(scope),) if only else [argument(scope) for argument in arguments]
        try:
            return function.run(scope, value, given)
        except BasesError as error:
            raise _at(error, node) from None

    return call


def _each(node: FunctionCall, subject: Program, variables: frozenset[str]) -> Program:
    name, body = node.name, node.arguments[0]
    program = _compile(body, variables | set(_VARIABLES[name]))
    start = _compile(node.arguments[1], variables) if len(node.arguments) > 1 else None

    def each(scope: RowScope) -> Value:
        value = subject(scope)
        if value is None:
            return None
        if not isinstance(value, tuple):
            raise BasesError(f"{name}() does not work on a {type_of(value)}", "list() makes a list of one value.")
        first = start(scope) if start else None
        outer, scope.values = scope.values, dict(scope.values)
        try:
            if name == "reduce":
                return run_reduce(scope, value, program, body.size, first)
            return (run_filter if name == "filter" else run_map)(scope, value, program, body.size)
        finally:
            scope.values = outer

    return each


def _global(node: FunctionCall, variables: frozenset[str]) -> Program:
    arguments = [_compile(argument, variables) for argument in node.arguments]
    if node.name == "if":
        _check_count(node, 2, 3)
        condition, yes = arguments[:2]
        no = arguments[2] if len(arguments) > 2 else None
        return lambda scope: yes(scope) if is_truthy(condition(scope)) else no(scope) if no else None
    function = GLOBAL.get(node.name)
    if function is None:
        raise _unknown(node, (*GLOBAL, "if"))
    _check_count(node, function.low, function.high)
    run = function.run

    def call(scope: RowScope) -> Value:
        scope.budget.charge(1)
        return run(scope, None, [argument(scope) for argument in arguments])

    return _placed(node, call)


def _check_count(node: FunctionCall, low: int, high: int) -> None:
    count = len(node.arguments)
    if low <= count <= high:
        return
    wanted = str(low) if low == high else f"at least {low}" if high == ANY else f"{low} to {high}"
    few = "values" if wanted != "1" else "value"
    raise BasesError(
        f"{node.name}() takes {wanted} {few} in its brackets, and not {count}", "", line=node.line, column=node.column
    )


def _unknown(node: FunctionCall, names: Iterable[str]) -> BasesError:
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(node.name.casefold(), folded, 1, 0.7)
    hint = f"There is {folded[close[0]]}()." if close else "The manual's page of queries lists the functions."
    return BasesError(f"There is no function {node.name[:60]}()", hint, line=node.line, column=node.column)


def _kinds(name: str) -> str:
    kinds = [f"a {kind}" for kind, methods in METHODS.items() if name in methods]
    return f"It is one of {' or '.join(kinds)}." + (" list() makes a list of one value." if "a list" in kinds else "")


_COMPILERS: Mapping[type[Node], Callable[..., Program]] = {
    Literal: _literal, BareName: _name, Member: _member, Index: _member, FunctionCall: _call, Prefix: _prefix,
    Operation: _operation, Items: _items, Object: _object,
}  # fmt: skip
