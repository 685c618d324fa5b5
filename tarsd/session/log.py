"""Conversations: one append-only JSONL log each, in a private folder; what is written here is never rewritten.

The first line names the conversation; then come turns, their events, titles, the path of its note, and summaries. A
file is named by a hash of the conversation's id, for ids come from clients. A turn without a last event was cut by a
restart and is closed as such.
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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tarsd import files
from tarsd.errors import DiskFull, NotFound, StoreError
from tarsd.files import created
from tarsd.passage import Origin
from tarsd.protocol import Event, TurnRequest, encode, read_event
from tarsd.session.record import Conversation, ConversationSummary, SummaryRecord, TurnRecord, interrupted, title_of

_PRIVATE = b'"private":true'
_TELLS_OF_NOTES = (_PRIVATE, b'"sources":', b'"drew_on":')


@dataclass
class _Index:
    """What every log says of itself, held in memory; made from the logs at first use."""

    summaries: dict[str, ConversationSummary] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)  # turn id -> conversation id
    requests: dict[str, str] = field(default_factory=dict)  # request id -> turn id
    notes: dict[str, str] = field(default_factory=dict)  # conversation id -> path of its note
    private: set[str] = field(default_factory=set)  # conversations that saw text of private notes


class Sessions:
    """All conversations of a vault. Safe to use from several threads; one process at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._known: _Index | None = None
        self._drawn: dict[str, tuple[int, frozenset[Origin]]] = {}

    # -------------------------------------------------------------------------------------------- writing

    def begin(self, turn: str, request: TurnRequest) -> None:
        """Record a question, before anything is done about it. Raises `StoreError`."""
        at = time.time()
        with self._lock:
            index = self._index()
            lines = []
            if request.conversation not in index.summaries:
                lines.append({"t": "conversation", "v": 1, "id": request.conversation, "at": at})
            lines.append(
                {
                    "t": "turn",
                    "id": turn,
                    "request_id": request.request_id,
                    "at": at,
                    "message": request.message,
                    "notes": list(request.notes),
                }
            )
            lines += [{"t": "save"}] if request.save else []
            self._append(request.conversation, lines, durable=True)

    def append(self, conversation: str, turn: str, event: Event) -> None:
        """Record an event of a turn. Raises `StoreError`."""
        with self._lock:
            kind = "end" if event.last else "event"
            self._append(conversation, [{"t": kind, "turn": turn, "event": event.as_json()}])
            summaries = self._index().summaries
            if conversation in summaries:
                summaries[conversation] = replace(summaries[conversation], updated=time.time())

    def rename(self, conversation: str, title: str) -> ConversationSummary:
        """Give a conversation another title. Raises `NotFound`, `StoreError`."""
        with self._lock:
            self._summary(conversation)
            self._append(conversation, [{"t": "title", "title": title, "at": time.time()}])
            return self._summary(conversation)

    def set_note_path(self, conversation: str, path: str) -> None:
        """Remember where in the vault the conversation's note is. Raises `NotFound`, `StoreError`."""
        with self._lock:
            self._summary(conversation)
            if self._index().notes.get(conversation) != path:
                self._append(conversation, [{"t": "note", "path": path}])

    def save(self, conversation: str) -> None:
        """Remember that the person wants a note of a conversation. Raises `NotFound`, `StoreError`."""
        with self._lock:
            if not self.load(conversation).saved:
                self._append(conversation, [{"t": "save"}], durable=True)

    def add_summary(
        self, conversation: str, upto: str, text: str, *, private: bool, unseen: Iterable[str] = ()
    ) -> SummaryRecord:
        """Record what was said up to and including the turn `upto`, but for the turns `unseen`.

        Raises `NotFound`, `StoreError`.
        """
        record = SummaryRecord(upto, text, private, time.time(), tuple(unseen))
        line = {"t": "summary", "upto": upto, "text": text, "private": private, "at": record.at}
        line |= {"unseen": record.unseen} if record.unseen else {}
        with self._lock:
            self._summary(conversation)
            self._append(conversation, [line], durable=True)
        return record

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
            index.notes.pop(conversation, None)
            index.private.discard(conversation)
            self._drawn.pop(conversation, None)
            # request ids stay known: a repeated request must not ask a deleted question again
            index.turns = {turn: owner for turn, owner in index.turns.items() if owner != conversation}

    # -------------------------------------------------------------------------------------------- reading

    def ids(self) -> list[str]:
        """The ids of all conversations."""
        with self._lock:
            return list(self._index().summaries)

    def summaries(self) -> list[ConversationSummary]:
        """All conversations, the latest first."""
        with self._lock:
            index = self._index()
            summaries = [replace(known, private=known.id in index.private) for known in index.summaries.values()]
            return sorted(summaries, key=lambda summary: summary.updated, reverse=True)

    def load(self, conversation: str) -> Conversation:
        """A conversation with everything that happened in it. Raises `NotFound`."""
        with self._lock:
            summary = self._summary(conversation)
            lines = list(_lines(self._file(conversation)))
            note = self._index().notes.get(conversation, "")
            saved = any(line.get("t") == "save" for line in lines)
            return Conversation(summary, tuple(_turns(lines)), note, _condensed(lines), self.machine, saved)

    @cached_property
    def machine(self) -> str:
        """Six hex digits that tell this machine from others with the same vault, synced; made at first use."""
        file = self._folder / "machine"
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(FileExistsError), created(file) as handle:
                handle.write(os.urandom(3).hex().encode())
            if re.fullmatch(r"[0-9a-f]{6}", kept := file.read_text("ascii", errors="replace").strip()):
                return kept
        return hashlib.sha256(str(self._folder).encode()).hexdigest()[:6]  # it cannot be kept: the same every time

    def drew_on(self, conversation: str) -> frozenset[Origin]:
        """The notes that a conversation drew on in turns that are not marked as private. Raises `NotFound`."""
        with self._lock:
            summary, file = self._summary(conversation), self._file(conversation)
            try:
                size = file.stat().st_size
            except OSError:
                size = 0
            known = self._drawn.get(conversation)
            if known is None or known[0] != size:  # a log only grows
                turns = tuple(_turns(_lines(file, events=_TELLS_OF_NOTES)))
                known = self._drawn[conversation] = (size, Conversation(summary, turns).drew_on)
            return known[1]

    def private_notes(self) -> frozenset[str]:
        """The paths of the notes of all conversations that saw private text; reads no log but at first use."""
        with self._lock:
            index = self._index()
            return frozenset(index.notes[id] for id in index.private if index.notes.get(id))

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

    def _summary(self, conversation: str) -> ConversationSummary:
        known = self._index().summaries.get(conversation)
        if known is None:
            raise NotFound("There is no such conversation.", "GET /v1/conversations lists them.")
        return known

    def _append(self, conversation: str, lines: list[dict[str, Any]], *, durable: bool = False) -> None:
        """Write lines at the end of a log, and take what they say into the index. Raises `StoreError`."""
        index = self._index()
        try:
            files.make_folder(self._folder)
            handle = files.open_private(self._file(conversation), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW)
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
            raise kind(f"The conversation cannot be saved: {error.strerror}.", f"Check {self._folder}.") from error
        _note_all(index, conversation, lines)

    def _index(self) -> _Index:
        if self._known is None:
            self._known = _Index()
            with contextlib.suppress(OSError):
                self._folder.chmod(0o700)
            for file in sorted(self._folder.glob("*.jsonl")):
                self._take_in(file, self._known)
        return self._known

    def _take_in(self, file: Path, index: _Index) -> None:
        lines = list(_lines(file, events=(_PRIVATE,)))
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


