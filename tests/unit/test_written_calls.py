"""Calls of tools that a model writes as its answer are made; anything less is an answer."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tarsd.providers.base import ProviderEvent, StreamEnd, Text, ToolCall, ToolSpec
from tarsd.providers.written_calls import calls_in, made, may_be_calls

READ = ToolSpec(
    "note_read", "", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)  # fmt: skip
LIST = ToolSpec("note_list", "", {"type": "object", "properties": {"most": {"type": "integer"}}})
TOOLS = (READ, LIST)
JSON = '{"name": "note_read", "arguments": {"path": "a b.md"}}'
GIVEN = '{"path": "a b.md"}'

WHOLE = {
    "tags": f"<tool_call>\n{JSON}\n</tool_call>",
    "tag not closed": f"<tool_call>\n{JSON}",
    "fence": f"```json\n{JSON}\n```",
    "fence without a language": f"```\n{JSON}\n```",
    "fenced tags": f"```xml\n<tool_call>{JSON}</tool_call>\n```",
    "bare": JSON,
    "parameters": '{"name": "note_read", "parameters": {"path": "a b.md"}}',
    "arguments in a string": '{"name": "note_read", "arguments": "{\\"path\\": \\"a b.md\\"}"}',
    "openai": f'{{"type": "function", "function": {JSON}}}',
    "openai's list": f'{{"tool_calls": [{{"id": "1", "type": "function", "function": {JSON}}}]}}',
    "python": '[note_read(path="a b.md")]',
    "python without a list": "note_read(path='a b.md')",
    "gemma": '```tool_code\nprint(default_api.note_read(path="a b.md"))\n```',
    "mistral": f"[TOOL_CALLS][{JSON}]",
    "mistral's newer": f"[TOOL_CALLS]note_read[ARGS]{GIVEN}",
    "llama": f"<|python_tag|>{JSON}<|eom_id|>",
    "llama's function": f"<function=note_read>{GIVEN}</function>",
    "llama's python": '<|python_tag|>note_read.call(path="a b.md")<|eom_id|>',
    "qwen": "<tool_call>\n<function=note_read>\n<parameter=path>\na b.md\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>note_read\n<arg_key>path</arg_key>\n<arg_value>a b.md</arg_value>\n</tool_call>",
    "harmony": f"<|channel|>commentary to=functions.note_read <|constrain|>json<|message|>{GIVEN}<|call|>",
    "harmony, after its start": f"<|start|>assistant<|channel|>commentary to=functions.note_read<|message|>{GIVEN}",
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.note_read:0<|tool_call_argument_begin|>"
    f"{GIVEN}<|tool_call_end|><|tool_calls_section_end|>",
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>note_read\n```json\n"
    f"{GIVEN}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "granite": f"<|tool_call|>[{JSON}]",
}


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE.keys())
def test_a_reply_that_is_wholly_a_call_is_that_call_and_held_back_throughout(text: str) -> None:
    (call,) = calls_in(f" {text}\n", TOOLS)
    assert (call.name, call.arguments) == ("note_read", {"path": "a b.md"}) and call.id
    assert all(may_be_calls(text[:end], TOOLS) for end in range(len(text) + 1))


SEVERAL = {
    "tags": f'<tool_call>{JSON}</tool_call>\n<tool_call>{{"name": "note_list", "arguments": {{}}}}</tool_call>',
    "list": f'[{JSON}, {{"name": "note_list", "arguments": {{}}}}]',
    "python": '[note_read(path="a b.md"), note_list()]',
    "mistral": f"[TOOL_CALLS]note_read[ARGS]{GIVEN}[TOOL_CALLS]note_list[ARGS]{{}}",
    "llama": f'{JSON}; {{"name": "note_list", "parameters": {{}}}}',
}


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL.keys())
def test_several_calls_in_one_reply_are_all_made(text: str) -> None:
    first, second = calls_in(text, TOOLS)
    assert (first.name, second.name) == ("note_read", "note_list") and first.id != second.id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sleep [1] helps.",
        f"I will call it: {JSON}",
        f"{JSON} is how it is called.",
        JSON.replace("note_read", "note_burn"),
        JSON.replace('"path"', '"file"'),
        JSON.replace('"a b.md"', "7"),
        '{"name": "note_read", "arguments": ["a b.md"]}',
        '{"name": "note_read"}',
        '{"name": "Ada", "age": 36}',
        '[1, 2]',
        'note_read("a b.md")',
        "note_read(path=open('x'))",
        "note_read(path=x)",
        '[note_read(path="a b.md"), 3]',
        "```python\nprint(1)\n```",
        "<tool_call></tool_call>",
        "<tool_call>note_read</tool_call>",
        JSON[:-1],
        "[" * 5000,
    ],
)  # fmt: skip
def test_anything_less_is_text(text: str) -> None:
    assert calls_in(text, TOOLS) == []
    assert asyncio.run(_through(list(text))) == [Text(text), StreamEnd()] or not text or not may_be_calls(text, TOOLS)


@pytest.mark.parametrize("text", ["Sl", "[1", "```sh\n", '{"title"', "- a", "<b>", "note is", "[[N"])
def test_an_answer_is_not_held_back(text: str) -> None:
    assert not may_be_calls(text, TOOLS)


async def _through(pieces: list[str], end: StreamEnd | None = None) -> list[ProviderEvent]:
    async def stream() -> AsyncGenerator[ProviderEvent, None]:
        for piece in pieces:
            yield Text(piece)
        yield end or StreamEnd()

    return [event async for event in made(stream(), TOOLS)]


async def test_what_was_held_is_said_when_the_reply_is_cut_or_no_call_after_all() -> None:
    assert await _through([JSON[:20]], StreamEnd("length")) == [Text(JSON[:20]), StreamEnd("length")]
    assert await _through([JSON, " is it"]) == [Text(JSON + " is it"), StreamEnd()]


async def test_a_written_call_ends_the_stream_as_a_made_one_without_the_servers_own_form() -> None:
    call, end = await _through(list(JSON), StreamEnd("stop", raw="its text"))
    assert isinstance(call, ToolCall) and end == StreamEnd("tools")
