"""What a tool is: a plain function whose docstring and signature tell the model how to call it.

A tool answers with a `Result`, or with a `ToolProposal` when a person has to say yes first; whatever goes wrong is a
`ToolError` whose sentence the model can act on.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from tarsd.errors import ToolError
from tarsd.notes import Reader
from tarsd.passage import NoteRow, Origin, Passage
from tarsd.tools.arguments import schema_of, validate
from tarsd.writing.changes import Change

__all__ = ["Context", "NotAsShown", "Result", "Tool", "ToolProposal", "tool", "validate"]


@dataclass(frozen=True)
class Result:
    """What a tool found or did, as plain text for the model; it is data, whatever it says.

    `evidence` are passages that may be cited, numbers still 0; `text` does not repeat them, the turn shows them below
    it, or in their place `rows`, a line for each. `private` is True when text of a private note is in it. `named` are
    further notes that `text` is about; `origins` are the passages of the index that it was made from.
    """

    text: str
    evidence: tuple[Passage, ...] = ()
    private: bool = False
    named: tuple[NoteRow, ...] = ()
    origins: tuple[Origin, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolProposal:
    """What a tool would do if it may: `title` in one line, `apply` does it once, `diff` is what a note would become.

    A yes is for what was shown: where that is no more what would be done, `apply` raises `NotAsShown`. `exposes`: it
    may put what is private where it is not, or bring in what others wrote; no standing yes is for that.
    """

    title: str
    apply: Callable[[], Awaitable[Result]]
    change: Change | None = None
    diff: str = ""
    exposes: bool = False


class NotAsShown(ToolError):
    """Nothing was done, for the note is not as it was shown; `proposal` is what would be done now."""

    def __init__(self, proposal: ToolProposal) -> None:
        super().__init__("Not done: the note is not as it was shown any more.", "Propose it again.")
        self.proposal = proposal


@dataclass(frozen=True)
class Context:
    """The turn in which a tool is called.

    `reader` reads the notes for its model. `write` performs a change and returns the new hash. `private`: the turn has
    already seen private text.
    """

    conversation: str
    reader: Reader
    write: Callable[[Change], Awaitable[str]]
    private: bool = False

    @property
    def local(self) -> bool:
        """Whether the model is on this machine, and may see private notes."""
        return self.reader.sees_private


Run = Callable[[Mapping[str, Any], Context], Awaitable[Result | ToolProposal]]


@dataclass(frozen=True)
class Tool:
    """A tool as the model sees it. `run` takes arguments as the model wrote them, and checks them.

    `timeout_s` None means the time that the settings give. `group` is where it comes from: notes, memory, todoist,
    weather, or the name of an MCP server. `allowed`: the settings of that server say that it needs no yes.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    run: Run
    timeout_s: float | None = None
    group: str = ""
    allowed: bool = False


def tool(function: Callable[..., Any], *, group: str = "") -> Tool:
    """A tool of a plain function, async or not (then it runs in a thread).

    Its docstring is the description; each parameter is `Annotated[type, "what it is"]`; one annotated `Context` gets
    the turn. It returns a `Result`, a `ToolProposal`, or text.
    """
    hints = get_type_hints(function, include_extras=True)
    wants = next((parameter for parameter, hint in hints.items() if hint is Context and parameter != "return"), None)
    properties: dict[str, Any] = {}
    needed: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == wants:
            continue
        about = schema_of(hints[parameter.name])
        if parameter.default is inspect.Parameter.empty:
            needed.append(parameter.name)
        properties[parameter.name] = about
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": needed}
    schema["additionalProperties"] = False
    called = function.__name__

    async def run(arguments: Mapping[str, Any], context: Context) -> Result | ToolProposal:
        given = validate(schema, arguments, called)
        if wants:
            given[wants] = context
        if inspect.iscoroutinefunction(function):
            answer = await function(**given)
        else:
            answer = await asyncio.to_thread(function, **given)
        return Result(answer) if isinstance(answer, str) else answer

    return Tool(called, " ".join((inspect.getdoc(function) or "").split()), schema, run, group=group)
