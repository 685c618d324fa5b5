"""Turns without a model: an exact answer of the vault's data comes before any search, with its sources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tarsd.ask import Answer
from tarsd.providers.fake import FakeProvider
from tests.support.turns import DIARY, QUORL, Shelf, Talk, ask, of, types

CITED = replace(QUORL, number=1)
EXACT = Answer("2 notes:\n\n- [[Quorl]] [1] (`Quorl.md:1`)", (CITED,), (QUORL.note,))


def shelf(**answers: Answer) -> Shelf:
    made = Shelf(QUORL, DIARY)
    made.exact = {"What is overdue?": EXACT, **answers}
    return made


async def test_an_exact_answer_is_given_with_its_sources_and_nothing_is_searched_for(tmp_path: Path) -> None:
    held = shelf()
    turn = await Talk(tmp_path, held).ended(ask("What is overdue?"))
    assert types(turn) == ["retrieved", "token", "done"]
    assert turn.text == EXACT.text
    assert [source["path"] for source in turn.events[0].data["sources"]] == ["Quorl.md"]
    assert held.asked == []
    assert not turn.private


async def test_a_model_is_asked_whatever_the_data_says(tmp_path: Path) -> None:
    turn = await Talk(tmp_path, shelf(), FakeProvider("Said.")).ended(ask("What is overdue?"))
    assert turn.text == "Said."


async def test_what_refers_back_or_names_a_note_is_searched_for(tmp_path: Path) -> None:
    held = shelf(**{"And in April?": EXACT, "What is overdue in [[Quorl]]?": EXACT})
    talk = Talk(tmp_path, held)
    for message in ("a quorl?", "And in April?", "What is overdue in [[Quorl]]?"):
        assert "2 notes" not in (await talk.ended(ask(message))).text
    assert "2 notes" in (await talk.ended(ask("What is overdue?", "d"))).text


async def test_an_answer_that_counts_private_notes_is_private_with_all_that_it_rests_on(tmp_path: Path) -> None:
    counted = Answer("2: so many.", (CITED,), (QUORL.note, DIARY.note))
    turn = await Talk(tmp_path, shelf(**{"How many?": counted})).ended(ask("How many?"))
    assert turn.private
    (retrieved,) = of(turn, "retrieved")
    assert {origin["path"] for origin in retrieved.data["drew_on"]} == {"Quorl.md", "Private/Diary.md"}


async def test_a_time_narrows_the_search_before_the_whole_question_is_tried(tmp_path: Path) -> None:
    held = shelf()
    await Talk(tmp_path, held).ended(ask("What of the wibble in May 2026?"))
    assert held.asked == [
        "after:2026-04-30 before:2026-06-01 What of the wibble in ?",
        "What of the wibble in May 2026?",
    ]
