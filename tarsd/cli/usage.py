"""The command about what models used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tarsd.cli.common import Command, json_option, print_json, sentence, vault_option
from tarsd.cli.table import Cell, table
from tarsd.cli.terminal import Terminal, line
from tarsd.client import Client

TABLES = {"models": "model", "days": "day", "months": "month"}
"""The lists of the reply, and what each is by."""


@click.command(cls=Command)
@click.option("--month", default="", metavar="YYYY-MM", help="Another month than this one.")
@click.option("--by", type=click.Choice(list(TABLES.values())), help="Only this table.")
@vault_option
@json_option
def usage(month: str, by: str | None, vault: Path | None, as_json: bool) -> None:
    """Show the tokens that models used, and what they cost."""
    reply = Client.find(vault).get(f"/v1/usage?month={month}")
    if as_json:
        print_json(reply)
        return
    out, currency = Terminal(sys.stdout), line(reply.get("currency") or "")
    total = reply.get("total") or {}
    for name, title in TABLES.items():
        if by not in (None, title):
            continue
        rows = [_row(line(one.get(title, "")), one, currency) for one in reply.get(name) or []]
        if title == "model" and len(rows) > 1:
            rows.append(_row(line(reply.get("month", "")), total, currency))
        if rows:
            shown = table([title.capitalize(), "input", "output", "requests", f"cost {currency}".strip()], rows, out)
            click.echo("\n".join([*shown, ""] if by is None else shown))
    if not total.get("requests") and by is None:
        click.echo(f"No model was asked in {line(reply.get('month', ''))}.", err=True)
    if reply.get("line"):
        click.echo(sentence(line(reply["line"])))


def _row(name: str, one: Mapping[str, Any], currency: str) -> list[Cell]:
    about = "~" if one.get("estimated") else ""
    counts = [f"{about}{int(one.get(key) or 0):,}" for key in ("input_tokens", "output_tokens")]
    cost = one.get("cost")
    shown = f"{about}{cost:,.4f}" if isinstance(cost, int | float) else ""
    return [Cell(name), *map(Cell, counts), Cell(f"{int(one.get('requests') or 0):,}"), Cell(shown)]
