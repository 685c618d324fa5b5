"""Links, tags, block ids and addresses in the text of a note."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from tarsd.parse.structure import BLOCK_ID, Heading, Unit
from tarsd.words import SPACELESS

WIKILINK = re.compile(r"(?P<embed>!?)\[\[(?=[^\[\]\n])(?P<target>[^\[\]|\n]*?)(?:\\?\|(?P<text>[^\[\]\n]*))?\]\]")
"""A link or an embed; in a table's cell the bar has a backslash before it. `target` may name a place in the note."""
_SIZE = re.compile(r"\d+(?:x\d+)?")
_MARKDOWN_LINK = re.compile(
    r"\]\((?![a-zA-Z][a-zA-Z0-9+.-]*:|//)[ \t]*"
    r"(<[^<>\n]+>|[^\s()<>]+(?:\([^\s()]*\)[^\s()]*)*)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?[ \t]*\)"
)
_TAG = re.compile(
    r"#([^\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020"
    r"'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\s，。！？；：、]+)"
)
_BRACKET = re.compile(r"[\[\]]")
_LINK_TEXT = 1000
"""The longest text of a link, in characters."""
_LIST_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_SCHEME = r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}:/"
_ADDRESS = re.compile(rf"\]\(<?{_SCHEME}/?[^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:[ \t]+\"[^\"\n]*\"|[ \t]+'[^'\n]*')?\)")
_IN_ADDRESS = (
    r"(?:[!-(*-=?-\\^-~]|"
    # in a script without blanks, only what follows a mark of addresses is one
    rf"(?![{SPACELESS}])[^\x00-\x7f\s\u2014\u201c\u201d\u2018\u2019\u00ab\u00bb\u3000-\u303f\uff00-\uffef]|"
    rf"(?<=[/=&?#_.~+:%;,\-…{SPACELESS}])[{SPACELESS}])"
)
_LONG_ADDRESS = re.compile(
    rf"({_SCHEME}/(?:(?![/?#]){_IN_ADDRESS}){{0,255}}(?:[/?#](?:(?!/){_IN_ADDRESS}){{0,30}})?){_IN_ADDRESS}*"
)
"""An address as it stands in a text, encoded or not: its server and the beginning of its path, and all the rest."""


@dataclass(frozen=True)
class Link:
    """A wikilink, embed or Markdown link to a note; `target` is the literal file part, "" for the same note.

    `text` is the text shown for it where that differs from the target; `line` is 1-based.
    """

    target: str
    heading: str
    block: str
    text: str
    line: int
    embed: bool


@dataclass(frozen=True)
class Block:
    """A block id and the 1-based, inclusive lines it names."""

    id: str
    start_line: int
    end_line: int


def links(text: str, first: int, *, one_line: bool = False) -> list[Link]:
    """Every link of `text` to a note or file of the vault, in reading order.

    Its first line is line `first` of the file, and with `one_line` so is every other.
    """
    found: list[tuple[int, Link]] = []
    line, at = first, 0
    for match in WIKILINK.finditer(text) if "[[" in text else ():
        start = match.end("embed")
        if not one_line:
            line, at = line + text.count("\n", at, start), start
        target = match["target"].partition("#")
        found.append((start, _link(target[0], target[2], match["text"] or "", line, embed=bool(match["embed"]))))
    line, at = first, 0
    opened = _brackets(text) if "](" in text else {}
    for match in _MARKDOWN_LINK.finditer(text) if "](" in text else ():
        opening = opened.get(match.start(), -1)
        if opening < 0:
            continue
        if not one_line:  # links in the text of a link go back
            line, at = line + text.count("\n", at, opening) - text.count("\n", opening, at), opening
        embed = opening > 0 and text[opening - 1] == "!"
        target = match[1].strip("<>").partition("#")  # a sign that is encoded belongs to the name
        name, place = unquote(target[0], errors="replace"), unquote(target[2], errors="replace")
        found.append((opening, _link(name, place, text[opening + 1 : match.start()], line, embed=embed)))
    found.sort(key=lambda item: item[0])
    return [link for _, link in found]


