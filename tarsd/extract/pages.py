"""What is read out of a file that is no note: pages of text, or one sentence that says why there is none."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tarsd.errors import TarsdError

Kind = Literal["pdf", "office", "book", "web", "picture"]

SUFFIXES: dict[str, Kind] = {
    ".pdf": "pdf",
    **dict.fromkeys(
        (
            ".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm", ".xlsb", ".xls", ".rtf", ".odt", ".odp", ".ods",
        ),
        "office",
    ),
    ".epub": "book",
    **dict.fromkeys((".html", ".htm", ".xhtml"), "web"),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".webp"), "picture"),
}  # fmt: skip
"""The kind of a file by the end of its name, in lower case. What a file truly is, its first bytes say."""


class Page(NamedTuple):
    """A page, slide, sheet or chapter. `text` is paragraphs with a blank line between them.

    `label` is what a person calls it ("3", "iv", "Allowance", a chapter's title), "" in a file without pages; `place`
    what stands behind # in a link that Obsidian opens ("page=3"); `headings` are offsets into `text`, in order.
    """

    text: str
    label: str = ""
    place: str = ""
    headings: tuple[tuple[int, str], ...] = ()


class Extracted(NamedTuple):
    """All that was read. `problem` says in one sentence why text is missing or cut, `hint` what to do about it."""

    pages: tuple[Page, ...]
    title: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    hint: str = ""


class NotReadable(TarsdError):
    """A file without text for us; its message and hint become those of `Extracted`."""
