"""The day that a note is of: from its properties, else from its name in the vault's own form, else none."""

from __future__ import annotations

import json
import os
import time
import unicodedata
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tarsd.config import DatesSettings
from tarsd.dates import DateRules, date_rules, day_of, moment
from tarsd.parse import parse
from tests.support import toolkit
from tests.support.engine import Engine

MARCH = "2026-03-09"


def day(path: str, **rules: Any) -> str:
    return day_of(path, {}, DateRules(**rules))


def told(yaml: str, path: str = "a.md", **rules: Any) -> str:
    """The day of a note with these properties."""
    return day_of(path, parse(f"---\n{yaml}\n---\nText\n", path).properties, DateRules(**rules))


# In the name


@pytest.mark.parametrize(
    "name",
    [
        MARCH, "2026-03-09 Meeting with Ada", "Ada 2026-03-09", "Talk (2026-03-09)", "会議2026-03-09議事録",
        "2026_03_09",
        "2026.03.09 Review", "2026-3-9", "20260309", "20260309 Ada", "202603091430 Zettel", "20260309T143000",
        "IMG_20260309_143000", "2026-03-09T14.30", "2026-03-09 to 2026-03-12", "2026-02-30 2026-03-09",
        "Ada-2026-03-09-2",
        "２０２６－０３－０９", "2026‑03‑09", "٢٠٢٦-٠٣-٠٩", "२०२६-०३-०९", "2026／03／09", "Version 2 of 2026-03-09",
    ],
)  # fmt: skip
def test_a_date_in_the_name_is_the_notes_date(name: str) -> None:
    for form in ("NFC", "NFD"):
        for ending in (".md", ".canvas", ".excalidraw.md"):
            assert day(f"Some/where/{unicodedata.normalize(form, name)}{ending}") == MARCH


@pytest.mark.parametrize(
    "name",
    [
        "Taxes 2024", "2024", "2026-03", "2026-W10", "2026 goals", "v1.2.2026", "v2026.03.09", "Version 2026.03.09",
        "v2026-03-09", "2026-02-30", "20261301", "2026-13-01", "a20260309b", "120260309", "202603099999",
        "09.03.2026",
        "9 March 2026", "1.2026.03.09", "3-16-148410-0", "260309", "", "Ada",
    ],
)  # fmt: skip
def test_what_is_no_day_leaves_the_date_unknown(name: str) -> None:
    assert day(f"{name}.md") == ""


def test_a_date_in_a_folders_name_is_not_the_notes() -> None:
    assert day("2026-03-09/Notes.md") == ""


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("DD-MM-YYYY", "09-03-2026"),
        ("DD-MM-YYYY", "09-03-2026 Ada"),
        ("D.M.YYYY", "Ada 9.3.2026"),
        ("YYYYMMDD", "20260309"),
        ("YYYY年M月D日", "2026年3月9日"),
        ("YYYY年M月D日", "日記2026年3月9日（月）"),
        ("YYYY년 M월 D일", unicodedata.normalize("NFD", "2026년 3월 9일")),
        ("MMMM Do, YYYY", "March 9th, 2026"),
        ("dddd, MMMM Do YYYY", "Monday, March 9th 2026"),
        ("ddd D MMM YYYY", "Mon 9 Mar 2026 with Ada"),
        ("dddd, D. MMMM YYYY", unicodedata.normalize("NFD", "Montag, 9. März 2026")),
        ("dddd D MMMM YYYY", "lundi 9 mars 2026"),
        ("dddd, D [de] MMMM [de] YYYY", "segunda-feira, 9 de março de 2026"),
        ("D MMMM YYYY", "9 марта 2026"),
        ("D. MMMM YYYY", "9. března 2026"),
        ("D MMM YYYY", "9 Mar. 2026"),
        ("YYYY年MMMMD日", "2026年三月9日"),
        ("[Journal of] YYYY-MM-DD", "Journal of 2026-03-09"),
        ("YYYY-DDDD", "2026-068"),
        ("YY-MM-DD", "26-03-09"),
        ("YYMMDD", "260309"),
        ("YYYY-MM-DD-[W]WW HHmm", "2026-03-09-W11 0915"),
        ("LL", "March 9, 2026"),
        ("DD-MM-YYYY", "2026-03-09 older"),
        ("YYYY/MM/YYYY-MM-DD", "2026/03/2026-03-09"),
        ("YYYY/MM-MMMM/DD dddd", "2026/03-March/09 Monday"),
        ("YYYY/MM/DD", "2026/03/09"),
        ("gggg/[W]ww/YYYY-MM-DD", "2026/W11/2026-03-09 Ada"),
    ],
)
@pytest.mark.parametrize("folder", ["", "Daily", "Journal/Daily notes/"])
def test_the_vaults_own_form_is_read(form: str, name: str, folder: str) -> None:
    place = f"{folder.rstrip('/')}/" if folder else ""
    assert day(f"{place}{name}.md", format=form, folder=folder) == MARCH


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("D.M.YYYY", "Daily/v9.3.2026.md"),
        ("D.M.YYYY", "Daily/Version 9.3.2026.md"),
        ("D.M.YYYY", "Daily/3.9.3.2026.md"),
        ("D.M.YYYY", "Daily/31.2.2026.md"),
        ("YYYY/MM/YYYY-MM-DD", "Daily/2026/04/Taxes 2026.md"),
        ("YYYY/MM/DD", "Daily/2026/March/09.md"),
        ("YYYY/MM/DD", "Elsewhere/2026/03/09 tips.md"),
        ("YYYY MMMM MM DD", "Daily/2026 April 03 09.md"),
        ("YYMMDD", "Numbers/260309.md"),
        ("YYMMDD", "Daily/Invoice 260309.md"),
        ("MMMM D", "Daily/March 9.md"),
        ("gggg-[W]ww", "Daily/2026-W11.md"),
        ("D MMMM YYYY", "Daily/9 Smarch 2026.md"),
        ("YYYY-DDDD", "Daily/2026-366.md"),
        ("[", "Daily/Ada.md"),
        ("", "Daily/Ada.md"),
    ],
)
def test_what_only_resembles_the_vaults_form_is_no_date(form: str, path: str) -> None:
    assert day(path, format=form, folder="Daily") == ""


