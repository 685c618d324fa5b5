"""The daemon's log: JSON lines in a rotating file and on stderr, without anything that stands in a note or query.

What is repeated is counted, not repeated. Of exceptions only type and place are written: their texts quote notes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from io import FileIO, TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tarsd import files, foreign
from tarsd.errors import TarsdError

if TYPE_CHECKING:
    from tarsd.daemon.console import Console

MAX_BYTES = 5_000_000
FILES = 3
REPEAT_S = 60.0
CHATTY = (
    "asyncio", "aiohttp", "httpx", "httpcore", "httpx2", "httpcore2", "openai", "anthropic", "ollama", "mcp", "watchdog"
)  # fmt: skip

_DIGITS = re.compile(r"\d+")
_PLACEHOLDER = re.compile(r"%(?:%|(?:\(\w+\))?[-#0 +]*[\d*]*(?:\.[\d*]+)?[a-zA-Z])")
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "repeated"}


class JsonLines(logging.Formatter):
    """One JSON object a record: time, level, event, and the fields given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_line(record), ensure_ascii=False, default=str)


class ShortLines(logging.Formatter):
    """The same for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        line = _line(record)
        head = f"{str(line.pop('time'))[11:19]} {line.pop('level'):7} {line.pop('event')}"
        return " ".join([head, *(f"{key}={value}" for key, value in line.items() if key != "logger")])


def _line(record: logging.LogRecord) -> dict[str, object]:
    ours = record.name == "tarsd" or record.name.startswith("tarsd.")
    # the arguments of other people's messages may hold anything, so only what type they have is told
    event = record.getMessage() if ours else _without_arguments(record)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    line: dict[str, object] = {
        "time": f"{stamp}.{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "event": foreign.without_keys(event.replace("\n", " ")[:500]),
        "logger": record.name,
    }
    if ours:
        more = {key: value for key, value in vars(record).items() if key not in _PLAIN}
        line |= {key: foreign.without_keys(value) if isinstance(value, str) else value for key, value in more.items()}
    repeated = getattr(record, "repeated", 0)
    if repeated:
        line["repeated"] = repeated
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        line["error"] = error.code if isinstance(error, TarsdError) else type(error).__name__
        line["at"] = _places(record.exc_info[2])
    return line


def _without_arguments(record: logging.LogRecord) -> str:
    given = record.args.values() if isinstance(record.args, Mapping) else record.args or ()
    message = str(record.msg)
    if not given:
        return message
    kinds = iter([type(argument).__name__ for argument in given])
    return _PLACEHOLDER.sub(lambda found: "%" if found[0] == "%%" else f"({next(kinds, '…')})", message)


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-8:]
    return [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]


def spare_clients(record: logging.LogRecord) -> bool:
    """A filter: unreadable requests, which aiohttp logs as errors, become warnings."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None or record.levelno <= logging.WARNING or not record.name.startswith("aiohttp"):
        return True
    code = getattr(error, "code", 0)
    refused = isinstance(code, int) and 400 <= code < 500
    # by its name, since aiohttp is not needed for a log
    if refused or isinstance(error, ConnectionError) or type(error).__name__ == "RequestPayloadError":
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    return True


class Repeats(logging.Filter):
    """Lets a message through once a minute; the next one to pass carries how many were held back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        error = record.exc_info[1] if record.exc_info else None
        code = getattr(record, "code", "")
        key = (record.name, record.levelno, _DIGITS.sub("#", str(record.msg)), type(error).__name__, code)
        now = self._clock()
        since, held = self._seen.get(key, (-REPEAT_S, 0))
        if now - since < REPEAT_S:
            self._seen[key] = (since, held + 1)
            return False
        if len(self._seen) > 1000:
            self._seen.clear()
        self._seen[key] = (now, 0)
        if held:
            record.repeated = held
        return True


class _Fan(logging.Handler):
    """One gate for all handlers, so that each record is counted once."""

    def __init__(self, handlers: Sequence[logging.Handler]) -> None:
        super().__init__()
        self._handlers = tuple(handlers)
        self.addFilter(spare_clients)
        self.addFilter(Repeats())

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        for handler in self._handlers:
            if record.levelno >= handler.level:
                handler.handle(record)

    def close(self) -> None:
        """Close them all."""
        for handler in self._handlers:
            handler.close()
        super().close()


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Rotates by size; mode 0600."""

    def _open(self) -> TextIOWrapper:
        handle = files.open_private(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        return TextIOWrapper(FileIO(handle, "a"), encoding="utf-8", errors="backslashreplace", write_through=True)


def set_up(folder: Path, name: str, console: Console | None = None) -> None:
    """Send every log to `folder`/`name`.log and stderr. A folder that cannot be written leaves stderr alone.

    With a `console` a person looks on: warnings and errors go there in place of stderr, in short.
    """
    logging.raiseExceptions = False  # stderr may be closed and the disk full: where would it be said?
    stderr = logging.StreamHandler[Any](console or sys.stderr)
    stderr.setFormatter(ShortLines() if console is not None else JsonLines())
    stderr.setLevel(logging.WARNING if console is not None else logging.NOTSET)
    handlers: list[logging.Handler] = [stderr]
    with contextlib.suppress(OSError):
        files.make_folder(folder)
        file = _PrivateFile(folder / f"{name}.log", maxBytes=MAX_BYTES, backupCount=FILES - 1, encoding="utf-8")
        file.setFormatter(JsonLines())
        handlers.append(file)
    logging.basicConfig(level=logging.WARNING, handlers=[_Fan(handlers)], force=True)
    logging.getLogger("tarsd").setLevel(logging.INFO)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.captureWarnings(True)
