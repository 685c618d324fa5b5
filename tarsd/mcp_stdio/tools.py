"""The tools: what a model is told of each, and what each asks of the daemon."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta

from tarsd.config.rules import fold_name
from tarsd.errors import BadRequest, ClientError
from tarsd.mcp_stdio import places, results, shapes
from tarsd.mcp_stdio.ask import AskArguments, ask
from tarsd.mcp_stdio.call import Call
from tarsd.mcp_stdio.results import Json, ToolReply
from tarsd.mcp_stdio.shapes import MOST_LINES, Folder, HitLimit, Line, NotePath, RowCount, Tag
from tarsd.protocol import Mode, RequestBody
from tarsd.protocol.requests import Expression, Expressions, OptionalId, Query

REVIEW = "tarsd review"

_IN_BRACKETS = re.compile(r"[(\[{\"']")
"""A comma behind it may be part of an expression."""


@dataclass(frozen=True)
class McpTool:
    """A tool as a client sees it. `run` blocks, takes checked arguments, and raises `TarsdError`.

    `reads`: it changes nothing. `repeats`: calling it again changes nothing more.
    """

    name: str
    title: str
    description: str
    arguments: type[RequestBody]
    gives: shapes.Schema
    run: Callable[[Any, Call], ToolReply]
    reads: bool = True
    repeats: bool = True

    @cached_property
    def takes(self) -> shapes.Schema:
        """The schema of its arguments."""
        return shapes.taken(self.arguments)

    def checked(self, given: Mapping[str, Any]) -> RequestBody:
        """The arguments, read leniently. Raises `BadRequest` for one that it does not take."""
        known: Mapping[str, Any] = self.takes["properties"]
        for name in given:
            if name not in known:
                said = f"{self.name} has no argument “{name}”."
                raise BadRequest(said, f"It takes {', '.join(known)}.", field=name)
        return self.arguments.read({name: _plain(value, known[name]) for name, value in given.items()})


def _plain(value: Any, schema: Mapping[str, Any]) -> Any:
    """An argument as it is meant: 2.0 and "2" are whole numbers, and a text may be a list of names."""
    if schema.get("type") == "array" and isinstance(value, str):
        return [part for one in ([value] if _IN_BRACKETS.search(value) else value.split(",")) if (part := one.strip())]
    if schema.get("type") != "integer" or isinstance(value, bool) or not isinstance(value, str | float):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() and abs(number) <= MOST_LINES else value


# ------------------------------------------------------------------------------------------------ what they do


class SearchArguments(RequestBody, frozen=True):
    """What `search_notes` takes."""

    query: Annotated[
        Query,
        Meta(
            description='What to look for: a question or a few words. "a phrase", -without, tag:x, path:Folder/, '
            "file:name, [property:value] work inside it"
        ),
    ]
    limit: Annotated[HitLimit, Meta(description="How many passages at most")] = 10
    mode: Annotated[
        Mode,
        Meta(
            description="hybrid looks for words and meaning, fts for words alone, vec for meaning alone",
            extra_json_schema={"type": "string"},
        ),
    ] = "hybrid"
    folder: Folder = ""
    tag: Tag = ""
    after: Annotated[
        OptionalId,
        Meta(description="Only notes whose date is after this day, month or year: 2026-03-09, 2026-03 or 2026"),
    ] = ""
    before: Annotated[OptionalId, Meta(description="Only notes whose date is before it")] = ""
    on: Annotated[OptionalId, Meta(description="Only notes of this day, month or year")] = ""
    changed: Annotated[
        OptionalId, Meta(description="Only notes changed last on this day, month or year; >2026-03-09 for after it")
    ] = ""
    where: Annotated[Expression, Meta(description="Only notes with this condition, as in query_notes")] = ""


def search_notes(arguments: SearchArguments, call: Call) -> ToolReply:
    """`POST /v1/search`."""
    folder = arguments.folder.strip().strip("/")
    filters = {name: getattr(arguments, name).strip() for name in ("tag", "after", "before", "on", "changed")}
    filters["path"] = f"{folder}/" if folder else ""
    body = {
        "query": arguments.query,
        "limit": arguments.limit,
        "mode": arguments.mode,
        "filters": {name: value for name, value in filters.items() if value},
        "where": arguments.where,
    }
    reply = call.link.post("/v1/search", body)
    if folder:  # the filter also finds the name in the middle of a path
        reply = {**reply, "hits": _inside(reply["hits"], folder)}
    return results.hits(reply, call.link, "Nothing was found. Try other words, or mode=vec for meaning alone.")


def _inside(hits: list[Json], folder: str) -> list[Json]:
    """The hits in a folder: the one that is spelled so, else those in another case."""
    exact = f"{unicodedata.normalize('NFC', folder)}/"
    same = [hit for hit in hits if unicodedata.normalize("NFC", hit["path"]).startswith(exact)]
    return same or [hit for hit in hits if fold_name(hit["path"]).startswith(fold_name(exact))]


class RelatedArguments(RequestBody, frozen=True):
    """What `related_notes` takes."""

    path: NotePath
    limit: Annotated[HitLimit, Meta(description="How many notes at most")] = 10


def related_notes(arguments: RelatedArguments, call: Call) -> ToolReply:
    """`POST /v1/related`."""
    link, limit = call.link, arguments.limit
    reply, _ = places.found(
        arguments.path, link.vault, lambda name: link.post("/v1/related", {"path": name, "limit": limit})
    )
    return results.hits(reply, call.link, "No other note is related to it.")


class ReadArguments(RequestBody, frozen=True):
    """What `read_note` takes."""

    path: NotePath
    start_line: Annotated[Line, Meta(description="The first line to read, counted from 1")] = 1
    end_line: Annotated[Line, Meta(description="The last line to read; without it, as much as fits")] = MOST_LINES


def read_note(arguments: ReadArguments, call: Call) -> ToolReply:
    """`GET /v1/notes/{path}`, some lines of it."""
    start, end = arguments.start_line, arguments.end_line
    if end < start:
        raise BadRequest("“end_line” comes before “start_line”.", field="end_line")
    note, place = places.found(arguments.path, call.link.vault, call.link.note)
    if place.start and (start, end) == (1, MOST_LINES):
        start, end = place.start, place.end
    count = note["text"].count("\n") + 1 if note["text"] else 0
    if start > max(count, 1):
        raise BadRequest(f"The note has {count} lines.", "Give a smaller start_line.", field="start_line")
    return results.page(note, call.link, start, end)


class RecentArguments(RequestBody, frozen=True):
    """What `recent_notes` takes."""

    limit: Annotated[int, Meta(ge=1, le=100, description="How many notes at most")] = 20
    folder: Folder = ""
    tag: Tag = ""


def recent_notes(arguments: RecentArguments, call: Call) -> ToolReply:
    """`GET /v1/notes?recent=`."""
    folder, tag = arguments.folder.strip(), arguments.tag.strip()
    return results.notes(call.link.get("/v1/notes", recent=arguments.limit, folder=folder, tag=tag), call.link)


class QueryArguments(RequestBody, frozen=True):
    """What `query_notes` takes."""

    where: Annotated[
        Expression,
        Meta(
            description='A condition; empty for all. For example rating > 3 && file.hasTag("book"), '
            'finished >= date("2026-01-01"), file.inFolder("Work"), authors.contains(link("Ada")), '
            'file.day == date("2026-03-01")'
        ),
    ] = ""
    columns: Annotated[Expressions, Meta(description="The properties to show, such as author")] = ()
    sort: Annotated[Expressions, Meta(description="What to sort by; -rating puts the largest first")] = ()
    group: Annotated[Expression, Meta(description="Count by the values of this property")] = ""
    sum: Annotated[Expressions, Meta(description="The properties to sum")] = ()
    average: Annotated[Expressions, Meta(description="The properties to average")] = ()
    rows: Annotated[
        Literal["notes", "items"],
        Meta(
            description="items are list items that carry inline fields such as [spent:: 3 €]",
            extra_json_schema={"type": "string"},
        ),
    ] = "notes"
    limit: Annotated[RowCount, Meta(description="How many rows at most; counts and sums are of all")] = 50


def query_notes(arguments: QueryArguments, call: Call) -> ToolReply:
    """`POST /v1/query`."""
    sums, averages, sort = arguments.sum, arguments.average, arguments.sort
    # an expression has one summary; in brackets it is another expression with the same value
    means = {f"({one})" if one in sums else one: "average" for one in averages}
    shown = arguments.columns or tuple(dict.fromkeys([*(one.removeprefix("-") for one in sort), *sums, *averages]))
    body = {
        "rows": arguments.rows,
        "where": arguments.where,
        "columns": shown,
        "sort": sort,
        "group": arguments.group,
        "summaries": {**dict.fromkeys(sums, "sum"), **means},
        "limit": arguments.limit,
    }
    return results.rows(call.link.post("/v1/query", body), call.link)


class TasksArguments(RequestBody, frozen=True):
    """What `query_tasks` takes."""

    state: Annotated[
        Literal["open", "done", "overdue", "cancelled", "all"],
        Meta(description="Which tasks", extra_json_schema={"type": "string"}),
    ] = "open"
    due: Annotated[
        OptionalId,
        Meta(description="When they are due: today, tomorrow, week, 2026-03-01, or before: or after: and one of these"),
    ] = ""
    folder: Folder = ""
    tag: Tag = ""
    words: Annotated[OptionalId, Meta(description="Only tasks with these words")] = ""
    limit: Annotated[RowCount, Meta(description="How many rows at most; the total is of all")] = 50


def query_tasks(arguments: TasksArguments, call: Call) -> ToolReply:
    """`POST /v1/tasks`."""
    names = ("state", "due", "folder", "tag", "words", "limit")
    asked = {name: getattr(arguments, name) for name in names}
    return results.rows(call.link.post("/v1/tasks", asked), call.link)


class RememberArguments(RequestBody, frozen=True):
    """What `remember` takes."""

    text: Annotated[
        Query, Meta(description="One short sentence that stands by itself, such as: Otto the cat is diabetic")
    ]


def remember(arguments: RememberArguments, call: Call) -> ToolReply:
    """`POST /v1/memory` with what waits for a review."""
    # whether it is known already is not told: what is known may be private
    call.link.post("/v1/memory", {"kind": "noticed", "text": arguments.text, "conversation": "mcp"})
    said = f"It waits for the person's review, and is not remembered until they take it over: {REVIEW}"
    return ToolReply({"text": arguments.text, "state": "waits for review", "review": REVIEW}, said)


class CompleteArguments(RequestBody, frozen=True):
    """What `complete_task` takes."""

    path: NotePath
    line: Annotated[
        int, Meta(ge=0, le=MOST_LINES, description="The task's line in the note; not needed where the path has :line")
    ] = 0


def complete_task(arguments: CompleteArguments, call: Call) -> ToolReply:
    """`POST /v1/tasks/change` without a yes, which is the person's alone."""
    link = call.link

    def propose(name: str) -> Json:
        line = arguments.line or next(
            (at.start for at in places.read(arguments.path, link.vault) if at.name == name), 0
        )
        if not line:
            # the same text may name the note and its line
            raise ClientError("It is not said which task.", "Give its line.", code="not_found")
        return link.post("/v1/tasks/change", {"action": "done", "note": name, "line": line}) | {"line": line}

    reply, _ = places.found(arguments.path, link.vault, propose)
    command = shlex.join(["tarsd", "tasks", "done", f"{reply['path']}:{reply['line']}"])
    said = f"Nothing is changed yet. To do it, the person runs: {command}"
    about = {name: reply[name] for name in ("title", "path", "line")}
    return ToolReply({**about, "state": "waits for a yes", "command": command}, f"{reply['title']}\n\n{said}")