def _note_all(index: _Index, owner: str, lines: list[dict[str, Any]]) -> None:
    """Take a log's lines but for its events into the index; a foreign one is passed over."""
    for line in lines:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            _note_one(index, owner, line)


def _note_one(index: _Index, owner: str, line: dict[str, Any]) -> None:
    kind, at = line.get("t"), float(line.get("at", 0.0))
    if kind == "conversation":
        index.summaries[owner] = ConversationSummary(owner, "", at, at, 0)
    elif kind == "turn":
        known = index.summaries.setdefault(owner, ConversationSummary(owner, "", at, at, 0))
        index.summaries[owner] = replace(
            known, title=known.title or title_of(str(line["message"])), turns=known.turns + 1, updated=at
        )
        index.turns[str(line["id"])] = owner
        index.requests[str(line["request_id"])] = str(line["id"])
    elif kind == "title" and owner in index.summaries:
        index.summaries[owner] = replace(index.summaries[owner], title=str(line["title"]))
    elif kind == "note":
        index.notes[owner] = str(line.get("path", ""))
    elif kind in ("event", "end", "summary") and _saw_private(line):
        index.private.add(owner)


def _saw_private(line: dict[str, Any]) -> bool:
    if line["t"] == "summary":  # one that does not say whether it is private is taken for private
        return line.get("private") is not False
    return line["event"]["private"] is True


def _lines(file: Path, *, events: Sequence[bytes] = (b"",)) -> Iterator[dict[str, Any]]:
    """The readable lines of a log; of those of events within a turn the ones that hold any of `events`.

    A torn or foreign line is passed over.
    """
    try:
        with file.open("rb") as handle:
            for raw in handle:
                if raw.startswith(b'{"t":"event"') and not any(words in raw for words in events):
                    continue
                try:
                    line = json.loads(raw)
                except (ValueError, RecursionError):
                    continue
                if isinstance(line, dict):
                    yield line
    except OSError:
        return


def _condensed(lines: Iterable[dict[str, Any]]) -> SummaryRecord | None:
    latest = None
    for line in lines:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if line.get("t") == "summary":
                unseen = tuple(map(str, line.get("unseen") or ()))
                latest = SummaryRecord(
                    str(line["upto"]), str(line["text"]), _saw_private(line), float(line["at"]), unseen
                )
    return latest


def _turns(lines: Iterable[dict[str, Any]]) -> list[TurnRecord]:
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
