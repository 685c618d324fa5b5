"""Builders for tests of turns: a library of a few passages, and everything else that a turn is answered with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from tarsd.app.assistant import Assistant
from tarsd.ask import Answer
from tarsd.chat import SessionNotes, Turn, TurnServices
from tarsd.config import ChatSettings, MemorySettings, ToolSettings, load
from tarsd.errors import NotFound, PathRefused, Refused
from tarsd.notes import ANYWHERE, NoteLibrary, Reader, Retrieval, Within
from tarsd.passage import NoteRow, Origin, Passage
from tarsd.protocol import Approval, Audience, Event, TurnRequest
from tarsd.providers.base import Provider, ProviderEvent, StreamEnd, Text, ToolCall
from tarsd.providers.fake import FakeProvider
from tarsd.tools import Context, Result, Tool, ToolProposal
from tarsd.tools.base import tool
from tarsd.vault import Vault
from tarsd.writing import Writer, create

numbers = iter(range(10**6))


def passage(path: str, text: str, relevance: float = 0.8, line: int = 1, **more: Any) -> Passage:
    """A passage of a note; `more` is said of the note."""
    note = NoteRow(path=path, title=path.removesuffix(".md"), **more)
    return Passage(text, line, line + text.count("\n"), note=note, relevance=relevance)


QUORL = passage("Quorl.md", "A quorl is the brass wedge.")
DIARY = passage("Private/Diary.md", "The secret quorl code is 0000.", local_only=True)


class Shelf(NoteLibrary):
    """A library of a few passages: those whose text or path shares a word with the query are found."""

    def __init__(self, *passages: Passage) -> None:
        self.passages_held = passages
        self.asked: list[str] = []
        self.kept_here: list[str] = []
        self.degraded: str | None = None
        self.notes_said: list[str] = []
        self.moved: dict[str, str] = {}
        self.exact: dict[str, Answer] = {}
        self.behind = lambda: 2
        self.notices = lambda: list(self.notes_said)

    def held(self, name: str) -> list[Passage]:
        """The passages of the note with this title or path."""
        return [one for one in self.passages_held if name.casefold() in (one.title.casefold(), one.path.casefold())]

    def any_private(self, origins: Iterable[Origin]) -> bool:
        paths = {origin.path for origin in origins}
        return any(one.local_only and one.path in paths for one in self.passages_held)

    def session_private(self, session: str) -> bool:
        return False

    def exists(self, name: str, *, private: bool = True) -> bool:
        held = [one for one in self.passages_held if one.title.casefold() == name.casefold()]
        return any(private or not one.local_only for one in held)

    def check(self, path: str, *, excluded: bool = False) -> None:
        if path.startswith("/") or ".." in path:
            raise PathRefused("This path leaves the vault.")

    def session_note(self, conversation: str) -> str | None:
        return self.moved.get(conversation)


class ShelfReader(Reader):
    """Reads a shelf."""

    def __init__(self, shelf: Shelf, audience: Audience, model_is_local: bool) -> None:
        super().__init__(shelf, audience, model_is_local)
        self.shelf = shelf

    def retrieve(
        self, query: str, limit: int, *, memory: bool = False, private: bool = False, within: Within = ANYWHERE
    ) -> Retrieval:
        self.shelf.asked.append(query)
        self.shelf.kept_here += [query] if private else []
        words = {word.strip("?.,").casefold() for word in query.split() if len(word) > 3}
        hits = [
            one
            for one in self.shelf.passages_held
            if words & set(f"{one.path} {one.text}".casefold().replace(".", " ").split())
        ]
        shown = [one for one in hits if self.sees_private or not one.local_only]
        withheld = () if self._audience == "elsewhere" else tuple(one.path for one in hits if one not in shown)
        return Retrieval(tuple(shown[:limit]), self.shelf.degraded, withheld)

    def overview(self) -> str:
        return ""

    def answer(self, question: str, today: date) -> Answer | None:
        return self.shelf.exact.get(question)

    def _attach(self, name: str) -> Sequence[Passage]:
        hits = self.shelf.held(name)
        if not hits:
            raise NotFound(f"There is no note “{name}”.")
        if not self.sees_private and hits[0].local_only:
            raise Refused(f"“{name}” is private.")
        return hits

    def around(self, passage: Passage) -> Sequence[Passage]:
        held = self.shelf.passages_held
        return [one for one in held if one.path == passage.path and one.start_line != passage.start_line]


class ShelfServices(TurnServices):
    """Services whose reader reads a shelf."""

    def reader(self, audience: Audience, model_is_local: bool) -> Reader:
        assert isinstance(self.library, Shelf)
        return ShelfReader(self.library, audience, model_is_local)


class Talk:
    """A chat over a vault in a folder, with `chat`, and what it is made of."""

    def __init__(
        self,
        folder: Path,
        shelf: Shelf,
        provider: Provider | None = None,
        *tools: Tool,
        fallback: Provider | None = None,
        settings: ChatSettings | None = None,
        allow: tuple[str, ...] = (),
        notes: bool | MemorySettings = False,
        claim_s: float = 10.0,
        session_notes: Callable[..., SessionNotes] = SessionNotes,
    ) -> None:
        self.root = folder / "vault"
        (self.root / ".obsidian").mkdir(parents=True, exist_ok=True)
        env = {"TARSD_HOME": str(folder / "h"), "TARSD_CHAT": "extractive"}
        config = replace(
            load(vault=self.root, env=env),
            tools=ToolSettings(allow=allow),
            memory=notes if isinstance(notes, MemorySettings) else MemorySettings(session_notes=notes),
        )
        shelf.vaults = {"": Vault(self.root)}
        assistant = Assistant(
            config if settings is None else replace(config, chat=settings),
            shelf,
            None,
            self._indexed,
            provider=provider,
            fallback=fallback,
            native=tools,
            services=ShelfServices,
            writer=partial(Writer, claim_s=claim_s),
            session_notes=session_notes,
        )
        self.chat, self.writer, self.notebook = assistant.chat, assistant.writer, assistant.notebook
        self.services, self.sessions = self.chat.services, self.chat.sessions
        self.memory = self.services.memory

    async def _indexed(self, paths: Sequence[str]) -> None:
        """There is no index."""

    async def ended(self, request: TurnRequest) -> Turn:
        """The turn of a question, once it is over."""
        turn = await self.chat.turn(await self.chat.start(request))
        async for _ in turn.follow():
            pass
        return turn

    async def answering(self, request: TurnRequest, *answers: Approval) -> Turn:
        """The same, with these answers to what it asks, in order."""
        turn = await self.chat.turn(await self.chat.start(request))
        left = list(answers)
        async for event in turn.follow():
            if event.type == "approval":
                await self.chat.approve(turn.id, event.data["call"], left.pop(0))
        assert not left
        return turn


def ask(message: str, conversation: str = "c", request_id: str = "", **more: Any) -> TurnRequest:
    return TurnRequest(conversation, message, request_id or f"r{next(numbers)}", **more)


def types(turn: Turn) -> list[str]:
    return [event.type for event in turn.events]


def of(turn: Turn, type: str) -> list[Event]:
    """The turn's events of one type."""
    return [event for event in turn.events if event.type == type]


async def until(turn: Turn, type: str) -> Event:
    """The first event of a type, as soon as it is there."""
    async for event in turn.follow():
        if event.type == type:
            return event
    raise AssertionError(f"the turn ended without {type}: {types(turn)}")


async def following(turn: Turn) -> AsyncIterator[Event]:
    """The turn's events."""
    async for event in turn.follow():
        yield event


async def write(path: Annotated[str, "where"], text: Annotated[str, "what"], context: Context) -> ToolProposal:
    """Make a note."""
    change = create(path, text)

    async def apply() -> Result:
        return Result(f"made, {await context.write(change)}")

    return ToolProposal(f"Make {path}", apply, change, change.diff())


def use(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(f"id-{name}", name, arguments)


def calls(*made: ToolCall, text: str = "") -> list[ProviderEvent | float | Exception]:
    return [*([Text(text)] if text else []), *made, StreamEnd("tools", raw={"n": len(made)})]


def talk(folder: Path, fake: FakeProvider, *functions: Any, **more: Any) -> Talk:
    return Talk(folder, Shelf(QUORL, DIARY), fake, *(tool(one) for one in functions), **more)
