"""The tables of questions: what is known of each language, and the form in which questions are compared with it."""

from __future__ import annotations

import json
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

SPACED = ("en", "de", "es", "fr", "pt", "it", "nl", "ru", "any")
LANGUAGES = ("en", "de", "es", "fr", "pt", "it", "nl", "ru", "ja", "zh")
"""The languages that have a table."""


@cache
def load(name: str) -> dict[str, Any]:
    """The table of this name."""
    loaded: dict[str, Any] = json.loads((files("tarsd") / "data" / "ask" / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def simplified(text: str) -> str:
    """Lower case without accents, each character in its place, so that places in it are places in the text."""
    return text.lower() if text.isascii() else "".join(map(_simple, text))


@lru_cache(maxsize=10_000)
def _simple(char: str) -> str:
    wide = unicodedata.normalize("NFKC", char)
    low = (wide if len(wide) == 1 else char).lower()[0]
    if "LATIN" in unicodedata.name(low, "") or low == "ё":
        low = unicodedata.normalize("NFD", low)[0]
    return {"’": "'", "‘": "'", "–": "-", "—": "-", "〜": "~", "～": "~"}.get(low, low)
