"""A task's line once it is done, and the one that comes next where it recurs, as the Tasks plugin makes them."""

from __future__ import annotations

from datetime import date

import pytest

from tarsd.errors import BadRequest, NotFound, Refused
from tarsd.vault import content_hash
from tarsd.writing import Loaded
from tarsd.writing.recurrence import read_rule
from tarsd.writing.tasks import complete, new_line

TODAY = date(2026, 11, 28)  # a Saturday


def loaded(text: str) -> Loaded:
    raw = text.encode()
    return Loaded("a.md", raw, text, "utf-8", content_hash(raw))


def done(text: str, line: int = 1, today: date = TODAY) -> str:
    return complete(loaded(text), line, today).after.decode()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- [ ] a", "- [x] a ✅ 2026-11-28"),
        ("- [/] a 🔼 📅 2026-12-01", "- [x] a 🔼 📅 2026-12-01 ✅ 2026-11-28"),
        ("- [ ] a #tag ^id", "- [x] a #tag ✅ 2026-11-28 ^id"),
        ("  > 1. [ ] a  ", "  > 1. [x] a ✅ 2026-11-28"),
        ("- [ ] a [due:: 2026-11-26]", "- [x] a [due:: 2026-11-26]  [completion:: 2026-11-28]"),
        ("- [ ] a (priority:: high) ^id", "- [x] a (priority:: high)  [completion:: 2026-11-28] ^id"),
        ("- [ ] a [cost:: 5 €] 📅 2026-12-01", "- [x] a [cost:: 5 €] 📅 2026-12-01 ✅ 2026-11-28"),
        ("- [?] a ✅ 2026-01-01 ❌ 2026-01-02", "- [x] a ✅ 2026-11-28"),
        ("- [ ] Say `📅 2026-01-01`", "- [x] Say `📅 2026-01-01` ✅ 2026-11-28"),
        ("- [ ] a 📅 next week", "- [x] a 📅 next week ✅ 2026-11-28"),
    ],
)
def test_a_task_is_ticked_with_its_day_in_the_form_of_its_line(line: str, expected: str) -> None:
    assert done(f"# H\n\n{line}\nafter\n", 3) == f"# H\n\n{expected}\nafter\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "- [ ] b  ", "\t\n", "text\r"])
def test_all_else_stays_byte_for_byte(end: str, last: str) -> None:
    head = f"---{end}a: 1  {end}---{end}"
    assert done(f"{head}- [ ] a{end}{last}", 4) == f"{head}- [x] a ✅ 2026-11-28{end}{last}"
    assert done(f"{head}- [ ] a", 4) == f"{head}- [x] a ✅ 2026-11-28"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("take out the trash 🔁 every Sunday 📅 2021-04-25", "take out the trash 🔁 every Sunday 📅 2021-05-02"),
        ("sweep 🔁 every week ⏳ 2021-02-06", "sweep 🔁 every week ⏳ 2021-02-13"),
        ("sweep 🔁 every week when done ⏳ 2021-02-06", "sweep 🔁 every week when done ⏳ 2026-12-05"),
        ("mow 🔁 every 2 weeks ⏳ 2021-10-28 📅 2021-10-30", "mow 🔁 every 2 weeks ⏳ 2021-11-11 📅 2021-11-13"),
        ("x 🔁 every day ➕ 2021-01-01 🛫 2021-02-03", "x 🔁 every day ➕ 2026-11-28 🛫 2021-02-04"),
        ("x 🔁 every day 🆔 q1 ⛔ q2 📅 2021-02-03 ^id", "x 🔁 every day 📅 2021-02-04"),
        ("x [repeat:: every day]  [due:: 2021-02-03]", "x [repeat:: every day]  [due:: 2021-02-04]"),
        ("x 🔁 every day", "x 🔁 every day"),
        ("x 📅 2021-02-03 #t 🔁 every 3 days", "x 📅 2021-02-06 #t 🔁 every 3 days"),
    ],
)
def test_the_next_one_stands_above_it(before: str, after: str) -> None:
    first, second = done(f"- [/] {before}\n").splitlines()
    assert first == f"- [ ] {after}"
    assert second.startswith("- [x] x " if before[0] == "x" else "- [x] ") and "2026-11-28" in second


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("every day", "2026-11-28 2026-11-29"),
        ("every 10 days", "2026-11-28 2026-12-08"),
        ("every other day", "2026-11-28 2026-11-30"),
        ("every weekday", "2026-11-26 2026-11-27 2026-11-30"),
        ("every week", "2026-12-28 2027-01-04"),
        ("every week on Monday, Friday", "2026-11-25 2026-11-27 2026-11-30 2026-12-04"),
        ("every week on Tuesday and Friday", "2026-11-24 2026-11-27 2026-12-01"),
        ("every 3 weeks on Friday", "2026-11-26 2026-11-27 2026-12-18"),
        ("every Sunday", "2021-04-25 2021-05-02"),
        ("every mon, thu", "2026-11-26 2026-11-30 2026-12-03"),
        ("Every Month", "2021-10-31 2021-11-30 2021-12-30 2022-01-30 2022-02-28 2022-03-28"),
        ("every 3 months", "2022-01-31 2022-04-30 2022-07-30"),
        ("every month on the 31st", "2022-01-31 2022-03-31 2022-05-31 2022-07-31 2022-08-31"),
        ("every month on the 15th", "2026-11-10 2026-11-15 2026-12-15 2027-01-15"),
        ("every 2 months on the 1st", "2026-11-01 2027-01-01"),
        ("every month on the 1st and 15th", "2026-11-28 2026-12-01 2026-12-15 2027-01-01"),
        ("every month on the last", "2022-01-31 2022-02-28 2022-03-31 2022-04-30"),
        ("every year", "2024-02-29 2025-02-28 2026-02-28"),
        ("every 2 years", "2026-05-01 2028-05-01"),
    ],
)
def test_rules(rule: str, days: str) -> None:
    first, *others = map(date.fromisoformat, days.split())
    for expected in others:
        first = read_rule(rule).next(first)
        assert first == expected
    assert read_rule(f"{rule} when done").when_done and not read_rule(rule).when_done


