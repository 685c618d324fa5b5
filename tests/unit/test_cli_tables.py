"""Tables in answers at a terminal: told from other text while they come, drawn within its edge, with their links."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.cli.markdown import MOST_ROWS, MarkdownTable, TableFinder
from tarsd.cli.terminal import columns
from tarsd.errors import EXIT_OK
from tests.support.screen import Screen
from tests.support.stub import Run, Stub
from tests.unit.test_cli_chat import answer, bodies

TABLE = "| Note | rating |\n| --- | --- |\n| [[Books/Dune]] [1] | 5 |\n| a \\| b | |\n"


def found(*pieces: str) -> list[str | MarkdownTable]:
    """What is told apart, neighbouring texts as one."""
    finder = TableFinder()
    parts = [part for piece in pieces for part in finder.feed(piece)] + list(finder.finish())
    joined: list[str | MarkdownTable] = []
    for part in parts:
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


DUNE = MarkdownTable(("Note", "rating"), (("[[Books/Dune]] [1]", "5"), ("a | b", "")))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (TABLE, [DUNE]),
        (f"2 notes.\n\n{TABLE}\nThat is all.", ["2 notes.\n\n", DUNE, "\nThat is all."]),
        ("| a |\n|:-:|\n| 1 | 2 | 3 |\n||", [MarkdownTable(("a",), (("1",), ("",)))]),
        ("  | a | b |\n  |---|---:\n  | 1\n", [MarkdownTable(("a", "b"), (("1", ""),))]),
        ("| a | b |\n|---|---|\n", [MarkdownTable(("a", "b"), ())]),
        ("| a | b |\n| --- |\n| c |\n", ["| a | b |\n| --- |\n| c |\n"]),
        ("| no table\n| at all", ["| no table\n| at all"]),
        ("| alone", ["| alone"]),
        (f"```\n{TABLE}```\n{TABLE}", [f"```\n{TABLE}```\n", DUNE]),
        (f"- ~~~~\n~~~\n{TABLE}~~~~\n{TABLE}", [f"- ~~~~\n~~~\n{TABLE}~~~~\n", DUNE]),
        ("a | b\n", ["a | b\n"]),
    ],
)
def test_a_table_is_told_from_the_text_around_it(text: str, parts: list[str | MarkdownTable]) -> None:
    assert found(text) == parts
    assert found(*text) == parts, "letter by letter too"


@given(st.lists(st.sampled_from(["| a | b |", "|---|---|", "| 1 |", "|", "\n", "text", "```", "  ", "\\|", "[1]"])))
def test_however_a_text_is_cut_the_same_is_found(pieces: list[str]) -> None:
    assert found(*pieces) == found("".join(pieces))


def test_only_lines_that_may_be_a_table_are_held_back() -> None:
    finder = TableFinder()
    assert list(finder.feed("words")) == ["words"]
    assert list(finder.feed(" come\n| a")) == [" come\n"]
    assert list(finder.feed(" |\n")) == []
    assert list(finder.feed("no rule")) == ["| a |\n", "no rule"]


def test_a_table_that_never_ends_is_given_on_in_parts() -> None:
    finder = TableFinder()
    parts = [part for _ in range(3) for part in finder.feed("| 1 |\n" * MOST_ROWS)]
    assert parts == ["| 1 |\n| 1 |\n"] * (3 * MOST_ROWS // 2), "no table at all is not held back"
    parts = list(finder.feed("| a |\n|---|\n"))
    for _ in range(3 * MOST_ROWS):
        parts += finder.feed("| 1 |\n")
    assert parts == [MarkdownTable(("a",), (("1",),) * MOST_ROWS)] * 3


SOURCE = {"n": 1, "path": "Books/Dune.md", "title": "Dune", "heading": "", "start_line": 2, "end_line": 2}
EXACT = {**SOURCE, "relevance": 1.0, "attached": False, "collection": ""}
HELLO = {"vault": {"path": "/notes", "id": "v"}}


def says(stub: Stub, *pieces: str, source: dict[str, Any] = EXACT, model: str = "") -> None:
    stub.replies["GET /v1/hello"] = HELLO
    tokens = [{"type": "token", "text": piece} for piece in pieces]
    retrieved = {"type": "retrieved", "sources": [source], "relevance": 1.0, "behind": 0, "model": model}
    answer(stub, [retrieved, *tokens, {"type": "done", "text": "".join(pieces), "citations": [source], "notices": []}])


@pytest.mark.parametrize("model", ["", "extractive"])
def test_a_table_of_an_answer_is_drawn_and_its_rows_lead_to_their_notes(stub: Stub, model: str) -> None:
    says(stub, "2 notes.\n\n", *TABLE, "\nThat is all.\n", model=model)
    with Screen(["ask", "/notes"], COLUMNS="40") as screen:
        assert screen.end() == EXIT_OK
        assert screen.text == ("2 notes.\n\nNote            rating\nBooks/Dune [1]  5\na | b\n\nThat is all.\n"), (
            "and no list repeats the row"
        )
        assert "\x1b]8;;file:///notes/Books/Dune.md\x1b\\\x1b[36mBooks/Dune [1]\x1b[0m\x1b]8;;\x1b\\" in screen.raw
    with Screen(["ask", "/notes"], COLUMNS="40", TERM="dumb") as screen:
        assert screen.end() == EXIT_OK
        assert screen.text.endswith("Sources\n  [1] /notes/Books/Dune.md:2\n"), "where nothing can be clicked"
        assert "Books/Dune [1]  5\n" in screen.text


def test_a_number_in_somebodys_words_stands_there_as_they_wrote_it(stub: Stub) -> None:
    text = "- [ ] Read \\[1] and \\[2, 1?] — [[Books/Dune]] [1]\n\n"
    text += "| Note | said |\n| --- | --- |\n| [[Books/Dune]] [1] | see \\[1] |\n"
    says(stub, text)
    with Screen(["ask", "/notes"], COLUMNS="80") as screen:
        assert screen.end() == EXIT_OK
        assert "Read [1] and [2, 1?] — [[Books/Dune]] [1]" in screen.text and "see [1]" in screen.text
        assert "\\" not in screen.text
        assert "\x1b[36mBooks/Dune [1]" in screen.raw


def test_a_pipe_gets_the_markdown_as_it_is(run: Run, stub: Stub) -> None:
    says(stub, *TABLE)
    code, out, _ = run("ask", "/notes")
    assert code == EXIT_OK
    assert out == f"{TABLE}\nSources\n  [1] /notes/Books/Dune.md:2\n"


def test_a_source_that_was_found_keeps_its_figure_in_or_beside_a_table(stub: Stub) -> None:
    says(stub, TABLE, source={**EXACT, "relevance": 0.8})
    with Screen(["ask", "x"]) as screen:
        screen.end()
        assert "[1] Dune  relevant 0.80\n      /notes/Books/Dune.md:2" in screen.text


def test_a_remark_in_the_middle_of_a_table_comes_after_what_is_there(stub: Stub) -> None:
    stub.replies["GET /v1/hello"] = HELLO
    waiting = {"type": "waiting", "text": "The model is loaded."}
    rest = {"type": "token", "text": "And more."}
    done = {"type": "done", "text": "x", "citations": [], "notices": []}
    answer(stub, [{"type": "token", "text": f"So:\n{TABLE}| last"}, waiting, rest, done])
    with Screen(["ask", "x"]) as screen:
        screen.end()
        assert screen.text.index("last") < screen.text.index("The model is loaded.") < screen.text.index("And more.")


WIDE = [
    ["one", "two"], ["漢字" * 30, "ок"], ["word " * 40, "x" * 90], [f"c{number}" for number in range(20)],
    ["https://example.org/" + "a/" * 60, ""],
]  # fmt: skip


@pytest.mark.parametrize("cells", WIDE, ids=["short", "wide letters", "long words", "many columns", "an address"])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_table_is_wider_than_the_terminal_and_no_cell_is_lost(stub: Stub, cells: list[str], width: int) -> None:
    rule = "|---" * len(cells) + "|"
    titles = "| " + " | ".join(f"t{number}" for number in range(len(cells))) + " |"
    says(stub, f"{titles}\n{rule}\n| {' | '.join(cells)} |\n")
    with Screen(["ask", "x"], COLUMNS=str(width)) as screen:
        screen.end()
        rows = screen.text.partition("\nSources")[0].splitlines()
    assert [row for row in rows if columns(row) > width] == []
    shown = "".join("".join(rows).split())
    letters = sorted("".join("".join(cells).split()))
    for letter in set(letters):
        assert shown.count(letter) >= letters.count(letter)


def test_what_the_daemon_answers_is_sent_as_it_was_typed(run: Run, stub: Stub) -> None:
    says(stub, "Nothing matches.")
    typed = ["/tasks  --overdue", "/Notes rating > 3", "/base Books.base", "/tasks", " /tasks", " /help"]
    code, _, err = run("chat", "-c", "mine", stdin="\n".join([*typed, "/taks", "/ tasks"]))
    assert code == EXIT_OK
    asked = [body["message"] for body in bodies(stub, "POST /v1/turns")]
    assert asked == [*typed[:-1], "/help"], "a blank says that no command is meant, and is kept where that matters"
    assert err.count("Did you mean /tasks?") == 2
