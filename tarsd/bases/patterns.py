"""Regular expressions of the Bases language, as JavaScript writes them, with a limit on how long each may look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tarsd.bases.faults import BasesError
from tarsd.bases.scope import Budget
from tarsd.bases.values import Pattern

MAX_SECONDS = 0.2
"""For all that one expression does with one text."""
MAX_TEXT = 100_000
_MAX_SOURCE = 1_000
_GROUP = re.compile(r"\$(?:([$&])|(\d{1,2})|<([^<>]*)>)")
_BRACKET = re.compile(r"\\.|\[\^?\]|\[(?:\\.|[^\]\\])*\]", re.DOTALL)


def search(pattern: Pattern, text: str, budget: Budget) -> bool:
    """Whether it matches anywhere in the text. Raises `BasesError` for one that is none, or looks too long."""
    return next(_matches(pattern, text, budget), None) is not None


def replace(pattern: Pattern, text: str, by: str, budget: Budget) -> str:
    """The text with its first match, or with the flag `g` all, replaced; `$1` and `$&` stand for what matched."""
    parts, end, size = list[str](), 0, 0
    for match in _matches(pattern, text, budget):
        parts += [text[end : match.start()], _GROUP.sub(lambda sign: _inserted(sign, match), by)]  # noqa: B023
        size += len(parts[-1]) + len(parts[-2])
        budget.text(size)
        end = match.end()
        if "g" not in pattern.flags:
            break
    return "".join(parts) + text[end:]


def split(pattern: Pattern, text: str, budget: Budget) -> list[str]:
    """The pieces between the matches, with what groups matched, as JavaScript does it."""
    parts, end = list[str](), 0
    for match in _matches(pattern, text, budget):
        if match.end() == match.start() and match.start() in (0, len(text)):
            continue
        parts += [text[end : match.start()], *(group or "" for group in match.groups())]
        budget.charge(1)
        end = match.end()
    return [*parts, text[end:]]


def _matches(pattern: Pattern, text: str, budget: Budget) -> Iterator[Any]:
    if len(text) > MAX_TEXT:
        raise BasesError(f"A regular expression takes at most {MAX_TEXT:,} characters", "Slice the text first.")
    compiled = _compiled(pattern)
    budget.charge(5 + len(text) // 10)
    try:
        yield from compiled.finditer(text, timeout=MAX_SECONDS)
    except TimeoutError:
        budget.charge(int(MAX_SECONDS * 1_000_000))
        raise BasesError(
            f"The regular expression /{pattern.source[:60]}/ takes too long",
            "Nested repetitions, as in (a+)+, take too long.",
        ) from None


@lru_cache(maxsize=128)
def _compiled(pattern: Pattern) -> Any:
    import regex  # 20 ms that few queries need

    unknown = set(pattern.flags) - set("gimsuy")
    if unknown:
        raise BasesError(f"A regular expression has no flag {min(unknown)!r}", "Flags are g, i, m, s and u.")
    if len(pattern.source) > _MAX_SOURCE:
        raise BasesError(f"This regular expression has more than {_MAX_SOURCE:,} characters", "Shorten it.")
    flags = regex.VERSION0
    for letter in pattern.flags:
        flags |= {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL}.get(letter, 0)
    try:
        return regex.compile(_BRACKET.sub(_python, pattern.source), flags)
    except (regex.error, OverflowError, RecursionError, MemoryError, ValueError) as error:
        raise BasesError(
            f"/{pattern.source[:60]}/ is not a regular expression: {error}",
            "Regular expressions are those of JavaScript.",
        ) from None


def _python(match: re.Match[str]) -> str:
    """What JavaScript writes otherwise: `[]` matches nothing, `[^]` everything, and in a set `[` is a sign."""
    text = match[0]
    if text in ("[]", "[^]"):
        return "(?!)" if text == "[]" else r"[\s\S]"
    return text if text[0] == "\\" else text[0] + re.sub(r"(?<!\\)\[", r"\[", text[1:])


def _inserted(sign: re.Match[str], match: Any) -> str:
    if sign[1]:
        return "$" if sign[1] == "$" else str(match[0])
    try:
        return str(match[int(sign[2])] if sign[2] else match[sign[3]]) if match else ""
    except IndexError:
        return sign[0]
