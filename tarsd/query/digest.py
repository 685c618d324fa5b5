"""What a day begins with: what changed, what is due, what was done, and what notes there are of this day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from tarsd.query.request import VaultQuery
from tarsd.query.shown import ShownRows, as_markdown
from tarsd.query.tasks import task_query

MOST_OF_PART = 20
"""The rows of each part that are shown in a chat; counts are of all."""


@dataclass(frozen=True)
class DigestPart:
    """A part of the digest: its name for programs, what stands above it, and what its rows are."""

    name: str
    title: str
    query: VaultQuery


def digest_parts(today: date, limit: int = 0) -> tuple[DigestPart, ...]:
    """The parts of the digest of a day, in their order, each with at most `limit` rows, 0 for all.

    Yesterday is the calendar's; a note changed when its file did, and is of the day that its properties or name say.
    """
    yesterday = f'date("{today - timedelta(days=1)}")'
    this_day = f"file.day.month == {today.month} && file.day.day == {today.day} && file.day.year != {today.year}"
    done = task_query("done", today)
    parts = (
        DigestPart(
            "changed",
            "Changed since yesterday",
            VaultQuery(where=f"file.mtime >= {yesterday}", columns=("file.mtime",), sort=("-file.mtime",)),
        ),
        DigestPart("due", "Due today", task_query("open", today, due="today")),
        DigestPart("overdue", "Overdue", task_query("open", today, due="before:today")),
        DigestPart("done", "Done since yesterday", replace(done, where=f"{done.where} && done >= {yesterday}")),
        DigestPart(
            "other_years",
            "On this day in other years",
            VaultQuery(where=this_day, columns=("file.day",), sort=("-file.day",)),
        ),
    )
    return tuple(replace(part, query=replace(part.query, limit=limit)) for part in parts)


def digest_markdown(day: date, parts: Sequence[tuple[DigestPart, ShownRows]]) -> str:
    """The digest of a day for a person; parts without rows are named together at its end."""
    said = [f"The digest of {day}."]
    said += [f"**{part.title}**\n\n{as_markdown(shown)}" for part, shown in parts if shown.table.total]
    none = [part.title for part, shown in parts if not shown.table.total]
    return "\n\n".join([*said, *([f"None: {', '.join([none[0], *map(_lower, none[1:])])}."] if none else [])])


def _lower(title: str) -> str:
    return title[0].lower() + title[1:]
