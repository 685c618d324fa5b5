"""A session note stays valid Markdown whatever is said, and grows without touching what a person wrote in it."""

from __future__ import annotations

import re
from datetime import UTC

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tarsd.chat.answer import PRIVATE_HISTORY, PRIVATE_PASSAGES
from tarsd.chat.attached import PRIVATE_SELECTION
from tarsd.parse import parse
from tarsd.protocol import Event
from tarsd.session import Conversation, ConversationSummary, SummaryRecord, TurnRecord, title_of
from tarsd.session.markdown import contained, fenced, one_line
from tarsd.session.note import (
    begun,
    file_title,
    grown,
    holds,
    render_new,
    render_summary_note,
    render_turn,
    summarised,
    update_properties,
)
from tarsd.vault import content_hash, decode, encode
from tarsd.writing.changes import Loaded
from tarsd.writing.sanitize import sanitize

AT = 1_795_874_580.0  # 2026-11-28 14:03 UTC

SOURCE = {"n": 1, "path": "Harbour.md", "title": "Harbour", "heading": "Tools", "link": "[[Harbour#Tools]]"}


def turn(
    message: str = "What is a quorl?", reply: str = "A brass wedge. [1]", id: str = "a1", **done: object
) -> TurnRecord:
    sources = done.pop("sources", [SOURCE])
    events = (
        Event(1, "retrieved", {"sources": sources, "query": "quorl", "model": "ollama:quill:3b"}),
        Event(2, "done", {"text": reply, "citations": sources, **done}),
    )
    return TurnRecord(id, message, AT, f"r-{id}", events=events)


def conversation(*turns: TurnRecord, condensed: SummaryRecord | None = None) -> Conversation:
    title = turns[0].message if turns else ""
    return Conversation(
        ConversationSummary("c-1", title, AT, AT, len(turns)), turns, "tars/sessions/Quorls.md", condensed
    )


def loaded(text: str, encoding: str = "utf-8") -> Loaded:
    raw = encode(text, encoding)
    read = decode(raw)
    return Loaded("tars/sessions/Quorls.md", raw, read.text, read.encoding, content_hash(raw))


def sections(text: str) -> list[str]:
    return [heading.text for heading in parse(text, "n.md").headings if heading.level <= 2]


def test_a_note_reads_as_it_should() -> None:
    text = render_new(conversation(turn(), turn("And where?\nExactly?", "There.", "b2", sources=[])), zone=UTC)
    assert text == (
        "---\n"
        "tars: session\n"
        "id: c-1\n"
        "started: 2026-11-28T14:03:00+00:00\n"
        "updated: 2026-11-28T14:03:00+00:00\n"
        'model: "ollama:quill:3b"\n'
        "sources:\n"
        '  - "[[Harbour]]"\n'
        "---\n"
        "\n"
        "## What is a quorl?\n\n"
        "2026-11-28 14:03 · `ollama:quill:3b` ^t-a1\n\n"
        "A brass wedge. [1]\n\n"
        "Sources:\n\n"
        "- [[Harbour#Tools]] [1]\n"
        "\n"
        "## And where? Exactly?\n\n"
        "2026-11-28 14:03 · `ollama:quill:3b` ^t-b2\n\n"
        "> And where?\n> Exactly?\n\n"
        "There.\n"
    )


