"""Note → passages with heading trail, line numbers and a content hash. Pure; sizes are those of `count_tokens`.

A passage never leaves its section: where a section has text of its own, a heading is a break like no other.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias
from unicodedata import combining

from tarsd.parse import Note, Unit
from tarsd.parse.inline import at_addresses, without_addresses
from tarsd.parse.wordpiece import count_tokens, token_ids
from tarsd.passage import HeadingPlaces, NoteRow, Passage

if TYPE_CHECKING:
    from tarsd.config import ChunkSettings

__all__ = ["chunk", "chunker_id", "count_tokens", "embed_text", "token_ids", "with_properties"]

VERSION = 4
"""Raised whenever parse or chunk cut the same file differently than before."""

_BLANK_RUN = re.compile(r"\n(?:[ \t]*\n){2,}")
_NOTHING = " \t\n>-*_=#|`~+"
_RULE = re.compile(r" {0,3}(?:-[ \t]*){3,}$| {0,3}(?:\*[ \t]*){3,}$| {0,3}(?:_[ \t]*){3,}$")
_LIST_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_SENTENCE = re.compile(r"(?<=[.!?…])(?=\s)|(?<=[。！？；])|(?<=\n)")
_WORD = re.compile(r"\s*\S+")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_QUERY = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*(?:base|dataview|dataviewjs|tasks|query)\b", re.IGNORECASE)
"""A block that asks for notes: what it shows is not in the note."""
_NO_ROW = NoteRow()
_CLAUSE = re.compile(r"(?<=[、，,;:：])")


def chunk(note: Note, settings: ChunkSettings, row: NoteRow = _NO_ROW) -> list[Passage]:
    """The passages of the note's text in reading order: at least one, none blank, none only a heading if there is more.

    `row` is the note as the index knows it, which goes with each passage.
    """
    return _finished(note, _body(note, _Cutter(note, settings)), row)


def with_properties(note: Note, settings: ChunkSettings, row: NoteRow = _NO_ROW) -> list[Passage]:
    """All passages of the note: before those of `chunk`, the lines of its properties that there are to read."""
    cutter = _Cutter(note, settings)
    return _finished(note, cutter.cut((), 1, note.body_line - 1) + _body(note, cutter), row)


def _body(note: Note, cutter: _Cutter) -> list[Passage]:
    pieces: list[Passage] = []
    pending = 0
    for section in _sections(note):
        start = pending or section.start
        if not cutter.has_text(section.content, section.end):
            pending = start
            continue
        pending = 0
        pieces += cutter.cut(section.trail, start, section.end)
    if pending and cutter.has_text(pending, len(note.lines)):
        pieces = cutter.with_rest(pieces, pending, len(note.lines))
    return pieces


def _finished(note: Note, pieces: list[Passage], row: NoteRow) -> list[Passage]:
    if not pieces:
        pieces = [Passage(note.title, 1, max(len(note.lines), 1), tokens=count_tokens(note.title))]
    named, places = _named(note), _Places(note)
    return [
        replace(piece, seq=seq, hash=_hash(named, piece), note=row, place=places.of(piece))
        for seq, piece in enumerate(pieces)
    ]


class _Places:
    """What a link to a passage needs in place of its heading, where another of that name comes before."""

    def __init__(self, note: Note) -> None:
        self.headings = note.headings
        self.lines = [heading.line for heading in note.headings]
        self.blocks = sorted((block.start_line, at, block.id) for at, block in enumerate(note.blocks))
        self.places = HeadingPlaces([(heading.level, heading.text) for heading in note.headings])

    def of(self, piece: Passage) -> str | None:
        if not piece.trail:
            return None
        above = range(bisect_right(self.lines, piece.end_line) - 1, -1, -1)
        own = next((at for at in above if self.headings[at].text == piece.trail[-1]), None)
        if own is None:
            return None
        inside = self.blocks[bisect_left(self.blocks, (piece.start_line,)) :]
        return self.places.place(own, [id for line, _, id in inside[:1] if line <= piece.end_line])


def _named(note: Note) -> hashlib.blake2b:
    """The beginning of the hash of each of the note's passages: what the person calls the note."""
    parts = (note.explicit_title, *note.aliases, "\x1e")
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16)


def _hash(named: hashlib.blake2b, piece: Passage) -> bytes:
    digest = named.copy()
    text = _BLANK_RUN.sub("\n\n", piece.text)  # blank lines are no other text
    digest.update("\x1f".join(("", *piece.trail, "\x1e", text)).encode())
    return digest.digest()


