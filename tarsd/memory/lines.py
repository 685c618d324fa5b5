"""A note of remembered lines, as people edit it by hand: read line by line, and changed one line at a time. Pure.

Every change is read again before it is given out: all other lines must still say what they said.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from tarsd.errors import BadRequest, Refused
from tarsd.parse import Note, access, parse
from tarsd.parse.spans import comments
from tarsd.parse.structure import BLOCK_ID
from tarsd.providers.text import visible
from tarsd.writing.places import LineIndex
from tarsd.writing.sanitize import sanitize

BETWEEN = " · "
"""Stands between the parts of a comment."""
MAX_CHARS = 500
"""Longest text of one line."""
READ_CHARS = 50_000
"""As much of a note is looked at; what is longer is no list of things to remember."""

IsPrivate = Callable[[str], bool]
"""Whether what was learnt in a conversation, named as in a comment, must stay on this machine now."""

_ENDS = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_BULLET = re.compile(r"([ \t]*+(?:>[ \t]?)*+[ \t]*+)([-*+]|\d{1,9}[.)])([ \t]+)(?:\[[^\[\]]\][ \t]+)?(?=\S)")
_QUOTE = re.compile(r"[ \t]*+(?:>[ \t]?)++")
_RULE = re.compile(r"[ \t]*([-*_=])(?:[ \t]*\1){2,}[ \t]*$")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,40}")
_BARE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_LEADING = re.compile(r"(?:(?:[-*+•–>]|#{1,6}|\d{1,3}[.)]|\[[ xX]\])\s+|(?:`{3,}|~{3,})\s*)+")


class Mark(NamedTuple):
    """What the comment after a line says of it: when and in which conversation it was learnt, and if it is private.

    `session` names several conversations where it comes from several.
    """

    date: str = ""
    session: str = ""
    private: bool = False

    @property
    def sessions(self) -> tuple[str, ...]:
        """The conversations, each by its name in comments."""
        return tuple(name for name in self.session.split(BETWEEN) if name)

    def joined(self, other: Mark) -> Mark:
        """What two comments of one line say; the first goes before."""
        return Mark(self.date or other.date, self.session or other.session, self.private or other.private)


@dataclass(frozen=True)
class MemoryLine:
    """One remembered line; it covers the file's lines `start` to `end` (0-based, both included).

    `depth` is the width of what stands before its bullet; -1 for a line without one. `raw` is its first source line.
    """

    text: str
    section: str
    mark: Mark
    start: int
    end: int
    depth: int
    parent: bool
    raw: str

    @property
    def numbers(self) -> range:
        """The file's lines that it covers, counted from 1."""
        return range(self.start + 1, self.end + 2)

    def as_json(self) -> dict[str, object]:
        """As it stands in the listing of the memory."""
        mark = self.mark
        return {
            "line": self.text, "section": self.section, "date": mark.date, "session": mark.session,
            "private": mark.private,
        }  # fmt: skip


@dataclass(frozen=True)
class MemoryNote:
    """A note of lines; `source` are its lines with their ends, `problem` a sentence on what cannot be used of it.

    `private` are the numbers (1-based) of the lines that stay on this machine: those that say so in a comment, what
    stands under such a bullet or heading, and all of a note that says so in its properties.
    """

    source: tuple[str, ...]
    note: Note
    lines: tuple[MemoryLine, ...]
    private: frozenset[int]
    problem: str = ""


def read(text: str, name: str = "Memory.md", private: IsPrivate = lambda session: False) -> MemoryNote:
    """The lines of a note; those are private, too, that come from a conversation that is `private`. Never raises."""
    problem = ""
    if len(text) > READ_CHARS:
        text = text[:READ_CHARS]
        problem = f"{name} is far too long; only its start is used."
    note = parse(text, "memory.md")
    source = tuple(split(text))
    for fault in note.problems:
        problem = problem or f"{name}, line {fault.line}: {fault.reason}"
    lines = _lines(note, source)
    learnt = {number for line in lines if any(map(private, line.mark.sessions)) for number in line.numbers}
    hidden = _private(note, source, lines, learnt)
    marked = [replace(line, mark=line.mark._replace(private=line.start + 1 in hidden)) for line in lines]
    return MemoryNote(source, note, tuple(marked), hidden, problem)


def split(text: str) -> list[str]:
    """The lines of a text with their ends, as an editor counts them."""
    return _ENDS.findall(text)