def test_the_note_is_known_as_ours_and_its_links_are_links() -> None:
    note = parse(render_new(conversation(turn()), zone=UTC), "tars/sessions/Quorls.md")
    assert note.ours
    assert note.memory_type is None
    assert note.properties == {
        "tars": "session",
        "id": "c-1",
        "started": "2026-11-28T14:03:00+00:00",
        "updated": "2026-11-28T14:03:00+00:00",
        "model": "ollama:quill:3b",
        "sources": ["[[Harbour]]"],
    }
    assert [(link.target, link.heading) for link in note.links] == [("Harbour", ""), ("Harbour", "Tools")]
    assert [block.id for block in note.blocks] == ["t-a1"]
    assert note.problems == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\ntext\n### Three\n###### Six", "### One\ntext\n##### Three\n###### Six"),
        ("Title\n===\ntext\n\nTwo\nlines\n---", "### Title\ntext\n\n#### Two lines"),
        ("#nohash\n```\n# code\n```", "#nohash\n```\n# code\n```"),
        ("> # quoted", "> # quoted"),
        ("#\n\n## ##", "\\#\n\n\\## ##"),
        ("a %% b", "a &#37;&#37; b"),
        ("%%a%% b %%", "&#37;&#37;a&#37;&#37; b &#37;&#37;"),
        ("`%%` and 50 %", "`%%` and 50 %"),
        ("<!-- x\ny -->", "&lt;!-- x\ny -->"),
        ("a <!-- b", "a &lt;!-- b"),
        ("<script>\nx", "&lt;script>\nx"),
        ("- <pre>\n\n  x", "- &lt;pre>\n\n  x"),
        ("<b>fine</b> and a<br>b", "<b>fine</b> and a<br>b"),
        ("$$\nx", "\\$\\$\nx"),
        ("$$\nx\n$$", "$$\nx\n$$"),
        ("[1]: https://example.org", "\\[1]: https://example.org"),
        ("a[^1]\n\n[^1]: note", "a[^1]\n\n[^1]: note"),
        ("```py\nx", "```py\nx\n```"),
        ("| a |\n|---|\n| [[x|y]] |\n\n[[x|y]]", "| a |\n|---|\n| [[x\\|y]] |\n\n[[x|y]]"),
        ("---\na: b\n---", "---\n#### a: b"),
        ("\n\na\r\nb\rc\x00\n\n", "a\nb\nc"),
        ("", ""),
        (" \n ", ""),
    ],
)  # fmt: skip
def test_what_is_made_of_a_reply(text: str, expected: str) -> None:
    assert contained(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![p](https://e.org/x.png) ![](//e.org)", "[p](https://e.org/x.png) [//e.org](//e.org)"),
        ("![a ![b](https://e.org/1)](https&colon;//e.org)", "[a [b](https://e.org/1)](https&colon;//e.org)"),
        ("![r] ![p][r] Great![1]", "!\\[r] !\\[p][r] Great![1]"),
        ("![[Note#H|x]] ![x](a/b.png) ![[https://e.org/x|t]]", "![[Note#H|x]] ![x](a/b.png) [t](https://e.org/x)"),
        ("<img src=https://e.org/x alt='a_b'>", "[a b](https://e.org/x)"),
        ('a <iframe src="https://e.org"></iframe>', "a [https://e.org](https://e.org)"),
        ("<object data='//e.org'> <video>", "[//e.org](//e.org) &lt;video>"),
        ("a <script>x</script> <svg onload=x>", "a &lt;script>x&lt;/script> &lt;svg onload=x>"),
        ("<b style='background:url(//e.org)'> <a href=javascript:x> <b onclick=x>",
         "&lt;b style='background:url(//e.org)'> &lt;a href=javascript:x> &lt;b onclick=x>"),
        ("<span style='color:red'>x</span> <https://e.org> <a href='https://e.org'>y</a> <3",
         "<span style='color:red'>x</span> <https://e.org> <a href='https://e.org'>y</a> <3"),
        ("$a<b$ but a<b", "$a< b$ but a&lt;b"),
        ("```dataviewjs\nx\n```\n- ~~~ run-js\n  x\n  ~~~",
         "```text (dataviewjs)\nx\n```\n- ~~~text (run-js)\n  x\n  ~~~"),
        ("> ```js-engine\n> x\n> ```", "> ```text (js-engine)\n> x\n> ```"),
        ("```tasks\nfilter by function x\n```", "```text (tasks)\nfilter by function x\n```"),
        ("```query\nx\n```\n```tasks\nnot done\n```", "```query\nx\n```\n```tasks\nnot done\n```"),
        ("<% x %> and `<% x %>`", "&lt;% x %> and `< % x %>`"),
        ("`$= x` ` = x` `VIEW[x]`", "`\\$= x` ` \\= x` `\\VIEW[x]`"),
        ("`==` `=>` `a = b`", "`==` `=>` `a = b`"),
        ("```\n\n$= x\n```\n\n    $= x", "```\n\n\\$= x\n```\n\n    \\$= x"),
        ("<code>$= x</code>", "&lt;code>$= x</code>"),
        ("<div>\n`<svg>`\n</div>", "<div>\n`&lt;svg>`\n</div>"),
    ],
)  # fmt: skip
def test_nothing_in_a_reply_runs_or_loads_anything(text: str, expected: str) -> None:
    assert sanitize(text) == sanitize(expected) == expected
    assert expected in contained(f"So:\n\n{text}")


