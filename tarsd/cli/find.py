"""The commands that find: search, sgrep, svec, related, why."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tarsd.cli import completion
from tarsd.cli.common import Command, Function, json_option, note_path, print_json, vault_option, words
from tarsd.cli.passages import GOOD, WEAK, notes_below, show
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, BadRequest

QUERY_HELP = """\b
Query syntax: "a phrase"   -without   tag:idea   path:Work/   file:plan
              [status:done]   before:2026-01-31   after:2025-12-01   on:2026-03
              changed:2026-03-09"""


_limit = click.option(
    "--limit", "-n", type=click.IntRange(1, 200), default=10, show_default=True, help="The most results to show."
)


class _Score(click.FloatRange):
    """A number that JSON can hold."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """As click does it, which takes nan and inf for numbers in the range."""
        number = super().convert(value, parameter, context)
        if not math.isfinite(number):
            self.fail(f"{value} is not a usable number. Write one such as 0.5.", parameter, context)
        return number


_min_score = click.option("--min-score", type=_Score(0), default=0.0, help="Leave out results with a lower score.")


_where = click.option(
    "--where", metavar="EXPR", help="Only notes for which EXPR is true (tarsd help queries), such as 'rating > 3'."
)


def _query(function: Function) -> Function:
    """What all three searches take."""
    argument = click.argument("query", nargs=-1, required=True)
    for option in (json_option, vault_option, _limit, _min_score, _where, argument):
        function = option(function)
    return function


@click.command(cls=Command, epilog=QUERY_HELP)
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "fts", "vec"]),
    default="hybrid",
    show_default=True,
    help="By word and meaning, by word only, by meaning only.",
)
@_query
def search(mode: str, **given: Any) -> None:
    """Find passages by word and by meaning."""
    _search(mode, **given)


@click.command(cls=Command, epilog=QUERY_HELP)
@_query
def sgrep(**given: Any) -> None:
    """Find passages by word only (search --mode fts)."""
    _search("fts", **given)


@click.command(cls=Command, epilog=QUERY_HELP)
@_query
def svec(**given: Any) -> None:
    """Find passages by meaning only (search --mode vec)."""
    _search("vec", **given)


def _search(
    mode: str,
    query: tuple[str, ...],
    min_score: float,
    limit: int,
    where: str | None,
    vault: Path | None,
    as_json: bool,
) -> None:
    text = words(query)
    if not text.strip():
        raise BadRequest("The query is empty.", "Give something to search for.", field="query")
    more: dict[str, Any] = {"min_score": min_score} if min_score else {}
    more |= {"where": where} if where else {}
    _exit(find(Client.find(vault), text, mode, limit, more, as_json=as_json))


def find(
    client: Client,
    query: str,
    mode: str,
    limit: int = 10,
    more: Mapping[str, Any] | None = None,
    *,
    as_json: bool = False,
) -> bool:
    """Searches and prints the results; whether there are any."""
    reply = client.post("/v1/search", {"query": query, "mode": mode, "limit": limit, **(more or {})})
    return _print(client, reply, query, f"Nothing found for {clean(query)!r}.", as_json)


def _exit(any_found: bool) -> None:
    if not any_found:
        click.get_current_context().exit(EXIT_NOTHING)


@click.command(cls=Command)
@click.argument("note", nargs=-1, required=True, shell_complete=completion.notes)
@_limit
@vault_option
@json_option
def related(note: tuple[str, ...], limit: int, vault: Path | None, as_json: bool) -> None:
    """Find notes like NOTE: a path, name, alias or [[link]]."""
    client, name = Client.find(vault), words(note)
    reply = client.post("/v1/related", {"path": note_path(client, name), "limit": limit})
    _exit(_print(client, reply, "", f"Nothing is related to {clean(name)}.", as_json))


def _print(client: Client, reply: Mapping[str, Any], query: str, nothing: str, as_json: bool) -> bool:
    """Prints the hits of a reply; whether there are any."""
    hits = reply.get("hits") or []
    if as_json:
        print_json(reply)
    else:
        out = Terminal(sys.stdout)
        if not hits:
            click.echo(nothing)
        elif all(float(hit.get("relevance") or 0) < WEAK for hit in hits):
            click.echo(out.yellow("No good match. Closest:\n"))
        elif any(float(hit.get("relevance") or 0) >= GOOD for hit in hits):
            hits = [hit for hit in hits if float(hit.get("relevance") or 0) >= WEAK]
        for text in show(hits, query, roots(client), out):
            click.echo(text)
        for text in notes_below(reply, Terminal(sys.stderr)):
            click.echo(text, err=True)
    return bool(hits)


def roots(client: Client) -> dict[str, Path]:
    """The folder of each collection by its name; the vault has the empty one."""
    hello = client.get("/v1/hello")
    folders = {"": str(hello.get("vault", {}).get("path") or "")}
    for collection in hello.get("collections") or []:
        if isinstance(collection, dict):
            folders[str(collection.get("name"))] = str(collection.get("path") or "")
    return {name: Path(path) for name, path in folders.items() if path}


@click.command(cls=Command)
@click.argument("note", shell_complete=completion.notes)
@click.argument("query", nargs=-1, required=True)
@vault_option
@json_option
def why(note: str, query: tuple[str, ...], vault: Path | None, as_json: bool) -> None:
    """Explain, step by step, why NOTE (a path, name, alias or [[link]]) is or is not found for QUERY."""
    note, query = _whole_link(note, query)
    client = Client.find(vault)
    path = note_path(client, note)
    reply = client.post("/v1/why", {"path": path, "query": words(query)})
    if as_json:
        print_json(reply)
        return
    out = Terminal(sys.stdout)
    if (where := line(reply.get("path") or path)) != line(path):
        click.echo(out.cyan(where))
    for step in reply.get("steps") or []:
        sign = out.green("✓") if step.get("ok") else out.red("✗")
        click.echo(f"{sign} {clean(step.get('detail', ''))}")
    click.echo(out.bold(clean(reply.get("verdict", ""))))


def _whole_link(note: str, query: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Note and query, where a shell has cut a `[[link]]` that stood without quotes."""
    parts = [note, *query]
    end = next((at for at, part in enumerate(parts) if part.endswith("]]")), 0) if note.startswith("[[") else 0
    if end + 1 >= len(parts):  # the link is all there is
        return note, query
    return " ".join(parts[: end + 1]), tuple(parts[end + 1 :])
