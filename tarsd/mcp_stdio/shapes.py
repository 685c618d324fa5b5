"""What the tools take and give, as JSON schemas; their descriptions are written for the model that calls them."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

MOST_HITS = 50
MOST_NOTES = 100
MODES = ("hybrid", "fts", "vec")


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _count(description: str, default: int | None, low: int, high: int | None = None) -> Schema:
    schema: Schema = {"type": "integer", "description": description, "minimum": low}
    return schema | ({"default": default} if default is not None else {}) | ({"maximum": high} if high else {})


def _object(properties: Schema, *optional: str, strict: bool = False) -> Schema:
    """An object with these properties, all required but the optional ones; `strict`: it has no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required} | (
        {"additionalProperties": False} if strict else {}
    )


def _list(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


# ------------------------------------------------------------------------------------------------ what they take

PATH = _text(
    "The note: its path in the vault as other tools gave it, or a name, a title, an alias or a [[link]] as in Obsidian"
)
FOLDER = _text("Only notes in this folder and below it, such as Projects/Boat")
TAG = _text("Only notes with this tag or one below it, such as work/ferry")

SEARCH = _object(
    {
        "query": _text(
            'What to look for: a question or a few words. "a phrase", -without, tag:x, path:Folder/, file:name, '
            "[property:value] work inside it"
        ),
        "limit": _count("How many passages at most", 10, 1, MOST_HITS),
        "mode": _text("hybrid looks for words and meaning, fts for words alone, vec for meaning alone",
                      enum=list(MODES), default="hybrid"),
        "folder": FOLDER,
        "tag": TAG,
        "after": _text("Only notes dated or changed after this day, month or year: 2026-03-09, 2026-03 or 2026"),
        "before": _text("Only notes dated or changed before it"),
    },
    "limit", "mode", "folder", "tag", "after", "before", strict=True,
)  # fmt: skip

READ = _object(
    {
        "path": PATH,
        "start_line": _count("The first line to read, counted from 1", 1, 1),
        "end_line": _count("The last line to read; without it, as much as fits", None, 1),
    },
    "start_line", "end_line", strict=True,
)  # fmt: skip

RELATED = _object({"path": PATH, "limit": _count("How many notes at most", 10, 1, MOST_HITS)}, "limit", strict=True)

RECENT = _object(
    {"limit": _count("How many notes at most", 20, 1, MOST_NOTES), "folder": FOLDER, "tag": TAG},
    "limit", "folder", "tag", strict=True,
)  # fmt: skip

REMEMBER = _object(
    {"text": _text("One short sentence that stands by itself, such as: Otto the cat is diabetic")}, strict=True
)

ASK = _object(
    {
        "question": _text("The question, in full sentences"),
        "conversation": _text("To go on with an earlier answer: the conversation that it gave"),
    },
    "conversation", strict=True,
)  # fmt: skip

# ------------------------------------------------------------------------------------------------ what they give

_PLACE: Schema = {
    "path": _text("The note's path; read_note takes it"),
    "title": _text("The note's title"),
    "heading": _text("The heading that the passage stands under, empty above the first"),
    "start_line": _count("The passage's first line in the note", None, 1),
    "end_line": _count("Its last line", None, 1),
    "uri": _text("Opens the place in Obsidian; empty for notes outside of the vault"),
}
_RELEVANCE: Schema = {
    "type": "number",
    "description": "From 0 to 1, the same in every answer: from 0.75 relevant, 0.5 fairly, 0.25 maybe, below that not",
}
_WITHHELD = _count("How many private notes there are, none of which is ever shown; the same in every answer", None, 0)
_BEHIND = _count("How many notes changed and are not indexed yet: above 0, the latest may be missing", None, 0)
_LEFT_OUT = _count("How many more there are that did not fit into this answer", None, 0)

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
        "total_lines": _count("How many lines the note has", None, 0),
        "start_line": _count("The first line in `text`", None, 1),
        "end_line": _count("The last line in `text`, 0 if there is none", None, 0),
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
        "total": _count("How many such notes there are", None, 0),
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

ANSWER = _object(
    {
        "answer": _text("The answer; [1] stands after what citation 1 supports"),
        "conversation": _text("Pass it on to ask again in the same conversation"),
        "citations": _list(
            _object({"n": _count("Its number in the answer", None, 1), **_PLACE}), "The passages that are cited"
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
