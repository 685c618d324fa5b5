"""Notes in memory, as expressions see them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from tarsd.bases import Lookup, Record, Value, evaluate, plain
from tarsd.bases.values import LinkValue, Named

NOW = datetime(2025, 5, 27, 12, 30, 15)


class MemoryNote:
    """A note of which `links`, `tags` and `properties` are given."""

    def __init__(
        self,
        path: str,
        properties: Mapping[str, Value] | None = None,
        links: tuple[str, ...] = (),
        tags: tuple[str, ...] = (),
        **fields: Value,
    ) -> None:
        self.path = path
        self._properties = dict(properties or {})
        folder, _, name = path.rpartition("/")
        basename, _, ending = name.rpartition(".")
        self._fields: dict[str, Value] = {
            "name": Named(basename if ending == "md" else name, name),
            "basename": basename,
            "ext": ending,
            "folder": folder,
            "path": path,
            "links": tuple(LinkValue(target, "", path) for target in links),
            "tags": tuple(Named(tag, f"#{tag}") for tag in tags),
            **fields,
        }

    def property(self, name: str) -> Value:
        return self._properties.get(name)

    def file(self, name: str) -> Value:
        return self._fields.get(name)

    def properties(self) -> Mapping[str, Value]:
        return self._properties


class MemoryVault:
    """Finds notes by their name or path."""

    def __init__(self, *notes: MemoryNote) -> None:
        self.notes = notes

    def find(self, link: str, source: str) -> Record | None:
        name = link.partition("#")[0].removesuffix(".md").casefold()
        for note in self.notes:
            path = note.path.removesuffix(".md").casefold()
            if name in (path, path.rpartition("/")[2]):
                return note
        return None


def value_of(
    expression: str, note: MemoryNote | None = None, vault: Lookup | None = None, this: Record | None = None
) -> object:
    """What an expression gives, as JSON; `now()` is `NOW`."""
    return plain(evaluate(expression, note or MemoryNote("Notes/Note.md"), vault or MemoryVault(), NOW, this=this))
