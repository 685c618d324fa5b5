"""Todoist as tools: add, list and complete tasks, through its official client."""

from __future__ import annotations

import contextlib
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from tarsd import foreign
from tarsd.errors import ToolError
from tarsd.tools.base import Result, Tool, ToolProposal, tool
from tarsd.tools.outer import client, text_of, unreachable
from tarsd.upstream import retry_after

if TYPE_CHECKING:
    import httpx
    from todoist_api_python.api_async import TodoistAPIAsync
    from todoist_api_python.models import Task

OFFICIAL = "https://api.todoist.com/api/v1"
FILTER = "today | overdue"
MOST = 100
REMEMBERED = 500
PRIORITIES = {"low": 1, "medium": 2, "high": 3, "urgent": 4}

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_MARKS = re.compile(r"^\[?\s*(?:id\b\s*[:=]?)?\s*|\s*\]$", re.IGNORECASE)

log = logging.getLogger(__name__)
T = TypeVar("T")


class TodoistTools:
    """The tools on Todoist. `key` gives the token when it is needed, `url` is where the server is.

    `ca_file` is a file of certificates to trust besides the usual ones.
    """

    def __init__(self, key: Callable[[], str | None], url: str = OFFICIAL, ca_file: str = "") -> None:
        self._key = key
        self._ca_file = ca_file
        self._url = url.rstrip("/")
        self._seen: OrderedDict[str, str] = OrderedDict()

    def tools(self) -> list[Tool]:
        """All of them."""
        functions: tuple[Callable[..., object], ...] = (self.todoist_add, self.todoist_list, self.todoist_complete)
        return [tool(function, group="todoist") for function in functions]

    async def todoist_add(
        self,
        content: Annotated[str, "What is to be done"],
        due: Annotated[str, "When, in words: tomorrow at 9, every monday"] = "",
        priority: Annotated[Literal["low", "medium", "high", "urgent"], "How urgent it is"] = "low",
        labels: Annotated[list[str], "Labels"] = [],  # noqa: B006 - never changed, and the schema shows it
        description: Annotated[str, "More about it"] = "",
    ) -> ToolProposal:
        """Propose a new task in the person's Todoist. The person says yes or no."""
        wanted = text_of(content)
        if not wanted:
            raise ToolError("todoist_add: “content” is empty. Say what is to be done.")

        async def work(api: TodoistAPIAsync) -> Result:
            task = await api.add_task(
                wanted,
                due_string=due.strip() or None,
                priority=PRIORITIES[priority],
                labels=[text_of(label, 60).lstrip("@") for label in labels if label.strip()] or None,
                description=description.strip()[:10_000] or None,
            )
            self._remember(task)
            return Result(f"Added: {_shown(task)}")

        when = f", {text_of(due, 80)}" if due.strip() else ""
        return self._proposal(f"Add to Todoist: {wanted}{when}", work, changes=True)

    async def todoist_list(
        self,
        filter: Annotated[str, "A Todoist filter: today, overdue, 7 days, #Project, @label, search: word"] = FILTER,
        limit: Annotated[int, "How many, at most 100"] = 30,
    ) -> ToolProposal:
        """List open tasks of the person's Todoist, with the ids that todoist_complete needs."""
        query = text_of(filter) or FILTER
        most = max(1, min(limit, MOST))

        async def work(api: TodoistAPIAsync) -> Result:
            tasks: list[Task] = []
            async for page in await api.filter_tasks(query=query, limit=min(most + 1, 200)):
                tasks += page
                if len(tasks) > most:
                    break
            for task in tasks:
                self._remember(task)
            lines = [f"- {_shown(task)}" for task in tasks[:most]]
            if len(tasks) > most:
                lines.append("… and more; give a narrower filter.")
            return Result("\n".join(lines) or f"No open tasks fit “{query}”.")

        return self._proposal(f"Look in Todoist for: {query}", work)

    async def todoist_complete(
        self, task: Annotated[str, "The task's id as todoist_list gave it, or its exact words"]
    ) -> ToolProposal:
        """Propose to mark a task as done in Todoist. The person says yes or no."""
        id = self._known(task.strip())
        content = self._seen[id]

        async def work(api: TodoistAPIAsync) -> Result:
            await api.complete_task(id)
            return Result(f"Done: {content}")

        return self._proposal(f"Mark as done in Todoist: {content}", work, changes=True)

    # ------------------------------------------------------------------------------------------------------- helpers

    def _known(self, task: str) -> str:
        """The id of a task that was listed; the person is asked about words, so they have to be known."""
        for wanted in (task, _ID_MARKS.sub("", task)):
            if wanted in self._seen:
                return wanted
        ids = [id for id, content in self._seen.items() if content.casefold() == task.casefold()]
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise ToolError(f"Several tasks read “{text_of(task, 80)}”. Give the id: {', '.join(ids[:10])}.")
        raise ToolError(
            f"No listed task is “{text_of(task, 80)}”. Call todoist_list first, then give the id that stands there."
        )

    def _remember(self, task: Task) -> None:
        if not _ID.fullmatch(task.id):  # it becomes a part of an address
            return
        self._seen[task.id] = text_of(task.content)
        self._seen.move_to_end(task.id)
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    def _proposal(
        self, title: str, work: Callable[[TodoistAPIAsync], Awaitable[Result]], *, changes: bool = False
    ) -> ToolProposal:
        async def apply() -> Result:
            async with self._api(changes) as api:
                return await work(api)

        return ToolProposal(title, apply)

    @asynccontextmanager
    async def _api(self, changes: bool) -> AsyncGenerator[TodoistAPIAsync, None]:
        """The official client, with our words for its errors."""
        token = self._key()
        foreign.keep_secret(token)
        if not token:
            raise ToolError("The Todoist token is missing.", "tarsd key set todoist")
        import httpx
        from todoist_api_python.api_async import TodoistAPIAsync

        try:
            rewrite = self._rewrite if self._url != OFFICIAL else None
            async with client("Todoist", self._url, self._ca_file, rewrite) as connection:
                yield TodoistAPIAsync(token, client=connection)
        except httpx.HTTPStatusError as error:
            raise _refused(error.response) from None
        except httpx.HTTPError as error:
            raise unreachable("Todoist", self._url, error, changes=changes) from None
        except ToolError:
            raise
        except Exception as error:  # the client's own, for an answer that has another form
            log.warning("an answer of Todoist was not understood", extra={"error": type(error).__name__})
            doubt = " It may have made the change: check before trying again." if changes else ""
            raise ToolError(f"Todoist sent an unexpected answer.{doubt}") from None

    async def _rewrite(self, request: httpx.Request) -> None:
        """Sends to the server of the settings what the client addresses to Todoist's own."""
        import httpx

        base = httpx.URL(self._url)
        path = base.path.rstrip("/") + request.url.path.removeprefix(httpx.URL(OFFICIAL).path)
        request.url = request.url.copy_with(scheme=base.scheme, host=base.host, port=base.port, path=path)
        request.headers["host"] = base.netloc.decode("ascii")


