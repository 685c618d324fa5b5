"""Progress of long work: a bar at a terminal, a line for each tenth elsewhere, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Step = Callable[[int, int, str], object]
"""Takes in how far it is: done, of a total that may be 0 for unknown, and at what."""


def progress(title: str, *, quiet: bool = False) -> AbstractContextManager[Step]:
    """A context whose value is called with (done, total, what)."""
    if quiet:
        return nullcontext(lambda done, total, what: None)
    return bar(title) if sys.stderr.isatty() else tenths(title)


@contextmanager
def tenths(title: str) -> Iterator[Step]:
    """A line for each tenth."""
    printed = -1

    def step(done: int, total: int, what: str) -> None:
        nonlocal printed
        tenth = 10 * done // total if total else 10
        if tenth > printed:
            printed = tenth
            print(f"{title}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    yield step


@contextmanager
def bar(title: str) -> Iterator[Step]:
    """A bar that fills, with the time that is left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}", style="dim", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None, what="")
        yield lambda done, total, what: shown.update(task, completed=done, total=total or None, what=what[:40])
