"""An application that repeats what it was asked, for what stands in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tarsd.app import Application
from tarsd.app.assistant import Assistant
from tarsd.app.prompts import PromptNotes
from tarsd.errors import NotFound
from tarsd.protocol import (
    Audience,
    CheckRequest,
    DigestRequest,
    FeedbackRequest,
    QueryRequest,
    ReindexRequest,
    RelatedRequest,
    RememberRequest,
    ReviewDecisions,
    SearchRequest,
    TaskChangeRequest,
    TasksRequest,
    VectorsRequest,
    WhyRequest,
    WriteReport,
)
from tarsd.providers.fake import FakeProvider
from tarsd.usage import Spending
from tests.support.turns import Shelf, Talk

T = TypeVar("T")


class NoPrompts(PromptNotes):
    """No prompts, and none that are offered."""

    def __init__(self) -> None:
        """Without any part."""

    def listing(self) -> dict[str, Any]:
        return {"prompts": [], "offered": []}

    async def add(self, name: str) -> dict[str, Any]:
        raise NotFound("No such prompt is offered.")


class Desk(Assistant):
    """An assistant that repeats what it was asked; nothing is remembered or written."""

    def __init__(self, spending: Spending) -> None:
        """Without any part but the prompts, and what models used."""
        self.prompts = NoPrompts()
        self.spending = spending

    async def models(self) -> dict[str, Any]:
        return {"models": []}

    def claim(self, write: str) -> dict[str, Any]:
        raise NotFound("There is no such change.")

    def report(self, write: str, report: WriteReport) -> dict[str, Any]:
        raise NotFound("There is no such change.")

    async def undo(self, write: str) -> dict[str, Any]:
        raise NotFound("There is no such change.")

    async def memory(self) -> dict[str, Any]:
        return {"facts": []}

    async def remember(self, request: RememberRequest) -> dict[str, Any]:
        return {"kind": request.kind, "text": request.text}

    async def forget(self, line: str) -> dict[str, Any]:
        return {"line": line}

    async def undo_memory(self) -> dict[str, Any]:
        raise NotFound("There is nothing to take back.")

    async def feedback(self, request: FeedbackRequest) -> dict[str, Any]:
        return {"turn": request.turn, "verdict": request.verdict, "note": request.note}

    async def review(self) -> dict[str, Any]:
        return {"review": "r", "proposals": []}

    async def apply_review(self, decisions: ReviewDecisions) -> dict[str, Any]:
        return {"decisions": [[one.proposal, one.action, one.text] for one in decisions.decisions]}

    async def change_task(self, request: TaskChangeRequest) -> dict[str, Any]:
        return {"done": bool(request.yes)}

    async def close_conversation(self, conversation: str) -> dict[str, Any]:
        return {"closed": conversation}

    async def save_conversation(self, conversation: str) -> dict[str, Any]:
        return {"note": f"tars/sessions/{conversation}.md"}


class Stub(Application):
    """An engine that repeats what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.provider = FakeProvider()
        self.library = Shelf()
        self.chat = Talk(folder, self.library, self.provider).chat
        self.assistant = Desk(self.chat.services.spending)
        self.stopping = False
        self.steps: list[dict[str, Any] | float | Exception] = []
        self.fault: Exception | None = None

    def hello(self) -> dict[str, Any]:
        return {"name": "tarsd", "protocol": 1}

    def status(self) -> dict[str, Any]:
        return {"behind": 0}

    def search(self, request: SearchRequest) -> dict[str, Any]:
        if self.fault:
            raise self.fault
        return {"hits": [], "query": request.query, "mode": request.mode, "limit": request.limit}

    def related(self, request: RelatedRequest) -> dict[str, Any]:
        self.library.check(request.path)
        return {"hits": []}

    def query(self, request: QueryRequest) -> dict[str, Any]:
        return {"rows": [], "where": request.where}

    def tasks(self, request: TasksRequest) -> dict[str, Any]:
        return {"rows": [], "state": request.state}

    def digest(self, request: DigestRequest) -> dict[str, Any]:
        return {"parts": [], "limit": request.limit}

    def why(self, request: WhyRequest) -> dict[str, Any]:
        self.library.check(request.path)
        return {"steps": []}

    def notes(self, filters: Mapping[str, str]) -> dict[str, Any]:
        return {"notes": []}

    def note(self, path: str, audience: Audience) -> dict[str, Any]:
        self.library.check(path)
        return {"path": path}

    async def reindex(self, request: ReindexRequest) -> AsyncGenerator[dict[str, Any], None]:
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step

    async def check(self, request: CheckRequest) -> AsyncGenerator[dict[str, Any], None]:
        yield {"type": "check", "group": "Models", "name": "chat", "state": "ok" if request.model else "skipped"}

    async def vectors(self) -> AsyncGenerator[dict[str, Any], None]:
        yield {"type": "vectors", "model": "0123456789abcdef", "name": "fake", "dim": 1, "rows": []}

    def add_vectors(self, request: VectorsRequest) -> dict[str, Any]:
        return {"added": len(request.rows), "known": 0, "fits": True}

    async def thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(work, *arguments)

    def shutdown(self) -> None:
        self.stopping = True
