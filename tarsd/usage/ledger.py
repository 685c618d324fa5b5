"""The tokens of every request to a model, a line each in an append-only file a month; numbers and names, no text.

One folder for all vaults, for their bill is one: several daemons may write to it at once. A conversation is a hash of
its id, so its numbers stay when it is deleted. A torn or foreign line is passed over.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

from tarsd import files

MOST: Final = 10_000_000
"""Tokens of a request; more than any model reads or writes is an error of whoever says it."""
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Spent:
    """Tokens of some requests; those read from a cache and written to it are among the input.

    `estimated`: how many of the requests were not counted by the server, but estimated.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    estimated: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Spent:
        """As a line of the ledger or an event of a turn has it. Raises ValueError for what is no count."""
        counts = [values.get(one.name, 0) for one in fields(cls)]
        if not all(isinstance(one, int) and 0 <= one <= MOST for one in counts):
            raise ValueError("no count")
        return cls(*map(int, counts))


class Account(NamedTuple):
    """What tokens are summed by: the local day, the model, whether it is on this machine, and the conversation."""

    day: str
    model: str
    local: bool
    conversation: str


@dataclass
class _Month:
    """What was read of a file, and the lines that could not be written to it."""

    read: int = 0  # bytes
    file: int = 0  # its inode
    sums: dict[Account, Spent] = field(default_factory=dict)
    unwritten: list[bytes] = field(default_factory=list)


class Ledger:
    """What was used, by `Account`. Safe to use from several threads, and by several processes; nothing here raises."""

    def __init__(self, folder: Path, today: Callable[[], date] = date.today) -> None:
        self.folder = folder
        self.today = today
        self._unsaved = self._unread = ""
        self._months: dict[str, _Month] = {}
        self._lock = threading.Lock()

    def add(self, model: str, local: bool, conversation: str, spent: Spent) -> None:
        """Keep what a request took, as of today."""
        day = self.today().isoformat()
        line = {"day": day, "model": model, "local": local, "conversation": hashed(conversation)}
        line |= {one.name: value for one in fields(spent) if (value := getattr(spent, one.name))}
        with self._lock:
            self._months.setdefault(day[:7], _Month()).unwritten.append(json.dumps(line).encode() + b"\n")
            try:
                for name in [name for name, month in self._months.items() if month.unwritten]:
                    self._write(self._file(name), self._months[name].unwritten)
                self._unsaved = self._unread = ""
            except OSError as error:
                self._unsaved = f"What models use cannot be saved: {error.strerror}."
                log.warning("what a model used cannot be saved", extra={"errno": error.errno})

    def sums(self, month: str) -> dict[Account, Spent]:
        """All of a month, such as "2026-11"."""
        with self._lock:
            known = self._months.setdefault(month, _Month())
            self._read(self._file(month), known)
            sums = dict(known.sums)
            for account, spent in _entries(known.unwritten):
                sums[account] = sums.get(account, Spent()) + spent
            return sums

    @property
    def trouble(self) -> str:
        """Why some of it is only in memory, or not known; "" while all is well."""
        return self._unsaved or self._unread

    def months(self) -> list[str]:
        """The months of which anything is kept, the newest first."""
        try:
            kept = {name[:7] for name in os.listdir(self.folder) if re.fullmatch(r"\d{4}-\d\d\.jsonl", name)}
        except OSError:
            kept = set()
        return sorted(kept | {name for name, month in self._months.copy().items() if month.unwritten}, reverse=True)

    def _file(self, month: str) -> Path:
        return self.folder / f"{month}.jsonl"

    def _write(self, file: Path, lines: list[bytes]) -> None:
        """Take line by line off the list and to the end of the file. Raises OSError."""
        files.make_folder(self.folder)
        handle = files.open_private(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW)
        try:
            while lines:
                size = os.fstat(handle).st_size
                torn = size and os.pread(handle, 1, size - 1) != b"\n"
                data = b"\n" * bool(torn) + lines[0]
                if os.write(handle, data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                del lines[0]
        finally:
            os.close(handle)

    def _read(self, file: Path, month: _Month) -> None:
        """Take in the whole lines that have come to the file since."""
        try:
            with file.open("rb") as handle:
                about = os.fstat(handle.fileno())
                if about.st_ino != month.file or about.st_size < month.read:  # it is another, or was cut off
                    month.read, month.file, month.sums = 0, about.st_ino, {}
                handle.seek(month.read)
                data = handle.read()
        except FileNotFoundError:
            month.read, month.sums = 0, {}
            return
        except OSError as error:
            self._unread = f"What models used cannot be read: {error.strerror}."
            return
        self._unread = ""
        whole = data.rpartition(b"\n")[0]
        month.read += len(whole) + 1 if whole else 0
        for account, spent in _entries(whole.split(b"\n")):
            month.sums[account] = month.sums.get(account, Spent()) + spent


def hashed(conversation: str) -> str:
    """As what a conversation is kept, "" for none."""
    data = conversation.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:16] if conversation else ""


def _entries(lines: list[bytes]) -> Iterator[tuple[Account, Spent]]:
    for raw in lines:
        try:
            line = json.loads(raw)
            day, model, conversation = (line[name] for name in ("day", "model", "conversation"))
            if isinstance(model, str) and isinstance(conversation, str) and _DAY.fullmatch(day):
                yield Account(day, model, line["local"] is True, conversation), Spent.read(line)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
