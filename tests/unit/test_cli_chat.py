"""The conversation at the terminal: answers, what happens around them, questions, slash commands, and leaving."""

from __future__ import annotations

import json
import re
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd.cli import turns
from tarsd.cli.keyboard import completions
from tarsd.cli.slash import COMMANDS, asks
from tarsd.cli.terminal import columns
from tarsd.client import Client
from tarsd.errors import EXIT_NO_DAEMON, EXIT_NOTHING, EXIT_OK, EXIT_USAGE, ClientError, NoDaemon
from tests.support.screen import Screen
from tests.support.stub import HIT, Run, Stub

SOURCE = {"n": 1, "path": "House/Boiler.md", "title": "Boiler", "heading": "", "start_line": 12, "relevance": 0.8}
RETRIEVED = {"type": "retrieved", "sources": [SOURCE], "relevance": 0.8, "behind": 0, "model": "fake"}
DONE = {"type": "done", "text": "Read the gauge [1].", "citations": [SOURCE], "notices": []}
TURN = [RETRIEVED, {"type": "token", "text": "Read the "}, {"type": "token", "text": "gauge [1]."}, DONE]
DIFF = "--- a/Shopping.md\n+++ b/Shopping.md\n@@ -1 +1,2 @@\n tea\n+milk\n"
APPROVAL = {"type": "approval", "call": "t1", "name": "note_append", "title": "Add to Shopping", "diff": DIFF}


def numbered(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"seq": number, **event} for number, event in enumerate(events, 1)]


def answer(stub: Stub, events: list[dict[str, Any]] | Any) -> None:
    stub.replies["POST /v1/turns"] = (202, {"turn": "t1"})
    stub.replies["GET /v1/turns/t1/events?after=0"] = numbered(events) if isinstance(events, list) else events


NOTES = [{"path": "a.md", "title": "a"}, {"path": "My note.md"}, {"path": "Health/Night shift.md", "aliases": ["Rest"]}]


@pytest.fixture(autouse=True)
def ending(stub: Stub) -> None:
    """Whatever conversation it is, it can be closed."""
    stub.replies["GET /v1/notes"] = {"notes": NOTES}
    stub.replies["GET /v1/memory"] = {"enabled": True, "facts": [{"line": "Otto is a cat"}], "rules": [], "noticed": []}
    closed: dict[str, Any] = {"id": "mine", "title": "Pressure", "note": "tars/sessions/Pressure.md", "turns": []}
    stub.replies["POST /v1/conversations/mine/close"] = {"closed": "mine"}
    stub.replies["GET /v1/conversations/mine"] = closed


def bodies(stub: Stub, route: str) -> list[Any]:
    return [body for asked, body in stub.asked if asked == route]


# Without a terminal


def test_every_line_of_a_pipe_is_a_message_of_one_conversation(run: Run, stub: Stub) -> None:
    answer(stub, TURN)
    code, out, _ = run("chat", "-c", "mine", "--note", "a.md", stdin="how much?\n\nand now? \\\nsay it\n")
    assert code == EXIT_OK
    assert out.count("Read the gauge [1].\n\nSources\n  [1] Boiler") == 2
    asked = bodies(stub, "POST /v1/turns")
    assert [one["message"] for one in asked] == ["how much?", "and now? \nsay it"]
    assert {(one["conversation"], tuple(one["notes"]), one["approvals"]) for one in asked} == {
        ("mine", ("a.md",), False)
    }
    assert stub.asked[-2][0] == "POST /v1/conversations/mine/close"


def test_what_needs_a_yes_is_refused_without_a_terminal(run: Run, stub: Stub) -> None:
    answer(stub, [APPROVAL, *TURN])
    stub.replies["POST /v1/turns/t1/approvals/t1"] = {}
    assert run("chat", "-c", "mine", stdin="add milk\n")[0] == EXIT_OK
    assert bodies(stub, "POST /v1/turns/t1/approvals/t1") == [{"allow": False}]


def test_a_conversation_in_which_nothing_was_said_is_not_closed(run: Run, stub: Stub) -> None:
    assert run("chat", "-c", "mine", stdin="/help\n")[0] == EXIT_OK
    assert [route for route, _ in stub.asked if "close" in route] == []


