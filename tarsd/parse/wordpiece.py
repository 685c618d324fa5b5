"""MiniLM's WordPiece tokens, and sizes of texts, by words that are looked up and not by text that is tokenised again.

A vault has few distinct words, so this is some ten times faster than the tokenizer itself; a test holds both equal.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib import resources
from itertools import chain
from math import ceil
from typing import TypeVar

Value = TypeVar("Value")

_UNKNOWN = "[UNK]"
_MOST_WORDS = 200_000
_LONG_WORD = 40
_LONGEST_WORD = 100  # MiniLM's tokenizer gives up on longer words
_IDEOGRAPH = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    "\U0002f800-\U0002fa1f]"
)
# Multilingual E5 makes .88 × as many WordPieces of English. In these units, of XQuAD's texts: Cyrillic and Thai letters
# are .26 of a token, Greek .30, Arabic and Devanagari .33; Chinese characters .72, Japanese ones .62.
_A_LETTER, _A_PICTURE = 0.27, 0.65
_LETTERS = re.compile(
    "[\u0370-\u10ff\u1200-\u1cff\u1f00-\u1fff\u2c00-\u2dff\ua490-\uabff\U00010000-\U0001afff\U0001e000-\U0001efff]"
)
_PICTURES = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fff\u3005-\u3007\u3021-\ua48f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001bfff\U00020000-\U0003ffff]"
)
_ASCII = re.compile(r"[0-9A-Za-z]+|[!-/:-@\[-`{-~]")


def count_tokens(text: str) -> int:
    """The size of a text: MiniLM's tokens of what is in Latin script, and what comes near in meaning of all else.

    MiniLM knows hardly a word of other scripts: it makes a token of each Russian letter and one of a whole Thai line.
    """
    return ceil(sum(map(_SIZES.__getitem__, text.split())))


def token_ids(text: str) -> list[int]:
    """The MiniLM WordPiece ids of `text`, without the special tokens."""
    return list(chain.from_iterable(map(_WORDS.__getitem__, text.split())))


class WordTable(dict[str, Value]):
    """What is known of words, learned as they are met, and forgotten all at once when there are too many."""

    def __init__(self, value: Callable[[str], Value]) -> None:
        super().__init__()
        self.value = value

    def __missing__(self, word: str) -> Value:
        value = self.value(word)
        if len(word) <= _LONG_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = value
        return value


@cache
def _vocabulary() -> tuple[dict[str, int], int]:
    """The pieces' ids, and the length of the longest piece."""
    data = json.loads(resources.files("tarsd").joinpath("data/minilm/tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = data["model"]["vocab"]
    return vocabulary, max(map(len, vocabulary))


def _word_ids(word: str) -> tuple[int, ...]:
    """The ids of a word without white space in it."""
    parts = _ASCII.findall(word) if word.isascii() else _split(word)
    return tuple(chain.from_iterable(map(_PARTS.__getitem__, parts)))


def _word_size(word: str) -> float:
    """The size of a word without white space in it."""
    if word.isascii():
        return len(_WORDS[word])
    latin, pictures = _PICTURES.subn(" ", word)
    latin, letters = _LETTERS.subn(" ", latin)
    return _A_PICTURE * pictures + _A_LETTER * letters + len(token_ids(latin))


def _part_ids(part: str) -> tuple[int, ...]:
    """WordPiece: the longest known beginning, then the longest known rest, and so on."""
    vocabulary, longest = _vocabulary()
    part = part.lower()
    if len(part) > _LONGEST_WORD:
        return (vocabulary[_UNKNOWN],)
    ids: list[int] = []
    at = 0
    while at < len(part):
        prefix = "##" if at else ""
        for end in range(min(len(part), at + longest), at, -1):
            found = vocabulary.get(prefix + part[at:end])
            if found is not None:
                ids.append(found)
                at = end
                break
        else:
            return (vocabulary[_UNKNOWN],)
    return tuple(ids)


def _split(word: str) -> list[str]:
    """Words and marks as BERT splits them: controls dropped, ideographs and punctuation alone, accents stripped."""
    spaced: list[str] = []
    for char in unicodedata.normalize("NFD", word):
        category = unicodedata.category(char)
        if category == "Mn" or category[0] == "C" or char == "\ufffd":
            continue
        if category[0] == "P" or (char < "\x7f" and not char.isalnum()) or _IDEOGRAPH.match(char):
            spaced += (" ", char, " ")
        else:
            spaced.append(char)
    return "".join(spaced).split()


_WORDS, _PARTS, _SIZES = WordTable(_word_ids), WordTable(_part_ids), WordTable(_word_size)
