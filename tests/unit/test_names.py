"""What a name means, in links, tools and commands: as it is spelled first, then in another case; letters stay apart."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tarsd.cli.names import found
from tarsd.config.rules import fold_name
from tarsd.errors import NotFound, ToolError
from tarsd.notes.resolve import NameIndex
from tarsd.passage import NoteRow
from tarsd.store import links
from tarsd.tools import Toolbox
from tarsd.tools.notes import NoteTools
from tests.support import toolkit
from tests.support.toolkit import Desk, Notes

APART = [
    ("Strasse", "Straße"), ("STRASSE", "straße"), ("fish", "ﬁsh"), ("office", "oﬃce"),
    ("Isik", "Işık"), ("resume", "résumé"), ("ilik", "ılık"), ("istanbul", "İstanbul"),
    ("sun", "ſun"), ("mm", "µm"), ("x2", "x²"), ("o", "ø"),
]  # fmt: skip
SAME = [
    ("Übung", "übung"), ("ÉCOLE", unicodedata.normalize("NFD", "école")), ("ΟΔΟΣ", "Οδος"), ("GROẞ", "groß"),
    ("МОСКВА", "Москва"), ("Note", "nOTE"),
]  # fmt: skip


def rows(*paths: str) -> list[NoteRow]:
    return [
        NoteRow(number, "", unicodedata.normalize("NFC", path), path.rpartition("/")[2].removesuffix(".md"))
        for number, path in enumerate(paths, 1)
    ]


def by_index(name: str, *paths: str) -> str | None:
    meant = NameIndex(rows(*paths)).find(name)
    return meant[0].path if meant else None


def by_link(name: str, *paths: str) -> str | None:
    targets = [
        links.LinkTarget(row.id, links.path_fold(row.path), row.path, False)
        for row in rows(*paths)
        if links.key_of(row.path) == links.key_of(name)
    ]
    id = links.resolve(name, "hub.md", targets)
    return next((row.path for row in rows(*paths) if row.id == id), None)


def by_command(name: str, *paths: str) -> str | None:
    class Listed:
        def get(self, route: str) -> dict[str, Any]:
            if route.startswith("/v1/notes/"):
                raise NotFound("none")
            return {"notes": [{"path": row.path, "title": row.title} for row in rows(*paths)]}

    try:
        return found(Listed(), name)  # type: ignore[arg-type]
    except NotFound:
        return None


WAYS = pytest.mark.parametrize("find", [by_index, by_link, by_command])


@WAYS
@pytest.mark.parametrize(("one", "other"), APART)
@pytest.mark.report("https://github.com/srid/neuron/issues/611")
def test_letters_are_never_joined(find: Any, one: str, other: str) -> None:
    assert fold_name(one) != fold_name(other)
    for wanted, there in ((one, other), (other, one)):
        assert find(wanted, f"a/{there}.md") is None
        assert find(wanted, f"{there}.md", f"a/b/{wanted}.md") == f"a/b/{wanted}.md"


@WAYS
@pytest.mark.parametrize(("one", "other"), SAME)
def test_another_case_and_form_is_the_same_name(find: Any, one: str, other: str) -> None:
    for wanted, there in ((one, other), (other, one)):
        assert find(wanted, f"a/{there}.md") == unicodedata.normalize("NFC", f"a/{there}.md")


@WAYS
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Note", "Note.md"), ("note", "note.md"), ("NOTE", "NOTE.md"), ("a/Note", "a/Note.md"), ("a/note", "a/note.md"),
        ("Note.md", "Note.md"), ("b/Log", "x/b/Log.md"), ("b/log", "y/b/log.md"), ("log", "y/b/log.md"),
    ],
)  # fmt: skip
def test_what_is_spelled_so_goes_first(find: Any, order: int, name: str, expected: str) -> None:
    paths = ["Note.md", "note.md", "NOTE.md", "a/Note.md", "a/note.md", "x/b/Log.md", "y/b/log.md"]
    assert find(name, *paths[::order]) == expected


async def test_a_tool_proposes_no_change_of_a_note_that_is_called_otherwise(vault: Path) -> None:
    toolkit.fill(vault, {"Straße.md": "# Straße\n", "note.md": "small\n", "Note.md": "great\n", "ﬁsh.md": "ligature\n"})
    desk = Desk(Notes(vault), Toolbox(NoteTools(Notes(vault).notebook).tools()))
    for name in ("Strasse", "Strasse.md", "fish"):
        for tool in ("note_read", "note_append"):
            with pytest.raises(ToolError, match="no note"):
                await desk.ask(tool, name=name, **({"text": "x"} if tool == "note_append" else {}))
    for name in ("Note", "note"):
        await desk.do("note_append", name=name, text=f"added to {name}")
        assert desk.text(f"{name}.md").endswith(f"added to {name}\n")
    await desk.do("note_create", path="Strasse", text="another")
    assert desk.text("Strasse.md") == "another\n" and desk.text("Straße.md") == "# Straße\n"
