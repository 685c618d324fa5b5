"""Files are read in child processes with limits, so that none can take the daemon or the index with it."""

from __future__ import annotations

from pathlib import Path

from tarsd.children import ChildDied, ChildTooSlow, Pool
from tarsd.extract.limits import MEMORY, TIME_S, allow_time, confine
from tarsd.extract.pages import Extracted, Kind
from tarsd.extract.reading import extract

_CALL = "tarsd.extract.reader:in_child"
_confined = False


class FileReader:
    """Reads up to `size` files at a time, each in a child of its own. `close` cuts off what runs."""

    def __init__(self, size: int = 1, *, timeout_s: float = TIME_S) -> None:
        self._pool = Pool(size, nice=10, timeout_s=timeout_s, here=False)

    def read(self, path: Path, kind: Kind) -> Extracted:
        """Blocks, at most `timeout_s` once its turn has come. Raises ChildDied only after `close`."""
        try:
            answer: Extracted = self._pool.submit(_CALL, str(path), kind).result()
        except ChildTooSlow:
            return Extracted(
                (), problem=f"Reading it took more than {TIME_S:.0f} s.", hint="Split it, or save it anew."
            )
        except ChildDied:
            if self._pool.closed:
                raise
            return Extracted(
                (),
                problem=f"What reads it broke down: it is damaged, or needs more than {MEMORY >> 30} GB of memory.",
                hint="Open it with its program and save it anew, or split it.",
            )
        return answer

    def close(self) -> None:
        """End the children."""
        self._pool.close()


def in_child(path: str, kind: Kind) -> Extracted:
    """What a child is asked: it gives up all it does not need before it opens its first file."""
    global _confined
    if not _confined:
        confine()
        _confined = True
    allow_time()
    return extract(Path(path), kind)
