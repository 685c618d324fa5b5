"""What a check yields: a state, a sentence, what to do about it, and what of it may stand in a report for others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tarsd.doctor.subject import DoctorContext

State = Literal["ok", "warning", "fault", "skipped"]


class Skip(Exception):
    """A check cannot be made; the message says why."""


@dataclass(frozen=True)
class Finding:
    """What was found. `public` is what others may read where `text` holds names of notes, values or foreign words.

    `group`, `name` and `ms`, the milliseconds that it took, are the check's own unless the finding was made elsewhere.
    """

    state: State
    text: str
    hint: str = ""
    public: str | None = None
    group: str = ""
    name: str = ""
    ms: float | None = None

    def as_json(self) -> dict[str, object]:
        """For programs, and for the person whose machine it is."""
        return {name: getattr(self, name) for name in ("group", "name", "state", "text", "hint", "ms")}


ok = partial(Finding, "ok")
"""All is well. What all four take is the text, the hint, and `public`."""
warning = partial(Finding, "warning")
"""Something to know; everything works all the same."""
fault = partial(Finding, "fault")
"""Something does not work."""
skipped = partial(Finding, "skipped")
"""Nothing was looked at, or there is nothing to look at."""


@dataclass(frozen=True)
class Check:
    """A look at one thing: it may take `seconds`, and may fail in any way.

    One that is made `ahead` takes long and needs nothing of the others: it begins before them and runs beside them.
    """

    group: str
    name: str
    look: Callable[[DoctorContext], Finding | Iterable[Finding]]
    seconds: float = 5.0
    ahead: bool = False


def number(count: int, single: str, many: str = "") -> str:
    """“1 note”, “2 notes”."""
    return f"{count:,} {single if count == 1 else many or single + 's'}"
