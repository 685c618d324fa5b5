"""Whatever opens and never closes is read in time that grows with the length of the text, by every scanner.

Each scanner reads many kinds of text at two lengths; what is compared are two of its own times, the best of several.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial

import pytest

from tarsd import citation, foreign
from tarsd.chat import evidence
from tarsd.chunk import chunk, embed_text
from tarsd.config import ChunkSettings
from tarsd.errors import TarsdError
from tarsd.memory import compare, feedback, lines
from tarsd.parse import access, parse
from tarsd.parse.spans import certain, comments
from tarsd.passage import NoteRow, Passage
from tarsd.providers import thinking, written_calls
from tarsd.providers.base import ToolSpec
from tarsd.providers.text import revealed, visible
from tarsd.session import markdown
from tarsd.vault import content_hash
from tarsd.words import index_text, stems_of_text
from tarsd.writing.changes import Loaded
from tarsd.writing.edits import append
from tarsd.writing.sanitize import sanitize

LONG, LONGER = 2_400, 40_000
"""Characters that every scanner reads of everything, and that it reads where it was slow once."""
TIMES = 8
"""The longer text is so many times as long as the shorter; a square makes of it 64."""
MOST = 16
LEAST_S = 0.003
"""What takes no longer than this is not compared: it is all beginnings."""

PIECES = [
    "a <!-- b\n", "<!-- \n", "<!-- x ", "<!--> ", "-->", "%% a\n", "a%%b ", "%% private ", "<!-- private", "%%\n",
    "` a", "```\na\n\n", "> ```\n\n", "- ```\n", "a `` b\n", "````\n```\n", "~~~\n", "a ~~~ ",
    "$$ a\n\n", "$$ ", "a $$ b\n", "$a ", "$$ <!-- %% ` [[ ",
    "[", "[[a", "[a](", "[a](b ", "[a](<b ", "![", "![[", "[[a|", "[[a\\|b", "[^a]: ", "](", "![a][", "[a]: b\n", "[a",
    "<", "<a ", '<a b="', "<a b='x\n", "<div hidden>\n", "<div hidden>\n\n", "<script>\n", '<p style="/*', "<? ",
    "<!A ", "<![CDATA[ ", "</", "<textarea>", "</script ", "<b a a a a\n", "\n    <a", "&#", "&amp",
    "*", "**a ", "_", "==a ", "#a", "#", "#a/", "# \n", "# a ## ", "## a\nb\n", "# a b\n## c\ntext\n", "=\n", "***\n",
    "# Excalidraw Data\n%%\n", "> ", ">" * 50 + "\n", "> [!a]\n", "- ", "- - ", "- [ ] a\n", "1. ", "1", "1) ",
    "a|b\n-|-\n", "|-|-\n", "|", "-|", "a ^b\n", "^", "\n", " ", "  \n", "\t", "\r", '"', "a. ", "(", "](a(b", "\\[",
    "a:: ", "a:: b\n", "[a:: ", "(a:: b) ", "[a:: (b ", "[a:: [[b]]] ", "- [ ] a 📅 ", "📅 ", "🔁 a ",
    "- [ ] a [due:: b]\n", "a:: [[b]], ",
    "data:a/b;", "data:a/b;a=b", "aA1", "http://a/", "](http://a(", '](http://a "', "obsidian://", "a@", "-",
    "---\n", "a: b\n", "- a\n", "  a:\n", "a: [b, [", "a: &b *b\n", "a: {{ b\n", "{{ ", "<% ", "`= a", "`$= ",
    "[1]", "[1,", "【1", "[[1] [", "[1-", "[^1] ", "[source 1, ", " · ", "%% 2026-01-01 · ", "a, ",
    "<think>", "</think>", "<|channel|>", '{"name": "a", "arguments": {', "[{", "a(b=[", "<tool_call>",
    "e\u0301", "港", "ก", "\U000e0041",
]  # fmt: skip


def _again(piece: str) -> str:
    return f"{piece[:40]!r} again and again"


def _repeated(piece: str, size: int) -> str:
    return piece * (size // len(piece))


def _until(size: int, piece: Callable[[int], str]) -> str:
    """As many pieces as have that size; each is made of its number, from 1."""
    found: list[str] = []
    while size > 0:
        found.append(piece(len(found) + 1))
        size -= max(len(found[-1]), 1)
    return "".join(found)


SHAPES: dict[str, Callable[[int], str]] = {
    "backticks, each run longer than the last": lambda size: _until(size, lambda at: "`" * at + " a "),
    "backticks, each run shorter than the last": lambda size: _until(
        size, lambda at: "`" * (int(size**0.5) - at) + " a "
    ),
    "tildes, each run longer than the last": lambda size: _until(size, lambda at: "~" * (at + 2) + "\n"),
    "dollars, each run longer than the last": lambda size: _until(size, lambda at: "$" * at + " a "),
    "brackets, each run longer than the last": lambda size: _until(size, lambda at: "[" * at + " a "),
    "items, each deeper than the last": lambda size: _until(size, lambda at: "  " * at + "- a\n"),
    "headings, each another": lambda size: _until(size, lambda at: f"## h{at}\nb\n"),
    "twin headings below others": lambda size: _until(size, lambda at: f"# h{at % 50}\n## Notes\nb\n"),
    "footnotes, each another": lambda size: _until(size, lambda at: f"[^{at}]: a\n"),
    "properties, each another": lambda size: "---\n" + _until(size, lambda at: f"k{at}: v\n") + "---\n",
    "a title and aliases": lambda size: (
        f"---\ntitle: {'a' * (size // 3)}\naliases: {'b, ' * (size // 9)}\n---\n" + "word " * (size // 15)
    ),
}
SHAPES |= {_again(piece): partial(_repeated, piece) for piece in PIECES}

SIZES = ChunkSettings()
SOURCE = Passage("x", 1, 1, note=NoteRow(path="a.md"), number=1)
TOOLS = [ToolSpec("a", "", {"type": "object", "properties": {}})]


def _embedded(text: str) -> None:
    note = parse(text, "a.md")
    for passage in chunk(note, SIZES):
        embed_text(note.title, note.aliases, passage)


def _added(text: str) -> None:
    raw = f"# H\n\n{text}".encode()
    append(Loaded("a.md", raw, raw.decode(), "utf-8", content_hash(raw)), "new", "H")


def _split(text: str) -> None:
    splitter = thinking.Splitter()
    for at in range(0, len(text), 40):
        splitter.feed(text[at : at + 40])
    splitter.end()


SCANNERS: dict[str, Callable[[str], object]] = {
    "the parser and the cutter": _embedded,
    "the parser of properties": lambda text: parse(f"---\na: {text}\nb: c\n---\nx", "a.md"),
    "the parser of boards": lambda text: parse(text, "a.canvas"),
    "what is certainly code": certain,
    "comments": lambda text: list(comments(text)),
    "what is seen": visible,
    "what is not seen": revealed,
    "who may read": lambda text: access.private_comments(f"{text} private"),
    "the sanitizer": sanitize,
    "a session note": markdown.contained,
    "citations": lambda text: citation.finish(text, [SOURCE], lambda name: False),
    "earlier citations": lambda text: citation.without_numbers(text, [SOURCE.as_source()]),
    "what is added to a note": _added,
    "lines of memory": lambda text: lines.shown(lines.read(text), local=False),
    "a line that is forgotten": lambda text: lines.insert(text, "new", "", "%% 2026-01-01 %%", "Facts"),
    "a line that is remembered": lambda text: lines.clean(text, len(text)),
    "lines compared": compare.words,
    "verdicts": lambda text: feedback.read(f"## 2026-01-01 10:00\n\n> {text}", "good"),
    "reasoning": _split,
    "written calls": lambda text: (written_calls.may_be_calls(text, TOOLS), written_calls.calls_in(text, TOOLS)),
    "what a server says": lambda text: foreign.told(text, ["some words that were sent"]),
    "what is asked": evidence.mentions,
    "words for the index": lambda text: (index_text(text), stems_of_text(text, "en")),
}


def _seconds(scan: Callable[[str], object], text: str) -> float:
    begun = time.process_time()
    with contextlib.suppress(TarsdError):
        scan(text)
    return time.process_time() - begun


def _grows_too_fast(scan: Callable[[str], object], shape: Callable[[int], str], size: int = LONG) -> bool:
    """Whether it does from the shorter text to the longer, and from that to one longer still: no step does both."""
    return _jumps(scan, shape, size) and _jumps(scan, shape, size * TIMES)


def _jumps(scan: Callable[[str], object], shape: Callable[[int], str], size: int) -> bool:
    long, short = shape(size), shape(size // TIMES)
    return not any(
        (taken := _seconds(scan, long)) < LEAST_S
        or taken < MOST * max(min(_seconds(scan, short) for _ in range(3)), LEAST_S / TIMES)
        for _ in range(4)
    )


@pytest.mark.report("https://github.com/markdown-it/markdown-it/issues/733")
@pytest.mark.report("https://github.com/garrytan/gbrain/issues/2492")
@pytest.mark.parametrize("scanner", SCANNERS)
def test_time_grows_with_the_length(scanner: str) -> None:
    scan = SCANNERS[scanner]
    assert [name for name, shape in SHAPES.items() if _grows_too_fast(scan, shape)] == []


@pytest.mark.parametrize(
    ("scanner", "shape"),
    [
        ("the sanitizer", "backticks, each run longer than the last"),
        ("the sanitizer", "backticks, each run shorter than the last"),
        ("the parser and the cutter", _again("# a ## ")),
        ("the parser and the cutter", _again("## a\nb\n")),
        ("the parser and the cutter", _again("a|b\n-|-\n")),
        ("the parser and the cutter", _again("a <!-- b\n")),
        ("the parser and the cutter", "headings, each another"),
        ("the parser and the cutter", "twin headings below others"),
        ("the parser and the cutter", "a title and aliases"),
        ("lines of memory", _again("<!--> ")),
        ("a line that is remembered", _again("- ")),
        ("written calls", _again("<tool_call>")),
    ],
)
def test_time_grows_with_the_length_of_long_texts_too(scanner: str, shape: str) -> None:
    assert not _grows_too_fast(SCANNERS[scanner], SHAPES[shape], LONGER)
