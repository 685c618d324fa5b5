"""MCP over HTTP: the tools of `tarsd mcp` with the SDK's own client, and who is kept out."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import shlex
from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ResourceTemplateReference, TextResourceContents

from tarsd.errors import ClientError
from tests.conftest import Daemon
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Say
from tests.support.engine import until
from tests.support.mcp_client import ANSWER_S, NOTES, Answering, House, Start, call, living, refused, serving
from tests.support.rawhttp import TOKEN, exchange, message

HTTP = "[http]\nenabled = true\nport = 0\n"
PRIVATE = {"Diary.md": "---\nlocal_only: true\n---\n# Diary\n\nThe secret quorl lies under the pier.\n"}
MODES = ("auto", "legacy")
"""The protocol without a handshake, and the one before it."""


@pytest.fixture(scope="module")
def listening() -> Iterator[House]:
    with living(NOTES | PRIVATE, HTTP, TARSD_TCP_KEY=TOKEN) as house:
        yield house


def address(daemon: Daemon) -> str:
    """The listener's URL."""
    state = daemon.wait(lambda status: bool(status["http"]["state"] == "listening"))
    return str(state["http"]["url"])


@contextlib.asynccontextmanager
async def connected(
    url: str, headers: dict[str, str] | None = None, mode: str = "auto", **more: Any
) -> AsyncIterator[Client]:
    """The SDK's client on this URL, with the token if no other headers are given."""
    headers = {"Authorization": f"Bearer {TOKEN}"} if headers is None else headers
    async with httpx2.AsyncClient(headers=headers, timeout=ANSWER_S, trust_env=False) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=ANSWER_S, **more) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
async def test_it_offers_what_standard_input_offers(listening: House, mode: str) -> None:
    async with (
        serving(listening.home, listening.vault, mode=mode) as there,
        connected(f"{address(listening.daemon)}/mcp", mode=mode) as here,
    ):
        assert here.server_info == there.server_info and here.instructions == there.instructions
        assert (await here.list_tools()).tools == (await there.list_tools()).tools
        assert (await here.list_resources()).resources == (await there.list_resources()).resources
        assert (await here.list_resource_templates()) == (await there.list_resource_templates())
        assert (await here.list_prompts()).prompts == (await there.list_prompts()).prompts
        data, said = await call(here, "search_notes", query="brass wedge")
        assert data["hits"][0]["path"] == "Ferry/Quorl.md" and "brass wedge" in said
        asked = ("read_note", {"path": "Dry dock"})
        assert await here.call_tool(*asked) == await there.call_tool(*asked)
        read = await here.read_resource("tarsd://note/Tides.md")
        assert isinstance(read.contents[0], TextResourceContents) and "06:12" in read.contents[0].text
        template = ResourceTemplateReference(uri="tarsd://note/{path}")
        assert (await here.complete(template, {"name": "path", "value": "tid"})).completion.values == ["Tides.md"]
        prompt = await here.get_prompt("ask_my_notes", {"question": "What is a quorl?"})
        assert "What is a quorl?" in str(prompt.messages)
        assert "no note" in await refused(here, "read_note", path="No such note")
        with pytest.raises(MCPError, match="no tool"):
            await here.call_tool("erase", {})


@pytest.mark.parametrize("mode", MODES)
async def test_private_notes_are_withheld_as_on_standard_input(listening: House, mode: str) -> None:
    url = f"{address(listening.daemon)}/mcp"
    async with connected(url, mode=mode) as client:
        data, said = await call(client, "search_notes", query="secret quorl under the pier", limit=20)
        assert data["withheld"] == 1 and "Diary" not in f"{data}{said}" and "pier" not in str(data["hits"])
        assert "no note" in await refused(client, "read_note", path="Diary.md")
        assert "Diary" not in str(await client.list_resources())
        with pytest.raises(MCPError):
            await client.read_resource("tarsd://note/Diary.md")
    async with connected(f"{url}?audience=person", mode=mode) as client:  # a client is never the person
        assert (await call(client, "search_notes", query="secret quorl"))[0]["withheld"] == 1
    async with connected(f"{url}?audience=here", mode=mode) as client:
        data, _ = await call(client, "search_notes", query="secret quorl under the pier")
        assert data["hits"][0]["path"] == "Diary.md"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 403),
    ],
)
async def test_nobody_else_comes_in(listening: House, mode: str, headers: dict[str, str], status: int) -> None:
    seen: list[int] = []

    async def look(response: httpx2.Response) -> None:
        seen.append(response.status_code)

    with pytest.raises(Exception):  # noqa: B017  # how the client says so is its own affair
        async with httpx2.AsyncClient(headers=headers, trust_env=False, event_hooks={"response": [look]}) as http:
            transport = streamable_http_client(f"{address(listening.daemon)}/mcp", http_client=http)
            async with Client(transport, mode=mode, read_timeout_seconds=5) as client:
                await client.list_tools()
    assert seen and set(seen) == {status}


