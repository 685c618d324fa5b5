"""Prompts of the vault: which message calls which, what it becomes, and what is said of one that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tarsd.chat.prompt_folder import MOST_QUERIES, FilledPrompt, PromptFolder
from tarsd.chat.prompt_note import MOST_CHARS
from tarsd.cli.slash import ALSO, COMMANDS
from tarsd.errors import BadRequest, Refused
from tarsd.notes import Reader
from tarsd.protocol import SLASH_COMMANDS
from tests.support.toolkit import Notes, fill

TODAY = date(2026, 11, 30)


def folder(root: Path, notes: Mapping[str, str]) -> PromptFolder:
    fill(root, {path if "/" in path else f"tars/prompts/{path}": text for path, text in notes.items()})
    return PromptFolder(Notes(root), "tars")


def filled(prompts: PromptFolder, message: str, *notes: str, selected: bool = False, **about: Any) -> FilledPrompt:
    reader = Reader(prompts._library, **about)
    called = prompts.called(message, Reader(prompts._library))
    assert called is not None
    return prompts.fill(called, reader, notes, selected=selected, today=TODAY)


def wrong(prompts: PromptFolder, message: str) -> str:
    with pytest.raises(BadRequest) as error:
        filled(prompts, message)
    return error.value.message


def test_no_prompt_has_the_name_of_a_command() -> None:
    assert {*COMMANDS, *ALSO} == SLASH_COMMANDS


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("weekly.md", "/weekly"),
        ("Weekly.md", "/WEEKLY  "),
        ("Weekly review.md", "/weekly-review"),
        ("Überblick.md", "/überblick"),
        ("Überblick.md".replace("Ü", "U\u0308"), "/Überblick"),
        ("週報.md", "/週報 本"),
        ("weekly.md", "/weekly\nand more"),
    ],
)
def test_a_note_is_the_command_of_its_name(vault: Path, file: str, message: str) -> None:
    assert filled(folder(vault, {file: "Do it."}), message).text.startswith("Do it.")


@pytest.mark.parametrize(
    "message", [" /weekly", "/week", "weekly", "/weekly/x", "/", "//weekly", "/old/weekly", "/a.b"]
)
def test_any_other_message_calls_none(vault: Path, message: str) -> None:
    prompts = folder(vault, {"weekly.md": "Do it.", "tars/prompts/old/weekly.md": "x", "tars/weekly.md": "x"})
    assert prompts.called(message, Reader(prompts._library)) is None


@pytest.mark.parametrize(
    ("text", "message", "asked"),
    [
        ("Look at {{arguments}} on {{date}}.", "/p the boat", "Look at the boat on 2026-11-30."),
        ("Look.", "/p the boat", "Look.\n\nthe boat"),
        ("Look at {{ Arguments }}.", "/p", "Look at ."),
        ("Say {{arguments}}", "/p {{date}} {{nothing}}", "Say {{date}} {{nothing}}"),
        ("A {brace}, {{a {b}}} and {{ one", "/p", "A {brace}, {{a {b}}} and {{ one"),
        ("Look. %%hidden%%", "/p", "Look."),
        ("![[style]]\nLook.", "/p", "Be brief.\nLook."),
        ("![[tars/prompts/Style.md]]\nLook.", "/p", "Be brief.\nLook."),
        ("![[Goals]]\nLook.", "/p", "![[Goals]]\nLook."),
        ("![[Notes/style]]\nLook.", "/p", "![[Notes/style]]\nLook."),
    ],
)
def test_what_a_prompt_asks(vault: Path, text: str, message: str, asked: str) -> None:
    prompts = folder(vault, {"p.md": text, "Style.md": "---\ndescription: How\n---\nBe brief.\n"})
    assert filled(prompts, message).text == asked


def test_selection_and_note_go_along(vault: Path) -> None:
    prompts = folder(vault, {"p.md": "Compare {{selection}} with {{note}}.", "Boat/Log.md": "Varnish."})
    found = filled(prompts, "/p", "Boat/Log.md", selected=True)
    assert found.text == "Compare the text in <selection> with [[Boat/Log]]."
    assert found.selects
    assert found.notes == ("Boat/Log.md",)
    reader = Reader(prompts._library)
    called = prompts.called("/p", reader)
    assert called is not None
    with pytest.raises(BadRequest, match=r"tars/prompts/p\.md:1: This prompt needs a selection"):
        prompts.fill(called, reader, ["Boat/Log.md"], selected=False, today=TODAY)
    with pytest.raises(BadRequest, match=r"tars/prompts/p\.md:1: This prompt needs a note"):
        prompts.fill(called, reader, [], selected=True, today=TODAY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntools: 5\n---\nx", "2: The property “tools” must be a text or a list of texts."),
        ("---\na: 1\nmodel: [a]\n---\nx", "3: The property “model” must be a text."),
        ("---\nnotes:\n  a: b\n---\nx", "3: The property “notes” must be a text or a list of texts."),
        ("---\nwhere: true\n---\nx", "2: The property “where” must be a text."),
        ("---\ntools: [a\n---\nx", "2: "),
        ("a\n\n{{selektion}}", "3: There is no placeholder {{selektion}}."),
        ("---\na: 1\n---\n{{}}", "4: There is no placeholder {{}}."),
        ("x {{date: YYYY}}", "1: {{date}} takes nothing behind a colon."),
        ("x {{query}}", "1: {{query}} has no condition."),
        ("x {{query: }}", "1: {{query}} has no condition."),
        ("---\na: 1\n---\n\n", "4: This prompt has no text."),
        ("", "1: This prompt has no text."),
        ("x" * (MOST_CHARS + 1), "1: The text of this prompt has more than 100,000 characters."),
    ],
)
def test_what_is_wrong_is_said_with_path_and_line(vault: Path, text: str, said: str) -> None:
    prompts = folder(vault, {"p.md": text})
    assert wrong(prompts, "/p").startswith(f"tars/prompts/p.md:{said}")
    (entry,) = prompts.listing()
    assert entry["problem"].startswith(f"tars/prompts/p.md:{said}")


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ({"a.md": "x\n![[a]]"}, "a.md:2: The prompts embed each other in a loop: /a → /a."),
        (
            {"a.md": "![[b]]", "b.md": "x\n\n![[c]]", "c.md": "![[a]]"},
            "c.md:1: The prompts embed each other in a loop: ",
        ),
        ({"a.md": "![[b]]\n![[b]]", "b.md": "{{nothing}}"}, "b.md:1: There is no placeholder {{nothing}}."),
        ({"a.md": "![[b]]\n" * 20, "b.md": "x" * 6_000}, "b.md:1: The text of this prompt has more than"),
    ],
)
def test_loops_and_what_is_embedded(vault: Path, notes: dict[str, str], said: str) -> None:
    assert wrong(folder(vault, notes), "/a").startswith(f"tars/prompts/{said}")


def test_a_prompt_that_is_embedded_twice_is_no_loop(vault: Path) -> None:
    assert filled(folder(vault, {"a.md": "![[b]]\n![[b]]", "b.md": "x"}), "/a").text == "x\nx"


def test_the_command_wins_and_it_is_said(vault: Path) -> None:
    prompts = folder(vault, {"Help.md": "x", "tasks.md": "x"})
    assert wrong(prompts, "/help") == "tars/prompts/Help.md:1: It is not used, as /help is a command of tars."
    assert prompts.hidden_by("/tasks") == "tars/prompts/tasks.md:1: It is not used, as /tasks is a command of tars."
    assert prompts.hidden_by("/notes") == ""
    assert ["is a command of tars" in entry["problem"] for entry in prompts.listing()] == [True, True]


def test_two_notes_of_one_name(vault: Path) -> None:
    prompts = folder(vault, {"Weekly review.md": "x", "weekly-review.md": "y"})
    assert wrong(prompts, "/weekly-review").startswith(
        "2 prompts are called /weekly-review: tars/prompts/Weekly review.md"
    )


def test_a_private_prompt_goes_to_no_model_elsewhere(vault: Path) -> None:
    private = "---\nlocal_only: true\n---\nThe code is 0000."
    prompts = folder(vault, {"p.md": private, "a.md": "![[p]]", "b.md": "{{note}}", "Private/Diary.md": "x"})
    assert filled(prompts, "/p").private
    assert filled(prompts, "/a").private
    for message in ("/p", "/a"):
        with pytest.raises(Refused):
            filled(prompts, message, model_is_local=False)
    with pytest.raises(Refused):
        filled(prompts, "/b", "Private/Diary.md", model_is_local=False)
    assert filled(prompts, "/a", audience="elsewhere").text == "![[p]]"
    # who asks from elsewhere does not learn that there is one
    assert prompts.called("/p", Reader(prompts._library, "elsewhere")) is None


def test_descriptions(vault: Path) -> None:
    prompts = folder(
        vault,
        {
            "a.md": "# Look at {{arguments}} now\n\nMore.",
            "b.md": "---\ndescription: Says what\narguments: [who, when]\n---\nText.",
            "c.md": "x" * 500,
        },
    )
    about = {entry["name"]: (entry["description"], entry["arguments"]) for entry in prompts.listing()}
    assert about == {"a": ("Look at … now", ""), "b": ("Says what", "who when"), "c": ("x" * 159 + "…", "")}


def test_rows_are_asked_for_only_so_often(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = folder(vault, {"p.md": "{{query: a}}\n" * (MOST_QUERIES + 1)})

    class Rows:
        notes = ()

    monkeypatch.setattr(Reader, "rows", lambda *_: Rows())
    monkeypatch.setattr("tarsd.chat.prompt_folder.as_lines", lambda _: ("No rows.", ()))
    assert wrong(prompts, "/p").startswith(f"tars/prompts/p.md:{MOST_QUERIES + 1}: This prompt asks for rows more than")
