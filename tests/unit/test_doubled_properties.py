"""A property is never written twice, and a block that has one twice is mended or left alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tarsd.errors import BadRequest
from tarsd.parse import parse
from tarsd.session import properties
from tarsd.vault import content_hash
from tarsd.writing.changes import Loaded
from tarsd.writing.edits import create, replace_text

WHEN = datetime(2026, 11, 28, 14, 3, tzinfo=UTC)
REPORT = pytest.mark.report("https://github.com/GD4AI/obsidian-llm-wiki/issues/399")


def note(*lines: str) -> str:
    return "\n".join(["---", *lines, "---", "", "# Body", "words", ""])


def loaded(text: str) -> Loaded:
    raw = text.encode()
    return Loaded("n.md", raw, text, "utf-8", content_hash(raw))


def updated(text: str, *, private: bool = False) -> str:
    return properties.update(text, sources=["a.md", "c.md"], model="m2", updated=WHEN, private=private)


def doubled(text: str) -> bool:
    return any("twice" in problem.reason for problem in parse(text, "n.md").problems)


@REPORT
@pytest.mark.parametrize(
    "lines",
    [
        ["tars: session", "model: m1", "sources: []", "model: m0"],
        ["updated: 2020-01-01", "tars: session", "updated: 2021-01-01", "model: m1", "model: m1", "sources:"],
        ["tars: session", '"model": m1', "model: m0", "sources:", "  - a.md"],
    ],
)
@pytest.mark.parametrize("private", [False, True])
def test_a_model_or_time_that_is_there_twice_becomes_one(lines: list[str], private: bool) -> None:
    after = updated(note(*lines), private=private)
    told = parse(after, "n.md").properties
    assert not doubled(after)
    assert (told["tars"], told["model"], told["sources"]) == ("session", "m2", ["a.md", "c.md"])
    assert (told.get("local_only") is True) == private
    assert after.endswith("---\n\n# Body\nwords\n") and after.count("\n---\n") == 1


@REPORT
@pytest.mark.parametrize(
    "lines",
    [
        ["tars: session", "aliases: [a]", "aliases: [b]", "sources:", "  - b.md"],
        ["x: 1", "x: 2", "model: m1"],
        ["tars: session", "sources:", "  - a.md", "model: m1", "sources:", "  - b.md"],
        ["model: m1", "sources: [a.md]", "sources: [b.md]"],
        ["tars: session", "tars: session", "model: m1"],
    ],
)
def test_where_another_property_is_there_twice_nothing_is_written_but_the_mark(lines: list[str]) -> None:
    text = note(*lines)
    assert updated(text) == text
    after = updated(text, private=True)
    assert after.replace("local_only: true\n", "") == text
    assert parse(after, "n.md").properties["local_only"] is True


@pytest.mark.parametrize("lines", [["local_only: false"] * 2, ["local_only: true", "x: y", "local_only: false"]])
def test_a_mark_that_is_there_twice_becomes_one_once_it_is_to_be_set(lines: list[str]) -> None:
    after = properties.mark_private(note(*lines))
    assert properties.is_private(after) and not doubled(after) and after.count("\n---\n") == 1


@pytest.mark.parametrize("value", ["", " false", " no", "\n  - a", ' "false"', " False # why"])
@pytest.mark.parametrize("key", ["local_only", '"local_only"', "'local_only'"])
def test_the_mark_of_private_text_is_never_a_second_one(key: str, value: str) -> None:
    after = properties.mark_private(note("tars: session", f"{key}:{value}", "x: y"))
    assert properties.is_private(after) and not doubled(after)
    assert parse(after, "n.md").properties == {"tars": "session", "local_only": True, "x": "y"}


@REPORT
@pytest.mark.parametrize("lines", [["a: 1", "a: 2"], ["tags: [a]", "b: c", "tags: [d]"], ["m:", "  a: 1", "  a: 2"]])
def test_a_text_with_a_property_twice_is_not_written(lines: list[str]) -> None:
    with pytest.raises(BadRequest, match="would appear twice"):
        create("n.md", note(*lines))
    with pytest.raises(BadRequest, match="would appear twice"):
        replace_text(loaded(note("a: 1")), note(*lines))
    assert replace_text(loaded(note(*lines)), note(*lines) + "more\n")  # it is so already
    assert replace_text(loaded(note(*lines)), note("a: 1"))
