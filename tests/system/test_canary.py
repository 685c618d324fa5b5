"""A key and a sentence of a note, sent to servers that repeat everything: where they must not be found afterwards."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Daemon
from tests.support.doubles.echo import EchoDouble
from tests.support.doubles.openai import OpenAIDouble, failed, sse
from tests.support.doubles.script import Call, Fail, Raw, Say
from tests.support.doubles.server import Call as Request
from tests.support.doubles.server import Reply
from tests.support.engine import write
from tests.support.stub import Run

Start = Callable[..., Daemon]

KEYS = {
    "TARSD_OPENAI_KEY": "sk-canary-Zx81QpLm77",
    "TARSD_TODOIST_KEY": "canary0todoist0token0Kw93",
    "MCP_TOKEN": "canary-mcp-Tt55Rr66",
}
SENTENCE = "Ottilie owes the harbour master nine hundred crowns since the regatta"
NOTE = f"# Regatta\n\n{SENTENCE}.\n"

MCP = """
import json, os, sys
for text in sys.stdin:
    message = json.loads(text)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    method = message["method"]
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "x", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        answer["result"] = {"tools": [{"name": n, "inputSchema": schema} for n in ("refuse", "fail", "tell", "crash")]}
    elif method == "tools/call":
        said = f"cannot take {json.dumps(message['params'])} with {json.dumps(dict(os.environ))}"
        name = message["params"]["name"]
        if name == "crash":
            print(said[:1500], file=sys.stderr, flush=True)
            os._exit(3)
        if name == "refuse":
            answer["error"] = {"code": -32000 - 5, "message": said}
        else:
            answer["result"] = {"content": [{"type": "text", "text": said}], "isError": name == "fail"}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""


class Repeating(OpenAIDouble):
    """A chat model that answers as told, and repeats in its errors everything it was sent; it embeds as `echo` does."""

    def __init__(self, echo: EchoDouble) -> None:
        super().__init__()
        self.echo = echo

    def reply(self, call: Request) -> Reply:
        if call.path == "/v1/embeddings":
            return self.echo.reply(call)
        reply = super().reply(call)
        if call.path.endswith("completions") and reply.status >= 400:
            words = f"cannot take {json.dumps(dict(call.headers))} {json.dumps(call.body, ensure_ascii=False)}"
            return failed(Fail(reply.status, words, "invalid_request_error"))
        return reply


@pytest.fixture
def echo() -> Iterator[EchoDouble]:
    with EchoDouble() as server:
        yield server


def below(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path, path.read_bytes()


@pytest.mark.parametrize(("inside", "statuses"), [(False, (400, 401, 429, 500)), (True, (400, 429))])
@pytest.mark.report("https://github.com/agentrust-io/cmcp/issues/194")
@pytest.mark.report("https://github.com/RedHatInsights/tangerine-backend/issues/309")
def test_no_key_and_no_sentence_of_a_note_gets_out_of_what_servers_say(
    vault: Path, home: Path, tmp_path: Path, daemon: Start, echo: EchoDouble, run: Run, inside: bool,
    statuses: tuple[int, ...],
) -> None:  # fmt: skip
    echo.status, echo.inside = statuses[0], inside
    write(vault, "Regatta.md", NOTE)
    (tmp_path / "mcp.py").write_text(MCP)
    with Repeating(echo) as model:
        (home / "config.toml").write_text(
            '[chat]\nmodel = "openai:small-model"\n[embedding]\nmodel = "openai:e"\n'
            f'[openai]\nbase_url = "{model.url}/v1"\n'
            f'[tools]\nallow = ["*"]\ntodoist_url = "{echo.url}/api/v1"\nweather_place = "Kiel"\n'
            f'weather_url = "{echo.url}/w"\ngeocoding_url = "{echo.url}/g"\n'
            f'[[mcp]]\nname = "demo"\ncommand = ["{sys.executable}", "{tmp_path}/mcp.py"]\nallow = ["*"]\n'
            f'env = {{ MCP_TOKEN = "{KEYS["MCP_TOKEN"]}" }}\n'
        )
        own = {name: value for name, value in KEYS.items() if name.startswith("TARSD")}
        one = daemon(vault, TARSD_CHAT="", TARSD_EMBEDDING="", **own)
        asked = [0]

        def turn(*steps: Any) -> list[dict[str, Any]]:
            for step in steps:
                model.enqueue(step)
            asked[0] += 1
            body = {"conversation": "c", "message": "Who owes money since the regatta?", "request_id": f"r{asked[0]}"}
            id = one.client.post("/v1/turns", body)["turn"]
            return list(one.client.stream(f"/v1/turns/{id}/events?after=0"))

        said: list[Any] = [turn(Say("warm"))]
        one.wait(lambda status: bool(status["chat"]["mcp"][0]["tools"]))
        for status in statuses:
            echo.status = status
            for name, arguments in (
                ("todoist_list", {"filter": "today"}),
                ("weather", {}),
                ("demo_refuse", {"text": SENTENCE}),
                ("demo_fail", {}),
                ("demo_tell", {}),
                ("demo_crash", {"text": SENTENCE}),
            ):
                said.append(turn(Call(name, arguments), Say("so")))
            said.append(turn(Fail(status)))
            error = {"message": f"{KEYS['TARSD_OPENAI_KEY']} {NOTE}", "code": status}
            said.append(turn(Raw(sse({"error": error}))))
            refused = [event["error"] for events in said[-2:] for event in events if event.get("error")]
            assert refused or status == 429
        state = one.wait(lambda status: bool(status["embedding"]["reason"]))
        doctor = run("doctor", "--vault", str(vault), "--report", str(tmp_path / "report.md"))
        shown = json.dumps([state, doctor, one.client.get("/v1/models")], ensure_ascii=False)
        one.client.post("/v1/conversations/c/close", {})
        assert one.stop() == 0
    places = (home, home.parent / "h", vault, tmp_path / "report.md")
    config = home / "config.toml"
    for key in KEYS.values():
        assert key not in shown and key not in json.dumps(said)
        assert [path for path, raw in below(*places[:3]) if key.encode() in raw and path != config] == []
    assert "regatta" not in shown.lower().replace("regatta.md", "")
    logs = [raw for path, raw in below(home) if path.suffix == ".log"]
    assert logs and not any(b"nine hundred" in raw for raw in logs)
    errors = [event.get("error") for events in said for event in events if event.get("error")]
    assert errors and "nine hundred" not in json.dumps(errors)
    assert "cannot take" in shown  # it did repeat things