def test_what_stands_in_an_ordinary_fence_stays_to_the_letter() -> None:
    text = "```html\n<img src=https://e.org> ![p](https://e.org)\n<%= x %> `$= x`\n<!-- %% -->\n```"
    text += "\n`<script>` and `![p](//x)`"
    assert contained(text) == text
    assert fenced("<img src=//e.org>\nx") == "```\n<img src=//e.org>\nx\n```"


def test_questions_and_summaries_are_as_harmless_as_replies() -> None:
    hostile = "![p](https://e.org/x)\n\n```dataviewjs\nx\n```"
    note = render_new(
        conversation(turn(hostile, "x"), condensed=SummaryRecord("a1", hostile, False, AT)), zone=UTC
    ) + render_summary_note(conversation(turn()), hostile, zone=UTC)
    assert note.count("[p](https://e.org/x)") == note.count("```text (dataviewjs)") == 3
    assert "![p]" not in note and "```dataviewjs" not in note


def test_a_fence_cannot_be_closed_from_inside() -> None:
    assert fenced("a\n`````\nb") == "``````\na\n`````\nb\n``````"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is a quorl?", "What is a quorl?"),
        ("  # [[A|b]] `x` %% y #tag ^id\n==z== $1$ <b>", "A b x y tag id z 1 b"),
        ("50% of R&D & more &amp; 1=1", "50% of R&D & more amp; 1=1"),
        ("हिन्दी में क्या?", "हिन्दी में क्या?"),
        ("***", ""),
        ("\ud800x", "\N{REPLACEMENT CHARACTER}x"),
    ],
)
def test_a_heading_holds_no_markup(text: str, expected: str) -> None:
    assert one_line(text) == expected


PIECES = [
    "text", " ", "\n", "\n\n", "\r\n", "\r", "\t", "    ", "```", "````py", "~~~", "`", "``", "%%", "%", "<!--", "-->",
    "$$", "$", "---", "===", "# ", "## after", "> ", ">> ", "- ", "1. ", "| a | b |", "|---|---|", "[[A|b]]", "![[A]]",
    "[x]: y", "<div>", "</div>", "<pre>", "<script>", "</script>", "<?", "<![CDATA[", "]]>", "<!X", "<b", ">", "\\",
    "[!note]", "^id", "#tag", "tars: memory", "local_only: false", "\ufeff", "\u200b", "\u2028", "\x00", "\x0b", "\x85",
    "\ud800", "ä", "漢字", "<details>", "*", "**", "_", "==", "{{", "&lt;", "+++", "\\\n", "<style", "a: b", "[^1]: ",
]  # fmt: skip
anything = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=60)


