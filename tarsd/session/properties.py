"""The properties of a session note: written once, then changed line by line, so that what a person adds there stays.

Pure. A property that somebody took out stays out, but for the mark of private text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from tarsd.parse import JSON, source_lines
from tarsd.parse.properties import PropertyBlock, read
from tarsd.session.markdown import clean

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

_KEY_OF = {
    key: re.compile(rf"""(["']?){key}\1[ \t]*:(?=\s|$)""") for key in ("updated", "model", "sources", "local_only")
}

Lines = list[str]


def quoted(value: str) -> str:
    """`value` as a YAML scalar that is read back as the same string."""
    value = " ".join(clean(value).split())
    if _PLAIN.fullmatch(value) and value.casefold() not in _WORDS:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def stamp(at: datetime) -> str:
    """A moment as a property: local time to the second, with its distance from UTC."""
    return at.isoformat(timespec="seconds")


def block(
    id: str,
    started: datetime,
    *,
    model: str,
    sources: Sequence[str],
    updated: datetime,
    private: bool,
    machine: str = "",
) -> str:
    """The properties of a new session note, both rules included."""
    lines = ["tars: session", f"id: {quoted(id)}", *([f'machine: "{machine}"'] if machine else [])]
    lines += [f"started: {stamp(started)}", f"updated: {stamp(updated)}"]
    lines.append(f"model: {quoted(model)}")
    lines += ["sources:", *(f"  - {quoted(source)}" for source in sources)] if sources else ["sources: []"]
    lines += ["local_only: true"] if private else []
    return "\n".join(["---", *lines, "---", ""])


def update(text: str, *, sources: Sequence[str], model: str, updated: datetime, private: bool) -> str:
    """The note's text with its properties brought up to date; everything else in it stays to the letter.

    Each property is changed by itself, and only where the note then reads as it should. A model or time that is
    there twice becomes one; where another property is, nothing is changed but the mark of private text.
    """
    head, body = split(text)
    head = _merged(head, "updated", "model")
    if _block(head).doubled:
        return mark_private(text) if private else text
    head = _with(head, "updated", stamp(updated))
    head = _with(head, "model", model) if model else head
    have = _strings(properties(head).get("sources"))
    missing = [source for source in dict.fromkeys(sources) if source not in have]
    if missing:
        head = _checked(
            head, "sources", lambda lines: _extend(lines, missing), lambda new: _strings(new) == [*have, *missing]
        )
    return mark_private(head + body) if private else head + body


def _with(head: str, key: str, value: str) -> str:
    return _checked(head, key, lambda lines: _set(lines, key, value), lambda new: new == value)


def properties(text: str) -> Mapping[str, JSON]:
    """The properties of the note with this text. Its body is not read."""
    return _block(text).values


def split(text: str) -> tuple[str, str]:
    """The note's text as its property block with both rules, "" without one, and its body."""
    head = "".join(_LINE.findall(text)[: _block(text).end])
    return head, text[len(head) :]


def is_private(text: str) -> bool:
    """Whether the note's text has `local_only: true` among its properties."""
    return properties(text).get("local_only") is True


def mark_private(text: str) -> str:
    """The note's text with `local_only: true` among its properties, whatever else is there."""
    if is_private(text):
        return text
    head, body = split(text)
    marked = _checked(_merged(head, "local_only"), "local_only", _mark, lambda new: new is True)
    if properties(marked).get("local_only") is True:
        return marked + body
    end = line_end(text)
    return f"---{end}local_only: true{end}---{end}{text}"  # nobody who reads the note may miss it


def _merged(head: str, *keys: str) -> str:
    """A property block in which each of these stands once, as it is read, if all that it says is on its line."""
    for key in keys:
        lines = _LINE.findall(head)[: _block(head).end]
        at = [number for number, line in enumerate(lines) if _KEY_OF[key].match(line)]
        if len(at) > 1 and not any(_belongs(lines[number + 1]) for number in at):
            result = "".join(line for number, line in enumerate(lines) if number not in at[:-1])
            if _block(result).values == _block(head).values:
                head = result
    return head


def _ends(lines: Lines, at: int) -> int:
    """The line behind the last one of the property that begins at line `at`."""
    end = at + 1
    while end < len(lines) and _belongs(lines[end]):
        end += 1
    return end


def _checked(head: str, key: str, edit: Callable[[Lines], Lines | None], right: Callable[[JSON], bool]) -> str:
    """A property block, edited; or as it was if anything but `key` would read otherwise."""
    before = _block(head)
    edited = edit(_LINE.findall(head)[: before.end]) if head else None
    if edited is None:
        return head
    result = "".join(edited)
    after = _block(result)
    same = after.end == len(edited) and _without(after.values, key) == _without(before.values, key)
    fits = same and len(after.faults) <= len(before.faults) and right(after.values.get(key))
    return result if fits else head


def _set(lines: Lines, key: str, value: str) -> Lines | None:
    """The lines with the value of a property that is there on one line exchanged."""
    at = _find(lines, key)
    if at is None or _belongs(lines[at + 1]):
        return None
    plain = value if key in ("updated", "local_only") else quoted(value)
    return [*lines[:at], f"{key}: {plain}{line_end(lines[at])}", *lines[at + 1 :]]


def _extend(lines: Lines, items: Sequence[str]) -> Lines | None:
    at = _find(lines, "sources")
    if at is None:
        return None
    value = lines[at].split(":", 1)[1].strip()
    last = at
    while _belongs(lines[last + 1]):
        last += 1
    if value not in ("", "[]") or (value == "[]" and last > at):
        return None
    end = line_end(lines[at])
    head = f"sources:{end}" if value else lines[at]
    indent = re.match(r"[ ]*", lines[last])[0] if last > at else "  "  # type: ignore[index]
    added = [f"{indent}- {quoted(item)}{end}" for item in items]
    return [*lines[:at], head, *lines[at + 1 : last + 1], *added, *lines[last + 1 :]]


def _mark(lines: Lines) -> Lines | None:
    if (at := _find(lines, "local_only")) is not None and _belongs(
        lines[at + 1]
    ):  # whatever it says, it says it no more
        return [*lines[:at], f"local_only: true{line_end(lines[at])}", *lines[_ends(lines, at) :]]
    return _set(lines, "local_only", "true") or [*lines[:-1], f"local_only: true{line_end(lines[0])}", lines[-1]]


def _find(lines: Lines, key: str) -> int | None:
    return next((at for at, line in enumerate(lines) if _KEY_OF[key].match(line)), None)


def _belongs(line: str) -> bool:
    """Whether a line of the block goes on with the property above it; the closing rule does not."""
    return line.startswith((" ", "\t", "- "))


def line_end(text: str) -> str:
    """The line end that comes first in `text`."""
    end = re.search(r"\r\n|\r|\n", text)
    return end[0] if end else "\n"


def _block(text: str) -> PropertyBlock:
    return read(source_lines(text))


def _without(values: Mapping[str, JSON], key: str) -> dict[str, JSON]:
    return {name: value for name, value in values.items() if name != key}


def _strings(value: JSON) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
