"""Tasks as a tool: one is done, as a proposal; and what the other ways to change tasks propose."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated

from tarsd.errors import ToolError
from tarsd.notes import NoteView
from tarsd.parse import Task, parse
from tarsd.tools.base import Context, Tool, ToolProposal, tool
from tarsd.tools.changes import propose
from tarsd.tools.notes import Name, NoteTools
from tarsd.words import fold
from tarsd.writing import tasks

TITLE_CHARS = 80
SHOWN = 5


class TaskTools:
    """The tool that completes a task; `now` is the clock, `notes` say which notes may be changed."""

    def __init__(self, notes: NoteTools, now: Callable[[], datetime]) -> None:
        self._notes = notes
        self._now = now

    def tools(self) -> list[Tool]:
        """The one tool."""
        return [tool(self.complete_task, group="notes")]

    def complete_task(
        self,
        context: Context,
        name: Name,
        line: Annotated[int, "The task's line in the note, counted from 1; 0 if only its text is known"] = 0,
        text: Annotated[str, "The task's text, to be sure that it is the one"] = "",
    ) -> ToolProposal:
        """Propose to tick a task off as done today; one that recurs gets its next one. The person says yes or no."""
        view, _ = self._notes.open_to_write(name, context)
        found = _meant(view, line, text)
        again = partial(self.complete_task, context, name, line, text)
        return completed(view, found.line, self._now(), context, again=again)


def completed(
    view: NoteView, line: int, now: datetime, context: Context, *, again: Callable[[], ToolProposal]
) -> ToolProposal:
    """What makes the task at this line done. Raises as `writing.tasks.complete`."""
    change = tasks.complete(view.loaded, line, now.date())
    task, source = tasks.task_at(parse(view.loaded.text, view.path), view.loaded, line)
    shown = " ".join((task.text or source).split())[:TITLE_CHARS]
    title = f"Complete “{shown}” in {view.path}"
    said = f"Done: “{shown}” in {view.path}."
    if task.recurrence:
        title += ", and add the next one"
        said += " It recurs: the next one stands above it."
    return propose(change, title, said, context, again=again, private=view.local_only)


def _meant(view: NoteView, line: int, text: str) -> Task:
    """The task that a model means. Raises `ToolError`, which names those that come close."""
    every = [task for task in parse(view.loaded.text, view.path).tasks if not (task.is_done or task.is_cancelled)]
    wanted = _plain(text)
    here = next((task for task in every if task.line == line), None)
    if here is not None and (not wanted or wanted in _plain(here.text)):
        return here
    found = [task for task in every if wanted and wanted == _plain(task.text)]
    found = found or [task for task in every if wanted and wanted in _plain(task.text)]
    if len(found) == 1:
        return found[0]
    shown = "; ".join(f"line {task.line}: {task.text[:TITLE_CHARS]}" for task in (found or every)[:SHOWN])
    what = "Several open tasks fit" if found else "There is no such open task"
    hint = f"Give one by its line: {shown}." if shown else "The note has no open tasks."
    raise ToolError(f"{what} in {view.path}.", hint)


def _plain(text: str) -> str:
    return " ".join(fold(text).split())
