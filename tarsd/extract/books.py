"""EPUB: a page for each chapter, in the book's own order."""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import unquote

from tarsd.extract.archive import Archive, about
from tarsd.extract.limits import TOO_MUCH, Allowance
from tarsd.extract.markup import document, text_of
from tarsd.extract.pages import Extracted, NotReadable, Page


def read(path: Path, allowance: Allowance) -> Extracted:
    """Raises NotReadable for a book that is locked or holds no chapters."""
    archive = Archive(path)
    if "META-INF/rights.xml" in archive.names:
        raise NotReadable("The book is locked to a reader or shop.", "Read it there, and put your notes in the vault.")
    package = _package(archive)
    pages: list[Page] = []
    problem = ""
    for name in _chapters(archive, package):
        root = document(archive.read(name))
        text, headings = text_of(root) if root is not None else ("", ())
        if text:
            pages.append(Page(text, headings[0][1] if headings else str(len(pages) + 1), "", headings))
        if not allowance.spend(len(text)):
            problem = f"Only the first {len(pages)} chapters were read: {TOO_MUCH}."
            break
    if not pages:
        raise NotReadable("The book holds no text: its pages may be pictures.", "Look for another edition of it.")
    title, properties = about(archive, package)
    return Extracted(tuple(pages), title, properties, problem, "Split the book." if problem else "")


def _package(archive: Archive) -> str:
    """The file that lists all others."""
    if "META-INF/container.xml" in archive.names:
        for element in archive.xml("META-INF/container.xml").iter("{*}rootfile"):
            if (name := element.get("full-path", "")) in archive.names:
                return name
    return next((name for name in sorted(archive.names) if name.endswith(".opf")), "")


def _chapters(archive: Archive, package: str) -> list[str]:
    """The chapters' files as the book orders them; without an order, by name."""
    if package:
        root = archive.xml(package)
        files = {one.get("id"): one.get("href", "") for one in root.iter("{*}item")}
        hrefs = [files.get(one.get("idref"), "") for one in root.iter("{*}itemref")]
        names = [
            posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(href))) for href in hrefs if href
        ]
        if found := [name for name in dict.fromkeys(names) if name in archive.names]:
            return found
    return sorted(name for name in archive.names if name.endswith((".xhtml", ".html", ".htm")))
