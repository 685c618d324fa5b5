"""Completion in the shell: the script for it, and names of notes and conversations, asked of the daemon."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import click
from click.shell_completion import CompletionItem, get_completion_class

from tarsd.cli.common import Command, Function
from tarsd.cli.terminal import line
from tarsd.client import Client
from tarsd.errors import TarsdError

PROGRAMS = ("tarsd", "tars")
VARIABLES = {name: f"_{name.upper()}_COMPLETE" for name in PROGRAMS}
PATIENCE_S = 0.3
"""Who presses Tab does not wait for longer; then there is nothing to choose from."""

MOST = 200
STRICT = {"read type value": "read -r type value", "COMPREPLY+=($value)": 'COMPREPLY+=("$value")'}
"""In click's script for bash: a name comes onto the command line letter for letter, or what is in it would be run."""

PLAIN = re.compile(r"[^\w@%+=:,./-]")
"""What bash takes for more than a letter of a word."""


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, notes and conversations in SHELL.

    In ~/.bashrc: eval "$(tarsd completion bash)". In ~/.zshrc, after compinit: eval "$(tarsd completion zsh)".
    In ~/.config/fish/config.fish: tarsd completion fish | source
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root().command
    for name in PROGRAMS:
        script = kind(root, {}, name, VARIABLES[name]).source()
        for loose, strict in STRICT.items():
            script = script.replace(loose, strict)
        click.echo(script)


def notes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Paths of notes that begin so, or have it in them; a path from the current folder on is the shell's own."""
    paths = [
        str(note.get("path") or "") for note in _asked(context, f"/v1/notes?name={quote(incomplete, safe='')}", "notes")
    ]
    begun = [path for path in paths if path.casefold().startswith(incomplete.casefold())]
    return [_item(path) for path in (begun or paths)[:MOST]]


def conversations(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of conversations that begin so, with their titles."""
    titles = [
        (str(conversation.get("id") or ""), line(conversation.get("title") or ""))
        for conversation in _asked(context, "/v1/conversations", "conversations")
    ]
    return [_item(id, title) for id, title in titles if id.startswith(incomplete)][:MOST]


conversation_option = click.option(
    "--conversation",
    "-c",
    shell_complete=conversations,
    help="Continue the conversation NAME, or start it.",
)


def notes_option(about: str) -> Callable[[Function], Function]:
    """`--note NAME`, as often as wanted."""
    return click.option("--note", "-a", "notes", multiple=True, shell_complete=notes, help=about)


def _item(value: str, help: str = "") -> CompletionItem:
    """A choice as the shell that asks takes it: bash puts it on the line as it is, the others quote by themselves."""
    if any(os.environ.get(variable, "").startswith("bash") for variable in VARIABLES.values()):
        value = PLAIN.sub(r"\\\g<0>", value)
    return CompletionItem(value, help=help or None)


def _asked(context: click.Context, route: str, field: str) -> Iterator[dict[str, object]]:
    """The rows that the daemon lists under `field`; none when no daemon answers within `PATIENCE_S`."""
    vault = context.params.get("vault")
    try:
        client = Client.find(vault if isinstance(vault, Path) else None, timeout=PATIENCE_S)
        listed = client.get(route).get(field)
    except TarsdError:
        return
    for row in listed if isinstance(listed, list) else []:
        if isinstance(row, dict) and "\n" not in f"{row.get('path')}{row.get('id')}":
            yield row
