"""What notes say as data: properties and inline fields with their lines, list items that carry fields, and tasks."""

from __future__ import annotations

import pytest

from tarsd.parse import Fact, Item, Note, Task, parse
from tarsd.parse.facts import MOST
from tarsd.parse.fields import LONGEST, key_of
from tarsd.parse.properties import read


def note(text: str, path: str = "A.md") -> Note:
    return parse(text, path)


def facts(text: str) -> list[tuple[str, object, int]]:
    return [(fact.name, fact.value, fact.line) for fact in note(text).facts]


def task(line: str) -> Task:
    (found,) = note(line).tasks
    return found


def reasons(text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.reason) for problem in note(text).problems]


# ------------------------------------------------------------------------------------------------ properties


def test_each_value_of_a_property_stands_at_its_line() -> None:
    text = "---\nrating: 4.5\ngenre:\n  - sea\n  - crime\n\nseen: true\nempty:\nwhen: 2026-3-9\n---\ntext"
    assert facts(text) == [
        ("rating", 4.5, 2), ("genre", "sea", 4), ("genre", "crime", 5), ("seen", True, 7), ("when", "2026-03-09", 9),
    ]  # fmt: skip


def test_nested_properties_are_named_by_their_path() -> None:
    text = "---\nboat:\n  hull:\n    length: 7\n    paint: [red, blue]\n  name: Sanderling\n---\n"
    assert facts(text) == [
        ("boat.hull.length", 7, 4), ("boat.hull.paint", "red", 5), ("boat.hull.paint", "blue", 5),
        ("boat.name", "Sanderling", 6),
    ]  # fmt: skip


def test_values_of_a_broken_block_stand_at_their_lines_too() -> None:
    text = "---\na: [1\nb: two\nlist:\n  - x\n  - y\nc: d: e\n---\n"
    assert facts(text) == [("b", "two", 3), ("list", "x", 5), ("list", "y", 6), ("c", "d: e", 7)]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("a: 1\na: 2", [("a", 2, 3)]),
        ("a: [1, 2]\na: [2, 3]", [("a", 1, 2), ("a", 2, 3), ("a", 3, 3)]),
        ("a:\n  b: 1\na:\n  b: 2\n  c: 3", [("a.b", 2, 5), ("a.c", 3, 6)]),
    ],
)
def test_of_a_property_that_is_there_twice_the_facts_are_those_of_the_properties(
    block: str, expected: list[tuple[str, object, int]]
) -> None:
    assert facts(f"---\n{block}\n---\n") == expected


def test_tags_and_aliases_are_values_one_by_one() -> None:
    text = "---\ntags: home, boat\naliases:\n  - Ada, the first\n  - Lovelace\n---\n#more"
    assert facts(text) == [
        ("tags", "home", 2), ("tags", "boat", 2), ("aliases", "Ada, the first", 4), ("aliases", "Lovelace", 5),
    ]  # fmt: skip


@pytest.mark.parametrize("written", ['"[[A]], [[B|b]]"', "[[A]], [[B|b]]", '["[[A]]", "[[B|b]]"]'])
def test_links_with_commas_between_them_are_several_values(written: str) -> None:
    text = f"---\nby: {written}\n---\n" if '"' in written else f"by:: {written}"
    assert [value for _, value, _ in facts(text)] == ["[[A]]", "[[B|b]]"]


def test_a_value_with_links_and_words_is_one() -> None:
    assert facts("by:: [[A]], with [[B]]") == [("by", "[[A]], with [[B]]", 1)]


# ------------------------------------------------------------------------------------------------ inline fields


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("mood:: 4", "mood", "4"),
        ("mood::4", "mood", "4"),
        ("**Last seen**:: today", "Last seen", "today"),
        ("**Last seen::** today", "Last seen", "today"),
        ("_mood_:: good", "mood", "good"),
        ("> mood:: 4", "mood", "4"),
        ("Went out [mood:: 4] late", "mood", "4"),
        ("Went out (mood:: 4) late", "mood", "4"),
        ("[who:: [[Ada]] (and [[Bo]])]", "who", "[[Ada]] (and [[Bo]])"),
        ("🎯 goal:: twenty", "🎯 goal", "twenty"),
        ("評価:: 5", "評価", "5"),
        ("[favourite cake:: plum]", "favourite cake", "plum"),
        ("[said:: `code` too]", "said", "`code` too"),
    ],
)
def test_the_forms_of_inline_fields(line: str, name: str, value: str) -> None:
    assert facts(f"# T\n\n{line}") == [(name, value, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "`mood:: 4`", "```\nmood:: 4\n```", "%% mood:: 4 %%", "<!-- mood:: 4 -->", "mood::", "[mood::]", "[[a:: b]]",
        "[a:: b](c)", ":::", "a ::: b", "::", "| a:: b |", "## a:: b", "text, with a comma:: no", "http://a::b",
    ],
)  # fmt: skip
def test_what_is_no_field(text: str) -> None:
    assert facts(f"text\n\n{text}\n") == []


