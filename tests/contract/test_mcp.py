"""The tools of MCP servers, with real servers as children and over HTTP, and with all the ways in which they fail."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tarsd.config import McpServer
from tarsd.errors import ToolError
from tarsd.notes import Reader
from tarsd.tools.base import Context, Result, Tool, ToolProposal
from tarsd.tools.catalog import Toolbox
from tarsd.tools.mcp import DESCRIPTION_CHARS, RESULT_CHARS, McpServers
from tests.support.doubles.mcp_server import McpHttp, alive, kill, stdio
from tests.support.doubles.server import ABORT, Call, Double, Reply
from tests.support.toolkit import Notes

Open = Callable[..., McpServers]
ENOUGH_S = 60.0


async def _write(change: object) -> str:
    raise AssertionError("no note is written here")


CONTEXT = Context("c-1", Reader(Notes(Path("/nowhere"))), _write)


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    """The file in which servers note their process ids."""
    return tmp_path / "pids"


@pytest_asyncio.fixture
async def connect(tmp_path: Path, pids: Path) -> AsyncIterator[Open]:
    """`connect(server, …)` makes the servers known; they are closed at the end, and no child is left."""
    made: list[McpServers] = []

    def make(*servers: McpServer, **more: Any) -> McpServers:
        made.append(McpServers(servers, **{"cwd": tmp_path, "backoff_s": (0.0, 0.05, 0.2), **more}))
        return made[-1]

    yield make
    for one in made:
        await one.close()
    assert alive(pids) == []


async def until(what: Callable[[], bool]) -> None:
    """Wait for something that happens in the background."""
    deadline = time.monotonic() + ENOUGH_S
    while not what():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def state(servers: McpServers) -> str:
    return str(servers.state()[0]["state"])


async def tools(servers: McpServers) -> dict[str, Tool]:
    """The tools by name, as soon as every server has settled."""
    await servers.ready(ENOUGH_S)
    return {tool.name: tool for tool in servers.tools()}


async def names(servers: McpServers) -> list[str]:
    """The names of the tools, in order."""
    await servers.ready(ENOUGH_S)
    return [tool.name for tool in servers.tools()]


async def call(servers: McpServers, name: str, context: Context = CONTEXT, **arguments: object) -> str:
    """The text of an answer."""
    answer = await (await tools(servers))[name].run(arguments, context)
    assert isinstance(answer, Result)
    return answer.text


# What works


async def test_a_child_offers_its_tools_under_its_name_and_answers(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids))
    found = await tools(servers)
    assert found["demo_plain"].schema["properties"]["x"]["type"] == "integer"
    assert found["demo_plain"].description.startswith("Says x.")
    assert found["demo_plain"].group == "mcp:demo"
    assert await call(servers, "demo_plain", x=7) == "x is 7"
    assert await call(servers, "demo_noisy") == "quiet"
    [shown] = servers.state()
    assert (shown["name"], shown["state"], shown["reason"]) == ("demo", "ready", "")
    assert "demo_plain" in str(shown["tools"])


async def test_a_server_over_http_does_the_same(connect: Open, pids: Path) -> None:
    with McpHttp(pids) as http:
        servers = connect(http.server())
        assert await call(servers, "web_plain", x=7) == "x is 7"
        assert len(await call(servers, "web_big")) <= RESULT_CHARS + 200
        with pytest.raises(ToolError, match="kaboom"):
            await call(servers, "web_boom")
        await servers.close()


async def test_data_is_shown_once_and_as_json_and_pictures_are_named(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids))
    shown = await call(servers, "demo_structured", city="Bergen")
    assert shown.count("Bergen") == 1 and "21.5" in shown
    assert (await call(servers, "demo_words", n=3)).split() == ["word"] * 3
    assert "image/png" in await call(servers, "demo_image") and "PNG\\" not in await call(servers, "demo_image")
    assert await call(servers, "demo_empty") == "(an empty answer)"


async def test_five_megabytes_are_cut(connect: Open, pids: Path) -> None:
    shown = await call(connect(stdio(pids)), "demo_big")
    assert len(shown) <= RESULT_CHARS + 200
    assert "cut here" in shown


async def test_calls_run_side_by_side(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids))
    slow = asyncio.create_task(call(servers, "demo_slow", seconds=30))
    assert await call(servers, "demo_plain", x=1) == "x is 1"
    assert not slow.done()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert await call(servers, "demo_plain", x=2) == "x is 2"


async def test_a_child_gets_only_the_environment_that_is_named(
    connect: Open, pids: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARSD_SECRET", "sesame")
    servers = connect(stdio(pids, env={"TOKEN": "for you"}))
    shown = await call(servers, "demo_env")
    assert "for you" in shown and "sesame" not in shown
    assert await call(servers, "demo_folder") == str(tmp_path)


# A yes


async def test_a_call_is_proposed_unless_the_settings_allow_it(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, allow=("structured",)))
    found = await tools(servers)
    proposal = await found["demo_plain"].run({"x": 3}, CONTEXT)
    assert isinstance(proposal, ToolProposal)
    assert proposal.title == "Call plain of the MCP server demo"
    assert (await proposal.apply()).text == "x is 3"
    assert isinstance(await found["demo_structured"].run({"city": "Bergen"}, CONTEXT), Result)
    assert (found["demo_plain"].allowed, found["demo_structured"].allowed) == (False, True)


async def test_private_text_leaves_by_no_standing_yes(connect: Open, pids: Path) -> None:
    found = await tools(connect(stdio(pids)))
    context = Context("c-1", Reader(Notes(Path("/nowhere"))), _write, private=True)
    assert isinstance(await found["demo_plain"].run({"x": 3}, context), ToolProposal)


async def test_the_toolbox_offers_and_calls_them_and_asks_when_the_turn_was_private(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, name="notes"))
    await servers.ready(ENOUGH_S)
    toolbox = Toolbox([], sources=[servers])
    assert "notes_plain" in {spec.name for spec in toolbox.specs()}
    answer = await toolbox.call("notes_plain", {"x": 3}, CONTEXT)
    assert isinstance(answer, Result) and answer.text == "x is 3"
    assert toolbox.allowed("notes_plain")
    assert not toolbox.allowed("notes_plain", private=True)


# What servers say is not trusted


async def test_a_description_is_short_and_hides_nothing_and_opens_no_tag(connect: Open, pids: Path) -> None:
    shown = (await tools(connect(stdio(pids))))["demo_evil"].description
    assert len(shown) < DESCRIPTION_CHARS + 100
    assert "<" not in shown and "\u200b" not in shown and "\u2062" not in shown
    assert "MCP server demo" in shown


async def test_names_are_legal_and_unique_whatever_the_server_calls_its_tools(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids), reserved=["demo_plain"])
    found = await names(servers)
    assert len(found) == len(set(found))
    assert await names(servers) == found
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in found)
    assert "demo_plain" not in found
    assert {"demo_bad_name_really", "demo_read_file"} <= set(found)
    for name in found:
        if name.startswith(("demo_plain_", "demo_read_file", "demo_bad", "demo_aaa")):
            assert await call(servers, name, x=1) == "x is 1"


async def test_no_server_can_take_the_name_of_another_ones_tool(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "odd", name="a"), stdio(pids, "odd", name="a_echo"), stdio(pids, "odd", name="b"))
    found = await names(servers)
    assert "a_echo" in found and "b_echo" in found
    assert not [name for name in found if name == "a_echo_echo"]


async def test_tools_that_cannot_be_used_are_left_out_and_named(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "odd"))
    assert set(await tools(servers)) == {"demo_echo", "demo_liar", "demo_loose"}
    skipped: Any = servers.state()[0]["skipped"]
    assert [one["tool"] for one in skipped] == ["list", "", "huge", "echo"]
    assert all(one["reason"] for one in skipped)


# What fails


async def test_a_failure_that_the_tool_explains_reaches_the_model(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids))
    with pytest.raises(ToolError, match="kaboom: the tank is empty"):
        await call(servers, "demo_boom")
    with pytest.raises(ToolError) as error:
        await call(servers, "demo_crash")
    assert "Traceback" not in error.value.message and "secret" not in error.value.message
    with pytest.raises(ToolError):
        await call(servers, "demo_plain", x="no number")
    assert state(servers) == "ready"


@pytest.mark.report("https://github.com/IBM/mcp-context-forge/issues/4042")
async def test_an_answer_that_breaks_the_servers_own_promise_is_used(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "odd"))
    assert await call(servers, "demo_liar") == 'echo\n{"m": 1}'
    assert await call(servers, "demo_echo") == "echo"
    assert await call(servers, "demo_loose") == 'just a text\n{"result": [1, 2]}'
    assert (await tools(servers))["demo_loose"].schema["properties"] == {"top": {"type": "array", "items": {}}}


async def test_a_slow_tool_is_given_up_and_the_server_is_kept(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "sleepy", timeout_s=2))
    with pytest.raises(ToolError, match="within 2 s"):
        await call(servers, "demo_nap")
    assert await call(servers, "demo_echo") == "echo"
    assert len(pids.read_text().split()) == 1


async def test_a_server_that_hangs_is_started_again(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "frozen", timeout_s=2))
    found = await tools(servers)
    with pytest.raises(ToolError, match="within 2 s"):
        await found["demo_echo"].run({}, CONTEXT)
    await until(lambda: state(servers) == "lost")
    assert "demo_echo" in {tool.name for tool in servers.tools()}
    await servers.ready(ENOUGH_S)
    assert state(servers) == "ready"
    assert len(pids.read_text().split()) == 2


async def test_a_server_that_dies_in_a_call_fails_that_call_once_and_is_back_for_the_next(
    connect: Open, pids: Path
) -> None:
    servers = connect(stdio(pids))
    found = await tools(servers)
    with pytest.raises(ToolError, match="may or may not"):
        await found["demo_die"].run({}, CONTEXT)
    assert await call(servers, "demo_plain", x=1) == "x is 1"
    assert len(pids.read_text().split()) == 2


async def test_a_server_that_dies_between_calls_is_replaced_before_the_next(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids))
    found = await tools(servers)
    kill(pids)
    await until(lambda: state(servers) == "lost")
    answer = await found["demo_plain"].run({"x": 4}, CONTEXT)
    assert isinstance(answer, Result) and answer.text == "x is 4"


async def test_a_server_over_http_that_dies_and_comes_back_is_used_again(connect: Open, pids: Path) -> None:
    with McpHttp(pids) as http:
        servers = connect(http.server(timeout_s=20))
        found = await tools(servers)
        slow = asyncio.ensure_future(found["web_slow"].run({"seconds": 600}, CONTEXT))
        await asyncio.sleep(0.2)
        http.stop()
        with pytest.raises(ToolError):
            await slow
        with pytest.raises(ToolError):
            await found["web_plain"].run({"x": 1}, CONTEXT)
        http.start()

        async def answers() -> bool:
            try:
                return await call(servers, "web_plain", x=2) == "x is 2"
            except (ToolError, KeyError):
                return False

        deadline = time.monotonic() + ENOUGH_S
        while not await answers():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        await servers.close()


@pytest.mark.parametrize(
    ("server", "reason", "hint"),
    [
        (McpServer("x", command=("/no/such/program",)), "was not found", "full path"),
        (McpServer("x", command=("/",)), "cannot be started", "Check the command"),
        (
            McpServer("x", url="http://127.0.0.1:9/mcp?key=sesame"),
            "No server answers at http://127.0.0.1:9/mcp.",
            "Start",
        ),
    ],
    ids=["missing", "no program", "nobody listens"],
)
async def test_a_server_that_is_not_there_is_told_with_a_reason(
    connect: Open, server: McpServer, reason: str, hint: str
) -> None:
    servers = connect(server)
    assert await tools(servers) == {}
    [shown] = servers.state()
    assert shown["state"] == "down"
    assert reason in str(shown["reason"]) and hint in str(shown["hint"])
    assert "sesame" not in str(shown)


async def test_a_server_that_ends_at_once_is_told_with_its_own_last_words(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "broken"))
    assert await tools(servers) == {}
    assert "no module named left_pad" in str(servers.state()[0]["reason"])


async def test_a_server_that_garbles_its_greeting_is_told(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "garbled"))
    assert await tools(servers) == {}
    assert "an invalid answer" in str(servers.state()[0]["reason"])


async def test_a_url_that_is_no_mcp_server_is_told(connect: Open, pids: Path) -> None:
    with McpHttp(pids) as http:
        servers = connect(McpServer("x", url=http.url.replace("/mcp", "/other")))
        assert await tools(servers) == {}
        assert state(servers) == "down"
        assert "endpoint" in str(servers.state()[0]["hint"])


class Web(Double):
    """What else answers at a URL."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self._reply = reply

    def reply(self, call: Call) -> Reply:
        """As the base."""
        return self._reply


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=401, json={"error": "who are you?"}),
        Reply(status=500, json={}),
        Reply(stream=[b"<html>Welcome</html>"], content_type="text/html"),
        Reply(stream=[b"{]"]),
        Reply(json=["no", "rpc"]),
        Reply(status=307, headers={"location": "http://127.0.0.1:9/mcp"}),
        Reply(stream=[ABORT]),
        Reply(stream=[b"data: {}\n\n"], content_type="text/event-stream"),
        Reply(stream=[600.0]),
    ],
    ids=["no key", "broken", "a page", "no JSON", "no RPC", "elsewhere", "torn", "empty events", "silent"],
)
async def test_a_url_where_something_else_answers_is_told(connect: Open, reply: Reply) -> None:
    with Web(reply) as web:
        servers = connect(McpServer("x", url=f"{web.url}/mcp", timeout_s=2))
        assert await tools(servers) == {}
        [shown] = servers.state()
        assert shown["state"] == "down" and shown["reason"] and shown["hint"]
        await servers.close()


