"""The turn: retrieve, ask the provider, stream. A turn runs in the daemon whether or not anybody is listening."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tarsd.chat.evidence import RELEVANT, finish, mentions, pack, queries
from tarsd.chat.turn import Turn
from tarsd.errors import AnswerCut, Conflict, NotFound, StoreError, TarsdError
from tarsd.protocol import Event, TurnRequest
from tarsd.providers.base import Done, Evidence, Message, Provider, Request, Text, Thinking, Usage
from tarsd.session import Conversation, Sessions, TurnRecord, interrupted

__all__ = ["Chat", "Found", "Library", "Turn"]

EVIDENCE_TOKENS = 3_000
HISTORY_TURNS = 6
MOST_OPEN = 50
MOST_KEPT = 100
SYSTEM = "You are tars. Answer from the passages of the person's own notes, and cite each as [n]."

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """Passages for a query, best first, numbers still 0; `degraded` says what of the search did not work."""

    passages: tuple[Evidence, ...]
    degraded: str | None = None


class Library(Protocol):
    """The notes as a turn sees them. Called from threads; our own conversation notes are never in it."""

    def find(self, query: str, limit: int) -> Found:
        """The best passages for a query. Raises `StoreError`."""
        ...

    def attach(self, name: str) -> Sequence[Evidence]:
        """All passages of the note with this path, name or alias, as it is now. Raises `NotFound`, `PathRefused`."""
        ...

    def exists(self, name: str) -> bool:
        """Whether a link with this target leads to a note."""
        ...

    def check(self, path: str) -> None:
        """Refuse a path that leaves the vault. Raises `PathRefused`."""
        ...

    def behind(self) -> int:
        """How many notes have changed and are not indexed yet."""
        ...

    def notices(self) -> list[str]:
        """What every answer has to say now: a vault that is away, an index that is being rebuilt."""
        ...


class Chat:
    """All turns of the daemon. Lives in one event loop; a conversation answers one turn at a time, in order."""

    def __init__(
        self, sessions: Sessions, library: Library, provider: Provider, executor: Executor | None = None
    ) -> None:
        self.sessions = sessions
        self.provider = provider
        self._library = library
        self._executor = executor
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, asyncio.Task[None]] = {}
        self._starting = asyncio.Lock()
        self._closed = False

    # -------------------------------------------------------------------------------------------- for the routes

    async def start(self, request: TurnRequest) -> str:
        """Take a question and return its turn's id; a request id that was seen before starts nothing.

        Raises `PathRefused` for an attached path, `Conflict` when too much waits.
        """
        for path in request.notes:
            self._library.check(path)
        async with self._starting:
            known = await self._thread(self.sessions.requested, request.request_id)
            if known is not None:
                return known
            if len(self._tasks) >= MOST_OPEN:
                raise Conflict("Too many questions wait for an answer.", "Wait for one to end, or stop it.")
            if self._closed:
                raise Conflict("The daemon is stopping.", "Ask again when it runs.")
            turn = Turn(_turn_id(request), request.conversation, lambda event: self._keep(turn, event))
            if turn.id in self._turns:  # asked while the log could not be written
                return turn.id
            try:
                await self._thread(self.sessions.begin, turn.id, request)
            except StoreError as error:
                turn.notices.append(f"{error.message} It will be lost when the daemon stops.")
            self._turns[turn.id] = turn
            before = self._last.get(request.conversation)
            task = asyncio.create_task(self._run(turn, request, before), name=f"turn {turn.id}")
            self._tasks[turn.id] = self._last[request.conversation] = task
            task.add_done_callback(lambda done: self._forget(turn, done))
        return turn.id

    async def turn(self, id: str) -> Turn:
        """A turn, running or past. Raises `NotFound`."""
        live = self._turns.get(id)
        if live is not None:
            return live
        conversation, record = await self._thread(self.sessions.turn, id)
        events = record.events if record.state != "running" else (*record.events, interrupted(record))
        return Turn(id, conversation, _ignore, events)

    async def stop(self, id: str) -> Turn:
        """End a turn at once and keep what it has said; a turn that has ended stays as it is. Raises `NotFound`."""
        turn = await self.turn(id)
        if not turn.ended:
            self._end(turn, stopped=True)
            task = self._tasks.get(id)
            if task is not None:
                task.cancel()
        return turn

    async def approve(self, id: str, call: str, allow: bool) -> None:
        """Answer a call that waits for a yes. Raises `NotFound`, `Conflict`."""
        turn = await self.turn(id)
        if turn.ended:
            raise Conflict("This turn has ended; nothing waits for an answer.")
        raise NotFound("No such call waits for an answer.")

    async def conversation(self, id: str) -> Conversation:
        """A conversation with its turns. Raises `NotFound`."""
        return await self._thread(self.sessions.load, id)

    async def delete(self, conversation: str) -> None:
        """Stop what runs in a conversation and remove its log. Raises `NotFound`."""
        for turn in [turn for turn in self._turns.values() if turn.conversation == conversation]:
            with contextlib.suppress(NotFound):
                await self.stop(turn.id)
            self._turns.pop(turn.id, None)
        await self._thread(self.sessions.delete, conversation)

    def state(self) -> str:
        """ready, or busy while a turn runs."""
        return "busy" if self._tasks else "ready"

    async def close(self) -> None:
        """Mark what runs as interrupted and wait until it has let go."""
        self._closed = True
        for id, task in list(self._tasks.items()):
            turn = self._turns[id]
            if not turn.ended:
                turn.add("failed", **interrupted(_record(turn)).data)
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=2)

    # -------------------------------------------------------------------------------------------- the turn itself

    async def _run(self, turn: Turn, request: TurnRequest, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None and not before.done():
                turn.add("queued", position=self._position(turn))
                await asyncio.wait({before})
            history = await self._thread(self._history, turn)
            prompt = await self._retrieve(turn, request, history)
            await self._answer(turn, prompt)
        except asyncio.CancelledError:
            if not turn.ended:
                turn.add("failed", **interrupted(_record(turn)).data)
        except TarsdError as error:
            turn.add("failed", error=error.as_json(), text=turn.text)
        except Exception:
            log.exception("a turn failed")
            fault = TarsdError("The answer failed inside the daemon.", "Its log says where.")
            turn.add("failed", error=fault.as_json(), text=turn.text)

    async def _retrieve(self, turn: Turn, request: TurnRequest, history: list[TurnRecord]) -> Request:
        question = request.message if not request.selection else f"{request.message}\n{request.selection}"
        guesses = queries(question, [record.query for record in history])
        found, query = await self._thread(self._find, guesses)
        attached = await self._thread(self._attach, turn, [*request.notes, *mentions(request.message)])
        turn.evidence, turn.closest = pack(
            found.passages,
            attached,
            most=self.provider.passages,
            per_note=self.provider.per_note,
            tokens=EVIDENCE_TOKENS,
        )
        if found.degraded:
            turn.notices.append(found.degraded)
        turn.notices += self._library.notices()
        turn.add(
            "retrieved",
            sources=[passage.as_json() for passage in turn.evidence],
            closest=[passage.as_json() for passage in turn.closest],
            relevance=max((passage.relevance for passage in found.passages), default=0.0),
            behind=self._library.behind(),
            query=query,
            notices=list(turn.notices),
        )
        return Request(
            system=SYSTEM,
            messages=(*_messages(history[-HISTORY_TURNS:]), Message("user", question)),
            evidence=turn.evidence,
            closest=turn.closest,
            query=query,
        )

    def _find(self, guesses: list[str]) -> tuple[Found, str]:
        """The first guess that finds something relevant, or the one that came closest."""
        best: tuple[Found, str] = (Found(()), guesses[0])
        top = -1.0
        for guess in guesses:
            found = self._library.find(guess, 24)
            relevance = max((passage.relevance for passage in found.passages), default=0.0)
            if relevance > top:
                best, top = (found, guess), relevance
            if relevance >= RELEVANT:
                break
        return best

    def _attach(self, turn: Turn, names: list[str]) -> list[Evidence]:
        passages: list[Evidence] = []
        for name in dict.fromkeys(names):
            try:
                passages += self._library.attach(name)
            except TarsdError as error:
                turn.notices.append(error.message)
        return passages

    async def _answer(self, turn: Turn, request: Request) -> None:
        complete = False
        async with aclosing(self.provider.stream(request)) as events:
            async for event in events:
                if isinstance(event, Text):
                    turn.add("token", text=event.text)
                elif isinstance(event, Thinking):
                    turn.add("thinking", text=event.text)
                elif isinstance(event, Usage):
                    turn.add("usage", input_tokens=event.input_tokens, output_tokens=event.output_tokens)
                elif isinstance(event, Done):
                    complete = True
        if not complete:
            raise AnswerCut("The answer broke off before its end.", "Ask again.")
        self._end(turn)

    def _end(self, turn: Turn, *, stopped: bool = False) -> None:
        text, citations = finish(turn.text, turn.evidence, self._library.exists)
        more: dict[str, Any] = {"stopped": True} if stopped else {}
        turn.add("done", text=text, citations=citations, notices=list(turn.notices), **more)

    # -------------------------------------------------------------------------------------------- housekeeping

    def _history(self, turn: Turn) -> list[TurnRecord]:
        try:
            return [record for record in self.sessions.load(turn.conversation).turns if record.id != turn.id]
        except NotFound:
            return []

    def _position(self, turn: Turn) -> int:
        ahead = [id for id in self._tasks if id != turn.id and self._turns[id].conversation == turn.conversation]
        return len(ahead)

    def _keep(self, turn: Turn, event: Event) -> None:
        try:
            self.sessions.append(turn.conversation, turn.id, event)
        except StoreError as error:
            log.warning("a conversation cannot be saved", extra={"code": error.code})

    def _forget(self, turn: Turn, task: asyncio.Task[None]) -> None:
        self._tasks.pop(turn.id, None)
        if self._last.get(turn.conversation) is task:
            del self._last[turn.conversation]
        while len(self._turns) > MOST_KEPT + len(self._tasks):
            oldest = next((id for id in self._turns if id not in self._tasks), None)
            if oldest is None:
                return
            del self._turns[oldest]

    async def _thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)


def _turn_id(request: TurnRequest) -> str:
    """An id that the same request always gets; hexadecimal, so that it can stand in a URL."""
    return hashlib.sha256(f"{request.conversation}\0{request.request_id}".encode()).hexdigest()[:24]


def _messages(history: Sequence[TurnRecord]) -> list[Message]:
    messages: list[Message] = []
    for record in history:
        if record.text:
            messages += [Message("user", record.message), Message("assistant", record.text)]
    return messages


def _record(turn: Turn) -> TurnRecord:
    return TurnRecord(turn.id, "", 0.0, "", events=tuple(turn.events))


def _ignore(event: Event) -> None:
    """A past turn gets no events."""
