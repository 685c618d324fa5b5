"""A daemon's parts over a vault, with a scripted model on this machine or elsewhere, restarted at will."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from tarsd import embed
from tarsd.app import Application
from tarsd.app.assistant import Assistant
from tarsd.app.indexing import Indexing
from tarsd.chat import Turn
from tarsd.config import Collection, McpServer, PrivacySettings, load
from tarsd.embed.base import Embedder
from tarsd.index.worker import IndexJob
from tarsd.protocol import Audience, FeedbackRequest, TurnRequest
from tarsd.providers.base import ModelRequest
from tarsd.providers.fake import FakeProvider
from tests.support.engine import write


class _ByHand(Indexing):
    """An index without workers of its own."""

    async def indexed(self, paths: Sequence[str]) -> None:
        """Nobody would come: passes are made by hand."""


class Stage:
    """A vault whose notes a model is asked about; `start` begins anew with other settings or another model."""

    def __init__(self, folder: Path, notes: Mapping[str, str], *, collection: Mapping[str, str] | None = None) -> None:
        self.vault, self._home = folder / "v", folder / "h"
        (self.vault / ".obsidian").mkdir(parents=True, exist_ok=True)
        for path, text in notes.items():
            write(self.vault, path, text)
        self.work = folder / "work"
        for path, text in (collection or {}).items():
            write(self.work, path, text)
        self._collections = (Collection("work", self.work),) if collection else ()
        self._asked = 0
        self.rules: tuple[str, ...] = ("Private/", "#private")
        self.embedder: Embedder | None = None
        self.servers: tuple[McpServer, ...] = ()
        self.model = FakeProvider()
        self.start(self.model)

    def start(self, model: FakeProvider) -> None:
        """The parts as a start builds them; conversations, memory and index are those of before."""
        self.model = model
        env = {"TARSD_HOME": str(self._home), "TARSD_EMBEDDING": "table", "TARSD_CHAT": "extractive"}
        config = replace(
            load(vault=self.vault, env=env),
            privacy=PrivacySettings(local_only=self.rules),
            collections=self._collections,
            mcp=self.servers,
        )
        table = embed.make(config.embedding)
        embedders = [table, self.embedder] if self.embedder is not None else [table]
        parts = partial(_ByHand, embedders=embedders, in_background=False)
        self.app = Application(config, lambda: None, indexing=parts, assistant=partial(Assistant, provider=model))
        self.app.indexing.open()
        self.index()

    def index(self) -> None:
        """A pass over everything, as the daemon's own worker makes it."""
        self.app.indexing._work(IndexJob(None, False))
        if self.embedder is not None:
            assert self.app.indexing.indexer is not None
            self.app.indexing.indexer.background.drain(lambda: False)

    def elsewhere(self, *replies: Any) -> FakeProvider:
        """Go on with a model on another machine."""
        self.stop()
        self.start(FakeProvider(*replies, local=False))
        return self.model

    def stop(self) -> None:
        """End the parts."""
        self.app.indexing.close()

    async def ask(self, message: str, conversation: str = "c", **more: Any) -> Turn:
        """The turn of a question, once it is over and in its note."""
        self._asked += 1
        settings: dict[str, Any] = {"approvals": False, "writer": "daemon"} | more
        chat = self.app.chat
        request = TurnRequest(conversation, message, f"r{self._asked}", **settings)
        turn = await chat.turn(await chat.start(request))
        async for _ in turn.follow():
            pass
        while chat.busy or (chat.session_notes is not None and chat.session_notes.busy):
            await asyncio.sleep(0.01)
        return turn

    async def judge(self, turn: Turn, verdict: Any = "wrong", note: str = "") -> None:
        """Keep a verdict on an answer."""
        await self.app.assistant.feedback(FeedbackRequest(turn.id, verdict, note))

    async def close(self, conversation: str = "c") -> None:
        """Have a conversation summarised."""
        await self.app.assistant.close_conversation(conversation)
        notes = self.app.chat.session_notes
        while notes is not None and notes.busy:
            await asyncio.sleep(0.01)

    def read(self, path: str, audience: Audience = "elsewhere") -> dict[str, Any]:
        """A note as an MCP client gets it."""
        return self.app.note(path, audience)

    def notes_of_ours(self, kind: str) -> list[str]:
        """The paths of session notes or summaries."""
        return sorted(str(file.relative_to(self.vault)) for file in (self.vault / "tars" / kind).glob("*.md"))


def sent(request: ModelRequest | FakeProvider) -> str:
    """Everything of a request, or of all that a model got, as text."""
    if isinstance(request, FakeProvider):
        return "\n".join(map(sent, request.requests))
    return json.dumps([request.system, request.query, [asdict(one) for one in request.messages]], default=str)
