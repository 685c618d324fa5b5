"""What a person at the terminal is asked, and how a change is shown to them first."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping

import click

from tarsd.cli.terminal import Terminal, clean, fit
from tarsd.cli.wrapping import wrapped

PASTE, PASTED = b"\x1b[200~", b"\x1b[201~"
"""What a terminal sends around pasted text once it is asked to."""
MARKS = re.compile(r"\x1b\[20[01]~")


def somebody() -> bool:
    """Whether anybody sits there who could answer."""
    return sys.stdin.isatty()


def forget_typed() -> None:
    """Drops what was typed before the question was shown, so that it is not taken for the answer."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def answer(prompt: str) -> str:
    """A line that is typed, without blanks around it; pasted lines are one. Raises EOFError.

    Not input(): what is typed here is no message, and must not get into the history of messages.
    """
    sys.stdout.flush()
    click.echo(prompt, nl=False, err=True)
    raw = sys.stdin.buffer.readline()
    if not raw:
        click.echo(err=True)
        raise EOFError
    while raw.count(PASTE) > raw.count(PASTED) and (more := sys.stdin.buffer.readline()):
        raw += more
    return " ".join(MARKS.sub("", raw.decode("utf-8", "replace")).split())


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


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """A line that stands there as long as something takes; only a terminal gets it."""
    err = Terminal(sys.stderr)
    if not err.links:  # a dumb one cannot take a line back
        if err.live:
            click.echo(text, err=True)
        yield
        return
    click.echo(err.dim(fit(text, err.width - 1)), nl=False, err=True)
    try:
        yield
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


def coloured(diff: object, out: Terminal, indent: int = 0) -> list[str]:
    """The lines of a unified diff in colours, broken for a place that is indented by `indent` columns."""
    shown = []
    for text in clean(diff).splitlines():
        text = wrapped(text, out, 2, width=out.width - indent).replace("\n", "\n" + " " * indent)
        if text.startswith(("--- ", "+++ ")):
            shown.append(out.bold(text))
        elif text.startswith("@@"):
            shown.append(out.cyan(text))
        else:
            shown.append(out.green(text) if text.startswith("+") else out.red(text) if text.startswith("-") else text)
    return shown
