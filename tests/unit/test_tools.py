"""What tools are made of: schemas from signatures, lenient arguments, unique names, and one kind of error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.config import load
from tarsd.config.settings import ToolSettings
from tarsd.errors import ConfigError, Conflict, ToolError
from tarsd.notes import Reader
from tarsd.tools import Context, Result, Tool, Toolbox, ToolProposal, build, tool
from tarsd.tools.base import validate
from tarsd.writing.changes import Change
from tests.support.toolkit import Notes


async def no_write(change: Change) -> str:
    raise AssertionError


CONTEXT = Context("c-1", Reader(Notes(Path("/nowhere"))), no_write)


def brew(
    context: Context,
    leaf: Annotated[str, "Which tea"],
    minutes: Annotated[int, "How long"] = 3,
    strength: Annotated[Literal["weak", "strong"], "How strong"] = "weak",
    sugar: Annotated[bool, "With sugar"] = False,
    grams: Annotated[float, "How much"] = 2.5,
    with_: Annotated[list[str], "What else"] = [],  # noqa: B006
) -> Result:
    """Make a pot

    of tea."""
    return Result(json.dumps([context.conversation, leaf, minutes, strength, sugar, grams, with_]))


BREW = tool(brew)


async def called(arguments: Any) -> list[Any]:
    answer = await BREW.run(arguments, CONTEXT)
    assert isinstance(answer, Result)
    values: list[Any] = json.loads(answer.text)
    return values[1:]


def test_a_plain_function_says_how_it_is_called() -> None:
    assert (BREW.name, BREW.description) == ("brew", "Make a pot of tea.")
    assert BREW.schema == {
        "type": "object",
        "properties": {
            "leaf": {"type": "string", "description": "Which tea"},
            "minutes": {"type": "integer", "description": "How long"},
            "strength": {"type": "string", "enum": ["weak", "strong"], "description": "How strong"},
            "sugar": {"type": "boolean", "description": "With sugar"},
            "grams": {"type": "number", "description": "How much"},
            "with_": {"type": "array", "items": {"type": "string"}, "description": "What else"},
        },
        "required": ["leaf"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"leaf": "Assam"}, ["Assam", 3, "weak", False, 2.5, []]),
        ({"leaf": "Assam", "minutes": "5", "grams": "3"}, ["Assam", 5, "weak", False, 3.0, []]),
        ({"leaf": "Assam", "minutes": 5.0, "sugar": "yes"}, ["Assam", 5, "weak", True, 2.5, []]),
        ({"leaf": 7, "strength": " Strong"}, ["7", 3, "strong", False, 2.5, []]),
        ({"leaf": "Assam", "minutes": None, "with_": "milk"}, ["Assam", 3, "weak", False, 2.5, ["milk"]]),
        ({"leaf": "Assam", "with_": '["milk", "ginger"]'}, ["Assam", 3, "weak", False, 2.5, ["milk", "ginger"]]),
        ({"arguments": {"leaf": "Assam"}}, ["Assam", 3, "weak", False, 2.5, []]),
        ('{"leaf": "Assam"}', ["Assam", 3, "weak", False, 2.5, []]),
        ({"parameters": '{"leaf": "Assam"}'}, ["Assam", 3, "weak", False, 2.5, []]),
    ],
)
async def test_what_is_clear_enough_is_accepted(arguments: Any, expected: list[Any]) -> None:
    assert await called(arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "brew: “leaf” is missing. It takes: leaf (text, needed), minutes (a whole number)"),
        ({"leaf": None}, "brew: “leaf” must be text; not null."),
        ({"leaf": "a", "minute": 3}, "brew has no argument “minute”. Did you mean “minutes”? It takes: leaf (text,"),
        ({"leaf": "a", "minutes": "soon"}, 'brew: “minutes” must be a whole number; not "soon".'),
        ({"leaf": "a", "minutes": 2.5}, "brew: “minutes” must be a whole number; not 2.5."),
        ({"leaf": "a", "minutes": True}, "brew: “minutes” must be a whole number; not true."),
        ({"leaf": "a", "grams": "nan"}, "brew: “grams” must be a number"),
        ({"leaf": "a", "strength": "mild"}, 'brew: “strength” must be one of weak, strong; not "mild".'),
        ({"leaf": "a", "sugar": "maybe"}, 'brew: “sugar” must be true or false; not "maybe".'),
        ({"leaf": {"a": 1}}, 'brew: “leaf” must be text; not {"a": 1}.'),
        ({"leaf": "a", "with_": {"a": 1}}, "brew: “with_” must be a list"),
        ("leaf=Assam", "brew: the arguments must be one JSON object. It takes:"),
        (["Assam"], "brew: the arguments must be one JSON object."),
        (None, "brew: the arguments must be one JSON object."),
    ],
)
async def test_what_is_wrong_is_said_so_that_the_next_try_is_right(arguments: Any, said: str) -> None:
    with pytest.raises(ToolError) as error:
        await called(arguments)
    assert error.value.message.startswith(said)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    )
)
def test_no_arguments_are_too_odd_to_be_answered_with_a_sentence(arguments: Any) -> None:
    for given_ in (arguments, {"leaf": arguments}, {"leaf": "a", "minutes": arguments, "with_": arguments}):
        try:
            kept = validate(BREW.schema, given_, "brew")
        except ToolError as error:
            assert len(error.message) < 700
        else:
            assert isinstance(kept["leaf"], str)


async def test_a_function_may_be_async_and_may_answer_with_text() -> None:
    async def tick() -> str:
        """Tick."""
        return "tock"

    def tack() -> str:
        """Tack."""
        return "tick"

    assert await tool(tick).run({}, CONTEXT) == Result("tock")
    assert await tool(tack).run({}, CONTEXT) == Result("tick")


class Source:
    def __init__(self, *tools: Tool) -> None:
        self.known = list(tools)

    def tools(self) -> list[Tool]:
        return self.known

    async def ready(self, within_s: float) -> None:
        self.waited = within_s


def simple(name: str, answer: Any = "fine", *, seconds: float | None = None, **about: Any) -> Tool:
    """A tool that answers, raises, waits for ever (None), or proposes."""

    async def run(arguments: Mapping[str, Any], context: Context) -> Result | ToolProposal:
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return answer if isinstance(answer, ToolProposal) else Result(str(answer))

    return Tool(name, f"The tool {name}.", {"type": "object", "properties": {}}, run, seconds, **about)


def test_tools_keep_their_order_and_come_and_go_with_their_server() -> None:
    source = Source(simple("fetch_page"), simple("a_b"))
    box = Toolbox([simple("note_read"), simple("note_list")], sources=[source])
    assert [spec.name for spec in box.specs()] == ["note_read", "note_list", "fetch_page", "a_b"]
    source.known.clear()
    assert [spec.name for spec in box.specs()] == ["note_read", "note_list"]


async def test_a_tool_of_a_server_never_takes_the_place_of_our_own() -> None:
    box = Toolbox([simple("note_read", "ours")], sources=[Source(simple("note_read", "theirs", group="shady"))])
    assert await box.call("note_read", {}, CONTEXT) == Result("ours")
    assert [spec.name for spec in box.specs()] == ["note_read"]


@pytest.mark.parametrize("name", ["note_read", "note-read", "Note_Read", "functions.note_read", "functions:note_read"])
async def test_a_name_that_is_nearly_right_is_understood(name: str) -> None:
    box = Toolbox([simple("note_read"), simple("note_list")])
    assert box.get(name).name == "note_read"
    assert await box.call(name, {}, CONTEXT) == Result("fine")


async def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    box = Toolbox([simple("note_read"), simple("weather")])
    with pytest.raises(ToolError, match=r"There is no tool named “note_reed”\. Did you mean note_read\?"):
        await box.call("note_reed", {}, CONTEXT)
    with pytest.raises(ToolError, match=r"There are: note_read, weather\."):
        await box.call("rm -rf /\n" * 50, {}, CONTEXT)
    with pytest.raises(ToolError, match="There are: none"):
        await Toolbox([]).call("anything", {}, CONTEXT)


async def test_whatever_goes_wrong_is_a_tool_error_without_its_insides(caplog: pytest.LogCaptureFixture) -> None:
    box = Toolbox(
        [
            simple("broken", ValueError("the secret of note 7")),
            simple("clash", Conflict("It changed.", "Read it again.")),
            simple("slow", None, seconds=0.01),
        ]
    )
    with pytest.raises(ToolError) as error:
        await box.call("broken", {}, CONTEXT)
    assert error.value.message == "broken failed inside tarsd (ValueError); go on without it."
    assert "secret" not in caplog.text
    with pytest.raises(ToolError) as error:
        await box.call("clash", {}, CONTEXT)
    assert (error.value.message, error.value.hint) == ("It changed.", "Read it again.")
    with pytest.raises(ToolError, match=r"slow did not answer within 0\.01 seconds and was stopped"):
        await box.call("slow", {}, CONTEXT)


async def test_what_is_proposed_is_done_only_on_a_yes_and_its_errors_are_tool_errors() -> None:
    done: list[str] = []

    async def fine() -> Result:
        done.append("yes")
        return Result("done")

    async def broken() -> Result:
        raise OSError("disk")

    async def slow() -> Result:
        await asyncio.Event().wait()
        raise AssertionError

    box = Toolbox(
        [simple(work.__name__, ToolProposal("Do it?", work)) for work in (fine, broken, slow)],
        ToolSettings(timeout_s=0.01),
    )
    answers = {name: await box.call(name, {}, CONTEXT) for name in ("fine", "broken", "slow")}
    assert done == []
    proposals = {name: one for name, one in answers.items() if isinstance(one, ToolProposal)}
    assert await proposals["fine"].apply() == Result("done")
    for name, said in (("broken", "failed inside tarsd"), ("slow", "did not answer within")):
        with pytest.raises(ToolError, match=said):
            await proposals[name].apply()


async def test_stopping_a_turn_stops_its_tool() -> None:
    box = Toolbox([simple("slow", None)])
    task = asyncio.create_task(box.call("slow", {}, CONTEXT))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_what_is_allowed_needs_no_yes_except_outside_with_private_text() -> None:
    tools = [simple("note_create", group="notes"), simple("weather", group="weather")]
    server = Source(simple("fetch_get", group="fetch", allowed=True), simple("fetch_put", group="notes"))
    some = Toolbox(tools, ToolSettings(allow=("note_create",)), [server])
    assert [some.allowed(name) for name in ("note_create", "weather", "fetch_get", "fetch_put")] == [
        True, False, True, False
    ]  # fmt: skip
    every = Toolbox(tools, ToolSettings(allow=("*",)), [server])
    assert all(every.allowed(name) for name in ("note_create", "weather", "fetch_get", "fetch_put"))
    assert [every.allowed(name, private=True) for name in ("note_create", "weather", "fetch_get", "fetch_put")] == [
        True, False, False, False
    ]  # fmt: skip


NATIVE = [
    "memory_search", "note_read", "note_list", "note_create", "note_append", "note_patch", "daily_note_append",
    "query_notes", "query_tasks", "complete_task",
]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "token", "more"),
    [
        ("", None, []),
        ('[tools]\nweather_place = "Kiel"\n', None, ["weather"]),
        ("", "a-token", ["todoist_add", "todoist_list", "todoist_complete"]),
        ("[memory]\nenabled = false\n", None, []),
    ],
)
def test_only_tools_whose_conditions_hold_are_there(
    vault: Path, home: Path, settings: str, token: str | None, more: list[str]
) -> None:
    (home / "config.toml").write_text(settings)
    config = load(vault=vault, env={"TARSD_HOME": str(home), "TARSD_CONFIG": str(home / "config.toml")})
    notes = Notes(vault)
    tools = build(config, notes.notebook, None, lambda name: token)
    assert [one.name for one in tools] == NATIVE + more
    assert all(one.description and one.group for one in tools)


def test_a_file_of_keys_that_cannot_be_read_means_no_todoist(vault: Path, home: Path) -> None:
    def key(name: str) -> str | None:
        raise ConfigError(["keys.json: others can read it"])

    notes = Notes(vault)
    config = load(vault=vault, env={"TARSD_HOME": str(home)})
    assert [one.name for one in build(config, notes.notebook, None, key)] == NATIVE
