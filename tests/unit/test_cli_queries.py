"""Tables in terminals, and how expressions are taken from a command line."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tarsd.cli.query import show, split_expressions, text
from tarsd.cli.table import Cell, table
from tarsd.cli.terminal import Terminal, columns


class Screen(io.StringIO):
    """A terminal of so many columns."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "dumb")
    return Terminal(Screen())


PLAIN = Terminal(io.StringIO())


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("rating, pages", ["rating", "pages"]), ("", []), ("a,,b,", ["a", "b"]),
        ("if(a, 1, 2), [1, 2].length", ["if(a, 1, 2)", "[1, 2].length"]), ("'a,b', x", ["'a,b'", "x"]),
        ('note["a,b"], y', ['note["a,b"]', "y"]),
    ],
)  # fmt: skip
def test_commas_in_quotes_and_brackets_part_no_expressions(given: str, parts: list[str]) -> None:
    assert split_expressions(given) == parts


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""), (True, "yes"), (2.6666666666, "2.6667"), (5, "5"), ("[[People/Ada.md|Ada]]", "Ada"),
        ("[[People/Ada.md]]", "Ada"), (["[[A]]", "b"], "A, b"), ({"a": 1}, "a: 1"), ("x\x1b[31m\ny", "x␛[31m y"),
    ],
)  # fmt: skip
def test_a_value_is_shown_as_people_read_it(value: Any, shown: str) -> None:
    assert text(value) == shown


ROW = ["a title that is longer than the room that there is for it in a terminal", "漢字" * 20, "short"]


def test_a_table_wraps_where_the_terminal_ends(screen: Terminal) -> None:
    lines = table(["one", "two", "three"], [[Cell(part) for part in ROW]], screen)
    assert len(lines) > 2 and all(columns(line) <= 60 for line in lines)
    assert "".join("".join(lines).split()).count("漢字") == 20


def test_a_table_that_nobody_looks_at_breaks_nothing() -> None:
    assert len(table(["one", "two", "three"], [[Cell(part) for part in ROW]], PLAIN)) == 2


TASKS = {
    "columns": [{"name": "due", "title": "due"}, {"name": "done", "title": "done"}],
    "rows": [
        {"path": "a.md", "line": 3, "status": " ", "text": "Oil it", "values": {"due": "2026-01-02", "done": None}},
        {"path": "b.md", "line": 1, "status": "/", "text": "Buy it", "values": {"due": None, "done": None}},
    ],
    "groups": [], "summaries": {}, "total": 5,
}  # fmt: skip


def test_tasks_are_shown_with_their_boxes_and_places_and_no_empty_column() -> None:
    lines = show(TASKS, None, PLAIN)
    assert lines[0].split() == ["task", "where", "due"]
    assert lines[1].split() == ["[", "]", "Oil", "it", "a.md:3", "2026-01-02"]
    assert lines[-1] == "2 of 5 tasks"


def test_groups_are_shown_with_their_sums() -> None:
    reply = {
        "columns": [{"name": "file.name", "title": "file name"}, {"name": "price", "title": "price"}],
        "rows": [{"path": "a.md", "values": {"file.name": "a", "price": 2}}],
        "groups": [{"key": "sf", "count": 1, "rows": [0], "summaries": {"price": {"fn": "Sum", "value": 2, "of": 1}}}],
        "summaries": {"price": {"fn": "Sum", "value": 2, "of": 1, "skipped": 3}},
        "total": 1,
    }
    lines = show(reply, None, PLAIN)
    assert lines[0] == "sf  1  sum of price: 2 (of 1 value)"
    assert lines[1].split() == ["note", "price"]
    assert "sum of price: 2 (of 1 value, 3 left out)" in lines
    assert lines[-1] == "1 row"
