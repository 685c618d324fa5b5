"""Conversations survive restarts, torn writes and odd ids; what is written is never rewritten."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tarsd.errors import DiskFull, NotFound, StoreError
from tarsd.protocol import Event, TurnRequest
from tarsd.session import Sessions, title_of


def ask(message: str = "What is a quorl?", conversation: str = "c1", request_id: str = "r1") -> TurnRequest:
    return TurnRequest(conversation, message, request_id)


def finished(sessions: Sessions, turn: str = "t1", request: TurnRequest | None = None) -> None:
    request = request or ask()
    sessions.begin(turn, request)
    sessions.append(request.conversation, turn, Event(1, "retrieved", {"sources": [], "query": "quorl"}))
    sessions.append(request.conversation, turn, Event(2, "token", {"text": "A brass "}))
    sessions.append(request.conversation, turn, Event(3, "done", {"text": "A brass wedge.", "citations": []}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "conversations"


def test_a_conversation_is_read_back_whole(folder: Path) -> None:
    finished(Sessions(folder))
    found = Sessions(folder).load("c1")
    assert found.summary.title == "What is a quorl?"
    assert found.summary.turns == 1
    (turn,) = found.turns
    assert (turn.message, turn.text, turn.state, turn.query) == ("What is a quorl?", "A brass wedge.", "done", "quorl")
    assert [event.seq for event in turn.events] == [1, 2, 3]
    assert found.as_json()["turns"][0]["text"] == "A brass wedge."  # type: ignore[index]


def test_the_list_has_the_latest_first_and_titles_can_be_changed(folder: Path) -> None:
    sessions = Sessions(folder)
    finished(sessions)
    finished(sessions, "t2", ask("And tea?", "c2", "r2"))
    assert [summary.id for summary in sessions.summaries()] == ["c2", "c1"]
    sessions.rename("c1", "Wedges")
    assert Sessions(folder).load("c1").summary.title == "Wedges"
    with pytest.raises(NotFound):
        sessions.rename("nowhere", "x")


def test_a_request_id_is_known_after_a_restart(folder: Path) -> None:
    finished(Sessions(folder))
    assert Sessions(folder).requested("r1") == "t1"
    assert Sessions(folder).requested("r2") is None
    assert Sessions(folder).turn("t1")[0] == "c1"


def test_a_turn_cut_by_a_restart_is_marked_and_keeps_its_text(folder: Path) -> None:
    sessions = Sessions(folder)
    sessions.begin("t1", ask())
    sessions.append("c1", "t1", Event(1, "token", {"text": "A brass "}))
    assert sessions.turn("t1")[1].state == "running"
    again = Sessions(folder)
    _, turn = again.turn("t1")
    assert turn.state == "interrupted"
    assert turn.text == "A brass "
    assert turn.events[-1].seq == 2
    assert Sessions(folder).load("c1").turns == (turn,)


def test_a_torn_last_line_costs_only_itself(folder: Path) -> None:
    finished(Sessions(folder))
    (file,) = folder.glob("*.jsonl")
    whole = file.read_bytes()
    for length in range(len(whole) - 120, len(whole)):
        file.write_bytes(whole[:length])
        sessions = Sessions(folder)
        assert sessions.load("c1").turns[0].message == "What is a quorl?"
        sessions.begin("t2", ask("More?", request_id="r2"))
        assert [turn.id for turn in Sessions(folder).load("c1").turns] == ["t1", "t2"]


def test_foreign_and_broken_files_do_no_harm(folder: Path) -> None:
    folder.mkdir()
    (folder / "x.jsonl").write_bytes(b"\0\xff not json\n[1]\n" + b"[" * 50_000)
    (folder / "y.jsonl").write_text('{"t":"conversation","id":"../../etc","at":0}\n{"t":"turn"}\n')
    sessions = Sessions(folder)
    assert sessions.summaries() == []
    finished(sessions)
    assert len(Sessions(folder).summaries()) == 1


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/absolute", "a/b", "ä ö", "x" * 200, ".", "con\n", "\u202e"])
def test_no_id_ever_becomes_a_path(folder: Path, name: str) -> None:
    sessions = Sessions(folder)
    finished(sessions, request=ask(conversation=name))
    assert len(list(folder.iterdir())) == 1
    assert [path.name for path in folder.parent.iterdir()] == ["conversations"]
    assert Sessions(folder).load(name).summary.id == name


def test_folders_and_files_are_private_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        finished(Sessions(folder))
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]


def test_deleting_removes_the_log_only(folder: Path) -> None:
    sessions = Sessions(folder)
    finished(sessions)
    sessions.delete("c1")
    assert list(folder.iterdir()) == []
    assert sessions.requested("r1") == "t1"
    for missing in (lambda: sessions.load("c1"), lambda: sessions.turn("t1"), lambda: sessions.delete("c1")):
        with pytest.raises(NotFound):
            missing()


def test_nothing_written_is_ever_changed(folder: Path) -> None:
    sessions = Sessions(folder)
    finished(sessions)
    (file,) = folder.glob("*.jsonl")
    before = file.read_bytes()
    sessions.rename("c1", "x")
    finished(sessions, "t2", ask("More?", request_id="r2"))
    assert file.read_bytes().startswith(before)


def test_a_full_disk_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(folder)
    monkeypatch.setattr(os, "write", lambda handle, data: 3)
    with pytest.raises(DiskFull):
        sessions.begin("t1", ask())


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "conversations").write_text("x")
    with pytest.raises(StoreError):
        Sessions(tmp_path / "conversations").begin("t1", ask())


def test_titles_are_one_line_cut_at_a_word() -> None:
    assert title_of("  What\nis\tthis? ") == "What is this?"
    assert title_of("word " * 40) == ("word " * 16).strip() + "…"
    assert title_of("x" * 200) == "x" * 80 + "…"
