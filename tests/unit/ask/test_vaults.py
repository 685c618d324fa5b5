"""Questions to small vaults of several kinds and languages: the sentence of each answer and the lines it rests on."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from tarsd.notes import Reader
from tests.support.engine import Engine, write

FIXTURE = Path(__file__).parents[2] / "fixtures" / "asked"
VAULTS = json.loads((FIXTURE / "vaults.json").read_text(encoding="utf-8"))
ROWS = [json.loads(line) for line in (FIXTURE / "vault-questions.jsonl").read_text(encoding="utf-8").splitlines()]
TODAY = date(2026, 11, 30)


@pytest.mark.parametrize("name", VAULTS)
def test_what_people_ask_of_their_vaults(name: str, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["vault"] == name]
    assert rows
    wrong = []
    with Engine(tmp_path, model=None) as engine:
        for path, text in VAULTS[name].items():
            write(engine.vault, path, text)
        engine.index()
        for row in rows:
            found = Reader(engine.library, model_is_local=True).answer(row["q"], TODAY)
            said = found.text.split("\n")[0] if found else None
            lines = [f"{passage.path}:{passage.start_line}" for passage in found.passages] if found else []
            if (said, lines) != (row.get("says"), row.get("lines", [])):
                wrong.append((row["q"], said, lines))
    assert wrong == []