@settings(max_examples=400, deadline=None)
@given(anything, anything, anything)
@example("`", "%%\u200b\n%\u200b%", "%%")
@example("a", "- ```\n\n      # x", "```")
@example("", "    <!--", "-->")
@example("x", "$$ a", "b $$")
@example("x", "a\n\n    $$", "$$")
@example("x", "<?\n", "?>")
def test_every_turn_stays_a_section_whatever_is_said(question: str, reply: str, other: str) -> None:
    turns = [turn(question, reply, "a1"), turn(other, other, "b2"), turn("Plain?", "Plain.", "c3")]
    text = render_new(conversation(*turns), zone=UTC)
    text.encode("utf-8")
    assert decode(text.encode()).lossless
    note = parse(text, "note.md")
    assert note.properties.keys() == {"tars", "id", "started", "updated", "model", "sources"}
    assert note.properties["tars"] == "session"
    assert sections(text) == [one_line(title_of(said)) or "Question" for said in (question, other, "Plain?")]
    assert note.problems == ()
    assert [block.id for block in note.blocks if block.id.startswith("t-")] == ["t-a1", "t-b2", "t-c3"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- [ ] call Olla — [[Tea]] [1]\n- [x] done [2]", "- ☐ call Olla — [[Tea]] [1]\n- ☑ done [2]"),
        ("* [X] a\n+ [ ] b\n1. [ ] c\n12) [x] d", "* ☑ a\n+ ☐ b\n1. ☐ c\n12) ☑ d"),
        ("- a\n    - [ ] b\n\t- [ ] c", "- a\n    - ☐ b\n\t- ☐ c"),
        ("> [!todo]\n> - [ ] a\n> > 2. [x] b", "> [!todo]\n> - ☐ a\n> > 2. ☑ b"),
        ("- - [ ] a\n- > [ ] b", "- - ☐ a\n- > ☐ b"),
        ("- [/] half\n- [-] not\n- [1] says so\n- [✓] yes", "- \\[/] half\n- \\[-] not\n- \\[1] says so\n- \\[✓] yes"),
        ("- [ ]\n- [ ] [ ] a", "- ☐\n- ☐ [ ] a"),
        ("So: [ ] a\n\n[ ] b\n- [x](y.md)\n- [a]b", "So: [ ] a\n\n[ ] b\n- [x](y.md)\n- [a]b"),
        ("```md\n- [ ] a\n```\n- [ ] b", "```md\n- [ ] a\n```\n- ☐ b"),
        ("- x\n  ```\n  - [ ] a\n  ```", "- x\n  ```\n  - [ ] a\n  ```"),
    ],
)
def test_check_boxes_of_an_answer_are_no_tasks(text: str, expected: str) -> None:
    assert contained(text) == expected
    assert contained(expected) == expected


BOXES = [
    "- [ ] a",
    "1. [x] b",
    "* [/] c",
    "+ [1] d",
    "\n- [ ] e\n",
    "> - [ ] f",
    "[ ] ",
    "[x] g",
    "due:: 1",
    "📅 2026-03-01",
]


@settings(max_examples=400, deadline=None)
@given(*[st.lists(st.sampled_from(BOXES + PIECES), max_size=12).map("".join)] * 3)
@example("", "- ```\n\n- [ ] a", "> - [ ] b")
def test_no_session_note_holds_a_task(question: str, reply: str, condensed: str) -> None:
    talk = conversation(turn(question, reply), turn("Plain?", "Plain.", "c3"))
    assert parse(render_new(talk, zone=UTC), "note.md").tasks == ()
    assert parse(render_summary_note(talk, condensed, zone=UTC), "note.md").tasks == ()


@settings(max_examples=200, deadline=None)
@given(anything)
@example("`\n`# ")
def test_plain_words_are_never_lost(reply: str) -> None:
    shown = contained(f"before {reply} after")
    assert "before" in shown
    assert "after" in shown


@settings(max_examples=200, deadline=None)
@given(anything, anything)
def test_any_reader_of_markdown_sees_the_same_sections(question: str, reply: str) -> None:
    assume("$$" not in question + reply)  # a formula is Obsidian's own
    text = render_new(conversation(turn(question, reply), turn("Plain?", "Plain.", "c3")), zone=UTC)
    tokens = MarkdownIt("commonmark").parse(text.split("\n---\n", 1)[1])
    assert [token.tag for token in tokens if token.type == "heading_open" and not token.level and token.tag < "h3"] == [
        "h2",
        "h2",
    ]


