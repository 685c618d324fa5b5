"""What others' servers say, before it is logged, shown or kept: on one line, without keys and without what was sent.

Servers repeat in their errors the key they were asked with, headers, and the text of the request; that of a note must
not go where the note does not.
"""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

LONGEST: Final = 300
"""Characters of a server's words that are kept."""
_READ: Final = 2_000
_LEAST_KEY: Final = 8
_KEY_RUN: Final = 8
_SENT_RUN: Final = 16
"""Bytes of letters and digits in a row that are no coincidence; three or four words, or six signs of Chinese."""
_GAP: Final = 12
"""Characters between two repeated pieces that go with them."""

_SHAPES: Final = re.compile(
    r"(?i:\bbearer\s+)[^\s\"',;}\]]{6,}"
    r"|(?i:\b(?:basic|token)\s+)(?=[^\s\"',;}\]]*\d)[^\s\"',;}\]]{8,}"
    r"|(?i:\b(?:[\w-]{0,40}?api[_-]?key|[\w-]{0,40}?token|authorization|key)[\"']?\s*[:=]\s*[\"']?)"
    r"(?=[^\s\"',;&}\]]*\d)[^\s\"',;&}\]]{6,}"
    r"|(?i:\b(?:[\w-]{0,40}?secret|password)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&}\]]{4,}"
    r"|(?i:--?[\w-]{0,40}?(?:key|token|secret|password)[=\s]+)\S+"
    r"|(?<=://)[^/\s@]+(?=@)"
    r"|\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|github_pat|glpat|xox[abps]|AKIA|AIza|ya29|eyJ)[-_.A-Za-z0-9]{12,}"
    r"|(?<![A-Za-z0-9+/=_])(?=[A-Za-z0-9+/=_]*[0-9])(?=[A-Za-z0-9+/=_]*[A-Z])(?=[A-Za-z0-9+/=_]*[a-z])[A-Za-z0-9+/=_]{28,}"
)
"""What looks like a key, whoever's it is."""
_QUOTED: Final = re.compile(r"\"([^\"]{2,})\"|'([^']{2,})'|`([^`]{2,})`|“([^”]{2,})”|«([^»]{2,})»|‘([^’]{2,})’")
_INPUT: Final = re.compile(r"""['"]input['"]\s*:.*|\binput_value\s*=.*""", re.DOTALL)
"""Where a server repeats what it was sent, to the end."""
_SIGN: Final = re.compile(
    r"(?:%[0-9A-Fa-f]{2})+|\\+u[0-9A-Fa-f]{4}|\\+x[0-9A-Fa-f]{2}|\\+[nrt]|&#?\w{1,8};|.", re.DOTALL
)
"""A sign, or the escape of one."""
_ESCAPED: Final = re.compile(r"[%\\\\&]")
_MARKS: Final = re.compile(r"[\W_]+")
_WORD_BEFORE, _WORD_AFTER = re.compile(r"\w*\Z"), re.compile(r"\w*")
_NO_TEXT: Final = frozenset({"model", "tools", "options", "role", "type", "id", "name", "tool_call_id", "tool_name"})
"""Parts of a request that hold none of the person's words."""

_secrets: set[str] = set()


def keep_secret(*values: str | None) -> None:
    """From here on these are taken out of whatever a server says and of every line of the log."""
    _secrets.update(value for value in values if value and len(value) >= _LEAST_KEY)


def without_keys(text: str, *, shapes: bool = True) -> str:
    """The text without the secrets that this process has used; with `shapes`, without what looks like one either."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, "…")
    text = _SHAPES.sub("…", text) if shapes else text
    coded = [base64.b64encode(secret.encode()).decode().rstrip("=") for secret in _secrets]
    return _without(text, [*_secrets, *coded], _KEY_RUN)


def told(text: str, sent: object = None, *, longest: int = LONGEST) -> str:
    """A server's words on one line, for a person or a log; `sent` is the request they are about, as JSON or a text."""
    text = " ".join(_INPUT.sub("", text[:_READ]).split())
    text = without_keys(text)
    parts = [part for part in _texts(sent) if part.strip()]
    text = _without(text, parts, _SENT_RUN)
    text = _QUOTED.sub(lambda found: "…" if _repeats(next(filter(None, found.groups())), parts) else found[0], text)
    text = re.sub(r"(?:…[\s\"'`,;:]*){2,}", "… ", text).strip()
    return text if len(text) <= longest else text[:longest] + "…"


