"""The connection to one MCP server: made when it is needed, held by one task, and given up when it breaks.

The SDK wants its client entered and left by the same task, and tells that task nothing when a server dies. So one
task owns each connection, calls come from others, and whoever notices the end tells the owner.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from tarsd import __version__, foreign
from tarsd.config import McpServer
from tarsd.errors import ToolError
from tarsd.tools.mcp_streams import MonitoredStream, Stderr, complaint, line, load, secrets_of
from tarsd.tools.mcp_wire import usable
from tarsd.tools.outer import obstacle
from tarsd.tools.schemas import Arguments, arguments
from tarsd.transport import client_options

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

Streams = AbstractAsyncContextManager[Any]
"""What the SDK calls a transport: a stream of messages that come, and one of those that go."""
State = Literal["idle", "connecting", "ready", "lost", "down"]

CLOSE_S = 10.0
"""The SDK gives a server 2 s to leave, then 2 s to heed SIGTERM; this is more than that."""
STABLE_S = 30.0
"""A connection that held so long was good: its end is no reason to wait before the next."""
BACKOFF_S = (0.0, 1.0, 60.0)
"""The wait after a first loss, after a first failure, and at most."""
TOOLS, PAGES = 128, 20
EVENT_BYTES = 32 * 2**20
SENT = 8
"""Calls whose arguments are looked for in what a server says."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listed:
    """A tool as its server describes it."""

    name: str
    description: str
    takes: Arguments


