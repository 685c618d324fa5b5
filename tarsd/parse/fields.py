"""The values of a note, each with its line: properties, Dataview's inline fields, and the list items that carry them.

Pure. What a value is (a number, a date, a link) is read of it elsewhere, by `kinds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Scalar: TypeAlias = "str | int | float | bool"

Source = Literal["property", "field", "item"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a property or an inline field, with the 1-based line of the file on which it stands.

    `name` is as written, of nested maps "a.b"; `value` as `properties` reads it, of an inline field its text. Several
    values of one name are several facts, in the file's order. Of a list item that is no task, `source` is "item", and
    `item` its line: facts with one `item` belong together.
    """

    name: str
    value: Scalar
    line: int
    source: Source
    item: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A list item that carries fields: its line, its text without them, and the heading above it."""

    line: int
    text: str
    heading: str = ""


def key_of(name: str) -> str:
    """The name in the form in which names are compared: case, emphasis marks, and blanks, `_` or `-` say nothing."""
    raise NotImplementedError
