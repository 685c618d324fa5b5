"""What stood in a note before each change: kept privately, read back whole or not at all, and let go in time."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tarsd.errors import NotFound
from tarsd.writing.changes import Change
from tarsd.writing.journal import Journal


def test_the_journal_is_private_and_passes_over_what_is_torn(home: Path) -> None:
    journal = Journal(home / "state/undo")
    change = Change("a.md", "modify", b"one", b"two", "two")
    ids = [journal.keep(change, "note", "c", "daemon") for _ in range(4)]
    assert ids == sorted(ids) and [entry.id for entry in journal.entries()] == ids[::-1]
    folder = home / "state/undo"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    entry = Journal(folder).get(ids[0])
    assert (entry.path, entry.kind, entry.conversation, entry.by, entry.state) == (
        "a.md",
        "note",
        "c",
        "daemon",
        "planned",
    )
    assert journal.before(entry, b"two") == b"one"
    (folder / f"{ids[1]}.json").write_bytes((folder / f"{ids[1]}.json").read_bytes()[:20])
    (folder / f"{ids[2]}.json").write_text('{"id": 1}')
    (folder / f"{ids[3]}.before").write_bytes(b"on")
    (folder / "stranger.json").write_text("{}")
    assert [entry.id for entry in journal.entries()] == [ids[3], ids[0]]
    assert journal.before(journal.get(ids[3]), b"two") is None
    with pytest.raises(NotFound):
        journal.get(ids[1])
    journal.settle(ids[1], "written")
    journal.settle(ids[0], "written")
    assert journal.last("note") == journal.get(ids[0])


def test_the_journal_keeps_no_second_copy_of_what_only_grows(home: Path) -> None:
    journal = Journal(home / "undo")
    id = journal.keep(Change("a.md", "append", b"x" * 1000, b"x" * 1000 + b"y", "y"), "session", "c", "daemon")
    assert [file.name for file in (home / "undo").iterdir()] == [f"{id}.json"]
    assert journal.before(journal.get(id), b"x" * 1000 + b"y") == b"x" * 1000


def test_the_journal_lets_go_of_what_is_old_and_of_what_is_too_much(home: Path) -> None:
    journal = Journal(home / "undo")
    assert journal.prune() == 0
    change = Change("a.md", "modify", b"o" * 1000, b"two", "two")
    ids = [journal.keep(change, "note", "c", "daemon") for _ in range(3)]
    (home / "undo/.w-x.json.tmp").write_text("torn")
    assert journal.prune() == 0 and journal.prune(max_bytes=3000) == 1
    assert [entry.id for entry in journal.entries()] == [ids[2], ids[1]]
    assert journal.prune(days=-1) == 2 and list((home / "undo").iterdir()) == []
