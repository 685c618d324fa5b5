"""What is wrong with an expression is said with its place, in bounded time and memory."""

from __future__ import annotations

import pytest

from tarsd.bases import BasesError, Budget, RowScope, compile_expression, evaluate, run
from tests.support.basing import NOW, MemoryNote, MemoryVault, value_of

UNREADABLE = [
    ("rating >", 1, 9, "ends too early"),
    ("rating = 3", 1, 8, "'=' is not allowed here"),
    ("rating > 3 and x", 1, 12, "'and' is not allowed here"),
    ("(1 + 2", 1, 7, "ends too early"),
    ("1 + 2)", 1, 6, "is not allowed here"),
    ("'open", 1, 1, "is not allowed here"),
    ("a &&\n  && b", 2, 3, "is not allowed here"),
    ("a ++ b", 1, 4, "is not allowed here"),
    ("x.", 1, 3, "ends too early"),
    ("[1, 2", 1, 6, "ends too early"),
    ("{1}", 1, 3, "is not allowed here"),
    ("file.hasTagg('a')", 1, 6, "no function hasTagg()"),
    ("taggedWith(file, 'a')", 1, 1, "no function taggedWith()"),
    ("if(a)", 1, 1, "if() takes 2 to 3 values"),
    ("'a'.contains()", 1, 5, "contains() takes 1 value"),
    ("[1].map(1, 2)", 1, 5, "map() takes 1 value"),
]


@pytest.mark.parametrize(("expression", "line", "column", "words"), UNREADABLE)
def test_what_cannot_be_read_is_said_with_its_place(expression: str, line: int, column: int, words: str) -> None:
    with pytest.raises(BasesError) as caught:
        compile_expression(expression)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in caught.value.message
    assert f"line {line}, column {column}" in caught.value.message


@pytest.mark.parametrize(("expression", "hint"), [
    ("rating = 3", "Write == to compare."), ("a and b", "Write && for and."), ("a & b", "Write &&."),
    ("file.hastag('a')", "There is hasTag()."),
])  # fmt: skip
def test_what_people_write_by_habit_gets_a_hint(expression: str, hint: str) -> None:
    with pytest.raises(BasesError) as caught:
        compile_expression(expression)
    assert caught.value.hint == hint


FAILS = [
    ("1 + 'a'.abs()", 9, "abs() does not work on a string"),
    ("[1] - 2", 1, "- takes no list"),
    ("'a' * 2", 1, "* takes no string"),
    ("2 * duration('5h')", 1, "on the left"),
    ("number('abc')", 1, "not a number"),
    ("date('2026-02-30')", 1, "not a date"),
    ("date('yesterday')", 1, "not a date"),
    ("duration('soon')", 1, "not a duration"),
    ("date('9999-12-31') + '1y'", 1, "years 1 to 9999"),
    ("date('0000-01-01')", 1, "not a date"),
    ("5.filter(value)", 3, "does not work on a number"),
    ("formula.nothing", 1, "no formula"),
    ("/(/.matches('a')", 5, "not a regular expression"),
    ("/a/q.matches('a')", 6, "no flag 'q'"),
]


@pytest.mark.parametrize(("expression", "column", "words"), FAILS)
def test_what_fails_is_said_with_its_place(expression: str, column: int, words: str) -> None:
    with pytest.raises(BasesError) as caught:
        value_of(expression)
    assert words in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 1_000 + "1" + ")" * 1_000, "!" * 1_000 + "a", "[" * 1_000 + "]" * 1_000, "-" * 1_000 + "1",
        "if(a," * 1_000 + "1" + ")" * 1_000, "a" + ".b" * 1_000, "a" + "[0]" * 1_000,
        "list(" * 1_000 + "1" + ")" * 1_000,
        '{"a":' * 1_000 + "1" + "}" * 1_000, "[1].map(" * 1_000 + "value" + ")" * 1_000, "x" * 30_000,
    ],
)  # fmt: skip
def test_what_is_nested_a_thousand_deep_has_its_place(expression: str) -> None:
    with pytest.raises(BasesError) as caught:
        compile_expression(expression)
    assert caught.value.line == 1 and caught.value.column >= 1


