"""Tools that a model's server refuses: they are left out and named, and the turn goes on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import pytest

from tarsd.errors import ProviderError, ProviderUnreachable
from tarsd.providers.base import Message, ModelRequest, Notice, ProviderEvent, StreamEnd, Text, ToolSpec
from tarsd.providers.fake import FakeProvider
from tarsd.providers.refused_tools import MOST_NAMED, RefusedTools, answered, blamed
from tarsd.upstream import fault

OURS = tuple(ToolSpec(name, "", {"type": "object"}) for name in ("note_read", "weather"))
THEIRS = tuple(ToolSpec(f"demo_{name}", "", {"type": "object"}, True) for name in ("good", "bad", "bad_too"))
TOOLS = (*OURS, *THEIRS)


@pytest.mark.report("https://github.com/anthropics/claude-code/issues/657")
@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("Invalid schema for function 'demo_bad': In context=(), array schema missing items.", ["demo_bad"]),
        ("tools.3.custom.input_schema: input_schema does not support oneOf at the top level", ["demo_bad"]),
        ("Invalid 'tools[3].function.parameters': expected an object", ["demo_bad"]),
        ("* GenerateContentRequest.tools[0].function_declarations[4].parameters.properties[x]: bad", ["demo_bad_too"]),
        ("Tool demo_bad_too has a parameter that is not supported", ["demo_bad_too"]),
        ("Failed to compile the grammar of tool `demo_good`", ["demo_good"]),
        ("json: cannot unmarshal array into Go struct field .tools.function.parameters.properties.type of type string",
         ["demo_good", "demo_bad", "demo_bad_too"]),
        ("JSON schema conversion failed: Unrecognized schema", ["demo_good", "demo_bad", "demo_bad_too"]),
        ("registry.ollama.ai/library/gemma:2b does not support tools", []),
        ("No endpoints found that support tool use. Try disabling tools.", []),
        ("tools param requires --jinja flag", []),
        ("the weather is bad, and the function fails", []),
        ("out of memory", []),
    ],
)  # fmt: skip
def test_an_error_tells_which_tools_it_is_about(said: str, names: list[str]) -> None:
    assert [tool.name for tool in blamed(said, TOOLS)] == names


class Picky(FakeProvider):
    """Refuses requests as `judge` says, "" for none."""

    def __init__(self, judge: Callable[[list[str]], str], status: int = 400) -> None:
        super().__init__([])
        self.judge = judge
        self.status = status
        self.asked: list[list[str]] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """As the base."""
        self.asked.append([tool.name for tool in request.tools])
        if said := self.judge(self.asked[-1]):
            raise fault(self.status, {"error": {"message": said}}).chat_error("there", "m", {})
        yield Text("ok")
        yield StreamEnd()


async def ask(provider: Picky, refused: RefusedTools) -> tuple[str, list[str]]:
    """The answer, and what it says of itself."""
    request = ModelRequest("", (Message("user", "x"),), TOOLS)
    events = [event async for event in answered(provider, request, refused)]
    texts = "".join(event.text for event in events if isinstance(event, Text))
    return texts, [event.text for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_one_bad_tool_is_left_out_named_and_remembered(status: int) -> None:
    provider = Picky(lambda names: "Invalid schema for function 'demo_bad': x" * ("demo_bad" in names), status)
    refused = RefusedTools()
    text, notices = await ask(provider, refused)
    assert text == "ok" and len(notices) == 1 and "demo_bad" in notices[0]
    assert await ask(provider, refused) == ("ok", []), "it is not offered again"
    assert [len(names) for names in provider.asked] == [5, 4, 4]


async def test_several_bad_tools_are_left_out_one_after_the_other() -> None:
    def judge(names: list[str]) -> str:
        bad = [name for name in names if "bad" in name]
        return f"Invalid schema for function '{bad[0]}'" if bad else ""

    provider = Picky(judge)
    text, notices = await ask(provider, RefusedTools())
    assert text == "ok" and len(notices) == 2 and provider.asked[-1] == ["note_read", "weather", "demo_good"]


async def test_where_nothing_tells_which_it_is_those_of_others_go_first_and_all_at_last() -> None:
    provider = Picky(lambda names: "failed to parse the grammar of a tool" if names else "")
    text, notices = await ask(provider, RefusedTools())
    assert text == "ok" and len(notices) == 2
    assert provider.asked[1:] == [["note_read", "weather"], []]


async def test_a_server_that_refuses_them_all_by_name_is_not_asked_for_ever() -> None:
    many = tuple(ToolSpec(f"demo_{number}", "", {}, True) for number in range(40))
    refused = RefusedTools()
    left, rounds = many, 0
    while left:
        refused.leave_out("x", f"Invalid schema for function '{left[0].name}'", left)
        left, rounds = refused.left("x", many), rounds + 1
    assert rounds <= MOST_NAMED + 1


@pytest.mark.parametrize("status", [401, 402, 429, 503])
async def test_other_errors_are_told_as_they_are(status: int) -> None:
    provider = Picky(lambda names: "function 'demo_bad' has a bad schema", status)
    with pytest.raises(ProviderError):
        await ask(provider, RefusedTools())
    assert len(provider.asked) < 3


async def test_nothing_is_asked_twice_once_something_was_said() -> None:
    class Late(Picky):
        """Fails after its first word."""

        async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
            """As the base."""
            yield Text("half")
            raise ProviderUnreachable("function 'demo_bad' schema")

    with pytest.raises(ProviderUnreachable):
        await ask(Late(lambda names: ""), RefusedTools())
