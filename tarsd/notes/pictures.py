"""Pictures of the vault, as they go to a model that sees: the picture alone, bounded in size."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from tarsd.errors import NotFound, PathRefused, Refused
from tarsd.extract.bare import bare
from tarsd.notes.library import NoteLibrary
from tarsd.notes.resolve import link_target
from tarsd.parse.inline import links
from tarsd.passage import Key, Origin, Passage
from tarsd.providers.base import Picture
from tarsd.vault import nfc

ENDINGS = (".jpeg", ".jpg", ".png", ".webp")
LARGEST = 5_000_000
"""Bytes of a file; more than that is refused by some servers, and is more than models look at."""


@dataclass(frozen=True)
class VaultPicture:
    """A picture and where it lies; `local_only`: it must not leave this machine."""

    picture: Picture
    origin: Origin
    local_only: bool


def is_picture(name: str) -> bool:
    """Whether a name is that of a picture, by its ending."""
    return link_target(name)[0].lower().endswith(ENDINGS)


def embedded(passages: Iterable[Passage]) -> list[tuple[str, str]]:
    """The pictures that passages show, each with the folder of the note that shows it, in their order."""
    found = [
        (link.target, posixpath.dirname(passage.path))
        for passage in passages for link in links(passage.text, 1) if link.embed and is_picture(link.target)
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def open_picture(library: NoteLibrary, name: str, folder: str = "") -> VaultPicture:
    """The picture of this path or name, seen from a note in `folder`. Blocks.

    Raises `NotFound`, `NotReadable`, and `Refused` for one that is too large.
    """
    key = _place(library, nfc(link_target(name)[0]), folder)
    try:
        with library.vaults[key[0]].resolve(key[1]).open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, PathRefused):
        raise _missing(name) from None
    if len(data) > LARGEST:
        raise Refused(f"“{name}” is larger than {LARGEST // 10**6} MB and was not sent.", "Save it smaller.")
    kind, alone = bare(data)
    private = library.private_file(key) is not False
    return VaultPicture(Picture(posixpath.basename(key[1]), kind, alone), Origin(*key), private)


def _place(library: NoteLibrary, target: str, folder: str) -> Key:
    """Where a picture lies: beside the note, at this path of the vault, or anywhere under its name."""
    vault = library.vaults[""]
    for path in (posixpath.normpath(posixpath.join(folder, target)), posixpath.normpath(target)):
        try:
            if vault.resolve(path).is_file():
                return "", path
        except (OSError, PathRefused):
            continue
    found = library.unindexed(target)
    if found is None or not is_picture(found[1]):
        raise _missing(target)
    return found


def _missing(name: str) -> NotFound:
    return NotFound(f"There is no picture “{name}” to look at.")
