"""The reply of `GET /v1/status`, put together from what the parts say of themselves."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tarsd.config.rules import idle_rules, is_at_or_below
from tarsd.errors import VaultUnavailable
from tarsd.index import EmbeddingProgress
from tarsd.store import Counts, Key, ProblemRow
from tarsd.store.notes import Notes
from tarsd.vault import Skipped, Vault
from tarsd.watch import WatchState
from tarsd.words import share_not_english

MOST_PROBLEMS = 1_000
FAILED = ("unreadable",)
SAMPLED = 1_000
"""Passages whose language is looked at."""
WARNINGS = ("twin",)
"""States of files that are indexed all the same."""


class ScanHistory:
    """What the passes over the disk leave to be told: when the last one was, and how many notes no pass looks at.

    `exclude` and `local_only` are the rules of the settings.
    """

    def __init__(self, exclude: Sequence[str] = (), local_only: Sequence[str] = ()) -> None:
        self._exclude, self._local_only = exclude, local_only
        self.at = 0.0
        self.idle_rules: list[str] = []
        """A sentence for each rule that matches nothing."""
        self.counted = False
        """Whether a pass over everything has ended, and all of this is known."""
        self.languages = (0.0, 0)
        """The share of the passages that are not in English, and of how many the language was told."""
        self.within = 0
        """Notes in folders that are left out, beyond one for each of these folders."""

    def passed(self, vaults: Mapping[str, Vault], notes: Notes, *, whole: bool) -> None:
        """A pass has ended; after one over everything, what no pass looks at is counted, and the rules are tried."""
        self.at = time.time()
        if not whole:
            return
        skipped = notes.skipped()
        self.languages = share_not_english(notes.sample_texts(SAMPLED))
        if self._exclude or self._local_only:
            with contextlib.suppress(VaultUnavailable):  # what was known stays
                paths = [path for vault in vaults.values() for path in vault.names()]
                tags = {tag for row in notes.titles() for tag in row.tags}
                self.idle_rules = idle_rules(
                    self._exclude, self._local_only, paths, lambda top: any(is_at_or_below(tag, top) for tag in tags)
                )
        places = [vaults[row.collection].root / row.path for row in skipped if row.state == "excluded"]
        self.within = sum(_notes_in(place) - 1 for place in places if os.path.isdir(place))
        self.counted = True


def _notes_in(folder: Path) -> int:
    """The notes below a folder, by whatever rule they would be left out."""
    try:
        scan = Vault(folder).scan()
    except VaultUnavailable:
        return 1
    return len(scan.files) + sum(row.state not in WARNINGS for row in scan.skipped)


def counted(counts: Counts | None, skipped: Sequence[Skipped], pending: int, within: int = 0) -> dict[str, int]:
    """Files by what became of them: notes + skipped + failed + excluded is every note on disk once nothing is pending.

    `within`: as in `ScanHistory`.
    """
    states: dict[str, int] = {}
    for row in skipped:
        if not row.path.startswith("."):  # Obsidian's settings are no note
            states[row.state] = states.get(row.state, 0) + 1
    failed = sum(states.get(state, 0) for state in FAILED)
    excluded = states.get("excluded", 0)
    skips = sum(number for state, number in states.items() if state not in (*FAILED, *WARNINGS, "excluded"))
    notes = counts.states.get("ok", 0) + counts.states.get("empty", 0) if counts else 0
    return {
        "notes": notes,
        "chunks": counts.chunks if counts else 0,
        "pending": pending,
        "skipped": skips,
        "failed": failed,
        "excluded": excluded + within,
    }


def left_out(skipped: Sequence[Skipped], at: float) -> list[dict[str, Any]]:
    """Every file, or folder, that is not indexed: its state, why, and when it was looked at last (s since 1970)."""
    found = [row for row in skipped if row.state not in WARNINGS]
    return [dataclasses.asdict(row) | {"at": at} for row in found[:MOST_PROBLEMS]]


def embedding(state: EmbeddingProgress | None, model: str, counts: Counts | None, auto: str = "") -> dict[str, Any]:
    """How far the vectors of the model are, with a reason where they don't come; `auto` says why it was chosen."""
    if state is None or counts is None:
        return {"model": model, "state": "starting", "done": 0, "remaining": 0}
    if model == "table":  # made with the index itself, of all that it can read
        done = sum(space.vectors for space in counts.spaces if space.role == "table")
        not_read = {"not_read": counts.chunks - done} if counts.chunks > done else {}
        return {"model": model, "state": "ready", "done": done, "remaining": 0, **not_read}
    name = _EMBEDDING.get(state.state, state.state)
    about = dataclasses.asdict(state) | {"model": model, "state": name, "auto": auto}
    return {key: value for key, value in about.items() if value != ""}


_EMBEDDING = {"model_missing": "unavailable", "failing": "failed"}


def watching(states: Mapping[str, WatchState]) -> dict[str, Any]:
    """How the vault is watched, and each further collection beside it; how often a watch was started again."""
    own = states.get("", WatchState("waiting", "The daemon is starting."))
    about: dict[str, Any] = {"state": own.mode, "reason": own.reason, "hint": own.hint}
    if restarts := sum(state.restarts for state in states.values()):
        about["restarts"] = restarts
    others = {name: {"state": state.mode, "reason": state.reason} for name, state in states.items() if name}
    return about | ({"collections": others} if others else {})


def problems(
    general: Iterable[tuple[str, str]],
    states: Mapping[str, WatchState],
    files: Sequence[ProblemRow],
    skipped: Sequence[Skipped],
    *,
    at: float = 0.0,
    indexed: Mapping[Key, float] | None = None,
) -> list[dict[str, Any]]:
    """What a person may want to mend: first what concerns everything, then file by file.

    A file has its state as well, and when it came to it: when it was `indexed`, or left out by the look at `at`.
    """
    times = indexed or {}
    found = [_problem("", "", 0, reason, hint) for reason, hint in dict.fromkeys(general)]
    found += [
        _problem("", name, 0, state.reason, state.hint) for name, state in states.items() if state.reason and state.hint
    ]
    found += [
        _problem(row.path, row.collection, row.line, row.reason, row.hint)
        | {"state": "indexed", "at": times.get((row.collection, row.path), at)}
        for row in files
    ]
    found += [
        _problem(row.path, row.collection, 0, row.reason, row.hint) | {"state": row.state, "at": at}
        for row in skipped
        if row.state != "excluded"
    ]
    return found[:MOST_PROBLEMS]


def _problem(path: str, collection: str, line: int, reason: str, hint: str) -> dict[str, Any]:
    return {"path": path, "collection": collection, "line": line, "reason": reason, "hint": hint}
