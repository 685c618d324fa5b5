"""Reported faults of watching and incremental indexing, played through the whole engine; one test each, named for it.

What concerns the process itself is played on a real one.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tarsd.config import WatchSettings, load
from tarsd.embed.base import Kind, Vectors
from tarsd.embed.fake import FakeEmbedder
from tarsd.errors import VaultUnavailable
from tarsd.index import prepare
from tarsd.vault import content_hash
from tests.conftest import Daemon
from tests.support.engine import LONG, Engine, embed_all, forget_time, until, write

Start = Callable[..., Daemon]


@pytest.fixture
def engine(short_tmp: Path) -> Iterator[Engine]:
    """An engine on an empty vault."""
    with Engine(short_tmp) as one:
        yield one


class Thread:
    """A thread of an observer."""

    def __init__(self) -> None:
        self.alive = False

    def is_alive(self) -> bool:
        return self.alive


class Silent(Thread):
    """An observer that sees nothing; `fault` is raised at its start; `tell` delivers an event."""

    def __init__(self, fault: OSError | None = None) -> None:
        super().__init__()
        self.fault = fault
        self.emitters = [Thread()]
        self.handler: Any = None

    def schedule(self, handler: Any, path: str, **_: object) -> object:
        self.handler = handler
        return None

    def start(self) -> None:
        if self.fault is not None:
            raise self.fault
        self.alive = self.emitters[0].alive = True

    def stop(self) -> None:
        self.alive = self.emitters[0].alive = False

    def join(self, timeout: float | None = None) -> None:
        pass

    def tell(self, kind: str, source: Path, dest: Path | str = "", *, folder: bool = False) -> None:
        self.handler.dispatch(Event(kind, source, dest, folder))


class Event:
    """An event as watchdog has them."""

    def __init__(self, kind: str, source: Path, dest: Path | str, folder: bool) -> None:
        self.event_type, self.is_directory = kind, folder
        self.src_path, self.dest_path = str(source), str(dest)


class Gate(FakeEmbedder):
    """A model that waits at its gate with everything that it is given, while that is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.waiting = threading.Event()
        self.inside = self.most = 0

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.waiting.set()
        assert self.open.wait(LONG)
        self.inside -= 1
        return super().embed(texts, kind)


def found_by(engine: Engine, word: str, *paths: str) -> None:
    """Wait until a word finds these notes."""
    until(lambda: engine.found(word) == list(paths))


