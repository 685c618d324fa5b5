"""Plays one scripted day with a real daemon, and keeps a reply of every route and the events of whole turns.

`scripts/golden` writes them to tests/golden, where the tests of the plugin read them as well. What differs
from run to run (ids, times, places, versions) is written the same in each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Daemon
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Call, Cut, Fail, Say, Think
from tests.support.engine import write
from tests.support.rawhttp import TOKEN, exchange, message

GOLDEN = Path(__file__).parents[1] / "golden"

SETTINGS = """
[memory]
session_notes = false
[ollama]
host = "http://127.0.0.1:1"
[http]
enabled = true
port = 0
"""

NOTES = {
    "Harbour/Quorl.md": "---\ntags: [ferry]\naliases: [brass wedge]\n---\n# Quorl\n\n## Use\n\n"
    "A quorl is the brass wedge that holds the ferry ramp level. See [[Tides]].\n",
    "Harbour/Tides.md": "# Tides\n\nHigh water at Carrow Slip was at 06:12.\n",
    "Grüße 🍵.md": "# Grüße\n\nTee aus 京都, und ein Lied.\n",
    "Broken.md": "---\ntags: [a\n---\n# Broken\n\nIts properties cannot be read.\n",
}

RAMP = """\
---
kind: repair
cost: 58.00 €
---
# Ramp

