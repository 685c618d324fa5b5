"""Exact requests, as `scripts/evaluate --structured` asks them, become queries with the rows that their rules give."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tarsd.query import Executor, VaultQuery, Vaults, table_json
from tests.support.engine import Engine, write

NOTES = {
    "Log/2026-03-14.md": "---\nsleep: 5.5 h\nmood: 3/5\n---\nrun:: 4 km\n\n- Rope [spent:: 12,50 €] [for:: boat]\n",
    "Log/2026-03-15.md": "---\nsleep: 7 h\nmood: bad\n---\n- Tea [spent:: 3.50 €] [for:: coffee]\n",
    "Log/2026-04-01.md": "---\nsleep: 8 h\nmood: 4/5\n---\n- Oil [spent:: 20 €] [for:: boat]\n"
    "- [ ] Sand it 📅 2026-04-03 ⏫\n",
    "Talks/Deck.md": "---\nwith: '[[People/Ada|Ada L.]]'\nlength: 1h 40m\nstate: Done\n---\n"
    "- [x] Send it ✅ 2026-04-02\n",
    "Talks/Mast.md": "---\nwith: ['[[Ada]]', '[[Bo]]']\nlength: 20\nstate: open\nborn: 24.12.1955\n---\n[[Deck]]\n",
    "People/Ada.md": "#friend/old\n",
}


@pytest.fixture(scope="module")
def structured() -> ModuleType:
    file = Path(__file__).parents[2] / "scripts" / "structured.py"
    about = importlib.util.spec_from_file_location("structured", file)
    assert about is not None and about.loader is not None
    module = importlib.util.module_from_spec(about)
    about.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("structured"), model=None)
    for path, text in NOTES.items():
        write(engine.vault, path, text)
    with engine:
        engine.index()
        yield engine


def paths(rows: list[dict[str, Any]]) -> list[str]:
    return [row["path"] for row in rows]


D14, D15, D01, DECK, MAST = (
    "Log/2026-03-14.md",
    "Log/2026-03-15.md",
    "Log/2026-04-01.md",
    "Talks/Deck.md",
    "Talks/Mast.md",
)

REQUESTS: list[tuple[dict[str, Any], list[Any]]] = [
    ({"where": [{"field": "sleep", "op": "<", "value": 6}]}, [{"path": D14}]),
    ({"where": [{"field": "sleep", "op": ">", "value": "7 h"}]}, [{"path": D01}]),
    ({"where": [{"field": "mood", "op": ">=", "value": 3}]}, [{"path": D14}, {"path": D01}]),
    ({"where": [{"field": "with", "op": "=", "value": "ada"}]}, [{"path": DECK}, {"path": MAST}]),
    ({"where": [{"field": "with", "op": "=", "value": "Ada"}]}, [{"path": DECK}, {"path": MAST}]),
    ({"where": [{"field": "state", "op": "=", "value": "DONE"}]}, [{"path": DECK}]),
    ({"where": [{"field": "state", "op": "!=", "value": "done"}]}, [{"path": MAST}]),
    ({"where": [{"field": "with", "op": "exists"}, {"not": {"field": "born", "op": "exists"}}]}, [{"path": DECK}]),
    ({"where": [{"field": "born", "op": "month", "value": 12}]}, [{"path": MAST}]),
    ({"where": [{"field": "born", "op": "<", "value": "1960-01-01"}], "select": ["state"]},
     [{"path": MAST, "state": "open"}]),
    ({"where": [{"any": [{"field": "state", "op": "contains", "value": "pe"}, {"field": "run", "op": "exists"}]}]},
     [{"path": D14}, {"path": MAST}]),
    ({"from": {"links_to": "Talks/Deck"}}, [{"path": MAST}]),
    ({"from": {"tag": "friend", "not_folder": "Log"}}, [{"path": "People/Ada.md"}]),
    ({"dates": {"field": "day", "from": "2026-03-15", "to": "2026-03-31"}}, [{"path": D15}]),
    ({"from": {"folder": "Log"}, "sort": [{"field": "mood", "dir": "desc"}], "limit": 2},
     [{"path": D01}, {"path": D14}]),
    ({"from": {"folder": "Talks"}, "aggregate": {"fn": "sum", "field": "length", "as": "minutes"}}, [{"value": 120}]),
    ({"from": {"folder": "Log"}, "aggregate": {"fn": "avg", "field": "sleep"}}, [{"value": 6.833333333333333}]),
    ({"from": {"folder": "Log"}, "aggregate": {"fn": "count"}}, [{"value": 3}]),
    ({"from": {"folder": "Log"}, "group": {"field": "day", "by": "month"}, "aggregate": {"fn": "count"}},
     [{"key": "2026-03", "value": 2}, {"key": "2026-04", "value": 1}]),
    ({"items": {"where": [{"field": "spent", "op": "exists"}]}, "group": {"field": "for"},
      "aggregate": {"fn": "sum", "field": "spent"}}, [{"key": "boat", "value": 32.5}, {"key": "coffee", "value": 3.5}]),
    ({"tasks": {"status": "open", "priority": ["high"], "due_before": "2026-04-04"}},
     [{"path": D01, "line": 6, "text": "Sand it"}]),
    ({"tasks": {"status": "done", "done_from": "2026-04-02", "text": "SEND"}},
     [{"path": DECK, "line": 6, "text": "Send it"}]),
    ({"tasks": {"status": "open", "due": "missing"}}, []),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "rows"), REQUESTS)
def test_a_request_has_its_rows(
    engine: Engine, structured: ModuleType, request_: dict[str, Any], rows: list[Any]
) -> None:
    def run(query: VaultQuery) -> dict[str, Any]:
        return table_json(Executor().run(query, engine.store, Vaults(), datetime(2026, 4, 2, 12)))

    assert structured.answer(request_, run) == rows
