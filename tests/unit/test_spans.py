"""One scanner for all who ask what is code, comment, formula or link: a table of texts; work grows as the text does."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.citation import finish
from tarsd.parse import access, inline, parse, spans
from tarsd.parse.spans import Span, certain, comments, merged, split
from tarsd.parse.structure import _tables
from tarsd.parse.visibility import without_hidden
from tarsd.providers.extractive import _fenced
from tarsd.session.markdown import as_note_text
from tarsd.writing.sanitize import sanitize

Found = list[tuple[str, str]]


def found(text: str, stretches: list[Span]) -> Found:
    return [(span.kind, text[span.start : span.end].rstrip("\r")) for span in stretches if span.kind != "mark"]


# what Obsidian sees, and how much of that is code for every reader
TABLE: list[tuple[str, str, Found, Found | None]] = [
    ("a fence", "a\n```py\nx\n```\nb", [("fence", "```py\nx\n```")], None),
    ("windows", "a\r\n```\r\nx\r\n```\r\n`c`\r\n", [("fence", "```\r\nx\r\n```"), ("code", "`c`")], None),
    ("tildes", "~~~ ``` ~~~\n```\n~~~\n`c`", [("fence", "~~~ ``` ~~~\n```\n~~~"), ("code", "`c`")], None),
    ("nested ones", "````md\n```\nx\n```\n````\n`c`", [("fence", "````md\n```\nx\n```\n````"), ("code", "`c`")], None),
    ("a shorter mark closes nothing", "````\n```\n", [("fence", "````\n```")], []),
    ("a fence that never ends", "a\n```\n%% x %% <!-- y -->\n", [("fence", "```\n%% x %% <!-- y -->")], []),
    ("a fence in a list", "- ```\n  x\n  ```\nb", [("fence", "- ```\n  x\n  ```")], None),
    ("a list ends its fence", "- ```\n  x\nout", [("fence", "- ```\n  x")], []),
    ("a callout with a fence", "> [!note]\n> ```\n> x\n> ```\nb", [("fence", "> ```\n> x\n> ```")], None),
    ("a quote ends its fence", "> ```\n> x\nout", [("fence", "> ```\n> x")], []),
    ("ticks behind a name are no fence", "```a`b\nx", [], None),
    ("indented code", "a\n\n    ```\n    x\n", [], None),
    ("code in Greek", "Η `εντολή` και ``a ` b``", [("code", "`εντολή`"), ("code", "``a ` b``")], None),
    ("code in Hindi", "यह `कोड` है", [("code", "`कोड`")], None),
    ("code in Chinese", "用`代码`写%%备注%%。", [("code", "`代码`"), ("comment", "%%备注%%")], [("code", "`代码`")]),
    ("code in Arabic", "اكتب `رمز` هنا <!-- سر -->", [("code", "`رمز`"), ("html", "<!-- سر -->")], [("code", "`رمز`")]),
    ("an emoji", "👩‍🔧 `🔧` 👩‍🔧", [("code", "`🔧`")], None),
    ("an escaped tick", "\\`a` `b`", [("code", "`a`"), ("code", "`b`")], []),
    ("code over two lines", "`a\nb` c", [("code", "`a\nb`")], []),
    ("a tick in another paragraph", "`a\n\nb` c", [], None),
    ("ticks in a link", "[a`b`](c) [[d`e|f`]]", [("code", "`b`"), ("code", "`e|f`")], [("code", "`b`")]),
    ("a link in a table", "| a |\n|---|\n| [[b\\|`c`]] |", [("code", "`c`")], None),
    ("ticks over two cells", "| `a | b` |\n|---|---|", [("code", "`a | b`")], []),
    ("a comment", "a %% b %% c", [("comment", "%% b %%")], []),
    ("a comment over lines", "%%\n# a\n```\n%%\nb", [("comment", "%%\n# a\n```\n%%")], []),
    ("a comment that never ends", "a\n%% b\n`c`", [("comment", "%% b\n`c`")], []),
    ("percents in a word", "50%%off `c`\n`d`", [("code", "`c`"), ("code", "`d`")], [("code", "`c`")]),
    ("a comment in code", "`%% a %%` b", [("code", "`%% a %%`")], []),
    ("a comment of HTML", "a <!-- b\n\n`c` --> d", [("html", "<!-- b\n\n`c` -->")], [("code", "`c`")]),
    ("one that never ends", "<!-- a\n`b`", [("html", "<!-- a\n`b`")], []),
    ("an arrow", "a <!-- b\n\n`c`", [("code", "`c`")], None),
    ("a formula", "$$\na `b`\n$$\n`c`", [("math", "$$\na `b`\n$$"), ("code", "`c`")], []),
    ("prices", "$$ cheap\n\n`c`\n\n$$ dear", [("code", "`c`")], []),
    ("a block of HTML", "<div>\n`a`\n</div>\n\n`b`", [("code", "`a`"), ("code", "`b`")], []),
    ("a fence in a block of HTML", "<pre>\n```\na\n```\n</pre>", [("fence", "```\na\n```")], []),
    ("a blank line ends it", "<div>\n\n```\na\n```\n</div>", [("fence", "```\na\n```")], None),
    ("a tag over lines", "a <b\ntitle=`c`> `d`", [("code", "`c`"), ("code", "`d`")], []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seen", "sure"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_is_code_comment_or_formula(text: str, seen: Found, sure: Found | None) -> None:
    """`None`: every reader agrees with Obsidian."""
    assert found(text, list(spans.spans(text))) == seen
    assert found(text, certain(text)) == (seen if sure is None else sure)


@pytest.mark.parametrize("text", [row[1] for row in TABLE], ids=[row[0] for row in TABLE])
def test_all_users_agree(text: str) -> None:
    """The index, an answer's citations, its quotes, what is written and what is shown to a model, about one text."""
    text = text.replace("\r\n", "\n")
    seen = list(spans.spans(text))
    fences = [span for span in seen if span.kind == "fence"]
    note = parse(f"\n{text}", "note.md", include_comments=True)
    units = [unit for unit in note.units if unit.kind == "fence"]
    if "<" not in text:  # a block of HTML is markdown-it's to judge
        assert [(unit.start_line - 2, unit.opener) for unit in units] == [
            (text.count("\n", 0, span.start), span.opener) for span in fences
        ]
    if not any(span.kind in ("comment", "html", "math") for span in seen):
        assert _fenced(text) == {
            row for span in fences for row in range(text.count("\n", 0, span.start), text.count("\n", 0, span.end) + 1)
        }
    # what is code is neither cited, nor changed, nor hidden
    for span in seen:
        code = text[span.start : span.end]
        if span.kind == "code" and seen[0].kind == "code":
            assert code in finish(text, [], lambda name: False)[0]
    for span in certain(text):
        assert text[span.start : span.end] in sanitize(text)
        assert text[span.start : span.end] in without_hidden(text) or "<!--" in text
    closed = as_note_text(text)
    assert as_note_text(closed) == closed
    assert {line.strip() for line in text.split("\n")} - {line.strip() for line in closed.split("\n")} == set()


