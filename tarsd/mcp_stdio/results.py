"""What a tool answers: the same as data and as text, both of bounded size. Pure."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from tarsd.mcp_stdio.link import DaemonLink

MOST_BYTES = 100_000
"""No result is larger, data and text together."""

ROOM = 40_000
"""What passages, notes or lines may take of it, as data; the text repeats them in fewer bytes."""

NAME = 1_000
"""And a title, a heading, or a note's tags."""

ELLIPSIS = " […]"

PRIVATE = "Private notes are never shown here."
"""Said wherever the vault has any, whatever was asked: what depends on the question tells what is in them."""

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class ToolReply:
    """A result: `data` fits the tool's output schema, `text` says the same to a reader."""

    data: Json
    text: str


def size(value: object) -> int:
    """The bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode())


def fitting(items: Iterable[T], room: int = ROOM) -> list[T]:
    """As many items from the beginning as fit into `room` bytes as JSON."""
    kept = []
    for item in items:
        room -= size(item)
        if room < 0:
            break
        kept.append(item)
    return kept


def cut(text: str, room: int) -> tuple[str, bool]:
    """As much of a text as fits into `room` bytes as JSON, and whether something was cut off."""
    if size(text) <= room:
        return text, False
    low, high = 0, min(len(text), room)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) <= room - len(ELLIPSIS.encode()) else (low, middle - 1)
    return text[:low] + ELLIPSIS, True


# ------------------------------------------------------------------------------------------------ passages and notes


def place(hit: Mapping[str, Any]) -> str:
    """How `read_note` finds a note again: those of a collection have its name in front."""
    return f"{hit['collection']}/{hit['path']}" if hit.get("collection") else str(hit["path"])


def passage(hit: Mapping[str, Any], link: DaemonLink) -> Json:
    """Where a hit, a source or a citation of the daemon stands."""
    target = str(hit["link"])
    if target.startswith("[") and not target.startswith("[["):  # a name that no address with a heading can hold
        target = str(hit["path"])
    return {
        "path": place(hit),
        "title": name(hit["title"]),
        "heading": name(hit["heading"]),
        "start_line": hit["start_line"],
        "end_line": hit["end_line"],
        "uri": "" if hit.get("collection") else link.obsidian(target.removeprefix("[[").removesuffix("]]")),
    }


def hits(reply: Mapping[str, Any], link: DaemonLink, nothing: str) -> ToolReply:
    """The hits of a search; `nothing` is said where there are none."""
    every = [
        {
            **passage(hit, link),
            "text": cut(hit["text"], ROOM // 2)[0],
            "relevance": hit["relevance"],
            "why": fitting(hit["why"], NAME),
        }
        for hit in reply["hits"]
    ]
    shown = fitting(every)
    data = {"hits": shown, **_about(reply, len(every) - len(shown))}
    if reply.get("degraded"):
        data["degraded"] = reply["degraded"]
    parts = [counted(len(shown), "passage", "passages") + ", best first." if shown else nothing]
    if shown and max(hit["relevance"] for hit in shown) < 0.5:
        parts[0] += " No good match: the notes may not contain this. These are the closest."
    parts += [f"{number}. {_headline(hit)}\n{quoted(hit['text'])}" for number, hit in enumerate(shown, 1)]
    return ToolReply(data, "\n\n".join([*parts, *_below(data)]))


def _about(reply: Mapping[str, Any], left_out: int) -> Json:
    """What every list says of itself."""
    return {"withheld": reply["withheld"], "behind": reply["behind"], "left_out": left_out}


def _headline(hit: Mapping[str, Any]) -> str:
    where = " › ".join(dict.fromkeys(part for part in (line(hit["title"]), line(hit["heading"])) if part))
    first = f"{line(hit['path'])}:{hit['start_line']}-{hit['end_line']}  {where}"
    about = f"relevance {hit['relevance']:.2f}" + (f" ({line('; '.join(hit['why']))})" if hit["why"] else "")
    return "\n   ".join(row for row in (first, about, hit["uri"]) if row)


def notes(reply: Mapping[str, Any], link: DaemonLink) -> ToolReply:
    """A list of notes."""
    every: list[Json] = [
        {
            "path": place(note),
            "title": name(note["title"]),
            "tags": fitting(note["tags"], NAME),
            "modified": moment(note["modified"]),
            "uri": "" if note["collection"] else link.obsidian(note["path"]),
        }
        for note in reply["notes"]
    ]
    shown = fitting(every)
    data = {"notes": shown, "total": reply["total"], **_about(reply, len(every) - len(shown))}
    head = f"{len(shown)} of {counted(reply['total'], 'note', 'notes')}, most recently changed first."
    rows = "\n".join([head, *map(_row, shown)]) if shown else "There are no such notes."
    return ToolReply(data, "\n\n".join([rows, *_below(data)]))


def moment(seconds: float) -> str:
    """A time as it is here, with the zone's offset: what is of today has today's date, and no reader has to guess."""
    time.tzset()  # the system's zone may have changed
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")


def _row(note: Json) -> str:
    tags = "".join(f" #{line(tag)}" for tag in note["tags"])
    at = note["modified"]
    return f"- {at[:10]} {at[11:16]} {at[19:]}  {line(note['path'])}{tags}"


def _below(data: Mapping[str, Any]) -> list[str]:
    """What an answer has to say about itself."""
    said = []
    if data["left_out"]:
        said.append(f"{data['left_out']} more did not fit: ask for fewer, or more precisely.")
    if data["withheld"]:
        said.append(PRIVATE)
    if data["behind"]:
        said.append(
            f"The index is behind by {counted(data['behind'], 'note', 'notes')}: recent changes may be missing."
        )
    if data.get("degraded"):
        said.append(str(data["degraded"]))
    return ["\n".join(said)] if said else []


# ------------------------------------------------------------------------------------------------ rows


def rows(reply: Mapping[str, Any], link: DaemonLink) -> ToolReply:
    """The rows of a query with their total, sums and groups; the text is a table whose values stand between bars."""
    every: list[Json] = []
    for row in reply["rows"]:
        about = {key: row[key] for key in ("line", "status") if key in row}
        about |= {"text": cut(row["text"], NAME)[0]} if "text" in row else {}
        values = {
            key: value if size(value) <= NAME else cut(said(value), NAME)[0] for key, value in row["values"].items()
        }
        every.append({"path": row["path"], **about, "values": values, "uri": link.obsidian(row["path"])})
    shown = fitting(every)
    groups = [{name: group[name] for name in ("key", "count", "summaries")} for group in reply["groups"]]
    total = reply["total"]
    data = {
        "total": total,
        "rows": shown,
        "groups": fitting(groups, ROOM // 4),
        "summaries": reply["summaries"],
        "problems": fitting(reply["problems"], ROOM // 16),
        **_about(reply, total - len(shown)),
    }
    first = [f"Total: {total}." if total else "Nothing matches (total: 0).", *map(line, data["problems"])]
    first += [_sum(name, found) for name, found in data["summaries"].items()]
    for group in data["groups"]:
        sums = "".join(f"; {_sum(name, found)}" for name, found in group["summaries"].items())
        first.append(f"{line(said(group['key'])) or '(nothing)'}: {group['count']}{sums}")
    parts = ["\n".join(first)]
    if shown:
        columns = [line(column["title"]) for column in reply["columns"]]
        head = ["path:line", "text"] if "line" in shown[0] else ["path"]
        parts.append("\n".join([" | ".join([*head, *columns]), *map(_cells, shown)]))
    return ToolReply(data, "\n\n".join([*parts, *_below(data)]))


def _cells(row: Json) -> str:
    cells = [f"{row['path']}:{row['line']}" if "line" in row else row["path"]]
    if "text" in row:
        cells.append(f"[{row['status']}] {row['text']}" if "status" in row else row["text"])
    return " | ".join(line(cell) for cell in [*cells, *map(said, row["values"].values())])


def _sum(name: str, found: Mapping[str, Any]) -> str:
    skipped = f", {found['skipped']} skipped" if found["skipped"] else ""
    return f"{found['fn']} of {line(name)}: {line(said(found['value']))} (of {found['of']} values{skipped})"


def said(value: Any) -> str:
    """A value in words."""
    if isinstance(value, list):
        return ", ".join(map(said, value))
    if isinstance(value, str) or value is None:
        return value or ""
    return json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------ a note


def page(note: Mapping[str, Any], link: DaemonLink, start: int, end: int | None) -> ToolReply:
    """The lines of a note from `start` to `end` (both included, from 1), or as many of them as fit."""
    lines = note["text"].split("\n") if note["text"] else []
    last = min(len(lines), end) if end is not None else len(lines)
    shown, room, whole = list[str](), ROOM, True
    for text in lines[start - 1 : last]:
        # in the text each line has its number in front
        if (room := room - size(text) - 8) >= 0:
            shown.append(text)
            continue
        if not shown:
            text, whole = cut(text, ROOM)[0], False
            shown.append(text)
        break
    at = start - 1 + len(shown)
    properties = note["properties"] if size(note["properties"]) <= ROOM // 8 else {}
    data: Json = {
        "path": place(note),
        "title": name(note["title"]),
        "aliases": fitting(note["aliases"], ROOM // 16),
        "tags": fitting(note["tags"], ROOM // 16),
        "properties": properties,
        "uri": "" if note["collection"] else link.obsidian(note["path"]),
        "hash": note["hash"],
        "total_lines": len(lines),
        "start_line": start,
        "end_line": at if shown else 0,
        "next_line": at + 1 if at < len(lines) else None,
        "text": "\n".join(shown),
        "cut": not whole,
    }
    head = f"{data['path']}, lines {start} to {at} of {len(lines)}." if shown else f"{data['path']} is empty."
    if not whole:
        head += f" Line {at} is too long and was cut."
    if data["next_line"] is not None:
        head += f" Read on with start_line={data['next_line']}."
    numbered = [f"{number:5}| {text}" for number, text in enumerate(shown, start)]
    return ToolReply(data, "\n".join([head, *([data["uri"]] if data["uri"] else []), "", *numbered]))


# ------------------------------------------------------------------------------------------------ words


def quoted(text: str) -> str:
    """Text from the vault inside our own text: every line is marked, so that it cannot pass for ours."""
    return "\n".join(f"> {row}" for row in text.split("\n"))


def name(text: str) -> str:
    """A title or a heading: one line of bounded length, whatever is in it."""
    return cut(line(text), NAME)[0]


def line(text: str) -> str:
    """The text on one line, without what is not printed."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def counted(number: int, single: str, many: str) -> str:
    """A number with its noun."""
    return f"{number} {single if number == 1 else many}"


def listed(heading: str, rows: Sequence[str]) -> list[str]:
    """A paragraph of rows under a heading; none without rows."""
    return ["\n".join([heading, *rows])] if rows else []
