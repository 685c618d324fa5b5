"""Tools that a server of a model refuses: they are left out and named, so that one of them never costs the turn."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from tarsd.errors import ProviderError, ProviderRefused
from tarsd.providers.base import ModelRequest, Notice, Provider, ProviderEvent, ToolSpec, Waiting

MOST_NAMED: Final = 6
"""So many refusals each name a tool; with the next, all tools of MCP servers are left out at once."""

_ABOUT = re.compile(
    r"\b(?:tools?|functions?|schema|declarations?|parameters)\b|input_schema|_declarations", re.IGNORECASE
)
_SCHEMA = re.compile(
    r"schema|grammar|cannot unmarshal|function_?declarations"
    r"|\btools?(?:\[\d+\]|\.\d+)?\.\w+\.(?:parameters|properties)",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(?:function_?declarations?|functions?|tools?)(?:\[|\.|/)(\d+)\b", re.IGNORECASE)


class RefusedTools:
    """The tools that each provider's server has refused so far; a tool with another schema is another one."""

    def __init__(self) -> None:
        self._refused: dict[str, list[ToolSpec]] = {}

    def left(self, provider: str, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
        """What is still offered of `tools`."""
        refused = self._refused.get(provider, [])
        return tuple(tool for tool in tools if tool not in refused)

    def leave_out(self, provider: str, said: str, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
        """Leave out from now on what a server refuses with these words; none where they are about something else."""
        refused = self._refused.setdefault(provider, [])
        gone = blamed(said, tools)
        outside = tuple(tool for tool in tools if tool.outside)
        if gone and len(refused) >= MOST_NAMED:
            gone = outside or tuple(tools)
        refused += gone
        return gone


def blamed(said: str, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """The tools that an error is about, by name or number; where it tells neither, those of MCP servers, or all."""
    if not tools or not _ABOUT.search(said):
        return ()
    named = tuple(tool for tool in tools if _names(tool.name, said))
    if named:
        return named
    if not _SCHEMA.search(said):
        return ()
    places = [int(found[1]) for found in _PLACE.finditer(said)]
    if places and (place := max(places)) < len(tools):  # tools[0].function_declarations[3]
        return (tools[place],)
    return tuple(tool for tool in tools if tool.outside) or tuple(tools)


def _names(name: str, said: str) -> bool:
    word = rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])"
    return bool(re.search(rf"(?:['\"`“‘\[]|\b(?:function|tool|declaration|name)s?\b[:= ]+){word}", said, re.IGNORECASE))


async def answered(
    provider: Provider, request: ModelRequest, refused: RefusedTools
) -> AsyncGenerator[ProviderEvent, None]:
    """The provider's answer; asked again without the tools that its server refuses. Raises as `Provider.stream`."""
    while True:
        asked = replace(request, tools=refused.left(provider.name, request.tools))
        begun = False
        try:
            async with aclosing(provider.stream(asked)) as events:
                async for event in events:
                    begun = begun or not isinstance(event, Waiting | Notice)
                    yield event
            return
        except ProviderError as error:
            plain = isinstance(error, ProviderRefused) or type(error) is ProviderError
            gone = refused.leave_out(provider.name, error.said, asked.tools) if plain and not begun else ()
            if not gone:
                raise
        yield Notice(_told(provider.name, gone))


def _told(provider: str, gone: Sequence[ToolSpec]) -> str:
    names = ", ".join(tool.name for tool in gone[:10]) + (f" and {len(gone) - 10} more" if len(gone) > 10 else "")
    if len(gone) == 1:
        return f"The server of {provider} rejected the tool {names}; it was asked again without it."
    return f"The server of {provider} rejected one of the tools {names}; it was asked again without them."
