"""The numbered events of a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tarsd.protocol.limits import LAST_EVENTS, EventType


class Event(msgspec.Struct, frozen=True):
    """One numbered thing that happened in a turn; `seq` starts at 1 and has no gaps."""

    seq: int
    type: EventType
    data: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """`{seq, type, …data}`, the form on the wire and in the log."""
        return {"seq": self.seq, "type": self.type, **self.data}

    @property
    def last(self) -> bool:
        """Whether a turn ends with this."""
        return self.type in LAST_EVENTS


def read_event(value: Mapping[str, Any]) -> Event:
    """The inverse of `Event.as_json`, for the log's own lines; raises KeyError or TypeError on anything else."""
    data = {key: item for key, item in value.items() if key not in ("seq", "type")}
    return Event(int(value["seq"]), value["type"], data)
