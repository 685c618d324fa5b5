"""Word, PowerPoint, Excel, RTF and OpenDocument.

mammoth, python-pptx, python-calamine and striprtf are asked themselves and not through markitdown, which is built on
the first two: that brings pandas, magika and requests with it, and gives one Markdown text without slides and sheets.
calamine reads all forms of Excel and OpenDocument's sheets, openpyxl one form, and slowly.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tarsd.extract.archive import PROTECTED, Archive, about
from tarsd.extract.limits import CHARACTERS, TOO_MUCH, Allowance
from tarsd.extract.markup import document, text_of
from tarsd.extract.pages import Extracted, NotReadable, Page

_CORE, _META = "docProps/core.xml", "meta.xml"
_SPLIT = "Split it into smaller files."


def read_word(path: Path, _allowance: Allowance) -> Extracted:
    """One page with the headings of the document's styles."""
    import mammoth

    archive = Archive(path)
    with path.open("rb") as file:
        made = mammoth.convert_to_html(file, convert_image=mammoth.images.img_element(lambda _image: {}))
    root = document(made.value.encode())
    text, headings = text_of(root) if root is not None else ("", ())
    return _whole(Page(text, headings=headings), *about(archive, _CORE))


def _whole(page: Page, title: str, properties: tuple[tuple[str, str], ...]) -> Extracted:
    if not page.text:
        return Extracted((), title, properties, "The document holds no text.", "Look whether its pages are pictures.")
    return Extracted((page,), title, properties)


def read_slides(path: Path, allowance: Allowance) -> Extracted:
    """A page for each slide, with its title as heading and its speaker's notes last."""
    import pptx

    archive = Archive(path)
    pages: list[Page] = []
    slides = list(pptx.Presentation(str(path)).slides)
    for number, slide in enumerate(slides, 1):
        title = slide.shapes.title
        head = " ".join(title.text_frame.text.split()) if title is not None else ""
        parts = [head, *(one for shape in slide.shapes if shape != title for one in _shown(shape))]
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            parts.append(notes.text.strip())
        text = "\n\n".join(filter(None, parts))
        pages.append(Page(text, str(number), "", ((0, head),) if head else ()))
        if not allowance.spend(len(text)):
            return _cut(pages, len(slides), "slides")
    return Extracted(tuple(pages), *about(archive, _CORE))


def _cut(pages: list[Page], count: int, what: str) -> Extracted:
    problem = f"Only the first {len(pages)} of {count} {what} were read: {TOO_MUCH}."
    return Extracted(tuple(pages), problem=problem, hint=_SPLIT)


def _shown(shape: Any) -> Iterator[str]:
    """The texts of a shape, of those in it, and of its table."""
    for inner in getattr(shape, "shapes", ()):
        yield from _shown(inner)
    if shape.has_text_frame:
        yield shape.text_frame.text.replace("\v", "\n").strip()
    if getattr(shape, "has_table", False):
        yield "\n".join(" | ".join(" ".join(cell.text.split()) for cell in row.cells) for row in shape.table.rows)


def read_sheets(path: Path, allowance: Allowance) -> Extracted:
    """A page for each sheet that holds something, a line for each row: Excel, old and new, and OpenDocument's."""
    import python_calamine

    with path.open("rb") as file:
        zipped = file.read(2) == b"PK"
    archive = Archive(path) if zipped else None
    try:
        book = python_calamine.CalamineWorkbook.from_path(path)
    except python_calamine.PasswordError as error:
        raise NotReadable("The file is protected by a password.", PROTECTED) from error
    pages: list[Page] = []
    for count, name in enumerate(book.sheet_names, 1):
        rows = []
        goes_on = True
        for row in book.get_sheet_by_name(name).iter_rows():
            line = " | ".join(text for cell in row if (text := " ".join(_value(cell).split())))
            if line:
                rows.append(line)
                goes_on = allowance.spend(len(line))
                if not goes_on:
                    break
        if rows:
            pages.append(Page("\n".join(rows), name))
        if not goes_on:
            return _cut(pages, max(count, len(book.sheet_names)), "sheets")
    title, properties = about(archive, _CORE if _CORE in archive.names else _META) if archive else ("", ())
    if not pages:
        return Extracted((), title, properties, "The sheets are empty.", "")
    return Extracted(tuple(pages), title, properties)


def _value(cell: object) -> str:
    """Whole numbers without a point, as the sheet shows them."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def read_rtf(path: Path, _allowance: Allowance) -> Extracted:
    """One page of text; RTF has no headings that could be told."""
    from striprtf.striprtf import rtf_to_text

    text = rtf_to_text(path.read_bytes().decode("latin-1"), errors="ignore").replace("\xa0", " ")
    lines = (" ".join(line.split()).strip("| ") for line in text[:CHARACTERS].split("\n"))
    return _whole(Page("\n\n".join(filter(None, lines))), "", ())


def read_open(path: Path, allowance: Allowance) -> Extracted:
    """OpenDocument's texts as one page, its presentations as a page for each slide."""
    archive = Archive(path)
    if "META-INF/manifest.xml" in archive.names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise NotReadable("The file is protected by a password.", PROTECTED)
    root = archive.xml("content.xml")
    about_it = about(archive, _META)
    slides = list(root.iter("{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}page"))
    if not slides:
        text, headings = text_of(root)
        return _whole(Page(text, headings=headings), *about_it)
    pages: list[Page] = []
    for number, slide in enumerate(slides, 1):
        text, headings = text_of(slide)
        pages.append(Page(text, str(number), "", headings or ((0, text.partition("\n")[0]),) if text else ()))
        if not allowance.spend(len(text)):
            return _cut(pages, len(slides), "slides")
    return Extracted(tuple(pages), *about_it)
