"""The numbers by which an answer cites its sources: read in every form that models use, written in one. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from tarsd.parse.inline import WIKILINK, name_and_place
from tarsd.parse.spans import Span, merged, spans, split
from tarsd.passage import Passage

_GROUP = r"\[[ ]?\d{1,3}(?:[ ]?[,;&–—-][ ]?\d{1,3})*[ ]?\]"
_CITED = re.compile(
    rf"(?P<word>(?<=\w))?(?<![\[\\])(?:(?<!\])|(?<=\]\]))(?P<run>{_GROUP}(?:[–—-]?{_GROUP})*)"
    r"(?![(\]]|\[(?!\[|\d{1,3}\]\())"
)
_CITES = re.compile(r"(?<!\\)\[(?=[ ]?\d{1,3}\??(?:\s*[,;&–—-]\s*\d{1,3}\??)*[ ]?\])")
_RANGE = re.compile(r"(\d+)(?:(\]?[ ]?[–—-][ ]?\[?)(\d+))?")
_DEFINES = re.compile(r"(?:^|\n)[ \t>]*\Z")
_INDEX = re.compile(r"\.\w|[ ]*=")
_QUOTED = re.compile(r"^[ \t]*>[^\n]*$", re.MULTILINE)

_MARK = r"(?:[\^#]|(?:passage|source|reference|ref|note|quelle)[ ]?(?:n[ ]?=[ ]?|#)?|n[ ]?=?[ ]?)?"
_LINES = r"(?:[ ]?†[^\[\]【】\n]{0,40}|[,:]?[ ](?:L|lines?|Zeilen?)[ ]?\d{1,6}(?:[ ]?[-–][ ]?L?\d{1,6})?)?"
_NUMBER = re.compile(rf"{_MARK}(\d{{1,3}}){_LINES}(?=[ ]?(?:[\],;&–—-]|\Z))", re.IGNORECASE)
_LIST = rf"{_MARK}\d{{1,3}}{_LINES}(?:[ ]?[,;&–—-][ ]?{_MARK}\d{{1,3}}{_LINES})*"
_OTHER = re.compile(
    rf"(?<![\[!\\])\[\[[ ]?(?P<double>{_LIST}(?:\][,;]?[ ]?\[{_LIST})*)[ ]?\]\](?:\(#?\d*\)|(?!\())"
    rf"|[【［](?P<wide>{_LIST})[】］]"
    rf"|(?<![\[!\\])\[(?P<single>{_LIST})\](?:\((?P<target>#[^()\s]*|<[^<>\n]+>|[^()\s:]+|)\)|(?![(:\]]|\[(?!\^?\d)))",
    re.IGNORECASE,
)
"""What models write in place of `[1]`: a wikilink, footnote or link, wide brackets, words, lines beside the number."""
_PICTURE = re.compile(r"^(?![A-Za-z][\w+.-]*:|//).*\.(?:png|jpe?g|gif|webp|avif|bmp|svg)$", re.IGNORECASE)
_FOOTNOTE = re.compile(r"^[ \t]*\[\^\d{1,3}\]:", re.MULTILINE)
_EARLIER = re.compile(
    r"(?P<gap>[ \t]?)(?P<word>(?<=\w))?(?<![\[\\])"
    r"(?P<run>(?:\[[ ]?\d{1,3}\??(?:[ ]?[,;&–—-][ ]?\d{1,3}\??)*[ ]?\])+)(?!\()"
)


def inert(text: str) -> str:
    """Somebody else's words as Markdown in which no number cites a passage."""
    return _CITES.sub(r"\\[", text)


