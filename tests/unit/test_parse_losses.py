"""Nothing in properties and canvases is lost without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tarsd.chunk import chunk
from tarsd.config import ChunkSettings
from tarsd.parse import Note, parse
from tarsd.parse.boards import canvas


def props(*lines: str) -> Note:
    return parse("\n".join(["---", *lines, "---", "Body."]), "n.md")


@pytest.mark.report("https://github.com/jekyll/jekyll/issues/2649")
@pytest.mark.parametrize(
    "date", ["2024-02-30", "2024-13-45", "2023-02-29", "2024-02-30 10:00:00", "2024-01-05T25:10", "0000-01-01"]
)
def test_a_date_that_does_not_exist_is_kept_and_named(date: str) -> None:
    for note in (props(f"due: {date}"), props("days:", f"  - {date}")):
        assert date in str(note.properties)
        assert len(note.problems) == 1 and "date does not exist" in note.problems[0].reason


@pytest.mark.parametrize(
    "date", ["2024-02-29", "2024-01-05 23:59", "2024-1-5", "2024-01-05T10:00:00+02:00", "'2024-02-30'"]
)
def test_a_date_that_exists_or_is_quoted_is_no_problem(date: str) -> None:
    assert not props(f"due: {date}").problems


@pytest.mark.report("https://github.com/GD4AI/obsidian-llm-wiki/issues/399")
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["s:", "  - Alpha", "s:", "  - Beta"], ("Alpha", "Beta")),
        (["s: Alpha", "s: Beta"], ("Alpha", "Beta")),
        (["tags: Alpha", "tags: [Beta]"], ("Alpha", "Beta")),
        (["m:", "  s: Alpha", "  s: Beta"], ("Alpha", "Beta")),
        (["m:", "  s: Alpha", "m:", "  t: Beta"], ("Alpha", "Beta")),
        (["s: Alpha", "bad: [", "s: Beta"], ("Alpha", "Beta")),
        (["s: Alpha: one", "s: Beta: two"], ("Alpha", "Beta")),
        (["s: 17", "s: Beta"], ("17", "Beta")),
        (["s: Alpha", "s:"], ("Alpha",)),
    ],
)
def test_both_values_of_a_name_that_is_there_twice_are_kept_and_named(lines: list[str], words: tuple[str, ...]) -> None:
    note = props(*lines)
    found = f"{note.properties} {note.lines}"
    assert all(word in found for word in words)
    assert any("twice" in problem.reason for problem in note.problems)


@pytest.mark.report("https://github.com/basicmachines-co/basic-memory/issues/246")
@pytest.mark.parametrize(
    "lines",
    [
        ["tags: #a #b"],
        ["tags: #a, #b"],
        ["tags: #a, #b # both"],
        ["tags: [#a, #b]"],
        ["tags: [a, '#b']"],
        ["tags: [", "  #a,", "  #b]"],
        ["tags:", "- #a", "- #b"],
        ["tags:", "  - a", "  - #b # why"],
        ['tag: \'["a", "b"]\''],
        ["tags:", "  - '[\"a\"'", "  - '\"b\"]'"],
        ["tags:", '  - \'["a", "b"]\''],
        ["tags:", "  - [#a, #b]"],
        ["tags:", "  - - #a", "    - #b"],
        ["tags:", "  - [a, b]"],
        ["tags:", "  one: #a", "  two: #b"],
        ["tags:", "  - one: #a", "  - #b"],
        ["tags:", "  - a:", "  - b"],
        ["tags:", "  of:", "    - #a", "    - #b"],
        ["tags:", "  of: [#a, #b]"],
        ["tags: #", "- #a", "- #b"],
        ["tags: #mine", "  - #a", "  - b"],
    ],
)
def test_tags_are_read_after_hashes_and_from_pieces_of_json(lines: list[str]) -> None:
    assert props(*lines).tags == ("a", "b")


@pytest.mark.report("https://github.com/basicmachines-co/basic-memory/issues/246")
@pytest.mark.parametrize(
    "lines",
    [
        ["meta:", "  topic: #tides"],
        ["meta:", "  - topic: #tides"],
        ["meta:", "  deep:", "    topic: #tides # why"],
        ["meta:", "  - [#tides]"],
        ["meta:", "  topics: [", "    #tides]"],
        ["a:", "  - x", "topic: #tides"],
        ["text: |", "  words", "topic: #tides"],
    ],
)
def test_a_value_behind_a_hash_is_kept_at_any_depth(lines: list[str]) -> None:
    note = props(*lines)
    assert "#tides" in str(note.properties) and "why" not in str(note.properties)
    assert [problem.reason for problem in note.problems] == [
        "In properties, # starts a comment; here it is read as a value."
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["text: |", "  topic: #tides", "  - #tides"],
        ["text: >-", "  topic: #tides"],
        ["m:", "  text: |", "    topic: #tides", "  b: c"],
        ['text: "one', '  topic: #tides"'],
        ["m: # tides", "  a: b"],
        ["m:", "  a: b # tides"],
        ["m:", "  # a: #tides", "  a: b"],
    ],
)
def test_text_and_comments_at_any_depth_stay_what_they_are(lines: list[str]) -> None:
    note = props(*lines)
    assert not note.problems
    assert "'#tides" not in str(list(note.properties.values()))


@pytest.mark.parametrize(
    "lines", [["tags: a # why"], ["tags: [a] #todo"], ["# all", "tags: a"], ["text: |", "  - #b", "tags: a"]]
)
def test_comments_in_properties_stay_comments(lines: list[str]) -> None:
    note = props(*lines)
    assert note.tags == ("a",)
    assert not note.problems


def board(data: Any) -> Note:
    return parse(data if isinstance(data, str) else json.dumps(data), "x.canvas")


@pytest.mark.report("https://github.com/aovestdipaperino/tokensave/issues/459")
@pytest.mark.parametrize(
    "data", ["", " \n", "[]", "3", '"text"', "null", {"nodes": {}}, {"nodes": [3]}, {"edges": "a"}]
)
def test_a_canvas_that_is_empty_or_no_canvas_is_named(data: Any) -> None:
    assert len(board(data).problems) == 1


def test_the_cards_of_a_canvas_that_can_be_read_are_kept() -> None:
    note = board({"nodes": [3, {"id": "a", "type": "text", "text": "Sleeper"}]})
    assert "Sleeper" in "\n".join(note.lines)
    assert note.problems


@pytest.mark.parametrize("card", [{"text": "a \ud800 b"}, {"label": "\udfff x"}, {"file": "N\ud800.md"}])
def test_half_a_character_in_a_card_does_no_harm(card: dict[str, str]) -> None:
    note = board({"nodes": [{"id": "a", **card}]})
    assert chunk(note, ChunkSettings())[0].text.encode()
    assert all(link.target.encode() for link in note.links)


def test_a_card_of_a_file_is_found_by_the_name_of_the_file() -> None:
    note = board({"nodes": [{"id": "a", "type": "file", "file": "Trips/Night train.md", "subpath": "#Day 2"}]})
    assert note.lines == ("Night train › Day 2",)
    assert [link.target for link in note.links] == ["Trips/Night train.md"]


def test_each_card_stands_on_its_own_line() -> None:
    cards = [{"id": f"{at:016x}", "type": "text", "text": f"Card {at}"} for at in range(300)]
    source = json.dumps({"nodes": cards}, indent=0).split("\n")
    found = canvas(source)
    for at, card in enumerate(cards):
        line = next(number for number, text in enumerate(source) if f'"{card["id"]}"' in text)
        assert found.lines[line] == f"Card {at}"
