"""What is asked of the vault as data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

RowKind = Literal["notes", "tasks", "items"]

_PARTS = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|([(\[{])|([)\]}])|(,|&&|\|\|)|.""", re.DOTALL)


@dataclass(frozen=True)
class VaultQuery:
    """Rows with conditions, all in the language of Bases; "" and empty are no condition.

    Rows are notes, tasks, or list items that carry fields; of the latter two a bare name is first the task's or item's
    own. In `sort` a leading `-` puts the largest first. `summaries` are by expression: sum, average, min, max, median,
    range, earliest, latest, unique, filled, empty. `limit` cuts rows, and neither `total` nor summaries.

    `base` is the text of a .base file, with `view` as the name of one of its views; all else is then its own matter.
    `this` is the path of the note that `this` stands for.
    """

    rows: RowKind = "notes"
    where: str = ""
    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    group: str = ""
    summaries: Mapping[str, str] = field(default_factory=dict)
    limit: int = 0
    base: str = ""
    base_line: int = 1
    view: str = ""
    this: str = ""


def rows_query(
    where: str,
    *,
    rows: RowKind = "notes",
    columns: Sequence[str] = (),
    sort: Sequence[str] = (),
    group: str = "",
    sum: Sequence[str] = (),
    average: Sequence[str] = (),
    limit: int = 0,
) -> VaultQuery:
    """Rows by a condition; what they are sorted by, or what is summed, is shown unless `columns` say what is."""
    # an expression has one summary; in brackets it is another expression with the same value
    summaries = {**dict.fromkeys(sum, "sum"), **{f"({one})" if one in sum else one: "average" for one in average}}
    shown = columns or list(dict.fromkeys([*(one.removeprefix("-") for one in sort), *sum, *average]))
    return VaultQuery(rows, where, tuple(shown), tuple(sort), group, summaries, limit)


def expressions(text: str) -> list[str]:
    """Expressions with commas between them; commas in quotes and brackets part nothing."""
    return [part for part in _split(text, ",") if part]


def conditions(text: str) -> list[str]:
    """The conditions that must all be true for `text` to be; `text` alone where it is not of that form."""
    return [text] if len(_split(text, "||")) > 1 else [part for part in _split(text, "&&") if part]


def _split(text: str, sign: str) -> list[str]:
    """The parts of a text between signs that stand in no quotes or brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for found in _PARTS.finditer(text):
        depth += (found[1] is not None) - (found[2] is not None)
        if found[3] == sign and depth <= 0:
            parts.append([])
        else:
            parts[-1].append(found[0])
    return ["".join(part).strip() for part in parts]