@pytest.mark.parametrize(
    "form",
    [
        "YYYY-MM-DD", "D.M.YY", "dddd, MMMM Do YYYY", "ddd D MMM YYYY", "YYYY/MM MMMM/DD", "YYYYMMDDHHmmss",
        "YYYY-DDDo",
        "[Day] DDD [of] YYYY", "GGGG-[W]WW-E YYYY-MM-DD", "LLLL", "LL", "L", "Mo D YYYY h:mm a Z", "YY.MM.DD dd Q",
    ],
)  # fmt: skip
def test_what_obsidian_writes_is_read_again(form: str) -> None:
    for number in range(0, 800, 9):
        when = datetime(2026, 1, 1, 9, 5, 7).astimezone() + timedelta(days=number)
        name = moment.write(when, form)
        assert moment.find(name, form, at_home=True) == when.date(), name


# In the properties


@pytest.mark.parametrize(
    "value",
    [
        MARCH, "2026-03-09T10:00:00+09:00", "2026-03-09 23:59", "2026-3-9", "2026/03/09", "2026.03.09", "20260309",
        "09.03.2026", "9.3.2026", "09.03.2026 10:00", '"[[2026-03-09]]"', "[[2026-03-09]]",
        '"[[Daily/2026-03-09|Monday]]"',
        '"[[2026-03-09#Log]]"', "[2026-03-09, 2026-03-12]", '["[[2026-03-09]]", x]', "\n  - 2026-03-09\n  - x",
        '"March 9, 2026"', "9 March 2026", "9. März 2026", "03/30/2026", "30-03-2026", "２０２６/０３/０９",
        '"2026-03-09"',
    ],
)  # fmt: skip
def test_a_date_in_a_property_is_read_in_any_form_that_says_one_day(value: str) -> None:
    assert told(f"date: {value}") in (MARCH, "2026-03-30")


@pytest.mark.parametrize(
    "value",
    [
        "2026-02-30", "2026-13-01", "31.04.2026", "03/04/2026", "04-03-2026", "1773014400", "1773014400000", "2026",
        "2026-03", "soon", "true", "[]", "", "1.5", "{a: 2026-03-09}",
        '"{{date}}"', '"<% tp.date.now() %>"', '"[[Ada]]"',
        "99999999999999999999", "10:30",
    ],
)  # fmt: skip
def test_a_property_that_says_no_one_day_leaves_the_name_to_say_it(value: str) -> None:
    assert told(f"date: {value}") == ""
    assert told(f"date: {value}", "2026-03-09.md") == MARCH


def test_the_vaults_form_holds_in_properties_and_links_too() -> None:
    assert told("date: 03-04-2026", format="DD-MM-YYYY") == "2026-04-03"
    assert told('date: "[[Daily/2026/03/09]]"', format="YYYY/MM/DD", folder="Daily") == MARCH
    assert told("date: Monday, March 9th 2026", format="dddd, MMMM Do YYYY") == MARCH


@pytest.mark.parametrize(
    "name",
    ["date", "Date", "created", "Created At", "created_at", "created-at", "createdAt", "creation date", "date created",
     "day", "DATUM", "fecha", "日付"],
)  # fmt: skip
def test_usual_names_of_the_property(name: str) -> None:
    assert told(f"{name}: {MARCH}") == MARCH


@pytest.mark.parametrize("name", ["updated", "modified", "due", "birthday", "last edited", "started"])
def test_other_properties_are_no_date_of_the_note(name: str) -> None:
    assert told(f"{name}: {MARCH}") == ""


def test_names_that_the_person_lists_come_first() -> None:
    both = "date: 2020-01-01\nMet on: 2026-03-09"
    assert told(both) == "2020-01-01"
    assert told(both, properties=("met-on",)) == MARCH
    assert told("date: 2026-03-09\nMet on: soon", properties=("met on",)) == MARCH
    assert told("created: 2020-01-01\ndate: 2026-03-09") == MARCH


