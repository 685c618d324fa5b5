"""New settings while the daemon runs: the config file is looked at, and what is sound in it comes into force.

The daemon's parts are built anew for it, behind the same socket; a fault leaves the settings as they were.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from tarsd.config import Config
from tarsd.errors import ConfigError

LOOK_S = 2.0
CALM_S = 0.2
MANY = 3

Say = Callable[[str, str], None]
Signature = tuple[int, int, int] | None

log = logging.getLogger(__name__)


class Renewal:
    """Watches the config file of a daemon that runs with `config`; `load` reads it as at the start."""

    def __init__(self, config: Config, load: Callable[[], Config]) -> None:
        self._config = config
        self._load = load
        self._seen = _signature(config.paths.config_file)
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Look now, whatever the file's date says."""
        self._asked.set()

    async def wait(self, say: Say, busy: Callable[[], bool]) -> Config:
        """Until there are settings that differ, and nobody is being answered; what keeps them out is said.

        `say(reason, hint)` shows a problem, and with two empty texts that there is none any more.
        """
        while True:
            config = await self._next(say)
            if config is None:
                continue
            if config.vault != self._config.vault:
                say("The config names another vault now; this daemon goes on with its own.", "Restart it: tarsd stop.")
                continue
            while busy():
                say("New settings wait for the answer that is being given.", "Nothing to do.")
                await asyncio.sleep(CALM_S)
            log.info("the settings have changed")
            return config

    async def _next(self, say: Say) -> Config | None:
        """The settings once the file has changed, None where they are the same or have faults."""
        while not self._asked.is_set() and _signature(self._config.paths.config_file) == self._seen:
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._asked.wait()
            except TimeoutError:
                pass
        self._asked.clear()
        self._seen = _signature(self._config.paths.config_file)
        try:
            config = await asyncio.to_thread(self._load)
        except ConfigError as error:
            log.warning("the config has faults", extra={"faults": len(error.problems)})
            shown = " · ".join(error.problems[:MANY])
            say(
                f"The config has faults, and the settings from before are in force: {shown}",
                "Mend it; it is read at once.",
            )
            return None
        say("", "")
        return None if config == self._config else config


def _signature(file: Path) -> Signature:
    try:
        about = os.stat(file)
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino
