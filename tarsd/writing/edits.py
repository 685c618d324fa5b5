"""Changes to a note, planned as text: pure, and everything outside the edit stays byte for byte as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from tarsd.errors import BadRequest, PathRefused, Refused
from tarsd.parse import Note, parse, properties, source_lines
from tarsd.parse.properties import TWICE
from tarsd.parse.structure import BLOCK_ID
from tarsd.vault import decode, encode, kind_of, nfc
from tarsd.vault.names import safe_parts
from tarsd.writing.changes import Change, Loaded, Op
from tarsd.writing.places import LineIndex, LineRange, Outline

Mode = Literal["replace", "append", "prepend"]

_ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+)(?:\[.\][ \t]+)?")
_INDENT = re.compile(r"[ \t]*")
_DELIMITER = re.compile(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|?)+[ \t]*")
_TEST_HEADING = "would this be a heading 5c1f0e"


def create(path: str, text: str) -> Change:
    """A new note. Its path must be one of a note (PathRefused); its lines end in "\\n", the last one too."""
    parts = safe_parts(path)
    if kind_of(parts[-1]) is None:
        raise PathRefused("Only notes can be written: .md, .canvas and .base.", "Add the ending .md.")
    content = _clean(text)
    if content and not content.endswith("\n"):
        content += "\n"
    _check_properties(content)
    return Change(nfc(path), "create", None, encode(content, "utf-8"), content)


def append(note: Loaded, text: str, heading: str = "") -> Change:
    """Add `text` at the end of the note, or of the section under `heading` ("A", "A#B" or "A > B").

    One blank line stands between what was there and what is added, but none between items of a list or rows of a
    table. Raises NotFound for an unknown heading, Conflict for one that stands several times, BadRequest for text that
    cannot stand there by itself, Refused if the note cannot be written or its end is inside something unclosed.
    """
    outline = _outline(note)
    lines = outline.text
    whole = LineRange(0, len(lines.lines))
    return _add_after(note, outline, outline.section(heading) if heading.strip() else whole, text)


def patch(note: Loaded, target: str, text: str, mode: Mode) -> Change:
    """Change the body of a section ("Heading", "Heading#Sub"; subsections belong to it) or a block ("^id").

    A heading stays, and so does the id of a block. "append" and "prepend" put `text` after and before the block, or at
    the end and the beginning of the section's body. Raises as `append`.
    """
    outline = _outline(note)
    if not target.strip().startswith("^"):
        place = outline.section(target)
    else:
        place = outline.block(target)
        if place.id_line >= 0:
            return _patch_block(note, outline, place, text, mode)
    if mode == "append":
        return _add_after(note, outline, place, text)
    lines = outline.text
    first, end = _filled(lines, place)
    new = _fragment(text) if mode == "prepend" or text.strip() else []
    if first == end:  # nothing is there yet
        first = end = place.start
        new = _spaced(lines, first, first, new) if new else []
    elif mode == "prepend":
        end = first
        new = new if _joins(outline, new, first, below=True) else [*new, ""]
    elif new and not lines.blank(end):
        new = [*new, ""]
    return _change(note, outline, first, end, new)


def replace_text(note: Loaded, new_text: str) -> Change:
    """The whole text exchanged, in the note's own encoding and line ends. Raises Refused as `append`."""
    _check(note)
    content = _clean(new_text).replace("\n", LineIndex.of(note.text).end)
    _check_properties(content, note.text)
    return _written(note, content, "modify", content)


def replace_lines(note: Loaded, line: int, new: list[str]) -> Change:
    """Line `line` (1-based) exchanged for these lines. Raises as `append`."""
    return _change(note, _outline(note), line - 1, line, new)


def _check_properties(text: str, before: str = "") -> None:
    """Raises BadRequest if a property would be there twice that was not so before: Obsidian shows none of them then."""
    doubled = properties.read(source_lines(text)).doubled
    if doubled and len(doubled) > len(properties.read(source_lines(before)).doubled):
        raise BadRequest(f"{doubled[-1].removesuffix(TWICE)}would appear twice.", "Write it once.", field="text")


def _add_after(note: Loaded, outline: Outline, place: LineRange, text: str) -> Change:
    """At the end of a section or of the note: after what it holds, before the blank lines that follow."""
    lines, new = outline.text, _fragment(text)
    first, end = _filled(lines, place)
    if first == end and place.start:
        return _change(note, outline, place.start, place.start, _spaced(lines, place.start, place.start, new))
    if first < end and _joins(outline, new, end - 1):
        return _change(note, outline, end, end, new if lines.blank(end) else [*new, ""])
    if place.end == len(lines.lines):
        end = place.end  # what blank lines a note ends with are the space before what is added
    return _change(note, outline, end, end, _spaced(lines, end, end, new))


def _patch_block(note: Loaded, outline: Outline, place: LineRange, text: str, mode: Mode) -> Change:
    lines = outline.text
    item = _ITEM.match(lines.lines[place.start])
    new = _fragment(text)
    listed = _ITEM.match(new[0]) is not None
    if item:
        # what is no item itself becomes the item's text, or is added to it as a further paragraph
        indent = item[1] if listed else item[1] + " " * len(item[2] + item[3])
        new = [indent + line if line.strip() else line for line in new]
    if mode == "replace":
        if item and not listed:
            new[0] = item[0] + new[0].lstrip()
        mark = BLOCK_ID.search(lines.lines[place.end - 1])
        if mark:
            last = BLOCK_ID.sub("", new[-1]).rstrip()
            if _takes_id(new):
                new = [*new[:-1], f"{last} ^{mark[1]}"]
            else:
                new = [*new, "", f"^{mark[1]}", *([] if lines.blank(place.end) else [""])]
        return _change(note, outline, place.start, place.end, new)
    if mode == "prepend":
        if item and not listed:
            new = [item[0] + new[0].lstrip(), *new[1:]]
        spaced = new if item else _spaced(lines, place.start, place.start, new)
        return _change(note, outline, place.start, place.start, spaced)
    end = max(place.end, place.id_line + 1)
    if item:
        while not lines.blank(end) and len(_INDENT.match(lines.lines[end])[0]) > len(item[1]):  # type: ignore[index]
            end += 1
        return _change(note, outline, end, end, new if listed else ["", *new])
    return _change(note, outline, end, end, _spaced(lines, end, end, new))


def _takes_id(new: list[str]) -> bool:
    """Can an id stand at the end of the last line? Not behind a fence, a table or a quote's rule."""
    shape = parse("\n".join(["", *new]), "text.md")
    return not any(unit.end_line == len(new) + 1 for unit in shape.units)


def _fragment(text: str) -> list[str]:
    lines = _clean(text).split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise BadRequest("There is no text to write.", "Give the text.", field="text")
    return lines


def _clean(text: str) -> str:
    """Line ends "\\n", and nothing that a note could not be read again with."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _filled(lines: LineIndex, place: LineRange) -> tuple[int, int]:
    """The lines of a place without the blank ones around; both are its start if there are no others."""
    first, end = place.start, place.end
    while end > first and lines.blank(end - 1):
        end -= 1
    while first < end and lines.blank(first):
        first += 1
    return first, end


def _spaced(lines: LineIndex, start: int, end: int, new: list[str]) -> list[str]:
    """`new` with blank lines to what stands above line `start` and below line `end - 1`."""
    above = start > 0 and not lines.blank(start - 1)
    below = not lines.blank(end)
    return [*([""] if above else []), *new, *([""] if below else [])]


def _joins(outline: Outline, new: list[str], line: int, *, below: bool = False) -> bool:
    """Do `new` and the lines around line `line` make one list, or one table?"""
    lines = outline.text
    ours = new[-1] if below else new[0]
    if below:
        ours = next((text for text in reversed(new) if text[:1] not in (" ", "\t")), ours)
        theirs = lines.lines[line]
    else:
        while line > 0 and lines.lines[line][:1] in (" ", "\t") and not lines.blank(line - 1):
            line -= 1
        theirs = lines.lines[line]
        rows = any(unit.kind == "table" and unit.end_line == line + 1 for unit in outline.note.units)
        if rows and ours.startswith("|"):
            return not (len(new) > 1 and _DELIMITER.fullmatch(new[1]))
    new_item, old_item = _ITEM.match(ours), _ITEM.match(theirs)
    return bool(new_item and old_item and (new_item[2][-1] in ".)") == (old_item[2][-1] in ".)"))


def _outline(note: Loaded) -> Outline:
    """The note's structure, if it is one that can be added to."""
    _check(note)
    if kind_of(note.path) != "note":
        raise Refused(f"{note.path} is not text that can be added to.", "Change it in Obsidian.")
    outline = Outline(note.path, note.text)
    if "excalidraw-plugin" in outline.note.properties or note.path.casefold().endswith(".excalidraw.md"):
        raise Refused(f"{note.path} is a drawing.", "Change it in Obsidian.")
    return outline


