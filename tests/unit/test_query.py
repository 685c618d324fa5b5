"""What is read out of a query: words, phrases, exclusions, filters; and that nothing typed can break it."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.errors import BadRequest
from tarsd.search import Filter, Query, parse_filters, parse_query
from tarsd.search.held import begins_word, has_literal, has_word
from tarsd.search.query import MAX_TERMS, check_filters, parse_date
from tarsd.words import fold, is_stop, split_words
from tests.support.engine import Engine, write


def terms(query: str) -> list[str]:
    """What is looked for, as FTS5 expressions."""
    return [term.expression.replace('"', "") for term in parse_query(query).terms]


def literals(query: str) -> list[str]:
    """The same as it was typed."""
    return [term.literal for term in parse_query(query).terms]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("how do I glaze a kiln?", ["glaze", "kiln"]),
        ("who is it", ["who", "is", "it"]),
        ("state-of-the-art", ["state", "art", "state of the art"]),
        ("AI-123", ["ai", "123", "ai 123"]),
        ("Downloads/tapes", ["downloads", "tapes", "downloads tapes"]),
        ("grammar::fa", ["grammar", "fa", "grammar fa"]),
        ("C++", ["c\ue011"]),
        ("C#", ["c\ue012"]),
        (".NET 8.0", ["net", "8", "0", "8 0"]),
        ("@mei", ["mei"]),
        ("don't panic", ["panic", "don t"]),
        ("缓存", ["缓 存"]),
        ("重建索引", ["重 建 索 引", "重 建", "建 索", "索 引"]),
        ("BBtool 缓存", ["bbtool", "缓 存"]),
        ("wie gerann die Glasur", ["gerann", "glasur"]),
        ("the die is cast", ["die", "cast"]),
        ("kiln kiln KILN", ["kiln"]),
        ("", []),
        (" \t\n", []),
        ("?", []),
        ("''", []),
        ("kiln OR title:x", ["kiln", "title", "x", "title x"]),
        ("![[filename]] syntax", ["filename", "syntax"]),
        ("हिन्दी नोट", ["हिन्दी", "नोट"]),
    ],
)
def test_terms(query: str, wanted: list[str]) -> None:
    assert terms(query) == wanted


def test_literals_keep_their_symbols() -> None:
    assert literals("C++ and C#, .NET? (50%) @mei!") == ["c++", "c#", ".net", "50%", "@mei"]


def test_phrases_are_required_and_looked_for_in_parts() -> None:
    query = parse_query('"salt ledger" clerk')
    assert [phrase.words for phrase in query.phrases] == [("salt", "ledger")]
    assert terms('"salt ledger" clerk') == ["clerk", "salt ledger", "salt", "ledger"]
    assert query.text == "salt ledger clerk"


def test_a_quote_without_its_other_half_is_no_phrase() -> None:
    assert parse_query('"unbalanced kiln').phrases == ()
    assert terms('"unbalanced kiln') == ["unbalanced", "kiln"]


def test_exclusions() -> None:
    query = parse_query('kiln -glaze -"raku firing" well-known')
    assert [term.words for term in query.negatives] == [("glaze",), ("raku", "firing")]
    assert "glaze" not in query.text
    assert parse_query("kiln - glaze").negatives == ()


def test_filters_in_the_text() -> None:
    query = parse_query('kiln tag:#Craft/Clay path:"Work shop" -file:draft [Status: Done] after:2026-03 before:2027')
    assert query.filters == (
        Filter("tag", "craft/clay"),
        Filter("path", "work shop"),
        Filter("file", "draft", negated=True),
        Filter("property", "done", "status"),
        Filter("after", "2026-03-01"),
        Filter("before", "2027-01-01"),
    )
    assert query.text == "kiln"
    query = parse_query('kiln on:2026-3 -on:2026 CHANGED:2026-03-9 changed:">2026-03" changed:<2026')
    assert query.filters == (
        Filter("on", "2026-03"),
        Filter("on", "2026", negated=True),
        Filter("changed", "2026-03-09"),
        Filter("changed", ">2026-03-01"),
        Filter("changed", "<2026-01-01"),
    )
    assert query.text == "kiln"


@pytest.mark.parametrize(
    ("typed", "name", "value"),
    [
        ('["status":"done"]', "status", "done"),
        ('["due date": 2026]', "due date", "2026"),
        ('["1st":yes]', "1st", "yes"),
        ("[attendees:[[Wren]]]", "attendees", "wren"),
        ('["attendees":"[[Wren]]"]', "attendees", "wren"),
        ("[Gro\u0308ße:klein]", "grosse", "klein"),
        ("[स्थिति:पूर्ण]", fold("स्थिति"), fold("पूर्ण")),
    ],
)
def test_properties_as_obsidian_writes_them(typed: str, name: str, value: str) -> None:
    query = parse_query(f"kiln {typed} -{typed}")
    assert query.filters == (Filter("property", value, name), Filter("property", value, name, negated=True))
    assert query.text == "kiln"


def test_a_property_is_met_by_links_and_in_every_encoding_and_null_only_where_it_is_empty(tmp_path: Path) -> None:
    with Engine(tmp_path, model=None) as engine:
        write(engine.vault, "link.md", '---\nwith: "[[People/Wren|W]]"\nplace: here\n---\nkiln\n')
        write(engine.vault, "list.md", '---\nwith:\n  - "[[Otto]]"\n  - "[[Wren]]"\nplace:\n---\nkiln\n')
        write(engine.vault, "none.md", "---\nGro\u0308ße: klein\n---\nkiln\n")
        write(engine.vault, "bare.md", "kiln\n")
        engine.reconcile()
        assert sorted(engine.found('["with":"[[Wren]]"]')) == ["link.md", "list.md"]
        assert engine.found("[with:[[Otto]]] kiln") == ["list.md"]
        assert sorted(engine.found("kiln -[with:wren]")) == ["bare.md", "none.md"]
        assert engine.found("[place:null]") == ["list.md"]
        assert engine.found("[Größe:klein]") == ["none.md"]


@pytest.mark.parametrize(
    ("typed", "notes"),
    [
        ("[rating:>3]", ["four", "unit"]),
        ("[rating:<4]", ["three"]),
        ("[rating:>3.5]", ["four", "unit"]),
        ('["due":>2026-03-01]', ["four"]),
        ("[due:<2026-03-02]", ["three"]),
        ("[status:open OR waiting]", ["four", "three"]),
        ('[status:"in progress" OR  waiting]', ["three", "unit"]),
        ("-[status:open OR waiting]", ["unit"]),
        ("[with:[[Wren]] OR [[Otto]]]", ["four", "unit"]),
        ("[rating:>many]", []),
    ],
)
def test_a_property_is_one_of_several_or_more_or_less(typed: str, notes: list[str], tmp_path: Path) -> None:
    with Engine(tmp_path, model=None) as engine:
        write(engine.vault, "three.md", "---\nrating: 3\nstatus: waiting\ndue: 2026-03-01\n---\nkiln\n")
        write(engine.vault, "four.md", "---\nrating: 4\nstatus: open\ndue: 2026-03-05T10:00\nwith: Wren\n---\nkiln\n")
        write(engine.vault, "unit.md", "---\nrating: 12,50 €\nstatus: in progress\nwith: '[[Otto]]'\n---\nkiln\n")
        engine.reconcile()
        assert sorted(engine.found(f"kiln {typed}")) == [f"{name}.md" for name in notes]


def test_what_only_looks_like_a_filter_is_words() -> None:
    assert parse_query("before:lunch after:2026-13 path: tag:").filters == ()
    assert "lunch" in terms("before:lunch")
    assert parse_query("carry on:with it, on:>2026 changed:soon on:2026-00").filters == ()
    assert parse_query("https://a.example/path:x").filters == ()
    assert parse_query('[[status:done]] ["x"] [12:30] [a](b:c) ["":x] ![a:b]').filters == ()


def test_requested_filters() -> None:
    found = parse_filters(
        {"tag": ["a", "#b"], "folder": "Work", "properties": {"Status": "Open"}, "else": 1, "after": None}
    )
    assert found == (
        Filter("tag", "a"),
        Filter("tag", "b"),
        Filter("path", "work"),
        Filter("property", "open", "status"),
    )


@pytest.mark.parametrize(
    "wrong",
    [{"tag": 3}, {"tag": [None]}, {"after": "soon"}, {"on": "2026-13"}, {"changed": "=2026"}, {"properties": "x"}],
)
def test_a_filter_that_cannot_be_meant(wrong: dict[str, object]) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_filters(wrong)
    assert caught.value.field == f"filters.{next(iter(wrong))}"


def test_a_long_query_is_bounded() -> None:
    assert len(parse_query(" ".join(f"word{n}" for n in range(10_000))).terms) == MAX_TERMS


@given(st.text() | st.text(alphabet='"-[]():*^#@ ab缓', max_size=40))
def test_any_text_is_a_query(text: str) -> None:
    query = parse_query(text)
    for term in (*query.terms, *query.phrases, *query.negatives):
        assert term.words and all(split_words(word) == [word] for word in term.words)


def test_lone_surrogates_and_nul() -> None:
    assert terms("ki\udcffln \0 x") == ["ki", "ln", "x", "ki ln"]


def test_blank() -> None:
    assert parse_query("  ").blank and Query().blank
    assert not parse_query("tag:a").blank


@pytest.mark.parametrize(
    ("text", "date"),
    [("2026", "2026-01-01"), ("2026-2", "2026-02-01"), ("2026-02-30", ""), ("26-02-03", ""), ("x", "")],
)
def test_dates(text: str, date: str) -> None:
    assert parse_date(text) == date


def test_stop_words_of_a_language_need_company() -> None:
    assert is_stop(["wo", "war", "die"]) == [True, True, True]
    assert is_stop(["die", "war"]) == [False, False]
    assert is_stop(["die", "hard"]) == [False, False]
    assert is_stop(["ou", "est", "le", "four"]) == [True, True, True, False]


def test_folding_and_finding() -> None:
    assert fold("Café ÉTÉ") == "cafe ete"
    assert begins_word("the glazes", "glaz") and not begins_word("unglazed", "glaz")
    assert has_word("the glazes", "glaze") and not has_word("unglazed", "glaze")
    assert has_literal("we use c++ here", "c++") and not has_literal("we use c here", "c++")
    assert not has_literal("kilns", "kiln") and has_literal("kiln.", "kiln")


@pytest.mark.parametrize(
    "query",
    ["after:2026-13-01", "kiln -before:2026-02-30", 'AFTER:"26-1"', "before:12", "on:2026-13", "changed:>26"],
)
def test_an_impossible_date_is_told(query: str) -> None:
    with pytest.raises(BadRequest, match="is not a date") as caught:
        check_filters(query)
    assert (caught.value.field, caught.value.status) == ("query", 422)
    assert "2026-03-09" in caught.value.hint


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("before:lunch", "“before:lunch” is not a date"),
        ("kiln after:-", "“after:-” is not a date"),
        ("tea On:someday", "“on:someday” is not a date"),
        ('changed:"last week"', "“changed:last week” is not a date"),
        ("after:", "“after:” has no date"),
        ("before: lunch", "“before:” has no date"),
        ('on:""', "“on:” has no date"),
        ("-tag:", "“tag:” has no value"),
        ("tag: work", "“tag:” has no value"),
        ("tag:#", "“tag:” has no value"),
        ('kiln PATH:""', "“path:” has no value"),
        ("what file:", "“file:” has no value"),
    ],
)
def test_a_condition_without_a_value_is_refused_and_not_taken_as_words(query: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said) as caught:
        check_filters(query)
    assert caught.value.field == "query" and "in quotes" in caught.value.hint
    quoted = re.search(r'"[^"]*"', caught.value.hint)
    assert quoted
    check_filters(quoted[0])  # the hint works


@pytest.mark.parametrize(
    "query",
    [
        "",
        "a: b",
        "https://a.example/path:x",
        "the tag",
        '"tag: x"',
        '"after:2026-13"',
        "on it: yes",
        "xtag:",
        "[status:]",
    ],
)
def test_what_is_no_condition_is_words(query: str) -> None:
    check_filters(query)
    assert not [one for one in parse_query(query).filters if one.kind != "property"]


@pytest.mark.parametrize(
    ("word", "date"), [("yesterday", "2026-02-28"), ("Today", "2026-03-01"), ("TOMORROW", "2026-03-02")]
)
def test_days_near_today_are_dates(word: str, date: str) -> None:
    assert parse_date(word, datetime.date(2026, 3, 1)) == date
    for kind in ("after", "before", "on", "changed"):
        check_filters(f"{kind}:{word}")
        (one,) = parse_query(f"{kind}:{word}").filters
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one.value)


def test_a_date_is_no_fault() -> None:
    check_filters("after:2026-12-01")
    assert [one.value for one in parse_query("after:2026-12-01").filters] == ["2026-12-01"]


def test_exclusions_alone_are_a_query() -> None:
    assert not parse_query("-kanban").blank


def test_exclusions_alone_list_the_other_notes_newest_first(tmp_path: Path) -> None:
    for number, (path, text) in enumerate({"a.md": "A kanban board.", "b.md": "Tea.", "c.md": "Kilns. #x"}.items()):
        write(tmp_path / "v", path, text)
        os.utime(tmp_path / "v" / path, (1_700_000_000 + number, 1_700_000_000 + number))
    with Engine(tmp_path, model=None, processes=1) as engine:
        engine.reconcile()
        assert [hit.path for hit in engine.answer("-kanban").hits] == ["c.md", "b.md"]
        assert [hit.path for hit in engine.answer("-kanban -tea").hits] == ["c.md"]
        assert [hit.path for hit in engine.answer("tag:x -kilns").hits] == []
