"""Notes by the names that a person gives them: completed while they are typed, looked up before they are attached."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tarsd.cli.common import note_path
from tarsd.cli.terminal import clean, line
from tarsd.cli.turns import TerminalChat
from tarsd.client import Client
from tarsd.config.rules import fold_name
from tarsd.errors import ClientError, Conflict, NotFound


class Names:
    """The names of all notes as links write them, and their paths; asked for once, at the first Tab that needs them.

    A name that several notes have is there as their paths alone.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: list[str] | None = None

    def __call__(self) -> Sequence[str]:
        if self._known is None:
            paths = [clean(str(note.get("path", "")).removesuffix(".md")) for note in _listed(self._client)]
            short = [path.rpartition("/")[2] for path in paths]
            twice = {name for name in short if short.count(name) > 1} if len(set(short)) < len(short) else set()
            self._known = list(dict.fromkeys([*(name for name in short if name not in twice), *paths]))
        return self._known


Fold = Callable[[object], str]


def attach(talk: TerminalChat, given: str) -> None:
    """Has the note that is meant go with every message. Raises NotFound, and Conflict if it does already."""
    path = meant(talk.client, given)
    if path in talk.notes:
        raise Conflict(f"“{line(path)}” is already attached.", "/note alone detaches all notes.")
    talk.notes.append(path)


def meant(client: Client, given: str) -> str:
    """The path of the note that a person means by a path, name, alias or `[[link]]`. Raises NotFound."""
    return found(client, bare(note_path(client, given)))


def bare(name: str) -> str:
    """A name without a link around it, and without that link's heading and label."""
    if name.startswith("[[") and name.endswith("]]"):
        return name[2:-2].partition("|")[0].partition("#")[0].strip()
    return name


def found(client: Client, name: str) -> str:
    """The path of the note with this path, end of a path, title or alias. Raises NotFound."""
    listed = _listed(client)
    for names in ((_paths, _ends), (_names,)):
        for fold in (_plain, _fold):  # as it is spelled goes before another case
            for key in names:
                for note in listed:
                    if fold(name) in key(note, fold):
                        return str(note.get("path"))
    for path in (name, f"{name}.md"):  # it may be newer than the index
        try:
            return str(client.get(f"/v1/notes/{quote(path, safe='/')}").get("path") or path)
        except ClientError as error:
            if error.code == "no_daemon":
                raise
    every = {key: _shown(note, key) for note in listed for key in _names(note, _fold) | {_fold(_base(note))}}
    close = difflib.get_close_matches(_fold(name), every, n=1, cutoff=0.6)
    guess = f"Did you mean “{line(every[close[0]])}”?" if close else "Tab completes the names of notes."
    raise NotFound(f"There is no note “{line(name)}”.", guess)


def _base(note: Mapping[str, Any]) -> str:
    return str(note.get("path", "")).removesuffix(".md").rpartition("/")[2]


def _shown(note: Mapping[str, Any], key: str) -> str:
    """A note's name as it is spelled where it folds to `key`: its path, or else a title or alias."""
    if key == _fold(_base(note)):
        return str(note.get("path", "")).removesuffix(".md")
    return next(name for name in _names(note, str) if _fold(name) == key)


def _paths(note: Mapping[str, Any], fold: Fold) -> set[str]:
    path = fold(note.get("path", ""))
    return {path, path.removesuffix(".md")}


def _ends(note: Mapping[str, Any], fold: Fold) -> set[str]:
    parts = fold(note.get("path", "")).split("/")
    whole = ["/".join(parts[at:]) for at in range(len(parts))]
    return {*whole, *(path.removesuffix(".md") for path in whole)}


def _names(note: Mapping[str, Any], fold: Fold) -> set[str]:
    return {fold(name) for name in (note.get("title") or "", *(note.get("aliases") or []))} - {""}


def _plain(text: object) -> str:
    return unicodedata.normalize("NFC", str(text))


def _fold(text: object) -> str:
    return fold_name(str(text))


def _listed(client: Client) -> list[Mapping[str, Any]]:
    return list(client.get("/v1/notes").get("notes") or [])
