"""The HTML in a text that no reader sees: comments, and elements that are hidden. Pure, and linear in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from html import unescape
from typing import NamedTuple

from tarsd.parse.code import Code, certain

Span = tuple[int, int]

_NEVER_SHOWN = frozenset(re.findall(r"\w+", "datalist iframe noembed script style template"))
_RAW = frozenset(re.findall(r"\w+", "iframe noembed noframes script style textarea title xmp"))
"""Elements in which tags mean nothing before their own end."""
_VOID = frozenset(re.findall(r"\w+", "area base br col embed hr img input link meta param source track wbr"))
_TOKEN = re.compile(
    r"(?P<comment><!--(?:-?>)?)|(?P<note><\?|<!(?=[A-Za-z\[]))"
    r"|<(?P<slash>/?)(?P<name>[A-Za-z][A-Za-z0-9-]*)(?P<rest>(?:[\s/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*+)?)>"
)
_BLANK = re.compile(r"\n[ \t>]*(?=\r?\n|\Z)")
_ATTRIBUTE = re.compile(r"([^\s\"'<>/=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'=<>`]+)))?")
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_CSS_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?|\\(.)", re.DOTALL | re.IGNORECASE)
_HIDING = re.compile(
    r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|(?:font-size|opacity):"
    r"(?:0*\.?0+|0+\.)(?:%|[a-z]+)?|color:transparent)(?:!important)?(?:;|$)"
)


def hidden(text: str) -> list[Span]:
    """The stretches [start, end) of `text` that are not shown, in order and apart; code is always shown."""
    if "<" not in text:
        return []
    found = _tokens(text, certain(text))
    return _merged([*_elements(text, found), *((token.start, token.end) for token in found if not token.name)])


class _Token(NamedTuple):
    """`name` is "" for a comment, and begins with "/" for the end of an element."""

    start: int
    end: int
    name: str
    rest: str


def _tokens(text: str, codes: Sequence[Code]) -> list[_Token]:
    """Comments and tags outside code, in reading order."""
    found: list[_Token] = []
    starts = [code.start for code in codes]
    gone: set[str] = set()  # ends that come no more
    raw = ""
    at = 0
    while match := _TOKEN.search(text, at):
        at = match.end()
        index = bisect_right(starts, match.start()) - 1
        name = f"{match['slash']}{match['name']}".lower() if match["name"] else ""
        if raw and name != f"/{raw}":
            continue
        if index >= 0 and match.start() < codes[index].end:
            at = codes[index].end
            continue
        if name:
            found.append(_Token(match.start(), at, name, match["rest"]))
            raw = ""
            if name in _RAW and name not in gone:
                if re.compile(rf"</{name}[\s/>]", re.IGNORECASE).search(text, at):
                    raw = name
                else:
                    gone.add(name)
        elif (end := _comment_end(text, match, gone)) > at or match[0].endswith(">"):
            at = max(end, at)
            found.append(_Token(match.start(), at, "", ""))
    return found


def _comment_end(text: str, match: re.Match[str], gone: set[str]) -> int:
    """Where a comment, declaration or instruction ends; 0 for one that is only text, as it never does."""
    if match[0].endswith(">"):  # `<!-->` is a whole comment
        return match.end()
    mark = "-->" if match["comment"] else "?>" if match[0] == "<?" else ">"
    if text.startswith("<![CDATA[", match.start()):
        mark = "]]>"
    end = text.find(mark, match.end()) if mark not in gone else -1
    if end >= 0:
        return end + len(mark)
    gone.add(mark)
    return len(text) if match["comment"] else 0


def _elements(text: str, tokens: Sequence[_Token]) -> list[Span]:
    """Hidden elements from tag to tag; one without an end reaches to the next blank line."""
    ends: dict[int, int] = {}
    open_tags: dict[str, list[int]] = {}
    for start, end, name, _ in tokens:
        if name.startswith("/"):
            if waiting := open_tags.get(name[1:]):
                ends[waiting.pop()] = end
        elif name and name not in _VOID:
            open_tags.setdefault(name, []).append(start)
    found: list[Span] = []
    reached = blank = -1
    for start, end, name, rest in tokens:
        if start < reached or not name or name[0] == "/" or name in _VOID or not _is_hidden(name, rest):
            continue
        if start in ends:
            reached = ends[start]
        else:
            if blank < end:
                stop = _BLANK.search(text, end)
                blank = stop.start() if stop else len(text)
            reached = blank
        found.append((start, reached))
    return found


def _is_hidden(name: str, rest: str) -> bool:
    if name in _NEVER_SHOWN:
        return True
    for match in _ATTRIBUTE.finditer(rest):
        attribute = match[1].lower()
        if attribute == "hidden":
            return True
        if attribute == "style" and _HIDING.search(_plain_css(match[2] or match[3] or match[4] or "")):
            return True
    return False


def _plain_css(style: str) -> str:
    """A style without comments, escapes and blanks, in small letters."""
    bare = _CSS_ESCAPE.sub(
        lambda match: match[2] or chr(min(int(match[1], 16), 0x10FFFF)), _CSS_COMMENT.sub("", unescape(style))
    )
    return "".join(bare.lower().split())


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
