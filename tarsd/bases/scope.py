"""What an expression is evaluated in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from tarsd.bases.faults import BasesError
from tarsd.bases.record import Lookup, Record
from tarsd.bases.values import Value

MAX_CHARS = 1_000_000
"""Of one text that an expression makes."""
MAX_ITEMS = 100_000
"""Of one list that an expression makes."""


class Budget:
    """How much work is allowed, in steps of about a microsecond or of ten characters; one for all rows of a query."""

    def __init__(self, steps: int = 10_000_000) -> None:
        self.left = steps

    def charge(self, steps: int) -> None:
        """Takes off some steps; raises `BasesError` when none are left."""
        self.left -= steps
        if self.left < 0:
            raise TooMuch("This query is too expensive", "Filter more, or use shorter lists.")

    def text(self, chars: int) -> None:
        """Asks for a text of so many characters."""
        if chars > MAX_CHARS:
            raise BasesError(f"This makes a text longer than {MAX_CHARS:,} characters", "Use shorter texts.")
        self.charge(chars // 10 + 1)

    def items(self, count: int) -> None:
        """Asks for a list of so many items."""
        if count > MAX_ITEMS:
            raise BasesError(f"This makes a list longer than {MAX_ITEMS:,} items", "Use shorter lists.")
        self.charge(count + 1)


class TooMuch(BasesError):
    """The budget of a query is spent: no other row can be evaluated either."""


_NOTHING: dict[str, Value] = {}
"""What most rows have; nothing is put into it, for one is made when there is something to put."""


@dataclass(slots=True)
class RowScope:
    """A row, the way from links to notes, and the moment that `now()` is."""

    record: Record
    lookup: Lookup
    now: datetime
    this: Record | None = None
    formulas: Mapping[str, Program] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    values: dict[str, Value] = field(default_factory=lambda: _NOTHING)
    """The variables `value`, `index` and `acc` of a list function, and `values` of a summary."""
    results: dict[str, Value] = field(default_factory=lambda: _NOTHING)
    """What formulas gave for this row."""
    running: tuple[str, ...] = ()
    """The formulas that are being evaluated, each for the one before it."""


Program: TypeAlias = Callable[[RowScope], Value]
