"""Turns: they end once, in any weather; they say only what is in the notes; nothing stops them but Stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarsd.chat import Chat, Turn
from tarsd.chat.evidence import mentions, pack, queries, unsent, widen
from tarsd.errors import AnswerCut, Conflict, EmbedError, NotFound, PathRefused, ProviderError
from tarsd.protocol import TurnRequest
from tarsd.providers.base import ModelRequest, Provider, ProviderEvent, Retract, StreamEnd, Text, Thinking
from tarsd.providers.extractive import NOT_CERTAIN
from tarsd.providers.fake import FakeProvider
from tests.support.turns import Shelf, Talk, ask, passage, types, until

QUORL = passage("Quorl.md", "A quorl is the brass wedge that holds the ferry ramp level.")
TIDES = passage("Other.md", "Tide tables.", 0.3)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(QUORL, TIDES)


Start = Callable[..., Chat]


@pytest.fixture
async def start(tmp_path: Path, shelf: Shelf) -> AsyncIterator[Start]:
    made: list[Chat] = []

    def build(provider: Provider | None = None) -> Chat:
        made.append(Talk(tmp_path, shelf, provider).chat)
        return made[-1]

    yield build
    for chat in made:
        await chat.close()


async def ended(chat: Chat, request: TurnRequest) -> Turn:
    turn = await chat.turn(await chat.start(request))
    async for _ in turn.follow():
        pass
    return turn


async def test_a_question_is_answered_from_the_notes_with_sources(start: Start) -> None:
    turn = await ended(start(), ask("what is a quorl?"))
    assert types(turn) == ["retrieved", "token", "done"]
    assert [event.seq for event in turn.events] == [1, 2, 3]
    retrieved, done = turn.events[0].data, turn.events[-1].data
    assert [source["path"] for source in retrieved["sources"]] == ["Quorl.md"]
    assert (retrieved["relevance"], retrieved["behind"]) == (0.8, 2)
    assert "brass wedge" in done["text"]
    assert [citation["link"] for citation in done["citations"]] == ["[[Quorl]]"]


async def test_without_a_relevant_passage_it_says_so(start: Start) -> None:
    turn = await ended(start(), ask("the tide tables?"))
    assert turn.events[0].data["sources"] == []
    assert [near["path"] for near in turn.events[0].data["closest"]] == ["Other.md"]
    assert turn.events[-1].data["text"].startswith(NOT_CERTAIN)
    assert turn.events[-1].data["citations"] == []


async def test_only_shown_passages_are_sources_and_ghosts_are_not_linked(start: Start) -> None:
    reply = "See [[Ghost note]], [[Quorl|the wedge]] [1] and [3]."
    turn = await ended(start(FakeProvider(reply)), ask("what is a quorl?"))
    assert turn.events[-1].data["text"] == "See Ghost note, [[Quorl|the wedge]] [1] and [3?]."
    assert [citation["path"] for citation in turn.events[-1].data["citations"]] == ["Quorl.md"]


async def test_notes_named_or_attached_are_always_in(start: Start, shelf: Shelf) -> None:
    fake = FakeProvider()
    chat = start(fake)
    await ended(chat, ask("summarise [[Other]]"))
    await ended(chat, ask("summarise this", notes=("Other.md",)))
    for request in fake.requests:
        assert request.evidence[0].path == "Other.md"
        assert request.evidence[0].attached
        assert "Tide tables." in request.messages[-1].text
    turn = await ended(chat, ask("and [[Missing note]]?"))
    assert turn.events[-1].data["notices"] == ["There is no note “Missing note”."]
    with pytest.raises(PathRefused):
        await chat.start(ask("x", notes=("../secret.md",)))


async def test_a_follow_up_is_searched_with_the_question_before(start: Start, shelf: Shelf) -> None:
    chat = start()
    await ended(chat, ask("what is a quorl?"))
    turn = await ended(chat, ask("and where is it?"))
    assert turn.events[0].data["query"] == "what is a quorl? and where is it?"
    assert "brass wedge" in turn.events[-1].data["text"]
    other = await ended(chat, ask("and where is it?", conversation="another"))
    assert other.events[0].data["query"] == "and where is it?"


async def test_the_same_request_never_runs_twice(start: Start) -> None:
    fake = FakeProvider()
    chat = start(fake)
    first, second = await asyncio.gather(*(chat.start(ask("hello", request_id="same")) for _ in range(2)))
    assert first == second
    await ended(chat, ask("hello", request_id="same"))
    again = start(fake)
    assert await again.start(ask("hello", request_id="same")) == first
    assert len(fake.requests) == 1
    assert (await again.turn(first)).events[-1].data["text"] == "hello"


async def test_stop_at_any_moment_keeps_what_was_said(start: Start) -> None:
    fake = FakeProvider([Text("begun "), Text("and "), 60.0, Text("never"), StreamEnd()])
    chat = start(fake)
    turn = await chat.turn(await chat.start(ask("go on")))
    await until(turn, "token")
    await asyncio.sleep(0)
    await asyncio.wait_for(chat.stop(turn.id), 1)
    assert types(turn)[-1] == "done"
    assert turn.events[-1].data["stopped"] is True
    assert turn.events[-1].data["text"].startswith("begun ")
    async with asyncio.timeout(5):
        while fake.closed == 0:
            await asyncio.sleep(0)
    count = len(turn.events)
    for _ in range(2):
        await chat.stop(turn.id)
    assert len(turn.events) == count
    fake.enqueue("works")
    assert (await ended(chat, ask("again"))).events[-1].data["text"] == "works"


async def test_stop_before_the_first_event(start: Start) -> None:
    chat = start(FakeProvider([60.0]))
    turn = await chat.stop(await chat.start(ask("go on")))
    assert types(turn) == ["done"]
    assert turn.events[0].data["text"] == ""
    assert chat.sessions.load("c").turns[0].state == "stopped"


async def test_stop_after_the_end_changes_nothing(start: Start) -> None:
    chat = start()
    turn = await ended(chat, ask("what is a quorl?"))
    await chat.stop(turn.id)
    assert "stopped" not in turn.events[-1].data


async def test_turns_of_a_conversation_wait_visibly_and_others_do_not(start: Start) -> None:
    chat = start(FakeProvider([Text("slow"), 60.0], "other", "second"))
    slow = await chat.turn(await chat.start(ask("one")))
    await until(slow, "token")
    waiting = await chat.turn(await chat.start(ask("two")))
    assert (await ended(chat, ask("three", conversation="d"))).events[-1].data["text"] == "other"
    assert types(waiting) == ["queued"]
    assert waiting.events[0].data["position"] == 1
    assert chat.state() == "busy"
    await chat.stop(slow.id)
    async for _ in waiting.follow():
        pass
    assert waiting.events[-1].data["text"] == "second"


async def test_a_waiting_turn_can_be_stopped(start: Start) -> None:
    chat = start(FakeProvider([60.0]))
    slow = await chat.start(ask("one"))
    waiting = await chat.stop(await chat.start(ask("two")))
    assert waiting.events[-1].data["stopped"]
    assert not (await chat.turn(slow)).ended


class Torn(FakeProvider):
    """As an SDK that tells of its cancellation as of a connection that broke."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        try:
            async with contextlib.aclosing(super().stream(request)) as events:
                async for event in events:
                    yield event
        except asyncio.CancelledError:
            raise AnswerCut("torn") from None


