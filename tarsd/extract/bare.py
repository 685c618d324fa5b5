"""A picture without what its file says beside it: place, time, device, author, earlier versions. Pure.

Nothing is decoded: the parts of the file that hold such things are left out, all others stay as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tarsd.extract.pages import NotReadable

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = frozenset(
    (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP", b"sBIT", b"pHYs",
     b"bKGD", b"acTL", b"fcTL", b"fdAT")
)  # fmt: skip
_WEBP_KEPT = frozenset((b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"))
_WEBP_TELLS = 0x08 | 0x04
"""Bits of VP8X that announce EXIF and XMP."""
_JPEG_KEPT = frozenset((0xE0, 0xE2, 0xEE))
"""The application's segments that say how the colours are meant: JFIF, ICC, Adobe."""
_STARTS_SCAN, _ENDS, _COMMENT, _EXIF = 0xDA, 0xD9, 0xFE, 0xE1
_TURNED = 0x0112


class Bare(NamedTuple):
    """A picture and what it is: "image/jpeg", "image/png" or "image/webp"."""

    media_type: str
    data: bytes


def bare(data: bytes) -> Bare:
    """The picture alone, turned as it is meant to be seen. Raises `NotReadable`: it is no whole JPEG, PNG or WebP."""
    try:
        if data.startswith(_PNG):
            return Bare("image/png", _PNG + b"".join(_png(data)))
        if data.startswith(b"\xff\xd8\xff"):
            return Bare("image/jpeg", b"\xff\xd8" + b"".join(_jpeg(data)))
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            chunks = b"WEBP" + b"".join(_webp(data))
            return Bare("image/webp", b"RIFF" + struct.pack("<I", len(chunks)) + chunks)
    except (struct.error, IndexError) as error:
        raise NotReadable("The picture is damaged.", "Open it and save it anew.") from error
    raise NotReadable("It is no JPEG, PNG or WebP picture.", "Save it as one of these.")


def _png(data: bytes) -> Iterator[bytes]:
    at, kind = len(_PNG), b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 12 + length
        if end > len(data):
            raise IndexError
        if kind in _PNG_KEPT:
            yield data[at:end]
        at = end


def _webp(data: bytes) -> Iterator[bytes]:
    at, last = 12, min(len(data), 8 + struct.unpack_from("<I", data, 4)[0])
    while at < last:
        kind, length = struct.unpack_from("<4sI", data, at)
        end = at + 8 + length
        if end > len(data):
            raise IndexError
        if kind == b"VP8X":
            yield data[at : at + 8] + bytes((data[at + 8] & ~_WEBP_TELLS,)) + data[at + 9 : end]
        elif kind in _WEBP_KEPT:
            yield data[at:end]
        if kind in _WEBP_KEPT and length % 2:
            yield b"\0"
        at = end + length % 2


def _jpeg(data: bytes) -> Iterator[bytes]:
    at = 2
    while True:
        if data[at] != 0xFF:
            raise IndexError
        marker = data[at + 1]
        if marker == 0xFF:  # filling
            at += 1
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        end = at + 2 + length
        if end > len(data):
            raise IndexError
        if marker == _STARTS_SCAN:
            # what comes behind the picture's end is another picture, or a film, of the same moment
            yield data[at : _end_of_picture(data, end)]
            return
        if marker == _EXIF and (turned := _turned(data[at + 4 : end])) > 1:
            yield _only_turned(turned)
        told = 0xE0 <= marker <= 0xEF or marker == _COMMENT
        # of a series, a segment of the colours' kind says where the other pictures are
        if not told or (marker in _JPEG_KEPT and data[at + 4 : at + 8] != b"MPF\0"):
            yield data[at:end]
        at = end


def _end_of_picture(data: bytes, at: int) -> int:
    """Where the picture ends whose first scan begins at `at`; a progressive one has several, with tables between."""
    while True:
        at = data.find(b"\xff", at)
        if at < 0 or at + 1 >= len(data):
            return len(data)
        marker = data[at + 1]
        if marker == _ENDS:
            return at + 2
        if marker in (0x00, 0xFF) or 0xD0 <= marker <= 0xD7:  # a byte of the picture, filling, or a restart
            at += 1 if marker == 0xFF else 2
        else:
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]


def _turned(segment: bytes) -> int:
    """EXIF's number for how the picture is turned, 1 for not at all."""
    if segment[:6] != b"Exif\0\0":
        return 1
    tiff = segment[6:]
    order = "<" if tiff[:2] == b"II" else ">"
    try:
        (at,) = struct.unpack_from(f"{order}I", tiff, 4)
        (entries,) = struct.unpack_from(f"{order}H", tiff, at)
        for entry in range(entries):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", tiff, at + 2 + 12 * entry)
            if tag == _TURNED:
                return int(value) if 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1


def _only_turned(turned: int) -> bytes:
    """An EXIF segment with nothing but how the picture is turned."""
    tiff = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, _TURNED, 3, 1, turned, 0, 0)
    body = b"Exif\0\0" + tiff
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