def _lines(note: Note, source: Sequence[str]) -> list[MemoryLine]:
    headings = {number: heading for heading in note.headings for number in range(heading.line, heading.end_line + 1)}
    blocks = {number for unit in note.units for number in range(unit.start_line, unit.end_line + 1)}
    found: list[MemoryLine] = []
    above: list[int] = []  # the bullets that the next one may stand under
    section, loose = "", True
    for number in range(note.body_line, min(len(note.lines), len(source)) + 1):
        shown, raw = note.lines[number - 1], source[number - 1]
        if not raw.strip():
            loose = True
            continue
        last = found[-1] if found and found[-1].depth >= 0 else None
        inside = last is not None and _width(raw) >= last.depth + 2
        heading, bullet, quote = headings.get(number), _BULLET.match(shown), _QUOTE.match(shown)
        if not heading and (number in blocks or not shown.strip()):
            if last and inside:
                found[-1] = _longer(last, number)
            elif number in blocks:
                found.append(_closed(number))
            loose = True
            continue
        if heading or _RULE.match(shown):
            section = heading.text if heading else section
            found.append(_closed(number))
        elif bullet:
            depth = _width(bullet[1])
            while above and found[above[-1]].depth >= depth:
                above.pop()
            if above:
                found[above[-1]] = replace(found[above[-1]], parent=True)
            above.append(len(found))
            found.append(_line(shown[bullet.end() :], section, raw, number, depth))
        elif last and not quote and (inside or not loose):
            found[-1] = _longer(last, number, shown, raw)
        else:
            found.append(_line(shown[quote.end() if quote else 0 :], section, raw, number, -1))
        if found[-1].depth < 0:
            above.clear()
        loose = False
    return [line for line in found if line.text]


def _private(
    note: Note, source: Sequence[str], found: Sequence[MemoryLine], more: Collection[int] = ()
) -> frozenset[int]:
    """The private lines; `more` are some that are so whatever their comments say."""
    text = "".join(source)
    if access.says_private(note, text):
        return frozenset(range(1, len(source) + 1))
    numbers = access.private_comments(text).union(more)
    if not numbers:
        return frozenset()
    for unit in note.units:  # half a table or fence would be none
        covered = range(unit.start_line, unit.end_line + 1)
        numbers.update(covered if numbers.intersection(covered) else ())
    level = 0
    for index, heading in enumerate(note.headings):
        level = level if level and heading.level > level else 0
        if level or numbers.intersection(range(heading.line, heading.end_line + 1)):
            level = level or heading.level
            after = note.headings[index + 1].line if index + 1 < len(note.headings) else len(source) + 1
            numbers.update(range(heading.line, after))
    depth = -1
    for line in found:
        depth = depth if 0 <= depth < line.depth else -1
        if depth >= 0 or numbers.intersection(line.numbers):
            depth = depth if depth >= 0 else line.depth
            numbers.update(line.numbers)
    return frozenset(numbers)


def _line(shown: str, section: str, raw: str, number: int, depth: int) -> MemoryLine:
    text = " ".join(BLOCK_ID.sub("", shown).split())
    return MemoryLine(text, section, mark_of(raw), number - 1, number - 1, depth, False, raw)


def _closed(number: int) -> MemoryLine:
    """A placeholder without text, which ends the bullet above it: later lines do not continue that."""
    return MemoryLine("", "", Mark(), number - 1, number - 1, -1, False, "")


def _longer(line: MemoryLine, number: int, shown: str = "", raw: str = "") -> MemoryLine:
    text = " ".join([line.text, *BLOCK_ID.sub("", shown).split()])
    return replace(line, text=text, mark=line.mark.joined(mark_of(raw)), end=number - 1)


def _width(text: str) -> int:
    return len(text[: len(text) - len(text.lstrip(" \t"))].expandtabs(4))


def shown(page: MemoryNote, *, local: bool) -> str:
    """The note as text for a prompt: no properties, title, comments and empty sections, and private lines only here."""
    note = page.note
    hidden = page.private if not local else frozenset()
    headings = {heading.line: heading.level for heading in note.headings}
    if note.headings and note.headings[0].level == 1:
        hidden = hidden | {note.headings[0].line}
    numbers = [number for number in range(note.body_line, len(note.lines) + 1) if number not in hidden]
    kept: list[str] = []
    for index, number in enumerate(numbers):
        text = note.lines[number - 1].rstrip()
        if number in headings and not _filled(note, headings, numbers, index + 1, headings[number]):
            continue
        if text or (kept and kept[-1]):
            kept.append(text)
    return "\n".join(kept).strip("\n")


