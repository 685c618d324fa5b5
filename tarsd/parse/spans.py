"""Which stretches of a Markdown text are code, comments or formulas: one scanner for all who ask. Pure, linear.

Readers of Markdown differ, so there are three answers: `spans` is how Obsidian reads, `certain` is what every reader
takes for code, and `comments` are all that anybody could take for one. Each stage asks for the one that is safe for it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

CONTAINERS = r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+[ \t>]*+)*+"
"""The marks of quotes and list items that a line may begin with."""

_MARKER = re.compile(r"%%|<!--|`+|~~~+|\$\$")
_CONTAINERS = re.compile(CONTAINERS)
_QUOTES = re.compile(r"[ \t>]*")
_LIST = re.compile(r"([ \t>]*)(?:[-*+]|\d{1,9}[.)])(?:([ \t]+)|$)")
_PARAGRAPH_END = re.compile(r"\n[ \t>]*(?:\r?\n|$|#{1,6}[ \t]|```|~~~|[-*+][ \t]|\d{1,9}[.)][ \t])")
_TICKS = re.compile(r"`+")
_WORD = re.compile(r"\w")
_BLANK_LINE = re.compile(r"\n[ \t>]*\r?\n")
_COMMENT = re.compile(r"%%|<!--")
_COMMENT_ENDS = {"%%": "%%", "<!--": "-->"}
BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    "track|ul"
)
"""The elements that begin a block of HTML, which a blank line ends (CommonMark 0.31, kind 6)."""

UNCLOSED_COMMENT = "A comment (%%) is never closed: everything after it is hidden."
UNCLOSED_HTML = "An HTML comment (<!--) is never closed: everything after it is hidden."


class Span(NamedTuple):
    """A stretch of the text, [start, end) in characters."""

    kind: str  # comment, html (a comment of HTML), fence, math, code, or mark: nothing but a reason not to be plain
    start: int
    end: int
    opener: str = ""  # the first and last line of a fence; of a comment that never ends, what is to be said of it
    closer: str = ""
    plain: bool = True  # not if a quote, a list or indented code may have a say


class Comment(NamedTuple):
    """A comment at [start, end) and what it says."""

    kind: str
    start: int
    end: int
    text: str


_Stretch = TypeVar("_Stretch", Span, Comment)


def split(text: str, found: Iterable[_Stretch]) -> Iterator[tuple[_Stretch | None, int, str]]:
    """All of `text` in pieces, each with its start: those between the stretches come with None."""
    at = 0
    for stretch in found:
        yield None, at, text[at : stretch.start]
        yield stretch, stretch.start, text[stretch.start : stretch.end]
        at = stretch.end
    yield None, at, text[at:]


def merged(found: Iterable[Span]) -> list[Span]:
    """The spans in order, those that overlap as one."""
    apart: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, span.end)):
        if apart and span.start < apart[-1].end:
            apart[-1] = apart[-1]._replace(end=max(span.end, apart[-1].end))
        else:
            apart.append(span)
    return apart


def comments(text: str) -> Iterator[Comment]:
    """Every comment that is closed, in code and in quotes too: for those who must overlook none."""
    finder = _Finder(text)
    at = 0
    while found := _COMMENT.search(text, at):
        mark = _COMMENT_ENDS[found[0]]
        end = finder.find(mark, found.end())
        at = found.start() + 1
        if end >= 0:
            at = end + len(mark)
            yield Comment("comment", found.start(), at, text[found.end() : end])


# ------------------------------------------------------------------------------------------------ as Obsidian reads


def spans(text: str, *, only_code: bool = False) -> Iterator[Span]:
    """Comments, fences, math blocks and inline code in reading order, none inside another.

    With `only_code`, the marks of comments and formulas are characters like all others.
    """
    scanner = _Scanner(text)
    math_end = at = 0
    while found := _MARKER.search(text, at):
        start, token = found.start(), found[0]
        at = found.end()
        span: Span | None = None
        if token[0] in "`~":
            if len(token) > 2:
                span = scanner.fence(start, token)
            if span is None and token[0] == "`":
                span = scanner.code(start, len(token))
            if len(token) > 2 and (span is None or span.kind == "code") and scanner.line(start).contents == start:
                span = (span or Span("mark", start, start))._replace(plain=False)  # a fence after all, if in a list
        elif only_code:
            continue
        elif token == "%%":
            span = scanner.comment(start)
        elif token == "<!--":
            span = scanner.html_comment(start)
        elif start >= math_end:
            span = scanner.math(start)
            math_end = span.end if span else at
        if span is not None:
            yield span
            at = max(at, span.end)


class _Line(NamedTuple):
    """A line from `start` to its "\\n" at `end`; `quoted` and `contents` are where its `>`, and all its marks, end."""

    start: int
    end: int
    quoted: int
    contents: int


class _Finder:
    """Looks for marks from places that only grow, and for none of them twice in the same stretch."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.next: dict[str, int] = {}

    def find(self, mark: str, at: int) -> int:
        """As `str.find`."""
        known = self.next.get(mark, -1)
        if known < at:
            known = self.text.find(mark, at)
            self.next[mark] = known if known >= 0 else len(self.text)
        return known if known < len(self.text) else -1


