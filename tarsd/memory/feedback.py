"""Replies that were wrong or good, kept with their question in corrections.md and rewards.md until a review.

Questions and replies stand there as quotes, in which nothing can pose as a heading, a comment or another entry.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from tarsd.memory import lines
from tarsd.memory.drafts import rewritten
from tarsd.memory.store import Memory
from tarsd.parse import parse
from tarsd.providers.text import cap
from tarsd.vault import content_hash, decode, encode
from tarsd.writing.changes import Change, Loaded
from tarsd.writing.edits import append, create

Verdict = Literal["good", "wrong"]

FILES: dict[Verdict, str] = {"wrong": "corrections.md", "good": "rewards.md"}
TITLES: dict[Verdict, str] = {"wrong": "Corrections", "good": "Rewards"}
MAX_QUESTION, MAX_REPLY, MAX_NOTE = 2000, 8000, 1000

_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2})\b")
_QUESTION, _REPLY, _NOTE = "**Question**", "**Reply**", "Note:"


@dataclass(frozen=True)
class FeedbackEntry:
    """One verdict as it stands in its note; `id` is made of its text, so that an entry that was edited is another."""

    id: str
    verdict: Verdict
    moment: str
    question: str
    reply: str
    note: str
    session: str
    private: bool
    block: str


def record(
    memory: Memory,
    verdict: Verdict,
    question: str,
    reply: str,
    note: str = "",
    *,
    session: str = "",
    private: bool = False,
) -> list[Change]:
    """A new entry at the end of its note, in place of earlier ones on the same reply; `note` is the person's remark.

    A remark on the same verdict stays if no other is given. The first change adds the entry. Raises Refused if it
    cannot be added.
    """
    now = memory.today()
    parts = [
        f"## {now:%Y-%m-%d %H:%M}",
        lines.comment(f"{now:%Y-%m-%d}", session, private),
        f"{_QUESTION}\n\n{_quoted(question, MAX_QUESTION)}",
        f"{_REPLY}\n\n{_quoted(reply, MAX_REPLY)}",
    ]
    wanted = _entry("\n\n".join(parts), verdict)
    earlier = [entry for entry in entries(memory) if _same_reply(entry, wanted)]
    kept = [entry.note for entry in earlier if entry.verdict == verdict and entry.note]
    words = " ".join(note.split()) or (kept[-1] if kept else "")
    if words:
        words = words if len(words) <= MAX_NOTE else words[:MAX_NOTE].rstrip() + "…"
        parts.append(" ".join(lines.harmless(f"{_NOTE} {words}").split()))
    gone = {entry.id for entry in earlier}
    added = _added(memory, verdict, "\n\n".join(parts), gone)
    return [added, *(change for change in _removed(memory, gone) if change.path != added.path)]


def _same_reply(entry: FeedbackEntry, other: FeedbackEntry) -> bool:
    return (entry.session, entry.question, entry.reply) == (other.session, other.question, other.reply)


def _added(memory: Memory, verdict: Verdict, block: str, gone: Collection[str]) -> Change:
    """The note of this verdict with the block at its end and without the entries in `gone`."""
    loaded = memory.load(FILES[verdict])
    if loaded is None:
        return create(memory.path(FILES[verdict]), f"{_head(TITLES[verdict])}{block}\n")
    text = without(loaded.text, gone, verdict)
    if not text.strip():
        return rewritten(loaded, f"{_head(TITLES[verdict])}{block}\n")
    if text == loaded.text:
        return append(loaded, block)
    rest = encode(text, loaded.encoding)
    appended = append(replace(loaded, text=text, raw=rest, hash=content_hash(rest)), block)
    return rewritten(loaded, decode(appended.after).text)


def entries(memory: Memory) -> list[FeedbackEntry]:
    """All entries that wait for a review, corrections first, oldest first. Raises what reading the notes raises.

    Those in copies that a sync tool made are among them, each once.
    """
    found: dict[str, FeedbackEntry] = {}
    for verdict, name in FILES.items():
        for note in _notes(memory, name):
            for entry in read(note.text, verdict):
                private = entry.private or (entry.id in found and found[entry.id].private)
                found[entry.id] = replace(entry, private=private)
    return list(found.values())


def _notes(memory: Memory, name: str) -> list[Loaded]:
    """The note of that name and its copies."""
    loaded = memory.load(name)
    return [*([loaded] if loaded is not None else []), *memory.copies(name)]


def archive(memory: Memory, ids: Collection[str]) -> list[Change]:
    """Move exactly these entries, as far as they are still there, to notes with a timestamp: first the copies."""
    copies: list[Change] = []
    for verdict, name in FILES.items():
        gone: dict[str, FeedbackEntry] = {}
        for note in _notes(memory, name):
            gone |= {entry.id: entry for entry in read(note.text, verdict) if entry.id in ids}
        if gone:
            body = "".join(f"{entry.block.rstrip()}\n\n" for entry in gone.values())
            private = any(entry.private for entry in gone.values())
            copies.append(archived(memory, name, TITLES[verdict], body, private))
    return [*copies, *_removed(memory, ids)]


def _removed(memory: Memory, ids: Collection[str]) -> list[Change]:
    """Each note and each copy that holds one of these entries, without them."""
    return [
        rewritten(note, without(note.text, ids, verdict))
        for verdict, name in FILES.items()
        for note in _notes(memory, name)
        if any(entry.id in ids for entry in read(note.text, verdict))
    ]


def archived(memory: Memory, name: str, title: str, body: str, private: bool) -> Change:
    """A new note in the archive folder for what was taken out of the note `name`."""
    now = memory.today()
    machine = f"-{memory.machine()}" if memory.machine() else ""
    stem = f"archive/{name.removesuffix('.md').lower()}-{now:%Y-%m-%dT%H%M%S}{machine}"
    path, number = f"{stem}.md", 1
    while memory.notebook.exists(memory.path(path)):
        number += 1
        path = f"{stem}-{number}.md"
    head = _head(f"{title}, reviewed {now:%Y-%m-%d %H:%M}", private)
    return create(memory.path(path), f"{head}{body}")


def read(text: str, verdict: Verdict) -> list[FeedbackEntry]:
    """The entries of a note, whatever else stands in it. Never raises."""
    private = lines.private_lines(text)
    return [
        replace(entry, private=entry.private or not private.isdisjoint(range(first + 1, last + 1)))
        for first, last, block in _blocks(text)
        for entry in [_entry(block, verdict)]
    ]


def is_about(entry: FeedbackEntry, question: str) -> bool:
    """Whether it is a verdict on an answer to this question."""
    rows = _quoted(question, MAX_QUESTION).split("\n")
    return entry.question == _unquoted([row[1:].removeprefix(" ") for row in rows])


def without(text: str, ids: Collection[str], verdict: Verdict) -> str:
    """The note without these entries; every other byte stays."""
    source = lines.split(text)
    for first, last, block in reversed(_blocks(text)):
        if _entry(block, verdict).id in ids:
            del source[first:last]
    return "".join(source)


def _blocks(text: str) -> list[tuple[int, int, str]]:
    """Each entry: its source lines [first, last), and their text."""
    note = parse(text, "feedback.md")
    source = lines.split(text)
    tops = [heading for heading in note.headings if heading.level <= 2]
    ends = [*(heading.line - 1 for heading in tops[1:]), len(source)]
    return [
        (heading.line - 1, end, "".join(source[heading.line - 1 : end]))
        for heading, end in zip(tops, ends, strict=False)
        if heading.level == 2 and _MOMENT.match(heading.text)
    ]


def _entry(block: str, verdict: Verdict) -> FeedbackEntry:
    parts: dict[str, list[str]] = {_QUESTION: [], _REPLY: []}
    into: list[str] | None = None
    note, mark = "", lines.Mark()
    rows = block.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for row in rows[1:]:
        if row.strip() in parts:
            into = parts[row.strip()]
        elif row.startswith(">"):
            if into is not None:
                into.append(row[1:].removeprefix(" "))
        elif row.startswith(_NOTE):
            note = row.removeprefix(_NOTE).strip()
        elif row.startswith("%%"):
            mark = mark.joined(lines.mark_of(row))
    moment = _MOMENT.search(rows[0])
    return FeedbackEntry(
        id=hashlib.sha256("\n".join(rows).strip().encode("utf-8", "replace")).hexdigest()[:12],
        verdict=verdict,
        moment=moment[0] if moment else "",
        question=_unquoted(parts[_QUESTION]),
        reply=_unquoted(parts[_REPLY]),
        note=note,
        session=mark.session,
        private=mark.private,
        block=block,
    )


def _quoted(text: str, limit: int) -> str:
    rows = lines.harmless(cap(text.replace("\r\n", "\n").replace("\r", "\n").strip(), limit)).split("\n")
    if rows[0].startswith("[!"):  # no callout, which may be folded
        rows[0] = "\\" + rows[0]
    return "\n".join(f"> {row.rstrip()}" if row.strip() else ">" for row in rows)


def _unquoted(rows: list[str]) -> str:
    text = "\n".join(rows)
    return text[1:] if text.startswith("\\[!") else text


def _head(title: str, private: bool = False) -> str:
    closed = "local_only: true\n" if private else ""
    return f"---\ntars: feedback\n{closed}---\n\n# {title}\n\n"