def test_the_last_conversation_goes_on(run: Run, stub: Stub) -> None:
    answer(stub, TURN)
    stub.replies["GET /v1/conversations"] = {"conversations": [{"id": "mine"}, {"id": "other"}]}
    assert run("chat", "--last", stdin="x\n")[0] == EXIT_OK
    assert bodies(stub, "POST /v1/turns")[0]["conversation"] == "mine"
    assert run("chat", "--last", "-c", "mine")[0] == EXIT_USAGE
    stub.replies["GET /v1/conversations"] = {"conversations": []}
    code, _, err = run("chat", "--last")
    assert (code, "no conversation to continue" in err) == (EXIT_NOTHING, True)


def test_no_daemon_ends_with_3(run: Run, tmp_path: Path) -> None:
    assert run("chat", "--vault", str(tmp_path), stdin="x\n")[0] == EXIT_NO_DAEMON


def test_an_error_does_not_end_the_conversation(run: Run, stub: Stub) -> None:
    answer(stub, [{"type": "failed", "error": {"message": "The model is away.", "hint": "Start it."}, "text": "Half"}])
    code, out, err = run("chat", "-c", "mine", stdin="x\n/help\n")
    assert code == EXIT_OK
    assert "Half" in out, "what had come is shown"
    assert "The model is away.\nStart it." in err
    assert "/remember [TEXT]" in out


def test_tools_and_waiting_are_told_beside_the_answer(run: Run, stub: Stub) -> None:
    events = [
        {"type": "queued", "position": 1},
        {"type": "waiting", "text": "The model is loaded."},
        {"type": "tool", "call": "t1", "name": "memory_search", "arguments": {"query": "boiler"}, "state": "running"},
        {"type": "tool", "call": "t1", "name": "memory_search", "state": "done", "text": "x", "sources": [SOURCE]},
        {"type": "tool", "call": "t2", "name": "weather", "arguments": {}, "state": "running"},
        {"type": "tool", "call": "t2", "name": "weather", "state": "failed", "text": "No place is set."},
        {"type": "written", "path": "a.md", "op": "append", "error": {"message": "It changed."}},
        {"type": "thinking", "text": "hm"},
        {"type": "token", "text": "I should"},
        {"type": "retract"},
        *TURN,
    ]
    answer(stub, events)
    _, out, err = run("ask", "x")
    assert err.splitlines() == [
        "Waiting for 1 earlier answer.",
        "The model is loaded.",
        "✓ memory_search boiler, 1 passage",
        "✗ weather: No place is set.",
        "a.md was not written. It changed.",
        "The above was reasoning; the answer starts here.",
    ]
    assert out.startswith("I should\nRead the gauge [1].\n")


def test_nothing_that_a_model_says_commands_the_terminal(run: Run, stub: Stub) -> None:
    evil = "\x1b[2J\x1b]0;x\x07\u202e\x9b"
    tool = {"type": "tool", "call": "t1", "name": evil, "arguments": {"q": evil}}
    events = [
        {"type": "waiting", "text": evil},
        {**tool, "state": "running"},
        {**tool, "state": "failed", "text": evil},
        {"type": "written", "path": evil, "error": {"message": evil}},
        {**RETRIEVED, "sources": [{**SOURCE, "title": evil, "path": evil}]},
        {"type": "token", "text": evil},
        {"type": "done", "text": evil, "citations": [], "notices": [evil]},
    ]
    answer(stub, events)
    stub.replies["POST /v1/search"] = {"hits": [{**HIT, "text": evil}]}
    _, out, err = run("chat", "-c", "mine", stdin=f"x\n/search x\n/{evil}\n")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out + err)


# Slash commands

PLAIN = [
    ("/search tea pot", "POST /v1/search", {"query": "tea pot", "mode": "hybrid", "limit": 10}),
    ("/sgrep tea", "POST /v1/search", {"query": "tea", "mode": "fts", "limit": 10}),
    ("/svec tea", "POST /v1/search", {"query": "tea", "mode": "vec", "limit": 10}),
    ("/remember Otto is  a cat", "POST /v1/memory", {"text": "Otto is a cat", "conversation": "mine"}),
    ("/undo", "POST /v1/memory/undo", {}),
    ("/w too long", "POST /v1/feedback", {"turn": "t1", "verdict": "wrong", "note": "too long"}),
    ("/r", "POST /v1/feedback", {"turn": "t1", "verdict": "good", "note": ""}),
]


