"""A note as an expression sees it, and how links become notes: what whoever runs a query has to give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tarsd.bases.values import Value


class Record(Protocol):
    """A row: a note, another file of the vault, or a task or list item in one."""

    @property
    def path(self) -> str:
        """Place in the vault, with its ending."""

    def property(self, name: str) -> Value:
        """What a bare name or `note.name` stands for; None where there is none."""

    def file(self, name: str) -> Value:
        """What `file.name` stands for, of the names in `FILE_FIELDS`; None for any other."""

    def properties(self) -> Mapping[str, Value]:
        """All of the note's properties, as `file.properties` and `note` show them."""


class Lookup(Protocol):
    """From links to notes."""

    def find(self, link: str, source: str) -> Record | None:
        """What `[[link]]` leads to from the note at `source`; None where no file is that may be seen."""


FILE_FIELDS = (
    "name", "basename", "ext", "folder", "path", "size", "ctime", "mtime", "tags", "links", "backlinks", "embeds",
    "aliases", "day",
)  # fmt: skip
"""What `Record.file` may be asked; `file.file` and `file.properties` are made of the record. `day` is its date."""
