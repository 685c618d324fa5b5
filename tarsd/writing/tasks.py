"""A task's line once it is done, with the one that comes next where it recurs; and a new task's line. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from tarsd.errors import BadRequest, NotFound, Refused
from tarsd.parse import Note, Task, parse
from tarsd.parse.facts import masked
from tarsd.parse.fields import Field, fields_of
from tarsd.parse.structure import BLOCK_ID
from tarsd.parse.tasks import DATES, FIELDS, SIGN, iso_day
from tarsd.writing.changes import Change, Loaded
from tarsd.writing.edits import replace_lines
from tarsd.writing.recurrence import read_rule

_BOX = re.compile(r"(?P<before>[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)+\[)[^\[\]](?P<after>\](?:[ \t]+|$))")
_MOVED = ("due", "scheduled", "start")
"""The dates of a task that recurs, the one that counts first: the others keep their distance to it."""
_LONGEST = 2_000


@dataclass(frozen=True)
class _Mark:
    """A date or another mark in a task's text, at [start, end): what it says, and how it is written."""

    name: str
    start: int
    end: int
    text: str
    value: str = ""

    def dated(self, day: str) -> str:
        """The mark with another day."""
        head, _, tail = self.text.rpartition(self.value)
        return f"{head}{day}{tail}"


def complete(note: Loaded, line: int, today: date) -> Change:
    """The task at this line (1-based) done today: ticked, with the day in the form that the line uses; above it the
    task that comes next, if it recurs.

    Raises NotFound where there is no task, Refused for one that is done or recurs by a rule that is not known.
    """
    task, source = task_at(parse(note.text, note.path), note, line)
    if task.is_done:
        raise Refused(f"The task at line {line} of {note.path} is already done.")
    if task.is_cancelled:
        raise Refused(f"The task at line {line} of {note.path} is cancelled.", "Open it again in the note first.")
    after = _next_line(task, source, today) if task.recurrence else None
    done = _done_line(source, today)
    return replace_lines(note, line, [done] if after is None else [after, done])


def task_at(read: Note, note: Loaded, line: int) -> tuple[Task, str]:
    """The task at a line of the note, and that line as it stands in the file. Raises NotFound."""
    task = next((task for task in read.tasks if task.line == line), None)
    if task is None:
        near = sorted(sorted((task.line for task in read.tasks), key=lambda found: abs(found - line))[:3])
        lines = (
            f"lines {', '.join(map(str, near[:-1]))} and {near[-1]}" if near[1:] else f"line {near[0] if near else 0}"
        )
        hint = f"The nearest {'tasks are' if near[1:] else 'task is'} at {lines}." if near else "It has no tasks."
        raise NotFound(f"There is no task at line {line} of {note.path}.", hint)
    return task, re.split("\r\n|\r|\n", note.text)[line - 1]


def new_line(text: str, due: str, today: date) -> str:
    """The line of a new task, due today, tomorrow, on an ISO day or "" never. Raises BadRequest for what is none."""
    said = " ".join(text.split())
    said = re.sub(r"^(?:[-*+] )?(?:\[ \] )?", "", said)
    if not said or len(said) > _LONGEST:
        raise BadRequest("Write what is to be done, in one line.", field="text")
    day = _day(due.strip().casefold(), today)
    return f"- [ ] {said}{f' 📅 {day}' if day else ''}"


def _day(due: str, today: date) -> str:
    if due in ("today", "tomorrow"):
        return (today + timedelta(days=int(due == "tomorrow"))).isoformat()
    if due and not iso_day(due):
        raise BadRequest(f"“{due}” is not a date.", "Write it as 2026-03-09, or today, or tomorrow.", field="due")
    return iso_day(due)


