"""The profile for small machines: the same index from less at once, and memory that is given back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tarsd.app import Application
from tarsd.config import PerformanceSettings, as_tables, load
from tarsd.embed.base import Kind, Vectors
from tarsd.embed.fake import FakeEmbedder
from tarsd.embed.minilm import MiniLM
from tarsd.errors import ConfigError
from tests.support.engine import Engine, embed_all, until, write
from tests.support.index_dump import dump

SMALL, NORMAL = PerformanceSettings("small"), PerformanceSettings()


class Counting(FakeEmbedder):
    """Knows how many texts came at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        self.sizes.append(len(texts))
        return super().embed(texts, kind)


def test_the_setting_is_read_and_shown(home: Path, vault: Path) -> None:
    file = home / "config.toml"
    assert as_tables(load(vault=vault))["performance"] == {"profile": "normal"}
    file.write_text('[performance]\nprofile = "small"\n')
    assert load(vault=vault).performance.small
    file.write_text('[performance]\nprofile = "tiny"\n')
    with pytest.raises(ConfigError, match=r"2: performance.profile: must be one of normal, small"):
        load(vault=vault)


def test_the_same_index_is_made_with_less_at_once(tmp_path: Path) -> None:
    dumps, children, batches = [], [], []
    for name, profile in (("normal", NORMAL), ("small", SMALL)):
        model = Counting()
        with Engine(tmp_path / name, model=model, performance=profile) as engine:
            for n in range(300):
                write(engine.vault, f"{n}.md", f"# Note {n}\n\n{f'About the number {n}, and more. ' * 20}\n")
            most: list[int] = []
            engine.indexer.reconcile(progress=lambda *step, most=most, engine=engine: most.append(
                len(engine.indexer._pool.pids())
            ))  # fmt: skip
            while embed_all(engine.indexer):
                pass
            dumps.append(dump(engine.store))
        children.append(max(most))
        batches.append(max(model.sizes))
    assert dumps[0] == dumps[1]
    assert children[0] >= children[1] == 1
    assert batches[1] < batches[0]


def test_fewer_threads_answer(home: Path, vault: Path) -> None:
    counts = []
    for profile in ("normal", "small"):
        (home / "config.toml").write_text(f'[performance]\nprofile = "{profile}"\n')
        before = set(threading.enumerate())
        engine = Application(load(vault=vault), lambda: None)
        counts.append(sum(one.name.startswith("tarsd-request") for one in set(threading.enumerate()) - before))
        engine.close()
    assert counts[0] > counts[1] > 1, "one that hangs keeps nobody from the status"


def test_the_model_gives_its_memory_back_and_comes_again() -> None:
    rested = threading.Event()
    model = MiniLM(rest_s=0.2, rested=rested.set)
    first = model.embed(["a note about boats"], "query")
    assert rested.wait(60) and model._session._session is None
    rested.clear()
    assert np.array_equal(model.embed(["a note about boats"], "query"), first)  # so it is there again
    assert rested.wait(60), "and goes again"
    model.embed(["a note"], "query")
    model.close()
    assert model._session._timer is None


def test_the_model_stays_while_it_is_asked() -> None:
    rested = threading.Event()
    model = MiniLM(rest_s=30.0, rested=rested.set)
    model.embed(["a note"], "query")
    model._session._rest()  # the timer of before, while questions came
    assert model._session._session is not None and not rested.is_set()
    model.close()
    until(lambda: model._session._timer is None)
    stays = MiniLM(rested=rested.set)
    stays.embed(["a note"], "query")
    assert stays._session._timer is None and stays._session._session is not None
    stays.close()
