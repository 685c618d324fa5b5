"""SIGKILL at random moments of a first index: every restart goes on, and the end equals a fresh index."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tarsd.client import Client
from tarsd.config import load
from tarsd.errors import NoDaemon
from tarsd.store import Store
from tests.support.index_dump import dump

KILLS = 20
WORDS = re.findall(
    r"\w+", "anchor beacon cable drift ebb fathom galley harbour inlet jetty keel lantern mooring oar pier"
)


def generate(vault: Path, notes: int) -> None:
    """Notes with headings, links, properties and enough text for several chunks each."""
    rng = random.Random(11)
    (vault / ".obsidian").mkdir(parents=True)
    for number in range(notes):
        folder = vault / f"Area {number % 17}" / f"Topic {number % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["---", f"tags: [t{number % 9}]", f"aliases: [Alias {number}]", "---", f"# Note {number}"]
        for section in range(rng.randrange(1, 5)):
            lines.append(f"## Section {section}")
            lines.append(" ".join(rng.choice(WORDS) for _ in range(rng.randrange(20, 160))))
            lines.append(f"See [[Note {rng.randrange(notes)}]] and [[Alias {rng.randrange(notes)}|that one]].")
        (folder / f"Note {number}.md").write_text("\n".join(lines), encoding="utf-8")


def start(vault: Path, home: Path) -> subprocess.Popen[bytes]:
    env = os.environ | {"TARSD_HOME": str(home), "TARSD_EMBEDDING": "table"}
    return subprocess.Popen(
        [sys.executable, "-c", "from tarsd.cli import main; main()", "run", "--vault", str(vault)],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def behind(vault: Path, home: Path) -> int | None:
    """Notes still to be indexed, None while nobody answers."""
    client = Client(load(vault=vault, env={"TARSD_HOME": str(home)}).paths.socket)
    try:
        count = client.get("/v1/status")["behind"]
    except NoDaemon:
        return None
    assert isinstance(count, int)
    return count


def finish(vault: Path, home: Path) -> None:
    """Runs a daemon until its index is complete, then stops it properly."""
    process = start(vault, home)
    try:
        end = time.monotonic() + 100
        while behind(vault, home) != 0:
            assert process.poll() is None, "the daemon died"
            assert time.monotonic() < end, "the index was not finished"
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def index_of(vault: Path, home: Path) -> object:
    paths = load(vault=vault, env={"TARSD_HOME": str(home), "TARSD_EMBEDDING": "table"}).paths
    store = Store(paths.index_db, paths.embeddings_db)
    try:
        return dump(store)
    finally:
        store.close()


def test_sigkill_during_first_index(short_tmp: Path) -> None:
    named = os.environ.get("TARSD_BENCH")
    vault = short_tmp / "v"
    if named:
        shutil.copytree(named, vault)
    else:
        generate(vault, 3000)
    before = {p: p.read_bytes() for p in vault.rglob("*") if p.is_file()}
    rng = random.Random(os.environ.get("TARSD_SEED", "5"))
    home = short_tmp / "h"
    kills = amid = 0
    while kills < KILLS:
        process = start(vault, home)
        # Half of the kills are aimed by time, half wait until indexing has visibly begun.
        time.sleep(rng.uniform(0.2, 1.2))
        if kills % 2:
            end = time.monotonic() + 20
            while behind(vault, home) is None and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.4))
        left = behind(vault, home)
        process.kill()
        process.wait()
        kills += 1
        amid += left is not None and left > 0
        if left == 0 and kills < KILLS:  # complete already: begin a new first index
            shutil.rmtree(home)
    assert amid >= 5, "too few kills fell into the index run to mean anything"
    finish(vault, home)
    fresh = short_tmp / "f"
    finish(vault, fresh)
    assert index_of(vault, home) == index_of(vault, fresh)
    assert {p: p.read_bytes() for p in vault.rglob("*") if p.is_file()} == before
