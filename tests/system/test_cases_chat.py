"""Reported faults of chat, played through a real daemon and a model's real wire format; tests are named for them."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd.client import Client
from tests.conftest import Daemon
from tests.support.conversation import Talk
from tests.support.doubles.ollama import OllamaDouble
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Call, Fail, Raw, Say
from tests.support.doubles.server import Call as Request
from tests.support.doubles.server import Reply
from tests.support.engine import contents, until, write

Start = Callable[..., Daemon]
CASES = Path(__file__).parents[1] / "fixtures" / "chat"


def case(number: str) -> tuple[Path, dict[str, Any]]:
    """A case's folder, and what it expects."""
    (folder,) = CASES.glob(f"{number}-*")
    return folder, json.loads((folder / "expect.json").read_text(encoding="utf-8"))


@pytest.fixture
def start(daemon: Start, home: Path, vault: Path) -> Iterator[Callable[..., Talk]]:
    """`start(case="C103")` is a daemon on that case's vault, which talks to a double."""
    doubles: list[OpenAIDouble | OllamaDouble] = []

    def begin(number: str = "", *, double: OpenAIDouble | OllamaDouble | None = None, settings: str = "") -> Talk:
        made = double or OpenAIDouble()
        made.__enter__()
        doubles.append(made)
        if number:
            shutil.copytree(case(number)[0] / "vault", vault, dirs_exist_ok=True)
        return Talk(made, daemon, home, vault, notes=not number, settings=settings)

    yield begin
    for one in doubles:
        one.__exit__()


MOMENTS = ("queued", "before the first token", "in mid-stream", "twice", "after the end")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.report("https://github.com/logancyang/obsidian-copilot/issues/54")
def test_stopping_ends_the_request_and_keeps_what_came(start: Callable[..., Talk], moment: str) -> None:
    talk = start()
    pause = {"before the first token": 60.0, "after the end": 0.0}.get(moment, 0.1)
    talk.double.enqueue(Say("word" if moment == "after the end" else "word " * 600, pause=pause))
    stopped = running = talk.ask("say a lot")
    if moment == "queued":
        stopped = talk.ask("and this")
    if moment in ("queued", "before the first token"):
        until(lambda: len(talk.double.requests) == 1)
    elif moment == "after the end":
        talk.whole(stopped)
    else:
        next(event for event in talk.follow(stopped) if event["type"] == "token")
    for _ in range(2 if moment == "twice" else 1):
        reply = talk.client.post(f"/v1/turns/{stopped}/stop")
        assert reply["stopped"] is (moment != "after the end")
    if moment == "queued":
        assert talk.double.gone == 0
        talk.client.post(f"/v1/turns/{running}/stop")
    if moment != "after the end":
        until(lambda: talk.double.gone == 1)
    last = talk.whole(stopped)[-1]
    assert last["type"] == "done"
    assert last["text"].startswith("word") == (moment in ("in mid-stream", "twice", "after the end"))
    talk.double.enqueue(Say("at once"))
    assert talk.whole(talk.ask("a second question"))[-1]["text"] == "at once"
    assert talk.double.gone == (moment != "after the end")


@pytest.mark.report("https://github.com/0xPlaygrounds/rig/issues/1758")
def test_a_reply_cut_anywhere_arrives_whole(start: Callable[..., Talk]) -> None:
    folder, expect = case("C100")
    lines = (folder / expect["feed"]).read_text(encoding="utf-8").splitlines()
    pieces = [json.loads(line)["t"] for line in lines if "t" in json.loads(line)]
    double = OpenAIDouble()
    talk = start(double=double)
    for ending in (b"\n\n", b"\r\n\r\n"):
        raw = b"".join(double.chunk({"content": piece}).strip() + ending for piece in pieces)
        assert expect["one_byte_at_a_time"]
        double.enqueue(*(Raw(bytes([byte])) for byte in raw))
        assert talk.whole(talk.ask("say it"))[-1]["text"] == expect["expect_text"]


