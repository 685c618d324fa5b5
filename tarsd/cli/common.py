"""What the commands share: their options, finding the daemon, and how an error reaches a person or a program."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click

from tarsd.cli.terminal import ESCAPED, Terminal, clean
from tarsd.cli.wrapping import wrapped
from tarsd.client import Client
from tarsd.errors import ClientError, ConfigError, TarsdError

Function = TypeVar("Function", bound=Callable[..., Any])


ROUTE = re.compile(r"GET /v1/(conversations|models|memory|notes|status)(?: lists them)?")
COMMAND_OF = {"conversations": "tarsd sessions lists them", "notes": "tarsd search finds them"}
"""What a person does instead of asking a route."""


BULLET = re.compile(r"-+\s")
DASHED = re.compile(r"-+[^\W\d_].+|-+[^\W\d_]")
"""A word that click takes for options: `-coffee` for -c -o -f …"""


class OutputClosed(Exception):
    """Whoever read our output has seen enough; not a BrokenPipeError, for click makes an exit code of 1 of that."""


class Command(click.Command):
    """A command whose errors are shown as a sentence and a hint, or as JSON where JSON was asked for."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """As click does it; where words that begin with a minus are taken for options, `--` is hinted at."""
        args = [f" {one}" if BULLET.match(one) else one for one in args]  # a list's entry is no option
        given = list(args)  # click empties it
        try:
            return super().parse_args(context, args)
        except click.UsageError as error:
            known = {name for one in self.params for name in one.opts} | set(context.help_option_names)
            typed = list(itertools.takewhile(lambda one: one != "--", given))
            words_follow = any(isinstance(one, click.Argument) and one.nargs == -1 for one in self.params)
            if not words_follow or not any(DASHED.fullmatch(one) and one not in known for one in typed):
                raise
            example = shlex.join([*context.command_path.split(), "--", *given])
            if any(one.partition("=")[0] in known for one in typed):
                example = f"{context.command_path} OPTIONS -- WORDS"
            hint = f"For words that begin with a minus, put -- before the words: {example}"
            raise click.UsageError(f"{error.format_message()}\n{hint}", context) from error

    def invoke(self, context: click.Context) -> Any:
        """Runs it; a TarsdError ends it with that error's exit code."""
        try:
            return super().invoke(context)
        except TarsdError as error:
            fail(error, as_json=bool(context.params.get("as_json")))
            context.exit(error.exit_code)
        except BrokenPipeError as error:
            raise OutputClosed from error


class Group(click.Group):
    """A group of such commands, listed in the order in which they were added; `default` is the one without a name."""

    command_class = Command
    group_class = type

    def __init__(self, *arguments: Any, default: str = "", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.default = default

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """As click does it; options without a command's name are the default command's."""
        options = bool(args) and args[0].startswith("-") and args[0] not in context.help_option_names
        bare = options or not (args or context.resilient_parsing)  # Tab after a group's name is for its commands
        return super().parse_args(context, [self.default, *args] if self.default and bare else args)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it; a name that is spelled almost as a command is answered with that one."""
        name = args[0]
        if not (name.startswith("-") or context.resilient_parsing) and self.get_command(context, name) is None:
            close = get_close_matches(name, self.list_commands(context), n=1)
            raise click.UsageError(
                f"No such command {name!r}.{f' Did you mean {close[0]!r}?' if close else ''}", context
            )
        return super().resolve_command(context, args)

    def list_commands(self, context: click.Context) -> list[str]:
        """Their names, as they were added."""
        return list(self.commands)


def fail(error: TarsdError, *, as_json: bool = False) -> None:
    """Shows an error: one line of JSON on stdout, or sentences on stderr."""
    if as_json:
        problems = {"problems": list(error.problems)} if isinstance(error, ConfigError) else {}
        print_json({"error": {**error.as_json(), **problems}})
        return
    out = Terminal(sys.stderr)
    if isinstance(error, ConfigError):
        count = len(error.problems)
        click.echo(out.red(f"The configuration has {'an error' if count == 1 else f'{count} errors'}:"), err=True)
        for problem in error.problems:
            click.echo(wrapped(f"  {clean(problem)}", out), err=True)
    else:
        click.echo(out.red(wrapped(sentence(error.message), out)), err=True)
    if error.hint:
        hint = hinted(error.hint)
        click.echo(hint if "tarsd " in hint else wrapped(hint, out), err=True)  # a command is copied whole


def sentence(text: object) -> str:
    """A text as a sentence: with a full stop, if nothing else ends it."""
    said = clean(text).rstrip()
    if "\n" in said:  # its last line is something shown
        return said
    return f"{said}." if said and (said[-1].isalnum() or said[-1] in "”’\"'`)]") else said


def hinted(hint: object) -> str:
    """A hint in terms of commands, where the daemon gave it in terms of routes."""
    return ROUTE.sub(lambda match: COMMAND_OF.get(match[1], f"tarsd {match[1]}"), clean(hint))


class Folder(click.Path):
    """A folder's path. An empty one, as an unset variable leaves it, must not mean the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """As click does it."""
        if value == "":
            self.fail("The path is empty. Give the folder of your notes.", parameter, context)
        return super().convert(value, parameter, context)


vault_option = click.option(
    "--vault", type=Folder(), help="The vault, if not the configured one or the only one running."
)
"""`--vault PATH`: whose daemon is meant."""

own_vault_option = click.option("--vault", type=Folder(), help="The vault, if not the configured one.")
"""The same for commands that need no daemon."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
"""`--json`: the daemon's reply, unchanged."""


def print_json(reply: object) -> None:
    """JSON as it came, readable where a person looks at it, and without what could command the terminal."""
    indent = 2 if sys.stdout.isatty() else None
    text = json.dumps(reply, ensure_ascii=False, indent=indent)
    sys.stdout.write(text.encode("utf-8", "replace").decode().translate(ESCAPED) + "\n")


def tell(reply: object, lines: Iterable[str], *, as_json: bool) -> None:
    """The reply for programs, or lines of text for people."""
    if as_json:
        print_json(reply)
        return
    for text in lines:
        click.echo(text)


def words(arguments: tuple[str, ...]) -> str:
    """Arguments as one text; bytes that are no UTF-8 become U+FFFD."""
    return " ".join(arguments).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("„", "“"), ("«", "»"), ("`", "`"))


def note_path(client: Client, name: str) -> str:
    """A note's name for the daemon, without the marks of a quotation; a path of this machine becomes one in the vault.

    The daemon knows paths, names, aliases and whole `[[links]]`.
    """
    name = words((name,)).strip()
    for first, last in QUOTES:
        if len(name) > 1 and name[0] == first and name[-1] == last:
            name = name[1:-1].strip()
    given = os.path.expanduser(name)  # these of os.path take names that no file can have
    if not os.path.isabs(given) and not os.path.exists(given):
        return name
    root = vault_root(client)
    real = Path(os.path.realpath(given))
    return real.relative_to(root).as_posix() if root and real.is_relative_to(root) else name


def vault_root(client: Client) -> Path | None:
    """The folder of the daemon's vault."""
    path = client.get("/v1/hello").get("vault", {}).get("path")
    return Path(path) if isinstance(path, str) and path else None


def known_vault() -> Path:
    """The configured vault, or else that of the running daemon. Raises ConfigError where neither names one."""
    from tarsd.config import load

    try:
        return load().vault
    except ConfigError:
        with contextlib.suppress(ClientError):
            if root := vault_root(Client.find()):
                return root
        raise
