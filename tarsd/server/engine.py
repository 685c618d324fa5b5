"""What the routes ask of the daemon. The daemon builds the real one; its blocking methods run in threads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol, TypeVar

from tarsd.chat import Chat
from tarsd.protocol import (
    Audience,
    CheckRequest,
    FeedbackRequest,
    ReindexRequest,
    RelatedRequest,
    RememberRequest,
    ReviewDecisions,
    SearchRequest,
    VectorsRequest,
    WhyRequest,
    WriteReport,
)

Json = dict[str, Any]
T = TypeVar("T")


class Assistant(Protocol):
    """What is remembered, and who writes notes; all raise `TarsdError`."""

    async def models(self) -> Json:
        """The configured models, and what each provider offers."""
        ...

    def claim(self, write: str) -> Json:
        """Let a client do a write; refused once it is settled."""
        ...

    def report(self, write: str, report: WriteReport) -> Json:
        """What became of a write that a client claimed."""
        ...

    async def undo(self, write: str) -> Json:
        """Take a write back, if the note is still as it was left."""
        ...

    async def memory(self) -> Json:
        """Facts, rules and what waits for a review."""
        ...

    async def remember(self, request: RememberRequest) -> Json:
        """Add a fact or a rule."""
        ...

    async def forget(self, line: str) -> Json:
        """Remove a line."""
        ...

    async def undo_memory(self) -> Json:
        """Take the last change of the memory back."""
        ...

    async def feedback(self, request: FeedbackRequest) -> Json:
        """Keep a verdict on a turn."""
        ...

    async def review(self) -> Json:
        """Propose rules and facts from what was kept."""
        ...

    async def apply_review(self, decisions: ReviewDecisions) -> Json:
        """Carry out what was decided on the proposals."""
        ...

    async def close_conversation(self, conversation: str) -> Json:
        """A conversation is over for now: its summary is made."""
        ...


class Engine(Protocol):
    """Everything behind the socket. Methods that are not coroutines may block; all raise `TarsdError`."""

    chat: Chat

    @property
    def assistant(self) -> Assistant:
        """Memory, notes and models."""
        ...

    def hello(self) -> Json:
        """Who answers; never blocks."""
        ...

    def status(self) -> Json:
        """The state of everything, answered at any time."""
        ...

    def search(self, request: SearchRequest) -> Json:
        """Hits, best first."""
        ...

    def related(self, request: RelatedRequest) -> Json:
        """Hits for a note, itself excluded."""
        ...

    def why(self, request: WhyRequest) -> Json:
        """Why a note is or is not found."""
        ...

    def notes(self, filters: Mapping[str, str]) -> Json:
        """The notes by folder, tag or how recent they are."""
        ...

    def note(self, path: str, audience: Audience) -> Json:
        """One note as it is in the vault now; for a model also by a name that leads to it."""
        ...

    def reindex(self, request: ReindexRequest) -> AsyncGenerator[Json, None]:
        """Progress and then a report; goes on when nobody reads it."""
        ...

    def check(self, request: CheckRequest) -> AsyncGenerator[Json, None]:
        """What is found when everything is looked at, a line each; nothing is repaired."""
        ...

    def vectors(self) -> AsyncGenerator[Json, None]:
        """The model's vectors of the passages that are here, some with every object."""
        ...

    def add_vectors(self, request: VectorsRequest) -> Json:
        """Take in vectors that were made elsewhere; nothing of a request is kept when a part of it is bad."""
        ...

    async def thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """`work(*arguments)` in the pool for requests."""
        ...

    def shutdown(self) -> None:
        """Begin to stop."""
        ...