def _filled(note: Note, headings: Mapping[int, int], numbers: Sequence[int], first: int, level: int) -> bool:
    """Does anything stand under a heading of this level, from the index `first` of the line numbers on?"""
    for number in map(numbers.__getitem__, range(first, len(numbers))):
        if number not in headings and note.lines[number - 1].strip():
            return True
        if headings.get(number, 7) <= level:
            return False
    return False


# ------------------------------------------------------------------------------------------------ comments


def mark_of(raw: str) -> Mark:
    """What the comments of a source line say: `%% 2026-11-28 · c-3f2a91 · private %%`, or just `%% private %%`.

    The word "private" counts wherever it stands in a comment.
    """
    mark = Mark()
    for comment in comments(raw):
        mark = mark.joined(_mark(comment.text))
    return mark


def _mark(comment: str) -> Mark:
    private = access.is_private(comment)
    parts = [part.strip() for part in comment.split("·")]
    parts = [part for part in parts if part.casefold() != "private"]
    if not parts or not _DATE.fullmatch(parts[0]):
        return Mark(private=private)
    sessions = [part for part in parts[1:] if _SESSION.fullmatch(part)]
    return Mark(parts[0], BETWEEN.join(sessions), private)


def sessions_of(text: str) -> frozenset[str]:
    """The conversations that the comments of a note of lines, or of verdicts, name."""
    marks = (mark_of(row) for row in split(text) if "%%" in row or "<!--" in row)
    return frozenset(session for mark in marks for session in mark.sessions)


def holds_private(text: str) -> bool:
    """Does a note of the memory folder hold anything that must not leave this machine?

    Its index knows nothing of comments, so this has to be asked of the note itself.
    """
    folded = text.casefold()
    return ("private" in folded or "local" in folded) and bool(private_lines(text))


def private_lines(text: str) -> frozenset[int]:
    """The numbers (1-based) of the lines that stay on this machine, in a note of any length."""
    return _private(parse(text, "memory.md"), split(text), ())


def comment(date: str, session: str = "", private: bool = False) -> str:
    """The comment that `mark_of` reads; of a session's id only harmless characters stay. "" for nothing."""
    several = session.split(BETWEEN)
    sessions = several if all(session_name(one) == one for one in several) else [session_name(session)]
    parts = [part for part in (date, *sessions, "private" if private else "") if part]
    return f"%% {' · '.join(parts)} %%" if parts else ""


