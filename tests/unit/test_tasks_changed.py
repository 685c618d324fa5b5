"""Tasks that are done and added: proposed by models, or shown and made over the socket after a person's yes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tarsd.app.tasks import TaskChanges
from tarsd.errors import BadRequest, Conflict, NotFound, Refused, TarsdError, ToolError
from tarsd.protocol import TaskChangeRequest
from tarsd.tools import Toolbox
from tarsd.tools.base import NotAsShown
from tarsd.tools.daily import DailyTools
from tarsd.tools.notes import NoteTools
from tarsd.tools.tasks import TaskTools
from tests.support import toolkit
from tests.support.toolkit import Desk, Hand, Notes

NOW = datetime.fromisoformat("2026-11-28T14:03:07+01:00")
NOTES = {
    "Boat.md": "# Boat\n\n%% zqxcomment %%\n- [ ] Order varnish 📅 2026-11-30\n- [ ] Oil the tiller\n- [x] Sail\n",
    "Home.md": "- [ ] Water the tree 🔁 every week 📅 2026-11-30\n- [ ] Rent 🔁 every blue moon 📅 2026-12-01\n",
    "Private/Health.md": "- [ ] Call the doctor\n",
    "tars/Memory.md": "---\ntars: memory\n---\n- [ ] a\n",
    "Shared.md": "- [ ] a\n",
    "Plan.canvas": "{}",
}


@pytest.fixture
def notes(vault: Path) -> Notes:
    toolkit.fill(vault, NOTES)
    found = Notes(vault)
    found.collections.add("Shared.md")
    return found


@pytest.fixture
def desk(notes: Notes) -> Desk:
    return Desk(notes, Toolbox(TaskTools(NoteTools(notes.notebook), lambda: NOW).tools()))


class Socket:
    """What a client of the route sends and gets."""

    def __init__(self, notes: Notes) -> None:
        self.root, self.hand = notes.vault.root, Hand(notes.vault)
        daily = DailyTools(notes.notebook, self.root, lambda: NOW)
        self.changes = TaskChanges(notes, daily, "tars", self.hand.write, lambda: NOW)

    async def send(self, **request: Any) -> dict[str, Any]:
        return await self.changes.change(TaskChangeRequest.read(request))

    async def made(self, **request: Any) -> str:
        """The note after what was shown got a yes."""
        shown = await self.send(**request)
        assert not shown["done"] and shown["diff"] and not self.hand.changes
        done = await self.send(**request, yes=shown["yes"])
        assert done["done"] and done["diff"] == shown["diff"]
        return Path(self.root, done["path"]).read_text()


@pytest.fixture
def socket(notes: Notes) -> Socket:
    return Socket(notes)


# ------------------------------------------------------------------------------------------------ the tool


async def test_a_model_proposes_what_is_done_after_a_yes(desk: Desk) -> None:
    asked = await desk.proposal("complete_task", name="Boat", line=4)
    assert asked.title == "Complete “Order varnish” in Boat.md"
    assert "+- [x] Order varnish 📅 2026-11-30 ✅ 2026-11-28" in asked.diff
    assert desk.text("Boat.md") == NOTES["Boat.md"]
    assert "Done: “Order varnish” in Boat.md." in (await asked.apply()).text
    assert "- [x] Order varnish 📅 2026-11-30 ✅ 2026-11-28\n" in desk.text("Boat.md")


async def test_of_a_task_that_recurs_the_next_one_is_in_the_same_proposal(desk: Desk) -> None:
    asked = await desk.proposal("complete_task", name="Home", text="water the tree")
    assert asked.title.endswith(", and add the next one")
    await asked.apply()
    assert desk.text("Home.md").startswith(
        "- [ ] Water the tree 🔁 every week 📅 2026-12-07\n"
        "- [x] Water the tree 🔁 every week 📅 2026-11-30 ✅ 2026-11-28\n"
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"line": 5}, 5), ({"line": 5, "text": "Oil"}, 5), ({"line": 1, "text": "oil the tiller"}, 5),
        ({"text": "varnish"}, 4), ({"line": 5, "text": "varnish"}, 4),
    ],
)  # fmt: skip
async def test_a_task_is_meant_by_its_line_or_its_text(desk: Desk, arguments: dict[str, Any], line: int) -> None:
    asked = await desk.proposal("complete_task", name="Boat.md", **arguments)
    assert asked.change is not None
    assert asked.change.after.decode().splitlines()[line - 1].startswith("- [x]")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "Boat", "line": 3}, "no such open task"), ({"name": "Boat", "line": 6}, "no such open task"),
        ({"name": "Boat"}, "line 4: Order varnish"), ({"name": "Boat", "text": "e"}, "Several open tasks fit"),
        ({"name": "Home", "line": 2}, "Unknown"), ({"name": "Nothing", "line": 1}, "There is no note"),
        ({"name": "tars/Memory", "line": 4}, "assistant itself"), ({"name": "Shared", "line": 1}, "only read"),
        ({"name": "Plan.canvas", "line": 1}, "no Markdown note"),
    ],
)  # fmt: skip
async def test_what_a_model_hears_when_there_is_no_such_task(desk: Desk, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolError) as refused:
        await desk.ask("complete_task", **arguments)
    assert said in f"{refused.value.message} {refused.value.hint}"
    assert not desk.hand.changes


async def test_a_yes_is_for_what_was_shown(desk: Desk) -> None:
    asked = await desk.proposal("complete_task", name="Boat", line=4)
    (desk.notes.vault.root / "Boat.md").write_text(NOTES["Boat.md"].replace("Order varnish", "Order paint"))
    with pytest.raises(NotAsShown) as other:
        await asked.apply()
    assert "Order paint" in other.value.proposal.title and "✅" not in desk.text("Boat.md")


async def test_a_private_task_is_none_for_a_model_elsewhere(desk: Desk) -> None:
    desk.local = False
    with pytest.raises(ToolError):
        await desk.ask("complete_task", name="Private/Health", line=1)
    desk.local = True
    assert await desk.proposal("complete_task", name="Private/Health", line=1)


# ------------------------------------------------------------------------------------------------ the route


async def test_a_task_is_done_after_a_yes_to_what_was_shown(socket: Socket) -> None:
    text = await socket.made(action="done", note="Boat", line=5)
    assert text == NOTES["Boat.md"].replace("[ ] Oil the tiller", "[x] Oil the tiller ✅ 2026-11-28")


@pytest.mark.parametrize(
    ("request_", "path", "expected"),
    [
        ({"note": "Boat"}, "Boat.md", NOTES["Boat.md"] + "- [ ] Call Ada\n"),
        ({"note": "[[Boat#Boat]]", "due": "tomorrow"}, "Boat.md", NOTES["Boat.md"] + "- [ ] Call Ada 📅 2026-11-29\n"),
        ({"note": "Boat.md", "heading": "Boat", "due": "2027-01-01"}, "Boat.md",
         NOTES["Boat.md"] + "- [ ] Call Ada 📅 2027-01-01\n"),
        ({}, "2026-11-28.md", "- [ ] Call Ada\n"),
        ({"due": "today"}, "2026-11-28.md", "- [ ] Call Ada 📅 2026-11-28\n"),
    ],
)  # fmt: skip
async def test_a_task_is_added_to_a_note_or_to_todays(
    socket: Socket, request_: dict[str, str], path: str, expected: str
) -> None:
    assert await socket.made(action="add", text="Call  Ada", **request_) == expected
    assert socket.hand.changes[0].path == path


async def test_a_yes_to_another_change_does_nothing_and_shows_what_would_be_done_now(socket: Socket) -> None:
    asked = {"action": "done", "note": "Boat", "line": 4}
    shown = await socket.send(**asked)
    (socket.root / "Boat.md").write_text(NOTES["Boat.md"].replace("varnish", "paint"))
    again = await socket.send(**asked, yes=shown["yes"])
    assert not again["done"] and "Order paint" in again["title"] and again["yes"] != shown["yes"]
    assert not socket.hand.changes
    assert (await socket.send(**asked, yes=again["yes"]))["done"]
    with pytest.raises(Refused, match="already done"):
        await socket.send(**asked, yes=again["yes"])


async def test_a_note_that_is_saved_at_that_very_moment_is_shown_anew(socket: Socket) -> None:
    asked = {"action": "done", "note": "Boat", "line": 4}
    shown = await socket.send(**asked)
    socket.hand.before = lambda: (socket.root / "Boat.md").write_text(NOTES["Boat.md"].replace("varnish", "paint"))
    again = await socket.send(**asked, yes=shown["yes"])
    assert not again["done"] and "Order paint" in again["diff"]
    assert "✅" not in (socket.root / "Boat.md").read_text()


@pytest.mark.parametrize("audience", ["here", "elsewhere"])
async def test_a_model_hears_what_a_person_may_do_and_cannot_say_yes(socket: Socket, audience: str) -> None:
    asked = {"action": "done", "note": "Boat", "line": 4}
    told = await socket.send(**asked, audience=audience)
    assert told == {
        "done": False, "title": "Complete “Order varnish” in Boat.md", "path": "Boat.md", "diff": "", "yes": "",
    }  # fmt: skip
    yes = (await socket.send(**asked))["yes"]
    with pytest.raises(Refused):
        await socket.send(**asked, audience=audience, yes=yes)
    assert not socket.hand.changes


async def test_for_a_model_elsewhere_a_private_note_is_not_there(socket: Socket) -> None:
    said = []
    for name in ("Private/Health", "Private/Nothing"):
        for action in ("done", "add"):
            with pytest.raises(NotFound) as missing:
                await socket.send(action=action, note=name, line=1, text="x", audience="elsewhere")
            said.append(missing.value.message.replace(name, "X"))
    assert len(set(said)) == 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"action": "done"}, BadRequest), ({"action": "done", "note": "Boat"}, NotFound),
        ({"action": "done", "note": "Boat", "line": 1}, NotFound),
        ({"action": "done", "note": "No", "line": 1}, NotFound),
        ({"action": "done", "note": "Home", "line": 2}, Refused), ({"action": "add", "note": "Boat"}, BadRequest),
        ({"action": "add", "text": "x", "due": "soon"}, BadRequest),
        ({"action": "add", "text": "x", "due": "2026-02-30"}, BadRequest),
        ({"action": "add", "text": "x", "note": "Boat", "heading": "Nowhere"}, NotFound),
        ({"action": "add", "text": "x", "note": "tars/Memory"}, Refused), ({"action": "burn"}, BadRequest),
        ({"action": "add", "text": "x", "note": "Shared"}, Refused),
        ({"action": "add", "text": "x", "note": "Plan.canvas"}, Refused),
    ],
)  # fmt: skip
async def test_a_request_that_cannot_be_meant_is_refused(
    socket: Socket, request_: dict[str, Any], error: type[TarsdError]
) -> None:
    with pytest.raises(error) as refused:
        await socket.send(**request_)
    assert refused.value.message and not isinstance(refused.value, Conflict)
    assert not socket.hand.changes


@pytest.mark.parametrize(
    ("lines", "hint"),
    [
        ("Text\n", "It has no tasks."),
        ("Text\n- [ ] a\n", "The nearest task is at line 2."),
        ("Text\n- [ ] a\n\n- [ ] b\n", "The nearest tasks are at lines 2 and 4."),
        ("- [ ] z\n\n\nText\n- [ ] a\n\n- [ ] b\n1. [x] c\n", "The nearest tasks are at lines 1, 5 and 7."),
    ],
)
async def test_a_line_without_a_task_is_answered_with_the_nearest_ones(socket: Socket, lines: str, hint: str) -> None:
    Path(socket.root, "Boat.md").write_text(lines)
    with pytest.raises(NotFound, match=r"There is no task at line \d of Boat\.md") as caught:
        await socket.send(action="done", note="Boat", line=1 if lines[0] == "T" else 4)
    assert caught.value.hint == hint


async def test_a_task_without_words_is_named_by_its_line(socket: Socket) -> None:
    Path(socket.root, "Boat.md").write_text("- [ ] 📅 2026-11-30\n")
    shown = await socket.send(action="done", note="Boat", line=1)
    assert shown["title"] == "Complete “- [ ] 📅 2026-11-30” in Boat.md"
