"""Text for a prompt: invisible characters are removed, and markup is escaped. Pure."""

from __future__ import annotations

import re

from tarsd.parse.visibility import without_hidden

_UNSEEN = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_JOINED = re.compile("(?<=[\u0600-\u1cff\u2600-\u27bf\ufe0f\U0001f000-\U0001faff])[\u200c\u200d](?=\\S)")
_HIDDEN = re.compile(
    f"{_UNSEEN.pattern[:-1]}\u034f\u061c\u115f\u1160\u17b4\u17b5\u3164\uffa0\U000e0080-\U000e01ef\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])
_ESCAPES = str.maketrans({"<": "&lt;", ">": "&gt;"})


def visible(text: str) -> str:
    """`text` as a reader sees it: no hidden HTML, no invisible characters but the joiners of scripts and emoji."""
    shown = without_hidden(text)
    joiners = {match.start() for match in _JOINED.finditer(shown)}
    return _UNSEEN.sub(lambda match: match[0] if match.start() in joiners else "", shown)


def revealed(text: str) -> tuple[str, int]:
    """`text` with every sign that nobody sees as `⟨U+200B⟩`, and how many those are; joiners of scripts and emoji stay.

    For what a person is asked to allow: tags and zero-width signs hide text, bidi controls turn it round.
    """
    joiners = {match.start() for match in _JOINED.finditer(text)}
    found = [match.start() for match in _HIDDEN.finditer(text) if match.start() not in joiners]
    signs = list(text)
    for at in found:
        signs[at] = f"⟨U+{ord(text[at]):04X}⟩"
    return "".join(signs), len(found)


def printable(text: str) -> str:
    """`text` without control characters but line ends and tabs; line ends are "\\n"."""
    return text.translate(_CONTROLS)


def escape(text: str) -> str:
    """`text` that can open and close no tag."""
    return text.translate(_ESCAPES)


def cap(text: str, limit: int) -> str:
    """At most about `limit` characters, cut at a line where one is near, with a word on what was cut."""
    if len(text) <= limit:
        return text
    cut = text[:limit]
    cut = cut[: cut.rfind("\n") + 1] if cut.rfind("\n") > limit * 0.8 else cut
    return f"{cut}\n[… cut here: {len(text) - len(cut):,} of {len(text):,} characters not shown]"


def sound(text: str) -> str:
    """`text` that can be written anywhere: halves of a surrogate pair are joined, and one alone is replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
