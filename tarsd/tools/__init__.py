"""What a model can do besides talking: notes, memory, to-dos, the weather, and the tools of MCP servers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from tarsd.config import Config
from tarsd.errors import TarsdError
from tarsd.memory import Memory
from tarsd.tools.base import Context, Result, Tool, ToolProposal, tool
from tarsd.tools.catalog import Toolbox
from tarsd.tools.daily import DailyTools
from tarsd.tools.notes import NoteTools
from tarsd.tools.query import QueryTools
from tarsd.tools.remember import MemoryTools
from tarsd.tools.skills import Skills
from tarsd.tools.tasks import TaskTools
from tarsd.tools.todoist import TodoistTools
from tarsd.tools.weather import WeatherTools
from tarsd.writing.notes import Notebook

__all__ = ["Context", "Result", "Tool", "ToolProposal", "Toolbox", "build", "tool"]

log = logging.getLogger(__name__)


def build(
    config: Config,
    notebook: Notebook,
    memory: Memory | None,
    key: Callable[[str], str | None],
    *,
    skills: Skills | None = None,
    now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
) -> list[Tool]:
    """All native tools whose conditions hold: memory is on, Todoist has a token, the weather has a place.

    `key` gives a key by its name and may raise ConfigError; `now` is the clock, in local time.
    """
    notes = NoteTools(notebook, config.memory_folder, include_comments=config.include_comments)
    tools = [*notes.tools(), *DailyTools(notebook, config.vault, now).tools()]
    tools += [*QueryTools(now).tools(), *TaskTools(notes, now).tools()]
    tools += skills.tools() if skills is not None else []
    if memory is not None and config.memory.enabled:
        tools += MemoryTools(memory).tools()
    if _has_token(key):
        tools += TodoistTools(lambda: key("todoist"), config.tools.todoist_url, config.tools.ca_file).tools()
    if config.tools.weather_place.strip():
        tools += WeatherTools(config.tools).tools()
    return tools


def _has_token(key: Callable[[str], str | None]) -> bool:
    try:
        return bool(key("todoist"))
    except TarsdError as error:
        log.warning("there is no Todoist: the keys cannot be read", extra={"code": error.code})
        return False
