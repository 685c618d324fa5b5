"""Changes performed: by the daemon, by a client, one at a time, kept for undo, and whole whatever happens."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarsd.errors import Conflict, DiskFull, NotFound, PathRefused, Refused, StoreError, ToolError
from tarsd.protocol import Writer as By
from tarsd.protocol import WriteReport
from tarsd.vault import Vault, content_hash
from tarsd.writing.changes import Change, until_written
from tarsd.writing.edits import append, create, patch, replace_text
from tarsd.writing.journal import Journal
from tarsd.writing.notes import Notebook
from tarsd.writing.writer import Writer

LONG_S = 3600.0


class Desk:
    """A vault with a writer, and all that the writer told."""

    def __init__(self, vault: Path, home: Path, claim_s: float = LONG_S, report_s: float = LONG_S, **more: Any) -> None:
        self.root = vault
        self.book = Notebook(Vault(vault))
        self.journal = Journal(home / "undo")
        self.writer = Writer(self.book, self.journal, claim_s=claim_s, report_s=report_s, **more)
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._more = asyncio.Event()

    def emit(self, type: str, data: dict[str, Any]) -> None:
        self.told.append((type, data))
        self._more.set()

    async def event(self, type: str) -> dict[str, Any]:
        """The next event of this type."""
        while True:
            for index, (told, data) in enumerate(self.told):
                if told == type:
                    del self.told[index]
                    return data
            self._more.clear()
            await self._more.wait()

    def put(self, path: str, text: str) -> None:
        (self.root / path).write_text(text, encoding="utf-8")

    def text(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def added(self, path: str, text: str) -> Change:
        return append(self.book.load(path), text)

    async def add(self, path: str, text: str, tries: int = 4) -> str:
        return await until_written(
            lambda: self.writer.perform(self.added(path, text), by="daemon", kind="note"), tries=tries
        )

    def start(self, change: Change, by: By = "client") -> asyncio.Task[str]:
        return asyncio.create_task(self.writer.perform(change, by=by, kind="note", emit=self.emit))


@pytest.fixture
def desk(vault: Path, home: Path) -> Desk:
    """Nobody runs out of time at this one."""
    return Desk(vault, home)


# -------------------------------------------------------------------------------------------------------- by the daemon


async def test_the_daemon_writes_at_once_and_says_so(desk: Desk) -> None:
    hash = await desk.writer.perform(create("New/a.md", "one"), by="daemon", kind="note", emit=desk.emit)
    assert desk.text("New/a.md") == "one\n" and hash == content_hash(b"one\n")
    (told,) = desk.told
    assert told == ("written", {"id": told[1]["id"], "path": "New/a.md", "op": "create", "hash": hash, "by": "daemon"})
    await desk.writer.perform(desk.added("New/a.md", "two"), by="daemon", kind="session")
    assert desk.text("New/a.md") == "one\n\ntwo\n"


async def test_a_note_that_changed_since_it_was_read_is_left_alone(desk: Desk) -> None:
    desk.put("a.md", "one\n")
    change = desk.added("a.md", "two")
    desk.put("a.md", "typed\n")
    with pytest.raises(Conflict):
        await desk.writer.perform(change, by="daemon", kind="note", emit=desk.emit)
    assert desk.text("a.md") == "typed\n"
    assert desk.told[0][1]["error"]["code"] == "conflict" and desk.told[0][1]["hash"] == ""
    (desk.root / "a.md").unlink()
    with pytest.raises(Conflict):
        await desk.writer.perform(change, by="daemon", kind="note")
    assert list(desk.root.glob("*.md")) == []


async def test_a_new_note_takes_no_ones_name_in_any_case(desk: Desk) -> None:
    desk.put("Plan.md", "one\n")
    for path in ("Plan.md", "plan.md", "PLAN.MD"):
        with pytest.raises(Conflict):
            await desk.writer.perform(create(path, "two"), by="daemon", kind="note")
    assert desk.text("Plan.md") == "one\n" and len(list(desk.root.glob("*.[mM][dD]"))) == 1


async def test_what_is_left_out_or_read_only_is_not_written(vault: Path, home: Path) -> None:
    desk = Desk(vault, home)
    desk.book = Notebook(Vault(vault, exclude=["Private/"]), own="tars")
    desk.writer = Writer(desk.book, desk.journal)
    with pytest.raises(PathRefused):
        await desk.writer.perform(create("Private/a.md", "x"), by="daemon", kind="note")
    desk.put("a.md", "one\n")
    (vault / "a.md").chmod(0o444)
    with pytest.raises(Refused):
        await desk.writer.perform(desk.added("a.md", "two"), by="daemon", kind="note")
    assert desk.text("a.md") == "one\n" and not (vault / "Private").exists()


async def test_nothing_is_written_that_could_not_be_taken_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put("a.md", "one\n")
    change = desk.added("a.md", "two")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as shim, pytest.raises(DiskFull):
        shim.setattr(os, "fsync", full)
        await desk.writer.perform(change, by="daemon", kind="note", emit=desk.emit)
    assert desk.text("a.md") == "one\n" and desk.told == []
    await desk.writer.perform(change, by="daemon", kind="note")


async def test_changes_of_one_note_are_made_one_after_another(desk: Desk) -> None:
    desk.put("a.md", "start\n")
    texts = [f"text {number:02}" for number in range(12)]
    await asyncio.gather(*(desk.add("a.md", text, tries=50) for text in texts))
    assert sorted(desk.text("a.md").rstrip("\n").split("\n\n")) == ["start", *texts]
    assert desk.writer._locks == {} and desk.writer._open == {}


# ---------------------------------------------------------------------------------------------------------- by a client


async def test_a_client_claims_writes_and_reports(desk: Desk) -> None:
    desk.put("a.md", "one\n")
    change = desk.added("a.md", "two")
    task = desk.start(change)
    offer = await desk.event("write")
    assert {key: offer[key] for key in ("path", "op", "content", "kind")} == {
        "path": "a.md",
        "op": "append",
        "content": "\ntwo\n",
        "kind": "note",
    }
    assert offer["if_hash"] == content_hash(b"one\n")
    with pytest.raises(Conflict, match="not claimed"):
        desk.writer.report(offer["id"], WriteReport(True))
    assert desk.writer.claim(offer["id"]) == offer
    with pytest.raises(Conflict, match="claimed already"):
        desk.writer.claim(offer["id"])
    with (desk.root / "a.md").open("a") as file:
        file.write(offer["content"])
    desk.writer.report(offer["id"], WriteReport(True, change.hash))
    assert await task == change.hash
    assert (await desk.event("written"))["by"] == "client"
    for call in (lambda: desk.writer.claim(offer["id"]), lambda: desk.writer.report(offer["id"], WriteReport(True))):
        with pytest.raises(Conflict, match="settled"):
            call()
    for unknown in ("w-0123456789ab-01234567", "../x", ""):
        with pytest.raises(NotFound):
            desk.writer.claim(unknown)


async def test_what_nobody_claims_the_daemon_writes(vault: Path, home: Path) -> None:
    desk = Desk(vault, home, claim_s=0.01)
    desk.put("a.md", "one\n")
    assert await desk.start(desk.added("a.md", "two")) == content_hash(b"one\n\ntwo\n")
    offer = await desk.event("write")
    assert (await desk.event("written"))["by"] == "daemon"
    with pytest.raises(Conflict):
        desk.writer.claim(offer["id"])
    change = desk.added("a.md", "three")
    desk.put("a.md", "typed\n")
    with pytest.raises(Conflict):
        await desk.start(change)
    assert desk.text("a.md") == "typed\n"


async def test_a_client_that_fails_says_why(desk: Desk) -> None:
    desk.put("a.md", "one\n")
    task = desk.start(desk.added("a.md", "two"))
    id = (await desk.event("write"))["id"]
    desk.writer.claim(id)
    desk.writer.report(id, WriteReport(False, error="The editor is\nbusy."))
    with pytest.raises(ToolError, match="The editor is busy"):
        await task
    assert (await desk.event("written"))["error"]["code"] == "tool_failed" and desk.text("a.md") == "one\n"
    task = desk.start(desk.added("a.md", "two"))
    id = (await desk.event("write"))["id"]
    desk.writer.claim(id)
    desk.put("a.md", "typed\n")
    desk.writer.report(id, WriteReport(False, error="It changed."))
    with pytest.raises(Conflict, match="another program"):
        await task


async def test_a_clients_word_is_checked_against_the_note(vault: Path, home: Path) -> None:
    desk = Desk(vault, home, looks_s=(0.0,))
    desk.put("a.md", "one\n")

    async def report(text: str, report: WriteReport) -> str:
        task = desk.start(replace_text(desk.book.load("a.md"), "planned\n"))
        id = (await desk.event("write"))["id"]
        desk.writer.claim(id)
        desk.put("a.md", text)
        desk.writer.report(id, report)
        return await task

    planned = content_hash(b"planned\n")
    with pytest.raises(Conflict, match="it is not"):
        await report("one\n", WriteReport(True, planned))
    with pytest.raises(Conflict, match="it is not"):
        await report("one\n", WriteReport(True, content_hash(b"one\n")))
    with pytest.raises(Conflict):
        await report("other\n", WriteReport(True))
    with pytest.raises(Conflict):
        await report("other 2\n", WriteReport(True, content_hash(b"another\n")))
    assert await report("planned\n", WriteReport(True)) == planned
    assert await report("planned\ntyped on\n", WriteReport(True, planned)) == planned
    merged = content_hash(b"planned and unsaved\n")
    assert await report("planned and unsaved\n", WriteReport(True, merged)) == merged
    last = desk.journal.last("note")
    assert last is not None
    with pytest.raises(Conflict):  # an undo would lose what was typed
        await desk.writer.undo(last.id)


async def test_a_client_that_never_reports(vault: Path, home: Path) -> None:
    desk = Desk(vault, home, report_s=0.01)
    desk.put("a.md", "one\n")
    for text, raises in (("one\n", True), ("one\n\ntwo\n", False)):
        task = desk.start(desk.added("a.md", "two"))
        id = (await desk.event("write"))["id"]
        desk.writer.claim(id)
        desk.put("a.md", text)
        if raises:
            with pytest.raises(Conflict, match="did not say"):
                await task
            with pytest.raises(Conflict):
                desk.writer.report(id, WriteReport(True))
        else:
            assert await task == content_hash(text.encode())


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbfone\n", b"\xff\xfeo\0\n\0"])
async def test_what_a_client_cannot_write_unchanged_the_daemon_writes(desk: Desk, raw: bytes) -> None:
    (desk.root / "a.md").write_bytes(raw)
    change = desk.added("a.md", "two")
    assert await desk.start(change) == change.hash
    assert [told for told, _ in desk.told] == ["written"] and desk.told[0][1]["by"] == "daemon"
    assert (desk.root / "a.md").read_bytes() == change.after and change.after.startswith(raw)


async def test_an_unclaimed_change_is_withdrawn_with_its_caller(desk: Desk) -> None:
    desk.put("a.md", "one\n")
    waiting = asyncio.create_task(
        desk.writer.perform(desk.added("a.md", "two"), by="client", kind="note", emit=desk.emit)
    )
    behind = asyncio.create_task(
        desk.writer.perform(desk.added("a.md", "three"), by="daemon", kind="note", emit=desk.emit)
    )
    id = (await desk.event("write"))["id"]
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(Conflict, match="settled"):
        desk.writer.claim(id)
    await behind
    assert desk.text("a.md") == "one\n\nthree\n"


async def test_a_claimed_change_is_seen_to_its_end(desk: Desk) -> None:
    desk.put("a.md", "one\n")
    change = desk.added("a.md", "two")
    waiting = asyncio.create_task(desk.writer.perform(change, by="client", kind="note", emit=desk.emit))
    id = (await desk.event("write"))["id"]
    desk.writer.claim(id)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    desk.put("a.md", "one\n\ntwo\n")
    desk.writer.report(id, WriteReport(True, change.hash))
    assert (await desk.event("written"))["hash"] == change.hash
    await desk.writer.undo(id)
    assert desk.text("a.md") == "one\n"


async def test_closing_withdraws_what_nobody_began(desk: Desk) -> None:
    desk.put("a.md", "one\n")
    task = desk.start(desk.added("a.md", "two"))
    await desk.event("write")
    await desk.writer.close()
    assert task.cancelled() and desk.text("a.md") == "one\n" and desk.writer._jobs == {}


async def test_an_event_that_cannot_be_logged_does_not_unwrite_a_note(desk: Desk) -> None:
    def broken(type: str, data: dict[str, Any]) -> None:
        raise StoreError("full")

    await desk.writer.perform(create("a.md", "one"), by="daemon", kind="note", emit=broken)
    assert desk.text("a.md") == "one\n"
    with pytest.raises(StoreError):  # a client that cannot be asked
        await desk.writer.perform(desk.added("a.md", "two"), by="client", kind="note", emit=broken)
    assert desk.text("a.md") == "one\n"


# ----------------------------------------------------------------------------------------------------------------- undo


@pytest.mark.parametrize(
    ("raw", "plan"),
    [
        (b"one\r\n", lambda note: append(note, "two")),
        (b"", lambda note: append(note, "two")),
        (b"\xef\xbb\xbf# A\n\nx\n\n# B\n", lambda note: patch(note, "A", "y", "replace")),
        (b"one", lambda note: replace_text(note, "")),
    ],
)
async def test_a_change_is_taken_back_and_made_again(desk: Desk, raw: bytes, plan: Callable[[Any], Change]) -> None:
    (desk.root / "a.md").write_bytes(raw)
    change = plan(desk.book.load("a.md"))
    await desk.writer.perform(change, by="daemon", kind="note", conversation="c-1", emit=desk.emit)
    id = (await desk.event("written"))["id"]
    done = await desk.writer.undo(id)
    assert (desk.root / "a.md").read_bytes() == raw
    assert done == {"id": done["id"], "path": "a.md", "hash": content_hash(raw)}
    with pytest.raises(Conflict, match="already"):
        await desk.writer.undo(id)
    again = await desk.writer.undo(done["id"])
    assert (desk.root / "a.md").read_bytes() == change.after and again["hash"] == change.hash
    await desk.writer.undo(id)
    assert (desk.root / "a.md").read_bytes() == raw


async def test_a_new_note_that_is_taken_back_goes_into_the_trash(desk: Desk) -> None:
    await desk.writer.perform(create("sub/a.md", "one"), by="daemon", kind="note", emit=desk.emit)
    done = await desk.writer.undo((await desk.event("written"))["id"])
    assert done == {"id": done["id"], "path": "sub/a.md", "hash": None, "trashed": ".trash/a.md"}
    assert not (desk.root / "sub/a.md").exists() and desk.text(".trash/a.md") == "one\n"
    assert (await desk.writer.undo(done["id"]))["hash"] == content_hash(b"one\n")
    assert desk.text("sub/a.md") == "one\n"


async def absorbing(desk: Desk) -> str:
    """A change of a.md that holds two copies of it as well; its id."""
    (desk.root / "sub").mkdir()
    for path, text in (("a.md", "one\n"), ("a 2.md", "two\n"), ("sub/a.md", "three\n")):
        desk.put(path, text)
    copies = tuple((path, content_hash((desk.root / path).read_bytes())) for path in ("a 2.md", "sub/a.md"))
    change = replace(desk.added("a.md", "two\nthree"), absorbs=copies)
    await desk.writer.perform(change, by="daemon", kind="memory", emit=desk.emit)
    return str((await desk.event("written"))["id"])


def there(desk: Desk) -> dict[str, str]:
    files = (path for path in sorted(desk.root.rglob("*.md")))
    return {str(path.relative_to(desk.root)): path.read_text() for path in files}


async def test_what_a_change_put_away_comes_back_with_its_undo(desk: Desk) -> None:
    id = await absorbing(desk)
    merged = there(desk)
    assert sorted(merged) == [".trash/a 2.md", ".trash/a.md", "a.md"]
    first = await desk.writer.undo(id)
    apart = {"a 2.md": "two\n", "a.md": "one\n", "sub/a.md": "three\n"}
    assert there(desk) == apart
    again = await desk.writer.undo(first["id"])
    assert there(desk) == merged
    await desk.writer.undo(again["id"])
    assert there(desk) == apart


@pytest.mark.parametrize("way", ["emptied", "changed", "taken"])
async def test_what_is_no_longer_in_the_trash_or_in_its_way_is_left(desk: Desk, way: str) -> None:
    id = await absorbing(desk)
    if way == "emptied":
        (desk.root / ".trash/a 2.md").unlink()
    elif way == "changed":
        desk.put(".trash/a 2.md", "other\n")
    else:
        desk.put("a 2.md", "new\n")
    before = there(desk)
    await desk.writer.undo(id)
    kept = {path: text for path, text in before.items() if path.endswith("a 2.md")}
    assert there(desk) == {"a.md": "one\n", "sub/a.md": "three\n"} | kept


async def test_what_was_changed_since_is_not_taken_back(desk: Desk) -> None:
    await desk.writer.perform(create("a.md", "one"), by="daemon", kind="note", emit=desk.emit)
    id = (await desk.event("written"))["id"]
    desk.put("a.md", "one and more\n")
    with pytest.raises(Conflict, match="changed since"):
        await desk.writer.undo(id)
    (desk.root / "a.md").unlink()
    with pytest.raises(Conflict):
        await desk.writer.undo(id)
    with pytest.raises(NotFound):
        await desk.writer.undo("w-0123456789ab-01234567")


async def test_the_last_changes_of_a_kind_are_taken_back_one_by_one(desk: Desk) -> None:
    desk.put("Memory.md", "")
    for text in ("one", "two"):
        await desk.writer.perform(desk.added("Memory.md", text), by="daemon", kind="memory")
    await desk.writer.perform(create("a.md", "x"), by="daemon", kind="note")
    for left in ("one\n", ""):
        last = desk.journal.last("memory")
        assert last is not None
        await desk.writer.undo(last.id)
        assert desk.text("Memory.md") == left
    assert desk.journal.last("memory") is None and desk.journal.last("note") is not None


# ------------------------------------------------------------------------------------------------------ what may happen


async def test_after_a_crash_what_was_written_can_be_taken_back(desk: Desk) -> None:
    desk.put("a.md", "one\n")
    done, undone = desk.added("a.md", "two"), create("b.md", "x")
    ids = [desk.journal.keep(change, "note", "c", "daemon") for change in (done, undone)]
    desk.put("a.md", "one\n\ntwo\n")
    desk.put(".tarsd-0123456789abcdef.tmp", "one\n")
    await desk.writer.recover()
    assert [desk.journal.get(id).state for id in ids] == ["written", "failed"]
    assert list(desk.root.glob(".tarsd-*")) == []
    await desk.writer.undo(ids[0])
    assert desk.text("a.md") == "one\n"


KILLED = """
import sys
from pathlib import Path
from tarsd.vault import Vault
from tarsd.writing.changes import until_written
from tarsd.writing.edits import append
from tarsd.writing.journal import Journal
from tarsd.writing.notes import Notebook
from tarsd.writing.writer import Writer
import asyncio