ACTIVE = [
    "<img src=https://e>", "<iframe src='https://e'>", "![p](https://e/x)", "![p][r]", "[r]: https://e",
    "<b title=\"`\">", "```dataviewjs\n", "~~~ run-js\n", "`$= x`",
    "$= z", "<% t %>", "<https://a`b>", "9. ", "1. ", "<script>", "<!-->",
    "[[a`b]]", "<code>", "| a | b |\n|---|---|\n", "<",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(ACTIVE + PIECES), max_size=14).map("".join))
@example("- ```\nout <iframe src=https://e>\n```")
@example("```\n     ```\n```\n<iframe src=https://e>\n```")
@example("a\r```dataviewjs\nrun\r\n```")
@example("a ` b\n` <img src=https://e> ` c")
@example("<div>\n```\n<iframe src=https://e>\n```")
def test_any_reader_of_markdown_finds_nothing_active(text: str) -> None:
    shown = sanitize(text)
    assert sanitize(shown) == shown
    assert "<% " not in shown
    blocks = MarkdownIt("commonmark").parse(shown)
    for token in [*blocks, *(child for block in blocks for child in block.children or ())]:
        if token.type in ("html_inline", "html_block"):
            assert not re.search(r"<(?:img|iframe|script|pre|[!?])|</pre", token.content)
        elif token.type == "image":
            assert "//" not in str(token.attrs["src"])
        elif token.type == "fence":
            assert not token.info.strip().startswith(("dataviewjs", "run-js"))
        if token.type in ("code_inline", "code_block", "fence"):
            assert not token.content.strip().startswith("$=")


def test_how_a_turn_ended_is_said() -> None:
    stopped = render_turn(turn(stopped=True), zone=UTC)
    assert "\n\n> [!warning] Stopped before the end\n" in stopped
    error = {"code": "provider_busy", "message": "The model is busy.", "hint": "Ask again."}
    failed = TurnRecord("t", "x", AT, "r", events=(Event(1, "failed", {"error": error, "text": "Half"}),))
    assert "Half\n\n> [!failure] No complete answer\n> The model is busy. Ask again.\n" in render_turn(failed, zone=UTC)
    cut = {"code": "interrupted", "message": "m", "hint": "h"}
    interrupted = TurnRecord("t", "x", AT, "r", events=(Event(1, "failed", {"error": cut, "text": ""}),))
    assert "> [!failure] The daemon stopped before the end\n" in render_turn(interrupted, zone=UTC)


def test_notices_and_tools_are_said() -> None:
    events = (
        Event(1, "tool", {"call": "1", "name": "note_read", "state": "running"}),
        Event(2, "tool", {"call": "2", "name": "weather", "state": "refused"}),
        Event(3, "tool", {"call": "1", "state": "done"}),
        Event(4, "done", {"text": "So.", "citations": [], "notices": ["The model was\nunreachable: %% other."]}),
    )
    text = render_turn(TurnRecord("t", "x", AT, "r", events=events), zone=UTC)
    assert "> [!info] About this answer\n> - The model was unreachable: other.\n" in text
    assert "Tools: `note_read`, `weather` (refused)\n" in text


NOTICES = [
    "“Diary” is private and would leave this machine, so it is not read.",
    PRIVATE_PASSAGES,
    PRIVATE_SELECTION,
    PRIVATE_HISTORY,
]


@pytest.mark.parametrize("notice", NOTICES)
def test_what_is_said_of_private_notes_stands_only_in_private_ones(notice: str) -> None:
    one = turn(notices=[notice, "The reply was cut off."])
    for text in (
        render_new(conversation(one), zone=UTC),
        grown(loaded(render_new(conversation(turn(id="z")), zone=UTC)), one, zone=UTC).after.decode(),
    ):
        assert one_line(notice) not in text
        assert "> [!info] About this answer\n> - The reply was cut off.\n" in text
    closed = render_new(conversation(turn(id="z", private=True)), zone=UTC)
    for text in (
        render_new(conversation(one, turn(id="z", private=True)), zone=UTC),
        grown(loaded(closed), one, zone=UTC).after.decode(),
        render_turn(turn(notices=[notice], private=True), zone=UTC),
    ):
        assert one_line(notice) in text
    assert "[!info]" not in render_turn(turn(notices=[notice]), zone=UTC)