def _refused(response: httpx.Response) -> ToolError:
    body: Any = None
    with contextlib.suppress(ValueError):
        body = response.json()
    about = body if isinstance(body, dict) else {}
    said = foreign.told(str(about.get("error") or ""), longest=200)
    if response.status_code in (401, 403):
        return ToolError(
            "Todoist does not accept the token.", "Make a new one on todoist.com, then: tarsd key set todoist"
        )
    if response.status_code == 404:
        return ToolError("Todoist no longer has this task. List the tasks again.")
    if response.status_code == 429:
        extra = about.get("error_extra")
        told = {"retry-after": str(extra.get("retry_after"))} if isinstance(extra, dict) else {}
        wait = retry_after(response.headers) or retry_after(told)
        return ToolError(f"Todoist accepts no more requests for now{f'; try again in {wait:.0f} s' if wait else ''}.")
    if response.status_code >= 500:
        return ToolError(f"Todoist has a problem ({response.status_code}). Try again later.")
    return ToolError(f"Todoist refused that{f': {said}' if said else f' ({response.status_code})'}.")


def _shown(task: Task) -> str:
    """A task on one line: what, when, how urgent, labels, id."""
    parts = [text_of(task.content)]
    if task.due is not None:
        parts.append(f"due {_when(task.due.date)}" + (f" ({text_of(task.due.string, 60)})" if task.due.string else ""))
    if task.priority > 1:
        parts.append(next((name for name, value in PRIORITIES.items() if value == task.priority), ""))
    if task.labels:
        parts.append(" ".join(f"@{text_of(label, 60)}" for label in task.labels))
    return "; ".join(part for part in parts if part) + f" [id {task.id}]"


def _when(due: date | datetime) -> str:
    if not isinstance(due, datetime):
        return due.isoformat()
    return (due.astimezone() if due.tzinfo else due).strftime("%Y-%m-%d %H:%M")
