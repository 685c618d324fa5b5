"""MiniLM's WordPiece tokens, counted by words that are looked up and not by text that is tokenised again.

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

_UNKNOWN = "[UNK]"
_MOST_WORDS = 200_000
_LONG_WORD = 40
_LONGEST_WORD = 100  # MiniLM's tokenizer gives up on longer words
_IDEOGRAPH = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    "\U0002f800-\U0002fa1f]"
)
_ASCII = re.compile(r"[0-9A-Za-z]+|[!-/:-@\[-`{-~]")


def count_tokens(text: str) -> int:
    """How many MiniLM tokens `text` has, without the special tokens."""
    return sum(map(len, map(_WORDS.__getitem__, text.split())))


def token_ids(text: str) -> list[int]:
    """The MiniLM WordPiece ids of `text`, without the special tokens."""
    return list(chain.from_iterable(map(_WORDS.__getitem__, text.split())))


class TokenTable(dict[str, tuple[int, ...]]):
    """Word → ids, learned as words are met, and forgotten all at once when there are too many."""

    def __init__(self, ids: Callable[[str], tuple[int, ...]]) -> None:
        super().__init__()
        self.ids = ids

    def __missing__(self, word: str) -> tuple[int, ...]:
        ids = self.ids(word)
        if len(word) <= _LONG_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = ids
        return ids


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


_WORDS, _PARTS = TokenTable(_word_ids), TokenTable(_part_ids)
