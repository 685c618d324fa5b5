"""The turn: retrieve, ask the model, call tools, stream. A turn runs in the daemon whether or not anybody listens."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from tarsd.chat.answer import History, TurnRunner
from tarsd.chat.services import TurnServices
from tarsd.chat.session_notes import SessionNotes
from tarsd.chat.turn import Turn
from tarsd.citation import finish
from tarsd.errors import Conflict, NotFound, ProviderError, StoreError, TarsdError
from tarsd.protocol import Approval, Event, TurnRequest
from tarsd.session import Conversation, Sessions, interrupted
from tarsd.usage import Spender, spender

__all__ = ["Chat", "SessionNotes", "Turn", "TurnServices"]

MOST_OPEN = 50
MOST_KEPT = 100
LET_GO_S = 0.2
"""The longest that the end of a stopped turn waits for its request to be given up."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class Chat:
    """All turns of the daemon. Lives in one event loop; a conversation answers one turn at a time, in order.

    Without `session_notes` no notes are made of conversations. `trouble` is what kept the model from answering last.
    """

    def __init__(
        self,
        sessions: Sessions,
        services: TurnServices,
        session_notes: SessionNotes | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.sessions = sessions
        self.services = services
        self.session_notes = session_notes
        self.trouble: TarsdError | None = None
        self._executor = executor
        self._always: dict[str, set[str]] = {}
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._starting = asyncio.Lock()
        self._closed = False

    # -------------------------------------------------------------------------------------------- for the routes

    async def start(self, request: TurnRequest) -> str:
        """Take a question and return its turn's id; a request id that was seen before starts nothing.

        Raises `PathRefused` for an attached path, `Conflict` when too much waits.
        """
        for path in request.notes:
            self.services.library.check(path)
        async with self._starting:
            known = await self._thread(self.sessions.requested, request.request_id)
            if known is not None:
                return known
            if len(self._tasks) >= MOST_OPEN:
                raise Conflict(
                    "Too many questions are waiting for an answer.", "Wait until one is answered, or stop one."
                )
            if self._closed:
                raise Conflict("The daemon is stopping.", "Ask again once it runs.")
            turn = Turn(
                _turn_id(request),
                request.conversation,
                lambda event: self._keep(turn, event),
                elsewhere=request.audience == "elsewhere",
            )
            if turn.id in self._turns:  # asked while the log could not be written
                return turn.id
            try:
                await self._thread(self.sessions.begin, turn.id, request)
            except StoreError as error:
                turn.notices.append(f"{error.message} It is lost when the daemon stops.")
            self._turns[turn.id] = turn
            ahead = [
                task
                for id, task in self._tasks.items()
                if (other := self._turns.get(id)) and other.conversation == turn.conversation
            ]
            self._tasks[turn.id] = asyncio.create_task(self._run(turn, request, ahead), name=f"turn {turn.id}")
            self._tasks[turn.id].add_done_callback(lambda done: self._forget(turn))
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
        """End a turn at once and keep its text so far; nothing happens to one that has ended. Raises `NotFound`."""
        turn = await self.turn(id)
        if turn.ended:
            return turn
        turn.stopping = True
        task = self._tasks.get(id)
        if task is not None:
            task.cancel()
        # a change that is being made is made, and the turn says so before it ends
        await self.services.writer.finish(turn.conversation)
        if task is not None:  # what it has used so far belongs to the turn
            await asyncio.wait({task}, timeout=LET_GO_S)
        if not turn.ended:
            self._end(turn, stopped=True)
            self._note(turn)
        return turn

    async def approve(self, id: str, call: str, answer: Approval) -> None:
        """Answer a call that waits for a yes. Raises `NotFound`, `Conflict`."""
        turn = await self.turn(id)
        if turn.ended:
            raise Conflict("This answer is finished; nothing needs approval.")
        waiting = turn.approvals.get(call)
        if waiting is None:
            raise NotFound("There is no such request for approval.", "It may already have been answered.")
        if waiting.done():
            raise Conflict("This has already been answered.")
        waiting.set_result(answer)

    async def conversation(self, id: str) -> Conversation:
        """A conversation with its turns. Raises `NotFound`."""
        return await self._thread(self.sessions.load, id)

    async def delete(self, conversation: str) -> None:
        """Stop what runs in a conversation and remove its log. Raises `NotFound`."""
        for turn in [turn for turn in self._turns.values() if turn.conversation == conversation]:
            with contextlib.suppress(NotFound):
                await self.stop(turn.id)
            self._turns.pop(turn.id, None)
        self._always.pop(conversation, None)
        await self._thread(self.sessions.delete, conversation)

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return bool(self._tasks)

    def state(self) -> str:
        """ready, or busy while a turn runs."""
        return "busy" if self.busy else "ready"

    async def close(self) -> None:
        """Mark what runs as interrupted and wait until it has let go."""
        self._closed = True
        for id, task in list(self._tasks.items()):
            turn = self._turns[id]
            task.cancel()
            if not turn.ended:
                turn.add("failed", **interrupted(turn.record).data)
                if self.session_notes is not None:
                    self.session_notes.write_later(turn, turn.events[-1], "daemon")
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=2)
        if self.session_notes is not None:
            await self.session_notes.close()

    # -------------------------------------------------------------------------------------------- the turn itself

    async def _run(self, turn: Turn, request: TurnRequest, ahead: Sequence[asyncio.Task[None]]) -> None:
        runner: TurnRunner | None = None
        spender.set(Spender(turn.conversation, partial(turn.add, "usage")))
        try:
            if left := [task for task in ahead if not task.done()]:
                turn.add("queued", position=len(left))
                await asyncio.wait(left)
            history = await self._thread(self._history, turn)
            always = self._always.get(turn.conversation, set())
            runner = TurnRunner(self.services, turn, request, history, self._thread, always)
            self.trouble = await runner.run()
            if always:
                self._always[turn.conversation] = always
            if self.session_notes is not None:
                await self.session_notes.write(turn, self._last_event(turn), request.writer)
            self._end(turn)
            if self.session_notes is not None:
                self.session_notes.compact_later(turn.conversation)
            return
        except asyncio.CancelledError:
            self._stopped(turn, runner)
            if not (turn.ended or turn.stopping):
                turn.add("failed", **interrupted(turn.record).data)
            return
        except TarsdError as error:
            if turn.stopping:  # whoever stops it writes its end
                self._stopped(turn, runner)
                return
            self.trouble = error if isinstance(error, ProviderError) else self.trouble
            self._fail(turn, error)
        except Exception:
            log.exception("a turn failed")
            self._fail(turn, TarsdError("The answer failed inside the daemon.", "See the daemon's log for details."))
        self._note(turn)

    def _stopped(self, turn: Turn, runner: TurnRunner | None) -> None:
        """What a turn that ends early says about the model: that it works, if it had started to answer."""
        if runner is not None and turn.spoke:
            self.trouble = runner.trouble

    def _fail(self, turn: Turn, error: TarsdError) -> None:
        spent = self.services.spending.said(turn.events)
        turn.add("failed", error=error.as_json(), text=turn.text, notices=list(turn.notices), **spent)

    def _end(self, turn: Turn, *, stopped: bool = False) -> None:
        turn.add("done", **self._last_event(turn, stopped=stopped).data)

    def _last_event(self, turn: Turn, *, stopped: bool = False) -> Event:
        # a link that stays one would tell that there is such a note, private or not
        local = next((event.data["local"] for event in reversed(turn.events) if event.type == "retrieved"), True)
        exists = _nowhere if turn.elsewhere else partial(self.services.library.exists, private=local)
        text, citations = finish(turn.text, turn.evidence, exists, by_model=turn.by_model)
        more: dict[str, Any] = {"stopped": True} if stopped else {}
        more |= {"private": True} if turn.private else {}
        more |= self.services.spending.said(turn.events)
        data = {"text": text, "citations": citations, "notices": list(turn.notices), **more}
        return Event(len(turn.events) + 1, "done", data)

    def _note(self, turn: Turn) -> None:
        """Write a turn that ended early into the conversation's note, without holding anything up."""
        if self.session_notes is not None and not self._closed:
            self.session_notes.write_later(turn, turn.events[-1], "daemon")

    # -------------------------------------------------------------------------------------------- housekeeping

    def _history(self, turn: Turn) -> History:
        """The conversation before this turn, its beginning summarised where it was."""
        try:
            conversation = self.sessions.load(turn.conversation)
        except NotFound:
            return History()
        private = self.services.private_turns(conversation)
        turns, summary = conversation.since, conversation.condensed
        if summary is None or not conversation.summarised:
            return History(turns, private=private)
        before = tuple(record.id for record in conversation.finished[: conversation.summarised])
        return History(turns, summary.text, self.services.private_summary(conversation), before, private)

    def _keep(self, turn: Turn, event: Event) -> None:
        try:
            self.sessions.append(turn.conversation, turn.id, event)
        except StoreError as error:
            log.warning("a conversation cannot be saved", extra={"code": error.code})

    def _forget(self, turn: Turn) -> None:
        self._tasks.pop(turn.id, None)
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


def _nowhere(name: str) -> bool:
    """Stands in for `exists` where only links to the passages that were shown may stay."""
    return False


def _ignore(event: Event) -> None:
    """A past turn gets no events."""
