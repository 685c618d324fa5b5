"""How many tokens a model makes of a text, estimated by the kinds of characters in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_WORD = r"[A-Z\xc0-\xde]?[a-z\xdf-\u024f\u1e00-\u1eff]{1,8}|[A-Z\xc0-\xde]{1,3}"  # longer ones are cut in pieces
_MARK = r"[!-/:-@\[-`{-~]"
# A pattern; at the most, tokens for each find and for each character in it; at the least, for each find. Measured: the
# most of what the tokenizers of Llama 2 and 3, Mistral and SmolLM2 make, and the least of theirs and OpenAI's.
_Kind = tuple[re.Pattern[str], float, float, float]
_ASCII_KINDS: Final[Sequence[_Kind]] = (
    (re.compile(_WORD), 0.7, 0.22, 0.75),
    (re.compile("(?<=[a-z0-9])[A-Z]"), 0.8, 0, 0),  # base64
    (re.compile("[0-9]{1,3}"), 0, 1, 0.8),
    (re.compile(" [0-9]"), 1, 0, 0),
    (re.compile(rf"({_MARK})(?!\1)"), 0.6, 0, 0.35),
    (re.compile(_MARK), 0.1, 0, 0),
    (re.compile(r"\n"), 0.6, 0, 0),
    (re.compile(r"  +|\t+"), 0.4, 0.2, 0),
)
_OTHER_KINDS: Final[Sequence[_Kind]] = tuple(
    (re.compile(f"[{letters}]"), most, 0, least)
    for letters, most, least in (
        ("\xc0-\u024f", 0.6, 0),  # Latin
        ("\u1e00-\u1eff", 1, 0),  # Vietnamese
        ("\u0400-\u052f", 0.8, 0.2),  # Cyrillic
        ("\xa1-\xbf\u0250-\u03ff\u0530-\u08ff", 1.2, 0.25),  # Greek, Hebrew, Arabic
        ("\u0900-\u097f", 1.4, 0.25),  # Devanagari
        ("\u0e00-\u0e7f", 1.9, 0.3),  # Thai
        ("\u2000-\u2bff\ufe0f", 1.4, 0.2),  # symbols
        ("\u3000-\u30ff", 1.5, 0.4),  # kana
        ("\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff", 2, 0.4),  # Han, Hangul
        ("\u0980-\u0dff\u0e80-\u1dff\u1f00-\u1fff\u2c00-\u2fff\u3100-\u33ff\ua000-\uabff", 2.6, 0.25),
        ("\ud800-\uf8ff\ufb00-\ufe0e\ufe10-\uffff", 2.6, 0.2),
        ("\U00010000-\U0010ffff", 3.3, 0.6),  # emoji
    )
)


@lru_cache(maxsize=1024)  # the same history and passages are counted again and again
def tokens(text: str) -> int:
    """About how many tokens a model makes of `text`, rather too many, by the kinds of characters in it."""
    total = 0.0
    for pattern, each, letter, _ in _kinds(text):
        found = pattern.findall(text)
        total += each * len(found) + (letter * sum(map(len, found)) if letter else 0)
    return int(total) + 1


def least_tokens(text: str) -> int:
    """How many tokens a model makes of `text` at the least."""
    return int(sum(least * len(pattern.findall(text)) for pattern, *_, least in _kinds(text) if least))


def _kinds(text: str) -> Sequence[_Kind]:
    return _ASCII_KINDS if text.isascii() else (*_ASCII_KINDS, *_OTHER_KINDS)
