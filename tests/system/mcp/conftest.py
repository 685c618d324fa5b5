"""What the tests of `tarsd mcp` share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.doubles.openai import OpenAIDouble
from tests.support.mcp_client import NOTES, Answering, House, Start, living


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with living(NOTES) as one:
        yield one


@pytest.fixture
def answering(daemon: Start, home: Path, vault: Path) -> Iterator[Answering]:
    with OpenAIDouble() as double:
        yield Answering(double, daemon, home, vault)
