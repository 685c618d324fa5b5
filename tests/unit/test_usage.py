"""What models used: kept whatever happens to the file, summed in any order, priced, and bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarsd.config import load
from tarsd.config.settings import Price, UsageSettings
from tarsd.errors import AnswerCut, BadRequest, CeilingReached, ConfigError, ProviderBusy, ProviderRefused
from tarsd.parse.tokens import tokens
from tarsd.protocol import Event
from tarsd.providers.base import (
    Message,
    ModelRequest,
    ProviderEvent,
    StreamEnd,
    Text,
    Thinking,
    ToolCall,
    Usage,
    complete,
)
from tarsd.providers.counting import ReasoningRoom, estimate
from tarsd.providers.fake import FakeProvider
from tarsd.usage import Ledger, Metered, Spender, Spending, Spent, spender
from tarsd.usage.ledger import MOST

DAY = date(2026, 11, 30)
CLAUDE = "anthropic:claude-sonnet-5-5"
PRICES = {CLAUDE: Price(3.0, 15.0, 0.3, 4.0), "openai:own": Price(0.0, 0.0)}


def spending(folder: Path, today: Callable[[], date] = lambda: DAY, **settings: Any) -> Spending:
    return Spending(Ledger(folder / "usage", today), UsageSettings("€", prices=PRICES, **settings))


# ------------------------------------------------------------------------------------------------ the ledger

COUNTS = st.builds(Spent, *[st.integers(0, MOST)] * 4, requests=st.just(1), estimated=st.sampled_from([0, 1]))
ENTRIES = st.tuples(
    st.dates(date(2026, 10, 25), date(2026, 12, 5)), st.sampled_from([CLAUDE, "ollama:ü\n{"]), st.booleans(),
    st.sampled_from(["", "c1", "\ud800 a question?"]), COUNTS, st.sampled_from(["", "again", "torn", "other"]),
)  # fmt: skip


@settings(max_examples=40)
@given(entries=st.lists(ENTRIES, max_size=10), order=st.randoms(use_true_random=False))
def test_sums_are_those_of_the_events_whatever_the_order_and_the_restarts(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Any], order: Any
) -> None:
    sums = []
    for shuffled in (False, True):
        folder, at = tmp_path_factory.mktemp("ledger"), [DAY]
        clock = partial(at.__getitem__, 0)
        ledger, other = Ledger(folder, clock), Ledger(folder, clock)
        if shuffled:
            order.shuffle(entries)
        for day, model, local, conversation, spent, event in entries:
            at[0] = day  # the clock jumps, back as well
            ledger.sums(f"{day:%Y-%m}")
            (other if event == "other" else ledger).add(model, local, conversation, spent)
            if event == "again":
                ledger = Ledger(folder, clock)
            elif event == "torn":
                with (folder / f"{day:%Y-%m}.jsonl").open("ab") as file:
                    file.write(b'{"day": "2026-1')
        total = {account: one for month in ledger.months() for account, one in ledger.sums(month).items()}
        assert sum(total.values(), Spent()) == sum((one[4] for one in entries), Spent())
        assert sum((one for account, one in total.items() if account.local), Spent()) == sum(
            (one[4] for one in entries if one[2]), Spent()
        )
        assert b"question" not in b"".join(file.read_bytes() for file in folder.iterdir())
        sums.append(total)
    assert sums[0] == sums[1]


def test_lines_that_are_none_are_passed_over_and_a_file_that_is_cut_or_taken_away_starts_anew(tmp_path: Path) -> None:
    ledger, file = Ledger(tmp_path, lambda: DAY), tmp_path / "2026-11.jsonl"
    ledger.add("m", False, "", Spent(5, 5, requests=1))
    good = file.read_bytes()
    bad = [b"\xff\xfe", b"[" * 5000, b"[1]", b"null", b'{"day": "2026-11-30"}', good.replace(b"5", b"-5"), b"\0" * 20]
    bad += [good.replace(b": 5", b": " + value) for value in (b"1e400", b'"5"', b"5.5", b"9" * 5000, b"null")]
    bad += [good.replace(b'"2026-11-30"', b"5"), good.replace(b'"m"', b"[]")]
    with file.open("ab") as handle:
        handle.write(b"\n".join(bad) + b"\n" + good)
    for one in (ledger, Ledger(tmp_path)):
        assert sum(one.sums("2026-11").values(), Spent()) == Spent(10, 10, requests=2)
    file.write_bytes(good + good[:9])
    assert sum(ledger.sums("2026-11").values(), Spent()) == Spent(5, 5, requests=1)
    file.unlink()
    assert (ledger.sums("2026-11"), ledger.months(), ledger.trouble) == ({}, [], "")


def test_what_cannot_be_written_counts_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "usage").write_text("in the way")
    today = [DAY]
    one = spending(tmp_path, lambda: today[0], monthly_tokens=20)
    for _ in range(2):
        one.add(CLAUDE, False, Spender("c1"), Spent(5, 5, requests=1))
    assert one.report()["total"]["input_tokens"] == 10
    assert [(reason[:32], str(tmp_path) in hint) for reason, hint in one.problems()] == [
        ("What models use cannot be saved:", True)
    ]
    with pytest.raises(CeilingReached):
        one.check(CLAUDE, local=False)
    (tmp_path / "usage").unlink()
    today[0] = date(2026, 12, 1)
    one.add(CLAUDE, False, Spender("c1"), Spent(5, 5, requests=1))
    kept = [month["input_tokens"] for month in spending(tmp_path).report()["months"]]
    assert (one.problems(), kept) == ([], [5, 10])


# ------------------------------------------------------------------------------------------------ requests

REQUEST = ModelRequest("Be brief. " * 20, (Message("user", "How hot is green tea? " * 20),))
READ = estimate(REQUEST)
SAID = (Thinking("hm"), Text("Eighty degrees."), ToolCall("1", "look", {"at": "tea"}))
WROTE = tokens("hmEighty degrees.look{'at': 'tea'}")
END = StreamEnd()


@pytest.mark.parametrize(
    ("events", "spent"),
    [
        ([*SAID, Usage(100, 20, 40, 30), END], Spent(100, 20, 40, 30, 1, 0)),
        ([*SAID, Usage(100, 20), Usage(130, 25), END], Spent(130, 25, requests=1)),  # of everything so far
        ([*SAID, END], Spent(READ, WROTE, requests=1, estimated=1)),
        (
            [*SAID, Usage(0, 20), END],
            Spent(READ, 20, requests=1, estimated=1),
        ),  # a negative number or a text is read as 0
        ([*SAID, Usage(100, 0), END], Spent(100, WROTE, requests=1, estimated=1)),
        ([*SAID, Usage(10**30, 10**30, 10**30), END], Spent(READ, WROTE, requests=1, estimated=1)),
        ([Usage(100, 20, 90, 90), END], Spent(100, 20, 90, 10, 1, 0)),
        ([Usage(100, 0), END], Spent(100, 0, requests=1)),
        ([*SAID], Spent(READ, WROTE, requests=1, estimated=1)),
        ([*SAID, ProviderBusy("b")], Spent(READ, WROTE, requests=1, estimated=1)),
        ([Usage(100, 1), *SAID, AnswerCut("c")], Spent(100, WROTE, requests=1, estimated=1)),
        ([Usage(100, 90), *SAID], Spent(100, 90, requests=1, estimated=1)),
        ([AnswerCut("c")], Spent(READ, 0, requests=1, estimated=1)),
        ([ProviderBusy("b")], None),
        ([ProviderRefused("r")], None),
    ],
)
async def test_a_request_is_counted_however_it_ends(
    tmp_path: Path, events: Sequence[ProviderEvent | Exception], spent: Spent | None
) -> None:
    one = spending(tmp_path)
    told: list[dict[str, Any]] = []
    spender.set(Spender("c1", lambda **data: told.append(data)))
    provider = Metered(FakeProvider(events, local=False), one)
    seen = []
    try:
        async for event in provider.stream(REQUEST):
            seen.append(event)
    except (ProviderBusy, ProviderRefused, AnswerCut) as error:
        assert error is events[-1]
    assert seen == [event for event in events if not isinstance(event, Exception)]
    kept = {key: one.report(conversation="c1")["conversation"][key] for key in Spent().__dict__}
    assert Spent(**kept) == (Spent() if spent is None else spent)
    assert len(told) == (0 if spent is None else 1)
    if spent is not None:
        assert told[0].items() >= {"model": "fake", "local": False, "input_tokens": spent.input_tokens}.items()
        assert told[0]["estimated"] is bool(spent.estimated)


@pytest.mark.parametrize("how", ["cancelled", "left", "late"])
async def test_a_request_that_is_given_up_is_counted(tmp_path: Path, how: str) -> None:
    one = spending(tmp_path)
    provider = Metered(FakeProvider([Text("Eighty "), 60.0, Text("degrees"), END], local=False), one)
    begun = asyncio.Event()

    async def ask() -> None:
        async with asyncio.timeout(0.05 if how == "late" else 60), aclosing(provider.stream(REQUEST)) as events:
            async for _ in events:
                begun.set()
                if how == "left":
                    return

    task = asyncio.create_task(ask())
    await begun.wait()
    if how == "cancelled":
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    total = one.report()["total"]
    assert (total["input_tokens"], total["output_tokens"], total["estimated"]) == (READ, tokens("Eighty "), 1)


async def test_a_reply_that_is_asked_for_again_counts_twice() -> None:
    rounds: list[list[ProviderEvent]] = [
        [Thinking("hm"), Usage(10, 4), Usage(12, 5, 1, 2), StreamEnd("length")],
        [Text("Hot."), Usage(20, 7, 3), END],
    ]

    async def ask(request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        for event in rounds.pop(0):
            yield event

    events = [event async for event in ReasoningRoom().stream(ask, REQUEST, 100_000)]
    counts = [event for event in events if isinstance(event, Usage)]
    assert counts == [Usage(10, 4), Usage(12, 5, 1, 2), Usage(32, 12, 4, 2)]


# ------------------------------------------------------------------------------------------------ money, the ceiling

MILLION = Spent(1_000_000, 200_000, 500_000, 100_000, requests=1)
COST = 0.4 * 3 + 0.5 * 0.3 + 0.1 * 4 + 0.2 * 15


def test_sums_by_model_day_month_and_conversation(tmp_path: Path) -> None:
    today = [date(2026, 10, 31)]
    one = spending(tmp_path, lambda: today[0])
    one.add(CLAUDE, False, Spender("c1"), MILLION)
    today[0] = DAY
    one.add(CLAUDE, False, Spender("c1"), MILLION)
    one.add(CLAUDE, False, Spender("c2"), replace(MILLION, estimated=1))
    one.add("ollama:qwen3", True, Spender("c1"), Spent(70, 7, requests=1))
    told = one.report(conversation="c1")
    assert [(row["model"], row["input_tokens"], row["cost"]) for row in told["models"]] == [
        (CLAUDE, 2_000_000, pytest.approx(2 * COST)),
        ("ollama:qwen3", 70, None),
    ]
    assert [(row["month"], row["requests"]) for row in told["months"]] == [("2026-11", 3), ("2026-10", 1)]
    assert [(row["day"], row["requests"]) for row in told["days"]] == [("2026-11-30", 3)]
    assert (told["conversation"]["requests"], told["conversation"]["cost"]) == (3, pytest.approx(2 * COST))
    assert one.report("2026-10")["total"]["cost"] == pytest.approx(COST)
    assert one.status() == {"tokens": 2_400_000, "cost": pytest.approx(2 * COST), "line": one.line()}
    assert one.line() == "This month: about 2,400,000 tokens, 9.50 €"
    shown = one.as_markdown("c1")
    assert "| This conversation | 2,000,070 | 400,007 | 9.50 € |" in shown
    assert shown.endswith("\n\nThis month: about 2,400,000 tokens, 9.50 €.")
    for month in ("2026", "2026-1x", "../../x", "２０２６-11", "2026-11-30"):
        with pytest.raises(BadRequest):
            one.report(month)


@pytest.mark.parametrize(
    ("settings", "model", "local", "said"),
    [
        ({}, CLAUDE, False, ""),
        ({"monthly_ceiling": 5.0}, CLAUDE, False, ""),
        (
            {"monthly_ceiling": 4.75}, CLAUDE, False,
            "The monthly ceiling of 4.75 € is reached: 4.75 € was spent this month.",
        ),
        (
            {"monthly_ceiling": 0.0}, CLAUDE, False,
            "The monthly ceiling of 0.00 € is reached: 4.75 € was spent this month.",
        ),
        ({"monthly_ceiling": 1.0}, CLAUDE, True, ""),
        ({"monthly_ceiling": 1.0}, "openai:own", False, ""),
        (
            {"monthly_ceiling": 9.0}, "openai:new", False,
            "The monthly ceiling of 9.00 € cannot be kept: openai:new has no price.",
        ),
        ({"monthly_tokens": 1_200_001}, CLAUDE, False, ""),
        (
            {"monthly_tokens": 1_200_000}, "openai:new", False,
            "The monthly ceiling of 1,200,000 tokens is reached: 1,200,000 were used this month.",
        ),
        ({"monthly_tokens": 1}, "openai:own", False, ""),
        ({"monthly_tokens": 1}, "ollama:qwen3", True, ""),
    ],
)  # fmt: skip
async def test_the_ceiling_holds_for_models_that_cost(
    tmp_path: Path, settings: dict[str, Any], model: str, local: bool, said: str
) -> None:
    today = [DAY]
    one = spending(tmp_path, lambda: today[0], **settings)
    one.add(CLAUDE, False, Spender(), MILLION)
    one.add("openai:own", False, Spender(), replace(MILLION, requests=9))
    one.add("ollama:qwen3", True, Spender(), MILLION)
    provider = FakeProvider("ok", local=local)
    provider.name = model
    metered = Metered(provider, one)
    for ask in (metered.prepare, lambda: complete(metered, REQUEST)):
        if said:
            with pytest.raises(CeilingReached) as caught:
                await ask()
            assert caught.value.message == said
            assert "a model on this machine" in caught.value.hint
            assert provider.requests == []
        else:
            await ask()
    today[0] = date(2026, 12, 1)  # nothing was spent in it yet
    if settings != {"monthly_ceiling": 0.0} and "cannot be kept" not in said:
        one.check(model, local)


def test_what_a_turn_says_of_itself(tmp_path: Path) -> None:
    one = spending(tmp_path, monthly_ceiling=20.0, monthly_tokens=5_000_000)

    def used(model: str, local: bool, spent: Spent) -> Event:
        told: list[dict[str, Any]] = []
        one.add(model, local, Spender("c", lambda **data: told.append(data)), spent)
        return Event(1, "usage", told[0])

    assert one.said([Event(1, "token", {"text": "x"})]) == {}
    local = used("ollama:qwen3", True, Spent(1_500, 20, requests=1))
    assert one.said([local]) == {"usage": "1,520 tokens"}
    costs = [used(CLAUDE, False, MILLION), used(CLAUDE, False, Spent(1, 1, requests=1, estimated=1))]
    assert one.said([local, *costs]) == {
        "usage": "About 1,201,522 tokens, 4.75 €",
        "month": "This month: about 1,200,002 of 5,000,000 tokens, 4.75 € of 20.00 €",
    }
    used("openai:new", False, Spent(1, 1, requests=1))
    assert one.line().endswith(" of 20.00 € (without openai:new: no price is set)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("currency = 5", "usage.currency: must be text"),
        ("monthly_ceiling = -1", "usage.monthly_ceiling"),
        ("monthly_ceiling = nan", "usage.monthly_ceiling"),
        ('monthly_ceiling = "20 €"', "usage.monthly_ceiling: must be a number"),
        ("monthly_ceiling = 20", "usage.monthly_ceiling: needs usage.prices"),
        ("monthly_tokens = 2.5", "usage.monthly_tokens: must be a whole number"),
        ("ceiling = 5", "unknown setting usage.ceiling"),
        ("prices = 3", "usage.prices: must be tables"),
        ('prices = { "openai:m" = 3 }', "usage.prices: must be tables"),
        ('[usage.prices."openai:m"]\ninput = 3', "usage.prices.openai:m: needs output"),
        ('[usage.prices."openai:m"]\ninput = 3\noutput = "15"', "usage.prices.openai:m.output: must be a number"),
        (
            '[usage.prices."openai:m"]\ninput = 3\noutput = 15\ncached = 1',
            "unknown setting usage.prices.openai:m.cached",
        ),
        ('[usage.prices."gpt"]\ninput = 3\noutput = 15', "usage.prices.gpt"),
    ],
)
def test_settings_that_cannot_be_meant_are_named(home: Path, vault: Path, text: str, said: str) -> None:
    (home / "config.toml").write_text(f"[usage]\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(vault=vault)
    assert len(caught.value.problems) == 1
    assert said in caught.value.problems[0]


def test_settings_are_read(home: Path, vault: Path) -> None:
    text = '[usage]\ncurrency = "€"\nmonthly_ceiling = 20\n[usage.prices."openai:m"]\ninput = 3\noutput = 15.5\n'
    (home / "config.toml").write_text(text, encoding="utf-8")
    assert load(vault=vault).usage == UsageSettings("€", 20, None, {"openai:m": Price(3, 15.5)})
