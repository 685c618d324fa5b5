"""Which notes are meant: by a name, as a link has it, or by folder and tag. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from tarsd.passage import NoteRow, read_link
from tarsd.vault import fold_name

# A name as it is spelled goes before one in another case, and a path before a title.
_WHOLE, _ENDING, _WHOLE_FOLDED, _ENDING_FOLDED, _TITLE, _TITLE_FOLDED = range(6)
_IN_ANOTHER_CASE = {_WHOLE: _WHOLE_FOLDED, _ENDING: _ENDING_FOLDED, _TITLE: _TITLE_FOLDED}


class NameIndex:
    """All names that notes go by: their paths, the ends of these, titles and aliases."""

    def __init__(self, rows: Sequence[NoteRow]) -> None:
        self._named: dict[str, list[tuple[int, str, NoteRow]]] = {}
        for row in sorted(rows, key=lambda row: (row.collection != "", row.path.count("/"), len(row.path), row.path)):
            parts = row.path.split("/")
            if row.collection:
                self._add(f"{row.collection}/{row.path}", _WHOLE, row)
            for start in range(len(parts)):
                self._add("/".join(parts[start:]), _ENDING if start else _WHOLE, row)
            for name in {row.title, *row.aliases}:
                self._add(name, _TITLE, row)

    def _add(self, name: str, kind: int, row: NoteRow) -> None:
        self._named.setdefault(fold(name), []).append((kind, _plain(name), row))

    def find(self, name: str, hidden: Collection[int] = ()) -> list[NoteRow]:
        """The notes that a link with this target may mean, the one with the shortest path first.

        Paths go before ends of paths, and these before titles and aliases; before that, names that are spelled so go
        before those in another case. Notes of the vault go before those of a collection. Those with `hidden` ids are
        not known.
        """
        exact = _plain(name)
        found = [
            (kind if spelled == exact else _IN_ANOTHER_CASE[kind], row)
            for kind, spelled, row in self._named.get(fold(name), ())
            if row.id not in hidden
        ]
        if not found:
            return []
        best = min(kind for kind, _ in found)
        rows = list({row.key: row for kind, row in found if kind == best}.values())
        return [row for row in rows if not row.collection] or rows

    def close_to(self, name: str, hidden: Collection[int] = ()) -> str:
        """The name of a note that is spelled almost so, "" if there is none; names of notes with `hidden` ids are no
        suggestions.
        """
        spelled = {
            folded: named
            for folded, entries in self._named.items()
            if (named := next((plain for _, plain, row in entries if row.id not in hidden), ""))
        }
        close = get_close_matches(fold(name), spelled, n=1, cutoff=0.7)
        return spelled[close[0]] if close else ""


def matching(rows: Sequence[NoteRow], folder: str, tag: str, *, recent: bool, name: str = "") -> list[NoteRow]:
    """Those in a folder (and below), with a tag (or one below it) and with `name` in their path, "" for any.

    They come by path, or last changed first. A folder that is spelled so goes before one in another case.
    """
    folder, tag = unicodedata.normalize("NFC", folder).strip("/"), tag.lstrip("#").casefold()
    name = fold_path(name)
    if folder:
        inside = [row for row in rows if row.path.startswith(f"{folder}/")]
        rows = inside or [row for row in rows if fold_name(row.path).startswith(f"{fold_name(folder)}/")]
    found = [
        row
        for row in rows
        if (not tag or any(f"{own.casefold()}/".startswith(f"{tag}/") for own in row.tags))
        and (not name or name in fold_path(row.path))
    ]
    return sorted(found, key=lambda row: (-row.mtime_ns, row.path) if recent else (0, row.path))


def link_target(name: str) -> tuple[str, str]:
    """A note's name as people and models write it (`[[Note#Heading|alias]]`, `Note`), and its heading or `^block`."""
    name = name.strip()
    return read_link(name) or (name.strip("[]").strip(), "")


def file_of(name: str) -> str:
    """The path that a name means while the index does not know it."""
    return name if "." in name[-7:] else f"{name}.md"


def fold(name: str) -> str:
    """A name as it is compared: in any case, with or without its ending."""
    return fold_name(_plain(name))


def _plain(name: str) -> str:
    """A name as it is spelled, without its ending."""
    name = unicodedata.normalize("NFC", name).strip().strip("/")
    return name[:-3] if name.lower().endswith(".md") else name


def fold_path(path: str) -> str:
    """A path as it is compared, whatever its case and Unicode form."""
    return unicodedata.normalize("NFC", path).casefold()


def stands_in(path: str, text: str) -> bool:
    """Whether a path stands in a text as a whole, or at the end of a longer path; both folded."""
    at = text.find(path)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(path) : at + len(path) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        at = text.find(path, at + 1)
    return False
