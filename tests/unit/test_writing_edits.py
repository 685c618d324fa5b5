"""Changes planned as text: where they go, what they leave alone, and when they are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.errors import BadRequest, Conflict, NotFound, PathRefused, Refused, TarsdError
from tarsd.parse import parse
from tarsd.vault import Vault, content_hash, decode, encode
from tarsd.writing.changes import Change, Loaded
from tarsd.writing.edits import Mode, append, create, patch, replace_text
from tarsd.writing.notes import Notebook, legal_name

Plan = Callable[[Loaded], Change]


def note(text: str, path: str = "N.md", encoding: str = "utf-8") -> Loaded:
    raw = encode(text, encoding)
    return Loaded(path, raw, text, encoding, content_hash(raw))


def text_of(change: Change) -> str:
    return decode(change.after).text


# -------------------------------------------------------------------------------------------------- the end of a note


@pytest.mark.parametrize(
    ("before", "added", "after"),
    [
        ("", "One.", "One.\n"),
        ("One.\n", "Two.", "One.\n\nTwo.\n"),
        ("One.", "Two.", "One.\n\nTwo."),
        ("One.\n\n\n", "\n\nTwo.\n\n", "One.\n\n\nTwo.\n"),
        ("One.\n", "- a\n- b", "One.\n\n- a\n- b\n"),
        ("- a\n- b\n", "- c", "- a\n- b\n- c\n"),
        ("- a\n  - b\n\n\n", "* c", "- a\n  - b\n* c\n\n\n"),
        ("1. a\n", "2. b", "1. a\n2. b\n"),
        ("1. a\n", "- b", "1. a\n\n- b\n"),
        ("- [ ] a", "- [x] b", "- [ ] a\n- [x] b"),
        ("| a |\n|---|\n| 1 |\n", "| 2 |", "| a |\n|---|\n| 1 |\n| 2 |\n"),
        ("| a |\n|---|\n| 1 |\n", "| b |\n|---|\n| 2 |", "| a |\n|---|\n| 1 |\n\n| b |\n|---|\n| 2 |\n"),
        ("> quote\n", "> other", "> quote\n\n> other\n"),
        ("A paragraph. ^id\n", "Next.", "A paragraph. ^id\n\nNext.\n"),
        ("```\ncode\n```\n", "Next.", "```\ncode\n```\n\nNext.\n"),
        ("Text\n", "---", "Text\n\n---\n"),
        ("---\ntags: [a]\n---\n", "Text", "---\ntags: [a]\n---\n\nText\n"),
        ("---\ntags: [a]\n---", "Text", "---\ntags: [a]\n---\n\nText"),
        ("", "---\na: b\n---", "\n---\na: b\n---\n"),
        ("\n\n", "---\na: b\n---", "\n\n---\na: b\n---\n"),
        ("a\r\nb\r\n", "c\nd", "a\r\nb\r\n\r\nc\r\nd\r\n"),
        ("a\rb\r", "c\nd", "a\rb\r\rc\rd\r"),
        ("a\r\nb\r\nc\n", "d", "a\r\nb\r\nc\n\r\nd\r\n"),
        ("a\n", "b\r\nc\rd", "a\n\nb\nc\nd\n"),
    ],
)
def test_text_is_added_at_the_end_as_one_would_by_hand(before: str, added: str, after: str) -> None:
    change = append(note(before), added)
    assert text_of(change) == after
    if change.op == "append":
        assert change.after == before.encode() + change.content.encode()
    else:
        assert change.op == "modify" and change.content == after


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_the_encoding_and_its_mark_stay(encoding: str) -> None:
    change = append(note("Zürich\r\n", encoding=encoding), "Basel")
    read = decode(change.after)
    assert (read.text, read.encoding, read.lossless) == ("Zürich\r\n\r\nBasel\r\n", encoding, True)
    assert change.before is not None and change.after.startswith(change.before)


def test_a_note_that_cannot_be_written_back_is_refused() -> None:
    for raw in (b"caf\xe9\n", b"a\0b\n", b"\xff\xfea"):
        read = decode(raw)
        broken = Loaded("N.md", raw, read.text, read.encoding, content_hash(raw))
        plans: list[Plan] = [
            lambda n: append(n, "x"),
            lambda n: replace_text(n, "x"),
            lambda n: patch(n, "A", "x", "append"),
        ]
        for plan in plans:
            with pytest.raises(Refused):
                plan(broken)


def test_text_without_words_and_marks_that_harm_a_note() -> None:
    with pytest.raises(BadRequest):
        append(note("a\n"), " \n\n ")
    change = append(note(""), "\ufeffa\0b\ud800")
    assert decode(change.after).lossless and text_of(change) == "ab?\n"


# ------------------------------------------------------------------------------------------------------------ sections

SECTIONS = """---
tags: [x]
---
# Plan

