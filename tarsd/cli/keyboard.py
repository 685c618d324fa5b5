"""Typing messages: line editing, completion, a history that only its owner can read; else plain lines."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tarsd.cli.asking import somebody

MOST_LINES = 1000
MOST_SHOWN = 200
DELIMITERS = " \t\n[|#"


class Keyboard:
    """`with Keyboard(file, commands, names) as keyboard`: reads messages; `names` are the notes, asked for at need."""

    def __init__(
        self, history: Path | None = None, commands: Sequence[str] = (), names: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._history = history
        self._commands = commands
        self._names = names
        self._readline: Any = None

    def __enter__(self) -> Keyboard:
        if not somebody():
            return self
        with contextlib.suppress(ImportError):
            import readline

            self._readline = readline
            if self._history is not None:
                self._set_up(readline, self._history)
        return self

    def __exit__(self, *_: object) -> None:
        if self._readline is not None:
            self._readline.set_completer(None)
        if self._readline is not None and not hasattr(self._readline, "append_history_file"):
            self._save(self._readline.write_history_file)

    def read(self, prompt: str) -> str:
        """The next message; a line that ends in a backslash goes on in the next. Raises EOFError."""
        text = self._line(prompt)
        while text.endswith("\\"):
            text = text[:-1] + "\n" + self._line("  ")
        return text

    def edit(self, prompt: str, text: str) -> str:
        """A text as the person changes it; without readline it is typed anew, and an empty line keeps it."""
        readline = self._readline
        if readline is None:
            from tarsd.cli.asking import answer

            return answer(prompt) or text
        readline.set_startup_hook(lambda: readline.insert_text(text))
        readline.set_auto_history(False)
        try:
            return _text(input(prompt)).strip() or text
        finally:
            readline.set_startup_hook(None)
            readline.set_auto_history(True)

    def _line(self, prompt: str) -> str:
        if not somebody():  # input() would print the prompt among the answers
            raw = sys.stdin.buffer.readline()
            if not raw:
                raise EOFError
            return raw.decode("utf-8", "replace").rstrip("\r\n")
        if self._readline is None:
            return _text(input(prompt))
        before = self._readline.get_current_history_length()
        text = _text(input(prompt))
        if self._readline.get_current_history_length() > before and hasattr(self._readline, "append_history_file"):
            self._save(lambda file: self._readline.append_history_file(1, file))  # others may write there as well
        return text

    def _save(self, write: Callable[[str], None]) -> None:
        if self._history is not None:
            with contextlib.suppress(OSError):
                write(str(self._history))
                self._history.chmod(0o600)

    def _set_up(self, readline: Any, history: Path) -> None:
        with contextlib.suppress(OSError):
            history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(history, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            history.chmod(0o600)
            readline.read_history_file(str(history))
        readline.set_history_length(MOST_LINES)  # of the file, which is cut to it whenever it is written
        readline.set_completer_delims(DELIMITERS)
        readline.set_completer(self._complete)
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")

    def _complete(self, text: str, number: int) -> str | None:
        readline = self._readline
        try:
            found = completions(readline.get_line_buffer()[: readline.get_endidx()], text, self._commands, self._names)
        except Exception:  # in the middle of typing nothing can be told
            return None
        return found[number] if number < len(found) else None


def completions(before: str, text: str, commands: Sequence[str], names: Callable[[], Sequence[str]]) -> list[str]:
    """What `text`, the last word of the line `before`, may become: a command, or the rest of a note's name."""
    if before.startswith("/") and " " not in before:
        return [f"{one} " for one in commands if one.startswith(before)]
    at = before.rfind("[[")
    if at >= 0 and "]]" not in before[at:]:
        begun, end = before[at + 2 :], "]]"
    elif before.startswith("/note "):
        begun, end = before.removeprefix("/note "), ""
    else:
        return []
    kept = len(begun) - len(text)  # what stands before the word stays as it was typed
    wanted = begun.casefold()
    fitting = [name for name in names() if name.casefold().startswith(wanted)]
    return [name[kept:] + end for name in fitting[:MOST_SHOWN]]


def _text(typed: str) -> str:
    return typed.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