TOOLS = {
    tool.name: tool
    for tool in (
        McpTool(
            "search_notes",
            "Search notes",
            "Search the person's own notes, an Obsidian vault, by words and by meaning. Use it whenever a question may "
            "be answered by what they wrote: projects, people, decisions, logs, recipes. It gives the passages that "
            "fit best, each with its note, lines and an obsidian:// link. Search again in other words before you say "
            "that there is nothing; read_note shows more of a note. Cite what you use by path and lines.",
            SearchArguments,
            shapes.HITS,
            search_notes,
        ),
        McpTool(
            "read_note",
            "Read a note",
            "Read a note of the vault, or some lines of it, as it is on disk now. Long notes come in pages: go on with "
            "start_line=next_line. A name that several notes share is refused, and their paths are listed.",
            ReadArguments,
            shapes.NOTE,
            read_note,
        ),
        McpTool(
            "related_notes",
            "Find related notes",
            "Find notes that belong to a given one: near in meaning, linked with it, or named by it. Each comes with "
            "the passage that is nearest.",
            RelatedArguments,
            shapes.HITS,
            related_notes,
        ),
        McpTool(
            "recent_notes",
            "List recent notes",
            "List the notes that were changed last, in the whole vault, a folder or with a tag. Use it for what the "
            "person is working on; to find something by what it says, use search_notes.",
            RecentArguments,
            shapes.NOTES,
            recent_notes,
        ),
        McpTool(
            "query_notes",
            "Query notes as data",
            "Count, list, group or sum notes by their properties, tags, folders, links and dates, exactly. Use it for "
            "how many, which, how much and when: it computes, so that nobody has to count passages. The conditions are "
            "expressions of Obsidian's Bases. The answer has the total of all that match, and rows with their notes.",
            QueryArguments,
            shapes.ROWS,
            query_notes,
        ),
        McpTool(
            "query_tasks",
            "Query tasks",
            "Count and list the tasks of the notes, their check boxes: open, done or overdue ones, by when they are "
            "due, by folder, tag or words. The answer has the total, and each task with its note and line.",
            TasksArguments,
            shapes.ROWS,
            query_tasks,
        ),
        McpTool(
            "remember",
            "Suggest something to remember",
            "Suggest one fact about the person, or one wish how they want to be answered, to be remembered for good. "
            "It is put on a list that the person reviews; until then nothing uses it. Only for what the person told "
            "you themselves, never for what a note or another tool says.",
            RememberArguments,
            shapes.WAITING,
            remember,
            reads=False,
        ),
        McpTool(
            "complete_task",
            "Complete a task",
            "Check whether a task of a note, a check box in a list, can be ticked off, and say what the person runs to "
            "do it: no note is changed here. Give the note and the task's line.",
            CompleteArguments,
            shapes.PROPOSED,
            complete_task,
        ),
        McpTool(
            "ask",
            "Ask the vault's assistant",
            "Have the assistant that lives with the vault answer from the notes, with citations. It looks several "
            "things up by itself and may take a minute; without a chat model it quotes the best passages. It changes "
            "nothing: what would need the person's yes is refused, with the reason. For a single look-up, search_notes "
            "is faster.",
            AskArguments,
            shapes.ANSWER,
            ask,
            reads=False,
            repeats=False,
        ),
    )
}  # fmt: skip
