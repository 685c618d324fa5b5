"""Citations: read in whatever form a model writes them, written in one, and by name in what later turns are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd import compact
from tarsd.chat.prompt import PromptParts, fit
from tarsd.citation import finish, inert, without_numbers
from tarsd.protocol import Event
from tarsd.session import TurnRecord
from tests.support.turns import passage

QUORL = passage("Quorl.md", "A quorl is the brass wedge that holds the ferry ramp level.")
NIGHTS = passage("Health/Night shift sleep.md", "Earplugs and naps.")


def test_quotes_and_code_of_others_are_left_alone() -> None:
    text = "> [[Ghost]] [7]\n\n`[[Ghost]] [7]`\n\n```\n[[Ghost]] [7]\n```\nend [7] a[7] [x][7](y) [[Ghost#H|seen]]"
    done, citations = finish(text, [replace(QUORL, number=1)], lambda name: False)
    assert done == text.replace("end [7]", "end [7?]").replace("[[Ghost#H|seen]]", "seen")
    assert citations == []


@pytest.mark.parametrize(
    ("text", "expected", "cited"),
    [
        ("Green [1][2].", "Green [1][2].", [1, 2]),
        ("Forged [7][8].", "Forged [7?][8?].", []),
        ("Green[1].", "Green[1].", [1]),
        ("Green[1][9].", "Green[1][9?].", [1]),
        ("In [2, 1] and [1; 9] and [9, 10]", "In [2, 1] and [1; 9?] and [9?, 10?]", [2, 1]),
        ("In [1]–[3], [1-3]", "In [1]–[3], [1-3]", [1, 2, 3]),
        ("In [2-9] and [8]-[9]", "In [2-9?] and [8?]-[9?]", [2, 3]),
        ("So [[Harbour]][1], [2][[Harbour]]", "So [[Harbour]][1], [2][[Harbour]]", [1, 2]),
        ("As [1]: green. [9](u) [9][r] [x][9] [x][9](y)", "As [1]: green. [9](u) [9][r] [x][9] [x][9](y)", [1]),
        ("[9]: https://x\n [1]: https://y\na[^9] [[9]]", "[9]: https://x\n [1]: https://y\na[^9] [[9]]", []),
        ("arr[7] and arr[1].length and arr[1] = 2", "arr[7] and arr[1].length and arr[1] = 2", []),
        ("[2026] [1000, 1]", "[2026] [1000, 1]", []),
        (r"said \[1], \[1, 2], \[9] and [2]", r"said \[1], \[1, 2], \[9] and [2]", [2]),
    ],
)
def test_numbers_are_read_however_they_are_written_together(text: str, expected: str, cited: list[int]) -> None:
    evidence = [replace(QUORL, number=number) for number in (1, 2, 3)]
    done, citations = finish(text, evidence, lambda name: True)
    assert (done, [one["n"] for one in citations]) == (expected, cited)


@pytest.mark.parametrize(
    ("text", "expected", "cited"),
    [
        ("Earplugs help [[1]] and naps [[2]].", "Earplugs help [1] and naps [2].", [1, 2]),
        ("Earplugs help 【1】 and naps【2†L3-L5】.", "Earplugs help [1] and naps[2].", [1, 2]),
        ("Earplugs help[^1] and naps [^2].", "Earplugs help[1] and naps [2].", [1, 2]),
        ("Earplugs [1](#1), naps [2](Health/Night%20shift%20sleep.md).", "Earplugs [1], naps [2].", [1, 2]),
        ("Earplugs [1, 2] and naps [1-3], [2–3]", "Earplugs [1, 2] and naps [1-3], [2–3]", [1, 2, 3]),
        ("[Passage 1], [passage n=2], [Source 3], [Quelle 1]", "[1], [2], [3], [1]", [1, 2, 3]),
        ("［1］ and [１] and [n=2] and [#3]", "[1] and [1] and [2] and [3]", [1, 2, 3]),
        ("[[1, 2]] [[1], [3]] [[1]][[2]] [^1][^2] [^1, ^3]", "[1, 2] [1], [3] [1][2] [1][2] [1, 3]", [1, 2, 3]),
        ("[1, lines 18-22] [2 L3] [3: line 4]", "[1] [2] [3]", [1, 2, 3]),
        ("[1]() and [2](2) and [[3]](#3)", "[1] and [2] and [3]", [1, 2, 3]),
        ("【1†source】【2】", "[1][2]", [1, 2]),
        # what is none
        ("[[2026]] [[7]] 【9】 [^8]", "[[2026]] [[7]] 【9】 [^8]", []),
        ("As said[^1].\n\n[^1]: a footnote", "As said[^1].\n\n[^1]: a footnote", []),
        ("[1](https://example.org) ![1](a.png)", "[1](https://example.org) ![1](a.png)", []),
        ("row[n1] and row[#2] and x = [n1, y]", "row[n1] and row[#2] and x = [n1, y]", []),
        ("`[[1]]`\n\n> 【1】\n\n```\n[^1]\n```", "`[[1]]`\n\n> 【1】\n\n```\n[^1]\n```", []),
        ("[2](Other.md) [1](Quorl) [2](Quorl.md#A)", "[2](Other.md) [1] [2](Quorl.md#A)", [1]),
    ],
)
def test_every_form_that_models_use_is_a_citation(text: str, expected: str, cited: list[int]) -> None:
    evidence = [replace(QUORL, number=1), replace(NIGHTS, number=2), replace(QUORL, number=3)]
    done, citations = finish(text, evidence, lambda name: name in {"2026", "7"})
    assert (done, [one["n"] for one in citations]) == (expected, cited)
    assert finish(done, evidence, lambda name: name in {"2026", "7"}) == (done, citations)


def test_a_note_that_is_called_by_a_number_keeps_its_link() -> None:
    text = "See [[1]] and [[2]]."
    assert finish(text, [replace(QUORL, number=1), replace(NIGHTS, number=2)], lambda name: name == "1")[0] == (
        "See [[1]] and [2]."
    )


@pytest.mark.parametrize(
    "text",
    ["see [1]", "[1, 2] and [1–3]", "[ 1 ] [2?] [1 & 2] [1—3]", r"it was \[1] before", "[1][2]", "日記[1]だ", "[9]"],
)
def test_what_somebody_else_wrote_cites_nothing(text: str) -> None:
    evidence = [replace(QUORL, number=number) for number in (1, 2, 3)]
    row = f"- [ ] {inert(text)} — [[Quorl]] [3]"
    done, citations = finish(row, evidence, lambda name: True)
    assert (done, [one["n"] for one in citations]) == (row, [3])
    assert inert(text).replace("\\[", "[") == text.replace("\\[", "[")


def test_what_no_model_wrote_has_no_other_forms() -> None:
    row = "- [ ] As in [^1], 【1】, [Source 1] and [[1]] — [[Quorl]] [1]"
    evidence = [replace(QUORL, number=1)]
    assert finish(row, evidence, lambda name: name == "Quorl", by_model=False)[0] == row.replace("[[1]]", "1")


FORMS = ("[{}]", "[[{}]]", "【{}】", "[^{}]", "[{}](#{})", "［{}］", "[Passage {}]", "【{}†L1-L2】")


@given(st.lists(st.tuples(st.sampled_from(FORMS), st.integers(1, 4), st.sampled_from([" ", ", ", "\n", " so "]))))
def test_mixed_forms_come_out_as_one(written: list[tuple[str, int, str]]) -> None:
    evidence = [replace(QUORL, number=number) for number in (1, 2, 3, 4)]
    text = "".join(f"so{gap}{form.format(number, number)}." for form, number, gap in written)
    done, citations = finish(text, evidence, lambda name: False)
    assert done == "".join(f"so{gap}[{number}]." for _, number, gap in written)
    assert [one["n"] for one in citations] == list(dict.fromkeys(number for _, number, _ in written))


# ------------------------------------------------------------------------------------------------ in later turns


SOURCES = [
    {"n": 1, "link": "[[Quorl#Use]]"},
    {"n": 2, "link": "[[Health/Night shift sleep]]"},
    {"n": 3, "link": "[C# tips](C%23%20tips.md)"},
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wax is best [1].", "Wax is best [[Quorl#Use]]."),
        (
            "Wax[1][2], foam [2-3]",
            "Wax [[Quorl#Use]], [[Health/Night shift sleep]], foam"
            " [[Health/Night shift sleep]], [C# tips](C%23%20tips.md)",
        ),
        ("Both [1, 3] and [1; 1].", "Both [[Quorl#Use]], [C# tips](C%23%20tips.md) and [[Quorl#Use]]."),
        ("Not known [9?] or [9].", "Not known or."),
        ("arr[7] and [2](https://a.b) and `[1]`", "arr[7] and [2](https://a.b) and `[1]`"),
        ("> [1]\n\nno number", "> [1]\n\nno number"),
        ("", ""),
    ],
)
def test_a_number_of_an_earlier_turn_is_told_by_its_link(text: str, expected: str) -> None:
    assert without_numbers(text, SOURCES) == expected


def earlier(text: str) -> TurnRecord:
    events = (Event(1, "retrieved", {"sources": SOURCES}), Event(2, "done", {"text": text, "citations": SOURCES[:1]}))
    return TurnRecord("t", "What helps?", 0.0, "r", events=events)


def test_no_number_of_an_earlier_turn_reaches_a_model_again() -> None:
    fitted = fit(PromptParts("And now?", history=(earlier("Wax is best [1]. Naps too [2]."),)), 8_000, 500)
    said = [message.text for message in fitted.request.messages if message.role == "assistant"]
    assert said == ["Wax is best [[Quorl#Use]]. Naps too [[Health/Night shift sleep]]."]
    assert "[[Quorl#Use]]" in (summary := compact.prompt([earlier("Wax is best [1].")])[1]) and "[1]" not in summary


def test_an_answer_that_broke_off_is_told_by_links_too() -> None:
    events = (Event(1, "retrieved", {"sources": SOURCES}), Event(2, "token", {"text": "Wax [1]"}))
    assert TurnRecord("t", "?", 0.0, "r", events=events).retold == "Wax [[Quorl#Use]]"
