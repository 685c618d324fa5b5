"""Every form of reasoning that models write into their answers, however the stream is cut."""

import pytest

from tarsd.providers.anthropic_wire import MessageDecoder
from tarsd.providers.base import Retract, Text, Thinking
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
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text[:cut]}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text[cut:]}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            )
            for event in decoder.feed(kind)
        ]
        assert "".join(event.text for event in events if isinstance(event, Text)) == ANSWER
        assert "".join(event.text for event in events if isinstance(event, Thinking)).strip() == "The plan."


ENDS = [
    "<|return|>", "<|im_end|>\n", " <|eot_id|>", "<|end|><|return|>", "<|endoftext|>", "<end_of_turn>\n", "</s>",
    "<｜end▁of▁sentence｜>", "<eos>", "\n\n<|im_end|>\n<|endoftext|>\n", "<|IM_END|>",
]  # fmt: skip


@pytest.mark.report("https://github.com/openai/harmony/issues/57")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("form", ["", FORMS[0], FORMS[5]])
def test_the_end_of_a_turn_is_not_shown_at_any_cut(end: str, form: str) -> None:
    text = (form.format("hm") if form else "") + ANSWER + end
    for cut in range(len(text) + 1):
        assert _split(text[:cut], text[cut:])[0].rstrip() == ANSWER
    assert _split(*text)[0].rstrip() == ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "Models end with <|im_end|> or <|return|>.",
        "It ends with `<|im_end|>`",
        "```\nNine.<|return|>\n```",
        "<|im_end|> is a mark.",
        "This is <s>gone</s>",
        "a <",
        "Nine.<|im_en",
        "<|return|>\nand so on",
    ],
)
def test_an_end_that_is_mentioned_stays_text_at_any_cut(text: str) -> None:
    for cut in range(len(text) + 1):
        assert _split(text[:cut], text[cut:])[0] == text
    assert _split(*text)[0] == text


CALL = '<|constrain|>json<|message|>{"path": "a.md"}<|call|>'


@pytest.mark.parametrize(
    "head",
    [
        "<|channel|>commentary to=functions.none ",
        "<|channel|>analysis to=functions.none ",
        "<|start|>assistant to=functions.none<|channel|>commentary ",
    ],
)
@pytest.mark.parametrize("before", ["", "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant"])
def test_a_call_of_harmony_before_the_final_message_is_no_answer(head: str, before: str) -> None:
    text = f"{before if head[2] == 'c' else ''}{head}{CALL}"
    final = f"<|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>"
    for cut in range(len(text + final) + 1):
        splitter = Splitter()
        pieces = [*splitter.feed((text + final)[:cut]), *splitter.feed((text + final)[cut:]), *splitter.end()]
        shown = ""
        for piece in pieces:
            shown = shown + piece.text if isinstance(piece, Text) else "" if isinstance(piece, Retract) else shown
        assert shown == ANSWER == splitter.said
    assert CALL.removesuffix("<|call|>") in _split(text)[0]
