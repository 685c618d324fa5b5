"""Which notes are meant: by a name, as a link has it, by folder and tag; and a note in a list. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from tarsd.store import NoteRow


def matching(rows: Sequence[NoteRow], folder: str, tag: str, *, recent: bool, name: str = "") -> list[NoteRow]:
    """Those in a folder (and below), with a tag (or one below it) and with `name` in their path, "" for any.

    They come by path, or last changed first.
    """
    folder, tag = unicodedata.normalize("NFC", folder).strip("/"), tag.lstrip("#").casefold()
    name = fold_path(name)
    found = [
        row
        for row in rows
        if (not folder or row.path.startswith(f"{folder}/"))
        and (not tag or any(f"{one.casefold()}/".startswith(f"{tag}/") for one in row.tags))
        and (not name or name in fold_path(row.path))
    ]
    return sorted(found, key=lambda row: (-row.mtime_ns, row.path) if recent else (0, row.path))


def named(rows: Sequence[NoteRow], name: str) -> list[NoteRow]:
    """The notes that a link with this target may mean: by path, else by the end of a path, else by title or alias.

    Those of the vault go before those of a collection, which also go by "collection/path".
    """
    exact, wanted = unicodedata.normalize("NFC", name), fold(name)
    kinds: tuple[Callable[[NoteRow], bool], ...] = (
        lambda row: exact in _places(row),
        lambda row: wanted in map(fold, _places(row)),
        lambda row: fold(row.path).endswith(f"/{wanted}"),
        lambda row: wanted in map(fold, (row.title, *row.aliases)),
    )
    for fits in kinds:
        if found := [row for row in rows if fits(row)]:
            return [row for row in found if not row.collection] or found
    return []


def _places(row: NoteRow) -> list[str]:
    return [row.path, f"{row.collection}/{row.path}"] if row.collection else [row.path]


def entry(row: NoteRow) -> dict[str, object]:
    """A note as it stands in a list."""
    return {
        "path": row.path,
        "collection": row.collection,
        "title": row.title,
        "aliases": list(row.aliases),
        "tags": list(row.tags),
        "modified": row.mtime_ns / 1e9,
    }


def names_of(rows: Sequence[NoteRow]) -> dict[str, NoteRow]:
    """Every name a note can be called by; of several notes the one with the shortest path has it, paths go first."""
    names: dict[str, NoteRow] = {}
    shortest = sorted(rows, key=lambda row: (row.collection != "", row.path.count("/"), len(row.path), row.path))
    for row in shortest:
        parts = fold(row.path).split("/")
        for start in range(len(parts)):
            names.setdefault("/".join(parts[start:]), row)
    for row in shortest:
        for name in (row.title, *row.aliases):
            names.setdefault(fold(name), row)
    return names


def fold(name: str) -> str:
    """A name as it is compared: in any case, with or without its ending."""
    folded = unicodedata.normalize("NFC", name).strip().strip("/").casefold()
    return folded.removesuffix(".md")


def fold_path(path: str) -> str:
    """A path as it is compared, whatever its case and Unicode form."""
    return unicodedata.normalize("NFC", path).casefold()
