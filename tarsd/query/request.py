"""What is asked of the vault as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

RowKind = Literal["notes", "tasks", "items"]


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
