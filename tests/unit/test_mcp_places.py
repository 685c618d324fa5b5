"""What `read_note` of our MCP server takes: every form in which these tools, Obsidian and answers name a note."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import pytest

from tarsd.errors import BadRequest, ClientError
from tarsd.mcp_stdio import places, results
from tarsd.mcp_stdio.tools import TOOLS, _inside
from tarsd.notes.resolve import link_target, matching
from tarsd.passage import NoteRow

SLEEP = "Health/Night shift sleep.md"
NOTES = (
    SLEEP,
    "C# notes.md",
    "Ratio 3:4.md",
    "Q&A + more 100%.md",
    "函館メモ.md",
    "Tag #2.md",
    "2026-11-28.md",
    "a (b).md",
)


def reader(*paths: str) -> Callable[[str], str]:
    """Reads a note as the daemon does: by its path, without its ending, or the end of its path, or as a link."""

    def ask(name: str) -> str:
        wanted = link_target(name)[0] or name
        for path in paths:
            if wanted.removesuffix(".md") in (path.removesuffix(".md"), path.removesuffix(".md").rpartition("/")[2]):
                return path
        raise ClientError(f"There is no note “{name}”.", code="not_found")

    return ask


def uri(path: str, heading: str = "") -> str:
    """As `DaemonLink.obsidian` writes it."""
    named = quote(path.removesuffix(".md") + (f"#{heading}" if heading else ""), safe="")
    return f"obsidian://open?vault=My%20Vault&file={named}"


@pytest.mark.parametrize("path", NOTES)
def test_every_note_is_found_by_every_form_of_its_name(path: str) -> None:
    ask = reader(*NOTES)
    for given in (
        path,
        path.removesuffix(".md"),
        f"`{path}`",
        f"“{path}”",
        uri(path),
        uri(path, "What seems to help"),
        f"<{uri(path)}>",
        f"[{path}]({uri(path)})",
        f"obsidian://vault/My%20Vault/{quote(path)}",
        f"tarsd://note/{quote(path, safe='')}",
        f"tarsd://note/{quote(path)}",
        f"tarsd://note/{quote(path)}#Heading",
    ):
        assert places.found(given, "My Vault", ask)[0] == path, given


@pytest.mark.parametrize("path", NOTES)
@pytest.mark.parametrize(
    "form",
    [
        "{}:18-22", "{}:18–22", "{}: 18-22", "{}#L18-L22", "{}, lines 18 to 22 of 29.", "{} (lines 18-22)",
        "1. {}:18-22  Night shift sleep › What seems to help", "[3] {}:18-22  obsidian://open?vault=V&file=x",
        "- {}:18-22", "> {}:18-22", "[1, 2] {}:18-22",
    ],
)  # fmt: skip
def test_cited_lines_are_read(path: str, form: str) -> None:
    found, place = places.found(form.format(path), "My Vault", reader(*NOTES))
    assert (found, place.start, place.end) == (path, 18, 22)


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (f"{SLEEP}:18", (18, 18)),
        (f"{SLEEP}:18:5", (18, 18)),
        (f"{SLEEP}, line 7", (7, 7)),
        (f"- 2026-11-29 06:34 +09:00  {SLEEP}", (0, 0)),
        ("[1] [[Night shift sleep#What does not|sleep]]", (0, 0)),
        ("![[Night shift sleep]]", (0, 0)),
        (f"{SLEEP}  {uri(SLEEP)}", (0, 0)),
        (f"see {uri(SLEEP)}", (0, 0)),
        (f"tarsd://note/{quote(SLEEP)}:3-4", (3, 4)),
    ],
)
def test_what_else_our_lists_print_is_understood(given: str, lines: tuple[int, int]) -> None:
    found, place = places.found(given, "My Vault", reader(*NOTES))
    assert (found, (place.start, place.end)) == (SLEEP, lines)


def test_a_name_is_first_taken_as_it_is_given() -> None:
    assert places.found("Ratio 3:4", "V", reader(*NOTES, "Ratio 3.md"))[0] == "Ratio 3:4.md"
    assert places.found(uri("Tag #2.md"), "My Vault", reader("Tag.md", "Tag #2.md"))[0] == "Tag #2.md"
    assert places.found(uri("Tag.md", "2"), "My Vault", reader("Tag.md", "Tag #2.md"))[0] == "Tag.md"


def test_what_is_not_there_is_told_by_its_name_and_other_errors_as_they_are() -> None:
    with pytest.raises(ClientError, match=r"no note “Ghost\.md”"):
        places.found("1. Ghost.md:3-4  Ghost", "V", reader(*NOTES))
    with pytest.raises(BadRequest, match="vault “Other”"):
        places.found("obsidian://open?vault=Other&file=Ghost", "My Vault", reader(*NOTES))
    for broken in ("obsidian://open?vault=My%20Vault", "tarsd://turn/5", "tarsd://note/", "tarsd://note/%ff"):
        with pytest.raises(BadRequest, match="address"):
            places.found(broken, "My Vault", reader(*NOTES))

    def twins(name: str) -> str:
        raise ClientError("2 notes go by that name.", code="conflict")

    with pytest.raises(ClientError, match="2 notes"):
        places.found("Twin.md:3", "V", twins)


@pytest.mark.parametrize(
    ("tool", "given", "field", "value"),
    [
        ("search_notes", {"query": "x", "limit": 2.0}, "limit", 2),
        ("search_notes", {"query": "x", "limit": "2"}, "limit", 2),
        ("search_notes", {"query": "x", "limit": "2.0"}, "limit", 2),
        ("search_notes", {"query": "x", "limit": 1e1}, "limit", 10),
        ("read_note", {"path": "x", "start_line": 3.0}, "start_line", 3),
        ("related_notes", {"path": "x", "limit": " 4 "}, "limit", 4),
        ("recent_notes", {"limit": 100.0}, "limit", 100),
        ("read_note", {"path": "tarsd://note/" + "%E5" * 3000}, "start_line", 1),
    ],
)
def test_a_whole_number_is_one_however_it_is_written(
    tool: str, given: Mapping[str, Any], field: str, value: object
) -> None:
    assert getattr(TOOLS[tool].checked(given), field) == value


@pytest.mark.parametrize("limit", [2.5, "two", True, "nan", "inf", 1e300, [2, 3], "", -1.0])
def test_what_is_no_whole_number_is_refused(limit: object) -> None:
    with pytest.raises(BadRequest):
        TOOLS["search_notes"].checked({"query": "x", "limit": limit})


@pytest.mark.parametrize(
    ("folder", "there", "inside"),
    [
        ("Straße", ("Straße/a.md", "Strasse/b.md"), ["Straße/a.md"]),
        ("strasse", ("Straße/a.md", "Strasse/b.md"), ["Strasse/b.md"]),
        ("Work", ("work/a.md", "Work/b.md"), ["Work/b.md"]),
        ("WORK", ("work/a.md", "other/Work/b.md"), ["work/a.md"]),
        ("ﬁsh", ("fish/a.md",), []),
        ("Cafe\u0301", ("Café/a.md",), ["Café/a.md"]),
        ("ı", ("I/a.md", "i/b.md"), []),
    ],
)
def test_a_folder_is_the_one_that_is_spelled_so_and_no_letters_are_joined(
    folder: str, there: tuple[str, ...], inside: list[str]
) -> None:
    assert [hit["path"] for hit in _inside([{"path": path} for path in there], folder)] == inside
    rows = [NoteRow(id=n, path=path) for n, path in enumerate(there)]
    assert [row.path for row in matching(rows, folder, "", recent=False)] == inside


@pytest.mark.parametrize(
    ("zone", "shown"),
    [("Asia/Tokyo", "2026-11-28T07:30:00+09:00"), ("America/St_Johns", "2026-11-27T19:00:00-03:30"), (
        "UTC", "2026-11-27T22:30:00+00:00")],
)  # fmt: skip
def test_times_are_those_of_here_and_say_so(zone: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    try:
        assert results.moment(1795818600) == shown
        note = {"modified": shown, "path": "Fresh.md", "tags": []}
        assert results._row(note) == f"- {shown[:10]} {shown[11:16]} {shown[19:]}  Fresh.md"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "TZ" not in os.environ or os.environ["TZ"] != zone or zone == "UTC"