def test_sources_that_cannot_be_linked_are_named() -> None:
    odd = [
        {"n": 1, "path": "a[b]`.md", "link": "[[a[b]`]]", "collection": ""},
        {"n": 2, "path": "plan.md", "link": "[[plan]]", "collection": "work"},
        {"n": 3, "path": "Harbour.md", "link": "[[Harbour#Tools]]"},
        {"n": 4, "path": "Harbour.md", "link": "[[Harbour#Tools]]"},
    ]
    text = render_new(conversation(turn(sources=odd)), zone=UTC)
    assert text.endswith("Sources:\n\n- `a[b] .md` [1]\n- `work/plan.md` [2]\n- [[Harbour#Tools]] [3] [4]\n")
    assert parse(text, "n.md").properties["sources"] == ["a[b] .md", "work/plan.md", "[[Harbour]]"]


def test_a_private_turn_marks_the_whole_note() -> None:
    private = turn(private=True)
    assert parse(render_new(conversation(turn(), private), zone=UTC), "n.md").properties["local_only"] is True
    assert "local_only" not in render_new(conversation(turn()), zone=UTC)


def test_the_file_is_called_after_the_first_question() -> None:
    assert file_title(conversation(turn("What is\n[[A|b]]: #1?"))) == "What is A b : 1?"
    assert file_title(conversation(turn("%%"))) == "Conversation"


# ------------------------------------------------------------------------------------------------ properties


def updated(text: str, *turns: TurnRecord) -> str:
    return update_properties(text, turns or (turn(),), zone=UTC)


def test_new_sources_join_and_everything_else_stays() -> None:
    text = (
        "---\r\ntags: [mine]\r\nsources:\r\n- \"[[Old]]\"\r\n- hand made # why\r\ntars: session\r\nmodel: x\r\n"
        "updated: 2020-01-01\r\nrating: 5\r\n---\r\nbody\rmixed\n"
    )  # fmt: skip
    assert updated(text) == (
        "---\r\ntags: [mine]\r\nsources:\r\n- \"[[Old]]\"\r\n- hand made # why\r\n- \"[[Harbour]]\"\r\n"
        'tars: session\r\nmodel: "ollama:quill:3b"\r\nupdated: 2026-11-28T14:03:00+00:00\r\nrating: 5\r\n---\r\n'
        "body\rmixed\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "no properties\n",
        "",
        "---\ntars: session\n---\n",
        "---\nsources: [a, b]\nmodel:\n  deep: x\nupdated:\n  - y\n---\n",
        "---\nsources: |\n  text\n---\n",
        "---\nnever closed\n",
    ],
)
def test_what_a_person_took_out_or_changed_stays_so(text: str) -> None:
    assert updated(text) == text


def test_an_empty_list_of_sources_gets_its_first() -> None:
    for start in ("sources: []", "sources:"):
        text = updated(f"---\n{start}\nx: y\n---\n")
        assert parse(text, "n.md").properties == {"sources": ["[[Harbour]]"], "x": "y"}
        assert updated(text) == text


@pytest.mark.parametrize(
    "text",
    ["body", "", "---\na: b\n---\nbody", "---\nlocal_only: false\n---\n", "---\na: [\n---\nb", "---\nopen\n", "a\r\nb"],
)
def test_a_private_turn_marks_any_note_and_loses_nothing(text: str) -> None:
    marked = updated(text, turn(private=True))
    assert parse(marked, "n.md").properties["local_only"] is True
    kept = [line for line in text.splitlines() if not line.startswith("local_only")]
    assert [line for line in marked.splitlines() if line in kept][-len(kept) :] == kept or not kept
    assert updated(marked, turn(private=True)) == marked


values = st.lists(
    st.sampled_from([*PIECES, "sources:", "  - x", "model: y", "local_only: true", "updated: z"]), max_size=10
)