def ticks(pid: int) -> int:
    """Processor time that a process and its ended children have used, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15])


# ---------------------------------------------------------------------------------------- kind 1: files


@pytest.mark.report("https://github.com/d12frosted/vulpea/issues/383")
def test_a_name_composed_or_not_is_one_note(engine: Engine) -> None:
    composed = "Příští schůzka é.md"
    decomposed = unicodedata.normalize("NFD", composed)
    write(engine.vault, decomposed, "first text: ocarina\n")
    engine.watch()
    assert engine.paths() == [composed]
    assert Path(engine.rows()[composed].disk).name in (composed, decomposed)
    before = engine.store.counts().chunks
    for number, form in enumerate((decomposed, composed)):
        on_disk = next(engine.vault.glob("*.md"))
        on_disk.write_text(f"text {number}: flageolet{number}\n", encoding="utf-8")
        engine.watcher.dispatch(Event("modified", engine.vault / form, "", False))
        found_by(engine, f"flageolet{number}", composed)
        assert engine.found("ocarina") == [] and engine.paths() == [composed]
        assert engine.store.counts().chunks == before
    (engine.vault / composed).write_text("the other form: bassoon\n", encoding="utf-8")
    until(lambda: engine.found("bassoon"))
    if sys.platform != "darwin":  # there both names are one file
        assert engine.paths() == sorted([composed, decomposed])
        assert engine.found("bassoon") == [composed] and engine.found("flageolet1") == [decomposed]
        told = [problem for problem in engine.status()["problems"] if problem.get("state") == "twin"]
        assert len(told) == 1 and told[0]["hint"]


@pytest.mark.report("https://github.com/basicmachines-co/basic-memory/issues/1281")
def test_a_rename_of_case_alone_is_a_rename(engine: Engine) -> None:
    small, large = engine.vault / "config.md", engine.vault / "Config.md"
    write(engine.vault, "config.md", "about spigots")
    engine.watch()
    engine.embed()
    asked = engine.model.texts
    assert engine.paths() == ["config.md"]
    small.rename(large)
    until(lambda: engine.paths() == ["Config.md"])
    engine.stop()
    large.rename(small)
    engine.restart()
    engine.watch()
    assert engine.paths() == ["config.md"] == engine.found("spigots")
    assert (engine.embed(), engine.model.texts) == (0, asked)
    large.write_text("about faucets", encoding="utf-8")
    if not small.samefile(large):
        until(lambda: engine.paths() == ["Config.md", "config.md"])
        assert (engine.found("spigots"), engine.found("faucets")) == (["config.md"], ["Config.md"])


@pytest.mark.report("https://github.com/atomantic/PortOS/issues/3707")
def test_what_is_not_downloaded_keeps_its_rows_and_is_never_read(engine: Engine) -> None:
    path = write(engine.vault, "evicted.md", "about isobars\n" * 400)
    write(engine.vault, "here.md", "about cyclones")
    engine.index()
    row = engine.rows()["evicted.md"]
    size = path.stat().st_size
    for full in (False, True):  # evicted: the size is there, the blocks are not
        path.unlink()
        with path.open("wb") as file:
            file.truncate(size)
        if path.stat().st_blocks:
            pytest.skip("this disk keeps no files without blocks")
        engine.reconcile(full=full)
        assert engine.rows()["evicted.md"].hash == row.hash
        assert engine.rows()["evicted.md"].state == "not_downloaded"
        assert engine.found("isobars") == ["evicted.md"]
    assert engine.status()["counts"]["skipped"] == 1
    (told,) = engine.status()["problems"]
    assert (told["path"], told["state"]) == ("evicted.md", "not_downloaded")
    path.write_text("about isotherms\n", encoding="utf-8")
    engine.reconcile()
    assert engine.found("isotherms") == ["evicted.md"] and engine.found("isobars") == []
    assert engine.status()["problems"] == []


@pytest.mark.report("https://github.com/atomantic/PortOS/issues/3707")
def test_the_daemon_answers_amid_files_that_block(vault: Path, daemon: Start) -> None:
    for number in range(10):
        os.mkfifo(vault / f"evicted{number}.md")
    write(vault, "here.md", "The ping mark is a brass bolt.")
    one = daemon()
    status = one.client.get("/v1/status")
    assert (status["counts"]["notes"], status["counts"]["skipped"]) == (1, 10)
    assert [problem["state"] for problem in status["problems"]] == ["not_downloaded"] * 10
    for number in range(10):
        assert one.client.post("/v1/why", {"path": f"evicted{number}.md", "query": "bolt"})
    reply = one.client.post("/chat", {"message": "what is the ping mark?"})
    assert [source["path"] for source in reply["sources"]] == ["here.md"]


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/539")
def test_a_file_that_is_empty_for_a_moment_loses_nothing(engine: Engine) -> None:
    patient = WatchSettings(debounce_s=0.02, max_wait_s=0.1, reconcile_s=3600, poll_s=0.1, grace_empty_s=30)
    text = "about sextants\n"
    path = write(engine.vault, "n.md", text)
    engine.restart(watch=patient)
    engine.watch()
    engine.embed()
    asked, chunks = engine.model.texts, engine.store.counts().chunks
    for _ in range(20):
        engine.reports.clear()
        path.write_text("")
        until(lambda: engine.reports)  # it was seen empty, and not believed
        assert engine.found("sextants") == ["n.md"]
        path.write_text(text)
    engine.quiet()
    assert (engine.embed(), engine.model.texts, engine.store.counts().chunks) == (0, asked, chunks)
    path.write_text("about quadrants\n")
    until(lambda: engine.found("quadrants") == ["n.md"])


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/539")
def test_a_note_that_stays_empty(engine: Engine) -> None:
    write(engine.vault, "never.md", "")
    path = write(engine.vault, "n.md", "about sextants\n")
    engine.watch()
    assert engine.found("never") == ["never.md"]
    path.write_text("")
    until(lambda: engine.found("sextants") == [])
    assert engine.rows()["n.md"].state == "empty"
    assert [event["path"] for event in engine.events if event["type"] == "emptied"] == ["n.md"]
    until(lambda: engine.indexer.state.name == "ready")
    assert engine.trouble == ""
    assert engine.found("n") == ["n.md"]  # by its name


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/539")
def test_a_note_that_stays_empty_is_reported(vault: Path, home: Path, daemon: Start) -> None:
    (home / "config.toml").write_text("[watch]\ngrace_empty_s = 0.2\n")
    path = write(vault, "n.md", "about sextants\n")
    one = daemon()
    path.write_text("")
    status = one.wait(lambda status: bool(status["problems"]))
    (told,) = status["problems"]
    assert told["path"] == "n.md" and "empty" in told["reason"] and told["hint"]
    path.write_text("about octants\n")
    one.wait(lambda status: not status["problems"])


@pytest.mark.report("https://github.com/guard/rb-inotify/issues/21")
def test_a_walk_through_links_ends(engine: Engine, tmp_path: Path) -> None:
    outside = tmp_path / "V2"
    write(outside, "far.md", "about pulsars")
    write(engine.vault, "a/near.md", "about quasars")
    (engine.vault / "a" / "up").symlink_to("..")
    (engine.vault / "linked").symlink_to(outside)
    engine.watch()
    assert engine.paths() == ["a/near.md"]
    assert {row.path: row.state for row in engine.skipped()} == {"a/up": "duplicate", "linked": "outside"}
    assert all(problem["hint"] or problem["state"] == "duplicate" for problem in engine.status()["problems"])
    write(outside, "far.md", "about magnetars")
    write(engine.vault, "a/near.md", "about blazars")
    until(lambda: engine.found("blazars") == ["a/near.md"])
    assert engine.quiet() and engine.paths() == ["a/near.md"]


# ---------------------------------------------------------------------------------------- kind 2: watching


@pytest.mark.report("https://github.com/MarcoPorcellato/matryca-plumber/issues/200")
def test_a_save_by_rename_is_seen(engine: Engine, tmp_path: Path) -> None:
    note = write(engine.vault, "n.md", "version nought")
    engine.watch()

    def temp_beside(text: str) -> None:
        write(engine.vault, ".n.md.tmp", text).rename(note)

    def temp_outside(text: str) -> None:
        temporary = write(tmp_path, "n.tmp", text)
        os.utime(temporary, (1, 1))
        shutil.move(temporary, note)

    def with_backup(text: str) -> None:
        note.rename(engine.vault / "n.md~")
        write(engine.vault, "n.md", text)
        (engine.vault / "n.md~").unlink()

    def in_place(text: str) -> None:
        note.write_text(text)

    old = "nought"
    for number, save in enumerate((temp_beside, temp_outside, with_backup, in_place)):
        new = f"wordnumber{number}"
        save(f"version {new}")
        found_by(engine, new, "n.md")
        assert engine.found(old) == []
        old = new
        engine.quiet()
        assert engine.paths() == ["n.md"]


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/720")
def test_reading_is_no_reason_to_look(engine: Engine) -> None:
    notes = [write(engine.vault, f"{number % 7}/n{number}.md", f"note {number}") for number in range(300)]
    engine.watch()
    before = engine.quiet()
    for note in notes:
        note.read_bytes()
        os.listdir(note.parent)
    assert engine.quiet() == before
    write(engine.vault, "last.md", "about turbots")
    until(lambda: engine.found("turbots"))
    assert engine.quiet() == before + 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor time is read from /proc")
@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/720")
def test_an_idle_daemon_rests(vault: Path, daemon: Start) -> None:
    notes = [write(vault, f"n{number}.md", f"note {number}") for number in range(300)]
    one = daemon()
    one.wait(lambda status: status["embedding"]["state"] in ("ready", "complete"))
    pid = one.process.pid
    for _ in range(5):  # what was begun may end first
        for note in notes:
            note.read_bytes()
        used, seconds = ticks(pid), 3.0
        time.sleep(seconds)
        used = ticks(pid) - used
        if used <= seconds:  # 1 % in hundredths of a second
            return
    raise AssertionError(f"{used} hundredths of a second of processor time in {seconds} idle seconds")


@pytest.mark.report("https://github.com/openclaw/openclaw/issues/77125")
def test_files_of_our_own_are_no_reason_to_look(short_tmp: Path) -> None:
    model = Gate()
    with Engine(short_tmp, model=model) as engine:
        note = write(engine.vault, "n.md", "version nought")
        running, most = 0, 0
        inner = engine.indexer.reconcile

        def noted(paths: Any = None, **more: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return inner(paths, **more)
            finally:
                running -= 1

        engine.indexer.reconcile = noted  # type: ignore[method-assign]
        engine.watch()
        engine.embed_in_background()
        assert model.waiting.wait(LONG)
        before = engine.quiet()
        for number in range(50):
            write(engine.vault, ".tars/health.json", f'{{"n": {number}}}')
            write(engine.vault, ".obsidian/workspace.json", f'{{"n": {number}}}')
            write(engine.vault, "tars.log", f"line {number}")
        assert engine.quiet() == before
        for number in range(50):
            note.write_text(f"version number{number}")
        until(lambda: engine.found("number49") == ["n.md"])  # the model is still at its first text
        assert len(engine.reports) - before < 25
        assert (most, model.most) == (1, 1)
        model.open.set()
        until(lambda: engine.indexer.background.status().remaining == 0)


@pytest.mark.report("https://github.com/openclaw/openclaw/issues/77125")
def test_nothing_of_ours_lies_in_the_vault(vault: Path, home: Path) -> None:
    paths = load(vault=vault, env={"HOME": str(home)}).paths
    for place in (paths.cache, paths.state, paths.logs, paths.index_db, paths.embeddings_db, paths.socket):
        assert vault not in place.parents


@pytest.mark.report("https://github.com/gorakhargosh/watchdog/issues/721")
def test_no_fault_ends_the_watching(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.watch()
    key_of = engine.vaults[""].key_of

    def fragile(path: Any, **more: Any) -> str | None:
        if "bad" in os.fsdecode(path):
            raise RuntimeError("an emitter met something odd")
        return key_of(path, **more)

    monkeypatch.setattr(engine.vaults[""], "key_of", fragile)
    write(engine.vault, "bad.md", "about limpets")
    write(engine.vault, "good.md", "about mussels")
    until(lambda: engine.found("mussels") == ["good.md"])
    until(lambda: engine.found("limpets") == ["bad.md"])  # by the look at everything that follows
    first = engine.watcher._observer
    assert first is not None
    for emitter in first.emitters:
        emitter.stop()  # type: ignore[attr-defined]
    write(engine.vault, "good.md", "about oysters")
    until(lambda: engine.found("oysters") == ["good.md"])
    until(lambda: engine.watcher._observer is not first and engine.watcher.state.mode == "events")
    write(engine.vault, "good.md", "about scallops")
    until(lambda: engine.found("scallops") == ["good.md"])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
@pytest.mark.report("https://github.com/gorakhargosh/watchdog/issues/673")
def test_limits_of_inotify_lead_to_polling(engine: Engine, number: int) -> None:
    for folder in range(80):
        write(engine.vault, f"folder {folder}/n.md", f"note {folder}")
    engine.watch(make_observer=lambda: Silent(OSError(number, os.strerror(number))))
    status = engine.status()
    assert status["watch"]["state"] == "polling"
    assert "sysctl fs.inotify.max_user_" in status["watch"]["hint"]
    assert len([problem for problem in status["problems"] if "limit" in problem["reason"]]) == 1
    write(engine.vault, "folder 79/n.md", "about gannets")
    until(lambda: engine.found("gannets") == ["folder 79/n.md"])
    assert engine.trouble == ""


@pytest.mark.report("https://github.com/gorakhargosh/watchdog/issues/409")
def test_a_mount_without_events_is_polled(engine: Engine) -> None:
    write(engine.vault, "n.md", "about petrels")
    engine.watch(make_observer=Silent, filesystem=lambda _: "nfs4")
    engine.embed()
    asked = engine.model.texts
    assert engine.status()["watch"]["state"] == "polling"
    (engine.vault / "n.md").rename(engine.vault / "renamed.md")
    until(lambda: engine.found("petrels") == ["renamed.md"])
    until(lambda: engine.paths() == ["renamed.md"])
    assert (engine.embed(), engine.model.texts) == (0, asked)
    until(lambda: sum(report.moved for report in engine.reports) == 1)
    write(engine.vault, "renamed.md", "about fulmars")
    until(lambda: engine.found("fulmars") == ["renamed.md"])


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/665")
def test_what_changed_while_nobody_watched_is_found(engine: Engine) -> None:
    words = ("barnacle", "periwinkle", "whelk")
    for number in range(1000):
        text = f"# Note {number}\n\n{words[number - 1] if 1 <= number <= 3 else 'sand'}\n"
        forget_time(write(engine.vault, f"n{number}.md", text))
    engine.index()
    asked = engine.model.texts
    engine.stop()
    write(engine.vault, "added.md", "about avocets")
    write(engine.vault, "n1.md", "about curlews")
    (engine.vault / "n2.md").unlink()
    (engine.vault / "n3.md").rename(engine.vault / "moved.md")
    engine.restart()
    report = engine.index()
    assert (report.added, report.changed, report.removed, report.moved) == (1, 1, 1, 1)
    assert report.unchanged == 997
    assert engine.model.texts - asked == 2
    assert engine.found("avocets") == ["added.md"] and engine.found("curlews") == ["n1.md"]
    assert engine.found("barnacle") == engine.found("periwinkle") == []
    assert engine.found("whelk") == ["moved.md"]


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/665")
def test_ready_while_it_catches_up(vault: Path, daemon: Start) -> None:
    for number in range(200):
        write(vault, f"n{number}.md", f"# Note {number}\n\nNumber {number}.\n")
    write(vault, "kedge.md", "# Kedge\n\nThe kedge is a small anchor.\n")
    write(vault, "grapnel.md", "# Grapnel\n\nThe grapnel has four flukes.\n")
    one = daemon()
    one.stop()
    write(vault, "added.md", "# Added\n\nThe avocet wades.\n")
    (vault / "grapnel.md").unlink()
    one.process = one.spawn()
    until(one.client.alive)
    reply = one.client.post("/chat", {"message": "what is a kedge?"})
    assert [source["path"] for source in reply["sources"]] == ["kedge.md"]
    one.wait()
    assert one.client.post("/v1/search", {"query": "avocet"})["hits"][0]["path"] == "added.md"
    assert one.client.post("/v1/search", {"query": "grapnel", "mode": "fts"})["hits"] == []


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/565")
def test_a_vault_that_is_gone_loses_nothing(engine: Engine) -> None:
    for number in range(50):
        write(engine.vault, f"n{number}.md", f"word{number}")
    engine.watch()
    engine.embed()
    rows, asked = engine.rows(), engine.model.texts
    away = engine.vault.with_name("away")
    engine.vault.rename(away)
    until(lambda: engine.status()["watch"]["state"] == "waiting")
    with pytest.raises(VaultUnavailable):
        engine.reconcile()
    assert engine.found("word7") == ["n7.md"]
    status = engine.status()
    assert engine.indexer.state.name == "unavailable"
    assert any("is missing" in problem["reason"] and problem["hint"] for problem in status["problems"])
    engine.vault.mkdir()  # the mount point of an absent disk
    until(lambda: engine.indexer.state.name == "suspicious")
    assert set(engine.rows()) == set(rows)
    engine.vault.rmdir()
    away.rename(engine.vault)
    until(lambda: engine.indexer.state.name == "ready" and engine.status()["watch"]["state"] == "events")
    engine.quiet()
    assert engine.rows() == rows
    assert (engine.embed(), engine.model.texts) == (0, asked)


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/565")
def test_a_vault_that_is_emptied_on_purpose(engine: Engine) -> None:
    engine.indexer.second_look_s = 0.2
    for number in range(50):
        write(engine.vault, f"n{number}.md", f"word{number}")
    engine.watch()
    for note in engine.vault.glob("*.md"):
        note.unlink()
    until(lambda: engine.indexer.state.name == "suspicious" or not engine.rows())
    until(lambda: not engine.rows())  # `.obsidian` is there, and so it is at the second look
    until(lambda: engine.indexer.state.name == "ready")


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/565")
def test_without_the_marker_only_a_command_empties(engine: Engine) -> None:
    engine.indexer.second_look_s = 0.0
    for number in range(50):
        write(engine.vault, f"n{number}.md", f"word{number}")
    engine.reconcile()
    shutil.rmtree(engine.vault)
    write(engine.vault, "other.md", "another disk")
    for _ in range(3):
        engine.reconcile()
        assert len(engine.rows()) == 51
    (told,) = engine.status()["problems"]
    assert "50 of 51" in told["reason"] and "tarsd reindex --full" in told["hint"]
    engine.reconcile(full=True)
    assert engine.paths() == ["other.md"]
    assert engine.status()["problems"] == []


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/565")
def test_a_daemon_before_its_vault(tmp_path: Path, daemon: Start) -> None:
    vault = tmp_path / "later"
    one = daemon(vault, wait=False)
    one.wait(lambda status: status["watch"]["state"] == "waiting" and bool(status["watch"]["hint"]))
    reply = one.client.post("/chat", {"message": "anything about terns?"})
    assert "is missing" in str(reply)
    assert one.process.poll() is None
    write(vault, ".obsidian/app.json", "{}")
    write(vault, "n.md", "about terns")
    one.wait(lambda status: status["counts"]["notes"] == 1 and status["behind"] == 0)
    assert one.client.post("/v1/search", {"query": "terns"})["hits"][0]["path"] == "n.md"


@pytest.mark.report("https://github.com/ggozad/haiku.rag/issues/403")
def test_a_file_that_vanishes_stops_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from tarsd.vault import scan

    real_list, real_open = scan.list_folder, os.open
    write(engine.vault, "stays.md", "about wrens")
    engine.watch()
    once: list[str] = []

    def listing(folder: str) -> list[os.DirEntry[str]]:
        entries = real_list(folder)
        if folder == str(engine.config.vault) and "stat" not in once and (engine.vault / "gone.md").exists():
            once.append("stat")
            (engine.vault / "gone.md").unlink()
            shutil.rmtree(engine.vault / "d.md")
            write(engine.vault, "d.md", "a file where a folder was")
        return entries

    def opening(path: Any, *more: Any, **most: Any) -> int:
        if str(path).endswith("fickle.md") and "open" not in once:
            once.append("open")
            raise FileNotFoundError(errno.ENOENT, "gone")
        return real_open(path, *more, **most)

    monkeypatch.setattr(scan, "list_folder", listing)
    monkeypatch.setattr(os, "open", opening)
    write(engine.vault, "d.md/deep.md", "in a folder")
    write(engine.vault, "fickle.md", "about swifts")
    write(engine.vault, "gone.md", "about rooks")
    until(lambda: {"stat", "open"} <= set(once))
    until(lambda: engine.found("where a folder was") == ["d.md"])
    write(engine.vault, "next.md", "about choughs")
    until(lambda: engine.found("choughs") == ["next.md"])
    write(engine.vault, "fickle.md", "about martins")
    until(lambda: engine.found("martins") == ["fickle.md"])
    assert engine.paths() == ["d.md", "fickle.md", "next.md", "stays.md"]
    assert engine.trouble == "" and engine.found("rooks") == []


@pytest.mark.report("https://github.com/DeusData/codebase-memory-mcp/issues/1461")
def test_an_edit_during_a_pass_is_indexed_next(short_tmp: Path) -> None:
    model = Gate()
    with Engine(short_tmp, model=model) as engine:
        note = write(engine.vault, "n.md", "# One\n\nversion one: barnacles\n\n# Two\n\nstill version one\n")
        engine.watch()
        engine.embed_in_background()
        assert model.waiting.wait(LONG)
        second = "# One\n\nversion two: anemones\n"
        note.write_text(second)
        until(lambda: engine.found("anemones") == ["n.md"])
        model.open.set()
        until(lambda: engine.indexer.background.status().state == "complete" and engine.space().coverage == 1.0)
        assert engine.rows()["n.md"].hash == content_hash(second.encode())
        assert [one.text for one in engine.store.notes.passages_of(engine.rows()["n.md"].id)] == [second.strip()]
        assert engine.space().vectors == 1
        assert [hit.path for hit in engine.search("anemones", "vec")] == ["n.md"]


@pytest.mark.report("https://github.com/DeusData/codebase-memory-mcp/issues/1461")
def test_an_edit_between_reading_and_storing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on = threading.Event(), threading.Event()
    plain = prepare.prepare_group

    def slow(jobs: Any, settings: Any) -> Any:
        done = plain(jobs, settings)
        if any("barnacles" in passage.text for note in done.prepared for passage in note.passages):
            reading.set()
            assert go_on.wait(LONG)
        return done

    monkeypatch.setattr(prepare, "prepare_group", slow)
    engine.watch()
    note = write(engine.vault, "n.md", "version one: barnacles")
    assert reading.wait(LONG)
    note.write_text("version two: anemones!")
    go_on.set()
    until(lambda: engine.found("anemones") == ["n.md"])
    assert engine.found("barnacles") == []
    assert engine.rows()["n.md"].hash == content_hash(b"version two: anemones!")


@pytest.mark.report("https://github.com/BaseIntelligence/bounty-challenge/issues/9034")
def test_a_folder_that_goes_takes_its_notes_along(engine: Engine, tmp_path: Path) -> None:
    for top in ("proj", "rest", "a"):
        for below in ("1", "x/2", "x/y/3"):
            write(engine.vault, f"{top}/{below}.md", f"about {top}word {below.replace('/', '')}")
    engine.watch()
    engine.embed()
    asked = engine.model.texts
    shutil.move(engine.vault / "proj", tmp_path / "proj")
    until(lambda: not [path for path in engine.paths() if path.startswith("proj/")])
    assert engine.found("projword") == []
    shutil.rmtree(engine.vault / "rest")
    until(lambda: not [path for path in engine.paths() if path.startswith("rest/")])
    (engine.vault / "a").rename(engine.vault / "b")
    until(lambda: engine.paths() == ["b/1.md", "b/x/2.md", "b/x/y/3.md"])
    until(lambda: sorted(engine.found("aword")) == engine.paths())  # the search hears of it right after the commit
    assert (engine.embed(), engine.model.texts) == (0, asked)


@pytest.mark.report("https://github.com/BaseIntelligence/bounty-challenge/issues/9034")
def test_one_event_for_the_folder(engine: Engine, tmp_path: Path) -> None:
    for path in ("proj/1.md", "proj/x/2.md", "proj/x/y/3.md", "a/x/4.md"):
        write(engine.vault, path, f"about {path}")
    observer = Silent()
    engine.watch(make_observer=lambda: observer)
    engine.embed()
    asked = engine.model.texts
    shutil.move(engine.vault / "proj", tmp_path / "proj")
    observer.tell("deleted", engine.vault / "proj", folder=True)
    until(lambda: engine.paths() == ["a/x/4.md"])
    (engine.vault / "a").rename(engine.vault / "b")
    observer.tell("moved", engine.vault / "a", engine.vault / "b", folder=True)
    until(lambda: engine.paths() == ["b/x/4.md"])
    assert (engine.embed(), engine.model.texts) == (0, asked)


@pytest.mark.report("https://github.com/logancyang/obsidian-copilot/issues/465")
def test_a_rename_leaves_nothing_of_the_old_path(vault: Path, daemon: Start) -> None:
    write(vault, "Old.md", "# Tidebook\n\nThe tidebook is kept in the oilskin drawer.\n")
    write(vault, "Other.md", "Nothing to see.")
    one = daemon()

    def sources() -> list[str]:
        reply = one.client.post("/chat", {"message": "where is the tidebook kept?"})
        return [source["path"] for source in reply["sources"]]

    assert sources() == ["Old.md"]
    (vault / "Old.md").rename(vault / "New.md")
    until(lambda: sources() == ["New.md"])
    reply = one.client.post("/chat", {"message": "where is the tidebook kept?"})["reply"]
    assert "[[New#Tidebook]]" in reply and "Old" not in reply
    (vault / "New.md").unlink()
    until(lambda: sources() == [])
    assert "oilskin" not in one.client.post("/chat", {"message": "where is the tidebook kept?"})["reply"]


@pytest.mark.report("https://github.com/logancyang/obsidian-copilot/issues/465")
def test_a_rename_embeds_nothing(engine: Engine) -> None:
    write(engine.vault, "Old.md", "where the tidebook is kept\n\n## Drawer\n\noilskin")
    engine.watch()
    engine.embed()
    asked = engine.model.texts
    (engine.vault / "Old.md").rename(engine.vault / "New.md")
    until(lambda: engine.paths() == ["New.md"])
    assert engine.found("tidebook", "vec") == ["New.md"]
    assert engine.space().coverage == 1.0
    embed_all(engine.indexer)
    assert engine.model.texts == asked + 1  # the question


@pytest.mark.report("https://github.com/logancyang/obsidian-copilot/issues/2180")
def test_only_new_text_is_embedded(engine: Engine, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [write(engine.vault, f"n{number}.md", f"# Note {number}\n\ntext {number}") for number in range(30)]
    assert engine.index().embedded > 0
    asked = engine.model.texts
    assert asked == 30

    def again() -> int:
        report = engine.index()
        assert engine.space().coverage == 1.0
        return report.embedded + engine.model.texts - asked

    for _ in range(3):
        engine.restart()
        assert again() == 0
    for note in notes:
        forget_time(note, 5000)
    assert again() == 0
    monkeypatch.setattr("tarsd.__version__", "99.0")
    engine.restart()
    assert again() == 0
    engine.move_vault(short_tmp / "elsewhere")
    assert again() == 0
    assert len(engine.rows()) == 30
    engine.restart(before=lambda index: shutil.rmtree(index.parent))
    assert again() == 0
    assert not [path for path in engine.vault.rglob("*") if path.suffix not in (".md", "")]