- [ ] Grease the hinge 📅 2020-11-30 ⏫
- [x] Order the bolts ✅ 2026-11-20
"""
"""A note that is only there while it is asked for."""

DAY = "2026-11-28"
FIXED = {"pid": 4242, "uptime_s": 12.5, "rss_mb": 120.5, "took_ms": 2.5, "ms": 2.5, "seconds": 0.5, "version": "0.1.0"}
FIXED |= {"behind": 0, "pending": 0, "lacking": ""}  # of the environment; files are watched while it is played
FIXED |= dict.fromkeys(("at", "created", "updated", "modified"), 1795867200.0)
"""Values that are different each time, by their key."""

ESTIMATED = 3400
"""Tokens where they were estimated, for the prompt holds the day."""

OTHERS = {"turn", "turn_refused", "turn_stopped", "turn_failed", "errors"}
"""The files that are no reply of a route: the events of whole turns, and what is refused."""


class Player:
    """A daemon, its model, and everything that it said; `said` is by the name of the file."""

    def __init__(self, daemon: Daemon, double: OpenAIDouble) -> None:
        self.daemon = daemon
        self.client = daemon.client
        self.double = double
        self.said: dict[str, Any] = {}
        self._asked = 0

    def keep(self, name: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ask, and keep the reply."""
        reply = self.client.request(method, path, body)
        self.said[name] = reply
        return reply

    def lines(self, name: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Ask for a stream, with POST if there is a body, and keep its lines."""
        self.said[name] = list(self.client.stream(path, body))

    def ask(self, text: str, conversation: str = "c1") -> str:
        """The id of a new turn."""
        self._asked += 1
        body = {
            "conversation": conversation,
            "message": text,
            "request_id": f"r{self._asked}",
            "writer": "client",
            "approvals": True,
        }
        reply = self.client.post("/v1/turns", body)
        self.said.setdefault("start_turn", reply)
        return str(reply["turn"])

    def follow(self, turn: str, on: Callable[[dict[str, Any]], None] = lambda event: None) -> list[dict[str, Any]]:
        """All events of a turn; `on` gets each as it comes."""
        events = []
        for event in self.client.stream(f"/v1/turns/{turn}/events"):
            events.append(event)
            on(event)
        return events

    def until(self, turn: str, type: str) -> dict[str, Any]:
        """The first event of this type."""
        for event in self.client.stream(f"/v1/turns/{turn}/events"):
            if event["type"] == type:
                return event
        raise AssertionError(f"there was no {type}")

    def refused(self, method: str, path: str, body: bytes = b"", **headers: Any) -> None:
        """Ask over TCP for what is refused, and keep status and body."""
        port = int(self.client.get("/v1/status")["http"]["url"].rpartition(":")[2])
        reply = exchange(port, message(port, method, path, body, **headers))
        assert reply.status >= 400, (method, path)
        self.said.setdefault("errors", []).append(
            {"request": f"{method} {path}", "status": reply.status, "body": reply.json}
        )


def play(home: Path, vault: Path) -> dict[str, Any]:
    """Everything that was said, by the names of the files."""
    for path, text in NOTES.items():
        write(vault, path, text)
    with OpenAIDouble(model="scripted") as double:
        own, _, rest = double.config().partition("\n\n")
        home.joinpath("config.toml").write_text(f"{own}\n\n{rest}{SETTINGS}", encoding="utf-8")
        env = {"TARSD_HOME": str(home), "TARSD_CHAT": "", "TARSD_TCP_KEY": TOKEN, **double.env()}
        daemon = Daemon(vault, env)
        try:
            daemon.wait(lambda status: bool(status["behind"] == 0 and status["http"]["url"]))
            player = Player(daemon, double)
            _index(player)
            _talk(player)
            _remember(player)
            _refuse(player)
            player.keep("shutdown", "POST", "/v1/shutdown")
            daemon.process.wait(60)
        finally:
            if daemon.process.poll() is None:
                daemon.process.kill()
            daemon.process.communicate(timeout=30)
        places = {str(vault): "/home/ada/Notes", str(home): "/home/ada/.tarsd", double.url: "http://127.0.0.1:8080"}
        places[player.said["hello"]["vault"]["id"]] = "0123456789ab"
        places[player.said["status"]["http"]["url"]] = "http://127.0.0.1:8427"
        places[f'"{vault.name}"'] = '"Notes"'
    return normalised(player.said, places)


def _index(player: Player) -> None:
    player.keep("hello", "GET", "/v1/hello")
    player.lines("reindex", "/v1/reindex", {"full": True})
    player.lines("check", "/v1/check", {})
    player.lines("vectors", "/v1/vectors")
    row = ["0123456789abcdef" * 2, "ADwAAAAAAAA="]
    player.keep("add_vectors", "POST", "/v1/vectors", {"model": "0123456789abcdef", "dim": 4, "rows": [row]})
    player.keep("plain_index", "POST", "/index", {"paths": ["Harbour/Tides.md"]})
    player.daemon.wait()
    player.keep("status", "GET", "/v1/status")
    player.keep("search", "POST", "/v1/search", {"query": "brass wedge", "limit": 3})
    player.keep("related", "POST", "/v1/related", {"path": "Harbour/Tides.md", "limit": 3})
    player.keep("why", "POST", "/v1/why", {"path": "Harbour/Quorl.md", "query": "brass wedge"})
    player.keep("notes", "GET", "/v1/notes")
    player.keep("note", "GET", "/v1/notes/Harbour/Quorl.md")
    player.keep("models", "GET", "/v1/models")
    ramp = write(player.daemon.vault, "Harbour/Ramp.md", RAMP)
    player.client.post("/index")
    player.daemon.wait()
    asked = {"where": "cost > 10", "columns": ["cost", "file.tags"], "group": "kind", "summaries": {"cost": "sum"}}
    player.keep("query", "POST", "/v1/query", asked)
    player.keep("tasks", "POST", "/v1/tasks", {"state": "all"})
    player.keep("digest", "POST", "/v1/digest", {"limit": 1})
    ramp.unlink()
    player.client.post("/index")
    player.daemon.wait()
    task = {"action": "add", "note": "Tides", "text": "Oil the ramp", "due": DAY}
    player.keep("change_task", "POST", "/v1/tasks/change", task)


def _talk(player: Player) -> None:
    double, client = player.double, player.client
    # the first waits for a yes, so that the second is queued behind it; it gets a no
    double.enqueue(Call("note_append", {"name": "Tides", "text": "Low water at 12:30."}))
    double.enqueue(Say("Then I leave it as it is."))
    first = player.ask("Add the low water to Tides")
    asked = player.until(first, "approval")
    double.enqueue(Fail(503, "overloaded", headers={"retry-after": "0"}))
    double.enqueue(
        Think("The tides are in a note. "),
        Say("Let me add it."),
        Call("note_append", {"name": "Tides", "text": "Low water at 12:30."}),
    )
    double.enqueue(Say("It is in the note. </think>"), Say("Added it; a quorl is a brass wedge [1], see [[Nowhere]]."))
    second = player.ask("What is the brass wedge that holds the ferry ramp level? And do add it")
    player.until(second, "queued")
    client.post(f"/v1/turns/{first}/approvals/{asked['call']}", {"allow": False})
    player.said["turn_refused"] = player.follow(first)
    written = []

    def on(event: dict[str, Any]) -> None:
        if event["type"] == "approval":
            player.keep("approve", "POST", f"/v1/turns/{second}/approvals/{event['call']}", {"allow": True})
        if event["type"] == "write":
            order = player.keep("claim_write", "POST", f"/v1/writes/{event['id']}/claim")
            with (player.daemon.vault / order["path"]).open("a", encoding="utf-8", newline="") as file:
                file.write(order["content"])
            player.keep("report_write", "POST", f"/v1/writes/{event['id']}", {"ok": True})
            written.append(event["id"])

    player.said["turn"] = player.follow(second, on)
    player.said["turn_events"] = client.get(f"/v1/turns/{second}/events?after=3&wait=1")
    player.keep("undo_write", "POST", f"/v1/writes/{written[0]}/undo")
    client.post("/index")

    double.enqueue(Say("one "), Say("two", pause=600))
    third = player.ask("Count for me")
    player.until(third, "token")
    player.keep("stop_turn", "POST", f"/v1/turns/{third}/stop")
    player.said["turn_stopped"] = player.follow(third)
    double.enqueue(Say("half of it"), Cut())
    player.said["turn_failed"] = player.follow(player.ask("And now?"))
    double.enqueue(Say("A quorl is a brass wedge [1]."))
    player.keep("plain_chat", "POST", "/chat", {"conversation_id": "plain", "message": "What is a quorl?"})
    player.keep("usage", "GET", "/v1/usage?conversation=c1")
    player.keep("conversations", "GET", "/v1/conversations")
    player.keep("conversation", "GET", "/v1/conversations/c1")
    player.keep("rename_conversation", "PATCH", "/v1/conversations/c1", {"title": "The ferry"})
    player.keep("close_conversation", "POST", "/v1/conversations/plain/close")
    player.keep("save_conversation", "POST", "/v1/conversations/plain/save")
    player.keep("feedback", "POST", "/v1/feedback", {"turn": second, "verdict": "wrong", "note": "At 12:31."})
    player.keep("delete_conversation", "DELETE", "/v1/conversations/plain")


def _remember(player: Player) -> None:
    client = player.client
    player.keep("remember", "POST", "/v1/memory", {"text": "My sister Ann lives in York", "section": "Family"})
    client.post("/v1/memory", {"kind": "procedural", "text": "Answer in metres", "conversation": "c1"})
    client.post("/v1/memory", {"text": "Otto is a cat"})
    player.keep("forget", "POST", "/v1/memory/forget", {"line": "Otto is a cat"})
    player.keep("undo_memory", "POST", "/v1/memory/undo")
    player.keep("memory", "GET", "/v1/memory")
    player.keep("add_prompt", "POST", "/v1/prompts", {"name": "weekly"})
    player.keep("prompts", "GET", "/v1/prompts")
    player.double.enqueue(Say("- Give times to the minute. (1)"))
    review = player.keep("review", "POST", "/v1/review")
    decisions = [{"id": one["id"], "action": "apply"} for one in review["proposals"]]
    player.keep("apply_review", "POST", "/v1/review/apply", {"review": review["review"], "decisions": decisions})


def _refuse(player: Player) -> None:
    player.refused("GET", "/v1/nothing")
    player.refused("DELETE", "/v1/search")
    player.refused("POST", "/v1/search", b"{")
    player.refused("POST", "/v1/search", b'{"query": 1}')
    player.refused("POST", "/v1/related", b'{"path": "../../etc/passwd"}')
    player.refused("POST", "/v1/vectors", b'{"model": "0123456789abcdef", "dim": 4, "rows": [["ab", "AA=="]]}')
    player.refused("GET", "/v1/turns/none/events")
    player.refused("POST", f"/v1/writes/{player.said['claim_write']['id']}/claim")
    player.refused("POST", "/v1/memory", b'{"text": "My sister Ann lives in Leeds", "section": "Family"}')
    player.refused("GET", "/v1/hello", token=None)
    player.refused("GET", "/v1/hello", token="wrong")
    player.refused("GET", "/v1/hello", token="wrong")
    while "too_many_tries" not in json.dumps(player.said["errors"][-1]):
        player.said["errors"].pop()
        player.refused("GET", "/v1/hello", token="wrong")
    player.refused("GET", "/v1/hello", Host="evil.example")
    player.refused("GET", "/v1/hello", Origin="https://evil.example")


# ------------------------------------------------------------------------------------------------ the same each time


def normalised(said: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    """The same without what is different each time."""
    text = json.dumps(said, ensure_ascii=False)
    turns = [*(one["id"] for one in said["conversation"]["turns"]), said["plain_chat"]["turn"]]
    writes = re.findall(r"\bw-[0-9a-f]{12}-[0-9a-f]{8}\b", text)
    for kind, ids in (("turn", turns), ("write", writes)):
        for number, one in enumerate(dict.fromkeys(ids), 1):
            text = text.replace(one, f"{kind}-{number}")
    for real, shown in sorted(places.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(real, shown)
    text = re.sub(r"\b20\d\d-\d\d-\d\dT\d{6}\b", f"{DAY}T120000", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d \d\d:\d\d\b", f"{DAY} 12:00", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?", f"{DAY}T12:00:00+00:00", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d\b", DAY, text)
    text = re.sub(r"(about|About) [\d,]+ tokens", rf"\1 {ESTIMATED:,} tokens", text)
    text = re.sub(r'"20\d\d-\d\d"', f'"{DAY[:7]}"', text)
    return {name: _fixed(value) for name, value in json.loads(text).items()}


def _fixed(value: Any, key: str = "") -> Any:
    if key in FIXED and isinstance(value, str) == isinstance(FIXED[key], str):
        return FIXED[key]
    if key == "review" and isinstance(value, str):
        return "review-1"
    if isinstance(value, dict):
        value = value | ({"input_tokens": ESTIMATED} if value.get("estimated") else {})
        return {name: _fixed(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_fixed(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its place; of what is empty, what it is."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{place}.{name}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from leaves(item, f"{place}[{number}]")
    else:
        yield place, value


def play_alone() -> dict[str, Any]:
    """The same in folders of its own, whatever is set for whoever runs this."""
    home, folder = (Path(tempfile.mkdtemp(prefix="t", dir="/tmp")).resolve() for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("TARSD_", "OLLAMA_", "OPENAI_", "ANTHROPIC_"))]:
            patch.delenv(name)
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        try:
            vault = folder / "vault-of-the-tests"
            (vault / ".obsidian").mkdir(parents=True)
            return play(home, vault)
        finally:
            shutil.rmtree(home, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Write the files anew."""
    said = play_alone()
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.glob("*.json"):
        old.unlink()
    for name, value in sorted(said.items()):
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        (GOLDEN / f"{name}.json").write_text(text, encoding="utf-8")
    print(f"{len(said)} files in {GOLDEN}")


if __name__ == "__main__":
    main()
