"""What nobody would see in a change is shown to whoever allows it."""

from __future__ import annotations

import pytest

from tarsd.providers.text import revealed
from tarsd.writing.changes import Change

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "obey me")


@pytest.mark.parametrize(
    ("hidden", "count"),
    [
        (TAGS, 7),
        ("\u200b", 1),
        ("\u200b\u200c\u200d", 3),
        ("\u202etxt.exe\u202c", 2),
        ("\u2066\u2069", 2),
        ("\ufeff", 1),
        ("\u00ad\u2060", 2),
        ("\U000e0101\U000e0102", 2),
        ("\u3164", 1),
        ("\x1b[8m", 1),
    ],
)
def test_signs_that_cannot_be_seen_are_shown_and_counted_in_the_diff(hidden: str, count: int) -> None:
    after = f"one\nbuy{hidden} milk\n"
    change = Change("Note.md", "modify", b"one\n", after.encode(), after)
    shown = change.diff()
    assert change.unseen == count and shown.count("⟨U+") == count
    assert shown.splitlines()[-1].startswith(f"\\ {count} invisible sign")  # as every client shows it
    assert revealed(shown) == (shown, 0)
    assert change.after == after.encode()  # what is written stays what was asked for


def test_signs_that_were_there_before_are_not_counted_again() -> None:
    change = Change("Note.md", "modify", "a\u200b\n".encode(), "a\u200b\nb\n".encode(), "a\u200b\nb\n")
    assert change.unseen == 0 and "invisible" not in change.diff()


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("last", ["", "END"])
def test_line_ends_of_any_system_are_no_hidden_signs(end: str, last: str) -> None:
    before = f"a{end}b{last.replace('END', end)}"
    after = f"{before}{'' if last else end}c{end}\u200b"
    change = Change("Note.md", "modify", before.encode(), after.encode(), after)
    assert change.unseen == 1 and "1 invisible sign," in change.diff()


@pytest.mark.parametrize("text", ["plain", "👩\u200d👩\u200d👧", "می\u200cخواهم", "ك\u200dت", "naïve\ttab", "❤️"])
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert revealed(text) == (text, 0)
