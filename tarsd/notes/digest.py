"""The digest of a day for one audience: what changed, what is due, what was done, and the day in other years."""

from __future__ import annotations

from datetime import date
from typing import Any

from tarsd.notes.reading import Reader
from tarsd.query import DigestPart, ShownRows, digest_parts


def digest(reader: Reader, day: date, limit: int) -> dict[str, Any]:
    """Its parts, each with the reply to its query: at most `limit` rows, 0 for all."""
    parts = [{"name": part.name, "title": part.title, **reader.query(part.query)} for part in digest_parts(day, limit)]
    return {"day": day.isoformat(), "parts": parts}


def digest_rows(reader: Reader, day: date, most: int) -> list[tuple[DigestPart, ShownRows]]:
    """As `digest`, at most so many rows of a part, with the lines that they rest on, numbered through all parts."""
    made, first = [], 1
    for part in digest_parts(day):
        shown = reader.rows(part.query, most=most, first=first)
        first += sum(passage is not None for passage in shown.passages)
        made.append((part, shown))
    return made
