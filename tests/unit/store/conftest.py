"""What the tests of store share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tarsd.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    yield one
    one.close()