def recipes() -> list[tuple[str, dict[str, str]]]:
    """The URL and headers of every recipe in the manual, as its client takes them from there."""
    text = (files("tarsd") / "data" / "manual" / "mcp.md").read_text("utf-8")
    tables = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    servers = [server for table in tables for server in table["mcpServers"].values() if "url" in server]
    lines = [shlex.split(line) for line in re.findall(r"^claude mcp add .*--transport http.*$", text, re.MULTILINE)]
    found = [(server["url"], server["headers"]) for server in servers]
    for words in lines:
        [url] = [word for word in words if word.startswith("http://")]
        name, _, value = words[words.index("--header") + 1].partition(": ")
        found.append((url, {name: value}))
    return found


async def test_the_recipes_of_the_manual_work(listening: House) -> None:
    assert len(recipes()) == 2
    for url, headers in recipes():
        place = f"{address(listening.daemon)}{url.removeprefix('http://127.0.0.1:8427')}"
        given = {name: value.replace("TOKEN", TOKEN) for name, value in headers.items()}
        async with connected(place, given) as client:
            assert (await call(client, "read_note", path="Tides"))[0]["title"] == "Tides"


async def _ask_slowly(client: Client, double: OpenAIDouble) -> asyncio.Future[Any]:
    """A question whose answer is being written, as the client has heard."""
    told: list[str] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(str(message))

    double.enqueue(Say("slow words " * 2000, pause=0.05))
    asking = asyncio.ensure_future(client.call_tool("ask", {"question": "Count"}, progress_callback=tell))
    await asyncio.to_thread(until, lambda: double.open == 1 and any(one.startswith("Writing") for one in told))
    return asking


async def test_a_cancelled_call_stops_its_answer(daemon: Start, home: Path, vault: Path) -> None:
    with OpenAIDouble() as double:
        living = Answering(double, _with_token(daemon), home, vault, HTTP)
        async with connected(f"{address(living.daemon)}/mcp") as client:
            asking = await _ask_slowly(client, double)
            assert (await call(client, "read_note", path="Tides"))[0]["title"] == "Tides"
            assert not asking.done()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.to_thread(until, lambda: double.gone == 1)
            await asyncio.to_thread(until, lambda: [turn["state"] for turn in living.turns()] == ["stopped"])
            double.enqueue(Say("Here again."))
            assert (await call(client, "ask", question="Are you there?"))[0]["answer"] == "Here again."


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_leaves_stops_its_answer(daemon: Start, home: Path, vault: Path, mode: str) -> None:
    with OpenAIDouble() as double:
        living = Answering(double, _with_token(daemon), home, vault, HTTP)
        with contextlib.suppress(Exception):  # what the client says of it is its own affair
            async with connected(f"{address(living.daemon)}/mcp", mode=mode) as client:
                asking = await _ask_slowly(client, double)
        await asyncio.gather(asking, return_exceptions=True)
        await asyncio.to_thread(until, lambda: double.gone == 1)
        await asyncio.to_thread(until, lambda: [turn["state"] for turn in living.turns()] == ["stopped"])


def _with_token(start: Start) -> Start:
    return functools.partial(start, TARSD_TCP_KEY=TOKEN)


async def test_a_daemon_ends_while_a_client_waits(daemon: Start, home: Path, vault: Path) -> None:
    with OpenAIDouble() as double:
        living = Answering(double, _with_token(daemon), home, vault, HTTP)
        double.enqueue(Say("slow words " * 2000, pause=0.05))
        with contextlib.suppress(Exception):  # what the client says of it is its own affair
            async with connected(f"{address(living.daemon)}/mcp") as client:
                asking = asyncio.ensure_future(client.call_tool("ask", {"question": "Count"}))
                await asyncio.to_thread(until, lambda: double.open == 1)
                assert await asyncio.to_thread(living.daemon.stop) == 0
                await asking
        assert living.daemon.process.returncode == 0


def test_only_post_is_answered_and_only_over_tcp(listening: House) -> None:
    port = int(address(listening.daemon).rpartition(":")[2])
    for method in ("GET", "DELETE", "PUT", "HEAD"):
        reply = exchange(port, message(port, method, "/mcp", Accept="text/event-stream"))
        assert reply.status == 405
    reply = exchange(port, message(port, "POST", "/mcp", b"{}", Content_Type="application/json"))
    assert reply.status == 406 and "accept" in reply.json["error"]["message"].lower()
    reply = exchange(port, message(port, "POST", "/mcp", b"{}", Content_Type="text/plain"))
    assert (reply.status, reply.code) == (400, "bad_request") and "application/json" in reply.json["error"]["hint"]
    reply = exchange(port, message(port, "POST", "/mcp?audience=heer", b"{}", Content_Type="application/json"))
    assert (reply.status, reply.code) == (422, "bad_request")
    with pytest.raises(ClientError, match="no such route"):
        listening.daemon.client.post("/mcp", {})


async def test_half_a_character_is_answered(listening: House) -> None:
    port = int(address(listening.daemon).rpartition(":")[2])
    about = {"name": "search_notes", "arguments": {"query": "brass \ud83d wedge"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": about}).encode()
    accept = "application/json, text/event-stream"
    raw = message(port, "POST", "/mcp", body, Content_Type="application/json", Accept=accept)
    reply = await asyncio.to_thread(exchange, port, raw)
    assert reply.status == 200 and b"Quorl.md" in reply.body