def test_a_property_goes_before_the_name() -> None:
    assert told("date: 2026-03-09", "2020-01-01.md") == MARCH


# Obsidian's settings


def settled(vault: Path, **files: Any) -> DateRules:
    toolkit.fill(vault, {f".obsidian/{name}": json.dumps(value) for name, value in files["files"].items()})
    return date_rules(vault)


def test_obsidians_settings_give_form_and_folders(vault: Path) -> None:
    rules = settled(
        vault,
        files={
            "daily-notes.json": {"folder": "Daily", "format": "D.M.YYYY", "template": "Forms/Day 2026-03-09"},
            "templates.json": {"folder": "Templates/"},
            "plugins/templater-obsidian/data.json": {"templates_folder": "Meta/Templater"},
        },
    )
    assert day_of("Daily/9.3.2026.md", {}, rules) == MARCH
    for template in (
        "Templates/x 2026-03-09.md",
        "templates/a/2026-03-09.md",
        "Meta/Templater/a.md",
        "Forms/Day 2026-03-09.md",
    ):
        assert day_of(template, {"date": MARCH}, rules) == ""
    assert day_of("Templates 2026-03-09.md", {}, rules) == MARCH


@pytest.mark.parametrize("folder", ["", "/", ".", None, 7])
def test_a_vault_without_a_folder_of_templates_has_dates(vault: Path, folder: object) -> None:
    rules = settled(vault, files={"templates.json": {"folder": folder}})
    assert day_of("2026-03-09.md", {}, rules) == MARCH


# In a search

TODAY = date.today().isoformat()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    toolkit.fill(
        tmp_path / "v",
        {
            "2026-03-09 Ada.md": "An axolotl.\n",
            "9.4.2026.md": "An axolotl.\n",
            "Undated.md": "An axolotl.\n",
            "Property.md": "---\nmet on: 2024-12-31\n---\nAn axolotl.\n",
            "Templates/2026-03-09.md": "An axolotl.\n",
        },
    )
    return Engine(tmp_path, model=None, dates=DatesSettings(("met on",)))


def found(engine: Engine, query: str) -> set[str]:
    return set(engine.found(f"axolotl {query}", "fts"))


def test_searches_ask_for_the_date_and_for_the_change_apart(engine: Engine) -> None:
    old = datetime(2025, 6, 15, 12).timestamp()
    os.utime(engine.vault / "Undated.md", (old, old))
    with engine:
        engine.index()
        ada = {"2026-03-09 Ada.md", "Templates/2026-03-09.md"}
        for query, expected in (
            ("on:2026-03-09", ada), ("on:2026-03", ada), ("on:2026", ada), ("on:2026-3", ada), ("on:2026-04", set()),
            ("on:2024", {"Property.md"}), ("before:2026", {"Property.md"}), ("after:2026-03", ada),
            ("after:2026-03-09", set()), (f"on:{TODAY}", set()), (f"after:{TODAY}",
            set()), ("before:9999-12-31", ada | {"Property.md"}),
            ("changed:2025", {"Undated.md"}), ("changed:2025-06-15", {"Undated.md"}), ("changed:<2025-06-16",
            {"Undated.md"}),
            ('changed:">2025-06-14" changed:<2025-07', {"Undated.md"}), ("changed:2025-07", set()),
        ):  # fmt: skip
            assert found(engine, query) == expected, query
        asked = engine.answer("axolotl", filters={"on": "2026-03", "changed": f">{2025}"}).hits
        assert {hit.note.path for hit in asked} == ada


def test_other_settings_of_obsidian_find_the_dates_anew(engine: Engine) -> None:
    with engine:
        engine.index()
        assert found(engine, "on:2026-04") == set()
        toolkit.fill(
            engine.vault,
            {
                ".obsidian/daily-notes.json": '{"format": "D.M.YYYY"}',
                ".obsidian/templates.json": '{"folder": "Templates"}',
            },
        )
        assert engine.index().changed == 5
        assert (found(engine, "on:2026-04"), found(engine, "on:2026-03")) == ({"9.4.2026.md"}, {"2026-03-09 Ada.md"})
        (engine.vault / ".obsidian/daily-notes.json").write_text('{"format": "D.M')
        assert engine.index().changed == 0
        engine.restart(dates=DatesSettings(()))
        engine.index()
        assert found(engine, "on:2024") == set()


def test_a_renamed_note_has_the_date_of_its_new_name(engine: Engine) -> None:
    with engine:
        engine.index()
        (engine.vault / "Undated.md").rename(engine.vault / "2023-01-02.md")
        engine.index()
        assert found(engine, "on:2023") == {"2023-01-02.md"}


def test_a_vault_without_dates_has_none_whatever_its_files_say(tmp_path: Path) -> None:
    toolkit.fill(tmp_path / "v", {f"n{number}.md": "An axolotl.\n" for number in range(3)})
    with Engine(tmp_path, model=None) as engine:
        engine.index()
        assert found(engine, "after:1000") == found(engine, "before:9999") == set()
        assert len(found(engine, f"changed:{time.strftime('%Y-%m')}")) == 3
