"""Progress of long work: a bar at a terminal, a line for each tenth elsewhere, or nothing."""

from __future__ import annotations

import sys
from typing import Any


class NoProgress:
    """Shows nothing."""

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(self, *raised: object) -> None:
        return None

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """Takes in how far it is."""


class LineProgress(NoProgress):
    """Prints a line for each tenth."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.tenth = -1

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """Takes in how far it is."""
        tenth = 10 * done // total if total else 10
        if tenth > self.tenth:
            self.tenth = tenth
            print(f"{self.title}: {done:,} of {total:,}", file=sys.stderr, flush=True)


class BarProgress(NoProgress):
    """A bar that fills, with the time that is left."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar: Any = Progress(
            TextColumn(title),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[what]}", style="dim", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task(title, total=None, what="")

    def __enter__(self) -> BarProgress:
        self.bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.bar.stop()

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """Takes in how far it is."""
        self.bar.update(self.task, completed=done, total=total or None, what=what[:40])
