"""The commands about conversations: listing, searching, showing, renaming, deleting."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tarsd.errors import EXIT_NOTHING, EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from tests.support.screen import Screen
from tests.support.stub import Run, Stub

ONE = {"id": "cli-1", "title": "The boiler's pressure", "created": 1.0, "updated": 1764300000.0, "turns": 3}
TWO = {"id": "my talk/2", "title": "Tea\x1b]0;x\x07", "created": 1.0, "updated": 1764200000.0, "turns": 12}
TURN = {
    "id": "t1", "message": "how much?", "text": "1.2 bar [1].", "at": 1764300000.0, "state": "stopped", "model": "fake",
    "citations": [{"n": 1, "path": "Boiler.md"}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def two(stub: Stub) -> None:
    stub.replies["GET /v1/conversations"] = {"conversations": [ONE, TWO]}
    stub.replies["GET /v1/conversations/cli-1"] = {**ONE, "note": "tars/sessions/Boiler.md", "turns": [TURN]}
    stub.replies["DELETE /v1/conversations/cli-1"] = {"deleted": "cli-1"}


@pytest.mark.parametrize("command", [["sessions"], ["sessions", "list"]])
def test_conversations_are_listed_the_latest_first(run: Run, command: list[str]) -> None:
    code, out, _ = run(*command)
    first, second = out.splitlines()
    assert code == EXIT_OK
    assert re.fullmatch(r"cli-1      2025-11-2\d \d\d:\d\d    3  The boiler's pressure", first)
    assert second.endswith("   12  Tea␛]0;x␇")
    code, out, _ = run(*command, "--json")
    assert (code, json.loads(out)) == (EXIT_OK, {"conversations": [ONE, TWO]})


def test_no_conversation_ends_with_1(run: Run, stub: Stub) -> None:
    stub.replies["GET /v1/conversations"] = {"conversations": []}
    assert run("sessions")[:2] == (EXIT_NOTHING, "There are no conversations yet.\n")


def test_a_search_looks_at_titles_and_at_what_was_said(run: Run, stub: Stub) -> None:
    hits = [{"path": "tars/sessions/Té.md"}, {"path": "tars/sessions/Té.md"}, {"path": "gone.md"}, {"path": "x.md"}]
    stub.replies["POST /v1/search"] = {"hits": hits}
    stub.replies["GET /v1/notes/tars/sessions/T%C3%A9.md"] = {"properties": {"tars": "session", "id": "my talk/2"}}
    stub.replies["GET /v1/notes/gone.md"] = (404, {"error": {"code": "not_found", "message": "x"}})
    stub.replies["GET /v1/notes/x.md"] = {"properties": {"id": 7}}
    _, out, _ = run("sessions", "--search", "boiler Pressure", "--json")
    assert [one["id"] for one in json.loads(out)["conversations"]] == ["cli-1", "my talk/2"]
    (body,) = [body for route, body in stub.asked if route == "POST /v1/search"]
    assert body["query"] == "[tars:session] boiler Pressure"
    stub.replies["POST /v1/search"] = {"hits": []}
    code, out, _ = run("sessions", "--search", "zebra")
    assert (code, out) == (EXIT_NOTHING, "No conversation contains 'zebra'.\n")


def test_a_conversation_is_shown_whole(run: Run) -> None:
    code, out, _ = run("sessions", "show", "cli-1")
    assert code == EXIT_OK
    assert out.startswith("The boiler's pressure\ntars/sessions/Boiler.md\n\n› how much?\n")
    assert " · fake · stopped\n1.2 bar [1].\n  [1] Boiler.md\n" in out
    assert json.loads(run("sessions", "show", "cli-1", "--json")[1])["turns"] == [TURN]


def test_an_id_of_any_letters_reaches_the_daemon_as_one(run: Run, stub: Stub) -> None:
    renamed: dict[str, Any] = {**TWO, "title": "Green tea"}
    stub.replies["PATCH /v1/conversations/my%20talk%2F2"] = renamed
    code, out, _ = run("sessions", "rename", "my talk/2", "Green", "tea")
    assert (code, out) == (EXIT_OK, "Renamed to 'Green tea'.\n")
    assert stub.asked[-1][1] == {"title": "Green tea"}
    assert json.loads(run("sessions", "rename", "my talk/2", "x", "--json")[1]) == renamed


def test_an_unknown_id_ends_with_1(run: Run, stub: Stub) -> None:
    error = {"error": {"code": "not_found", "message": "There is no such conversation.", "hint": ""}}
    stub.replies["GET /v1/conversations/x"] = (404, error)
    assert run("sessions", "show", "x") == (EXIT_NOTHING, "", "There is no such conversation.\n")


def test_deleting_needs_a_yes(run: Run, stub: Stub) -> None:
    code, _, err = run("sessions", "delete", "cli-1")
    assert (code, err) == (EXIT_REFUSED, "Not deleted.\nAdd --yes to confirm.\n")
    assert run("sessions", "delete", "cli-1", "--json")[0] == EXIT_REFUSED
    assert not [route for route, _ in stub.asked if route.startswith("DELETE")]
    assert run("sessions", "delete", "cli-1", "--yes")[:2] == (EXIT_OK, "Deleted.\n")
    assert json.loads(run("sessions", "delete", "cli-1", "--yes", "--json")[1]) == {"deleted": "cli-1"}


@pytest.mark.parametrize(("typed", "said"), [("y", "Deleted."), ("", "Nothing was deleted.")])
def test_a_person_is_asked_before_it_is_deleted(stub: Stub, typed: str, said: str) -> None:
    with Screen(["sessions", "delete", "cli-1"]) as screen:
        screen.see("The boiler's pressure")
        screen.see("[y/N] ")
        screen.type(typed)
        screen.see(said)
        assert screen.end() == EXIT_OK
    assert bool([route for route, _ in stub.asked if route.startswith("DELETE")]) == bool(typed)


@pytest.mark.parametrize("arguments", [["nonsense"], ["show"], ["list", "x"], ["--nonsense"]])
def test_wrong_usage_ends_with_2(run: Run, arguments: list[str]) -> None:
    assert run("sessions", *arguments)[0] == EXIT_USAGE


def test_help_is_that_of_the_group(run: Run) -> None:
    code, out, _ = run("sessions", "--help")
    assert (code, "rename" in out, "delete" in out) == (EXIT_OK, True, True)


def test_a_private_conversation_is_marked(run: Run, stub: Stub) -> None:
    stub.replies["GET /v1/conversations"] = {"conversations": [{**ONE, "private": True}, TWO]}
    first, second = run("sessions")[1].splitlines()
    assert (first.endswith(" · private"), "private" in second) == (True, False)
    private = {**ONE, "note": "", "turns": [{**TURN, "private": True}]}
    stub.replies["GET /v1/conversations/cli-1"] = private
    out = run("sessions", "show", "cli-1")[1]
    assert out.splitlines()[1] == "private, stays on this machine"
    assert " · stopped · private\n" in out
