"""Expressions of Bases give what the pages "Bases syntax", "Functions" and "Formulas" of Obsidian's help say."""

from __future__ import annotations

from datetime import datetime

import pytest

from tarsd.bases import Date, Duration, LinkValue, Quantity, evaluate, text_of
from tests.support.basing import NOW, MemoryNote, MemoryVault, value_of

REFERENCE = [
    # Functions: global
    ("escapeHTML('<b>\"a\" & \\'b\\'</b>')", "&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/b&gt;"),
    ('date("2025-01-01 12:00:00")', "2025-01-01T12:00:00"),
    ('date("2025-05-27")', "2025-05-27"),
    ("now() + (duration('1d') * 2)", "2025-05-29T12:30:15"),
    ("duration('5h') * 2", 36_000_000),
    ('if(true, "Modified", "Unmodified")', "Modified"),
    ('if("", "Modified", "Unmodified")', "Unmodified"),
    ("if(false, 1)", None),
    ('list("value")', ["value"]),
    ('list(["value"])', ["value"]),
    ("max(1, 7, 3)", 7),
    ("min(4, 2.5, 3)", 2.5),
    ("now()", "2025-05-27T12:30:15"),
    ("today()", "2025-05-27"),
    ('number("3.4")', 3.4),
    ("number(true)", 1),
    ("number(false)", 0),
    ('image("https://obsidian.md/images/obsidian-logo-gradient.svg")',
     "https://obsidian.md/images/obsidian-logo-gradient.svg"),
    ('icon("arrow-right")', "arrow-right"),
    ('link("filename")', "[[filename]]"),
    ('link("filename", "display")', "[[filename|display]]"),
    ('link("[[filename]]")', "[[filename]]"),
    # any
    ("1.isTruthy()", True),
    ('"example".isType("string")', True),
    ('true.isType("boolean")', True),
    ('1.isType("string")', False),
    ("123.toString()", "123"),
    # dates
    ('date("2025-05-27 23:59:58").year', 2025),
    ('date("2025-05-27").month', 5),
    ('date("2025-05-27").day', 27),
    ('date("2025-05-27 23:59:58").hour', 23),
    ('date("2025-05-27 23:59:58").minute', 59),
    ('date("2025-05-27 23:59:58").second', 58),
    ('date("2025-05-27 23:59:58").millisecond', 0),
    ('now().date().format("YYYY-MM-DD HH:mm:ss")', "2025-05-27 00:00:00"),
    ('date("2025-05-27").format("YYYY-MM-DD")', "2025-05-27"),
    ('date("2025-12-31 23:59:59").time()', "23:59:59"),
    ('date("2025-05-24 12:30:15").relative()', "3 days ago"),
    ("now().isEmpty()", False),
    # texts
    ('"hello".length', 5),
    ('"hello".contains("ell")', True),
    ('"hello".containsAll("h", "e")', True),
    ('"hello".containsAll("h", "x")', False),
    ('"hello".containsAny("x", "y", "e")', True),
    ('"hello".endsWith("lo")', True),
    ('"Hello world".isEmpty()', False),
    ('"".isEmpty()', True),
    ('"HeLLo".lower()', "hello"),
    ('"a:b:c:d".replace(/:/, "-")', "a-b:c:d"),
    ('"a:b:c:d".replace(/:/g, "-")', "a-b-c-d"),
    ('"a:b:c:d".replace(":", "-")', "a-b-c-d"),
    ('"123".repeat(2)', "123123"),
    ('"hello".reverse()', "olleh"),
    ('"hello".slice(1, 4)', "ell"),
    ('"hello".slice(1)', "ello"),
    ('"a,b,c,d".split(",", 3)', ["a", "b", "c"]),
    ('"a,b,c,d".split(/,/, 3)', ["a", "b", "c"]),
    ('"hello".startsWith("he")', True),
    ('"hello world".title()', "Hello World"),
    ('"  hi  ".trim()', "hi"),
    # numbers
    ("(-5).abs()", 5),
    ("(2.1).ceil()", 3),
    ("(2.9).floor()", 2),
    ("5.isEmpty()", False),
    ("(2.5).round()", 3),
    ("(2.3333).round(2)", 2.33),
    ("(3.14159).toFixed(2)", "3.14"),
    # lists
    ("[1,2,3].length", 3),
    ("[1,2,3].contains(2)", True),
    ("[1,2,3].containsAll(2,3)", True),
    ("[1,2,3].containsAny(3,4)", True),
    ("[1,2,3,4].filter(value > 2)", [3, 4]),
    ("[1,[2,3]].flat()", [1, 2, 3]),
    ("[1,2,3].isEmpty()", False),
    ('[1,2,3].join(",")', "1,2,3"),
    ("[1,2,3,4].map(value + 1)", [2, 3, 4, 5]),
    ("[1,2,3].reduce(acc + value, 0)", 6),
    ("[1,'x',3,2].filter(value.isType(\"number\")).reduce(if(acc == null || value > acc, value, acc), null)", 3),
    ("[].filter(value.isType(\"number\")).reduce(if(acc == null || value > acc, value, acc), null)", None),
    ("[1,2,3].reverse()", [3, 2, 1]),
    ("[1,2,3,4].slice(1,3)", [2, 3]),
    ("[3, 1, 2].sort()", [1, 2, 3]),
    ('["c", "a", "b"].sort()', ["a", "b", "c"]),
    ("[1,2,2,3].unique()", [1, 2, 3]),
    ("[1,2,3,4].mean().round(3)", 2.5),
    # objects and regular expressions
    ("{}.isEmpty()", True),
    ('{"a": 1, "b": 2}.keys()', ["a", "b"]),
    ('{"a": 1, "b": 2}.values()', [1, 2]),
    ('/abc/.matches("abcde")', True),
    # Bases syntax
    ("2 * (2 * 3.14)", 12.56),
    ("7 % 4", 3),
    ('date("2024-12-01") + "1M" + "4h" + "3m"', "2025-01-01T04:03:00"),
    ('(now() + "1d") - now()', 86_400_000),
    ('(now() + "1d") - now() == 86400000', True),
    ('now() + "1 day"', "2025-05-28T12:30:15"),
    ('today() + "7d"', "2025-06-03"),
    ('now().isType("date")', True),
    ("!false && (1 > 2 || 2 >= 2)", True),
    ("[10, 20][0]", 10),
    ('{"sub": {"prop": 5}}.sub["prop"]', 5),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), REFERENCE)
