"""Files that are not prose: Excalidraw drawings and canvases. Only the words that a person put there are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_BANNER = "Switch to EXCALIDRAW VIEW"
_DECOMPRESS = "decompress Drawing data"
_DATA = re.compile(r"#\s+Excalidraw Data\s*")
_TEXTS = re.compile(r"#{1,2}\s+Text Elements\s*")
_OTHER = re.compile(r"(?:#{1,2}\s+(?:Element Links|Embedded Files|Drawing|Embedded files)\s*|%%)")
_ELEMENT_ID = re.compile(r"\s*\^[A-Za-z0-9_-]{8}\s*$")


def drawing_text(lines: Sequence[str]) -> list[str]:
    """The lines of an Excalidraw note with all but its text elements, and the text before its data, blanked."""
    kept: list[str] = []
    part = "note"
    for line in lines:
        if _DATA.fullmatch(line):
            part = "data"
        elif _TEXTS.fullmatch(line):
            part = "texts"
        elif _OTHER.fullmatch(line) if part != "note" else line.strip() == "%%":
            part = "data"
        elif part == "texts":
            kept.append(_ELEMENT_ID.sub("", line))
            continue
        elif part == "note" and _BANNER not in line and _DECOMPRESS not in line:
            kept.append(line)
            continue
        kept.append("")
    return kept


@dataclass
class Canvas:
    """A canvas by the file's lines: the text of the cards on each, its (1-based line, file) cards and its faults."""

    lines: list[str]
    files: list[tuple[int, str]] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)


def canvas(lines: Sequence[str]) -> Canvas:
    """The cards of a canvas; broken JSON gives an empty board with a fault."""
    board = Canvas([""] * len(lines))
    source = "\n".join(lines)
    if not source.strip():
        return board
    try:
        data = json.loads(source)
    except json.JSONDecodeError as error:
        board.faults.append((error.lineno, f"The canvas is not valid JSON: {error.msg}."))
        return board
    except (ValueError, RecursionError):
        board.faults.append((1, "The canvas is not valid JSON."))
        return board
    for items, keys in (("nodes", ("text", "label", "url")), ("edges", ("label",))):
        found = data.get(items) if isinstance(data, dict) else None
        for item in found if isinstance(found, list) else ():
            if not isinstance(item, dict):
                continue
            line = _line_of(source, item.get("id"))
            for text in map(item.get, keys):
                if isinstance(text, str) and text.strip():
                    card = text.replace("\r\n", "\n").replace("\r", "\n").strip()
                    before = board.lines[line - 1]
                    board.lines[line - 1] = f"{before}\n\n{card}" if before else card
            if items == "nodes" and isinstance(file := item.get("file"), str) and file:
                board.files.append((line, file))
    return board


def _line_of(source: str, identity: object) -> int:
    at = source.find(f'"{identity}"') if isinstance(identity, str) and identity else -1
    return source.count("\n", 0, at) + 1 if at > 0 else 1
