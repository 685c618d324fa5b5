"""What the tools take and give, as JSON schemas; their descriptions are written for the model that calls them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tarsd.protocol import MAX_PATH, RequestBody
from tarsd.protocol.codec import FILLED
from tarsd.protocol.requests import OptionalId

Schema = dict[str, Any]


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _count(description: str, low: int) -> Schema:
    return {"type": "integer", "description": description, "minimum": low}


def _object(properties: Schema, *optional: str) -> Schema:
    """An object with these properties, all required but the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _list(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


# ------------------------------------------------------------------------------------------------ what they take

NotePath = Annotated[
    str,
    Meta(
        max_length=4 * MAX_PATH,  # addresses are percent-encoded
        pattern=FILLED,
        description="The note: its path in the vault as other tools gave it, with :lines or without, a name, a title, "
        "an alias or a [[link]] as in Obsidian, or its obsidian:// or tarsd:// address",
    ),
]
Folder = Annotated[OptionalId, Meta(description="Only notes in this folder and below it, such as Projects/Boat")]
Tag = Annotated[OptionalId, Meta(description="Only notes with this tag or one below it, such as work/ferry")]
HitLimit = Annotated[int, Meta(ge=1, le=50)]
RowCount = Annotated[int, Meta(ge=1, le=200)]
MOST_LINES = 10**9
Line = Annotated[int, Meta(ge=1, le=MOST_LINES)]

TOLD = ("type", "description", "enum", "minimum", "maximum", "default")


def taken(arguments: type[RequestBody]) -> Schema:
    """What a tool takes; how long a text may be, and how many lines a note, is said where it is exceeded."""
    _, structs = msgspec.json.schema_components([arguments])
    schema = structs[arguments.__name__]
    properties = {
        name: {key: about[key] for key in TOLD if about.get(key) not in (None, "", [], MOST_LINES)}
        | ({"items": {"type": "string"}} if "items" in about else {})
        for name, about in schema["properties"].items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": schema["required"],
        "additionalProperties": False,
    }


# ------------------------------------------------------------------------------------------------ what they give

_PLACE: Schema = {
    "path": _text("The note's path; read_note takes it"),
    "title": _text("The note's title"),
    "heading": _text("The heading that the passage stands under, empty above the first"),
    "start_line": _count("The passage's first line in the note", 1),
    "end_line": _count("Its last line", 1),
    "uri": _text("Opens the place in Obsidian; empty for notes outside of the vault"),
}
_RELEVANCE: Schema = {
    "type": "number",
    "description": "From 0 to 1, the same in every answer: from 0.75 relevant, 0.5 fairly, 0.25 maybe, below that not",
}
_WITHHELD = _count("How many private notes there are, none of which is ever shown; the same in every answer", 0)
_BEHIND = _count("How many notes changed and are not indexed yet: above 0, the latest may be missing", 0)
_LEFT_OUT = _count("How many more there are that did not fit into this answer", 0)

HITS = _object(
    {
        "hits": _list(
            _object(
                {
                    **_PLACE,
                    "text": _text("The passage, as it stands in the note"),
                    "relevance": _RELEVANCE,
                    "why": _list({"type": "string"}, "Why it was found, most telling first"),
                }
            ),
            "Passages, best first",
        ),
        "withheld": _WITHHELD,
        "behind": _BEHIND,
        "left_out": _LEFT_OUT,
        "degraded": _text("What of the search did not work, if anything did not"),
    },
    "degraded",
)

NOTE = _object(
    {
        "path": _text("The note's path"),
        "title": _text("Its title"),
        "aliases": _list({"type": "string"}, "Other names of it"),
        "tags": _list({"type": "string"}, "Its tags"),
        "properties": {"type": "object", "description": "Its properties; empty if they are too long to be shown here"},
        "uri": _PLACE["uri"],
        "hash": _text("The SHA-256 of the file's bytes: another one means that the note has changed"),
        "total_lines": _count("How many lines the note has", 0),
        "start_line": _count("The first line in `text`", 1),
        "end_line": _count("The last line in `text`, 0 if there is none", 0),
        "next_line": {"type": ["integer", "null"], "description": "Read on with start_line here; null at the end"},
        "text": _text("The lines, as they stand in the note but for comments"),
        "cut": {"type": "boolean", "description": "Whether the last line was too long, and is not whole"},
    }
)

NOTES = _object(
    {
        "notes": _list(
            _object(
                {
                    "path": _PLACE["path"],
                    "title": _text("Its title"),
                    "tags": _list({"type": "string"}, "Its tags"),
                    "modified": _text("When it was last changed", format="date-time"),
                    "uri": _PLACE["uri"],
                }
            ),
            "Notes, the last changed first",
        ),
        "total": _count("How many such notes there are", 0),
        "withheld": _WITHHELD,
        "behind": _BEHIND,
        "left_out": _LEFT_OUT,
    }
)

_VALUE: Schema = {"description": "A value, or what was computed"}
_SUMS: Schema = {
    "type": "object",
    "description": "By property: fn, its value, of how many values, and how many were skipped as no numbers",
}

ROWS = _object(
    {
        "total": _count("How many match, shown or not", 0),
        "rows": _list(
            _object(
                {
                    "path": _PLACE["path"],
                    "line": _count("The line of the task or list item", 1),
                    "status": _text("The character in a task's box"),
                    "text": _text("The task's or list item's text"),
                    "values": {"type": "object", "description": "The columns' values"},
                    "uri": _PLACE["uri"],
                },
                "line",
                "status",
                "text",
            ),
            "The rows",
        ),
        "groups": _list(_object({"key": _VALUE, "count": _count("Its rows", 0), "summaries": _SUMS}), "The groups"),
        "summaries": _SUMS,
        "problems": _list({"type": "string"}, "What of the query is doubtful, such as a property that no note has"),
        "withheld": _WITHHELD,
        "behind": _BEHIND,
        "left_out": _LEFT_OUT,
    }
)

WAITING = _object(
    {
        "text": _text("What is to be remembered"),
        "state": _text("Where it is", enum=["waits for review"]),
        "review": _text("What the person runs to take it over"),
    }
)

PROPOSED = _object(
    {
        "title": _text("What would be done"),
        "path": _text("The note"),
        "line": _count("The task's line", 1),
        "state": _text("How it stands", enum=["waits for a yes"]),
        "command": _text("What the person runs to do it"),
    }
)

ANSWER = _object(
    {
        "answer": _text("The answer; [1] stands after what citation 1 supports"),
        "conversation": _text("Pass it on to ask again in the same conversation"),
        "citations": _list(
            _object({"n": _count("Its number in the answer", 1), **_PLACE}), "The passages that are cited"
        ),
        "sources": _list(_object({**_PLACE, "relevance": _RELEVANCE}), "All passages that the answer was made from"),
        "notices": _list({"type": "string"}, "What the answer has to say about itself"),
        "refused": _list(
            _object({"tool": _text("The tool"), "reason": _text("Why it was not called")}),
            "What was to be changed or sent, and was not: it needs the person's yes",
        ),
        "withheld": _WITHHELD,
        "behind": _BEHIND,
        "model": _text("What answered; extractive quotes passages and is no model"),
        "stopped": {"type": "boolean", "description": "Whether somebody stopped the answer before its end"},
        "cut": {"type": "boolean", "description": "Whether the answer was too long, and is not whole"},
    }
)
