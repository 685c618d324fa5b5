"""A file is read by what its first bytes say it is; every fault becomes a sentence."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tarsd.errors import TarsdError
from tarsd.extract.limits import Budget
from tarsd.extract.pages import Extracted, Kind, Unreadable


def extract(path: Path, kind: Kind) -> Extracted:
    """Read a file in this process. Raises nothing that a file can cause; `kind` is what its name promises."""
    try:
        return _read(path, kind)
    except TarsdError as error:
        return Extracted((), problem=error.message, hint=error.hint)
    except OSError as error:
        return Extracted(
            (), problem=f"The file cannot be opened: {error.strerror or error}.", hint="Look at its permissions."
        )
    except MemoryError:
        return Extracted((), problem="Reading it needs too much memory.", hint="Split it into smaller files.")
    except Exception as error:
        return Extracted(
            (),
            problem=f"The file is damaged: it could not be read ({type(error).__name__}).",
            hint="Open it with its program and save it anew.",
        )


def _read(path: Path, kind: Kind) -> Extracted:
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        raise Unreadable("The file is empty.", "Get it again: it may not have been copied whole.")
    if b"%PDF-" in head:
        from tarsd.extract import pdf

        return pdf.read(path, Budget())
    raise Unreadable("It is not what its name says.", "Give it the ending that fits it.")


EXTRAS = {
    "files": ("lxml", "mammoth", "pptx", "python_calamine", "striprtf"),
    "ocr": ("rapidocr_onnxruntime",),
}
"""The modules that each extra brings."""

_NEEDS: dict[Kind, str] = {"office": "files", "book": "files", "web": "files", "picture": "ocr"}


def missing(kind: Kind) -> str:
    """The extra without which files of this kind cannot be read here, "" when nothing is missing."""
    extra = _NEEDS.get(kind, "")
    return extra if any(importlib.util.find_spec(name) is None for name in EXTRAS.get(extra, ())) else ""
