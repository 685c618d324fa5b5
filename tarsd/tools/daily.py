"""Today's note, where Obsidian would put it: its settings say the folder, the form of the name and the template."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

from tarsd.dates import moment
from tarsd.dates.settings import FORMAT, SETTINGS_BYTES, DailySettings, read_settings
from tarsd.errors import NotFound, Refused, ToolError
from tarsd.tools.base import Context, Tool, ToolProposal, tool
from tarsd.tools.changes import check_own, checked, propose
from tarsd.vault import Unreadable, content_hash, decode, nfc, read_file
from tarsd.writing import edits
from tarsd.writing.changes import Loaded
from tarsd.writing.notes import Notebook

CLOCK = "HH:mm"

_FIELD = re.compile(r"\{\{\s*(date|time|title|yesterday|tomorrow)\s*(?::\s*([^{}]*?)\s*)?\}\}", re.IGNORECASE)


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
            raise ToolError("The daily note is private and would leave this machine, so it is not opened.") from None

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
