"""Runs expressions: each is compiled once into nested functions, and then called for each note."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from tarsd.bases.faults import BasesError
from tarsd.bases.record import Lookup, Record
from tarsd.bases.values import Value


class Budget:
    """How much work is allowed, in steps of about a microsecond or ten characters; shared by all rows of a query."""

    def __init__(self, steps: int = 10_000_000) -> None:
        self.left = steps

    def charge(self, steps: int) -> None:
        """Takes off some steps; raises `BasesError` when none are left."""
        self.left -= steps
        if self.left < 0:
            raise BasesError("This takes more work than a query may", "Filter more, or work on shorter lists.")


@dataclass(slots=True)
class Scope:
    """What an expression is evaluated in: a row, the way from links to notes, and the time that `now()` is."""

    record: Record
    lookup: Lookup
    now: datetime
    this: Record | None = None
    formulas: Mapping[str, Program] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    values: dict[str, Value] = field(default_factory=dict)
    """The variables `value`, `index` and `acc` of a list function, and `values` of a summary."""
    results: dict[str, Value] = field(default_factory=dict)
    """Of formulas that were evaluated for this row."""


Program: TypeAlias = Callable[[Scope], Value]


def compile_expression(text: str) -> Program:
    """An expression as a function of a scope. Raises `BasesError` with line and column for what cannot be read."""
    raise NotImplementedError


def evaluate(
    expression: str, record: Record, lookup: Lookup, now: datetime, *, this: Record | None = None
) -> Value:
    """The value of an expression for one note. Raises `BasesError` as `compile_expression`, and for a wrong type."""
    return compile_expression(expression)(Scope(record, lookup, now, this))
