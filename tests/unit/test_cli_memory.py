"""The commands about memory and reviews: what is shown, what is asked, and what the daemon is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tarsd.cli.memory import matching
from tarsd.errors import EXIT_NOTHING, EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from tests.support.screen import Screen
from tests.support.stub import Run, Stub


def known(text: str, **more: Any) -> dict[str, Any]:
    return {"line": text, "section": "", "date": "2026-11-28", "session": "c1", "private": False, **more}


LISTING = {
    "enabled": True,
    "facts": [
        known("My sister is Ann.", section="Family"),
        known("Otto is a cat\x1b[2J", section="Pets", private=True),
    ],
    "rules": [known("Answer in metres", date="", session="")],
    "noticed": [known("Likes tea")],
    "problem": "",
}
WRITTEN = {
    "path": "tars/Memory.md",
    "diff": "@@ -1 +1 @@\n-- My sister is Ann.\n+- My sister is Anna %% 2026-11-28 %%\n",
}
CLASH = {
    "error": {
        "code": "contradiction",
        "message": "That contradicts what is remembered: My sister is Ann.",
        "hint": "Say whether it takes the place of that line.",
        "line": "My sister is Ann.",
    }
}


@pytest.fixture(autouse=True)
def listing(stub: Stub) -> None:
    stub.replies["GET /v1/memory"] = LISTING


def bodies(stub: Stub, route: str) -> list[Any]:
    return [body for asked, body in stub.asked if asked == route]


def once_refused(stub: Stub) -> Callable[[], Any]:
    """The first attempt contradicts, the second is taken."""
    replies = iter([(409, CLASH), WRITTEN])
    return lambda: next(replies)


# Memory


@pytest.mark.parametrize("command", [["memory"], ["memory", "list"]])
def test_what_is_remembered_is_listed_with_where_it_is_from(run: Run, stub: Stub, command: list[str]) -> None:
    code, out, _ = run(*command)
    assert code == EXIT_OK
    assert out.splitlines() == [
        "Facts",
        "  Family",
        "  - My sister is Ann.  2026-11-28 · c1",
        "  Pets",
        "  - Otto is a cat␛[2J  2026-11-28 · c1 · private",
        "",
        "Rules",
        "  - Answer in metres",
        "",
        "Noticed, waiting for review",
        "  - Likes tea  2026-11-28 · c1",
    ]
    assert json.loads(run(*command, "--json")[1]) == LISTING


def test_a_memory_that_is_off_or_broken_says_so(run: Run, stub: Stub) -> None:
    stub.replies["GET /v1/memory"] = {"enabled": False, "facts": [], "rules": [], "noticed": [], "problem": "Too long."}
    code, out, _ = run("memory")
    assert code == EXIT_NOTHING
    assert "Nothing is remembered yet." in out
    assert "Memory is off" in out
    assert "Too long." in out


def test_remembering_sends_what_was_said(run: Run, stub: Stub) -> None:
    stub.replies["POST /v1/memory"] = WRITTEN
    code, out, _ = run(
        "memory", "remember", "My", "sister", "is Anna", "--section", "Family", "--replace", "My sister is Ann."
    )
    assert (code, out) == (
        EXIT_OK,
        "Remembered in tars/Memory.md.\n  - My sister is Ann.\n  + My sister is Anna\n",
    )
    assert run("memory", "remember", "Be brief", "--rule", "--json")[0] == EXIT_OK
    assert bodies(stub, "POST /v1/memory") == [
        {"text": "My sister is Anna", "section": "Family", "replace": "My sister is Ann."},
        {"text": "Be brief", "section": "", "replace": "", "kind": "procedural"},
    ]


def test_a_contradiction_is_an_error_where_nobody_can_be_asked(run: Run, stub: Stub) -> None:
    stub.replies["POST /v1/memory"] = (409, CLASH)
    code, _, err = run("memory", "remember", "My sister is Anna")
    assert (code, err.splitlines()[0]) == (EXIT_REFUSED, CLASH["error"]["message"])
    assert '--replace "My sister is Ann."' in err, "and how the line is replaced"
    assert len(bodies(stub, "POST /v1/memory")) == 1


@pytest.mark.parametrize("typed", ["y", "n"])
def test_a_person_says_whether_a_line_is_replaced(stub: Stub, typed: str) -> None:
    stub.replies["POST /v1/memory"] = once_refused(stub)
    with Screen(["chat"]) as screen:
        screen.type("/remember My sister is Anna")
        screen.see("Replace “My sister is Ann.”? [y/N] ")
        screen.type(typed)
        screen.see("+ My sister is Anna" if typed == "y" else "Nothing changed.")
        screen.type("/quit")
        assert screen.end() == EXIT_OK
    asked = bodies(stub, "POST /v1/memory")
    assert [one.get("replace") for one in asked] == [None, "My sister is Ann."][: len(asked)]
    assert len(asked) == 1 + (typed == "y")


def test_forgetting_needs_a_yes(run: Run, stub: Stub) -> None:
    stub.replies["POST /v1/memory/forget"] = {"path": "tars/Memory.md", "diff": "-- Likes tea\n"}
    code, _, err = run("memory", "forget", "tea")
    assert (code, err) == (
        EXIT_REFUSED,
        "Not forgotten. The line is:\n- Likes tea\nAdd --yes to confirm.\n",
    )
    assert "- My sister is Ann.\n- Otto is a cat" in run("memory", "forget", "is")[2], "all that could be meant"
    assert run("memory", "forget", "tea", "--json")[0] == EXIT_REFUSED
    assert bodies(stub, "POST /v1/memory/forget") == []
    code, out, _ = run("memory", "forget", "likes", "tea", "--yes")
    assert (code, out) == (EXIT_OK, "Forgotten in tars/Memory.md.\n  - Likes tea\n")
    assert bodies(stub, "POST /v1/memory/forget") == [{"line": "likes tea"}]


def test_the_exact_line_is_shown_before_it_is_forgotten(stub: Stub) -> None:
    stub.replies["POST /v1/memory/forget"] = {"path": "tars/Memory.md", "diff": "-- My sister is Ann.\n"}
    with Screen(["memory", "forget", "SISTER"]) as screen:
        screen.see("- My sister is Ann.\n")
        screen.see("Forget this? [y/N] ")
        screen.type("y")
        screen.see("Forgotten in tars/Memory.md.")
        assert screen.end() == EXIT_OK
    assert bodies(stub, "POST /v1/memory/forget") == [{"line": "My sister is Ann."}]


@pytest.mark.parametrize(("typed", "forgotten"), [("2\ny", 1), ("2\n", 0), ("9", 0), ("", 0), ("-1", 0)])
def test_of_several_lines_one_is_chosen(stub: Stub, typed: str, forgotten: int) -> None:
    stub.replies["POST /v1/memory/forget"] = {"path": "tars/Memory.md", "diff": ""}
    with Screen(["chat"]) as screen:
        screen.type("/forget is")
        screen.see("  2  Otto is a cat␛[2J")
        screen.see("Forget which one? [1-2, none] ")
        screen.type(typed)
        screen.see("Forgotten" if forgotten else "Nothing changed.")
        screen.type("/quit")
        assert screen.end() == EXIT_OK
    assert len(bodies(stub, "POST /v1/memory/forget")) == forgotten


def test_what_is_not_remembered_cannot_be_forgotten(stub: Stub) -> None:
    with Screen(["memory", "forget", "zebra"]) as screen:
        screen.see("Nothing like that is remembered.")
        assert screen.end() == EXIT_NOTHING


def test_lines_are_matched_whole_before_by_their_words() -> None:
    listed = {"facts": [known("Ann"), known("Ann and Otto")], "rules": [known("Ann")]}
    assert matching(listed, "Ann") == ["Ann"]
    assert matching(listed, "otto ANN") == ["Ann and Otto"]
    assert matching(listed, "an") == ["Ann", "Ann and Otto"]
    assert matching(listed, "") == []


def test_the_last_change_is_taken_back(run: Run, stub: Stub) -> None:
    stub.replies["POST /v1/memory/undo"] = {"id": "w", "path": "tars/Memory.md", "hash": "x"}
    before = {**LISTING, "facts": [known("My sister is Anna")]}
    listings = iter([before, LISTING])
    stub.replies["GET /v1/memory"] = lambda: next(listings)
    code, out, _ = run("memory", "undo")
    assert (code, out.splitlines()) == (
        EXIT_OK,
        [
            "Undone: tars/Memory.md is as it was before.",
            "  - My sister is Anna",
            "  + My sister is Ann.",
            "  + Otto is a cat␛[2J",
        ],
    )
    assert json.loads(run("memory", "undo", "--json")[1])["path"] == "tars/Memory.md"


# Reviews

PROPOSALS = [
    {"id": "p-1", "kind": "rule", "text": "Answer in metres", "why": "From a reply.", "replaces": "", "private": False},
    {"id": "p-2", "kind": "rule", "text": "Be brief", "why": "", "replaces": "Be long", "private": False},
    {"id": "p-3", "kind": "memory", "text": "Likes tea", "why": "Noticed.", "replaces": "", "private": True},
    {"id": "p-4", "kind": "memory", "text": "Likes rain", "why": "Noticed.", "replaces": "", "private": False},
]
REVIEW = {"review": "r1", "model": "fake", "proposals": PROPOSALS, "diff": "@@ -1 +1 @@\n+- Answer in metres\n"}
ARCHIVED = "--- a/tars/Noticed.md\n+++ b/tars/Noticed.md\n@@ -1 +0,0 @@\n-- Likes tea\n"
RULED = "--- a/tars/Procedural.md\n+++ b/tars/Procedural.md\n@@ -1 +1,2 @@\n-- Be long\n+- Answer in feet %% x %%\n"
KEPT = "--- /dev/null\n+++ b/tars/archive/Noticed-1.md\n@@ -0,0 +1 @@\n+- Likes tea\n"
APPLIED = {
    "written": ["tars/Procedural.md", "tars/archive/Noticed-1.md", "tars/Noticed.md"],
    "diff": f"{RULED}\n{KEPT}\n{ARCHIVED}",
}


@pytest.fixture
def reviewed(stub: Stub) -> Stub:
    stub.replies["POST /v1/review"] = REVIEW
    stub.replies["POST /v1/review/apply"] = APPLIED
    return stub


@pytest.mark.parametrize("command", ["review", "chat"])
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_each_proposal_is_decided_by_itself(reviewed: Stub, command: str, term: str) -> None:
    with Screen([command], TERM=term) as screen:
        if command == "chat":
            screen.type("/review")
        screen.see("Proposed: 2 rules and 2 facts.\n\nRule 1 of 4\n  + Answer in metres\n  From a reply.\n")
        screen.see("[a/e/d/S/q] ")
        screen.type("e")
        screen.see("  Answer in metres" if term == "xterm" else "  ")
        screen.type("\x7f" * 6 + "feet" if term == "xterm" else "Answer in feet")
        screen.see("Rule 2 of 4\n  - Be long\n  + Be brief\n")
        screen.see("[a/e/d/S/q] ")
        screen.type("a")
        screen.see("Fact 3 of 4, stays on this machine\n")
        screen.see("[a/e/d/S/q] ")
        screen.type("drop")
        screen.see("Fact 4 of 4\n")
        screen.see("[a/e/d/S/q] ")
        screen.type("")
        screen.see("\n  - Be long\n  + Answer in feet\n1 rule added, 1 dropped; archived.\n")
        assert "Likes tea" not in screen.text[screen.text.index("Fact 4") :], "what was moved away is only counted"
        if command == "chat":
            screen.type("/quit")
        assert screen.end() == EXIT_OK
    decisions = [
        {"id": "p-1", "action": "edit", "text": "Answer in feet"},
        {"id": "p-2", "action": "apply"},
        {"id": "p-3", "action": "drop"},
    ]
    assert bodies(reviewed, "POST /v1/review/apply") == [{"review": "r1", "decisions": decisions}]


@pytest.mark.parametrize("typed", ["q\n", "s\ns\ns\ns\n", "a\n\x03"])
def test_a_review_that_decides_nothing_or_is_broken_off_changes_nothing(reviewed: Stub, typed: str) -> None:
    with Screen(["review"]) as screen:
        screen.see("Rule 1 of 4")
        for key in typed.replace("\n", ""):
            screen.see("[a/e/d/S/q] ")
            if key == "\x03":
                screen.interrupt("\n")
            else:
                screen.type(key)
        assert screen.end() in (EXIT_OK, 130)
    assert bodies(reviewed, "POST /v1/review/apply") == []


def test_quitting_a_review_keeps_what_was_decided(reviewed: Stub) -> None:
    with Screen(["review"]) as screen:
        screen.see("[a/e/d/S/q] ")
        screen.type("a")
        screen.see("[a/e/d/S/q] ")
        screen.type("q")
        screen.see("1 rule added; archived.")
        assert screen.end() == EXIT_OK
    (body,) = bodies(reviewed, "POST /v1/review/apply")
    assert body["decisions"] == [{"id": "p-1", "action": "apply"}]


REMARKS = [
    {"id": "p-1", "kind": "rule", "text": "use km", "why": "", "replaces": "", "private": False, "remark": True},
    {"id": "p-2", "kind": "rule", "text": "no feet", "why": "", "replaces": "", "private": False, "remark": True},
    {"id": "p-3", "kind": "memory", "text": "Likes tea", "why": "", "replaces": "", "private": False, "remark": False},
]


def test_a_remark_is_edited_into_a_rule_or_dropped(reviewed: Stub) -> None:
    reviewed.replies["POST /v1/review"] = {"review": "r1", "model": "", "proposals": REMARKS, "diff": ""}
    with Screen(["review"]) as screen:
        screen.see("Proposed: 1 fact and 2 remarks.\n\nRemark 1 of 3\n  “use km”\n")
        screen.see("(e)dit into a rule, (d)rop, (s)kip, (q)uit [e/d/S/q] ")
        screen.type("a")  # a remark cannot be applied
        screen.see("[e/d/S/q] ")
        screen.type("e")
        screen.see("  use km")
        screen.type(", not miles")
        screen.see("Remark 2 of 3\n  “no feet”\n")
        screen.type("d")
        screen.see("Fact 3 of 3\n  + Likes tea\n")
        screen.type("q")
        assert screen.end() == EXIT_OK
    decisions = [{"id": "p-1", "action": "edit", "text": "use km, not miles"}, {"id": "p-2", "action": "drop"}]
    assert bodies(reviewed, "POST /v1/review/apply") == [{"review": "r1", "decisions": decisions}]


def test_a_review_for_scripts(run: Run, reviewed: Stub) -> None:
    code, out, _ = run("review", "--json")
    assert (code, json.loads(out)) == (EXIT_OK, REVIEW)
    code, out, _ = run(
        "review", "apply", "r1", "--apply", "p-1", "--apply", "p-2", "--edit", "p-3", "Tea", "--drop", "p-4"
    )
    assert (code, out) == (EXIT_OK, "  - Be long\n  + Answer in feet\n1 rule added, 1 dropped; archived.\n")
    (body,) = bodies(reviewed, "POST /v1/review/apply")
    assert [(one["id"], one["action"], one.get("text")) for one in body["decisions"]] == [
        ("p-1", "apply", None), ("p-2", "apply", None), ("p-3", "edit", "Tea"), ("p-4", "drop", None),
    ]  # fmt: skip
    assert json.loads(run("review", "apply", "r1", "--drop", "p-4", "--json")[1]) == APPLIED
    assert run("review", "apply", "r1")[0] == EXIT_USAGE
    assert run("review")[0] == EXIT_REFUSED, "nobody is there to be asked"


def test_nothing_to_review_ends_with_1(run: Run, stub: Stub) -> None:
    stub.replies["POST /v1/review"] = {"review": "r", "model": "", "proposals": [], "diff": ""}
    assert run("review", "--json")[0] == EXIT_NOTHING
    with Screen(["review"]) as screen:
        screen.see("Nothing to review.")
        assert screen.end() == EXIT_NOTHING


def test_a_hint_that_names_a_route_names_the_command_instead(run: Run, stub: Stub) -> None:
    error = {"code": "not_found", "message": "Gone", "hint": "GET /v1/conversations lists them."}
    stub.replies["POST /v1/memory/undo"] = (404, {"error": error})
    assert run("memory", "undo")[2] == "Gone.\ntarsd sessions lists them.\n"
