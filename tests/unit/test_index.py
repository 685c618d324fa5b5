"""The index: what a pass does, when it does not believe the disk, child processes, background embedding."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarsd import parse as parsing
from tarsd.config import ChunkSettings, Collection, Config, PrivacySettings, WatchSettings, load
from tarsd.embed.base import Embedder, Vectors, nothing
from tarsd.embed.fake import FakeEmbedder
from tarsd.embed.table import TableEmbedder
from tarsd.errors import DiskFull, EmbedderUnreachable, EmbedError, RateLimited, StoreError, VaultUnavailable
from tarsd.index import Indexer, Report, indexer, pool
from tarsd.index.plan import in_scope, lost_too_much, plan, trusted_mtime
from tarsd.index.pool import ChildDied, Pool
from tarsd.index.prepare import PrepareSettings, ReadJob, prepare_group
from tarsd.parse import parse
from tarsd.parse.access import is_local_only
from tarsd.store import Batch, FileRow, Key, Store
from tarsd.vault import FileInfo, Scan, Vault, content_hash
from tests.support.engine import Engine, write

WEIGHTS = (1.0,) * 6


class Bench:
    """A vault, its store and its indexer, with the fake embedder as the table."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root, self.home = root, home
        self.config = replace(load(vault=root), watch=WatchSettings(grace_empty_s=0.0))
        self.table = FakeEmbedder(32, name="table")
        self.model: Embedder | None = None
        self.events: list[dict[str, Any]] = []
        self.open()

    def open(self, **changes: Any) -> None:
        """(Re)start, with changes to the configuration."""
        self.config = replace(self.config, **changes)
        self.store = Store(self.home / "index.db", self.home / "embeddings.db")
        vaults = [Vault(self.root, exclude=self.config.exclude)]
        vaults += [Vault(one.root, one.name) for one in self.config.collections]
        self.indexer = Indexer(self.config, vaults, self.store, self.table, self.model, self.events.append)

    def close(self) -> None:
        self.indexer.close()
        self.store.close()

    def restart(self, **changes: Any) -> None:
        self.close()
        self.open(**changes)

    def write(self, path: str, text: str | bytes, *, age: float = 10.0, root: Path | None = None) -> Path:
        """A note that was last changed `age` seconds ago."""
        file = (root or self.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        when = time.time_ns() - int(age * 1e9) + 1
        os.utime(file, ns=(when, when))
        return file

    def run(self, *paths: str | Key, **options: Any) -> Report:
        return self.indexer.reconcile(paths or None, **options)

    @property
    def state(self) -> str:
        return self.indexer.state.name

    def paths(self) -> list[str]:
        return sorted(path for _, path in self.store.rows())

    def find(self, word: str) -> list[str]:
        return sorted(hit.note.path for hit in self.store.hits(c for c, _ in self.store.fts(word, WEIGHTS, 99)))

    def coverage(self, fingerprint: str) -> float:
        space = self.store.space_for(fingerprint)
        return space.coverage if space is not None else -1.0


@pytest.fixture
def bench(vault: Path, home: Path) -> Iterator[Bench]:
    one = Bench(vault, home)
    yield one
    one.close()


def numbers(report: Report) -> tuple[int, int, int, int, int]:
    return (report.added, report.changed, report.moved, report.removed, report.unchanged)


# Plan


def info(path: str, size: int = 10, mtime: int = 100) -> FileInfo:
    return FileInfo("", path, f"/v/{path}", size, mtime, "note")


def row(path: str, size: int = 10, mtime: int = 100, state: str = "ok") -> FileRow:
    return FileRow("", path, f"/v/{path}", size, mtime, 1, "h", "c", state)


def scan_of(*files: FileInfo) -> Scan:
    return Scan({file.key: file for file in files}, (), True, True, frozenset())


def test_the_plan_names_what_differs_newest_first() -> None:
    rows = {r.key: r for r in (row("same"), row("longer", 9), row("touched", mtime=99), row("gone", 7), row("was", 5))}
    todo = plan(
        scan_of(info("same"), info("longer"), info("touched", mtime=101), info("new", mtime=300), info("was", 0)),
        rows,
        "c",
    )
    assert [one.path for one in todo.read] == ["new", "touched", "longer"]
    assert (todo.vanished, todo.unchanged, [one.path for one in todo.empty]) == ((("", "gone"),), 1, ["was"])


def test_another_chunker_or_a_full_pass_reads_everything() -> None:
    rows = {r.key: r for r in (row("a"), row("b"))}
    assert len(plan(scan_of(info("a"), info("b")), rows, "other").read) == 2
    assert len(plan(scan_of(info("a"), info("b")), rows, "c", full=True).read) == 2


def test_only_the_wanted_paths_can_vanish() -> None:
    rows = {r.key: r for r in (row("a/x"), row("a/b/y"), row("ab"), row("c"))}
    assert plan(scan_of(), rows, "c", scope={"a"}).vanished == (("", "a/x"), ("", "a/b/y"))
    assert in_scope("a", {"a"}) and in_scope("x", {""}) and in_scope("x", None) and not in_scope("ab", {"a"})


@pytest.mark.parametrize(
    ("known", "found", "marker", "expected"),
    [
        (0, 0, False, False),
        (1, 0, True, True),
        (100, 0, True, True),
        (100, 40, True, False),
        (100, 40, False, True),
        (100, 60, False, False),
        (20, 1, False, False),
        (100, 140, False, False),
    ],
)
def test_when_a_scan_is_not_believed(known: int, found: int, marker: bool, expected: bool) -> None:
    assert lost_too_much(known, found, marker=marker) == expected


def test_a_file_that_may_change_within_its_time_stamp_is_looked_at_again() -> None:
    now = 5_000_000_000_123
    assert trusted_mtime(info("a", mtime=now - 1_000_000), now) == -1
    assert trusted_mtime(info("a", mtime=now - 60_000_000), now) == now - 60_000_000
    assert trusted_mtime(info("a", mtime=4_999_000_000_000), now) == -1
    assert trusted_mtime(info("a", mtime=now + 10**12), now) == now + 10**12


@pytest.mark.parametrize(
    ("path", "tags", "expected"),
    [
        ("Private/a.md", (), True),
        ("private/deep/a.md", (), True),
        ("Privately.md", (), False),
        ("x/Private/a.md", (), False),
        ("a.md", ("Secret",), True),
        ("a.md", ("secret/deep",), True),
        ("a.md", ("secrets",), False),
    ],
)
def test_what_must_not_leave_this_machine(path: str, tags: tuple[str, ...], expected: bool) -> None:
    note = parse("".join(f"#{tag} " for tag in tags), path)
    assert is_local_only(path, note, ("Private/", "#secret")) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *(
            (yes, True)
            for yes in ("true", "True", "tRuE", '"true"', "'yes'", "yes", "1", '"1"', "on", "y", "yes please")
        ),
        *((yes, True) for yes in ("[true]", "\n  - true", "{{private}}", "true # always")),
        *((no, False) for no in ("false", "FALSE", '"false"', "no", "No", "off", "0", '"0"', "", "null", "~", '""')),
        *((no, False) for no in ("[]", "false # true one day", "{}")),
    ],
)
@pytest.mark.parametrize("key", ["local_only", "local-only", "Local_Only", '"local only"', "localOnly"])
def test_a_note_may_say_itself_that_it_must_not_leave(key: str, value: str, expected: bool) -> None:
    text = f"---\ntitle: x\n{key}: {value}\n---\ntext"
    assert is_local_only("a.md", parse(text, "a.md"), (), text) == expected