def test_an_expression_gives_the_value_of_the_reference(expression: str, value: object) -> None:
    assert value_of(expression) == value


ADA = MemoryNote(
    "People/Ada.md",
    {
        "age": 36, "born": Date(datetime(1815, 12, 10)), "price": Quantity(12.9, "€", "12,90 €"), "empty": (),
        "author": LinkValue("Bob", "", "People/Ada.md"),
        "authors": (LinkValue("Bob|B", "", "People/Ada.md"), LinkValue("Nobody")),
        "done": False, "note-with-dash": "x", "sub": {"prop": 7}, "first": "Ada", "topics": ("maths", "music"),
        "run": Duration(0, 6_000_000, "1h 40m"), "text": "5",
    },
    links=("Bob", "Nowhere"),
    tags=("book/novel", "people"),
    size=1234,
    mtime=Date(datetime(2025, 5, 20, 8), True),
    ctime=Date(datetime(2025, 5, 1, 8), True),
)  # fmt: skip
BOB = MemoryNote("People/Bob.md", {"related": ("music",)}, links=("Ada",))
VAULT = MemoryVault(ADA, BOB)

OF_A_NOTE = [
    ("age", 36),
    ("note.age", 36),
    ('note["note-with-dash"]', "x"),
    ("sub.prop", 7),
    ("file.name", "Ada"),
    ('file.name == "Ada.md"', True),
    ("file.basename", "Ada"),
    ("file.folder", "People"),
    ("file.ext == 'md'", True),
    ("file.path", "People/Ada.md"),
    ("file.size > 1000", True),
    ('file.mtime > now() - "1 week"', False),
    ('file.mtime > now() - "8 days"', True),
    ("file.tags.contains('people') && file.tags.contains('#people')", True),
    ("file.hasTag('book')", True),
    ("file.hasTag('#Book', 'x')", True),
    ("file.hasTag('novel')", False),
    ("file.inFolder('People') && !file.inFolder('Peo')", True),
    ("file.hasProperty('age')", True),
    ("file.hasProperty('nothing')", False),
    ("file.properties.age", 36),
    ("file.hasLink('Bob') && file.hasLink('People/Bob.md') && !file.hasLink('Ada')", True),
    ("file.hasLink(this)", True),
    ("this.file.hasLink(file)", True),
    ("file.links.contains(this.file)", True),
    ("author == this", True),
    ("author == this.file", True),
    ("author == link('People/Bob')", True),
    ("author != link('Ada')", True),
    ("authors.contains(link('Nobody'))", True),
    ("list(author).contains(this)", True),
    ("topics.containsAny(this.related)", True),
    ("this.file.name", "Bob"),
    ("this.related", ["music"]),
    ("author.asFile().basename", "Bob"),
    ("author.linksTo(file)", True),
    ("link('Nobody').asFile()", None),
    ("file('Bob').path", "People/Bob.md"),
    ("file.asLink('me')", "[[People/Ada.md|me]]"),
    ("file.file.name", "Ada"),
    ("(date('2025-12-10') - born).years", 210),
    ("(date('2025-12-09') - born).years.floor()", 209),
    ("(date('2025-03-01') - date('2025-02-01')).months", 1),
    ("(date('2025-03-01') - date('2025-02-01')).days", 28),
    ("date('2025-01-31') + '1M'", "2025-02-28"),
    ("date('2024-02-29') - '1y'", "2023-02-28"),
    ("price", "12,90 €"),
    ("price * 2", 25.8),
    ("price < 13 && price > '12'", True),
    ("run", "1h 40m"),
    ("run.minutes", 100),
    ("run > '90m'", True),
    ("text + 1", "51"),
    ("text * 2", 10),
    ("text == 5", True),
    ("first + ' ' + last", "Ada "),
    ("if(price, '$' + price.toString(), '')", "$12,90 €"),
]


