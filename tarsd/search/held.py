"""Whether a passage holds a word, as the keyword index sees words: by stem, numbers whole."""

from __future__ import annotations

import re

from tarsd.passage import Passage
from tarsd.store import stem
from tarsd.words import SPACELESS, fold, is_spaceless

# A script without spaces ends a word of another one: "2026年", "NHKの".
_LETTER = rf"[^\W_{SPACELESS}]"
_WORD_GOES_ON = re.compile(f"{_LETTER}*")


def searched_text(passage: Passage) -> str:
    """All that a passage can be found by but links and properties, folded for comparing with query words."""
    note = passage.note
    return fold("\n".join((passage.text, *passage.trail, note.title, *note.aliases, *note.tags, note.path)))


def has_word(text: str, word: str) -> bool:
    """Whether folded text holds a word, or another of the same stem; a number only where it is not part of one."""
    if word.isdigit():
        return re.search(rf"(?<!{_LETTER})(?<!\d[.,]){word}(?![.,]?\d)(?!{_LETTER})", text) is not None
    wanted = stem(word)
    # A stem may end in another letter than its words do: "happi" is that of "happy".
    start = wanted[:-1] if len(wanted) > 2 and word.isascii() else wanted
    at = text.find(start)
    while at >= 0:
        if not _is_letter(text[at - 1 : at]):
            end = _end(text, at + len(start))
            found = text[at:end]
            if found == word or stem(found) == wanted:
                return True
        at = text.find(start, at + 1)
    return False


def _end(text: str, at: int) -> int:
    """Where the word ends that goes on here."""
    match = _WORD_GOES_ON.match(text, at)
    return match.end() if match else at


def _is_letter(char: str) -> bool:
    """Whether it is a letter or digit of a script that parts words; "" is none."""
    return char.isalnum() and not is_spaceless(char)


def begins_word(text: str, start: str) -> bool:
    """Whether a word of folded text begins so."""
    at = text.find(start)
    while at > 0 and _is_letter(text[at - 1]):
        at = text.find(start, at + 1)
    return at >= 0


def has_literal(text: str, literal: str) -> bool:
    """Whether folded text holds exactly this, symbols and all, and not as part of a longer word."""
    literal = literal.strip()
    at = text.find(literal)
    while at >= 0:
        end = at + len(literal)
        inside = _is_letter(literal[:1]) and _is_letter(text[at - 1 : at])
        if not inside and not (_is_letter(literal[-1:]) and _is_letter(text[end : end + 1])):
            return True
        at = text.find(literal, at + 1)
    return False
