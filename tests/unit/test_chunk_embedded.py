"""What an embedding model reads of a passage: neither empty headings, nor queries, nor the tails of addresses."""

from __future__ import annotations

import pytest

from tarsd.chunk import chunk, embed_text
from tarsd.config import ChunkSettings
from tarsd.parse import parse


def embedded(text: str) -> str:
    return "\n".join(embed_text("", (), one) for one in chunk(parse(text, "n.md"), ChunkSettings()))


@pytest.mark.report("https://github.com/brianpetro/obsidian-smart-connections/issues/1308")
@pytest.mark.parametrize(
    "text",
    [
        "## Day\nFixed the gutter.\n\n## Wins\n\n## Lesson\n",
        "## Wins\n\n## Lesson\n\n## Day\nFixed the gutter.\n",
        "## Day\nFixed the gutter.\n## Wins\n```base\nviews:\n  - type: table\n```\n",
        "## Day\nFixed the gutter.\n## Wins\n~~~dataview\nLIST FROM #wins\n~~~\n## Lesson\n- \n",
        "## Wins\n```tasks\nnot done\n```\n## Lesson\n\n## Day\nFixed the gutter.\n",
    ],
)
def test_empty_headings_and_queries_of_a_template_are_in_the_note_but_not_embedded(text: str) -> None:
    (one,) = chunk(parse(text, "n.md"), ChunkSettings())
    assert "Wins" in one.text
    assert embed_text("", (), one) == "Day\nFixed the gutter."


@pytest.mark.report("https://github.com/brianpetro/obsidian-smart-connections/issues/1308")
@pytest.mark.parametrize("words", [200, 214, 430, 1000])
@pytest.mark.parametrize("headings", [1, 12, 60])
def test_empty_headings_that_the_last_passage_has_no_room_for_are_not_embedded(words: int, headings: int) -> None:
    text = "## Day\n" + "gutter " * words + "\n" + "".join(f"## Lesson {at}\n\n" for at in range(headings))
    found = chunk(parse(text, "n.md"), ChunkSettings())
    assert all(one.tokens <= ChunkSettings().tokens for one in found)
    assert f"Lesson {headings - 1}" in found[-1].text
    assert not any("Lesson" in embed_text("Note", (), one) for one in found)


def test_the_headings_of_a_note_that_has_no_more_are_embedded() -> None:
    assert embedded("# One\n## Two\n# Three\n") == "One\n# One\n## Two\n# Three"


def test_an_ordinary_fence_is_embedded() -> None:
    assert "make all" in embedded("## Build\n```sh\nmake all\n```\n")


@pytest.mark.report("https://github.com/flowing-abyss/obsidian-hybrid-search/issues/33")
@pytest.mark.parametrize("line", ["{} " + "word " * 300, "word " * 300 + "{}", "word " * 150 + "<{}> " + "word " * 150])
def test_the_tail_of_a_long_address_is_not_embedded_where_its_line_is_cut(line: str) -> None:
    text = embedded(line.format("https://example.org/share?next=" + "%252F" * 250))
    assert "example.org/share" in text
    assert "%252F" * 8 not in text


@pytest.mark.report("https://github.com/flowing-abyss/obsidian-hybrid-search/issues/33")
@pytest.mark.parametrize("tail", ["%252F", "潮汐", "Приливы_", "ज्वार-भाटा_", "a,", "日本/", "%D0%9F", "x;y&"])
@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "{} and more words",
        "word " * 150 + "<{}> word",
        "[a]({}) word",
        "([a]({}),[b]({}))",
        "```\n{}\n```",
        "- <{}>",
    ],
)
@pytest.mark.parametrize("times", [300, 2000])
def test_no_piece_of_an_address_that_is_longer_than_a_passage_embeds_its_tail(tail: str, line: str, times: int) -> None:
    note = parse(line.replace("{}", "https://example.org/share?next=" + tail * times), "n.md")
    pieces = chunk(note, ChunkSettings())
    assert "".join(one.text for one in pieces).count(tail) >= times - len(pieces)  # all of it can be found and shown
    assert all(len(one.text) <= ChunkSettings().max_chars for one in pieces)
    for one in pieces:
        assert tail * 16 not in embed_text("", (), one)


@pytest.mark.parametrize(
    "address",
    [
        "https://ru.wikipedia.org/wiki/" + "Прилив_" * 40,
        "https://пример.рф/" + "путь/" * 60,
        "https://ja.wikipedia.org/wiki/" + "潮汐" * 40,
        "https://th.wikipedia.org/wiki/" + "น้ำขึ้นน้ำลง" * 30,
        "https://example.org?x=" + "%25" * 99,
        "obsidian://open?vault=a&file=" + "%D0%9F" * 90,
        "zotero://select/items/" + "A1" * 100,
    ],
)
def test_addresses_in_any_script_and_of_any_scheme_are_embedded_by_their_beginning(address: str) -> None:
    (line,) = embedded(f"See {address} there.").split("\n")
    assert line.startswith(f"See {address[:20]}") and line.endswith(" there.")
    assert len(line) < 90


@pytest.mark.parametrize("words", ["潮の満ち引き", "，然后去港口", "ありがとう。"])
def test_words_right_after_an_address_are_embedded(words: str) -> None:
    assert words in embedded("https://example.org/a/" + "b" * 60 + words)


@pytest.mark.parametrize("block", ["```base\na\n", "~~~tasks\n", " ```query\n", "> ```dataview\n"])
def test_a_query_that_is_never_closed_takes_the_rest_of_its_section(block: str) -> None:
    assert embedded("## Day\nFixed the gutter.\n## Wins\n" + block * 3) == "Day\nFixed the gutter."
