"""Which extra brings what reads a kind of file."""

from __future__ import annotations

import importlib.util

from tarsd.extract.pages import Kind

EXTRAS = {
    "files": ("lxml", "mammoth", "pptx", "python_calamine", "striprtf"),
    "ocr": ("rapidocr",),
}
"""The modules that each extra brings."""
_NEEDS: dict[Kind, str] = {"office": "files", "book": "files", "web": "files", "picture": "ocr"}


def missing(kind: Kind) -> str:
    """The extra without which files of this kind cannot be read here, "" when nothing is missing."""
    extra = _NEEDS.get(kind, "")
    return extra if any(importlib.util.find_spec(name) is None for name in EXTRAS.get(extra, ())) else ""