PIECES = [
    "text", " ", "\n", "\n\n", "    ", "```", "````py", "~~~", "`", "``", "%%", "-->", "$$", "> ", "- ", "1. ", "| a |",
    "[[A|b]]", "<div>", "</div>", "<pre>", "</pre>", "<?", "<b", ">", "\\", "漢字", "```\n", "\n```\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_what_every_reader_takes_for_code_is_something_of_its_own_for_obsidian(text: str) -> None:
    seen = list(spans.spans(text))
    for sure in certain(text):
        assert any(span.start <= sure.start and sure.end <= span.end for span in seen)
    assert all(first.end <= second.start for first, second in pairwise(seen))
    assert "".join(part for _, _, part in split(text, seen)) == text
    assert [part for _, at, part in split(text, seen) if text[at : at + len(part)] != part] == []


def test_comments_are_found_wherever_they_stand() -> None:
    text = "`%% a %%` <!-- b\nc --> %%d"
    assert [comment.text for comment in comments(text)] == [" a ", " b\nc "]
    assert access.private_comments("```\n%% private %%\n```\n<!-- x\nprivate -->\n%% y") == {2, 4, 5}


def test_spans_that_overlap_become_one() -> None:
    assert merged([Span("b", 4, 6), Span("a", 0, 5), Span("c", 6, 7)]) == [Span("a", 0, 6), Span("c", 6, 7)]


@pytest.mark.parametrize(
    ("text", "name", "place", "shown", "embed"),
    [
        ("[[a|b]]", "a", "", "b", ""),
        ("[[a\\|b]]", "a", "", "b", ""),
        ("![[a#b c|300]]", "a", "b c", "300", "!"),
        ("[[a#^b]]", "a", "^b", None, ""),
        ("[[चाय#दूध|漢字]]", "चाय", "दूध", "漢字", ""),
        ("[[#b]]", "", "b", None, ""),
    ],
)
def test_links(text: str, name: str, place: str, shown: str | None, embed: str) -> None:
    link = inline.WIKILINK.fullmatch(text)
    assert link is not None
    assert (*inline.name_and_place(link["target"]), link["text"], link["embed"]) == (name, place, shown, embed)


# ------------------------------------------------------------------------------------------------ work


class Work:
    """Counts the characters that searches pass over, so that no clock is needed to tell how work grows."""

    def __init__(self) -> None:
        self.chars = 0

    def pattern(self, pattern: re.Pattern[str]) -> Any:
        return _Counting(pattern, self)

    def text(self, text: str) -> str:
        return _Text(text, self)


class _Text(str):
    __slots__ = ("work",)
    work: Work

    def __new__(cls, text: str, work: Work) -> _Text:
        self = super().__new__(cls, text)
        self.work = work
        return self

    def find(self, mark: str, at: int = 0, end: int | None = None) -> int:  # type: ignore[override]  # as it is called
        place = super().find(mark, at, end)
        self.work.chars += (place if place >= 0 else len(self)) - at
        return place

    def rfind(self, mark: str, at: int = 0, end: int | None = None) -> int:  # type: ignore[override]  # as it is called
        place = super().rfind(mark, at, end)
        self.work.chars += (len(self) if end is None else end) - max(place, at)
        return place

    def count(self, mark: str, at: int = 0, end: int | None = None) -> int:  # type: ignore[override]  # as it is called
        self.work.chars += (len(self) if end is None else end) - at
        return super().count(mark, at, end)

    def __getitem__(self, index: Any) -> str:
        part = super().__getitem__(index)
        self.work.chars += len(part)
        return part


class _Counting:
    def __init__(self, pattern: re.Pattern[str], work: Work) -> None:
        self._pattern, self._work = pattern, work

    def _counted(self, match: re.Match[str] | None, end: int, at: int) -> re.Match[str] | None:
        self._work.chars += (match.end() if match else end) - at
        return match

    def search(self, text: str, at: int = 0, end: int = 2**31) -> re.Match[str] | None:
        return self._counted(self._pattern.search(text, at, end), min(end, len(text)), at)

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        match = self._pattern.match(text, at)
        self._work.chars += match.end() - at if match else 1
        return match

    def finditer(self, text: str, at: int = 0, end: int = 2**31) -> list[re.Match[str]]:
        self._work.chars += min(end, len(text)) - at
        return list(self._pattern.finditer(text, at, end))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pattern, name)


