"""The commands `tarsd` and `tars`: one function each, all but `run` thin speakers of the socket.

Nothing heavy is imported at the top: a search from the shell must start instantly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from tarsd.cli.common import Group, OutputClosed

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["COMMANDS", "cli", "main", "tars"]

COMMANDS = {
    "run": "run",
    "status": "status",
    "search": "find",
    "sgrep": "find",
    "svec": "find",
    "related": "find",
    "why": "find",
    "notes": "query",
    "tasks": "tasks",
    "base": "query",
    "digest": "query",
    "ask": "talk",
    "chat": "chat",
    "sessions": "sessions",
    "memory": "memory",
    "review": "review",
    "prompts": "prompts",
    "models": "models",
    "usage": "usage",
    "model": "model",
    "doctor": "doctor",
    "key": "keys",
    "token": "token",
    "plugin": "plugin",
    "mcp": "mcp",
    "service": "service",
    "uninstall": "uninstall",
    "reindex": "status",
    "index": "index",
    "init": "config",
    "config": "config",
    "stop": "run",
    "completion": "completion",
    "help": "manual",
}
"""Every command and the module in this package that holds it; only the one that is called is imported."""


class Commands(Group):
    """The commands by name."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Their names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command, its module imported now."""
        return _command(name) if name in COMMANDS else None

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, without what each does: nothing is imported for a press of Tab."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, context, incomplete)]


def _command(name: str) -> click.Command:
    command: click.Command = getattr(import_module(f"tarsd.cli.{COMMANDS[name]}"), name)
    return command


def _version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    from tarsd.cli.version import versions

    click.echo("\n".join(versions()))
    context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print versions.")
def cli() -> None:
    """Finds what you wrote, by word or by meaning, and answers from it.

    Start with `tarsd init --vault PATH`, then `tarsd run`; or give `tarsd run --vault PATH` alone.
    `tarsd help` has the manual.

    Exit codes: 0 ok, 1 nothing found, 2 wrong usage, 3 no daemon runs, 4 refused or failed, 78 bad configuration.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """The command `tarsd`."""
    _start(cli, "tarsd", arguments)


def tars(arguments: Sequence[str] | None = None) -> None:
    """The command `tars`: the short form of `tarsd ask`, and without a question that of `tarsd chat`."""
    _start(_command("ask"), "tars", arguments)


def _start(command: click.Command, name: str, arguments: Sequence[str] | None) -> None:
    """Runs a command and ends the process with its exit code; no terminal and no closed pipe makes it fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a note may hold letters that this terminal has not
    try:
        code = command.main(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo(err=True)
        code = 130
    except (OutputClosed, BrokenPipeError):  # `tarsd search … | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
