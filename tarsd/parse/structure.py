"""The shape of a note's body: headings, fences, tables and math blocks, by line.

Plain notes are read by an exact line scan; where Markdown is ambiguous, markdown-it decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from tarsd.parse.spans import BLOCK_TAGS, Span, spans, split

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST_HEADING = 500
"""Most characters of a heading that go with each passage below it; all of it is in the note's lines."""
PARSER_LIMIT = 1_000_000
"""Longest body in characters that markdown-it is asked about; beyond it the line scan decides alone."""

_ATX = re.compile(r"\n ?(#{1,6})(?:[ \t]+([^\n]*))?$", re.M)
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
BLOCK_ID = re.compile(r"(?:^|(?<=\s))\^([A-Za-z0-9-]+)[ \t]*$")
_ATTRIBUTE = r"""[ \t]+[a-zA-Z_:][\w.:-]*(?:[ \t]*=[ \t]*(?:[^\s"'=<>`]+|'[^'\n]*'|"[^"\n]*"))?"""
_AMBIGUOUS = re.compile(
    r"\n(?:"
    rf" {{0,3}}<(?:[!?]|/?(?:{BLOCK_TAGS}|pre|script|source|style|textarea)(?:[\s/>]|$)"  # HTML
    rf"|(?:[a-z][a-z0-9-]*(?:{_ATTRIBUTE})*[ \t]*/?|/[a-z][a-z0-9-]*[ \t]*)>[ \t]*$)"
    r"|(?<=[^\n]\n) {0,3}(?:=+|-+)[ \t]*$"  # an underline
    r"| {2,3}#{1,6}(?:[ \t]|$)"
    r"|[ \t]*\n(?: {4}| {0,3}\t)[ \t]*(?![-*+>\d\s])"  # indented code
    r")",
    re.M | re.I,
)
_TABLE_AHEAD = re.compile(r"\n[ \t>]*(?:\|[ \t]*:?-|:?-+:?[ \t]*\|)")
_DELIMITER = re.compile(r"^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$", re.M)


@dataclass(frozen=True)
class Heading:
    """A section heading; `line` and `end_line` are 1-based, and differ for an underlined one."""

    level: int
    text: str
    line: int
    end_line: int


@dataclass(frozen=True)
class Unit:
    """Lines that belong together (1-based, inclusive); `opener` and `closer` re-wrap the pieces of a fence."""

    kind: Literal["fence", "table", "math"]
    start_line: int
    end_line: int
    opener: str = ""
    closer: str = ""


@dataclass(frozen=True)
class Structure:
    """`shown`: the body's lines as a reader sees them; `prose`: without code and math too, line for line."""

    shown: list[str]
    prose: str
    headings: list[Heading]
    units: list[Unit]
    faults: list[tuple[int, str]]


def read(body_lines: Sequence[str], first: int, *, include_comments: bool) -> Structure:
    """The structure of `body_lines`, whose first one is line `first` (1-based) of the file."""
    body = "\n".join(body_lines)
    shown = prose = body
    found: list[Span] = []
    units: list[Unit] = []
    faults: list[tuple[int, str]] = []
    plain = True
    if any(mark in body for mark in ("%%", "<!--", "`", "~~~", "$$")):
        found = list(spans(body))
        line, at = first, 0
        for span in found:
            plain = plain and span.plain
            if span.kind in ("fence", "math"):
                line, at = line + body.count("\n", at, span.start), span.start
                end = line + body.count("\n", span.start, max(span.end - 1, span.start))
                kind: Literal["fence", "math"] = "fence" if span.kind == "fence" else "math"
                units.append(Unit(kind, line, end, span.opener, span.closer))
            elif span.opener:
                line, at = line + body.count("\n", at, span.start), span.start
                faults.append((line, span.opener))
        shown = _without(body, [s for s in found if s.kind == "html" or (s.kind == "comment" and not include_comments)])
        prose = _without(body, found)
    if (plain and not _AMBIGUOUS.search("\n" + prose)) or len(body) > PARSER_LIMIT:
        headings = _scan_headings(prose, first)
    else:
        outline = _without(body, [span for span in found if span.kind in ("comment", "html", "math")])
        headings, fenced, code = _parse_headings(outline, first)
        units = [unit for unit in units if unit.kind != "fence"] + fenced
        lines = prose.split("\n")
        for start, end in code:
            lines[start - first : end - first + 1] = [""] * (end - start + 1)
        prose = "\n".join(lines)
    units += _tables(prose, first)
    units.sort(key=lambda unit: unit.start_line)
    return Structure(shown.split("\n"), prose, headings, units, faults)