@pytest.mark.parametrize(("typed", "route", "body"), PLAIN, ids=[one[0] for one in PLAIN])
def test_a_slash_command_asks_the_daemon(run: Run, stub: Stub, typed: str, route: str, body: dict[str, Any]) -> None:
    answer(stub, TURN)
    stub.replies["POST /v1/search"] = {"hits": [HIT]}
    stub.replies["POST /v1/memory"] = {"path": "tars/Memory.md", "diff": "+- Otto is a cat %% 2026-11-28 %%\n"}
    stub.replies["POST /v1/memory/undo"] = {"id": "w1", "path": "tars/Memory.md", "hash": None, "trashed": ".trash/x"}
    stub.replies["POST /v1/feedback"] = {"path": "tars/corrections.md", "diff": ""}
    code, out, err = run("chat", "-c", "mine", stdin=f"how much?\n{typed}\n")
    assert (code, err) == (EXIT_OK, "")
    assert bodies(stub, route) == [body]
    assert out.count("\n") > 5


def test_what_is_remembered_is_shown_without_its_comment(run: Run, stub: Stub) -> None:
    diff = (
        "--- /dev/null\n+++ b/tars/Memory.md\n@@ -0,0 +1,2 @@\n+---\n+# Memory\n+- Otto is a cat %% 2026-11-28 · c %%\n"
    )
    stub.replies["POST /v1/memory"] = {"path": "tars/Memory.md", "diff": diff}
    out = run("chat", "-c", "mine", stdin="/remember Otto is a cat\n")[1]
    assert out == "Remembered in tars/Memory.md.\n  + Otto is a cat\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/serch tea", "There is no command /serch.\nDid you mean /search?"),
        ("/xyzzy", "There is no command /xyzzy.\n/help lists them all."),
        ("/", "There is no command /.\n/help lists them all."),
        ("/w", "There is no answer to judge yet."),
        ("/search", "What should be searched for?"),
        ("/remember", "What should be remembered?"),
        ("/forget", "What should be forgotten?"),
        ("/forget Otto", "Not forgotten. The line is"),
        ("/review", "A review needs a terminal"),
    ],
)
def test_a_slash_command_that_cannot_be_done_says_why(run: Run, stub: Stub, typed: str, said: str) -> None:
    code, out, err = run("chat", "-c", "mine", stdin=f"{typed}\n/note\n")
    assert (code, out) == (EXIT_OK, "")
    assert said in err
    assert "No note is attached." in err, "and the conversation goes on"


def test_a_message_may_begin_with_a_slash_after_a_blank(run: Run, stub: Stub) -> None:
    answer(stub, TURN)
    run("chat", "-c", "mine", stdin=" /etc/hosts is what?\n")
    assert bodies(stub, "POST /v1/turns")[0]["message"] == "/etc/hosts is what?"


def test_notes_are_attached_until_they_are_not(run: Run, stub: Stub, vault: Path) -> None:
    answer(stub, TURN)
    (vault / "Here.md").write_text("x")
    stub.replies["GET /v1/notes/Here.md"] = {"path": "Here.md"}
    typed = f"/note [[My note]]\nx\n/note {vault}/Here.md\nx\n/note\nx\n"
    _, _, err = run("chat", "-c", "mine", stdin=typed)
    asked = [one.get("notes") for one in bodies(stub, "POST /v1/turns")]
    assert asked == [["My note.md"], ["My note.md", "Here.md"], None]
    assert "Attached to every message: My note.md, Here.md." in err


def test_a_new_conversation_closes_the_one_before(run: Run, stub: Stub) -> None:
    answer(stub, TURN)
    stub.replies["GET /v1/conversations"] = {"conversations": [{"id": "mine", "title": "Pressure", "turns": 3}]}
    code, out, _ = run("chat", "-c", "mine", stdin="x\n/new\n/sessions\n/sessions sure\n/w\n/quit\nnever said\n")
    assert code == EXIT_OK
    assert [route for route, _ in stub.asked if route.endswith("/close")] == ["POST /v1/conversations/mine/close"]
    assert re.search(r"^mine .* 3  Pressure$", out, re.M)
    assert len(bodies(stub, "POST /v1/turns")) == 1


