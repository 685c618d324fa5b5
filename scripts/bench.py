"""Speed and size of the daemon on a real vault, each row beside a reference measured in the same run.

The vault is copied first; the original is never written to. Rows are those of the design's table of aims.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy as np

BIN = Path(sys.executable).parent / "tarsd"
QUERIES = [
    "how to link notes together", "zettelkasten method", "daily notes template", "spaced repetition plugin",
    "dark theme for reading", "export to pdf", "calendar view of tasks", "sync between phone and laptop",
    "graph of connections", "backlinks", "kanban board", "citation manager zotero", "table editor", "mind map",
    "publish a digital garden", "vim keybindings", "dataview query", "community talk transcript", "css snippet",
    "academic writing workflow",
]  # fmt: skip


class Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("tarsd", timeout=120)
        self.socket_path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(120)
        self.sock.connect(str(self.socket_path))


class Daemon:
    """A daemon on `vault` with everything it keeps under `home`."""

    def __init__(self, vault: Path, home: Path, embedding: str) -> None:
        self.home = home
        env = os.environ | {"TARSD_HOME": str(home), "TARSD_EMBEDDING": embedding}
        env.pop("TARSD_CONFIG", None)
        self.env = env
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [str(BIN), "run", "--vault", str(vault)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not (found := list(home.glob("*.sock"))) or not self.answers(found[0]):
            if self.process.poll() is not None or time.perf_counter() - self.started > 60:
                raise SystemExit(f"the daemon did not start (exit code {self.process.returncode})")
            time.sleep(0.01)
        self.socket = found[0]
        self.listening_s = time.perf_counter() - self.started

    @staticmethod
    def answers(path: Path) -> bool:
        try:
            connection = Unix(path)
            connection.connect()
            connection.close()
        except OSError:
            return False
        return True

    def call(self, method: str, route: str, body: object = None) -> Any:
        connection = Unix(self.socket)
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, route, data, {"content-type": "application/json"})
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        if reply.status >= 300:
            raise SystemExit(f"{route}: HTTP {reply.status}: {text[:300]!r}")
        if reply.headers.get("content-type", "").startswith("application/x-ndjson"):
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        return json.loads(text)

    def status(self) -> Any:
        return self.call("GET", "/v1/status")

    def search(self, query: str, mode: str = "hybrid", limit: int = 10) -> Any:
        return self.call("POST", "/v1/search", {"query": query, "mode": mode, "limit": limit})

    def wait(self, ready: Callable[[Any], bool], seconds: float) -> Any:
        end = time.perf_counter() + seconds
        while not ready(status := self.status()):
            if time.perf_counter() > end:
                raise SystemExit(f"not ready after {seconds:.0f} s: {json.dumps(status)[:600]}")
            time.sleep(0.25)
        return status

    def pids(self) -> list[int]:
        """The daemon and its children, by /proc."""
        out = [self.process.pid]
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError):
                continue
            if parent == self.process.pid:
                out.append(int(stat.parent.name))
        return out

    def rss_mb(self) -> float:
        total = 0
        for pid in self.pids():
            try:
                text = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS"))
        return total / 1024

    def cpu_s(self) -> float:
        total = 0
        for pid in self.pids():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def row(what: str, value: str, reference: str, aim: str) -> None:
    print(f"| {what} | {value} | {reference} | {aim} |", flush=True)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def raw_read(files: list[Path]) -> list[str]:
    return [path.read_bytes().decode("utf-8", "replace") for path in files]


def raw_fts(texts: list[str], folder: Path) -> None:
    connection = apsw.Connection(str(folder / "raw.db"))
    connection.execute("PRAGMA journal_mode=wal; PRAGMA synchronous=normal")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(body, content='', tokenize='porter unicode61')")
    for start in range(0, len(texts), 64):
        with connection:
            connection.executemany("INSERT INTO t(body) VALUES (?)", ((t,) for t in texts[start : start + 64]))
    connection.close()


def raw_stat(root: Path) -> None:
    stack = [str(root)]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    entry.stat()


def first_index(vault: Path, scratch: Path, files: list[Path], runs: int) -> Daemon:
    """Starts `runs` fresh daemons one after the other; the last one stays up."""
    times, listening = [], []
    daemon: Daemon | None = None
    for number in range(runs):
        if daemon:
            daemon.stop()
            shutil.rmtree(daemon.home)
        home = scratch / f"h{number}"
        home.mkdir()
        os.sync()  # a vault that lies on the disk, not one that is still being written to it
        daemon = Daemon(vault, home, "table")
        daemon.wait(lambda s: s["behind"] == 0, 300)
        times.append(time.perf_counter() - daemon.started)
        listening.append(daemon.listening_s)
    assert daemon is not None
    texts: list[str] = []
    read = timed(lambda: texts.extend(raw_read(files)))
    fts = timed(lambda: raw_fts(texts, scratch))
    counts = daemon.status()["counts"]
    row(
        f"first index, table vectors: {counts['notes']:,} notes, {sum(map(len, texts)) / 1e6:.1f} MB, "
        f"{counts['chunks']:,} chunks",
        f"{statistics.median(times):.1f} s (of {', '.join(f'{t:.1f}' for t in times)})",
        f"reading {read:.2f} s, raw FTS5 insert {fts:.2f} s",
        "≤ 6 s",
    )
    row("start → socket answers", f"{statistics.median(listening) * 1e3:.0f} ms", "", "≤ 500 ms")
    return daemon


def reconcile(daemon: Daemon, vault: Path) -> None:
    times = [timed(lambda: daemon.call("POST", "/v1/reindex", {})) for _ in range(5)]
    walk = statistics.median(timed(lambda: raw_stat(vault)) for _ in range(5))
    row("reconcile, nothing changed", f"{statistics.median(times):.2f} s", f"bare stat walk {walk:.2f} s", "≤ 0.3 s")


def edits(daemon: Daemon, vault: Path, files: list[Path], count: int) -> None:
    rng = random.Random(7)
    times = []
    for number in range(count):
        path = rng.choice(files)
        word = f"zq{number}x{rng.randrange(10**9)}"
        text = path.read_text(encoding="utf-8", errors="replace")
        temporary = path.with_name(f".{path.name}.tmp")
        start = time.perf_counter()
        temporary.write_text(f"{text}\n\nThe new word is {word}.\n", encoding="utf-8")
        temporary.replace(path)
        while not daemon.search(word, "fts", 1)["hits"]:
            if time.perf_counter() - start > 20:
                raise SystemExit(f"edit {number} not searchable after 20 s")
            time.sleep(0.005)
        times.append(time.perf_counter() - start)
        time.sleep(rng.uniform(0.05, 0.4))
    row(
        f"saved → searchable, {count} edits",
        f"p50 {percentile(times, 0.5):.2f} s, p95 {percentile(times, 0.95):.2f} s",
        "debounce alone 0.2 s",
        "p50 ≤ 0.4 s, p95 ≤ 1 s",
    )


def query_times(daemon: Daemon, mode: str, rounds: int) -> list[float]:
    for query in QUERIES:
        daemon.search(query, mode)
    return [timed(lambda q=query: daemon.search(q, mode)) * 1e3 for _ in range(rounds) for query in QUERIES]


def queries(daemon: Daemon, name: str, width: int) -> float:
    chunks = daemon.status()["counts"]["chunks"]
    matrix = np.random.default_rng(0).standard_normal((chunks, width), dtype=np.float32)
    vector = matrix[0].copy()
    product = statistics.median(timed(lambda: matrix @ vector) * 1e3 for _ in range(15))
    times = query_times(daemon, "hybrid", 5)
    row(
        f"hybrid query over the socket, {name}, {chunks:,} chunks",
        f"p50 {percentile(times, 0.5):.1f} ms, p95 {percentile(times, 0.95):.1f} ms",
        f"numpy product {chunks:,} × {width}: {product:.1f} ms",
        "p50 ≤ 10 ms",
    )
    return percentile(times, 0.5)


def tables(daemon: Daemon, files: list[Path]) -> None:
    """Queries: over all notes, by a property of each, and on a condition that the index answers."""
    texts = raw_read(files)
    names = re.findall(r"(?m)^([A-Za-z][\w-]*): *\S", "\n".join(text[:500] for text in texts))
    dated = re.findall(r"(?m)^([A-Za-z][\w-]*): *[\"']?\d", "\n".join(text[:500] for text in texts))
    name = collections.Counter(names).most_common(1)[0][0] if names else "title"
    number = collections.Counter(dated).most_common(1)[0][0] if dated else name
    reading = timed(lambda: raw_read(files)) * 1e3
    every = f'note["{name}"].toString().contains("e") && file.name.length > 3'
    asked = {"every note": every, "the index alone": f'note["{number}"] == date("2021-05-04")'}
    for what, where in asked.items():
        body = {"where": where, "columns": ["file.name", f'note["{name}"]'], "sort": ["file.name"], "limit": 50}
        first = timed(lambda body=body: daemon.call("POST", "/v1/query", body)) * 1e3
        times = [timed(lambda body=body: daemon.call("POST", "/v1/query", body)) * 1e3 for _ in range(15)]
        row(
            f"query over the socket, {what}, {len(files):,} notes",
            f"p50 {percentile(times, 0.5):.1f} ms, p95 {percentile(times, 0.95):.1f} ms, first {first:.0f} ms",
            f"reading the files: {reading:.0f} ms",
            "p50 ≤ 60 ms" if what == "every note" else "p50 ≤ 10 ms",
        )


def cli(daemon: Daemon, vault: Path) -> None:
    bare = statistics.median(timed(lambda: subprocess.run([sys.executable, "-c", ""], check=True)) for _ in range(10))
    command = [str(BIN), "search", "--vault", str(vault), "spaced repetition"]
    times = [
        timed(lambda: subprocess.run(command, env=daemon.env, check=True, stdout=subprocess.DEVNULL)) for _ in range(15)
    ]
    row("`tarsd search`, end to end", f"{statistics.median(times) * 1e3:.0f} ms",
        f"bare `python -c \"\"` {bare * 1e3:.0f} ms", "≤ 150 ms")  # fmt: skip


def rest(daemon: Daemon, name: str, settle: float, watch: float) -> None:
    time.sleep(settle)
    before = daemon.cpu_s()
    time.sleep(watch)
    share = (daemon.cpu_s() - before) / watch * 100
    row(f"at rest, {name}, with children", f"{daemon.rss_mb():.0f} MB, {share:.2f} % of a core",
        f"over {watch:.0f} s", "≤ 150 MB, ≤ 0.1 %")  # fmt: skip


def first_byte(vault: Path, scratch: Path, rounds: int) -> None:
    """What is added before a model's first byte, retrieval included."""
    from bench_turns import turns

    home = scratch / "turns"
    home.mkdir()
    asked, bare = turns(Daemon, vault, home, rounds)
    row(
        f"question → request at the model, {len(asked)} questions",
        f"p50 {percentile(asked, 0.5) * 1e3:.0f} ms, p95 {percentile(asked, 0.95) * 1e3:.0f} ms",
        f"bare request {statistics.median(bare) * 1e3:.1f} ms",
        "p50 ≤ 80 ms",
    )


