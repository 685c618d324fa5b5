"""What a log of conversations says, as objects; everything but what was asked is derived from the events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from tarsd.citation import without_numbers
from tarsd.passage import Origin
from tarsd.protocol import Event

TITLE_CHARS = 80


@dataclass(frozen=True)
class ToolUse:
    """A call of a tool; `state` is running, done, failed or refused."""

    name: str
    state: str


@dataclass(frozen=True)
class TurnRecord:
    """A turn as the log has it; `text` and `state` are derived from its events."""

    id: str
    message: str
    at: float
    request_id: str
    notes: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def state(self) -> str:
        """running, done, stopped, interrupted or failed."""
        last = self.events[-1] if self.events else None
        if last is None or not last.last:
            return "running"
        if last.type == "failed":
            return "interrupted" if last.data.get("error", {}).get("code") == "interrupted" else "failed"
        return "stopped" if last.data.get("stopped") else "done"

    @property
    def query(self) -> str:
        """What was searched for: the message with its follow-up resolved, "" before the retrieval."""
        return next((str(event.data.get("query", "")) for event in self.events if event.type == "retrieved"), "")

    @property
    def text(self) -> str:
        """The answer, or as much of it as there is."""
        last = self.events[-1] if self.events else None
        if last is not None and last.last and "text" in last.data:
            return str(last.data["text"])
        said: list[str] = []
        for event in self.events:
            if event.type == "retract":  # it was reasoning, and no part of the answer
                said.clear()
            elif event.type == "token":
                said.append(str(event.data.get("text", "")))
        return "".join(said)

    @property
    def retold(self) -> str:
        """The answer as later turns and summaries have it: its sources by their links, not by their numbers."""
        shown = [*(self.outcome.get("sources") or ()), *(self.outcome.get("citations") or ())]
        return without_numbers(self.text, [source for source in shown if isinstance(source, dict)])

    @property
    def model(self) -> str:
        """The model that answered, a fallback included; "" before the retrieval."""
        named = [str(event.data["model"]) for event in self.events if event.data.get("model")]
        return named[-1] if named else ""

    @property
    def private(self) -> bool:
        """Whether this turn saw local-only text; anything made from it stays on this machine, too."""
        return any(event.data.get("private") is True for event in self.events)

    @property
    def origins(self) -> frozenset[Origin]:
        """The notes that the model was shown in this turn, by text or by name."""
        shown = (
            source
            for event in self.events
            for source in event.data.get("drew_on") or event.data.get("sources") or ()
            if isinstance(source, dict)
        )
        return frozenset(Origin(*(str(source.get(key) or "") for key in Origin._fields)) for source in shown)

    @property
    def unseen(self) -> tuple[str, ...]:
        """The turns before this one that its model was not shown, for they were private."""
        retrieved = [event for event in self.events if event.type == "retrieved"]
        return tuple(map(str, retrieved[-1].data.get("unseen") or ())) if retrieved else ()

    @property
    def tools(self) -> tuple[ToolUse, ...]:
        """The calls of tools in the order in which they were made, each as it stood last."""
        calls: dict[str, ToolUse] = {}
        for event in self.events:
            if event.type == "tool":
                call = str(event.data.get("call", ""))
                name = str(event.data.get("name", "")) or (calls[call].name if call in calls else "")
                calls[call] = ToolUse(name, str(event.data.get("state", "")))
        return tuple(calls.values())

    @property
    def outcome(self) -> dict[str, Any]:
        """What the retrieval and the last event say, the last event's word going first."""
        outcome: dict[str, Any] = {}
        for event in self.events:
            if event.type in ("retrieved", "done", "failed"):
                outcome.update(event.data)
        return outcome

    def as_json(self) -> dict[str, object]:
        """A turn in the reply of `GET /v1/conversations/{id}`."""
        outcome = self.outcome
        return {
            "id": self.id,
            "message": self.message,
            "notes": list(self.notes),
            "at": self.at,
            "state": self.state,
            "text": self.text,
            "sources": outcome.get("sources", []),
            "citations": outcome.get("citations", []),
            "error": outcome.get("error"),
            "model": self.model,
            "private": self.private,
            "usage": outcome.get("usage", ""),
            "tools": [asdict(tool) for tool in self.tools],
        }