async def test_half_a_letter_does_no_harm(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids))
    with pytest.raises(ToolError):
        await call(servers, "demo_plain", x="\ud83d")
    assert await call(servers, "demo_structured", city="\ud83d") != ""
    assert len(pids.read_text().split()) == 1


async def test_a_silent_server_holds_nobody_up_and_is_ended(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "silent", timeout_s=1.0), stdio(pids, name="good"))
    assert servers.tools() == []
    await servers.ready(ENOUGH_S)
    assert [one["state"] for one in servers.state()] == ["down", "ready"]
    assert "did not answer within 1 s" in str(servers.state()[0]["reason"])
    assert len(alive(pids)) == 1
    assert "good_plain" in {tool.name for tool in servers.tools()}


async def test_waiting_for_servers_has_a_bound(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "silent", timeout_s=600))
    await servers.ready(0.01)
    assert state(servers) == "connecting"
    assert servers.tools() == []


async def test_a_server_that_ignores_what_it_does_not_know_is_asked_in_the_old_way(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "deaf", timeout_s=3))

    def there() -> bool:
        return bool(servers.tools())

    await until(there)
    assert len(pids.read_text().split()) > 1  # the first was given up: it did not answer in time
    assert await call(servers, "demo_echo") == "echo"


@pytest.mark.parametrize("mode", ["banner", "complaining"])
async def test_stray_words_on_standard_output_and_much_on_standard_error_do_no_harm(
    connect: Open, pids: Path, mode: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await call(connect(stdio(pids, mode)), "demo_plain", x=1) == "x is 1"
    assert "xxx" not in "".join(capfd.readouterr())


async def test_a_server_that_only_babbles_is_given_up(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "chatterbox", timeout_s=30))
    assert await tools(servers) == {}
    assert "other than MCP" in str(servers.state()[0]["reason"])


