"""Answers without a model: the passages that match best, quoted exactly, each with its citation.

It never says anything that is not in a note, and says plainly when the notes hold nothing on the question.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tarsd.parse.spans import spans
from tarsd.parse.visibility import without_hidden
from tarsd.passage import Passage
from tarsd.providers.base import ModelRequest, ProviderEvent, StreamEnd, Text
from tarsd.store import stem
from tarsd.words import fold, is_spaceless, is_stop, split_words, stems

PASSAGES = 4
BESIDE_THE_BEST = 0.7
"""A passage is quoted beside a better one only with this share of its relevance."""
HOLDING_AS_MUCH = 0.75
"""And only if it, with the names of its note, holds this share of the question's words that the first one holds."""
QUOTE_LINES = 10
QUOTE_CHARS = 800
CERTAIN = 0.55
"""From this relevance on, what is quoted is an answer; less is the closest that there is."""
NOT_CERTAIN = "Nothing certain. The closest is:"
NOTHING = "Your notes hold nothing that answers this."

_MOST = 0.66
"""A quote that holds this share of a question's words needs nothing of what stands around it."""

_PICTURES = re.compile(
    r"[\s>|]*(?:(?:\[?!\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])\]?(?:\([^)\n]*\))?|</?\w[^>\n]*>)[\s|]*)+"
)
"""A line that shows pictures and says nothing: badges, banners, bare HTML."""
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_FIELD = re.compile(r"[^\W\d_][\w -]{0,60}::?(?:[ \t]|$)")
"""A property or an inline field; several in a row are several statements."""
_LINK = re.compile(r"!?\[\[[^\[\]\n]{1,1000}\]\]|!?\[[^\[\]\n]{0,1000}\]\([^()\n]{0,2000}\)|https?://\S{1,2000}")
_MY = re.compile(r"my|our|mein\w{0,2}|unse?re?\w?|mijn|onze|min|mitt|vår|мо[йёяи]|моего|моей")
"""Behind it a thing is named, in languages in which what tells it from others of its kind comes next."""
_SENTENCE = re.compile(r"[.!?…]['\"”’)]*\s+|[。！？]")


class ExtractiveProvider:
    """The provider that needs nothing; see the module."""

    name = "extractive"
    local = True
    quotes = True
    window = 1_000_000
    tools = False
    sees = False

    async def prepare(self) -> None:
        """As `Provider.prepare`: nothing has to be known."""

    async def close(self) -> None:
        """As `Provider.close`."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        query = request.query or request.messages[-1].text
        for piece in compose(query, request.evidence, request.closest):
            yield Text(piece)
            await asyncio.sleep(0)
        yield StreamEnd()


def compose(query: str, evidence: Sequence[Passage], closest: Sequence[Passage] = ()) -> Iterable[str]:
    """The answer in pieces: quotes from at most four notes; else the closest one, or that there is none."""
    terms = _terms(query)
    best = max((passage.relevance for passage in evidence if not passage.attached), default=0.0)
    wanted = [passage for passage in evidence if passage.attached or passage.relevance >= BESIDE_THE_BEST * best]
    wanted = [passage for passage in wanted if not _only_pictures(passage)]
    meant = [one for one in wanted if one.attached or not (_of_another(one, query) or _otherwise(one, query))]
    best = max((passage.relevance for passage in meant if not passage.attached), default=0.0)
    shown = _distinct(meant or wanted)
    most = max((_held(passage, terms) for passage in shown[:1]), default=0)
    shown = [one for one in shown if one.attached or _held(one, terms) >= HOLDING_AS_MUCH * most]
    if shown and (best >= CERTAIN or shown[0].attached):
        for position, passage in enumerate(shown):
            yield ("\n\n" if position else "") + _quoted(passage, terms)
        return
    near = shown or _distinct([passage for passage in closest if not _only_pictures(passage)])
    if not near:
        yield NOTHING
        return
    yield f"{NOT_CERTAIN}\n\n{_quoted(near[0], terms)}"
    if near[1:]:
        yield "\n\nAlso near:\n" + "".join(f"\n- {other.full_link}, {_place(other)}" for other in near[1:3])


def _distinct(passages: Sequence[Passage]) -> list[Passage]:
    """The best passage of each note, at most four; attached notes first, then by relevance."""
    seen: dict[tuple[str, str], Passage] = {}
    texts: set[str] = set()
    for passage in sorted(passages, key=lambda passage: (not passage.attached, -passage.relevance)):
        if passage.text not in texts:
            seen.setdefault((passage.collection, passage.path), passage)
            texts.add(passage.text)
    return list(seen.values())[:PASSAGES]


def _names(passage: Passage) -> str:
    return "\n".join((passage.title, *passage.note.aliases, passage.path, *passage.trail))


def _held(passage: Passage, terms: Sequence[str]) -> int:
    """How many of the question's words a passage and the names of its note hold."""
    language = passage.note.language
    held = _words(f"{passage.text}\n{_names(passage)}", language)
    return len(held.intersection(_stems(terms, language)))


