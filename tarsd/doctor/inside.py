"""What only the daemon can look at: the index, and the models as it asks them. It sends its own lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, get_args

from tarsd.doctor.finding import Check, Finding, Skip, State, fault
from tarsd.doctor.settings import models
from tarsd.doctor.subject import DoctorContext
from tarsd.doctor.vault import languages

LOOK_S: Final = 45.0
SILENT_S: Final = 20.0


def inside(subject: DoctorContext) -> Iterator[Finding]:
    """The lines of `POST /v1/check`, as they come."""
    if subject.hello is None:
        raise Skip("No daemon answers; only the daemon opens the index.")
    if "check" not in (subject.hello.get("features") or []):
        yield fault("This version of the daemon cannot check itself.", f"tarsd stop; then: {subject.start}")
        return
    for line in subject.client(SILENT_S).stream("/v1/check", {"model": subject.model}):
        yield _finding(line)


def _finding(line: dict[str, Any]) -> Finding:
    """A line of the daemon; what a model's server says, and names of notes, are not for others."""
    text, paths = str(line.get("text")), [str(path) for path in line.get("paths") or []]
    foreign = line.get("group") == "Models" and line.get("state") in ("warning", "fault")
    return Finding(
        state=line["state"] if line.get("state") in get_args(State) else "fault",
        text=f"{text} {', '.join(paths)}".strip(),
        hint=str(line.get("hint") or ""),
        public="It failed." if foreign else text,
        group=str(line.get("group") or ""),
        name=str(line.get("name") or ""),
        ms=float(line.get("ms") or 0),
    )


CHECKS: Final = (
    Check("Index", "daemon", inside, LOOK_S),
    Check("Models", "names", models, 18.0),
    Check("Models", "languages", languages, 15.0),
)
