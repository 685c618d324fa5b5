"""Text as the keyword index sees it: scripts without spaces are spread out, and names in code have their parts."""

from __future__ import annotations

import functools
import re
import unicodedata

from tarsd.words.fold import fold

# Thai, Lao, Myanmar, Khmer; kana, bopomofo, CJK with all extensions; and Hangul, which joins particles to nouns.
# Combining signs stay with their letter: a "character" is one of these followed by any marks of its block.
_BASE = (
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e50-\u0e59"
    "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0ed0-\u0edf"
    "\u1000-\u102a\u103f-\u1055\u1780-\u17b3\u17e0-\u17e9"
    "\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_MARK = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u3099\u309a"
)
SPACELESS = _BASE + _MARK
"""The characters of scripts that put no spaces between words, or join them, for a class of an expression."""
_PART_OF_WORD = frozenset({"Mn", "Mc", "Co", "So", "Sm", "Sc"})
CATEGORIES = "L* N* Co Mn Mc So Sm Sc"
"""What words consist of, as FTS5 takes it; of ASCII, letters and digits alone."""
ASCII_SEPARATORS = "$+<=>^`|~"
_CHARACTER = re.compile(f"[{_BASE}][{_MARK}]*|[{_MARK}]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME = re.compile(r"(?<![A-Za-z0-9])(?:[A-Z]?[a-z0-9]++[A-Z]|[A-Z]{2,}[a-z])[A-Za-z0-9]*+")
_NAME_CHARS = 60  # what people write, not keys and coded data
# What a link or a picture shows stays where it is; where it leads to, footnotes' marks and tags of HTML do not.
_UNREAD = re.compile(
    r"\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,2000})?(?:[ ]\"[^\"\n]{0,200}\")?\)"
    r"|\[\[[^\[\]|\n]{1,500}\|(?=[^\[\]\n]{1,500}\]\])"
    r"|\[\^[^\[\]\s]{1,60}\]|</?[A-Za-z][^<>\n]{0,300}>"
)


def segment(text: str) -> str:
    """Put spaces around every character of a spaceless script; other text is returned as it is.

    For a query, the pieces of one run belong into one FTS5 phrase.
    """
    if text.isascii() or _CHARACTER.search(text) is None:
        return text
    return _CHARACTER.sub(r" \g<0> ", text)


def is_spaceless(text: str) -> bool:
    """Whether the text holds a character of a script that puts no spaces between words, or joins them."""
    return not text.isascii() and _CHARACTER.search(text) is not None


def split_words(text: str) -> list[str]:
    """The words of a text as the index would cut them: letters, digits, the marks on them, and symbols."""
    if text.isascii():
        return "".join(c if c.isalnum() else " " for c in text).split()
    return "".join(
        c if c.isalnum() or (not c.isascii() and unicodedata.category(c) in _PART_OF_WORD) else " " for c in text
    ).split()


def index_words(text: str) -> list[str]:
    """The folded words of any text, characters of spaceless scripts one by one."""
    return split_words(segment(fold(text)))


def index_text(text: str) -> str:
    """What the keyword index is given of a text: as it is read, folded; addresses and tags stand at its end."""
    if text.isascii() and "]" not in text and "<" not in text and "#" not in text and "++" not in text:
        return text  # the tokenizer makes it lower case
    if "]" in text or "<" in text:
        unread: list[str] = []

        def joint(found: re.Match[str]) -> str:
            unread.append(found[0])
            return "]" if found[0].startswith("](") else "" if found[0].startswith("[^") else " "

        text = "\n".join((_UNREAD.sub(joint, text), *unread))
        if text.isascii() and "#" not in text and "++" not in text:
            return text
    return segment(fold(text))


def parts_of_names(text: str) -> list[str]:
    """The folded parts of names such as `parseHeaderLine`, without the whole."""
    humped = " ".join({word for word in text.split() if not word.islower()})  # the others have no capital
    names = sorted({name for name in _NAME.findall(humped) if len(name) <= _NAME_CHARS})
    return [part for name in names for part in _parts(name)]


@functools.lru_cache(maxsize=5_000)
def _parts(name: str) -> list[str]:
    return [fold(part) for part in _HUMP.split(name) if len(part) > 1]
