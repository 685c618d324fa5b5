"""What a reader does not see, or sees as one piece: comments, fences, math blocks, inline code, pasted data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_MARKER = re.compile(r"%%|<!--|```+|~~~+|``?|\$\$")
_CONTAINERS = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+[ \t>]*)*")
_LIST = re.compile(r"([ \t>]*)(?:[-*+]|\d{1,9}[.)])(?:([ \t]+)|$)")
_PARAGRAPH_END = re.compile(r"\n[ \t>]*(?:\n|$|#{1,6}[ \t]|```|~~~|[-*+][ \t]|\d{1,9}[.)][ \t])")
_TICKS = re.compile(r"`+")
_WORD = re.compile(r"\w")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+=-]+)*[;,][^\s)\"'<>\]]{100,}")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{1000,}={0,2}")

UNCLOSED_COMMENT = "A comment (%%) is never closed: everything after it is hidden."
UNCLOSED_HTML = "An HTML comment (<!--) is never closed: everything after it is hidden."


class Span(NamedTuple):
    """A stretch of the body, [start, end) in characters."""

    kind: str  # comment, html, fence, math, code, or mark: nothing but a reason not to be plain
    start: int
    end: int
    opener: str = ""
    closer: str = ""
    plain: bool = True  # not if a quote, a list or indented code may have a say


def visible(text: str) -> str:
    """The text without invisible characters, and with pasted data replaced by its type. Line breaks are "\\n"."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
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


def spans(body: str) -> Iterator[Span]:
    """Comments, fences, math blocks and inline code in reading order, none inside another."""
    code = _InlineCode(body)
    math_end = 0
    at = 0
    while found := _MARKER.search(body, at):
        start, token = found.start(), found[0]
        at = found.end()
        span: Span | None = None
        if token == "%%":
            span = _comment(body, start)
        elif token == "<!--":
            span = _html_comment(body, start)
        elif token == "$$":
            if start >= math_end:
                span = _math(body, start)
                math_end = span.end if span else at
        elif len(token) > 2:
            span = _fence(body, start, token)
        if span is None and token[0] == "`":
            span = code.closing(start, len(token))
        if len(token) > 2 and token[0] in "`~" and (span is None or span.kind == "code"):
            prefix = body[body.rfind("\n", 0, start) + 1 : start]
            if _CONTAINERS.fullmatch(prefix):  # a fence after all, if it stands in a list
                span = (span or Span("mark", start, start))._replace(plain=False)
        if span is not None:
            yield span
            at = max(at, span.end)


def _comment(body: str, start: int) -> Span | None:
    end = body.find("%%", start + 2)
    if end >= 0:
        return Span("comment", start, end + 2)
    inside_word = start > 0 and _WORD.match(body[start - 1]) and _WORD.match(body[start + 2 : start + 3])
    return None if inside_word else Span("comment", start, len(body), opener=UNCLOSED_COMMENT)


def _html_comment(body: str, start: int) -> Span | None:
    end = body.find("-->", start + 2)
    if end >= 0:
        return Span("html", start, end + 3)
    line = body.rfind("\n", 0, start) + 1
    if body[line:start].strip(" \t>"):
        return None
    return Span("html", start, len(body), opener=UNCLOSED_HTML)


def _math(body: str, start: int) -> Span | None:
    line = body.rfind("\n", 0, start) + 1
    if body[line:start].strip(" \t>"):
        return None
    end = body.find("$$", start + 2)
    if end < 0:
        return None
    alone = not body[start + 2 : _line_end(body, start)].strip()
    if not alone and re.search(r"\n[ \t>]*\n", body[start:end]):
        return None  # prices, not a formula
    return Span("math", line, _line_end(body, end))


def _fence(body: str, start: int, token: str) -> Span | None:
    line = body.rfind("\n", 0, start) + 1
    prefix = body[line:start]
    first_end = _line_end(body, start)
    if not _CONTAINERS.fullmatch(prefix) or (token[0] == "`" and "`" in body[start + len(token) : first_end]):
        return None
    quotes = prefix.count(">")
    indent = _width(prefix)
    content = 0
    if not quotes:
        if prefix.strip():
            content = indent
        elif indent >= 2:
            content = _list_content(body, line, indent)
            if indent - content >= 4:
                return None  # indented code
    plain = not prefix.strip() and indent < 2
    lead = " {0,3}" if plain else r"[ \t>]*" if quotes else r"[ \t]*"
    pattern = rf"^{lead}({re.escape(token[0])}{{{len(token)},}})[ \t]*$"
    if quotes:
        pattern += rf"|^(?!(?:[ \t]*>){{{quotes}}})"
    elif content:
        pattern += rf"|^(?![ ]{{{content}}}|[ ]*\t|[ \t]*$)"
    closing = re.compile(pattern, re.M).search(body, first_end + 1) if first_end < len(body) else None
    opener = body[line:first_end]
    if closing is None:
        return Span("fence", line, max(len(body.rstrip()), first_end), opener, prefix + token, plain)
    if closing[1] is None:
        return Span("fence", line, max(closing.start() - 1, first_end), opener, prefix + token, plain)
    end = _line_end(body, closing.start())
    return Span("fence", line, end, opener, body[closing.start() : end], plain)


def _list_content(body: str, line: int, indent: int) -> int:
    """The column where the text of the list item begins that an indented line belongs to; 0 if to none."""
    for _ in range(500):
        if line <= 0:
            return 0
        line, end = body.rfind("\n", 0, line - 1) + 1, line - 1
        text = body[line:end]
        if not text.strip():
            continue
        if item := _LIST.match(text):
            lead = _width(item[1])
            if lead < indent:
                content = _width(item[0]) if item[2] and len(item[2]) <= 4 else _width(item[0].rstrip()) + 1
                if content <= indent:
                    return content
            continue
        if _width(text[: len(text) - len(text.lstrip(" \t"))]) == 0:
            return 0
    return 0


def _width(prefix: str) -> int:
    return len(prefix.expandtabs(4))


def _line_end(body: str, at: int) -> int:
    end = body.find("\n", at)
    return len(body) if end < 0 else end


class _InlineCode:
    """Finds the closing backticks of inline code within the paragraph, in linear time over the whole body."""

    def __init__(self, body: str) -> None:
        self.body = body
        self.end = -1
        self.runs: dict[int, list[int]] = {}

    def closing(self, start: int, length: int) -> Span | None:
        if start >= self.end:
            stop = _PARAGRAPH_END.search(self.body, start)
            self.end = stop.start() + 1 if stop else len(self.body)
            self.runs = {}
            for run in _TICKS.finditer(self.body, start, self.end):
                self.runs.setdefault(len(run[0]), []).append(run.start())
            for places in self.runs.values():
                places.reverse()
        places = self.runs.get(length, [])
        while places and places[-1] <= start:
            places.pop()
        return Span("code", start, places[-1] + length) if places else None
