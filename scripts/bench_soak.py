"""A soak run: everything at once for minutes. Then the index is what a fresh build is, and nothing has grown."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import random
import re
import shutil
import socket
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from bench import Daemon, Unix
from bench_hands import TOKEN, Asker, Hands, Model, Talker, Tally, look, make_vault, misbehave

NOTES = 500
CHILDREN = 3
"""Two that parse many notes, and one of the model; they end when there is nothing to do."""

EACH_S = 5.0
READERS, TALKERS = 2, 2
GROWTH = 1.10
"""How much more the last fifth of a run may take than the second one; the first one is for warming up."""

EXPECTED: dict[str, str] = {
    "InotifyEmitter.queue_events() called when the thread is inactive": "the watch ends while an event is on its way",
    "cannot listen on TCP": "the port of the parts before is still being given back when new ones are built",
}
"""Log lines of level error that may come, and why. All others fail the run."""

VARIANTS = (
    "",
    "[search]\nweight_vec = 1.1\n",
    "[chunk]\ntokens = 180\n",
    '[vault]\nexclude = ["harbour/"]\n',
    "[chat]\nrounds = 4\n",
    "[vault]\ninclude_comments = true\n",
    '[privacy]\nlocal_only = ["ferry/", "#rope"]\n',
    "[watch]\ndebounce_s = 0.1\n",
)
FAULT = '[chat]\nrounds = "many"\n'


def unix(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(str(path))
    return connection


class Soak:
    """One run on `vault`, with everything below `scratch`."""

    def __init__(self, vault: Path, scratch: Path, model: Model, seed: int, embedding: str) -> None:
        self.vault, self.scratch, self.model, self.embedding = vault, scratch, model, embedding
        self.home = scratch / "h"
        self.home.mkdir()
        self.rng = random.Random(seed)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.variant = ""
        self.settle("")
        self.tally = Tally()
        self.daemon = Daemon(vault, self.home, embedding)
        self.hands = Hands(vault, random.Random(seed + 1), self.tally)
        self.stopping = threading.Event()
        self.samples: list[dict[str, float]] = []

    # -------------------------------------------------------------------------------------------- the daemon

    def settle(self, text: str) -> None:
        """Save the config as an editor does, whole."""
        http = f"\n[http]\nenabled = true\nport = {self.port}\n"
        chat = self.model.config()
        if text.startswith("[chat]"):  # a table stands once in a file
            chat, text = chat.replace("[chat]\n", text, 1), ""
        fresh = self.home / "config.new"
        fresh.write_text(chat + http + text, encoding="utf-8")
        os.replace(fresh, self.home / "config.toml")

    def connect(self, tcp: bool) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60) if tcp else Unix(self.daemon.socket)

    def door(self, tcp: bool) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=5) if tcp else unix(self.daemon.socket)

    def asker(self) -> Asker:
        return Asker(self.connect, self.tally, random.Random(self.rng.random()))

    # -------------------------------------------------------------------------------------------- all at once

    def work(self, seconds: float) -> None:
        """Everything at once for so long."""
        vandal = random.Random(self.rng.random())
        jobs: list[tuple[Callable[[], None], float]] = [
            (self.hands.step, 0.15),
            (lambda: misbehave(self.door, vandal), 0.3),
        ]
        for _ in range(READERS):
            jobs.append((functools.partial(look, self.asker(), self.hands), 0.1))
        jobs += [(Talker(self.asker(), f"talker{number}").step, 0.3) for number in range(TALKERS)]
        threads = [threading.Thread(target=self.loop, args=job, daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        settings = time.monotonic() + 20
        while time.monotonic() < end:
            time.sleep(EACH_S)
            self.samples.append(self.sample())
            if time.monotonic() > settings:
                settings = time.monotonic() + 25
                self.change_settings()
            if self.daemon.process.poll() is not None:
                raise SystemExit(f"the daemon ended by itself with {self.daemon.process.returncode}")
        self.stopping.set()
        for thread in threads:
            thread.join(120)
            if thread.is_alive():
                self.tally.wrong.append("a client did not come to an end in 120 s")

    def loop(self, step: Callable[[], None], mean_s: float) -> None:
        rng = random.Random(mean_s)
        while not self.stopping.is_set():
            try:
                step()
            except Exception as error:  # a fault of the soak itself must be seen, too
                self.tally.wrong.append(f"the soak failed: {type(error).__name__} {error}")
            time.sleep(rng.expovariate(1 / mean_s))

    def change_settings(self) -> None:
        if self.rng.random() < 0.25:
            self.settle(FAULT)
            self.tally.count("settings: faulty")
            return
        self.variant = self.rng.choice([one for one in VARIANTS if one != self.variant])
        self.settle(self.variant)
        self.tally.count("settings: changed")

    def sample(self) -> dict[str, float]:
        """What the daemon takes now."""
        pids = self.daemon.pids()
        own = status_of(pids[0])
        return {
            "MB, daemon": own.get("VmRSS", 0) / 1024,
            "MB, with children": sum(status_of(pid).get("VmRSS", 0) for pid in pids) / 1024,
            "MB of memory of its own": own.get("RssAnon", 0) / 1024,
            "threads": own.get("Threads", 0),
            "descriptors": count(Path(f"/proc/{pids[0]}/fd")),
            "children": len(pids) - 1,
            "MB, databases": megabytes(self.home, "*.db"),
            "MB, write-ahead logs": megabytes(self.home, "*.db-wal"),
            "MB, log files": megabytes(self.home, "*.log*"),
        }

    # -------------------------------------------------------------------------------------------- afterwards

    def calm(self) -> None:
        """Until the daemon has nothing to do any more."""
        self.settle(self.variant)
        time.sleep(6)  # the watch and the settings have seen all

        def ready(status: Any) -> bool:
            return indexed(status) and bool(status["chat"]["state"] == "ready")

        for _ in range(3):
            self.daemon.wait(ready, 300)
            time.sleep(1)

    def fresh(self) -> Path:
        """The home of a daemon that built its index of the same vault anew, with the same settings."""
        home = self.scratch / "f"
        home.mkdir()
        shutil.copy(self.home / "config.toml", home)
        shutil.copytree(self.home / "state", home / "state")  # it knows which notes are conversations
        (home / "cache").mkdir()  # a passage keeps the vector that it got under an earlier name of its note
        shutil.copy(self.home / "cache" / "embeddings.db", home / "cache")
        built = Daemon(self.vault, home, self.embedding)
        try:
            built.wait(indexed, 300)
        finally:
            built.stop()
        return home

    def log_lines(self) -> list[dict[str, Any]]:
        logs = (self.home / "logs").glob("*.log*")
        return [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()]


def indexed(status: Any) -> bool:
    """Whether a daemon has indexed all, as its status says; the texts that no model can read remain for ever."""
    return bool(status["behind"] == 0 and status["embedding"]["state"] in ("ready", "complete"))


def status_of(pid: int) -> dict[str, int]:
    """The numbers of /proc/PID/status; sizes are kB."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    return {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE)}