@settings(max_examples=300, deadline=None)
@given(values.map("\n".join), anything)
def test_no_property_block_loses_a_line_that_is_not_ours(block: str, body: str) -> None:
    text = decode(f"---\n{block}\n---\n{body}".encode("utf-8", "replace")).text
    result = updated(text)
    ours = ("sources:", "model:", "updated:")
    kept = [line for line in text.split("\n") if not line.startswith(ours)]
    left = iter(result.split("\n"))
    assert all(line in left for line in kept)
    before, after = parse(text, "n.md").properties, parse(result, "n.md").properties
    for key in before.keys() | after.keys() - {"sources", "model", "updated"}:
        if key not in ("sources", "model", "updated"):
            assert before[key] == after[key]


# ------------------------------------------------------------------------------------------------ growing


def test_a_note_is_begun() -> None:
    change = begun("tars/sessions/Quorls.md", conversation(turn()), zone=UTC)
    assert (change.op, change.before) == ("create", None)
    assert change.after.decode() == render_new(conversation(turn()), zone=UTC)


def test_a_turn_is_added_at_the_end() -> None:
    start = render_new(conversation(turn()), zone=UTC)
    second = turn("And tea?", "Yes.", "b2")
    assert not holds(start, second)
    change = grown(loaded(start), second, zone=UTC)
    assert change.op == "append"  # no property changes
    assert change.after.decode() == render_new(conversation(turn(), second), zone=UTC)
    assert start + change.content == change.after.decode()
    assert holds(change.after.decode(), second)


def test_several_turns_that_are_missing_are_added_together() -> None:
    start = render_new(conversation(turn()), zone=UTC)
    more = (turn("And tea?", "Yes.", "b2"), turn("And more?", "No.", "c3"))
    change = grown(loaded(start), *more, zone=UTC)
    assert change.op == "append"
    assert change.after.decode() == render_new(conversation(turn(), *more), zone=UTC)


def test_the_bar_of_a_link_is_escaped_in_tables_only() -> None:
    reply = "See [[rope|the guide]].\n\n| a |\n|---|\n| [[rope|it]] |\n\n```\n| [[raw|raw]] |\n```"
    text = render_turn(turn(reply, reply), zone=UTC)
    for start in ("", "> "):
        assert f"\n{start}See [[rope|the guide]].\n" in text
        assert f"\n{start}| [[rope\\|it]] |\n" in text
        assert f"\n{start}| [[raw|raw]] |\n" in text


