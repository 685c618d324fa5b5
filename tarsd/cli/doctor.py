"""The command `doctor`: every check with its remedy, as they come; and a report for others."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tarsd import files
from tarsd.cli.common import Command, json_option, print_json, sentence, vault_option
from tarsd.cli.terminal import Terminal, clean
from tarsd.cli.wrapping import wrapped
from tarsd.errors import EXIT_REFUSED, BadRequest, Refused

if TYPE_CHECKING:
    from tarsd.doctor import Check, Finding
    from tarsd.doctor.finding import State

WRONG: tuple[State, ...] = ("fault", "warning")
NAME = 12
INDENT = NAME + 5
COMMAND = re.compile(r"(?:tarsd|chmod|sudo|kill|uv|pipx|ollama|/\S+) ")
"""A hint that is a command is not broken into lines, so that it can be copied."""


@click.command(cls=Command)
@click.option("--all", "every", is_flag=True, help="Also show what is fine, and import every package.")
@click.option("--no-model", is_flag=True, help="Do not ask the models' servers.")
@click.option(
    "--report",
    "target",
    metavar="FILE",
    help="Write a report to share, without private data, to FILE or to - (standard output).",
)
@vault_option
@json_option
def doctor(every: bool, no_model: bool, target: str | None, vault: Path | None, as_json: bool) -> None:
    """Check everything that may be wrong, and say what to do. Repairs nothing; takes a minute at most.

    Exits with 4 if there is a fault. The report names no note, vault, user or machine; read it all the same
    before you share it.
    """
    from tarsd.doctor import DoctorContext, examine
    from tarsd.doctor.report import report

    if target == "-" and as_json:
        raise BadRequest("--json and --report - both want the output.", "Give a file for the report.", field="report")
    if target not in (None, "-") and os.path.lexists(str(target)):
        raise Refused(f"{target} already exists and was not changed.", "Choose another file.")
    logging.getLogger().addHandler(logging.NullHandler())  # what the parts log is not for the terminal
    subject = DoctorContext(vault, model=not no_model, thorough=every)
    out = Terminal(sys.stdout)
    shown = _Shown(out, quiet=as_json or target == "-", every=every)
    lines = [shown.add(line) for line in examine(subject, begun=shown.begin)]
    shown.end(lines)
    if as_json:
        print_json({"ok": _ok(lines), "checks": [line.as_json() for line in lines]})
    if target == "-":
        click.echo(report(subject, lines), nl=False)
    elif target is not None:
        _write(target, report(subject, lines))
        click.echo(f"Wrote {clean(target)}. Read it before you share it.", err=as_json)
    if not _ok(lines):
        click.get_current_context().exit(EXIT_REFUSED)


def _ok(lines: Sequence[Finding]) -> bool:
    return all(line.state != "fault" for line in lines)


class _Shown:
    """The lines on the terminal, as they come, under the name of their group; on a live one also what is waited for.

    Without `every` only what is wrong has a line.
    """

    def __init__(self, out: Terminal, *, quiet: bool, every: bool) -> None:
        self._out = out
        self._quiet = quiet
        self._every = every
        self._group = ""
        self._waits = False

    def begin(self, check: Check) -> None:
        """A check is being made."""
        if not self._quiet and self._out.links:
            self._clear()
            click.echo(self._out.dim(f"  … {check.name}"), nl=False)
            self._waits = True

    def add(self, line: Finding) -> Finding:
        """Show a line."""
        if not self._quiet and (self._every or line.state in WRONG):
            self._clear()
            for text in self._rows(line):
                click.echo(text)
        return line

    def end(self, lines: Sequence[Finding]) -> None:
        """Say how many faults and warnings there were."""
        if self._quiet:
            return
        self._clear()
        counts = Counter(line.state for line in lines)
        told = [f"{counts[state]} {state}{'s' * (counts[state] != 1)}" for state in WRONG if counts[state]]
        if not self._every:
            fine = f"{counts['ok']} check{'s are' if counts['ok'] != 1 else ' is'} fine"
            rest = f", {counts['skipped']} skipped" if counts["skipped"] else ""
            gap = "\n" * any(counts[state] for state in WRONG)
            click.echo(wrapped(f"{gap}{self._out.dim(f'{fine}{rest}. To see them: tarsd doctor --all')}", self._out))
        style = self._out.red if counts["fault"] else self._out.yellow if told else self._out.green
        said = " and ".join(told) or "All is well"
        click.echo(f"{chr(10) * self._every}{style(f'{said}.')}")

    def _clear(self) -> None:
        if self._waits:
            click.echo("\r\x1b[K", nl=False)
            self._waits = False

    def _rows(self, line: Finding) -> Iterator[str]:
        out = self._out
        if line.group != self._group:
            yield "\n" * bool(self._group) + out.bold(line.group)
            self._group = line.group
        mark = {"ok": out.green("✓"), "warning": out.yellow("!"), "fault": out.red("✗"), "skipped": out.dim("–")}
        text = out.dim(clean(line.text)) if line.state == "skipped" else clean(line.text)
        took = out.dim(f" {line.ms:.0f}\u00a0ms") if self._every else ""
        yield wrapped(f"  {mark[line.state]} {line.name:<{NAME}} {text}{took}", out, INDENT)
        if line.hint:
            hint = f"{' ' * INDENT}{clean(line.hint)}"
            yield out.cyan(hint) if COMMAND.match(line.hint) else wrapped(sentence(hint), out)


def _write(target: str, text: str) -> None:
    """A new file that only its owner can read."""
    try:
        handle = files.open_private(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with open(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}.", "Choose another file.") from None
