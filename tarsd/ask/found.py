"""What answers a question: its kind, and the lines of the vault that it rests on. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["notes", "tasks", "value", "when", "best", "most", "count", "sum", "mean", "nothing"]


@dataclass(frozen=True)
class AnswerRow:
    """A line that an answer rests on; line 0 is the note as a whole. `value` is what of it is asked for, as written."""

    id: int
    line: int = 0
    value: str = ""
    day: str = ""
    task: bool = False


@dataclass(frozen=True)
class Found:
    """What answers a question. `number` is a sum, mean or count of `of` values; `skipped` ones are no numbers.

    Of kind "most", `about` has the `name` of a note, or the `period` (`2026-03`, `2026-W11`, `2026`) that has it.
    Of kind "sum", `per` in `about` names the sentence of a period that it is for. Of kind "nothing", `reason` names
    the sentence that says so; `near` are days. `about` are the words for a sentence.
    """

    kind: Kind
    rows: tuple[AnswerRow, ...] = ()
    number: float = 0.0
    unit: str = ""
    of: int = 0
    skipped: tuple[AnswerRow, ...] = ()
    near: tuple[str, ...] = ()
    reason: str = "nothing"
    about: dict[str, str] = field(default_factory=dict)


def nothing(reason: str = "nothing", **about: str) -> Found:
    """That the vault, which knows what was asked about, holds nothing of it."""
    return Found("nothing", reason=reason, about=about)