async def test_a_server_that_begins_to_babble_is_given_up(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "babble"))
    with pytest.raises(ToolError):
        await call(servers, "demo_echo")
    await until(lambda: "other than MCP" in str(servers.state()[0]["reason"]))


# Lists that change


async def test_a_new_tool_is_seen_when_the_server_says_so(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids), refresh_s=3600)
    assert "demo_grown" not in await tools(servers)
    assert await call(servers, "demo_grow") == "grown"
    await until(lambda: "demo_grown" in {tool.name for tool in servers.tools()})
    assert await call(servers, "demo_grown", x=5) == "x is 5"


async def test_an_old_list_is_renewed_beside_the_turn(connect: Open, pids: Path) -> None:
    with McpHttp(pids) as http:
        servers = connect(http.server(), refresh_s=0)
        await tools(servers)
        assert await call(servers, "web_grow") == "grown"
        await until(lambda: "web_grown" in {tool.name for tool in servers.tools()})
        await servers.close()


# Beginning and end


async def test_a_server_that_will_not_leave_is_killed(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, "stubborn"))
    assert await call(servers, "demo_echo") == "echo"
    await servers.close()
    assert alive(pids) == []


@pytest.mark.parametrize("mode", ["tools", "silent"])
async def test_closing_while_connecting_leaves_no_child(connect: Open, pids: Path, mode: str) -> None:
    servers = connect(stdio(pids, mode, timeout_s=600))
    servers.tools()
    await until(pids.exists)
    await servers.close()
    assert alive(pids) == []


