"""Text as the keyword index sees it: scripts without spaces are spread out, one character a word."""

from __future__ import annotations

import re
import unicodedata

# Thai, Lao, Myanmar, Khmer; kana, bopomofo, CJK with all extensions, half-width kana. Combining signs stay with
# their letter: a "character" is one of these followed by any marks of its block.
_BASE = (
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e50-\u0e59"
    "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0ed0-\u0edf"
    "\u1000-\u102a\u103f-\u1055\u1780-\u17b3\u17e0-\u17e9"
    "\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_MARK = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u3099\u309a"
)
_PART_OF_WORD = frozenset({"Mn", "Mc", "Co"})
_CHARACTER = re.compile(f"[{_BASE}][{_MARK}]*|[{_MARK}]+")


def segment(text: str) -> str:
    """Put spaces around every character of a spaceless script; other text is returned as it is.

    For a query, the pieces of one run belong into one FTS5 phrase.
    """
    if text.isascii() or _CHARACTER.search(text) is None:
        return text
    return _CHARACTER.sub(r" \g<0> ", text)


def is_spaceless(text: str) -> bool:
    """Whether the text holds a character of a script that puts no spaces between words."""
    return not text.isascii() and _CHARACTER.search(text) is not None


def split_words(text: str) -> list[str]:
    """The words of a text as the index would cut them: letters, digits and the marks on them."""
    if text.isascii():
        return "".join(c if c.isalnum() else " " for c in text).split()
    return "".join(c if c.isalnum() or unicodedata.category(c) in _PART_OF_WORD else " " for c in text).split()
