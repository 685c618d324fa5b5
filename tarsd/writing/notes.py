"""Notes read for writing, and free names for new ones."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from tarsd.errors import NotFound, PathRefused
from tarsd.vault import Vault, content_hash, decode, fold_name, is_conflict_copy, kind_of, nfc, read_file
from tarsd.writing.changes import Loaded

NAME_BYTES = 100
"""Longest name without its ending: disks allow 255, but sync tools and archives add to names."""
UNNAMED = "Untitled"

_DASHED = re.compile(r"\s*[\\/:|]+\s*")
_DROPPED = re.compile(r'[*?"<>#^\[\]]|%%|%(?=2e|2f|5c|25|00)', re.IGNORECASE)
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\\/:](?=\d)")
_TAKEN_BY_WINDOWS = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?=\.|$)", re.IGNORECASE)
_JOINERS = "\u200c\u200d"  # inside emoji and some scripts they are part of a letter


class Notebook:
    """The notes of a vault, each read as a whole when it is asked for.

    `own` is the folder of the daemon's own notes: they are reached even where the person left them out of the search.
    """

    def __init__(self, vault: Vault, *, own: str = "") -> None:
        self.vault = vault
        self._own = nfc(own).strip("/").casefold() + "/" if own.strip("/") else ""

    def load(self, path: str) -> Loaded:
        """The note at a relative path, exactly as it is spelled there.

        Raises NotFound, PathRefused (unsafe, or left out by a rule), Unreadable, VaultUnavailable.
        """
        self.vault.check()
        self._resolve(path)
        raw = self.raw(path)
        if raw is None:
            there = self._actual(path)
            hint = f"There is {there}." if there else "Check its spelling and folder."
            raise NotFound(f"There is no note at {path}.", hint)
        read = decode(raw)
        return Loaded(self._plain(path), raw, read.text, read.encoding, content_hash(raw))

    def raw(self, path: str) -> bytes | None:
        """The bytes at a relative path, left out or not; None if nothing is spelled like that. Raises as `load`."""
        self.vault.check()
        location = self.vault.resolve(path, excluded=True)
        if kind_of(location.name) is None:
            raise PathRefused("Only notes can be read: .md, .canvas and .base.", "Add the ending .md.")
        actual = self._actual(path)
        if actual is None or nfc(actual) != nfc(path):  # on some disks a wrong case opens the file all the same
            return None
        try:
            return read_file(str(location))
        except NotFound:
            return None

    def exists(self, path: str) -> bool:
        """Is there anything at this path, whatever its case or Unicode form? Raises PathRefused."""
        self._resolve(path)
        return self._actual(path) is not None

    def paths(self, folder: str) -> list[str]:
        """The Markdown notes directly in a folder, by name; none if there is no such folder."""
        there = self._actual(nfc(folder).strip("/"))
        if there is None:
            return []
        return sorted(f"{there}/{name}" for name in _names(self.vault.root / there) if kind_of(name) == "note")

    def free_path(self, folder: str, title: str, ext: str = ".md", *, tail: str = "") -> str:
        """A path in `folder` that nothing has, named for `title`: legal on every system, and in Obsidian's links.

        `tail` stands at the name's end however long the title is. Raises PathRefused if the folder is none that may be
        written to.
        """
        folder = nfc(folder).strip("/")
        folder = (self._actual(folder) or folder) if folder else ""
        inside = f"{folder}/" if folder else ""
        self._resolve(f"{inside}x{ext}")
        taken = {_key(name) for name in _names(self.vault.root / folder)}
        stem = legal_name(title, ext, tail=tail)
        name, number = stem, 1
        while _key(name + ext) in taken:
            number += 1
            name = f"{_cut(stem, NAME_BYTES - len(str(number)) - 1)} {number}"
        return nfc(inside + name + ext)

    def _resolve(self, path: str) -> Path:
        ours = bool(self._own) and nfc(path).casefold().startswith(self._own)
        return self.vault.resolve(path, excluded=ours)

    def _plain(self, path: str) -> str:
        """The path in NFC, unless another note has that one."""
        composed = nfc(path)
        same = self.vault.resolve(composed, excluded=True) == self.vault.resolve(path, excluded=True)
        return composed if same else path

    def _actual(self, path: str) -> str | None:
        """The path as the disk spells it, whatever its case and form; an exact match goes first. None: not there."""
        found: list[str] = []
        for part in path.split("/"):
            alike = [name for name in _names(self.vault.root.joinpath(*found)) if _key(name) == _key(part)]
            if not alike:
                return None
            found.append(min(alike, key=lambda name: (name != part, nfc(name) != nfc(part), name)))
        return "/".join(found)


def legal_name(title: str, ext: str = ".md", *, tail: str = "") -> str:
    """A file name without its ending that says `title` as far as disks, sync tools and links can, then `tail`."""
    name = nfc(title)
    if name.casefold().endswith(ext):
        name = name[: -len(ext)]
    name = "".join(char for char in name if char in _JOINERS or char.isspace() or unicodedata.category(char)[0] != "C")
    name = _DROPPED.sub("", _DASHED.sub(" - ", _BETWEEN_DIGITS.sub("-", name)))
    name = _cut(" ".join(name.split()), NAME_BYTES - len(tail.encode())).strip(" .-").lstrip("~ .-")
    if reserved := _TAKEN_BY_WINDOWS.match(name):
        name = f"{reserved[0]}_{name[reserved.end() :]}"
    if is_conflict_copy(name + ext):  # such a name would keep it out of every search
        name = name.replace("(", "").replace(")", "")
    return (name if name.strip(_JOINERS + " ") else UNNAMED) + tail


def _cut(text: str, limit: int) -> str:
    """At most `limit` bytes, never ending within a letter that is made of several characters."""
    if len(text.encode()) <= limit:
        return text
    end = len(text.encode()[:limit].decode(errors="ignore"))
    while end and (_joined(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end].rstrip()


def _joined(char: str) -> bool:
    return bool(unicodedata.combining(char)) or char in "\u200d\ufe0e\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff"


def _key(name: str) -> str:
    return fold_name(name)


def _names(folder: Path) -> Iterator[str]:
    """The names in a folder, also of files that are only in iCloud; none if the folder does not exist."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        yield name[1:-7] if name.startswith(".") and name.endswith(".icloud") else name
