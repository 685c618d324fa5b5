"""A question to the daemon: its turn followed to the end, stopped with the call, and told as one answer."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from tarsd.client import Client
from tarsd.errors import ClientError, TarsdError
from tarsd.mcp_stdio.call import Call
from tarsd.mcp_stdio.link import DaemonLink
from tarsd.mcp_stdio.results import PRIVATE, ROOM, Json, ToolReply, counted, cut, fitting, line, listed, passage
from tarsd.protocol import LAST_EVENTS, MAX_ID, RequestBody
from tarsd.protocol.codec import PLAIN
from tarsd.protocol.requests import Message

PREFIX = "mcp-"
"""Conversations that were begun here, so that no client reads or goes on with one of the person's own."""

TOLD_S = 0.5
STOP_S = 1.0


class AskArguments(RequestBody, frozen=True):
    """What `ask` takes."""

    question: Annotated[Message, Meta(description="The question, in full sentences")]
    conversation: Annotated[
        str,
        Meta(
            max_length=MAX_ID - len(PREFIX),
            pattern=PLAIN,
            description="To go on with an earlier answer: the conversation that it gave",
        ),
    ] = ""


def ask(arguments: AskArguments, call: Call) -> ToolReply:
    """The answer of the daemon's own model, or the passages that it quotes. Raises `TarsdError`."""
    conversation = f"{PREFIX}{arguments.conversation.strip().removeprefix(PREFIX) or os.urandom(6).hex()}"
    link = call.link
    body = {
        "conversation": conversation,
        "message": arguments.question,
        "request_id": os.urandom(16).hex(),
        "stop_when_left": True,
        "writer": "daemon",
        "approvals": False,
    }
    turn = str(link.post("/v1/turns", body)["turn"])
    call.when_cancelled(lambda: _stop(link, turn))
    answer = _TurnAnswer()
    for event in link.client.stream(f"/v1/turns/{turn}/events"):
        if said := answer.take(event):
            call.tell(said)
    return answer.reply(conversation, link)


def _stop(link: DaemonLink, turn: str) -> None:
    with contextlib.suppress(TarsdError):  # the daemon has gone, and the turn with it
        Client(link.client.socket_path, timeout=STOP_S).post(f"/v1/turns/{turn}/stop")


class _TurnAnswer:
    """Collects the events of a turn into one answer."""

    def __init__(self) -> None:
        self._found: Mapping[str, Any] = {}
        self._sources: dict[Any, Mapping[str, Any]] = {}
        self._refused: list[Json] = []
        self._last: Mapping[str, Any] = {}
        self._written = 0
        self._told = 0.0

    def take(self, event: Mapping[str, Any]) -> str:
        """Note an event, and return what to report as progress, "" for nothing; it never holds text of the vault."""
        kind = event.get("type")
        if kind in LAST_EVENTS:
            self._last = event
            return ""
        if kind == "retrieved":
            self._found, self._sources = event, {}
            self._add(event)
            return f"Found {len(self._sources)} passages"
        if kind == "tool":
            return self._tool(event)
        if kind in ("token", "thinking"):
            self._written += len(str(event.get("text", "")))
            if time.monotonic() - self._told < TOLD_S:
                return ""
            self._told = time.monotonic()
            return f"{'Writing' if kind == 'token' else 'Thinking'}: {self._written} characters so far"
        return {"queued": "Waiting for an earlier question", "waiting": "Waiting for the model"}.get(str(kind), "")

    def _tool(self, event: Mapping[str, Any]) -> str:
        name, state = line(str(event.get("name"))), event.get("state")
        self._add(event)
        if state == "refused":
            self._refused.append({"tool": name, "reason": str(event.get("text", ""))})
        return f"{name}: {state}"

    def _add(self, event: Mapping[str, Any]) -> None:
        self._sources |= {source["n"]: source for source in event.get("sources") or []}

    def reply(self, conversation: str, link: DaemonLink) -> ToolReply:
        """The answer with its sources as a result. Raises `ClientError` where the turn has failed."""
        if self._last.get("type") == "failed":
            raise _failure(self._last)
        text, is_cut = cut(str(self._last.get("text", "")), ROOM // 2)
        citations = [{"n": citation["n"], **passage(citation, link)} for citation in self._last.get("citations") or []]
        sources = [{**passage(source, link), "relevance": source["relevance"]} for source in self._sources.values()]
        data: Json = {
            "answer": text,
            "conversation": conversation,
            "citations": fitting(citations, ROOM // 4),
            "sources": fitting(sources, ROOM // 4),
            "notices": fitting(self._last.get("notices") or [], ROOM // 16),
            "refused": fitting(self._refused, ROOM // 16),
            "withheld": link.get("/v1/notes", recent=1)["withheld"],
            "behind": self._found.get("behind", 0),
            "model": self._found.get("model", ""),
            "stopped": bool(self._last.get("stopped")),
            "cut": is_cut,
        }
        return ToolReply(data, _told(data))


def _told(data: Mapping[str, Any]) -> str:
    place = "[{n}] {path}:{start_line}-{end_line}  {uri}"
    cited = [place.format_map(citation).rstrip() for citation in data["citations"]]
    notices = [*data["notices"], *(["The answer was too long and has been cut."] if data["cut"] else [])]
    notices += ["The answer was stopped."] if data["stopped"] else []
    if data["withheld"]:
        notices.append(PRIVATE)
    if data["behind"]:
        notices.append(f"The index is behind: {counted(data['behind'], 'note', 'notes')} changed since.")
    parts = [data["answer"] or "There is no answer."]
    parts += listed("Sources", cited)
    parts += listed("Not done", [f"- {call['tool']}: {call['reason']}" for call in data["refused"]])
    parts += listed("Of this answer", [f"- {notice}" for notice in notices])
    return "\n\n".join([*parts, f"Conversation: {data['conversation']}"])


def _failure(last: Mapping[str, Any]) -> ClientError:
    error = last.get("error")
    error = error if isinstance(error, Mapping) else {}
    message = str(error.get("message") or "The answer failed.")
    text = cut(str(last.get("text") or ""), ROOM)[0]
    hint = str(error.get("hint") or "")
    return ClientError(
        message, f"{hint}\n\nWhat had come before:\n{text}".strip() if text else hint, code=str(error.get("code"))
    )
