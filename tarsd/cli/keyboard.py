"""Typing messages: line editing, completion, a history that only its owner can read; else plain lines."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tarsd.cli.asking import somebody
from tarsd.cli.terminal import Terminal

MOST_LINES = 1000
MOST_SHOWN = 200
DELIMITERS = " \t\n[|#"
PASTES_MARKED, PASTES_BARE = "\x1b[?2004h", "\x1b[?2004l"
"""What asks a terminal to put marks around pasted text, and what ends that."""
AT_ONCE_S = 0.05
"""Lines that follow one another faster than this were pasted, not typed."""


class Cleared(Exception):
    """Ctrl-C was pressed on a line that was not empty; the line is gone."""


class Keyboard:
    """`with Keyboard(file, commands, names) as keyboard`: reads messages; `names` are the notes, asked for at need."""

    def __init__(
        self, history: Path | None = None, commands: Sequence[str] = (), names: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._history = history
        self._commands = commands
        self._names = names
        self._readline: Any = None
        self._marked = False  # pasted text comes with marks, which readline understands

    def __enter__(self) -> Keyboard:
        if not somebody():
            return self
        with contextlib.suppress(ImportError):
            import readline

            self._readline = readline
            modern = "libedit" not in (readline.__doc__ or "") and getattr(readline, "_READLINE_VERSION", 0) >= 0x700
            self._marked = modern and Terminal(sys.stdout).links
            if self._marked:
                readline.parse_and_bind("set enable-bracketed-paste on")  # Python turns it off
                self._ask_for_marks(PASTES_MARKED)
            if self._history is not None:
                self._set_up(readline, self._history)
        return self

    def __exit__(self, *_: object) -> None:
        self._ask_for_marks(PASTES_BARE)
        if self._readline is not None:
            self._readline.set_completer(None)
        if self._readline is not None and not hasattr(self._readline, "append_history_file"):
            self._save(self._readline.write_history_file)

    def read(self, prompt: str) -> str:
        """The next message. Pasted lines are one, and a line that ends in a backslash goes on in the next.

        Raises EOFError; Cleared or, on an empty line, KeyboardInterrupt.
        """
        text = ""
        try:
            text = self._line(prompt)
            while text.endswith("\\"):
                text = text[:-1] + "\n" + self._line("  ")
        except KeyboardInterrupt:
            if text or (self._readline is not None and self._readline.get_line_buffer()):
                raise Cleared from None
            raise
        return text.rstrip("\n")

    def edit(self, prompt: str, text: str) -> str:
        """A text as the person changes it; without readline it is typed anew, and an empty line keeps it."""
        readline = self._readline
        if readline is None:
            from tarsd.cli.asking import answer

            return answer(prompt) or text
        readline.set_startup_hook(lambda: readline.insert_text(text))
        readline.set_auto_history(False)
        try:
            return " ".join(_text(input(prompt)).split()) or text
        finally:
            self._ask_for_marks(PASTES_MARKED)
            readline.set_startup_hook(None)
            readline.set_auto_history(True)

    def _line(self, prompt: str) -> str:
        if not somebody():  # input() would print the prompt among the answers
            raw = sys.stdin.buffer.readline()
            if not raw:
                raise EOFError
            return raw.decode("utf-8", "replace").rstrip("\r\n")
        early = not self._marked and _more(0)  # what was typed during an answer may be several messages
        before = self._readline.get_current_history_length() if self._readline is not None else 0
        text = _text(input(prompt))
        self._ask_for_marks(
            PASTES_MARKED
        )  # readline has ended that; what is pasted during an answer is one message too
        if not (self._marked or early):
            with contextlib.suppress(EOFError):
                while _more(AT_ONCE_S):
                    text += "\n" + _text(input())
        if self._readline is not None and self._readline.get_current_history_length() > before:
            self._remember(text)
        return text

    def _remember(self, text: str) -> None:
        """Adds the newest message to the file at once, for others may write there as well; each is a line there."""
        readline = self._readline
        if not hasattr(readline, "append_history_file"):
            return
        if "\n" not in text:
            self._save(lambda file: readline.append_history_file(1, file))
            return
        at = readline.get_current_history_length() - 1
        flat = " ".join(text.split("\n"))
        readline.replace_history_item(at, f" {flat}" if flat.startswith("/") else flat)  # never a command
        self._save(lambda file: readline.append_history_file(1, file))
        readline.replace_history_item(at, text)

    def _ask_for_marks(self, code: str) -> None:
        if self._marked:
            sys.stdout.write(code)
            sys.stdout.flush()

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
    every = names()
    short = {name for name in every if "/" not in name}
    fitting = [
        name
        for name in every
        if name.casefold().startswith(wanted)
        and ("/" in wanted or "/" not in name or name.rpartition("/")[2] not in short)  # a path only where it is needed
    ]
    return [name[kept:] + end for name in fitting[:MOST_SHOWN]]


def _more(seconds: float) -> bool:
    """Whether another line is there already, or comes within this time."""
    with contextlib.suppress(OSError, ValueError):
        return bool(select.select([sys.stdin], [], [], seconds)[0])
    return False


def _text(typed: str) -> str:
    return typed.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
