"""The notes of the memory folder while a change is planned: several edits of one note become one change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tarsd.errors import Refused
from tarsd.memory import lines
from tarsd.memory.lines import IsPrivate, MemoryLine, MemoryNote
from tarsd.vault import encode
from tarsd.writing.changes import Change, Loaded
from tarsd.writing.edits import create, replace_text

MEMORY, RULES, NOTICED = "Memory.md", "Procedural.md", "Noticed.md"
MAX_LINES = 100
"""A note that is part of every prompt stays shorter than this."""

_NEW = {
    MEMORY: "---\ntars: memory\n---\n\n# Memory\n\n## Facts\n",
    RULES: "---\ntars: rules\n---\n\n# Rules\n",
    NOTICED: "---\ntars: noticed\n---\n\n# Noticed\n\n%% Nothing of this is used until a review takes it over. %%\n",
}
_SECTION = {MEMORY: "Facts", RULES: "Rules", NOTICED: "Noticed"}


class NoteDraft:
    """A note of lines with the edits planned so far; nothing is written. `private` as in `lines.read`."""

    def __init__(self, name: str, path: str, loaded: Loaded | None, private: IsPrivate) -> None:
        self.name = name
        self.path = path
        self._loaded = loaded
        self._private = private
        text = loaded.text if loaded is not None else ""
        self._before = text
        self._text = text if text.strip() else _NEW[name]

    @property
    def page(self) -> MemoryNote:
        """The note as it would be now."""
        return lines.read(self._text, self.name, self._private)

    def insert(self, content: str, mark: str, section: str = "") -> None:
        """Add a line to a section. Raises Refused if the note is full, or cannot take it."""
        text = lines.insert(self._text, content, section, mark, _SECTION[self.name])
        if len(text.splitlines()) >= MAX_LINES:
            what = "It is read with every question, and is kept below" if self.name != NOTICED else "It is kept below"
            hint = "Forget something first, or shorten the note by hand."
            if self.name == NOTICED:
                hint = "Run a review first."
            raise Refused(f"{self.path} is full. {what} {MAX_LINES} lines.", hint)
        self._text = text

    def swap(self, line: MemoryLine, content: str, mark: str) -> None:
        """Put a line in place of another. Raises Refused."""
        self._text = lines.swap(self._text, line, content, mark)

    def remove(self, gone: Sequence[MemoryLine]) -> None:
        """Take lines out. Raises Refused."""
        self._text = lines.remove(self._text, gone)

    def change(self) -> Change | None:
        """All edits as one change; None if there were none."""
        if self._loaded is None:
            return create(self.path, self._text) if self._text != _NEW[self.name] else None
        return rewritten(self._loaded, self._text) if self._text != self._before else None


def rewritten(note: Loaded, text: str) -> Change:
    """The note with another text, whose line ends are already right, even where the note mixes them. Raises Refused."""
    change = replace_text(note, text)
    raw = encode(text, note.encoding)
    return change if change.after == raw else replace(change, after=raw, content=text)
