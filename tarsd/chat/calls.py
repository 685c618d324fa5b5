"""The tools' part of a turn: what only reads runs at once, what changes or sends something waits for a yes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tarsd.chat.prompt import result_text
from tarsd.chat.prompt_note import PromptNote
from tarsd.chat.services import TurnServices
from tarsd.chat.turn import Turn, drew_on
from tarsd.errors import Conflict, Refused, TarsdError, ToolError
from tarsd.memory import MEMORY, NOTICED, RULES
from tarsd.passage import Origin, Passage
from tarsd.protocol import Approval, TurnRequest
from tarsd.providers.base import Message, Provider, ToolCall
from tarsd.tools import Context, Result, ToolProposal
from tarsd.tools.base import NotAsShown
from tarsd.tools.catalog import AT_HOME
from tarsd.tools.skills import READ_SKILL
from tarsd.writing import Change

READY_S = 1.5
"""How long a turn waits for servers whose tools are not known yet."""
APPROVAL_S = 900.0
SHOWN_CHARS = 2_000
MOST_CALLS = 12
"""Calls of one round; those beyond are not made."""

MOST_SHOWN = 5
"""How often a change is shown, while what it would change changes itself."""
CHANGED = "Not done: the note is not as it was shown any more. What would be done now is asked again."
NOBODY = "Not done: it needs the person's yes, and nobody is there to give it."
CLOSED = "There is no such note or section that may be read here. memory_search finds passages."
FINDS = frozenset({"memory_search", "note_list", "query_notes", "query_tasks"})
"""Tools that find nothing private for a model elsewhere, so that their errors are about the call alone."""

Thread = Callable[..., Awaitable[Any]]


class Calls:
    """The calls of one turn, counted. `waited` are the seconds in which a person was asked.

    `always` holds the tools that need no yes in this conversation any more.
    """

    def __init__(self, services: TurnServices, turn: Turn, request: TurnRequest, always: set[str]) -> None:
        self.count = 0
        self.waited = 0.0
        self._services = services
        self._toolbox = services.toolbox
        self._turn = turn
        self._request = request
        self._always = always
        self._made: dict[str, str] = {}
        self._only: frozenset[str] | None = None

    async def narrow(self, prompt: PromptNote | None) -> None:
        """Leaves only the tools that a prompt names, if it names any. Raises `BadRequest` for one that is none."""
        if prompt is None or prompt.tools is None:
            return
        await self._toolbox.ready(READY_S)
        try:
            self._only = frozenset(self._toolbox.get(name).name for name in prompt.tools)
        except ToolError as error:
            raise prompt.wrong(prompt.at.get("tools", 1), error.message, error.hint) from None

    async def told(self, provider: Provider, thread: Thread) -> dict[str, Any]:
        """What a prompt says to a model that may call tools: these, the skills, and the names of the vault."""
        if not provider.tools:
            return {}
        await self._toolbox.ready(READY_S)
        reader = self._services.reader(self._request.audience, provider.local)
        tools = [spec for spec in self._toolbox.specs() if self._only is None or spec.name in self._only]
        skills, private = "", False
        if self._services.skills is not None and any(spec.name == READ_SKILL for spec in tools):
            skills, private = await thread(partial(self._services.skills.told, private=reader.sees_private))
            tools = [spec for spec in tools if skills or spec.name != READ_SKILL]
        self._turn.private |= private
        return {"tools": tuple(tools), "skills": skills, "vault": await thread(reader.overview)} if tools else {}

    def _context(self, local: bool) -> Context:
        services = self._services
        remembered = {services.memory.path(name) for name in (MEMORY, RULES, NOTICED)}

        async def write(change: Change) -> str:
            hash = await services.writer.perform(
                change,
                by=self._request.writer,
                kind="memory" if change.path in remembered else "note",
                conversation=self._turn.conversation,
                emit=self._turn.emit,
            )
            if services.indexed is not None:  # the model may look for it at once
                await services.indexed([change.path])
            return hash

        reader = services.reader(self._request.audience, local)
        return Context(self._turn.conversation, reader, write, self._turn.private)

    async def make(self, calls: Sequence[ToolCall], *, local: bool) -> list[Message]:
        """The results of a round's calls, in their order; `local`: who called is on this machine."""
        names = []
        for call in calls:
            self.count += 1
            names.append(f"t{self.count}")
            self._turn.add("tool", call=names[-1], name=call.name, arguments=dict(call.arguments), state="running")
        context = self._context(local)
        made = list(zip(names, calls, strict=True))[:MOST_CALLS]
        answers = await asyncio.gather(*(self._plan(name, call, context) for name, call in made))
        answers += [ToolError(f"Not called: at most {MOST_CALLS} calls are made at once.")] * (
            len(calls) - len(answers)
        )
        messages = []
        changed = False
        for name, call, answer in zip(names, calls, answers, strict=True):
            if isinstance(answer, ToolProposal) and changed:  # it was planned on what an earlier one has changed since
                answer = await self._plan(name, call, self._context(local))
            if isinstance(answer, ToolProposal):
                name, answer = await self._propose(name, call, answer)
                changed = True
            messages.append(self._told(name, call, answer))
        return messages

    async def _plan(self, name: str, call: ToolCall, context: Context) -> Result | ToolProposal | TarsdError:
        """What a call gives, or would do; nothing is changed here."""
        if call.problem:
            return ToolError(call.problem)
        if not self._allows(call.name):
            return ToolError(f"Not called: the person's prompt does without {call.name[:64]}.")
        same = f"{call.name} {json.dumps(dict(call.arguments), sort_keys=True, default=str)}"
        if same in self._made:
            return Result(f"This was called before with the same arguments; see the result of call {self._made[same]}.")
        try:
            answer = await self._toolbox.call(call.name, call.arguments, self._asking(call.name, context))
        except TarsdError as error:
            return self._told_elsewhere(call.name) or error
        if isinstance(answer, Result):
            self._made[same] = name
        return answer

    def _allows(self, name: str) -> bool:
        """Whether the prompt leaves a tool to the model."""
        try:
            return self._only is None or self._toolbox.get(name).name in self._only
        except ToolError:
            return True  # there is none, which the model is told

    def _asking(self, name: str, context: Context) -> Context:
        """For a tool that sends something: no standing yes holds for a model that asks in the person's stead."""
        asks = self._request.audience != "person" and self._toolbox.get(name).group not in AT_HOME
        return replace(context, private=True) if asks else context

    def _told_elsewhere(self, name: str) -> TarsdError | None:
        """What a model elsewhere hears of a call that failed: not why, for that may tell which private notes exist."""
        if not self._turn.elsewhere:
            return None
        try:
            tool = self._toolbox.get(name)
        except ToolError:
            return None
        if tool.group not in AT_HOME or tool.name in FINDS:
            return None
        return ToolError(CLOSED) if tool.name == "note_read" else Refused(NOBODY)

    async def _propose(self, name: str, call: ToolCall, proposal: ToolProposal) -> tuple[str, Result | TarsdError]:
        """Ask, and do it after a yes; returns the state of the call and its result."""
        try:
            for _ in range(MOST_SHOWN):
                if not self._may(call.name, proposal) and not await self._ask(name, call, proposal):
                    return name, Refused("The person said no." if self._request.approvals else NOBODY)
                self._made.clear()  # what was read before may have changed now
                try:
                    return name, await proposal.apply()
                except NotAsShown as other:
                    proposal = other.proposal
                if not self._may(call.name, proposal):
                    name = self._shown_anew(name, call)
            return name, Conflict("The note keeps changing.", "Try again later.")
        except TarsdError as error:
            return name, error

    def _shown_anew(self, name: str, call: ToolCall) -> str:
        """End a call whose yes holds no more, and begin it under another name, so that no late answer is for both."""
        turn = self._turn
        turn.add("tool", call=name, name=call.name, state="refused", text=CHANGED)
        self.count += 1
        name = f"t{self.count}"
        turn.add("tool", call=name, name=call.name, arguments=dict(call.arguments), state="running")
        return name

    def _may(self, tool: str, proposal: ToolProposal) -> bool:
        """Whether there is a yes already; once private text was seen, none covers what leaves this machine.

        What was said for the rest of a conversation does not hold for somebody who asks in it and cannot be asked.
        What the settings allow, they allow the person: a model that asks in their stead changes and sends nothing.
        And none covers private text that goes where it is not private.
        """
        if self._request.audience != "person" or proposal.exposes:
            return False
        private = self._turn.private
        at_home = proposal.change is not None or not private
        always = self._request.approvals and tool in self._always
        return self._toolbox.allowed(tool, private=private) or (always and at_home)

    async def _ask(self, name: str, call: ToolCall, proposal: ToolProposal) -> bool:
        if not self._request.approvals:
            return False
        turn = self._turn
        answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        turn.approvals[name] = answer
        began = time.monotonic()
        turn.add(
            "approval",
            call=name,
            name=call.name,
            title=proposal.title,
            diff=proposal.diff,
            arguments=dict(call.arguments),
        )
        try:
            async with asyncio.timeout(APPROVAL_S):
                given = await answer
        except TimeoutError:
            raise Refused("Not done: nobody answered.") from None
        finally:
            self.waited += time.monotonic() - began
            turn.approvals.pop(name, None)
        if given.allow and given.always:
            self._always.add(call.name)
        return given.allow

    def _told(self, name: str, call: ToolCall, answer: Result | TarsdError) -> Message:
        """The message that answers a call; what may be cited gets its number here."""
        turn = self._turn
        if isinstance(answer, TarsdError):
            text = f"{answer.message} {answer.hint}".strip()
            state = "refused" if isinstance(answer, Refused) else "failed"
            turn.add("tool", call=name, name=call.name, state=state, text=text)
            return Message("tool", result_text(call.name, text), call_id=call.id, name=call.name, failed=True)
        turn.private |= answer.private or any(passage.local_only for passage in answer.evidence)
        numbered = []
        for passage in answer.evidence:
            known = next((shown for shown in turn.evidence if _place(shown) == _place(passage)), None)
            if known is None:
                known = replace(passage, number=len(turn.evidence) + 1)
                turn.evidence = (*turn.evidence, known)
            numbered.append(known)
        turn.add(
            "tool",
            call=name,
            name=call.name,
            state="done",
            text=answer.text[:SHOWN_CHARS],
            sources=[passage.as_source() for passage in numbered],
            **drew_on(_origins(answer)),
            **({"private": True} if turn.private else {}),
        )
        text = result_text(call.name, answer.text, numbered, answer.rows)
        return Message("tool", text, call_id=call.id, name=call.name)


def _origins(answer: Result) -> list[Origin]:
    """What a result was made from; passages say more than their note, which may have been moved."""
    known = {(origin.collection, origin.path) for origin in answer.origins}
    whole = [*(passage.origin for passage in answer.evidence), *(row.origin for row in answer.named)]
    return [*answer.origins, *(one for one in whole if one.hash or (one.collection, one.path) not in known)]


def _place(passage: Passage) -> tuple[object, ...]:
    return passage.collection, passage.path, passage.start_line, passage.end_line, passage.text