@pytest.mark.parametrize("model", [FakeProvider, Torn])
@pytest.mark.parametrize("reply", [[Text("half"), 60.0], [Thinking("well"), 60.0]], ids=["words", "thoughts"])
async def test_a_turn_that_is_stopped_leaves_no_trouble_behind(
    start: Start, model: type[FakeProvider], reply: list[Any]
) -> None:
    chat = start(model([ProviderError("It is away.")], reply))
    await ended(chat, ask("one"))
    assert chat.trouble is not None
    turn = await chat.turn(await chat.start(ask("two")))
    await until(turn, "token" if isinstance(reply[0], Text) else "thinking")
    await chat.stop(turn.id)
    await asyncio.sleep(0)
    assert (turn.events[-1].type, turn.events[-1].data["stopped"]) == ("done", True)
    assert chat.trouble is None, "the model has answered"


async def test_a_turn_that_is_stopped_before_a_word_says_nothing_of_the_model(start: Start) -> None:
    fake = Torn([60.0], [ProviderError("It is away.")], [60.0])
    chat = start(fake)
    for number, known in enumerate((False, True)):
        turn = await chat.turn(await chat.start(ask(f"one {number}")))
        await until(turn, "retrieved")
        while len(fake.requests) < 2 * number + 1:
            await asyncio.sleep(0)
        await chat.stop(turn.id)
        await asyncio.sleep(0)
        assert turn.events[-1].data.get("stopped") and (chat.trouble is not None) is known
        if not known:
            await ended(chat, ask("two"))


