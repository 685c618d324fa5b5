"""What MCP servers read of the notes by themselves: known by the paths in what they are asked and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarsd.errors import ToolError
from tarsd.notes import Reader
from tarsd.tools.base import Context, Result
from tarsd.tools.mcp import McpServers
from tests.support.derived import Stage, sent
from tests.support.doubles.mcp_server import stdio
from tests.support.engine import write
from tests.support.toolkit import Notes
from tests.support.turns import calls, use

NOTES = {
    "Work/Hydra.md": "# Hydra\n\nThe hydra project costs 4711 crowns this winter.\n",
    "Private/Größe & co.md": "# Sizes\n\nShoes: 43.\n",
    "Ferry.md": "# Ferry\n\nThe ferry leaves at 06:12.\n",
    "港/灯り.md": "# 灯り\n\n赤い灯り。\n",
}
SECRET = "4711"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, NOTES)
    yield stage
    stage.stop()


def named(stage: Stage, text: str) -> list[tuple[str, bool]]:
    return [(row.path, row.local_only) for row in Reader(stage.app.library).mentioned(text)]


@pytest.mark.parametrize(
    "said",
    [
        "Private/Größe & co.md",
        "Read /home/mei/v/Private/Größe & co.md: 43",
        '{"path": "C:\\\\Users\\\\mei\\\\v\\\\Private\\\\Größe & co.md"}',
        "C:\\v\\Private\\Größe & co.md",
        "file:///v/Private/Gr%C3%B6%C3%9Fe%20%26%20co.md",
        "private/gro\u0308ße & co.md, 2 lines",
        "[[Private/Größe & co.md]]",
    ],
)
def test_a_path_is_known_in_every_spelling(stage: Stage, said: str) -> None:
    assert named(stage, said) == [("Private/Größe & co.md", True)]


@pytest.mark.parametrize("said", ["", "Ferries.md", "aFerry.md", "Ferry.mdx", "Ferry", "灯り.md は"])
def test_no_path_is_found_in_other_words(stage: Stage, said: str) -> None:
    assert named(stage, said) == []


def test_several_notes_are_named_and_what_is_private_now_is_private(stage: Stage) -> None:
    assert sorted(named(stage, "Ferry.md\nWork/Hydra.md\n港/灯り.md")) == [
        ("Ferry.md", False), ("Work/Hydra.md", False), ("港/灯り.md", False)
    ]  # fmt: skip
    write(stage.vault, "Ferry.md", "---\nlocal_only: true\n---\n# Ferry\n")
    assert named(stage, "Ferry.md") == [("Ferry.md", True)]


async def test_a_model_elsewhere_gets_no_result_that_names_a_private_note(stage: Stage, tmp_path: Path) -> None:
    servers = McpServers([stdio(tmp_path / "pids")], cwd=tmp_path)

    async def write(change: object) -> str:
        raise AssertionError("no note is written here")

    try:
        await servers.ready(60)
        tool = next(tool for tool in servers.tools() if tool.name == "demo_structured")
        for path, private in (("Private/Größe & co.md", True), ("Ferry.md", False)):
            here = await tool.run({"city": path}, Context("c", Reader(stage.app.library), write))
            assert isinstance(here, Result) and here.private is private
            assert [row.path for row in here.named] == [path]
            elsewhere = Context("c", Reader(stage.app.library, model_is_local=False), write)
            if private:
                with pytest.raises(ToolError, match="withheld"):
                    await tool.run({"city": path}, elsewhere)
            else:
                assert isinstance(await tool.run({"city": path}, elsewhere), Result)
        blind = Notes(tmp_path / "nowhere")
        here = await tool.run({"city": "Bergen"}, Context("c", Reader(blind), write))
        assert isinstance(here, Result) and here.private
        with pytest.raises(ToolError, match="withheld"):
            await tool.run({"city": "Bergen"}, Context("c", Reader(blind, model_is_local=False), write))
    finally:
        await servers.close()


def moved(stage: Stage) -> None:
    (stage.vault / "Work/Hydra.md").rename(stage.vault / "Private/Hydra.md")


def tagged(stage: Stage) -> None:
    write(stage.vault, "Work/Hydra.md", f"---\ntags: [private]\n---\n{NOTES['Work/Hydra.md']}")


def new_rule(stage: Stage) -> None:
    stage.rules = (*stage.rules, "Work/")


@pytest.mark.parametrize("becomes_private", [None, moved, tagged, new_rule])
async def test_what_a_server_read_follows_the_note(
    stage: Stage, tmp_path: Path, becomes_private: Callable[[Stage], None] | None
) -> None:
    stage.servers = (stdio(tmp_path / "pids"),)
    stage.stop()
    stage.start(stage.model)
    await stage.app.assistant.mcp.ready(60)
    stage.model.enqueue(calls(use("demo_structured", city="Work/Hydra.md")))
    stage.model.enqueue("It is 4711 crowns.")
    turn = await stage.ask("xyzzy")
    await stage.app.assistant.mcp.close()
    assert SECRET in turn.text and not turn.private
    stage.servers = ()
    if becomes_private is not None:
        becomes_private(stage)
        stage.index()
    model = stage.elsewhere()
    await stage.ask("again")
    assert (SECRET in sent(model)) is (becomes_private is None)