@pytest.mark.parametrize(("expression", "value"), OF_A_NOTE)
def test_an_expression_reads_the_note(expression: str, value: object) -> None:
    assert value_of(expression, ADA, VAULT, BOB) == value


NOTHING: list[tuple[str, object]] = [
    ("nothing", None),
    ("nothing.sub.prop", None),
    ("nothing[0]", None),
    ("[1][5]", None),
    ("nothing == null", True),
    ("nothing != 'done'", True),
    ("nothing > 0 || nothing <= 0", False),
    ("nothing + 1", None),
    ("1 / 0", None),
    ("nothing.isEmpty()", True),
    ("nothing.contains('x')", False),
    ("nothing.toString()", ""),
    ("nothing.toFixed(2)", None),
    ("nothing.isType('null')", True),
    ("(now() - nothing).days", None),
    ("list(nothing)", []),
    ("this", None),
    ("empty.isEmpty() && !empty", True),
    ("done == false && !done.isEmpty()", True),
]


@pytest.mark.parametrize(("expression", "value"), NOTHING)
def test_what_is_not_there_is_null(expression: str, value: object) -> None:
    assert value_of(expression, ADA, VAULT) == value


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("2025-05-27 12:30:00", "a few seconds ago"), ("2025-05-27 12:00:00", "30 minutes ago"),
        ("2025-05-27 14:30:15", "in 2 hours"), ("2025-05-26", "a day ago"), ("2025-05-27", "today"),
        ("2025-06-26", "in a month"), ("2023-05-27", "2 years ago"),
    ],
)  # fmt: skip
def test_a_date_is_told_from_now(when: str, words: str) -> None:
    assert value_of(f'date("{when}").relative()') == words


def test_a_duration_is_shown_by_its_two_largest_units() -> None:
    assert text_of(evaluate("now() - date('2025-05-24 10:30:15')", ADA, VAULT, NOW)) == "3 days 2 hours"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'2025-01-02'.replace(/(\\d+)-(\\d+)-(\\d+)/, '$3.$2.$1')", "02.01.2025"),
        ("'a1b22'.split(/\\d+/)", ["a", "b", ""]), ("/^[A-Z]/.matches('ada')", False),
        ("/^[A-Z]/i.matches('ada')", True),
        ("/[[]x/.matches('[x')", True), ("/[^]/.matches('\\n')", True), ("6 / 3 / 2", 1),
    ],
)  # fmt: skip
def test_regular_expressions_are_those_of_javascript(expression: str, value: object) -> None:
    assert value_of(expression) == value
