"""How notes are cut: sizes, lines, trails, fences and tables, and that no visible word is lost."""

from __future__ import annotations

import dataclasses
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tarsd.chunk import chunk, chunker_id, count_tokens, embed_text, with_properties
from tarsd.config import ChunkSettings
from tarsd.parse import Note, parse
from tarsd.passage import Passage, anchor

CASES = Path(__file__).parents[1] / "fixtures" / "cases"
SETTINGS = ChunkSettings()


def cut(text: str, path: str = "note.md", settings: ChunkSettings = SETTINGS) -> list[Passage]:
    return chunk(parse(text, path), settings)


def case(number: str, name: str) -> list[Passage]:
    (path,) = CASES.glob(f"{number}-*/**/{name}")
    return cut(path.read_text(encoding="utf-8"), name)


def holder(chunks: list[Passage], text: str) -> Passage:
    (found,) = (one for one in chunks if text in one.text)
    return found


def sentences(count: int, words: int = 9) -> list[str]:
    rng = random.Random(7)
    names = ("keel", "mast", "oar", "hull", "rope", "sail", "deck", "anchor", "rudder", "plank", "tar", "nail", "bow")
    return [" ".join(rng.choices(names, k=words)).capitalize() + f" number {n}." for n in range(count)]


def check(note: Note, chunks: list[Passage], settings: ChunkSettings = SETTINGS) -> None:
    """What holds of the chunks of any note."""
    assert chunks
    assert [one.seq for one in chunks] == list(range(len(chunks)))
    for one in chunks:
        assert one.text.strip()
        assert 1 <= one.start_line <= one.end_line <= len(note.lines)
        assert len(one.text) <= settings.max_chars
        assert one.tokens <= settings.tokens
        assert one.heading == (one.trail[-1] if one.trail else "")
        assert len(one.hash) == 16
    assert chunks == chunk(note, settings)


# the cases


def test_a_fence_stays_with_its_section() -> None:
    chunks = case("C19", "fence.md")
    assert holder(chunks, "Reboot the heron").trail == ("Setup", "Install", "After")
    assert holder(chunks, "# install the gizmo") == holder(chunks, "sudo gizmo") == holder(chunks, "x = 1")
    assert holder(chunks, "sudo gizmo").heading == "Install"


def test_a_giant_fence_is_cut_into_fences() -> None:
    chunks = case("C21", "giant.md")
    assert any("marlinspike" in one.text for one in chunks)
    fenced = [one for one in chunks if "step_" in one.text]
    assert len(fenced) > 50
    for one in fenced:
        assert re.findall(r"^```.*$", one.text, re.M) == ["```c", "```"]
        assert one.tokens <= SETTINGS.tokens
        first = re.search(r"step_(\d+)", one.text)
        assert first
        lines = one.text.split("\n")
        assert one.end_line - one.start_line + 1 >= len([line for line in lines if "step_" in line])
    source = next(CASES.glob("C21-*/vault/giant.md")).read_text(encoding="utf-8").split("\n")
    for one in fenced:
        inner = [line for line in one.text.split("\n") if "step_" in line]
        assert set(inner) <= set(source[one.start_line - 1 : one.end_line])


def test_no_thin_and_no_mislabelled_section() -> None:
    chunks = case("C22", "sections.md")
    assert [one.trail for one in chunks] == [
        ("My Note", "Start"),
        ("Chapter Two",),
        ("Setext One",),
        ("Setext One", "Setext Two"),
    ]
    assert [(one.start_line, one.end_line) for one in chunks][:2] == [(1, 4), (85, 87)]
    assert "## Empty at end" in chunks[-1].text


@pytest.mark.parametrize("name", ["base64.md", "bigprops.md", "cjk.md"])
def test_runs_without_spaces_are_capped(name: str) -> None:
    chunks = case("C27", name)
    assert max(count_tokens(one.text) for one in chunks) <= SETTINGS.tokens
    assert max(len(one.text) for one in chunks) <= SETTINGS.max_chars
    assert not any("iVBORw0KGgo" in one.text for one in chunks)


