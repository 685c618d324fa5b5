"""The rule of privacy: whether a note may leave this machine, by its folder, its tags and what it says of itself. Pure.

A mark that cannot be read for certain counts: only a clear no is a no.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tarsd.config.rules import folded, is_at_or_below, path_rule, tag_of
from tarsd.parse.properties import JSON
from tarsd.parse.spans import comments, split
from tarsd.parse.visibility import readable

if TYPE_CHECKING:
    from tarsd.parse import Note

_NO = frozenset({"false", "no", "off", "0", "0.0", "", "null", "~", "[]", "{}"})
_ROW = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_RULE = re.compile(r"---[ \t]*")
_KEY = re.compile(r"""["']?(local[-_ ]?only|tags?)["']?[ \t]*:(.*)""", re.IGNORECASE)
_REMARK = re.compile(r"(?:^|\s)#.*")
_PRIVATE = re.compile(r"(?<![\w-])private(?![\w-])", re.IGNORECASE)


def is_local_only(path: str, note: Note, rules: Sequence[str], text: str = "") -> bool:
    """Whether a note must not leave this machine: by its folder, by a tag, or since it says so (`local_only: true`).

    The property is how what is derived from private notes (conversations, summaries) stays private wherever it goes.
    Our own lists mark single lines instead, in comments. `text` is the note's own: in it such lines stand, and marks
    in properties that cannot be read. A rule with "#" names a tag, and a folder that is called so.
    """
    if says_private(note, text) or (note.ours and private_comments(text)):
        return True
    where = folded(path)
    for rule in rules:
        expression = path_rule(rule)
        if expression is not None and expression.search(where):
            return True
        if names_tag(note, tag_of(rule), text):
            return True
    return False


def says_private(note: Note, text: str = "") -> bool:
    """Whether `local_only`, however it is spelled, is among the note's properties with anything but a clear no.

    `text` is the note's own: where its properties are broken, or name it twice, any of its lines counts.
    """
    if any(_is_mark(key) and not _is_no(value) for key, value in note.properties.items()):
        return True
    rows, broken = _block(note, text)
    keys = (_KEY.match(row.lstrip(" \t-{") if broken else row) for row in rows)
    return any(key is not None and _is_mark(key[1]) and not _is_no(_value(key[2])) for key in keys)


def names_tag(note: Note, tag: str, text: str = "") -> bool:
    """Whether the note has the tag or one below it.

    Where its properties are broken, a word in them is enough; a value of `tags` that is no list of tags is read so too.
    """
    tag = folded(tag).strip("#/ ")
    if not tag:
        return False
    if any(is_at_or_below(own, tag) for own in note.tags):
        return True
    rows, broken = _block(note, text)
    word = re.compile(rf"(?<![\w/-]){re.escape(tag)}(?![\w-])")
    return any(word.search(folded(row)) for row in (rows if broken else _tag_rows(rows)))


def private_comments(text: str) -> set[int]:
    """The lines (from 1) of all comments that have the word "private" in them."""
    if "private" not in text.casefold():
        return set()
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    private: set[int] = set()
    for number, row in enumerate(rows, 1):
        found = list(comments(row))
        if any(is_private(comment.text) for comment in found):
            private.add(number)
        # without those, for a mark that nobody closed would pair with the next one's beginning
        rows[number - 1] = "".join(part for comment, _, part in split(row, found) if comment is None)
    rest = "\n".join(rows)
    line, at = 1, 0
    for comment in comments(rest):
        line, at = line + rest.count("\n", at, comment.start), comment.start
        if is_private(comment.text):
            private.update(range(line, line + comment.text.count("\n") + 1))
    return private


def is_private(comment: str) -> bool:
    """Whether a comment marks what it stands behind as private: the word is in it, wherever and in any case."""
    return _PRIVATE.search(comment) is not None


def _is_mark(key: str) -> bool:
    return re.sub(r"[-_\s]", "", key).casefold() == "localonly"


def _is_no(value: JSON) -> bool:
    if isinstance(value, str):
        return value.strip().casefold() in _NO
    return not value


def _value(raw: str) -> str:
    """A property's value as it stands on its line, without quotes and a remark."""
    value = _REMARK.sub("", raw).strip()
    return value if value in _NO else value.rstrip(",}").strip("\"' \t")


def _block(note: Note, text: str) -> tuple[list[str], bool]:
    """The source lines of the property block without its rules, and whether some of them could not be read.

    A block that is none for a reader of properties, for it has no end or no key, counts if it names a mark.
    """
    if not readable(text[:64]).startswith("---"):
        return [], False
    rows: list[str] = []
    whole = note.body_line > 1
    for number, line in enumerate(_ROW.finditer(text)):
        row = readable(line[1])
        if number == 0:
            if not _RULE.fullmatch(row):
                return [], False
        elif _RULE.fullmatch(row) or not (number < note.body_line - 1 if whole else row.strip()):
            break
        else:
            rows.append(row)
    if whole:
        return rows, any(problem.line < note.body_line for problem in note.problems)
    return (rows, True) if any(_KEY.match(row.lstrip(" \t-{")) for row in rows) else ([], False)


def _tag_rows(rows: list[str]) -> list[str]:
    """The lines of the properties `tag` and `tags`."""
    found: list[str] = []
    inside = False
    for row in rows:
        if row[:1] not in (" ", "\t", "-", "#", ""):
            key = _KEY.match(row)
            inside = key is not None and not _is_mark(key[1])
        if inside:
            found.append(row)
    return found
