"""What no reader of a text sees: invisible characters, pasted data, hidden HTML. Pure, and linear in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from html import unescape

from tarsd.parse.spans import Span, certain, merged, split

INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+=-]+)*[;,][^\s)\"'<>\]]{100,}")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{1000,}={0,2}")

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


def readable(text: str) -> str:
    """The text without invisible characters, and with pasted data replaced by its type. Line breaks are "\\n"."""
    if not text.isascii():
        text = INVISIBLE.sub("", text)
    if "data:" in text:
        text = _DATA_URI.sub(r"data:\1", text)
    if len(text) >= 1000 and max(map(len, text.split("\n"))) >= 1000:
        text = _BLOB.sub(_shorten, text)
    return text


def _shorten(match: re.Match[str]) -> str:
    blob = match[0]
    # words without spaces are no data: data has all three kinds of characters, everywhere
    for piece in (blob[:300], blob[-300:]):
        kinds = sum(map(str.isupper, piece)), sum(map(str.islower, piece)), sum(map(str.isdigit, piece))
        if min(kinds) < 10:
            return blob
    return f"({len(blob)} characters of data)"


# ------------------------------------------------------------------------------------------------ HTML


def without_hidden(text: str) -> str:
    """`text` with the HTML that nobody sees blanked, line by line: comments and hidden elements, never code."""
    if "<" not in text:
        return text
    found = _tokens(text, certain(text))
    unseen = [*_elements(text, found), *(token for token in found if token.kind == "html")]
    return "".join(part if span is None else "\n" * part.count("\n") for span, _, part in split(text, merged(unseen)))


def _tokens(text: str, codes: Sequence[Span]) -> list[Span]:
    """Comments ("html") and tags outside code, in reading order: "<p" or "</p", with the attributes as `opener`."""
    found: list[Span] = []
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
            found.append(Span(f"<{name}", match.start(), at, match["rest"]))
            raw = ""
            if name in _RAW and name not in gone:
                if re.compile(rf"</{name}[\s/>]", re.IGNORECASE).search(text, at):
                    raw = name
                else:
                    gone.add(name)
        elif (end := _comment_end(text, match, gone)) > at or match[0].endswith(">"):
            at = max(end, at)
            found.append(Span("html", match.start(), at))
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


def _elements(text: str, tokens: Sequence[Span]) -> list[Span]:
    """Hidden elements from tag to tag; one without an end reaches to the next blank line."""
    ends: dict[int, int] = {}
    open_tags: dict[str, list[int]] = {}
    for tag in tokens:
        if tag.kind.startswith("</"):
            if waiting := open_tags.get(tag.kind[2:]):
                ends[waiting.pop()] = tag.end
        elif tag.kind != "html" and tag.kind[1:] not in _VOID:
            open_tags.setdefault(tag.kind[1:], []).append(tag.start)
    found: list[Span] = []
    reached = blank = -1
    for tag in tokens:
        name = tag.kind.removeprefix("<")
        if tag.start < reached or tag.kind == "html" or name in _VOID or not _is_hidden(name, tag.opener):
            continue
        if tag.start in ends:
            reached = ends[tag.start]
        else:
            if blank < tag.end:
                stop = _BLANK.search(text, tag.end)
                blank = stop.start() if stop else len(text)
            reached = blank
        found.append(Span("html", tag.start, reached))
    return found


def _is_hidden(name: str, rest: str) -> bool:
    if name.startswith("/"):
        return False
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
