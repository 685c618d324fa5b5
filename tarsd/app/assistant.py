"""The conversation's parts, wired: models, tools, memory, notes, turns; and what the routes ask of them."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from tarsd import keys, providers, tools
from tarsd.app.prompts import PromptNotes
from tarsd.app.tasks import CONVERSATION as TASKS
from tarsd.app.tasks import TaskChanges
from tarsd.chat import Chat, SessionNotes, TurnServices
from tarsd.config import Config
from tarsd.errors import CeilingReached, Conflict, NotFound, Refused, TarsdError
from tarsd.memory import MEMORY, NOTICED, RULES, Memory, feedback, review, session_name
from tarsd.notes import WITHOUT_LOG, NoteLibrary
from tarsd.passage import Origin
from tarsd.protocol import FeedbackRequest, RememberRequest, ReviewDecisions, TaskChangeRequest, WriteReport
from tarsd.providers.base import Message, ModelRequest, Provider, complete
from tarsd.session import Sessions
from tarsd.tools.daily import DailyTools
from tarsd.tools.mcp import McpServers
from tarsd.tools.skills import Skills
from tarsd.usage import Ledger, Metered, Spending
from tarsd.writing import Change, Journal, Notebook, Writer, until_written

Json = dict[str, Any]
Indexed = Callable[[Sequence[str]], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True)
class _Review:
    """A review that waits for decisions."""

    id: str
    proposals: Sequence[review.ReviewProposal]
    sources: review.Sources


def _now() -> datetime:
    return datetime.now().astimezone()


class Assistant:
    """What is remembered, and who writes notes; all raise `TarsdError`.

    Built before the event loop runs; nothing is connected or loaded until it is needed. `problems` are those (reason,
    hint) that hold until the settings change. `provider`, `fallback` and `native` (tools) take the place of those that
    the config names; `services`, `writer` and `session_notes` build these parts, as the classes do.
    """

    def __init__(
        self,
        config: Config,
        library: NoteLibrary,
        executor: Executor | None,
        indexed: Indexed,
        *,
        provider: Provider | None = None,
        fallback: Provider | None = None,
        native: Sequence[tools.Tool] | None = None,
        services: Callable[..., TurnServices] = TurnServices,
        writer: Callable[..., Writer] = Writer,
        session_notes: Callable[..., SessionNotes] = SessionNotes,
    ) -> None:
        self.problems: list[tuple[str, str]] = []
        self.spending = Spending(Ledger(config.paths.usage), config.usage)
        self._models: dict[str, Provider] = {}
        self._config = config
        self._indexed = indexed
        self._executor = executor
        self.notebook = Notebook(library.vaults[""], own=config.memory_folder)
        self._journal = Journal(config.paths.state / "undo")
        self.writer = writer(self.notebook, self._journal, executor=executor)
        sessions = Sessions(config.paths.state / "conversations")
        self._memory = Memory(
            self.notebook,
            config.memory_folder,
            enabled=config.memory.enabled,
            private=library.session_private,
            journal=self._journal,
            machine=lambda: sessions.machine,
        )
        self.skills = Skills(library, config)
        if native is None:
            native = tools.build(config, self.notebook, self._memory, keys.get, skills=self.skills)
        self.mcp = McpServers(config.mcp, reserved=[tool.name for tool in native])
        self.provider = self._metered(
            provider or self._provider(config.chat.model) or providers.make("extractive", config.chat, keys.get)
        )
        second = fallback or (self._provider(config.chat.fallback) if config.chat.fallback else None)
        parts = services(
            library=library,
            provider=self.provider,
            toolbox=tools.Toolbox(native, config.tools, [self.mcp]),
            memory=self._memory,
            writer=self.writer,
            spending=self.spending,
            settings=config.chat,
            fallback=None if second is None else self._metered(second),
            indexed=indexed,
            folder=config.memory_folder,
            model=self._model,
            skills=self.skills,
        )
        self.prompts = PromptNotes(parts.prompts, self.notebook, self._write_prompt)
        each = config.memory.note_each_question
        kept = session_notes(sessions, parts, self.notebook, config.memory_folder, executor, each_question=each)
        self.chat = Chat(sessions, parts, kept if config.memory.session_notes else None, executor)
        daily = DailyTools(self.notebook, config.vault, _now)
        self._task_changes = TaskChanges(library, daily, config.memory_folder, self._write_task, _now)
        self._review: _Review | None = None
        self._memory_lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def _provider(self, name: str) -> Provider | None:
        try:
            return providers.make(name, self._config.chat, keys.get)
        except TarsdError as error:
            self.problems.append((error.message, f"{error.hint} Until then, answers quote the best passages."))
            return None

    def _metered(self, provider: Provider) -> Provider:
        return Metered(provider, self.spending)

    def _model(self, name: str) -> Provider:
        """A model for a prompt, of a provider that the settings name. Raises `Refused`, and `ConfigError`."""
        chat = self._config.chat
        named = {one.partition(":")[0] for one in (chat.model, chat.fallback) if one} | {"extractive"}
        named |= {"ollama"} if "auto" in named else set()
        if name.partition(":")[0] not in named:
            hint = f"Name a model of {', '.join(sorted(named - {'auto'}))}; or set chat.model or chat.fallback."
            raise Refused(f"A prompt cannot choose “{name[:80]}”, a model that the configuration does not cover.", hint)
        if name not in self._models:
            self._models[name] = self._metered(providers.make(name, chat, keys.get))
        return self._models[name]

    async def start(self) -> None:
        """Settle what an earlier run left open."""
        with contextlib.suppress(TarsdError):  # a vault that is away is looked at when something is written
            await self.writer.recover()
        if self.chat.session_notes is not None:
            self._tasks.add(asyncio.create_task(self.chat.session_notes.catch_up(), name="session-notes"))

    def state(self) -> Json:
        """The chat model and whether it is at work, for the status."""
        about: Json = {"model": self.provider.name, "state": self.chat.state(), "local": self.provider.local}
        if self.chat.services.fallback is not None:
            about["fallback"] = self.chat.services.fallback.name
        trouble = None if isinstance(self.chat.trouble, CeilingReached) else self.chat.trouble
        try:
            self.spending.check(self.provider.name, self.provider.local)
        except CeilingReached as error:  # it holds until the month or the settings change, whatever the last answer met
            trouble = error
        if trouble is not None:
            about["problem"] = trouble.as_json()
        return about | ({"mcp": self.mcp.state()} if self._config.mcp else {})

    async def close(self) -> None:
        """End all turns, connections and child processes."""
        await self.chat.close()
        await self.writer.close()
        await self.mcp.close()
        for provider in (self.provider, self.chat.services.fallback, *self._models.values()):
            if provider is not None:
                await provider.close()

    # -------------------------------------------------------------------------------------------- models and writes

    async def models(self) -> Json:
        """The configured models, and what each provider offers."""
        chat = self._config.chat
        named = {one.partition(":")[0] for one in (chat.model, chat.fallback, self._config.embedding.model)}
        return {
            "chat": {
                "configured": chat.model,
                "fallback": chat.fallback,
                "model": self.provider.name,
                "local": self.provider.local,
            },
            "providers": await providers.offered(chat, keys.get, named),
            "embedding": {"model": self._config.embedding.model},
        }

    def claim(self, write: str) -> Json:
        """Let a client do a write; refused once it is settled."""
        return self.writer.claim(write)

    def report(self, write: str, report: WriteReport) -> Json:
        """What became of a write that a client claimed."""
        self.writer.report(write, report)
        return {"id": write, "ok": report.ok}

    async def change_task(self, request: TaskChangeRequest) -> Json:
        """What would be done with a task, or was."""
        return await self._task_changes.change(request)

    async def _write_task(self, change: Change) -> str:
        hash = await self.writer.perform(change, by="daemon", kind="note", conversation=TASKS)
        await self._indexed([change.path])
        return hash

    async def _write_prompt(self, change: Change) -> None:
        await self.writer.perform(change, by="daemon", kind="note")
        await self._indexed([change.path])

    async def undo(self, write: str) -> Json:
        """Take a write back, if the note is still as it was left."""
        done = await self.writer.undo(write)
        await self._indexed([str(done["path"])])
        return done

    async def close_conversation(self, conversation: str) -> Json:
        """A conversation is over for now: its summary is made."""
        if self.chat.session_notes is not None:
            await self.chat.session_notes.finish(conversation)
        return {"closed": conversation}

    async def save_conversation(self, conversation: str) -> Json:
        """Make a note of a conversation that would have none; where it is, "" without an answer or session notes."""
        notes = self.chat.session_notes
        return {"note": "" if notes is None else await notes.save(conversation)}

    # -------------------------------------------------------------------------------------------- memory

    async def memory(self) -> Json:
        """Facts, rules and what waits for a review."""
        return await self._thread(self._memory.listing)

    async def remember(self, request: RememberRequest) -> Json:
        """Add a fact or a rule."""
        kind, session = request.kind, request.conversation
        if session not in {*self.chat.sessions.ids(), *WITHOUT_LOG}:
            session = ""  # what comes from no conversation that is known here has its own mark alone
        if kind == "noticed":
            private = self._is_private(session)
            return await self._change(lambda: self._memory.suggest(request.text, session=session, private=private))
        return await self._change(
            lambda: self._memory.remember(
                request.text,
                kind=kind,
                section=request.section,
                session=session,
                private=self._is_private(session),
                replace=request.replace,
            )
        )

    def _is_private(self, conversation: str) -> bool:
        """Whether the conversation saw private text; what was learnt in it then stays on this machine."""
        try:
            found = self.chat.sessions.load(conversation)
        except NotFound:
            return False
        return found.private or bool(self.chat.services.private_turns(found))

    def drew_on(self, session: str) -> frozenset[Origin] | None:
        """What a conversation drew on, named as in comments of the memory; None where there is no log of it."""
        sessions = self.chat.sessions
        found = [id for id in sessions.ids() if id == session or session_name(id) == session]
        return frozenset().union(*map(sessions.drew_on, found)) if found else None

    def _verdict_private(self, entry: feedback.FeedbackEntry) -> bool:
        """Whether a verdict is on an answer that used now private notes; if unknown, on such a conversation."""
        sessions = self.chat.sessions
        for id in sessions.ids():
            if entry.session and entry.session in (id, session_name(id)):
                found = sessions.load(id)
                about = {turn.id for turn in found.turns if feedback.is_about(entry, turn.message)}
                if about:
                    return not about.isdisjoint(self.chat.services.private_turns(found))
        return self._memory.is_private(entry.session)

    def private_paths(self) -> frozenset[str]:
        """The notes of conversations that saw private text, and of their summaries, whatever they say of themselves."""
        notes = self.chat.sessions.private_notes()
        return notes | {f"{self._config.memory_folder}/summaries/{path.rpartition('/')[2]}" for path in notes}

    async def forget(self, line: str) -> Json:
        """Remove a line."""
        return await self._change(lambda: self._memory.forget(line))

    async def undo_memory(self) -> Json:
        """Take the last change of the memory back."""
        last = await self._thread(self._journal.last, "memory")
        if last is None:
            raise NotFound("There is no change to the memory to undo.")
        done = await self.writer.undo(last.id)
        await self._indexed([last.path])
        return done

    async def _change(self, plan: Callable[[], Change | None]) -> Json:
        """Plan and make a change, one at a time; where there is nothing to be changed, path and diff are empty."""
        async with self._memory_lock:
            change = await self._made(plan)
        if change is None:
            return {"path": "", "diff": ""}
        await self._indexed([change.path])
        return {"path": change.path, "diff": change.diff()}

    async def _made(self, plan: Callable[[], Change | None]) -> Change | None:
        """The change that was planned and made; planned again when somebody has saved the note in between."""

        async def attempt() -> Change | None:
            change = await self._thread(plan)
            if change is not None:
                await self._write(change)
            return change

        return await until_written(attempt)

    async def _write(self, change: Change) -> None:
        """Verdicts and archives are no memory: taking back the last change of the memory passes them over."""
        memory = change.path in [self._memory.path(name) for name in (MEMORY, RULES, NOTICED)]
        await self.writer.perform(change, by="daemon", kind="memory" if memory else "note")

    # -------------------------------------------------------------------------------------------- feedback, review

    async def feedback(self, request: FeedbackRequest) -> Json:
        """Keep a verdict on a turn."""
        conversation, turn = await self._thread(self.chat.sessions.turn, request.turn)
        found = await self._thread(self.chat.sessions.load, conversation)
        private = turn.id in await self._thread(self.chat.services.private_turns, found)

        def plan() -> list[Change]:
            given = (turn.message, turn.text, request.note)
            return feedback.record(self._memory, request.verdict, *given, session=conversation, private=private)

        async def attempt() -> list[Change]:
            changes = await self._thread(plan)
            for change in changes:
                await self._write(change)
            return changes

        async with self._memory_lock:
            changes = await until_written(attempt)
        await self._indexed([change.path for change in changes])
        return {"path": changes[0].path, "diff": "\n".join(change.diff() for change in changes)}

    async def review(self) -> Json:
        """Propose rules and facts from what was kept."""
        provider = self.provider
        await provider.prepare()
        sources = await self._thread(
            lambda: review.gather(self._memory, local=provider.local, private=self._verdict_private)
        )
        reply = None
        if not provider.quotes and sources.asks:
            system, question = review.prompt(sources)
            request = ModelRequest(system, (Message("user", question),), max_tokens=self._config.chat.reply_tokens)
            reply = (await complete(provider, request)).text
        proposals = review.propose(reply, sources)
        self._review = _Review(uuid.uuid4().hex[:12], proposals, sources)
        return {
            "review": self._review.id,
            "model": provider.name if reply is not None else "",
            "proposals": [proposal.as_json() for proposal in proposals],
            "diff": await self._thread(review.diff, self._memory, proposals),
        }

    async def apply_review(self, decisions: ReviewDecisions) -> Json:
        """Carry out what was decided on the proposals."""
        current = self._review
        if current is None or current.id != decisions.review:
            raise Conflict("This review is out of date.", "Start a new review.")
        async with self._memory_lock:
            changes = await self._thread(
                review.apply, self._memory, decisions.decisions, current.proposals, current.sources
            )
            self._review = None
            for change in changes:
                await self._write(change)
        await self._indexed([change.path for change in changes])
        return {"written": [change.path for change in changes], "diff": "\n".join(change.diff() for change in changes)}

    async def _thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)
