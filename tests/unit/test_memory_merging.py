"""Two machines with one synced vault: what both wrote into the memory is merged, line by line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tarsd.errors import Conflict, NotFound
from tarsd.memory import Memory, feedback
from tarsd.memory.drafts import MEMORY, NOTICED, RULES
from tarsd.parse import parse
from tarsd.vault import Vault
from tarsd.writing.changes import Change
from tarsd.writing.journal import Journal
from tarsd.writing.notes import Notebook
from tarsd.writing.writer import Writer

COPIES = [
    "{}.sync-conflict-20261128-140300-ABCDEF7.md",
    "{} (conflicted copy 2026-11-28).md",
    "{} (Ada's conflicted copy 2026-11-28) (2).md",
    "{}_conflict-20261128-140300.md",
    "{} 2.md",
]


class Machine:
    """One machine: its copy of the vault, and its own memory, undo and clock."""

    def __init__(self, folder: Path, name: str) -> None:
        self.root = folder / name / "vault"
        self.root.mkdir(parents=True)
        self.now = datetime(2026, 11, 28, 14, 3, 0)
        notebook = Notebook(Vault(self.root), own="tars")
        journal = Journal(folder / name / "undo")
        self.writer = Writer(notebook, journal)
        self.memory = Memory(
            notebook, "tars", today=lambda: self.now, journal=journal, machine=lambda: f"{name}{name}{name}"
        )

    async def perform(self, *changes: Change | None) -> None:
        for change in changes:
            assert change is not None
            await self.writer.perform(change, by="daemon", kind="memory")
        self.now += timedelta(minutes=1)

    async def remember(self, text: str, **more: str) -> None:
        await self.perform(self.memory.remember(text, **more))  # type: ignore[arg-type]

    async def forget(self, text: str) -> None:
        await self.perform(self.memory.forget(text))

    def lines(self, name: str = MEMORY) -> list[str]:
        return sorted(line.text for line in self.memory.lines(name))

    def files(self) -> dict[str, bytes]:
        return {
            str(file.relative_to(self.root)): file.read_bytes()
            for file in self.root.rglob("*.md")
            if ".trash" not in file.parts
        }


class Sync:
    """A sync tool between two vaults: of a file that changed on both sides, the loser's goes into a copy."""

    def __init__(self, winner: Machine, loser: Machine, copy: str) -> None:
        self.winner, self.loser, self.copy = winner, loser, copy
        self.last: dict[str, bytes] = {}
        self.conflicts = 0

    def __call__(self) -> None:
        ours, theirs = self.winner.files(), self.loser.files()
        both: dict[str, bytes] = {}
        for path in {*ours, *theirs, *self.last}:
            mine, other, before = ours.get(path), theirs.get(path), self.last.get(path)
            kept = other if mine == before else mine
            if mine != before and other not in (before, mine, None):
                assert other is not None
                self.conflicts += 1
                stem = path.rpartition("/")[2].removesuffix(".md")
                both[path.replace(f"{stem}.md", self.copy.format(stem))] = other
            if kept is not None:
                both[path] = kept
        for machine in (self.winner, self.loser):
            for path in machine.files():
                (machine.root / path).unlink()
            for path, raw in both.items():
                (machine.root / path).parent.mkdir(parents=True, exist_ok=True)
                (machine.root / path).write_bytes(raw)
        self.last = both


Pair = Callable[[str], tuple[Machine, Machine, Sync]]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    def make(copy: str = COPIES[0]) -> tuple[Machine, Machine, Sync]:
        shutil.rmtree(tmp_path / "both", ignore_errors=True)
        one, two = Machine(tmp_path / "both", "a"), Machine(tmp_path / "both", "b")
        return one, two, Sync(one, two, copy)

    return make


