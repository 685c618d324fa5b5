"""What indexing tells about itself: the report of a pass, the state, the state of background embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StateName = Literal["starting", "indexing", "ready", "unavailable", "suspicious", "disk_full", "rebuilding"]
EmbeddingName = Literal[
    "none", "starting", "embedding", "paused", "complete", "rate_limited", "unreachable", "model_missing", "failing"
]


@dataclass(frozen=True)
class Report:
    """What one pass did. `again_s`: look again after so many seconds, since something was not believed yet."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0
    skipped: int = 0
    embedded: int = 0
    seconds: float = 0.0
    again_s: float | None = None
    repaired: tuple[str, ...] = ()


@dataclass(frozen=True)
class IndexState:
    """How the index stands to the disk; `reason` and `hint` are for people and empty when all is well."""

    name: StateName
    reason: str = ""
    hint: str = ""


@dataclass(frozen=True)
class EmbeddingProgress:
    """Background embedding: `done` passages have a vector of `model`, `remaining` want one, `held_back` never leave.

    `failed` could not be embedded; in `not_read` the model has nothing to read, so they are found by their words.
    """

    model: str
    state: EmbeddingName
    done: int = 0
    remaining: int = 0
    held_back: int = 0
    reason: str = ""
    hint: str = ""
    failed: int = 0
    not_read: int = 0
