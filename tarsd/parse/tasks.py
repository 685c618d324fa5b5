"""The tasks of a note: check boxes in lists, with their dates and marks in the forms of Tasks and of Dataview. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from tarsd.parse import inline
from tarsd.parse.fields import Field, without

DATES = {
    "📅": "due", "📆": "due", "🗓": "due", "⏳": "scheduled", "⌛": "scheduled", "🛫": "start", "➕": "created",
    "✅": "done", "❌": "cancelled",
}  # fmt: skip
"""The signs of the Tasks plugin before dates."""
PRIORITIES = {"🔺": "highest", "⏫": "high", "🔼": "medium", "🔽": "low", "⏬": "lowest"}
FIELDS = {
    "due": "due", "scheduled": "scheduled", "start": "start", "created": "created", "completion": "done",
    "done": "done", "cancelled": "cancelled", "priority": "priority", "repeat": "recurrence",
    "recurrence": "recurrence", "id": "id",
}  # fmt: skip
"""The names of inline fields that say the same."""

_DAY = r"[ \t]*(?P<day>\d{4}-\d{1,2}-\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4})(?!\d)"
SIGN = re.compile(
    rf"(?P<date>[{''.join(DATES)}])\ufe0f?(?:{_DAY})?"
    rf"|(?P<priority>[{''.join(PRIORITIES)}])\ufe0f?"
    r"|🔁\ufe0f?[ \t]*(?P<rule>[A-Za-z0-9, !]*)"
    r"|🆔\ufe0f?[ \t]*(?P<id>[A-Za-z0-9_-]*)"
    r"|⛔\ufe0f?[ \t]*(?P<after>[A-Za-z0-9_-]+(?:[ \t]*,[ \t]*[A-Za-z0-9_-]+)*)?"
    r"|🏁\ufe0f?[ \t]*(?P<then>[A-Za-z]*)"
)
"""What the Tasks plugin writes after a task's text, wherever in the line it stands."""
_SIGNS = frozenset("🔁🆔⛔🏁").union(DATES, PRIORITIES)
_LEFT_COMMAS = re.compile(r"(?:[ \t]*,)+[ \t]*$|(?<=,)(?:[ \t]*,)+")
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY_FIRST = re.compile(r"(\d{1,2})\. ?(\d{1,2})\. ?(\d{4})")
_WAIT = {"due", "scheduled", "start"}
"""Dates that a task waits for: one that cannot be read is missed."""


@dataclass(frozen=True, slots=True)
class Task:
    """A list item with a check box; `line` is 1-based, `parent` the line of the task or list item above it, 0 if none.

    `status` is the character between the brackets. `text` is without marks, dates and fields; days are ISO, "" where
    there is none or no calendar has it; `priority` is highest, high, medium, low, lowest or "". `fields` are the
    other inline fields of the line, by their names as written, and dates that are none.
    """

    line: int
    status: str
    text: str
    heading: str = ""
    parent: int = 0
    due: str = ""
    scheduled: str = ""
    start: str = ""
    created: str = ""
    done: str = ""
    cancelled: str = ""
    priority: str = ""
    recurrence: str = ""
    id: str = ""
    tags: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.status in (" ", "/")

    @property
    def is_done(self) -> bool:
        return self.status in ("x", "X")

    @property
    def is_cancelled(self) -> bool:
        return self.status == "-"


@dataclass
class Marks:
    """What a task's line says beside its text; `faults` are what is said of dates that are none."""

    text: str = ""
    known: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def put(self, name: str, value: str, key: str) -> None:
        """Takes a value as the task's `key` if it can be that, else as a field; the first one counts."""
        if key in DATES.values():
            day = iso_day(value)
            if not day:
                self.others.setdefault(name, value)
                self.faults.append(f"The {key} date {value[:40]!r} of this task is not a date.")
                return
            value = day
        elif key == "priority" and value.casefold() not in PRIORITIES.values():
            self.others.setdefault(name, value)
            return
        self.known.setdefault(key, value.casefold() if key == "priority" else value)


def marks_of(line: str, text: str, fields: Sequence[Field]) -> Marks:
    """What a task's line says: `line` is without code and without what comes before its text, `text` is the same with
    the code in it; `fields` are the inline fields of it."""
    marks = Marks()
    for found in fields:
        key = FIELDS.get(found.name.casefold(), "")
        if found.value:
            marks.put(found.name, found.value, key) if key else marks.others.setdefault(found.name, found.value)
    cuts = [*fields]
    if not _SIGNS.isdisjoint(line):
        outside = _blanked(line, fields)
        for sign in SIGN.finditer(outside):
            cuts.append(Field("", "", sign.start(), sign.end()))
            _read_sign(sign, outside, marks)
        cuts.sort(key=lambda cut: cut.start)
    whole = len(fields) == 1 and not text[: fields[0].start].strip() and fields[0].end == len(line)
    marks.text = " ".join(text.split()) if whole and len(cuts) == 1 else without(text, cuts)
    if cuts and "," in marks.text:
        marks.text = _LEFT_COMMAS.sub("", marks.text)
    return marks


def _blanked(line: str, fields: Sequence[Field]) -> str:
    """The line with blanks in place of its fields."""
    parts: list[str] = []
    at = 0
    for one in fields:
        parts += (line[at : one.start], " " * (one.end - one.start))
        at = one.end
    return "".join((*parts, line[at:]))


def _read_sign(sign: re.Match[str], line: str, marks: Marks) -> None:
    if sign["date"]:
        name = DATES[sign["date"]]
        if sign["day"]:
            marks.put(name, sign["day"], name)
        elif name in _WAIT and name not in marks.known:
            rest = " ".join(line[sign.end() : sign.end() + 100].split())[:40]
            marks.faults.append(f"The {name} date of this task cannot be read: {rest!r}.")
    elif sign["priority"]:
        marks.put("priority", PRIORITIES[sign["priority"]], "priority")
    elif sign["rule"]:
        marks.put("recurrence", sign["rule"].strip(), "recurrence")
    elif sign["id"]:
        marks.put("id", sign["id"], "id")
    elif sign["after"]:
        marks.others.setdefault("dependsOn", sign["after"])


def iso_day(text: str) -> str:
    """The day of 2026-03-09 or 9.3.2026 as YYYY-MM-DD, "" if no calendar has it; a time behind it says nothing."""
    said = text.strip()
    match = _ISO.fullmatch(said.partition("T")[0].partition(" ")[0])
    numbers = match.groups() if match else ()
    if not match and (match := _DAY_FIRST.fullmatch(said)):
        numbers = match.groups()[::-1]
    try:
        return date(*map(int, numbers)).isoformat() if numbers else ""
    except ValueError:
        return ""


def task_of(line: int, status: str, marks: Marks, masked: str, *, heading: str, parent: int) -> Task:
    """The task of a line; `masked` is its text without code."""
    return Task(
        line,
        status,
        marks.text,
        heading,
        parent,
        **{name: marks.known.get(name, "") for name in _KNOWN},
        tags=tuple(dict.fromkeys(inline.tags(masked))),
        fields=marks.others,
    )


_KNOWN = (*dict.fromkeys(DATES.values()), "priority", "recurrence", "id")
