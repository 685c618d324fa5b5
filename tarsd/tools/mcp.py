"""The tools of MCP servers as our own tools: names a model can call, answers as text, approval before each call.

Everything a server says is somebody else's text. Servers are started, and the SDK is loaded, when a turn first wants
their tools; what is not known yet is left out of that turn.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tarsd import foreign
from tarsd.config import McpServer
from tarsd.errors import TarsdError, ToolError
from tarsd.providers.text import cap, escape, visible
from tarsd.tools.base import Context, Result, Tool, ToolProposal
from tarsd.tools.catalog import ILLEGAL, NAME_CHARS
from tarsd.tools.mcp_connection import BACKOFF_S, Connection, Listed
from tarsd.tools.mcp_streams import line

if TYPE_CHECKING:
    from mcp.types import CallToolResult

DESCRIPTION_CHARS = 1000
RESULT_CHARS = 100_000
REFRESH_S = 60.0
"""A list of tools that is older is asked for again, beside the turn that wants it."""
GRACE_S = 5.0
"""How much longer than the server's `timeout_s` a call is waited for, so that its own time-out comes first."""
WITHHELD = "The result is withheld: it may hold what is to stay on the person's machine."


class McpServers:
    """All configured servers. Belongs to one event loop; children start in `cwd`, by default the home folder.

    `reserved` are names of tools that exist already.
    """

    def __init__(
        self,
        servers: Sequence[McpServer],
        *,
        cwd: Path | None = None,
        reserved: Collection[str] = (),
        refresh_s: float = REFRESH_S,
        backoff_s: tuple[float, float, float] = BACKOFF_S,
    ) -> None:
        self._connections = [Connection(server, cwd or Path.home(), backoff_s=backoff_s) for server in servers]
        self._refresh_s = refresh_s
        self._taken: dict[str, tuple[str, str]] = {name: ("", name) for name in reserved}
        self._names: dict[tuple[str, str], str] = {}
        heads = {server.name: _legal(server.name) + "_" for server in servers}
        # "a" with a tool "b_c" and "a_b" with a tool "c" must not be able to take each other's names
        self._unclear = {
            name for name in heads for other in heads if other != name and heads[name].startswith(heads[other])
        }

    async def ready(self, within_s: float) -> None:
        """Start, and wait until every server is there or known not to be, but never longer than this."""
        waits = [asyncio.ensure_future(connection.settled()) for connection in self._connections]
        if waits:
            _, late = await asyncio.wait(waits, timeout=within_s)
            for task in late:
                task.cancel()

    def tools(self) -> list[Tool]:
        """What is known now. Servers that are not there are connected to in the background, old lists are renewed."""
        tools = []
        for connection in self._connections:
            connection.need()
            connection.freshen(self._refresh_s)
            tools += [self._tool(connection, listed) for listed in connection.listed]
        return tools

    def state(self) -> list[dict[str, object]]:
        """Each server for the status: name, state, reason, hint, its tools, and those that cannot be used."""
        return [
            {
                "name": connection.server.name,
                "state": connection.state,
                "reason": connection.reason,
                "hint": connection.hint,
                "tools": [self._name(connection.server.name, listed.name) for listed in connection.listed],
                "skipped": [{"tool": tool, "reason": reason} for tool, reason in connection.skipped],
            }
            for connection in self._connections
        ]

    async def close(self) -> None:
        """End all connections and every process that was started for one; at most a few seconds."""
        await asyncio.gather(*(connection.close() for connection in self._connections))

    def _tool(self, connection: Connection, listed: Listed) -> Tool:
        server = connection.server
        allowed = "*" in server.allow or listed.name in server.allow

        async def call(arguments: Mapping[str, Any], context: Context) -> Result:
            answer = await connection.call(listed.name, arguments)
            text = foreign.without_keys(rendered(answer), shapes=False)
            if answer.is_error:
                raise ToolError(cap(text, 2000) or f"{server.name} says that the call failed, without a reason.")
            # what a server reads by itself is known by the paths in what it is asked and says
            said = f"{json.dumps(arguments, ensure_ascii=False, default=str)}\n{text}"
            try:
                named = tuple(await asyncio.to_thread(context.reader.mentioned, said))
                private = any(row.local_only for row in named)
            except TarsdError:  # without an index nobody can tell
                named, private = (), True
            if private and not context.local:
                raise ToolError(WITHHELD)
            return Result(text or "(an empty answer)", private=private, named=named)

        async def run(arguments: Mapping[str, Any], context: Context) -> Result | ToolProposal:
            if not isinstance(arguments, Mapping):
                raise ToolError("The arguments must be one JSON object.")
            arguments = {listed.takes.names.get(name, name): value for name, value in arguments.items()}
            if allowed and not context.private:  # what was private in this turn leaves it by no standing yes
                return await call(arguments, context)
            title = f"Call {line(listed.name)} of the MCP server {server.name}"
            return ToolProposal(title, lambda: call(arguments, context))

        return Tool(
            name=self._name(server.name, listed.name),
            description=described(server.name, listed.description),
            schema=_clean(listed.takes.schema),
            run=run,
            timeout_s=server.timeout_s + GRACE_S,
            group=f"mcp:{server.name}",  # no server may pass for the notes by its name
            allowed=allowed,
        )

    def _name(self, server: str, tool: str) -> str:
        """The name a model calls this tool by: legal, unique, and the same as long as the daemon runs."""
        key = (server, tool)
        if key not in self._names:
            plain = f"{_legal(server)}_{_legal(tool)}"
            if len(plain) > NAME_CHARS or server in self._unclear or plain in self._taken:
                mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()[:8]
                plain = f"{plain[: NAME_CHARS - 9]}_{mark}"
            self._names[key] = plain
            self._taken[plain] = key
        return self._names[key]


