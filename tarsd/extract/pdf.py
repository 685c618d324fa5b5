"""PDF: the text of each page, with the outline as headings and the pages' own labels."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pypdfium2
from pypdfium2 import raw

from tarsd.extract.flow import joined, paragraphs, without_edges
from tarsd.extract.limits import TOO_MUCH, Allowance
from tarsd.extract.needs import missing
from tarsd.extract.pages import Extracted, NotReadable, Page

OUTLINE, ANNOTATIONS, NAMED = 5_000, 1_000, 50
"""How many headings of an outline, annotations of a page, and links and attachments are taken."""

LONGEST = 2_000
"""The longer side of a page's picture, in dots."""

_REMARKS = (raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_FREETEXT)

_PROPERTIES = {"Author": "author", "Subject": "subject", "Keywords": "keywords", "CreationDate": "created"}
_NO_LETTERS = re.compile("[\x00-\x01\x03-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")
_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")


def read(path: Path, allowance: Allowance) -> Extracted:
    """Raises NotReadable for what is protected or damaged."""
    try:
        pdf = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise _refused(error) from error
    with pdf:
        if pdf.get_formtype() != raw.FORMTYPE_NONE:
            pdf.init_forms()
        recognizes = not missing("picture")
        texts: list[list[str]] = []
        for index in range(len(pdf)):
            texts.append(_lines(pdf, index))
            if not texts[-1] and recognizes and allowance.has_time_for_picture and _has_picture(pdf, index):
                texts[-1] = _recognized(pdf, index)
            if not allowance.spend(sum(map(len, texts[-1]))):
                break
        outline = _outline(pdf)
        pages = tuple(
            _page(paragraphs(lines), pdf, index, outline.get(index, ()))
            for index, lines in enumerate(without_edges(texts))
        )
        problem, hint = _left_out(len(pdf), texts, late=recognizes and not allowance.has_time_for_picture)
        return Extracted(pages, _clean(pdf.get_metadata_value("Title")), tuple(_properties(pdf)), problem, hint)


def _left_out(count: int, texts: list[list[str]], *, late: bool) -> tuple[str, str]:
    """What is to be said of pages that were not reached, or that hold no text."""
    if len(texts) < count:
        return (
            f"Only the first {len(texts)} of {count} pages were read: {TOO_MUCH}.",
            "Split the PDF into smaller ones.",
        )
    empty = sum(not lines for lines in texts)
    if not empty:
        return "", ""
    which = "its pages hold" if empty == count else f"{empty} of its {count} pages hold"
    if missing("picture"):
        return f"The PDF is a scan: {which} no text.", "Reading text in pictures needs tarsd[ocr]."
    if late:
        return f"Of the PDF, {which} no text yet: reading text in pictures takes too long.", "Split the PDF."
    return f"Of the PDF, {which} no text that can be read.", "Look whether you can select text in it."


def _refused(error: pypdfium2.PdfiumError) -> NotReadable:
    if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
        return NotReadable(
            "The PDF is protected by a password.",
            "Save a copy without the password, for example by printing it to a PDF.",
        )
    return NotReadable(
        "The PDF is damaged: its pages cannot be found.", "Get the file again, or open it and save it anew."
    )


def _lines(pdf: pypdfium2.PdfDocument, index: int) -> list[str]:
    """The text lines of a page, those of its form fields and remarks last; none for a page that cannot be loaded."""
    try:
        page = pdf[index]
    except pypdfium2.PdfiumError:
        return []
    try:
        text = _text(page)
        if raw.FPDFPage_GetAnnotCount(page):
            text = "\n".join((text, *_annotations(pdf, page)))
    except pypdfium2.PdfiumError:
        return []
    finally:
        page.close()
    if len(_NO_LETTERS.findall(text)) * 3 > len(text):  # a font that does not say which letters it draws
        return []
    return [line for line in map(str.strip, joined(text).splitlines()) if line]