def name_and_place(target: str) -> tuple[str, str]:
    """The note that a link's `target` names as people and models write it, and the `Heading` or `^block` in it."""
    at = next((index for index, char in enumerate(target) if char in "#^"), len(target))
    return target[:at].strip(), target[at:].removeprefix("#").strip()


def _link(name: str, place: str, text: str, line: int, *, embed: bool) -> Link:
    block = ""
    if place.lstrip().startswith("^"):
        place, block = "", place.strip().removeprefix("^")
    elif "#^" in place:
        place, _, block = place.partition("#^")
    shown = " ".join(text.split())
    if embed and _SIZE.fullmatch(shown):
        shown = ""
    return Link(name.strip(), place.strip(), block.strip(), shown, line, embed)


def _brackets(text: str) -> dict[int, int]:
    """Where each `]` stands that closes a `[`, and where that one stands, if a link's text can lie between."""
    waiting: list[int] = []
    found: dict[int, int] = {}
    for match in _BRACKET.finditer(text):
        at = match.start()
        if match[0] == "[":
            waiting.append(at)
        elif waiting and at - (opening := waiting.pop()) < _LINK_TEXT:
            found[at] = opening
    return found


def tags(text: str) -> Iterator[str]:
    """The tags in the text, without `#`: at the start of a word, and not only digits."""
    if "#" not in text:
        return
    for match in _TAG.finditer(text):
        if (start := match.start()) and not text[start - 1].isspace():
            continue
        tag = match[1].strip("/")
        if tag and not tag.isdigit():
            yield tag


def blocks(lines: list[str], first: int, units: Sequence[Unit], headings: Sequence[Heading]) -> list[Block]:
    """The block ids of `lines`, each taken out of its line; `lines` begin at line `first`."""
    code: set[int] | None = None
    found: list[Block] = []
    starts: dict[int, int] = {}  # by the last line of a block that was met
    ends = (-1, -1)  # a line that is blank without its id, and the last line above it that is not
    for index, line in enumerate(lines):
        if "^" not in line:
            continue
        if code is None:
            code = {n - first for u in units if u.kind != "table" for n in range(u.start_line, u.end_line + 1)}
            heads = {heading.line - first for heading in headings}
        match = BLOCK_ID.search(line)
        if not match or index in code:
            continue
        lines[index] = line[: match.start()].rstrip()
        end = index
        while end > 0 and not lines[end].strip(" \t>"):
            end = ends[1] if end == ends[0] else end - 1
        if end != index:
            ends = (index, end)
        if end not in starts:
            starts[end] = _block_start(lines, end, heads, starts)
        found.append(Block(match[1], first + starts[end], first + end))
    return found


def _block_start(lines: list[str], end: int, heads: set[int], starts: Mapping[int, int]) -> int:
    """The first (0-based) line of the block that ends at line `end`; `starts` are those of blocks above."""
    start = end
    quoted = lines[end].lstrip().startswith(">")
    while start > 0 and start not in heads and start - 1 not in heads:
        above = lines[start - 1]
        if not above.strip() or above.lstrip().startswith(">") != quoted:
            break
        if not quoted and _LIST_ITEM.match(lines[start]):
            break
        start -= 1
        if start in starts:
            return starts[start]
    return start


# ------------------------------------------------------------------------------------------------ addresses


def without_addresses(text: str) -> str:
    """The text as it is measured and embedded: addresses behind links and the tails of others say nothing."""
    if "://" not in text:
        return text
    return _LONG_ADDRESS.sub(r"\1", _ADDRESS.sub("]()", text))


def at_addresses(text: str, longest: int) -> list[str]:
    """The text in pieces: addresses, and what stands between; one over `longest` in pieces that begin as it does."""
    pieces: list[str] = []
    at = 0
    for found in _LONG_ADDRESS.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
        if len(found[0]) <= longest:
            pieces.append(found[0])
            continue
        head = found[1][: longest // 2]
        rest = found[0][len(head) :]
        parts = -(-len(rest) // (longest - len(head) - 1))
        step = -(-len(rest) // parts)
        pieces += [f"{head}{'…' if cut else ''}{rest[cut : cut + step]}" for cut in range(0, len(rest), step)]
    return [piece for piece in (*pieces, text[at:]) if piece]