HOSTILE = [
    "a <!-- b\n", "<!-- ", "%% a%%b ", "a%%b ", "%%\n", "$$ ", "$$ a\n", "a $$ b $$\n", "```\n", "a ``` b\n",
    "``` a ` ", "  ```\n", "   ~~~\n", "- ```\n", "> ```\n", "1. ```\n", "- - ```\n", "` ", "`` ` ", "`\n", "`\n\n",
    "<div>\n", "<a '", "<!--> ", "- a\n", "  - a\n  ```\n", "> ", "漢 <!-- 字\n",
]  # fmt: skip


@pytest.mark.parametrize("scan", [lambda text: list(spans.spans(text)), certain, lambda text: list(comments(text))])
@pytest.mark.parametrize("piece", HOSTILE)
def test_work_grows_as_the_text_does(
    piece: str, scan: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work()
    for name, value in list(vars(spans).items()):
        if isinstance(value, re.Pattern):
            monkeypatch.setattr(spans, name, work.pattern(value))
    done = []
    for size in (4_000, 8_000):
        work.chars = 0
        scan(work.text(piece * (size // len(piece))))
        done.append(work.chars / size)
    assert done[1] < 1.2 * done[0] + 10
    assert done[1] < 60


@pytest.mark.parametrize("piece", ["a|b\n-|-\n", "|-|-\n", "a|b\n-|-\n1|2\n\n", "> |a|\n> |-|\n\n"])
def test_many_tables_are_each_counted_once(piece: str) -> None:
    work = Work()
    done = []
    for size in (4_000, 8_000, 16_000):
        work.chars = 0
        assert _tables(work.text(piece * (size // len(piece))), 1)
        done.append(work.chars / size)
    assert max(done) < 3


@pytest.mark.parametrize("piece", ["a <!-- b\n", "a ^b\n", "^b\n", "](", "[a](b) ", "a%%b ", "  ```\n", "$$ a\n", "[["])
def test_a_note_of_a_megabyte_of_marks_is_read(piece: str) -> None:
    """Where every mark looked at all others, this would go on for hours."""
    note = parse(piece * (1_000_000 // len(piece)), "note.md")
    assert len(note.lines) >= 1
