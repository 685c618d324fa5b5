"""All commands of tarsd."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tarsd import cli


def commands(
    group: click.Group = cli.cli, name: str = "tarsd", *, groups: bool = False
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, and every group with `groups`."""
    if groups:
        yield name, group
    context = click.Context(group)
    for short in group.list_commands(context):
        command = group.get_command(context, short)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {short}", groups=groups)
        else:
            yield f"{name} {short}", command
