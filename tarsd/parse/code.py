"""Where text is code for every reader of Markdown, so that nothing in it is obeyed. Pure, and linear in the text.

Whatever could be read in two ways is taken for prose: something that is escaped twice does less harm than a trick.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LOOKS_FENCED = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+[ \t>]*+)*+(?:`{3,}|~{3,})")
_FENCE = re.compile(r"((?: {0,3}> ?)*)( *(?:(?:[-*+]|\d{1,9}[.)]) {1,4})*)(`{3,}|~{3,})(.*)")
_QUOTE = re.compile(r"(?: {0,3}> ?)*")
_INSIDE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+[ \t>]*+)*+")
_LATER = re.compile(r"\d\d|[02-9][.)]")
_TICKS = re.compile(r"`+")
_TAG = re.compile(r"</?[A-Za-z](?:[^`<>\"']|\"[^\"`<>]*\"|'[^'`<>]*')*+>")
_OPENS = re.compile(r"<[A-Za-z/!?]")
_RAW = re.compile(r"<(?:(?:pre|script|style|textarea)(?=[\s>]|$)|!--|\?|!\[CDATA\[|![A-Z])", re.IGNORECASE)
_RAW_ENDS = {"<!--": "-->", "<?": "?>", "<![": "]]>", "<!": ">"}
_CLOSES_RAW = re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl"
    r"|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main"
    r"|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title"
    r"|tr|track|ul)(?:[\s>]|/>|$)",
    re.IGNORECASE,
)
_ALONE = re.compile(r"</?[A-Za-z][^`]*>[ \t]*$")
_TWO_WAYS = re.compile(r"\]\]|[$|]|%%")


class Code(NamedTuple):
    """[start, end) in characters; `kind` is "fence", with the lines of its marks, or "code"."""

    kind: str
    start: int
    end: int


class _Open(NamedTuple):
    start: int
    quotes: int
    indent: int
    mark: str
    plain: bool


def certain(text: str, *, unclosed: bool = False) -> list[Code]:
    """What surely is code, in reading order; with `unclosed`, a fence that never ends is code to the end as well."""
    return _Reader(text).read(unclosed)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Code] = []
        self.fence: _Open | None = None
        self.raw = ""  # what ends a block of HTML: "blank", "</" for <pre> and its like, or the mark itself
        self.blank = True  # the line before
        self.murky = False  # until a blank line, backticks cannot be told apart

    def read(self, unclosed: bool) -> list[Code]:
        at = 0
        for line in self.text.split("\n"):
            if not self._line(line.removesuffix("\r"), at):
                return self.found
            at += len(line) + 1
        if unclosed and self.fence is not None and self.fence.plain:
            self.found.append(Code("fence", self.fence.start, len(self.text)))
        return self.found

    def _line(self, line: str, at: int) -> bool:
        """Take a line in; False if from here on nothing is certain."""
        if self.fence is not None:
            return self._within(self.fence, line, at)
        inner = _INSIDE.match(line)
        start = inner.end() if inner else 0
        fenced = _LOOKS_FENCED.match(line) is not None
        if self.raw:
            if self._raw_ends(line, start):
                self.raw = ""
            return not fenced
        if fenced and (line[start] == "~" or "`" not in line[start:].lstrip("`")):
            return self._opens(line, at)
        self.blank = not line[start:].strip()
        if self.blank:
            self.murky = False
            return True
        if self._html(line, start):
            self.murky = True
        elif line.startswith("$$", start) and line.count("$$") % 2:
            self.raw, self.murky = "$$", True
        else:
            prose = line if self.murky else self._ticks(line, at)
            return "%%" not in prose and prose.count("$$") % 2 == 0
        return True

    def _opens(self, line: str, at: int) -> bool:
        found = _FENCE.fullmatch(line)
        if found is None:
            return False
        quote, lead, mark, info = found.groups()
        if "|" in info:  # some take it for the row of a table
            return False
        if not self.blank and _LATER.search(lead):  # in the middle of a paragraph this begins no list
            return False
        self.fence = _Open(at, quote.count(">"), len(lead), mark, not quote and not lead)
        return True

    def _within(self, fence: _Open, line: str, at: int) -> bool:
        quote = _QUOTE.match(line) if fence.quotes else None
        if quote is not None and quote[0].count(">") != fence.quotes:
            return False
        rest = line[quote.end() :] if quote else line
        content = rest.lstrip(" \t")
        if not content:
            return True
        indent = len(rest[: len(rest) - len(content)].expandtabs(4))
        if indent < fence.indent:
            return False
        marks = content.rstrip(" \t")
        if len(marks) < len(fence.mark) or marks.strip(fence.mark[0]):
            return True
        if indent != fence.indent and not (fence.plain and indent < 4):
            return fence.plain
        self.found.append(Code("fence", fence.start, at + len(line)))
        self.fence = None
        return True

    def _html(self, line: str, start: int) -> bool:
        """Whether a block of HTML starts here, in which backticks mean nothing."""
        if line[start : start + 1] != "<":
            return False
        if raw := _RAW.match(line, start):
            name = raw[0].upper()
            self.raw = next((end for mark, end in _RAW_ENDS.items() if name.startswith(mark)), "</")
        elif _BLOCK.match(line, start) or _ALONE.match(line, start):
            self.raw = "blank"
        if self.raw and self._raw_ends(line, start + (len(raw[0]) if raw and raw[0] != "<!--" else 2)):
            self.raw = ""
            return True
        return bool(self.raw)

    def _raw_ends(self, line: str, start: int) -> bool:
        if self.raw == "blank":
            return not line[start:].strip()
        return _CLOSES_RAW.search(line) is not None if self.raw == "</" else line.find(self.raw, start) >= 0

    def _ticks(self, line: str, at: int) -> str:
        """Find the inline code of a line; what is none of it, which stays unclear from where it could be two things."""
        runs = list(_TICKS.finditer(line))
        waiting: dict[int, list[int]] = {}
        for index in range(len(runs) - 1, -1, -1):
            waiting.setdefault(len(runs[index][0]), []).append(index)
        prose: list[str] = []
        index = after = 0
        while index < len(runs):
            opener = runs[index]
            same = waiting[len(opener[0])]
            while same and same[-1] <= index:
                same.pop()
            before = line[after : opener.start()]
            closer = runs[same[-1]] if same else None
            self.murky = (
                closer is None
                or before.endswith("\\")
                or _open_tag(before)
                or _TWO_WAYS.search(line, opener.end(), closer.start()) is not None
            )
            if closer is None or self.murky:
                return "".join([*prose, line[after:]])
            self.found.append(Code("code", at + opener.start(), at + closer.end()))
            prose.append(before)
            index, after = same[-1] + 1, closer.end()
        self.murky = _open_tag(line[after:])  # one that goes on in the next line may hold backticks
        return "".join([*prose, line[after:]])


def _open_tag(text: str) -> bool:
    """Whether a tag is begun and not ended, or is one that only looks like it."""
    return _OPENS.search(_TAG.sub("", text)) is not None
