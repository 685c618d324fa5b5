"""All tools of a turn under unique names, and the one place that calls them: in time, and with one kind of error."""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

from tarsd.config.settings import ToolSettings
from tarsd.errors import TarsdError, ToolError
from tarsd.providers.base import ToolSpec
from tarsd.tools.base import Context, NotAsShown, Result, Tool, ToolProposal

NAME_CHARS = 64
AT_HOME = frozenset({"notes", "memory"})
"""The groups of tools that send nothing off this machine."""

ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")

log = logging.getLogger(__name__)
T = TypeVar("T")


class Source(Protocol):
    """Where further tools come and go: the MCP servers."""

    def tools(self) -> Sequence[Tool]:
        """The tools that are known now."""
        ...

    async def ready(self, within_s: float) -> None:
        """Wait until all are known, or so long."""
        ...


class Toolbox:
    """Native tools and those of `sources`; the settings say which need no yes, and how long a tool may take."""

    def __init__(
        self, tools: Sequence[Tool], settings: ToolSettings | None = None, sources: Sequence[Source] = ()
    ) -> None:
        settings = settings or ToolSettings()
        self._tools = tuple(tools)
        self._sources = tuple(sources)
        self._allow = frozenset(settings.allow)
        self._timeout_s = settings.timeout_s

    async def ready(self, within_s: float) -> None:
        """Wait for tools that are not known yet, at most so long."""
        for source in self._sources:
            await source.ready(within_s)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of the tools, in an order that stays, so that it can be cached."""
        return tuple(
            ToolSpec(tool.name, tool.description, tool.schema, not any(tool is native for native in self._tools))
            for tool in self._named().values()
        )

    def get(self, name: str) -> Tool:
        """The tool that a model means by `name`; case, dashes and a namespace before it do not matter.

        Raises `ToolError`, which names those there are.
        """
        named = self._named()
        if name in named:
            return named[name]
        folded = _fold(name)
        alike = [tool for key, tool in named.items() if _fold(key) == folded]
        if len(alike) == 1:
            return alike[0]
        shown = " ".join(name.split())[:NAME_CHARS]
        close = difflib.get_close_matches(folded, list(named), 1)
        hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(named) or 'none'}."
        raise ToolError(f"There is no tool named “{shown}”. {hint}")

    def allowed(self, name: str, *, private: bool = False) -> bool:
        """Whether the tool may act without a yes.

        In a turn that has read private notes (`private`), nothing that leaves the machine goes unasked. Raises as
        `get`.
        """
        tool = self.get(name)
        # a server may be called "notes"
        at_home = tool.group in AT_HOME and any(tool is native for native in self._tools)
        if private and not at_home:
            return False
        return tool.allowed or "*" in self._allow or tool.name in self._allow

    async def call(self, name: str, arguments: Mapping[str, Any], context: Context) -> Result | ToolProposal:
        """Run a tool, or find out what it proposes. Raises `ToolError` whatever goes wrong, and nothing else."""
        tool = self.get(name)
        answer = await self._guard(tool, lambda: tool.run(arguments, context), limited=True)
        if isinstance(answer, Result):
            return answer
        return self._guarded(tool, answer)

    def _guarded(self, tool: Tool, proposal: ToolProposal) -> ToolProposal:
        async def apply() -> Result:
            try:
                # What changes a note waits for its writer, which has a time limit of its own.
                return await self._guard(tool, proposal.apply, limited=proposal.change is None)
            except NotAsShown as other:
                raise NotAsShown(self._guarded(tool, other.proposal)) from None

        return dataclasses.replace(proposal, apply=apply)

    async def _guard(self, tool: Tool, work: Callable[[], Awaitable[T]], *, limited: bool) -> T:
        seconds = (tool.timeout_s or self._timeout_s) if limited else None
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except ToolError:
            raise
        except TarsdError as error:
            raise ToolError(error.message, error.hint) from None
        except TimeoutError:
            took = f" within {seconds:g} seconds" if seconds else " in time"
            raise ToolError(f"{tool.name} did not answer{took} and was stopped.") from None
        except Exception as error:
            log.warning("a tool failed", extra={"tool": tool.name, "error": type(error).__name__})
            raise ToolError(f"{tool.name} failed inside tarsd ({type(error).__name__}); go on without it.") from None

    def _named(self) -> dict[str, Tool]:
        """All tools by name. Those of servers have names of their own; one that has not gives way to ours."""
        every = chain(self._tools, *(source.tools() for source in self._sources))
        named: dict[str, Tool] = {}
        for tool in every:
            named.setdefault(tool.name, tool)
        return named


def _fold(name: str) -> str:
    return ILLEGAL.sub("_", re.split(r"[.:/]", name.strip())[-1]).replace("-", "_").casefold()
