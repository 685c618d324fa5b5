"""Who is to blame when a server does not embed: a text only after it failed alone, again and again, beside others."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tarsd.embed.base import Vectors
from tarsd.embed.fake import FakeEmbedder
from tarsd.errors import EmbedError
from tests.support.engine import embed_all
from tests.unit.index.conftest import Bench
from tests.unit.index.test_background import with_model


class Flaky(FakeEmbedder):
    """Fails at random, for no fault of the texts."""

    def __init__(self, share: float, seed: int) -> None:
        super().__init__(48)
        self.share, self.random = share, random.Random(seed)

    def embed(self, texts: Any, kind: Any) -> Vectors:
        if self.random.random() < self.share:
            raise EmbedError("The server failed (500).")
        return super().embed(texts, kind)


@pytest.mark.report("https://github.com/Lapis0x0/obsidian-yolo/issues/297")
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_a_flaky_server_never_condemns_a_text(bench: Bench, share: float, seed: int) -> None:
    for number in range(60):
        bench.write(f"{number}.md", f"text {number} of the ledger")
    model = Flaky(share, seed)
    with_model(bench, model)
    for _ in range(12):
        embed_all(bench.indexer)
    with bench.store.database.reader() as db:
        tries = [row[0] for row in db.execute("SELECT tries FROM failed")]
    assert max(tries, default=0) <= 1  # asked again only after a while
    model.share = 0.0
    bench.indexer.background._later.clear()
    embed_all(bench.indexer)
    assert bench.indexer.background.status().failed == 0
    assert bench.indexer.background.status().remaining == 0