def test_help_lists_every_command(run: Run, stub: Stub) -> None:
    out = run("chat", "-c", "mine", stdin="/help\n")[1]
    assert [line.split()[0] for line in out.splitlines()[:-1]] == [f"/{name}" for name in COMMANDS]


# Completion

NAMES = ("Ärger", "My note", "My other note", "Note (2)", "Tea")
PATHS = ("Night shift", "Health/Night shift", "B/Twice")


@pytest.mark.parametrize(
    ("before", "text", "found"),
    [
        ("/re", "/re", ["/remember ", "/review "]),
        ("/search te", "te", []),
        ("what is in [[", "", [f"{name}]]" for name in (*NAMES, "Night shift", "B/Twice")]),
        ("what is in [[te", "te", ["Tea]]"]),
        ("what is in [[my o", "o", ["other note]]"]),
        ("see [[Tea]] and my", "my", []),
        ("see [[Tea]] and [[är", "är", ["Ärger]]"]),
        ("/note my ", "", ["note", "other note"]),
        ("tea", "tea", []),
        ("see [[health/ni", "health/ni", ["Health/Night shift]]"]),
        ("see [[hea", "hea", []),
        ("see [[b", "b", ["B/Twice]]"]),
    ],
)
def test_tab_completes_commands_and_names_of_notes(before: str, text: str, found: list[str]) -> None:
    commands = [f"/{name}" for name in COMMANDS]
    assert completions(before, text, lambda: commands, lambda: [*NAMES, *PATHS]) == found


# At a terminal


def test_an_answer_at_a_terminal_and_how_to_go_on(stub: Stub, home: Path) -> None:
    thought = [{"type": "thinking", "text": "First\n\x1b[2Jsecond "}, {"type": "thinking", "text": "third"}]
    tool = {"type": "tool", "call": "t1", "name": "memory_search", "arguments": {"query": "boiler"}}
    answer(stub, [*thought, {**tool, "state": "running"}, {**tool, "state": "done"}, *TURN])
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("tars · extractive (no model: quotes the best passages) · /help lists the\ncommands, Ctrl-D quits.")
        screen.see("› ")
        screen.type("how much?")
        screen.see("Thought: First ␛[2Jsecond third\n")
        screen.see("✓ memory_search boiler\n")
        screen.see("Read the gauge [1].")
        screen.see("[1] Boiler")
        screen.see("› ")
        screen.type("\x04", enter=False)
        screen.see("Saved in tars/sessions/Pressure.md. Continue with: tarsd chat -c mine")
        assert screen.end() == EXIT_OK
        assert "\x1b[2mThought:" in screen.raw
    assert bodies(stub, "POST /v1/turns")[0]["approvals"] is True


def asks_for_a_yes(stub: Stub, ready: threading.Event | None = None) -> None:
    """An answer that waits for a yes or no; with `ready`, its question waits for that."""
    answered = threading.Event()

    def events() -> Iterator[dict[str, Any]]:
        yield from numbered([RETRIEVED, {"type": "token", "text": "I add it."}])
        if ready is not None:
            ready.wait(60)
        yield {"seq": 3, **APPROVAL}
        answered.wait(60)
        yield {"seq": 4, **DONE}

    def take() -> dict[str, Any]:
        answered.set()
        return {}

    answer(stub, events)
    stub.replies["POST /v1/turns/t1/approvals/t1"] = take


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("y", {"allow": True}),
        ("a", {"allow": True, "always": True}),
        ("", {"allow": False}),
        ("what\nno", {"allow": False}),
        ("\x04", {"allow": False}),
    ],
)
def test_a_change_is_shown_before_it_is_allowed(stub: Stub, typed: str, sent: dict[str, bool]) -> None:
    asks_for_a_yes(stub)
    with Screen(["ask", "add milk"]) as screen:
        screen.see("I add it.\nAdd to Shopping\n")
        screen.see("  +milk\n")
        assert "\x1b[32m+milk\x1b[0m" in screen.raw
        screen.see("Allow this? (a = always in this conversation) [y/N/a] ")
        screen.type(typed, enter=typed != "\x04")
        screen.see("Sources")
        assert screen.end() == EXIT_OK
    assert bodies(stub, "POST /v1/turns/t1/approvals/t1") == [sent]