def test_a_list_item_with_fields_is_one_row_and_its_fields_belong_together() -> None:
    text = "## Money\n\n- Rope, 40 m [spent:: € 58.00] [for:: boat]\n- plain\n1. rating:: 5\n"
    found = note(text)
    assert found.items == (Item(3, "Rope, 40 m", "Money"), Item(5, "rating:: 5", "Money"))
    assert found.facts == (
        Fact("spent", "€ 58.00", 3, "item", 3), Fact("for", "boat", 3, "item", 3), Fact("rating", "5", 5, "item", 5),
    )  # fmt: skip


def test_fields_of_a_task_belong_to_the_task() -> None:
    found = note("- [ ] Draft [due:: 2026-11-26] [cost:: 5 €]\n")
    assert found.facts == () and found.items == ()
    assert found.tasks[0].due == "2026-11-26" and found.tasks[0].fields == {"cost": "5 €"}


@pytest.mark.parametrize(
    "names",
    [
        ("Last Seen", "last-seen", "last_seen", "**last seen**", "LAST  SEEN"),
        ("cafe\u0301", "caf\u00e9", "CAF\u00c9"),
        ("straße", "STRASSE"),
    ],
)
def test_names_that_are_the_same(names: tuple[str, ...]) -> None:
    assert len(set(map(key_of, names))) == 1


# ------------------------------------------------------------------------------------------------ tasks


@pytest.mark.parametrize(
    "line",
    ["- [ ] a", "* [ ] a", "+ [ ] a", "1. [ ] a", "2) [ ] a", "> - [ ] a", "> > - [ ] a", "- - [ ] a", "  - [ ] a"],
)
def test_a_check_box_in_any_list_is_a_task(line: str) -> None:
    assert task(line).text == "a"


@pytest.mark.parametrize("status", [*' xX/-><?!*"lbiSIpcfkwud', "💡"])
def test_every_status_is_kept(status: str) -> None:
    found = task(f"- [{status}] a")
    assert (found.status, found.is_open, found.is_done, found.is_cancelled) == (
        status, status in " /", status in "xX", status == "-",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "```\n- [ ] a\n```",
        "`- [ ] a`",
        "%%\n- [ ] a\n%%",
        "- [x](link)",
        "- [ ]a",
        "[ ] a",
        "- [ab] a",
        "- [ ] ",
        "- []",
    ],
)
def test_what_is_no_task(text: str) -> None:
    assert note(text).tasks == ()


def test_dates_and_marks_in_the_form_of_tasks() -> None:
    found = task(
        "- [x] Post it #home ⏫ 🔁 every week when done ➕ 2026-01-01 🛫 2026-01-02 ⏳ 2026-01-03 📅 2026-01-04 "
        "✅ 2026-01-05 🆔 ab-1 ⛔ c,d ^block"
    )
    assert found == Task(
        1, "x", "Post it #home", "", 0, "2026-01-04", "2026-01-03", "2026-01-02", "2026-01-01", "2026-01-05", "",
        "high", "every week when done", "ab-1", ("home",), {"dependsOn": "c,d"},
    )  # fmt: skip


def test_dates_and_marks_in_the_form_of_dataview() -> None:
    found = task(
        "- [-] Post it (priority:: Lowest), [repeat:: every day], [created:: 2026-01-01] [start:: 2026-01-02] "
        "[scheduled:: 2026-01-03] [due:: 2026-01-04] [completion:: 2026-01-05] [cancelled:: 2026-01-06] [id:: q]"
    )
    assert found == Task(
        1, "-", "Post it", "", 0, "2026-01-04", "2026-01-03", "2026-01-02", "2026-01-01", "2026-01-05", "2026-01-06",
        "lowest", "every day", "q",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mark", "priority"), [("🔺", "highest"), ("⏫️", "high"), ("🔼", "medium"), ("🔽", "low"), ("⏬", "lowest")]
)
def test_priorities(mark: str, priority: str) -> None:
    assert task(f"- [ ] a {mark} 📅️ 2026-01-04").priority == priority
    assert task(f"- [ ] a [priority:: {priority}]").priority == priority


