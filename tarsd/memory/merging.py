"""A note of lines that two machines changed: what a sync tool put beside it becomes part of it, line by line.

No line is lost, and none is there twice. What this machine took out of the note stays out, for as long as the change is
kept for undo. A line that is in one version only, and was not taken out here, stays: nobody can tell whether it is new
there or was forgotten on the other machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tarsd.errors import Refused, TarsdError
from tarsd.memory import compare, lines
from tarsd.memory.lines import MemoryLine
from tarsd.parse import OURS, parse
from tarsd.vault import content_hash, decode, is_conflict_copy
from tarsd.writing.changes import Loaded
from tarsd.writing.journal import Journal
from tarsd.writing.notes import Notebook

LineKey = tuple[str, ...]
"""A line as it is told from others: by its words, whatever its case, punctuation and comment."""
LineIdentity = tuple[LineKey, str, str]
"""The same with its date and conversation: one that is remembered again later is another."""


@dataclass(frozen=True)
class MergedText:
    """The text of a note with what its copies hold besides; `copies` are those that it holds all of now."""

    text: str
    copies: tuple[Loaded, ...] = ()


def key(text: str) -> LineKey:
    """What a line is told from others by."""
    return tuple(compare.words(text)) or tuple(text.split())


def copies_of(notebook: Notebook, path: str, kind: str) -> list[Loaded]:
    """Copies that sync tools made of the note at `path`: conflict copies, and our own notes named "Name 2.md".

    One that cannot be read is passed over.
    """
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".md").casefold()
    found: list[Loaded] = []
    for other in notebook.paths(folder):
        own = other.rpartition("/")[2].removesuffix(".md").casefold()
        if own == stem or not own.startswith(stem) or own[len(stem)].isalnum():
            continue
        conflict, numbered = is_conflict_copy(other), own[len(stem) :].strip().isdigit()
        if not conflict and not numbered:
            continue
        with suppress(TarsdError):
            copy = notebook.load(other)
            if conflict or parse(copy.text, other).properties.get(OURS) == kind:
                found.append(copy)
    return found


def merged(text: str, copies: Sequence[Loaded], gone: Collection[LineIdentity], default: str) -> MergedText:
    """`text` with the lines of the copies that it has not, and without those that are `gone`.

    A line goes into its section, `default` where it is in none, and is private if one version says so. A copy that
    cannot be taken over safely is left alone as a whole.
    """
    taken: list[Loaded] = []
    for copy in copies:
        with suppress(Refused):
            text = _with_lines_of(text, copy, gone, default)
            taken.append(copy)
    while out := next((line for line in lines.read(text).lines if taken and _identity(line) in gone), None):
        try:
            text = lines.remove(text, [out])
        except Refused:  # others stand under it
            break
    return MergedText(text, tuple(taken))


def _with_lines_of(text: str, copy: Loaded, gone: Collection[LineIdentity], default: str) -> str:
    known = _by_key(lines.read(text).lines)
    for line in lines.read(copy.text).lines:
        same = known.get(key(line.text))
        if same is None and _identity(line) not in gone:
            known[key(line.text)] = line
            text = lines.insert(text, line.text, line.section, lines.comment(*line.mark), default)
        elif same is not None and line.mark.private and not same.mark.private:
            own = next(one for one in lines.read(text).lines if key(one.text) == key(line.text))
            text = lines.swap(text, own, own.text, lines.comment(*own.mark._replace(private=True)))
            known[key(line.text)] = line
    return text


def _identity(line: MemoryLine) -> LineIdentity:
    return key(line.text), line.mark.date, line.mark.session


def _by_key(found: Iterable[MemoryLine]) -> dict[LineKey, MemoryLine]:
    return {key(line.text): line for line in found}


def forgotten(journal: Journal, path: str, known: Iterable[bytes]) -> frozenset[LineIdentity]:
    """The lines that changes made here took out of the note at `path`, and that none put back.

    `known` are versions of it that are there now. A change of which the text afterwards is not to be had tells nothing.
    """
    made = [entry for entry in journal.entries() if entry.path == path and entry.state in ("written", "undone")]
    texts = {content_hash(raw): raw for raw in known}
    for entry in made:  # the latest first: what stood there before a change is what the one before left
        before = journal.before(entry, texts.get(entry.after or "", b""))
        if before is not None:
            texts.setdefault(content_hash(before), before)
    gone: frozenset[LineIdentity] = frozenset()
    for entry in reversed(made):
        before, after = texts.get(entry.before or ""), texts.get(entry.after or "")
        if after is not None:
            gone = (gone | (_identities(before) if before is not None else frozenset())) - _identities(after)
    return gone


def _identities(raw: bytes) -> frozenset[LineIdentity]:
    return frozenset(map(_identity, lines.read(decode(raw).text).lines))