async def test_readers_may_come_late_and_leave_early(start: Start) -> None:
    chat = start(FakeProvider([Text("a"), Text("b"), StreamEnd()]))
    turn = await chat.turn(await chat.start(ask("x")))
    reader = turn.follow()
    assert (await anext(reader)).seq == 1
    await reader.aclose()
    everything = [event async for event in turn.follow()]
    assert [event async for event in turn.follow(2)] == everything[2:]
    assert [event async for event in turn.follow(1000)] == []


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ([Text("half"), AnswerCut("torn")], "answer_cut"),
        ([Text("half"), EmbedError("no")], "embedding_failed"),
        ([Text("half"), RuntimeError("secret")], "error"),
    ],
)
async def test_what_fails_is_told_and_keeps_the_text(start: Start, reply: list[Any], code: str) -> None:
    turn = await ended(start(FakeProvider(reply)), ask("x"))
    last = turn.events[-1]
    assert last.type == "failed"
    assert last.data["error"]["code"] == code
    assert last.data["text"] == "half"
    assert "secret" not in str(last.data)


async def test_thinking_is_never_part_of_the_answer(start: Start) -> None:
    turn = await ended(start(FakeProvider([Thinking("hm"), Text("yes"), StreamEnd()])), ask("x"))
    assert "thinking" in types(turn)
    assert turn.events[-1].data["text"] == "yes"


async def test_what_turns_out_to_be_thinking_is_taken_back(start: Start) -> None:
    turn = await ended(start(FakeProvider([Text("let me see"), Retract(), Text("yes"), StreamEnd()])), ask("x"))
    assert types(turn) == ["retrieved", "token", "retract", "token", "usage", "done"]
    assert turn.events[-1].data["text"] == "yes"


async def test_what_runs_at_the_end_is_interrupted_and_kept(start: Start) -> None:
    chat = start(FakeProvider([Text("half"), 60.0]))
    turn = await chat.turn(await chat.start(ask("x")))
    await until(turn, "token")
    await chat.close()
    assert chat.sessions.load("c").turns[0].state == "interrupted"
    assert chat.sessions.load("c").turns[0].text == "half"
    with pytest.raises(Conflict):
        await chat.start(ask("y"))


async def test_deleting_stops_and_forgets(start: Start) -> None:
    chat = start(FakeProvider([60.0]))
    turn = await chat.start(ask("x"))
    await chat.delete("c")
    for missing in (chat.turn(turn), chat.conversation("c"), chat.delete("c"), chat.stop(turn)):
        with pytest.raises(NotFound):
            await missing


async def test_what_is_wrong_with_the_index_is_said(start: Start, shelf: Shelf) -> None:
    shelf.degraded, shelf.notes_said = "The model is down: words only.", ["The index is being rebuilt."]
    turn = await ended(start(), ask("what is a quorl?"))
    assert turn.events[-1].data["notices"] == ["The model is down: words only.", "The index is being rebuilt."]


async def test_it_answers_though_the_log_cannot_be_written(start: Start) -> None:
    chat = start()
    chat.sessions._folder.parent.mkdir(parents=True)
    chat.sessions._folder.write_text("a file is in the way")
    turn = await ended(chat, ask("what is a quorl?"))
    assert "brass wedge" in turn.events[-1].data["text"]
    assert "cannot be saved" in turn.events[-1].data["notices"][0]


# ------------------------------------------------------------------------------------------------ the pure parts


