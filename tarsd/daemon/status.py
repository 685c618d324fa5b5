"""The reply of `GET /v1/status`, put together from what the parts say of themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tarsd.index import Embedding
from tarsd.store import Counts, ProblemRow, SkippedRow
from tarsd.watch import WatchState

MOST_PROBLEMS = 1_000
FAILED = ("unreadable",)
WARNINGS = ("twin",)
"""States of files that are indexed all the same."""


def counted(counts: Counts | None, skipped: Sequence[SkippedRow], pending: int) -> dict[str, int]:
    """Files by what became of them; notes + pending + skipped + failed + excluded is every file that was seen."""
    states: dict[str, int] = {}
    for row in skipped:
        states[row.state] = states.get(row.state, 0) + 1
    failed = sum(states.get(state, 0) for state in FAILED)
    excluded = states.get("excluded", 0)
    warned = sum(states.get(state, 0) for state in WARNINGS)
    notes = counts.states.get("ok", 0) + counts.states.get("empty", 0) if counts else 0
    return {
        "notes": notes,
        "chunks": counts.chunks if counts else 0,
        "pending": pending,
        "skipped": len(skipped) - failed - excluded - warned,
        "failed": failed,
        "excluded": excluded,
    }


def embedding(state: Embedding | None, model: str, counts: Counts | None) -> dict[str, Any]:
    """How far the vectors of the configured model are, with a reason where they don't come."""
    if state is None or counts is None:
        return {"model": model, "state": "starting", "done": 0, "remaining": 0}
    if model == "table":  # made with the index itself
        done = sum(space.vectors for space in counts.spaces if space.role == "table")
        return {"model": model, "state": "ready", "done": done, "remaining": max(0, counts.chunks - done)}
    about = dataclasses.asdict(state) | {"model": model, "state": _EMBEDDING.get(state.state, state.state)}
    return {key: value for key, value in about.items() if value != ""}


_EMBEDDING = {"model_missing": "unavailable", "failing": "failed"}


def watching(states: Mapping[str, WatchState]) -> dict[str, Any]:
    """How the vault is watched, and each further collection beside it."""
    own = states.get("", WatchState("waiting", "The daemon is starting."))
    about: dict[str, Any] = {"state": own.mode, "reason": own.reason, "hint": own.hint}
    others = {name: {"state": state.mode, "reason": state.reason} for name, state in states.items() if name}
    return about | ({"collections": others} if others else {})


def problems(
    general: Iterable[tuple[str, str]],
    states: Mapping[str, WatchState],
    files: Sequence[ProblemRow],
    skipped: Sequence[SkippedRow],
) -> list[dict[str, Any]]:
    """What a person may want to mend: first what concerns everything, then file by file."""
    found = [_problem("", "", 0, reason, hint) for reason, hint in dict.fromkeys(general)]
    found += [
        _problem("", name, 0, state.reason, state.hint) for name, state in states.items() if state.reason and state.hint
    ]
    found += [_problem(row.path, row.collection, row.line, row.reason, row.hint) for row in files]
    found += [
        _problem(row.path, row.collection, 0, row.reason, row.hint) | {"state": row.state}
        for row in skipped
        if row.state != "excluded"
    ]
    return found[:MOST_PROBLEMS]


def _problem(path: str, collection: str, line: int, reason: str, hint: str) -> dict[str, Any]:
    return {"path": path, "collection": collection, "line": line, "reason": reason, "hint": hint}
