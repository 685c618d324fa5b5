"""Which note and lines are meant, in every form that these tools print: a path, a link, an address, a cited line.

A name is first taken as it is given, for a note may be called `Ratio 3:4`; only what leads nowhere is read as a place.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from tarsd.config.rules import fold_name
from tarsd.errors import BadRequest, ClientError

T = TypeVar("T")
MOST = 12
"""Places that are looked at for one text."""

_BEFORE = re.compile(
    r"""\A\s*(?:(?:\d{1,4}\.|[-*>]|\[\d+(?:[-,\s\d]*)\]|【\d+】)\s+)?
    (?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?:\s?(?:[+-]\d\d:\d\d|Z))?\s+)?""",
    re.VERBOSE,
)
"""What our lists have in front of a path: a number, a citation, a time."""
_LINES = re.compile(
    r"""(?:\s*:\s*L?|\#L|,?\s*\(?\blines?\s+)(?P<start>\d{1,9})
    (?:\s*(?:-|–|—|\.\.|to)\s*L?(?P<end>\d{1,9})|:\d{1,9})?\)?""",
    re.IGNORECASE | re.VERBOSE,
)
_REST = re.compile(r"(?:\s+of\s+\d+)?\.?\s*(?:\Z|\s\s.*|,.*|\s(?:obsidian|tarsd)://.*|\s›.*|\s\(.*)", re.DOTALL)
"""What may follow the lines in our lists: how many there are, the title, the address."""
_ADDRESS = re.compile(r"(?:obsidian|tarsd)://[^\s>)\"'`\]]+", re.IGNORECASE)
_LABELLED = re.compile(r"!?\[[^\[\]]*\]\(\s*<?(?P<target>(?:obsidian|tarsd)://[^\s<>]+?)>?\s*\)", re.IGNORECASE)
_WIKI = re.compile(r"!?\[\[[^\[\]]+\]\]")
_QUOTES = "\"'`“”‘’«»<>"


@dataclass(frozen=True)
class Place:
    """A note by a name that the daemon takes, and the lines that are meant, 0 where none are named."""

    name: str
    start: int = 0
    end: int = 0


def found(given: str, vault: str, ask: Callable[[str], T]) -> tuple[T, Place]:
    """What `ask` gives for the note that is meant by `given`, and the place; `vault` is the vault's name in Obsidian.

    Raises `BadRequest` for an address of another vault, and what `ask` raises.
    """
    missing: dict[Place, ClientError] = {}
    for place in read(given, vault):
        try:
            return ask(place.name), place
        except ClientError as error:
            if error.code not in ("not_found", "path_refused"):
                raise
            missing[place] = error
    lined = [error for place, error in missing.items() if place.start]  # the surest sign of what was meant
    raise (lined or list(missing.values()))[0 if lined else -1]


def read(given: str, vault: str) -> list[Place]:
    """The places that a text may mean, as it is spelled first. Raises as `found`."""
    text = given.strip()
    labelled = _LABELLED.fullmatch(text)
    address = labelled["target"] if labelled else text.strip(_QUOTES)
    if re.match(r"(?:obsidian|tarsd)://", address, re.IGNORECASE):
        return _addressed(address, vault)
    places = [Place(text), *(Place(link[0].lstrip("!")) for link in _WIKI.finditer(text))]
    for link in _ADDRESS.finditer(text):
        with contextlib.suppress(BadRequest):  # what stands beside it may do
            places += _addressed(link[0], vault)
    bare = _BEFORE.sub("", text).strip()
    for form in dict.fromkeys((bare, bare.strip(_QUOTES))):
        places += [Place(form), *_with_lines(form)]
    lined = [place for place in places[1:] if place.start]
    return list(dict.fromkeys(place for place in (places[0], *lined, *places[1:]) if place.name))[:MOST]


def _with_lines(text: str) -> list[Place]:
    """`Note.md:18-22`, with or without what our lists have behind it."""
    made = []
    for lines in _LINES.finditer(text):
        name = text[: lines.start()].strip().strip(_QUOTES)
        if name and _REST.match(text, lines.end()):
            start = int(lines["start"])
            made.append(Place(name, start, max(start, int(lines["end"] or start))))
    return made


def _addressed(address: str, vault: str) -> list[Place]:
    """What `obsidian://open?vault=…&file=…`, `obsidian://vault/My vault/Note` or `tarsd://note/…` leads to."""
    scheme, _, rest = address.partition("://")
    if scheme.lower() == "tarsd":
        kind, _, path = rest.partition("/")
        if kind.lower() != "note" or not path:
            raise _no_note()
        return _named(_decoded(path))
    host, _, path = rest.partition("?")[0].partition("/")
    given = dict(parse_qsl(urlsplit(address).query.replace("+", "%2B")))
    name = given.get("file") or given.get("filepath") or ""
    of = given.get("vault", "")
    if host.lower() == "vault":  # obsidian://vault/VAULT/NOTE
        of, _, name = _decoded(path).partition("/")
    if of and fold_name(of) != fold_name(vault) and not re.fullmatch(r"[0-9a-f]{16}", of):  # which is Obsidian's own id
        said = f"That address is in the vault “{of[:100]}”; this server reads “{vault}”."
        raise BadRequest(said, "Give the note's path, or search for it.", field="path")
    if not name:
        raise _no_note()
    return _named(name)


def _named(name: str) -> list[Place]:
    """A note with the lines or the heading that an address has behind it; `#` may also stand in the note's name."""
    lines = [place for place in _with_lines(name) if place.name.lower().endswith(".md")]
    parts = name.split("#")[:8]
    return [Place(name), *lines, *(Place("#".join(parts[:end])) for end in range(len(parts) - 1, 0, -1) if parts[0])]


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise _no_note() from None


def _no_note() -> BadRequest:
    return BadRequest("This is not the address of a note.", "Give the path of a note, or search for it.", field="path")