def test_of_a_mark_that_stands_twice_the_closed_one_counts() -> None:
    for text in ("local_only: true\nlocal_only: false", "local_only: no\nlocal-only: yes"):
        text = f"---\n{text}\n---\n"
        assert is_local_only("a.md", parse(text, "a.md"), (), text)
    text = "---\nnote: |\n  local_only: true\n---\nlocal_only: true\n"
    assert not is_local_only("a.md", parse(text, "a.md"), (), text)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("tags: [work, private", True),
        ("tags: [work, Private/health\nx: y", True),
        ("tags: private: x", True),
        ("\ttags: [private]", True),
        ("title: a: b\ntags: private", True),
        ("title: 'open\ntags:\n  - private", True),
        ("tags: #private", True),
        ("tags: {private}", True),
        ("tags: {private: yes}", True),
        ("tags:\n  - work # private", True),
        ('x: "\nlocal_only: true', True),
        ("x: [\n  local_only: 'true", True),
        ("tags: [work, privately", False),
        ("tags: [work/private", False),
        ("tags: [non-private", False),
        ("title: [open\nlocal_only: false", False),
        ("title: a private matter", False),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("closed", [True, False])
def test_a_mark_in_properties_that_cannot_be_read_counts(block: str, expected: bool, end: str, closed: bool) -> None:
    rows = ["---", *block.split("\n"), *(["---"] if closed else []), "", "a private life"]
    text = end.join(rows)
    assert is_local_only("a.md", parse(text, "a.md"), ("#private", "#secret/"), text) == expected
    assert not is_local_only("a.md", parse(text, "a.md"), ("#other", "#"), text) or "local_only" in block


def test_words_that_are_no_tags_are_no_mark() -> None:
    for block in ("Some private prose", "tags: [work]\ntitle: a private matter\nabout: private", "tags: non-private"):
        text = f"---\n{block}\n---\n\nmore of it"
        assert not is_local_only("a.md", parse(text, "a.md"), ("#private",), text)


def test_a_private_line_of_our_own_lists_keeps_the_list_here() -> None:
    ours = "---\ntars: memory\n---\n- a %% 2026-11-28 · c-1 · private %%\n- b %% 2026-11-28 %%\n"
    theirs = "# Mine\n- a %% private %%\n"
    assert is_local_only("tars/Memory.md", parse(ours, "tars/Memory.md"), (), ours)
    assert not is_local_only("tars/Memory.md", parse(ours, "tars/Memory.md"), (), ours.replace("· private", ""))
    for mark in ("%% Private · c-1 · 2026-11-28 %%", "<!-- c-1, PRIVATE -->", "%%\n2026-11-28\nprivate\n%%"):
        marked = ours.replace("%% 2026-11-28 · c-1 · private %%", mark)
        assert is_local_only("tars/Memory.md", parse(marked, "tars/Memory.md"), (), marked), mark
    assert not is_local_only("a.md", parse(theirs, "a.md"), (), theirs)


# Passes


def test_first_pass_then_nothing_to_do(bench: Bench) -> None:
    assert bench.indexer.behind == 1
    bench.write("a.md", "# Tram\nThe yellow one. [[b|blue]]")
    bench.write("deep/b.md", "---\ntags: [city]\n---\nLisbon")
    assert numbers(bench.run()) == (2, 0, 0, 0, 0)
    assert bench.indexer.behind == 0 and bench.state == "ready"
    assert bench.find("yellow") == ["a.md"] and bench.find("blue") == ["a.md", "deep/b.md"]
    calls = bench.table.calls
    assert numbers(bench.run()) == (0, 0, 0, 0, 2)
    bench.restart()
    assert numbers(bench.run()) == (0, 0, 0, 0, 2)
    assert bench.table.calls == calls


def test_exactly_what_changed_while_off_is_handled(bench: Bench) -> None:
    for i in range(30):
        bench.write(f"{i}.md", f"note number{i}")
    bench.run()
    bench.close()
    bench.write("new.md", "brand new")
    bench.write("1.md", "edited text", age=5)
    (bench.root / "2.md").unlink()
    (bench.root / "3.md").rename(bench.root / "renamed.md")
    texts = bench.table.texts
    bench.open()
    assert numbers(bench.run()) == (1, 1, 1, 1, 27)
    assert bench.table.texts - texts == 2
    assert bench.find("number2") == [] and bench.find("number3") == ["renamed.md"] and bench.find("number1") == []


