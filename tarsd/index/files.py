"""Files that are no notes, in an index of their own: read in confined children, one at a time, the newest first.

Of their own, so that they change no statistic of the notes, and no note waits for one of them. All else, what is
unchanged, moved or gone, and that a kill leaves a smaller to-do list, is as for notes.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tarsd import extract
from tarsd.children import ChildDied
from tarsd.chunk import chunk, embed_text
from tarsd.config import ChunkSettings, FilesSettings
from tarsd.dates import day_of
from tarsd.embed.table import TableEmbedder
from tarsd.errors import NotFound
from tarsd.extract import Extracted, Page
from tarsd.index import prepare
from tarsd.index.indexer import Indexer
from tarsd.index.plan import trusted_stamp
from tarsd.parse import Heading, Note
from tarsd.passage import NoteRow, Passage
from tarsd.store import FileRow, Prepared
from tarsd.vault import FileInfo, Kind, Skipped, Unreadable, Vault, content_hash, read_file
from tarsd.words import guess

VERSION = 1
"""Raised whenever the same file would be read or cut otherwise than before."""

_NAME_CHARS = 120
_LANGUAGE_CHARS = 4_000


def suffixes(kinds: Sequence[str]) -> dict[str, Kind]:
    """The ends of the names of files of these kinds, without those that nothing installed here reads."""
    return {suffix: kind for suffix, kind in extract.SUFFIXES.items() if kind in kinds and not extract.missing(kind)}


def lacking(kinds: Sequence[str]) -> list[str]:
    """The extras without which files of some of these kinds are not read."""
    return sorted({extract.missing(kind) for kind in extract.SUFFIXES.values() if kind in kinds} - {""})


class FileIndexer(Indexer):
    """An `Indexer` of the files of `vaults`, which look for these and not for notes. What it was made of is its own."""

    def __init__(self, *arguments: Any, reader: Callable[[], extract.Reader] = extract.Reader, **named: Any) -> None:
        super().__init__(*arguments, **named)
        config = self._config
        self._reader = reader()
        mark = f"{self._settings.chunker}-files-{VERSION}"
        # The pages of a file are read from its passages: these must not repeat each other.
        cut = replace(self._settings.chunk, overlap=0.0)
        self._settings = replace(self._settings, chunk=cut, chunker=hashlib.sha256(mark.encode()).hexdigest()[:16])
        self._max_bytes = config.files.max_mb * 1_000_000

    def close(self) -> None:
        """End the child processes. The store stays open."""
        self._reader.close()
        super().close()

    def _prepared(self, jobs: Sequence[prepare.ReadJob]) -> Iterator[prepare.PreparedBatch]:
        if not jobs:
            return
        settings = self._settings_of(jobs[0].info.collection)
        rows = self.store.notes.rows()
        known = {row.hash: row for row in rows.values() if row.chunker == settings.chunker}
        for job in jobs:  # what is known at this very place is asked to be read again
            yield self._one(job, settings, {} if job.info.key in rows else known)

    def _one(
        self, job: prepare.ReadJob, settings: prepare.PrepareSettings, known: Mapping[str, FileRow]
    ) -> prepare.PreparedBatch:
        info = job.info
        try:
            digest = content_hash(read_file(info.location, self._max_bytes))
        except NotFound:
            return prepare.PreparedBatch(gone=[info])
        except Unreadable as error:
            return prepare.PreparedBatch(
                failed=[Skipped(info.collection, info.path, error.state, error.message, error.hint)]
            )
        if digest == job.known:
            return prepare.PreparedBatch(same=[info._replace(stamp=trusted_stamp(info))])
        if (row := known.get(digest)) is not None and (copied := self._copied(info, digest, settings, row)):
            return prepare.PreparedBatch(prepared=[copied])
        try:
            found = self._reader.read(Path(info.location), info.kind)  # type: ignore[arg-type]
            done: prepare.PreparedBatch = self._pool.call(
                "tarsd.index.files:prepare_file", info, digest, found, settings
            )
        except ChildDied:
            why = "What reads this file was ended."
            done = prepare.PreparedBatch(failed=[Skipped(info.collection, info.path, "unreadable", why)])
        return done

    def _copied(self, info: FileInfo, digest: str, settings: prepare.PrepareSettings, row: FileRow) -> Prepared | None:
        """The file with what is known of one with the same bytes: it was moved, or is a copy."""
        notes = self.store.notes
        old = notes.note(row.key)
        passages = notes.passages_of(row.id)
        if old is None or not passages or passages[0].text == old.title:  # its text is its name
            return None
        properties = notes.properties([row.id]).get(row.id, {})
        said = [(p.line, p.reason, p.hint) for p in self.store.problems() if (p.collection, p.path) == row.key]
        new = replace(_row(info, old.aliases[0] if old.aliases else "", properties, settings), language=old.language)
        return _as_prepared(info, digest, settings, new, properties, said, passages)


def prepare_file(
    info: FileInfo, digest: str, found: Extracted, settings: prepare.PrepareSettings
) -> prepare.PreparedBatch:
    """Cut what was read of a file, in a child process: passages, and the table's vectors of them."""
    row = _row(info, found.title, dict(found.properties), settings)
    row = replace(row, language=guess("\n".join(page.text for page in found.pages)[:_LANGUAGE_CHARS]))
    passages = cut(found.pages, settings.chunk, row)
    problems = [(0, found.problem, found.hint)] if found.problem else []
    prepared = _as_prepared(info, digest, settings, row, dict(found.properties), problems, passages)
    done = prepare.PreparedBatch(prepared=[prepared])
    if settings.table:
        done.hashes = [passage.hash for passage in passages]
        texts = [embed_text(row.title, row.aliases, passage) for passage in passages]
        done.vectors = TableEmbedder().embed(texts, "document")
    return done


