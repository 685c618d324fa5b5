"""Today's note: where Obsidian's settings put it, what its name and template become, and what is added to it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tarsd.dates import moment
from tarsd.dates.settings import DailySettings, read_settings
from tarsd.errors import ToolError
from tarsd.tools import Toolbox, ToolProposal
from tarsd.tools.base import NotAsShown
from tarsd.tools.daily import DailyTools, fill, path_of
from tests.support import toolkit
from tests.support.toolkit import Desk, Notes

NOW = datetime.fromisoformat("2026-11-28T14:03:07+01:00")


@pytest.fixture
def desk(vault: Path) -> Desk:
    notes = Notes(vault)
    return Desk(notes, Toolbox(DailyTools(notes.notebook, vault, lambda: NOW).tools()))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("YYYY-MM-DD", "2026-11-28"),
        ("YYYY/MM MMMM/DD", "2026/11 November/28"),
        ("dddd, Do MMMM YYYY", "Saturday, 28th November 2026"),
        ("gggg-[W]ww", "2026-W48"),
        ("GGGG-[W]WW-E", "2026-W48-6"),
        ("[Journal of] D. M. YY", "Journal of 28. 11. 26"),
        ("ddd dd d DDD DDDD Q Qo", "Sat Sa 6 332 332 4 4th"),
        ("HH:mm:ss h:mm a A Z ZZ", "14:03:07 2:03 pm PM +01:00 +0100"),
        ("[]YYYY[", "2026["),
        ("日 YYYY年M月D日", "日 2026年11月28日"),
        ("LL", "November 28, 2026"),
    ],
)
def test_dates_are_written_as_obsidian_writes_them(pattern: str, expected: str) -> None:
    assert moment.write(NOW, pattern) == expected


@pytest.mark.parametrize(
    ("day", "local", "iso"),
    [
        ("2027-01-01", "2027-W01", "2026-W53"),
        ("2026-01-01", "2026-W01", "2026-W01"),
        ("2026-12-27", "2027-W01", "2026-W52"),
        ("2022-01-01", "2022-W01", "2021-W52"),
        ("2021-01-03", "2021-W02", "2020-W53"),
    ],
)
def test_the_weeks_around_new_year_have_the_year_they_belong_to(day: str, local: str, iso: str) -> None:
    when = datetime.fromisoformat(day)
    assert moment.write(when, "gggg-[W]ww") == local
    assert moment.write(when, "GGGG-[W]WW") == iso


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, DailySettings()),
        (
            {"daily-notes.json": {"folder": "Daily", "format": "", "template": "T/Day"}},
            DailySettings("Daily", "YYYY-MM-DD", "T/Day"),
        ),
        ({"daily-notes.json": {"folder": 7, "format": None}}, DailySettings()),
        ({"daily-notes.json": {"folder": "Daily"}, "core-plugins.json": ["search"]}, DailySettings()),
        ({"daily-notes.json": {"folder": "Daily"}, "core-plugins.json": {"daily-notes": False}}, DailySettings()),
        ({"daily-notes.json": {"folder": "Daily"}, "core-plugins.json": {"daily-notes": True}}, DailySettings("Daily")),
        (
            {
                "daily-notes.json": {"folder": "Daily"},
                "community-plugins.json": ["periodic-notes"],
                "plugins/periodic-notes/data.json": {"daily": {"enabled": True, "folder": "P", "format": "DD"}},
            },
            DailySettings("P", "DD"),
        ),
        (
            {
                "daily-notes.json": {"folder": "Daily"},
                "community-plugins.json": ["periodic-notes"],
                "plugins/periodic-notes/data.json": {"daily": {"enabled": False, "folder": "P"}},
            },
            DailySettings("Daily"),
        ),
        (
            {
                "daily-notes.json": {"folder": "Daily"},
                "community-plugins.json": [],
                "plugins/periodic-notes/data.json": {"daily": {"enabled": True, "folder": "P"}},
            },
            DailySettings("Daily"),
        ),
        (
            {
                "community-plugins.json": ["periodic-notes"],
                "plugins/periodic-notes/data.json": {
                    "activeCalendarSet": "b",
                    "calendarSets": [
                        {"id": "a", "day": {"enabled": True, "folder": "A"}},
                        {"id": "b", "day": {"enabled": True, "folder": "B", "templatePath": "T.md"}},
                    ],
                },
            },
            DailySettings("B", "YYYY-MM-DD", "T.md"),
        ),
    ],
)  # fmt: skip
def test_obsidians_settings_say_where_daily_notes_are(
    vault: Path, files: dict[str, Any], expected: DailySettings
) -> None:
    toolkit.fill(vault, {f".obsidian/{name}": json.dumps(value) for name, value in files.items()})
    assert read_settings(vault) == expected


def test_settings_that_cannot_be_read_are_no_reason_to_guess(vault: Path) -> None:
    toolkit.fill(vault, {".obsidian/daily-notes.json": '{"folder": "Da'})
    with pytest.raises(ToolError, match=r"daily-notes\.json cannot be read"):
        read_settings(vault)


def test_a_template_gets_its_dates_and_title() -> None:
    template = (
        "# {{title}}\n{{date}} {{ Time }} {{date:dddd, Do}} {{time:HH}} [[{{yesterday}}]] {{other}} {{ date : YY }}"
    )
    assert fill(template, NOW, "2026-11-28") == (
        "# 2026-11-28\n2026-11-28 14:03 Saturday, 28th 14 [[2026-11-27]] {{other}} 26"
    )


def test_the_name_may_hold_folders() -> None:
    assert path_of(DailySettings("Daily/", "YYYY/MM/YYYY-MM-DD"), NOW) == "Daily/2026/11/2026-11-28.md"
    assert path_of(DailySettings(), NOW) == "2026-11-28.md"


async def test_todays_note_is_made_from_its_template_and_then_added_to(desk: Desk) -> None:
    toolkit.fill(
        desk.notes.vault.root,
        {
            ".obsidian/app.json": '{"userIgnoreFilters": ["Templates/"]}',
            ".obsidian/daily-notes.json": '{"folder": "Daily", "template": "Templates/Day"}',
            "Templates/Day.md": "# {{title}}\n\n## Log\n\n## Done\n",
        },
    )
    asked = await desk.proposal("daily_note_append", text="- Bled the radiators", heading="Log")
    assert asked.title == "Create today's note Daily/2026-11-28.md"
    await asked.apply()
    assert desk.text("Daily/2026-11-28.md") == "# 2026-11-28\n\n## Log\n\n- Bled the radiators\n\n## Done\n"
    asked = await desk.proposal("daily_note_append", text="- Swept", heading="Log")
    assert asked.title == "Add to today's note Daily/2026-11-28.md"
    await asked.apply()
    assert "## Log\n\n- Bled the radiators\n- Swept\n\n## Done\n" in desk.text("Daily/2026-11-28.md")


async def test_todays_note_needs_no_settings(desk: Desk) -> None:
    await desk.do("daily_note_append", text="Rain.")
    assert desk.text("2026-11-28.md") == "Rain.\n"


async def test_a_daily_note_that_appears_or_goes_before_the_yes_is_shown_again(desk: Desk) -> None:
    asked = await desk.proposal("daily_note_append", text="Rain.")
    toolkit.fill(desk.notes.vault.root, {"2026-11-28.md": "Typed on the phone.\n"})
    with pytest.raises(NotAsShown) as other:
        await asked.apply()
    assert desk.text("2026-11-28.md") == "Typed on the phone.\n"
    asked = other.value.proposal
    assert asked.title == "Add to today's note 2026-11-28.md" and " Typed on the phone.\n" in asked.diff
    (desk.notes.vault.root / "2026-11-28.md").unlink()
    with pytest.raises(NotAsShown) as other:
        await asked.apply()
    assert other.value.proposal.title == "Create today's note 2026-11-28.md"
    await other.value.proposal.apply()
    assert desk.text("2026-11-28.md") == "Rain.\n"


async def test_a_daily_note_is_not_put_anywhere_but_in_the_vault(desk: Desk) -> None:
    for folder in ("../Out", ".trash", "/tmp"):
        toolkit.fill(desk.notes.vault.root, {".obsidian/daily-notes.json": json.dumps({"folder": folder})})
        try:
            asked = await desk.ask("daily_note_append", text="x")
        except ToolError:
            continue
        assert isinstance(asked, ToolProposal) and asked.change is not None
        assert asked.change.path == "tmp/2026-11-28.md"


async def test_a_missing_template_is_told(desk: Desk) -> None:
    toolkit.fill(desk.notes.vault.root, {".obsidian/daily-notes.json": '{"template": "Gone"}'})
    with pytest.raises(ToolError, match=r"The template Gone\.md of the daily notes cannot be read"):
        await desk.ask("daily_note_append", text="x")


async def test_private_text_goes_into_the_daily_note_only_when_the_person_was_told(desk: Desk) -> None:
    desk.private = True
    asked = await desk.proposal("daily_note_append", text="The code is 0000.")
    assert asked.exposes and "has read private notes" in asked.title
    toolkit.fill(desk.notes.vault.root, {"2026-11-28.md": "---\nlocal_only: true\n---\n"})
    asked = await desk.proposal("daily_note_append", text="The code is 0000.")
    assert not asked.exposes and "private notes" not in asked.title


async def test_a_private_daily_note_stays_closed_to_a_model_elsewhere(desk: Desk) -> None:
    toolkit.fill(
        desk.notes.vault.root,
        {
            ".obsidian/daily-notes.json": '{"folder": "Private"}',
            "Private/2026-11-28.md": "# Day\n\n## Doctor\n",
        },
    )
    desk.local = False
    with pytest.raises(ToolError, match="private") as error:
        await desk.ask("daily_note_append", text="x", heading="Nothing")
    assert "Doctor" not in error.value.hint
