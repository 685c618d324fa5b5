"""One question's way through a model: retrieve, stream, call tools, ask for a yes, stream again; bounded everywhere."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tarsd.ask import narrowed
from tarsd.chat.attached import PRIVATE_SELECTION, attach
from tarsd.chat.calls import Calls
from tarsd.chat.commands import Command, ToolCommand, read_command
from tarsd.chat.evidence import mentions, pack, queries, unsent, widen
from tarsd.chat.prompt import SHORTENED, FittedPrompt, PromptParts, fit, request_tokens
from tarsd.chat.prompt_call import PromptCall
from tarsd.chat.services import TurnServices
from tarsd.chat.turn import Turn, drew_on
from tarsd.citation import inert
from tarsd.errors import AnswerCut, ContextTooLong, ProviderBusy, ProviderError, Refused, TarsdError, ToolError
from tarsd.notes import Reader, Retrieval
from tarsd.passage import Origin
from tarsd.protocol import TurnRequest
from tarsd.providers.base import (
    Message,
    ModelRequest,
    Notice,
    Provider,
    Retract,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
    ToolSpec,
    Usage,
    Waiting,
)
from tarsd.providers.extractive import PASSAGES
from tarsd.providers.refused_tools import answered
from tarsd.providers.written_calls import made
from tarsd.search import RELEVANT
from tarsd.session import TurnRecord
from tarsd.tools import changes

MOST_FOUND = 24
READ = (8, 2)
"""How many passages help a model, and how many of one note."""
QUOTED = (PASSAGES, 1)
RETRIES = 2
REFITS = 2
"""How often a request that a server finds too long is made shorter."""
SHORTER = 0.7
LONGEST_WAIT_S = 8.0
"""A server that asks for more patience than this is taken for away."""
NO_ANSWER = "The model gave no answer."
CALLED_AGAIN = "The model asked for tools once more in place of an answer."
ALL_REASONING = "The model used all its tokens for reasoning; none were left for an answer."
_ENDED = re.compile(r"[.!?…:。！？।۔։။។።…\]\)」』”\"»*_`|>]\s*\Z")
"""How a whole text ends: a sentence, a citation, a quotation, a table, code."""
UNFINISHED = "The server did not say that it was finished: the end of the answer may be missing."
PRIVATE_PASSAGES = "Passages from private notes were left out, as they would leave this machine."
PRIVATE_HISTORY = "Earlier answers based on private notes were left out, as they would leave this machine."

Thread = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class History:
    """The conversation before this turn: the turns after the summary, oldest first, and the summary of the others.

    `summarised` are the ids of those others; `private` are the ids of turns that must not leave this machine now.
    """

    turns: tuple[TurnRecord, ...] = ()
    summary: str = ""
    summary_private: bool = False
    summarised: tuple[str, ...] = ()
    private: frozenset[str] = frozenset()

    def without_private(self) -> History:
        """What of it a model elsewhere may see."""
        turns = tuple(turn for turn in self.turns if turn.id not in self.private)
        if not self.summary_private:
            return replace(self, turns=turns, private=frozenset())
        return History(turns)

    @property
    def holds_private(self) -> bool:
        """Whether any of it must not leave this machine."""
        return any(turn.id in self.private for turn in self.turns) or bool(self.summary and self.summary_private)

    def lacks(self, shown: History) -> list[str]:
        """The turns (ids) that are in this one and not in what was `shown` of it."""
        left = {turn.id for turn in shown.turns}
        gone = [turn.id for turn in self.turns if turn.id not in left]
        return gone if shown.summary == self.summary else [*self.summarised, *gone]


class TurnRunner:
    """The work on one turn. `thread` runs what blocks; `always` are the tools that need no yes here any more."""

    def __init__(
        self,
        services: TurnServices,
        turn: Turn,
        request: TurnRequest,
        history: History,
        thread: Thread,
        always: set[str],
    ) -> None:
        self._services = services
        self._turn = turn
        self._request = request
        self._history = history
        self._thread = thread
        self._calls = Calls(services, turn, request, always)
        self._started = time.monotonic()
        self._offered: tuple[ToolSpec, ...] = ()
        self._unseen: list[str] = []
        self._origins: Sequence[Origin] = ()
        self._prompt = PromptCall(services, request, thread)
        self.trouble: ProviderError | None = None
        """What keeps the provider from answering, while the fallback does."""

    async def run(self) -> TarsdError | None:
        """Answer with the provider, or with the fallback if that is unavailable; afterwards the turn has its text.

        What kept the provider from answering is returned. Raises `TarsdError` where there is no answer at all.
        """
        turn, second = self._turn, self._services.fallback
        command = read_command(self._request.message, self._services.today())
        if command is not None:
            turn.notice(await self._prompt.hidden_by(self._request.message.split()[0]))
            await self._obey(command)
            return None
        await self._prompt.read()
        first = await self._prompt.model()
        try:
            await self._converse(first, patient=second is None)
            return None
        except ProviderError as error:
            # what was said, or done by tools, cannot be taken back
            too_long = isinstance(error, ContextTooLong)  # that is for the person to mend
            if second is None or too_long or turn.pieces or self._calls.count:
                raise
            reason = self.trouble = error
        told = f"{first.name} did not answer ({reason.message.rstrip('.')}); this answer is from {{}}."
        turn.private = False  # nothing has been said yet; the other model gets a prompt of its own
        await self._converse(second, patient=True, told=told)
        return reason

    # -------------------------------------------------------------------------------------------- without a model

    async def _obey(self, command: Command) -> None:
        """Does what a command says; afterwards the turn has its rows, or what came of it. Raises `TarsdError`."""
        turn = self._turn
        turn.by_model = False
        if isinstance(command, ToolCommand):
            self._announce(None, Retrieval(()), PromptParts(""), [])
            await self._calls.make([ToolCall("", command.tool, command.arguments)], local=True)
            done = next(event.data for event in reversed(turn.events) if event.type == "tool")
            if done["state"] == "failed":
                raise ToolError(done["text"])
            said = "Nothing changed." if done["state"] == "refused" else changes.told(done["text"])
            turn.add("token", text=inert(said))
            return
        reader = self._services.reader(self._request.audience, True)
        told = await self._thread(command.told, reader, partial(self._services.spending.as_markdown, turn.conversation))
        turn.evidence = told.passages
        turn.private |= any(note.local_only for note in told.notes)
        self._announce(None, Retrieval(turn.evidence), PromptParts(""), [], [note.origin for note in told.notes])
        turn.add("token", text=told.text)

    async def _answered(self, provider: Provider) -> bool:
        """Whether the vault's data answers the question exactly, which needs no model; the turn has the answer then."""
        request, services, turn = self._request, self._services, self._turn
        guesses = queries(request.message, [record.query for record in self._history.turns])
        refers_back = len(guesses) > 1 or guesses[0] not in " ".join(request.message.split())
        if request.notes or request.selection or mentions(request.message) or refers_back:
            return False
        reader = services.reader(request.audience, provider.local)
        answer = await self._thread(reader.answer, request.message, services.today())
        if answer is None:
            return False
        turn.evidence = answer.passages
        turn.private |= answer.private
        turn.notice(*services.library.notices())
        prompt = PromptParts(request.message, query=request.message)
        self._announce(provider, Retrieval(answer.passages), prompt, [], answer.origins)
        turn.add("token", text=answer.text)
        return True

    async def _converse(self, provider: Provider, *, patient: bool, told: str = "") -> None:
        await provider.prepare()
        if told:
            self._turn.notice(told.format(provider.name))
        self._request = await self._prompt.fill(provider)
        await self._calls.narrow(self._prompt.note)
        self._turn.private |= self._prompt.private
        self._turn.by_model = not provider.quotes
        if provider.quotes and await self._answered(provider):
            return
        retrieval, prompt, withheld = await self._retrieve(provider)
        if provider.quotes:
            self._announce(provider, retrieval, prompt, withheld)
            asked = (Message("user", prompt.question),)
            request = ModelRequest("", asked, (), prompt.evidence, prompt.closest, prompt.query)
            await self._stream(provider, request, patient)
            return
        prompt = replace(prompt, **await self._calls.told(provider, self._thread))
        fitted = self._fit(provider, prompt)
        self._turn.evidence = fitted.request.evidence  # only what is really shown to the model is a source
        self._turn.notice(*fitted.left_out)
        self._announce(provider, retrieval, prompt, withheld)
        await self._rounds(provider, prompt, patient)

    async def _retrieve(self, provider: Provider) -> tuple[Retrieval, PromptParts, list[str]]:
        """What was found, the parts of the prompt, and the names of private notes that were left out."""
        turn, request, services = self._turn, self._request, self._services
        reader = services.reader(request.audience, provider.local)
        local = reader.sees_private
        most = services.settings.pictures if provider.sees else 0
        attached = await attach(reader, request, turn, self._thread, pictures=most)
        self._origins, selection = attached.origins, attached.selection
        private = attached.private or self._prompt.private
        # before anything is searched for: a question that refers back takes the one before along
        history = self._history if local else self._history.without_private()
        self._unseen = self._history.lacks(history)
        turn.notice(PRIVATE_HISTORY if self._unseen else "")
        private = private or history.holds_private
        turn.private |= private
        guesses = queries(request.message, [record.query for record in history.turns])
        if provider.quotes:  # a time in a question narrows the search to it, as long as that finds something
            guesses = [*filter(None, (narrowed(guess, services.today()) for guess in guesses)), *guesses]
        searched = [f"{guess}\n{selection}" if selection else guess for guess in guesses]
        retrieval, at = await self._thread(self._find, reader, searched, provider.quotes, private)
        budget = services.settings.evidence_tokens
        most, per_note = QUOTED if provider.quotes else READ
        turn.evidence, turn.closest = pack(
            retrieval.passages, attached.passages, most=most, per_note=per_note, tokens=budget
        )
        turn.notice("" if provider.quotes else unsent(attached.passages, turn.evidence))
        facts = rules = ""
        if not provider.quotes:
            turn.evidence = await self._thread(widen, turn.evidence, reader.around, budget)
            facts = await self._thread(lambda: services.memory.facts(local=local))
            rules = await self._thread(lambda: services.memory.rules(local=local))
            turn.private |= local and await self._thread(services.memory.withheld) > 0
        turn.notice(
            retrieval.degraded or "", PRIVATE_PASSAGES if retrieval.withheld else "", *services.library.notices()
        )
        asked = request.message
        if (filled := self._prompt.filled) is not None and not provider.quotes:
            asked = filled.text
            if filled.selects and not selection:
                raise Refused(PRIVATE_SELECTION)
        prompt = PromptParts(
            question=f"{asked}\n{selection}".strip() if provider.quotes else asked,
            selection=selection,
            facts=facts,
            rules=rules,
            summary=history.summary,
            evidence=turn.evidence,
            closest=turn.closest,
            history=history.turns,
            query=guesses[at],
            pictures=tuple(attached.pictures),
        )
        return retrieval, prompt, [*attached.withheld, *retrieval.withheld]

    def _announce(
        self,
        provider: Provider | None,
        retrieval: Retrieval,
        prompt: PromptParts,
        withheld: Sequence[str],
        counted: Sequence[Origin] = (),
    ) -> None:
        """Tell what was found, and which model answers, if any does; `counted`: notes it rests on as well."""
        turn = self._turn
        turn.private |= any(passage.local_only for passage in turn.evidence)
        shown = [*turn.evidence, *(turn.closest if provider is None or provider.quotes else ())]
        filled = self._prompt.filled.origins if self._prompt.filled is not None else ()
        turn.add(
            "retrieved",
            sources=[passage.as_source() for passage in turn.evidence],
            closest=[passage.as_source() for passage in turn.closest],
            relevance=max((passage.relevance for passage in retrieval.passages), default=0.0),
            behind=self._services.library.behind(),
            query=prompt.query,
            notices=list(turn.notices),
            withheld=list(dict.fromkeys(withheld)),
            model=provider.name if provider is not None else "",
            local=provider is None or provider.local,
            **drew_on([*(passage.origin for passage in shown), *self._origins, *filled, *counted]),
            **({"unseen": self._unseen} if self._unseen else {}),
            **({"private": True} if turn.private else {}),
        )

    def _find(self, reader: Reader, guesses: Sequence[str], memory: bool, private: bool) -> tuple[Retrieval, int]:
        """The first guess that finds something relevant, or the one that came closest; with its place."""
        best, top = (Retrieval(()), 0), -1.0
        for at, guess in enumerate(guesses):
            retrieval = reader.retrieve(guess, MOST_FOUND, memory=memory, private=private)
            relevance = max((passage.relevance for passage in retrieval.passages), default=0.0)
            if relevance > top:
                best, top = (retrieval, at), relevance
            if relevance >= RELEVANT:
                break
        return best

    # -------------------------------------------------------------------------------------------- rounds

    async def _rounds(self, provider: Provider, prompt: PromptParts, patient: bool) -> None:
        """The model's turn and the tools' in alternation; the last round has no tools, so that it ends in words."""
        settings = self._services.settings
        self._offered = prompt.tools  # what the last round writes as a call of these is no answer either
        for number in range(settings.rounds + 1):
            spent = self._spent() > settings.seconds
            last = number == settings.rounds or spent
            if last and self._calls.count:
                bound = f"{settings.seconds:g} seconds" if spent else f"{settings.rounds} rounds"
                self._turn.notice(
                    f"Tools were called {self._calls.count} times; the limit of {bound} was reached. "
                    "This is what was found."
                )
            before = self._turn.text
            prompt = replace(prompt, tools=() if last else prompt.tools)
            calls, done = await self._ask(provider, prompt, patient)
            if done.stop_reason == "length" and not self._turn.text[len(before) :].strip():
                self._turn.notice(ALL_REASONING)
            elif done.stop_reason == "length":
                self._turn.notice("The answer was cut off: the model reached its token limit.")
            elif done.stop_reason == "refusal":
                self._turn.notice("The model refused to continue.")
            if last or not calls or done.stop_reason not in ("tools", "stop"):
                if last and calls:
                    self._turn.notice(CALLED_AGAIN)
                elif not self._turn.text.strip():
                    self._turn.notice(NO_ANSWER)
                return
            said = self._turn.text[len(before) :]
            if said.strip():
                self._turn.add("token", text="\n\n")
            results = await self._calls.make(calls, local=provider.local)
            step = Message("assistant", said, tuple(calls), raw=done.raw)
            prompt = replace(prompt, steps=(*prompt.steps, step, *results))

    async def _ask(self, provider: Provider, prompt: PromptParts, patient: bool) -> tuple[list[ToolCall], StreamEnd]:
        """One round; if the server says it is too long, it is fitted again: our count of tokens is an estimate."""
        turn, said = self._turn, self._turn.pieces
        fitted = self._fit(provider, prompt)
        if SHORTENED in fitted.left_out:  # what else does not fit was said with the retrieval
            turn.notice(SHORTENED)
        for _ in range(REFITS):
            try:
                return await self._stream(provider, fitted.request, patient)
            except ContextTooLong as error:
                less = None if turn.pieces > said else self._shorter(provider, prompt, fitted.request, error)
                if less is None:
                    raise
                fitted = less
                turn.notice(*fitted.left_out)
                turn.evidence = turn.evidence if prompt.steps else fitted.request.evidence
        return await self._stream(provider, fitted.request, patient)

    def _fit(self, provider: Provider, prompt: PromptParts, window: int = 0) -> FittedPrompt:
        ratio = self._services.ratios.of(provider.name)
        return fit(prompt, window or provider.window, self._services.settings.reply_tokens, ratio)

    def _shorter(
        self, provider: Provider, prompt: PromptParts, refused: ModelRequest, error: ContextTooLong
    ) -> FittedPrompt | None:
        """What to send in place of a request that is too long, None where nothing more can be left out."""
        ratios, estimated = self._services.ratios, request_tokens(refused)
        ratios.learn(provider.name, estimated, error.asked)
        window = min(provider.window, error.window or provider.window)
        needed = int(ratios.of(provider.name) * estimated) + refused.max_tokens
        try:  # by the server's numbers, or by less than what was thought to fit
            less = self._fit(provider, prompt, window if needed > window else int(SHORTER * needed))
        except ContextTooLong:
            return None
        kept = less.request.messages == refused.messages and less.request.tools == refused.tools
        return None if kept and not (error.window and less.request.max_tokens < refused.max_tokens) else less

    async def _stream(
        self, provider: Provider, request: ModelRequest, patient: bool
    ) -> tuple[list[ToolCall], StreamEnd]:
        """One request, tried again after a short wait when the server is busy and nothing has come yet."""
        for attempt in range(RETRIES + 1):
            try:
                return await self._stream_once(provider, request)
            except ProviderBusy as error:
                wait = error.retry_after if error.retry_after is not None else 1.0 * 2**attempt
                if not patient or attempt == RETRIES or wait > LONGEST_WAIT_S or self._turn.pieces:
                    raise
                self._turn.add("waiting", text=f"{error.message.rstrip('.')}. Trying again in {wait:.0f} s.")
                await asyncio.sleep(wait)
        raise AssertionError  # the last attempt returns or raises

    async def _stream_once(self, provider: Provider, request: ModelRequest) -> tuple[list[ToolCall], StreamEnd]:
        turn, calls, done, counted = self._turn, list[ToolCall](), None, False
        before = turn.text
        answer = answered(provider, request, self._services.refused_tools)
        async with self._deadline(), aclosing(made(answer, self._offered)) as events:
            async for event in events:
                match event:
                    case Text(text):
                        turn.add("token", text=text)
                    case Thinking(text):
                        turn.add("thinking", text=text)
                    case Retract():
                        turn.add("retract")
                        if before:  # what earlier rounds said stands
                            turn.add("token", text=before)
                    case ToolCall():
                        calls.append(event)
                    case Usage():
                        if not counted and all(message.raw is None for message in request.messages):
                            estimated = request_tokens(request)
                            self._services.ratios.learn(provider.name, estimated, event.input_tokens, provider.window)
                        counted = True
                    case Waiting(text):
                        turn.add("waiting", text=text)
                    case Notice(text):
                        turn.notice(text)
                    case StreamEnd():
                        done = event
        if done is None and self._late() and turn.text.strip():
            turn.notice(
                f"The time limit of {self._services.settings.seconds:g} seconds was reached; this is the answer so far."
            )
            return [], StreamEnd("stop")
        if done is None and _ENDED.search(turn.text[len(before) :]):
            turn.notice(UNFINISHED)
            return [], StreamEnd("stop")
        if done is None:
            raise AnswerCut("The answer broke off.", "Ask again.")
        return calls, done

    def _left(self) -> float:
        """Seconds until the turn is cut: after the time for tools is up, the last round has as long again."""
        return 2 * self._services.settings.seconds - self._spent()

    def _late(self) -> bool:
        return self._left() <= 0

    @contextlib.asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(max(0.0, self._left())):
                yield
        except TimeoutError:
            if not self._late():
                raise

    def _spent(self) -> float:
        """Seconds of this turn, without those in which it waited for a person."""
        return time.monotonic() - self._started - self._calls.waited
