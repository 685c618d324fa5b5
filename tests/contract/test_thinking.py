"""Reasoning between tags is told apart from the answer, however the stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.providers.base import Retract, Text, Thinking
from tarsd.providers.thinking import Splitter


def split(*chunks: str) -> tuple[str, str]:
    """The answer and the reasoning as a reader has them at the end."""
    splitter = Splitter()
    answer, reasoning = "", ""
    for piece in [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.end():
        if isinstance(piece, Text):
            answer += piece.text
        elif isinstance(piece, Retract):
            answer = ""
        else:
            reasoning += piece.text
    return answer, reasoning


def test_tags_that_are_cut_between_chunks_are_seen() -> None:
    chunks = ("<thi", "nk>plan A", "plan B</thi", "nk>The ferry leaves at nine. Use `<think>` in XML.")
    assert split(*chunks) == ("The ferry leaves at nine. Use `<think>` in XML.", "plan Aplan B")


WHOLE = {
    "<think>plan</think>\n\nNine.": ("Nine.", "plan"),
    "\n <think>\nplan\n</think>\n\nNine.\n": ("Nine.\n", "\nplan\n"),
    "<thinking>plan</thinking>Nine.": ("Nine.", "plan"),
    "<Think>plan</Think>Nine.": ("Nine.", "plan"),
    "<think></think>Nine.": ("Nine.", ""),
    "<think>a</think> <think>b</think> Nine.": ("Nine.", "ab"),
    "</think>\n\nNine.": ("Nine.", ""),
    "plan A, then B\n</think>\n\nNine.": ("Nine.", "plan A, then B\n"),
    "<think>plan without an end": ("", "plan without an end"),
    "<think>": ("", ""),
    "": ("", ""),
    "<thi": ("<thi", ""),
    "  indented": ("  indented", ""),
    "Use <think> for it.": ("Use <think> for it.", ""),
    "a < b and c </ d": ("a < b and c </ d", ""),
    "`<think>` opens, `</think>` closes.": ("`<think>` opens, `</think>` closes.", ""),
    "``a ` </think>`` b": ("``a ` </think>`` b", ""),
    "```xml\n<think>\nx\n</think>\n```\nSo.": ("```xml\n<think>\nx\n</think>\n```\nSo.", ""),
    "~~~\n```\n</think>\n~~~\nSo.": ("~~~\n```\n</think>\n~~~\nSo.", ""),
    "<think>a</think>The tag </think> closes it.": ("The tag </think> closes it.", "a"),
    "<think>say `</think>` in ticks</think>Nine.": ("Nine.", "say `</think>` in ticks"),
    "<think>```\n</think>\n```\nhm</think>Nine.": ("Nine.", "```\n</think>\n```\nhm"),
    "<think>```\n</think>\n```\nhm": ("", "```\n</think>\n```\nhm"),
    "<think>an odd ` tick</think>Nine.": ("Nine.", "an odd ` tick"),
    "<think>an odd ` tick</think>\nUse `x`.": ("Use `x`.", "an odd ` tick"),
    "<think>```a span```</think>Nine.": ("Nine.", "```a span```"),
}


@pytest.mark.parametrize("text", WHOLE)
def test_the_answer_is_the_same_whole_or_letter_by_letter(text: str) -> None:
    assert split(text) == WHOLE[text]
    assert split(*text) == WHOLE[text]


def test_a_fence_that_reasoning_leaves_open_does_not_swallow_the_answer() -> None:
    answer, reasoning = split("<think>draft:\n```\nx\n</think>\n\nNine.")
    assert answer == "Nine."
    assert reasoning.startswith("draft:")


def test_text_before_a_lone_closing_tag_is_taken_back_and_given_as_reasoning() -> None:
    splitter = Splitter()
    assert splitter.feed("plan ") == [Text("plan ")]
    assert splitter.feed("A</think>Nine.") == [Text("A"), Retract(), Thinking("plan A"), Text("Nine.")]
    assert splitter.feed(" Or ten.</think>") == [Text(" Or ten.</think>")], "once is enough"
    assert splitter.end() == []


def test_a_closing_tag_is_text_where_the_server_tells_reasoning_apart() -> None:
    splitter = Splitter()
    splitter.apart()
    assert splitter.feed("The tag </think> closes it.") == [Text("The tag </think> closes it.")]


def test_plain_text_is_passed_on_at_once() -> None:
    splitter = Splitter()
    assert splitter.feed("Nine") == [Text("Nine")]
    assert splitter.feed(" o'clock <") == [Text(" o'clock ")]
    assert splitter.feed("b>") == [Text("<b>")]
    assert splitter.end() == []


PARTS = st.lists(st.sampled_from(["<think>", "</think>", "`", "``", "```", "~~~", "\n", " ", "a", "<", "</t", "b c"]))


@given(PARTS, st.integers(1, 7))
def test_the_result_does_not_depend_on_how_the_stream_is_cut(parts: list[str], size: int) -> None:
    text = "".join(parts)
    whole = split(text)
    assert split(*(text[at : at + size] for at in range(0, len(text), size))) == whole


@given(st.lists(st.sampled_from(["`", "```", "\n", " ", "a", "<", "<think>"])).map("".join))
def test_an_answer_without_closing_tags_loses_nothing(text: str) -> None:
    answer, reasoning = split("So: " + text)
    assert (answer, reasoning) == ("So: " + text, "")