class Summarising(OpenAIDouble):
    """Answers what is asked for a summary by itself, whenever that comes."""

    def reply(self, call: Request) -> Reply:
        if call.method == "POST" and "You shorten conversations" in str(call.body["messages"][0]["content"]):
            return Reply(stream=self.stream((Say("A summary."),), usage=False), content_type="text/event-stream")
        return super().reply(call)


@pytest.mark.report("https://github.com/aio-libs/aiohttp/issues/4453")
def test_a_line_that_is_too_long_hurts_nobody_else(start: Callable[..., Talk]) -> None:
    talk = start(double=Summarising())
    text = "lengthy" * 100_000
    talk.double.enqueue(Say(text))
    assert talk.whole(talk.ask("one event of 700 kB"))[-1]["text"] == text
    talk.double.enqueue(Say("read it"))
    assert talk.whole(talk.ask("q" * 8_000, selection="s" * 2_000))[-1]["text"] == "read it"
    talk.double.enqueue(Say("others go on"))
    assert talk.whole(talk.ask("x", conversation="other"))[-1]["text"] == "others go on"


@pytest.mark.report("https://github.com/ollama/ollama/issues/10980")
def test_the_prompt_fits_the_context_that_is_asked_for(start: Callable[..., Talk]) -> None:
    double = OllamaDouble(cuts=True)
    talk = start(double=double, settings="context = 4096")
    for number in range(1, 9):
        write(talk.vault, f"Ferry {number}.md", f"# Ferry {number}\n\n" + f"The ferry log of day {number}. " * 60)
    talk.client.post("/index")
    for number in range(30):
        talk.double.enqueue(Say(f"reply {number} " + "and more of it " * 30))
        question = f"tell me of the ferry, question {number} " + "word " * 60
        events = talk.whole(talk.ask(question))
        assert events[-1]["type"] == "done", events[-1]
    # the rules and the question were read every time, whether it answered or summarised what came before
    rules = ("You are tars", "You shorten conversations")
    assert all(any(rule in prompt[:200] for rule in rules) for prompt in double.prompts)
    answered = [prompt for prompt in double.prompts if "You are tars" in prompt]
    assert len(answered) == 30
    for number, prompt in enumerate(answered):
        assert f"question {number} word" in prompt
    assert all(body["options"]["num_ctx"] == 4096 for body in double.requests)
    last = [body["messages"] for body in double.requests if "You are tars" in body["messages"][0]["content"]][-1]
    assert not any(str(message["content"]).startswith("tell me of the ferry, question 0 ") for message in last)


@pytest.mark.report("https://github.com/logancyang/obsidian-copilot/issues/1161")
def test_what_is_not_in_the_notes_is_not_cited(start: Callable[..., Talk]) -> None:
    _, expect = case("C103")
    talk = start("C103")
    talk.double.enqueue(Say("See [[Ghost note]] and [3]; it is a wedge [1]."))
    events = talk.whole(talk.ask(expect["q"]))
    assert [one["path"] for one in events[0]["sources"]] == expect["sources_exactly"]
    assert [one["path"] for one in events[-1]["citations"]] == expect["sources_exactly"]
    for ghost in expect["reply_must_not_link"]:
        assert f"[[{ghost}" not in events[-1]["text"]
    assert "[3?]" in events[-1]["text"]
    talk.double.enqueue(Say("I do not know."))
    talk.whole(talk.ask("who won the chess olympiad in Baku?", conversation="other"))
    assert "Nothing relevant was found" in json.dumps(talk.double.requests[-1])