Intro.

## Work

- [ ] call Ann

### Notes

Deep.

## Home
Water the plants.
## Empty

## Work

Again.

# Other

```
## Not a heading
```

## Home %% hidden %%
"""


@pytest.mark.parametrize(
    ("heading", "between"),
    [
        ("Plan", ("Again.\n\n", "NEW\n\n# Other")),
        ("# plan", ("Again.\n\n", "NEW\n\n# Other")),
        ("Notes", ("Deep.\n\n", "NEW\n\n## Home")),
        ("plan#work#notes", ("Deep.\n\n", "NEW\n\n## Home")),
        ("Plan > Home", ("plants.\n\n", "NEW\n\n## Empty")),
        ("Plan#Home", ("plants.\n\n", "NEW\n\n## Empty")),
        ("Empty", ("## Empty\n\n", "NEW\n\n## Work\n\nAgain")),
    ],
)
def test_text_is_added_at_the_end_of_a_section(heading: str, between: tuple[str, str]) -> None:
    text = text_of(append(note(SECTIONS), "NEW", heading))
    assert "".join(between) in text and text.replace("NEW\n\n", "", 1).replace("\n\n\n", "\n\n") in (
        SECTIONS,
        SECTIONS.replace("plants.\n##", "plants.\n\n##"),
    )


@pytest.mark.report("https://github.com/obsidian-tasks-group/obsidian-tasks/issues/654")
def test_headings_are_found_as_links_write_them() -> None:
    text = "# Chores with #tag\n\n## Title: The Sequel\n\n## 16:41 standup\n\n## See [[Rope|Rope guide]] ^x1\n\n"
    text += "## *Bold* a_b\n"
    for target in ("Title The Sequel", "16 41 standup", "Chores with #tag", "Chores with tag", "See Rope guide", "^x1"):
        assert "NEW" in text_of(patch(note(text), target, "NEW", "append")), target
    assert text_of(append(note(text), "NEW", "bold a_b")).endswith("a_b\n\nNEW\n")


@pytest.mark.report("https://github.com/obsidian-tasks-group/obsidian-tasks/issues/654")
def test_a_section_that_is_not_clear_is_never_written() -> None:
    modes: tuple[Mode, ...] = ("replace", "append", "prepend")
    for mode in modes:
        with pytest.raises(Conflict, match=r"2 times in N[.]md, in lines 8, 20"):
            patch(note(SECTIONS), "Work", "x", mode)
        with pytest.raises(NotFound, match="no heading"):
            patch(note(SECTIONS), "Not a heading", "x", mode)
        with pytest.raises(NotFound):
            patch(note(SECTIONS), "^gone", "x", mode)
        with pytest.raises(NotFound):
            patch(note(SECTIONS), "Other#Work", "x", mode)
    with pytest.raises(NotFound) as caught:
        append(note(SECTIONS), "x", "Nope")
    assert "“Plan”" in caught.value.hint
    with pytest.raises(Conflict) as twice:
        append(note("# A\n## X\n# B\n## X\n"), "x", "X")
    assert "A > X; B > X" in twice.value.hint
    assert text_of(append(note("# A\n## X\n# B\n## X\n"), "x", "A > X")) == "# A\n## X\n\nx\n\n# B\n## X\n"
    assert text_of(append(note("# X\n## X\n"), "x", "## X")) == "# X\n## X\n\nx\n"


def test_a_sections_body_is_replaced_and_its_heading_stays() -> None:
    assert "## Home\nNEW\n\n## Empty" in text_of(patch(note(SECTIONS), "Plan#Home", "NEW", "replace"))
    assert "## Empty\n\nNEW\n\n## Work" in text_of(patch(note(SECTIONS), "Empty", "NEW", "replace"))
    whole = text_of(patch(note(SECTIONS), "Plan", "NEW", "replace"))
    assert "# Plan\n\nNEW\n\n# Other" in whole and "Deep" not in whole
    assert text_of(patch(note("# A\n\nx\n\n# B\n"), "A", "", "replace")) == "# A\n\n\n# B\n"
    assert "## Home\nNEW\n\nWater" in text_of(patch(note(SECTIONS), "Plan#Home", "NEW", "prepend"))
    assert text_of(patch(note("# A\n\n- x\n"), "A", "- w", "prepend")) == "# A\n\n- w\n- x\n"
    assert text_of(patch(note("A\n===\nx\n# B\ny"), "A", "z", "replace")) == "A\n===\nz\n\n# B\ny"


# -------------------------------------------------------------------------------------------------------------- blocks

BLOCKS = """A paragraph
of two lines. ^para

