"""What was made of notes goes to no model elsewhere once the notes are private: decided by what they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from tarsd.errors import NotFound
from tarsd.protocol import Decision, ReviewDecisions, SearchRequest
from tests.support.derived import Stage, sent
from tests.support.engine import write
from tests.support.turns import calls, use

HYDRA = "# Hydra\n\nThe hydra project costs 4711 crowns this winter.\n"
OPEN = "# Ferry\n\nThe ferry to Carrow leaves at 06:12 from the old slip.\n"
NOTES = {"Work/Hydra.md": HYDRA, "Ferry.md": OPEN}
SECRET = "4711"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, NOTES)
    yield stage
    stage.stop()


def moved(stage: Stage) -> None:
    (stage.vault / "Private").mkdir()
    (stage.vault / "Work/Hydra.md").rename(stage.vault / "Private/Hydra.md")


def moved_and_renamed(stage: Stage) -> None:
    (stage.vault / "Private/Deep").mkdir(parents=True)
    (stage.vault / "Work/Hydra.md").rename(stage.vault / "Private/Deep/Zed.md")


def moved_and_replaced(stage: Stage) -> None:
    moved(stage)
    write(stage.vault, "Work/Hydra.md", "# Hydra\n\nIt has moved.\n")


def moved_and_edited(stage: Stage) -> None:
    moved(stage)
    write(stage.vault, "Private/Hydra.md", HYDRA.replace("winter", "summer"))


def folder_renamed(stage: Stage) -> None:
    (stage.vault / "Work").rename(stage.vault / "private")


def tagged(stage: Stage) -> None:
    write(stage.vault, "Work/Hydra.md", f"---\ntags: [private]\n---\n{HYDRA}")


def tagged_below(stage: Stage) -> None:
    write(stage.vault, "Work/Hydra.md", f"{HYDRA}\n#Private/money\n")


def says_so(stage: Stage) -> None:
    write(stage.vault, "Work/Hydra.md", f"---\nlocal_only: true\n---\n{HYDRA}")


def new_rule(stage: Stage) -> None:
    stage.rules = (*stage.rules, "Work/")


def new_rule_on_a_tag(stage: Stage) -> None:
    write(stage.vault, "Work/Hydra.md", f"{HYDRA}\n#money\n")
    stage.rules = (*stage.rules, "#money")


def deleted(stage: Stage) -> None:
    (stage.vault / "Work/Hydra.md").unlink()


WAYS = [
    moved, moved_and_renamed, moved_and_replaced, moved_and_edited, folder_renamed, tagged, tagged_below, says_so,
    new_rule, new_rule_on_a_tag, deleted,
]  # fmt: skip
ways = pytest.mark.parametrize("becomes_private", WAYS, ids=lambda way: way.__name__)
Way = Callable[[Stage], None]


async def talked(stage: Stage) -> None:
    """A conversation about Hydra, one about the ferry, each with a verdict."""
    stage.model.enqueue("The hydra project costs 4711 crowns [1].")
    await stage.judge(await stage.ask("what does the hydra project cost?"), note="Say 4711 in words")
    stage.model.enqueue("It leaves at 06:12 [1].")
    await stage.judge(await stage.ask("when does the ferry to Carrow leave?", "open"), note="Say 06:12 in words")


@ways
async def test_history_verdicts_and_notes_of_ours_follow_the_note(stage: Stage, becomes_private: Way) -> None:
    await talked(stage)
    becomes_private(stage)
    model = stage.elsewhere()
    await stage.ask("please say that again")
    assert SECRET not in sent(model)
    await stage.close()
    assert SECRET not in sent(model)
    await stage.app.assistant.review()
    assert SECRET not in sent(model)
    assert "06:12" in sent(model)  # what is open is not kept back
    (path,) = [path for path in stage.notes_of_ours("sessions") if "hydra" in path]
    with pytest.raises(NotFound):
        stage.read(path)
    with pytest.raises(NotFound):
        stage.read("tars/corrections.md")
    hits = stage.app.search(SearchRequest("hydra 4711 crowns", audience="elsewhere"))["hits"]
    assert SECRET not in str(hits)


@ways
async def test_a_summary_made_here_follows_the_note(stage: Stage, becomes_private: Way) -> None:
    await talked(stage)
    stage.model.enqueue("Hydra costs 4711 crowns.\nREMEMBER:\n- The budget is 4711 crowns")
    await stage.close()
    stage.index()
    (path,) = stage.notes_of_ours("summaries")
    assert SECRET in stage.read(path)["text"]
    becomes_private(stage)
    model = stage.elsewhere()
    assert SECRET not in str(await stage.ask("please say that again")) + sent(model)
    await stage.ask("what does the hydra project cost?", "another")
    await stage.app.assistant.review()
    assert SECRET not in sent(model)
    with pytest.raises(NotFound):
        stage.read(path)
    library = stage.app.library
    marks = {row.path: row.local_only for row in library.searcher().store.notes.titles() if row.ours}
    assert marks[path] and not all(marks.values())
    assert library.remark() == []


async def test_before_the_index_knows_it_is_private(stage: Stage) -> None:
    await talked(stage)
    model = stage.elsewhere()
    moved(stage)
    await stage.ask("please say that again")
    await stage.close()
    assert SECRET not in sent(model)


async def test_a_note_that_moved_and_stayed_open_is_followed(stage: Stage) -> None:
    await talked(stage)
    (stage.vault / "Work/Hydra.md").rename(stage.vault / "Hydra, a project.md")
    model = stage.elsewhere()
    await stage.ask("please say that again")
    assert SECRET in sent(model)
    await stage.app.assistant.review()
    assert sent(model.requests[-1]).count(SECRET) >= 2


async def test_what_is_open_again_is_told_again_but_not_what_was_said_from_it_meanwhile(stage: Stage) -> None:
    await talked(stage)
    moved(stage)
    model = stage.elsewhere("I cannot tell.")
    await stage.ask("please say that again")
    (stage.vault / "Private/Hydra.md").rename(stage.vault / "Work/Hydra.md")
    stage.index()
    await stage.ask("and now?")
    assert SECRET in sent(model.requests[-1])


async def test_an_answer_follows_what_the_turns_before_it_drew_on(stage: Stage) -> None:
    await talked(stage)
    stage.model.enqueue("Forty-seven hundred and eleven crowns.")
    await stage.judge(await stage.ask("in words please"))
    moved(stage)
    model = stage.elsewhere()
    await stage.ask("again")
    await stage.app.assistant.review()
    assert "Forty-seven" not in sent(model)


async def test_what_a_model_elsewhere_said_without_the_private_part_is_not_lost(stage: Stage) -> None:
    await talked(stage)
    moved(stage)
    model = stage.elsewhere("Zebras are striped.")
    await stage.ask("something else: how do zebras look?")
    await stage.ask("and what else?")
    assert "Zebras are striped." in sent(model.requests[-1]) and SECRET not in sent(model)


async def test_a_summary_of_a_summary_follows_the_note(stage: Stage) -> None:
    await talked(stage)
    stage.model.enqueue("First: 4711 crowns.")
    await stage.close()
    stage.model.enqueue("Nothing more.")
    await stage.ask("thank you")
    stage.model.enqueue("Still: 4711 crowns.")
    await stage.close()
    stage.index()
    tagged(stage)
    model = stage.elsewhere()
    await stage.ask("what was that?")
    await stage.close()
    assert SECRET not in sent(model)


@pytest.mark.parametrize("how", [{}, {"heading": "Hydra"}, {"first_line": 3}], ids=["whole", "section", "lines"])
@pytest.mark.parametrize("becomes_private", [moved, moved_and_renamed, moved_and_replaced, tagged])
async def test_a_note_that_a_tool_read_is_what_the_turn_drew_on(
    stage: Stage, becomes_private: Callable[[Stage], None], how: dict[str, object]
) -> None:
    stage.model.enqueue(calls(use("note_read", name="Hydra", **how)))
    stage.model.enqueue("It is 4711 crowns.")
    turn = await stage.ask("xyzzy")
    assert SECRET in turn.text and not turn.private
    becomes_private(stage)
    stage.index()
    model = stage.elsewhere()
    await stage.ask("again")
    assert SECRET not in sent(model)


async def test_a_note_that_a_tool_read_and_that_lies_elsewhere_now_is_no_secret(stage: Stage) -> None:
    stage.model.enqueue(calls(use("note_read", name="Hydra")))
    stage.model.enqueue("It is 4711 crowns.")
    await stage.ask("xyzzy")
    (stage.vault / "Work/Hydra.md").rename(stage.vault / "Zed.md")
    stage.index()
    model = stage.elsewhere()
    await stage.ask("again")
    assert SECRET in sent(model)


async def test_a_conversation_that_read_another_follows_what_that_one_drew_on(stage: Stage) -> None:
    await talked(stage)
    stage.index()
    (path,) = [path for path in stage.notes_of_ours("sessions") if "hydra" in path]
    stage.model.enqueue(calls(use("note_read", name=path)))
    stage.model.enqueue("You were told 4711 crowns.")
    turn = await stage.ask("what did I ask you the other day?", "second")
    assert SECRET in turn.text
    tagged(stage)
    model = stage.elsewhere()
    await stage.ask("again", "second")
    assert SECRET not in sent(model)


@pytest.mark.parametrize("conversation", ["c", "会話", "private", "a b/c", "x" * 60])
async def test_remembered_lines_follow_the_conversation_they_come_from(stage: Stage, conversation: str) -> None:
    stage.model.enqueue("The hydra project costs 4711 crowns [1].")
    await stage.ask("what does the hydra project cost?", conversation)
    memory = stage.app.chat.services.memory
    kinds: tuple[tuple[Literal["semantic", "procedural"], str], ...] = (
        ("semantic", "The budget is 4711 crowns"),
        ("procedural", "Say 4711 in words"),
    )
    for kind, text in kinds:
        change = memory.remember(text, kind=kind, session=conversation)
        await stage.app.assistant.writer.perform(change, by="daemon", kind="memory")
    assert SECRET in memory.facts(local=False) and SECRET in memory.rules(local=False)
    moved(stage)
    stage.index()
    assert SECRET not in memory.facts(local=False) + memory.rules(local=False)
    assert SECRET in memory.facts(local=True) and memory.withheld() == 2
    model = stage.elsewhere()
    await stage.ask("hello", "new")
    assert SECRET not in sent(model)
    with pytest.raises(NotFound):
        stage.read("tars/Memory.md")


async def test_a_rule_from_verdicts_in_two_conversations_follows_both(stage: Stage) -> None:
    await talked(stage)
    assistant = stage.app.assistant
    stage.model.enqueue("- Say amounts in crowns (1, 2)")
    reply = await assistant.review()
    taken = tuple(Decision(one["id"], "apply") for one in reply["proposals"])
    await assistant.apply_review(ReviewDecisions(reply["review"], taken))
    memory = stage.app.chat.services.memory
    assert "crowns" in memory.rules(local=False)
    says_so(stage)
    assert memory.rules(local=False) == ""


async def test_the_log_is_gone_and_the_session_note_tells_what_it_drew_on(stage: Stage) -> None:
    await talked(stage)
    stage.index()
    memory = stage.app.chat.services.memory
    await stage.app.assistant.writer.perform(
        memory.remember("The budget is 4711 crowns", session="c"), by="daemon", kind="memory"
    )
    await stage.app.chat.delete("c")
    (path,) = [path for path in stage.notes_of_ours("sessions") if "hydra" in path]
    assert SECRET in stage.read(path)["text"] and SECRET in memory.facts(local=False)
    tagged(stage)
    assert SECRET not in memory.facts(local=False)
    with pytest.raises(NotFound):
        stage.read(path)
    (stage.vault / path).unlink()
    write(stage.vault, "Work/Hydra.md", HYDRA)
    stage.index()
    assert SECRET not in memory.facts(local=False)  # nobody knows any more


async def test_a_note_of_a_collection_counts_as_one_of_the_vault(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"Hydra.md": "# Hydra\n\nNothing.\n"}, collection={"Hydra.md": HYDRA})
    stage.model.enqueue("4711 crowns [1].")
    await stage.ask("what does the hydra project cost in crowns?")
    write(stage.work, "Hydra.md", f"{HYDRA}\n#private\n")
    model = stage.elsewhere()
    await stage.ask("please say that again")
    assert SECRET not in sent(model)
    stage.stop()


async def test_a_selection_makes_its_note_one_that_the_turn_drew_on(stage: Stage) -> None:
    stage.model.enqueue("Noted.")
    await stage.ask("keep this in mind", selection="costs 4711 crowns", selection_note="work/hydra.md")
    stage.model.enqueue("You said 4711.")
    await stage.ask("what was it?")
    moved(stage)
    model = stage.elsewhere()
    await stage.ask("again")
    assert SECRET not in sent(model)


async def test_names_that_were_listed_follow_their_notes(stage: Stage) -> None:
    stage.model.enqueue(calls(use("note_list")))
    stage.model.enqueue("There are Zed and the ferry.")
    await stage.ask("which notes are there?")
    moved(stage)
    model = stage.elsewhere()
    await stage.ask("again")
    assert "There are Zed" not in sent(model)


async def test_an_edited_note_that_stays_open_closes_nothing(stage: Stage) -> None:
    await talked(stage)
    write(stage.vault, "Work/Hydra.md", HYDRA.replace("winter", "summer"))
    model = stage.elsewhere()
    await stage.ask("please say that again")
    assert SECRET in sent(model)


async def test_two_conversations_that_drew_on_each_other_are_judged_once(stage: Stage) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        write(
            stage.vault,
            f"tars/summaries/{name}.md",
            f'---\ntars: summary\nid: {name}\nsources:\n  - "[[tars/summaries/{other}]]"\n---\n\nThe slip is old.\n',
        )
    stage.index()
    assert "slip" in stage.read("tars/summaries/a.md")["text"]
    write(stage.vault, "tars/summaries/b.md", "---\ntars: summary\nid: b\nlocal_only: true\n---\n\nThe slip is old.\n")
    with pytest.raises(NotFound):
        stage.read("tars/summaries/a.md")
