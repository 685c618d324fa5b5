"""PDFs as scripts make them: from lines of text or from the objects themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R%s>>"
HELVETICA = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"


def stream(data: bytes, head: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (head, len(data), data)


def shown(lines: Iterable[str], at: tuple[int, int] = (60, 780)) -> bytes:
    """The drawing of some lines below each other; an empty one leaves a gap."""
    drawn = []
    for line in lines:
        plain = line.encode("cp1252").replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")
        drawn.append(b"(%s) Tj T*" % plain if line else b"T*")
    return b"BT /F 11 Tf 13 TL %d %d Td\n%s\nET" % (*at, b"\n".join(drawn))


def pdf(
    pages: Sequence[Sequence[str] | bytes],
    *,
    font: bytes = HELVETICA,
    catalog: bytes = b"",
    info: bytes = b"",
    page: bytes = b"",
    trailer: bytes = b"",
    more: Mapping[int, bytes] | None = None,
) -> bytes:
    """A PDF with a page for each list of lines, or each drawing.

    Objects: 1 the catalog, 2 the pages, 3 the font, 4 and 5 the first page and its drawing, 6 and 7 the next.
    `catalog`, `page`, `info` and `trailer` are put into those dictionaries, `more` are objects by number.
    """
    kids = b" ".join(b"%d 0 R" % (4 + 2 * at) for at in range(len(pages)))
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
        2: b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids),
        3: font,
    }
    for at, drawn in enumerate(pages):
        objects[4 + 2 * at] = PAGE % (5 + 2 * at, page)
        objects[5 + 2 * at] = stream(drawn if isinstance(drawn, bytes) else shown(drawn))
    objects |= more or {}
    if info:
        number = max(objects) + 1
        objects[number] = b"<<%s>>" % info
        trailer += b"/Info %d 0 R" % number
    return assembled(objects, trailer)


def assembled(objects: Mapping[int, bytes], trailer: bytes = b"") -> bytes:
    """A file of these objects, with its table."""
    size = max(objects) + 1
    parts, places, at = [b"%PDF-1.7\n"], {}, len(b"%PDF-1.7\n")
    for number, body in sorted(objects.items()):
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        places[number] = at
        at += len(parts[-1])
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n" % size)
    parts += [
        b"%010d 00000 n \n" % places[one] if one in places else b"0000000000 00000 f \n" for one in range(1, size)
    ]
    parts.append(b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, at))
    return b"".join(parts)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
