"""What a written value is: a number with its unit, a date, a duration, a check box, a link, or text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tarsd.parse.fields import Scalar

Kind = Literal["number", "date", "datetime", "duration", "checkbox", "link", "text"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a value says; `text` is the value as written.

    `number` is there with a `unit` ("€", "p.", "/5") or without, also for `8 h` and `20 min`, of which `minutes` is the
    duration (`1h 40m` has that alone). `iso` is a day as YYYY-MM-DD, or a time as YYYY-MM-DDTHH:MM[:SS][zone]; `target`
    what a link points to.
    """

    kind: Kind
    text: str
    number: float | None = None
    unit: str = ""
    minutes: float | None = None
    iso: str = ""
    target: str = ""


def kind_of(value: Scalar, declared: str = "") -> Reading:
    """What the value is: as `declared` in types.json (text, number, checkbox, date, datetime) if it fits, else by its
    look. A value that does not fit is text."""
    raise NotImplementedError


def property_types(vault: Path) -> Mapping[str, str]:
    """The types of properties that Obsidian's `types.json` declares, by the key of their names; {} where it is not
    there or cannot be read."""
    raise NotImplementedError