async def test_closing_at_once_or_twice_or_unused_is_fine(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids))
    servers.tools()
    await servers.close()
    await servers.close()
    assert servers.tools() == []
    assert not pids.exists()
    await connect().close()


async def test_a_call_in_flight_ends_when_we_close(connect: Open, pids: Path) -> None:
    servers = connect(stdio(pids, timeout_s=600))
    found = await tools(servers)
    slow = asyncio.ensure_future(found["demo_slow"].run({"seconds": 600}, CONTEXT))
    await asyncio.sleep(0.1)
    await servers.close()
    with pytest.raises(ToolError):
        await slow
    with pytest.raises(ToolError, match="not available"):
        await found["demo_plain"].run({"x": 1}, CONTEXT)


def test_a_program_that_is_killed_leaves_no_child(pids: Path, tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from tarsd.notes import Reader
from tarsd.tools.catalog import Toolbox
from tarsd.notes import Reader
from tarsd.tools.mcp import McpServers
from tests.support.toolkit import Notes
from tests.support.doubles.mcp_server import stdio
async def main():
    servers = McpServers([stdio(Path(sys.argv[1]))], cwd=Path(sys.argv[2]))
    await servers.ready(60)
    print(servers.state()[0]["state"], flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, str(pids), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, env={**os.environ}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    deadline = time.monotonic() + ENOUGH_S
    while alive(pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("configured", [False, True])
def test_the_sdk_is_not_loaded_before_it_is_needed(configured: bool) -> None:
    servers: Sequence[str] = ["McpServer('x', command=('true',))"] if configured else []
    code = f"""
import sys
from tarsd.config import McpServer
from tarsd.notes import Reader
from tarsd.tools.catalog import Toolbox
from tarsd.notes import Reader
from tarsd.tools.mcp import McpServers
servers = McpServers([{", ".join(servers)}])
servers.state()
print([name for name in sys.modules if name.split(".")[0] in ("mcp", "mcp_types", "httpx2")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
