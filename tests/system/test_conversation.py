"""Whole conversations over the real socket: one contract, played with each provider's wire format."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd import keys
from tarsd.parse import parse
from tests.conftest import Daemon
from tests.support.conversation import Double, Talk
from tests.support.doubles.anthropic import AnthropicDouble
from tests.support.doubles.ollama import OllamaDouble
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Call, Say, Step, Think
from tests.support.engine import until, write

Start = Callable[..., Daemon]


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


class Conversation:
    """Played by every provider; subclasses bring the double."""

    def double(self) -> Double:
        raise NotImplementedError

    @pytest.fixture
    def talk(self, daemon: Start, home: Path, vault: Path) -> Iterator[Talk]:
        with self.double() as double:
            yield Talk(double, daemon, home, vault)

    def test_three_turns_with_tools_approval_stop_reconnect_and_restart(self, talk: Talk) -> None:
        # the first: the model looks something up, and cites what it was given
        talk.double.enqueue(Think("hm"), Call("memory_search", {"query": "Carrow Slip high water"}))
        talk.double.enqueue(Say("The wedge holds the ramp [1]; see [[Ghost note]]."))
        first = talk.whole(talk.ask("what is a quorl?"))
        assert first[-1]["type"] == "done"
        assert first[-1]["text"] == "The wedge holds the ramp [1]; see Ghost note."
        assert [one["path"] for one in first[-1]["citations"]] == ["Quorl.md"]
        assert [event["state"] for event in first if event["type"] == "tool"] == ["running", "done"]
        assert "brass wedge" in talk.sent()
        assert "06:12" in talk.sent()

        # the second: a change that waits for a yes, over a connection that is lost and taken up again
        talk.double.enqueue(Call("note_append", {"name": "Tides", "text": "Low water at 12:30."}))
        talk.double.enqueue(Say("Added it."))
        turn = talk.ask("add the low water to it")
        seen = []
        for event in talk.follow(turn):
            seen.append(event)
            if event["type"] == "approval":
                break
        assert seen[-1]["type"] == "approval", [event.get("text") for event in seen]
        assert "+Low water at 12:30." in seen[-1]["diff"]
        assert "12:30" not in (talk.vault / "Tides.md").read_text()
        talk.client.post(f"/v1/turns/{turn}/approvals/{seen[-1]['call']}", {"allow": True})
        rest = list(talk.follow(turn, seen[-1]["seq"]))
        assert [event["seq"] for event in seen + rest] == list(range(1, len(seen + rest) + 1))
        assert rest[-1]["text"].endswith("Added it.")
        assert (talk.vault / "Tides.md").read_text().endswith("06:12.\n\nLow water at 12:30.\n")

        # the third: stopped in the middle; the model's connection closes, the text stays
        talk.double.enqueue(Say("one two three " * 500, pause=0.05))
        turn = talk.ask("count for me")
        for event in talk.follow(turn):
            if event["type"] == "token":
                break
        assert talk.client.post(f"/v1/turns/{turn}/stop")["stopped"] is True
        until(lambda: talk.double.gone == 1)
        assert talk.whole(turn)[-1]["stopped"] is True
        assert talk.whole(turn)[-1]["text"].startswith("one")

        # a restart in the middle of a fourth: what was said is kept, and marked
        talk.double.enqueue(Say("half a word " * 500, pause=0.05))
        turn = talk.ask("go on")
        for event in talk.follow(turn):
            if event["type"] == "token":
                break
        talk.daemon.restart(signal.SIGKILL)
        last = talk.whole(turn)[-1]
        assert (last["type"], last["error"]["code"]) == ("failed", "interrupted")
        assert last["text"].startswith("half")
        said = talk.client.get("/v1/conversations/c")["turns"]
        assert [turn["state"] for turn in said] == ["done", "done", "stopped", "interrupted"]

        # and it goes on, with everything before in the prompt and in the note
        talk.double.enqueue(Say("Welcome back."))
        assert talk.whole(talk.ask("are you there?"))[-1]["text"] == "Welcome back."
        assert "The wedge holds the ramp" in json.dumps(talk.double.requests[-1], ensure_ascii=False)
        note = talk.note()
        for text in ("The wedge holds the ramp [1]", "Added it.", "Stopped before the end", "Welcome back."):
            assert text in note
        assert parse(note, "n.md").properties["tars"] == "session"
        assert "hm" not in parse(note, "n.md").lines

    def test_a_no_and_nobody_to_ask(self, talk: Talk) -> None:
        before = (talk.vault / "Tides.md").read_bytes()
        talk.double.enqueue(Call("note_append", {"name": "Tides", "text": "x"}))
        talk.double.enqueue(Say("I could not."))
        reply = talk.client.post("/chat", {"message": "add x to Tides", "conversation_id": "plain"})
        assert reply["reply"] == "I could not."
        assert (talk.vault / "Tides.md").read_bytes() == before
        assert "nobody is there" in json.dumps(talk.double.requests[-1])

    def test_a_dead_model_is_told_and_the_conversation_goes_on(self, talk: Talk) -> None:
        from tests.support.doubles.script import Cut, Fail

        steps: list[tuple[Step, ...]] = [(Fail(401, "no"),), (Say("half"), Cut()), (Say("half"), Cut(abort=True))]
        for number, broken in enumerate(steps):
            talk.double.enqueue(*broken)
            last = talk.whole(talk.ask(f"question {number}"))[-1]
            assert last["type"] == "failed"
            assert last["error"]["message"].endswith(".")
            assert "sk-" not in json.dumps(last)
        talk.double.enqueue(Say("fine"))
        assert talk.whole(talk.ask("and now?"))[-1]["text"] == "fine"

    def test_two_clients_and_two_conversations(self, talk: Talk) -> None:
        talk.double.enqueue(Say("slow words " * 20, pause=0.02))
        talk.double.enqueue(Say("quick"))
        slow = talk.ask("slowly")
        until(lambda: len(talk.double.requests) == 1)
        queued = talk.ask("after that")
        results: list[list[dict[str, Any]]] = []
        reader = threading.Thread(target=lambda: results.append(talk.whole(slow)))
        reader.start()
        assert types(talk.whole(queued))[0] == "queued"
        reader.join(60)
        assert results[0] == talk.whole(slow)

    def test_what_is_remembered_is_known_in_the_next_conversation(self, talk: Talk) -> None:
        talk.double.enqueue(Call("memory_remember", {"text": "Otto the cat is diabetic"}))
        talk.double.enqueue(Say("I will."))
        turn = talk.ask("remember that Otto the cat is diabetic")
        for event in talk.follow(turn):
            if event["type"] == "approval":
                assert "+- Otto the cat is diabetic" in event["diff"]
                talk.client.post(f"/v1/turns/{turn}/approvals/{event['call']}", {"allow": True})
        talk.double.enqueue(Say("He is."))
        talk.whole(talk.ask("how is Otto?", conversation="another"))
        assert "Otto the cat is diabetic" in json.dumps(talk.double.requests[-1])
        talk.client.post("/v1/memory/undo")
        assert talk.client.get("/v1/memory")["facts"] == []

    def test_a_client_writes_what_it_claims(self, talk: Talk) -> None:
        talk.double.enqueue(Say("Hello."))
        turn = talk.ask("hello", writer="client")
        events = []
        for event in talk.follow(turn):
            events.append(event)
            if event["type"] == "write":
                assert talk.client.post(f"/v1/writes/{event['id']}/claim")["content"] == event["content"]
                target = talk.vault / event["path"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(event["content"], encoding="utf-8")
                talk.client.post(f"/v1/writes/{event['id']}", {"ok": True})
        assert types(events)[-2:] == ["write", "done"] or "written" in types(events)
        until(lambda: "Hello." in talk.note())


class TestAnthropic(Conversation):
    def double(self) -> Double:
        return AnthropicDouble()


def test_a_key_that_comes_later_is_used_without_a_restart(
    daemon: Start, home: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnthropicDouble() as double:
        double.key = "sk-ant-right"
        (home / "config.toml").write_text(double.config(), encoding="utf-8")
        client = daemon(vault, TARSD_CHAT="").client
        for key, expected in ((None, "failed"), ("sk-ant-wrong", "failed"), ("sk-ant-right", "done")):
            if key is not None:
                keys.put("anthropic", key)
            double.enqueue(Say("hello"))
            body = {"conversation": "c", "message": "hello", "request_id": f"{key}"}
            turn = client.post("/v1/turns", body)["turn"]
            last = list(client.stream(f"/v1/turns/{turn}/events"))[-1]
            assert last["type"] == expected, last
            if expected == "failed":
                assert "tarsd key set anthropic" in last["error"]["hint"]


def test_what_a_private_conversation_leaves_behind_stays_private(daemon: Start, home: Path, vault: Path) -> None:
    with OllamaDouble() as double:
        talk = Talk(double, daemon, home, vault, settings='\n[privacy]\nlocal_only = ["Private/"]\n')
        write(vault, "Private/Code.md", "# Code\n\nThe quorl code is 0000.\n")
        talk.client.post("/index")
        double.enqueue(Say("The quorl code is 0000, for the brass wedge."))
        assert talk.whole(talk.ask("what is the quorl code?"))[-1]["private"] is True
        double.enqueue(Say("Hello."))
        assert "private" not in talk.whole(talk.ask("hello", conversation="open"))[-1]
        known = [("The code is 0000", "c"), ("Bread is baked on Fridays", "open"), ("Ada rows", "nobody"), ("Pim", "")]
        for text, conversation in known:
            talk.client.post("/v1/memory", {"text": text, "conversation": conversation})
        facts = talk.client.get("/v1/memory")["facts"]
        assert [(one["line"], one["private"]) for one in facts] == [(text, name == "c") for text, name in known]
        talk.client.post("/v1/memory", {"text": "The code is 1111", "replace": "The code is 0000"})
        assert talk.client.get("/v1/memory")["facts"][0]["private"] is True

        # the person takes the properties out: what the logs know counts, after a restart too
        (note,) = [one for one in (vault / "tars" / "sessions").glob("*.md") if "0000" in one.read_text()]
        note.write_text(note.read_text().split("---\n", 2)[2], encoding="utf-8")
        for _ in range(2):
            talk.client.post("/index")
            double.enqueue(Say("It is a wedge."))
            events = talk.whole(talk.ask("what is the quorl code?", conversation=f"later {talk.asked}"))
            assert "Private/Code.md" in [one["path"] for one in events[0]["sources"]]
            assert not [one for one in events[0]["sources"] if one["path"].startswith("tars/sessions/")]
            talk.daemon.stop()
            talk.daemon.process = talk.daemon.spawn()
            talk.daemon.wait()


def test_what_is_remembered_at_the_same_moment_is_all_remembered(daemon: Start, vault: Path) -> None:
    client = daemon(vault).client
    facts = [f"Drawer {number} holds {word}" for number, word in enumerate(("nails", "glue", "twine", "wax", "files"))]
    threads = [threading.Thread(target=client.post, args=("/v1/memory", {"text": fact})) for fact in facts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one["line"] for one in client.get("/v1/memory")["facts"]) == facts


def test_a_key_that_changes_cuts_no_answer(
    daemon: Start, home: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.put("anthropic", "sk-ant-first")
    with AnthropicDouble() as double:
        (home / "config.toml").write_text(double.config(), encoding="utf-8")
        client = daemon(vault, TARSD_CHAT="").client
        double.enqueue(Say("slow words " * 40, pause=0.05))
        body = {"conversation": "a", "message": "slowly", "request_id": "a"}
        slow = client.post("/v1/turns", body)["turn"]
        until(lambda: len(double.requests) == 1)
        keys.put("anthropic", "sk-ant-second")
        double.key = "sk-ant-second"
        for number in range(2):  # the first is refused, the second goes with the new key
            body = {"conversation": "b", "message": "quickly", "request_id": f"b{number}"}
            turn = client.post("/v1/turns", body)["turn"]
            last = list(client.stream(f"/v1/turns/{turn}/events"))[-1]
        assert last["type"] == "done", last
        assert list(client.stream(f"/v1/turns/{slow}/events"))[-1]["type"] == "done"


def test_a_key_file_that_is_none_is_told_and_mended_without_a_restart(
    daemon: Start, home: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "keys.json"
    file.mkdir()
    with AnthropicDouble() as double:
        (home / "config.toml").write_text(double.config(), encoding="utf-8")
        client = daemon(vault, TARSD_CHAT="").client
        for number, expected in enumerate(("failed", "done")):
            body = {"conversation": "c", "message": "hello", "request_id": str(number)}
            turn = client.post("/v1/turns", body)["turn"]
            last = list(client.stream(f"/v1/turns/{turn}/events"))[-1]
            assert last["type"] == expected, last
            if expected == "failed":
                assert "keys.json" in last["error"]["message"]
                file.rmdir()
                keys.put("anthropic", "sk-ant-x")


class TestOllama(Conversation):
    def double(self) -> Double:
        return OllamaDouble()


class TestOpenAI(Conversation):
    def double(self) -> Double:
        return OpenAIDouble()
