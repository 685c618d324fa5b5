"""A turn as a numbered event log in memory: it grows, it ends once, and any number of readers follow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any

from tarsd.passage import Origin, Passage
from tarsd.protocol import Approval, Event, EventType
from tarsd.providers.text import printable
from tarsd.session import TurnRecord


def drew_on(origins: Iterable[Origin]) -> dict[str, Any]:
    """The notes that something was made from, as a field of an event; no field for none."""
    listed = [{key: value for key, value in origin._asdict().items() if value} for origin in dict.fromkeys(origins)]
    return {"drew_on": listed} if listed else {}


class Turn:
    """One question on its way to an answer. `keep` is called with every event, before any reader sees it.

    `private` once text of a private note was seen; `approvals` are the calls that wait for a yes. `elsewhere`: a model
    on another machine reads it, and nothing in it may tell which private notes there are. `by_model`: a model wrote
    the answer. `readers`: who listens now.
    """

    def __init__(
        self,
        id: str,
        conversation: str,
        keep: Callable[[Event], None],
        events: Iterable[Event] = (),
        *,
        elsewhere: bool = False,
    ) -> None:
        self.id = id
        self.conversation = conversation
        self.evidence: tuple[Passage, ...] = ()
        self.closest: tuple[Passage, ...] = ()
        self.notices: list[str] = []
        self.private = False
        self.by_model = True
        self.elsewhere = elsewhere
        self.stopping = False
        self.readers = 0
        self.approvals: dict[str, asyncio.Future[Approval]] = {}
        self.events: list[Event] = list(events)
        self._keep = keep
        self._changed = asyncio.Event()

    @property
    def ended(self) -> bool:
        """Whether the last event is there."""
        return bool(self.events) and self.events[-1].last

    @property
    def text(self) -> str:
        """The answer so far."""
        return self.record.text

    @property
    def record(self) -> TurnRecord:
        """The events so far as a record, without the question."""
        return TurnRecord(self.id, "", 0.0, "", events=tuple(self.events))

    @property
    def pieces(self) -> int:
        """How many pieces of an answer have come, those that were taken back included."""
        return sum(event.type == "token" for event in self.events)

    @property
    def spoke(self) -> bool:
        """Whether a model has begun to answer, be it to think."""
        return any(event.type in ("token", "thinking") for event in self.events)

    def notice(self, *sentences: str) -> None:
        """Have the answer say something about itself, once."""
        self.notices += [sentence for sentence in dict.fromkeys(sentences) if sentence and sentence not in self.notices]

    def add(self, type: EventType, **data: Any) -> None:
        """Append an event; after the last one nothing is added any more, so that late ends are harmless.

        A model's words come without control characters, wherever they go from here.
        """
        if self.ended:
            return
        if type in ("token", "thinking") and not (data := {**data, "text": printable(str(data["text"]))})["text"]:
            return
        event = Event(len(self.events) + 1, type, data)
        self._keep(event)
        self.events.append(event)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def emit(self, type: str, data: Mapping[str, Any]) -> None:
        """Adds an event from a writer."""
        self.add("written" if type == "written" else "write", **data)

    async def left(self, within_s: float, look_s: float) -> bool:
        """Whether nobody listened for `within_s` seconds, checked every `look_s`; False once the turn has ended."""
        alone = 0.0
        while not self.ended:
            if alone >= within_s:
                return True
            await asyncio.sleep(look_s)
            alone = 0.0 if self.readers else alone + look_s
        return False

    async def wait_for(self, type: EventType) -> None:
        """Until the next event of this type has come, or the turn has ended."""
        after = len(self.events)
        while True:
            events = await self.wait(after)
            if not events or any(event.type == type or event.last for event in events):
                return
            after += len(events)

    async def wait(self, after: int) -> list[Event]:
        """The events after number `after`, as soon as there are any; [] when the turn has ended before."""
        self.readers += 1
        try:
            while len(self.events) <= after and not self.ended:
                await self._changed.wait()
        finally:
            self.readers -= 1
        return self.events[after:]

    async def follow(self, after: int = 0) -> AsyncGenerator[Event, None]:
        """Every event after number `after`, until the turn ends."""
        while True:
            events = await self.wait(after)
            for event in events:
                yield event
            after += len(events)
            if not events or events[-1].last:
                return
