"""What turns and tools get of notes of our own whose properties somebody took out: by their path they are known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tarsd.errors import Refused, VaultUnavailable
from tarsd.index.prepare import PrepareSettings, ReadJob, prepare_group
from tarsd.notes import Reader
from tarsd.passage import Origin
from tests.support.engine import Engine, write

STRIPPED = "tars/sessions/Åland talk.md"
SUMMARY = "tars/summaries/Åland talk.md"
TALK = "# What is a quorl?\n\nThe quorl is a brass wedge, you said.\n\n## And the code?\n\nThe quorl code is 0000.\n"


class Desk:
    """The library of an indexed vault."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.vault = engine.vaults[""]
        self.library = engine.library

    def found(self, *, local: bool) -> set[str]:
        return {one.path for one in self.reader(local).retrieve("quorl brass code", 12, memory=True).passages}

    def reader(self, local: bool) -> Reader:
        return Reader(self.library, model_is_local=local)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    engine = Engine(tmp_path)
    write(engine.vault, "Quorl.md", "# Quorl\n\nA quorl is a brass wedge.\n")
    write(engine.vault, "Ferry.md", "# Ferry\n\nThe quorl code holds the brass ramp.\n")
    write(engine.vault, STRIPPED, TALK)
    with engine:
        engine.index()
        yield Desk(engine)


def test_without_its_properties_a_note_is_an_ordinary_one(desk: Desk) -> None:
    assert desk.found(local=False) == {"Quorl.md", "Ferry.md", STRIPPED}


@pytest.mark.parametrize("spelled", [STRIPPED, STRIPPED.upper(), STRIPPED.replace("Å", "A\u030a")])
def test_the_note_of_a_private_conversation_is_private_and_no_source(desk: Desk, spelled: str) -> None:
    found = desk.reader(True).retrieve("quorl code 0000", 12).passages
    (passage,) = [one for one in found if one.path == STRIPPED and "0000" in one.text]
    desk.engine.keep_private(spelled)
    for local in (True, False):
        assert desk.found(local=local) == {"Quorl.md", "Ferry.md"}
        assert STRIPPED not in {one.path for one in desk.reader(local).retrieve("quorl code 0000", 12).passages}
        with pytest.raises(Refused):
            desk.reader(local).attach("Åland talk")
    assert {one.path for one in desk.reader(True).retrieve("quorl", 1, memory=True).passages} <= {
        "Quorl.md",
        "Ferry.md",
    }
    assert desk.reader(True).around(passage) == []
    view = desk.library.open("Åland talk")
    assert (view.local_only, view.ours) == (True, True)
    assert STRIPPED not in [one.path for one in desk.reader(False).listing("", "", False, 50)]
    assert [one.local_only for one in desk.reader(True).listing("tars", "", False, 50)] == [True]
    assert desk.library.any_private([Origin("", STRIPPED)])
    assert not desk.library.any_private([Origin("", "Quorl.md")])


def test_a_vault_that_is_away_gives_no_private_conversation_either(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.engine.keep_private(STRIPPED)

    def away(*_: object) -> None:
        raise VaultUnavailable("The vault is away.")

    monkeypatch.setattr(desk.vault, "scan", away)
    for local in (True, False):
        with pytest.raises(Refused):
            desk.reader(local).attach("Åland talk")
    assert desk.reader(False).attach("Quorl")


def test_a_summary_of_a_private_conversation_is_a_source_on_this_machine_only(desk: Desk) -> None:
    write(desk.engine.vault, SUMMARY, "---\ntars: summary\n---\n\nThe quorl code is brass.\n")
    desk.engine.index()
    desk.engine.keep_private(STRIPPED, SUMMARY)
    assert SUMMARY in desk.found(local=True)
    assert SUMMARY not in desk.found(local=False)
    write(desk.engine.vault, SUMMARY, "The quorl code is brass.\n")
    desk.engine.index()
    assert SUMMARY not in desk.found(local=True) | desk.found(local=False)


def test_such_a_note_goes_to_no_embedding_model_elsewhere(desk: Desk) -> None:
    jobs = [ReadJob(info) for info in desk.vault.scan().files.values()]
    settings = PrepareSettings(
        desk.engine.config.chunk, False, (), "x", False, private=frozenset({STRIPPED.casefold()})
    )  # fmt: skip
    done = prepare_group(jobs, settings)
    assert {prepared.note.path: prepared.note.local_only for prepared in done.prepared} == {
        "Quorl.md": False,
        "Ferry.md": False,
        STRIPPED: True,
    }


def test_a_private_note_is_named_as_it_was_asked_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    write(desk.engine.vault, "Me.md", "---\ntitle: My illness\nlocal_only: true\n---\n\nSecret.\n")
    desk.engine.index()

    def away(*_: object) -> None:
        raise VaultUnavailable("The vault is away.")

    for _ in range(2):
        with pytest.raises(Refused) as told:
            desk.reader(False).attach("Me")
        assert "“Me”" in told.value.message
        assert "illness" not in told.value.message
        monkeypatch.setattr(desk.vault, "scan", away)
