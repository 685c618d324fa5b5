"""Takes out of a text what tells whose machine it is and what the notes are called."""

from __future__ import annotations

import contextlib
import os
import platform
import pwd
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import tarsd
from tarsd.config import Config, expand
from tarsd.config.places import user_home
from tarsd.doctor.finding import Skip
from tarsd.doctor.subject import DoctorContext
from tarsd.errors import TarsdError

ASK_S: Final = 10.0
SHORTEST: Final = 2
"""A single letter tells nothing, and stands everywhere."""
_LITERAL: Final = re.compile(r'(?<!")"((?:[^"\\\n]|\\.)+)"(?!")')
"""A string of a Python source; no docstring, which says nothing to anybody who runs it."""


class Redactor:
    """`places` hides paths, user, machine and vault; `names` hides what notes, folders and tags are called as well."""

    def __init__(self, places: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._places = _longest_first(places)
        self._names = _longest_first(names)

    @classmethod
    def of(cls, subject: DoctorContext) -> Redactor:
        """For this machine and this vault, with all names that can be had."""
        try:
            config = subject.config
        except Skip:
            return cls(dict(_machine(subject.env)), {})
        own = _own_words()
        names = {name: shown for name, shown in _names(subject, config) if not _stands_in(name, own)}
        return cls({**dict(_machine(subject.env)), **dict(_vaults(config))}, names)

    def places(self, text: str) -> str:
        """Without what tells whose machine this is."""
        return _replaced(text, self._places)

    def names(self, text: str) -> str:
        """The same, and without the names of notes, folders and tags."""
        return _replaced(self.places(text), self._names)


def _longest_first(values: Mapping[str, str]) -> list[tuple[str, str]]:
    kept = ((name, shown) for name, shown in values.items() if len(name) >= SHORTEST)
    return sorted(kept, key=lambda entry: -len(entry[0]))


def _replaced(text: str, values: Iterable[tuple[str, str]]) -> str:
    for name, shown in values:
        if name in text:  # most names stand nowhere
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", shown, text)
    return text


def _stands_in(name: str, text: str) -> bool:
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _own_words() -> str:
    """All that tarsd's sentences are made of: a note that is called like some of it must not change them.

    Such a name is left as it is, and tells nothing: the sentences would hold the same words without the note.
    """
    sources = Path(tarsd.__file__).parent.rglob("*.py")
    return "\n".join(text for file in sources for text in _LITERAL.findall(file.read_text(encoding="utf-8")))


def _machine(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for host in {socket.gethostname(), platform.node()}:
        yield from ((name, "host") for name in (host, host.lower(), host.partition(".")[0]))
    home = user_home(env)
    users, homes = [home.name, env.get("USER", ""), env.get("LOGNAME", "")], [str(home), os.path.realpath(home)]
    with contextlib.suppress(KeyError):  # a container's user may have no account
        account = pwd.getpwuid(os.getuid())
        users.append(account.pw_name)
        homes.append(account.pw_dir)
    yield from ((user, "user") for user in users)
    yield from ((place, "~") for place in homes)
    yield sys.prefix, "<installation>"
    if env.get("TARSD_HOME"):
        yield str(expand(env["TARSD_HOME"], env)), "$TARSD_HOME"


def _vaults(config: Config) -> Iterator[tuple[str, str]]:
    yield config.vault_id, "vault-id"
    if config.memory_folder != Config.memory_folder:
        yield config.memory_folder, "own-folder"
    yield config.vault.name, "vault"
    yield str(config.vault), "<vault>"
    for number, collection in enumerate(config.collections, 1):
        yield collection.name, f"collection-{number}"
        yield collection.root.name, f"collection-{number}"
        yield str(collection.root), f"<collection-{number}>"


def _names(subject: DoctorContext, config: Config) -> Iterator[tuple[str, str]]:
    """What is on disk, and what the daemon knows beyond that: titles, aliases, tags."""
    known = _known(subject)
    paths = {str(note["path"]) for note in known}
    with contextlib.suppress(Skip):
        paths |= {info.path for info in subject.scan.files.values()} | {
            passed_over.path for passed_over in subject.scan.skipped
        }
    folders = {part for path in paths for part in path.split("/")[:-1]}
    tags = {part for note in known for tag in note.get("tags") or [] for part in (tag, *tag.split("/"))}
    rules = {rule.strip("/#*") for rule in (*config.exclude, *config.privacy.local_only)}
    for kind, values in (("tag", tags), ("rule", rules), ("folder", folders)):
        yield from ((value, f"{kind}-{number}") for number, value in enumerate(sorted(values), 1))
    numbers = {path: number for number, path in enumerate(sorted(paths), 1)}
    for note in known:
        for name in (note.get("title"), *(note.get("aliases") or [])):
            yield str(name), f"note-{numbers[note['path']]}"
    for path, number in numbers.items():
        name, _, ending = path.rpartition("/")[2].rpartition(".")
        shown = f"note-{number}"
        yield from ((name or ending, shown), (f"{name}.{ending}", f"{shown}.{ending}"), (path, f"{shown}.{ending}"))


def _known(subject: DoctorContext) -> list[dict[str, Any]]:
    if subject.hello is None:
        return []
    try:
        listed = subject.client(ASK_S).get("/v1/notes").get("notes") or []
    except TarsdError:
        return []
    return [note for note in listed if isinstance(note, dict) and note.get("path")]