def _has_picture(pdf: pypdfium2.PdfDocument, index: int) -> bool:
    try:
        return next(pdf[index].get_objects((raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3), None) is not None
    except pypdfium2.PdfiumError:
        return False


def _recognized(pdf: pypdfium2.PdfDocument, index: int) -> list[str]:
    """The lines in a picture of the page, of some 150 dots an inch, and never of more dots than a large page has."""
    from tarsd.extract.pictures import recognized

    page = pdf[index]
    scale = min(150 / 72, LONGEST / max(page.get_size()))
    return recognized(page.render(scale=scale).to_pil().convert("RGB"))


def _text(page: pypdfium2.PdfPage) -> str:
    """What stands within the page's borders, in one call: `get_text_bounded` has pdfium collect it twice."""
    textpage = page.get_textpage()
    left, bottom, right, top = page.get_bbox()
    size = 2 * raw.FPDFText_CountChars(textpage) + 1
    buffer = (ctypes.c_ushort * size)()
    got = raw.FPDFText_GetBoundedText(textpage, left, top, right, bottom, buffer, size)
    textpage.close()
    return bytes(memoryview(buffer)[:got]).decode("utf-16-le", "ignore").rstrip("\0")


def _annotations(pdf: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Iterator[str]:
    """What was typed into form fields, each with the field's name, and remarks."""
    for at in range(min(raw.FPDFPage_GetAnnotCount(page), ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, at)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_WIDGET and pdf.formenv:
            name = _wide(raw.FPDFAnnot_GetFormFieldName, pdf.formenv, annotation)
            value = _wide(raw.FPDFAnnot_GetFormFieldValue, pdf.formenv, annotation)
            if value and value != "Off":
                yield f"{name}: {value}" if name else value
        elif kind in _REMARKS:
            yield _wide(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
        raw.FPDFPage_CloseAnnot(annotation)


def _wide(function: Callable[..., int], *arguments: Any) -> str:
    """The UTF-16 text that a function of pdfium writes into a buffer; it tells the size in bytes when given none."""
    size = function(*arguments, None, 0)
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    function(*arguments, buffer, size)
    return bytes(buffer)[: max(size - 2, 0)].decode("utf-16-le", "ignore")


def _page(text: str, pdf: pypdfium2.PdfDocument, index: int, titles: Sequence[str]) -> Page:
    label = _clean(pdf.get_page_label(index)) or str(index + 1)
    headings = sorted({(_offset(text, title), title) for title in titles})
    return Page(text, label, f"page={index + 1}", tuple(headings))


def _offset(text: str, title: str) -> int:
    """Where a heading stands on its page; 0 where its words are not found."""
    found = re.search(r"\s+".join(map(re.escape, title.split())), text, re.I)
    return found.start() if found else 0


def _outline(pdf: pypdfium2.PdfDocument) -> dict[int, list[str]]:
    """The titles of the outline by the page that they lead to."""
    titles: defaultdict[int, list[str]] = defaultdict(list)
    for mark in itertools.islice(pdf.get_toc(), OUTLINE):
        goal = mark.get_dest()
        index = goal.get_index() if goal else None
        if index is not None and (title := _clean(mark.get_title())):
            titles[index].append(title)
    return titles


def _properties(pdf: pypdfium2.PdfDocument) -> Iterator[tuple[str, str]]:
    for key, name in _PROPERTIES.items():
        value = _clean(pdf.get_metadata_value(key))
        if name == "created" and (date := _DATE.match(value)):
            value = "-".join(part for part in date.groups() if part)
        if value:
            yield name, value
    for at in range(min(pdf.count_attachments(), NAMED)):
        if name := _clean(pdf.get_attachment(at).get_name()):
            yield "attachment", name


def _clean(text: str) -> str:
    """On one line, without signs that nobody sees."""
    return " ".join("".join(sign for sign in text if sign.isprintable() or sign.isspace()).split())
