"""Tools in a turn: read at once, change only after a yes, end in words, and never reach beyond what was asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest

from tarsd.chat.answer import CALLED_AGAIN, NO_ANSWER
from tarsd.chat.calls import MOST_CALLS, NOBODY
from tarsd.config import ChatSettings
from tarsd.errors import (
    AnswerCut,
    ChatModelMissing,
    Conflict,
    ContextTooLong,
    NotFound,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
    ToolError,
)
from tarsd.protocol import Approval
from tarsd.providers.base import StreamEnd, Text, Thinking, ToolCall
from tarsd.providers.fake import FakeProvider
from tarsd.tools import Context, Result, ToolProposal
from tarsd.tools.base import NotAsShown
from tarsd.tools.changes import propose
from tarsd.writing import create
from tests.support.turns import QUORL, Shelf, Talk, ask, calls, of, passage, talk, types, until, use, write


def look(query: Annotated[str, "what for"]) -> Result:
    """Look something up."""
    return Result(f"found {query}")


def cite(query: Annotated[str, "what for"]) -> Result:
    """Find passages."""
    return Result("see passages", (QUORL, passage("New.md", "New text.")))


def read_private() -> Result:
    """Read a private note."""
    return Result("The code is 0000.", private=True)


def broken() -> Result:
    """Always fails."""
    raise ToolError("It is broken.", "Try another.")


async def test_a_call_is_answered_and_the_model_goes_on(tmp_path: Path) -> None:
    fake = FakeProvider(calls(use("look", query="tea"), text="Let me look."), "Tea is hot.")
    turn = await talk(tmp_path, fake, look).ended(ask("what about tea?"))
    assert turn.events[-1].data["text"] == "Let me look.\n\nTea is hot."
    assert [event.data["state"] for event in of(turn, "tool")] == ["running", "done"]
    assistant, answer = fake.requests[1].messages[-2:]
    assert (assistant.role, assistant.calls, assistant.raw) == ("assistant", (use("look", query="tea"),), {"n": 1})
    assert (answer.role, answer.call_id, answer.name, answer.failed) == ("tool", "id-look", "look", False)
    assert '<tool-result tool="look">\nfound tea\n</tool-result>' in answer.text
    assert [spec.name for spec in fake.requests[0].tools] == ["look"]


async def test_calls_of_one_round_run_at_once_and_keep_their_order(tmp_path: Path) -> None:
    met = asyncio.Barrier(2)

    async def meet(name: Annotated[str, "who"]) -> Result:
        """Wait for the other one."""
        await met.wait()
        return Result(f"met {name}")

    fake = FakeProvider(calls(use("meet", name="a"), use("meet", name="b")), "done")
    async with asyncio.timeout(30):
        await talk(tmp_path, fake, meet).ended(ask("x"))
    assert ["met a" in message.text for message in fake.requests[1].messages[-2:]] == [True, False]


async def test_what_a_tool_finds_can_be_cited(tmp_path: Path) -> None:
    fake = FakeProvider(calls(use("cite", query="q")), "As [1] and [3] say, not [9].")
    turn = await talk(tmp_path, fake, cite).ended(ask("what is a quorl?"))
    done = turn.events[-1].data
    assert done["text"] == "As [1] and [3] say, not [9?]."
    assert [one["path"] for one in done["citations"]] == ["Quorl.md", "New.md"]
    assert 'n="3" note="New.md"' in fake.requests[1].messages[-1].text


async def test_a_failing_tool_is_told_and_the_turn_goes_on(tmp_path: Path) -> None:
    problem = ToolCall("x", "look", {}, problem="The arguments were no JSON.")
    fake = FakeProvider(calls(use("broken"), use("unknown"), use("look"), problem), "Sorry.")
    turn = await talk(tmp_path, fake, broken, look).ended(ask("x"))
    assert turn.events[-1].data["text"] == "Sorry."
    answers = fake.requests[1].messages[-4:]
    assert all(message.failed for message in answers)
    assert "It is broken. Try another." in answers[0].text
    assert "unknown" in answers[1].text
    assert "query" in answers[2].text
    assert "no JSON" in answers[3].text


async def test_a_loop_ends_at_the_limit_in_words(tmp_path: Path) -> None:
    fake = FakeProvider(*[calls(use("look", query=f"tea {n}")) for n in range(9)])
    turn = await talk(tmp_path, fake, look, settings=ChatSettings(rounds=3)).ended(ask("x"))
    assert len(of(turn, "tool")) == 6
    assert fake.requests[-1].tools == ()
    assert len(fake.requests) == 4
    assert "Tools were called 3 times" in turn.events[-1].data["notices"][0]


WRITTEN = '{"name": "look", "arguments": {"query": "tea"}}'


@pytest.mark.parametrize(
    "last",
    [
        WRITTEN,
        f"<tool_call>\n{WRITTEN}\n</tool_call>",
        f"```json\n{WRITTEN}\n```",
        '[look(query="tea")]',
        '[TOOL_CALLS]look[ARGS]{"query": "tea"}',
        calls(use("look", query="tea")),
    ],
    ids=["json", "tags", "fence", "python", "mistral", "a call proper"],
)
async def test_a_call_in_the_last_round_is_never_shown_as_the_answer(tmp_path: Path, last: Any) -> None:
    fake = FakeProvider(WRITTEN, WRITTEN, last)
    turn = await talk(tmp_path, fake, look, settings=ChatSettings(rounds=2)).ended(ask("x"))
    done = turn.events[-1].data
    assert done["text"] == "" and not of(turn, "token")
    assert len(fake.requests) == 3 and CALLED_AGAIN in done["notices"]


async def test_words_of_the_last_round_stand_though_they_hold_a_call(tmp_path: Path) -> None:
    fake = FakeProvider(WRITTEN, f"I would call {WRITTEN}.")
    turn = await talk(tmp_path, fake, look, settings=ChatSettings(rounds=1)).ended(ask("x"))
    assert turn.events[-1].data["text"] == f"I would call {WRITTEN}."
    assert CALLED_AGAIN not in turn.events[-1].data["notices"]


async def test_the_same_call_is_made_once(tmp_path: Path) -> None:
    seen: list[str] = []

    def count(query: Annotated[str, "what"]) -> Result:
        """Count."""
        seen.append(query)
        return Result("here")

    fake = FakeProvider(*[calls(use("count", query="tea"))] * 3, "done")
    await talk(tmp_path, fake, count).ended(ask("x"))
    assert seen == ["tea"]
    assert "called before" in fake.requests[2].messages[-1].text


async def test_too_many_calls_at_once_are_not_made(tmp_path: Path) -> None:
    fake = FakeProvider(calls(*(use("look", query=str(n)) for n in range(MOST_CALLS + 5))), "done")
    await talk(tmp_path, fake, look).ended(ask("x"))
    answers = [message for message in fake.requests[1].messages if message.role == "tool"]
    assert len(answers) == MOST_CALLS + 5
    assert sum(message.failed for message in answers) == 5


async def test_time_for_tools_is_bounded(tmp_path: Path) -> None:
    async def slow() -> Result:
        """Take long."""
        await asyncio.sleep(1.1)
        return Result("late")

    fake = FakeProvider(calls(use("slow")), "what I have")
    turn = await talk(tmp_path, fake, slow, settings=ChatSettings(seconds=1.0)).ended(ask("x"))
    assert fake.requests[1].tools == ()
    assert turn.events[-1].data["text"] == "what I have"


async def test_a_reply_without_end_is_cut_and_kept(tmp_path: Path) -> None:
    fake = FakeProvider([Text("a beginning"), 3600.0])
    turn = await talk(tmp_path, fake, settings=ChatSettings(seconds=1.0)).ended(ask("x"))
    assert turn.events[-1].type == "done"
    assert turn.events[-1].data["text"] == "a beginning"
    assert "time limit" in turn.events[-1].data["notices"][0]
    assert fake.closed == 1


# ------------------------------------------------------------------------------------------------ asking first


async def test_a_change_waits_for_a_yes_and_shows_its_diff(tmp_path: Path) -> None:
    fake = FakeProvider(calls(use("write", path="New.md", text="hello")), "Made it.")
    one = talk(tmp_path, fake, write)
    turn = await one.chat.turn(await one.chat.start(ask("make a note")))
    asked = await until(turn, "approval")
    assert asked.data["title"] == "Make New.md"
    assert "+hello" in asked.data["diff"]
    assert not (one.root / "New.md").exists()
    await one.chat.approve(turn.id, asked.data["call"], Approval(True))
    async for _ in turn.follow():
        pass
    assert (one.root / "New.md").read_text() == "hello\n"
    kinds = ["retrieved", "usage", "tool", "approval", "written", "tool", "token", "token", "usage", "done"]
    assert types(turn) == kinds


async def test_a_no_changes_nothing_and_is_told(tmp_path: Path) -> None:
    fake = FakeProvider(calls(use("write", path="New.md", text="hello")), "As you wish.")
    one = talk(tmp_path, fake, write)
    turn = await one.answering(ask("make a note"), Approval(False))
    assert not (one.root / "New.md").exists()
    assert of(turn, "tool")[-1].data["state"] == "refused"
    assert "said no" in fake.requests[1].messages[-1].text


async def test_with_nobody_to_ask_it_is_refused(tmp_path: Path) -> None:
    fake = FakeProvider(calls(use("write", path="New.md", text="hello")), "I could not.")
    one = talk(tmp_path, fake, write)
    turn = await one.ended(ask("make a note", approvals=False))
    assert not (one.root / "New.md").exists()
    assert of(turn, "approval") == []
    assert NOBODY in fake.requests[1].messages[-1].text


@pytest.mark.parametrize("allow", [("write",), ("*",)])
async def test_what_the_settings_allow_is_not_asked(tmp_path: Path, allow: tuple[str, ...]) -> None:
    fake = FakeProvider(calls(use("write", path="New.md", text="hello")), "Made it.")
    one = talk(tmp_path, fake, write, allow=allow)
    turn = await one.ended(ask("make a note", approvals=False))
    assert (one.root / "New.md").exists()
    assert of(turn, "approval") == []


@pytest.mark.parametrize("allow", [("reveal",), ("*",)])
async def test_no_standing_yes_puts_private_text_where_it_is_not_private(
    tmp_path: Path, allow: tuple[str, ...]
) -> None:
    def reveal(context: Context) -> ToolProposal:
        """Write what was read into a note that is not private."""
        change = create("Open.md", "The code is 0000.\n")
        return propose(change, "Make Open.md", "Made.", context, private=False)

    fake = FakeProvider(calls(use("read_private")), calls(use("reveal")), "Could not.")
    turn = await talk(tmp_path, fake, read_private, reveal, allow=allow).ended(ask("x", approvals=False))
    assert NOBODY in fake.requests[2].messages[-1].text and of(turn, "approval") == []
    assert not (tmp_path / "Open.md").exists()
    one = talk(tmp_path, FakeProvider(calls(use("read_private")), calls(use("reveal")), "Done."), read_private, reveal)
    turn = await one.answering(ask("x", conversation="other"), Approval(False))
    assert "has read private notes" in of(turn, "approval")[0].data["title"]


async def test_always_holds_for_this_conversation(tmp_path: Path) -> None:
    steps = [reply for n in range(3) for reply in (calls(use("write", path=f"{n}.md", text="x")), "ok")]
    one = talk(tmp_path, FakeProvider(*steps), write)
    await one.answering(ask("a"), Approval(True, always=True))
    assert of(await one.ended(ask("b")), "approval") == []
    await one.answering(ask("c", conversation="other"), Approval(True))


async def test_an_answer_is_given_once(tmp_path: Path) -> None:
    one = talk(tmp_path, FakeProvider(calls(use("write", path="New.md", text="x")), "ok"), write)
    turn = await one.chat.turn(await one.chat.start(ask("x")))
    asked = await until(turn, "approval")
    with pytest.raises(NotFound):
        await one.chat.approve(turn.id, "nonsense", Approval(True))
    await one.chat.approve(turn.id, asked.data["call"], Approval(False))
    with pytest.raises(Conflict):
        await one.chat.approve(turn.id, asked.data["call"], Approval(True))
    async for _ in turn.follow():
        pass
    with pytest.raises(Conflict):
        await one.chat.approve(turn.id, asked.data["call"], Approval(True))
    assert not (one.root / "New.md").exists()


async def test_a_change_that_is_not_as_it_was_shown_is_asked_again(tmp_path: Path) -> None:
    """As another call, so that no answer to the first one is taken for the second; a standing yes covers both."""

    async def moody(context: Context) -> ToolProposal:
        """Make a note."""

        def proposal(number: int) -> ToolProposal:
            async def apply() -> Result:
                if number < 3:
                    raise NotAsShown(proposal(number + 1))
                return Result(f"made, {await context.write(change)}")

            change = create("New.md", f"version {number}")
            return ToolProposal("Make New.md", apply, change, change.diff())

        return proposal(1)

    one = talk(tmp_path, FakeProvider(calls(use("moody")), "ok", calls(use("moody")), "ok"), moody)
    turn = await one.chat.turn(await one.chat.start(ask("x")))
    answered = 0
    async for event in turn.follow():
        if event.type == "approval":
            answered += 1
            assert not (one.root / "New.md").exists()
            with pytest.raises(NotFound):
                await one.chat.approve(turn.id, f"t{answered + 1}", Approval(True))
            await one.chat.approve(turn.id, event.data["call"], Approval(True, always=answered == 3))
    asked = of(turn, "approval")
    assert [event.data["call"] for event in asked] == ["t1", "t2", "t3"]
    assert [f"version {number}" in event.data["diff"] for number, event in enumerate(asked, 1)] == [True] * 3
    ends = [(event.data["call"], event.data["state"]) for event in of(turn, "tool") if event.data["state"] != "running"]
    assert ends == [("t1", "refused"), ("t2", "refused"), ("t3", "done")]
    assert (one.root / "New.md").read_text() == "version 3\n"
    (one.root / "New.md").unlink()
    assert of(await one.ended(ask("again")), "approval") == []
    assert (one.root / "New.md").read_text() == "version 3\n"


async def test_stop_while_asking_changes_nothing(tmp_path: Path) -> None:
    one = talk(tmp_path, FakeProvider(calls(use("write", path="New.md", text="x"))), write)
    turn = await one.chat.turn(await one.chat.start(ask("x")))
    asked = await until(turn, "approval")
    await one.chat.stop(turn.id)
    with pytest.raises(Conflict):
        await one.chat.approve(turn.id, asked.data["call"], Approval(True))
    await one.chat.close()
    assert not (one.root / "New.md").exists()


# ------------------------------------------------------------------------------------------------ privacy


async def test_private_notes_never_reach_a_model_elsewhere(tmp_path: Path) -> None:
    fake = FakeProvider("answer", "answer", local=False)
    one = talk(tmp_path, fake)
    turn = await one.ended(ask("what is the secret quorl code?"))
    assert "0000" not in str(fake.requests)
    assert of(turn, "retrieved")[0].data["withheld"] == ["Private/Diary.md"]
    turn = await one.ended(ask("say", notes=("Private/Diary.md",), selection="The code is 0000."))
    assert "0000" not in str(fake.requests)
    assert any("private" in notice for notice in turn.events[-1].data["notices"])


async def test_what_came_of_private_notes_stays_here_too(tmp_path: Path) -> None:
    here = talk(tmp_path, FakeProvider("The code is 0000."))
    turn = await here.ended(ask("what is the secret quorl code?"))
    assert turn.private
    assert turn.events[-1].data["private"] is True
    await here.chat.close()
    away = FakeProvider("I do not know.", local=False)
    there = talk(tmp_path, away)
    turn = await there.ended(ask("and again?"))
    assert "0000" not in str(away.requests)
    assert any("Earlier answers" in notice for notice in turn.events[-1].data["notices"])


async def test_a_private_tool_result_makes_the_turn_private(tmp_path: Path) -> None:
    turn = await talk(tmp_path, FakeProvider(calls(use("read_private")), "It is 0000."), read_private).ended(ask("x"))
    assert turn.events[-1].data["private"] is True


# ------------------------------------------------------------------------------------------------ another model


@pytest.mark.parametrize(
    "error",
    [
        ProviderUnreachable("Nobody answers."),
        ProviderBusy("Overloaded.", retry_after=60),
        ChatModelMissing("It is not pulled."),
        ProviderRefused("It only embeds."),
        ProviderError("Its engine died."),
        AnswerCut("It broke off."),
    ],
)
async def test_the_fallback_answers_and_says_so(tmp_path: Path, error: Exception) -> None:
    first, second = FakeProvider([error], local=True), FakeProvider("from the second", local=False)
    turn = await talk(tmp_path, first, fallback=second).ended(ask("what is the secret quorl code?"))
    done = turn.events[-1].data
    assert done["text"] == "from the second"
    assert "did not answer" in done["notices"][0]
    assert "0000" in str(first.requests)
    assert "0000" not in str(second.requests)
    assert [event.data["local"] for event in of(turn, "retrieved")] == [True, False]


async def test_what_was_said_is_not_said_again_by_another(tmp_path: Path) -> None:
    first, second = FakeProvider([Text("half"), ProviderUnreachable("gone")]), FakeProvider("never")
    turn = await talk(tmp_path, first, fallback=second).ended(ask("x"))
    assert turn.events[-1].type == "failed"
    assert turn.events[-1].data["text"] == "half"
    assert second.requests == []


async def test_a_short_wait_is_waited_visibly(tmp_path: Path) -> None:
    fake = FakeProvider([ProviderBusy("Too many requests.", retry_after=0.01)], "now")
    turn = await talk(tmp_path, fake).ended(ask("x"))
    assert turn.events[-1].data["text"] == "now"
    assert "Too many requests." in of(turn, "waiting")[0].data["text"]


async def test_a_long_wait_is_an_error_with_its_hint(tmp_path: Path) -> None:
    fake = FakeProvider([ProviderBusy("Too many requests.", "Wait an hour.", retry_after=3600)])
    turn = await talk(tmp_path, fake).ended(ask("x"))
    assert turn.events[-1].data["error"]["hint"] == "Wait an hour."


async def test_length_and_refusal_are_said(tmp_path: Path) -> None:
    fake = FakeProvider(
        [Text("a"), StreamEnd("length")],
        [Text("b"), StreamEnd("refusal")],
        [use("look", query="x"), StreamEnd("length")],
    )
    one = talk(tmp_path, fake, look)
    assert "cut off" in (await one.ended(ask("x"))).events[-1].data["notices"][0]
    assert "refused" in (await one.ended(ask("x"))).events[-1].data["notices"][0]
    assert of(await one.ended(ask("x")), "tool") == []


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ([Thinking("hm"), StreamEnd("length")], "none were left for an answer"),
        ([Text(" \n"), StreamEnd("length")], "none were left for an answer"),
        ([StreamEnd("length")], "none were left for an answer"),
        ([Text("all of it."), 0.0], "the end of the answer may be missing"),
    ],
)
async def test_an_answer_without_a_proper_end_says_which(tmp_path: Path, stream: list[Any], said: str) -> None:
    done = (await talk(tmp_path, FakeProvider(stream)).ended(ask("x"))).events[-1]
    assert done.type == "done" and said in str(done.data["notices"])


async def test_a_question_that_is_too_long_is_told_and_not_passed_on(tmp_path: Path) -> None:
    first, second = FakeProvider([ContextTooLong("Too long.")]), FakeProvider("never")
    turn = await talk(tmp_path, first, fallback=second).ended(ask("x"))
    assert turn.events[-1].data["error"]["code"] == "context_too_long" and second.requests == []


async def test_a_selection_whose_note_cannot_be_looked_at_stays_here(tmp_path: Path) -> None:
    fake = FakeProvider("answer", local=False)
    one = talk(tmp_path, fake)
    turn = await one.ended(ask("improve this", notes=("Private/unsaved.md",), selection="ZQSELECTED words"))
    assert "ZQSELECTED" not in str(fake.requests)
    assert any("selection" in notice for notice in turn.events[-1].data["notices"])
    assert "ZQSELECTED" not in str(of(turn, "retrieved")[0].data)


async def test_a_selection_is_searched_with_but_not_kept_in_the_query(tmp_path: Path) -> None:
    one = talk(tmp_path, FakeProvider("a", "b"))
    turn = await one.ended(ask("improve this", selection="the quorl"))
    assert of(turn, "retrieved")[0].data["query"] == "improve this"
    assert of(turn, "retrieved")[0].data["sources"][0]["path"] == "Quorl.md"


async def test_a_note_that_became_private_takes_what_was_said_from_it_along(tmp_path: Path) -> None:
    shelf = Shelf(QUORL)
    first = Talk(tmp_path, shelf, FakeProvider("It is the ZQBRASS wedge."))
    await first.ended(ask("what is a quorl?"))
    await first.chat.close()
    shelf.passages_held = (passage("Quorl.md", QUORL.text, local_only=True),)
    away = FakeProvider("I do not know.", local=False)
    await Talk(tmp_path, shelf, away).ended(ask("and again, please?"))
    assert "ZQBRASS" not in str(away.requests)


@pytest.mark.parametrize("reply", [[StreamEnd()], [Thinking("hm"), StreamEnd()], [Text(" \n"), StreamEnd()]])
async def test_an_empty_reply_is_told(tmp_path: Path, reply: list[Any]) -> None:
    turn = await talk(tmp_path, FakeProvider(reply)).ended(ask("x"))
    assert turn.events[-1].data["notices"] == [NO_ANSWER]


async def test_a_model_too_small_for_tools_answers_without_them(tmp_path: Path) -> None:
    def wordy(query: Annotated[str, "w" * 8000]) -> Result:
        """Look something up."""
        return Result(query)

    fake = FakeProvider("small", window=2048)
    turn = await talk(tmp_path, fake, wordy).ended(ask("x"))
    assert turn.events[-1].data["text"] == "small"
    assert fake.requests[0].tools == ()
    assert "too few for tools" in turn.events[-1].data["notices"][0]


async def test_a_selection_is_judged_by_its_note_which_is_not_attached(tmp_path: Path) -> None:
    away = FakeProvider("a", "b", local=False)
    one = talk(tmp_path, away)
    more: dict[str, Any] = {"selection": "ZQMARKED", "selection_note": "Private/Diary.md"}
    turn = await one.ended(ask("improve this", **more))
    assert "ZQMARKED" not in str(away.requests)
    assert of(turn, "retrieved")[0].data["withheld"] == ["Private/Diary.md"]
    await one.ended(ask("improve this", selection="ZQMARKED", selection_note="Quorl.md"))
    assert "ZQMARKED" in str(away.requests)
    here = FakeProvider("c")
    turn = await talk(tmp_path, here).ended(ask("improve this", conversation="d", **more))
    assert "ZQMARKED" in str(here.requests)
    assert turn.events[-1].data["private"] is True
    assert here.requests[0].evidence == ()


async def test_a_follow_up_to_a_private_turn_is_embedded_nowhere_else(tmp_path: Path) -> None:
    fake = FakeProvider("The code is 0000 [1].", "Yesterday.", "A wedge.")
    here = talk(tmp_path, fake)
    shelf = here.services.library
    assert isinstance(shelf, Shelf)
    await here.ended(ask("what is the secret quorl code?"))
    first = len(shelf.asked)
    await here.ended(ask("and when was that?"))
    await here.ended(ask("tell me about the harbour light then"))
    assert set(shelf.asked[first:]) <= set(shelf.kept_here)
    await here.ended(ask("what is a quorl, the brass wedge?", "other", notes=()))
    assert shelf.asked[-1] not in shelf.kept_here


async def test_a_model_elsewhere_searches_with_no_question_of_a_private_turn(tmp_path: Path) -> None:
    here = talk(tmp_path, FakeProvider("The code is 0000 [1]."))
    await here.ended(ask("what is the secret quorl code?"))
    away = talk(tmp_path, FakeProvider("I do not know.", local=False))
    await away.ended(ask("and when was that?"))
    shelf = away.services.library
    assert isinstance(shelf, Shelf)
    assert shelf.asked and not any("secret" in query for query in shelf.asked)


@pytest.mark.parametrize("local", [True, False])
async def test_a_link_that_a_model_elsewhere_guessed_tells_of_no_private_note(tmp_path: Path, local: bool) -> None:
    here = talk(tmp_path, FakeProvider("See [[Private/Diary]] and [[Private/Dairy]].", local=local))
    turn = await here.ended(ask("which notes are there?"))
    kept = "[[Private/Diary]]" if local else "Private/Diary"
    assert turn.text == f"See {kept} and Private/Dairy."
