"""Tasks that are done or added over the socket: shown first, and made once the person said yes to what was shown."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any

from tarsd.errors import BadRequest, NotFound, Refused
from tarsd.notes import NoteLibrary, NoteView, Reader
from tarsd.notes.resolve import link_target
from tarsd.protocol import TaskChangeRequest
from tarsd.tools import Context, ToolProposal
from tarsd.tools.base import NotAsShown
from tarsd.tools.changes import check_own, propose, told
from tarsd.tools.daily import DailyTools
from tarsd.tools.tasks import completed
from tarsd.writing import Change, edits
from tarsd.writing.tasks import new_line

Json = dict[str, Any]

CONVERSATION = "tasks"
"""As what changes of tasks are kept, for they are of no conversation."""


class TaskChanges:
    """What `POST /v1/tasks/change` does. `write` makes a change and returns the note's hash; `now` is the clock."""

    def __init__(
        self,
        library: NoteLibrary,
        daily: DailyTools,
        own_folder: str,
        write: Callable[[Change], Awaitable[str]],
        now: Callable[[], datetime],
    ) -> None:
        self._library = library
        self._daily = daily
        self._own = own_folder.strip("/").casefold()
        self._write = write
        self._now = now

    async def change(self, request: TaskChangeRequest) -> Json:
        """What would be done, or, with the `yes` that came with it, what was done.

        Where the note is another by then, what would be done now comes back, with another `yes`. Only a person can say
        it: a model hears what a person may do, and nothing of the note around the task.
        """
        if request.audience != "person" and request.yes:
            raise Refused("Nothing changes without the person's approval.", "The person approves it in a terminal.")
        proposal = await asyncio.to_thread(self._plan, request)
        if not request.yes or request.yes != _token(proposal):
            return _shown(request, proposal)
        try:
            result = await proposal.apply()
        except NotAsShown as other:
            return _shown(request, other.proposal)
        return {"done": True, **_about(proposal), "title": told(result.text), "yes": ""}

    def _plan(self, request: TaskChangeRequest) -> ToolProposal:
        reader = Reader(self._library, request.audience)
        context = Context(CONVERSATION, reader, self._write)
        if request.action == "add":
            return self._added(request, context)
        view = self._open(request.note, context, request)
        return completed(view, request.line, self._now(), context, again=partial(self._plan, request))

    def _added(self, request: TaskChangeRequest, context: Context) -> ToolProposal:
        line = new_line(request.text, request.due, self._now().date())
        if not request.note.strip():
            return self._daily.daily_note_append(context, line, request.heading)
        view = self._open(request.note, context, request)
        heading = request.heading.strip() or link_target(request.note)[1]
        change = edits.append(view.loaded, line, heading)
        check_own(change)
        where = f"{view.path}, under “{heading}”" if heading else view.path
        again = partial(self._plan, request)
        said = f"Added to {view.path}."
        return propose(change, f"Add a task to {where}", said, context, again=again, private=view.local_only)

    def _open(self, given: str, context: Context, request: TaskChangeRequest) -> NoteView:
        name = link_target(given)[0]
        missing = NotFound(f"There is no note “{name}”.", "Give its path in the vault or its title.")
        if not name:
            raise BadRequest("No note was given.", "Give its path in the vault or its title.", field="note")
        try:
            view = context.reader.open(name)
        except NotFound:
            raise missing from None
        except Refused:
            if request.audience == "person":
                raise
            raise missing from None  # nothing tells a private note from one that is not there
        if view.collection:
            raise Refused(f"{view.path} lies in the collection {view.collection}, which is only read.")
        if not view.path.lower().endswith(".md"):
            raise Refused(f"{view.path} is not a Markdown note.", "Change it in Obsidian.")
        if view.ours or view.path.casefold().startswith(f"{self._own}/"):
            raise Refused(f"{view.path} is one of tarsd's own notes.", "Choose one of your own notes.")
        return view


def _token(proposal: ToolProposal) -> str:
    """What a yes to this change says, and to no other."""
    change = proposal.change
    assert change is not None  # every change of a task is one of a note
    told = f"{change.path}\n{change.if_hash}\n{change.hash}"
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _about(proposal: ToolProposal) -> Json:
    assert proposal.change is not None
    return {"title": proposal.title, "path": proposal.change.path, "diff": proposal.diff}


def _shown(request: TaskChangeRequest, proposal: ToolProposal) -> Json:
    about = _about(proposal)
    if request.audience != "person":  # comments and what else stands around the task are for the person alone
        return {"done": False, "title": about["title"], "path": about["path"], "diff": "", "yes": ""}
    return {"done": False, **about, "yes": _token(proposal)}
