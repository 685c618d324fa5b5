"""What the tests of vault share."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from tarsd.vault import (
    Scan,
)

NFC = unicodedata.normalize("NFC", "Příští schůzka é.md")


NFD = unicodedata.normalize("NFD", NFC)


def write(root: Path, *names: str, text: str = "text\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def paths(scan: Scan) -> set[str]:
    return {path for _, path in scan.files}


class Evicted:
    """What stat says of a file that is in the cloud only."""

    def __init__(self, real: os.stat_result, flags: int = 0) -> None:
        self.st_mode, self.st_size, self.st_mtime_ns = real.st_mode, real.st_size, real.st_mtime_ns
        self.st_blocks = 0 if not flags else real.st_blocks
        self.st_flags = flags
