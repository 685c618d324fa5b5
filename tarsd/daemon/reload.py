"""New settings while the daemon runs: the config file is watched, and a valid one comes into force.

The daemon's parts are built anew for it, behind the same socket; a fault leaves the settings as they were. So does a
file that has become empty or is gone, as one is for a moment while it is saved: to take the defaults then would open
what the file keeps private.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

from tarsd.config import Config
from tarsd.errors import ConfigError
from tarsd.vault import stamp_of

LOOK_S = 2.0
CALM_S = 0.3
"""A file is read once it has been the same for so long."""
URGENT_S = 3.0
"""What is to be private is kept from an answer that is being given at the latest after this."""
MANY = 3

SAVED = "It is read again once you save it."

Say = Callable[[str, str], None]
Signature = tuple[int, int, int] | None

log = logging.getLogger(__name__)


class ConfigReloader:
    """Watches the config file of a daemon that began with `config`; `load` reads it as at the start.

    One for the whole life of the daemon: what is saved while its parts are built anew is not missed.
    """

    def __init__(self, config: Config, load: Callable[[], Config]) -> None:
        self._config = config
        self._file = config.paths.config_file
        self._load = load
        self._seen: Signature = None
        self._there = _is_written(self._file)
        # it may have been saved since it was read
        self._asked = asyncio.Event()
        self._asked.set()

    def ask(self) -> None:
        """Look now, whatever the file's date says."""
        self._asked.set()

    def refuse(self, config: Config) -> None:
        """The daemon could not be built for the last settings, and goes on with these."""
        self._config = config

    async def wait(self, say: Say, busy: Callable[[], bool]) -> Config:
        """Wait until there are new settings and no answer is running; problems are reported.

        `say(reason, hint)` shows a problem, and with two empty texts that there is none any more.
        """
        while True:
            await self._changed()
            config = await self._read(say)
            if config is None or await self._more_while_busy(config, say, busy):
                continue
            log.info("the settings have changed")
            self._config = config
            return config

    async def _changed(self) -> None:
        """Until the file is another one, and has come to rest."""
        while not self._asked.is_set() and _signature(self._file) == self._seen:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._asked.wait()
        now = _signature(self._file)
        while now != self._seen:
            self._seen = now
            await asyncio.sleep(CALM_S)
            now = _signature(self._file)
        self._asked.clear()

    async def _read(self, say: Say) -> Config | None:
        """The settings, None where they are the same, have faults, or are not there any more."""
        if self._there and not _is_written(self._file):
            say(f"{self._file} is missing or empty; the previous settings stay in force.", SAVED)
            return None
        try:
            config = await asyncio.to_thread(self._load)
        except ConfigError as error:
            log.warning("the config has faults", extra={"faults": len(error.problems)})
            shown = " · ".join(error.problems[:MANY])
            say(f"The config has errors, so the previous settings stay in force: {shown}", SAVED)
            return None
        self._there = _is_written(self._file)
        if config.vault != self._config.vault:
            say("The config now names another vault; this daemon keeps its own.", "Restart it: tarsd stop.")
            return None
        say("", "")
        return config if config != self._config else None

    async def _more_while_busy(self, config: Config, say: Say, busy: Callable[[], bool]) -> bool:
        """Wait until no answer is running; whether the file was saved again meanwhile."""
        waited = 0.0
        while busy() and not (config.privacy != self._config.privacy and waited >= URGENT_S):
            say("New settings wait until the current answer is finished.", "Nothing to do.")
            await asyncio.sleep(CALM_S)
            waited += CALM_S
            if self._asked.is_set() or _signature(self._file) != self._seen:
                return True
        return False


def _signature(file: Path) -> Signature:
    try:
        about = os.stat(file)
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, stamp_of(about)


def _is_written(file: Path) -> bool:
    """Whether something is there, readable or not."""
    try:
        return file.stat().st_size > 0 and not (file.is_file() and not file.read_bytes().strip())
    except OSError:
        return os.path.lexists(file)