def described(server: str, text: str) -> str:
    """A tool's description for a model: visible text only, no tags, not too long, with its server."""
    shown = " ".join(escape(visible(text[: DESCRIPTION_CHARS * 10])).split())
    shown = shown if len(shown) <= DESCRIPTION_CHARS else shown[:DESCRIPTION_CHARS] + "…"
    return f"{shown or 'No description.'} (A tool of the MCP server {server}, in its own words.)"


def rendered(answer: CallToolResult) -> str:
    """The answer of a tool as text; other content is named, not shown."""
    parts = []
    left = RESULT_CHARS
    for block in answer.content:
        part = _block(block)
        parts.append(cap(part, max(left, 200)))
        left -= len(parts[-1])
        if left <= 0:
            break
    text = "\n".join(part for part in parts if part)
    if answer.structured_content is not None and left > 0 and not _mirrored(answer.structured_content, parts):
        data = json.dumps(answer.structured_content, ensure_ascii=False, default=str)
        text = f"{text}\n{cap(data, max(left, 200))}".strip()
    return text


def _block(block: Any) -> str:
    kind = block.type
    if kind == "text":
        return str(block.text)
    if kind in ("image", "audio"):
        return f"[{kind}, {line(block.mime_type)}, about {len(block.data) * 3 // 4:,} bytes: not shown]"
    if kind == "resource_link":
        return f"[link: {line(block.name)} {line(block.uri)}]"
    if kind == "resource":
        inner = block.resource
        if hasattr(inner, "text"):
            return str(inner.text)
        about = f"{line(inner.uri)}, {line(inner.mime_type or 'no type')}"
        return f"[file: {about}, about {len(inner.blob) * 3 // 4:,} bytes: not shown]"
    return f"[{line(kind)}: not shown]"


def _mirrored(data: Any, parts: Sequence[str]) -> bool:
    """Whether the text says the same as the structured answer: servers send both for older clients."""
    if isinstance(data, Mapping) and list(data) == ["result"]:
        data = data["result"]
    values = data if isinstance(data, list) and len(parts) > 1 else [data]
    if len(values) != len(parts):
        return False
    return all(value == part or value == _parsed(part) for value, part in zip(values, parts, strict=True))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _legal(name: str) -> str:
    return ILLEGAL.sub("_", name).strip("_") or "x"


def _clean(schema: Any) -> Any:
    """The schema; its descriptions without invisible characters and tags, and cut to `DESCRIPTION_CHARS`."""
    if isinstance(schema, Mapping):
        return {
            key: cap(escape(visible(value)), DESCRIPTION_CHARS)
            if key in ("description", "title", "$comment") and isinstance(value, str)
            else _clean(value)
            for key, value in schema.items()
        }
    return [_clean(part) for part in schema] if isinstance(schema, list) else schema
