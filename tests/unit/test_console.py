"""What a person sees who runs the daemon at a terminal."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path

import pytest

from tarsd.daemon.console import Console, Look
from tarsd.daemon.log import set_up
from tarsd.index import Report


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def shown(stream: io.StringIO) -> list[str]:
    """The lines that stay, the time of day as `–`, and the one that changes at the end."""
    rows = [row.rpartition("\x1b[K")[2] for row in stream.getvalue().split("\n")]
    return [re.sub(r"^\d\d:\d\d:\d\d", "–", row) for row in rows]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def console(stream: io.StringIO, clock: Clock) -> Console:
    return Console(stream, clock=clock)


def test_progress_has_a_rate_and_what_is_left(console: Console, stream: io.StringIO, clock: Clock) -> None:
    console.show(Look(notes_left=1))
    assert shown(stream) == ["Reading notes …"], "how many there are is not known yet"
    console.show(Look(notes_left=2000))
    assert shown(stream)[-1] == "Reading notes: 0 of 2,000"
    clock.now += 4
    console.show(Look(notes=500, notes_left=1500))
    assert shown(stream)[-1] == "Reading notes: 500 of 2,000 · 125 a second · 12 s left"
    console.show(Look(2000, 0, 9000, 9000))
    clock.now += 10
    console.show(Look(2000, 0, 9000, 8000))
    assert shown(stream)[-1] == "Embedding passages: 1,000 of 9,000 · 100 a second · 80 s left"
    console.show(Look(2000, 0, 9000, 0))
    assert shown(stream) == ["–  Up to date: 2,000 notes, 9,000 passages.", ""]


def test_then_there_is_a_line_for_each_change(console: Console, stream: io.StringIO) -> None:
    console.hear({"type": "stored", "added": [("", "before.md")]})
    console.show(Look(1, 0, 1, 0))
    console.hear({"type": "stored", "added": [("", "a.md")], "changed": [("work", "b/c.md")], "moved": []})
    console.hear({"type": "stored", "added": [], "changed": [], "moved": [(("", "a.md"), ("", "x/a.md"))]})
    console.hear({"type": "stored", "removed": [("", "x/a\x1b[2J\u202e.md")]})
    console.hear({"type": "passed", "report": Report(added=1, changed=1, moved=1, removed=1, seconds=0.1)})
    console.show(Look(1, 0, 1, 0))
    assert shown(stream) == [
        "–  Up to date: 1 note, 1 passage.",
        "–  added    a.md",
        "–  changed  work/b/c.md",
        "–  moved    a.md → x/a.md",
        "–  removed  x/a�[2J�.md",
        "",
    ]


def test_many_changes_are_one_line(console: Console, stream: io.StringIO) -> None:
    console.show(Look(1, 0, 1, 0))
    console.hear({"type": "passed", "report": Report(changed=1200, removed=3, seconds=2.04)})
    console.hear({"type": "passed", "report": Report(unchanged=1200, seconds=0.2)})
    assert shown(stream)[1:] == ["–  1,200 changed, 3 removed in 2.0 s", ""]


def test_what_keeps_it_from_going_on_is_shown_until_it_is_over(console: Console, stream: io.StringIO) -> None:
    console.show(Look(trouble="The vault is not there."))
    assert shown(stream) == ["The vault is not there."]
    console.show(Look(3, 0, 9, 0))
    assert shown(stream) == ["–  Up to date: 3 notes, 9 passages.", ""]


def test_the_log_writes_above_the_line_that_changes(console: Console, stream: io.StringIO, tmp_path: Path) -> None:
    console.show(Look(notes_left=20))
    try:
        set_up(tmp_path, "t", console)
        logging.getLogger("tarsd.x").info("nobody needs this at a terminal")
        logging.getLogger("tarsd.x").warning("look at this")
    finally:
        logging.captureWarnings(False)
        logging.basicConfig(level=logging.WARNING, force=True)
    assert shown(stream)[0] == "– warning look at this"
    assert shown(stream)[1] == "Reading notes: 0 of 20"
    assert "nobody needs this" in (tmp_path / "t.log").read_text()


def test_a_terminal_that_cannot_go_back_gets_only_lines_that_stay(stream: io.StringIO) -> None:
    console = Console(stream, terse=True)
    console.begin(Path("/V"))
    console.show(Look(notes_left=20))
    console.show(Look(20, 0, 20, 0))
    console.end()
    assert shown(stream) == [
        "tarsd watches /V. Press Ctrl-C to stop.",
        "–  Up to date: 20 notes, 20 passages.",
        "Stopped.",
        "",
    ]
