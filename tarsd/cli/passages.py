"""Shows found passages: `path:line`, where in the note it is, how relevant, the lines that matched, and why."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tarsd.cli.terminal import Terminal, clean, columns, fit, line, query_pattern

Hit = Mapping[str, Any]

LINES = 3
GOOD, WEAK = 0.5, 0.25
"""A passage below the second gets one line instead of a few, and is not shown beside one above the first."""

HEADING = re.compile(r"#{1,6} ")
BANDS = ((0.75, "relevant"), (0.5, "fairly relevant"), (0.25, "maybe relevant"), (0.0, "not relevant"))


def band(relevance: float) -> str:
    """What a relevance from 0 to 1 means in words."""
    return next((word for least, word in BANDS if relevance >= least), BANDS[-1][1])


def show(hits: list[Hit], query: str, roots: Mapping[str, Path], out: Terminal) -> list[str]:
    """The lines to print for the hits of a query."""
    pattern = query_pattern(query)
    shown: list[str] = []
    for hit in hits:
        if shown:
            shown.append("")
        shown += _hit(hit, pattern, roots, out)
    return shown


def _hit(hit: Hit, pattern: re.Pattern[str] | None, roots: Mapping[str, Path], out: Terminal) -> list[str]:
    matched, chosen = _choose(str(hit.get("text", "")), pattern)
    number = int(hit.get("start_line") or 1) + (matched if _lines_are_the_files(hit) else 0)
    relevance = float(hit.get("relevance") or 0.0)
    figure = f"{band(relevance)} {relevance:.2f}"
    paint = out.green if relevance >= 0.5 else out.yellow if relevance >= 0.25 else out.dim
    trail = fit(trail_of(hit), out.width - columns(figure) - 5)
    gap = " " * max(2, out.width - columns(trail) - columns(figure) - 2) if out.live else "  "
    shown = [place(hit, number, roots, out), f"  {out.bold(trail)}{gap}{paint(figure)}"]
    for text in chosen if relevance >= WEAK else chosen[:1]:
        match = pattern.search(text) if pattern else None
        text = fit(text, out.width - 4, match.start() if match else 0)
        shown.append("    " + (pattern.sub(lambda match: out.mark(match[0]), text) if pattern and out.colour else text))
    why = "; ".join(line(reason) for reason in hit.get("why") or [])
    if why:
        shown.append("    " + out.dim(fit(why, out.width - 4)))
    return shown


def place(hit: Hit, number: int, roots: Mapping[str, Path], out: Terminal, indent: int = 0) -> str:
    """`path:line` as an editor or terminal opens it: relative where that is below this folder, else absolute.

    Where a terminal leaves too little room after `indent` columns, the end of it; the whole is behind its link.
    """
    path, collection = str(hit.get("path", "")), str(hit.get("collection") or "")
    root = roots.get(collection)
    at = "" if _is_file(hit) else f":{number}"
    if root is None:
        return out.cyan(_tail(f"{line(f'{collection}/' if collection else '')}{line(path)}{at}", out, indent))
    full = root / path
    shown = os.path.relpath(full) if full.is_relative_to(_here()) else str(full)
    return out.link(out.cyan(_tail(f"{line(shown)}{at}", out, indent)), full)


def _tail(where: str, out: Terminal, indent: int) -> str:
    """As many of a path's last names as a line has room for; one that is too long by itself is cut before a word."""
    room = out.edge - indent
    if not out.live or columns(where) <= room:
        return where
    for apart in ("/", " "):
        for at, letter in enumerate(where):
            if letter == apart and columns(where[at:]) < room:
                return f"…{where[at:]}"
    return f"…{where[len(where) - room // 2 :]}"


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # the folder was removed under the shell
        return Path("/nowhere")


def trail_of(hit: Hit) -> str:
    """Title › heading; of a file that is no note its page."""
    title, heading = line(hit.get("title") or hit.get("path") or ""), line(hit.get("heading") or "")
    return f"{title}{', ' if _is_file(hit) else ' › '}{heading}" if heading and heading != title else title


def _is_file(hit: Hit) -> bool:
    """Whether it is of a file whose lines nobody can open."""
    return not str(hit.get("path", "")).lower().endswith((".md", ".canvas", ".base"))


def _lines_are_the_files(hit: Hit) -> bool:
    """Whether the passage's lines are those of the file, one to one."""
    return (
        len(str(hit.get("text", "")).splitlines())
        == int(hit.get("end_line") or 0) - int(hit.get("start_line") or 0) + 1
    )


def _choose(text: str, pattern: re.Pattern[str] | None) -> tuple[int, list[str]]:
    """(offset, lines): the line that matches best, by its offset in the passage, and the few lines to show with it."""
    numbered = [(offset, line(raw)) for offset, raw in enumerate(text.splitlines())]
    lines = [entry for entry in numbered if re.search(r"\w", entry[1]) and not HEADING.match(entry[1])] or numbered
    if not lines:
        return 0, []
    scores = [len({word.casefold()[:5] for word in pattern.findall(row)}) if pattern else 0 for _, row in lines]
    best = max(range(len(lines)), key=lambda at: (sum(scores[at : at + LINES]), scores[at], -at))
    first = max(0, min(best, len(lines) - LINES))
    shown = range(first, min(first + LINES, len(lines)))
    return lines[max(shown, key=lambda at: (scores[at], -at))][0], [lines[at][1] for at in shown]


def notes_below(reply: Mapping[str, Any], out: Terminal) -> list[str]:
    """What must be said about an answer: that the index is behind, or that a part of the search is down."""
    said = []
    behind = int(reply.get("behind") or 0)
    if behind:
        said.append(f"The index is behind: {behind:,} changed note{'s' * (behind != 1)} not indexed yet.")
    if reply.get("degraded"):
        said.append(clean(reply["degraded"]))
    return [out.yellow(text) for text in said]
