"""The digest of a day: what enters each part, for whom, and how it is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from tarsd.chat.commands import DigestCommand, read_command
from tarsd.errors import BadRequest
from tarsd.notes import Reader
from tarsd.notes.digest import digest
from tarsd.protocol import Audience
from tests.support.engine import Engine, write

TODAY = date(2026, 3, 1)
OLD, YESTERDAY = datetime(2026, 2, 27, 23, 59), datetime(2026, 2, 28, 0, 0)
NOTES = {
    "Daily/2026-03-01.md": "- [ ] Oil the hinge 📅 2026-03-01\n"
    "- [ ] Later 📅 2026-03-02\n- [x] Bought rope ✅ 2026-03-01\n",
    "Plan.md": "- [ ] Varnish [due:: 2026-02-28]\n- [x] Painted ✅ 2026-02-28\n"
    "- [x] Sanded ✅ 2026-02-27\n- [x] Sometime\n",
    "Daily/2024-03-01.md": "Spring tide\n",
    "船.md": "---\ndate: 2019-03-01\n---\n進水した日\n",
    "Daily/2025-03-02.md": "Another day\n",
    "Secret/Debt.md": "---\ndate: 2020-03-01\n---\n- [ ] Pay it 📅 2026-03-01\n"
    "- [ ] Pay that 📅 2026-01-01\n- [x] Paid ✅ 2026-03-01\n",
    ".obsidian/templates.json": '{"folder": "Templates"}',
    "Templates/2023-03-01.md": "- [ ] Of a template 📅 2026-03-01\n",
    "tars/2022-03-01 Talk.md": "---\ntars: session\ndate: 2022-03-01\n---\nWhat was said\n",
}  # fmt: skip
CHANGED = {"Plan.md": YESTERDAY, "Secret/Debt.md": YESTERDAY + timedelta(hours=5)}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("digest"), model=None)
    for path, text in NOTES.items():
        at = CHANGED.get(path, OLD).timestamp()
        os.utime(write(engine.vault, path, text), (at, at))
    with engine:
        config = engine.config
        engine.stop()
        engine.restart(privacy=replace(config.privacy, local_only=("Secret",)))
        engine.index()
        yield engine


def parts_of(engine: Engine, audience: Audience = "person", limit: int = 0, day: date = TODAY) -> dict[str, Any]:
    reply = digest(Reader(engine.library, audience), day, limit)
    assert not [part["problems"] for part in reply["parts"] if part["problems"]]
    return {part["name"]: [row.get("text") or row["path"] for row in part["rows"]] for part in reply["parts"]}


def test_each_part_has_what_is_of_it(engine: Engine) -> None:
    assert parts_of(engine) == {
        "changed": ["Secret/Debt.md", "Plan.md"],
        "due": ["Oil the hinge", "Pay it"],
        "overdue": ["Pay that", "Varnish"],
        "done": ["Bought rope", "Paid", "Painted"],
        "other_years": ["Daily/2024-03-01.md", "Secret/Debt.md", "船.md"],
    }


def test_what_is_private_is_in_no_row_and_no_count_elsewhere(engine: Engine) -> None:
    assert parts_of(engine, "here")["changed"] == ["Secret/Debt.md", "Plan.md"]
    reply = digest(Reader(engine.library, "elsewhere"), TODAY, 0)
    assert "Secret" not in str(reply) and "Pay " not in str(reply)
    assert [part["total"] for part in reply["parts"]] == [1, 1, 1, 2, 2]


def test_a_limit_cuts_rows_and_no_counts(engine: Engine) -> None:
    parts = digest(Reader(engine.library), TODAY, 1)["parts"]
    assert [(len(part["rows"]), part["total"]) for part in parts] == [(1, 2), (1, 2), (1, 2), (1, 3), (1, 3)]


def test_the_text_has_links_counts_and_numbers_through_all_parts(engine: Engine) -> None:
    told = DigestCommand(TODAY).told(Reader(engine.library), str)
    blocks = told.text.split("\n\n")
    assert blocks[0] == "The digest of 2026-03-01."
    assert blocks[1:3] == ["**Changed since yesterday**", "2 notes."]
    assert blocks[3].startswith("| Note | modified time |")
    assert blocks[4:7] == [
        "**Due today**",
        "2 tasks.",
        "- [ ] Oil the hinge 📅 2026-03-01 — [[Daily/2026-03-01]] [3]\n"
        "- [ ] Pay it 📅 2026-03-01 — [[Secret/Debt]] [4]",
    ]
    assert [passage.number for passage in told.passages] == list(range(1, 13))
    assert len(told.notes) == len({note.path for note in told.notes}) == 5
    assert "None" not in told.text


def test_parts_without_rows_are_named(engine: Engine) -> None:
    told = DigestCommand(date(2099, 7, 7)).told(Reader(engine.library), str)
    none = "None: Changed since yesterday, due today, done since yesterday, on this day in other years."
    assert told.text.endswith(none) and "**Overdue**\n\n5 tasks." in told.text


def test_the_command_is_alone_in_its_message() -> None:
    assert read_command("/Digest ", TODAY) == DigestCommand(TODAY)
    with pytest.raises(BadRequest, match="takes nothing"):
        read_command("/digest of yesterday", TODAY)
