"""Base files: what they say, and what is said of what in them is wrong."""

from __future__ import annotations

import pytest

from tarsd.bases import BasesError, Date, Quantity, plain
from tarsd.bases.document import blocks, read_base
from tarsd.bases.table import Table, run_view
from tests.support.basing import NOW, MemoryNote, MemoryVault

BOOKS = MemoryVault(
    MemoryNote("Books/Dune.md", {"rating": 5, "price": 12.5, "genre": "sf", "done": True}, tags=("book",)),
    MemoryNote("Books/Emma.md", {"rating": 4, "price": 7, "genre": "novel", "done": False}, tags=("book",)),
    MemoryNote("Books/Solaris.md", {"price": Quantity(8, "€", "8 €"), "genre": "sf"}, tags=("book/owned",)),
    MemoryNote("Books/Ulysses.md", {"rating": 2, "price": "free"}, tags=("book",)),
    MemoryNote("Films/Stalker.md", {"rating": 5, "seen": Date(NOW)}),
    MemoryNote("cover.png"),
)


def table(text: str, view: str = "", this: str = "") -> Table:
    base = read_base(text)
    return run_view(base, base.view(view), BOOKS.notes, BOOKS, NOW, this=BOOKS.find(this, "") if this else None)


def shown(result: Table) -> list[list[object]]:
    return [[plain(value) for value in row.values] for row in result.rows]


EXAMPLE = """\
filters:
  or:
    - file.hasTag("book")
    - and:
        - file.ext == "png"
        - not:
            - file.inFolder("Books")
formulas:
  formatted: 'if(price, price.toString() + " dollars")'
  double: "price * 2"
properties:
  genre:
    displayName: Kind
  formula.formatted:
    displayName: "Price"
summaries:
  customAverage: 'values.mean().round(1)'
views:
  - type: table
    name: "My table"
    limit: 3
    groupBy:
      property: note.genre
      direction: DESC
    filters:
      and:
        - 'rating != 2'
    order:
      - file.name
      - genre
      - formula.formatted
    sort:
      - property: rating
        direction: DESC
    summaries:
      price: Sum
      formula.double: customAverage
      rating: Filled
  - type: cards
    name: Covers
    order: [file.name]
    image: note.cover
"""


def test_a_view_has_columns_rows_groups_summaries_and_a_limit() -> None:
    result = table(EXAMPLE)
    assert [(column.name, column.title) for column in result.columns] == [
        ("file.name", "file name"), ("note.genre", "Kind"), ("formula.formatted", "Price"),
    ]  # fmt: skip
    assert shown(result) == [
        ["Dune", "sf", "12.5 dollars"], ["Solaris", "sf", "8 € dollars"], ["Emma", "novel", "7 dollars"],
    ]  # fmt: skip
    assert [(group.key, len(group.rows)) for group in result.groups] == [("sf", 2), ("novel", 1)]
    assert result.total == 4
    price = result.summaries["note.price"]
    assert (price.name, price.value, price.of, price.skipped) == ("Sum", 27.5, 3, 0)
    assert result.summaries["formula.double"].value == 18.3
    assert result.summaries["note.rating"].value == 2
    assert result.groups[0].summaries["note.price"].value == 20.5
    assert not result.problems


def test_what_only_an_app_can_draw_is_a_column() -> None:
    assert [column.name for column in table(EXAMPLE, "covers").columns] == ["file.name", "note.cover"]


def test_a_view_that_there_is_not_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(BasesError, match="no view 'Nothing'") as caught:
        table(EXAMPLE, "Nothing")
    assert "'My table', 'Covers'" in caught.value.hint


def test_a_sum_tells_what_it_left_out() -> None:
    text = "filters: file.inFolder('Books')\nviews:\n  - order: [price]\n    summaries: {price: Sum, rating: Average}\n"
    result = table(text)
    assert (result.summaries["note.price"].of, result.summaries["note.price"].skipped) == (3, 1)
    assert (result.summaries["note.rating"].of, result.summaries["note.rating"].skipped) == (3, 0)


def test_what_has_no_value_is_last_in_both_directions() -> None:
    for direction, first in (("ASC", "Ulysses"), ("DESC", "Dune")):
        text = (
            "filters: file.inFolder('Books')\nviews:\n  - order: [file.name]\n"
            f"    sort: [{{column: note.rating, direction: {direction}}}]\n"
        )
        names = [row[0] for row in shown(table(text))]
        assert (names[0], names[-1]) == (first, "Solaris")


