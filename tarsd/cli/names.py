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

QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("„", "“"), ("«", "»"), ("`", "`"))


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
    name = bare(note_path(talk.client, bare(given)))
    path = found(talk.client, name)
    if path in talk.notes:
        raise Conflict(f"“{line(path)}” goes with every message already.", "/note alone lets go of all notes.")
    talk.notes.append(path)


def bare(given: str) -> str:
    """A name without the marks of a quotation or a link around it, and without a link's heading and label."""
    name = given.strip()
    for first, last in QUOTES:
        if len(name) > 1 and name[0] == first and name[-1] == last:
            name = name[1:-1].strip()
    if name.startswith("[[") and name.endswith("]]"):
        name = name[2:-2].partition("|")[0].partition("#")[0].strip()
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
    wanted = _fold(name)
    for path in (name, f"{name}.md"):  # it may be newer than the index
        try:
            return str(client.get(f"/v1/notes/{quote(path, safe='/')}").get("path") or path)
        except ClientError as error:
            if error.code == "no_daemon":
                raise
    every = {
        _fold(path.removesuffix(".md").rpartition("/")[2]): path for path in (str(note.get("path")) for note in listed)
    }
    close = difflib.get_close_matches(wanted, every, n=1, cutoff=0.6)
    guess = (
        f"Did you mean “{line(every[close[0]]).removesuffix('.md')}”?" if close else "Tab completes the names of notes."
    )
    raise NotFound(f"There is no note “{line(name)}”.", guess)


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