def test_cjk_is_cut_at_sentences() -> None:
    chunks = case("C27", "cjk.md")
    assert len(chunks) > 40
    assert sum(one.text.endswith(("。", "！")) for one in chunks) >= len(chunks) - 1
    assert any("羅針盤" in one.text for one in chunks)


def test_one_giant_line() -> None:
    chunks = case("C29", "oneline.md")
    assert {(one.start_line, one.end_line) for one in chunks} == {(1, 1)}
    assert any("theodolite" in one.text for one in chunks)
    assert max(one.tokens for one in chunks) <= SETTINGS.tokens


def test_a_drawing_without_text_is_its_name() -> None:
    (only,) = case("C31", "sketch.excalidraw.md")
    assert only.text == "sketch"


def test_anchors_are_obsidian_s() -> None:
    found = {one.text.split("\n")[-1]: anchor(one.heading) for one in case("C33", "anchors.md")}
    assert found == {
        "Sweep the loft.": "Chores with tag",
        "Colon text.": "Title The Sequel",
        "Time text.": "16 41 standup",
        "Link text.": "See Rope guide",
        "Emoji text.": "🚀 Launch 👩‍🚀 plan",
        "Punctuation text.": "a b c d",
    }


def test_properties_are_a_passage_of_their_own_with_their_lines() -> None:
    def cut(text: str) -> list[Passage]:
        return with_properties(parse(text, "n.md"), SETTINGS)

    block, body = cut("---\ntags: [x]\nstatus: open\nrating: 5\naliases: Oar\nborn: 2017-03-30\n---\nUse wax.\n")
    assert (block.text, block.start_line, block.end_line) == ("status: open\nrating: 5\n\nborn: 2017-03-30", 3, 6)
    assert (body.text, body.start_line) == ("Use wax.", 8)
    (only,) = cut("---\ntags: [x]\npublish: true\ndone: false\ncssclasses: [wide]\ndue:\nfrom: {{date}}\n---\nBody.")
    assert only.text == "Body."
    (ours,) = cut("---\ntars: session\nmachine: abc\n---\nBody.")
    assert ours.text == "Body."
    *blocks, _ = cut("---\na:\n" + "  - two words\n" * 5000 + "---\nBody.")
    assert all(block.tokens <= SETTINGS.tokens for block in blocks)
    assert sum(len(block.text) for block in blocks) < 25_000


# cutting


def test_a_small_note_is_one_chunk() -> None:
    (only,) = cut("First.\n\n\n\n\nSecond.\n\n")
    assert (only.text, only.start_line, only.end_line, only.trail) == ("First.\n\n\n\n\nSecond.", 1, 6, ())


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [("", "Boat shed.md", "Boat shed"), ("---\ntitle: Sheds\n---\n", "x.md", "Sheds"), ("%% hidden %%", "n.md", "n"),
     ("", "Plan.base", "Plan"), ("{}", "Board.canvas", "Board"), ("\n\n---\n\n***\n", "rules.md", "rules")],
)  # fmt: skip
def test_a_note_without_text_is_its_title(text: str, path: str, expected: str) -> None:
    (only,) = cut(text, path)
    assert only.text == expected


def test_a_note_of_headings_only_keeps_them() -> None:
    (only,) = cut("# One\n## Two\n# Three\n")
    assert (only.text, only.trail) == ("# One\n## Two\n# Three", ("One",))
    many = cut("".join(f"# Heading number {n}\n" for n in range(500)))
    assert len(many) > 5
    assert "Heading number 499" in many[-1].text


def test_paragraphs_are_kept_together() -> None:
    text = "\n\n".join(" ".join(sentences(3)) for _ in range(40))
    chunks = cut(text, settings=dataclasses.replace(SETTINGS, overlap=0.0))
    lines = text.split("\n")
    for one in chunks:
        assert one.text == "\n".join(lines[one.start_line - 1 : one.end_line])
    assert min(one.tokens for one in chunks) >= SETTINGS.tokens // 3


def test_the_overlap_repeats_the_end() -> None:
    text = "\n".join(sentences(200))
    chunks = cut(text)
    for one, following in pairwise(chunks):
        first = following.text.split("\n")[0]
        assert one.text.endswith(first)
        assert following.start_line == one.end_line
        assert count_tokens(first) <= SETTINGS.tokens * SETTINGS.overlap
    plain = cut(text, settings=dataclasses.replace(SETTINGS, overlap=0.0))
    assert [one.start_line for one in plain[1:]] == [one.end_line + 1 for one in plain[:-1]]


