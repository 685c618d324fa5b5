"""Every form of reasoning that models write into their answers, however the stream is cut."""

from types import SimpleNamespace as _event

import pytest

from tarsd.providers.anthropic_wire import MessageDecoder
from tarsd.providers.base import Text, Thinking
from tarsd.providers.thinking import Splitter

ANSWER = "Earplugs help [1]."
FORMS = [
    "<think>{}</think>",
    "<thinking>{}</thinking>",
    "[THINK]{}[/THINK]",
    "<thought>\n{}\n</thought>\n",
    "<seed:think>{}</seed:think>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel|>analysis<|message|>{}<|channel|>final<|message|>",
    "<|channel>thought\n{}<channel|>",
]


def _split(*pieces: str) -> tuple[str, str]:
    splitter = Splitter()
    events = [event for piece in pieces for event in splitter.feed(piece)] + splitter.end()
    answer = "".join(event.text for event in events if isinstance(event, Text))
    assert answer == splitter.said
    return answer, "".join(event.text for event in events if isinstance(event, Thinking)).strip()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("thought", ["The user asks about sleep.", "A [1] of <b> | and a < or two."])
def test_reasoning_is_no_answer_at_any_cut(form: str, thought: str) -> None:
    text = form.format(thought) + ANSWER
    for cut in range(len(text) + 1):
        assert _split(text[:cut], text[cut:]) == (ANSWER, thought)
    assert _split(*text) == (ANSWER, thought)


@pytest.mark.parametrize(
    "text",
    [
        "Some models write <thought> and </thought>, others [THINK].",
        "Harmony writes <|channel|>analysis<|message|> and <|end|> and <channel|>.",
        "Write `[/THINK]` or `</seed:think>` to end it.",
        "```\n[THINK]x[/THINK]\n<seed:think>y</seed:think>\n```\nThat is the form.",
        "[Think twice] is a note.",
        "<thoughtful> is no tag.",
    ],
)
def test_a_tag_that_is_mentioned_stays_text_at_any_cut(text: str) -> None:
    for cut in range(len(text) + 1):
        assert _split(text[:cut], text[cut:]) == (text, "")
    assert _split(*text) == (text, "")


def test_reasoning_ends_only_as_it_began() -> None:
    assert _split("[THINK]a </think> b[/THINK]", ANSWER) == (ANSWER, "a </think> b")


@pytest.mark.parametrize("form", FORMS)
def test_an_anthropic_message_is_told_apart_like_the_others(form: str) -> None:
    text = form.format("The plan.") + ANSWER
    for cut in range(1, len(text)):
        decoder = MessageDecoder()
        events = [
            event
            for kind in (
                _event(type="content_block_delta", index=0, delta=_event(type="text_delta", text=text[:cut])),
                _event(type="content_block_delta", index=0, delta=_event(type="text_delta", text=text[cut:])),
                _event(type="message_delta", delta=_event(stop_reason="end_turn")),
            )
            for event in decoder.feed(kind)
        ]
        assert "".join(event.text for event in events if isinstance(event, Text)) == ANSWER
        assert "".join(event.text for event in events if isinstance(event, Thinking)).strip() == "The plan."
