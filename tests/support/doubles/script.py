"""What a model is to say, whatever its wire format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Say:
    """Text, sent word by word with `pause` seconds before each."""

    text: str
    pause: float = 0.0


@dataclass(frozen=True)
class Think:
    """Reasoning, in the field that the format has for it."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fail:
    """An error: before the first byte with this status, after it in the format's own way."""

    status: int = 500
    message: str = "broken"
    kind: str = "api_error"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """The connection ends here; cleanly, or (`abort`) torn."""

    abort: bool = False


@dataclass(frozen=True)
class Raw:
    """These bytes as they are."""

    data: bytes


Step = Say | Think | Call | Fail | Cut | Raw