def _texts(sent: object) -> Iterator[str]:
    """All words of a request that may be a person's."""
    if isinstance(sent, str):
        yield sent
    elif isinstance(sent, Mapping):
        for key, value in sent.items():
            if key not in _NO_TEXT:
                yield from _texts(value)
    elif isinstance(sent, Iterable) and not isinstance(sent, bytes):
        for value in sent:
            yield from _texts(value)


def _repeats(quoted: str, parts: Sequence[str]) -> bool:
    folded = quoted.casefold()
    return any(folded in part.casefold() for part in parts)


def _without(text: str, parts: Sequence[str], run: int) -> str:
    """The text without runs of letters and digits, `run` bytes long or a whole part, that stand in one of the parts.

    Compared without case, accents, spaces, marks and escapes, and once more by the letters of ASCII alone: servers
    repeat things in their own spelling.
    """
    if not _ESCAPED.search(text) and not _may_hold(text, parts, run):
        return text
    hit = bytearray(len(text))
    for ascii_only in (False, True):
        letters, where = _letters(text, ascii_only=ascii_only)
        if not letters:
            continue
        for part in parts:
            known, size = _known(part, run, ascii_only=ascii_only)
            if not size:
                continue
            for at in range(len(letters) - size + 1):
                if letters[at : at + size] in known:
                    first, last = where[at], where[at + size - 1]
                    hit[first[0] : last[1]] = b"\1" * (last[1] - first[0])
    if not any(hit):
        return text
    pieces, end = [], 0
    for start, stop in _spans(hit):
        begun, over = _WORD_BEFORE.search(text, end, start), _WORD_AFTER.match(text, stop)
        start, stop = begun.start() if begun else start, over.end() if over else stop
        pieces += [text[end : max(start, end)], "…"]
        end = max(stop, end)
    return "".join([*pieces, text[end:]])


def _known(part: str, run: int, *, ascii_only: bool) -> tuple[bytes, int]:
    """The letters and digits of a part, and how many in a row give it away; 0: so few stand anywhere."""
    known = _bare(part, ascii_only=ascii_only).encode("utf-8", "replace")
    size = min(run, len(known))
    return known, size if size >= min(run, _KEY_RUN) else 0


def _may_hold(text: str, parts: Sequence[str], run: int) -> bool:
    """The same question for a text without escapes, in a fraction of the time: most texts hold nothing."""
    for ascii_only in (False, True):
        letters = _bare(text, ascii_only=ascii_only).encode("utf-8", "replace")
        for part in parts:
            known, size = _known(part, run, ascii_only=ascii_only)
            less, more = sorted((letters, known), key=len)
            if size and any(less[at : at + size] in more for at in range(len(less) - size + 1)):
                return True
    return False


def _spans(hit: bytearray) -> Iterator[tuple[int, int]]:
    """The marked pieces; those close to each other are one."""
    begun: list[int] = []
    for found in re.finditer(rb"\x01+", bytes(hit)):
        if begun and found.start() - begun[1] < _GAP:
            begun[1] = found.end()
            continue
        if begun:
            yield begun[0], begun[1]
        begun = [found.start(), found.end()]
    if begun:
        yield begun[0], begun[1]


def _letters(text: str, *, ascii_only: bool) -> tuple[bytes, list[tuple[int, int]]]:
    """Letters and digits as UTF-8, and for each byte from where to where it stands in the text."""
    letters, where = bytearray(), []
    for found in _SIGN.finditer(text):
        sign = found[0]
        if len(sign) > 1:
            sign = _plain(sign)
        code = _bare(sign, ascii_only=ascii_only).encode("utf-8", "replace")
        letters += code
        where += [found.span()] * len(code)
    return bytes(letters), where


def _bare(text: str, *, ascii_only: bool) -> str:
    """Letters and digits, without case and accents; of ASCII alone, without those that had some."""
    text = text.encode("ascii", "ignore").decode() if ascii_only else unicodedata.normalize("NFKD", text)
    return _MARKS.sub("", text.casefold())


def _plain(escaped: str) -> str:
    """The sign that an escape stands for."""
    if escaped[0] == "%":
        return unquote(escaped, errors="replace")
    if escaped[0] == "&":
        return html.unescape(escaped)
    code = escaped.lstrip("\\")
    return chr(int(code[1:], 16)) if code[0] in "ux" else " "
