"""A conversation's note and summary in the vault: they grow, they follow, and touch no note of the person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tarsd.chat import SessionNotes
from tarsd.config import MemorySettings
from tarsd.dates.settings import read_settings
from tarsd.errors import NotFound, ProviderError
from tarsd.parse import parse, structure
from tarsd.passage import Passage
from tarsd.protocol import Approval
from tarsd.providers.base import StreamEnd, Text, ToolCall
from tarsd.providers.fake import FakeProvider
from tarsd.tools import Context, Result, ToolProposal
from tarsd.tools.base import tool
from tarsd.tools.daily import path_of
from tarsd.writing import create
from tests.support.turns import Shelf, Talk, ask, of, passage, types, until

QUORL = passage("Quorl.md", "A quorl is the brass wedge.")
SUMMARY = "They spoke of wedges.\n\nREMEMBER:\n- The person collects wedges"


def talk(tmp_path: Path, *replies: object, **more: object) -> Talk:
    fake = FakeProvider(*replies, **more)  # type: ignore[arg-type]
    return Talk(tmp_path, Shelf(QUORL), fake, notes=True)


def notes(one: Talk, folder: str = "sessions") -> list[Path]:
    return sorted((one.root / "tars" / folder).glob("*.md"))


async def closed(one: Talk, conversation: str = "c", done: Callable[[], object] = lambda: True) -> None:
    """The conversation is closed, and its summary is where it is kept."""
    session_notes = one.chat.session_notes
    assert isinstance(session_notes, SessionNotes)
    await session_notes.finish(conversation)
    async with asyncio.timeout(30):
        while session_notes.busy or not done():
            await asyncio.sleep(0.01)


async def test_the_note_grows_with_every_turn(tmp_path: Path) -> None:
    one = talk(tmp_path, "It is a wedge [1].", "Of brass.")
    turn = await one.ended(ask("what is a quorl?"))
    assert [event.data["path"] for event in of(turn, "written")] == [notes(one)[0].relative_to(one.root).as_posix()]
    assert types(turn)[-1] == "done"
    (note,) = notes(one)
    assert "what is a quorl" in note.stem
    await one.ended(ask("of what?"))
    text = note.read_text()
    assert text.index("It is a wedge [1].") < text.index("Of brass.")
    assert parse(text, "n.md").properties["sources"] == ["[[Quorl]]"]


async def test_what_the_person_writes_between_turns_stays(tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "two")
    await one.ended(ask("first"))
    (note,) = notes(one)
    note.write_text(note.read_text().replace("one", "one, and MY REMARK") + "\nMY OWN LINE\n")
    await one.ended(ask("second"))
    text = note.read_text()
    assert "one, and MY REMARK" in text
    assert text.index("MY OWN LINE") < text.index("two")


def quoting(tmp_path: Path, *, each: bool = False, passages: Sequence[Passage] = (QUORL,)) -> Talk:
    """A talk without a model."""
    return Talk(tmp_path, Shelf(*passages), notes=MemorySettings(note_each_question=each))


async def test_a_single_question_without_a_model_leaves_no_note(tmp_path: Path) -> None:
    one = quoting(tmp_path)
    for conversation in ("c", "d"):
        turn = await one.ended(ask("what is a quorl?", conversation=conversation))
        assert types(turn)[-1] == "done" and of(turn, "written") == []
    assert isinstance(one.chat.session_notes, SessionNotes)
    await one.chat.session_notes.catch_up()  # as at a start
    assert notes(one) == [] and not (one.root / "tars").exists()
    # the log keeps it: it is listed, and can be gone on with
    assert [known.title for known in one.sessions.summaries()] == ["what is a quorl?"] * 2
    await one.ended(ask("and a wedge?", conversation="d"))
    (note,) = notes(one)
    text = note.read_text()
    assert "what is a quorl" in note.stem
    assert text.index("what is a quorl?") < text.index("brass wedge") < text.index("and a wedge?")
    assert one.sessions.load("d").note and not one.sessions.load("c").note


async def test_a_question_that_is_saved_leaves_a_note(tmp_path: Path) -> None:
    one = quoting(tmp_path)
    turn = await one.ended(ask("what is a quorl?", save=True))
    assert len(of(turn, "written")) == 1 and len(notes(one)) == 1
    await one.ended(ask("what is it made of?", conversation="d"))
    assert isinstance(one.chat.session_notes, SessionNotes)
    path = await one.chat.session_notes.save("d")
    assert (one.root / path) in notes(one) and "what is it made of?" in (one.root / path).read_text()
    assert await one.chat.session_notes.save("d") == path and len(notes(one)) == 2
    with pytest.raises(NotFound):
        await one.chat.session_notes.save("nowhere")


async def test_a_saved_question_whose_turn_was_cut_off_is_in_its_note(tmp_path: Path) -> None:
    one = quoting(tmp_path)
    one.sessions.begin("t", ask("what is a quorl?", save=True))
    again = quoting(tmp_path)
    assert isinstance(again.chat.session_notes, SessionNotes)
    await again.chat.session_notes.catch_up()
    assert len(notes(again)) == 1


async def test_a_saved_question_about_a_private_note_makes_a_private_note(tmp_path: Path) -> None:
    hidden = replace(QUORL, note=replace(QUORL.note, local_only=True))
    one = quoting(tmp_path, passages=[hidden])
    await one.ended(ask("what is a quorl?", save=True))
    assert "local_only: true" in notes(one)[0].read_text()


async def test_a_setting_makes_a_note_of_each_question(tmp_path: Path) -> None:
    one = quoting(tmp_path, each=True)
    await one.ended(ask("what is a quorl?"))
    assert len(notes(one)) == 1


async def test_a_single_question_to_a_model_leaves_a_note_also_when_it_failed(tmp_path: Path) -> None:
    one = talk(tmp_path, "It is a wedge [1].", [ProviderError("It is ill.")])
    assert isinstance(one.chat.session_notes, SessionNotes)
    for number, conversation in enumerate(("c", "d"), 1):
        await one.ended(ask("what is a quorl?", conversation=conversation))
        async with asyncio.timeout(30):
            while one.chat.session_notes.busy:
                await asyncio.sleep(0.01)
        assert len(notes(one)) == number


async def test_what_the_person_deleted_does_not_come_back_by_saving_nothing(tmp_path: Path) -> None:
    one = quoting(tmp_path)
    await one.ended(ask("what is a quorl?", save=True))
    one.sessions.delete("c")
    assert len(notes(one)) == 1  # deleting a conversation leaves its note
    assert isinstance(one.chat.session_notes, SessionNotes)
    with pytest.raises(NotFound):
        await one.chat.session_notes.save("c")


async def test_a_turn_is_added_to_a_long_note_by_reading_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = talk(tmp_path, "The last reply [1].", "The very last one [1].")
    await one.ended(ask("first"))
    (note,) = notes(one)
    (section,) = note.read_text().split("## ")[1:]
    note.write_text(note.read_text() + "".join(f"\n## Turn {n}\n\n{section}" for n in range(200)))
    lines = note.read_text().count("\n")
    read, counts = structure.read, []

    def counted(body: Sequence[str], *more: Any, **named: Any) -> structure.Structure:
        counts.append(len(body))
        return read(body, *more, **named)

    monkeypatch.setattr(structure, "read", counted)
    await one.ended(ask("second"))
    assert "The very last one" in note.read_text().split("## ")[-1]
    assert sum(count > lines / 2 for count in counts) == 1
    assert len(counts) < 20, "a turn's own text is read when it is made harmless"


@pytest.mark.parametrize("indexed", [True, False])
async def test_a_note_that_was_renamed_is_followed(tmp_path: Path, indexed: bool) -> None:
    one = talk(tmp_path, "one", "two")
    await one.ended(ask("first"))
    (note,) = notes(one)
    moved = note.rename(note.with_name("My talk.md"))
    library = one.services.library
    assert isinstance(library, Shelf)
    library.moved = {"c": "tars/sessions/My talk.md"} if indexed else {}
    await one.ended(ask("second"))
    assert notes(one) == [moved]
    assert "two" in moved.read_text()


async def test_another_note_in_its_place_is_left_alone(tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "two")
    await one.ended(ask("first"))
    (note,) = notes(one)
    elsewhere = one.root / "Deep" / "Old.md"
    elsewhere.parent.mkdir()
    note.rename(elsewhere)
    note.write_text("MINE")
    library = one.services.library
    assert isinstance(library, Shelf)
    library.moved = {"c": "Deep/Old.md"}
    await one.ended(ask("second"))
    assert note.read_text() == "MINE"
    assert "two" in elsewhere.read_text()


@pytest.mark.report("https://github.com/logancyang/obsidian-copilot/issues/2042")
@pytest.mark.parametrize("turns", [1, 2, 4])
async def test_a_note_that_was_deleted_comes_back_whole_or_not_at_all(tmp_path: Path, turns: int) -> None:
    replies = [f"reply {number}" for number in range(turns + 1)]
    one = talk(tmp_path, *replies)
    for number in range(turns):
        await one.ended(ask(f"question {number}"))
    before = notes(one)[0].read_text()
    notes(one)[0].unlink()
    assert isinstance(one.chat.session_notes, SessionNotes)
    await one.chat.session_notes.catch_up()
    assert notes(one) == []  # not by itself
    await one.ended(ask("once more"))
    (note,) = notes(one)
    text = note.read_text()
    assert [text.count(reply) for reply in replies] == [1] * len(replies)
    assert text.partition("## ")[2].startswith(before.partition("## ")[2])


@pytest.mark.report("https://github.com/franciskafieh/obsidian-list-modified/issues/43")
@pytest.mark.parametrize(
    ("conversations", "question"),
    [
        (("default", "default"), "What is a quorl?"),
        (("c", "d"), "What is a quorl?"),
        (("default", "default"), "ぬ" * 90),
    ],
    ids=["one id", "one question", "a long name"],
)
async def test_two_machines_with_one_vault_never_write_one_file(
    tmp_path: Path, conversations: tuple[str, str], question: str
) -> None:
    # the vault is synced: each sees the notes of the other, and goes on in its own
    (tmp_path / "desk").mkdir()
    here = talk(tmp_path / "desk", "desk one", SUMMARY, "desk two", SUMMARY)
    (tmp_path / "lap").mkdir()
    (tmp_path / "lap" / "vault").symlink_to(here.root)
    there = talk(tmp_path / "lap", "lap one", SUMMARY, "lap two", SUMMARY)
    for _ in range(2):
        for one, conversation in zip((here, there), conversations, strict=True):
            await one.ended(ask(question, conversation=conversation))
            await closed(one, conversation, lambda: notes(here, "summaries"))
    for folder in ("sessions", "summaries"):
        first, second = notes(here, folder)
        machines = [str(parse(note.read_text(), "n.md").properties["machine"]) for note in (first, second)]
        assert set(machines) == {here.sessions.machine, there.sessions.machine}
        assert all(note.stem.endswith(f" {machine}") for note, machine in zip((first, second), machines, strict=True))
        assert all(len(note.name.encode()) < 110 for note in (first, second))
    for note in notes(here):
        assert ("desk" in note.read_text()) != ("lap" in note.read_text())


def test_the_id_of_a_machine_stays(tmp_path: Path) -> None:
    one = talk(tmp_path)
    assert talk(tmp_path).sessions.machine == one.sessions.machine
    assert oct((tmp_path / "h").rglob("machine").__next__().stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize("question", ["???", "2026-11-28", "[[]]", "…?!", ".", "#"])
@pytest.mark.parametrize("form", ["YYYY-MM-DD", "YYYY-MM-DD [Conversation]", "YYYY/MM/YYYY-MM-DD"])
async def test_no_note_of_ours_is_called_as_a_daily_note(tmp_path: Path, question: str, form: str) -> None:
    one = talk(tmp_path, "so", SUMMARY)
    (one.root / ".obsidian" / "daily-notes.json").write_text(json.dumps({"folder": "tars/sessions", "format": form}))
    turn = await one.ended(ask(question))
    await closed(one, done=lambda: notes(one, "summaries"))
    daily = path_of(read_settings(one.root), datetime.now().astimezone()).rpartition("/")[2]
    names = [note.name for folder in ("sessions", "summaries") for note in notes(one, folder)]
    assert len(names) == 2 and daily not in names
    assert all(name.removesuffix(".md").strip("0123456789- abcdef") for name in names) or question == "2026-11-28"
    assert types(turn)[-1] == "done"


async def test_a_note_without_its_properties_goes_on(tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "two")
    await one.ended(ask("first"))
    (note,) = notes(one)
    note.write_text(note.read_text().split("---\n", 2)[2])
    await one.ended(ask("second"))
    assert notes(one) == [note]
    assert "two" in note.read_text()


async def test_what_keeps_it_from_the_vault_is_said_and_made_up_for(tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "two")
    (one.root / "tars").write_text("a file is in the way")
    turn = await one.ended(ask("first"))
    assert turn.events[-1].data["text"] == "one"
    assert any("not in its note" in notice for notice in turn.events[-1].data["notices"])
    (one.root / "tars").unlink()
    await one.ended(ask("second"))
    text = notes(one)[0].read_text()
    assert "one" in text and "two" in text


async def test_a_stopped_turn_is_in_the_note(tmp_path: Path) -> None:
    one = talk(tmp_path, [Text("begun "), 3600.0])
    turn = await one.chat.turn(await one.chat.start(ask("go on")))
    await until(turn, "token")
    await one.chat.stop(turn.id)
    await one.chat.close()
    assert "Stopped before the end" in notes(one)[0].read_text()


async def test_a_turn_that_the_end_of_the_daemon_cut_is_in_the_note(tmp_path: Path) -> None:
    one = talk(tmp_path, [Text("begun "), 3600.0])
    turn = await one.chat.turn(await one.chat.start(ask("go on")))
    await until(turn, "token")
    await one.chat.close()
    assert "begun" in notes(one)[0].read_text()
    # and a crash, which had no time for that
    two = talk(tmp_path, [Text("half "), 3600.0])
    crashed = await two.chat.turn(await two.chat.start(ask("and on", conversation="d")))
    await until(crashed, "token")
    again = talk(tmp_path)
    assert isinstance(again.chat.session_notes, SessionNotes)
    await again.chat.session_notes.catch_up()
    assert sorted("half" in note.read_text() for note in notes(again)) == [False, True]
    before = [note.read_text() for note in notes(again)]
    await again.chat.session_notes.catch_up()
    assert [note.read_text() for note in notes(again)] == before
    for note in notes(again):
        note.unlink()
    await again.chat.session_notes.catch_up()  # what the person took away does not come back
    assert notes(again) == []
    await two.chat.close()


async def test_a_write_that_was_begun_is_told_though_the_turn_is_stopped(tmp_path: Path) -> None:
    async def write(context: Context) -> ToolProposal:
        """Make a note."""
        change = create("New.md", "hello")

        async def apply() -> Result:
            return Result(await context.write(change))

        return ToolProposal("Make New.md", apply, change)

    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        fake = FakeProvider([ToolCall("1", "write", {}), StreamEnd("tools")], "made")
        one = Talk(folder, Shelf(), fake, tool(write))
        turn = await one.chat.turn(await one.chat.start(ask("make it")))
        asked = await until(turn, "approval")
        await one.chat.approve(turn.id, asked.data["call"], Approval(True))
        for _ in range(number):
            await asyncio.sleep(0)
        await one.chat.stop(turn.id)
        await one.chat.close()
        assert (one.root / "New.md").exists() == bool(of(turn, "written"))
        assert types(turn)[-1] == "done"


async def test_deleting_a_conversation_takes_back_what_was_always_allowed(tmp_path: Path) -> None:
    one = talk(tmp_path, "a", "b")
    await one.ended(ask("x"))
    one.chat._always["c"] = {"note_append"}
    await one.chat.delete("c")
    assert one.chat._always == {}
    with pytest.raises(NotFound):
        await one.chat.conversation("c")


# ------------------------------------------------------------------------------------------------ summaries


async def test_the_end_of_a_conversation_is_summarised(tmp_path: Path) -> None:
    one = talk(tmp_path, "It is a wedge.", SUMMARY)
    await one.ended(ask("what is a quorl?"))
    await closed(one, done=lambda: (one.root / "tars" / "Noticed.md").exists())
    (summary,) = notes(one, "summaries")
    note = parse(summary.read_text(), summary.name)
    assert (note.memory_type, note.properties["id"]) == ("episodic", "c")
    assert "They spoke of wedges." in summary.read_text()
    assert "They spoke of wedges." in notes(one)[0].read_text()
    assert "The person collects wedges" in (one.root / "tars" / "Noticed.md").read_text()
    assert one.memory.listing()["facts"] == []


async def test_a_conversation_of_an_earlier_run_is_summarised_once_it_is_idle(tmp_path: Path) -> None:
    one = talk(tmp_path, "It is a wedge.")
    await one.ended(ask("what is a quorl?"))
    await one.chat.close()
    at_once = partial(SessionNotes, look_s=0.01, idle_s=0.0)
    again = Talk(tmp_path, Shelf(QUORL), FakeProvider(SUMMARY), notes=True, session_notes=at_once)
    assert isinstance(again.chat.session_notes, SessionNotes)
    await again.chat.session_notes.catch_up()
    async with asyncio.timeout(30):
        while not notes(again, "summaries"):
            await asyncio.sleep(0.01)
    await again.chat.close()


async def test_a_note_of_the_person_is_no_summary_of_ours(tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "A summary.")
    await one.ended(ask("My own thing"))
    mine = one.root / "tars" / "summaries" / notes(one)[0].name
    mine.parent.mkdir()
    mine.write_text("MINE")
    await closed(one)
    assert mine.read_text() == "MINE"
    assert len(notes(one, "summaries")) == 2


async def test_a_summary_that_the_person_edited_is_theirs(tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "First summary.", "two", "Second summary.", "three", "Third summary.")
    await one.ended(ask("a"))
    await closed(one)
    await one.ended(ask("b"))
    await closed(one)
    (summary,) = notes(one, "summaries")
    assert "Second summary." in summary.read_text()
    summary.write_text(summary.read_text() + "MY LINE\n")
    await one.ended(ask("c"))
    await closed(one)
    assert "MY LINE" in summary.read_text()
    assert "Second summary." in summary.read_text()


async def test_two_conversations_of_one_name_have_two_summaries(tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "Summary one.", "two", "Summary two.")
    await one.ended(ask("Plan the trip"))
    await closed(one)
    notes(one)[0].rename(one.root / "Elsewhere.md")
    await one.ended(ask("Plan the trip", conversation="d"))
    await closed(one, "d")
    texts = "".join(path.read_text() for path in notes(one, "summaries"))
    assert "Summary one." in texts and "Summary two." in texts


async def test_a_summary_has_a_legal_name_though_its_note_is_gone(tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "A summary.")
    await one.ended(ask("Is a/b: c? or d\\e"))
    notes(one)[0].unlink()
    await closed(one)
    (summary,) = notes(one, "summaries")
    assert not set(':?*"<>|\\') & set(summary.name)


async def test_a_provider_that_only_quotes_is_not_asked_for_a_summary(tmp_path: Path) -> None:
    one = Talk(tmp_path, Shelf(QUORL), None, notes=True)
    await one.ended(ask("what is a quorl?"))
    await closed(one)
    assert notes(one, "summaries") == []


async def test_a_long_conversation_is_summarised_and_goes_on(tmp_path: Path) -> None:
    fake = FakeProvider(window=3000)
    one = Talk(tmp_path, Shelf(QUORL), fake, notes=True)
    for number in range(8):
        fake.enqueue(f"reply {number} " + "and so on " * 150)
        await one.ended(ask(f"question {number}"))
        session_notes = one.chat.session_notes
        assert isinstance(session_notes, SessionNotes)
        async with asyncio.timeout(30):
            while session_notes.busy:
                await asyncio.sleep(0.01)
    condensed = one.sessions.load("c").condensed
    assert condensed is not None and condensed.text
    last = fake.requests[-1]
    assert any("<summary>" in message.text for request in fake.requests for message in request.messages), last.system