- one ^li
  - below
- two

| a |
|---|
| 1 |

^tbl

End.
"""


@pytest.mark.parametrize(
    ("target", "mode", "new", "old_part", "new_part"),
    [
        ("^para", "replace", "New.", "A paragraph\nof two lines. ^para", "New. ^para"),
        ("^para", "replace", "New. ^para", "A paragraph\nof two lines. ^para", "New. ^para"),
        ("^para", "replace", "```\nx\n```", "A paragraph\nof two lines. ^para\n", "```\nx\n```\n\n^para\n\n"),
        ("^para", "append", "New.", "^para\n", "^para\n\nNew.\n"),
        ("^para", "prepend", "New.", "A paragraph", "New.\n\nA paragraph"),
        ("^LI", "replace", "new", "- one ^li", "- new ^li"),
        ("^li", "replace", "- [x] new", "- one ^li", "- [x] new ^li"),
        ("^li", "append", "- next", "  - below\n", "  - below\n- next\n"),
        ("^li", "append", "more", "  - below\n", "  - below\n\n  more\n"),
        ("^li", "prepend", "first", "- one", "- first\n- one"),
        ("^tbl", "replace", "| b |\n|---|\n| 2 |", "| a |\n|---|\n| 1 |", "| b |\n|---|\n| 2 |"),
        ("^tbl", "append", "New.", "^tbl\n", "^tbl\n\nNew.\n"),
    ],
)
def test_blocks_are_changed_by_their_id(target: str, mode: Mode, new: str, old_part: str, new_part: str) -> None:
    for end in ("\n", "\r\n"):
        change = patch(note(BLOCKS.replace("\n", end)), target, new, mode)
        expected = BLOCKS.replace(old_part, new_part, 1)
        assert re.sub(r"\n{3,}", "\n\n", text_of(change).replace("\r\n", "\n")) == expected.replace("\n\n\n", "\n\n")
        assert end == "\n" or "\n" not in text_of(change).replace("\r\n", "")
        kept = {block.id for block in parse(text_of(change), "N.md").blocks}
        assert kept == {"para", "li", "tbl"}


def test_a_block_is_no_more_than_what_its_id_names() -> None:
    code = "```\nx ^x\n```\n"
    for above in (code, "| a |\n|---|\n", "- item ^other\n", "A\n===\n", "%% c %%\n", "# A ^y\n"):
        change = patch(note(f"{above}text ^x\n"), "^x", "new ^z", "replace")
        assert text_of(change) == f"{above}new ^x\n", above
    with pytest.raises(NotFound, match="does not belong to any text"):
        patch(note("## B\n^x\n"), "^x", "new", "replace")
    with pytest.raises(BadRequest):  # the blank line would end the HTML, and begin a code block
        patch(note(f"<div>\n{code}text\n"), "^x", "new", "append")
    with pytest.raises(Conflict, match="2 times"):
        patch(note("a ^x\n\nb ^x\n"), "^x", "new", "replace")


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "text", ["Text\n\n```python\ncode\n", "Text %% a comment\n", "<!-- x\n", "~~~\n", "<pre>\nx\n"]
)
def test_nothing_is_added_inside_what_is_open(text: str) -> None:
    with pytest.raises(Refused, match="would end up inside"):
        append(note(text), "New.")


@pytest.mark.parametrize("new", ["```\nx", "a %% b", "<!-- x", "~~~", "<script>\nx", "```\nx\n````x"])
def test_text_that_leaves_something_open_is_refused(new: str) -> None:
    plans: list[Plan] = [
        lambda n: append(n, new),
        lambda n: append(n, new, "A"),
        lambda n: patch(n, "A", new, "replace"),
        lambda n: patch(n, "^b", new, "replace"),
    ]
    for plan in plans:
        with pytest.raises(BadRequest) as caught:
            plan(note("# A\n\nx ^b\n\n# B\n\n```\ny\n```\n"))
        assert caught.value.field == "text"


def test_text_that_would_change_what_other_parts_mean_is_refused() -> None:
    with pytest.raises(BadRequest):  # it would close what looks like properties and is none yet
        append(note("---\ntitle: x\n"), "More\n\n---")
    with pytest.raises(BadRequest):
        append(note("# A\n\n# B\n\nx\n$$\n"), "$$\ny", "A")


def test_what_is_no_text_is_not_added_to() -> None:
    for path, text in (("B.canvas", "{}"), ("T.base", "views:\n"), ("D.excalidraw.md", "x\n")):
        with pytest.raises(Refused):
            append(note(text, path), "x")
    with pytest.raises(Refused):
        append(note("---\nexcalidraw-plugin: parsed\n---\nx\n"), "x")
    assert text_of(replace_text(note("{}", "B.canvas"), '{"nodes":[]}')) == '{"nodes":[]}'


# ------------------------------------------------------------------------------------------------- new and whole notes


def test_a_new_note_is_a_note_with_unix_lines() -> None:
    change = create("Folder/e\u0301.md", "\ufeffa\r\nb\rc")
    assert change.path == "Folder/é.md" and change.op == "create" and change.before is None and change.if_hash is None
    assert change.after == b"a\nb\nc\n" == change.content.encode() and change.hash == content_hash(b"a\nb\nc\n")
    assert create("a.md", "").after == b""
    for path in ("a.txt", "../a.md", ".obsidian/a.md", "/a.md", ""):
        with pytest.raises(PathRefused):
            create(path, "x")


def test_a_whole_text_is_exchanged_in_the_notes_own_way() -> None:
    change = replace_text(note("a\r\nb\r\n", encoding="utf-8-sig"), "c\nd")
    assert change.after == b"\xef\xbb\xbfc\r\nd" and change.op == "modify" and change.content == "c\r\nd"


def test_a_diff_shows_what_changes_and_nothing_else() -> None:
    lines = [f"line {number}" for number in range(1, 10_001)]
    old = "\n".join(lines)
    change = replace_text(note(old), old.replace("line 5000\n", "line five thousand\n"))
    assert change.diff(1).splitlines() == [
        "--- a/N.md",
        "+++ b/N.md",
        "@@ -4999,3 +4999,3 @@",
        " line 4999",
        "-line 5000",
        "+line five thousand",
        " line 5001",
    ]
    assert create("N.md", "a\nb\n").diff() == "--- /dev/null\n+++ b/N.md\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    ending = replace_text(note("a"), "a\n").diff().splitlines()
    assert ending[3:] == ["-a", "\\ No newline at end of file", "+a"]
    assert replace_text(note("a\u2028b\n"), "a\u2028b\n").diff() == ""


words = st.text(st.sampled_from("ab#`%$|->*=:^[]~<! \n\r\t1.é\ufeff\u2028"), max_size=60) | st.text(max_size=40)
additions = st.sampled_from(["New.", "- item", "| cell |", "# Heading\n\ntext", "---", "> quote", "    code", "a\r\nb"])


@given(
    words.filter(lambda text: "\0" not in text), additions | words, st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le"])
)
def test_everything_before_and_after_an_addition_is_byte_for_byte_the_same(text: str, new: str, encoding: str) -> None:
    try:
        loaded = note(text, encoding=encoding)
        change = append(loaded, new)
    except (TarsdError, UnicodeEncodeError):
        return
    result = text_of(change)
    added = len(result) - len(text)
    assert added > 0
    if change.op == "append":
        assert result == text + change.content and change.after.startswith(loaded.raw)
    assert any(result[:at] + result[at + added :] == text for at in range(len(text) + 1))
    assert decode(change.after).lossless and decode(change.after).encoding == encoding


@given(
    st.lists(
        st.sampled_from(["# A", "## B", "text", "- item", "", "```\nx\n```", "| a |\n|---|", "%% c %%"]), max_size=12
    ),
    additions,
    st.sampled_from(["replace", "append", "prepend"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_everything_outside_a_section_is_byte_for_byte_the_same(
    parts: list[str], new: str, mode: Mode, end: str
) -> None:
    text = ("\n".join(["before", "", "## The one", *parts, "# After", "", "text"])).replace("\n", end)
    try:
        result = text_of(patch(note(text), "The one", new, mode))
    except BadRequest:
        return
    parts_before = text.index("## The one") + len("## The one" + end)
    stop = next(h.line for h in parse(text, "N.md").headings if h.line > 3 and h.level <= 2)
    tail = end.join(text.split(end)[stop - 1 :])
    assert result.startswith(text[:parts_before]) and result.endswith(tail)
    if mode != "replace":
        added = len(result) - len(text)
        assert added > 0 and any(result[:at] + result[at + added :] == text for at in range(len(text) + 1))


# --------------------------------------------------------------------------------------------------------------- notes


def test_a_notebook_reads_notes_as_they_are_spelled(vault: Path) -> None:
    (vault / "Sub").mkdir()
    (vault / "Sub/Note.md").write_bytes(b"\xef\xbb\xbfa\r\n")
    book = Notebook(Vault(vault))
    loaded = book.load("Sub/Note.md")
    assert (loaded.path, loaded.text, loaded.encoding) == ("Sub/Note.md", "a\r\n", "utf-8-sig")
    assert loaded.raw == b"\xef\xbb\xbfa\r\n" and loaded.hash == content_hash(loaded.raw)
    assert book.exists("sub/NOTE.md") and book.exists("Sub") and not book.exists("Sub/Other.md")
    with pytest.raises(NotFound) as caught:
        book.load("sub/note.md")
    assert "Sub/Note.md" in caught.value.hint
    for path in ("../x.md", "a.txt", ".obsidian/app.json", ""):
        with pytest.raises(PathRefused):
            book.load(path)


@pytest.mark.report("https://github.com/d12frosted/vulpea/issues/383")
def test_composed_and_decomposed_names_are_one_note_unless_there_are_two(vault: Path) -> None:
    decomposed, composed = "e\u0301.md", "é.md"
    (vault / decomposed).write_text("d")
    book = Notebook(Vault(vault))
    assert book.load(composed).path == book.load(decomposed).path == composed and book.exists(composed)
    (vault / composed).write_text("c")
    if len(list(vault.glob("*.md"))) == 2:  # a disk that keeps the two apart
        assert (book.load(composed).text, book.load(decomposed).text) == ("c", "d")
        assert book.load(decomposed).path == decomposed


def test_what_is_left_out_is_not_read_but_for_the_daemons_own_notes(vault: Path) -> None:
    for path in ("tars/Memory.md", "Private/p.md"):
        (vault / path).parent.mkdir()
        (vault / path).write_text("x")
    look = Vault(vault, exclude=["tars/", "Private/"])
    book = Notebook(look, own="tars")
    assert book.load("tars/Memory.md").text == "x" and book.free_path("tars", "New") == "tars/New.md"
    for refused in (lambda: book.load("Private/p.md"), lambda: book.free_path("Private", "x")):
        with pytest.raises(PathRefused):
            refused()
    with pytest.raises(PathRefused):
        Notebook(look).load("tars/Memory.md")


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("What is 5/3?", "What is 5-3"),
        ("16:41 standup", "16-41 standup"),
        ("a/b: c | d", "a - b - c - d"),
        ('[[Link|x]] "quoted" #tag ^id <b>*', "Link - x quoted tag id b"),
        ("...hidden. ", "hidden"),
        ("  two\n\tlines\0 ", "two lines"),
        ("", "Untitled"),
        ("???", "Untitled"),
        ("..", "Untitled"),
        ("con", "con_"),
        ("NUL.txt", "NUL_.txt"),
        ("Notes.md", "Notes"),
        ("100%2e", "1002e"),
        ("50% %% x", "50% x"),
        ("e\u0301", "é"),
        ("a\u202eb\u200bc", "abc"),
        ("~draft", "draft"),
        ("日本", "日本"),
        ("Plan (conflicted copy 2026-01-12)", "Plan conflicted copy 2026-01-12"),
    ],
)
def test_titles_become_names_that_every_disk_takes(vault: Path, title: str, name: str) -> None:
    assert Notebook(Vault(vault)).free_path("", title) == f"{name}.md"


def test_long_titles_are_cut_between_letters() -> None:
    assert legal_name("x" * 300) == "x" * 100
    assert legal_name("é" * 80) == "é" * 50
    family = "👨\u200d👩\u200d👧"
    assert legal_name(family * 9) == family * 5
    assert legal_name("o\u0323\u0302\u0331" * 40).endswith("\u0331")


def test_names_that_are_taken_get_a_number(vault: Path) -> None:
    for name in ("Plan.md", "PLAN 2.md", "e\u0301.md", ".Cloud.md.icloud"):
        (vault / name).write_text("x")
    book = Notebook(Vault(vault))
    assert book.free_path("", "plan") == "plan 3.md" and book.free_path("", "é") == "é 2.md"
    assert book.free_path("", "Cloud") == "Cloud 2.md" and book.free_path("New", "Plan") == "New/Plan.md"
    (vault / ("y" * 100 + ".md")).write_text("x")
    assert book.free_path("", "y" * 200) == "y" * 98 + " 2.md"


@given(st.text(max_size=60))
def test_any_title_gives_a_name_that_may_be_written(title: str) -> None:
    name = legal_name(title) + ".md"
    assert Vault(Path("/nonexistent/vault")).resolve(name).name == name
    assert len(name.encode()) <= 105 and not re.search(r'[\\/:*?"<>|#^\[\]\x00-\x1f]', name)
    assert name[0] not in ". " and name[-4] not in ". "