async def main():
    book = Notebook(Vault(Path(sys.argv[1])))
    writer = Writer(book, Journal(Path(sys.argv[2])))
    print("ready", flush=True)
    while True:
        await until_written(
            lambda: writer.perform(append(book.load("a.md"), "x" * 5000), by="daemon", kind="note")
        )

asyncio.run(main())
"""


async def test_a_kill_at_any_moment_leaves_a_whole_note(desk: Desk, home: Path) -> None:
    paragraph = b"\n" + b"x" * 5000 + b"\n"
    for turn in range(4):
        (desk.root / "a.md").write_bytes(b"start\n")
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(desk.root), str(home / "undo")], stdout=subprocess.PIPE
        )
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        while (desk.root / "a.md").stat().st_size < 6 + (3 + turn) * len(paragraph):
            await asyncio.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raw = (desk.root / "a.md").read_bytes()
        count = raw.count(paragraph)
        assert raw == b"start\n" + paragraph * count and count >= 3 + turn
        await desk.writer.recover()
        assert [entry.state for entry in desk.journal.entries() if entry.state == "planned"] == []
        assert list(desk.root.glob(".tarsd-*")) == []
        last = desk.journal.last("note")
        assert last is not None
        await desk.writer.undo(last.id)
        assert (desk.root / "a.md").read_bytes() == b"start\n" + paragraph * (count - 1)


@pytest.mark.report("https://github.com/alangrainger/obsidian-frontmatter-modified-date/issues/32")
async def test_an_appending_daemon_and_one_who_saves_all_the_time(desk: Desk, tmp_path: Path) -> None:
    path, stop = desk.root / "a.md", threading.Event()
    path.write_text("start\n")
    saves: list[str] = []
    partial: list[str] = []

    def person() -> None:
        """Adds to what is on disk, and saves it whole, every few milliseconds."""
        while not stop.is_set():
            text = f"{path.read_text()}typed {len(saves):04} {'x' * 3000}\n"
            (tmp_path / "save").write_text(text)
            os.replace(tmp_path / "save", path)
            saves.append(text)
            stop.wait(0.004)

    def reader() -> None:
        while not stop.is_set():
            text = path.read_text()
            if not (text.startswith("start\n") and text.endswith(("start\n", "x\n", "ours\n"))):
                partial.append(text)

    threads = [threading.Thread(target=person), threading.Thread(target=reader)]
    for thread in threads:
        thread.start()
    told = 0
    try:
        while len(saves) < 60:
            try:
                await desk.add("a.md", "ours")
            except Conflict:
                told += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert partial == [] and list(desk.root.glob(".tarsd-*")) == []
    rest = path.read_text().removeprefix(saves[-1])
    assert rest != path.read_text() and rest.replace("\nours\n", "") == ""
    await desk.add("a.md", "ours")
    assert path.read_text() == saves[-1] + rest + "\nours\n"


async def test_an_editor_in_the_middle_of_a_save_is_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put("a.md", "one\n")
    editor = (desk.root / "a.md").open("w")  # empty now, and about to be written

    def finish(seconds: float) -> None:
        if not editor.closed:
            editor.write("one\ntyped\n")
            editor.close()

    monkeypatch.setattr(time, "sleep", finish)
    await desk.add("a.md", "ours")
    assert desk.text("a.md") == "one\ntyped\n\nours\n"
