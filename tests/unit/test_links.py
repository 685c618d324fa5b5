"""Links to notes: one function writes them for every name that a disk allows, and its inverse reads them all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.chunk import chunk
from tarsd.citation import finish
from tarsd.config import ChunkSettings
from tarsd.notes.resolve import link_target
from tarsd.parse import parse
from tarsd.passage import HeadingPlaces, anchor, link_to, read_link
from tarsd.protocol import Event
from tarsd.session import Conversation, ConversationSummary, TurnRecord
from tarsd.session.note import render_new, render_turn
from tarsd.session.properties import properties
from tests.support.turns import passage

NOT_ON_WINDOWS = '<>:"/\\|?*'
letters = st.one_of(
    st.sampled_from("#^[]%&;()!'+,=@~$`{}_ .-aZé日🙂#^[]%"),
    st.characters(exclude_categories=("C", "Zl", "Zp", "Zs"), exclude_characters=NOT_ON_WINDOWS),
)
parts = (
    st.text(letters, min_size=1, max_size=20)
    .map(lambda name: name.strip().rstrip(". "))
    .filter(lambda name: bool(name) and not name.startswith("."))
)
paths = st.lists(parts, min_size=1, max_size=3).map(lambda names: "/".join(names) + ".md")


@pytest.mark.report("https://github.com/obsidianmd/obsidian-importer/issues/161")
@given(paths, st.one_of(st.just(""), st.text(letters, max_size=20)))
def test_every_name_that_three_systems_allow_has_a_link_that_leads_to_it(path: str, heading: str) -> None:
    place = heading if heading.startswith("^") else anchor(heading)
    link = link_to(path, place)
    note = path.removesuffix(".md")
    if not heading.startswith("^"):
        assert read_link(link) == (note, place)
        assert link_target(link) == (note, place)
    # the parser, and Obsidian, find one link in a sentence; it names the note
    (found,) = parse(f"See {link_to(path)}.", "n.md").links
    assert found.target.removesuffix(".md") == note or found.target == path


@pytest.mark.parametrize(
    ("path", "heading", "link"),
    [
        ("Quorl.md", "", "[[Quorl]]"),
        ("A/Quorl.md", "S2#E02", "[[A/Quorl#S2#E02]]"),
        ("C# basics.md", "Loops", "[C basics](C%23%20basics.md#Loops)"),
        ("Draft [v2] #1.md", "", "[Draft v2 1](Draft%20%5Bv2%5D%20%231.md)"),
        ("Band/AC^DC live.md", "^b-1", "[AC DC live](Band/AC%5EDC%20live.md#^b-1)"),
        ("50% off; ok?.md", "", "[50% off; ok?](50%25%20off%3B%20ok%3F.md)"),
        ("Tides.canvas", "", "[[Tides.canvas]]"),
        ("notes.md.md", "", "[notes.md](notes.md.md)"),
        ("###.md", "", "[note](%23%23%23.md)"),
    ],
)
def test_a_link_is_a_wikilink_wherever_one_can_hold_the_name(path: str, heading: str, link: str) -> None:
    assert link_to(path, heading) == link
    assert read_link(link) == (path.removesuffix(".md"), heading)


@pytest.mark.parametrize("text", ["https://a.b", "[a](https://a.b)", "[a](//a.b/c)", "[a](obsidian://x)", "Note", ""])
def test_what_is_no_link_to_a_note_is_none(text: str) -> None:
    assert read_link(text) is None


SEASONS = "# S1\n## E01\nOne\n## E02\nTwo\n# S2\n## E01\nThree\n## E02\nFour\n"


@pytest.mark.report("https://github.com/KosmosisDire/obsidian-webpage-export/issues/458")
@pytest.mark.parametrize(
    ("text", "links"),
    [
        (SEASONS, {"One": "E01", "Two": "E02", "Three": "S2#E01", "Four": "S2#E02"}),
        ("# A\nOne\n# a:\nTwo\n\nThree ^here\n# A\nFour\n", {"One": "A", "Two": "^here", "Four": ""}),
        ("# X\n## A\n### B\nOne\n# Y\n## A\n### B\nTwo\n", {"One": "B", "Two": "Y#A#B"}),
        ("# X\n### B\nOne\n## A\n### B\nTwo\n", {"One": "B", "Two": "A#B"}),
        ("One\n# C# tips\nTwo\n", {"One": "", "Two": "C tips"}),
    ],
)
def test_twin_headings_are_cited_by_path_or_block(text: str, links: dict[str, str]) -> None:
    found = chunk(parse(text, "n.md"), ChunkSettings())
    for words, place in links.items():
        (one,) = [passage for passage in found if words in passage.text]
        assert one.link == (f"#{place}" if place else "")


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from("ABC")), max_size=8))
def test_a_place_leads_to_its_own_heading_or_names_none(headings: list[tuple[int, str]]) -> None:
    """As Obsidian reads it: each part in turn is the first heading of that name deeper than the one before."""
    for index in range(len(headings)):
        place = HeadingPlaces(headings).place(index)
        parts = (headings[index][1] if place is None else place).split("#")
        level = 0
        met: list[int] = []
        for at, (depth, name) in enumerate(headings):
            if len(met) < len(parts) and depth > level and name == parts[len(met)]:
                level = depth
                met.append(at)
        assert place == "" or met[-1] == index


@pytest.mark.report("https://github.com/samwho/obsidian-wikidata-importer/issues/6")
@pytest.mark.parametrize("path", ["C# tips.md", "Band/AC^DC live.md", "a [b] | c.md", "100% sure.md"])
def test_a_session_note_links_to_such_a_note_too(path: str) -> None:
    source = replace(passage(path, "Some words."), number=1)
    text, citations = finish("So it is [1].", [source], lambda name: False)
    assert citations[0]["link"] == link_to(path)
    record = TurnRecord("t1", "What?", 0.0, "r", events=(Event(1, "done", {"text": text, "citations": citations}),))
    (found,) = parse(render_turn(record), "n.md").links
    assert found.target == path
    conversation = Conversation(ConversationSummary("c", "What?", 0.0, 0.0, 1), (record,))
    assert properties(render_new(conversation))["sources"] == [path]  # properties know no Markdown links


@pytest.mark.report("https://github.com/dust-tt/dust/issues/12359")
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("![[local.png]]", "![[local.png]]"),
        ("So: ![[Pics/a b.JPG|300]] and [[Ghost]]", "So: ![[Pics/a b.JPG|300]] and Ghost"),
        ("![w](Pics/a%20b.webp)", "![w](Pics/a%20b.webp)"),
        ("![[Ghost]] ![[Ghost.pdf]]", "Ghost Ghost.pdf"),
        ("![[https://a.b/c.png]]", "https://a.b/c.png"),
        ("![[//a.b/c.png]]", "//a.b/c.png"),
    ],
)
def test_an_embed_of_a_picture_of_the_vault_stays(text: str, kept: str) -> None:
    assert finish(text, [], lambda name: False)[0] == kept
    record = TurnRecord("t1", "What?", 0.0, "r", events=(Event(1, "done", {"text": kept}),))
    if kept.count("!["):
        assert kept in render_turn(record)