def megabytes(folder: Path, pattern: str) -> float:
    total = 0
    for path in folder.rglob(pattern):
        with contextlib.suppress(OSError):  # it went a moment ago
            total += path.stat().st_size
    return total / 1e6


def count(folder: Path) -> int:
    try:
        return len(list(folder.iterdir()))
    except OSError:
        return 0


def dump(home: Path) -> Any:
    """The index of a home in canonical form."""
    from tarsd.store import Store
    from tests.support import index_dump

    (index,) = home.glob("cache/*/index.db")
    store = Store(index, home / "cache" / "embeddings.db")
    try:
        problems = store.check()
        return index_dump.dump(store), problems
    finally:
        store.close()


class Table:
    """The figures, a line each, with a verdict."""

    def __init__(self) -> None:
        self.failed = False
        print("| what | second fifth | last fifth | ratio | verdict |\n|---|---|---|---|---|", flush=True)

    def grown(self, what: str, values: Sequence[float], *, most: float, slack: float) -> None:
        """Two medians; `slack` is what may be added whatever the ratio."""
        fifth = max(1, len(values) // 5)
        early, late = statistics.median(values[fifth : 2 * fifth] or values), statistics.median(values[-fifth:])
        ratio = late / early if early else 1.0
        self.line(what, f"{early:.1f}", f"{late:.1f}", f"{ratio:.2f}", late <= max(early * most, early + slack))

    def course(self, what: str, values: Sequence[float]) -> None:
        """The median of each fifth."""
        fifth = max(1, len(values) // 5)
        medians = [f"{statistics.median(values[at : at + fifth]):.0f}" for at in range(0, len(values), fifth)]
        print(f"| {what}, by fifths | | {', '.join(medians)} | | |")

    def line(self, what: str, first: str, second: str, ratio: str, fine: bool) -> None:
        self.failed |= not fine
        print(f"| {what} | {first} | {second} | {ratio} | {'OK' if fine else 'FAILED'} |", flush=True)

    def all_of(self, what: str, wrong: Iterable[str]) -> None:
        """Nothing may be wrong; the first few are shown."""
        found = list(wrong)
        self.line(what, "", f"{len(found)} wrong" if found else "all right", "", not found)
        for one in list(dict.fromkeys(found))[:12]:
            print(f"|   {one[:300]} | | | | |")


def soak(minutes: float, source: Path | None, embedding: str, seed: int) -> int:
    """The exit code of a run."""
    scratch = Path(tempfile.mkdtemp(prefix="ts"))
    print(f"seed {seed}, {minutes:g} minutes, {embedding} vectors", flush=True)
    try:
        vault = scratch / "v"
        if source is None:
            make_vault(vault, Path(str(package_files("tarsd"))) / "data" / "sample-vault", random.Random(seed), NOTES)
        else:
            shutil.copytree(source, vault, symlinks=True)
        with Model(seed) as model:
            os.environ |= {
                "TARSD_TCP_KEY": TOKEN,
                "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
                **model.env(),
            }
            run = Soak(vault, scratch, model, seed, embedding)
            try:
                run.daemon.wait(lambda status: status["behind"] == 0, 300)
                run.work(60 * minutes)
                run.calm()
                rest = run.sample()
            finally:
                run.daemon.stop()
            return judge(run, rest)
    finally:
        if not os.environ.get("TARSD_SOAK_KEEP"):
            shutil.rmtree(scratch, ignore_errors=True)


def judge(run: Soak, rest: dict[str, float]) -> int:
    """Print the table; 1 when a line has failed."""
    tally, table = run.tally, Table()
    for what in [name for name in run.samples[0] if "children" not in name]:
        most, slack = (GROWTH, 3.0) if what in ("threads", "descriptors") else (GROWTH, 0.0)
        if what in ("MB, databases", "MB, write-ahead logs", "MB, log files"):  # bounded by their own rules
            most, slack = 1.5, 10.0
        table.grown(what, [sample[what] for sample in run.samples], most=most, slack=slack)
    for what in ("MB, daemon", "MB, with children"):
        table.course(what, [sample[what] for sample in run.samples])
    most_children = max(sample["children"] for sample in run.samples)
    table.line("children at most", "", f"{most_children:.0f}", "", most_children <= CHILDREN)
    kept = f"{rest['MB, daemon']:.0f} MB, {rest['threads']:.0f} threads, {rest['descriptors']:.0f} descriptors"
    print(f"| at rest | | {kept} | | |")
    for what, number in sorted(tally.done.items()):
        print(f"| {what} | | {number} | | |")
    statuses = ", ".join(f"{number} × {status}" for status, number in sorted(tally.replies.items()))
    table.all_of(f"answers: {statuses}", tally.wrong)
    lines = run.log_lines()
    renewals = [
        datetime.fromisoformat(line["time"]).timestamp()
        for line in lines
        if line["event"] == "the settings have changed"
    ]
    table.all_of(
        f"{len(tally.cuts)} not answered over TCP while {len(renewals)} new settings came into force",
        tally.unexplained(renewals),
    )
    table.all_of(f"{len(run.hands.texts)} notes are as they were written", run.hands.damaged())
    text = "".join(path.read_text("utf-8") for path in run.vault.glob("Written/*.md"))
    table.all_of(f"{len(tally.no)} refused changes were not made", [mark for mark in tally.no if mark in text])
    there = set(re.findall(r"tok\d+x", text))
    table.line("changes of the model", f"{len(tally.yes)} allowed", f"{len(there)} there", "", there <= tally.yes)
    table.line(
        "exit code after SIGTERM", "", str(run.daemon.process.returncode), "", run.daemon.process.returncode == 0
    )
    mine, problems = dump(run.home)
    built, _ = dump(run.fresh())
    table.all_of("the index is sound", map(str, problems))
    for part in ("files", "chunks", "links", "keywords", "vectors"):
        ours, theirs = Counter(getattr(mine, part)), Counter(getattr(built, part))
        table.all_of(
            f"{part} as in a fresh build ({theirs.total():,})",
            [f"only here: {row!r}" for row in ours - theirs] + [f"only fresh: {row!r}" for row in theirs - ours],
        )
    for event, number in Counter(
        f"{line['level']}: {line['event']}" for line in lines if line["level"] != "info"
    ).items():
        print(f"| log: {event[:100]} | | {number} | | |")
    bad = [line for line in lines if line["level"] in ("error", "critical")]
    unknown = [json.dumps(line) for line in bad if not any(known in line["event"] for known in EXPECTED)]
    table.all_of(f"{len(lines)} log lines, {len(bad)} errors, all explained", unknown)
    return int(table.failed)