def test_what_was_typed_before_the_question_is_no_answer_to_it(stub: Stub) -> None:
    ready = threading.Event()
    asks_for_a_yes(stub, ready)
    with Screen(["ask", "add milk"]) as screen:
        screen.see("I add it.")
        screen.type("y")
        screen.see("y\n")
        ready.set()
        screen.see("Allow this? (a = always in this conversation) [y/N/a] ")
        screen.type("n")
        screen.see("Sources")
        assert screen.end() == EXIT_OK
    assert bodies(stub, "POST /v1/turns/t1/approvals/t1") == [{"allow": False}]


def test_passages_that_no_answer_cites_are_only_counted(run: Run, stub: Stub) -> None:
    answer(stub, [RETRIEVED, {"type": "done", "text": "Hello!", "citations": [], "notices": []}])
    assert run("ask", "hi") == (EXIT_OK, "Hello!\n", "1 passage read, none cited.\n")


def test_a_call_without_a_diff_shows_what_it_would_send(stub: Stub) -> None:
    call = {**APPROVAL, "name": "weather", "title": "Ask for the weather", "diff": "", "arguments": {"place": "Bergen"}}
    answer(stub, [call, *TURN])
    gone = {"error": {"code": "conflict", "message": "This has already been answered.", "hint": ""}}
    stub.replies["POST /v1/turns/t1/approvals/t1"] = (409, gone)
    with Screen(["ask", "is it raining?"]) as screen:
        screen.see("Ask for the weather\n  place: Bergen\n")
        screen.see("Allow this? (a = always in this conversation) [y/N/a] ")
        screen.type("y")
        screen.see("This has already been answered.")
        screen.see("Read the gauge")
        assert screen.end() == EXIT_OK


def test_ctrl_c_stops_the_answer_and_once_more_leaves(stub: Stub) -> None:
    stopped = threading.Event()

    def events() -> Iterator[dict[str, Any]]:
        yield from numbered([RETRIEVED, {"type": "token", "text": "Half of it"}])
        stopped.wait(60)

    def stop() -> dict[str, Any]:
        stopped.set()
        return {"turn": "t1", "stopped": True}

    answer(stub, events)
    stub.replies["POST /v1/turns/t1/stop"] = stop
    stub.replies["GET /v1/turns/t1/events?after=2"] = [{"seq": 3, **DONE, "text": "Half of it", "stopped": True}]
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("tell me")
        screen.see("Half of it")
        screen.interrupt("[1] Boiler")
        screen.see("Stopped.")
        screen.see("› ")
        screen.interrupt("Continue with")
        assert screen.end() == EXIT_OK
        assert screen.text.count("Half of it") == 1


def test_ctrl_c_at_the_prompt_leaves_the_second_time(stub: Stub) -> None:
    with Screen(["chat"]) as screen:
        screen.see("› ")
        screen.interrupt("Press Ctrl-C again or Ctrl-D to quit.")
        screen.see("› ")
        screen.interrupt("\n")
        assert screen.end() == EXIT_OK
    assert bodies(stub, "POST /v1/turns") == []


def test_what_was_typed_is_kept_for_its_owner_alone(stub: Stub, home: Path) -> None:
    answer(stub, [APPROVAL, *TURN])
    stub.replies["POST /v1/turns/t1/approvals/t1"] = {}
    file = home / "state" / "x" / "chat_history"
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("how much pressure?")
        screen.see("Allow this?")
        screen.type("y")
        screen.see("[1] Boiler")
        screen.see("› ")
        screen.type("/quit")
        assert screen.end() == EXIT_OK
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    kept = file.read_text().splitlines()
    assert "how much pressure?" in kept
    assert "y" not in kept, "an answer to a question is no message"
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("\x1b[A\x1b[A", enter=False)
        screen.see("how much pressure?")


def test_what_was_typed_is_kept_when_the_window_is_closed(stub: Stub, home: Path) -> None:
    answer(stub, TURN)
    file = home / "state" / "x" / "chat_history"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"line {number}\n" for number in range(2500)))
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        for _ in range(2):
            screen.type("how much?")
            screen.see("[1] Boiler")
            screen.see("› ")
        screen.process.kill()
    kept = file.read_text().splitlines()
    assert (len(kept), kept[0], kept[-2:]) == (1000, "line 1501", ["line 2499", "how much?"])