def test_what_of_an_attached_note_does_not_fit_is_said() -> None:
    long = [replace(passage("Long.md", "word " * 200), start_line=10 * at, end_line=10 * at + 9) for at in range(4)]
    attached = [replace(one, attached=True) for one in long]
    evidence, _ = pack((), attached, most=8, per_note=2, tokens=500)
    assert len(evidence) == 2
    assert unsent(attached, evidence) == "Too long to go along whole: 2 of 4 passages of “Long” were left out."
    assert unsent(attached, pack((), attached, most=8, per_note=2, tokens=5_000)[0]) == ""


def test_mentions() -> None:
    assert mentions("[[A]] and [[b/C d#H|x]], ![[A]] [[]] [[ ]] [no] [[E^id]]") == ["A", "b/C d", "E"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("what is a quorl?", ["what is a quorl?"]),
        ("and where is it?", ["BEFORE and where is it?"]),
        ("and where is it moored?", ["BEFORE and where is it moored?", "and where is it moored?"]),
        ("and the harbour?", ["and the harbour?", "BEFORE and the harbour?"]),
        ("and what is a wedge?", ["and what is a wedge?"]),
        ("why?", ["BEFORE why?"]),
        ("und wo liegt das?", ["BEFORE und wo liegt das?", "und wo liegt das?"]),
        ("is there a train from Bergen to Oslo on Sundays?", ["is there a train from Bergen to Oslo on Sundays?"]),
        ("regatta date", ["regatta date"]),
        ("it rained at -5 degrees in [[Oslo|there]]", None),
    ],
)
def test_what_is_searched_for(message: str, expected: list[str] | None) -> None:
    found = queries(message, ["BEFORE"])
    if expected is not None:
        assert found == expected
    else:
        assert "-5" not in found[0]
        assert "[[" not in found[0]
    assert len(queries(message, [])) == 1


def test_packing_keeps_to_budget_notes_and_overlaps() -> None:
    long = [passage(f"N{number}.md", "x" * 4000) for number in range(9)]
    evidence, near = pack(long, [], most=8, per_note=2, tokens=3000)
    assert [one.number for one in evidence] == [1, 2, 3]
    assert near == ()
    same = [passage("A.md", "a\n" * 9 + "a", line=line) for line in (1, 3, 11, 21, 31)]
    evidence, _ = pack(same, [], most=8, per_note=2, tokens=3000)
    assert [one.start_line for one in evidence] == [1, 11]


async def test_control_characters_of_a_model_get_nowhere(start: Start) -> None:
    fake = FakeProvider()
    fake.enqueue([Thinking("h\x00m"), Text("\x00\x1b"), Text("a\x00b\x1b[31m\tc\r\nd\x7f\x9b [1]"), StreamEnd("stop")])
    turn = await ended(start(fake), ask("what is a quorl?"))
    assert turn.events[-1].data["text"] == "ab[31m\tc\nd [1]"
    assert [event.data["text"] for event in turn.events if event.type in ("thinking", "token")] == [
        "hm",
        "ab[31m\tc\nd [1]",
    ]


def test_passages_are_widened_by_neighbours_that_fit() -> None:
    lines = [f"line {number}" for number in range(1, 31)]
    parts = [passage("A.md", "\n".join(lines[at : at + 10]), line=at + 1) for at in (0, 10, 20)]
    middle = replace(parts[1], number=1)
    around = lambda one: [part for part in parts if part.start_line != one.start_line]  # noqa: E731
    (wide,) = widen([middle], around, tokens=1000)
    assert (wide.start_line, wide.end_line, wide.text) == (1, 30, "\n".join(lines))
    assert widen([middle], around, tokens=20) == (middle,)
    both = (middle, replace(parts[0], number=2))
    assert [(one.start_line, one.end_line) for one in widen(both, around, tokens=1000)] == [(11, 30), (1, 10)]


def test_a_neighbour_that_does_not_touch_is_not_taken() -> None:
    here, far = replace(passage("A.md", "a", line=1), number=1), passage("A.md", "b", line=40)
    cut = passage("A.md", "one line of three", line=2)
    assert widen([here], lambda one: [far, replace(cut, end_line=4)], tokens=1000) == (here,)
