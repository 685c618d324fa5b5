"""Text of a file → `Note`: properties, title, aliases, headings, links, tags, blocks. Pure; nothing is evaluated.

Structure is read from the source, and text stays the source's own lines, so that nothing visible can vanish.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from tarsd.parse import boards, facts, inline, properties, structure
from tarsd.parse.fields import Fact, Item
from tarsd.parse.inline import Block, Link
from tarsd.parse.properties import JSON
from tarsd.parse.structure import Heading, Unit
from tarsd.parse.tasks import Task
from tarsd.parse.visibility import readable

__all__ = [
    "JSON", "Block", "Fact", "Heading", "Item", "Link", "MemoryType", "Note", "Problem", "Task", "Unit", "parse",
]  # fmt: skip

MemoryType = Literal["semantic", "procedural", "episodic"]

OURS = "tars"
"""The property that marks the notes which the daemon writes; its value says which kind of note it is."""

_MEMORY: dict[str, MemoryType] = {
    "memory": "semantic",
    "semantic": "semantic",
    "procedural": "procedural",
    "rules": "procedural",
    "summary": "episodic",
    "episodic": "episodic",
}


@dataclass(frozen=True)
class Problem:
    """Something in the file that could not be read as it was meant; `line` is 1-based."""

    line: int
    reason: str
    hint: str


@dataclass(frozen=True, kw_only=True)
class Note:
    """What a file says.

    `lines[i]` is the file's line `i + 1`, blank where it is hidden; the cards of a canvas are several lines in one.
    The body begins at line `body_line`; of the properties above it, what there is to read is in `lines` too, and
    `property_text` is what else a search may ask for. `ours` marks notes that the daemon wrote, wherever they lie now;
    these have no `facts`, `items` and `tasks`.
    """

    path: str
    title: str
    explicit_title: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    properties: dict[str, JSON] = field(default_factory=dict)
    property_text: str = ""
    headings: tuple[Heading, ...] = ()
    links: tuple[Link, ...] = ()
    blocks: tuple[Block, ...] = ()
    units: tuple[Unit, ...] = ()
    facts: tuple[Fact, ...] = ()
    items: tuple[Item, ...] = ()
    tasks: tuple[Task, ...] = ()
    problems: tuple[Problem, ...] = ()
    lines: tuple[str, ...]
    body_line: int = 1
    ours: bool = False
    memory_type: MemoryType | None = None


def parse(text: str, path: str, *, include_comments: bool = False) -> Note:
    """The note that `text` is; `path` ('/'-separated) gives its name and its kind (`.md`, `.canvas`, `.base`).

    Never raises for any text: what cannot be read is a `Problem`, and the rest stays.
    """
    lines = source_lines(text)
    kind = path.lower()
    if kind.endswith(".canvas"):
        return _canvas(lines, path)
    if kind.endswith(".base"):
        return Note(path=path, title=_name(path), lines=("",) * len(lines))
    return _markdown(lines, path, include_comments)


def source_lines(text: str) -> list[str]:
    """The lines as an editor counts them, without what no reader sees in them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")
    lines = readable(text).split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def _markdown(lines: list[str], path: str, include_comments: bool) -> Note:
    block = properties.read(lines)
    body = lines[block.end :]
    if "excalidraw-plugin" in block.values or path.endswith(".excalidraw.md"):
        body = boards.drawing_text(body)
    first = block.end + 1
    shape = structure.read(body, first, include_comments=include_comments)
    shown = shape.shown
    blocks = inline.blocks(shown, first, shape.units, shape.headings)
    own_links = inline.links("\n".join(lines[1 : block.end - 1]), 2) if block.end else []
    kind = block.values.get(OURS)
    data = facts.Data() if OURS in block.values else facts.read(block, shape, shown, first)
    return Note(
        path=path,
        title=block.title or _name(path),
        lines=(*(("",) * block.end if OURS in block.values else block.lines), *shown),
        explicit_title=block.title,
        aliases=block.aliases,
        tags=_distinct([*block.tags, *inline.tags(shape.prose)]),
        properties=block.values,
        property_text=block.text,
        headings=tuple(shape.headings),
        links=(*own_links, *inline.links(shape.prose, first)),
        blocks=tuple(blocks),
        units=tuple(shape.units),
        facts=tuple(data.facts),
        items=tuple(data.items),
        tasks=tuple(data.tasks),
        problems=(
            *(Problem(line, reason, properties.HINT) for line, reason in block.faults),
            *(Problem(line, reason, "Close it or remove the mark.") for line, reason in shape.faults),
            *(Problem(line, reason, facts.HINT) for line, reason in data.faults),
        ),
        body_line=first,
        ours=OURS in block.values,
        memory_type=_MEMORY.get(kind.casefold()) if isinstance(kind, str) else None,
    )


def _canvas(lines: list[str], path: str) -> Note:
    board = boards.canvas(lines)
    links: list[Link] = []
    tags: list[str] = []
    for index, text in enumerate(board.lines):
        if text:
            shape = structure.read(text.split("\n"), 1, include_comments=False)
            links += inline.links(shape.prose, index + 1, one_line=True)
            tags += inline.tags(shape.prose)
            board.lines[index] = "\n".join(shape.shown)
    links += [Link(target, "", "", "", line, True) for line, target in board.files]
    problems = tuple(Problem(line, reason, "Open it in Obsidian, or fix the JSON.") for line, reason in board.faults)
    return Note(
        path=path,
        title=_name(path),
        lines=tuple(board.lines),
        links=tuple(links),
        tags=_distinct(tags),
        problems=problems,
    )


def _name(path: str) -> str:
    return PurePosixPath(path).stem.removesuffix(".excalidraw")


def _distinct(tags: list[str]) -> tuple[str, ...]:
    """The tags once each, as first written: Obsidian's tags ignore case."""
    seen: dict[str, str] = {}
    for tag in tags:
        seen.setdefault(tag.casefold(), tag)
    return tuple(seen.values())
