"""`tarsd mcp` as a process: its protocol, its pipes, its end, and how clients are told to start it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarsd.mcp_stdio.lines import cleaned
from tests.support.doubles.script import Say
from tests.support.engine import until
from tests.support.mcp_client import (
    PROGRAM,
    Answering,
    House,
    Wire,
    call,
    serving,
)
from tests.support.stub import Run

# ------------------------------------------------------------------------------------------------ the process


@pytest.mark.parametrize(
    "query", ["ferry \\ud83d", "\\uDE00 ferry", "ferry \\ud83d\\u0041", "\\ud83d\\ud83d\\ude00 ferry"]
)
def test_half_a_character_is_answered(house: House, query: str) -> None:
    with Wire(house.home, house.vault) as wire:
        wire.begin()
        params = f'{{"name":"search_notes","arguments":{{"query":"{query}"}}}}'
        wire.write(f'{{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{params}}}'.encode())
        wire.send("ping", id=51)
        answers = {one["id"]: one["result"] for one in (wire.next(), wire.next())}
        assert answers[50]["structuredContent"]["hits"] and answers[51] == {}
        assert wire.end() == 0


def test_only_half_a_character_is_replaced() -> None:
    for same in (r'{"a":"\ud83d\ude00 \\ud83d \n \" \u00e9 \\"}', "no json \\", '{"a":"\\\\ud83d"}', ""):
        assert cleaned(same) == same
    assert json.loads(cleaned(r'{"a":"\\\ud83d \ud83d\ude00 \udE00"}')) == {"a": "\\\ufffd \U0001f600 \ufffd"}


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ],
)
def test_protocol_versions(house: House, asked: str, answered: str) -> None:
    with Wire(house.home, house.vault) as wire:
        result = wire.begin(asked)
        assert result["protocolVersion"] == answered and result["serverInfo"]["name"] == "tarsd"
        assert {"tools", "resources", "prompts", "completions"} <= set(result["capabilities"])
        assert not wire.tool("search_notes", query="dry dock")["result"].get("isError")
        assert wire.end() == 0


async def test_the_newest_protocol_without_a_handshake_too(house: House) -> None:
    for mode in ("auto", "legacy"):
        async with serving(house.home, house.vault, mode=mode) as client:
            assert (client.protocol_version >= "2026") is (mode == "auto")
            assert (await call(client, "recent_notes"))[0]["notes"]


def test_noise_is_no_trouble_and_nothing_but_messages_is_said(house: House) -> None:
    code = """
import os, sys
from tarsd.mcp_stdio.link import DaemonLink
find = DaemonLink.open.__func__
def noisy(*arguments, **more):
    print("stray words"); sys.stdout.flush(); os.write(1, b"more of them\\n"); os.system("echo and a child")
    return find(*arguments, **more)
DaemonLink.open = classmethod(noisy)
from tarsd.cli import main
main()
"""
    with Wire(house.home, house.vault, code=code) as wire:
        wire.begin()
        for line in (b"no JSON", b"", b"[1, 2]", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b'{"id": 1}', b"{" * 9999):
            wire.write(line)
        assert "error" in wire.ask("no/such/method")
        assert not wire.tool("search_notes", query="dry dock")["result"].get("isError")
        assert wire.end() == 0
        assert wire.process.stdout is not None
        rest = wire.process.stdout.read()
    assert rest == b"" and all(json.loads(line)["jsonrpc"] for line in wire.seen.splitlines())
    assert b"stray words" in wire.errors and b"and a child" in wire.errors


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
def test_it_ends_at_once_and_so_does_what_it_began(answering: Answering, how: str) -> None:
    answering.double.enqueue(Say("slow words " * 2000, pause=0.05))
    with Wire(answering.home, answering.vault) as wire:
        wire.begin()
        wire.send("tools/call", {"name": "ask", "arguments": {"question": "Count for me"}}, id=77)
        until(lambda: answering.double.open == 1)
        if how == "end of input":
            assert wire.end() == 0
        else:
            wire.process.send_signal(getattr(signal, how))
            assert wire.process.wait(60) == 128 + getattr(signal, how)
        until(lambda: [turn["state"] for turn in answering.turns()] == ["stopped"])
    assert b"Traceback" not in wire.errors


def test_a_daemon_that_hangs_does_not_keep_it(house: House) -> None:
    house.daemon.process.send_signal(signal.SIGSTOP)
    try:
        with Wire(house.home, house.vault) as wire:
            wire.begin()
            wire.send("tools/call", {"name": "recent_notes", "arguments": {}}, id=77)
            time.sleep(0.2)
            began = time.monotonic()
            assert wire.end() == 0
            assert time.monotonic() - began < 30  # it would wait for 45
    finally:
        house.daemon.process.send_signal(signal.SIGCONT)


def test_answers_are_out_before_it_ends(house: House) -> None:
    command = [sys.executable, *PROGRAM, "--vault", str(house.vault)]
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
    env = {**os.environ, "TARSD_HOME": str(house.home)}
    done = subprocess.run(command, input=message + "\n", capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0 and json.loads(done.stdout)["id"] == 1


def test_it_loads_nothing_heavy() -> None:
    code = "import sys, tarsd.cli.mcp, tarsd.mcp_stdio; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "mcp" in loaded
    assert not {"numpy", "aiohttp", "onnxruntime", "apsw", "tokenizers", "watchdog", "rich", "keyring"} & set(loaded)
    assert {name.split(".")[1] for name in loaded if name.startswith("tarsd.")} <= {
        "errors", "config", "protocol", "client", "mcp_stdio", "cli",
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------ setting it up


def test_what_is_printed_for_claude_desktop_works(house: House, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARSD_HOME", str(house.home))
    code, out, err = run("mcp", "--setup", "desktop", "--vault", str(house.vault))
    about = json.loads(out)["mcpServers"]["tarsd"]
    assert code == 0 and "claude_desktop_config.json" in err and os.path.isabs(about["command"])
    process = subprocess.Popen(
        [about["command"], *about["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd="/", env={"HOME": "/", "PATH": "/usr/bin:/bin", **about["env"]},
    )  # fmt: skip
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "recent_notes", "arguments": {}}},
    ]
    assert process.stdin is not None and process.stdout is not None
    for line in lines:
        process.stdin.write(json.dumps(line).encode() + b"\n")
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.communicate(timeout=60)
    assert process.returncode == 0 and answers[1]["result"]["structuredContent"]["notes"]


def test_what_is_printed_for_claude_code(run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "My Notes"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("mcp", "--setup", "code", "--vault", "My Notes", "--local")
    words = shlex.split(out)
    at = words.index("--")
    assert code == 0 and words[:3] == ["claude", "mcp", "add"]
    assert words[3:at] == ["--env", f"TARSD_HOME={home}", "--scope", "user", "tarsd"]
    assert os.path.isabs(words[at + 1]) and words[-4:] == ["mcp", "--vault", str(folder), "--local"]
    code, out, err = run("mcp", "--setup")
    assert code == 0 and "mcpServers" in out and "claude mcp add" in out and "Give the vault with --vault" in err
    run("init", "--vault", str(folder))
    assert str(folder) in run("mcp", "--setup", "code")[1]
