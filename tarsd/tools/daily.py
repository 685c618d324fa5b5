"""Today's note, where Obsidian would put it: its settings say the folder, the form of the name and the template."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from tarsd.errors import NotFound, Refused, ToolError
from tarsd.tools import moment
from tarsd.tools.base import Context, Tool, ToolProposal, tool
from tarsd.tools.changes import check_own, checked, propose
from tarsd.vault import Unreadable, content_hash, decode, nfc, read_file
from tarsd.writing import edits
from tarsd.writing.changes import Loaded
from tarsd.writing.notes import Notebook

FORMAT = "YYYY-MM-DD"
CLOCK = "HH:mm"
SETTINGS_BYTES = 1_000_000

_FIELD = re.compile(r"\{\{\s*(date|time|title|yesterday|tomorrow)\s*(?::\s*([^{}]*?)\s*)?\}\}", re.IGNORECASE)


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


def path_of(settings: DailySettings, when: datetime) -> str:
    """The path of the daily note of that day."""
    name = moment.write(when, settings.format or FORMAT).strip("/")
    folder = settings.folder.strip().strip("/")
    path = f"{folder}/{name}" if folder else name
    return nfc(path if path.lower().endswith(".md") else f"{path}.md")


def fill(template: str, when: datetime, title: str, form: str = FORMAT) -> str:
    """A template with its dates, time and title put in; whatever else is in braces stays."""

    def value(match: re.Match[str]) -> str:
        field, own = match[1].lower(), match[2]
        if field == "title":
            return title
        shift = {"yesterday": -1, "tomorrow": 1}.get(field, 0)
        usual = {"date": FORMAT, "time": CLOCK}.get(field, form)
        return moment.write(when + timedelta(days=shift), own or usual)

    return _FIELD.sub(value, template)


class DailyTools:
    """The tool that adds to today's note; `now` is the clock."""

    def __init__(self, notebook: Notebook, vault: Path, now: Callable[[], datetime]) -> None:
        self._notebook = notebook
        self._vault = vault
        self._now = now

    def tools(self) -> list[Tool]:
        """The one tool."""
        return [tool(self.daily_note_append, group="notes")]

    def daily_note_append(
        self,
        context: Context,
        text: Annotated[str, "Markdown text to add"],
        heading: Annotated[str, "Add it at the end of this section; empty: at the end of the note"] = "",
    ) -> ToolProposal:
        """Propose to add text to today's daily note, which is made if need be. The person says yes or no."""
        when = self._now()
        settings = read_settings(self._vault)
        path = path_of(settings, when)
        text, heading = checked(text, "daily_note_append"), heading.strip()
        self._notebook.vault.resolve(path)
        try:
            private = context.reader.open_path(path).local_only
        except NotFound:
            private = False
        except Refused:
            raise ToolError("The daily note is private and would leave this machine: it stays closed.") from None

        if self._notebook.exists(path):
            change = edits.append(self._notebook.load(path), text, heading)
        else:
            fresh = self._template(settings, when, path)
            change = edits.create(path, decode(edits.append(fresh, text, heading).after).text)
        check_own(change)
        title = f"Add to today's note {path}" if change.before is not None else f"Create today's note {path}"
        again = partial(self.daily_note_append, context, text, heading)
        return propose(change, title, f"Added to {path}.", context, again=again, private=private)

    def _template(self, settings: DailySettings, when: datetime, path: str) -> Loaded:
        """The new note before anything is added: its template, filled in."""
        text = ""
        if settings.template.strip():
            name = settings.template.strip().strip("/")
            name = name if name.lower().endswith(".md") else f"{name}.md"
            try:  # templates are left out of many vaults' search, and are templates all the same
                text = decode(read_file(str(self._notebook.vault.resolve(name, excluded=True)), SETTINGS_BYTES)).text
            except (NotFound, Unreadable):
                raise ToolError(
                    f"The template {name} of the daily notes cannot be read.",
                    "Choose another in Obsidian's settings for daily notes.",
                ) from None
        title = path.rpartition("/")[2].removesuffix(".md")
        text = fill(text, when, title, settings.format)
        raw = text.encode()
        return Loaded(path, raw, text, "utf-8", content_hash(raw))


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
            f"Obsidian's settings file {file.name} cannot be read, so it is not known where daily notes are.",
            "Open the vault in Obsidian and look at its settings for daily notes.",
        ) from None
