"""Lines as they stand on pages become text that reads on: without page headers and footers, with paragraphs; pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

EDGE, NEAR, TIMES = 2, 4, 3
"""How many lines at each edge of a page may be a header or footer: those that so many pages near it have, too."""

_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"\W*[ivxlc]{1,7}\W*", re.I)
_ENDS = frozenset('.!?:…。！？؟।۔"”»’)」』')
_SHORT = 0.8
"""A line that ends a sentence and is shorter than this share of the page's long ones ends a paragraph."""


def without_edges(pages: Sequence[list[str]]) -> list[list[str]]:
    """The pages' lines without headers, footers and page numbers; what has words stays where it first stands."""
    seen: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index, lines in enumerate(pages):
        for edge, at in _edges(lines):
            for form in _forms(lines[at], index):
                seen[edge, form].append(index)
    kept = []
    for index, lines in enumerate(pages):
        drop = {
            at
            for edge, at in _edges(lines)
            if any(_repeats(seen[edge, form], index, form) for form in _forms(lines[at], index))
        }
        kept.append([line for at, line in enumerate(lines) if at not in drop] if len(drop) < len(lines) else lines)
    return kept


def _edges(lines: list[str]) -> Iterator[tuple[str, int]]:
    """The lines near the edges of a page, outermost first; of a short page none is taken for both."""
    half = min(EDGE, (len(lines) + 1) // 2)
    yield from (("top", at) for at in range(half))
    yield from (("bottom", at) for at in range(len(lines) - min(half, len(lines) - half), len(lines)))


def _forms(line: str, index: int) -> set[str]:
    """A line as it would stand on other pages: as it is, and with each of its numbers counting with the pages."""
    plain = " ".join(line.casefold().split())
    if _ROMAN.fullmatch(plain):
        return {"#"}
    forms = {plain}
    for number in _NUMBER.finditer(plain):
        if len(number[0]) <= 5 and len(forms) <= 4:
            forms.add(f"{plain[: number.start()]}#{int(number[0]) - index}#{plain[number.end() :]}")
    return forms


def _repeats(pages: list[int], index: int, form: str) -> bool:
    near = sum(abs(page - index) <= NEAR for page in pages[bisect_left(pages, index - NEAR) :][: 2 * NEAR + 1])
    has_words = any(sign.isalpha() for sign in form)
    return near >= TIMES and not (has_words and index == pages[0])


def paragraphs(lines: Sequence[str]) -> str:
    """Lines with a blank line where a paragraph seems to end."""
    lengths = sorted(map(len, lines))
    long = lengths[len(lengths) * 9 // 10] * _SHORT if lengths else 0
    parts: list[str] = []
    for line in lines:
        parts.append(line)
        parts.append("\n\n" if len(line) < long and line[-1:] in _ENDS else "\n")
    return "".join(parts[:-1])


_MARKS = ("\ufffe", "\x02", "\xad", "-\r", "-\n", "\u2010\r", "\u2010\n")
_BROKEN = re.compile(r"(\w+)(?:[\ufffe\x02\xad](?:\r?\n)?|[-\u2010]\r?\n)(\w+)")
"""A word that goes on in the next line: with pdfium's mark for the hyphen, or with the hyphen itself."""


def joined(text: str) -> str:
    """Text with words put together that a hyphen divides at the end of a line; a hyphen that a word needs stays."""

    def whole(found: re.Match[str]) -> str:
        begin, end = found.groups()
        needed = not (begin[-1].isalpha() and end[0].islower()) or f"{begin}-{end}" in text
        return f"{begin}-{end}" if needed and f"{begin}{end}" not in text else f"{begin}{end}"

    # most pages have none, and looking at each word for what follows it takes long
    return _BROKEN.sub(whole, text) if any(mark in text for mark in _MARKS) else text
