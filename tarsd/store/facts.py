"""The values, list items and tasks of notes: written with their note, read by note or by the key of a name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tarsd.kinds import Kind
from tarsd.parse.fields import Fact, Item
from tarsd.parse.tasks import Task
from tarsd.store.database import Database

Comparison = Literal["=", "<", "<=", ">", ">=", "exists"]


@dataclass(frozen=True, slots=True)
class Name:
    """A name that values have: as it is mostly written, in how many notes, and what kinds its values are of."""

    shown: str
    notes: int
    kinds: Mapping[Kind, int]


class Facts:
    """Values, items and tasks of the notes, by the ids of these. Templates and our own notes have none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(
        self, file_ids: Iterable[int] | None = None, *, keys: Collection[str] | None = None
    ) -> dict[int, tuple[Fact, ...]]:
        """The facts of these notes (None: of all), in the order of their lines; with `keys` only those of such names.

        Notes without any are not in it.
        """
        raise NotImplementedError

    def items(self, file_ids: Iterable[int] | None = None) -> dict[int, tuple[Item, ...]]:
        """The list items that carry fields, as `of`; their fields are facts with the item's line as `item`."""
        raise NotImplementedError

    def tasks(self, file_ids: Iterable[int] | None = None) -> dict[int, tuple[Task, ...]]:
        """The tasks of these notes, as `of`."""
        raise NotImplementedError

    def having(self, key: str, op: Comparison, value: float | str = 0, *, minutes: bool = False) -> set[int]:
        """The notes of which a value of this name compares so: a number with numbers (or with the minutes of
        durations), an ISO day with days, any other text with texts (without case; "=" alone)."""
        raise NotImplementedError

    def names(self, without: Collection[int] = ()) -> dict[str, Name]:
        """By key the names that values have, those of most notes first; of notes in `without` nothing counts."""
        raise NotImplementedError

    def values(self, key: str, without: Collection[int] = ()) -> list[tuple[str, int]]:
        """The texts and links that occur as values of a name, each with the number of notes, most first."""
        raise NotImplementedError
