"""Bytes to text and back: byte order marks, stray bytes and NUL, line ends untouched; pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Decoded:
    """A file's text, line ends untouched, without its byte order mark.

    `lossless`: encode(text, encoding) gives the same bytes. `problem` is a sentence, `line` where it begins (1-based).
    """

    text: str
    encoding: str
    lossless: bool
    problem: str | None = None
    hint: str = ""
    line: int = 0


_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_STRAY = "\N{REPLACEMENT CHARACTER}"
_LINE_END = re.compile(r"\r\n|\r|\n")


def decode(raw: bytes) -> Decoded:
    """Read any bytes as text: marks are honoured, stray bytes and NUL become U+FFFD and are told. Never fails."""
    mark, encoding = next(((m, name) for m, name in _MARKS if raw.startswith(m)), (b"", "utf-8"))
    codec = "utf-8" if encoding == "utf-8-sig" else encoding
    body = raw[len(mark) :]
    problem, hint, before = None, "", ""
    try:
        text = body.decode(codec)
    except UnicodeDecodeError as fault:
        text, before = body.decode(codec, "replace"), body[: fault.start].decode(codec, "replace")
        problem = f"Some bytes are not valid {codec.upper()}; they are read as {_STRAY}."
        hint = "Save the note as UTF-8; until then tarsd does not change it."
    if "\0" in text:
        if problem is None:
            before = text[: text.index("\0")]
            problem = f"The note contains NUL characters; they are read as {_STRAY}."
            hint = "Remove them in a text editor; until then tarsd does not change the note."
        text = text.replace("\0", _STRAY)
    line = 1 + len(_LINE_END.findall(before)) if problem else 0
    return Decoded(text, encoding, problem is None, problem, hint, line)


def encode(text: str, encoding: str) -> bytes:
    """The bytes of `text` in an encoding that `decode` named, with its byte order mark."""
    mark = next((m for m, name in _MARKS if name == encoding), b"")
    return mark + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)


def content_hash(raw: bytes) -> str:
    """SHA-256 of the raw bytes, in hex."""
    return hashlib.sha256(raw).hexdigest()