def test_the_best_break_wins() -> None:
    before, after = sentences(12), sentences(30)
    text = "\n".join([*before, "", "---", "", *after])
    first, *_ = cut(text)
    assert first.text.rstrip().endswith(before[-1])


def test_an_edit_at_the_end_leaves_the_front_alone() -> None:
    day = sentences(300)
    old, new = cut("\n".join(day)), cut("\n".join([*day, "One more thing."]))
    same = {one.hash for one in old} & {one.hash for one in new}
    assert len(same) >= len(old) - 3


def test_a_table_is_kept_whole_or_keeps_its_head() -> None:
    table = ["| Part | Kept in |", "|---|---|"]
    small = "\n".join([*sentences(14), "", *table, *(f"| part {n} | hall |" for n in range(10)), "", *sentences(14)])
    assert holder(cut(small), "| part 0 |") == holder(cut(small), "| part 9 |")
    rows = [f"| part {n} | shelf {n} of the long hall |" for n in range(200)]
    chunks = cut("\n".join(["# Stock", "", *table, *rows]))
    assert len(chunks) > 5
    for one in chunks:
        assert one.text.count("\n".join(table)) == 1
        numbers = [int(number) for number in re.findall(r"\| part (\d+)", one.text)]
        assert (one.start_line + 4 if one.seq == 0 else one.start_line) == numbers[0] + 5
        assert one.end_line == numbers[-1] + 5


def test_fences_in_lists_and_quotes_are_wrapped_as_they_were() -> None:
    for lead in ("> ", "  "):
        head = "- item\n" if lead == "  " else ""
        code = "\n".join(f"{lead}call_{n}(argument)" for n in range(200))
        chunks = cut(f"{head}{lead}```py\n{code}\n{lead}```\n")
        assert len(chunks) > 3
        for one in chunks:
            assert one.text.count(f"{lead}```py") == 1
            assert one.text.count("```") == 2


def test_an_unclosed_fence_is_closed_in_every_piece() -> None:
    chunks = cut("~~~~sql\n" + "\n".join(f"select {n} from boats;" for n in range(300)))
    assert all(one.text.startswith("~~~~sql\n") and one.text.endswith("\n~~~~") for one in chunks)


def test_addresses_behind_links_cost_nothing() -> None:
    address = "https://example.org/" + "path-of-many-words/" * 30
    (only,) = cut(f"See [the chart]({address} 'x') and <{address}>.")
    assert address in only.text
    assert only.tokens < 60
    assert "path-of-many-words/path" not in embed_text("Charts", (), only)


def test_cards_of_a_canvas() -> None:
    source = (
        '{"nodes":[\n{"id":"a","type":"text","text":"# Keel\\n\\nOak."},\n{"id":"b","type":"text","text":"Mast."}]}'
    )
    (only,) = cut(source, "b.canvas")
    assert (only.text, only.start_line, only.end_line, only.trail) == ("# Keel\n\nOak.\nMast.", 2, 3, ())


# hash, embedding text, chunker id


def test_a_rename_changes_no_hash_and_a_title_does() -> None:
    text = "# A\nText.\n"
    assert [one.hash for one in cut(text, "a.md")] == [one.hash for one in cut(text, "deep/b.md")]
    titled = cut(f"---\ntitle: T\n---\n{text}")
    aliased = cut(f"---\naliases: T\n---\n{text}")
    assert len({cut(text)[0].hash, titled[0].hash, aliased[0].hash, cut("# B\nText.\n")[0].hash}) == 4
    assert cut("\n" + text)[0].hash == cut(text)[0].hash


def test_what_is_embedded() -> None:
    one = cut("# Boats\n## Sails\nPatch with wax.\n")[0]
    assert embed_text("Harbour", ("Port", "Docks"), one) == "Harbour\nPort, Docks\nBoats > Sails\nPatch with wax."
    assert embed_text("Boats", (), one) == "Boats\nSails\nPatch with wax."
    long = embed_text("t" * 500, ["a" * 500], dataclasses.replace(one, trail=("h" * 500,)))
    assert len(long) < 600