def newest_texts(files: list[Path], count: int) -> list[str]:
    """What the model reads of the notes that were changed last, in the order in which the daemon takes them."""
    from tarsd.chunk import chunk, embed_text
    from tarsd.config import ChunkSettings
    from tarsd.parse import parse
    from tarsd.vault import decode

    texts: list[str] = []
    for path in sorted(files, key=lambda path: -path.stat().st_mtime_ns):
        note = parse(decode(path.read_bytes()).text, path.name)
        texts += [embed_text(note.title, note.aliases, one) for one in chunk(note, ChunkSettings())]
        if len(texts) >= count:
            break
    return texts[:count]


def background(vault: Path, scratch: Path, notes: list[Path], seconds: float, idle_p50: float) -> None:
    """MiniLM and e5 in the background: their rate beside a bare loop over the same texts, and queries meanwhile."""
    from bench_models import bare_loop

    for model in ("minilm", "e5"):
        home = scratch / model
        home.mkdir()
        daemon = Daemon(vault, home, model)
        try:
            first = daemon.wait(lambda s: s["behind"] == 0 and s["embedding"]["done"] > 64, 300)["embedding"]["done"]
            start = time.perf_counter()
            time.sleep(seconds)
            done = daemon.status()["embedding"]["done"]
            rate = (done - first) / (time.perf_counter() - start)
            times = query_times(daemon, "hybrid", 3)
        finally:
            daemon.stop()
        texts, loop = newest_texts(notes, done)[first:done], bare_loop(model)
        loop(texts[:8])
        bare = len(texts) / timed(lambda loop=loop, texts=texts: loop(texts))
        p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
        busy = f"p50 {p50:.1f} ms, p95 {p95:.1f} ms"
        without = f"p50 without {idle_p50:.1f} ms, ratio {p50 / idle_p50:.1f}"
        row(f"hybrid query while {model} embeds", busy, without, "≤ 2 ×")
        row(
            f"{model} in the background, {done - first:,} chunks",
            f"{rate:.1f} chunks/s",
            f"bare loop {bare:.1f} chunks/s, ratio {bare / rate:.2f}",
            "≤ 1.3 ×",
        )


