"""The tasks of a note: check boxes in lists, with their dates and marks in the forms of Tasks and of Dataview. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Task:
    """A list item with a check box; `line` is 1-based, `parent` the line of the task or list item above it, 0 if none.

    `status` is the character between the brackets. `text` is without marks, dates and fields; days are ISO, "" where
    there is none or no calendar has it; `priority` is highest, high, medium, low, lowest or "". `fields` are the
    other inline fields of the line, by their names as written.
    """

    line: int
    status: str
    text: str
    heading: str = ""
    parent: int = 0
    due: str = ""
    scheduled: str = ""
    start: str = ""
    created: str = ""
    done: str = ""
    cancelled: str = ""
    priority: str = ""
    recurrence: str = ""
    id: str = ""
    tags: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.status in (" ", "/")

    @property
    def is_done(self) -> bool:
        return self.status in ("x", "X")

    @property
    def is_cancelled(self) -> bool:
        return self.status == "-"