def test_the_chunker_id_follows_every_setting() -> None:
    ids = {
        chunker_id(SETTINGS, False),
        chunker_id(SETTINGS, True),
        chunker_id(dataclasses.replace(SETTINGS, tokens=221), False),
        chunker_id(dataclasses.replace(SETTINGS, overlap=0.2), False),
        chunker_id(dataclasses.replace(SETTINGS, max_chars=999), False),
        chunker_id(dataclasses.replace(SETTINGS, scores={**SETTINGS.scores, "blank": 11}), False),
    }
    assert len(ids) == 6
    assert chunker_id(SETTINGS, False) == chunker_id(ChunkSettings(), False)


# everything

WORDS = st.text(st.characters(categories=["L", "Nd"], codec="utf-8"), min_size=1, max_size=12)
LINES = st.lists(WORDS, min_size=1, max_size=40).map(" ".join)
MARKS = st.sampled_from([
    "# {}", "## {}", "- {}", "  - {}", "1. {}", "> {}", "| {} | b |", "|---|---|", "{}", "{}\n---", "    {}", "\n",
    "\n\n", "```\n{}\n```", "~~~py\n{}", "$$\n{}\n$$", "{}。{}", "<div>\n{}\n</div>", "- [ ] {}", "\t{}",
    "> [!note] {}",
])  # fmt: skip
BODIES = st.lists(st.tuples(MARKS, LINES), max_size=25)
SMALL = ChunkSettings(tokens=40, max_chars=300)


@settings(max_examples=400)
@given(BODIES, st.sampled_from([SETTINGS, SMALL]))
@example([("~~~py\n{}", "x " * 300)], SMALL)
@example([("| {} | b |", "a"), ("|---|---|", ""), ("| {} | b |", "c " * 200)], SMALL)
@example([("{}", "語" * 500)], SMALL)
def test_every_visible_word_is_in_some_chunk(parts: list[tuple[str, str]], sizes: ChunkSettings) -> None:
    text = "\n".join(mark.format(words, words) if "{}" in mark else mark for mark, words in parts)
    note = parse(text, "note.md")
    chunks = chunk(note, sizes)
    check(note, chunks, sizes)
    # a word too long for a chunk is cut, so words are looked for without the spaces
    everything = "\x00".join("".join(one.text.split()) for one in chunks)
    for _, words in parts:
        for word in words.split() if words.strip() else ():
            if word in text and len(word) <= 12:
                assert word in everything


ODD = st.sampled_from(["```\n", "\n", "# ", "%%", "|--|\n", "a|b\n", " ", "。", "---\n", "x" * 400])


@settings(max_examples=300)
@given(
    st.lists(st.text(max_size=60) | ODD, max_size=30).map("".join),
    st.sampled_from(["a.md", "a.canvas", "a.excalidraw.md"]),
    st.sampled_from([SETTINGS, SMALL, ChunkSettings(tokens=16, overlap=0.5, max_chars=100)]),
)
def test_any_note_is_cut(text: str, path: str, sizes: ChunkSettings) -> None:
    note = parse(text, path)
    check(note, chunk(note, sizes), sizes)


@pytest.mark.parametrize(
    "text",
    [
        "語" * 300_000,
        "x" * 300_000,
        "x," * 150_000,
        "ก" * 100_000,
        "word " * 200_000,
        "word\n" * 100_000,
        "```\n" + "x" * 200_000,
        "|a|\n|-|\n" + "|b|\n" * 20_000,
        "# " + "word " * 20_000,
        "# a\n" * 20_000,
        "- " * 50_000,
        "\n" * 200_000 + "x",
    ],
    ids=lambda text: repr(text[:6]),
)
@pytest.mark.timeout(60)
def test_large_notes_are_cut_in_bounds(text: str) -> None:
    note = parse(text, "a.md")
    chunks = chunk(note, SETTINGS)
    assert max(len(one.text) for one in chunks) <= SETTINGS.max_chars
    assert max(one.tokens for one in chunks) <= SETTINGS.tokens
    assert sum(len(one.text) for one in chunks) < 3 * len(text) + 1000
