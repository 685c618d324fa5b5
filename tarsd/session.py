"""Conversations: one append-only JSONL log each, in a private folder; what is written here is never rewritten.

The first line names the conversation; then come turns, their events, and titles. A file is named by a hash of the
conversation's id, for ids come from clients. A turn without a last event was cut by a restart and is closed as such.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tarsd.errors import DiskFull, NotFound, StoreError
from tarsd.parse import parse
from tarsd.protocol import Event, TurnRequest, encode, read_event

TITLE_CHARS = 80
_LINK = re.compile(r"\[\[[^\[\]\n]+\]\]")
_BAR = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r"([ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+[ \t>]*)*)(```+|~~~+)")


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
        return "".join(str(event.data.get("text", "")) for event in self.events if event.type == "token")

    def as_json(self) -> dict[str, object]:
        """A turn in the reply of `GET /v1/conversations/{id}`."""
        found: dict[str, Any] = {}
        for event in self.events:
            if event.type in ("retrieved", "done", "failed"):
                found.update(event.data)
        return {
            "id": self.id,
            "message": self.message,
            "notes": list(self.notes),
            "at": self.at,
            "state": self.state,
            "text": self.text,
            "sources": found.get("sources", []),
            "citations": found.get("citations", []),
            "error": found.get("error"),
        }


@dataclass(frozen=True)
class Summary:
    """A line in the list of conversations; times are seconds since 1970."""

    id: str
    title: str
    created: float
    updated: float
    turns: int

    def as_json(self) -> dict[str, object]:
        """As it goes over the socket."""
        return {
            "id": self.id,
            "title": self.title,
            "created": self.created,
            "updated": self.updated,
            "turns": self.turns,
        }


@dataclass(frozen=True)
class Conversation:
    """A conversation read whole from its log, turns in the order in which they were asked."""

    summary: Summary
    turns: tuple[TurnRecord, ...]

    def as_json(self) -> dict[str, object]:
        """The reply of `GET /v1/conversations/{id}`."""
        return {**self.summary.as_json(), "turns": [turn.as_json() for turn in self.turns]}


@dataclass
class _Index:
    """What every log says of itself, held in memory; made from the logs at first use."""

    summaries: dict[str, Summary] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)  # turn id -> conversation id
    requests: dict[str, str] = field(default_factory=dict)  # request id -> turn id


class Sessions:
    """All conversations of a vault. Safe to use from several threads; one process at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._known: _Index | None = None

    # -------------------------------------------------------------------------------------------- writing

    def begin(self, turn: str, request: TurnRequest) -> TurnRecord:
        """Record a question, before anything is done about it. Raises `StoreError`."""
        record = TurnRecord(turn, request.message, time.time(), request.request_id, request.notes)
        with self._lock:
            index = self._index()
            lines = []
            if request.conversation not in index.summaries:
                lines.append({"t": "conversation", "v": 1, "id": request.conversation, "at": record.at})
            lines.append(
                {
                    "t": "turn",
                    "id": turn,
                    "request_id": request.request_id,
                    "at": record.at,
                    "message": request.message,
                    "notes": list(request.notes),
                }
            )
            self._append(request.conversation, lines, durable=True)
            _note_all(index, request.conversation, lines)
        return record

    def append(self, conversation: str, turn: str, event: Event) -> None:
        """Record an event of a turn. Raises `StoreError`."""
        with self._lock:
            kind = "end" if event.last else "event"
            self._append(conversation, [{"t": kind, "turn": turn, "event": event.as_json()}])
            known = self._index().summaries.get(conversation)
            if known is not None:
                self._index().summaries[conversation] = replace(known, updated=time.time())

    def rename(self, conversation: str, title: str) -> Summary:
        """Give a conversation another title. Raises `NotFound`, `StoreError`."""
        with self._lock:
            known = self._summary(conversation)
            self._append(conversation, [{"t": "title", "title": title, "at": time.time()}])
            self._index().summaries[conversation] = replace(known, title=title)
            return self._index().summaries[conversation]

    def delete(self, conversation: str) -> None:
        """Remove the log; a note made of the conversation stays. Raises `NotFound`, `StoreError`."""
        with self._lock:
            self._summary(conversation)
            try:
                self._file(conversation).unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"The conversation cannot be deleted: {error.strerror}.") from error
            index = self._index()
            del index.summaries[conversation]
            # request ids stay known: a repeated request must not ask a deleted question again
            index.turns = {turn: owner for turn, owner in index.turns.items() if owner != conversation}

    # -------------------------------------------------------------------------------------------- reading

    def summaries(self) -> list[Summary]:
        """All conversations, the latest first."""
        with self._lock:
            return sorted(self._index().summaries.values(), key=lambda summary: summary.updated, reverse=True)

    def load(self, conversation: str) -> Conversation:
        """A conversation with everything that happened in it. Raises `NotFound`."""
        with self._lock:
            summary = self._summary(conversation)
            return Conversation(summary, tuple(_turns(_lines(self._file(conversation)))))

    def turn(self, turn: str) -> tuple[str, TurnRecord]:
        """A turn and the conversation it belongs to. Raises `NotFound`."""
        with self._lock:
            owner = self._index().turns.get(turn)
            if owner is not None:
                for record in self.load(owner).turns:
                    if record.id == turn:
                        return owner, record
        raise NotFound("There is no such turn.", "Its conversation may have been deleted.")

    def requested(self, request_id: str) -> str | None:
        """The turn that was started for this request id, if one was, in this or an earlier run."""
        with self._lock:
            return self._index().requests.get(request_id)

    # -------------------------------------------------------------------------------------------- the files

    def _file(self, conversation: str) -> Path:
        digest = hashlib.sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._folder / f"{digest}.jsonl"

    def _summary(self, conversation: str) -> Summary:
        known = self._index().summaries.get(conversation)
        if known is None:
            raise NotFound("There is no such conversation.", "GET /v1/conversations lists them.")
        return known

    def _append(self, conversation: str, lines: list[dict[str, Any]], *, durable: bool = False) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self._file(conversation), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                size = os.fstat(handle).st_size
                data = b"".join(encode(line) + b"\n" for line in lines)
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    data = b"\n" + data  # a write cut short by a crash: it stays its own, unreadable line
                if os.write(handle, data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if durable:
                    os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
            raise kind(f"The conversation cannot be saved: {error.strerror}.", f"Look at {self._folder}.") from error

    def _index(self) -> _Index:
        if self._known is None:
            self._known = _Index()
            with contextlib.suppress(OSError):
                self._folder.chmod(0o700)
            for file in sorted(self._folder.glob("*.jsonl")):
                self._take_in(file, self._known)
        return self._known

    def _take_in(self, file: Path, index: _Index) -> None:
        lines = list(_lines(file, events=False))
        owner = next((line["id"] for line in lines if line.get("t") == "conversation"), None)
        if not isinstance(owner, str) or self._file(owner) != file:
            return
        _note_all(index, owner, lines)
        ended = {line.get("turn") for line in lines if line.get("t") == "end"}
        asked = {line.get("id") for line in lines if line.get("t") == "turn"}
        with contextlib.suppress(OSError):
            index.summaries[owner] = replace(index.summaries[owner], updated=file.stat().st_mtime)
        if asked - ended:
            for record in _turns(_lines(file)):
                if record.state == "running":
                    with contextlib.suppress(StoreError):  # a full disk: it is closed at the next start
                        self._append(owner, [{"t": "end", "turn": record.id, "event": interrupted(record).as_json()}])


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


def _note_all(index: _Index, owner: str, lines: list[dict[str, Any]]) -> None:
    """Take a log's lines but for its events into the index."""
    for line in lines:
        kind, at = line.get("t"), float(line.get("at", 0.0))
        if kind == "conversation":
            index.summaries[owner] = Summary(owner, "", at, at, 0)
        elif kind == "turn":
            known = index.summaries.setdefault(owner, Summary(owner, "", at, at, 0))
            index.summaries[owner] = replace(
                known, title=known.title or title_of(str(line["message"])), turns=known.turns + 1, updated=at
            )
            index.turns[str(line["id"])] = owner
            index.requests[str(line["request_id"])] = str(line["id"])
        elif kind == "title" and owner in index.summaries:
            index.summaries[owner] = replace(index.summaries[owner], title=str(line["title"]))


def _lines(file: Path, *, events: bool = True) -> Iterator[dict[str, Any]]:
    """The readable lines of a log; a torn or foreign line is passed over."""
    try:
        with file.open("rb") as handle:
            for raw in handle:
                if not events and raw.startswith(b'{"t":"event"'):
                    continue
                try:
                    line = json.loads(raw)
                except (ValueError, RecursionError):
                    continue
                if isinstance(line, dict):
                    yield line
    except OSError:
        return


def _turns(lines: Iterator[dict[str, Any]]) -> list[TurnRecord]:
    turns: dict[str, TurnRecord] = {}
    events: dict[str, list[Event]] = {}
    for line in lines:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if line["t"] == "turn":
                turns[line["id"]] = TurnRecord(
                    line["id"], line["message"], line["at"], line["request_id"], tuple(line["notes"])
                )
                events[line["id"]] = []
            elif line["t"] in ("event", "end"):
                so_far = events[line["turn"]]
                if not (so_far and so_far[-1].last):
                    so_far.append(read_event(line["event"]))
    return [replace(record, events=tuple(events[record.id])) for record in turns.values()]


def as_note_text(reply: str) -> str:
    """A reply as Obsidian reads it rightly once it stands in a note.

    Line ends are "\\n", every fence is closed, and the bar of a wikilink is escaped in table rows, where it would end
    the cell. Everything else stays as it is.
    """
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    # after a blank line nothing is taken for properties; lines then count from 2
    for unit in reversed(parse("\n".join(["", *lines]), "reply.md", include_comments=True).units):
        start, end = unit.start_line - 2, unit.end_line - 1
        if unit.kind == "table":
            lines[start:end] = [_LINK.sub(lambda link: _BAR.sub(r"\\|", link[0]), line) for line in lines[start:end]]
        elif unit.kind == "fence" and (opener := _FENCE.match(lines[start])):
            container, mark = opener.groups()
            last = lines[end - 1].strip(" \t>")
            if end - start == 1 or len(last) < len(mark) or last.strip(mark[0]):
                lines.insert(end, re.sub(r"[^\s>]", " ", container) + mark)
    return "\n".join(lines)