def finish(
    text: str, evidence: Sequence[Passage], exists: Callable[[str], bool], *, by_model: bool = True
) -> tuple[str, list[dict[str, object]]]:
    """(text, citations) of a complete answer: only passages that were shown are cited, in order of appearance.

    Each is cited as `[1]`, whatever the model wrote for that; what no model wrote has no other form. A `[9]` without a
    passage becomes `[9?]`, in lists and ranges too; an index as in `arr[9]` is none. A link to a note that is not there
    becomes plain text. Quotes and code are left alone: what stands there is somebody else's.
    """
    known = {passage.number: passage for passage in evidence}
    links = {passage.path.removesuffix(".md").casefold() for passage in evidence}
    footnotes = _FOOTNOTE.search(text) is not None
    used: dict[int, Passage] = {}

    def usual(match: re.Match[str]) -> str:
        body = match["double"] or match["wide"] or match["single"]
        numbers = [int(digits) for digits in _NUMBER.findall(body)]
        named = match["double"] is not None and exists(body)  # a note may be called "1"
        elsewhere = match["target"] and not _leads_to(match["target"], [known[n] for n in numbers if n in known])
        index = body[0] in "nN#" and match.start() > 0 and match.string[match.start() - 1].isalnum()
        if known.keys().isdisjoint(numbers) or named or elsewhere or index or (footnotes and "^" in body):
            return match[0]
        return f"[{_NUMBER.sub(lambda one: str(int(one[1])), body)}]"

    def number(match: re.Match[str]) -> str:
        cite = [int(digits) for pair in _RANGE.findall(match[0]) for digits in (pair[0], pair[2]) if digits]
        after = match.string[match.end() : match.end() + 20]
        if after.startswith(":") and _DEFINES.search(match.string, max(match.start() - 20, 0), match.start()):
            return match[0]
        if match["word"] is not None and (known.keys().isdisjoint(cite) or _INDEX.match(after)):
            return match[0]  # an index, and no citation
        return _RANGE.sub(one_or_more, match[0])

    def one_or_more(match: re.Match[str]) -> str:
        for shown in _numbers(match):
            if shown in known:
                used.setdefault(shown, known[shown])
        ends = [digits if int(digits) in known else f"{digits}?" for digits in (match[1], match[3]) if digits]
        return (match[2] or "").join(ends)

    def link(match: re.Match[str]) -> str:
        name = name_and_place(match["target"])[0]
        if match["embed"] and _PICTURE.search(name):  # of this vault, for sanitizing leaves no other
            return match[0]
        if not name or name.casefold() in links or exists(name):
            return match[0]
        return (match["text"] or name).strip()

    def written(part: str) -> str:
        return WIKILINK.sub(link, _CITED.sub(number, _OTHER.sub(usual, part) if by_model else part))

    parts = [written(part) if own else part for own, part in _parts(text)]
    return "".join(parts), [passage.as_source() for passage in used.values()]


def without_numbers(text: str, sources: Collection[Mapping[str, Any]]) -> str:
    """An answer as it stands among later ones: each source by its link, for its number means another source there."""
    links = {source.get("n"): str(source.get("link") or source.get("path") or "") for source in sources}

    def named(match: re.Match[str]) -> str:
        pairs = _RANGE.finditer(match["run"].replace("?", ""))
        found = dict.fromkeys(links[shown] for pair in pairs for shown in _numbers(pair) if links.get(shown))
        if match["word"] is not None and not found:
            return match[0]  # an index, and no citation
        return f"{match['gap'] or ' '}{', '.join(found)}" if found else ""

    return "".join(_EARLIER.sub(named, part) if own else part for own, part in _parts(text))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces, each with whether it is the answer's own: no quote and no code."""
    quotes = (Span("quote", *found.span()) for found in _QUOTED.finditer(text))
    code = (span for span in spans(text, only_code=True) if span.kind != "mark")
    return ((span is None, part) for span, _, part in split(text, merged([*quotes, *code])))


def _numbers(match: re.Match[str]) -> Sequence[int]:
    """The numbers that `_RANGE` matched: one, all from the first to the last, or both where they go down."""
    first, last = int(match[1]), int(match[3] or match[1])
    return range(first, last + 1) if first <= last else (first, last)


def _leads_to(target: str, passages: Sequence[Passage]) -> bool:
    """Whether the target of a link is one of these notes, or only a place in the answer."""
    path = unquote(target.strip("<>")).partition("#")[0].removesuffix(".md").casefold()
    return (
        not path or path.isdigit() or any(path == passage.path.removesuffix(".md").casefold() for passage in passages)
    )