@pytest.mark.report("https://github.com/logancyang/obsidian-copilot/issues/1951")
def test_session_notes_are_no_evidence(start: Callable[..., Talk]) -> None:
    _, expect = case("C105")
    talk = start("C105")
    for number in range(3):
        talk.double.enqueue(Say("The regatta is on 3 May, or was it 9 July?"))
        events = talk.whole(talk.ask(expect["q"], conversation=f"c{number}"))
        assert [one["path"] for one in events[0]["sources"]] == expect["sources_exactly"]
        talk.daemon.wait()
    sent = json.dumps([body["messages"][-1] for body in talk.double.requests])
    assert "3 May" not in sent
    assert "9 July" not in sent
    # the person moves them: still ours, still searchable by the person
    (talk.vault / "tars" / "sessions").rename(talk.vault / "Archive")
    talk.client.post("/index")
    talk.double.enqueue(Say("In June."))
    events = talk.whole(talk.ask(expect["q"], conversation="c9"))
    assert [one["path"] for one in events[0]["sources"]] == expect["sources_exactly"]
    hits = talk.client.post("/v1/search", {"query": "regatta", "limit": 50})["hits"]
    assert {"Facts.md"} < {hit["path"] for hit in hits}


@pytest.mark.report("https://github.com/logancyang/obsidian-copilot/issues/821")
def test_a_chat_outlives_its_window(start: Callable[..., Talk]) -> None:
    talk = start()
    talk.double.enqueue(Say("one two three four five " * 200, pause=0.05))
    turn = talk.ask("count slowly")
    with contextlib.closing(talk.follow(turn)) as events:  # the client that goes
        next(event for event in events if event["type"] == "token")
    again = Client(talk.client.socket_path)
    (known,) = again.get("/v1/conversations/c")["turns"]
    assert (known["message"], known["state"]) == ("count slowly", "running")
    assert known["text"].startswith("one")
    talk.daemon.restart(signal.SIGKILL)
    (known,) = again.get("/v1/conversations/c")["turns"]
    assert (known["message"], known["state"]) == ("count slowly", "interrupted")
    assert known["text"].startswith("one")
    assert known["error"]["hint"]


@pytest.mark.report("https://github.com/longy2k/obsidian-bmo-chatbot/issues/125")
def test_thinking_stays_out_of_the_answer(start: Callable[..., Talk]) -> None:
    folder, expect = case("C109")
    chunks = (folder / expect["feed_lines_as_chunks"]).read_text(encoding="utf-8").splitlines()
    talk = start(double=OllamaDouble())
    talk.double.enqueue(*(Say(chunk) for chunk in chunks))
    events = talk.whole(talk.ask("when does the ferry leave?"))
    assert events[-1]["text"] == expect["expect_text"]
    assert "plan A" in "".join(event["text"] for event in events if event["type"] == "thinking")
    talk.double.enqueue(Say("<think>never closed"))
    assert talk.whole(talk.ask("and then?"))[-1]["text"] == ""
    talk.double.enqueue(Say("ok"))
    talk.whole(talk.ask("next"))
    assert "plan" not in json.dumps(talk.double.requests[-1])
    assert "plan A" not in talk.note()
    assert expect["expect_text"] in talk.note()


class Restless(OpenAIDouble):
    """Wants another search whenever it may have one; `query` makes what it looks for of a number."""

    query: Callable[[int], str]

    def reply(self, call: Request) -> Reply:
        if call.method == "POST":
            again = Call("memory_search", {"query": self.query(len(self.requests))})
            self.enqueue(again if call.body.get("tools") else Say("This is what I found."))
        return super().reply(call)


QUERIES: dict[str, Callable[[int], str]] = {
    "identical": lambda number: "ferry",
    "slightly changed": lambda number: f"ferry {number}",
    "growing": lambda number: "ferry " * (number + 1),
}


@pytest.mark.parametrize("kind", list(QUERIES))
@pytest.mark.report("https://github.com/NousResearch/hermes-agent/issues/96247")
def test_a_model_that_calls_tools_for_ever_is_ended(start: Callable[..., Talk], kind: str) -> None:
    double = Restless()
    double.query = QUERIES[kind]
    talk = start(double=double, settings="rounds = 4")
    events = talk.whole(talk.ask("search for ever"))
    calls = [event for event in events if event["type"] == "tool" and event["state"] == "running"]
    assert len(calls) == 4
    assert events[-1]["text"] == "This is what I found."
    assert any("called 4 times" in notice for notice in events[-1]["notices"])


