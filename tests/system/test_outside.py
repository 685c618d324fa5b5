"""What models outside of the daemon read: by name, without conversations, and without what is private elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from tarsd.chat.calls import CLOSED, NOBODY
from tarsd.config import PrivacySettings
from tarsd.errors import BadRequest, ClientError, Conflict, NotFound, PathRefused, ToolError, VaultUnavailable
from tarsd.notes import Reader
from tarsd.notes.resolve import NameIndex
from tarsd.protocol import Approval, Audience, RelatedRequest, SearchRequest, TurnRequest, read_audience
from tarsd.providers.fake import FakeProvider
from tarsd.store import NoteRow
from tarsd.tools import Context, Result, ToolProposal
from tarsd.tools.base import tool
from tarsd.vault import Vault
from tarsd.vault.files import Unreadable
from tests.support.engine import Engine, write
from tests.support.turns import DIARY, QUORL, Talk, ask, calls, of, talk, use
from tests.support.turns import Shelf as Shelves
from tests.support.turns import write as write_tool

OPEN = {"Quorl.md", "Ramp.md", "a/Twin.md"}
SECRET = "# Secret\n\nThe quorl ramp secret.\n"


class Desk:
    """What is read from outside of an indexed vault."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.root = engine.vault
        self.library = engine.library

    def reader(self, audience: Audience = "elsewhere") -> Reader:
        return Reader(self.library, audience)

    def found(self, query: str, audience: Audience = "elsewhere", limit: int = 10) -> tuple[list[str], int]:
        """The notes of the hits, and how many private ones there are."""
        reply = self.reader(audience).search(SearchRequest(query, limit=limit, audience=audience))
        return [hit["path"] for hit in reply["hits"]], reply["withheld"]

    def listed(self, audience: Audience = "elsewhere", **filters: str) -> tuple[list[str], int]:
        """The notes of a list, and how many private ones there are."""
        reply = self.reader(audience).notes(filters)
        return sorted(note["path"] for note in reply["notes"]), reply["withheld"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    engine = Engine(tmp_path, privacy=PrivacySettings(local_only=("Private/", "#secret")))
    for number in range(12):
        write(engine.vault, f"Private/{number}.md", f"# Quorl ramp {number}\n\nThe quorl ramp of number {number}.\n")
    write(engine.vault, "Quorl.md", "# Quorl\n\nOn the quorl of the ramp, see [[Private/1]].\n")
    write(engine.vault, "Ramp.md", "# Ramp\n\nOn the ramp of the quorl.\n")
    write(engine.vault, "a/Twin.md", "# Twin\n")
    write(engine.vault, "Private/Twin.md", "# Twin\n")
    head = '---\ntars: session\nid: talk\nsources:\n  - "[[Ramp]]"\n---\n'
    write(engine.vault, "tars/sessions/Talk.md", f"{head}# Talk\n\nThe quorl ramp, you said.\n")
    with engine:
        engine.index()
        yield Desk(engine)


def test_hits_that_may_not_leave_make_room_for_others(desk: Desk) -> None:
    assert desk.found("quorl ramp", "here", 2)[0][0].startswith("Private/")
    for limit in (1, 2, 200):
        paths, withheld = desk.found("quorl ramp", limit=limit)
        assert set(paths) <= OPEN and len(paths) >= min(limit, 2)
        assert withheld == 13
    reply = desk.reader("elsewhere").related(RelatedRequest("Quorl", 10))
    assert {hit["path"] for hit in reply["hits"]} <= OPEN - {"Quorl.md"} and "Ramp.md" in str(reply)
    assert "Private/1.md" in str(desk.reader("here").related(RelatedRequest("Quorl", 20)))


def test_conversations_are_no_sources(desk: Desk) -> None:
    audiences: tuple[Audience, ...] = ("here", "elsewhere")
    for audience in audiences:
        assert "Talk" not in str(desk.reader(audience).related(RelatedRequest("Quorl", 50)))
        assert "tars/sessions/Talk.md" not in desk.found("quorl ramp said", audience, 50)[0]
        assert "tars/sessions/Talk.md" not in desk.listed(audience)[0]
        assert desk.reader(audience).note("Talk")["path"] == "tars/sessions/Talk.md"  # asked for, it is read
    desk.engine.keep_private("tars/sessions/Talk.md")
    assert desk.reader("here").note("Talk")["title"] == "Talk"
    with pytest.raises(NotFound):
        desk.reader("elsewhere").note("Talk")


def test_what_holds_on_disk_counts_and_not_the_index(desk: Desk) -> None:
    paths, before = desk.found("quorl ramp", limit=50)
    assert "Quorl.md" in paths
    for text in (f"---\nlocal_only: true\n---\n{SECRET}", f"{SECRET}\n#secret\n", f"---\nlocal_only: yes\n{SECRET}"):
        write(desk.root, "Quorl.md", text)
        paths, withheld = desk.found("quorl ramp", limit=50)
        assert set(paths) == OPEN - {"Quorl.md"} and withheld == before == 13  # until the index knows
        assert "Quorl.md" not in desk.listed()[0] and desk.listed()[1] == 13
        with pytest.raises(NotFound):
            desk.reader("elsewhere").note("quorl")
        with pytest.raises(NotFound):
            desk.reader("elsewhere").related(RelatedRequest("Quorl", 10))
    (desk.root / "Quorl.md").unlink()
    paths, withheld = desk.found("quorl ramp", limit=50)
    assert set(paths) == OPEN - {"Quorl.md"} and withheld == before
    # and one that is open again is so when the index knows
    write(desk.root, "New.md", "# New\n\nJust written.\n")
    assert desk.reader("elsewhere").note("New")["text"] == "# New\n\nJust written."
    write(desk.root, "Newer.md", f"---\nlocal_only: true\n---\n{SECRET}")
    with pytest.raises(NotFound):
        desk.reader("elsewhere").note("Newer")


def test_no_count_tells_what_is_in_a_private_note_or_how_it_is_called(tmp_path: Path) -> None:
    engine = Engine(tmp_path, privacy=PrivacySettings(local_only=("Private/", "#secret")))
    write(engine.vault, "Private/Divorce Lawyer.md", "# Divorce Lawyer\n\nThe pin is 7391. #money/debt\n")
    write(engine.vault, "Open.md", "# Open\n\nNothing.\n")
    with engine:
        engine.index()
        desk = Desk(engine)
        for right, wrong in (
            ('"pin is 7391"', '"pin is 7392"'),
            ("pin file:divorce", "pin file:marriage"),
            ("path:Private/", "path:Prison/"),
            ("tag:money/debt", "tag:money/luck"),
        ):
            assert desk.found(right) == desk.found(wrong) == ([], 1)
        for filters in ({"name": "divorce"}, {"name": "marriage"}, {"folder": "Private"}, {"folder": "Prison"},
                        {"tag": "money"}, {"tag": "luck"}):  # fmt: skip
            reply = desk.reader().notes(filters)
            assert reply == {"notes": [], "total": 0, "withheld": 1}
        assert desk.reader().notes({})["total"] == 1


def test_relevance_does_not_tell_what_words_private_notes_hold(tmp_path: Path) -> None:
    found: list[Any] = []
    for text in ("# Divorce Lawyer\n\nThe pin is 7391, and the diver said ferry.\n", "# Else\n\nNothing here.\n"):
        engine = Engine(tmp_path / str(len(found)), privacy=PrivacySettings(local_only=("Private/",)))
        write(engine.vault, "Private/Note.md", text)
        write(engine.vault, "Open.md", "# Open\n\nThe ferry ramp and its divers are here.\n")
        write(engine.vault, "Two.md", "# Two\n\nSome ramp only, of an old kind.\n")
        with engine:
            engine.index()
            outside = Desk(engine).reader()
            found.append([])
            for query in (
                "ferry divorce",
                "ferry divo",
                "ferry divorcz",
                "ferry pin",
                "ferry 7391",
                "ferry ramp",
                "divrs",
            ):
                reply = outside.search(SearchRequest(query, mode="fts", audience="elsewhere"))
                found[-1].append([(hit["path"], hit["relevance"], hit["why"]) for hit in reply["hits"]])
    assert found[0] == found[1] and all(found[0])


def test_a_private_note_that_cannot_be_read_is_like_one_that_is_not_there(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> bytes:
        raise Unreadable("The file cannot be opened: Permission denied.")

    monkeypatch.setattr(Vault, "read", read)
    with pytest.raises(NotFound):
        desk.reader("elsewhere").note("Private/3")
    for name, audience in (("Quorl", "elsewhere"), ("Private/3", "here")):
        with pytest.raises(Unreadable):
            desk.reader(audience).note(name)  # type: ignore[arg-type]


def test_of_notes_with_one_name_those_that_just_became_private_are_not_named(desk: Desk) -> None:
    write(desk.root, "Clinic/Twin.md", "# Twin\n")
    desk.engine.index()
    with pytest.raises(Conflict, match="2 notes have the name"):
        desk.reader("elsewhere").note("Twin")
    write(desk.root, "Clinic/Twin.md", "---\ntags: [secret]\n---\n# Twin\n")
    assert desk.reader("elsewhere").note("Twin")["path"] == "a/Twin.md"
    assert desk.reader("elsewhere").related(RelatedRequest("Twin", 5))["withheld"] == 13
    write(desk.root, "a/Twin.md", "---\ntags: [secret]\n---\n# Twin\n")
    with pytest.raises(NotFound):
        desk.reader("elsewhere").note("Twin")


def test_memory_with_a_private_line_stays_whole_whatever_it_says_of_itself(desk: Desk) -> None:
    write(desk.root, "tars/Memory.md", "# Memory\n\n- The quorl ramp is mine %% private %%\n- It is brass\n")
    desk.engine.index()
    assert "tars/Memory.md" in desk.found("quorl ramp", "here", 50)[0]
    assert "tars/Memory.md" not in desk.found("quorl ramp", "elsewhere", 50)[0]
    with pytest.raises(NotFound):
        desk.reader("elsewhere").note("tars/Memory.md")


def test_a_name_leads_where_a_link_would(desk: Desk) -> None:
    for name in ("Quorl", "quorl.md", "[[Quorl#Heading|so]]", "![[Quorl]]"):
        assert desk.reader("elsewhere").note(name)["path"] == "Quorl.md"
    with pytest.raises(Conflict, match="2 notes have the name “Twin”") as clash:
        desk.reader("here").note("Twin")
    assert clash.value.hint == "Give the path of one: Private/Twin.md, a/Twin.md."
    # elsewhere only one of them is there, and nothing tells of the other
    assert desk.reader("elsewhere").note("Twin")["path"] == "a/Twin.md"
    # and one that is private is not to be told from one that does not exist
    for name in ("Private/3", "3", "Quorl ramp 3", "private/3.md", "Private/No such note", "Ghost"):
        for look in (desk.reader().note, lambda name: desk.reader().related(RelatedRequest(name, 5))):
            with pytest.raises(NotFound) as missing:
                look(name)
            assert missing.value.message.replace(name, "X") == "There is no note “X” that may be read here."
    for name in ("../x", "/Quorl.md", "a//b", ".obsidian/app", ""):
        with pytest.raises(PathRefused):
            desk.reader("elsewhere").note(name)


def test_names_by_path_then_by_end_then_by_title() -> None:
    def row(path: str, title: str = "", alias: str = "", collection: str = "") -> NoteRow:
        aliases = (alias,) if alias else ()
        return NoteRow(0, collection, path, title or path, aliases, (), "note", "", False, False, 0, 0, "ok")

    rows = [
        row("Note.md"),
        row("a/Note.md"),
        row("b/Other.md", title="Note", alias="Called"),
        row("Note.md", collection="work"),
        row("Only.md", collection="work"),
        row("CASE.md"),
        row("Case.md"),
    ]

    def keys(name: str) -> list[tuple[str, str]]:
        return [one.key for one in NameIndex(rows).find(name)]

    assert keys("Note") == keys("note.md") == [("", "Note.md")]
    assert keys("a/note") == [("", "a/Note.md")]
    assert keys("called") == [("", "b/Other.md")]
    assert keys("work/Note") == [("work", "Note.md")] and keys("Only") == [("work", "Only.md")]
    assert keys("Case.md") == [("", "Case.md")] and len(keys("case")) == 2
    assert keys("b/Oth") == keys("ther") == keys("Nothing") == []


def test_lists_are_bounded_and_by_name(desk: Desk) -> None:
    everything, withheld = desk.listed("here")
    assert withheld == 0 and len(everything) == 16
    assert desk.listed() == (["Quorl.md", "Ramp.md", "a/Twin.md"], 13)
    assert desk.listed(name="TWIN") == (["a/Twin.md"], 13)
    assert len(desk.listed("here", recent="3")[0]) == 3
    assert desk.listed("here", tag="nothing") == desk.listed("here", folder="nowhere") == ([], 0)


def test_a_vault_that_is_away_opens_nothing(desk: Desk) -> None:
    shutil.move(desk.root, desk.root.parent / "away")
    paths, _ = desk.found("quorl ramp", limit=50)
    assert set(paths) == OPEN
    with pytest.raises(VaultUnavailable):
        desk.reader("elsewhere").note("Quorl")
    assert desk.reader("elsewhere").related(RelatedRequest("Quorl", 5))["hits"]
    with pytest.raises(NotFound):
        desk.reader("elsewhere").related(RelatedRequest("Private/1", 5))


# ------------------------------------------------------------------------------------------------ requests and turns


def test_an_audience_is_one_of_three() -> None:
    assert read_audience({}) == SearchRequest.read({"query": "x"}).audience == "person"
    assert RelatedRequest.read({"path": "x", "audience": "here"}).audience == "here"
    body = {"conversation": "c", "message": "m", "request_id": "r", "audience": "elsewhere"}
    assert TurnRequest.read(body).audience == "elsewhere" and TurnRequest("c", "m", "r").audience == "person"
    for wrong in ("Elsewhere", "", 1):
        with pytest.raises(BadRequest, match="audience"):
            read_audience({"audience": wrong})


def test_the_routes_take_it(daemon: Any, vault: Path) -> None:
    write(vault, "Open.md", "# Open\n\nA quorl.\n")
    write(vault, "Shut.md", f"---\nlocal_only: true\n---\n{SECRET}")
    client = daemon(vault).client
    for audience, count in (("person", 2), ("here", 2), ("elsewhere", 1)):
        assert len(client.get(f"/v1/notes?audience={audience}")["notes"]) == count
        reply = client.post("/v1/search", {"query": "quorl", "audience": audience})
        assert {hit["path"] for hit in reply["hits"]} == {"Open.md", "Shut.md"} if count == 2 else {"Open.md"}
        assert ("withheld" in reply) is (audience != "person")
    assert client.get("/v1/notes/Shut.md")["text"].endswith(SECRET)
    assert client.get("/v1/notes/shut?audience=here")["path"] == "Shut.md"
    for path, code in (("Shut.md?audience=elsewhere", "not_found"), ("Open.md?audience=x", "bad_request")):
        with pytest.raises(ClientError) as error:
            client.get(f"/v1/notes/{path}")
        assert error.value.code == code


async def test_a_lasting_yes_does_not_hold_for_those_who_cannot_be_asked(tmp_path: Path) -> None:
    steps = [reply for n in range(3) for reply in (calls(use("write", path=f"{n}.md", text="x")), "ok")]
    one = talk(tmp_path, FakeProvider(*steps), write_tool)
    await one.answering(ask("a"), Approval(True, always=True))
    turn = await one.ended(ask("b", approvals=False))
    assert [event.data["state"] for event in of(turn, "tool")] == ["running", "refused"]
    assert of(await one.ended(ask("c")), "approval") == []
    assert sorted(path.name for path in one.root.glob("*.md")) == ["0.md", "2.md"]


async def test_what_the_settings_allow_they_allow_the_person(tmp_path: Path) -> None:
    sent: list[str] = []

    async def send(context: Context) -> ToolProposal:
        """Send something."""

        async def apply() -> Result:
            sent.append("x")
            return Result("sent")

        return ToolProposal("Send it", apply)

    reply = calls(use("write", path="N.md", text="x"), use("send"))
    one = talk(tmp_path, FakeProvider(reply, "ok", reply, "ok", reply, "ok"), write_tool, send, allow=("*",))
    for audience in ("elsewhere", "here"):
        turn = await one.ended(ask("a", approvals=False, audience=audience))
        told = [event.data for event in of(turn, "tool") if event.data["state"] != "running"]
        assert [(event["state"], event["text"]) for event in told] == [("refused", NOBODY)] * 2
        assert not sent and not list(one.root.glob("*.md"))
    await one.ended(ask("b", approvals=False))
    assert sent == ["x"] and (one.root / "N.md").exists()


async def test_a_tool_that_sends_of_itself_what_the_settings_allow_asks_for_a_model_elsewhere(tmp_path: Path) -> None:
    def send(context: Context) -> Result | ToolProposal:
        """As a tool of an MCP server that may be called without a yes."""

        async def apply() -> Result:
            return Result("sent")

        return ToolProposal("Send it", apply) if context.private else Result("sent")

    one = talk(tmp_path, FakeProvider(calls(use("send")), "ok", calls(use("send")), "ok"), send)
    for audience, state in (("elsewhere", "refused"), ("person", "done")):
        turn = await one.ended(ask("a", approvals=False, audience=audience))
        assert [event.data["state"] for event in of(turn, "tool")] == ["running", state]


async def test_a_turn_for_elsewhere_does_not_tell_private_notes_from_none(tmp_path: Path) -> None:
    said = "See [[Private/Diary]] and [[Ghost]]."
    one = Talk(tmp_path, Shelves(QUORL, DIARY), FakeProvider(said, said, said))
    heard = []
    for name in ("Private/Diary", "Ghost"):
        turn = await one.ended(
            ask(f"the secret quorl code of [[{name}]]?", conversation=name[-5:], audience="elsewhere")
        )
        [found], last = of(turn, "retrieved"), turn.events[-1]
        assert found.data["withheld"] == [] and last.data["text"] == "See Private/Diary and Ghost."
        heard.append([notice.replace(name, "X") for notice in last.data["notices"]])
    assert heard[0] == heard[1] == ["There is no note “X” that may be read here."]
    turn = await one.ended(ask("the secret quorl code?", conversation="p"))  # the person is told
    assert turn.events[-1].data["text"] == "See [[Private/Diary]] and Ghost."


async def test_a_tool_does_not_tell_a_model_elsewhere_why_it_failed(tmp_path: Path) -> None:
    def note_read(name: Annotated[str, "which"]) -> Result:
        """Read."""
        raise ToolError("That note is private.")

    def note_create(path: Annotated[str, "where"]) -> Result:
        """Make."""
        raise ToolError("There is one already.")

    def look(name: Annotated[str, "which"]) -> Result:
        """Of another group."""
        raise ToolError("It is broken.")

    made = calls(use("note_read", name="D"), use("note_create", path="D"), use("look", name="D"), use("gone"))
    fake = FakeProvider(made, "ok", made, "ok")
    tools = [*(tool(one, group="notes") for one in (note_read, note_create)), tool(look)]
    one = Talk(tmp_path, Shelves(QUORL), fake, *tools)
    for audience, texts in (
        ("elsewhere", [CLOSED, NOBODY, "It is broken."]),
        ("person", ["That note is private.", "There is one already.", "It is broken."]),
    ):
        turn = await one.ended(ask("a", approvals=False, audience=audience))
        told = [event.data["text"] for event in of(turn, "tool") if event.data["state"] != "running"]
        assert told[:3] == texts and "no tool named" in told[3]
