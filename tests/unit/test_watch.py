"""The watch: real file events where they matter, stand-ins for observers that fail."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarsd.config import WatchSettings
from tarsd.vault import Vault
from tarsd.watch import STORM, Watcher, WatchState
from tarsd.watch.filesystem import filesystem_of, is_silent, parse_mount, parse_mountinfo, type_of
from tarsd.watch.observer import Observer, native_observer

LONG = 30.0
"""Seconds after which something that should happen has not happened."""

FAST = WatchSettings(debounce_s=0.05, max_wait_s=1.0, reconcile_s=3600, poll_s=0.1)


def write(root: Path, name: str, text: str = "text\n") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


class Listener:
    """Collects what the watch delivers."""

    def __init__(self) -> None:
        self.calls: list[set[str] | None] = []
        self._changed = threading.Condition()
        self.hook: Callable[[], None] = lambda: None

    def __call__(self, paths: set[str] | None) -> None:
        with self._changed:
            self.calls.append(paths)
            self._changed.notify_all()
        self.hook()

    def seen(self) -> set[str]:
        return {path for call in self.calls if call is not None for path in call}

    def rescans(self) -> int:
        return sum(1 for call in self.calls if call is None)

    def until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, LONG), f"{len(self.calls)} calls: {self.calls[-5:]}"

    def has(self, *paths: str) -> None:
        self.until(lambda: set(paths) <= self.seen())

    def forget(self) -> None:
        with self._changed:
            self.calls.clear()


class FakeThread:
    def __init__(self) -> None:
        self.alive = False

    def is_alive(self) -> bool:
        return self.alive


class FakeObserver(FakeThread):
    """An observer that does what the test says."""

    def __init__(self, fault: OSError | None = None) -> None:
        super().__init__()
        self.fault = fault
        self.handler: Any = None
        self.emitter = FakeThread()
        self.stopped = False

    @property
    def emitters(self) -> Collection[FakeThread]:
        return [self.emitter]

    def schedule(self, handler: Any, path: str, *, recursive: bool, event_filter: Any) -> object:
        self.handler = handler
        return None

    def start(self) -> None:
        if self.fault is not None:
            raise self.fault
        self.alive = self.emitter.alive = True

    def stop(self) -> None:
        self.stopped = True
        self.alive = self.emitter.alive = False

    def join(self, timeout: float | None = None) -> None:
        pass


class Event:
    def __init__(self, kind: str, source: Path | bytes | None, dest: Path | str = "", *, folder: bool = False) -> None:
        self.event_type, self.is_directory = kind, folder
        self.src_path, self.dest_path = os.fspath(source) if source is not None else 7, str(dest)


Start = Callable[..., tuple[Watcher, Listener]]


@pytest.fixture
def start(vault: Path) -> Iterator[Start]:
    """Starts a watch and waits for its first delivery; ends it after the test."""
    watchers: list[Watcher] = []

    def begin(
        *fakes: FakeObserver,
        settings: WatchSettings = FAST,
        filesystem: str = "ext4",
        ready: bool = True,
        root: Path = vault,
    ) -> tuple[Watcher, Listener]:
        listener, left = Listener(), list(fakes)
        make: Callable[[], Observer] = (lambda: left.pop(0)) if fakes else native_observer
        watcher = Watcher(Vault(root), settings, listener, make_observer=make, filesystem=lambda _: filesystem)
        watchers.append(watcher)
        watcher.start()
        if ready:
            listener.until(lambda: len(listener.calls) > 0)
            assert listener.calls[0] is None
            listener.forget()
        return watcher, listener

    yield begin
    for watcher in watchers:
        watcher.stop()
        assert watcher.state.mode == "stopped"
    assert [thread.name for thread in threading.enumerate() if "tarsd-watch" in thread.name] == []


def wait_for_state(watcher: Watcher, listener: Listener, mode: str) -> WatchState:
    deadline = threading.Event()
    for _ in range(int(LONG / 0.02)):
        if watcher.state.mode == mode:
            return watcher.state
        deadline.wait(0.02)
    raise AssertionError(f"still {watcher.state}")


# --------------------------------------------------------------------------------------------------------- real events


@pytest.mark.report("https://github.com/MarcoPorcellato/matryca-plumber/issues/200")
def test_the_three_ways_editors_save(vault: Path, tmp_path: Path, start: Start) -> None:
    for name in ("plain.md", "renamed.md", "moved in.md", "backed up.md"):
        write(vault, name)
    watcher, listener = start()
    assert watcher.state == WatchState("events")
    write(vault, "plain.md", "new")
    write(vault, ".renamed.md.tmp", "new")
    os.replace(vault / ".renamed.md.tmp", vault / "renamed.md")
    write(tmp_path, "outside.tmp", "new")
    os.replace(tmp_path / "outside.tmp", vault / "moved in.md")
    os.replace(vault / "backed up.md", vault / "backed up.md~")
    write(vault, "backed up.md", "new")
    listener.has("plain.md", "renamed.md", "moved in.md", "backed up.md")
    assert listener.seen() == {"plain.md", "renamed.md", "moved in.md", "backed up.md"} and listener.rescans() == 0


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/720")
@pytest.mark.report("https://github.com/openclaw/openclaw/issues/77125")
def test_reading_and_ignored_files_are_no_events(vault: Path, start: Start) -> None:
    for number in range(30):
        write(vault, f"{number}.md")
    _, listener = start()
    for path in vault.glob("*.md"):
        path.read_bytes()
    Vault(vault).scan()
    for name in (
        ".tars/health.json",
        ".git/index",
        "photo.png",
        ".a.md.swp",
        ".obsidian/workspace.json",
        ".trash/x.md",
    ):
        write(vault, name)
    write(vault, "last.md")
    listener.has("last.md")
    assert listener.calls == [{"last.md"}] or listener.seen() == {"last.md"}


@pytest.mark.report("https://github.com/BaseIntelligence/bounty-challenge/issues/9034")
def test_folders_that_come_go_and_move(vault: Path, tmp_path: Path, start: Start) -> None:
    write(vault, "proj/a/b/deep.md")
    write(vault, "old/x.md")
    write(tmp_path, "incoming/i/j.md")
    _, listener = start()
    os.rename(vault / "old", vault / "new")
    listener.has("old", "new")
    os.rename(tmp_path / "incoming", vault / "incoming")
    listener.has("incoming")
    os.rename(vault / "proj", tmp_path / "proj")
    listener.has("proj")
    listener.forget()
    write(vault, "new/later.md")
    write(vault, "incoming/i/later.md")
    write(vault, "made/just/now.md")
    listener.has("new/later.md", "incoming/i/later.md")
    listener.until(lambda: bool({"made", "made/just", "made/just/now.md"} & listener.seen()))


def test_a_storm_becomes_one_look_at_everything(vault: Path, start: Start) -> None:
    for number in range(2000):
        write(vault, f"{number % 20}/{number}.md")
    _, listener = start(settings=WatchSettings(debounce_s=0.3, max_wait_s=60, reconcile_s=3600, poll_s=0.1))
    for number in range(2000):
        write(vault, f"{number % 20}/{number}.md", "another branch\n")
    listener.until(lambda: listener.rescans() > 0)
    write(vault, "after.md")
    listener.has("after.md")
    assert len(listener.seen()) < 2000


@pytest.mark.report("https://github.com/brianpetro/obsidian-smart-connections/issues/183")
@pytest.mark.parametrize("file", ["app.json", "daily-notes.json", "plugins/periodic-notes/data.json"])
def test_obsidians_settings_bring_a_look_at_everything(vault: Path, start: Start, file: str) -> None:
    _, listener = start()
    write(vault, f".obsidian/{file}", '{"userIgnoreFilters": ["Private/"]}')
    listener.until(lambda: listener.rescans() > 0)
    assert listener.seen() == set()


@pytest.mark.report("https://github.com/guard/rb-inotify/issues/21")
def test_links_are_watched_no_more_than_scanned(vault: Path, tmp_path: Path, start: Start) -> None:
    write(tmp_path, "outside/far.md")
    (vault / "linked").symlink_to(tmp_path / "outside")
    write(vault, "a/near.md")
    (vault / "a/up").symlink_to("..")
    _, listener = start()
    write(tmp_path, "outside/far.md", "new")
    write(vault, "a/near.md", "new")
    listener.has("a/near.md")
    assert listener.seen() == {"a/near.md"}


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/565")
def test_the_vault_is_moved_away_and_back(vault: Path, start: Start) -> None:
    write(vault, "a.md")
    watcher, listener = start()
    os.rename(vault, vault.with_name("away"))
    state = wait_for_state(watcher, listener, "waiting")
    assert "is missing" in state.reason and state.hint
    write(vault.with_name("away"), "while away.md")
    listener.forget()
    os.rename(vault.with_name("away"), vault)
    listener.until(lambda: listener.rescans() > 0)
    assert wait_for_state(watcher, listener, "events") == WatchState("events")
    listener.forget()
    write(vault, "b.md")
    listener.has("b.md")


def test_another_folder_in_the_vaults_place(vault: Path, start: Start) -> None:
    _, listener = start()
    os.rename(vault, vault.with_name("away"))
    vault.mkdir()
    listener.until(lambda: listener.rescans() > 0)
    write(vault, "b.md")
    listener.has("b.md")


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/565")
def test_a_vault_that_is_not_there_yet(tmp_path: Path, start: Start) -> None:
    root = tmp_path / "later"
    watcher, listener = start(root=root, ready=False)
    wait_for_state(watcher, listener, "waiting")
    write(root, "a.md")
    listener.until(lambda: listener.rescans() > 0)
    write(root, "b.md")
    listener.has("b.md")
    assert watcher.state.mode == "events"


@pytest.mark.report("https://github.com/openclaw/openclaw/issues/78049")
def test_access_denied_and_granted(vault: Path, monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    real, denied = os.scandir, True

    def scandir(folder: Any = ".") -> Any:
        if denied and str(folder) == str(vault):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    watcher, listener = start(ready=False)
    for _ in range(3):
        assert "Full Disk Access" in wait_until(lambda: watcher.state.hint)
    denied = False
    listener.until(lambda: listener.rescans() > 0)
    assert wait_for_state(watcher, listener, "events").reason == ""


def wait_until(value: Callable[[], str]) -> str:
    pause = threading.Event()
    for _ in range(int(LONG / 0.02)):
        if found := value():
            return found
        pause.wait(0.02)
    return value()


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
@pytest.mark.report("https://github.com/gorakhargosh/watchdog/issues/673")
def test_folders_that_get_no_watch_are_noticed(vault: Path, monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    import watchdog.observers.inotify_c as inotify

    for number in range(5):
        write(vault, f"{number}/a.md")
    real, given, limit = inotify.inotify_add_watch, 0, 3

    def limited(fd: int, path: bytes, mask: int) -> int:
        nonlocal given
        given += 1
        if given > limit:
            ctypes.set_errno(errno.ENOSPC)
            return -1
        return real(fd, path, mask)

    monkeypatch.setattr(inotify, "inotify_add_watch", limited)
    watcher, listener = start()
    assert watcher.state.mode == "polling" and "max_user_watches" in watcher.state.hint
    for number in range(5):
        write(vault, f"{number}/a.md", "new text")
    listener.has(*(f"{number}/a.md" for number in range(5)))


def test_a_folder_made_while_watching_is_no_missing_watch(vault: Path, start: Start) -> None:
    watcher, listener = start(settings=WatchSettings(debounce_s=0.01, max_wait_s=1, reconcile_s=0.05, poll_s=0.02))
    for number in range(20):
        write(vault, f"{number}/{number}.md")
    listener.until(lambda: listener.rescans() > 5)
    assert watcher.state.mode == "events"


# ----------------------------------------------------------------------------------------------- observers that fail


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "fs.inotify.max_user_watches"),
        (errno.EMFILE, "fs.inotify.max_user_instances"),
        (errno.EIO, "doctor"),
    ],
)
@pytest.mark.report("https://github.com/gorakhargosh/watchdog/issues/673")
def test_limits_lead_to_polling(vault: Path, start: Start, number: int, hint: str) -> None:
    write(vault, "a.md")
    write(vault, "b/c.md")
    fake = FakeObserver(OSError(number, os.strerror(number)))
    watcher, listener = start(fake)
    assert fake.stopped
    assert watcher.state.mode == "polling" and hint in watcher.state.hint and watcher.state.reason
    write(vault, "a.md", "longer text\n")
    write(vault, "new.md")
    (vault / "b/c.md").unlink()
    listener.has("a.md", "new.md", "b/c.md")
    assert listener.seen() == {"a.md", "new.md", "b/c.md"} and listener.rescans() == 0
    os.rename(vault / "a.md", vault / "moved.md")
    listener.has("moved.md")


def test_events_are_tried_again_after_a_while(vault: Path, start: Start) -> None:
    settings = WatchSettings(debounce_s=0.01, max_wait_s=1, reconcile_s=0.2, poll_s=0.05)
    good = FakeObserver()
    watcher, listener = start(FakeObserver(OSError(errno.ENOSPC, "no")), good, settings=settings)
    wait_for_state(watcher, listener, "events")
    assert good.is_alive()


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "smbfs", "9p"])
@pytest.mark.report("https://github.com/gorakhargosh/watchdog/issues/409")
def test_file_systems_without_events_are_polled(vault: Path, start: Start, kind: str) -> None:
    write(vault, "old name.md")
    watcher, listener = start(filesystem=kind)
    assert watcher.state.mode == "polling" and kind in watcher.state.reason
    os.rename(vault / "old name.md", vault / "new name.md")
    listener.has("old name.md", "new name.md")


def test_the_setting_decides(vault: Path, start: Start) -> None:
    polling = WatchSettings(mode="polling", debounce_s=0.01, max_wait_s=1, poll_s=0.05)
    assert start(settings=polling)[0].state.mode == "polling"
    events = WatchSettings(mode="events", debounce_s=0.01, max_wait_s=1, poll_s=0.05)
    assert start(settings=events, filesystem="nfs")[0].state.mode == "events"


def test_polling_survives_an_absent_vault(vault: Path, start: Start) -> None:
    write(vault, "a.md")
    watcher, listener = start(filesystem="nfs")
    os.rename(vault, vault.with_name("away"))
    wait_for_state(watcher, listener, "waiting")
    listener.forget()
    os.rename(vault.with_name("away"), vault)
    listener.until(lambda: listener.rescans() > 0)
    assert listener.seen() == set(), "nothing looked deleted"
    write(vault, "b.md")
    listener.has("b.md")


@pytest.mark.parametrize("part", ["observer", "emitter"])
@pytest.mark.report("https://github.com/gorakhargosh/watchdog/issues/721")
def test_a_dead_observer_is_replaced(vault: Path, start: Start, part: str) -> None:
    first, second = FakeObserver(), FakeObserver()
    _, listener = start(first, second)
    (first if part == "observer" else first.emitter).alive = False
    listener.until(lambda: listener.rescans() > 0)
    assert first.stopped and second.is_alive()
    second.handler.dispatch(Event("modified", vault / "good.md"))
    listener.has("good.md")


OFTEN = WatchSettings(debounce_s=0.01, max_wait_s=1, reconcile_s=0.05, poll_s=0.05)


@pytest.mark.report("https://github.com/basicmachines-co/basic-memory/issues/580")
@pytest.mark.parametrize("change", ["made", "changed", "removed", "in a folder"])
def test_a_watch_that_falls_silent_while_its_threads_live_is_started_again(
    vault: Path, start: Start, change: str
) -> None:
    """A rescan that sees what no event told of says so; what events tell of, late or by their folder, is no reason."""
    write(vault, "old.md")
    first, second = FakeObserver(), FakeObserver()
    watcher, listener = start(first, second, settings=OFTEN)
    listener.until(lambda: listener.rescans() >= 3)
    assert watcher.state.restarts == 0
    if change == "removed":
        (vault / "old.md").unlink()
    else:
        write(vault, {"made": "new.md", "changed": "old.md"}.get(change, "a/b/new.md"), "more and more text")
    listener.until(lambda: second.is_alive())
    assert first.stopped
    listener.until(lambda: watcher.state.restarts == 1)
    before = listener.rescans()
    listener.until(lambda: listener.rescans() >= before + 3)
    assert watcher.state == WatchState("events", restarts=1)


def test_what_events_tell_of_is_no_silence(vault: Path) -> None:
    """Stepped through: each look is a rescan."""
    write(vault, "old.md")
    one = FakeObserver()
    settings = replace(FAST, reconcile_s=0.0)
    watcher = Watcher(
        Vault(vault), settings, lambda paths: None, make_observer=lambda: one, filesystem=lambda _: "ext4"
    )

    def look(*events: Event) -> int:
        watcher._check(False)
        for event in events:
            one.handler.dispatch(event)
        for _ in range(3):
            watcher._check(False)
        return watcher.state.restarts

    look()
    write(vault, "old.md", "x")
    assert look(Event("modified", vault / "old.md")) == 0  # told of late
    write(vault, "f/a.md")
    assert look(Event("created", vault / "f", folder=True)) == 0
    os.rename(vault / "f", vault / "g")
    assert look(Event("moved", vault / "f", vault / "g", folder=True)) == 0
    write(vault, "notes.txt", "no note")
    assert look() == 0
    watcher._distrust()
    write(vault, "any.md")
    assert look() == 0
    write(vault, "untold.md")
    assert look() == 1


def test_a_live_watch_is_not_taken_for_a_silent_one(vault: Path, start: Start) -> None:
    watcher, listener = start(settings=replace(OFTEN, poll_s=0.5))
    for number in range(4):
        before = listener.rescans()
        write(vault, f"a{number}/{number}.md", "x")
        os.rename(vault / f"a{number}", vault / f"b{number}")
        listener.until(lambda before=before: listener.rescans() > before)  # type: ignore[misc]
    assert watcher.state == WatchState("events")


def test_an_observer_that_keeps_dying_gives_way_to_polling(vault: Path, start: Start) -> None:
    class Stillborn(FakeObserver):
        def start(self) -> None:
            self.alive = True

    watcher, listener = start(*(Stillborn() for _ in range(10)))
    assert wait_for_state(watcher, listener, "polling").reason
    write(vault, "a.md")
    listener.has("a.md")


@pytest.mark.report("https://github.com/gorakhargosh/watchdog/issues/721")
def test_no_event_can_hurt_the_handler(vault: Path, monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    fake = FakeObserver()
    watcher, listener = start(fake)
    real = Vault.key_of

    def key_of(self: Vault, path: Any, *, folder: bool | None = None) -> str | None:
        if "bad" in os.fsdecode(path):
            raise ValueError("a secret sentence")
        return real(self, path, folder=folder)

    monkeypatch.setattr(Vault, "key_of", key_of)
    for event in (
        object(),
        Event("modified", vault / "bad.md"),
        Event("modified", b"\xff/\xfe.md"),
        Event("moved", None),
    ):
        fake.handler.dispatch(event)
    listener.until(lambda: listener.rescans() > 0)
    fake.handler.dispatch(Event("modified", vault / "good.md"))
    listener.has("good.md")
    assert watcher.state.mode == "events"


def test_what_watchdog_complains_of_is_made_good(vault: Path, start: Start) -> None:
    _, listener = start(FakeObserver())
    logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed; filesystem events were lost")
    listener.until(lambda: listener.rescans() > 0)
    assert listener.seen() == set()


def test_which_events_count(vault: Path, start: Start) -> None:
    fake = FakeObserver()
    _, listener = start(fake)
    send = fake.handler.dispatch
    for kind in ("opened", "closed_no_write", "something new"):
        send(Event(kind, vault / "read.md"))
    send(Event("modified", vault / "folder", folder=True))
    send(Event("deleted", vault / "photo.png"))
    send(Event("moved", vault / "from.md", vault / "sub/to.md"))
    send(Event("moved", vault / ".from.tmp", vault / "saved.md"))
    send(Event("moved", vault / "thrown.md", vault / ".trash/thrown.md"))
    send(Event("deleted", vault / "folder.md", folder=True))
    send(Event("closed", os.fsencode(vault / "bytes.md")))
    send(Event("attrib", vault / "allowed.md"))
    send(Event("created", vault.parent / "elsewhere.md"))
    expected = {"from.md", "sub/to.md", "saved.md", "thrown.md", "folder.md", "bytes.md", "allowed.md"}
    listener.has(*expected)
    assert listener.seen() == expected and listener.rescans() == 0


# ------------------------------------------------------------------------------------------------------------ debounce


def test_changes_are_collected_until_it_is_quiet_but_not_for_ever(vault: Path, start: Start) -> None:
    fake = FakeObserver()
    _, listener = start(fake, settings=WatchSettings(debounce_s=LONG, max_wait_s=0.2, reconcile_s=3600, poll_s=LONG))
    for number in range(10):
        fake.handler.dispatch(Event("modified", vault / f"{number}.md"))
    listener.has(*(f"{number}.md" for number in range(10)))
    assert len(listener.calls) <= 2


def test_many_paths_become_one_rescan(vault: Path, start: Start) -> None:
    fake = FakeObserver()
    _, listener = start(fake, settings=WatchSettings(debounce_s=0.3, max_wait_s=LONG, reconcile_s=3600, poll_s=LONG))
    for number in [*range(STORM), 0]:
        fake.handler.dispatch(Event("modified", vault / f"{number}.md"))
    listener.until(lambda: len(listener.seen()) == STORM)
    assert listener.rescans() == 0
    listener.forget()
    for number in range(STORM + 1):
        fake.handler.dispatch(Event("modified", vault / f"{number}.md"))
    listener.until(lambda: listener.rescans() == 1)
    assert listener.seen() == set()


@pytest.mark.report("https://github.com/openclaw/openclaw/issues/77125")
@pytest.mark.report("https://github.com/DeusData/codebase-memory-mcp/issues/1461")
def test_a_slow_or_failing_listener_loses_nothing(vault: Path, start: Start) -> None:
    fake = FakeObserver()
    _, listener = start(fake)
    running, go_on = threading.Event(), threading.Event()

    def hook() -> None:
        running.set()
        assert go_on.wait(LONG)
        raise RuntimeError("a secret sentence")

    listener.hook = hook
    fake.handler.dispatch(Event("modified", vault / "first.md"))
    assert running.wait(LONG)
    for number in range(50):
        fake.handler.dispatch(Event("modified", vault / f"{number % 5}.md"))
    assert listener.calls == [{"first.md"}], "one at a time"
    go_on.set()
    listener.has("0.md", "1.md", "2.md", "3.md", "4.md")
    assert listener.calls == [{"first.md"}, {f"{number}.md" for number in range(5)}]


def test_failures_are_logged_without_their_text(vault: Path, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    fake = FakeObserver()
    _, listener = start(fake)

    def hook() -> None:
        raise RuntimeError("a secret sentence")

    listener.hook = hook
    fake.handler.dispatch(Event("modified", vault / "first.md"))
    listener.has("first.md")
    listener.hook = lambda: None
    fake.handler.dispatch(Event("modified", vault / "second.md"))
    listener.has("second.md")
    assert "RuntimeError at hook" in caplog.text and "secret" not in caplog.text and "first" not in caplog.text


def test_everything_is_looked_at_now_and_then(vault: Path, start: Start) -> None:
    settings = WatchSettings(debounce_s=0.01, max_wait_s=1, reconcile_s=0.1, poll_s=0.05)
    _, listener = start(FakeObserver(), settings=settings)
    listener.until(lambda: listener.rescans() >= 3)


@pytest.mark.report("https://github.com/vrtmrz/obsidian-livesync/issues/539")
def test_a_look_can_be_asked_for(vault: Path, start: Start) -> None:
    watcher, listener = start(FakeObserver())
    watcher.look(["empty.md"], after_s=0.1)
    watcher.look(["now.md"])
    listener.has("empty.md", "now.md")
    assert listener.calls[0] == {"now.md"}
    watcher.look(None)
    listener.until(lambda: listener.rescans() == 1)


def test_stopping_is_quick_whatever_the_state(vault: Path, tmp_path: Path) -> None:
    for root in (vault, tmp_path / "missing"):
        watcher = Watcher(Vault(root), FAST, Listener())
        watcher.stop()
        watcher.start()
        watcher.stop()
        assert watcher.state.mode == "stopped"


def test_a_listener_may_stop_its_watch(vault: Path) -> None:
    done = threading.Event()

    def listener(paths: set[str] | None) -> None:
        watcher.stop()
        done.set()

    watcher = Watcher(Vault(vault), FAST, listener, make_observer=FakeObserver)
    watcher.start()
    assert done.wait(LONG)
    watcher.stop()
    assert watcher.state.mode == "stopped"


# -------------------------------------------------------------------------------------------------------- file systems

MOUNTINFO = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
90 22 0:50 / /mnt/share rw,relatime shared:2 master:1 - cifs //nas/notes rw
91 22 0:51 / /mnt/my\040notes rw - fuse.sshfs me@host: rw
92 90 8:1 / /mnt/share/local rw - btrfs /dev/sda1 rw
93 22 0:52 / /mnt/twice rw - ext4 /dev/sdb rw
94 22 0:53 / /mnt/twice rw - nfs4 host:/x rw
broken
"""