def _without(body: str, found: Sequence[Span]) -> str:
    parts: list[str] = []
    for span, _, part in split(body, found):
        if span is None:
            parts.append(part)
            continue
        # a backtick on either side stands for the code: what touches it is no tag, and begins no line
        mark = "`" if span.kind == "code" else ""
        lines = "\n" * part.count("\n")
        parts += (mark, lines, mark if lines else "")
    return "".join(parts)


def _scan_headings(prose: str, first: int) -> list[Heading]:
    headings: list[Heading] = []
    text = "\n" + prose
    line, at = first - 1, 0
    for match in _ATX.finditer(text):
        start = match.start() + 1
        line, at = line + text.count("\n", at, start), start
        title = match[2] or ""
        if title := heading_text(_CLOSING_HASHES.sub("", title) if "#" in title else title):
            headings.append(Heading(len(match[1]), title, line, line))
    return headings


def heading_text(source: str) -> str:
    """A heading's text without its block id and with single spaces, at most `LONGEST_HEADING` characters."""
    text = " ".join((BLOCK_ID.sub("", source.strip()) if "^" in source else source).split())
    return text[:LONGEST_HEADING].rstrip()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # most vaults' first notes never need it, and it loads slowly

    # text is taken from the source lines, so what lies deeper than maxNesting is not lost
    parser = MarkdownIt("commonmark", {"maxNesting": 60})
    parser.core.ruler.disable(["inline", "text_join"])
    return parser


def _parse_headings(outline: str, first: int) -> tuple[list[Heading], list[Unit], list[tuple[int, int]]]:
    """Headings outside quotes and lists, fences, and the (inclusive) lines of any code, as markdown-it sees them."""
    headings: list[Heading] = []
    fences: list[Unit] = []
    code: list[tuple[int, int]] = []
    lines = outline.split("\n")
    tokens = _parser().parse(outline)
    for number, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = token.map[0], max(token.map[1] - 1, token.map[0])
        if token.type == "heading_open" and token.level == 0:
            if title := heading_text(tokens[number + 1].content):
                headings.append(Heading(int(token.tag[1]), title, first + start, first + end))
        elif token.type in ("fence", "code_block"):
            while end > start and not lines[end].strip():
                end -= 1
            code.append((first + start, first + end))
            if token.type == "fence":
                opener = lines[start]
                inner = token.content.count("\n") + (token.content[-1:] not in ("", "\n"))
                closed = token.map[1] - token.map[0] - 1 > inner
                closer = lines[end] if closed else opener[: opener.index(token.markup)] + token.markup
                fences.append(Unit("fence", first + start, first + end, opener, closer))
    return headings, fences, code


def _tables(prose: str, first: int) -> list[Unit]:
    if not _TABLE_AHEAD.search(prose):
        return []
    tables: list[Unit] = []
    lines = prose.split("\n")
    after = row = at = 0
    for delimiter in _DELIMITER.finditer(prose):
        if "|" not in delimiter[0]:
            continue
        row, at = row + prose.count("\n", at, delimiter.start()), delimiter.start()
        if row <= after or "|" not in lines[row - 1]:
            continue
        after = row
        while after + 1 < len(lines) and "|" in lines[after + 1]:
            after += 1
        tables.append(Unit("table", first + row - 1, first + after))
    return tables