@lru_cache(10_000)
def session_name(session: str) -> str:
    """The id of a conversation as it stands in a comment: its harmless characters, or a hash where there are none."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", session)[:40].strip("-")
    if session and (not name or name.casefold() == "private"):
        return f"c-{hashlib.sha256(session.encode('utf-8', 'replace')).hexdigest()[:12]}"
    return name


def clean(text: str, limit: int = MAX_CHARS) -> str:
    """`text` as one line that can open nothing in a note: no marks of lists, headings, quotes, fences or comments.

    Raises BadRequest if nothing is left, or too much.
    """
    line = " ".join(_apart(text).split())
    line = sanitize(_LEADING.sub("", line, count=1) if _LEADING.match(line) else line)
    if not any(char.isalnum() for char in line):
        raise BadRequest("There is nothing in it to remember.", "Write it in words.", field="text")
    if len(line) > limit:
        said = f"That is too long for one line: {len(line):,} characters; at most {limit:,} are allowed."
        raise BadRequest(said, "Make it shorter, or write a note.", field="text")
    return line


def harmless(text: str) -> str:
    """`text` in which nothing hides what follows, runs or loads: marks are taken apart, the unseen is gone."""
    return sanitize(_apart(text))


def _apart(text: str) -> str:
    text = visible(text.replace("<!--", "<! --")).replace("<!--", "<! --")
    while "%%" in text or "$$" in text:
        text = text.replace("%%", "% %").replace("$$", "$ $")
    return "".join(" " if unicodedata.category(char) in _BARE and char not in "\n\t" else char for char in text)


# ------------------------------------------------------------------------------------------------ changes


def insert(text: str, content: str, section: str, mark: str, default: str) -> str:
    """The note with `- content mark` as the last line of `section`.

    Several sections of one name: the first. None: it is made at the end of the note. Without `section`, it is the
    `default` one, or the list itself in a note that has no sections. Raises Refused if the note cannot take it.
    """
    page = _editable(text)
    end = LineIndex.of(text).end
    wanted = section or default
    first, last = _range(page, wanted)
    if first < 0 and not section:
        first, last = _only_list(page)
    source = list(page.source)
    new = [f"- {content} {mark}"]
    if first >= 0:
        at, new = _place(page, first, last, new)
    else:
        at, new = len(source), [f"## {wanted}", "", *new]
        if source and source[-1].strip():
            new = ["", *new]
    if at and not source[at - 1].endswith(("\r", "\n")):
        source[at - 1] += end
    changed = "".join([*source[:at], *(line + end for line in new), *source[at:]])
    _check(page, changed, added=content)
    return changed


def _range(page: MemoryNote, section: str) -> tuple[int, int]:
    """The source lines [first, last) right under the first heading of that name; (-1, -1) if there is none."""
    headings = page.note.headings
    for index, heading in enumerate(headings):
        if heading.text.strip(" :").casefold() == section.strip(" :").casefold():
            last = headings[index + 1].line - 1 if index + 1 < len(headings) else len(page.source)
            return heading.end_line, last
    return -1, -1


def _only_list(page: MemoryNote) -> tuple[int, int]:
    """The body of a note that has lines and no sections, but perhaps a title above them all; else (-1, -1)."""
    headings = page.note.headings
    title = headings[0] if len(headings) == 1 and headings[0].level == 1 else None
    if not page.lines or (headings and (title is None or title.line - 1 > page.lines[0].start)):
        return -1, -1
    return (title.end_line if title else page.note.body_line - 1), len(page.source)


def _place(page: MemoryNote, first: int, last: int, new: list[str]) -> tuple[int, list[str]]:
    """Where in [first, last) new lines go, and what they need around them: after the last bullet, or the last text."""
    lines = [line for line in page.lines if first <= line.start < last]
    bullets = [line for line in lines if line.depth >= 0 and not _QUOTE.match(line.raw)]
    if bullets:
        like = _BULLET.match([line for line in bullets if line.depth <= bullets[0].depth][-1].raw)
        if like:
            marker = like[2] if like[2] in "-*+" else "-"
            new = [f"{like[1]}{marker}{line[1:]}" for line in new]
        return max(line.end for line in bullets) + 1, new
    at = last
    while at > first and not page.source[at - 1].strip():
        at -= 1
    if at == first < last:  # nothing but blank lines under the heading
        return at + 1, [*new, *([""] if at + 1 == last < len(page.source) else [])]
    return at, ["", *new]


def remove(text: str, lines: Sequence[MemoryLine]) -> str:
    """The note without these lines of it. Raises Refused if that would change what another line says."""
    page = _editable(text)
    gone = {number for line in lines for number in range(line.start, line.end + 1)}
    changed = "".join(line for number, line in enumerate(page.source) if number not in gone)
    _check(page, changed, removed=lines)
    return changed


def swap(text: str, line: MemoryLine, content: str, mark: str) -> str:
    """The note with `content` where `line` stood, its bullet and the person's own comments kept. Raises Refused."""
    page = _editable(text)
    covered = page.source[line.start : line.end + 1]
    bullet = _BULLET.match(covered[0]) or _QUOTE.match(covered[0])
    own = [
        raw[found.start : found.end] for raw in covered for found in comments(raw) if not _is_ours(found.text.strip())
    ]
    ending = covered[-1][len(covered[-1].rstrip("\r\n")) :]
    new = " ".join([(bullet[0] if bullet else "") + content, *own, mark]) + ending
    changed = "".join([*page.source[: line.start], new, *page.source[line.end + 1 :]])
    _check(page, changed, added=content, removed=[line])
    return changed


def _is_ours(comment: str) -> bool:
    """Whether a comment is nothing but a mark, so that another may take its place."""
    return bool(_mark(comment).date) or comment.casefold() == "private"


def _editable(text: str) -> MemoryNote:
    if len(text) > READ_CHARS:
        raise Refused("The note is far too long for a list of things to remember.", "Shorten it yourself.")
    return read(text)


def _check(before: MemoryNote, changed: str, *, added: str = "", removed: Sequence[MemoryLine] = ()) -> None:
    """Do all other lines and headings stay, and is the new line seen? One in a comment or a fence would be lost."""
    gone = {line.start for line in removed}
    expected = [line.text for line in before.lines if line.start not in gone] + ([_seen(added)] if added else [])
    after = read(changed)
    titles = [heading.text for heading in before.note.headings]
    kept = [heading.text for heading in after.note.headings][: len(titles)] == titles
    if not kept or sorted(line.text for line in after.lines) != sorted(expected):
        why = before.problem or "The lines around it would change, too."
        raise Refused(f"That line cannot be changed safely. {why}", "Edit the note yourself.")


def _seen(content: str) -> str:
    """A line's text as it is read back."""
    page = read(f"- {content} %% x %%")
    return page.lines[0].text if page.lines else content