def test_tab_at_a_terminal(stub: Stub) -> None:
    answer(stub, TURN)
    stub.replies["GET /v1/notes"] = {"notes": [{"path": "A/Tea pot.md"}, {"path": "B/Tea.md"}, {"path": "C/Tea.md"}]}
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("see [[tea p\t", enter=False)
        screen.see("pot]]")
        screen.type("")
        screen.see("[1] Boiler")
        screen.see("› ")
        screen.type("/qu\t")
        assert screen.end() == EXIT_OK
    assert bodies(stub, "POST /v1/turns")[0]["message"] == "see [[tea pot]]"


def test_it_works_at_a_dumb_terminal(stub: Stub) -> None:
    answer(stub, TURN)
    with Screen(["chat", "-c", "mine"], TERM="dumb") as screen:
        screen.see("› ")
        screen.type("how much?")
        screen.see("Read the gauge")
        screen.see("› ")
        screen.type("/quit")
        assert screen.end() == EXIT_OK


def test_tars_without_a_question_is_the_conversation(stub: Stub) -> None:
    with Screen([], program="tars") as screen:
        screen.see("Ctrl-D quits.")
        screen.type("/help")
        screen.see("/remember [TEXT]")
        screen.type("/quit")
        assert screen.end() == EXIT_OK


def test_a_reopened_conversation_shows_where_it_was(stub: Stub) -> None:
    turn = {"id": "t0", "message": "how much?", "text": "1.2\x1b bar.", "state": "done"}
    stub.replies["GET /v1/conversations/mine"] = {"id": "mine", "title": "Pressure", "turns": [turn]}
    stub.replies["POST /v1/feedback"] = {"path": "tars/rewards.md"}
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("Continuing: Pressure (1 turn)\n› how much?\n1.2␛ bar.")
        screen.type("/r")
        screen.see("Noted in tars/rewards.md.")
        screen.type("/quit")
        assert screen.end() == EXIT_OK
    assert bodies(stub, "POST /v1/feedback")[0]["turn"] == "t0"


def test_a_reopened_conversation_draws_the_table_of_its_last_answer(stub: Stub) -> None:
    rows = "".join(f"| [[Books/Dune {number}]] [{number}] | {number} |\n" for number in range(120))
    turn = {"id": "t0", "message": "/notes rating", "state": "done"}
    turn["text"] = f"120 notes.\n\n| Note | rating |\n| --- | --- |\n{rows}"
    stub.replies["GET /v1/conversations/mine"] = {"id": "mine", "title": "Books", "turns": [turn]}
    with Screen(["chat", "-c", "mine"]) as screen:
        shown = screen.see("Books/Dune 119 [119]  119")
        assert "|" not in shown and "\n…\n" in shown and "Books/Dune 1 [1]" not in shown
        screen.type("/quit")
        assert screen.end() == EXIT_OK


def test_what_is_pasted_is_one_message_and_no_command(stub: Stub) -> None:
    answer(stub, TURN)
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("\x1b[200~/forget one\r/quit\rthree\x1b[201~", enter=False)
        screen.see("three")
        assert bodies(stub, "POST /v1/turns") == [], "it waits for the person's Enter"
        screen.type("")
        screen.see("[1] Boiler")
        screen.see("› ")
        screen.type("\x04", enter=False)
        assert screen.end() == EXIT_OK
    assert bodies(stub, "POST /v1/turns")[0]["message"] == "/forget one\n/quit\nthree"


def test_what_was_pasted_is_kept_as_one_line_that_is_no_command(stub: Stub, home: Path) -> None:
    answer(stub, TURN)
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("\x1b[200~/forget one\r/quit\x1b[201~")
        screen.see("[1] Boiler")
        screen.see("› ")
        screen.type("\x1b[A", enter=False)
        screen.see("/forget one\n/quit")
    kept = (home / "state" / "x" / "chat_history").read_text().splitlines()
    assert kept == [" /forget one /quit"]


