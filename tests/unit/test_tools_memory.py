"""Memory as tools: what the person sees before anything is kept, and what a model elsewhere never gets to see."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tarsd.errors import ToolError
from tarsd.memory import Memory
from tarsd.tools import Toolbox
from tarsd.tools.base import NotAsShown
from tarsd.tools.remember import MemoryTools
from tests.support.toolkit import Desk, Notes, fill

NOW = datetime.fromisoformat("2026-11-28T14:03:07+01:00")
KEPT = """---
tars: memory
---
# Memory

## Facts

- Otto the cat is diabetic %% 2026-10-01 · c-1 %%
- My sister is Ann %% 2026-10-01 · c-1 · private %%
- The doctor comes on Tuesday %% 2026-10-01 · c-1 · private %%
"""


@pytest.fixture
def desk(vault: Path) -> Desk:
    fill(vault, {"tars/Memory.md": KEPT})
    notes = Notes(vault)
    return Desk(notes, Toolbox(MemoryTools(Memory(notes.notebook, "tars", today=lambda: NOW)).tools()))


async def test_a_fact_is_shown_and_kept_on_a_yes_with_its_source(desk: Desk) -> None:
    asked = await desk.proposal("memory_remember", text="The ferry leaves\nat 7:40")
    assert asked.title == "Remember: The ferry leaves at 7:40"
    assert "+- The ferry leaves at 7:40 %% 2026-11-28 · c-3f2a91 %%" in asked.diff
    assert desk.text("tars/Memory.md") == KEPT
    assert (await asked.apply()).text.startswith("Remembered.")
    assert "- The ferry leaves at 7:40 %% 2026-11-28 · c-3f2a91 %%" in desk.text("tars/Memory.md")


async def test_a_rule_goes_to_the_rules(desk: Desk) -> None:
    asked = await desk.proposal("memory_remember", text="Answer in metric units", kind="rule")
    assert asked.title == "Remember a rule: Answer in metric units"
    await asked.apply()
    assert "- Answer in metric units %%" in desk.text("tars/Procedural.md")


async def test_what_comes_from_private_notes_is_marked(desk: Desk) -> None:
    desk.private = True
    await desk.do("memory_remember", text="The garage code is under the mat")
    assert "under the mat %% 2026-11-28 · c-3f2a91 · private %%" in desk.text("tars/Memory.md")


async def test_a_contradiction_is_told_with_the_way_out(desk: Desk) -> None:
    with pytest.raises(ToolError, match="My sister is Ann") as error:
        await desk.ask("memory_remember", text="My sister is Anna")
    assert "with replace set to that line" in error.value.hint
    asked = await desk.proposal("memory_remember", text="My sister is Anna", replace="My sister is Ann")
    assert "-- My sister is Ann %%" in asked.diff and "+- My sister is Anna %%" in asked.diff


async def test_what_is_known_is_not_kept_twice(desk: Desk) -> None:
    with pytest.raises(ToolError, match="Already remembered"):
        await desk.ask("memory_remember", text="Otto the cat is diabetic.")
    with pytest.raises(ToolError, match="“text” is empty"):
        await desk.ask("memory_remember", text=" ")


async def test_a_line_is_forgotten_on_a_yes(desk: Desk) -> None:
    asked = await desk.proposal("memory_forget", line="Otto")
    assert "-- Otto the cat is diabetic %%" in asked.diff
    assert "Otto" not in (await asked.apply()).text
    assert "Otto" not in desk.text("tars/Memory.md")
    for line in ("Otto", " "):
        with pytest.raises(ToolError):
            await desk.ask("memory_forget", line=line)


async def test_a_memory_edited_by_hand_before_the_yes_keeps_both(desk: Desk) -> None:
    asked = await desk.proposal("memory_remember", text="The ferry leaves at 7:40")
    fill(desk.notes.vault.root, {"tars/Memory.md": KEPT + "- Typed by hand\n"})
    with pytest.raises(NotAsShown) as other:
        await asked.apply()
    await other.value.proposal.apply()
    kept = desk.text("tars/Memory.md")
    assert "- Typed by hand\n" in kept and "The ferry leaves at 7:40" in kept


async def test_a_model_elsewhere_learns_no_private_line(desk: Desk) -> None:
    desk.local = False
    for tool, arguments in (
        ("memory_remember", {"text": "My sister is Anna"}),
        ("memory_remember", {"text": "My sister is Ann"}),
        ("memory_forget", {"line": "doctor"}),
        ("memory_forget", {"line": "sister"}),
    ):
        with pytest.raises(ToolError) as error:
            await desk.ask(tool, **arguments)
        said = f"{error.value.message} {error.value.hint}"
        assert "Tuesday" not in said and "is Ann" not in said