def test_touching_and_rewriting_the_same_embeds_nothing(bench: Bench) -> None:
    file = bench.write("a.md", "text")
    bench.run()
    dump, texts = bench.store.dump(), bench.table.texts
    os.utime(file)
    bench.run()
    bench.write("a.md", "text", age=3)
    assert numbers(bench.run("a.md")) == (0, 0, 0, 0, 1)
    assert bench.store.dump() == dump and bench.table.texts == texts
    assert bench.store.rows()["", "a.md"].mtime_ns == file.stat().st_mtime_ns


def test_a_change_that_keeps_size_and_time_right_after_a_pass_is_seen(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsd.index.plan._TICK_NS", 10**15)  # this machine may be slow
    file = bench.write("a.md", "text one", age=0)
    stamp = time.time_ns()
    os.utime(file, ns=(stamp, stamp))
    bench.run()
    file.write_text("text two")
    os.utime(file, ns=(stamp, stamp))
    bench.run()
    assert bench.find("two") == ["a.md"]


def test_moving_a_folder_moves_its_notes_and_embeds_nothing(bench: Bench) -> None:
    for i in range(40):
        bench.write(f"a/b/{i}.md", f"---\ntitle: T{i}\n---\nnote number{i}")
    bench.run()
    ids = {r.path.rpartition("/")[2]: r.id for r in bench.store.rows().values()}
    texts = bench.table.texts
    (bench.root / "a").rename(bench.root / "z")
    assert numbers(bench.run("a", "z")) == (0, 0, 40, 0, 0)
    assert {r.path.rpartition("/")[2]: r.id for r in bench.store.rows().values()} == ids
    assert all(path.startswith("z/b/") for path in bench.paths())
    assert bench.table.texts == texts


def test_a_folder_that_goes_takes_all_its_notes(bench: Bench) -> None:
    for path in ("p/a.md", "p/q/b.md", "p/q/r/c.md", "keep.md"):
        bench.write(path, f"text of {path}")
    bench.run()
    shutil.rmtree(bench.root / "p")
    assert bench.run("p").removed == 3
    assert bench.paths() == ["keep.md"]


def test_a_case_only_rename_leaves_one_row(bench: Bench) -> None:
    bench.write("config.md", "the settings")
    bench.run()
    (bench.root / "config.md").rename(bench.root / "Config.md")
    assert bench.run("config.md", "Config.md").moved == 1
    assert bench.paths() == ["Config.md"] and bench.store.titles()[0].title == "Config"


def test_copies_are_all_found_and_embedded_once(bench: Bench) -> None:
    for name in "abc":
        bench.write(f"{name}.md", "---\ntitle: Same\n---\nthe same text")
    bench.run()
    assert bench.find("same") == ["a.md", "b.md", "c.md"] and bench.table.texts == 1
    assert bench.coverage(bench.table.fingerprint) == 1.0


def test_one_bad_note_hides_no_other(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("good.md", "good text")
    bench.write("bad.md", "bad text")
    real = parsing.parse

    def parse(text: str, path: str, **options: Any) -> Any:
        if path == "bad.md":
            raise RecursionError
        return real(text, path, **options)

    monkeypatch.setattr("tarsd.index.prepare.parse", parse)
    report = bench.run()
    assert (report.added, report.failed) == (1, 1) and bench.find("good") == ["good.md"]
    assert [(one.path, one.state) for one in bench.store.skipped()] == [("bad.md", "unreadable")]


def test_a_file_that_vanishes_while_it_is_read_is_no_error(bench: Bench) -> None:
    file = bench.write("a.md", "text")
    job = ReadJob(FileInfo("", "a.md", f"{file}x", 4, 1, "note"))
    done = prepare_group([job], settings_for(bench))
    assert done.gone and not done.failed


def settings_for(bench: Bench) -> PrepareSettings:
    return PrepareSettings(ChunkSettings(), False, (), "c", False)


def test_an_edit_during_the_pass_is_found_by_the_next(bench: Bench) -> None:
    file = bench.write("a.md", "version one")

    class Slow(FakeEmbedder):
        def embed(self, texts: Any, kind: Any) -> Vectors:
            if any("one" in text for text in texts):
                bench.write("a.md", "version two")
            return super().embed(texts, kind)

    bench.table = Slow(32, name="table")
    bench.restart()
    bench.run()
    bench.run("a.md")
    assert bench.find("two") == ["a.md"] and bench.find("one") == []
    assert bench.store.rows()["", "a.md"].hash == content_hash(file.read_bytes())


def test_a_pass_over_one_note_does_not_wait_for_a_long_one_and_wins(bench: Bench) -> None:
    bench.write("a.md", "version one")
    entered, go = threading.Event(), threading.Event()

    class Slow(FakeEmbedder):
        def embed(self, texts: Any, kind: Any) -> Vectors:
            if any("one" in text for text in texts):
                entered.set()
                assert go.wait(20)
            return super().embed(texts, kind)

    bench.table = Slow(32, name="table")
    bench.restart()
    bench.store.ensure_space("table", bench.table.fingerprint, 32, "table")
    thread = threading.Thread(target=bench.run)
    thread.start()
    assert entered.wait(20)
    bench.write("a.md", "version two", age=5)
    bench.write("b.md", "another")
    bench.run("a.md", "b.md")
    assert bench.find("two") == ["a.md"]
    go.set()
    thread.join(20)
    assert bench.find("two") == ["a.md"] and bench.find("one") == [] and bench.paths() == ["a.md", "b.md"]


def test_excluding_a_folder_purges_it_and_is_no_disaster(bench: Bench) -> None:
    for i in range(30):
        bench.write(f"Templates/{i}.md", f"template {i}")
    bench.write("a.md", "text")
    bench.run()
    bench.restart(exclude=("Templates/",))
    assert bench.run().removed == 30 and bench.paths() == ["a.md"]


def test_a_collection_is_searched_beside_the_vault_and_forgotten_with_its_setting(bench: Bench, tmp_path: Path) -> None:
    work = tmp_path / "work"
    bench.write("a.md", "private words")
    bench.write("a.md", "working words", root=work)
    bench.restart(collections=(Collection("work", work),))
    bench.run()
    assert sorted(bench.store.rows()) == [("", "a.md"), ("work", "a.md")]
    bench.write("a.md", "other labour", root=work, age=4)
    assert bench.run(("work", "")).changed == 1
    shutil.rmtree(work)
    assert bench.run().unchanged == 1
    assert bench.state == "unavailable" and len(bench.store.rows()) == 2
    bench.restart()
    bench.run()
    assert bench.indexer.behind == 0  # the vault itself is complete
    bench.restart(collections=())
    assert bench.run().removed == 1 and sorted(bench.store.rows()) == [("", "a.md")]


def test_another_chunk_size_recuts_every_note_and_reuses_vectors(bench: Bench) -> None:
    bench.write("a.md", "short text")
    bench.write("b.md", "\n\n".join(f"paragraph {i} with quite a few words in it" for i in range(40)))
    bench.run()
    chunks, texts = bench.store.counts().chunks, bench.table.texts
    bench.restart(chunk=ChunkSettings(tokens=60))
    assert bench.run().changed == 2
    assert bench.store.counts().chunks > chunks
    assert "short text" not in "".join(bench.table.seen[texts:])
    assert numbers(bench.run()) == (0, 0, 0, 0, 2)


# Guards


def test_a_vault_that_is_not_there_keeps_everything(bench: Bench) -> None:
    bench.write("a.md", "text")
    bench.run()
    texts = bench.table.texts
    away = bench.root.with_name("away")
    bench.root.rename(away)
    with pytest.raises(VaultUnavailable):
        bench.run()
    assert bench.state == "unavailable" and bench.find("text") == ["a.md"]
    bench.restart()
    with pytest.raises(VaultUnavailable):
        bench.run()
    assert bench.indexer.behind == 1
    away.rename(bench.root)
    assert numbers(bench.run()) == (0, 0, 0, 0, 1)
    assert bench.state == "ready" and bench.table.texts == texts


def test_an_empty_mount_point_is_not_believed(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    bench.run()
    away = bench.root.with_name("away")
    bench.root.rename(away)
    bench.root.mkdir()
    report = bench.run()
    assert report.removed == 0 and report.again_s is not None
    assert bench.state == "suspicious" and len(bench.paths()) == 5
    (told,) = bench.indexer._faults.values()
    assert told.reason.endswith("is kept.") and "and wait" in told.hint and "deleted" not in told.hint
    bench.root.rmdir()
    away.rename(bench.root)
    assert numbers(bench.run()) == (0, 0, 0, 0, 5) and bench.state == "ready"


def test_a_real_emptying_needs_a_second_look(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    bench.run()
    for i in range(5):
        (bench.root / f"{i}.md").unlink()
    assert bench.run("0.md", "1.md", "2.md", "3.md", "4.md").removed == 0
    (told,) = bench.indexer._faults.values()
    assert "for now" in told.reason and "after 30 seconds, they are taken as deleted" in told.hint
    monkeypatch.setattr(indexer, "_SECOND_LOOK_S", 0.0)
    assert bench.run().removed == 5 and bench.state == "ready"


def test_a_real_emptying_is_believed_on_command(bench: Bench) -> None:
    bench.write("a.md", "text")
    bench.run()
    shutil.rmtree(bench.root)
    bench.root.mkdir()
    assert bench.run().removed == 0
    assert bench.run(force=True).removed == 1


def test_most_notes_gone_with_the_marker_is_suspicious_and_without_is_tidying(bench: Bench) -> None:
    for i in range(60):
        bench.write(f"{i}.md", f"text {i}")
    bench.run()
    for i in range(40):
        (bench.root / f"{i}.md").unlink()
    (bench.root / ".obsidian").rename(bench.root / "hidden")
    assert bench.run().removed == 0 and bench.state == "suspicious"
    (bench.root / "hidden").rename(bench.root / ".obsidian")
    assert bench.run().removed == 40


def test_a_plain_folder_may_be_emptied_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(bench.root / ".obsidian")
    bench.write("a.md", "text")
    bench.run()
    (bench.root / "a.md").unlink()
    assert bench.run().removed == 0
    monkeypatch.setattr(indexer, "_SECOND_LOOK_S", 0.0)
    assert bench.run().removed == 1


def test_a_note_that_is_empty_for_a_moment_keeps_its_passages(bench: Bench) -> None:
    bench.restart(watch=WatchSettings(grace_empty_s=5.0))
    bench.write("a.md", "text")
    bench.run()
    texts = bench.table.texts
    bench.write("a.md", b"", age=0)
    report = bench.run("a.md")
    assert report.again_s == 5.0 and bench.find("text") == ["a.md"]
    bench.write("a.md", "text", age=0)
    bench.run("a.md")
    assert bench.table.texts == texts


def test_a_note_that_stays_empty_loses_them_and_is_reported(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.restart(watch=WatchSettings(grace_empty_s=5.0))
    bench.write("a.md", "text")
    bench.write("b.md", "other")
    bench.run()
    bench.write("a.md", b"", age=60)
    assert bench.run().changed == 0
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 6)
    assert bench.run().changed == 1
    assert bench.find("text") == [] and bench.store.counts().states == {"ok": 1, "empty": 1}
    assert {"type": "emptied", "collection": "", "path": "a.md"} in bench.events
    assert numbers(bench.run()) == (0, 0, 0, 0, 2)


def test_a_note_that_is_only_in_the_cloud_keeps_its_row(bench: Bench) -> None:
    bench.write("a.md", "text")
    bench.write("b.md", "other")
    bench.run()
    (bench.root / "a.md").rename(bench.root / ".a.md.icloud")
    assert bench.run().removed == 0
    assert bench.store.rows()["", "a.md"].state == "not_downloaded" and bench.find("text") == ["a.md"]
    (bench.root / ".a.md.icloud").rename(bench.root / "a.md")
    bench.run()
    assert bench.store.rows()["", "a.md"].state == "ok"


def test_a_full_disk_stops_nothing_for_good(bench: Bench) -> None:
    bench.write("a.md", "text")
    bench.run()
    for i in range(30):
        bench.write(f"big{i}.md", "\n\n".join(f"paragraph {i} {j} with many words" for j in range(200)))
    pages = bench.store._db.execute("PRAGMA page_count").get
    bench.store._db.execute(f"PRAGMA max_page_count = {pages + 4}").fetchall()
    with pytest.raises(DiskFull):
        bench.run()
    assert bench.state == "disk_full" and bench.find("text") == ["a.md"]
    bench.store._db.execute("PRAGMA max_page_count = 1000000").fetchall()
    bench.run()
    assert len(bench.paths()) == 31 and bench.state == "ready"


def test_a_damaged_index_is_rebuilt_from_the_vault_without_embedding(bench: Bench) -> None:
    for i in range(30):
        bench.write(f"{i}.md", f"text {i} " * 300)
    bench.run()
    texts = bench.table.texts
    bench.restart()
    file = bench.home / "index.db"
    with file.open("r+b") as raw:
        for at in range(4096, file.stat().st_size, 4096):
            raw.seek(at)
            raw.write(b"\xff" * 512)
    bench.run()
    assert len(bench.paths()) == 30 and bench.table.texts == texts
    assert any(event["type"] == "rebuilding" for event in bench.events)
    assert not bench.store.damaged and (bench.home / "index.db.corrupt-1").exists()


def test_lost_rows_are_repaired_at_the_start_and_told(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    bench.run()
    before = bench.store.dump()
    bench.store._db.execute("DELETE FROM vec_1; DELETE FROM fts WHERE rowid < 3")
    bench.restart()
    report = bench.run()
    assert len(report.repaired) == 2 and bench.store.dump() == before
    bench.close()
    for file in bench.home.glob("embeddings.db*"):
        file.unlink()
    bench.open()
    assert bench.run().repaired and bench.coverage(bench.table.fingerprint) == 1.0


# Many notes, in child processes


def test_many_notes_in_children_come_to_the_same(bench: Bench, tmp_path: Path) -> None:
    for i in range(60):
        bench.write(f"{i % 7}/{i}.md", f"# Head {i}\n\ntext number{i} and [[{(i * 3) % 60}|link {i}]]\n")
    bench.table = TableEmbedder()  # type: ignore[assignment]
    bench.restart()
    seen: list[dict[str, Any]] = []
    report = bench.indexer.reconcile(progress=seen.append)
    assert report.added == 60 and report.embedded == bench.store.counts().chunks
    assert seen[-1]["done"] == seen[-1]["total"] == 60
    children = bench.indexer._pool.pids()
    assert children
    other = Store(tmp_path / "o.db", bench.home / "embeddings.db")
    single = Indexer(bench.config, [Vault(bench.root)], other, bench.table)
    single.reconcile([""])
    for i in range(7):
        single.reconcile([str(i)])
    assert other.dump() == bench.store.dump()
    single.close()
    other.close()
    bench.indexer.close()
    assert not any(alive(pid) for pid in children)


def alive(pid: int) -> bool:
    """Whether it runs; one that ended and that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_note_that_kills_its_process_is_left_out_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(40):
        bench.write(f"{i}.md", f"text {i}")

    class Deadly(Pool):
        def submit(self, name: str, *arguments: Any) -> Future[Any]:
            future: Future[Any] = Future()
            try:
                future.set_result(self.call(name, *arguments))
            except ChildDied as error:
                future.set_exception(error)
            return future

        def call(self, name: str, *arguments: Any) -> Any:
            if any(job.info.path == "7.md" for job in arguments[0]):
                raise ChildDied("crash")
            return pool.resolve(name)(*arguments)

    bench.indexer._pool = Deadly(1)
    report = bench.run()
    assert (report.added, report.failed) == (39, 1) and "7.md" not in bench.paths()


def test_children_answer_raise_die_and_are_replaced() -> None:
    one = Pool(1, timeout_s=30.0)
    try:
        first = one.call("os:getpid")
        assert first != os.getpid() and one.call("os:getpid") == first and one.pids() == [first]
        with pytest.raises(ZeroDivisionError):
            one.call("operator:truediv", 1, 0)
        assert one.call("builtins:print", "noise") is None
        with pytest.raises(ChildDied):
            one.call("os:_exit", 3)
        second = one.call("os:getpid")
        assert second != first
    finally:
        one.close()
    assert not alive(second)
    with pytest.raises(ChildDied):
        one.call("os:getpid")


def test_a_child_that_does_not_answer_is_ended() -> None:
    one = Pool(1, timeout_s=0.2)
    try:
        with pytest.raises(ChildDied):
            one.call("time:sleep", 60)
        assert one.pids() == []
    finally:
        one.close()


def test_children_do_not_outlive_a_killed_parent() -> None:
    script = (
        "import sys, time; from tarsd.index.pool import Pool; one = Pool(1);"
        "print(one.call('os:getpid'), flush=True); time.sleep(60)"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait(20)
    deadline = time.monotonic() + 20
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def test_idle_children_are_ended() -> None:
    one = Pool(1, idle_s=0.05)
    try:
        pid = one.call("os:getpid")
        deadline = time.monotonic() + 20
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not alive(pid) and one.call("os:getpid") != pid
    finally:
        one.close()


# Background embedding


def with_model(bench: Bench, model: Embedder, *, busy: Callable[[], bool] | None = None) -> None:
    bench.model = model
    bench.restart()
    if busy is not None:
        bench.indexer._background._busy = busy
    bench.run()


def test_every_passage_gets_a_vector_and_a_restart_embeds_nothing(bench: Bench) -> None:
    for i in range(70):
        bench.write(f"{i}.md", f"text {i}", age=100 - i)
    model = FakeEmbedder(48)
    with_model(bench, model)
    assert bench.indexer.embedding.remaining == 70
    assert bench.indexer.embed_once() == 70
    assert model.seen[0].endswith("text 69") and model.seen[-1].endswith("text 0")
    status = bench.indexer.embedding
    assert (status.state, status.done, status.remaining) == ("complete", 70, 0)
    space = bench.store.active_space("model")
    assert space is not None and space.fingerprint == model.fingerprint
    bench.restart()
    bench.run()
    assert bench.indexer.embed_once() == 0 and model.texts == 70
    shutil.move(bench.root, bench.root.with_name("elsewhere"))
    bench.root = bench.root.with_name("elsewhere")
    bench.restart(vault=bench.root)
    bench.run()
    assert bench.indexer.embed_once() == 0 and model.texts == 70


def test_the_thread_takes_what_was_just_edited_first_and_ends_when_asked(bench: Bench) -> None:
    for i in range(100):
        bench.write(f"{i}.md", f"text {i}", age=1000 + i)
    gate, seen = threading.Semaphore(0), threading.Event()

    class Gated(FakeEmbedder):
        def embed(self, texts: Any, kind: Any) -> Vectors:
            seen.set()
            assert gate.acquire(timeout=20)
            return super().embed(texts, kind)

    model = Gated(48)
    with_model(bench, model)
    stop = threading.Event()
    thread = threading.Thread(target=bench.indexer.embed_pending, args=(stop,))
    thread.start()
    assert seen.wait(20)
    bench.write("99.md", "just edited", age=1)
    bench.run("99.md")
    gate.release(10)
    deadline = time.monotonic() + 20
    while bench.indexer.embedding.state != "complete" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert model.seen[32].endswith("just edited") and bench.coverage(model.fingerprint) == 1.0
    stop.set()
    thread.join(20)
    assert not thread.is_alive()


def test_embedding_waits_while_somebody_asks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.md", "text")
    asked = iter([True, True, False])
    with_model(bench, FakeEmbedder(48), busy=lambda: next(asked))
    assert bench.indexer.embed_once() == 1
    assert next(asked, "none left") == "none left"


def test_batches_are_bounded_and_a_restart_goes_on_where_it_stopped(bench: Bench) -> None:
    for i in range(200):
        bench.write(f"{i}.md", f"text {i} " * (1 + i % 60))
    sizes: list[int] = []

    class Counting(FakeEmbedder):
        batch = 512

        def embed(self, texts: Any, kind: Any) -> Vectors:
            sizes.append(len(texts))
            if len(sizes) == 4:
                self.error = EmbedderUnreachable("gone", "start it")
            return super().embed(texts, kind)

    model = Counting(48)
    with_model(bench, model)
    bench.indexer.embed_once()
    status = bench.indexer.embedding
    assert status.state == "unreachable" and 0 < status.done < 200 and status.reason == "gone"
    assert max(sizes) <= 32
    done, model.error = status.done, None
    total = bench.store.counts().chunks
    bench.restart()
    bench.run()
    assert bench.indexer.embed_once() == total - done


def test_a_poisoned_text_costs_a_few_calls_and_only_itself(bench: Bench) -> None:
    for i in range(40):
        bench.write(f"{i}.md", "poison text" if i == 7 else f"text {i}")

    class Refusing(FakeEmbedder):
        asked = 0

        def embed(self, texts: Any, kind: Any) -> Vectors:
            if any("poison" in text for text in texts):
                self.asked += 1
                raise EmbedError("too long", permanent=True)
            return super().embed(texts, kind)

    model = Refusing(48)
    with_model(bench, model)
    assert bench.indexer.embed_once() == 39
    assert model.asked <= 8
    bench.restart()
    bench.run()
    bench.indexer.embed_once()
    assert model.asked <= 8 and bench.indexer.embedding.remaining == 0
    assert [(one.path, one.reason) for one in bench.store.problems()] == [("7.md", "no vector: too long")]
    assert bench.find("poison") == ["7.md"]
    asked = model.asked
    bench.run(full=True)  # a wish to read everything is a wish to try everything again
    bench.indexer.embed_once()
    assert asked < model.asked <= asked + 8
    bench.write("7.md", "cured text", age=2)
    bench.run()
    assert bench.indexer.embed_once() == 1 and bench.store.problems() == []


def test_a_server_that_refuses_everything_blames_no_note(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    model.error = EmbedError("no such route", permanent=True)
    with_model(bench, model)
    assert bench.indexer.embed_once() == 0
    assert bench.store.problems() == [] and bench.indexer.embedding.state == "failing"
    model.error = None
    assert bench.indexer.embed_once() == 5


def test_rows_that_cannot_be_compared_are_failures_of_their_text_alone(bench: Bench) -> None:
    for i in range(6):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    model.nans = lambda text: "text 3" in text
    model.zeros = lambda text: "text 4" in text
    with_model(bench, model)
    assert bench.indexer.embed_once() == 4
    assert [one.path for one in bench.store.problems()] == ["3.md", "4.md"]
    assert bench.indexer.embed_once() == 0 and model.calls == 1


def test_rate_limits_are_waited_for_as_asked(bench: Bench) -> None:
    bench.write("a.md", "text")
    model = FakeEmbedder(48)
    model.errors = [RateLimited("slow down", retry_after=0.01), RateLimited("slow down")]
    with_model(bench, model)
    background, stop = bench.indexer._background, threading.Event()
    assert 0.01 <= background._step(stop) <= 0.06
    assert bench.indexer.embedding.state == "rate_limited"
    assert 1.0 <= background._step(stop) <= 3.0
    assert background._step(stop) == 0.0
    assert bench.coverage(model.fingerprint) == 1.0 and background._failures == 0


def test_while_the_server_is_down_words_and_table_go_on(bench: Bench) -> None:
    model = FakeEmbedder(48)
    model.error = EmbedderUnreachable("no answer", "start it")
    with_model(bench, model)
    bench.write("a.md", "text")
    bench.run("a.md")
    assert bench.indexer.embed_once() == 0
    assert bench.find("text") == ["a.md"] and bench.coverage(bench.table.fingerprint) == 1.0
    pauses = [bench.indexer._background._step(threading.Event()) for _ in range(8)]
    assert pauses[0] < pauses[-1] <= 75.0


def test_only_what_is_missing_is_embedded(bench: Bench) -> None:
    for i in range(20):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    with_model(bench, model)
    bench.indexer.embed_once()
    space = bench.store.space_for(model.fingerprint)
    assert space is not None
    bench.store._db.execute(f"DELETE FROM vec_{space.id} WHERE chunk_id <= 6")
    bench.store._vectors.execute("DELETE FROM vectors WHERE id IN (SELECT max(id) - 2 FROM vectors)")
    bench.restart()
    assert bench.run().repaired
    assert bench.indexer.embed_once() == 1 and model.texts == 21


def test_a_new_model_takes_over_when_it_is_complete(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    old, new = FakeEmbedder(48, name="old"), FakeEmbedder(96, name="new")
    with_model(bench, old)
    bench.indexer.embed_once()
    new.errors = [EmbedderUnreachable("not yet")]
    with_model(bench, new)
    bench.indexer.embed_once()
    active = bench.store.active_space("model")
    assert active is not None and active.fingerprint == old.fingerprint
    assert bench.coverage(new.fingerprint) == 0.0
    with_model(bench, old)
    assert bench.indexer.embed_once() == 0 and bench.coverage(new.fingerprint) == -1.0
    with_model(bench, new)
    assert bench.indexer.embed_once() == 5 and old.texts == 5
    assert bench.coverage(old.fingerprint) == -1.0
    assert len(bench.store.knn(bench.store.spaces()[-1].id, np.ones(96), 9)) == 5


def test_private_notes_are_never_given_to_a_model_elsewhere(bench: Bench) -> None:
    bench.write("Private/a.md", "secret words")
    bench.write("b.md", "hidden words #mine")
    bench.write("c.md", "open words")
    model = FakeEmbedder(48)
    model.local = False
    bench.config = replace(bench.config, privacy=PrivacySettings(("Private/", "#mine")))
    with_model(bench, model)
    assert bench.indexer.embed_once() == 1
    assert [text for text in model.seen if "secret" in text or "hidden" in text] == []
    status = bench.indexer.embedding
    assert (status.state, status.remaining, status.held_back) == ("complete", 0, 2)
    assert bench.coverage(bench.table.fingerprint) == 1.0
    bench.restart(privacy=PrivacySettings())
    bench.run()
    assert bench.indexer.embed_once() == 2


def test_a_model_that_does_not_tell_its_width_is_asked_once(bench: Bench) -> None:
    bench.write("a.md", "text")

    class Shy(FakeEmbedder):
        asked = 0

        def embed(self, texts: Any, kind: Any) -> Vectors:
            self.asked += 1
            self.dim = 48
            return super().embed(texts, kind)

    model = Shy(48)
    model.dim = 0
    with_model(bench, model)
    assert bench.indexer.embed_once() == 1 and model.asked == 2
    model.dim = 0
    bench.restart()
    bench.run()
    assert bench.indexer.embed_once() == 0 and model.asked == 2


def test_a_model_that_gives_nothing_is_said(bench: Bench) -> None:
    bench.write("a.md", "text")

    class Empty(FakeEmbedder):
        def embed(self, texts: Any, kind: Any) -> Vectors:
            return nothing(len(texts), 0)

    model = Empty(48)
    model.dim = 0
    with_model(bench, model)
    assert bench.indexer.embed_once() == 0 and bench.indexer.embedding.state == "failing"


def test_without_a_model_the_table_is_all_there_is(bench: Bench) -> None:
    bench.write("a.md", "text")
    with_model(bench, FakeEmbedder(48))
    bench.indexer.embed_once()
    bench.model = None
    bench.restart()
    bench.run()
    assert bench.indexer.embedding.state == "none" and bench.indexer.embed_once() == 0
    assert [space.role for space in bench.store.spaces()] == ["table"]


def test_the_builtin_model_runs_in_a_child_and_survives_its_death(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", "text")
    model = FakeEmbedder(48, name="minilm")
    called: list[str] = []

    def call(name: str, texts: list[str], threads: int) -> Vectors:
        called.append(name)
        raise ChildDied("crash")

    with_model(bench, model)
    monkeypatch.setattr(bench.indexer._background._pool, "call", call)
    assert bench.indexer.embed_once() == 1
    assert called == ["tarsd.embed.minilm:embed_batch"] * 2 and model.calls == 1


def test_the_settings_decide_the_chunker(bench: Bench) -> None:
    def chunker(config: Config) -> str:
        return Indexer(config, [], bench.store, bench.table)._settings.chunker

    base = bench.config
    others = [
        replace(base, chunk=ChunkSettings(tokens=100)),
        replace(base, include_comments=True),
        replace(base, privacy=PrivacySettings(("x/",))),
    ]
    assert len({chunker(one) for one in (base, *others)}) == 4
    assert chunker(replace(base, vault=Path("/elsewhere"))) == chunker(base)


def test_a_disk_that_comes_back_without_its_notes_is_a_first_look(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "_SECOND_LOOK_S", 0.3)
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    bench.run()
    away = bench.root.with_name("away")
    bench.root.rename(away)
    bench.root.mkdir()
    assert bench.run().removed == 0
    time.sleep(0.4)  # longer away than the second look takes
    (bench.root / ".obsidian").mkdir()
    report = bench.run()
    assert report.removed == 0 and report.again_s is not None and 0.1 < report.again_s < 0.31
    time.sleep(report.again_s)
    assert bench.run().removed == 5


def test_what_a_pass_left_undone_stays_behind(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("old.md", "text")
    bench.write("gone.md", "text to go")
    bench.run()
    for i in range(300):
        bench.write(f"{i}.md", f"word{i}")
    (bench.root / "gone.md").unlink()
    apply, room = bench.store.apply, 2

    def full(batch: Batch, *, settle: bool = True) -> None:
        nonlocal room
        room -= 1
        if room < 0:
            raise DiskFull("The disk is full.", "Make room.")
        apply(batch, settle=settle)

    monkeypatch.setattr(bench.store, "apply", full)
    with pytest.raises(DiskFull):
        bench.run()
    left = 300 + 2 - len(bench.paths()) + 1  # the one that is gone is to do as well
    assert left > 100 and bench.indexer.behind == left
    with pytest.raises(DiskFull):
        bench.run()
    assert bench.indexer.behind == left
    lacking = [f"{i}.md" for i in range(300) if f"{i}.md" not in bench.paths()]
    with pytest.raises(DiskFull):
        bench.run(lacking[0])
    assert bench.indexer.behind == left
    monkeypatch.setattr(bench.store, "apply", apply)
    bench.run(lacking[0])
    assert bench.indexer.behind == left - 1
    (bench.root / lacking[1]).unlink()
    bench.run(lacking[1])  # no work any more, and nothing to wait for
    assert bench.indexer.behind == left - 2
    seen = []
    bench.run(progress=lambda event: seen.append(bench.indexer.behind))
    assert bench.indexer.behind == 0 and seen[0] < left - 2 and seen == sorted(seen, reverse=True)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"#t{i}" for i in range(8000)),
        "---\naliases:\n" + "".join(f"  - other{i}\n" for i in range(8000)) + "---\n" + "words of text\n\n" * 4000,
        "---\ntitle: " + "".join(f"t{i} " for i in range(8000)) + "\n---\n" + "words of text\n\n" * 4000,
        "# " + "".join(f"head{i} " for i in range(8000)) + "\n\n" + "words of text\n\n" * 4000,
    ],
    ids=["tags", "aliases", "title", "heading"],
)
def test_what_a_note_is_called_costs_no_more_than_its_size(bench: Bench, text: str) -> None:
    bench.write("a.md", text)
    bench.run()
    assert bench.store.counts().chunks > 20
    pages = bench.store._db.execute("SELECT (SELECT * FROM pragma_page_count) - (SELECT * FROM pragma_freelist_count)")
    assert pages.get * 4096 < 400_000 + 12 * len(text)
    before = bench.store.dump()
    bench.store.rebuild_keywords()
    assert bench.store.dump() == before


def test_a_text_that_the_server_lied_about_is_tried_again_later_and_not_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(6):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    model.nans = lambda text: "text 3" in text
    model.refuse = lambda text: "text 4" in text
    with_model(bench, model)
    background = bench.indexer._background
    assert bench.indexer.embed_once() == 4
    status = bench.indexer.embedding
    assert (status.state, status.remaining, status.failed) == ("complete", 0, 2)
    assert {one.path for one in bench.store.problems()} == {"3.md", "4.md"}
    assert all("tarsd reindex --full" in one.hint for one in bench.store.problems())
    assert bench.indexer.embed_once() == 0 and model.calls == 1
    now = [time.monotonic()]
    monkeypatch.setattr("tarsd.index.background.time.monotonic", lambda: now[0])
    for pause, calls in ((70, 2), (70, 2), (3600, 3), (100_000, 3)):
        now[0] += pause
        background.wake()
        assert bench.indexer.embed_once() == 0 and model.calls == calls
    assert sum("text 3" in text for text in model.seen) == 3
    assert sum("text 4" in text for text in model.seen) == 1
    model.nans = model.refuse = None
    bench.run(full=True)
    assert bench.indexer.embed_once() == 2 and bench.store.problems() == []


def test_a_new_start_tries_again_what_the_server_lied_about(bench: Bench) -> None:
    for i in range(3):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    model.zeros = lambda text: "text 1" in text
    with_model(bench, model)
    assert bench.indexer.embed_once() == 2
    model.zeros = None
    bench.restart()
    bench.run()
    assert bench.indexer.embed_once() == 1 and model.texts == 4
    assert bench.store.problems() == [] and bench.coverage(model.fingerprint) == 1.0


def test_cached_vectors_of_another_length_count_as_missing(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    with_model(bench, model)
    hashes = [row[0] for row in bench.store._db.execute("SELECT hash FROM chunks")]
    bench.store.cache_vectors(model.fingerprint, hashes[:2], np.ones((2, 96), np.float32))
    bench.store.cache_vectors(model.fingerprint, hashes[2:3], np.ones((1, 48), np.float32))
    assert bench.indexer.embed_once() == 4 and model.texts == 4
    assert bench.coverage(model.fingerprint) == 1.0
    bench.store._vectors.execute("UPDATE vectors SET vector = x'000102' WHERE hash = ?", (hashes[0],))
    space = bench.store.space_for(model.fingerprint)
    assert space is not None and len(bench.store.knn(space.id, np.ones(48), 9)) == 4
    bench.store.warm(space.id)
    assert len(bench.store.knn(space.id, np.ones(48), 9)) == 4
    with pytest.raises(StoreError, match="another model"):
        bench.store.put_vectors(space.id, hashes[:1], np.ones((1, 96), np.float32))


def test_an_index_that_was_lost_after_a_long_rest_embeds_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(tmp_path) as engine:
        for number in range(5):
            write(engine.vault, f"{number}.md", f"Text number {number} is about tea.")
        engine.index()
        engine.embed()
        assert engine.model.texts == 5
        index = engine.config.paths.index_db
    index.unlink()
    later = time.time() + 200 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    with Engine(tmp_path) as engine:
        engine.index()
        engine.embed()
        assert engine.model.texts == 0