def _row(info: FileInfo, title: str, properties: Mapping[str, Any], settings: prepare.PrepareSettings) -> NoteRow:
    name = info.path.rpartition("/")[2]
    title = " ".join(title.split())[:_NAME_CHARS]
    return NoteRow(
        collection=info.collection,
        path=info.path,
        title=name,
        aliases=(title,) if title and title != name else (),
        kind=info.kind,
        local_only=prepare.is_private(info.path, settings.local_only),
        mtime_ns=info.mtime_ns,
        size=info.size,
        date=day_of(info.path, {}, settings.dates),
    )


def _as_prepared(
    info: FileInfo,
    digest: str,
    settings: prepare.PrepareSettings,
    row: NoteRow,
    properties: Mapping[str, Any],
    problems: Sequence[tuple[int, str, str]],
    passages: Sequence[Passage],
) -> Prepared:
    return Prepared(
        note=row,
        disk=prepare.shown_path(info),
        hash=digest,
        chunker=settings.chunker,
        properties=json.dumps(properties, ensure_ascii=False, default=str),
        words="\n".join(str(value) for value in properties.values()),
        problems=tuple(problems),
        passages=tuple(replace(passage, note=row) for passage in passages),
        links=(),
        stamp=trusted_stamp(info),
    )


def cut(pages: Sequence[Page], settings: ChunkSettings, row: NoteRow) -> list[Passage]:
    """The passages of a file's pages, none of two; at least one, the file's name where there is nothing to read.

    Lines are counted through all pages, each with one above it for what it is called, as `text_of` gives them.
    """
    found: list[Passage] = []
    above: tuple[str, ...] = ()
    first = 0
    for page in pages:
        lines = tuple(page.text.split("\n"))
        ends = [-1]
        for line in lines:
            ends.append(ends[-1] + len(line) + 1)
        headings = tuple(
            Heading(line=at, end_line=at, level=1, text=text)
            for offset, text in page.headings
            if (at := max(1, bisect_right(ends, offset - 1))) <= len(lines)
        )
        if page.text.strip():
            note = Note(path=row.path, title=row.title, lines=lines, headings=headings)
            for piece in chunk(note, settings, row):
                trail = piece.trail or above
                label = (named(page),) if page.label else ()
                found.append(
                    replace(
                        piece,
                        trail=(*trail, *label),
                        start_line=first + 1 + piece.start_line,
                        end_line=first + 1 + piece.end_line,
                        place=page.place if page.place or page.label else None,
                    )
                )
        above = (headings[-1].text,) if headings else above
        first += len(lines) + 1
    if not found:
        found = [Passage(row.title, 1, 1)]
    return [replace(piece, seq=seq, hash=_hash(row, piece), note=row) for seq, piece in enumerate(found)]


def text_of(passages: Sequence[Passage]) -> str:
    """What was read of a file, as Markdown: each page under a heading, its passages in the lines that they name."""
    lines: dict[int, str] = {}
    page = None
    for piece in passages:
        if piece.place is not None and piece.heading != page:
            page = piece.heading
            lines[piece.start_line - 1] = f"# {page}"
        for at, line in enumerate(piece.text.split("\n"), piece.start_line):
            at = min(at, piece.end_line)
            lines[at] = f"{lines[at]} {line}" if at in lines else line
    return "\n".join(lines.get(at, "") for at in range(1, max(lines, default=0) + 1))


def named(page: Page) -> str:
    """What a page is called where it is cited."""
    return f"page {page.label}" if page.place.startswith("page=") else page.label


def _hash(row: NoteRow, piece: Passage) -> bytes:
    parts = "\x1f".join((*row.aliases, "\x1e", *piece.trail, "\x1e", piece.text))
    return hashlib.blake2b(parts.encode(), digest_size=16).digest()


def file_vault(vault: Vault, settings: FilesSettings, exclude: Sequence[str]) -> Vault:
    """The same folder, in which the files are looked for that are no notes."""
    return Vault(
        vault.root,
        vault.collection,
        exclude,
        max_bytes=settings.max_mb * 1_000_000,
        kinds=suffixes(settings.kinds),
        folders=settings.folders,
    )
