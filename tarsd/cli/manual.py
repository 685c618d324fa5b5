"""The command that shows the manual: its pages are in the package, and their names are the topics."""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import tarsd
from tarsd.cli.common import Command
from tarsd.cli.terminal import Terminal, line
from tarsd.errors import NotFound

PAGES = Path(tarsd.__file__).parent / "data" / "manual"
PAGE_LINK = re.compile(r"\[([^\]\n]+)\]\(([\w-]+)\.md(?:#[\w-]+)?\)")
"""A link from page to page, as a page is read without this command."""

CLOSE = 0.75
"""How like a topic a word must be spelled, from 0 to 1, to be taken for it: "setings", but not "mac" for "mcp"."""

CLOSING = "tarsd help TOPIC shows a page, tarsd COMMAND --help the options of a command."


def pages() -> dict[str, str]:
    """Every topic and its page, as Markdown: a title, a sentence of what it is about, and the rest."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.md"))}


def _completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(topic, help=_about(page)) for topic, page in pages().items() if topic.startswith(incomplete)]


@click.command(cls=Command)
@click.argument("topic", default="", shell_complete=_completed)
def help(topic: str) -> None:
    """Show the manual page on TOPIC; without TOPIC, list them all."""
    known = pages()
    if not topic:
        click.echo(_listed(known))
    elif page := known.get(topic.casefold()):
        _show(PAGE_LINK.sub(_as_command, page), Terminal(sys.stdout))
    else:
        raise NotFound(f"The manual has no page “{line(topic)}”.", f"{_suggestion(topic, known)}\n{_listed(known)}")


def _about(page: str) -> str:
    """The sentence that a page begins with."""
    return page.split("\n\n", 2)[1].strip()


def _listed(known: dict[str, str]) -> str:
    widest = max(map(len, known))
    return "\n".join([*(f"  {topic:{widest}}  {_about(page)}" for topic, page in known.items()), "", CLOSING])


def _suggestion(topic: str, known: dict[str, str]) -> str:
    """The topic that is spelled like this one, or else the one whose page has the word most often; "" without any."""
    wanted = topic.casefold()
    spelled = difflib.get_close_matches(wanted, known, n=1, cutoff=CLOSE)
    best = spelled[0] if spelled else max(known, key=lambda topic: known[topic].casefold().count(wanted))
    return f"Did you mean tarsd help {best}?\n" if spelled or wanted in known[best].casefold() else ""


def _as_command(link: re.Match[str]) -> str:
    """A link to another page, as it is followed in a shell."""
    text, topic = link.groups()
    command = f"`tarsd help {topic}`"
    return command if text == topic else f"{text} ({command})"


def _show(page: str, out: Terminal) -> None:
    """A page as the terminal can draw it; through a pipe as it is written, with each row and paragraph on one line."""
    if not out.live:
        click.echo(page, nl=False)
        return
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown, TableElement
    from rich.table import Table
    from rich.theme import Theme

    class WholeWords(TableElement):
        """A table that breaks words too long for their column, where rich would leave out their end."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for drawn in super().__rich_console__(console, options):
                if isinstance(drawn, Table):
                    for column in drawn.columns:
                        column.overflow = "fold"
                yield drawn

    class ManualPage(Markdown):
        elements = Markdown.elements | {"table_open": WholeWords}

    console = Console(file=sys.stdout, width=out.width, theme=Theme({"markdown.code": "cyan"}), highlight=False)
    console.print(ManualPage(page, code_theme="ansi_dark", hyperlinks=out.links))
