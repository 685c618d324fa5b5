"""The notes as a turn sees them; the daemon brings the real ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from tarsd.providers.base import Evidence


@dataclass(frozen=True)
class Retrieval:
    """Passages for a query, best first, numbers still 0; `degraded` says what of the search did not work.

    `withheld` are the paths of private notes that would have been among them, were the model on this machine.
    """

    passages: tuple[Evidence, ...]
    degraded: str | None = None
    withheld: tuple[str, ...] = ()


class Library(Protocol):
    """Called from threads; our own conversation notes are never in it. `local`: the model is on this machine."""

    def retrieve(self, query: str, limit: int, *, local: bool, memory: bool, private: bool = False) -> Retrieval:
        """The best passages for a query; `memory`: facts and rules are among them. Raises `StoreError`.

        `private`: the query may hold text of private notes, and must not leave this machine to be embedded.
        """
        ...

    def attach(self, name: str, *, local: bool) -> Sequence[Evidence]:
        """All passages of the note with this path, name or alias, as it is now.

        Raises `NotFound`, `PathRefused`, and `Refused` for a private note that the model may not see.
        """
        ...

    def around(self, passage: Evidence) -> Sequence[Evidence]:
        """The passages right before and after this one in its note, as they are indexed. Raises `StoreError`."""
        ...

    def private(self, paths: Collection[str]) -> bool:
        """Whether any of these notes must not leave this machine, by what holds of it now."""
        ...

    def exists(self, name: str) -> bool:
        """Whether a link with this target leads to a note."""
        ...

    def check(self, path: str) -> None:
        """Refuse a path that leaves the vault. Raises `PathRefused`."""
        ...

    def session_note(self, conversation: str) -> str | None:
        """The path of the note that holds a conversation, wherever the person moved it."""
        ...

    def behind(self) -> int:
        """How many notes have changed and are not indexed yet."""
        ...

    def notices(self) -> list[str]:
        """What every answer has to say now: a vault that is away, an index that is being rebuilt."""
        ...
