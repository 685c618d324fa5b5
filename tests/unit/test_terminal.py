"""What a terminal is sent: marks, links and widths, and nothing from a note that could command it."""

from __future__ import annotations

import io
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tarsd.cli.passages import band, notes_below, place, show
from tarsd.cli.show import best_last
from tarsd.cli.terminal import Terminal, clean, columns, fit, query_pattern
from tarsd.cli.wrapping import wrapped
from tests.support.stub import HIT


class Screen(io.StringIO):
    """A terminal 80 columns wide."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal(Screen())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;x\x07", "␛]52;c;x␇"),
        ("\x9b31m", "\ufffd31m"),
        ("a\rb\x00\x7f", "ab␀␡"),
        ("\u202egnp.exe", "gnp.exe"),
        ("\udcff", "?"),
        ("a\tb\nc", "a    b\nc"),
    ],
)
def test_nothing_in_a_note_commands_the_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_every_field_of_a_hit_is_made_harmless(screen: Terminal, tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]8;;http://x\x07\x9b"
    hit = {key: evil + value if isinstance(value, str) else value for key, value in HIT.items()}
    hit |= {"why": [evil], "collection": ""}
    shown = "\n".join(show([hit], evil, {"": tmp_path}, screen))
    ours = re.sub(r"\x1b\[[\d;]*m|\x1b\]8;;(file://[!-~]*)?\x1b\\", "", shown)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", ours)


def test_matches_are_marked_and_places_are_links(screen: Terminal, tmp_path: Path) -> None:
    shown = "\n".join(show([HIT], "gauges", {"": tmp_path}, screen))
    assert "The \x1b[1;33mgauge\x1b[0m should" in shown
    assert f"\x1b]8;;file://{tmp_path}/House/Boiler.md\x1b\\" in shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("Health/Night shift sleep.md", "Health/Night shift sleep.md:12"),
        (f"{'Deep/' * 20}Health/Night shift sleep.md", "/Deep/Health/Night shift sleep.md:12"),
        (
            f"{'Ein sehr langer Ordner/' * 6}Brombeeren schneiden.md",
            "/Ein sehr langer Ordner/Brombeeren schneiden.md:12",
        ),
        (f"{'word ' * 30}end.md", " word word end.md:12"),
        (f"{'x' * 200}.md", "…xxxxxx"),
        (f"{'茶道/' * 30}作法.md", "/茶道/作法.md:12"),
    ],
)
def test_a_long_path_shows_its_end_and_breaks_in_no_name(
    screen: Terminal, tmp_path: Path, path: str, shown: str
) -> None:
    for roots, indent in (({"": tmp_path}, 0), ({"": tmp_path}, 6), ({}, 0)):
        text = place({**HIT, "path": path, "collection": ""}, 12, roots, screen, indent)
        bare = re.sub(r"\x1b\[[\d;]*m|\x1b\]8;;[^\x1b]*\x1b\\", "", text)
        assert columns(bare) <= screen.edge - indent
        assert bare.endswith(shown) if shown.endswith("12") else bare.startswith(shown)
        assert bare.startswith(("…/", "… ", "…x")) or bare in (f"{path}:12", f"{tmp_path}/{path}:12")
        assert not roots or quote(path) in text, "the link leads to all of it"
    assert place({**HIT, "path": path, "collection": ""}, 12, {}, Terminal(io.StringIO())) == f"{path}:12"


def test_a_path_in_a_text_goes_on_with_a_whole_name(screen: Terminal) -> None:
    path = "/".join(["/srv", *(f"folder{number}" for number in range(20)), "Note.md"])
    rows = wrapped(f"  ✓ file  {path} is there.", screen, 4).split("\n")
    assert all(columns(row) <= screen.width for row in rows)
    names = [name for row in rows for name in row.split() for name in name.split("/") if name]
    assert [name for name in names if name.startswith("folder")] == [f"folder{number}" for number in range(20)]


def test_of_several_quotes_the_best_stands_last(screen: Terminal) -> None:
    first, second = "> best\n>\n> of all\n\n— [[A]] [1], line 3", "> other\n\n— [[B#C]] [2], lines 4-6"
    assert best_last(f"{first}\n\n{second}") == f"{second}\n\n{first}"
    assert best_last(f"{first}\n") == first
    for whole in ("Your notes hold nothing.", f"{first}\n\nAlso near:\n\n- [[B]], line 2", "A. [1]\n— [[x]] y\nz"):
        assert best_last(whole) == whole


def test_no_color_is_obeyed(screen: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in "\n".join(show([HIT], "gauge", {"": tmp_path}, Terminal(Screen())))
    assert "\x1b" not in "\n".join(show([HIT], "gauge", {"": tmp_path}, Terminal(io.StringIO())))


def test_no_line_is_wider_than_the_terminal(screen: Terminal, tmp_path: Path) -> None:
    long = "茶道の作法と歴史についての長い説明。" * 20 + " gauge " + "word " * 200
    hit = {**HIT, "title": "A title " * 30, "text": long, "why": ["because " * 40]}
    for text in show([hit], "gauge", {}, screen)[1:]:
        assert columns(re.sub(r"\x1b\[[\d;]*m", "", text)) <= 80


def test_a_long_line_is_shown_where_it_matched() -> None:
    text = "a " * 200 + "needle " + "b " * 200
    cut = fit(text, 60, text.index("needle"))
    assert "needle" in cut
    assert cut.startswith("…")
    assert cut.endswith("…")


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("how are the leaking taps", "The tap leaks; a leak.", ["tap", "leaks", "leak"]),
        ("茶道", "日本の茶道です", ["茶道"]),
        ("tag:tea -coffee path:x C++", "tea coffee c", ["c"]),
        ("the", "the", []),
        ("(", "(", []),
    ],
)
def test_words_of_a_query_are_found_in_their_forms(query: str, text: str, found: list[str]) -> None:
    pattern = query_pattern(query)
    assert (pattern.findall(text) if pattern else []) == found


@pytest.mark.parametrize(
    ("relevance", "word"), [(1, "relevant"), (0.5, "fairly relevant"), (0.3, "maybe relevant"), (0, "not relevant")]
)
def test_bands(relevance: float, word: str) -> None:
    assert band(relevance) == word


def test_being_behind_is_counted(screen: Terminal) -> None:
    assert "2,000 changed notes" in notes_below({"behind": 2000}, screen)[0]
    assert notes_below({"behind": 0}, screen) == []
