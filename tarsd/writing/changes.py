"""A note as it was read, and a change of it as it is planned, shown, performed and kept."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

from tarsd.errors import Conflict
from tarsd.parse import parse
from tarsd.providers.text import revealed
from tarsd.vault import content_hash, decode

Op = Literal["create", "append", "modify"]
T = TypeVar("T")

TRIES = 4

_HUNK = re.compile(r"([-+])(\d+)")
_WITH_END = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Loaded:
    """A note as it was read: `path` relative and NFC, `hash` the SHA-256 of `raw`, `text` without byte order mark."""

    path: str
    raw: bytes
    text: str
    encoding: str
    hash: str


@dataclass(frozen=True)
class Change:
    """A planned change of one note; `before` is None where there was none.

    `content` is what a client writes: the whole new text, or for "append" exactly what is added at the end. `absorbs`
    are other notes (path, SHA-256) whose text it holds as well: they go into the trash once it is made.
    """

    path: str
    op: Op
    before: bytes | None
    after: bytes
    content: str
    absorbs: tuple[tuple[str, str], ...] = ()

    @property
    def if_hash(self) -> str | None:
        """The SHA-256 of the bytes the change was planned for; None for a new note."""
        return None if self.before is None else content_hash(self.before)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the note's bytes once the change is made."""
        return content_hash(self.after)

    def diff(self, context: int = 3) -> str:
        """The change as a unified diff of the text, with `context` lines around; "" if nothing changes.

        At its end stands how many signs it adds that nobody sees.
        """
        old = [] if self.before is None else _lines(decode(self.before).text)
        new = _lines(decode(self.after).text)
        name = "/dev/null" if self.before is None else f"a/{self.path}"
        # what is alike at both ends is left out before the comparison, which takes long for long texts
        alike = _same(old, new)
        skip = max(alike - context, 0)
        tail = max(_same(old[alike:][::-1], new[alike:][::-1]) - context, 0)
        old, new = old[skip : len(old) - tail], new[skip : len(new) - tail]
        parts = []
        for line in difflib.unified_diff(old, new, name, f"b/{self.path}", n=context):
            if line.startswith("@@"):
                line = _HUNK.sub(lambda match: f"{match[1]}{int(match[2]) + skip}", line)
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
        if parts and self.unseen:
            parts.append(f"\\ {self.unseen:,} invisible sign{'' if self.unseen == 1 else 's'}, shown by number\n")
        return revealed("".join(parts))[0]

    @cached_property
    def unseen(self) -> int:
        """How many invisible characters the change adds; `diff` shows where."""
        before = "" if self.before is None else _with_newlines(decode(self.before).text)
        return max(0, revealed(_with_newlines(decode(self.after).text))[1] - revealed(before)[1])

    def is_as_shown(self, shown: Change) -> bool:
        """Whether this newly planned change equals the one that was `shown`, for the same note.

        Its lines and those around it are the same; so are the note's properties and headings, and half of its words.
        What was typed elsewhere meanwhile is no matter.
        """
        if self.before is None or shown.before is None:
            return self.before is shown.before and (self.path, self.after) == (shown.path, shown.after)
        now, then = decode(self.before).text, decode(shown.before).text
        stayed = set(then.split()) & set(now.split())
        return (
            self.path == shown.path
            and _unnumbered(self.diff()) == _unnumbered(shown.diff())
            and _frame(now, self.path) == _frame(then, self.path)
            and 2 * len(stayed) >= len(set(then.split()))
        )


def _unnumbered(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if not line.startswith("@@")]


def _frame(text: str, path: str) -> tuple[object, ...]:
    """What a note is known by beside its text."""
    note = parse(text, path)
    return note.properties, [(heading.level, heading.text) for heading in note.headings]


def _lines(text: str) -> list[str]:
    """The lines with "\\n" ends, the last one with none if it has none."""
    return _WITH_END.findall(_with_newlines(text))


def _with_newlines(text: str) -> str:
    """The text with "\n" for each line end: what ends a line is no hidden sign."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _same(old: Sequence[str], new: Sequence[str]) -> int:
    """How many items both begin with."""
    pairs = zip(old, new, strict=False)
    return next((i for i, (before, after) in enumerate(pairs) if before != after), min(len(old), len(new)))


async def until_written(
    attempt: Callable[[], Awaitable[T]],
    *,
    tries: int = TRIES,
    again: Callable[[], Awaitable[bool]] | None = None,
) -> T:
    """What `attempt` returns, which plans a change from the note as it is now and makes it; tried again on a Conflict.

    That is for a note that somebody saves at the very moment. `again` may plan anew, and says whether another try
    makes sense. Raises the last Conflict, and at once whatever else `attempt` raises.
    """
    for left in reversed(range(tries)):
        try:
            return await attempt()
        except Conflict:
            if not left or (again is not None and not await again()):
                raise
    raise AssertionError  # the last try returns or raises
