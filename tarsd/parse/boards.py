"""Files that are not prose: Excalidraw drawings and canvases. Only the words that a person put there are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

_BANNER = "Switch to EXCALIDRAW VIEW"
_DECOMPRESS = "decompress Drawing data"
_DATA = re.compile(r"#\s+Excalidraw Data\s*")
_TEXTS = re.compile(r"#{1,2}\s+Text Elements\s*")
_OTHER = re.compile(r"(?:#{1,2}\s+(?:Element Links|Embedded Files|Drawing|Embedded files)\s*|%%)")
_ID = re.compile(r"\"id\"\s*:\s*\"([^\"\\\n]*)\"")
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
        board.faults.append((1, "The canvas is empty."))
        return board
    try:
        data = json.loads(source)
    except json.JSONDecodeError as error:
        board.faults.append((error.lineno, f"The canvas is not valid JSON: {error.msg}."))
        return board
    except (ValueError, RecursionError):
        board.faults.append((1, "The canvas is not valid JSON."))
        return board
    if not isinstance(data, dict):
        board.faults.append((1, "The canvas is not valid JSON: it has no cards."))
        return board
    places = _places(source)
    for items, keys in (("nodes", ("text", "label", "url", "file")), ("edges", ("label",))):
        found = data.get(items, [])
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            board.faults.append((1, f"Some {items} of the canvas cannot be read."))
        for item in found if isinstance(found, list) else ():
            if not isinstance(item, dict):
                continue
            identity = item.get("id")
            line = places.get(identity, 1) if isinstance(identity, str) else 1
            file = item.get("file") if items == "nodes" else None
            for key in keys:
                text = _words(item.get(key))
                if key == "file" and text:  # what a link to it would show, without its folders and ending
                    text = PurePosixPath(text).stem + _words(item.get("subpath")).replace("#", " › ").replace("^", "")
                if text:
                    before = board.lines[line - 1]
                    board.lines[line - 1] = f"{before}\n\n{text}" if before else text
            if file := _words(file):
                board.files.append((line, file))
    return board


def _words(value: object) -> str:
    """A string of the JSON as text: an escape may name half a character, and the line ends are any."""
    if not isinstance(value, str):
        return ""
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ").strip()


def _places(source: str) -> dict[str, int]:
    """The 1-based line on which each id stands, the first where it stands as a card's or an edge's own."""
    places: dict[str, int] = {}
    line = at = 0
    for match in _ID.finditer(source):
        line += source.count("\n", at, match.start())
        at = match.start()
        places.setdefault(match[1], line + 1)
    return places
