"""The person's prompts as the socket lists them, and those that are offered, which become notes when asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tarsd.chat.prompt_folder import PromptFolder
from tarsd.errors import Conflict, NotFound
from tarsd.writing import Change, Notebook, create

OFFERED = Path(__file__).parents[1] / "data" / "prompts"

Json = dict[str, Any]


class PromptNotes:
    """What the routes of prompts do. `write` makes a change."""

    def __init__(self, folder: PromptFolder, notebook: Notebook, write: Callable[[Change], Awaitable[object]]) -> None:
        self._folder = folder
        self._notebook = notebook
        self._write = write

    def listing(self) -> Json:
        """The prompts of the vault; and those that are offered and not in it, each with the text of its note."""
        prompts = self._folder.listing()
        names = {prompt["name"] for prompt in prompts}
        offered = [
            {"name": file.stem, "path": f"{self._folder.folder}/{file.name}", "text": file.read_text(encoding="utf-8")}
            for file in sorted(OFFERED.glob("*.md"))
            if file.stem not in names
        ]
        return {"prompts": prompts, "offered": offered}

    async def add(self, name: str) -> Json:
        """Make a note of one that is offered. Raises `NotFound`, and `Conflict` where a prompt has its name."""
        change = await asyncio.to_thread(self._plan, name)
        await self._write(change)
        return {"path": change.path}

    def _plan(self, name: str) -> Change:
        files = {file.stem: file for file in OFFERED.glob("*.md")}
        if name not in files:
            raise NotFound(f"No prompt “{name[:80]}” is offered.", f"There are {', '.join(sorted(files))}.")
        path = f"{self._folder.folder}/{name}.md"
        if self._notebook.exists(path):
            raise Conflict(f"There is already a note at {path}.", f"Rename it to have the prompt /{name} as well.")
        return create(path, files[name].read_text(encoding="utf-8"))