@pytest.mark.report("https://github.com/franciskafieh/obsidian-list-modified/issues/43")
@pytest.mark.report("https://github.com/franciskafieh/obsidian-list-modified/issues/131")
@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("merges_first", [0, 1])
@pytest.mark.parametrize("kind", ["semantic", "procedural"])
async def test_no_line_is_lost_or_doubled(pair: Pair, copy: str, merges_first: int, kind: str) -> None:
    one, two, sync = pair(copy)
    name = MEMORY if kind == "semantic" else RULES
    await one.remember("Otto the cat is diabetic", kind=kind)
    sync()
    await one.remember("Plays the oboe", kind=kind)
    await two.remember("Speaks Welsh", kind=kind, session="c-12")
    await two.remember("Plays the oboe.", kind=kind)
    sync()
    everything = ["Otto the cat is diabetic", "Plays the oboe", "Speaks Welsh"]
    assert (
        [line.rstrip(".") for line in one.lines(name)] == [line.rstrip(".") for line in two.lines(name)] == everything
    )
    await (one, two)[merges_first].remember("Lives in Bergen", kind=kind)
    sync()
    assert [line.rstrip(".") for line in one.lines(name)] == sorted([*everything, "Lives in Bergen"])
    assert one.files() == two.files() and list(one.files()) == [f"tars/{name}"]
    (welsh,) = [line for line in two.memory.lines(name) if line.text == "Speaks Welsh"]
    assert welsh.mark.session == "c-12"


@pytest.mark.parametrize("forgets", [0, 1])
async def test_what_this_machine_forgot_stays_forgotten(pair: Pair, forgets: int) -> None:
    one, two, sync = pair(COPIES[0])
    await one.remember("Drives a Volvo")
    await one.remember("Owns a boat")
    sync()
    forgetful, other = (one, two) if not forgets else (two, one)
    await forgetful.forget("Drives a Volvo")
    await forgetful.remember("Takes the tram")
    await other.remember("Speaks Welsh")
    sync()
    assert forgetful.lines() == ["Owns a boat", "Speaks Welsh", "Takes the tram"]
    await forgetful.remember("Lives in Bergen")
    sync()
    assert one.lines() == two.lines() == ["Lives in Bergen", "Owns a boat", "Speaks Welsh", "Takes the tram"]


async def test_what_was_forgotten_and_remembered_again_stays(pair: Pair) -> None:
    one, two, sync = pair(COPIES[0])
    await two.remember("Drives a Volvo")
    sync()
    await two.forget("Drives a Volvo")
    await two.remember("Drives a Volvo")
    await one.remember("Speaks Welsh")
    sync()
    assert two.lines() == one.lines() == ["Drives a Volvo", "Speaks Welsh"]


async def test_what_the_other_machine_remembered_anew_stays_though_it_was_forgotten_here(pair: Pair) -> None:
    one, two, sync = pair(COPIES[0])
    await one.remember("Drives a Volvo")
    sync()
    await two.forget("Drives a Volvo")
    await one.forget("Drives a Volvo")
    one.now += timedelta(days=1)
    await one.remember("Drives a Volvo")
    await two.remember("Speaks Welsh")
    sync()
    assert one.lines() == two.lines() == ["Drives a Volvo", "Speaks Welsh"]


async def test_a_line_that_lost_against_the_other_machine_s_note_is_not_taken_for_forgotten(pair: Pair) -> None:
    one, two, sync = pair(COPIES[0])
    await one.remember("Otto the cat is diabetic")
    sync()
    await two.remember("Speaks Welsh")
    await two.remember("Plays the oboe")
    await one.remember("Owns a boat")
    sync()  # the copy holds both of the second machine's lines
    assert two.lines() == ["Otto the cat is diabetic", "Owns a boat", "Plays the oboe", "Speaks Welsh"]


async def test_a_line_that_is_private_in_one_version_is_so_in_both(pair: Pair) -> None:
    one, two, sync = pair(COPIES[0])
    await one.remember("Drives a Volvo")
    sync()
    note = two.root / "tars" / MEMORY
    note.write_text(
        note.read_text().replace("2026-11-28 %%", "2026-11-28 · private %%") + "- Owns a boat %% private %%\n"
    )
    await one.remember("Speaks Welsh")
    sync()
    for machine in (one, two):
        assert "Volvo" not in machine.memory.facts(local=False) and "boat" not in machine.memory.facts(local=False)
        assert "Volvo" in machine.memory.facts(local=True) and "boat" in machine.memory.facts(local=True)
    await one.remember("Lives in Bergen")
    assert "- Drives a Volvo %% 2026-11-28 · private %%" in (one.root / "tars" / MEMORY).read_text()