def _of_another(passage: Passage, query: str) -> bool:
    """Whether a passage is of the same thing with another number, as locker 1204 is not locker 12."""
    asked = _numbered(query, passage.note.language)
    if not asked:
        return False
    text = f"{_names(passage)}\n{passage.text}"
    told, held = _numbered(text, passage.note.language), set(split_words(fold(text)))
    return any(name in told and not numbers & held for name, numbers in asked.items())


def _otherwise(passage: Passage, query: str) -> bool:
    """Whether a passage is of another thing of the same kind, as cargo insurance is no car insurance.

    Of two words of the question behind “my” it holds the second alone, and always behind another word.
    """
    language = passage.note.language
    said = split_words(fold(query))
    empty = is_stop(said)
    told = split_words(fold(f"{_names(passage)}\n{passage.text}"))
    idle = is_stop(told)
    held = frozenset(_stems(told, language))
    asked = frozenset(_stems(said, language))
    for my, which, kind, *no in zip(said, said[1:], said[2:], empty[1:], empty[2:], strict=False):
        own, kinds = set(_stems([which], language)), set(_stems([kind], language))
        if any(no) or not _MY.fullmatch(my) or which.isdecimal() or own & held or not kinds & held:
            continue
        at = [place for place, word in enumerate(told) if kinds & set(_stems([word], language))]
        others = [told[place - 1] for place in at if place and not idle[place - 1]]
        if len(others) == len(at) and not any(
            word.isdecimal() or word[:4] == which[:4] or set(_stems([word], language)) & asked for word in others
        ):
            return True
    return False


def _numbered(text: str, language: str) -> dict[str, set[str]]:
    """The words of a text that a number follows, and their numbers."""
    said, found = split_words(fold(text)), dict[str, set[str]]()
    for word, empty, number in zip(said, is_stop(said), said[1:], strict=False):
        if number.isdecimal() and not empty and not word.isdecimal():
            for form in _stems([word], language):
                found.setdefault(form, set()).add(number)
    return found


def _only_pictures(passage: Passage) -> bool:
    lines = [line for line in without_hidden(passage.text).split("\n") if line.strip()]
    return bool(lines) and all(_PICTURES.fullmatch(line) for line in lines)


def _place(passage: Passage, lines: tuple[int, int] | None = None) -> str:
    """Where in its note a passage stands; the note's path stands in the link before it."""
    first, last = lines or (passage.start_line, passage.end_line)
    if passage.note.of_file:
        return passage.heading or "its name"
    where = f"line {first}" if first == last else f"lines {first}-{last}"
    return f"{where} in {passage.collection}" if passage.collection else where


def _quoted(passage: Passage, terms: Sequence[str]) -> str:
    start, lines = excerpt(passage.text, terms, passage.note.language, _names(passage))
    first = passage.start_line + start
    place = _place(passage, (first, first + len(lines) - 1))
    if passage.text.count("\n") != passage.end_line - passage.start_line:
        place = _place(passage)  # pieces of a table or a fence have its head above them: their lines are not counted
    quote = "\n".join(f"> {line}" if line else ">" for line in lines)
    number = f" [{passage.number}]" if passage.number else ""
    return f"{quote}\n\n— {passage.full_link}{number}, {place}"


# ------------------------------------------------------------------------------------------------ choosing lines


def excerpt(text: str, terms: Sequence[str], language: str = "", names: str = "") -> tuple[int, list[str]]:
    """The lines of `text` that match the terms best: their offset from its first line, and the lines themselves.

    `names` are those of the note, whose words need not stand in the lines again.

    Lines are exact, but for hidden HTML, which nobody sees; a line longer than a quote may be is cut around its
    best sentence, marked by “…”.
    """
    lines = ["" if _PICTURES.fullmatch(line) else line for line in without_hidden(text).split("\n")]
    blocks = _blocks(lines)
    if not blocks:
        return 0, [_cut(lines[0], {}, language)]
    contents = [_words(" ".join(lines[block.start : block.stop]), language) for block in blocks]
    weights = _weights(list(dict.fromkeys(_stems(terms, language))), contents)
    own = [_match(content, weights) for content in contents]
    # a heading counts half: it is no answer by itself, and lends that half to what stands under it
    scores = [
        0.5 * mine if block.heading else mine + 0.5 * _match(_words(block.under, language), weights)
        for block, mine in zip(blocks, own, strict=True)
    ]
    best = max(range(len(blocks)), key=lambda index: (scores[index], -index))
    last = best
    if blocks[best].heading or lines[blocks[best].stop - 1].rstrip().endswith(":"):
        last = min(best + 1, len(blocks) - 1)  # what it announces is the answer
    name = _FIELD.match(lines[blocks[best].start])
    if name and not _match(_words(name[0], language), weights):
        # a field whose value was asked for is no answer: "ID: dataview" says less than what follows
        while last + 1 < len(blocks) and _FIELD.match(lines[blocks[last].start]):
            last += 1
    while last + 1 < len(blocks) and own[last + 1] >= 0.7 * scores[best] > 0:
        last += 1
    start, stop = _window(lines, blocks[best].start, blocks[last].stop, weights, language)
    said = frozenset().union(_words(f"{names}\n{blocks[best].under}", language), *contents[best : last + 1])
    wanted = set(_stems(terms, language))
    if len(wanted & said) < _MOST * len(wanted):  # the rest of what was asked for may stand around it
        start, stop = _widened(lines, start, stop)
    return start, [_cut(line, weights, language) for line in lines[start:stop]]


