"""Messages that are commands, such as `/notes` and `/digest`: answered from what is kept as data, without a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, get_args

from tarsd.errors import BadRequest
from tarsd.notes import Reader
from tarsd.notes.digest import digest_rows
from tarsd.passage import NoteRow, Passage
from tarsd.query import (
    MOST_OF_PART,
    ShownRows,
    VaultQuery,
    as_markdown,
    digest_markdown,
    expressions,
    rows_query,
    task_query,
)
from tarsd.query.tasks import TaskState
from tarsd.writing.tasks import new_line

_OPTION = re.compile(r'"(?:[^"\\]|\\.)*"|(?<!\S)--([a-z]+)(?:=|\s+|$)|.', re.DOTALL)
_PLACE = re.compile(r"(?P<note>.+):(?P<line>\d{1,9})", re.DOTALL)


Usage = Callable[[], str]
"""What models took, as Markdown."""


@dataclass(frozen=True)
class Told:
    """What a command that reads the vault comes to: its text, and the passages and notes that this rests on."""

    text: str
    passages: tuple[Passage, ...]
    notes: tuple[NoteRow, ...]


@dataclass(frozen=True)
class RowsCommand:
    """A query for rows, of a base if one is named."""

    query: VaultQuery
    base: str = ""

    def told(self, reader: Reader, usage: Usage) -> Told:
        """Its rows. Raises `TarsdError`."""
        shown = reader.rows(self.query, self.base)
        return _told(as_markdown(shown), shown)


@dataclass(frozen=True)
class DigestCommand:
    """The digest of a day."""

    day: date

    def told(self, reader: Reader, usage: Usage) -> Told:
        """Its parts. Raises `TarsdError`."""
        parts = digest_rows(reader, self.day, MOST_OF_PART)
        return _told(digest_markdown(self.day, parts), *(shown for _, shown in parts))


@dataclass(frozen=True)
class UsageCommand:
    """What models took."""

    def told(self, reader: Reader, usage: Usage) -> Told:
        """Its sums."""
        return Told(usage(), (), ())


def _told(text: str, *shown: ShownRows) -> Told:
    passages = tuple(passage for one in shown for passage in one.passages if passage is not None)
    return Told(text, passages, tuple(dict.fromkeys(note for one in shown for note in one.notes)))


@dataclass(frozen=True)
class ToolCommand:
    """A tool that the person calls."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Command = RowsCommand | DigestCommand | UsageCommand | ToolCommand


def read_command(message: str, today: date) -> Command | None:
    """The command that a message is, None for any other message. Raises `BadRequest` for one that is wrong.

    A blank before the slash makes it an ordinary message.
    """
    name, _, rest = message.rstrip().partition(" ") if " " in message else (message.strip(), "", "")
    read = COMMANDS.get(name.casefold())
    return None if read is None else read(rest.strip(), today)


def _notes(text: str, today: date) -> Command:
    where, options = _options(text, "/notes", ("columns", "sort", "group", "sum", "average", "limit"))
    columns, sort, sums, averages = (
        expressions(options.get(name, "")) for name in ("columns", "sort", "sum", "average")
    )
    query = rows_query(
        where,
        columns=columns,
        sort=sort,
        group=options.get("group", ""),
        sum=sums,
        average=averages,
        limit=_limit(options),
    )
    return RowsCommand(query)


def _tasks(text: str, today: date) -> Command:
    first, _, rest = text.partition(" ")
    if first == "done":
        named = _PLACE.fullmatch(_unquoted(rest))
        if named is None:
            hint = "Give its note and line: /tasks done Inbox.md:12. To list done tasks: /tasks --done"
            raise BadRequest("No task was given.", hint)
        return ToolCommand("complete_task", {"name": named["note"].strip(), "line": int(named["line"])})
    if first == "add":
        said, options = _options(rest, "/tasks add", ("to", "heading", "due"))
        line = new_line(said, options.get("due", ""), today)
        about = {"text": line, "heading": options.get("heading", "")}
        note = _unquoted(options.get("to", ""))
        return ToolCommand("note_append", {"name": note, **about}) if note else ToolCommand("daily_note_append", about)
    states: tuple[TaskState, ...] = get_args(TaskState)
    words, options = _options(text, "/tasks", ("due", "in", "tag", "limit"), states)
    state: TaskState = next((one for one in states if one in options), "open")
    return RowsCommand(
        task_query(
            state,
            today,
            due=options.get("due", ""),
            folder=_unquoted(options.get("in", "")),
            tag=options.get("tag", ""),
            words=words,
            limit=_limit(options),
        )
    )


def _base(text: str, today: date) -> Command:
    name, options = _options(text, "/base", ("view", "this"))
    if not name:
        raise BadRequest("No base was given.", "Name a .base file, or a note with a ```base block: /base Books.base")
    view, this = (_unquoted(options.get(one, "")) for one in ("view", "this"))
    return RowsCommand(VaultQuery(view=view, this=this), _unquoted(name))


def _digest(text: str, today: date) -> Command:
    if text:
        raise BadRequest("/digest takes nothing behind it.", "Write it alone, or ask with /notes or /tasks.")
    return DigestCommand(today)


def _usage(text: str, today: date) -> Command:
    if text:
        raise BadRequest("/usage takes nothing behind it.", "For other months: tarsd usage --month 2026-10")
    return UsageCommand()


COMMANDS: Mapping[str, Callable[[str, date], Command]] = {
    "/notes": _notes, "/tasks": _tasks, "/base": _base, "/digest": _digest, "/usage": _usage,
}  # fmt: skip


def _options(
    text: str, command: str, takes: tuple[str, ...], flags: tuple[str, ...] = ()
) -> tuple[str, dict[str, str]]:
    """What stands before the first `--option`, and the options with what follows each."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for found in _OPTION.finditer(text):
        name = found[1]
        if name is None:
            parts[-1][1].append(found[0])
        elif name in flags:
            parts += [(name, []), ("", [])]
        elif name in takes:
            parts.append((name, []))
        else:
            hint = f"{command} takes {', '.join(f'--{one}' for one in (*takes, *flags))}."
            raise BadRequest(f"There is no option --{name[:40]}.", hint)
    said = " ".join(filter(None, ("".join(letters).strip() for name, letters in parts if not name)))
    options = {name: "".join(letters).strip() for name, letters in parts if name}
    for name in options.keys() & set(takes):
        if not options[name]:
            raise BadRequest(f"Nothing stands behind --{name}.", f"Write it as in: {command} --{name} …")
    return said, options


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _limit(options: Mapping[str, str]) -> int:
    said = options.get("limit", "0")
    if not said.isdecimal() or len(said) > 6:
        raise BadRequest(f"“{said[:40]}” is not a number of rows.", "Write it as in: --limit 20")
    return int(said)
