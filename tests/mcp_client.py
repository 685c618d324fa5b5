"""`tarsd mcp` as its clients have it: with the SDK's client, or word for word over its pipes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Self

import jsonschema
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

PROGRAM = ["-P", "-c", "from tarsd.cli import main; main()", "mcp"]
ANSWER_S = 60.0


def parameters(home: Path, vault: Path | None, *more: str) -> StdioServerParameters:
    """How a client starts it: in the root folder, with hardly any environment."""
    named = ["--vault", str(vault)] if vault is not None else []
    env = {"TARSD_HOME": str(home), "PATH": "/usr/bin:/bin"}
    return StdioServerParameters(command=sys.executable, args=[*PROGRAM, *named, *more], env=env, cwd="/")


@contextlib.asynccontextmanager
async def serving(home: Path, vault: Path | None, *more: str, **client: Any) -> AsyncIterator[Client]:
    """A client of a server of its own."""
    async with Client(parameters(home, vault, *more), read_timeout_seconds=ANSWER_S, **client) as connected:
        yield connected


def text_of(result: CallToolResult) -> str:
    """The text of a result, which has one block."""
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


async def call(client: Client, name: str, **arguments: Any) -> tuple[dict[str, Any], str]:
    """The data of a result that fits its schema, and the text."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    data = result.structured_content
    [tool] = [tool for tool in (await client.list_tools()).tools if tool.name == name]
    jsonschema.validate(data, tool.output_schema, jsonschema.Draft202012Validator)
    assert isinstance(data, dict)
    assert len(json.dumps(data, ensure_ascii=False).encode()) + len(text_of(result).encode()) <= 100_000
    return data, text_of(result)


async def refused(client: Client, name: str, **arguments: Any) -> str:
    """What an error says; it has no data."""
    result = await client.call_tool(name, arguments)
    assert result.is_error and result.structured_content is None
    return text_of(result)


class Wire:
    """The process and its pipes. `seen` is everything that it has said on standard output."""

    def __init__(self, home: Path, vault: Path | None, *more: str, code: str = PROGRAM[2], **env: str) -> None:
        named = ["--vault", str(vault)] if vault is not None else []
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code, "mcp", *named, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={"TARSD_HOME": str(home), "HOME": os.environ.get("HOME", "/"), **env},
        )
        self.seen = b""
        self.errors = b""
        self._number = 0
        # a full pipe would hold it up
        self._reading = threading.Thread(target=self._read_errors, daemon=True)
        self._reading.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(ANSWER_S)
        self._reading.join(ANSWER_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    def send(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> None:
        """A message; with an `id` it is a request."""
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": dict(params or {}), **more}).encode())

    def write(self, line: bytes) -> None:
        """A line, whatever is in it."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        """The next message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.seen += line
        assert line, self.errors.decode()
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return dict(message)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The response to a request, notifications passed over."""
        self._number += 1
        self.send(method, params, id=self._number)
        while (message := self.next()).get("id") != self._number:
            pass
        return message

    def begin(self, version: str = "2025-11-25") -> dict[str, Any]:
        """The result of the handshake."""
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        result = self.ask("initialize", about)["result"]
        self.send("notifications/initialized")
        return dict(result)

    def end(self) -> int:
        """The exit code, once standard input has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(ANSWER_S)
