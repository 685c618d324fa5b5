"""What a person at the terminal is asked, and how a change is shown to them first."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping

import click

from tarsd.cli.terminal import Terminal, clean


def somebody() -> bool:
    """Whether anybody sits there who could answer."""
    return sys.stdin.isatty()


def forget_typed() -> None:
    """Drops what was typed before the question could be read; it is no answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def answer(prompt: str) -> str:
    """A line that is typed, without blanks around it. Raises EOFError.

    Not input(): what is typed here is no message, and must not get into the history of messages.
    """
    sys.stdout.flush()
    click.echo(prompt, nl=False, err=True)
    raw = sys.stdin.buffer.readline()
    if not raw:
        click.echo(err=True)
        raise EOFError
    return raw.decode("utf-8", "replace").strip()


def choose(question: str, choices: Mapping[str, str], default: str) -> str:
    """One of the letters in `choices` (letter -> what it means); the default for an empty line or none at all."""
    marks = "/".join(letter.upper() if letter == default else letter for letter in choices)
    while True:
        try:
            given = answer(f"{question} [{marks}] ").casefold()
        except EOFError:
            return default
        if not given:
            return default
        for letter, meaning in choices.items():
            if given == letter or (len(given) > 1 and meaning.startswith(given)):
                return letter
        click.echo("  " + ", ".join(f"{letter} = {meaning}" for letter, meaning in choices.items()), err=True)


def confirm(question: str) -> bool:
    """Yes or no; no, unless yes is said."""
    return choose(question, {"y": "yes", "n": "no"}, "n") == "y"


def coloured(diff: object, out: Terminal) -> list[str]:
    """The lines of a unified diff."""
    shown = []
    for text in clean(diff).splitlines():
        if text.startswith(("--- ", "+++ ")):
            shown.append(out.bold(text))
        elif text.startswith("@@"):
            shown.append(out.cyan(text))
        else:
            shown.append(out.green(text) if text.startswith("+") else out.red(text) if text.startswith("-") else text)
    return shown