DEFAULTS = {
    "Average": 4, "Min": 2, "Max": 5, "Sum": 16, "Range": 3, "Median": 4.5, "Earliest": None, "Unique": 3, "Empty": 2,
    "Filled": 4, "Checked": 0, "Unchecked": 0,
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), DEFAULTS.items())
def test_the_summaries_by_default_are_there(name: str, value: object) -> None:
    assert table(f"views: [{{summaries: {{rating: {name}}}}}]").summaries["note.rating"].value == value


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [("Checked", "done", 1), ("Unchecked", "done", 1), ("Earliest", "seen", "2025-05-27")],
)
def test_summaries_of_check_boxes_and_dates(name: str, column: str, value: object) -> None:
    result = table(f"views: [{{summaries: {{{column}: {name}}}}}]").summaries[f"note.{column}"].value
    assert plain(result) == value


WRONG = [
    ("filters:\n  and:\n    - file.hasTagg('x')\n    - rating > 4\n", ["hasTagg()", "line 3, column 12"], 2),
    ("filters:\n  xor:\n    - rating > 9\n", ["not 'xor'", "line 3"], 6),
    ("formulas:\n  a: '1 +'\nviews:\n  - order: [file.name, formula.a]\n", ["formula 'a'", "line 2, column 10"], 6),
    ("views:\n  - type: calendar\n    name: x\n", ["type 'calendar'", "line 2"], 6),
    ("views:\n  - order: [formula.nothing]\n", ["no formula 'nothing'", "line 2"], 6),
    ("views:\n  - summaries:\n      rating: Mode\n", ["no summary 'Mode'", "line 3"], 6),
    ("views: 5\n", ["list is expected", "line 1"], 6),
    ("frobnicate: 5\n", ["no part 'frobnicate'", "line 1"], 6),
    ("filters: rating.abs() > 4\nviews:\n  - order: [file.name]\n", [], 2),
    ("filters: price.abs() > 0\n", ["abs() is not a function of string", "line 1, column 16"], 3),
    ("formulas:\n  b: price.abs()\nviews:\n  - order: [formula.b]\n", ["formula.b: abs()"], 6),
]


@pytest.mark.parametrize(("text", "told", "rows"), WRONG)
def test_what_is_wrong_is_named_and_the_rest_works(text: str, told: list[str], rows: int) -> None:
    result = table(text)
    assert len(result.rows) == rows
    problems = "\n".join(result.problems)
    assert all(words in problems for words in told), problems
    assert bool(told) == bool(problems)


@pytest.mark.parametrize(
    ("formulas", "circle"),
    [
        ({"a": "formula.a + 1"}, "a → a"),
        ({"a": "formula.b", "b": "formula['a']"}, "a → b → a"),
        ({"x": "1", "a": "formula.x + formula.b", "b": "list(formula.c)", "c": "formula.a"}, "a → b → c → a"),
    ],
)
def test_circular_formulas_are_named_and_the_others_work(formulas: dict[str, str], circle: str) -> None:
    lines = "".join(f"  {name}: {text}\n" for name, text in {**formulas, "fine": "1 + 1"}.items())
    result = table(f"formulas:\n{lines}views:\n  - order: [formula.a, formula.fine]\n    limit: 1\n")
    assert f"Formulas are circular: {circle}." in result.problems
    assert shown(result) == [[None, 2]]


@pytest.mark.parametrize(
    "text",
    [
        "filters: [" * 1_000 + "]" * 1_000,
        "filters:\n" + "".join(" " * at + "and:\n" + " " * at + "- \n" for at in range(0, 2_000, 2)),
        "filters:\n  " + "- " * 1_000 + "a\n", "filters: {and: [" * 500, "? " * 1_000,
        "a: &a [*a]\nfilters: *a\n", "\t- a: [",
        "just text", "- a\n- b\n", "filters: 'open\n", "x" * 300_000,
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d]\nfilters: [*e,*e,*e,*e,*e,*e,*e]\n",
    ],
)  # fmt: skip
def test_what_is_no_base_is_refused_in_words(text: str) -> None:
    with pytest.raises(BasesError) as caught:
        read_base(text)
    assert caught.value.message and caught.value.hint


def test_an_empty_base_shows_every_file() -> None:
    assert [row[0] for row in shown(table(""))] == ["Dune", "Emma", "Solaris", "Ulysses", "Stalker", "cover.png"]


NOTE = """\
# Reading

```base
filters: rating > 4
```

- in a list

  ~~~base
  filters:
    - rating > 3
    - 'oops ('
  ~~~

> ```base
> views:
>   - name: Quoted
> ```

```python
base = 1
```
"""


def test_the_blocks_of_a_note_are_found_with_their_lines() -> None:
    found = list(blocks(NOTE))
    assert [line for _, line in found] == [4, 10, 16]
    assert found[0][0] == "filters: rating > 4\n"
    assert "line 12, column 12" in read_base(*found[1]).problems[0]
    assert read_base(*found[2]).views[0].name == "Quoted"