@dataclass(frozen=True)
class ConversationSummary:
    """A line in the list of conversations; times are seconds since 1970. `private`: text of private notes was seen."""

    id: str
    title: str
    created: float
    updated: float
    turns: int
    private: bool = False

    def as_json(self) -> dict[str, object]:
        """As it goes over the socket."""
        return asdict(self)


@dataclass(frozen=True)
class SummaryRecord:
    """What was said up to and including the turn `upto`, in short; `at` in seconds since 1970.

    `unseen` are turns before that which did not go into it, for they were private.
    """

    upto: str
    text: str
    private: bool
    at: float
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conversation:
    """A conversation read whole from its log, turns in the order in which they were asked.

    `note` is the path of its note in the vault, "" without one; `condensed` is the newest summary of its beginning;
    `machine` is the id of the one that it is kept on; `saved`: the person wants a note of it.
    """

    summary: ConversationSummary
    turns: tuple[TurnRecord, ...]
    note: str = ""
    condensed: SummaryRecord | None = None
    machine: str = ""
    saved: bool = False

    @property
    def private(self) -> bool:
        """Whether local-only text was seen in any of its turns."""
        return any(turn.private for turn in self.turns) or (self.condensed is not None and self.condensed.private)

    @cached_property
    def drawn(self) -> Mapping[str, frozenset[Origin]]:
        """What each turn drew on, by its id: the notes it was shown, and those that the turns before it drew on.

        One that is not marked as private saw none that is.
        """
        drawn: dict[str, frozenset[Origin]] = {}
        for at, turn in enumerate(self.turns):
            before = self._seen(self.turns[:at], turn.unseen, turn.private)
            drawn[turn.id] = turn.origins.union(*(drawn[other.id] for other in before))
        return drawn

    @property
    def summary_drew_on(self) -> frozenset[Origin]:
        """What the summary of the conversation's beginning drew on, as `drawn`."""
        if self.condensed is None:
            return frozenset()
        before = self._seen(self.finished[: self.summarised], self.condensed.unseen, self.condensed.private)
        return frozenset().union(*(self.drawn[turn.id] for turn in before))

    @property
    def drew_on(self) -> frozenset[Origin]:
        """What was drawn on in all turns that are not marked as private."""
        return frozenset().union(*(turn.origins for turn in self.turns if not turn.private))

    @staticmethod
    def _seen(turns: Iterable[TurnRecord], unseen: Collection[str], private: bool) -> list[TurnRecord]:
        return [turn for turn in turns if turn.id not in unseen and (private or not turn.private)]

    @property
    def finished(self) -> tuple[TurnRecord, ...]:
        """The turns that do not run any more."""
        return tuple(turn for turn in self.turns if turn.state != "running")

    @property
    def summarised(self) -> int:
        """How many of the finished turns the summary stands for; 0 when its last turn is not there."""
        upto = self.condensed.upto if self.condensed is not None else ""
        return next((number for number, turn in enumerate(self.finished, 1) if turn.id == upto), 0)

    @property
    def since(self) -> tuple[TurnRecord, ...]:
        """The finished turns after those that are summarised."""
        return self.finished[self.summarised :]

    def as_json(self) -> dict[str, object]:
        """The reply of `GET /v1/conversations/{id}`."""
        return {**self.summary.as_json(), "note": self.note, "turns": [turn.as_json() for turn in self.turns]}


def interrupted(record: TurnRecord) -> Event:
    """The event that closes a turn which a stop or crash of the daemon cut off; it keeps the text so far."""
    seq = record.events[-1].seq + 1 if record.events else 1
    error = {
        "code": "interrupted",
        "message": "The daemon stopped before the answer was complete.",
        "hint": "Ask again.",
    }
    return Event(seq, "failed", {"error": error, "text": record.text})


def title_of(message: str) -> str:
    """The title of a conversation: its first question on one line, cut at a word."""
    line = " ".join(message.split())
    return line if len(line) <= TITLE_CHARS else (line[:TITLE_CHARS].rsplit(" ", 1)[0] or line[:TITLE_CHARS]) + "…"