def _split(line: str) -> tuple[re.Match[str], str, list[_Mark]]:
    """The box at the beginning of a task's line, the text behind it, and the marks in that."""
    box = _BOX.match(line)
    if box is None:
        raise Refused("This task's line cannot be changed here.", "Change it in the note.")
    text = line[box.end() :]
    hidden = masked(line)[box.end() :]
    fields = fields_of(hidden, text)
    marks = [_of_field(field, text) for field in fields]
    for sign in SIGN.finditer(hidden):
        if not any(field.start <= sign.start() < field.end for field in fields):
            marks.append(_of_sign(sign, text))
    return box, text, sorted(marks, key=lambda mark: mark.start)


def _of_field(field: Field, text: str) -> _Mark:
    name = FIELDS.get(
        field.name.casefold(), {"dependson": "after", "oncompletion": "then"}.get(field.name.casefold(), "")
    )
    return _Mark(name, field.start, field.end, text[field.start : field.end], field.value)


def _of_sign(sign: re.Match[str], text: str) -> _Mark:
    kind = str(sign.lastgroup or "")
    name, value = "", ""
    if sign["date"]:
        name, value = DATES[sign["date"]], sign["day"] or ""
    elif sign[0].startswith("🏁"):
        name, value = "then", sign["then"]
    elif sign[0].startswith("⛔"):
        name, value = "after", sign["after"] or ""
    elif sign[0].startswith("🆔"):
        name, value = "id", sign["id"]
    else:
        name = kind
    end = sign.start() + len(sign[0].rstrip())
    return _Mark(name, sign.start(), end, text[sign.start() : end], value)


def _done_line(line: str, today: date) -> str:
    box, text, marks = _split(line)
    if any(mark.name == "then" and mark.value.casefold() == "delete" for mark in marks):
        raise Refused("This task is to be deleted once it is done (🏁 delete).", "Do that in Obsidian.")
    body = _without(text, [mark for mark in marks if mark.name in ("done", "cancelled")])
    id = BLOCK_ID.search(body)
    tail = f" ^{id[1]}" if id else ""
    body = (body[: id.start()] if id else body).rstrip()
    fields = any(mark.text[:1] in "[(" and mark.name for mark in marks)
    said = f"  [completion:: {today.isoformat()}]" if fields else f" ✅ {today.isoformat()}"
    return f"{box['before']}x{box['after']}{body}{said}{tail}"


def _next_line(task: Task, line: str, today: date) -> str:
    """The line of the task that comes next. Its reference is the due date, else the scheduled, else the start."""
    rule = read_rule(task.recurrence)
    box, text, marks = _split(line)
    if bad := next((mark.name for mark in marks if mark.name in _MOVED and not getattr(task, mark.name)), ""):
        said = f"The task recurs, but its {bad} date is invalid; nothing was changed."
        raise Refused(said, "Fix the date in the note first.")
    days = {name: date.fromisoformat(day) for name in _MOVED if (day := str(getattr(task, name)))}
    reference = next(iter(days.values()), today)
    following = rule.next(today if rule.when_done else reference)
    shifted: list[tuple[_Mark, str]] = []
    for mark in marks:
        if mark.name in days:
            try:
                moved = following + (days[mark.name] - reference)
            except OverflowError:
                raise Refused("The task would recur after the year 9999.", "Change its rule.") from None
            shifted.append((mark, mark.dated(moved.isoformat())))
        elif mark.name == "created" and mark.value:
            shifted.append((mark, mark.dated(today.isoformat())))
        elif mark.name in ("done", "cancelled", "id", "after"):
            shifted.append((mark, ""))
    body = _exchanged(text, shifted)
    id = BLOCK_ID.search(body)
    return f"{box['before']} {box['after']}{(body[: id.start()] if id else body).rstrip()}"


def _without(text: str, marks: list[_Mark]) -> str:
    return _exchanged(text, [(mark, "") for mark in marks])


def _exchanged(text: str, new: list[tuple[_Mark, str]]) -> str:
    """The text with other words in place of these marks; what goes takes the blanks before it along."""
    parts: list[str] = []
    at = 0
    for mark, said in new:
        before = text[at : mark.start]
        parts += [before if said else before.rstrip(" \t,"), said]
        at = mark.end
    return "".join((*parts, text[at:]))