@dataclass(frozen=True)
class _Block:
    """Lines `start` to before `stop` belong together; `under` is the heading above them."""

    start: int
    stop: int
    under: str = ""
    heading: bool = False


def _blocks(lines: Sequence[str]) -> list[_Block]:
    """Headings, and the paragraphs, lists and whole fences between blank lines and headings."""
    blocks: list[_Block] = []
    fenced = _fenced("\n".join(lines))
    start, under = -1, ""
    for number, line in enumerate([*lines, ""]):
        heading = number not in fenced and _HEADING.match(line) is not None
        blank = not line.strip() and number not in fenced
        field = start >= 0 and _FIELD.match(line) is not None and _FIELD.match(lines[start]) is not None
        if (heading or blank or field) and start >= 0:
            blocks.append(_Block(start, number, under))
            start = -1
        if heading:
            under = line
            blocks.append(_Block(number, number + 1, heading=True))
        elif not blank and start < 0:
            start = number
    return blocks


def _fenced(text: str) -> set[int]:
    """The lines (from 0) of all fences."""
    fenced: set[int] = set()
    for span in spans(text, only_code=True):
        if span.kind == "fence":
            first = text.count("\n", 0, span.start)
            fenced.update(range(first, first + text.count("\n", span.start, span.end) + 1))
    return fenced


def _window(lines: Sequence[str], start: int, stop: int, weights: dict[str, float], language: str) -> tuple[int, int]:
    """At most so many lines and characters of `start` to `stop`: all, or the best line and what follows it first."""

    def fits(first: int, last: int) -> bool:
        return last - first <= QUOTE_LINES and sum(map(len, lines[first:last])) <= QUOTE_CHARS

    first = start
    if not fits(start, stop):
        matches = [_match(_words(line, language), weights) for line in lines[start:stop]]
        first = start + matches.index(max(matches))
    last = first + 1
    while last < stop and fits(first, last + 1):
        last += 1
    while first > start and fits(first - 1, last):
        first -= 1
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    while first < last - 1 and not lines[first].strip():
        first += 1
    return first, last


def _widened(lines: Sequence[str], start: int, stop: int) -> tuple[int, int]:
    """What stands around it, as far as a quote has room: what follows first, for it often says the rest."""
    room = QUOTE_CHARS - sum(map(len, lines[start:stop]))
    while stop < len(lines) and stop - start < QUOTE_LINES and len(lines[stop]) <= room:
        room -= len(lines[stop])
        stop += 1
    while start > 0 and stop - start < QUOTE_LINES and len(lines[start - 1]) <= room:
        start -= 1
        room -= len(lines[start])
    while stop > start + 1 and (not lines[stop - 1].strip() or _HEADING.match(lines[stop - 1])):
        stop -= 1
    while start < stop - 1 and not lines[start].strip():
        start += 1
    return start, stop


def _cut(line: str, weights: dict[str, float], language: str) -> str:
    """A line as it is, or the best sentence of one that is too long, with what follows while there is room."""
    if len(line) <= QUOTE_CHARS:
        return line
    links = [(link.start(), link.end()) for link in _LINK.finditer(line)]
    ends = (match.end() for match in _SENTENCE.finditer(line))
    starts = [0, *(end for end in ends if not any(first < end < last for first, last in links))]
    sentences = [line[a:b] for a, b in zip(starts, [*starts[1:], len(line)], strict=True)]
    best = max(range(len(starts)), key=lambda index: (_match(_words(sentences[index], language), weights), -index))
    begin = starts[best]
    end = min(begin + QUOTE_CHARS, len(line))
    end = next((first for first, last in links if begin < first < end < last), end)
    return ("… " if begin else "") + line[begin:end].strip() + (" …" if end < len(line) else "")


def _match(content: frozenset[str], weights: dict[str, float]) -> float:
    return sum(weight for term, weight in weights.items() if term in content)


def _weights(terms: Sequence[str], blocks: Sequence[frozenset[str]]) -> dict[str, float]:
    """A weight for each term: one that stands in every block says nothing about which to choose."""
    counts = {term: sum(term in block for block in blocks) for term in terms}
    return {term: math.log(1 + len(blocks) / count) for term, count in counts.items() if count}


def _terms(query: str) -> list[str]:
    """The content words of a question, folded; all of its words when it has no others."""
    said = split_words(fold(query))
    return [word for word, empty in zip(said, is_stop(said), strict=True) if not empty] or said


def _words(text: str, language: str) -> frozenset[str]:
    return frozenset(_stems(split_words(fold(text)), language))


def _stems(said: Iterable[str], language: str) -> Iterator[str]:
    """The forms in which the words of a question and of a note meet: pairs of a spaceless script, or stems."""
    for word in said:
        if is_spaceless(word):
            yield from (word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            yield from stems([word], language) or [stem(word)]
