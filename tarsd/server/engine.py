"""What the routes ask of the daemon. The daemon builds the real one; its blocking methods run in threads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol, TypeVar

from tarsd.chat import Chat
from tarsd.protocol import ReindexRequest, RelatedRequest, SearchRequest, WhyRequest

Json = dict[str, Any]
T = TypeVar("T")


class Engine(Protocol):
    """Everything behind the socket. Methods that are not coroutines may block; all raise `TarsdError`."""

    chat: Chat

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

    def note(self, path: str) -> Json:
        """One note as it is in the vault now."""
        ...

    def models(self) -> Json:
        """The configured chat and embedding models."""
        ...

    def reindex(self, request: ReindexRequest) -> AsyncGenerator[Json, None]:
        """Progress and then a report; goes on when nobody reads it."""
        ...

    async def thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """`work(*arguments)` in the pool for requests."""
        ...

    def shutdown(self) -> None:
        """Begin to stop."""
        ...