def test_a_turn_with_new_sources_changes_only_their_lines() -> None:
    start = render_new(conversation(turn()), zone=UTC)
    other = turn("And tea?", "Yes.", "b2", sources=[{"n": 1, "path": "Tea.md", "link": "[[Tea]]"}])
    change = grown(loaded(start), other, zone=UTC)
    assert change.op == "modify"
    assert change.content == change.after.decode() == render_new(conversation(turn(), other), zone=UTC)
    assert [line for line in change.diff(0).split("\n") if line.startswith("-")] == ["--- a/tars/sessions/Quorls.md"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_encodings_stay(encoding: str, end: str) -> None:
    start = render_new(conversation(turn()), zone=UTC).replace("\n", end)
    change = grown(loaded(start, encoding), turn("And tea?", "Yes.", "b2", private=True), zone=UTC)
    after = decode(change.after)
    assert after.encoding == encoding
    assert after.text.replace(end, "") == after.text.replace("\r", "").replace("\n", "")
    assert sections(after.text) == ["What is a quorl?", "And tea?"]
    assert f"[1]{end}{end}## And tea?{end}" in after.text
    assert parse(after.text, "n.md").properties["local_only"] is True


@pytest.mark.parametrize(
    "tail",
    [
        "mine",
        "\nmine\n",
        "- mine\n  ```\n  mine",
        "```\nmine",
        "~~~~\nmine\n",
        "%% mine",
        "<!-- mine",
        "$$\nmine",
        "<pre>\nmine",
    ],
)
def test_what_a_person_adds_stays_and_the_next_turn_is_read(tail: str) -> None:
    text = render_new(conversation(turn()), zone=UTC) + tail
    after = grown(loaded(text), turn("And tea?", "Yes.", "b2"), zone=UTC).after.decode()
    assert after.startswith(text)
    assert sections(after) == ["What is a quorl?", "And tea?"]


@settings(max_examples=150, deadline=None)
@given(anything, anything)
def test_growing_loses_nothing_of_a_person(added: str, reply: str) -> None:
    text = decode((render_new(conversation(turn()), zone=UTC) + added).encode("utf-8", "replace")).text
    after = grown(loaded(text), turn("And tea?", reply, "b2"), zone=UTC).after.decode()
    assert after.startswith(text)
    assert "\n## And tea?" in after.replace("\r", "\n")
    again = grown(loaded(after), turn("And more?", "Yes.", "c3"), zone=UTC).after.decode()
    assert again.startswith(after)
    if sections(after)[-1] == "And tea?":
        assert sections(again)[-2:] == ["And tea?", "And more?"]


# ------------------------------------------------------------------------------------------------ summaries


def test_a_summary_stands_below_the_properties_and_takes_the_place_of_the_last() -> None:
    start = render_new(conversation(turn()), zone=UTC)
    first = summarised(loaded(start), "Quorls\nwere explained.").after.decode()
    callout = "\n> [!summary] What was said so far\n> Quorls\n> were explained.\n"
    assert first == start.replace("---\n\n##", f"---\n{callout}\n##")
    condensed = SummaryRecord("a1", "Quorls\nwere explained.", False, AT)
    assert render_new(conversation(turn(), condensed=condensed), zone=UTC) == first
    second = summarised(loaded(first), "More.", before="Quorls\nwere explained.").after.decode()
    assert second == start.replace("---\n\n##", "---\n\n> [!summary] What was said so far\n> More.\n\n##")


def test_a_summary_that_a_person_changed_stays() -> None:
    start = summarised(loaded(render_new(conversation(turn()), zone=UTC)), "Old.").after.decode()
    theirs = start.replace("> Old.", "> Old.\n> And mine.")
    after = summarised(loaded(theirs), "New.", before="Old.", private=True).after.decode()
    assert (
        "> [!summary] What was said so far\n> New.\n\n> [!summary] What was said so far\n> Old.\n> And mine.\n" in after
    )
    assert parse(after, "n.md").properties["local_only"] is True


@settings(max_examples=150, deadline=None)
@given(anything, anything)
def test_summaries_never_break_a_note(added: str, summary: str) -> None:
    text = decode(added.encode("utf-8", "replace").removeprefix(b"\xef\xbb\xbf")).text
    first = summarised(loaded(text), summary).after.decode()
    kept = iter(first.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    assert all(line in kept for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.strip())
    if summary.strip():
        assert summarised(loaded(first), summary, before=summary).after.decode() == first
    ours = summarised(loaded(render_new(conversation(turn()), zone=UTC)), summary).after.decode()
    assert sections(ours) == ["What is a quorl?"]
    assert parse(ours, "n.md").problems == ()
    own = parse(render_summary_note(conversation(turn(added)), summary, zone=UTC), "n.md")
    assert (own.memory_type, own.problems, len([one for one in own.headings if one.level < 3])) == ("episodic", (), 1)


def test_a_summary_note_is_episodic_memory_and_links_its_conversation() -> None:
    text = render_summary_note(conversation(turn()), "Quorls.\n\n# Head\n%% x", zone=UTC)
    note = parse(text, "tars/summaries/Quorls.md")
    assert note.memory_type == "episodic"
    assert note.ours
    assert note.properties["session"] == "[[tars/sessions/Quorls]]"
    assert "local_only" not in note.properties
    assert note.problems == ()
    assert [heading.level for heading in note.headings] == [1, 3]
    private = conversation(turn(private=True))
    assert "\nlocal_only: true\n" in render_summary_note(private, "x", zone=UTC)
