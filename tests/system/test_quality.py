"""Search quality on the sample vault: judged questions, with floors a little under what is measured.

The figures come from `scripts/evaluate tarsd/data/sample-vault tests/fixtures/judged/queries.jsonl`. A change that
goes below a floor made search worse; one that goes far above should raise it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import tarsd
from tests.support.engine import Engine

ROOT = Path(__file__).parents[1]
VAULT = Path(tarsd.__file__).parent / "data" / "sample-vault"
QUERIES = ROOT / "fixtures" / "judged" / "queries.jsonl"


@pytest.fixture(scope="module")
def evaluate() -> ModuleType:
    """The script's functions."""
    loader = importlib.machinery.SourceFileLoader("evaluate", str(ROOT.parent / "scripts" / "evaluate"))
    spec = importlib.util.spec_from_loader("evaluate", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluate"] = module
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def figures(evaluate: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, float]]]:
    """The table's figures by mode."""
    with Engine(tmp_path_factory.mktemp("quality"), copy_of=VAULT, model=None) as engine:
        engine.reconcile()
        world = evaluate.World("sample", evaluate.read(QUERIES), engine.searcher)
        yield {mode: evaluate.run(world, mode)[0] for mode in ("fts", "vec", "hybrid")}


@pytest.mark.parametrize(
    ("figure", "floor"),
    [("ndcg5", 0.74), ("ndcg10", 0.77), ("hit1", 0.70), ("hit5", 0.78), ("passage5", 0.76), ("refused", 0.66)],
)
def test_hybrid(figures: dict[str, dict[str, float]], figure: str, floor: float) -> None:
    assert figures["hybrid"][figure] >= floor


def test_hybrid_is_no_worse_than_its_best_part(figures: dict[str, dict[str, float]]) -> None:
    assert figures["hybrid"]["ndcg10"] >= max(figures["fts"]["ndcg10"], figures["vec"]["ndcg10"])


def test_the_measures(evaluate: ModuleType) -> None:
    assert evaluate.ndcg(["b", "a"], {"a": 1.0, "b": 0.5}, 5) == pytest.approx(0.8597, abs=1e-3)
    assert evaluate.ndcg(["a", "b"], {"a": 1.0, "b": 0.5}, 5) == 1.0
    assert evaluate.ndcg(["c"], {"a": 1.0}, 5) == 0.0
    assert evaluate.measure({"relevant": {}}, []) == {"refused": 1.0}
