"""A request that a server finds too long is made shorter, by what the server tells, before a person is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarsd.config import ChatSettings
from tarsd.errors import ContextTooLong, ProviderError
from tarsd.providers import make
from tarsd.providers.base import ModelRequest, StreamEnd, Text, Thinking, Usage
from tarsd.providers.fake import FakeProvider
from tests.support.turns import QUORL, Shelf, Talk, ask, of, passage

REPORT = "https://github.com/jaylfc/taosmd/issues/104"
ROWS = "\n".join(f"| {n * 7919 % 997}.{n % 10} | {n * 31 % 101} | quorl |" for n in range(40))
NOTES = tuple(passage(f"Quorl {n}.md", f"{ROWS}\n{n}", relevance=0.9 - n / 100) for n in range(6))


def too_long(asked: int = 0, window: int = 0) -> ContextTooLong:
    error = ContextTooLong("The request is longer than it reads.")
    error.asked, error.window = asked, window
    return error


def size(request: ModelRequest) -> int:
    return len(request.system) + sum(len(message.text) for message in request.messages)


async def asked(folder: Path, fake: FakeProvider, *messages: str) -> Any:
    """The last turn of a conversation about six notes of numbers."""
    talk = Talk(folder, Shelf(QUORL, *NOTES), fake)
    for message in messages or ("what is a quorl?",):
        turn = await talk.ended(ask(message))
    return turn


@pytest.mark.report(REPORT)
@pytest.mark.parametrize("errors", [1, 2])
@pytest.mark.parametrize(
    ("told", "window"), [((0, 0), 100_000), ((9000, 8000), 100_000), ((0, 6000), 100_000), ((40_000, 0), 20_000)]
)
async def test_what_is_too_long_is_sent_again_with_less(
    tmp_path: Path, errors: int, told: tuple[int, int], window: int
) -> None:
    fake = FakeProvider(*[[too_long(*told)]] * errors, "It is a wedge [1].", window=window)
    turn = await asked(tmp_path, fake)
    sizes = [size(request) for request in fake.requests]
    assert turn.events[-1].type == "done" and turn.events[-1].data["text"].startswith("It is a wedge")
    assert len(sizes) == errors + 1 and sizes == sorted(set(sizes), reverse=True)
    assert any("did not fit" in notice for notice in turn.events[-1].data["notices"])
    shown = {source["path"] for source in of(turn, "done")[0].data.get("citations", ())}
    assert shown <= {passage.path for passage in fake.requests[-1].evidence}


@pytest.mark.parametrize("errors", [3, 9])
async def test_a_person_is_told_in_the_end(tmp_path: Path, errors: int) -> None:
    fake = FakeProvider(*[[too_long()]] * errors)
    turn = await asked(tmp_path, fake)
    assert turn.events[-1].data["error"]["code"] == "context_too_long" and len(fake.requests) == 3


@pytest.mark.parametrize(
    "begun", [[Text("It is")], [Text("It is"), Thinking("hm")]], ids=["in its words", "and then thought"]
)
async def test_an_answer_that_has_begun_is_not_asked_for_again(tmp_path: Path, begun: list[Any]) -> None:
    fake = FakeProvider([*begun, too_long()])
    turn = await asked(tmp_path, fake)
    assert turn.events[-1].type == "failed" and len(fake.requests) == 1


@pytest.mark.parametrize("error", [ProviderError("No."), too_long()], ids=["another error", "nothing to leave out"])
async def test_nothing_else_is_asked_again(tmp_path: Path, error: ProviderError) -> None:
    fake = FakeProvider([error])
    turn = await Talk(tmp_path, Shelf(), fake).ended(ask("hello"))
    assert turn.events[-1].type == "failed" and len(fake.requests) == 1


async def test_a_reply_without_room_is_asked_for_with_less(tmp_path: Path) -> None:
    fake = FakeProvider([too_long(1000, 2000)], "here")
    turn = await Talk(tmp_path, Shelf(), fake).ended(ask("hello"))
    assert turn.events[-1].type == "done"
    assert fake.requests[1].max_tokens < fake.requests[0].max_tokens


@pytest.mark.report(REPORT)
@pytest.mark.parametrize("how", ["usage", "refusal"])
async def test_what_a_model_makes_of_text_is_learnt(tmp_path: Path, how: str) -> None:
    """From the counts of an answer, or from those of a refusal; the next prompt fits at once."""
    fake = FakeProvider(window=7_000)
    talk = Talk(tmp_path, Shelf(QUORL, *NOTES), fake)
    probe = FakeProvider("x", window=7_000)
    await Talk(tmp_path / "probe", Shelf(QUORL, *NOTES), probe).ended(ask("what is a quorl?"))
    before = size(probe.requests[0])
    counted = before * 2
    first: list[Any] = [Text("A wedge."), Usage(counted, 5), StreamEnd()] if how == "usage" else [too_long(counted)]
    for reply in [first] if how == "usage" else [first, "A wedge."]:
        fake.enqueue(reply)
    await talk.ended(ask("what is a quorl?"))
    fake.enqueue("A wedge.")
    await talk.ended(ask("what is a quorl?", conversation="d"))
    assert talk.services.ratios.of("fake") > 1.5
    assert size(fake.requests[-1]) < 0.8 * before
    assert len(fake.requests) == (2 if how == "usage" else 3)


@pytest.mark.parametrize("model", ["openai:small-model", "ollama:small-model"])
@pytest.mark.parametrize("context", [3000, 12_000])
def test_the_context_of_the_settings_reaches_every_provider(model: str, context: int) -> None:
    settings = replace(ChatSettings(), context=context)
    assert make(model, settings, lambda vendor: "key").window == context
