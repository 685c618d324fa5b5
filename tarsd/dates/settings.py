"""What Obsidian's settings say about dates: the folder and names of daily notes, and the folder of templates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tarsd.errors import NotFound, ToolError
from tarsd.vault import Unreadable, decode, read_file

FORMAT = "YYYY-MM-DD"
SETTINGS_BYTES = 1_000_000


@dataclass(frozen=True)
class DailySettings:
    """Where daily notes are: `folder` and `template` relative to the vault, `format` in the words of moment.js."""

    folder: str = ""
    format: str = FORMAT
    template: str = ""


def read_settings(vault: Path) -> DailySettings:
    """What Obsidian is set to: the Periodic Notes plugin if it is on, else the core plugin, else its defaults.

    Raises `ToolError` for a file that is there and cannot be read: a guess would put the note in a wrong place.
    """
    obsidian = vault / ".obsidian"
    community = _json(obsidian / "community-plugins.json")
    if isinstance(community, list) and "periodic-notes" in community:
        daily = _periodic(_json(obsidian / "plugins" / "periodic-notes" / "data.json"))
        if daily is not None:
            return daily
    core = _json(obsidian / "core-plugins.json")
    if (isinstance(core, list) and "daily-notes" not in core) or (
        isinstance(core, dict) and core.get("daily-notes") is False
    ):
        return DailySettings()
    return _settings(_json(obsidian / "daily-notes.json"))


def template_folders(vault: Path) -> tuple[str, ...]:
    """The folders of templates, of the core plugin and of Templater. Raises as `read_settings`."""
    files = (("templates.json", "folder"), ("plugins/templater-obsidian/data.json", "templates_folder"))
    loaded = ((_json(vault / ".obsidian" / file), name) for file, name in files)
    found = (values.get(name) for values, name in loaded if isinstance(values, dict))
    return tuple(folder for folder in found if isinstance(folder, str) and folder.strip("/ ."))


def _periodic(data: Any) -> DailySettings | None:
    """The daily notes of the Periodic Notes plugin, old form or new; None when it does not make them."""
    if not isinstance(data, dict):
        return None
    daily = data.get("daily")
    sets = data.get("calendarSets")
    if not isinstance(daily, dict) and isinstance(sets, list):
        calendars = [calendar for calendar in sets if isinstance(calendar, dict)]
        chosen = next((calendar for calendar in calendars if calendar.get("id") == data.get("activeCalendarSet")), None)
        daily = (chosen or (calendars[0] if calendars else {})).get("day")
    if not isinstance(daily, dict) or not daily.get("enabled"):
        return None
    return _settings(daily)


def _settings(raw: Any) -> DailySettings:
    values = raw if isinstance(raw, dict) else {}

    def text(*names: str) -> str:
        return next((values[name] for name in names if isinstance(values.get(name), str)), "")

    return DailySettings(text("folder"), text("format").strip() or FORMAT, text("template", "templatePath"))


def _json(file: Path) -> Any:
    """What is in a settings file, None when it is not there."""
    try:
        return json.loads(decode(read_file(str(file), SETTINGS_BYTES)).text)
    except NotFound:
        return None
    except (Unreadable, ValueError, RecursionError):
        raise ToolError(
            f"Obsidian's settings file {file.name} cannot be read, so the place of daily notes is unknown.",
            "Open the vault in Obsidian and check its settings for daily notes.",
        ) from None
