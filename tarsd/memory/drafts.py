"""The notes of the memory folder while a change is planned: several edits of one note become one change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tarsd.errors import Refused
from tarsd.memory import lines
from tarsd.memory.lines import IsPrivate, MemoryLine, MemoryNote
from tarsd.memory.merging import MergedText
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
KINDS = {MEMORY: "memory", RULES: "rules", NOTICED: "noticed"}
"""What each says of itself in its property."""
SECTION = {MEMORY: "Facts", RULES: "Rules", NOTICED: "Noticed"}


class NoteDraft:
    """A note of lines with the edits planned so far; nothing is written. `private` as in `lines.read`.

    It begins with what its copies hold besides, which the change takes over with the edits.
    """

    def __init__(
        self, name: str, path: str, loaded: Loaded | None, private: IsPrivate, merged: MergedText | None = None
    ) -> None:
        self.name = name
        self.path = path
        self._loaded = loaded
        self._private = private
        self._before = loaded.text if loaded is not None else ""
        merged = merged or MergedText(blank(name, loaded))
        self._text = merged.text
        self._copies = merged.copies

    @property
    def page(self) -> MemoryNote:
        """The note as it would be now."""
        return lines.read(self._text, self.name, self._private)

    def insert(self, content: str, mark: str, section: str = "") -> None:
        """Add a line to a section. Raises Refused if the note is full, or cannot take it."""
        text = lines.insert(self._text, content, section, mark, SECTION[self.name])
        if len(text.splitlines()) >= MAX_LINES:
            what = (
                "It is read with every question and must stay below" if self.name != NOTICED else "It must stay below"
            )
            hint = "Forget something first, or shorten the note yourself."
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
            change = create(self.path, self._text) if self._text != _NEW[self.name] else None
        else:
            # where a copy holds nothing that is to stay, it is put away all the same
            change = rewritten(self._loaded, self._text) if self._text != self._before or self._copies else None
        copies = tuple((copy.path, copy.hash) for copy in self._copies)
        return replace(change, absorbs=copies) if change is not None and copies else change


def blank(name: str, loaded: Loaded | None) -> str:
    """The text of the note, or that of a new one where there is none yet."""
    return loaded.text if loaded is not None and loaded.text.strip() else _NEW[name]


def rewritten(note: Loaded, text: str) -> Change:
    """The note with another text, whose line ends are already right, even where the note mixes them. Raises Refused."""
    change = replace_text(note, text)
    raw = encode(text, note.encoding)
    return change if change.after == raw else replace(change, after=raw, content=text)