def test_typing_shows_no_colour_where_none_is_wanted(stub: Stub) -> None:
    with Screen(["chat", "-c", "mine"], NO_COLOR="1") as screen:
        screen.see("› ")
        screen.type("half a line", enter=False)
        screen.see("half a line")
        screen.type("\x03", enter=False)
        screen.see("half a line")
        screen.see("› ")
        screen.type("/quit")
        assert screen.end() == EXIT_OK
        assert not re.search(r"\x1b\[[\d;]*[1-9][\d;]*m", screen.raw)


def test_lines_pasted_at_a_dumb_terminal_are_one_message(stub: Stub) -> None:
    answer(stub, TURN)
    with Screen(["chat", "-c", "mine"], TERM="dumb") as screen:
        screen.see("› ")
        screen.type("one\n/forget two")
        screen.see("[1] Boiler")
        screen.see("› ")
        screen.type("/quit")
        assert screen.end() == EXIT_OK
    assert [one["message"] for one in bodies(stub, "POST /v1/turns")] == ["one\n/forget two"]


def test_ctrl_c_on_a_line_that_is_not_empty_clears_it_and_does_not_leave(stub: Stub) -> None:
    with Screen(["chat"]) as screen:
        screen.see("› ")
        for _ in range(2):
            screen.reads_keys()
            screen.type("half a li", enter=False)
            screen.see("half a li")
            screen.type("\x03", enter=False)
            screen.see("› ")
        assert "Ctrl-C again" not in screen.text
        screen.type("/quit")
        assert screen.end() == EXIT_OK
    assert bodies(stub, "POST /v1/turns") == []


def test_remember_without_a_text_means_what_was_stated_last(stub: Stub) -> None:
    answer(stub, TURN)
    stub.replies["POST /v1/memory"] = {"path": "tars/Memory.md", "diff": "+- I like tea %% x %%\n"}
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("/remember")
        screen.see("Remember what? ")
        screen.type("/quit")
        screen.see("That is a command, not a fact")
        screen.see("› ")
        screen.type("I like tea")
        screen.see("[1] Boiler")
        screen.see("› ")
        screen.type("/remember")
        screen.see("+ I like tea\nRemember this? [y/N] ")
        screen.type("y")
        screen.see("Remembered in tars/Memory.md.\n  + I like tea\n")
        screen.type("/quit")
        assert screen.end() == EXIT_OK
    assert [one["text"] for one in bodies(stub, "POST /v1/memory")] == ["I like tea"]


@pytest.mark.parametrize(
    "text",
    [
        "What is my boat called?", "what is my boat called", "And the boat? Its name", "tell me about the boat",
        "Wie heißt mein Boot", "où est le bateau", "¿Cómo se llama?", "船の名前は？", "ما اسم قاربي؟",
        "List the boats, please",
    ],
)  # fmt: skip
def test_what_asks_is_no_fact(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text", ["My boat is called Plover", "Otto mag Tee", "J'aime le thé", "船はプロバーです", "!", ""]
)
def test_what_states_may_be_one(text: str) -> None:
    assert not asks(text)


def test_remember_without_a_text_never_offers_a_question(stub: Stub) -> None:
    answer(stub, TURN)
    stub.replies["POST /v1/memory"] = {"path": "tars/Memory.md", "diff": "+- Otto is a cat %% x %%\n"}
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("how much is a boiler")
        screen.see("[1] Boiler")
        screen.see("› ")
        screen.type("/remember")
        screen.see("Remember what? ")
        screen.type("Otto is a cat")
        screen.see("Remembered in tars/Memory.md.")
        screen.type("/quit")
        assert screen.end() == EXIT_OK
    assert [one["text"] for one in bodies(stub, "POST /v1/memory")] == ["Otto is a cat"]


def test_an_answer_without_a_text_tells_its_notice_and_ends_with_0(run: Run, stub: Stub) -> None:
    answer(stub, [{"type": "done", "text": "", "citations": [], "notices": ["The model gave no answer."]}])
    assert run("ask", "x") == (EXIT_OK, "", "The model gave no answer.\n")


