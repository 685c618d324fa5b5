"""Conversations survive restarts, torn writes and odd ids; what is written is never rewritten."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tarsd.errors import DiskFull, NotFound, StoreError
from tarsd.protocol import Event, TurnRequest
from tarsd.session import Sessions, SummaryRecord, ToolUse, TurnRecord, title_of


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


def record(*events: Event) -> TurnRecord:
    return TurnRecord("t", "x", 0.0, "r", events=events)


def test_retracted_text_was_never_said() -> None:
    events = (Event(1, "token", {"text": "hm"}), Event(2, "retract"), Event(3, "token", {"text": "yes"}))
    assert record(*events).text == "yes"
    assert record(*events[:2]).text == ""
    assert record(*events, Event(4, "done", {"text": "Yes."})).text == "Yes."


def test_what_a_turn_saw_and_used_is_known() -> None:
    turn = record(
        Event(1, "retrieved", {"model": "ollama:a", "private": False}),
        Event(2, "tool", {"call": "1", "name": "note_read", "state": "running"}),
        Event(3, "tool", {"call": "2", "name": "weather", "state": "refused"}),
        Event(4, "tool", {"call": "1", "name": "note_read", "state": "done", "private": True}),
        Event(5, "done", {"text": "", "model": "extractive"}),
    )
    assert turn.private
    assert turn.tools == (ToolUse("note_read", "done"), ToolUse("weather", "refused"))
    assert turn.model == "extractive"
    assert turn.as_json()["tools"] == [{"name": "note_read", "state": "done"}, {"name": "weather", "state": "refused"}]
    old = record(Event(1, "retrieved", {}), Event(2, "done", {"text": ""}))
    assert (old.private, old.tools, old.model) == (False, (), "")


def test_the_note_of_a_conversation_is_remembered(folder: Path) -> None:
    sessions = Sessions(folder)
    finished(sessions)
    assert sessions.load("c1").note == ""
    sessions.set_note_path("c1", "tars/sessions/A.md")
    sessions.set_note_path("c1", "tars/sessions/Å.md")
    (file,) = folder.glob("*.jsonl")
    before = file.read_bytes()
    sessions.set_note_path("c1", "tars/sessions/Å.md")
    assert file.read_bytes() == before
    assert Sessions(folder).load("c1").note == "tars/sessions/Å.md"
    assert Sessions(folder).load("c1").as_json()["note"] == "tars/sessions/Å.md"
    with pytest.raises(NotFound):
        sessions.set_note_path("c2", "x.md")


def test_the_notes_of_private_conversations_are_known_without_their_logs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(folder)
    for name in ("open", "retrieved", "done", "summary", "cut", "gone", "noteless"):
        finished(sessions, f"t-{name}", ask(conversation=name, request_id=name))
        if name != "noteless":
            sessions.set_note_path(name, f"tars/sessions/{name}.md")
    assert sessions.private_notes() == frozenset()
    token = Event(4, "token", {"text": '"private":true', "private": False})
    sessions.append("open", "t-open", token)
    for name in ("retrieved", "gone", "noteless"):
        sessions.append(name, f"t-{name}", Event(5, "retrieved", {"private": True, "sources": []}))
    sessions.append("done", "t-done", Event(5, "done", {"text": "", "private": True}))
    sessions.add_summary("summary", "t-summary", "So far.", private=True)
    sessions.add_summary("open", "t-open", "So far.", private=False)
    sessions.begin("t2", ask(conversation="cut", request_id="r2"))
    sessions.append("cut", "t2", Event(1, "retrieved", {"private": True}))
    sessions.delete("gone")
    expected = {f"tars/sessions/{name}.md" for name in ("retrieved", "done", "summary", "cut")}
    assert sessions.private_notes() == expected
    for _ in range(2):  # the first closes the turn that was cut
        again = Sessions(folder)
        assert again.private_notes() == expected
    monkeypatch.setattr(Path, "open", None)
    again.append("open", "t-open", Event(6, "tool", {"private": True}))
    again.set_note_path("done", "Moved.md")
    assert again.private_notes() == expected - {"tars/sessions/done.md"} | {"tars/sessions/open.md", "Moved.md"}


def test_the_newest_summary_counts_and_the_turns_after_it(folder: Path) -> None:
    sessions = Sessions(folder)
    for turn in ("t1", "t2", "t3"):
        finished(sessions, turn, ask(request_id=turn))
    assert sessions.load("c1").condensed is None
    assert [turn.id for turn in sessions.load("c1").since] == ["t1", "t2", "t3"]
    sessions.add_summary("c1", "t1", "First.", private=False)
    second = sessions.add_summary("c1", "t2", "Both.", private=True)
    assert second == SummaryRecord("t2", "Both.", True, second.at)
    again = Sessions(folder)
    loaded = again.load("c1")
    assert (loaded.condensed, loaded.private) == (second, True)
    assert [turn.id for turn in loaded.since] == ["t3"]
    sessions.add_summary("c1", "gone", "Of what?", private=False)
    assert len(sessions.load("c1").since) == 3
    with pytest.raises(NotFound):
        sessions.add_summary("c2", "t1", "x", private=False)


def test_a_summary_that_says_nothing_of_privacy_is_private(folder: Path) -> None:
    finished(Sessions(folder))
    (file,) = folder.glob("*.jsonl")
    with file.open("a") as log:
        log.write('{"t":"summary","upto":"t1","text":"x","at":1}\n{"t":"summary","upto":"t1"}\n{"t":"note"}\n')
        log.write('{"t":"turn","at":"never"}\n{"t":"title"}\n')
    found = Sessions(folder).load("c1")
    assert found.condensed == SummaryRecord("t1", "x", True, 1.0)
    assert len(found.turns) == 1


def test_titles_are_one_line_cut_at_a_word() -> None:
    assert title_of("  What\nis\tthis? ") == "What is this?"
    assert title_of("word " * 40) == ("word " * 16).strip() + "…"
    assert title_of("x" * 200) == "x" * 80 + "…"