@pytest.mark.parametrize("expression", [" || ".join(["a > 1"] * 2_000), " + ".join(["1"] * 4_000)])
def test_what_is_only_long_is_evaluated(expression: str) -> None:
    assert value_of(expression) in (False, 4_000)


ENDLESS = [
    "'x'.repeat(1000000000)",
    "'x'.repeat(1000000).split('').map('x'.repeat(1000000)).length",
    "[1,2,3,4,5,6,7,8,9,10].reduce(acc + acc, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
    ".repeat(20000))",
    "'x'.repeat(90000).split('').map('x'.repeat(90000).split('').filter(value == 'y')).length",
    "'x'.repeat(90000).split('').map([value, value, value].sort().unique()).map('y'.repeat(9000))",
    "'x'.repeat(2000).split('').reduce([acc], 1)",
    "'x'.repeat(2000).split('').reduce({'a': acc}, 1)",
    "'x'.repeat(100).split('').reduce(acc + acc, [1])",
    "'x'.repeat(100000).replace('', 'x'.repeat(1000))",
    "/^(a|aa)+$/.matches('a'.repeat(80) + '!')",
    "/(x+x+)+y/.matches('x'.repeat(5000))",
    "'x'.repeat(200000).replace(/x/g, '$&')",
    "'x'.repeat(90000).replace(/x/g, 'yyyyyyyyyyyyyyyyyyyyyyyy')",
]


@pytest.mark.parametrize("expression", ENDLESS)
def test_what_would_not_end_or_fill_the_memory_is_stopped(expression: str) -> None:
    with pytest.raises(BasesError):
        evaluate(expression, MemoryNote("a.md"), MemoryVault(), NOW, budget=Budget(300_000))


def test_one_budget_serves_all_rows_of_a_query() -> None:
    program, budget = compile_expression("'x'.repeat(1000).length"), Budget(1_000)
    with pytest.raises(BasesError, match="too expensive"):
        for _ in range(1_000):
            run(program, RowScope(MemoryNote("a.md"), MemoryVault(), NOW, budget=budget))


def test_formulas_that_need_each_other_in_a_circle_are_named() -> None:
    formulas = {"a": compile_expression("formula.b + 1"), "b": compile_expression("formula['a']")}
    with pytest.raises(BasesError, match="a → b → a"):
        run(formulas["a"], RowScope(MemoryNote("a.md"), MemoryVault(), NOW, formulas=formulas, running=("a",)))


def test_a_long_chain_of_formulas_is_refused_in_words() -> None:
    formulas = {f"f{at}": compile_expression(f"[formula.f{at + 1}].map(value)") for at in range(1_000)}
    with pytest.raises(BasesError, match="formulas need each other"):
        run(formulas["f0"], RowScope(MemoryNote("a.md"), MemoryVault(), NOW, formulas=formulas))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("my prop == 3", "my prop"),
        ("rating > 3 && note.date read", "date read"),
        ("Name der Stadt == 'x'", "Name der Stadt"),
        ("средняя оценка > 4", "средняя оценка"),
    ],
)
def test_a_name_with_spaces_is_answered_with_how_it_is_written(text: str, name: str) -> None:
    with pytest.raises(BasesError) as caught:
        compile_expression(text)
    assert f'note["{name}"]' in caught.value.hint


@pytest.mark.parametrize("text", ["1 2", "'a' b", "rating > 3 and x", "a ++ b"])
def test_what_is_no_name_gets_no_such_advice(text: str) -> None:
    with pytest.raises(BasesError) as caught:
        compile_expression(text)
    assert "note[" not in caught.value.hint
