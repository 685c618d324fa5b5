"""Messages that are commands: what they ask for, and what is wrong with them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.chat.commands import RowsCommand, ToolCommand, read_command
from tarsd.errors import BadRequest
from tarsd.query import VaultQuery, task_query

TODAY = date(2026, 11, 29)


def query(message: str) -> VaultQuery:
    found = read_command(message, TODAY)
    assert isinstance(found, RowsCommand)
    return found.query


@pytest.mark.parametrize(
    "message",
    ["", "/", "/n", "/notebook x", " /notes rating > 3", "notes", "what is /notes?", "/search", "//notes", "/notes\nx"],
)
def test_other_messages_are_none(message: str) -> None:
    assert read_command(message, TODAY) is None


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("/notes", {}),
        ("/NOTES  rating > 3 ", {"where": "rating > 3"}),
        ('/notes status == "a --sort b" && x', {"where": 'status == "a --sort b" && x'}),
        ("/notes count - -1 > 2", {"where": "count - -1 > 2"}),
        ("/notes rating > 3 --limit 5", {"where": "rating > 3", "limit": 5}),
        ("/notes --sort -rating, file.name", {"sort": ("-rating", "file.name"), "columns": ("rating", "file.name")}),
        ("/notes --columns if(a, b, c),d --sort e", {"columns": ("if(a, b, c)", "d"), "sort": ("e",)}),
        ("/notes --sum=price --group genre", {"summaries": {"price": "sum"}, "columns": ("price",), "group": "genre"}),
        ("/notes --average rating, pages", {"summaries": {"rating": "average", "pages": "average"},
                                            "columns": ("rating", "pages")}),
        ("/notes größe > 3 --sort größe", {"where": "größe > 3", "sort": ("größe",), "columns": ("größe",)}),
        ("/notes --columns 読了日 file.inFolder(\"本\")", {"columns": ('読了日 file.inFolder("本")',)}),
    ],
)  # fmt: skip
def test_notes_by_a_condition(message: str, wanted: dict[str, Any]) -> None:
    assert query(message) == VaultQuery(**wanted)


@pytest.mark.parametrize(
    ("message", "state", "more"),
    [
        ("/tasks", "open", {}),
        ("/tasks boat varnish", "open", {"words": "boat varnish"}),
        ("/tasks --overdue", "overdue", {}),
        ("/tasks --done boat", "done", {"words": "boat"}),
        ("/tasks boat --all --tag home", "all", {"words": "boat", "tag": "home"}),
        ('/tasks --due before:2026-12-01 --in "My Boat"', "open", {"due": "before:2026-12-01", "folder": "My Boat"}),
        ("/tasks don't forget", "open", {"words": "don't forget"}),
        ("/tasks --due week --limit 3", "open", {"due": "week", "limit": 3}),
    ],
)
def test_tasks_by_their_state_and_day(message: str, state: Any, more: dict[str, Any]) -> None:
    assert query(message) == task_query(state, TODAY, **more)


@pytest.mark.parametrize(
    ("message", "tool", "arguments"),
    [
        ("/tasks done Inbox.md:12", "complete_task", {"name": "Inbox.md", "line": 12}),
        ('/tasks done "Über: uns/Täglich.md:3"', "complete_task", {"name": "Über: uns/Täglich.md", "line": 3}),
        ("/tasks add Call Ada", "daily_note_append", {"text": "- [ ] Call Ada", "heading": ""}),
        (
            "/tasks add Call Ada --due tomorrow --to [[Boat]] --heading Next steps",
            "note_append",
            {"name": "[[Boat]]", "text": "- [ ] Call Ada 📅 2026-11-30", "heading": "Next steps"},
        ),
    ],
)
def test_tasks_that_are_changed_are_calls_of_tools(message: str, tool: str, arguments: dict[str, Any]) -> None:
    assert read_command(message, TODAY) == ToolCommand(tool, arguments)


def test_bases_by_name() -> None:
    found = read_command("/base Books/All my books.base --view By author --this [[Ada]]", TODAY)
    assert found == RowsCommand(VaultQuery(view="By author", this="[[Ada]]"), "Books/All my books.base")


@pytest.mark.parametrize(
    ("message", "said", "hint"),
    [
        ("/notes --rows x", "no option --rows", "--columns"),
        ("/tasks --tomorrow", "no option --tomorrow", "--due"),
        ("/notes --sort", "Nothing stands behind --sort", "/notes --sort"),
        ("/notes --limit ten", "not a number", "--limit 20"),
        ("/notes --limit 9999999", "not a number", "--limit 20"),
        ("/tasks --due someday", "not a due date", "today"),
        ("/tasks done", "No task", "/tasks done Inbox.md:12"),
        ("/tasks done Inbox", "No task", "/tasks --done"),
        ("/tasks add", "what is to be done", ""),
        ("/tasks add x --due never", "not a date", "2026-"),
        ("/base", "No base", ".base"),
    ],
)
def test_what_is_wrong_is_said(message: str, said: str, hint: str) -> None:
    with pytest.raises(BadRequest) as wrong:
        read_command(message, TODAY)
    assert said in wrong.value.message and hint in wrong.value.hint


@given(st.sampled_from(["/notes ", "/tasks ", "/base ", "/tasks add ", "/tasks done "]), st.text(max_size=200))
def test_whatever_follows_is_read_or_refused(command: str, rest: str) -> None:
    try:
        assert read_command(command + rest, TODAY) is not None
    except BadRequest as wrong:
        assert wrong.message