def test_citations_without_a_passage_are_named_below_the_answer(run: Run, stub: Stub) -> None:
    done = {"type": "done", "text": "So [9?].", "citations": [], "notices": [], "private": True}
    answer(stub, [{"type": "token", "text": "So [9]."}, done])
    _, out, err = run("ask", "x")
    assert (out, err.splitlines()[0]) == ("So [9].\n", "Unknown sources: [9].")
    assert "the conversation is private" in err
    reply = json.loads(run("ask", "x", "-c", "mine", "--json")[1])
    assert reply["conversation"] == "mine"


def test_a_daemon_that_goes_away_in_an_answer_is_waited_for_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, stub: Stub
) -> None:
    cut, gone = ClientError("cut", code="cut"), NoDaemon("gone")
    steps: Iterator[Any] = iter([cut, gone, gone, [{"seq": 1, **DONE}]])

    def stream(route: str) -> Iterator[Any]:
        step = next(steps)
        if isinstance(step, Exception):
            raise step
        yield from step

    client = Client(Path("/nowhere"))
    monkeypatch.setattr(client, "stream", stream)
    events = list(turns.RunningTurn(client, "t1", look_s=0.0).events())
    assert [one["type"] for one in events] == ["waiting", "done"]
    assert "Waiting up to" in events[0]["text"]


@pytest.mark.parametrize("typed", ["Nothing like it", '"Nihgt shift"', ""])
def test_a_note_that_is_not_there_is_not_attached(run: Run, stub: Stub, typed: str) -> None:
    missing = (404, {"error": {"code": "not_found", "message": "There is no such note.", "hint": ""}})
    for name in ("Nothing%20like%20it", "Nihgt%20shift"):
        stub.replies |= {f"GET /v1/notes/{name}": missing, f"GET /v1/notes/{name}.md": missing}
    err = run("chat", "-c", "mine", stdin=f"/note {typed}\n/note rest\n/note “night shift”\n")[2]
    assert ("There is no note" in err) == bool(typed)
    assert ("Did you mean “Health/Night shift”?" in err) == ("Nihgt" in typed)
    assert "“Health/Night shift.md” is already attached." in err


def test_a_streamed_answer_breaks_between_words_at_the_edge(stub: Stub) -> None:
    words = [{"type": "token", "text": text} for text in ("aaaa bbbb cc", "cccccccc ", "茶" * 12, "\n\n\n\nend\n\n\n")]
    answer(stub, [*words, {"type": "done", "text": "x", "citations": [], "notices": []}])
    with Screen(["ask", "x"], COLUMNS="20") as screen:
        screen.end()
        assert "aaaa bbbb cc\x1b[2D\x1b[K\r\ncccccccccc 茶茶茶茶\r\n茶茶茶茶茶茶茶茶\r\n\r\nend\r\n" in screen.raw
        assert screen.raw.endswith("end\r\n")


@pytest.mark.parametrize("command", [["chat", "-c", "mine"], ["status"], ["sessions"], ["memory"]])
def test_nothing_is_wider_than_sixty_columns(stub: Stub, command: list[str]) -> None:
    one = {"id": "cli-0123456789ab", "title": "A title of many words " * 5, "updated": 1.0, "turns": 3, "private": True}
    problem = {"message": "The model is away, and so is the server that it runs on.", "hint": "Start it."}
    mcp = [{"name": "files", "state": "down", "reason": "It ended with an error that is long " * 5}]
    stub.replies["GET /v1/conversations"] = {"conversations": [one, {**one, "id": "x" * 50}]}
    stub.replies["GET /v1/memory"] = {"facts": [{"line": "Otto is a cat of many words " * 5, "date": "2026-11-28"}]}
    stub.replies["GET /v1/status"] = {"chat": {"model": "ollama:x", "state": "ready", "problem": problem, "mcp": mcp}}
    failed = {"type": "tool", "call": "1", "name": "weather", "state": "failed", "text": "No place is set at all. " * 5}
    answer(stub, [failed, {"type": "waiting", "text": "The model is loaded. " * 5}, *TURN])
    with Screen(command, COLUMNS="60") as screen:
        if command[0] == "chat":
            screen.see("› ")
            screen.type("/help")
            screen.see("Quit.")
            screen.type("x")
            screen.see("Sources")
            screen.type("/quit")
        screen.end()
        shown = [row for row in screen.text.splitlines() if "Boiler.md" not in row and "Closing" not in row]
    assert [row for row in shown if columns(row) > 60] == []
