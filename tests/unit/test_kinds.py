"""What written values are: numbers with units, durations, dates, links; and the types that Obsidian declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarsd.kinds import currency_of, fits, kind_of, main_currency, property_types


@pytest.mark.parametrize(
    ("written", "number", "unit"),
    [
        ("12,90 €", 12.9, "€"), ("€ 58.00", 58, "€"), ("48,000 €", 48_000, "€"), ("304 p.", 304, "p."),
        ("7.99$", 7.99, "$"), ("3/5", 3, "/5"), ("4 / 10", 4, "/10"), ("6,5 km", 6.5, "km"), ("31 µg/l", 31, "µg/l"),
        ("84,210 km", 84_210, "km"), ("4.5", 4.5, ""), ("1.234,56 €", 1234.56, "€"), ("1'234.50", 1234.5, ""),
        ("48 000 €", 48_000, "€"), ("1,234,567.5", 1_234_567.5, ""), ("1.234.567", 1_234_567, ""), ("-5 °C", -5, "°C"),
        ("€ -5", -5, "€"), ("−2", -2, ""), ("50%", 50, "%"), ("US$ 5", 5, "US$"), ("EUR 5", 5, "EUR"), ("１２", 12, ""),
        ("0,500 kg", 0.5, "kg"), ("12.500 kg", 12.5, "kg"), (".5", 0.5, ""), (7, 7, ""), (2.5, 2.5, ""),
    ],
)  # fmt: skip
def test_numbers(written: str | float, number: float, unit: str) -> None:
    read = kind_of(written)
    assert (read.kind, read.unit) == ("number", unit) and read.number == pytest.approx(number)


@pytest.mark.parametrize(
    ("written", "minutes", "number"),
    [
        ("20 min", 20, 20), ("35 Min", 35, 35), ("90 min.", 90, 90), ("2h", 120, 2), ("8 h", 480, 8),
        ("6.5 h", 390, 6.5),
        ("20分", 20, 20), ("1,5 Stunden", 90, 1.5), ("3 days", 4320, 3), ("1h 40m", 100, None),
        ("1h40m", 100, None),
        ("2 hours and 5 minutes", 125, None), ("2 Std, 5 Min", 125, None), ("2時間30分", 150, None),
        ("1:30 h", 90, None),
    ],
)  # fmt: skip
def test_durations(written: str, minutes: float, number: float | None) -> None:
    read = kind_of(written)
    assert (read.kind, read.minutes, read.number) == ("duration", minutes, number)


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2026-03-14", "2026-03-14"), ("2026/3/4", "2026-03-04"), ("14.07.2026", "2026-07-14"),
        ("5. 9. 2026", "2026-09-05"),
        ("14 March 2026", "2026-03-14"), ("March 14th, 2026", "2026-03-14"), ("14. März 2026", "2026-03-14"),
        ("14 de marzo de 2026", "2026-03-14"), ("2026年3月14日", "2026-03-14"),
        ("2026-03-14 10:00", "2026-03-14T10:00"), ("2026-03-14T10:00:30+0100", "2026-03-14T10:00:30+01:00"),
    ],
)  # fmt: skip
def test_dates_and_times(written: str, iso: str) -> None:
    read = kind_of(written)
    assert (read.kind, read.iso, read.day) == ("datetime" if "T" in iso else "date", iso, iso[:10])


@pytest.mark.parametrize(
    "written",
    [
        "four-ish", "2027-03", "PE 4471", "0555 0142", "n/a", "2nd", "17:00", "1.2.3", "10-12", "a 5", "spring?", "",
        "12 Main Street", "Kickoff 14 March 2026", "may 2026", "2@x.y", "x" * 300, "1" * 300, "a while",
        "[[A]] and [[B]]",
    ],
)  # fmt: skip
def test_text(written: str) -> None:
    read = kind_of(written)
    assert (read.kind, read.number, read.minutes, read.iso, read.text) == ("text", None, None, "", written)


@pytest.mark.parametrize("written", ["1991-13-40", "2026-02-30", "31.02.2026", "0000-01-01", "2026-01-01 25:00"])
def test_what_looks_like_a_date_and_is_none_is_text_that_says_so(written: str) -> None:
    assert kind_of(written).kind == "text" and kind_of(written).no_date


@pytest.mark.parametrize(
    ("written", "target"), [("[[A]]", "A"), ("[[B/A#h|a]]", "B/A#h"), ("![[A.png]]", "A.png"), ("[x](a.md)", "a.md")]
)
def test_links(written: str, target: str) -> None:
    assert (kind_of(written).kind, kind_of(written).target) == ("link", target)


def test_a_check_box_is_no_number_and_a_number_no_check_box() -> None:
    assert kind_of(True).kind == kind_of("false").kind == "checkbox"
    assert kind_of(1).kind == kind_of(1.0).kind == "number"


@pytest.mark.parametrize(
    ("value", "declared", "kind", "fitting"),
    [
        ("45 min", "text", "text", True), ("12 €", "number", "number", True), ("five", "number", "text", False),
        ("2026-03-14", "date", "date", True), ("2026-03-14T10:00", "date", "date", True),
        ("soon", "date", "text", False),
        ("2026-03-14", "datetime", "datetime", True), (True, "checkbox", "checkbox", True),
        ("maybe", "checkbox", "text", False),
        ("[[A]]", "multitext", "link", True), (5, "text", "text", True), ("x", "unheard", "text", True),
    ],
)  # fmt: skip
def test_declared_types(value: str | bool | int, declared: str, kind: str, fitting: bool) -> None:
    assert (kind_of(value, declared).kind, fits(value, declared)) == (kind, fitting)


def test_declared_text_still_has_its_number_and_its_day() -> None:
    assert kind_of("45 min", "text").minutes == 45 and kind_of("2026-03-14", "text").iso == "2026-03-14"


def test_types_are_those_of_the_vault(tmp_path: Path) -> None:
    assert property_types(tmp_path) == {}
    settings = tmp_path / ".obsidian"
    settings.mkdir()
    (settings / "types.json").write_text('{"types": {"Last Seen": "date", "rating": "number", "odd": 5}}')
    assert property_types(tmp_path) == {"last seen": "date", "rating": "number"}
    for broken in ("{", "[]", '{"types": []}', "\x00"):
        (settings / "types.json").write_text(broken)
        assert property_types(tmp_path) == {}


def test_currencies_are_known_in_sign_and_code() -> None:
    same = [("€", "EUR"), ("$", "USD"), ("US$", "usd"), ("¥", "￥"), ("Rs", "INR"), ("SFr.", "CHF"), ("kr", "kr.")]
    assert all(currency_of(one) == currency_of(other) != "" for one, other in same)
    assert {currency_of(unit) for unit in ("", "p.", "km", "/5", "min")} == {""}
    assert main_currency(["p.", "$", "EUR", "€"]) == "€" and main_currency(["km", ""]) == ""
