"""The line that a person types at a terminal, edited with prompt_toolkit; only `keyboard` loads it, and only there."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from tarsd import files
from tarsd.cli.terminal import Terminal

MOST_KEPT = 1000
"""Lines that the file of what was typed holds."""
PASTES_MARKED, PASTES_BARE = "\x1b[?2004h", "\x1b[?2004l"
"""What asks a terminal to put marks around pasted text, and what ends that."""

Complete = Callable[[str, str], Sequence[str]]
"""From the line up to the cursor and its last word: what may stand in that word's place."""


class LineEditor:
    """Reads lines with editing keys, Tab and the arrow keys; what is typed is kept in the file `history`, if any."""

    def __init__(self, history: Path | None, complete: Complete) -> None:
        depth = ColorDepth.DEPTH_4_BIT if Terminal(sys.stdout).colour else ColorDepth.DEPTH_1_BIT
        output = Vt100_Output(sys.stdout, _size, os.environ.get("TERM"), depth, enable_cpr=False)
        self._session: PromptSession[str] = PromptSession(
            history=_Kept(history) if history is not None else None,
            completer=_Completer(complete),
            complete_style=CompleteStyle.READLINE_LIKE,
            complete_while_typing=False,
            enable_suspend=True,
            output=output,
        )
        self._alone: PromptSession[str] = PromptSession(output=output)
        self._mark(PASTES_MARKED)

    def close(self) -> None:
        """Gives the terminal back as it was."""
        self._mark(PASTES_BARE)

    @property
    def unfinished(self) -> str:
        """What stood in the line when Ctrl-C was pressed."""
        return self._session.default_buffer.text

    def line(self, prompt: str) -> str:
        """The next line; what is pasted is one, whatever it holds. Raises EOFError, KeyboardInterrupt."""
        return self._typed(self._session, prompt)

    def changed(self, prompt: str, text: str) -> str:
        """The text as the person changes it; it is not kept as typed. Raises EOFError, KeyboardInterrupt."""
        return self._typed(self._alone, prompt, text)

    def _typed(self, session: PromptSession[str], prompt: str, text: str = "") -> str:
        try:
            return session.prompt(prompt, default=text).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        finally:
            self._mark(PASTES_MARKED)  # what is pasted during an answer is one message too

    def _mark(self, code: str) -> None:
        sys.stdout.write(code)
        sys.stdout.flush()


def _size() -> Size:
    try:
        rows = os.get_terminal_size(sys.stdout.fileno()).lines
    except OSError:
        rows = 0
    return Size(rows=rows or 24, columns=Terminal(sys.stdout).edge)


class _Completer(Completer):
    """Tab completes the last word before the cursor."""

    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What the word may become; nothing where the daemon fails, for an error has no place in a line being typed."""
        before = document.current_line_before_cursor
        word = re.split(r"[ \t[|#]", before)[-1]
        with contextlib.suppress(Exception):
            for text in self._complete(before, word):
                yield Completion(text, start_position=-len(word))


class _Kept(History):
    """What was typed, a line each in a file that only its owner can read; written at once, for a window is closed."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        with contextlib.suppress(OSError):
            files.make_folder(file.parent)
            os.close(files.open_private(file, os.O_RDWR | os.O_CREAT))

    def load_history_strings(self) -> list[str]:
        """All lines of the file, the newest first."""
        try:
            return self._file.read_text("utf-8", "replace").splitlines()[::-1]
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Adds a line; several pasted ones are one here, and never a command."""
        flat = " ".join(string.split("\n"))
        flat = f" {flat}" if flat != string and flat.startswith("/") else flat
        with contextlib.suppress(OSError):
            with self._file.open("a", encoding="utf-8", errors="replace") as file:
                file.write(f"{flat}\n")
            kept = self.load_history_strings()
            if len(kept) > MOST_KEPT:
                self._file.write_text("".join(f"{text}\n" for text in kept[:MOST_KEPT][::-1]), "utf-8")