@pytest.mark.parametrize(
    "rule",
    [
        "", "each day", "every", "every 0 days", "every January on the 15th", "every month on the 2nd Tuesday",
        "every month on the last Friday", "every day for 5 times", "every week until 2027-01-01",
        "every week on the 15th",
        "every month on Monday", "every month on the 32nd", "every hour", "every 2 weekdays", "every day on Monday",
        "every year on the 1st", "every week on Monday, soon", "every 1000 days", "jeden Tag",
    ],
)  # fmt: skip
def test_another_rule_is_refused_and_nothing_is_half_done(rule: str) -> None:
    with pytest.raises(Refused) as refused:
        read_rule(rule)
    assert "Unknown" in refused.value.message and "every weekday" in refused.value.hint
    if rule and rule.isascii():
        with pytest.raises(Refused):
            done(f"- [ ] a [repeat:: {rule}] [due:: 2026-01-01]")


@pytest.mark.parametrize("day", ["9999-12-31", "9999-12-01"])
@pytest.mark.parametrize("rule", ["every year", "every 999 days", "every 40 months", "every 999 weeks"])
def test_a_task_that_would_recur_after_all_time_is_refused(day: str, rule: str) -> None:
    with pytest.raises(Refused):
        done(f"- [ ] a 🔁 {rule} 📅 {day}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- [x] a", "already done"),
        ("- [-] a", "cancelled"),
        ("- [ ] a 🔁 every day 📅 2026-02-30", "due date is invalid"),
        ("- [ ] a 🔁 every day [due:: soon]", "due date is invalid"),
        ("- [ ] a 🔁 every day ⏳ soon", "scheduled date is invalid"),
        ("- [ ] a 🏁 delete", "deleted"),
        ("- [ ] a [onCompletion:: delete]", "deleted"),
    ],
)
def test_what_is_not_done_is_said(line: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        done(line)


@pytest.mark.parametrize(
    ("text", "line"), [("text\n- [ ] a", 1), ("- [ ] a", 9), ("- [ ] a", 0), ("```\n- [ ] a\n```", 2), ("", 1)]
)
def test_where_no_task_is_the_nearest_are_named(text: str, line: int) -> None:
    with pytest.raises(NotFound) as missing:
        done(text, line)
    assert ("no tasks" in missing.value.hint) == ("- [ ] a" not in text or "```" in text)


def test_the_line_of_a_new_task() -> None:
    today = date(2026, 11, 30)
    assert new_line("Call  Ada\n", "", today) == new_line("- [ ] Call Ada", " ", today) == "- [ ] Call Ada"
    assert {new_line(said, "", today) for said in ("- Call Ada", " * [ ] Call Ada", "[ ] Call Ada", "+ Call Ada")} == {
        "- [ ] Call Ada"
    }
    for due in ("2026-12-01", "Tomorrow"):
        assert new_line("Call Ada #phone", due, today) == "- [ ] Call Ada #phone 📅 2026-12-01"
    for text in ("", " \n", "x" * 3_000):
        with pytest.raises(BadRequest):
            new_line(text, "", today)