async def test_a_copy_without_the_note_itself_is_the_memory(pair: Pair) -> None:
    one, _, _ = pair(COPIES[0])
    await one.remember("Drives a Volvo", section="Cars")
    (one.root / "tars" / MEMORY).rename(one.root / "tars" / COPIES[0].format("Memory"))
    assert one.lines() == ["Drives a Volvo"]
    await one.remember("Speaks Welsh")
    assert list(one.files()) == [f"tars/{MEMORY}"]
    sections = {line.text: line.section for line in one.memory.lines(MEMORY)}
    assert sections == {"Drives a Volvo": "Cars", "Speaks Welsh": "Facts"}


async def test_a_line_can_be_forgotten_that_only_a_copy_holds(pair: Pair) -> None:
    one, two, sync = pair(COPIES[1])
    await one.remember("Drives a Volvo")
    await two.remember("Speaks Welsh")
    sync()
    await one.forget("Speaks Welsh")
    sync()
    assert one.lines() == two.lines() == ["Drives a Volvo"]


async def test_what_the_merge_brings_in_is_shown_before_it_is_made(pair: Pair) -> None:
    one, two, sync = pair(COPIES[0])
    await one.remember("Drives a Volvo")
    await two.remember("Speaks Welsh")
    sync()
    assert "+- Speaks Welsh" in one.memory.remember("Owns a boat").diff()


@pytest.mark.parametrize("name", ["Memory of Bergen.md", "Memory 2.md", "Memoryx (conflicted copy).md", "Memories.md"])
async def test_another_note_beside_it_is_no_copy(pair: Pair, name: str) -> None:
    one, _, _ = pair(COPIES[0])
    await one.remember("Drives a Volvo")
    (one.root / "tars" / name).write_text("- Speaks Welsh\n")
    assert one.lines() == ["Drives a Volvo"]
    await one.remember("Owns a boat")
    assert (one.root / "tars" / name).exists()


async def test_a_note_that_changed_between_reading_and_writing_is_planned_anew(pair: Pair) -> None:
    one, _, _ = pair(COPIES[0])
    await one.remember("Drives a Volvo")
    change = one.memory.remember("Owns a boat")
    note = one.root / "tars" / MEMORY
    note.write_text(note.read_text() + "- Speaks Welsh\n")
    with pytest.raises(Conflict):
        await one.perform(change)
    await one.remember("Owns a boat")
    assert one.lines() == ["Drives a Volvo", "Owns a boat", "Speaks Welsh"]


async def test_what_was_noticed_and_verdicts_are_there_once_from_both_machines(pair: Pair) -> None:
    one, two, sync = pair(COPIES[0])
    for machine, fact in ((one, "Owns a boat"), (two, "Speaks Welsh")):
        await machine.perform(machine.memory.notice([fact, "Plays the oboe"]))
        await machine.perform(*feedback.record(machine.memory, "wrong", "How far?", "3 miles", f"Say {fact}."))
        await machine.perform(*feedback.record(machine.memory, "wrong", "How high?", "3 feet", "Say metres."))
    sync()
    assert sync.conflicts == 2
    for machine in (one, two):
        assert machine.lines(NOTICED) == ["Owns a boat", "Plays the oboe", "Speaks Welsh"]
        notes = [entry.note for entry in feedback.entries(machine.memory)]
        assert sorted(notes) == ["Say Owns a boat.", "Say Speaks Welsh.", "Say metres."]
    ids = {entry.id for entry in feedback.entries(one.memory)}
    await one.perform(*feedback.archive(one.memory, ids))
    sync()
    assert feedback.entries(one.memory) == feedback.entries(two.memory) == []
    (kept,) = [path for path in one.files() if "archive" in path]
    assert kept.endswith("-aaa.md") and one.files()[kept].count(b"How high?") == 1


async def test_the_copy_lies_in_the_trash_afterwards(pair: Pair) -> None:
    one, two, sync = pair(COPIES[0])
    await one.remember("Drives a Volvo")
    await two.remember("Speaks Welsh")
    sync()
    await one.remember("Owns a boat")
    (kept,) = (one.root / ".trash").iterdir()
    assert "Speaks Welsh" in kept.read_text()
    assert parse((one.root / "tars" / MEMORY).read_text(), MEMORY).properties == {"tars": "memory"}
    with pytest.raises(NotFound):
        one.memory.forget("Takes the tram")
