"""Times in questions: every rule by its own example, and what no rule may take for a time."""

from __future__ import annotations

import calendar
from datetime import date

import pytest

from tarsd.ask import times
from tarsd.ask.tables import LANGUAGES, load, simplified

TODAY = date(2026, 11, 28)
ROWS = [
    pytest.param("en" if language == "any" else language, example, days, id=f"{language}: {example}")
    for language in (*LANGUAGES, "any")
    for _, _, example, days in load(language)["times"]["rules"]
]


def said(text: str, language: str, today: date = TODAY, *, future: bool = False) -> str:
    spans = times.find(text, today, [language], future=future)
    return "; ".join("..".join(dict.fromkeys(span.iso)) for span in spans)


@pytest.mark.parametrize(("language", "example", "days"), ROWS)
def test_every_rule_reads_its_example(language: str, example: str, days: str) -> None:
    assert said(example, language) == days


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_month_and_weekday_of_a_language_is_known(language: str) -> None:
    names = load("names")[language]
    for month, forms in enumerate(names["months"], 1):
        last = calendar.monthrange(2025, month)[1]
        for form in forms:
            text = f"2025年{form}" if language in ("ja", "zh") else f"{form} 2025"
            if not form[0].isdigit() and language in ("ja", "zh"):
                continue  # in Chinese the year goes with digits
            assert said(text, language) == f"2025-{month:02}-01..2025-{month:02}-{last}"
    for weekday, forms in enumerate(names["weekdays"]):
        for form in forms:
            spans = times.find(f" {form} ", TODAY, [language]) if len(form) > 1 else []
            assert all(span.first.weekday() == weekday for span in spans)
            assert spans or len(form) == 1


@pytest.mark.parametrize(
    ("text", "language", "days"),
    [
        ("the second half of January 2026", "en", "2026-01-16..2026-01-31"),
        ("in the first half of February 2026", "en", "2026-02-01..2026-02-15"),
        ("a segunda metade de maio", "pt", "2026-05-16..2026-05-31"),
        ("nella prima metà di maggio", "it", "2026-05-01..2026-05-15"),
        ("in der zweiten Hälfte des Mai", "de", "2026-05-16..2026-05-31"),
        ("la segunda mitad de mayo", "es", "2026-05-16..2026-05-31"),
        ("la première moitié de mai", "fr", "2026-05-01..2026-05-15"),
        ("de tweede helft van mei", "nl", "2026-05-16..2026-05-31"),
        ("в первой половине мая", "ru", "2026-05-01..2026-05-15"),
    ],
)
def test_a_month_has_two_halves(text: str, language: str, days: str) -> None:
    assert said(text, language) == days


@pytest.mark.parametrize("unit", ["half", "quarter", "year", "month", "weekend", "week", "day"])
@pytest.mark.parametrize("nth", ["first", "third", "last"])
def test_any_unit_of_a_month_is_days_or_no_time(unit: str, nth: str) -> None:
    found = times.find(f"the {nth} {unit} of March 2026", TODAY, ["en"])
    assert all(span.first.isoformat() >= "2026" and span.first <= span.last for span in found)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("May I fall or march?", "en"),
        ("What is the last thing to loosen?", "en"),
        ("the drawings of pile 1931-04-55", "en"),
        ("version 3.14 and 2:1", "en"),
        ("Wie oft klingelt man bei Uwe?", "de"),
        ("¿Quién escribió La mar?", "es"),
        ("Les sept samouraïs", "fr"),
        ("Un set di piatti", "it"),
        ("", "en"),
        ("2026-02-30", "en"),
        ("on 31 February 2026", "en"),
        ("30. Februar 2026", "de"),
        ("月見うどんの作り方", "ja"),
        ("火の通し方", "ja"),
        ("the fifth Monday of February 2026", "en"),
        ("in week 99, KW 60", "de"),
    ],
)
def test_what_names_no_time_is_none(text: str, language: str) -> None:
    assert said(text, language) == ""


@pytest.mark.parametrize(
    ("text", "language", "past", "future"),
    [
        ("in December", "en", "2025-12-01..2025-12-31", "2026-12-01..2026-12-31"),
        ("on Friday", "en", "2026-11-27", "2026-12-04"),
        ("am 24. Dezember", "de", "2025-12-24", "2026-12-24"),
        ("à Noël", "fr", "2025-12-24..2025-12-26", "2026-12-24..2026-12-26"),
    ],
)
def test_what_comes_again_is_the_last_one_or_the_next_one(text: str, language: str, past: str, future: str) -> None:
    assert said(text, language) == past
    assert said(text, language, future=True) == future


def test_the_place_of_a_time_is_that_in_the_text_as_it_was_typed() -> None:
    text = "Ａda: ¿qué hice el ７ de março, digo, el 7 de MARZO de 2026?"
    (span,) = times.find(text, TODAY, ["es"])
    assert text[span.start : span.stop] == "el 7 de MARZO de 2026"


def test_only_what_comes_every_year_is_yearless() -> None:
    for text, yearless in (("in May", True), ("14 March", True), ("May 2025", False), ("last May", False)):
        assert [span.yearless for span in times.find(text, TODAY, ["en"])] == [yearless]


def test_29_february_is_that_of_the_last_leap_year() -> None:
    assert said("on 29 February", "en") == "2024-02-29"
    assert said("on 29 February", "en", date(2024, 2, 29)) == "2024-02-29"
    assert said("on 29 February", "en", date(2026, 3, 1), future=True) == "2028-02-29"


@pytest.mark.parametrize(
    ("today", "text", "days"),
    [
        (date(2026, 11, 30), "last week", "2026-11-23..2026-11-29"),
        (date(2026, 11, 29), "this week", "2026-11-23..2026-11-29"),
        (date(2026, 1, 1), "last month", "2025-12-01..2025-12-31"),
        (date(2026, 12, 31), "next month", "2027-01-01..2027-01-31"),
        (date(2026, 3, 31), "a month ago", "2026-02-01..2026-02-28"),
        (date(2026, 11, 28), "last weekend", "2026-11-21..2026-11-22"),
        (date(2026, 11, 25), "last weekend", "2026-11-21..2026-11-22"),
        (date(2026, 11, 25), "this weekend", "2026-11-28..2026-11-29"),
        (date(2026, 11, 25), "next weekend", "2026-11-28..2026-11-29"),
        (date(2026, 11, 24), "last Tuesday", "2026-11-17"),
    ],
)
def test_weeks_months_and_weekends_are_counted_from_today(today: date, text: str, days: str) -> None:
    assert said(text, "en", today) == days


def test_two_times_make_one_from_the_first_to_the_second() -> None:
    assert said("between 28 February and 3 March 2026", "en") == "2026-02-28..2026-03-03"
    assert said("vom 2026-03-01 bis 2026-03-10", "de") == "2026-03-01..2026-03-10"
    assert said("from last Monday until yesterday", "en") == "2026-11-23..2026-11-27"


def test_folding_keeps_every_character_in_its_place() -> None:
    for text in ("Ärger ÉTÉ ñ ß İ ﬁ １２ が ё Й", "é" * 50, "日本語", ""):
        assert len(simplified(text)) == len(text)