MOUNT = """/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//me@nas/Notes on /Volumes/Notes (1) (smbfs, nodev, nosuid, mounted by me)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
"""


def test_the_mount_table_tells_the_file_system() -> None:
    mounts = list(parse_mountinfo(MOUNTINFO))
    kinds = {
        "/home/me/notes": "ext4",
        "/mnt/share": "cifs",
        "/mnt/share/x": "cifs",
        "/mnt/shared": "ext4",
        "/mnt/share/local/x": "btrfs",
        "/mnt/my notes/vault": "fuse.sshfs",
        "/mnt/twice/x": "nfs4",
    }
    assert {path: type_of(path, mounts) for path in kinds} == kinds
    assert type_of("/Volumes/Notes (1)/vault", list(parse_mount(MOUNT))) == "smbfs"
    assert type_of("/Users/me", list(parse_mount(MOUNT))) == "apfs"
    assert type_of("/x", []) == ""
    assert filesystem_of(Path(__file__))


def test_which_file_systems_are_silent() -> None:
    assert all(
        is_silent(kind) for kind in ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.rclone", "macfuse", "virtiofs", "9p")
    )
    assert not any(is_silent(kind) for kind in ("ext4", "apfs", "btrfs", "overlay", "tmpfs", "fuseblk", "zfs", ""))


def test_what_watchdog_says_of_folders_that_move_reaches_nobody(vault: Path, recwarn: pytest.WarningsRecorder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        native_observer()
        for text in ("already exists for watch <1>. It will be Overwritten.", "does not exist for watch <1>"):
            warnings.warn(f"Callback with id '(7, b'/x')' {text}", RuntimeWarning, stacklevel=1)
        with pytest.raises(RuntimeWarning):
            warnings.warn("Something else.", RuntimeWarning, stacklevel=1)
    assert list(recwarn) == []
