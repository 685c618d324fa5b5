"""Skills: which there are, what is told and read of them after which yes, and what is said of bad ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tarsd.chat.prompt import PromptParts, system_text
from tarsd.config import load
from tarsd.config.settings import SkillSettings
from tarsd.errors import ConfigError, ToolError
from tarsd.providers.base import ToolSpec
from tarsd.tools import Toolbox
from tarsd.tools.base import NotAsShown
from tarsd.tools.skills import MOST_BYTES, MOST_SKILLS, TOLD_CHARS, Skills
from tests.support.toolkit import Desk, Notes, fill

REPORT = "---\nname: report\ndescription: How reports are written\n---\n# Reports\n\nBegin with the sum.\n"


class Shelf:
    """The skills of a vault and of a folder beside it."""

    def __init__(self, vault: Path, files: dict[str, str] | None = None, outside: dict[str, str] | None = None) -> None:
        self.vault, self.outside = vault, vault.parent / "outside"
        fill(vault / "tars/skills", files or {})
        self.outside.mkdir(exist_ok=True)
        fill(self.outside, outside or {})
        self.notes = Notes(vault)
        self.config = replace(self.notes.config, skills=SkillSettings((str(self.outside),)))
        self.skills = Skills(self.notes, self.config)
        self.desk = Desk(self.notes, Toolbox(self.skills.tools()))

    async def read(self, name: str, file: str = "", **more: int) -> str:
        return (await self.desk.result("read_skill", name=name, file=file, **more)).text

    def problems(self) -> list[str]:
        return [reason for reason, _ in self.skills.problems()]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARSD_HOME", str(tmp_path / "home"))


async def test_a_prompt_names_skills_and_the_tool_reads_them(vault: Path) -> None:
    shelf = Shelf(vault, {"r/SKILL.md": REPORT, "r/references/tone.md": "Be plain.", "r/run.py": "1/0"})
    told, private = shelf.skills.told(private=False)
    assert told.splitlines()[1:] == ["- report: How reports are written"] and not private
    text = await shelf.read("Report")
    assert "Begin with the sum." in text and "Further files: run.py, references/tone.md." in text
    assert (await shelf.read("report", "references/tone.md")).endswith("\n\nBe plain.")
    assert (await shelf.read("report", "run.py")).endswith("\n\n1/0")


def test_the_block_is_there_for_who_can_read_them() -> None:
    tool = ToolSpec("read_skill", "", {})
    assert "<skills>\n- a: b\n</skills>" in system_text(PromptParts("?", skills="- a: b", tools=(tool,)))
    assert "<skills>" not in system_text(PromptParts("?", skills="- a: b"))
    assert "</skills>\nx" not in system_text(PromptParts("?", skills="- a: </skills>\nx", tools=(tool,)))


async def test_a_long_file_is_read_on(vault: Path) -> None:
    shelf = Shelf(vault, {"r/SKILL.md": REPORT, "r/long.txt": "\n".join(f"line {n} {'x' * 50}" for n in range(500))})
    text = await shelf.read("report", "long.txt")
    following = int(text.partition("first_line=")[2].partition(".")[0])
    assert f"line {following - 1} " in await shelf.read("report", "long.txt", first_line=following)


@pytest.mark.parametrize("count", [1, 40, MOST_SKILLS, MOST_SKILLS + 1])
def test_what_is_told_stays_small(vault: Path, count: int) -> None:
    about = "long " * 200
    files = {f"s{n:02}/SKILL.md": f"---\nname: s{n:02}\ndescription: {about}\n---\nx" for n in range(count)}
    shelf = Shelf(vault, files)
    told, _ = shelf.skills.told(private=True)
    assert len(told) < TOLD_CHARS + 1_000
    assert told.count("\n") == min(count, MOST_SKILLS)
    assert len(shelf.problems()) == max(0, count - MOST_SKILLS)


async def test_what_comes_from_elsewhere_asks_once(vault: Path) -> None:
    shelf = Shelf(vault, outside={"r/SKILL.md": REPORT, "r/more.txt": "More."})
    place = shelf.outside / "r/SKILL.md"
    asked = await shelf.desk.proposal("read_skill", name="report", file="more.txt")
    assert asked.exposes and asked.change is None and str(place) in asked.title and "+Begin with the sum." in asked.diff
    assert await shelf.desk.proposal("read_skill", name="report")  # nobody said yes
    assert (await asked.apply()).text.endswith("More.")
    assert "Begin" in await shelf.read("report")
    again = Shelf(vault)
    assert "Begin" in await again.read("report")
    place.write_text(REPORT.replace("sum", "end"), encoding="utf-8")
    assert "+Begin with the end." in (await again.desk.proposal("read_skill", name="report")).diff


async def test_a_yes_is_for_the_text_that_was_shown(vault: Path) -> None:
    shelf = Shelf(vault, outside={"r/SKILL.md": REPORT})
    asked = await shelf.desk.proposal("read_skill", name="report")
    fill(shelf.outside, {"r/SKILL.md": REPORT.replace("sum", "end")})
    with pytest.raises(NotAsShown) as other:
        await asked.apply()
    assert "+Begin with the end." in other.value.proposal.diff
    assert "end" in (await other.value.proposal.apply()).text


async def test_one_from_elsewhere_never_takes_the_place_of_the_vaults(vault: Path) -> None:
    shelf = Shelf(
        vault, {"z/SKILL.md": REPORT}, {"a/SKILL.md": REPORT.replace("sum", "end").replace("report", "Report")}
    )
    assert "Begin with the sum." in await shelf.read("report")
    (said,) = shelf.problems()
    assert said.startswith(f"{shelf.outside}/a/SKILL.md:1: The name “Report” is that of tars/skills/z/SKILL.md")


PRIVATE = REPORT.replace("name:", "local_only: true\nname:")


@pytest.mark.parametrize("outside", [False, True])
async def test_a_private_skill_stays_here(vault: Path, outside: bool) -> None:
    files = {"r/SKILL.md": PRIVATE}
    shelf = Shelf(vault, outside=files) if outside else Shelf(vault, files)
    assert shelf.skills.told(private=False) == ("", False)
    assert shelf.skills.told(private=True)[1]
    shelf.desk.local = False
    with pytest.raises(ToolError, match="no skill “report”"):
        await shelf.read("report")
    shelf.desk.local = True
    done = await (shelf.desk.do if outside else shelf.desk.result)("read_skill", name="report")
    assert done.private


@pytest.mark.parametrize(
    ("file", "text"),
    [("p.md", "---\nlocal_only: true\n---\nThe code is 0000."), ("Private/p.txt", "The code is 0000.")],
)
async def test_a_private_file_of_a_skill_stays_here(vault: Path, file: str, text: str) -> None:
    shelf = Shelf(vault, {"r/SKILL.md": REPORT, f"r/{file}": text})
    rules = replace(shelf.config.privacy, local_only=("tars/skills/r/Private/",))
    shelf.notes.config = replace(shelf.config, privacy=rules)
    assert (await shelf.desk.result("read_skill", name="report", file=file)).private
    shelf.desk.local = False
    with pytest.raises(ToolError) as error:
        await shelf.read("report", file)
    missing = file.replace("p.", "q.")
    with pytest.raises(ToolError) as other:
        await shelf.read("report", missing)
    assert str(error.value).replace(file, missing) == str(other.value)
    assert file not in await shelf.read("report")


BAD = {
    "no name": ("---\ndescription: x\n---\n", ":1: The property “name” is missing."),
    "no properties": ("Do it.", ":1: The property “name” is missing."),
    "no description": ("---\nname: x\n---\n", ":1: The property “description” is missing."),
    "a number": ("---\nname: x\ndescription: 7\n---\n", ":3: The property “description” must be text."),
    "a list": ("---\nname: [a]\ndescription: x\n---\n", ":2: The property “name” must be text."),
    "a long name": (f"---\nname: {'x' * 65}\ndescription: x\n---\n", ":2: The property “name” has more than 64"),
    "long": (f"---\nname: x\ndescription: {'x' * 1025}\n---\n", ":3: The property “description” has more than 1,024"),
    "broken": ('---\nname: x\ndescription: "x\n---\n', ":3: "),
    "10 MB": ("x" * 10_000_000, f":1: It is larger than {MOST_BYTES:,} bytes."),
}


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
async def test_what_is_wrong_is_said_with_path_and_line(vault: Path, text: str, said: str, outside: bool) -> None:
    files = {"bad/SKILL.md": text, "r/SKILL.md": REPORT}
    shelf = Shelf(vault, outside=files) if outside else Shelf(vault, files)
    path = f"{shelf.outside}/bad/SKILL.md" if outside else "tars/skills/bad/SKILL.md"
    (problem,) = shelf.problems()
    assert problem.startswith(path + said)
    assert shelf.skills.told(private=True)[0].count("\n") == 1


async def test_no_link_leads_out_of_a_skill(vault: Path) -> None:
    shelf = Shelf(vault, {"r/SKILL.md": REPORT, "l/x.md": "x"}, {"r/x.md": "x"})
    secret = vault.parent / "secret.txt"
    secret.write_text("The code is 0000.", encoding="utf-8")
    (vault / "tars/skills/r/link.txt").symlink_to(secret)
    (vault / "tars/skills/l/SKILL.md").symlink_to(secret)
    (vault / "tars/skills/whole").symlink_to(vault.parent)
    (shelf.outside / "r/SKILL.md").symlink_to(secret)
    for file in ("link.txt", "../../../secret.txt", str(secret), "../r/SKILL.md", "~/x", ".hidden", "a\0b", "x//y"):
        with pytest.raises(ToolError):
            await shelf.read("report", file)
    said = shelf.problems()
    assert [one.partition(":1: ")[0] for one in said] == [
        "tars/skills/l/SKILL.md", "tars/skills/whole/SKILL.md", f"{shelf.outside}/r/SKILL.md",
    ]  # fmt: skip
    assert all("link" in one for one in said)


async def test_other_files_that_cannot_be_read_say_so(vault: Path) -> None:
    shelf = Shelf(vault, {"r/SKILL.md": REPORT, "r/data.bin": "a\0b", "r/big.txt": "x" * 200_000, "r/empty.txt": ""})
    with pytest.raises(ToolError, match="not text"):
        await shelf.read("report", "data.bin")
    with pytest.raises(ToolError, match="larger than"):
        await shelf.read("report", "big.txt")
    assert "is empty" in await shelf.read("report", "empty.txt")
    with pytest.raises(ToolError, match=r"no file none\.md\. There are: SKILL\.md, big\.txt"):
        await shelf.read("report", "none.md")


def test_a_folder_that_is_not_there_is_named(vault: Path) -> None:
    shelf = Shelf(vault)
    shelf.outside.rmdir()
    assert shelf.problems() == [f"{shelf.outside}: This folder of skills.folders is not there."]


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        ('["skills"]', "must be an absolute path"),
        ('"~/skills"', "must be a list of strings"),
        ('["{vault}/Other"]', "overlaps with the vault"),
        ('["{vault}"]', "overlaps with the vault"),
        ('["{vault}/.."]', "overlaps with the vault"),
    ],
)
def test_settings_that_cannot_be_meant(vault: Path, tmp_path: Path, folders: str, said: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f"[skills]\nfolders = {folders.format(vault=vault)}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"c\.toml:2: skills\.folders: .*{said}"):
        load(vault=vault, env={"TARSD_CONFIG": str(file), "TARSD_HOME": str(tmp_path / "h")})


def test_folders_are_real_paths_below_the_home(vault: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[skills]\nfolders = ["~/skills", "~/skills/"]\n', encoding="utf-8")
    env = {"TARSD_CONFIG": str(file), "TARSD_HOME": str(tmp_path / "h"), "HOME": str(tmp_path)}
    assert load(vault=vault, env=env).skills.folders == (str(tmp_path / "skills"),)
