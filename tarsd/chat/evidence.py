"""What a turn may say about the notes: follow-ups resolved, passages packed. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from tarsd.parse.inline import WIKILINK, name_and_place
from tarsd.passage import Passage
from tarsd.search import RELEVANT
from tarsd.words import fold, is_stop, split_words

NEAR = 0.2
QUERY_CHARS = 1_000
CHARS_PER_TOKEN = 4

_OPENER = re.compile(r"\s*(?:and|und|or|oder|et|y|e|what about|how about|was ist mit|wie ist es mit|but|aber)\b", re.I)
_ASKS = re.compile(
    r"\s*(?:what|who|whom|whose|when|where|why|how|which|was|wer|wen|wann|wo|warum|wie|welche\w*)\b", re.I
)
_EXPLETIVE = re.compile(r"\b(?:(?:is|are|was|were) there|there (?:is|are|was|were)|gibt es|es gibt)\b", re.I)
_PRONOUNS = frozenset(
    re.findall(
        r"\w+",
        """it its they them their theirs that those these this he him his she her hers there then one ones both former
        latter same er ihn ihm sein seine sie ihr ihre ihnen es das dies diese dieser dieses jene dort da damit davon
        dafür daran darüber dazu dabei il elle ils elles lui leur ça cela ceci eso esto ella ellos ellas""",
    )
)
_MORE = frozenset({"more", "else", "tell", "please", "ok", "mehr", "noch", "bitte"})


def mentions(message: str) -> list[str]:
    """The notes that a message names as `[[Note]]`, each once."""
    return list(dict.fromkeys(name for link in WIKILINK.finditer(message) if (name := _named(link))))


def queries(message: str, earlier: Sequence[str]) -> list[str]:
    """What to search for, best guess first: the message, or with the last query before it where it refers back.

    `earlier` are the queries of this conversation, oldest first. A second guess is to be tried when the first one
    finds nothing relevant.
    """
    plain = WIKILINK.sub(lambda link: _named(link) or link[0], message)
    # "-5 degrees" or "- milk" in a sentence is no wish to exclude
    plain = re.sub(r"(?<!\S)-+(?=\S)", "", " ".join(plain.split()))[:QUERY_CHARS].strip()
    if not earlier or not earlier[-1]:
        return [plain]
    said = split_words(fold(_EXPLETIVE.sub(" ", plain)))
    empty = is_stop(said)
    content = [word for word, no in zip(said, empty, strict=True) if not no and word not in _PRONOUNS | _MORE]
    together = f"{earlier[-1]} {plain}"[-QUERY_CHARS:]
    if not content:
        return [together]
    opener = _OPENER.match(plain)
    if any(word in _PRONOUNS for word in said):
        return [together, plain] if len(content) <= 4 else [plain, together]
    # "and the harbour?" is half a question, "and what is a quorl?" a new one
    return [plain, together] if opener and not _ASKS.match(plain, opener.end()) else [plain]


def pack(
    passages: Sequence[Passage], attached: Sequence[Passage], *, most: int, per_note: int, tokens: int
) -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
    """(evidence, closest): passages numbered from 1 that fit the budget, attached notes first; and the near misses.

    Only passages of at least fair relevance are evidence, and only without any the near misses are named.
    """
    chosen: list[Passage] = []
    room = tokens * CHARS_PER_TOKEN
    wanted = {(passage.collection, passage.path, passage.start_line) for passage in passages}
    own = sorted(attached, key=lambda passage: (passage.collection, passage.path, passage.start_line) not in wanted)
    relevant = [passage for passage in passages if passage.relevance >= RELEVANT]
    for passage in [*own, *relevant]:
        if any(_overlap(passage, other) for other in chosen):
            continue
        of_note = sum((other.collection, other.path) == (passage.collection, passage.path) for other in chosen)
        if not passage.attached and (of_note >= per_note or len(chosen) >= most):
            continue
        if chosen and len(passage.text) > room:
            continue
        room -= len(passage.text)
        chosen.append(passage)
    evidence = tuple(replace(passage, number=number) for number, passage in enumerate(chosen, 1))
    near = () if evidence else tuple(passage for passage in passages if passage.relevance >= NEAR)[:most]
    return evidence, near


def unsent(attached: Sequence[Passage], evidence: Sequence[Passage]) -> str:
    """How much of what was attached is not in the evidence, in a sentence; "" when all is."""
    left = [passage for passage in attached if not any(_overlap(passage, other) for other in evidence)]
    if not left:
        return ""
    names = ", ".join(f"“{name}”" for name in list(dict.fromkeys(passage.note.title for passage in left))[:3])
    return f"Too long to go along whole: {len(left)} of {len(attached)} passages of {names} were left out."


def widen(
    evidence: Sequence[Passage], around: Callable[[Passage], Sequence[Passage]], tokens: int
) -> tuple[Passage, ...]:
    """The passages, best first, each with its neighbours in the note as long as all stay within so many tokens.

    A neighbour that is evidence itself, or does not touch the passage line by line, is not taken.
    """
    room = tokens * CHARS_PER_TOKEN - sum(len(passage.text) for passage in evidence)
    wide = list(evidence)
    for index, passage in enumerate(evidence):
        if passage.attached or room <= 0:
            continue
        others = [other for other in wide if other.number != passage.number]
        for neighbour in around(passage):
            joined = _joined(wide[index], neighbour)
            more = len(joined.text) - len(wide[index].text) if joined is not None else 0
            if joined is None or more > room or any(_overlap(neighbour, other) for other in others):
                continue
            room -= more
            wide[index] = joined
    return tuple(wide)


def _joined(passage: Passage, neighbour: Passage) -> Passage | None:
    """Both as one passage, None where their lines do not meet or a line of theirs was cut."""
    parts = (passage, neighbour)
    lines: dict[int, str] = {}
    for part in parts:
        rows = part.text.split("\n")
        if len(rows) != part.end_line - part.start_line + 1:
            return None
        lines |= dict(zip(range(part.start_line, part.end_line + 1), rows, strict=True))
    first, last = min(lines), max(lines)
    # blank lines between two passages belong to neither of them
    if max(part.start_line for part in parts) - min(part.end_line for part in parts) > 3:
        return None
    text = "\n".join(lines.get(number, "") for number in range(first, last + 1))
    return replace(passage, start_line=first, end_line=last, text=text)


def _overlap(passage: Passage, other: Passage) -> bool:
    """Whether most of a passage's lines are in the other one already (chunks overlap a little on purpose)."""
    if (passage.collection, passage.path) != (other.collection, other.path):
        return False
    shared = min(passage.end_line, other.end_line) - max(passage.start_line, other.start_line) + 1
    return shared > 0.5 * (passage.end_line - passage.start_line + 1)


def _named(link: re.Match[str]) -> str:
    return name_and_place(link["target"])[0]
