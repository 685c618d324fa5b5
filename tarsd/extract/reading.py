"""A file is read by what its first bytes say it is, whatever its name; every fault becomes a sentence."""

from __future__ import annotations

import codecs
from pathlib import Path

from tarsd.errors import TarsdError
from tarsd.extract.limits import CHARACTERS, Allowance
from tarsd.extract.needs import missing
from tarsd.extract.pages import Extracted, Kind, NotReadable, Page

_PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff")


def extract(path: Path, kind: Kind) -> Extracted:
    """Read a file in this process. Raises nothing that a file can cause; `kind` is what its name promises."""
    try:
        return _read(path, kind)
    except TarsdError as error:
        return Extracted((), problem=error.message, hint=error.hint)
    except MemoryError:
        return Extracted((), problem="Reading it needs too much memory.", hint="Split it into smaller files.")
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            return Extracted(
                (), problem=f"The file cannot be opened: {error.strerror}.", hint="Look at its permissions."
            )
        return Extracted(
            (),
            problem=f"The file is damaged: it could not be read ({type(error).__name__}).",
            hint="Open it with its program and save it anew.",
        )


def _read(path: Path, kind: Kind) -> Extracted:
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        raise NotReadable("The file is empty.", "Get it again: it may not have been copied whole.")
    if b"%PDF-" in head:
        from tarsd.extract import pdf

        return pdf.read(path, Allowance())
    if head.startswith(_PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        _have("picture")
        from tarsd.extract import pictures

        return pictures.read(path)
    if head.startswith(b"PK\x03\x04"):
        return _zipped(path)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return _old_office(path)
    if head.lstrip().startswith(b"{\\rtf"):
        _have("office")
        from tarsd.extract import office

        return office.read_rtf(path, Allowance())
    start = head.lower().replace(b"\0", b"")
    if kind == "web" or b"<html" in start or b"<!doctype html" in start:
        _have("web")
        from tarsd.extract import markup

        return markup.read_web(path)
    return _plain(path)


def _have(kind: Kind) -> None:
    if extra := missing(kind):
        raise NotReadable(f"Reading such files needs tarsd[{extra}].", f"pip install 'tarsd[{extra}]'")


def _zipped(path: Path) -> Extracted:
    """What a zip file is, the names in it say."""
    _have("office")
    from tarsd.extract import books, office
    from tarsd.extract.archive import Archive

    archive = Archive(path)
    names = archive.names
    mime = archive.read("mimetype")[:100] if "mimetype" in names else b""
    if b"epub" in mime or "META-INF/container.xml" in names:
        return books.read(path, Allowance())
    if b"spreadsheet" in mime or any(name.startswith("xl/") for name in names):
        return office.read_sheets(path, Allowance())
    if b"opendocument" in mime or "content.xml" in names:
        return office.read_open(path, Allowance())
    if any(name.startswith("word/") for name in names):
        return office.read_word(path, Allowance())
    if any(name.startswith("ppt/") for name in names):
        return office.read_slides(path, Allowance())
    raise NotReadable("It is an archive of other files.", "Unpack it, and put into the vault what belongs there.")


def _old_office(path: Path) -> Extracted:
    """Microsoft's container: an old Excel file, a new file with a password, or what cannot be read."""
    _have("office")
    from tarsd.extract import office
    from tarsd.extract.archive import PROTECTED

    data = path.read_bytes()
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise NotReadable("The file is protected by a password.", PROTECTED)
    if any(name.encode("utf-16-le") in data for name in ("Workbook", "Book")):
        return office.read_sheets(path, Allowance())
    raise NotReadable("It is of an old form of Word or PowerPoint.", "Save it as .docx or .pptx.")


def _plain(path: Path) -> Extracted:
    """Text under another name is text; anything else is told."""
    with path.open("rb") as file:
        data = file.read(CHARACTERS)
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(data).replace("\r\n", "\n").strip()
    except UnicodeDecodeError:
        text = ""
    if text and "\0" not in text:
        return Extracted((Page(text),))
    raise NotReadable("It is not what its name says, and of no form that is read here.", "Give it its true ending.")