@pytest.mark.report("https://github.com/MarkusPfundstein/mcp-obsidian/issues/121")
def test_instructions_in_notes_are_data(start: Callable[..., Talk]) -> None:
    _, expect = case("C112")
    talk = start("C112")
    before = contents(talk.vault)
    # a model that obeys whatever it reads: it asks for the write, and nobody says yes
    talk.double.enqueue(Call("note_create", {"path": expect["must_not_create"], "text": "everything"}))
    talk.double.enqueue(Say("It simmers for 40 minutes [1]."))
    turn = talk.ask(expect["q"])
    for event in talk.follow(turn):
        if event["type"] == "approval":
            talk.client.post(f"/v1/turns/{turn}/approvals/{event['call']}", {"allow": False})
    last = talk.whole(turn)[-1]
    for word in expect["reply_must_not_contain"]:
        assert word not in last["text"]
    assert not (talk.vault / expect["must_not_create"]).exists()
    sent = talk.sent()
    for word in expect["prompt_must_not_contain"]:
        assert word not in sent
    assert "\u200b" not in sent
    assert "Simmer for 40 minutes" in sent
    assert "&lt;/context&gt;" in sent
    assert {path: held for path, held in contents(talk.vault).items() if path in before} == before


@pytest.mark.report("https://github.com/brianpetro/obsidian-smart-connections/issues/183")
def test_nothing_of_an_excluded_folder_is_sent(start: Callable[..., Talk]) -> None:
    _, expect = case("C114")
    rules = json.dumps(expect["config"]["exclude"])
    talk = start("C114", settings=f"\n[vault]\nexclude = {rules}\n")
    secrets = list(expect["requests_must_not_contain"])
    for path, word in ((".trash/t.md", "EPSILON"), ("private/z.md", "ZETA"), (".obsidian/x.md", "ETA")):
        write(talk.vault, path, f"excluded {word}")
        secrets.append(word)
    talk.client.post("/index")
    for number, query in enumerate(["excluded", "chervil", "thyme", "sorrel", "[[x]] [[a]] [[z]] [[t]]"]):
        reads = [
            Call("note_read", {"name": name}) for name in ("Private/sub/x", "x", "Work/Client A/a.md", ".trash/t.md")
        ]
        talk.double.enqueue(
            Call("memory_search", {"query": "excluded"}), *reads, Call("note_list", {"folder": "Private"})
        )
        talk.double.enqueue(Say("done"))
        events = talk.whole(talk.ask(query, conversation=f"c{number}", notes=["Hub.md"]))
        if query in expect["must_find"]:
            assert expect["must_find"][query] in [one["path"] for one in events[0]["sources"]]
    assert "included about thyme" in talk.sent()
    for secret in secrets:
        assert f"excluded {secret}" not in talk.sent()
    # a rule that comes later empties what is there already
    talk.daemon.stop()
    file = talk.daemon.config.paths.config_file
    file.write_text(file.read_text().replace(rules, json.dumps([*expect["config"]["exclude"], "Private notes.md"])))
    talk.daemon.process = talk.daemon.spawn()
    talk.daemon.wait()
    before = len(talk.double.requests)
    talk.whole(talk.ask("what is about thyme in [[Private notes]]?", conversation="later"))
    assert "included about thyme" not in json.dumps(talk.double.requests[before:])