class Connection:
    """One server. `listed` is what it offers as far as is known, `skipped` what of that cannot be used, and why.

    `state`: idle (not needed yet), connecting, ready, lost (was ready; made again at the next need), or down.
    """

    def __init__(self, server: McpServer, cwd: Path, *, backoff_s: tuple[float, float, float] = BACKOFF_S) -> None:
        self.server = server
        self.state: State = "idle"
        self.reason = self.hint = ""
        self.listed: tuple[Listed, ...] = ()
        self.skipped: tuple[tuple[str, str], ...] = ()
        self._cwd = cwd
        self._backoff = backoff_s
        self._delay = 0.0
        self._not_before = -math.inf
        self._listed_at = -math.inf
        self._closing = False
        self._legacy = False
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._scope: Any = None
        self._flood = False
        self._unfit: list[tuple[str, str]] = []
        self._over = asyncio.Event()
        self._changed = asyncio.Event()
        self._helpers: dict[str, asyncio.Task[None]] = {}
        self._sent: deque[Mapping[str, Any]] = deque(maxlen=SENT)
        self._stderr = Stderr(self._sent)
        foreign.keep_secret(*secrets_of(server))

    # What others ask of it

    def need(self) -> None:
        """Connect in the background; nothing happens while that is done, or too soon after it failed."""
        now = asyncio.get_running_loop().time()
        if self._owner is None and not self._closing and now >= self._not_before:
            self._over.clear()
            self._flood = False
            self._set("connecting")
            self._owner = asyncio.create_task(self._own(), name=f"mcp {self.server.name}")

    def freshen(self, age_s: float) -> None:
        """List the tools again, in the background, when that was done longer ago."""
        if self._client is not None and asyncio.get_running_loop().time() - self._listed_at >= age_s:
            self._help("list", self._relist())

    async def settled(self) -> None:
        """Connect, and wait until there is a connection, or it is known that there is none."""
        while True:
            self.need()
            if self._client is not None or self._owner is None:
                return
            await self._changed.wait()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """What the tool answers, at most `timeout_s` from now, a connection that is being made included.

        It is called once or not at all. Raises `ToolError`.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.server.timeout_s
        given = _sound(arguments)
        self._sent.append(given)
        client = await self._connected(until)
        try:
            async with asyncio.timeout_at(until + 1):
                left = max(0.01, until - loop.time())
                return await client.call_tool(name, given, read_timeout_seconds=left)
        except asyncio.CancelledError:
            if _cancelled():
                raise
            self._lose(client, "The connection broke.")  # the SDK's own cancellation, not ours
            raise self._broke() from None
        except Exception as error:
            raise self._failed_call(client, error) from None

    async def close(self) -> None:
        """End it, and the server with it if we started that."""
        self._closing = True
        if self.state == "connecting" and self._scope is not None:
            self._scope.cancel()
        self._over.set()
        for helper in self._helpers.values():
            helper.cancel()
        if self._owner is not None:
            _, late = await asyncio.wait({self._owner}, timeout=CLOSE_S)
            for task in late:
                task.cancel()
                await asyncio.wait({task}, timeout=1)
        self.listed = ()
        self._set("idle")

    # The owner

    async def _own(self) -> None:
        """Connect, hold the connection until it is over, and say why it ended."""
        loop = asyncio.get_running_loop()
        ready_at: list[float] = []
        try:
            await self._hold(lambda: ready_at.append(loop.time()))
        except asyncio.CancelledError:
            if _cancelled():
                raise
            self._down("The connection broke.", "")
        except BaseExceptionGroup as group:
            self._down(*self._explained(_leaf(group)))
        except Exception as error:
            self._down(*self._explained(error))
        finally:
            self._client = self._scope = None
            self._owner = None
            self._stderr.close()
            self._back_off(loop.time(), ready_at[0] if ready_at else None)
            self._set(self.state, self.reason, self.hint)

    async def _hold(self, ready: Callable[[], None]) -> None:
        await asyncio.to_thread(load)  # most of a second, that no turn has to wait for
        import anyio

        with anyio.CancelScope() as scope:
            self._scope = scope
            if self._closing:
                return
            scope.deadline = anyio.current_time() + self.server.timeout_s
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._new_client(await self._transport(stack)))
                await self._list(client)
                scope.deadline = math.inf
                self._client = client
                self._set("ready")
                ready()
                self._help("listen", self._listen(client))
                await self._over.wait()
                self._client = None
                self._stop("listen")
                scope.deadline = anyio.current_time() + CLOSE_S
        if self.state == "connecting" and not self._closing:
            # some servers never answer the question that the newer protocol begins with
            self._legacy = not self._legacy
            raise TimeoutError

    def _back_off(self, now: float, ready_at: float | None) -> None:
        """When to try again: at once after a good connection, and later each time after bad ones."""
        loss, first, most = self._backoff
        if ready_at is not None and now - ready_at >= STABLE_S:
            self._delay = 0.0
        self._not_before = now + (loss if ready_at is not None and not self._delay else self._delay or first)
        self._delay = min(max(first, self._delay * 2), most)

    async def _transport(self, stack: AsyncExitStack) -> Streams:
        server = self.server
        if server.command:
            from mcp import StdioServerParameters
            from mcp.client.stdio import stdio_client

            parameters = StdioServerParameters(
                command=os.path.expanduser(server.command[0]),
                args=list(server.command[1:]),
                env=dict(server.env),
                cwd=self._cwd,
                encoding_error_handler="replace",
            )
            return self._watched(stdio_client(parameters, errlog=await self._stderr.open()))
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        times = httpx2.Timeout(server.timeout_s, connect=min(5.0, server.timeout_s), read=max(300.0, server.timeout_s))
        options = await asyncio.to_thread(client_options, httpx2, server.url, server.ca_file)
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=times, **options))
        return self._watched(streamable_http_client(server.url, http_client=http, max_sse_event_size=EVENT_BYTES))

    def _new_client(self, transport: Streams) -> Client:
        from mcp import Client
        from mcp.types import Implementation

        return Client(
            transport,
            mode="legacy" if self._legacy else "auto",
            read_timeout_seconds=self.server.timeout_s,
            client_info=Implementation(name="tarsd", version=__version__),
            message_handler=self._heard,
            cache=None,
        )

    @asynccontextmanager
    async def _watched(self, transport: Streams) -> AsyncGenerator[Any, None]:
        """The transport, whose end is noticed at once: a dead child is replaced before the next call, not by it."""
        async with transport as (reader, writer):
            yield MonitoredStream(reader, self._ended, self._flooded, self._sort_out), writer

    def _ended(self) -> None:
        if self._client is not None:
            said = f"{self.server.name} ended. {self._stderr.last}".strip()
            self._lose(self._client, said if self.server.command else "The connection broke.")

    def _flooded(self) -> None:
        self._flood = True
        if self._client is not None:
            self._lose(self._client, self._babble())
        elif self._scope is not None:
            self._scope.cancel()

    def _babble(self) -> str:
        return f"{self.server.name} writes something other than MCP to its standard output."

    # What the server offers

    async def _list(self, client: Client) -> None:
        found: dict[str, Listed] = {}
        self._unfit = skipped = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                if tool.name in found:
                    skipped.append((line(tool.name), "two tools have this name"))
                elif len(found) == TOOLS:
                    skipped.append((line(tool.name), f"the server has more than {TOOLS} tools"))
                else:
                    described = tool.description or tool.title or ""
                    found[tool.name] = Listed(tool.name, described, arguments(tool.input_schema))
            cursor = page.next_cursor
            if not cursor or len(skipped) > TOOLS:
                break
        self.listed = tuple(found.values())
        self.skipped = tuple(skipped[:TOOLS])
        self._listed_at = asyncio.get_running_loop().time()

    def _sort_out(self, tools: list[Any]) -> list[Any]:
        """The tools of a list that can be used: the SDK would refuse the whole list for one that breaks the rules."""
        fit: list[Any] = []
        for tool in tools:
            try:
                fit.append(usable(tool))
            except ToolError as error:
                if len(self._unfit) < TOOLS:
                    named = line(tool.get("name", "")) if isinstance(tool, Mapping) else ""
                    self._unfit.append((named, error.message))
        return fit

    async def _relist(self) -> None:
        """List again; a server that does not even answer that is given up."""
        client = self._client
        if client is None:
            return
        try:
            async with asyncio.timeout(self.server.timeout_s):
                await self._list(client)
        except asyncio.CancelledError:
            if _cancelled():
                raise
            self._lose(client, "The connection broke.")
        except Exception:
            self._lose(client, f"{self.server.name} no longer answers.")

    async def _listen(self, client: Client) -> None:
        """List again whenever the server says that its tools changed; older servers say so unasked."""
        offered = client.server_capabilities.tools
        if offered is None or not offered.list_changed:
            return
        with suppress(Exception):  # nothing is lost but the hint: the list is renewed by age
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._help("list", self._relist())

    async def _heard(self, message: object) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._help("list", self._relist())

    # Ends

    async def _connected(self, until: float) -> Client:
        while True:
            self.need()
            if self._client is not None:
                return self._client
            if self._owner is None:
                raise ToolError(f"The MCP server {self.server.name} is not available. {self.reason}".strip(), self.hint)
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                raise ToolError(f"The MCP server {self.server.name} is not ready yet. Try again later.") from None

    def _failed_call(self, client: Client, error: Exception) -> ToolError:
        """What went wrong as a sentence for the model; a broken connection is given up on the way."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST, REQUEST_TIMEOUT

        name = self.server.name
        code = error.code if isinstance(error, MCPError) else None
        if code == REQUEST_TIMEOUT or isinstance(error, TimeoutError):
            self._help("list", self._relist())  # is it the tool that hangs, or the server?
            return ToolError(
                f"{name} did not answer within {self.server.timeout_s:g} s. It may or may not have done it.",
                f"If this tool needs longer, raise timeout_s of the [[mcp]] server {name}.",
            )
        if isinstance(error, MCPError):
            forgotten = code == INVALID_REQUEST and "session" in error.message.lower()  # it was started again
            if code == CONNECTION_CLOSED or forgotten:
                self._lose(client, self._stderr.last or "The connection broke.")
                return self._broke()
            return ToolError(f"{name} refused the call: {complaint(error.message)}")
        log.warning("an MCP call failed", extra={"server": name, "kind": type(error).__name__})
        return ToolError(f"{name} sent an answer that does not match its own tool description.")

    def _broke(self) -> ToolError:
        return ToolError(f"The connection to {self.server.name} broke. It may or may not have done it.")

    def _lose(self, client: Client, reason: str) -> None:
        """Give this connection up; the owner leaves it, and the next need makes another."""
        if self._client is client:
            self._client = None
            self._set("lost", reason)
            self._over.set()
            log.info("an MCP server was lost", extra={"server": self.server.name})

    def _down(self, reason: str, hint: str) -> None:
        if self._closing:
            return
        if self.state == "lost":  # what breaks while we leave is no news
            return
        lost = self.state == "ready"
        self.listed = self.listed if lost else ()
        self._set("lost" if lost else "down", reason, hint)
        if not lost:
            log.warning("an MCP server cannot be used", extra={"server": self.server.name})

    def _explained(self, error: BaseException) -> tuple[str, str]:
        """Why there is no connection, and what to do, for a person."""
        name, said = self.server.name, self._stderr.last
        if self._flood:
            return self._babble(), "It must write its log to standard error."
        kind = type(error).__name__
        if self.server.command:
            program = self.server.command[0]
            if isinstance(error, FileNotFoundError):
                return f"{program} was not found.", f"Install it, or give its full path in the command of {name}."
            if (isinstance(error, OSError) and not isinstance(error, TimeoutError)) or type(error) is ValueError:
                return f"{program} cannot be started: {kind}.", f"Check the command of the [[mcp]] server {name}."
            hint = f"Try it in a terminal: {foreign.without_keys(' '.join(self.server.command))[:200]}"
        else:
            url = urlsplit(self.server.url)
            shown = f"{url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}{url.path}"
            if found := obstacle(shown, self.server.url, error):
                return found
            if kind in ("ConnectError", "ConnectTimeout"):
                return f"No server answers at {shown}.", f"Start the server, or check the url of {name}."
            hint = f"Check that {shown} is an MCP endpoint."
        if isinstance(error, TimeoutError) or getattr(error, "code", 0) == -32001:
            return f"{name} did not answer within {self.server.timeout_s:g} s. {said}".strip(), hint
        if getattr(error, "code", 0) == -32000:
            return f"{name} stopped before it answered. {said}".strip(), hint
        if isinstance(error, ImportError):
            return "The package mcp cannot be loaded.", "Reinstall tarsd."
        return f"{name} gave an invalid answer ({complaint(getattr(error, 'message', ''), self._sent) or kind}).", hint

    def _set(self, state: State, reason: str = "", hint: str = "") -> None:
        self.state, self.reason, self.hint = state, reason, hint
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _help(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background, unless a task of the name `what` is running."""
        if what in self._helpers or self._closing:
            work.close()
            return
        task = asyncio.create_task(work, name=f"mcp {self.server.name} {what}")
        self._helpers[what] = task
        task.add_done_callback(lambda done: self._helped(what, done))

    def _helped(self, what: str, task: asyncio.Task[None]) -> None:
        if self._helpers.get(what) is task:
            del self._helpers[what]
        if not task.cancelled() and task.exception() is not None:
            log.warning("an MCP server could not be asked", extra={"server": self.server.name})

    def _stop(self, what: str) -> None:
        task = self._helpers.pop(what, None)
        if task is not None:
            task.cancel()


def _cancelled() -> bool:
    """Whether this task was really cancelled: the SDK's broken transports raise the same exception."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _sound(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as JSON that can be sent: half a letter, which models do write, would break the connection.

    Raises `ToolError`.
    """
    try:
        text = json.dumps(dict(arguments), ensure_ascii=False).encode("utf-8", "replace").decode()
        given: dict[str, Any] = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise ToolError("The arguments must be one JSON object.") from None
    return given