def _check(note: Loaded) -> None:
    read = decode(note.raw)
    if not read.lossless or read.text != note.text or encode(note.text, note.encoding) != note.raw:
        why = read.problem if read.problem else "Its text cannot be written back unchanged."
        raise Refused(f"{note.path} is not changed. {why}", read.hint)


def _change(note: Loaded, outline: Outline, start: int, end: int, new: list[str]) -> Change:
    """Lines [start, end) exchanged for `new`, once it is sure that all else means what it meant."""
    lines = outline.text
    if start == 0 and new and new[0].startswith("---"):
        new = ["", *new]  # at the top of a note it would begin its properties
    text = lines.with_lines(start, end, [line.rstrip("\r\n") for line in new])
    _prove(outline, start, end, new, text)
    if start == len(lines.lines):
        return _written(note, text, "append", text[len(note.text) :])
    return _written(note, text, "modify", text)


def _prove(outline: Outline, start: int, end: int, new: list[str], text: str) -> None:
    """Is the edit at the top level and whole, and do headings, blocks, code and properties outside stay as they are?"""
    path, old = outline.path, outline.text.lines
    if not _stands(path, [*old[:start], *new], old[end:]):
        if not _stands(path, list(old[:start]), old[start:]):
            message = f"In {path}, the text would end up inside a code block, a comment or the like."
            raise Refused(message, f"Close what is open above line {start + 1}, or choose another place.")
        message = "The text opens a code block, a comment or the like and does not close it."
        raise BadRequest(message, "Close it.", field="text")
    shape = parse(text, path)
    moved = len(new) - (end - start)
    before = [(what, line) for what, line in _landmarks(outline.note) if line <= start]
    after = [(what, line + moved) for what, line in _landmarks(outline.note) if line > end]
    now = [(what, line) for what, line in _landmarks(shape) if not start < line <= start + len(new)]
    if sorted(before + after) != sorted(now) or shape.body_line != outline.note.body_line:
        message = f"This text would change how other parts of {path} are read."
        raise BadRequest(message, "Leave out single marks such as ```, %%, $$, <!-- or ---.", field="text")


def _landmarks(shape: Note) -> list[tuple[str, int]]:
    """What gives a note its structure, each with a line."""
    return [
        *((f"{heading.level} {heading.text}", heading.line) for heading in shape.headings),
        *((unit.kind, unit.start_line) for unit in shape.units),
        *((f"^{block.id}", block.end_line) for block in shape.blocks),
    ]


def _stands(path: str, above: list[str], below: Sequence[str]) -> bool:
    """Would a heading between the two be one?"""
    shape = parse("\n".join([*above, "", f"# {_TEST_HEADING}", "", *below]), path)
    return any(heading.text == _TEST_HEADING and heading.line == len(above) + 2 for heading in shape.headings)


def _written(note: Loaded, text: str, op: Op, content: str) -> Change:
    raw = encode(text, note.encoding)
    read = decode(raw)
    if read.text != text or read.encoding != note.encoding:
        raise Refused(
            f"{note.path} was not changed: with this text, it could not be read again.", "Leave out unusual marks."
        )
    return Change(note.path, op, note.raw, raw, content)