def languages(scratch: Path, notes: list[Path], settle: float) -> None:
    """e5 beside MiniLM over a few notes, both complete: how long a query takes, and memory at rest."""
    few, found = scratch / "few", {}
    few.mkdir()
    for at, path in enumerate(notes[:: max(1, len(notes) // 60)]):
        shutil.copy(path, few / f"{at}-{path.name}")
    for model in ("minilm", "e5"):
        home = scratch / f"{model}-few"
        home.mkdir()
        daemon = Daemon(few, home, model)
        try:
            daemon.wait(lambda s: s["behind"] == 0 and s["embedding"]["state"] == "complete", 600)
            p50 = percentile(query_times(daemon, "hybrid", 5), 0.5)
            # new texts each time, as a remembered one costs no model
            fresh = [timed(lambda d=daemon, text=f"{q} {at}": d.search(text)) for at in range(3) for q in QUERIES]
            time.sleep(settle)
            found[model] = p50, percentile(fresh, 0.5) * 1e3, daemon.rss_mb()
        finally:
            daemon.stop()
    for what, unit, aim, at in (
        ("query again, p50", "ms", "≤ 1.3 ×", 0), ("new query, p50", "ms", "≤ 1.3 ×", 1),
        ("at rest, with children", "MB", "≤ 1.15 ×", 2),
    ):  # fmt: skip
        mini, e5 = found["minilm"][at], found["e5"][at]
        row(f"{what}, e5 complete", f"{e5:.1f} {unit}", f"MiniLM {mini:.1f} {unit}, ratio {e5 / mini:.2f}", aim)


def reloads(scratch: Path, saves: int) -> None:
    """What the daemon holds after many saves of its config."""
    from bench_reload import memory_over_saves

    first, *later = memory_over_saves(Daemon, scratch, saves)
    row(
        f"daemon alone, MiniLM, after {saves} saves of the config",
        f"{later[-1]:.0f} MB, at most {max(later):.0f} MB",
        f"before them {first:.0f} MB, ratio {later[-1] / first:.2f}",
        "≤ 1.1 ×",
    )


def million() -> None:
    """Nearest neighbours among 1,000,000 × 256 codes, as the store looks for them, beside one numpy product."""
    from tarsd.store.codes import Codes, pack

    rows, width = 1_000_000, 256
    rng = np.random.default_rng(3)
    # Texts lie in clusters; vectors without any structure would be no vectors of texts.
    centres = rng.standard_normal((2_000, width), dtype=np.float32)
    matrix = centres[rng.integers(0, len(centres), rows)] + rng.standard_normal((rows, width), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    numbers = np.arange(rows, dtype=np.int64)
    codes = Codes(width, numbers, numbers, pack(matrix))
    products, ours, recalls = [], [], []
    for _ in range(12):
        query = matrix[rng.integers(0, rows)] + 0.05 * rng.standard_normal(width, dtype=np.float32)
        query /= np.linalg.norm(query)
        start = time.perf_counter()
        exact = matrix @ query
        products.append(time.perf_counter() - start)
        best = set(np.argpartition(-exact, 10)[:10].tolist())
        start = time.perf_counter()
        near, _ = codes.search(query, 400)
        found = near[np.argsort(-(matrix[near] @ query))[:10]].tolist()
        ours.append(time.perf_counter() - start)
        recalls.append(len(best & set(found)) / 10)
    product, mine = statistics.median(products) * 1e3, statistics.median(ours) * 1e3
    row("nearest of 1,000,000 × 256", f"{mine:.0f} ms, recall@10 {statistics.fmean(recalls):.3f}",
        f"numpy product {product:.0f} ms, ratio {mine / product:.2f}", "≤ 0.5 ×, ≥ 0.99")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vault", nargs="?", default=os.environ.get("TARSD_BENCH"), help="a vault folder or .tar.gz")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--soak", nargs="?", type=float, const=10.0, metavar="MINUTES", help="everything at once")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the soak")
    parser.add_argument("--embedding", default="table", choices=["table", "minilm"], help="of the soak")
    options = parser.parse_args()
    if options.soak is not None:
        from bench_soak import soak

        source = Path(options.vault) if options.vault else None
        sys.exit(soak(options.soak, source, options.embedding, options.seed))
    if not options.vault:
        parser.error("name a vault, or set TARSD_BENCH")
    scratch = Path(tempfile.mkdtemp(prefix="tb"))
    try:
        source = Path(options.vault)
        vault = scratch / "vault"
        if source.is_dir():
            shutil.copytree(source, vault, symlinks=True)
        else:
            with tarfile.open(source) as archive:
                archive.extractall(vault, filter="data")
        files = sorted(vault.rglob("*.md"))
        print("| what | measured | reference, same run | aim |\n|---|---|---|---|", flush=True)
        daemon = first_index(vault, scratch, files, 1 if options.quick else 3)
        try:
            reconcile(daemon, vault)
            idle = queries(daemon, "table", 256)
            tables(daemon, files)
            cli(daemon, vault)
            edits(daemon, vault, files, 15 if options.quick else 40)
            rest(daemon, "table", 5 if options.quick else 40, 10 if options.quick else 30)
        finally:
            daemon.stop()
        first_byte(vault, scratch, 3 if options.quick else 6)
        reloads(scratch, 4 if options.quick else 20)
        background(vault, scratch, files, 10 if options.quick else 40, idle)
        languages(scratch, files, 5 if options.quick else 40)
        if not options.quick:
            million()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