def embed_text(note_title: str, aliases: Sequence[str], passage: Passage) -> str:
    """What an embedding model reads: title, aliases, heading trail, then the text without the headings just named."""
    text = _filled(passage.text) or (passage.text if passage.trail else "")
    trail = [part for part in passage.trail if part != note_title]
    head = [note_title[:120], ", ".join(aliases[:100])[:100].rstrip(", "), " > ".join(trail)[-160:]]
    return "\n".join(part for part in (*head, without_addresses(text)) if part)


def _without_queries(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    fence = ""
    for line in lines:
        if fence:
            mark = line.strip(" \t>")
            if mark.startswith(fence) and not mark.strip(fence[0]):
                fence = ""
        elif query := _QUERY.match(line):
            fence = query[1]
        else:
            kept.append(line)
    return kept


def _filled(text: str) -> str:
    """The text without queries and the headings around it, which the trail names or which hold nothing."""
    lines = _without_queries(text.split("\n"))
    while lines and (not lines[-1].strip(" \t>-*") or _HEADING.match(lines[-1])):
        lines.pop()
    first = next((at for at, line in enumerate(lines) if line.strip() and not _HEADING.match(line)), len(lines))
    return "\n".join(lines[first:])


def _size(text: str) -> int:
    return count_tokens(without_addresses(text))


def chunker_id(settings: ChunkSettings, include_comments: bool) -> str:
    """12 hex digits that change whenever the same file would be cut differently."""
    sizes = [settings.tokens, settings.overlap, settings.max_chars, sorted(settings.scores.items())]
    return hashlib.blake2b(json.dumps([VERSION, sizes, include_comments]).encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class _Section:
    trail: tuple[str, ...]
    start: int
    content: int
    end: int


def _sections(note: Note) -> Iterator[_Section]:
    """The stretches between headings, with the first line of each and of its content."""
    last = len(note.lines)
    trail: list[tuple[int, str]] = []
    start = content = note.body_line
    for heading in note.headings:
        if heading.line > start or trail:
            yield _Section(tuple(text for _, text in trail), start, content, heading.line - 1)
        while trail and trail[-1][0] >= heading.level:
            trail.pop()
        trail.append((heading.level, heading.text))
        start, content = heading.line, heading.end_line + 1
    yield _Section(tuple(text for _, text in trail), start, content, last)


_Cut: TypeAlias = tuple[str, int, float]
"""A piece of a line, its tokens, and how well to cut before it."""


@dataclass(frozen=True, slots=True)
class _Atom:
    """What is never cut further. `glue` stands between it and the atom before, `score` says how well to cut there."""

    start: int
    end: int
    text: str
    tokens: int
    glue: str
    score: float
    prose: bool = True


class _Cutter:
    """Cuts the sections of one note."""

    def __init__(self, note: Note, settings: ChunkSettings) -> None:
        self.note = note
        self.limit = settings.tokens
        self.max_chars = settings.max_chars
        self.overlap = int(settings.tokens * settings.overlap)
        self.scores = settings.scores
        self.window = max(settings.tokens // 2, 1)
        self.units = {unit.start_line: unit for unit in note.units}
        self.levels = {heading.line: heading.level for heading in note.headings}

    def has_text(self, start: int, end: int) -> bool:
        """Whether there is anything to read in these lines but marks and queries."""
        return any(line.strip(_NOTHING) for line in _without_queries(self.note.lines[start - 1 : end]))

    def with_rest(self, pieces: list[Passage], start: int, end: int) -> list[Passage]:
        """The pieces, the last one grown by headings that nothing follows, if it can hold them."""
        if pieces:
            last = pieces[-1]
            whole = self.whole(last.trail, last.start_line, end)
            rest = self.whole(last.trail, start, end)
            if rest is None:
                return pieces
            if whole is not None and whole.text.startswith(last.text) and self.fits(whole.text, whole.tokens):
                return [*pieces[:-1], whole]
            text = f"{last.text}\n\n{rest.text}"
            if self.fits(text, last.tokens + rest.tokens):
                tokens = last.tokens + rest.tokens
                return [*pieces[:-1], Passage(text, last.start_line, rest.end_line, last.trail, tokens=tokens)]
            return pieces + self.cut((), start, end)  # without a trail, so that nothing of it is embedded
        trail = next((section.trail for section in _sections(self.note) if section.start == start), ())
        return pieces + self.cut(trail, start, end)

    def fits(self, text: str, tokens: int) -> bool:
        return tokens <= self.limit and len(text) <= self.max_chars

    def whole(self, trail: tuple[str, ...], start: int, end: int) -> Passage | None:
        """All of the lines as one piece, whatever its size; None if they are blank."""
        lines = self.note.lines
        while start <= end and not lines[start - 1].strip():
            start += 1
        while end >= start and not lines[end - 1].strip():
            end -= 1
        if start > end:
            return None
        text = "\n".join(lines[start - 1 : end]).rstrip()
        return Passage(text, start, end, trail, tokens=_size(text))

    def cut(self, trail: tuple[str, ...], start: int, end: int) -> list[Passage]:
        """The lines as pieces of at most the limit."""
        whole = self.whole(trail, start, end)
        if whole is None:
            return []
        if self.fits(whole.text, whole.tokens):
            return [whole]
        atoms = list(self.atoms(whole.start_line, whole.end_line))
        rest = sum(atom.tokens for atom in atoms)
        pieces: list[Passage] = []
        lead: list[_Atom] = []
        at = 0
        while at < len(atoms):
            first = atoms[at]
            begin = (*lead, first)
            if not self.fits("".join(atom.glue + atom.text for atom in begin), sum(atom.tokens for atom in begin)):
                lead = []
            cut = self.cut_after(atoms, at, lead, rest)
            taken = atoms[at:cut]
            if piece := _join(trail, lead + taken):
                pieces.append(piece)
            rest -= sum(atom.tokens for atom in taken)
            lead = self.tail(taken) if cut < len(atoms) else []
            at = cut
        return pieces

    def cut_after(self, atoms: Sequence[_Atom], at: int, lead: Sequence[_Atom], rest: int) -> int:
        """The index of the atom before which to cut, the best break within the window below the goal."""
        tokens = sum(atom.tokens for atom in lead)
        chars = sum(len(atom.text) + 2 for atom in lead)
        used: list[int] = []
        for index in range(at, len(atoms)):
            atom = atoms[index]
            tokens += atom.tokens
            chars += len(atom.text) + len(atom.glue)
            if used and (tokens > self.limit or chars > self.max_chars):
                break
            used.append(tokens)
        end = at + len(used)
        if end == len(atoms):
            return end
        # the last two share what is left, so that no crumb stays behind
        goal = self.limit if rest > 2 * self.limit else min(self.limit, rest / 2)
        best, found = 0.0, end
        for index in range(at + 1, end + 1):
            distance = abs(goal - used[index - at - 1]) / self.window
            value = atoms[index].score * (1 - distance * distance)
            if value >= best and value > 0:
                best, found = value, index
        return found

    def tail(self, taken: Sequence[_Atom]) -> list[_Atom]:
        """The end of a piece that the next one repeats: whole atoms that fit, else the last words of the last."""
        room, found = self.overlap, list[_Atom]()
        for atom in reversed(taken[1:]):
            if not atom.prose or atom.tokens > room:
                break
            room -= atom.tokens
            found.insert(0, atom)
        if found or not taken or not taken[-1].prose:
            return found
        last = taken[-1]
        kept = ""
        for part in reversed(_SENTENCE.split(last.text)):
            if _size(part + kept) > room or len(part + kept) > 8 * room:
                break
            kept = part + kept
        if not kept.strip():
            for word in reversed(_WORD.findall(last.text[-8 * room - 8 :])[1:]):
                if _size(word + kept) > room:
                    break
                kept = word + kept
        kept = kept.strip()
        return [_Atom(last.end, last.end, kept, _size(kept), "\n", 0)] if kept else []

    def atoms(self, start: int, end: int) -> Iterator[_Atom]:
        """The lines as atoms, none over the limit."""
        line = start
        gap, edge = 0, 0.0  # line breaks before the next atom, and how well to cut there
        while line <= end:
            unit = self.units.get(line)
            if unit and unit.end_line <= end:
                score = max(edge, self.scores["fence"])
                yield from self.unit_atoms(unit, "\n" * max(gap, 1), score)
                line, gap, edge = unit.end_line + 1, 1, self.scores["fence"]
                continue
            text = self.note.lines[line - 1]
            if not text.strip():
                gap, edge = max(gap, 1) + 1, max(edge, self.scores["blank"])
            else:
                glue, score = "\n" * gap, max(edge, self.score(line, text))
                for piece, tokens, inner in self.pieces(text.rstrip()):
                    yield _Atom(line, line, piece, tokens, glue, score)
                    glue, score = "", inner
                gap, edge = 1, 3.0
            line += 1

    def score(self, line: int, text: str) -> float:
        if line in self.levels:
            return self.scores[f"h{self.levels[line]}"]
        if _RULE.match(text):
            return self.scores["rule"]
        return self.scores["list"] if _LIST_ITEM.match(text) else 3.0

    def unit_atoms(self, unit: Unit, glue: str, score: float) -> Iterator[_Atom]:
        """A unit as one atom if it fits; else at its line ends, each piece with the fence or the table's head again."""
        lines = self.note.lines[unit.start_line - 1 : unit.end_line]
        text = "\n".join(lines)
        tokens = _size(text)
        if self.fits(text, tokens):
            yield _Atom(unit.start_line, unit.end_line, text, tokens, glue, score, prose=False)
            return
        before, after, first, inner = _wrapping(unit, lines)
        room = self.limit - _size(before) - _size(after)
        chars = self.max_chars - len(before) - len(after) - 2
        if room < self.limit // 2 or chars < self.max_chars // 2:
            before, after, first, inner = "", "", 0, list(lines)
            room, chars = self.limit, self.max_chars
        held: list[str] = []
        begin = unit.start_line
        used = size = 0
        for number, source in enumerate(inner, unit.start_line + first):
            for index, (part, cost, _) in enumerate(self.pieces(source, room, chars)):
                joint = 1 if index == 0 else 0
                if held and (used + cost > room or size + len(part) + joint > chars):
                    last = number - joint
                    yield self.wrapped(before, "".join(held).strip("\n"), after, begin, last, glue, score)
                    glue, score = "\n", self.scores["list"]
                    held, used, size, begin = [], 0, 0, number
                held.append("\n" + part if joint else part)
                used, size = used + cost, size + len(part) + joint
        if any(part.strip() for part in held):
            yield self.wrapped(before, "".join(held).strip("\n"), after, begin, unit.end_line, glue, score)

    def wrapped(self, before: str, text: str, after: str, start: int, end: int, glue: str, score: float) -> _Atom:
        full = "\n".join(part for part in (before, text, after) if part)
        return _Atom(start, end, full, _size(full), glue, score, prose=False)

    def pieces(self, text: str, room: int | None = None, chars: int | None = None) -> Iterator[_Cut]:
        """One line whole if it fits; else by sentences, words, clauses, characters."""
        room = self.limit if room is None else room
        chars = self.max_chars if chars is None else chars
        tokens = _size(text)
        if tokens <= room and len(text) <= chars:
            yield text, tokens, 1.0
            return
        for sentence in _SENTENCE.split(text):
            tokens = _size(sentence)
            if tokens <= room and len(sentence) <= chars:
                if sentence:
                    yield sentence, tokens, 1.0
                continue
            score = 1.0
            for piece, tokens, inner in _packed(
                _WORD.findall(sentence), max(room // 4, 1), min(chars, 4 * room), room, chars
            ):
                yield piece, tokens, max(score, inner)
                score = 0.2


def _wrapping(unit: Unit, lines: Sequence[str]) -> tuple[str, str, int, list[str]]:
    """What stands before and after each piece of a unit, where its inner lines begin, and those lines."""
    if unit.kind == "fence":
        closed = len(lines) > 1 and lines[-1] == unit.closer
        return unit.opener, unit.closer, 1, list(lines[1 : -1 if closed else None])
    if unit.kind == "table":
        return "\n".join(lines[:2]), "", 2, list(lines[2:])
    return "", "", 0, list(lines)


def _packed(
    parts: Sequence[str], room: int, chars: int, most: int, longest: int, *, by_clause: bool = True
) -> Iterator[_Cut]:
    """Parts joined up to `room` tokens and `chars` characters; one over `most` tokens cut at clauses, then anywhere."""
    held: list[str] = []
    used = size = 0
    for part in parts:
        cost = _size(part)
        if held and (used + cost > room or size + len(part) > chars):
            yield "".join(held), used, 0.2
            held, used, size = [], 0, 0
        if cost <= most and (len(part) <= chars or ("://" in part and len(part) <= longest)):
            held.append(part)
            used, size = used + cost, size + len(part)
        elif "://" in part and len(stretches := at_addresses(part, longest)) > 1:
            yield from _packed(stretches, room, chars, most, longest, by_clause=by_clause)
        elif by_clause:
            yield from _packed(_CLAUSE.split(part), room, chars, room, longest, by_clause=False)
        else:
            yield from _characters(part, room, chars)
    if held:
        yield "".join(held), used, 0.2


def _characters(text: str, room: int, chars: int) -> Iterator[_Cut]:
    guess = chars if text.isascii() else min(chars, 4 * room)
    at = 0
    while at < len(text):
        step = min(guess, len(text) - at)
        # one more than counted, as the rest of a word is other tokens when it stands alone
        while (cost := count_tokens(text[at : at + step]) + 1) > room and step > 1:
            step = max(min(step - 1, step * room // cost), 1)
        while step > 1 and at + step < len(text) and combining(text[at + step]):
            step -= 1
        yield text[at : at + step], cost, 0.1
        at += step
        guess = min(chars, max(2 * step, 8))


def _join(trail: tuple[str, ...], atoms: Sequence[_Atom]) -> Passage | None:
    text = "".join([atom.text if not index else atom.glue + atom.text for index, atom in enumerate(atoms)])
    text = text.strip("\n").rstrip()
    if not text.strip(_NOTHING):
        return None
    tokens = sum(atom.tokens for atom in atoms)
    return Passage(text, atoms[0].start, atoms[-1].end, trail, tokens=tokens)
