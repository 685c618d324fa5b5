"""Memory over many saves of the config: a reload lets go of what it replaces."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

QUERIES = ("how often is the boat painted", "what does the harbour cost")
REST_S = 6.0


def memory_over_saves(daemon_on: Callable[[Path, Path, str], Any], scratch: Path, saves: int) -> Iterator[float]:
    """Resident MB of a daemon alone (MiniLM, sample vault, a few questions), at first and after each save."""
    vault, home = scratch / "reloads-vault", scratch / "reloads"
    shutil.copytree(Path(str(package_files("tarsd"))) / "data" / "sample-vault", vault)
    home.mkdir()
    daemon = daemon_on(vault, home, "minilm")
    try:
        daemon.wait(at_rest, 300)
        yield settled(daemon)
        for number in range(saves):
            fresh = home / "config.new"
            fresh.write_text(f"[chat]\nrounds = {4 + number % 4}\n", encoding="utf-8")
            os.replace(fresh, home / "config.toml")
            renewed(home / "logs", number + 1)
            daemon.wait(at_rest, 60)
            yield settled(daemon)
    finally:
        daemon.stop()


def at_rest(status: Any) -> bool:
    """Whether all is indexed and embedded."""
    return bool(status["behind"] == 0 and status["counts"]["notes"] and not status["embedding"]["remaining"])


def settled(daemon: Any) -> float:
    """MB of the daemon, children left out, after questions and a moment of rest."""
    for query in QUERIES:
        daemon.search(query)
    time.sleep(REST_S)
    return float(daemon.status()["process"]["rss_mb"])


def renewed(logs: Path, times: int) -> None:
    """Wait until the settings were renewed so often."""
    end = time.monotonic() + 30
    while sum(log.read_text("utf-8").count('"the settings have changed"') for log in logs.glob("*.log*")) < times:
        if time.monotonic() > end:
            raise SystemExit("the daemon did not take in the settings")
        time.sleep(0.2)
