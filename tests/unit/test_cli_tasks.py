"""The commands that change tasks: what is shown, what is asked, and what the daemon is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tarsd.errors import EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from tests.support.screen import Screen
from tests.support.stub import Run, Stub

ROUTE = "POST /v1/tasks/change"
SHOWN = {
    "done": False,
    "title": "Complete “Oil the tiller” in Boat.md",
    "path": "Boat.md",
    "diff": "--- a/Boat.md\n+++ b/Boat.md\n@@ -1 +1 @@\n-- [ ] Oil the tiller\x1b[2J\n+- [x] Oil the tiller\n",
    "yes": "y1",
}
DONE = {**SHOWN, "done": True, "yes": "", "title": "Done: “Oil the tiller” in Boat.md."}


def bodies(stub: Stub) -> list[Any]:
    return [body for asked, body in stub.asked if asked == ROUTE]


def replies(stub: Stub, *found: dict[str, Any]) -> None:
    following = iter(found)
    stub.replies[ROUTE] = lambda: next(following)


def test_a_change_is_shown_and_made_after_a_yes(stub: Stub) -> None:
    replies(stub, SHOWN, DONE)
    with Screen(["tasks", "done", "Boat.md:5"]) as screen:
        screen.see("Complete “Oil the tiller” in Boat.md")
        screen.see("+- [x] Oil the tiller")
        screen.see("Do it? [y/N] ")
        screen.type("y")
        screen.see("Done: “Oil the tiller” in Boat.md.")
        assert screen.end() == EXIT_OK
    asked = {"action": "done", "note": "Boat.md", "line": 5}
    assert bodies(stub) == [asked, {**asked, "yes": "y1"}]


@pytest.mark.parametrize("typed", ["", "n"])
def test_without_a_yes_nothing_is_done(stub: Stub, typed: str) -> None:
    replies(stub, SHOWN)
    with Screen(["tasks", "done", "Boat.md:5"]) as screen:
        screen.see("Do it? [y/N] ")
        screen.type(typed)
        screen.see("Nothing changed.")
        assert screen.end() == EXIT_OK
    assert len(bodies(stub)) == 1


def test_a_note_that_is_another_by_then_is_shown_again(stub: Stub) -> None:
    replies(stub, SHOWN, {**SHOWN, "title": "Complete “Oil the rudder”", "yes": "y2"}, DONE)
    with Screen(["tasks", "done", "Boat.md:5"]) as screen:
        screen.see("Do it? [y/N] ")
        screen.type("y")
        screen.see("The note has changed since it was shown.")
        screen.see("Oil the rudder")
        screen.see("Do it? [y/N] ")
        screen.type("y")
        screen.see("Done")
        assert screen.end() == EXIT_OK
    assert [body.get("yes") for body in bodies(stub)] == [None, "y1", "y2"]


def test_where_nobody_can_be_asked_it_takes_the_option(run: Run, stub: Stub) -> None:
    stub.replies[ROUTE] = SHOWN
    code, _, err = run("tasks", "done", "Boat.md:5")
    assert (code, err) == (EXIT_REFUSED, "Not changed.\nAdd --yes to confirm.\n")
    assert run("tasks", "add", "x", "--json")[0] == EXIT_REFUSED
    assert [body for body in bodies(stub) if "yes" in body] == []
    replies(stub, SHOWN, DONE, SHOWN, DONE)
    assert run("tasks", "done", "Boat.md:5", "--yes")[:2] == (EXIT_OK, "Done: “Oil the tiller” in Boat.md.\n")
    code, out, _ = run("tasks", "done", "Boat.md:5", "--yes", "--json")
    assert code == EXIT_OK and json.loads(out)["done"] is True and "\x1b" not in out


def test_a_task_is_added_where_it_is_said(run: Run, stub: Stub) -> None:
    replies(stub, SHOWN, DONE)
    run("tasks", "add", "Call", "Ada", "--to", "Boat", "--heading", "Later", "--due", "tomorrow", "--yes")
    asked = {"action": "add", "text": "Call Ada", "note": "Boat", "heading": "Later", "due": "tomorrow"}
    assert bodies(stub) == [asked, {**asked, "yes": "y1"}]


@pytest.mark.parametrize("text", ["- [ ] Call Ada", "- Call Ada", "-- Call Ada", "-\tCall Ada"])
def test_the_entry_of_a_list_is_no_option(run: Run, stub: Stub, text: str) -> None:
    replies(stub, SHOWN, DONE)
    assert run("tasks", "add", text, "--due", "today", "--yes")[0] == EXIT_OK
    assert bodies(stub)[0]["text"].strip() == text and bodies(stub)[0]["due"] == "today"


@pytest.mark.parametrize("place", ["Boat.md", "Boat.md:", "Boat.md:x", ":5", "Boat.md:12345678901"])
def test_a_place_that_names_no_line_is_refused(run: Run, stub: Stub, place: str) -> None:
    code, _, err = run("tasks", "done", place, "--yes")
    assert code == EXIT_USAGE and "Inbox.md:12" in err and bodies(stub) == []


def test_a_note_that_changes_all_the_time_is_given_up(run: Run, stub: Stub) -> None:
    stub.replies[ROUTE] = SHOWN
    code, _, err = run("tasks", "done", "Boat.md:5", "--yes")
    assert code != EXIT_OK and "keeps changing" in err and len(bodies(stub)) == 6
