"""Folds words: notes and queries are compared in the form made here.

Unicode's compatibility composition (NFKC) and case folding, and beyond them what readers do not tell apart: Latin and
Greek accents, Hebrew points, Arabic vowel signs, the seats of hamza, letters with a stroke. What makes another word
stays: voicing marks of kana, vowel signs of Thai and of the Indic scripts, й and и.
"""

from __future__ import annotations

import functools
import re
import unicodedata

# Letters that have no decomposition; Arabic ones that keyboards of Persian and Urdu give in place of each other.
_LETTERS = {
    "ł": "l", "đ": "d", "ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ħ": "h", "ı": "i", "ŧ": "t", "ŋ": "n",
    "ĸ": "k", "ƒ": "f", "ɓ": "b", "ɗ": "d", "ƙ": "k", "ƴ": "y", "ɛ": "e", "ɔ": "o", "ə": "e", "ƶ": "z", "ƀ": "b",
    "ё": "е", "ѐ": "е", "ѝ": "и",
    "ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ہ": "ه", "ھ": "ه", "ە": "ه",
}  # fmt: skip
_DROPPED = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08ca-\u08e1\u08e3-\u08ff"
    "\u0711\u0730-\u074a]"
)
"""Marks on letters, and signs that choose a letter's shape."""
_SEATED = "\u0653\u0654\u0655"  # madda and hamza, above and below
_NO_WORD = re.compile("[\u2500-\u259f]")  # lines and blocks that draw boxes
_NOT_READ = re.compile("[\u2122\u2120\u00ae\u00a9]")  # ™ and its like are no letters of the word before
_SYMBOLS = frozenset({"So", "Sm", "Sc"})
ZERO_WIDTH_SPACE = "\u200b"

# With single ASCII characters in between: a script other than Latin is folded line by line, an accent by its word.
_RUN = re.compile(r"\w?[^\x00-\x7f]+(?:[\x00-\x7f][^\x00-\x7f]+)*")
# "c++" is another word than "c", and so is "c#": their signs become letters of a private kind.
_SIGNED = re.compile(r"[+#](?<=[a-z]#)(?<![^\W_][a-z]#)(?![\w#])|[+](?<=[^\W_][+])[+](?![\w+])")
PLUSES, SHARP = "\ue011", "\ue012"
_AM = re.compile("([\u0e4d\u0ecd])([\u0e48-\u0e4b\u0ec8-\u0ecb]?)([\u0e32\u0eb2])")


def fold(text: str) -> str:
    """The form in which words are compared; symbols and emoji become words of their own.

    It changes lengths: never show it, and never count offsets in it.
    """
    text = text.lower() if text.isascii() else _RUN.sub(_folded_run, text).lower()
    if "#" in text or "++" in text:
        text = _SIGNED.sub(lambda sign: SHARP if sign[0] == "#" else PLUSES, text)
    return text


def _folded_run(run: re.Match[str]) -> str:
    return _short(run[0]) if len(run[0]) < 20 else _fold(run[0])


def _fold(text: str) -> str:
    text = unicodedata.normalize("NFKC", _NOT_READ.sub(" ", text)).translate(_FOLDED)
    # Composition takes ำ apart, and some keyboards write its tone in between.
    return _AM.sub(lambda am: f"{am[2]}{chr(ord(am[3]) + 1)}", text) if "\u0e4d" in text or "\u0ecd" in text else text


_short = functools.lru_cache(maxsize=20_000)(_fold)


class _Folded(dict[int, str]):
    """What each character becomes; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _folded(chr(code))
        return folded


_FOLDED = _Folded()


def _folded(char: str) -> str:
    category = unicodedata.category(char)
    if char == ZERO_WIDTH_SPACE or _NO_WORD.match(char):
        return " "
    if category == "Cf" or _DROPPED.match(char):
        return ""
    if category in _SYMBOLS and not char.isascii():
        return f" {char} "
    if category == "Nd":
        return str(unicodedata.decimal(char))
    name = unicodedata.name(char, "")
    if name.startswith(("LATIN", "GREEK")):
        char = "".join(part for part in unicodedata.normalize("NFD", char) if not unicodedata.combining(part))
    elif name.startswith("ARABIC"):
        char = "".join(part for part in unicodedata.normalize("NFD", char) if part not in _SEATED)
    return "".join(_LETTERS.get(letter, letter) for letter in char.casefold())