@pytest.mark.parametrize("line", ["- [ ] Say `📅 2026-01-01` aloud", "- [ ] Say `due:: x` aloud", "- [ ] A `[x:: y]`"])
def test_marks_in_code_are_text(line: str) -> None:
    found = task(line)
    assert found.text == line[6:] and not found.due and not found.fields


def test_a_task_stands_under_its_heading_and_its_parent() -> None:
    text = "# One\n- [ ] a\n\t- [ ] b\n\t\t- [ ] c\n\t- d\n\t\t- [ ] e\n\n"
    text += "## Two\n- [ ] f\n  text\n  - [ ] g\n\nEnd.\n\n  - [ ] h\n"
    assert [(task.text, task.heading, task.parent) for task in note(text).tasks] == [
        ("a", "One", 0), ("b", "One", 2), ("c", "One", 3), ("e", "One", 5), ("f", "Two", 0), ("g", "Two", 9),
        ("h", "Two", 0),
    ]  # fmt: skip


def test_lists_in_quotes_have_parents_of_their_own() -> None:
    text = "- a\n\n> [!todo]\n> - [ ] b\n>   - [ ] c\n"
    assert [(task.text, task.parent) for task in note(text).tasks] == [("b", 0), ("c", 4)]


@pytest.mark.parametrize("day", ["2026-02-30", "0000-01-01", "2026-13-01", "2025-02-29"])
@pytest.mark.parametrize("form", ["📅 {}", "[due:: {}]"])
def test_a_date_that_no_calendar_has_stays_text_and_is_named(day: str, form: str) -> None:
    text = f"text\n- [ ] a {form.format(day)}"
    (found,) = note(text).tasks
    assert (found.text, found.due, dict(found.fields)) == ("a", "", {"due": day})
    assert reasons(text) == [(2, f"The due date {day!r} of this task is not a date.")]


@pytest.mark.parametrize("day", ["26.11.2026", "2026-11-26", "2026-11-26T09:30"])
@pytest.mark.parametrize("form", ["📅 {}", "[due:: {}]", "(due:: {})"])
def test_a_date_is_written_with_its_year_or_its_day_first(day: str, form: str) -> None:
    found = task(f"- [ ] a {form.format(day)}")
    assert found.due == "2026-11-26"


def test_words_in_place_of_a_date_stay_in_the_text_and_are_named() -> None:
    text = "- [ ] Find the clock 📅 next week"
    assert task(text).text == "Find the clock next week" and not task(text).due
    assert reasons(text) == [(1, "The due date of this task cannot be read: 'next week'.")]


def test_of_two_dates_of_one_kind_the_first_counts() -> None:
    assert task("- [ ] a 📅 2026-01-01 📅 2026-01-02").due == "2026-01-01"


# ------------------------------------------------------------------------------------------------ bad input


def test_what_the_daemon_wrote_holds_no_data() -> None:
    found = note("---\ntars: memory\nrating: 5\n---\n- [ ] a\nmood:: 4\n")
    assert (found.facts, found.items, found.tasks) == ((), (), ())


def test_a_property_of_a_megabyte_is_named_and_breaks_nothing() -> None:
    text = "---\nlong: " + "x" * 900_000 + "\nrating: 5\n---\nmood:: 4\n"
    found = note(text)
    assert [(fact.name, len(str(fact.value))) for fact in found.facts] == [
        ("long", LONGEST),
        ("rating", 1),
        ("mood", 1),
    ]
    assert reasons(text) == [(2, "The value of 'long' is too long: only its start is compared.")]
    assert reasons("mood:: " + "x" * 900_000) == [(1, "The value of 'mood' is too long: only its start is compared.")]
    whole = "---\nlong: " + "x" * 1_000_000 + "\n---\nmood:: 4\n"
    assert facts(whole) == [("mood", "4", 4)] and reasons(whole) == [(1, "The properties are too long to read.")]


def test_twenty_thousand_properties_are_read_up_to_a_number_and_named() -> None:
    text = "---\n" + "".join(f"p{number}: {number}\n" for number in range(20_000)) + "---\n- [ ] a\n"
    found = note(text)
    assert len(found.facts) == MOST and len(found.properties) == 20_000 and len(found.tasks) == 1
    ((line, reason),) = reasons(text)
    assert line == MOST + 2 and "10,000 values" in reason


def test_lines_of_properties_are_those_of_the_file_whatever_stands_around_them() -> None:
    block = read(["---", "# comment", "", "a: |", "  text", "  more", "b: 'x", "  y'", "c:", "- [p, q]", "---"])
    assert [(leaf.name, leaf.value, leaf.line) for leaf in block.leaves] == [
        ("a", "text\nmore\n", 4), ("b", "x y", 7), ("c", "p", 10), ("c", "q", 10),
    ]  # fmt: skip
