"""The notes of a conversation in the vault: the session note, which grows with every turn, and the summary."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from tarsd import compact
from tarsd.chat.prompt import history_tokens
from tarsd.chat.services import TurnServices
from tarsd.chat.turn import Turn
from tarsd.errors import TarsdError, VaultUnavailable
from tarsd.protocol import Event, Writer
from tarsd.providers.extractive import ExtractiveProvider
from tarsd.session import Conversation, Sessions, TurnRecord
from tarsd.session.note import UNTITLED, begun, file_title, grown, holds, render_summary_note, summarised
from tarsd.session.properties import is_private, properties
from tarsd.usage import Spender, spender
from tarsd.writing import Change, Loaded, Notebook, create, replace_text, until_written
from tarsd.writing.notes import UNNAMED, legal_name

FULL = 0.5
"""A conversation that takes more than this part of the model's window is summarised up to its newest turns."""
IDLE_S = 1800.0
LOOK_S = 60.0
RECENT_S = 86_400.0
MOST_RECENT = 200
TRIES = 8

_MOMENT = re.compile(r"^((?:started|updated): )(.*)$", re.MULTILINE)

log = logging.getLogger(__name__)
T = TypeVar("T")


class SessionNotes:
    """Writes below `folder` in the vault; lives in the event loop of the turns. Nothing here ever ends a turn.

    A note is made of a conversation with a model, of one with two turns, and of one that the person saves; of single
    questions answered without a model only if of `each_question`.
    Every `look_s` seconds the conversations are summarised that had no turn for `idle_s`.
    """

    def __init__(
        self,
        sessions: Sessions,
        services: TurnServices,
        notebook: Notebook,
        folder: str,
        executor: Executor | None = None,
        *,
        each_question: bool = False,
        look_s: float = LOOK_S,
        idle_s: float = IDLE_S,
    ) -> None:
        self._sessions = sessions
        self._services = services
        self._notebook = notebook
        self._folder = folder
        self._executor = executor
        self._each_question = each_question
        self._look_s, self._idle_s = look_s, idle_s
        self._locks: dict[str, asyncio.Lock] = {}
        self._touched: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether anything is being written or summarised."""
        return bool(self._tasks)

    # -------------------------------------------------------------------------------------------- the note

    async def write(self, turn: Turn, last: Event, by: Writer) -> None:
        """Put a turn that ends with `last` into its conversation's note; what keeps it from that, the turn says.

        A client's write is only begun here, so that nobody waits for it.
        """
        task = self.write_later(turn, last, by)
        if by == "daemon":
            await asyncio.wait({task})
            return
        begun = asyncio.create_task(turn.wait_for("write"))
        await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()

    def write_later(self, turn: Turn, last: Event, by: Writer) -> asyncio.Task[None]:
        """Begin what `write` does."""
        self._touch(turn.conversation)
        task = asyncio.create_task(self._write(turn, last, by), name=f"note {turn.id}")
        self._keep(task)
        return task

    async def _write(self, turn: Turn, last: Event, by: Writer) -> None:
        async def attempt() -> None:
            change = await self._thread(self._with_turn, turn, last)
            await self._put(turn.conversation, change, by, turn.emit)

        async with self._lock(turn.conversation):
            try:
                await until_written(attempt, tries=TRIES)
            except TarsdError as error:
                self._failed(turn, error)

    async def save(self, conversation: str) -> str:
        """Make a note of a conversation whatever it is; its path, "" while no turn has ended. Raises `TarsdError`."""

        async def attempt() -> None:
            change = await self._thread(lambda: self._plan(self._sessions.load(conversation)))
            await self._put(conversation, change, "daemon")

        async with self._lock(conversation):
            await self._thread(self._sessions.save, conversation)
            await until_written(attempt, tries=TRIES)
        return (await self._thread(self._sessions.load, conversation)).note

    def _lock(self, conversation: str) -> asyncio.Lock:
        return self._locks.setdefault(conversation, asyncio.Lock())

    async def _put(
        self,
        conversation: str,
        change: Change | None,
        by: Writer,
        emit: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> None:
        """Make a change to the conversation's note, if there is one, and remember the note's path."""
        if change is not None:
            await self._services.writer.perform(change, by=by, kind="session", conversation=conversation, emit=emit)
            await self._thread(self._sessions.set_note_path, conversation, change.path)

    async def catch_up(self) -> None:
        """Put turns that an earlier end of the daemon cut off into their notes; then watch over its last conversations.

        One after the other, and again after a while where the vault was away.
        """
        every = await self._thread(self._sessions.summaries)
        left = [known.id for known in every if time.time() - known.updated < RECENT_S][:MOST_RECENT]
        for conversation in left:  # there may have been no time for their summaries
            self._touch(conversation)
        while left:
            left = [conversation for conversation in left if not await self._caught_up(conversation)]
            if left:
                await asyncio.sleep(self._look_s)

    async def _caught_up(self, conversation: str) -> bool:
        """Whether the conversation's note has everything now."""
        async with self._lock(conversation):
            try:
                change = await self._thread(lambda: self._plan(self._sessions.load(conversation), late=True))
                await self._put(conversation, change, "daemon")
            except VaultUnavailable:
                return False
            except TarsdError as error:
                log.warning("a conversation's note cannot be written", extra={"code": error.code})
        return True

    def _touch(self, conversation: str) -> None:
        """Note the time of the last activity; after `IDLE_S` without any, the conversation is summarised."""
        self._touched[conversation] = time.monotonic()
        if self._idle is None:
            self._idle = asyncio.create_task(self._watch(), name="session-notes")

    def _failed(self, turn: Turn, error: TarsdError) -> None:
        log.warning("a conversation's note cannot be written", extra={"code": error.code})
        turn.notice(f"This conversation is not in its note: {error.message}")

    def _plan(self, conversation: Conversation, *, late: bool = False) -> Change | None:
        """The note with all finished turns that it lacks since the last one it has, or None when there is nothing.

        Made up for `late`, nothing comes back that the person may have taken away since.
        """
        finished = conversation.finished
        loaded = self._note_of(conversation)
        if loaded is None:
            if conversation.note:  # the person took it away: it comes back whole with their next turn, or not at all
                finished = () if late else finished
            if not finished or not (conversation.note or self._worth_a_note(conversation)):
                return None
            path = self._free_path("sessions", self._file_name(conversation), conversation)
            return begun(path, replace(conversation, turns=finished), private=self._private(conversation))
        written = next((at for at in range(len(finished), 0, -1) if holds(loaded.text, finished[at - 1])), 0)
        missing = finished[written:] if written else () if late else finished[-1:]
        return grown(loaded, *missing, private=self._private(conversation)) if missing else None

    def _worth_a_note(self, conversation: Conversation) -> bool:
        """Whether it is more than a single question that was answered by quotes, or none that is to be kept."""
        finished = conversation.finished
        by_model = any(turn.model not in ("", ExtractiveProvider.name) for turn in finished)
        return self._each_question or conversation.saved or by_model or len(finished) > 1

    def _private(self, conversation: Conversation) -> bool:
        """Whether the conversation's notes are private: text of private notes was seen, or has become private since."""
        return conversation.private or bool(self._services.private_turns(conversation))

    def _note_of(self, conversation: Conversation) -> Loaded | None:
        """The conversation's note, wherever it is now; it is recognised by the conversation's id in it."""
        paths = [conversation.note] if conversation.note else []
        with contextlib.suppress(TarsdError):
            paths += [self._services.library.session_note(conversation.summary.id) or ""]
        note = self._first(paths, conversation, "session")
        if note is None and conversation.note:
            note = self._first(self._notebook.paths(f"{self._folder}/sessions"), conversation, "session")
        if note is None and conversation.note and self._kept_bare(conversation):
            return self._notebook.load(conversation.note)
        return note

    def _first(self, paths: Iterable[str], conversation: Conversation, kind: str) -> Loaded | None:
        """The first of these notes that is of this kind and the conversation's, written on no other machine."""
        id, machine = conversation.summary.id, conversation.machine
        for path in filter(None, paths):
            with contextlib.suppress(TarsdError):
                loaded = self._notebook.load(path)
                told = properties(loaded.text)
                if told.get("id") == id and told.get("tars") == kind and told.get("machine", machine) == machine:
                    return loaded
        return None

    def _kept_bare(self, conversation: Conversation) -> bool:
        """Whether the note is still in its place, without its properties but with at least one of the turns."""
        with contextlib.suppress(TarsdError):
            text = self._notebook.load(conversation.note).text
            return any(holds(text, record) for record in conversation.turns)
        return False

    def _with_turn(self, turn: Turn, last: Event) -> Change | None:
        """As `_plan`, for the conversation as it will be once the turn has ended with `last`."""
        conversation = self._sessions.load(turn.conversation)
        events = tuple(turn.events) if turn.ended else (*turn.events, last)
        records = (replace(old, events=events) if old.id == turn.id else old for old in conversation.turns)
        return self._plan(replace(conversation, turns=tuple(records)))

    # -------------------------------------------------------------------------------------------- the summary

    def compact_later(self, conversation: str) -> None:
        """Summarise the beginning of a conversation if it takes much of the model's window; returns at once."""
        self._keep(asyncio.create_task(self._quietly(self._compact(conversation)), name=f"compact {conversation[:8]}"))

    async def finish(self, conversation: str) -> None:
        """Summarise all of a conversation, for it is over for now; returns at once. Raises `NotFound`."""
        self._touched.pop(conversation, None)
        await self._thread(self._sessions.load, conversation)
        self._keep(asyncio.create_task(self._quietly(self._summarise(conversation, [])), name="summary"))

    async def _compact(self, conversation: str) -> None:
        provider, current = self._services.provider, await self._thread(self._sessions.load, conversation)
        if provider.quotes:
            return
        await provider.prepare()
        open_turns = current.since
        before = current.condensed.text if current.condensed else ""
        room = int(FULL * provider.window / self._services.ratios.of(provider.name))
        if history_tokens(open_turns, before) <= room:
            return
        _, tail = compact.plan(open_turns, lambda record: history_tokens([record], ""), room)
        await self._summarise(conversation, tail)

    async def _summarise(self, conversation: str, tail: Sequence[TurnRecord]) -> None:
        """Make a summary of everything before `tail`, keep it, and show it in the vault."""
        provider = self._services.provider
        if provider.quotes:
            return
        await provider.prepare()
        current = await self._thread(self._sessions.load, conversation)
        kept = {record.id for record in tail}
        head = [record for record in current.since if record.id not in kept and record.text]
        if not head:
            return
        earlier = current.condensed
        before = earlier.text if earlier is not None else ""
        private = await self._thread(self._services.private_turns, current)
        closed = await self._thread(self._services.private_summary, current)
        spender.set(Spender(conversation))
        result = await compact.summarise(provider, head, before, private=private, earlier_private=closed)
        if not result.summary:
            return
        unseen = (*earlier.unseen, *result.unseen) if earlier is not None else result.unseen
        if closed and not provider.local:
            unseen = (*(record.id for record in current.finished[: current.summarised]), *result.unseen)
        add = functools.partial(self._sessions.add_summary, private=result.private, unseen=unseen)
        await self._thread(add, conversation, head[-1].id, result.summary)
        await self._show(conversation, before)
        if result.facts:
            notice = functools.partial(self._services.memory.notice, session=conversation, private=result.private)
            change = await self._thread(notice, result.facts)
            if change is not None:
                await self._services.writer.perform(change, by="daemon", kind="memory", conversation=conversation)

    async def _show(self, conversation: str, before: str) -> None:
        """The summary into the conversation's note, and into a note of its own, which is searched."""
        async with self._lock(conversation):
            current = await self._thread(self._sessions.load, conversation)
            for plan in (self._into_note, self._own_note):
                change = await self._thread(plan, current, before)
                if change is not None:
                    await self._services.writer.perform(change, by="daemon", kind="session", conversation=conversation)

    def _into_note(self, conversation: Conversation, before: str) -> Change | None:
        loaded = self._note_of(conversation)
        if loaded is None or conversation.condensed is None:
            return None
        private = self._services.private_summary(conversation)
        return summarised(loaded, conversation.condensed.text, before=before, private=private)

    def _own_note(self, conversation: Conversation, before: str) -> Change | None:
        """The summary as a note of its own; one that the person has edited is theirs, and stays as it is."""
        summary = conversation.condensed
        if summary is None:
            return None
        note = self._note_of(conversation)
        path = note.path if note is not None else ""
        private = self._private(conversation)
        text = render_summary_note(conversation, summary.text, note=path, updated=summary.at, private=private)
        folder = f"{self._folder}/summaries"
        existing = self._first(self._notebook.paths(folder), conversation, "summary")
        if existing is None:
            name = path.rpartition("/")[2].removesuffix(".md") or self._file_name(conversation)
            return create(self._free_path("summaries", name, conversation), text)
        was_private = is_private(existing.text)  # it may have become so since
        written = render_summary_note(conversation, before, note=path, updated=summary.at, private=was_private)
        if not before or written != _stamped(existing.text, text):
            return None
        return replace_text(existing, text)

    @staticmethod
    def _file_name(conversation: Conversation) -> str:
        """What its notes are called, before the machine's id; that keeps them apart from any daily note as well."""
        created = datetime.fromtimestamp(conversation.summary.created).astimezone()
        title = legal_name(file_title(conversation))
        return f"{created:%Y-%m-%d} {UNTITLED if title == UNNAMED else title}"

    def _free_path(self, kind: str, name: str, conversation: Conversation) -> str:
        """Where a new note goes; its name ends in the machine's id, for the same vault may be written on another."""
        tail = f" {conversation.machine}" if conversation.machine else ""
        return self._notebook.free_path(f"{self._folder}/{kind}", name.removesuffix(tail), tail=tail)

    # -------------------------------------------------------------------------------------------- in the background

    async def _watch(self) -> None:
        """Summarise conversations that had no activity for `IDLE_S`, one at a time."""
        while True:
            await asyncio.sleep(self._look_s)
            now = time.monotonic()
            for conversation in [id for id, at in self._touched.items() if now - at > self._idle_s]:
                self._touched.pop(conversation, None)
                await self._quietly(self._summarise(conversation, []))

    async def _quietly(self, work: Any) -> None:
        try:
            await work
        except TarsdError as error:
            log.warning("a conversation was not summarised", extra={"code": error.code})
        except Exception:
            log.exception("a conversation was not summarised")

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End what runs; a note that is being written is waited for."""
        if self._idle is not None:
            self._idle.cancel()
        for task in list(self._tasks):
            if not task.get_name().startswith("note "):
                task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=2)

    async def _thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)


def _stamped(old: str, new: str) -> str:
    """`old` with the times that `new` has in its properties: they change by themselves."""
    moments = dict(_MOMENT.findall(new))
    return _MOMENT.sub(lambda match: f"{match[1]}{moments.get(match[1], match[2])}", old)
