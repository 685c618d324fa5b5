"""A stand-in for Todoist's API: tasks in memory, pages of two, and the errors it has."""

from __future__ import annotations

import itertools
from typing import Any

from tests.support.doubles.server import Call, Double, Reply

TOKEN = "todoist-token-for-tests"
PATH = "/api/v1"
STAMP = "2026-10-01T08:25:05.000000Z"
PAGE = 2


class TodoistDouble(Double):
    """`tasks` are the open ones by id, `done` the ids of those that were completed.

    `failure` answers every request; `shape_broken` leaves a field out, as a newer version of the API might.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.base = f"{self.url}{PATH}"
        self.tasks: dict[str, dict[str, Any]] = {}
        self.done: list[str] = []
        self.failure: Reply | None = None
        self.shape_broken = False
        self._ids = (f"6X7rM8997g3RQm{number:02}" for number in itertools.count(1))

    def env(self) -> dict[str, str]:
        """What the daemon has to have in its environment."""
        return {"TARSD_TODOIST_KEY": TOKEN}

    def config(self) -> str:
        """What config.toml has to say."""
        return f'[tools]\ntodoist_url = "{self.base}"\n'

    def add(self, content: str, **about: Any) -> str:
        """A task that is there already; returns its id."""
        id = next(self._ids)
        self.tasks[id] = task(id, content, **about)
        return id

    def reply(self, call: Call) -> Reply:
        """As the API."""
        if call.headers.get("authorization") != f"Bearer {TOKEN}":
            return Reply("Unauthorized", 401)
        if self.failure is not None:
            return self.failure
        parts = call.path.removeprefix(PATH).strip("/").split("/")
        if (call.method, parts) == ("POST", ["tasks"]):
            return self._add(call.body)
        if (call.method, parts) == ("GET", ["tasks", "filter"]):
            return self._filter(call.query)
        if call.method == "POST" and len(parts) == 3 and parts[0] == "tasks" and parts[2] == "close":
            if self.tasks.pop(parts[1], None) is None:
                return error(404, "Task not found", "NOT_FOUND")
            self.done.append(parts[1])
            return Reply(None, 200)
        return error(404, "Not found", "NOT_FOUND")

    def _add(self, body: dict[str, Any]) -> Reply:
        words = body.get("due_string")
        if words == "blurp":
            return error(400, "Date is invalid", "INVALID_DATE")
        about: dict[str, Any] = {key: body[key] for key in ("priority", "labels", "description") if key in body}
        if words:
            about["due"] = due("2026-11-29T09:00:00", words)
        id = self.add(body["content"], **about)
        return Reply(self._shape(self.tasks[id]))

    def _filter(self, query: Any) -> Reply:
        words = query["query"].removeprefix("search:").strip().casefold()
        fits = [
            self._shape(one)
            for one in self.tasks.values()
            if "|" in words or words in one["content"].casefold() or words == "all"
        ]
        start = int(query.get("cursor", "0"))
        more = start + PAGE < len(fits)
        return Reply({"results": fits[start : start + PAGE], "next_cursor": str(start + PAGE) if more else None})

    def _shape(self, one: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in one.items() if not (self.shape_broken and key == "updated_at")}


def task(id: str, content: str, **about: Any) -> dict[str, Any]:
    """A task with every field that the API sends."""
    return {
        "id": id, "content": content, "description": "", "project_id": "6Jf8VQXxpwv56VQ7", "section_id": None,
        "parent_id": None, "labels": [], "priority": 1, "due": None, "deadline": None, "duration": None,
        "is_collapsed": False, "child_order": 1, "responsible_uid": None, "assigned_by_uid": None,
        "completed_at": None, "added_by_uid": "34567", "added_at": STAMP, "updated_at": STAMP, **about,
    }  # fmt: skip


def due(date: str, words: str) -> dict[str, Any]:
    """When a task is due, as the server understood the words."""
    return {"date": date, "timezone": None, "string": words, "lang": "en", "is_recurring": words.startswith("every")}


def error(status: int, message: str, tag: str, **extra: Any) -> Reply:
    """An error in the API's own form."""
    body = {
        "error": message, "error_code": 1, "error_extra": {"event_id": "e", **extra}, "error_tag": tag,
        "http_code": status,
    }  # fmt: skip
    return Reply(body, status)
