"""Notes as they are found in vaults: properties, structure, links, tags, hidden text, boards."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tarsd.parse import Note, parse, properties, structure, wordpiece
from tarsd.parse.spans import spans

CASES = Path(__file__).parents[1] / "fixtures" / "cases"
DATA = Path(wordpiece.__file__).parent.parent / "data"


def note(text: str, path: str = "note.md", **options: Any) -> Note:
    return parse(text, path, **options)


def case(number: str, name: str) -> Note:
    (path,) = CASES.glob(f"{number}-*/**/{name}")
    raw = path.read_bytes()
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    return parse(raw.decode(encoding, "replace"), name)


def heads(of: Note) -> list[str]:
    return [heading.text for heading in of.headings]


def targets(of: Note) -> list[str]:
    return [link.target for link in of.links]


def shown(of: Note) -> str:
    return "\n".join(of.lines)


# properties


def test_a_title_with_a_colon_is_kept_and_reported() -> None:
    colon = case("C01", "colon.md")
    assert colon.title == colon.explicit_title == "Sprint 14: what we cut"
    assert colon.tags == ("planning",)
    assert [problem.line for problem in colon.problems] == [2]
    assert "zeppelin" in shown(colon)


@pytest.mark.parametrize(
    ("name", "word", "line"),
    [("a-path.md", "marzipan", 2), ("b-italic.md", "tinsel", 2), ("c-rule.md", "pontoons", 0),
     ("d-suffix.md", "lanterns", 3), ("e-good.md", "turnips", 0)],
)  # fmt: skip
def test_broken_properties_never_hide_the_note(name: str, word: str, line: int) -> None:
    broken = case("C03", name)
    assert word in shown(broken)
    assert [problem.line for problem in broken.problems] == ([line] if line else [])


def test_an_opening_rule_is_text() -> None:
    rule = case("C03", "c-rule.md")
    assert rule.body_line == 1
    assert rule.lines[:2] == ("---", "Just a thought, no properties here.")
    closed = note("---\nJust a thought.\n---\nMore.\n")
    assert (closed.body_line, closed.problems, closed.properties) == (1, (), {})
    assert closed.lines[1] == "Just a thought."


def test_a_bad_item_loses_its_line_and_no_more() -> None:
    bold = case("C04", "番外_海戦_完全分析_v3修正.md")
    assert bold.properties == {"sources": ["草稿_v2.md"]}
    assert [problem.line for problem in bold.problems] == [4]
    assert "二月に修正" in bold.lines[3]  # still found, at its line


def test_dates_are_iso_strings() -> None:
    dated = case("C05", "dated.md")
    assert dated.properties["created"] == "2026-03-09"
    assert dated.properties["updated"] == "2026-03-10T08:15:00+09:00"
    assert dated.tags == ("journal", "2026-03-09")


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("2026-02-30", "2026-02-30"),
        ("2026-3-9", "2026-03-09"),
        ("2026-3-9 8:15:00 +9", "2026-03-09T08:15:00+09:00"),
        ("2026-03-09 08:15", "2026-03-09T08:15:00"),
        ("16:41", "16:41"),
        ("no", "no"),
        ("true", True),
        ("~", None),
        ("007", "007"),
        ("12", 12),
        ("0x1F", 31),
        ("-1.5e3", -1500.0),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("123456789012345678901234", "123456789012345678901234"),
        ("1_000", "1_000"),
        ("!!python/object:os.system x", "x"),
        ("'2026-03-09'", "2026-03-09"),
        ("'true'", "true"),
        ("{{date}}", "{{date}}"),
        ("[[Note]]", "[[Note]]"),
        ("[[a], [b]]", [["a"], ["b"]]),
    ],
)
def test_values(source: str, value: object) -> None:
    found = note(f"---\nkey: {source}\n---\n").properties["key"]
    assert found == value
    assert type(found) is type(value)


def test_keys_are_strings() -> None:
    odd = note("---\n1: a\ntrue: b\n2026-01-01: c\n? [x, y]\n: d\n<<: {e: f}\n---\n")
    assert odd.properties == {"1": "a", "true": "b", "2026-01-01": "c", "[x, y]": "d", "<<": {"e": "f"}}


def test_templates_are_text() -> None:
    core, templater = case("C07", "tpl-core.md"), case("C07", "tpl-templater.md")
    assert core.title == "tpl-core"
    assert core.properties == {"date": "{{date}}", "title": "{{title}}"}
    assert heads(core) == ["{{title}}"]
    assert templater.properties == {"created": '<% tp.date.now("YYYY-MM-DD") %>', "Parent": None}


def test_tags_and_aliases_are_lists_of_strings() -> None:
    assert (case("C09", "blank.md").tags, case("C09", "blank.md").aliases) == ((), ())
    assert case("C09", "scalar.md").tags == ("garden", "shed")
    assert case("C09", "mixed.md").tags == ("ok", "2024", "true")
    both = note("---\nAliases: One Name, Another\ntag: '#a, b/c/'\n---\n#A #d\n")
    assert both.aliases == ("One Name", "Another")
    assert both.tags == ("a", "b/c", "d")
    assert both.properties == {"Aliases": ["One Name", "Another"], "tag": ["a", "b/c"]}


def test_a_byte_order_mark_hides_no_properties() -> None:
    assert case("C11", "bom.md").properties == {"title": "From Notepad", "secretfield": "donotembed"}
    assert case("C11", "bom-crlf.md").title == "From Notepad"
    assert "---" not in shown(case("C11", "bom.md"))


@pytest.mark.parametrize(("name", "lines"), [("crlf.md", [4, 8]), ("cr.md", [4]), ("mixed.md", [4, 7])])
def test_line_ends_of_any_kind(name: str, lines: list[int]) -> None:
    ends = case("C12", name)
    assert [heading.line for heading in ends.headings] == lines
    assert ends.explicit_title
    assert "\r" not in shown(ends)


def test_other_separators_are_no_line_ends() -> None:
    assert len(note("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\n").lines) == 1


def test_later_rules_are_rules() -> None:
    rules = case("C14", "rules.md")
    assert rules.properties == {"title": "Real"}
    assert rules.headings == ()
    assert all(word in shown(rules) for word in ("cisterns", "aqueducts", "fountains"))
    assert note("\n---\na: b\n---\n").properties == {}


def test_inline_fields_among_properties() -> None:
    inline = case("C15", "inline.md")
    assert inline.properties == {"filename": "Day maths"}
    assert [problem.line for problem in inline.problems] == [3, 4]


def test_links_in_properties_are_literal() -> None:
    prev = case("C16", "prev.md")
    assert targets(prev) == ["2022-05", "2022_05", "2022 - 05"]
    assert [link.line for link in prev.links] == [2, 2, 3]
    assert prev.properties == {"prev": ["[[2022-05]]", "[[2022_05]]"], "next": ["[[2022 - 05]]"]}


def test_bombs_are_bounded() -> None:
    laughs = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    bomb = note("\n".join(["---", "l0: &l0 [ha, ha]", *laughs, "title: Kept", "---", "Body."]))
    assert bomb.title == "Kept"
    assert len(bomb.problems) == 9
    for deep in ("a: " + "[" * 100_000, "a: " + "- " * 100_000, "? " * 50_000, "a: &x [*x]", "a: " + "{a: " * 9000):
        assert "Body." in shown(note(f"---\nb: 1\n{deep}\n---\nBody."))


def test_properties_that_are_read_and_switches() -> None:
    text = note("---\nstatus: open\ndone: true\ndescription: How to mend a sail\ntags: [x]\ntitle: T\n---\n")
    assert text.lines == ("", "status: open", "", "description: How to mend a sail", "", "", "", "")
    assert text.property_text == "done true"
    broken = note("---\ntags: [x, y\nstatus: open\n---\n")
    assert broken.lines[1:3] == ("tags: [x, y", "status: open")


def test_an_impossibly_long_block_is_left_out() -> None:
    long = note("---\na: " + "x" * (properties.MAX_BLOCK_CHARS + 1) + "\n---\nBody.")
    assert (long.properties, len(long.problems), long.body_line) == ({}, 1, 4)


@given(st.recursive(st.text() | st.integers() | st.floats() | st.booleans() | st.none(), st.lists, max_leaves=8))
def test_values_are_always_json(value: object) -> None:
    block = note(f"---\nkey: {value}\nother: {json.dumps(value)}\n---\nBody.")
    json.dumps(block.properties, allow_nan=False)
    assert "Body." in shown(block)


# structure


def test_headings_in_fences_are_code() -> None:
    fence = case("C19", "fence.md")
    assert heads(fence) == ["Setup", "Install", "After"]
    assert [(unit.kind, unit.opener) for unit in fence.units] == [("fence", "```bash"), ("fence", "~~~python")]


def test_underlined_headings() -> None:
    sections = case("C22", "sections.md")
    assert heads(sections) == ["My Note", "Start", "Chapter Two", "Setext One", "Setext Two", "Empty at end"]
    (one,) = (heading for heading in sections.headings if heading.text == "Setext One")
    assert one.end_line == one.line + 1


def test_callouts_hold_no_sections() -> None:
    callouts = case("C23", "callouts.md")
    assert heads(callouts) == ["Safety"]
    assert (callouts.tags, callouts.links) == ((), ())
    assert "Use the brass key." in shown(callouts)


def test_comments_are_hidden() -> None:
    comments = case("C25", "comments.md")
    text = shown(comments)
    assert not [word for word in ("ALPHA", "BETA", "GAMMA", "DELTA", "EPSILON", "secret") if word in text]
    assert 'printf("keep %% this")' in text
    assert comments.headings == ()
    assert [problem.line for problem in comments.problems] == [17]


def test_comments_can_be_included_but_hold_no_sections() -> None:
    (path,) = CASES.glob("C25-*/vault/comments.md")
    comments = note(path.read_text(encoding="utf-8"), include_comments=True)
    assert "Block secret BETA" in shown(comments)
    assert comments.headings == ()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Sale 50%%off today", "Sale 50%%off today"),
        ("`100%%` and `50%%` are code", "`100%%` and `50%%` are code"),
        ("a <!-- hidden --> b", "a  b"),
        ("<!-- never closed", ""),
        ("arrow <!-- is text", "arrow <!-- is text"),
        ("SYS\u200bTEM\u2060 \u202eok\u00ad", "SYSTEM ok"),
        ("family \U0001f469\u200d\U0001f680", "family \U0001f469\u200d\U0001f680"),
        ("```\n<!-- code -->\n```", "```\n<!-- code -->\n```"),
        ("> ```\n> %% code\n\n%%hidden%%", "> ```\n> %% code\n\n"),
        ("- item\n  ```\n  %% code\n  ```\n%%hidden%%", "- item\n  ```\n  %% code\n  ```\n"),
        ("%%a%%%%b%%c", "c"),
        ("x %%\n```\n%%\n# Seen", "x \n\n\n# Seen"),
    ],
)
def test_what_is_hidden(source: str, text: str) -> None:
    assert shown(note(source)) == text


def test_pasted_data_is_replaced() -> None:
    pasted = case("C27", "base64.md")
    assert "iVBORw0KGgo" not in shown(pasted)
    assert "line two](data:image/png)" in shown(pasted)
    blob = "aB3" * 700
    assert shown(note(f"key {blob} end")) == "key (2100 characters of data) end"
    assert shown(note("word" * 700)) == "word" * 700


def test_money_is_no_math() -> None:
    money = case("C36", "money.md")
    assert heads(money) == ["Budget", "Real"]
    assert targets(money) == ["Band B"]
    assert [(unit.kind, unit.start_line, unit.end_line) for unit in money.units] == [("math", 5, 8)]
    assert heads(note("$$ cheap\n\n# Food\n\n$$ dear\n")) == ["Food"]


def test_deep_nesting_loses_nothing() -> None:
    assert "astrolabe" in shown(case("C37", "outline.md"))
    assert "isinglass" in shown(case("C37", "quotes.md"))
    deep = note("> " * 3000 + "text\n---\n" + "\n".join("  " * n + "- item" for n in range(400)))
    assert "text" in shown(deep)


def test_html_blocks_hold_no_headings() -> None:
    assert heads(note("<div>\n# inside\n</div>\n\n# Outside\n")) == ["Outside"]
    assert heads(note("a <b>bold</b>\n# Outside\n")) == ["Outside"]


def test_tables_are_units() -> None:
    (table,) = case("C17", "table.md").units
    assert (table.kind, table.start_line, table.end_line) == ("table", 4, 8)


FRAGMENTS = (
    "", "# A", "## B #", "text", "  text", "- item", "  - sub", "1. one", "> quote", "> # q", "```", "```py", "~~~",
    "    code", "\t# x", "---", "===", "# ", "#tag", "***", "<div>", "</div>", "<b>x</b>", "   # C", "  ```", "- ```",
    "> ```", "- # h", "    ```", "| a | b |", "|---|---|", "####### x", "`code`", "[x]: http://a", "a | b", " # D",
    "````", "- ", "  cont", "   ~~~", "+ x", "* y", "<!-- c -->", "%% c %%",
)  # fmt: skip


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=9))
@example(["```", "> ```", "# A"])
@example(["- item", "<b>x</b>", "    ```"])
@example(["    ```", "- ```"])
def test_the_line_scan_agrees_with_the_parser(lines: list[str]) -> None:
    """Headings and fences are those that markdown-it sees, whether it was asked or not."""
    body = "\n".join(lines)
    outline = structure._without(body, [s for s in spans(body) if s.kind in ("comment", "html", "math")])
    headings, fences, _ = structure._parse_headings(outline, 1)
    shape = structure.read(lines, 1, include_comments=False)
    assert shape.headings == headings
    assert [unit for unit in shape.units if unit.kind == "fence"] == fences


# links, tags, block ids


def test_links_in_tables() -> None:
    table = case("C17", "table.md")
    found = [(link.target, link.heading, link.text) for link in table.links]
    assert found == [
        ("icons/gear", "", "Gear"),
        ("Turbine", "", "the big one"),
        ("Pump", "", "spare"),
        ("", "Store", "see below"),
    ]
    assert [link.line for link in table.links] == [2, 6, 7, 8]


@pytest.mark.parametrize(
    ("source", "target", "heading", "block", "text", "embed"),
    [
        ("[[Note]]", "Note", "", "", "", False),
        ("[[Note#A#B|x]]", "Note", "A#B", "", "x", False),
        ("![[Note#^id]]", "Note", "", "id", "", True),
        ("![[photo.png|300x200]]", "photo.png", "", "", "", True),
        ("[there](My%20Note.md#Part)", "My Note.md", "Part", "", "there", False),
        ("[there](<My Note.md>)", "My Note.md", "", "", "there", False),
        ("[a [b] c](sub/n(1).md 'title')", "sub/n(1).md", "", "", "a [b] c", False),
        ("![alt](img.png)", "img.png", "", "", "alt", True),
        ("[here](#Part)", "", "Part", "", "here", False),
    ],
)
def test_links(source: str, target: str, heading: str, block: str, text: str, embed: bool) -> None:
    (link,) = note(f"before\n\nsee {source} now").links
    assert (link.target, link.heading, link.block, link.text, link.embed) == (target, heading, block, text, embed)
    assert link.line == 3


@pytest.mark.parametrize(
    "source",
    ["`[[a]]`", "```\n[[a]]\n```", "[x](https://a.b/c.md)", "[x](mailto:a@b.c)", "%% [[a]] %%", "[[]]", "[x](//h/p)",
     "text\n\n    [[code]]\n", "$$\n[[a]]\n$$"],
)  # fmt: skip
def test_no_links(source: str) -> None:
    assert note(source).links == ()


def test_tags_are_words() -> None:
    assert case("C35", "tags.md").tags == ("real", "nested/child", "日本語", "y2024")
    assert note("#one#two \\#no &#39; #-a_b `x`#no #🚀 #一、二 #1 #１/a (#no)").tags == (
        "one",
        "-a_b",
        "🚀",
        "一",
        "１/a",
    )


def test_block_ids_leave_the_text() -> None:
    blocks = case("C39", "blocks.md")
    assert [(b.id, b.start_line, b.end_line) for b in blocks.blocks] == [
        ("para1", 1, 1),
        ("li-1", 3, 3),
        ("tbl", 6, 8),
        ("q1", 12, 12),
    ]
    assert "^para1" not in shown(blocks) and "^tbl" not in shown(blocks)
    assert "not an id ^code1" in shown(blocks)
    assert [(link.target, link.block) for link in case("C39", "embed.md").links] == [
        ("blocks", "tbl"),
        ("blocks", "para1"),
        ("missing", "nope"),
    ]


def test_a_block_id_names_its_paragraph_or_item() -> None:
    found = note("# H\none\ntwo ^p\n\n- a\n- b\n  more ^i\n\n> x\n> y\n\n^q\n").blocks
    assert [(b.id, b.start_line, b.end_line) for b in found] == [("p", 2, 3), ("i", 6, 7), ("q", 9, 10)]
    assert heads(note("## Knots ^k1\n")) == ["Knots"]


# boards, and our own notes


def test_a_drawing_is_its_texts() -> None:
    plan = case("C31", "plan.excalidraw.md")
    assert plan.title == "plan"
    assert [line for line in plan.lines if line.strip()] == ["Canal bypass route", "Pumping station"]
    assert (plan.tags, plan.headings, plan.problems) == (("excalidraw",), (), ())
    assert not shown(case("C31", "sketch.excalidraw.md")).strip()
    back = note(
        "---\nexcalidraw-plugin: parsed\n---\nMy own words.\n\n# Excalidraw Data\n## Text Elements\nx ^abcdefgh\n%%\n"
    )
    assert [line for line in back.lines if line.strip()] == ["My own words.", "x"]


def test_a_canvas_is_its_cards() -> None:
    nodes = [
        {"id": "a1", "type": "text", "text": "# Keel\nSee [[Oak]] #wood"},
        {"id": "b2", "type": "file", "file": "notes/Mast.md"},
        {"id": "c3", "type": "group", "label": "Rigging"},
        "nonsense",
    ]
    source = "{\n" + '"nodes":[\n' + ",\n".join(map(json.dumps, nodes)) + '\n],\n"edges":[{"id":"e","label":"pulls"}]}'
    board = note(source, "board.canvas")
    assert board.title == "board"
    assert board.lines[2] == "# Keel\nSee [[Oak]] #wood"
    assert (board.lines[4], board.lines[7]) == ("Rigging", "pulls")
    assert [(link.target, link.line, link.embed) for link in board.links] == [
        ("Oak", 3, False),
        ("notes/Mast.md", 4, True),
    ]
    assert (board.tags, board.headings) == (("wood",), ())


@pytest.mark.parametrize("source", ['{"nodes": [', "[" * 100_000, "null", "3", '{"nodes": 4, "edges": {}}', ""])
def test_a_broken_canvas_is_an_empty_note(source: str) -> None:
    board = note(source, "x.canvas")
    assert not shown(board).strip()
    assert board.problems


def test_a_base_is_its_name() -> None:
    base = note("filters:\n  and: []\n", "Books.base")
    assert (base.title, shown(base).strip(), len(base.lines)) == ("Books", "", 2)


@pytest.mark.parametrize(
    ("value", "memory"),
    [("session", None), ("chat", None), ("memory", "semantic"), ("procedural", "procedural"), ("summary", "episodic")],
)
def test_our_own_notes_say_so(value: str, memory: str | None) -> None:
    own = note(f"---\ntars: {value}\n---\nText.")
    assert (own.ours, own.memory_type) == (True, memory)
    assert note("Text.").ours is False


# everything


@pytest.mark.parametrize(
    ("number", "name", "word"), [("C41", "utf16.md", "gantries"), ("C41", "nul.md", "after: hawser")]
)
def test_odd_bytes(number: str, name: str, word: str) -> None:
    assert word in shown(case(number, name))


PIECES = st.text(max_size=40) | st.sampled_from(
    [
        "---\n",
        "%%",
        "<!--",
        "-->",
        "```\n",
        "~~~",
        "$$",
        "[[",
        "]]",
        "](",
        "#",
        "^a",
        "\n",
        "\r",
        "|",
        "`",
        "> ",
        "- ",
        "data:",
    ]
)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=30).map("".join), st.sampled_from(["a.md", "a.canvas", "a.base", "a.excalidraw.md"]))
@example("\ud800 lone\n", "a.md")
def test_any_text_is_a_note(text: str, path: str) -> None:
    found = parse(text, path)
    count = len(found.lines)
    assert count >= 1
    for heading in found.headings:
        assert found.body_line <= heading.line <= heading.end_line <= count
    for unit in found.units:
        assert found.body_line <= unit.start_line <= unit.end_line <= count
    for block in found.blocks:
        assert 1 <= block.start_line <= block.end_line <= count
    assert all(1 <= line <= count for line in [*(link.line for link in found.links), *(p.line for p in found.problems)])
    json.dumps(found.properties, allow_nan=False)
    shown(found).encode()


SCRIPTS = "日本語、。カナค้นหาالنصहिन्दी한글Ωд–…“”€✓🚀\u0301\u3000"


@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=["C"]) | st.sampled_from(SCRIPTS), max_size=80))
@example("état naïve – “quoted” 5€ 日本語 ค้นหา C++ don't a_b")
@example("x" * 101 + " " + "y" * 100)
def test_tokens_are_those_of_the_model(text: str) -> None:
    expected = TOKENIZER.encode(text, add_special_tokens=False).ids
    assert wordpiece.token_ids(text) == expected


@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=["C"]), max_size=80))
def test_sizes_of_latin_text_are_the_tokens_of_the_model(text: str) -> None:
    assert wordpiece.count_tokens(text) == len(TOKENIZER.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize(
    "text",
    [
        "Каждое утро я пью чай из синей чашки и записываю в тетрадь, что мне приснилось.",
        "Κάθε πρωί πίνω τσάι από το μπλε φλιτζάνι και γράφω στο τετράδιο τι ονειρεύτηκα.",
        "كل صباح أشرب الشاي من الكوب الأزرق وأكتب في الدفتر ما حلمت به في الليل.",
        "כל בוקר אני שותה תה מהכוס הכחולה וכותבת במחברת את מה שחלמתי בלילה.",
        "हर सुबह मैं नीले प्याले से चाय पीता हूँ और कॉपी में लिखता हूँ कि मैंने क्या सपना देखा।",
        "ทุกเช้าฉันดื่มชาจากถ้วยสีน้ำเงินและเขียนลงในสมุดว่าฉันฝันถึงอะไร",
        "ყოველ დილით ლურჯი ფინჯნიდან ჩაის ვსვამ და რვეულში ვწერ, რა დამესიზმრა.",
        "每天早上我用蓝色的杯子喝茶，然后在本子上写下我梦见了什么。",
        "毎朝、青いカップでお茶を飲み、夢で見たことをノートに書きます。",
        "매일 아침 나는 파란 컵으로 차를 마시고 무슨 꿈을 꾸었는지 공책에 적는다.",
    ],
)
def test_the_same_text_is_about_as_large_in_every_script(text: str) -> None:
    english = "Every morning I drink tea from the blue cup and write down in my notebook what I dreamt."
    assert 0.7 < wordpiece.count_tokens(text) / wordpiece.count_tokens(english) < 1.5


TOKENIZER = Tokenizer.from_file(str(DATA / "minilm" / "tokenizer.json"))
TOKENIZER.no_padding()
TOKENIZER.no_truncation()


@pytest.mark.parametrize(
    "text",
    [
        "%%" * 50_000,
        "`" * 100_000,
        "` `` ``` " * 20_000,
        "[[" * 50_000,
        "](" * 50_000,
        "<!--" * 30_000,
        "$$ a\n\n" * 20_000,
        "- ```\n" * 5_000,
        "|-" * 50_000,
        "a\n---\n" * 3_000,
        "  " * 50_000 + "x",
        "# " + "#" * 100_000,
        "#a" * 50_000,
        "text ^" * 20_000,
        "<a " + "b " * 50_000,
        "---\n" + "a: b: c\n" * 3_000 + "---\n",
    ],
    ids=lambda text: repr(text[:8]),
)
@pytest.mark.timeout(60)
def test_hostile_text_ends(text: str) -> None:
    found = parse(text, "a.md")
    assert math.isfinite(len(found.lines))
    assert list(spans("")) == []


def test_what_follows_code_over_two_lines_begins_no_line() -> None:
    (one,) = parse("a `x\ny`# no heading\n\n# one", "n.md").headings
    assert (one.text, one.line) == ("one", 4)
