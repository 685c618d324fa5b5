"""What people ask of tasks, as a query."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Literal

from tarsd.errors import BadRequest
from tarsd.kinds import kind_of
from tarsd.query.request import VaultQuery

TaskState = Literal["open", "done", "overdue", "cancelled", "all"]

_STATES = {
    "open": "open",
    "done": '(status == "x" || status == "X")',
    "overdue": "open && due < today()",
    "cancelled": 'status == "-"',
    "all": "",
}
COLUMNS = ("due", "priority", "scheduled", "done")


def task_query(
    state: TaskState, today: date, *, due: str = "", folder: str = "", tag: str = "", words: str = "", limit: int = 0
) -> VaultQuery:
    """Tasks by their state, by when they are due, in a folder, with a tag (their own or their note's), and with words.

    `due` is today, tomorrow, week (this one, from Monday on), a day, or before: or after: and one of these. Raises
    `BadRequest` for anything else.
    """
    conditions = [_STATES[state], _due(due, today)]
    if folder.strip("/ "):
        conditions.append(f"file.inFolder({json.dumps(folder.strip('/ '))})")
    if tag.strip("# "):
        name = json.dumps(tag.strip("# ").casefold())
        below = json.dumps(f"{tag.strip('# ').casefold()}/")
        own = f"tags.map(value.lower()).filter(value == {name} || value.startsWith({below})).length > 0"
        of_note = own.replace("tags.", "list(file.properties.tags).", 1)
        conditions.append(f"({own} || {of_note})")
    conditions += [f"text.lower().contains({json.dumps(word)})" for word in words.lower().split()[:50]]
    where = " && ".join(condition for condition in conditions if condition)
    return VaultQuery("tasks", where, COLUMNS, ("-done",) if state == "done" else ("due",), limit=limit)


def _due(due: str, today: date) -> str:
    if not due:
        return ""
    before, colon, said = due.rpartition(":")
    sign = {"": "", "before": "<", "after": ">"}.get(before.strip()) if colon or not before else None
    if sign is None:
        raise _no_day(due)
    said = said.strip().casefold()
    if said == "week":
        monday = today - timedelta(days=today.weekday())
        if sign:
            return f'due {sign} date("{monday if sign == "<" else monday + timedelta(days=6)}")'
        return f'due >= date("{monday}") && due <= date("{monday + timedelta(days=6)}")'
    near = {"today": 0, "tomorrow": 1, "yesterday": -1}
    day = (today + timedelta(days=near[said])).isoformat() if said in near else kind_of(said).day
    if not day:
        raise _no_day(due)
    return f'due {sign or "=="} date("{day}")'


def _no_day(due: str) -> BadRequest:
    return BadRequest(
        f"{due[:60]!r} is not a due date.",
        "Write today, tomorrow, week, a day such as 2026-03-01, or before:2026-03-01.",
        field="due",
    )
