"""What a terminal may be sent: colours and links where it takes them, and nothing from a note that could command it."""

from __future__ import annotations

import os
import re
import unicodedata
from functools import partialmethod
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

CONTROLS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
CONTROLS |= {0x7F: "\u2421", **{code: "\ufffd" for code in range(0x80, 0xA0)}}
BIDI = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "")
HARMLESS = str.maketrans({**CONTROLS, **BIDI, "\r": "", "\t": "    "})
ESCAPED = {code: f"\\u{code:04x}" for code in [*range(0x7F, 0xA0), *BIDI]}
"""The same for JSON, where they can be written so that nothing is lost."""


def clean(text: object) -> str:
    """Text from a note, a model or a file name, safe to print: no escape sequence and no reordering survives."""
    return str(text).encode("utf-8", "replace").decode().translate(HARMLESS)


def line(text: object) -> str:
    """Text as `clean` makes it, on one line."""
    return " ".join(clean(text).split())


class Terminal:
    """Where output goes: whether it takes colours and links, and how wide it is."""

    def __init__(self, stream: TextIO) -> None:
        self.live = stream.isatty()
        dumb = os.environ.get("TERM", "") in ("", "dumb")
        self.colour = self.live and not dumb and not os.environ.get("NO_COLOR")
        self.links = self.live and not dumb
        self.edge = max(20, _columns(stream)) if self.live else 0
        """The terminal's whole width; `width` is at most as much as can be read well."""
        self.width = max(40, min(self.edge, 110)) if self.live else 100

    def _style(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text

    bold = partialmethod(_style, "1")
    dim = partialmethod(_style, "2")  # what matters less
    green = partialmethod(_style, "32")  # all is well
    yellow = partialmethod(_style, "33")  # something to know
    red = partialmethod(_style, "31")  # something is wrong
    cyan = partialmethod(_style, "36")  # a place
    mark = partialmethod(_style, "1;33")  # a word that matched

    def link(self, text: str, path: Path) -> str:
        """A file that can be clicked (OSC 8)."""
        if not self.links:
            return text
        return f"\x1b]8;;file://{quote(os.fsencode(path))}\x1b\\{text}\x1b]8;;\x1b\\"


def _columns(stream: TextIO) -> int:
    """How wide the terminal is."""
    try:
        return int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def columns(text: str) -> int:
    """How many columns the text takes; wide letters take two and combining ones none."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def fit(text: str, width: int, around: int = 0) -> str:
    """At most `width` columns of the text, those around the letter at `around`, with … where something is cut."""
    if columns(text) <= width:
        return text
    start = max(0, min(around - width // 3, len(text) - width))
    if start:
        start = text.find(" ", start, start + 20) + 1 or start
    cut = text[start:]
    while columns(cut) > width - (2 if start else 1):
        cut = cut[: -max(1, (columns(cut) - width) // 2)]
    tail = "" if start + len(cut) >= len(text) else "…"
    return ("…" if start else "") + cut.rstrip() + tail


WORD = re.compile(r"[^\W_]+")
STOP = frozenset(
    WORD.findall(
        """a an and are as at be but by can did do does for from had has have how i if in into is it its me my no not of
        on or our she so than that the their them then there these they this to was we were what when where which who
        why will with you your der die das und ist ein eine wie was wo"""
    )
)
FILTER = re.compile(r"(?<!\S)(?:-\S+|(?:tag|path|file|before|after):\S+|\[[^\]]*\])")


def query_pattern(query: str) -> re.Pattern[str] | None:
    """A pattern of a query's words and their inflected forms, for showing where they stand; None without any."""
    words = dict.fromkeys(WORD.findall(FILTER.sub(" ", query).casefold()))
    patterns = [_forms(word) for word in words if word not in STOP]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _forms(word: str) -> str:
    if any(ord(letter) > 0x0E00 for letter in word):
        return re.escape(word)  # scripts without spaces
    if len(word) < 5:
        bare = word[:-1] if len(word) == 4 and word.endswith("s") else word
        return rf"(?<![^\W_]){re.escape(bare)}s?(?![^\W_])"
    stem = re.sub(r"(?:ing|ies|ed|es|s|e|y)$", "", word)
    return rf"(?<![^\W_]){re.escape(stem)}[^\W_]{{0,4}}(?![^\W_])"