class _Scanner(_Finder):
    """What begins at a mark. The marks are asked about in reading order, so every line is looked at once."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.current = _Line(0, -1, 0, 0)
        self.items: list[int] = []  # the columns where the texts of open list items begin, ever further in
        self.items_end = 0
        self.paragraph_end = -1
        self.ticks: dict[int, list[int]] = {}

    def line(self, at: int) -> _Line:
        """The line that `at` is in."""
        if at > self.current.end:
            text = self.text
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            quoted, contents = _QUOTES.match(text, start), _CONTAINERS.match(text, start)
            assert quoted and contents  # both match anything
            self.current = _Line(start, end if end >= 0 else len(text), quoted.end(), contents.end())
        return self.current

    def comment(self, start: int) -> Span | None:
        text = self.text
        end = self.find("%%", start + 2)
        if end >= 0:
            return Span("comment", start, end + 2)
        inside_word = start > 0 and _WORD.match(text[start - 1]) and _WORD.match(text[start + 2 : start + 3])
        return None if inside_word else Span("comment", start, len(text), opener=UNCLOSED_COMMENT)

    def html_comment(self, start: int) -> Span | None:
        end = self.find("-->", start + 2)
        if end >= 0:
            return Span("html", start, end + 3)
        alone = self.line(start).quoted >= start
        return Span("html", start, len(self.text), opener=UNCLOSED_HTML) if alone else None

    def math(self, start: int) -> Span | None:
        line = self.line(start)
        end = self.find("$$", start + 2) if line.quoted >= start else -1
        if end < 0:
            return None
        alone = not self.text[start + 2 : line.end].strip()
        if not alone and _BLANK_LINE.search(self.text, start, end):
            return None  # prices, not a formula
        return Span("math", line.start, self.line(end).end)

    def fence(self, start: int, token: str) -> Span | None:
        text = self.text
        line = self.line(start)
        if line.contents != start or (token[0] == "`" and "`" in text[start + len(token) : line.end]):
            return None
        prefix, opener = text[line.start : start], text[line.start : line.end]
        quotes = prefix.count(">")
        indent = _width(prefix)
        content = 0
        if not quotes:
            if prefix.strip():
                content = indent
            elif indent >= 2:
                content = self.list_content(line.start, indent)
                if indent - content >= 4:
                    return None  # indented code
        plain = not prefix.strip() and indent < 2
        lead = " {0,3}" if plain else r"[ \t>]*" if quotes else r"[ \t]*"
        pattern = rf"^{lead}({re.escape(token[0])}{{{len(token)},}})[ \t]*\r?$"
        if quotes:
            pattern += rf"|^(?!(?:[ \t]*>){{{quotes}}})"
        elif content:
            pattern += rf"|^(?![ ]{{{content}}}|[ ]*\t|[ \t]*\r?$)"
        closing = re.compile(pattern, re.M).search(text, line.end + 1) if line.end < len(text) else None
        if closing is not None and closing[1] is not None:
            end = self.line(closing.start(1)).end
            return Span("fence", line.start, end, opener, text[closing.start() : end], plain)
        end = closing.start() - 1 if closing is not None else len(text.rstrip())
        return Span("fence", line.start, max(end, line.end), opener, prefix + token, plain)

    def list_content(self, start: int, indent: int) -> int:
        """The column where the text of the list item begins that a line at `start` belongs to; 0 if to none."""
        while self.items_end < start:
            end = self.text.find("\n", self.items_end)
            line, self.items_end = self.text[self.items_end : end], end + 1
            if item := _LIST.match(line):
                column = _width(item[0]) if item[2] and len(item[2]) <= 4 else _width(item[0].rstrip()) + 1
                del self.items[bisect_right(self.items, column - 1) :]
                self.items.append(column)
            elif line.strip() and line[0] not in " \t":
                self.items.clear()
        at = bisect_right(self.items, indent)
        return self.items[at - 1] if at else 0

    def code(self, start: int, length: int) -> Span | None:
        """Inline code that the backticks at `start` open, if others of that number close it within the paragraph."""
        if start >= self.paragraph_end:
            stop = _PARAGRAPH_END.search(self.text, start)
            self.paragraph_end = stop.start() + 1 if stop else len(self.text)
            self.ticks = _ticks(self.text, start, self.paragraph_end)
        places = self.ticks.get(length, [])
        while places and places[-1] <= start:
            places.pop()
        return Span("code", start, places[-1] + length) if places else None


def _ticks(text: str, start: int, end: int) -> dict[int, list[int]]:
    """By length of the run of backticks where such runs stand, the last first."""
    found: dict[int, list[int]] = {}
    for run in _TICKS.finditer(text, start, end):
        found.setdefault(len(run[0]), []).append(run.start())
    for places in found.values():
        places.reverse()
    return found


def _width(prefix: str) -> int:
    return len(prefix.expandtabs(4))


# ------------------------------------------------------------------------------------------- as every reader reads

_OPENING = re.compile(r"((?: {0,3}> ?)*)( *(?:(?:[-*+]|\d{1,9}[.)]) {1,4})*)(`{3,}|~{3,})(.*)")
_QUOTE = re.compile(r"(?: {0,3}> ?)*")
_LATER = re.compile(r"\d\d|[02-9][.)]")
_TAG = re.compile(r"</?[A-Za-z](?:[^`<>\"']|\"[^\"`<>]*\"|'[^'`<>]*')*+>")
_OPENS = re.compile(r"<[A-Za-z/!?]")
_RAW = re.compile(r"<(?:(?:pre|script|style|textarea)(?=[\s>]|$)|!--|\?|!\[CDATA\[|![A-Z])", re.IGNORECASE)
_RAW_ENDS = {"<!--": "-->", "<?": "?>", "<![": "]]>", "<!": ">"}
_CLOSES_RAW = re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE)
_BLOCK = re.compile(rf"</?(?:{BLOCK_TAGS})(?:[\s>]|/>|$)", re.IGNORECASE)
_ALONE = re.compile(r"</?[A-Za-z][^`]*>[ \t]*$")
_TWO_WAYS = re.compile(r"\]\]|[$|]|%%")


def certain(text: str, *, unclosed: bool = False) -> list[Span]:
    """Of `spans` the fences and the inline code on one line that are code for every reader: nothing in them is obeyed.

    Whatever could be read in two ways is taken for prose: something that is escaped twice does less harm than a trick.
    With `unclosed`, a fence that never ends is code to the end as well.
    """
    ahead = [span for span in spans(text, only_code=True) if span.kind != "mark"][::-1]
    found: list[Span] = []
    raw = ""  # what ends a block of HTML: "blank", "</" for <pre> and its like, or the mark itself
    blank = True  # the line before
    murky = False  # until a blank line, backticks cannot be told apart
    end = 0
    for row in text.split("\n"):
        line, at, end = row.removesuffix("\r"), end, end + len(row) + 1
        here: list[Span] = []
        while ahead and ahead[-1].start < end:
            here.append(ahead.pop())
        if found and at < found[-1].end:
            continue
        start = len(line) - len(_CONTAINERS.sub("", line, count=1))
        fenced = line.startswith(("```", "~~~"), start)
        if raw:
            raw = "" if _ends_html(raw, line, start) else raw
            if fenced:
                return found
        elif fenced and (line[start] == "~" or "`" not in line[start:].lstrip("`")):
            fence = _certain_fence(text, here[0], blank=blank, unclosed=unclosed) if here else None
            if fence is None:
                return found
            found.append(fence)
        elif blank := not line[start:].strip():
            murky = False
        elif (html := _begins_html(line, start)) is not None:
            raw, murky = html, True
        elif line.startswith("$$", start) and line.count("$$") % 2:
            raw, murky = "$$", True
        else:
            code = [] if murky else _certain_code(line, at, here)
            found += code
            prose = "".join(
                part
                for span, _, part in split(line, [Span("code", span.start - at, span.end - at) for span in code])
                if span is None
            )
            murky = (
                murky or len(code) < len(here) or "`" in prose or _open_tag(line[code[-1].end - at if code else 0 :])
            )
            if "%%" in prose or prose.count("$$") % 2:
                return found
    return found


def _certain_fence(text: str, fence: Span, *, blank: bool, unclosed: bool) -> Span | None:
    """The fence if it is one for every reader; `blank` says whether the line before it is."""
    opener, *rows = text[fence.start : fence.end].replace("\r\n", "\n").rstrip("\r").split("\n")
    opening = _OPENING.fullmatch(opener)
    if opening is None or fence.kind != "fence":
        return None
    quote, lead, mark, info = opening.groups()
    # some take a bar for the row of a table, and in the middle of a paragraph not every number begins a list
    if "|" in info or (not blank and _LATER.search(lead)):
        return None
    plain = not quote and not lead
    content, indent = "", 0
    for row in rows:
        quoted = _QUOTE.match(row) if quote else None
        if quoted and quoted[0].count(">") != quote.count(">"):
            return None
        rest = row[quoted.end() :] if quoted else row
        content = rest.strip(" \t")
        indent = _width(rest[: len(rest) - len(rest.lstrip(" \t"))])
        if content and indent < len(lead):
            return None
    if len(content) < len(mark) or content.strip(mark[0]):
        return Span("fence", fence.start, len(text)) if plain and unclosed else None
    return Span("fence", fence.start, fence.end) if plain or indent == len(lead) else None


def _certain_code(line: str, at: int, spans: Iterable[Span]) -> list[Span]:
    """Those of the spans that begin on this line up to the first that could be two things."""
    found: list[Span] = []
    after = 0
    for span in spans:
        before, code = line[after : span.start - at], line[span.start - at : span.end - at]
        unclear = "`" in before or before.endswith("\\") or _open_tag(before) or _TWO_WAYS.search(code)
        if unclear or span.end > at + len(line):
            break
        found.append(span)
        after = span.end - at
    return found


def _begins_html(line: str, start: int) -> str | None:
    """What ends the block of HTML that starts here, in which backticks mean nothing: "" if it ends with its line."""
    if line[start : start + 1] != "<":
        return None
    raw, end = _RAW.match(line, start), ""
    if raw:
        end = next((end for mark, end in _RAW_ENDS.items() if raw[0].upper().startswith(mark)), "</")
    elif _BLOCK.match(line, start) or _ALONE.match(line, start):
        end = "blank"
    if not end:
        return None
    return "" if _ends_html(end, line, start + (len(raw[0]) if raw and raw[0] != "<!--" else 2)) else end


def _ends_html(end: str, line: str, start: int) -> bool:
    if end == "blank":
        return not line[start:].strip()
    return _CLOSES_RAW.search(line) is not None if end == "</" else line.find(end, start) >= 0


def _open_tag(text: str) -> bool:
    """Whether a tag is begun and not ended, or is one that only looks like it."""
    return _OPENS.search(_TAG.sub("", text)) is not None
