"""The commands on tasks: they are listed, done and added."""

from __future__ import annotations

import click

from tarsd.cli import query, task_changes
from tarsd.cli.common import Group


class TaskGroup(Group):
    """The group of these commands; words that begin with no command's name are those of the list."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """As the group's, but for words to look for."""
        named = not args or args[0].startswith("-") or args[0] in self.commands
        return super().parse_args(context, args if named or context.resilient_parsing else [self.default, *args])


@click.group(cls=TaskGroup, default="list")
def tasks() -> None:
    """List, complete and add tasks (check boxes in lists). Without a command, they are listed: tarsd tasks [WORDS]."""


for command in (query.list_tasks, task_changes.done, task_changes.add):
    tasks.add_command(command)