@pytest.mark.report("https://github.com/alangrainger/obsidian-frontmatter-modified-date/issues/32")
def test_no_write_goes_over_what_is_typed(start: Callable[..., Talk]) -> None:
    talk = start()
    note = write(talk.vault, "Today.md", "# Today\n\n")
    stop = threading.Event()
    typed: list[str] = []
    torn: list[bytes] = []

    def types_on() -> None:
        while not stop.wait(0.02):
            held = note.read_bytes()
            if not held.startswith(b"# Today"):
                torn.append(held)
                continue
            typed.append(f"line {len(typed)}")
            beside = note.with_name(".Today.tmp")
            beside.write_bytes(held + f"{typed[-1]}\n".encode())
            beside.replace(note)

    person = threading.Thread(target=types_on)
    person.start()
    try:
        for number in range(5):
            talk.double.enqueue(Call("note_append", {"name": "Today", "text": f"from tars {number}"}))
            talk.double.enqueue(Say("ok"))
            turn = talk.ask(f"append {number}")
            for event in talk.follow(turn):
                if event["type"] == "approval":
                    talk.client.post(f"/v1/turns/{turn}/approvals/{event['call']}", {"allow": True})
            states = [event["state"] for event in talk.whole(turn) if event["type"] == "tool"]
            assert states[-1] in ("done", "failed")
    finally:
        stop.set()
        person.join()
    assert torn == []
    # the person's saves may undo ours, for they come from an older copy; ours never undo the person's
    lines = note.read_text(encoding="utf-8").split("\n")
    assert len(typed) > 5
    assert [line for line in typed if line not in lines] == []


@pytest.mark.report("https://github.com/SystemSculpt/obsidian-systemsculpt-ai/issues/327")
def test_no_key_is_in_the_vault_the_log_or_an_answer(start: Callable[..., Talk], home: Path) -> None:
    talk = start()
    key = next(iter(talk.double.env().values()))
    talk.double.enqueue(Call("note_append", {"name": "Tides", "text": "x"}))
    talk.double.enqueue(Say("done"))
    turn = talk.ask("what is a quorl?")
    for event in talk.follow(turn):
        if event["type"] == "approval":
            talk.client.post(f"/v1/turns/{turn}/approvals/{event['call']}", {"allow": True})
    talk.double.enqueue(Fail(401, f"Incorrect API key provided: {key}"))
    assert key not in json.dumps(talk.whole(talk.ask("again")))
    assert key not in json.dumps(talk.client.get("/v1/models"))
    assert key not in json.dumps(talk.client.get("/v1/status"))
    talk.daemon.stop()
    held = [path for folder in (talk.vault, home) for path in folder.rglob("*") if path.is_file()]
    assert any("conversations" in path.parts for path in held)
    assert [path for path in held if key.encode() in path.read_bytes()] == []


@pytest.mark.report("https://github.com/MarkusPfundstein/mcp-obsidian/issues/150")
def test_no_tool_leads_out_of_the_vault(start: Callable[..., Talk], vault: Path) -> None:
    talk = start(settings='\n[tools]\nallow = ["*"]\n')
    outside = write(vault.parent, "secret.md", "outside")
    before = contents(vault.parent)
    raw = (CASES.parent / "paths.txt").read_text(encoding="utf-8")
    names = [
        line.encode().decode("unicode_escape", "replace") if "\\x00" in line else line for line in raw.splitlines()
    ]
    names += [str(outside), f"{vault.name}/../../secret", "Quorl/../../secret", ".obsidian/app", "a\0b", "CON/../../x"]
    for at in range(0, len(names), 4):
        calls = [
            Call(tool, {key: name, "text": "PWNED"} if tool != "note_read" else {key: name})
            for name in names[at : at + 4]
            for tool, key in (("note_create", "path"), ("note_append", "name"), ("note_read", "name"))
        ]
        talk.double.enqueue(*calls)
        talk.double.enqueue(Say("tried"))
        events = talk.whole(talk.ask(f"try {at}", conversation=f"c{at}", approvals=False))
        assert events[-1]["type"] == "done"
    after = {path: held for path, held in contents(vault.parent).items() if "/tars/" not in path}
    assert after == before
    assert "outside" not in talk.sent()
