"""Passes over a vault: what changed is found, and nothing is lost by what only seems to be gone."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tarsd import parse as parsing
from tarsd.config import ChunkSettings, Collection, WatchSettings
from tarsd.embed.base import Vectors
from tarsd.embed.fake import FakeEmbedder
from tarsd.errors import DiskFull, VaultUnavailable
from tarsd.index import Report
from tarsd.index.prepare import PrepareSettings, ReadJob, prepare_group
from tarsd.vault import FileInfo, content_hash
from tests.support.index_dump import dump
from tests.unit.index.conftest import Bench


def numbers(report: Report) -> tuple[int, int, int, int, int]:
    return (report.added, report.changed, report.moved, report.removed, report.unchanged)


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
    before, texts = dump(bench.store), bench.table.texts
    os.utime(file)
    bench.run()
    bench.write("a.md", "text", age=3)
    assert numbers(bench.run("a.md")) == (0, 0, 0, 0, 1)
    assert dump(bench.store) == before and bench.table.texts == texts
    assert bench.store.notes.rows()["", "a.md"].mtime_ns == file.stat().st_mtime_ns


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
    ids = {r.path.rpartition("/")[2]: r.id for r in bench.store.notes.rows().values()}
    texts = bench.table.texts
    (bench.root / "a").rename(bench.root / "z")
    assert numbers(bench.run("a", "z")) == (0, 0, 40, 0, 0)
    assert {r.path.rpartition("/")[2]: r.id for r in bench.store.notes.rows().values()} == ids
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
    assert bench.paths() == ["Config.md"] and bench.store.notes.titles()[0].title == "Config"


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
    assert [(one.path, one.state) for one in bench.store.notes.skipped()] == [("bad.md", "unreadable")]


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
    assert bench.store.notes.rows()["", "a.md"].hash == content_hash(file.read_bytes())


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
    bench.store.vectors.ensure_space("table", bench.table.fingerprint, 32, "table")
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
    assert sorted(bench.store.notes.rows()) == [("", "a.md"), ("work", "a.md")]
    bench.write("a.md", "other labour", root=work, age=4)
    assert bench.run(("work", "")).changed == 1
    shutil.rmtree(work)
    assert bench.run().unchanged == 1
    assert bench.state == "unavailable" and len(bench.store.notes.rows()) == 2
    bench.restart()
    bench.run()
    assert bench.indexer.behind == 0  # the vault itself is complete
    bench.restart(collections=())
    assert bench.run().removed == 1 and sorted(bench.store.notes.rows()) == [("", "a.md")]


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
    assert told.reason.endswith("they stay in the index.") and "and wait" in told.hint and "deleted" not in told.hint
    bench.root.rmdir()
    away.rename(bench.root)
    assert numbers(bench.run()) == (0, 0, 0, 0, 5) and bench.state == "ready"


def test_a_real_emptying_needs_a_second_look(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    bench.run()
    for i in range(5):
        (bench.root / f"{i}.md").unlink()
    assert bench.run("0.md", "1.md", "2.md", "3.md", "4.md").removed == 0
    (told,) = bench.indexer._faults.values()
    assert "for now" in told.reason and "after 30 seconds, they are taken as deleted" in told.hint
    bench.indexer.second_look_s = 0.0
    assert bench.run().removed == 5 and bench.state == "ready"


def test_a_real_emptying_is_believed_on_command(bench: Bench) -> None:
    bench.write("a.md", "text")
    bench.run()
    shutil.rmtree(bench.root)
    bench.root.mkdir()
    assert bench.run().removed == 0
    assert bench.run(force=True).removed == 1


def many(bench: Bench, **folders: int) -> list[Path]:
    """Notes in folders that are called so, a "_" being a slash, indexed."""
    files = [
        bench.write(f"{folder.replace('_', '/')}/{i}.md", f"{folder} {i}")
        for folder, count in folders.items()
        for i in range(count)
    ]
    bench.run()
    return files


def test_most_notes_gone_are_believed_at_a_second_look_and_without_the_marker_never(bench: Bench) -> None:
    for file in many(bench, a=60)[:40]:
        file.unlink()
    (bench.root / ".obsidian").rename(bench.root / "hidden")
    bench.indexer.second_look_s = 0.0
    assert bench.run().removed == 0 and bench.state == "suspicious"
    (bench.root / "hidden").rename(bench.root / ".obsidian")
    bench.indexer.second_look_s = 30.0
    report = bench.run()
    assert report.removed == 0 and report.again_s is not None and bench.state == "suspicious"
    bench.indexer.second_look_s = 0.0
    assert bench.run().removed == 40 and bench.state == "ready"


@pytest.mark.parametrize(
    ("folders", "lost"),
    [
        ({"a": 100}, 98),
        ({"a": 60, "b": 40}, 60),  # a folder that held most is gone
        ({"a": 60, "b": 45}, 40),  # it lost most of its own, which is less than half of all
        ({"a_b_c": 70, "d": 60}, 50),
    ],
)
@pytest.mark.parametrize("partial", [True, False])
def test_a_vault_that_loses_most_notes_while_some_stay_is_not_believed(
    bench: Bench, folders: dict[str, int], lost: int, partial: bool
) -> None:
    gone = many(bench, **folders)[:lost]
    away = bench.root.with_name("away")
    away.mkdir()
    for file in gone:
        file.rename(away / file.name)
    paths = [str(file.relative_to(bench.root)) for file in gone] if partial else []
    assert bench.run(*paths).removed == 0
    assert bench.state == "suspicious" and len(bench.paths()) == sum(folders.values())
    (told,) = bench.indexer._faults.values()
    assert told.reason.startswith(f"{lost} of ") and "second look" in told.hint
    for file in gone:
        (away / file.name).rename(file)
    assert numbers(bench.run())[:4] == (0, 0, 0, 0) and bench.state == "ready"


@pytest.mark.report("https://github.com/restic/restic/issues/2179")
@pytest.mark.parametrize("how", ["in place", "moved over", "copied over", "swapped", "made again", "linked"])
def test_another_text_of_the_same_size_and_time_is_read(bench: Bench, how: str) -> None:
    """As after `rsync -a` or a restored backup: the daemon did not run, and no event tells of it."""
    file, other = bench.write("n.md", "a heron"), bench.write("other.md", "a egret")
    info = file.stat()
    os.utime(other, ns=(info.st_atime_ns, info.st_mtime_ns))
    bench.run()
    texts = bench.table.texts
    assert numbers(bench.run())[:4] == (0, 0, 0, 0)
    bench.restart()
    if how == "in place":
        file.write_bytes(b"a egret")
    elif how == "moved over":
        other.replace(file)
    elif how == "copied over":
        shutil.copy2(other, file)
    elif how == "made again":
        file.unlink()
        file.write_bytes(b"a egret")
    elif how == "linked":
        file.unlink()
        os.link(other, file)
    else:
        file.rename(bench.root / "x")
        other.rename(file)
        (bench.root / "x").rename(other)
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (info.st_size, info.st_mtime_ns)
    bench.run()
    assert "n.md" in bench.find("egret") and "n.md" not in bench.find("heron")
    assert bench.table.texts == texts


def test_a_file_whose_mode_alone_changed_is_read_once_and_not_embedded(bench: Bench) -> None:
    file = bench.write("n.md", "a heron")
    bench.run()
    texts, row = bench.table.texts, bench.store.notes.rows()["", "n.md"]
    file.chmod(0o600)
    assert numbers(bench.run()) == (0, 0, 0, 0, 1) and bench.table.texts == texts
    assert bench.store.notes.rows()["", "n.md"].stamp != row.stamp
    assert numbers(bench.run()) == (0, 0, 0, 0, 1)


def test_what_is_tidied_is_believed_at_once(bench: Bench) -> None:
    """Half of the notes, a folder that did not hold most, what is left out from now on, and what is moved."""
    files = many(bench, a=60, b=60)
    for file in files[:30]:
        file.unlink()
    assert bench.run().removed == 30
    (bench.root / "b").rename(bench.root / "c")
    assert bench.run().moved == 60
    bench.restart(exclude=("c/",))
    assert bench.run().removed == 60 and bench.state == "ready"


def test_notes_that_go_in_several_portions_are_added_up(bench: Bench) -> None:
    files = many(bench, a=100)
    for start in (0, 20, 40):
        for file in files[start : start + 20]:
            file.unlink()
        bench.run(*(f"a/{i}.md" for i in range(start, start + 20)))
    assert bench.state == "suspicious" and len(bench.paths()) == 60
    bench.indexer.second_look_s = 0.0
    assert bench.run().removed == 20 and bench.state == "ready"


def test_many_notes_that_are_empty_all_of_a_sudden_are_not_believed(bench: Bench) -> None:
    """As where a sync tool leaves placeholders; a few are believed after a moment, as ever."""
    files = many(bench, a=50)
    for file in files[:40]:
        bench.write(f"a/{file.name}", b"", age=60)
    assert bench.run().changed == 0 and bench.state == "suspicious"
    (told,) = bench.indexer._faults.values()
    assert "40 of 50 notes are missing or empty in" in told.reason
    bench.indexer.second_look_s = 0.0
    assert bench.run().changed == 40 and bench.state == "ready"


def test_while_notes_come_back_the_second_look_is_put_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    files = many(bench, a=100)
    texts = [file.read_bytes() for file in files]
    for file in files[:90]:
        file.unlink()
    now = time.monotonic()
    for later, back in ((0, 0), (20, 10), (40, 20), (60, 30)):
        for file, text in list(zip(files, texts, strict=True))[:back]:
            bench.write(f"a/{file.name}", text)
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        assert bench.run().removed == 0 and bench.state == "suspicious"
    monkeypatch.setattr(time, "monotonic", lambda: now + 91)
    assert bench.run().removed == 60 and bench.state == "ready"


def test_a_plain_folder_may_be_emptied_too(bench: Bench) -> None:
    shutil.rmtree(bench.root / ".obsidian")
    bench.write("a.md", "text")
    bench.run()
    (bench.root / "a.md").unlink()
    assert bench.run().removed == 0
    bench.indexer.second_look_s = 0.0
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
    assert bench.store.notes.rows()["", "a.md"].state == "not_downloaded" and bench.find("text") == ["a.md"]
    (bench.root / ".a.md.icloud").rename(bench.root / "a.md")
    bench.run()
    assert bench.store.notes.rows()["", "a.md"].state == "ok"


def test_a_full_disk_stops_nothing_for_good(bench: Bench) -> None:
    bench.write("a.md", "text")
    bench.run()
    for i in range(30):
        bench.write(f"big{i}.md", "\n\n".join(f"paragraph {i} {j} with many words" for j in range(200)))
    pages = bench.store.database._db.execute("PRAGMA page_count").get
    bench.store.database._db.execute(f"PRAGMA max_page_count = {pages + 4}").fetchall()
    with pytest.raises(DiskFull):
        bench.run()
    assert bench.state == "disk_full" and bench.find("text") == ["a.md"]
    bench.store.database._db.execute("PRAGMA max_page_count = 1000000").fetchall()
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
    assert not bench.store.database.damaged and (bench.home / "index.db.corrupt-1").exists()


def test_lost_rows_are_repaired_at_the_start_and_told(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    bench.run()
    before = dump(bench.store)
    bench.store.database._db.execute("DELETE FROM vec_1; DELETE FROM fts WHERE rowid < 3")
    bench.restart()
    report = bench.run()
    assert len(report.repaired) == 2 and dump(bench.store) == before
    bench.close()
    for file in bench.home.glob("embeddings.db*"):
        file.unlink()
    bench.open()
    assert bench.run().repaired and bench.coverage(bench.table.fingerprint) == 1.0
