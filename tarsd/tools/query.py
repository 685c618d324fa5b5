"""The vault as data, as tools: rows, counts and sums of notes, list items and tasks, all computed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from tarsd.errors import ToolError
from tarsd.query import ShownRows, VaultQuery, as_lines, conditions, expressions, rows_query, task_query
from tarsd.query.tasks import TaskState
from tarsd.tools.base import Context, Result, Tool, tool

MOST_ROWS = 50
MOST_EXPRESSIONS = 20
MOST_CHARS = 12_000
"""Of all rows together."""
MOST_CONDITIONS = 6
"""So many are tried one by one where nothing meets them all."""

Expressions = list[str]


class QueryTools:
    """The tools that count, list and sum; `now` is the clock."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def tools(self) -> list[Tool]:
        """Both."""
        functions: tuple[Callable[..., object], ...] = (self.query_notes, self.query_tasks)
        return [tool(function, group="notes") for function in functions]

    def query_notes(
        self,
        context: Context,
        where: Annotated[str, "Condition; empty: all notes"] = "",
        columns: Annotated[Expressions | None, "Properties to show, such as author"] = None,
        sort: Annotated[Expressions | None, "Sort by; -rating: the largest first"] = None,
        group: Annotated[str, "Count by the values of this property"] = "",
        sum: Annotated[Expressions | None, "Properties to sum"] = None,
        average: Annotated[Expressions | None, "Properties to average"] = None,
        limit: Annotated[int, "Rows shown, at most 50; totals are of all"] = 20,
        rows: Annotated[Literal["notes", "items"], "items: list items with inline fields"] = "notes",
    ) -> Result:
        """Count, list, group or sum notes by properties, tags, folders, links and dates, exactly. Conditions are
        Obsidian Bases expressions: rating > 3 && file.hasTag("book"); finished >= date("2026-01-01");
        file.inFolder("Work"); authors.contains(link("Ada")); file.day == date("2026-03-01").
        """
        query = rows_query(
            where.strip(),
            rows=rows,
            columns=_listed(columns, "columns"),
            sort=_listed(sort, "sort"),
            group=group.strip(),
            sum=_listed(sum, "sum"),
            average=_listed(average, "average"),
        )
        return _answer(query, limit, context)

    def query_tasks(
        self,
        context: Context,
        state: Annotated[TaskState, "Which tasks"] = "open",
        due: Annotated[str, "today, tomorrow, week, 2026-03-01, or before: or after: and one of these"] = "",
        folder: Annotated[str, "Only in this folder"] = "",
        tag: Annotated[str, "Only with this tag"] = "",
        words: Annotated[str, "Only with these words"] = "",
        limit: Annotated[int, "Rows shown, at most 50; the total is of all"] = 20,
    ) -> Result:
        """Count and list the tasks (check boxes) of the notes, exactly."""
        query = task_query(state, self._now().date(), due=due.strip(), folder=folder, tag=tag, words=words)
        return _answer(query, limit, context)


def _listed(given: Sequence[str] | None, name: str) -> list[str]:
    """The expressions, also where several came in one text."""
    found = [part for text in given or () for part in expressions(text)]
    if len(found) > MOST_EXPRESSIONS:
        raise ToolError(f"“{name}” has {len(found)} entries. Give at most {MOST_EXPRESSIONS}.")
    return found


def _answer(query: VaultQuery, limit: int, context: Context) -> Result:
    shown = context.reader.rows(query, most=max(0, min(limit, MOST_ROWS)))
    text, rows = as_lines(shown)
    kept, chars = 0, 0
    for row in rows:
        chars += len(row)
        if chars > MOST_CHARS and kept:
            break
        kept += 1
    if kept < len(rows):
        shown = _first(shown, kept)
        text, rows = as_lines(shown)
    if not shown.table.total:
        text += _tried(query, context)
    evidence = tuple(passage for passage in shown.passages if passage is not None)
    private = any(note.local_only for note in shown.notes)
    return Result(text, evidence, private, shown.notes, rows=rows)


def _first(shown: ShownRows, count: int) -> ShownRows:
    return replace(shown, rows=shown.rows[:count], passages=shown.passages[:count])


def _tried(query: VaultQuery, context: Context) -> str:
    """Which of several conditions is met by nothing, alone."""
    parts = conditions(query.where)
    if not 1 < len(parts) <= MOST_CONDITIONS:
        return ""
    counts = [context.reader.rows(VaultQuery(query.rows, part), most=0).table.total for part in parts]
    lines = [f"{part[:200]}: {count:,}" for part, count in zip(parts, counts, strict=True)]
    return "\n".join(["\nEach condition alone matches:", *lines])
