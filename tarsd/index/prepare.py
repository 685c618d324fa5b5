"""From file to prepared note: read, decode, parse, cut, table vectors. Runs in child processes or right here."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from tarsd.chunk import embed_text, with_properties
from tarsd.config import ChunkSettings
from tarsd.dates import DateRules, day_of, is_template
from tarsd.embed.table import TableEmbedder
from tarsd.errors import NotFound
from tarsd.index.plan import trusted_stamp
from tarsd.kinds import kind_of
from tarsd.parse import Note, access, facts, parse
from tarsd.passage import Key, NoteRow, Passage
from tarsd.store import FactRows, Prepared, rows_of
from tarsd.vault import FileInfo, Skipped, Unreadable, content_hash, decode, read_file
from tarsd.words import guess

LOCAL_ONLY = "local_only, or what may be meant by it; rules as in exclude"
"""How it is known of a note that it never leaves this machine; another reading means that all are read again."""

_HEADING_CHARS = 600
_MOST_NO_DATES = 100


@dataclass(frozen=True)
class PrepareSettings:
    """What decides how a note is prepared. `table`: make the built-in table's vectors as well.

    `private` are casefolded paths of notes of the vault that must not leave this machine, whatever they say.
    """

    chunk: ChunkSettings
    include_comments: bool
    local_only: tuple[str, ...]
    chunker: str
    table: bool
    private: frozenset[str] = frozenset()
    dates: DateRules = field(default_factory=DateRules)


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A file to read; a file whose bytes still hash to `known` is not looked into."""

    info: FileInfo
    known: str = ""


@dataclass
class PreparedBatch:
    """What became of a group of jobs. `vectors` is float32[n, dim], one row for each of `hashes`."""

    prepared: list[Prepared] = field(default_factory=list)
    same: list[FileInfo] = field(default_factory=list)
    gone: list[FileInfo] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    vectors: npt.NDArray[np.float32] | None = None

    @property
    def keys(self) -> list[Key]:
        """The notes that were dealt with, whatever came of it."""
        keys = [note.key for note in self.prepared] + [info.key for info in (*self.same, *self.gone)]
        return keys + [skipped.key for skipped in self.failed]


def within(settings: ChunkSettings, limit: int | None) -> ChunkSettings:
    """The settings with no larger passages than a model reads; room is left for what stands above a passage."""
    most = settings.tokens if limit is None else max(16, limit - 16)
    return replace(settings, tokens=min(settings.tokens, most))


def prepare_group(jobs: Sequence[ReadJob], settings: PrepareSettings) -> PreparedBatch:
    """Prepare several files. One that cannot be read or parsed is reported and does not stop the rest."""
    done = PreparedBatch()
    texts: list[str] = []
    for job in jobs:
        info = job.info
        try:
            raw = read_file(info.location)
        except NotFound:
            done.gone.append(info)
            continue
        except Unreadable as error:
            done.failed.append(Skipped(info.collection, info.path, error.state, error.message, error.hint))
            continue
        digest = content_hash(raw)
        if digest == job.known:
            done.same.append(info._replace(location=shown_path(info), stamp=trusted_stamp(info)))
            continue
        try:
            prepared, notes = _prepare(info, raw, digest, settings)
        except Exception as error:
            reason = f"The note could not be parsed ({type(error).__name__})."
            hint = "Its last readable version is still found. Please report this."
            done.failed.append(Skipped(info.collection, info.path, "unreadable", reason, hint))
            continue
        done.prepared.append(prepared)
        texts += notes
        done.hashes += (passage.hash for passage in prepared.passages)
    if settings.table and texts:
        done.vectors = _table().embed(texts, "document")
    return done


def note_row(info: FileInfo, raw: bytes, note: Note, *, ours: bool, local_only: bool) -> NoteRow:
    """A note as its file, its bytes and its text say; `ours` and `local_only` may be known from elsewhere, too."""
    return NoteRow(
        collection=info.collection,
        path=info.path,
        title=note.title,
        aliases=note.aliases,
        tags=note.tags,
        kind=info.kind,
        memory_type=note.memory_type or "",
        ours=ours,
        local_only=local_only,
        mtime_ns=info.mtime_ns,
        size=info.size,
        state="ok" if raw else "empty",
        language=guess("\n".join((note.title, *note.lines[note.body_line - 1 :]))),
    )


def is_private(path: str, rules: Sequence[str]) -> bool:
    """Whether a file must not leave this machine: by its folder, for it has no tags."""
    return access.is_local_only(path, Note(path=path, title=path, lines=()), rules)


def _prepare(info: FileInfo, raw: bytes, digest: str, settings: PrepareSettings) -> tuple[Prepared, list[str]]:
    decoded = decode(raw)
    note = parse(decoded.text, info.path, include_comments=settings.include_comments)
    private = not info.collection and info.path.casefold() in settings.private
    private = private or access.is_local_only(info.path, note, settings.local_only, decoded.text)
    row = note_row(info, raw, note, ours=note.ours, local_only=private)
    row = replace(row, date=day_of(info.path, note.properties, settings.dates))
    passages = tuple(map(_with_short_headings, with_properties(note, settings.chunk, row)))
    template = is_template(info.path, settings.dates)
    told = [problem for problem in note.problems if not (template and problem.hint == facts.HINT)]
    problems = [(problem.line, problem.reason, problem.hint) for problem in told]
    if decoded.problem:
        problems.insert(0, (decoded.line, decoded.problem, decoded.hint))
    if not template:
        problems += _no_dates(note, {problem.line for problem in note.problems})
    prepared = Prepared(
        note=row,
        disk=shown_path(info),
        hash=digest,
        chunker=settings.chunker,
        properties=json.dumps(note.properties, ensure_ascii=False, default=str),
        words=note.property_text,
        problems=tuple(problems),
        passages=passages,
        stamp=trusted_stamp(info),
        data=FactRows() if template else rows_of(note),
        links=tuple((link.line, link.target, link.heading, link.block, link.text, link.embed) for link in note.links),
    )
    return prepared, [embed_text(row.title, row.aliases, passage) for passage in passages] if settings.table else []


def _no_dates(note: Note, known: Collection[int]) -> list[tuple[int, str, str]]:
    """What is said of values that look like dates and are none; not of those in `known` lines."""
    found: list[tuple[int, str, str]] = []
    for fact in note.facts:
        if isinstance(fact.value, str) and fact.line not in known and kind_of(fact.value).no_date:
            reason = f"There is no such date as the value of {fact.name[:60]!r}; it is kept as text."
            found.append((fact.line, reason, "Mend the date in the note."))
    return found[:_MOST_NO_DATES]


def _with_short_headings(passage: Passage) -> Passage:
    """The passage with headings of bearable length: they are kept with every passage below them."""
    if all(len(heading) <= _HEADING_CHARS for heading in passage.trail):
        return passage
    return replace(passage, trail=tuple(heading[:_HEADING_CHARS] for heading in passage.trail))


def shown_path(info: FileInfo) -> str:
    """Where a file lies on disk, as text that can be stored and shown."""
    return os.fsencode(info.location).decode(errors="replace")


@cache
def _table() -> TableEmbedder:
    return TableEmbedder()
