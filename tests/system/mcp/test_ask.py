"""`tarsd mcp`: what is remembered and asked through it, and that nothing private leaves."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Call, Cut, Say
from tests.support.engine import contents, until, write
from tests.support.mcp_client import (
    Answering,
    House,
    Start,
    Wire,
    call,
    living,
    refused,
    serving,
    text_of,
)
from tests.support.pdfs import pdf

# ------------------------------------------------------------------------------------------------ remember, ask


async def test_a_file_is_read_by_lines_with_its_pages(daemon: Start, home: Path, vault: Path) -> None:
    (vault / "manual.pdf").write_bytes(pdf([["Introduction."], ["The warranty of the kettle is seven years."]]))
    one = daemon()
    until(lambda: one.wait()["files"]["read"] == 1)
    async with serving(home, vault) as client:
        found = (await call(client, "search_notes", query="kettle warranty"))[0]["hits"][0]
        assert "# page 2" in (await call(client, "read_note", path=found["path"]))[1]
        lines = {"start_line": found["start_line"], "end_line": found["end_line"]}
        text = (await call(client, "read_note", path="manual.pdf", **lines))[1]
        assert "seven years" in text and "Introduction" not in text


async def test_what_is_to_be_remembered_waits_for_a_review(daemon: Start, home: Path, vault: Path) -> None:
    one = daemon()
    one.client.post("/v1/memory", {"text": "The boat is called Plover"})
    before = contents(vault)
    async with serving(home, vault) as client:
        data, text = await call(client, "remember", text="Otto the cat is diabetic")
        assert data["state"] == "waits for review" and "tarsd review" in text
        # what is known already adds nothing, and nobody is told that it is known
        for again in ("Otto the cat is diabetic", "The boat is called Plover"):
            assert (await call(client, "remember", text=again))[1] == text
    memory = one.client.get("/v1/memory")
    assert [(line["line"], line["session"]) for line in memory["noticed"]] == [("Otto the cat is diabetic", "mcp")]
    assert [line["line"] for line in memory["facts"]] == ["The boat is called Plover"]
    after = contents(vault)
    assert set(after) - set(before) == {"tars/Noticed.md"} and all(after[path] == before[path] for path in before)
    review = one.client.post("/v1/review")
    assert [proposal["text"] for proposal in review["proposals"]] == ["Otto the cat is diabetic"]


async def test_memory_that_is_off_or_full_is_told(daemon: Start, home: Path, vault: Path) -> None:
    (home / "config.toml").write_text("[memory]\nenabled = false\n", encoding="utf-8")
    one = daemon()
    async with serving(home, vault) as client:
        assert "Memory is off." in await refused(client, "remember", text="Otto is a cat")
        one.stop()
        (home / "config.toml").write_text("", encoding="utf-8")
        rows = "".join(f"- Drawer {number} holds something\n" for number in range(98))
        write(vault, "tars/Noticed.md", f"# Noticed\n\n{rows}")
        one.process = one.spawn()
        one.wait()
        assert "is full" in await refused(client, "remember", text="Otto is a cat")


async def test_without_a_chat_model_the_answer_is_quotes(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        data, text = await call(client, "ask", question="When does the ferry go to the dry dock?")
        assert "> The ferry goes to the dry dock on 18 January." in data["answer"] and data["model"] == "extractive"
        cited = data["citations"][0]
        assert (cited["n"], cited["path"]) == (1, "Ferry/Dry dock.md") and cited["uri"].startswith("obsidian://")
        assert data["sources"] and data["refused"] == [] and not data["stopped"]
        assert "[1] Ferry/Dry dock.md:" in text and data["conversation"].startswith("mcp-")


async def test_an_answer_changes_nothing_and_says_what_was_refused(answering: Answering) -> None:
    double, vault = answering.double, answering.vault
    double.enqueue(Call("note_append", {"name": "Tides", "text": "Low water at 12:30."}))
    double.enqueue(
        Call("note_create", {"path": "New", "text": "x"}), Call("memory_remember", {"text": "Otto is a cat"})
    )
    double.enqueue(Say("A quorl is a brass wedge [1]; I could not add the rest."))
    double.enqueue(Say("As I said."))
    before = contents(vault)
    told: list[tuple[float, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with serving(answering.home, vault) as client:
        arguments = {"question": "what is a quorl?"}
        result = await client.call_tool("ask", arguments, progress_callback=tell)
        data = result.structured_content or {}
        assert data["answer"] == "A quorl is a brass wedge [1]; I could not add the rest."
        assert [one["tool"] for one in data["refused"]] == ["note_append", "note_create", "memory_remember"]
        assert {one["reason"] for one in data["refused"]} == {
            "Not done: it needs the person's yes, and nobody is there to give it."
        }
        assert "Not done" in text_of(result) and data["citations"][0]["path"] == "Ferry/Quorl.md"
        after = {path: value for path, value in contents(vault).items() if not path.startswith("tars/sessions/")}
        assert after == before
        assert [done for done, _ in told] == sorted({done for done, _ in told}) and len(told) > 2
        assert not any("brass" in (message or "") or "12:30" in (message or "") for _, message in told)

        again, _ = await call(client, "ask", question="And again?", conversation=data["conversation"])
        assert again["conversation"] == data["conversation"] and again["answer"] == "As I said."
        told_again = json.dumps(double.requests[-1])
        assert "brass wedge [[Ferry/Quorl" in told_again and "wedge [1]" not in told_again
    assert len(answering.turns()) == 2


async def test_a_count_is_answered_from_the_rows_that_the_model_asked_for(answering: Answering) -> None:
    double, vault = answering.double, answering.vault
    for name, finished in (("Dune", "2026-01-02"), ("Emma", "2026-03-04"), ("Solaris", "2025-12-31")):
        write(vault, f"Books/{name}.md", f"---\nfinished: {finished}\n---\nA book.\n")
    answering.daemon.wait(lambda status: status["counts"]["notes"] >= 5 and status["behind"] == 0)
    where = 'file.inFolder("Books") && finished >= date("2026-01-01") && finished < date("2027-01-01")'
    double.enqueue(Call("query_notes", {"where": where, "columns": ["finished"]}))
    numbers = "".join(f"[{number}]" for number in range(1, 10))
    double.enqueue(Say(f"You finished 2 books in 2026 {numbers}."))
    async with serving(answering.home, vault) as client:
        data, _ = await call(client, "ask", question="how many books did I finish in 2026")
    assert data["answer"].startswith("You finished 2 books in 2026 [") and data["refused"] == []
    (told,) = [str(one["content"]) for one in double.requests[-1]["messages"] if one["role"] == "tool"]
    assert "2 notes." in told and "Books/Dune.md | 2026-01-02" in told and "Solaris" not in told
    assert {"Books/Dune.md", "Books/Emma.md"} <= {one["path"] for one in data["citations"]}


async def test_an_answer_changes_nothing_whatever_the_settings_allow(daemon: Start, home: Path, vault: Path) -> None:
    with OpenAIDouble() as double:
        Answering(double, daemon, home, vault, '[tools]\nallow = ["*"]\n')
        written = {"text": "zqxwritten"}
        for more in ((), ("--local",)):
            double.enqueue(Call("daily_note_append", written), Call("memory_remember", written))
            double.enqueue(Say("Done."))
            async with serving(home, vault, *more) as client:
                data, _ = await call(client, "ask", question="Add to my daily note")
            assert [one["tool"] for one in data["refused"]] == ["daily_note_append", "memory_remember"]
        assert not [path for path in vault.rglob("*.md") if "zqxwritten" in path.read_text(encoding="utf-8")]


async def test_it_goes_on_with_no_conversation_of_the_persons_own(answering: Answering) -> None:
    client = answering.daemon.client
    answering.double.enqueue(Say("The zqxcode is 1234."))
    turn = client.post("/v1/turns", {"conversation": "c", "message": "what is it?", "request_id": "r"})["turn"]
    assert list(client.stream(f"/v1/turns/{turn}/events"))[-1]["type"] == "done"
    async with serving(answering.home, answering.vault) as connected:
        data, _ = await call(connected, "ask", question="What did you say?", conversation="c")
        assert data["conversation"] == "mcp-c"
    assert "zqxcode" not in json.dumps(answering.double.requests[-1])


async def test_an_answer_that_fails_is_an_error_with_what_had_come(answering: Answering) -> None:
    answering.double.enqueue(Say("half of it"), Cut())
    async with serving(answering.home, answering.vault) as client:
        said = await refused(client, "ask", question="What is a quorl?")
        assert "The answer broke off" in said and said.endswith("What had come before:\nhalf of it")


async def test_a_cancelled_call_stops_the_turn(answering: Answering) -> None:
    answering.double.enqueue(Say("slow words " * 2000, pause=0.05))
    async with serving(answering.home, answering.vault) as client:
        asking = asyncio.ensure_future(client.call_tool("ask", {"question": "Count for me"}))
        await asyncio.to_thread(until, lambda: answering.double.open == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.to_thread(until, lambda: answering.double.gone == 1)
        await asyncio.to_thread(until, lambda: [turn["state"] for turn in answering.turns()] == ["stopped"])
        assert (await call(client, "read_note", path="Tides"))[0]["title"] == "Tides"


async def test_a_daemon_that_dies_in_the_middle_of_an_answer_is_told(answering: Answering) -> None:
    answering.double.enqueue(Say("slow words " * 2000, pause=0.05))
    async with serving(answering.home, answering.vault) as client:
        asking = asyncio.ensure_future(client.call_tool("ask", {"question": "Count for me"}))
        await asyncio.to_thread(until, lambda: answering.double.open == 1)
        await asyncio.to_thread(answering.daemon.stop, signal.SIGKILL)
        result = await asking
        assert result.is_error and "broke off the answer" in text_of(result)
        answering.daemon.process = answering.daemon.spawn()
        await asyncio.to_thread(answering.daemon.wait)
        answering.double.enqueue(Say("Here again."))
        assert (await call(client, "ask", question="Are you there?"))[0]["answer"] == "Here again."


async def test_calls_at_the_same_time_do_not_wait_for_each_other(answering: Answering) -> None:
    answering.double.enqueue(Say("slow words " * 2000, pause=0.05))
    async with serving(answering.home, answering.vault) as client:
        slow = asyncio.ensure_future(client.call_tool("ask", {"question": "Count for me"}))
        await asyncio.to_thread(until, lambda: answering.double.open == 1)
        calls = [
            call(client, "read_note", path="Tides") if number % 2 else call(client, "search_notes", query="brass wedge")
            for number in range(20)
        ]
        found = await asyncio.gather(*calls)
        assert not slow.done()
        assert [data.get("title") or data["hits"][0]["title"] for data, _ in found] == ["Quorl", "Tides"] * 10
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow


# ------------------------------------------------------------------------------------------------ what stays here

PRIVATE = {
    "Private/Diary.md": "# Zqxtitle of the diary\n\nThe zqxfolder holds the ferry key. See [[Quorl]].\n",
    "Hidden.md": "---\nlocal_only: true\naliases: [zqxalias]\n---\n# Hidden\n\nThe zqxproperty of the ferry ramp.\n",
    "Tagged.md": "# Tagged\n\nThe zqxtag of the ferry ramp. #private/health\n",
    "tars/Memory.md": "---\ntars: memory\n---\n# Memory\n\n- The zqxmemory of the ferry %% 2026-01-01 · private %%\n",
    "tars/Procedural.md": "# Rules\n\n- Say zqxrule for the ferry %% private %%\n",  # without its property
    "tars/sessions/Talk.md": "---\ntars: session\nlocal_only: true\n---\n# Talk\n\nThe zqxsession about the ferry.\n",
    "tars/summaries/Talk.md": "---\ntars: summary\nlocal_only: true\n---\n# Talk\n\nThe zqxsummary of the ferry.\n",
    "Quorl.md": "# Quorl\n\nA quorl is the brass wedge that holds the ferry ramp. See [[Private/Diary]].\n",
    "Open.md": "# Open\n\nNothing but the ferry ramp, and its timetable.\n",
}
RULES = '[privacy]\nlocal_only = ["Private/", "#private"]\n'
NAMES = ["Private/Diary.md", "Private/Nothing.md", "Hidden", "Tagged.md", "tars/Memory.md", "tars/Procedural.md",
         "tars/sessions/Talk.md", "tars/summaries/Talk.md"]  # fmt: skip


def _every_way(wire: Wire, named: list[str]) -> list[dict[str, Any]]:
    """Everything that there is to be got, tried."""
    wire.begin()
    said = []
    for query in ("ferry", "ferry key ramp", "Zq", "diary", "what of the ferry?", "tag:private", "path:Private/", ""):
        for mode in ("hybrid", "fts", "vec"):
            said.append(wire.tool("search_notes", query=query or "-quorl", mode=mode, limit=50))
    for note in [*named, "Quorl", "Open.md"]:
        said += [wire.tool("read_note", path=note), wire.tool("related_notes", path=note, limit=50)]
        said.append(wire.ask("resources/read", {"uri": f"tarsd://note/{quote(note, safe='')}"}))
    for more in ({}, {"folder": "Private"}, {"tag": "private"}, {"folder": "tars"}):
        said.append(wire.tool("recent_notes", limit=100, **more))
    said.append(wire.ask("resources/list"))
    for begun in ("", "Priv", "tars/", "zqx"):
        reference = {"type": "ref/resource", "uri": "tarsd://note/{path}"}
        argument = {"name": "path", "value": begun}
        said.append(wire.ask("completion/complete", {"ref": reference, "argument": argument}))
    for question in ("What do you know of the ferry?", "Tell me of [[Hidden]] and [[Private/Diary]]", "the ferry key?"):
        said.append(wire.tool("ask", question=question))
    said.append(wire.tool("remember", text="The ferry is blue"))
    return said


def _withheld(said: list[dict[str, Any]]) -> int:
    return sum(one.get("result", {}).get("structuredContent", {}).get("withheld", 0) for one in said)


def test_nothing_private_leaves_unless_the_model_is_here() -> None:
    with living(PRIVATE, RULES) as house:
        with Wire(house.home, house.vault) as wire:
            said = _every_way(wire, NAMES)
            assert wire.end() == 0
        assert b"zqx" not in wire.seen.lower() + wire.errors.lower()
        assert b"brass wedge" in wire.seen and _withheld(said) > 20
        recent = next(one for one in said if "notes" in one.get("result", {}).get("structuredContent", {}))
        data = recent["result"]["structuredContent"]
        assert {note["path"] for note in data["notes"]} == {"Quorl.md", "Open.md"}
        # the same of whatever was asked: what depends on a question tells what is in them
        results = [one["result"] for one in said if "withheld" in one.get("result", {}).get("structuredContent", {})]
        assert {one["structuredContent"]["withheld"] for one in results} == {6} and len(results) > 30
        assert all("Private notes are never shown here." in one["content"][0]["text"] for one in results)
        with Wire(house.home, house.vault, "--local") as wire:
            said = _every_way(wire, NAMES)
            assert wire.end() == 0
        for word in ("title", "folder", "alias", "property", "tag", "memory", "rule", "session", "summary"):
            assert f"zqx{word}".encode() in wire.seen.lower(), word
        assert _withheld(said) == 0


def test_no_model_gets_what_only_a_model_here_may_see(daemon: Start, home: Path, vault: Path) -> None:
    for path, text in PRIVATE.items():
        write(vault, path, text)
    with OpenAIDouble() as double:
        Answering(double, daemon, home, vault, RULES)
        question = {"question": "What holds the ferry key, by the diary? See [[Hidden]]"}
        for local, more in ((False, ()), (True, ("--local",))):
            for step in (Call("note_read", {"name": "Private/Diary"}), Call("memory_search", {"query": "ferry key"})):
                double.enqueue(step)
            double.enqueue(Say("That is all."))
            before = len(double.requests)
            with Wire(home, vault, *more) as wire:
                wire.begin()
                answer = wire.tool("ask", **question)["result"]["structuredContent"]
                assert wire.end() == 0
            sent = json.dumps(double.requests[before:]).lower()
            assert ("zqx" in sent) is local and ("zqx" in wire.seen.decode().lower()) is local
            assert "brass wedge" in sent and (answer["withheld"] == 0) is local


def test_what_became_private_a_moment_ago_is_private(house: House) -> None:
    note = write(house.vault, "Turning.md", "# Turning\n\nThe turning point of the zqxturn.\n")
    try:
        house.daemon.client.post("/index")
        with Wire(house.home, house.vault) as wire:
            wire.begin()
            assert "zqxturn" in json.dumps(wire.tool("search_notes", query="turning point"))
            seen = len(wire.seen)
            for number in range(10):  # as often as not, it is asked before the index knows
                note.write_text(
                    f"---\nlocal_only: true\n---\n# Turning\n\nThe turning point {number} of the zqxturn.\n"
                )
                wire.tool("search_notes", query="turning point")
                wire.tool("read_note", path="Turning")
                wire.tool("related_notes", path="Tides", limit=50)
                assert b"zqxturn" not in wire.seen[seen:]
                assert "Turning.md" not in json.dumps(wire.tool("recent_notes", limit=100))
                note.write_text("# Turning\n\nThe turning point of the zqxturn.\n")
                house.daemon.client.post("/index")
            assert wire.end() == 0
    finally:
        note.unlink()
