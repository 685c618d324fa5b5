"""The commands that answer from the vault as data: notes, the list of tasks, base, digest."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tarsd.cli import completion
from tarsd.cli.common import Command, Function, json_option, note_path, print_json, vault_option, vault_root, words
from tarsd.cli.table import Cell, table
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING

Json = Mapping[str, Any]

_OWNER = re.compile(r"^(?:note|formula)\.")

WHERE_HELP = """\b
Conditions are those of Obsidian's Bases:
  rating > 3 && status != "done"     file.hasTag("book")     file.inFolder("Work")
  file.day >= date("2026-03-01")     file.mtime > now() - "1 week"
  authors.contains(link("Ada"))      file.hasLink("Harbour")"""

_limit = click.option("--limit", "-n", type=click.IntRange(0), default=0, help="The most rows to show; 0 for all.")
_csv = click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")


def _reply(function: Function) -> Function:
    """How all of them print."""
    for option in (json_option, _csv, vault_option):
        function = option(function)
    return function


@click.command(cls=Command, epilog=WHERE_HELP)
@click.option("--where", "-w", default="", metavar="EXPR", help="Only notes for which this is true.")
@click.option("--columns", "-c", default="", metavar="EXPR,…", help="Properties or expressions to show.")
@click.option("--sort", "-s", multiple=True, metavar="[-]EXPR", help="What to sort by; with - the largest first.")
@click.option("--group", "-g", default="", metavar="EXPR", help="What to group by.")
@click.option("--sum", "sums", multiple=True, metavar="EXPR", help="What to add up.")
@click.option("--average", "averages", multiple=True, metavar="EXPR", help="What to average.")
@_limit
@_reply
def notes(
    where: str, columns: str, sort: tuple[str, ...], group: str, sums: tuple[str, ...], averages: tuple[str, ...],
    limit: int, as_csv: bool, vault: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """List notes by their properties, tags, links and dates, as a table."""
    shown = split_expressions(columns)
    asked: dict[str, Any] = {"where": where, "columns": shown, "sort": list(sort), "group": group, "limit": limit}
    asked["summaries"] = {**dict.fromkeys(averages, "average"), **dict.fromkeys(sums, "sum")}
    client = Client.find(vault)
    reply = client.post("/v1/query", asked)
    _print(client, reply, "No matching notes.", as_json=as_json, as_csv=as_csv)


@click.command("list", cls=Command)
@click.argument("saying", metavar="WORDS", nargs=-1)
@click.option("--open", "state", flag_value="open", default=True, help="Open tasks (the default).")
@click.option("--done", "state", flag_value="done", help="Done tasks.")
@click.option("--overdue", "state", flag_value="overdue", help="Open tasks due before today.")
@click.option("--cancelled", "state", flag_value="cancelled", help="Cancelled tasks.")
@click.option("--all", "state", flag_value="all", help="All tasks.")
@click.option("--due", default="", metavar="DAY", help="today, week, a date, before:DATE or after:DATE.")
@click.option("--in", "folder", default="", metavar="FOLDER", help="Only in this folder and below.")
@click.option("--tag", default="", metavar="TAG", help="Only with this tag, on the task or its note.")
@_limit
@_reply
def list_tasks(
    saying: tuple[str, ...], state: str, due: str, folder: str, tag: str,
    limit: int, as_csv: bool, vault: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """List tasks, earliest due first; with WORDS, only tasks with all of these words."""
    client = Client.find(vault)
    asked = {"state": state, "due": due, "folder": folder, "tag": tag, "words": words(saying), "limit": limit}
    _print(client, client.post("/v1/tasks", asked), "No matching tasks.", as_json=as_json, as_csv=as_csv)


@click.command(cls=Command)
@click.argument("file", metavar="FILE.base", shell_complete=completion.notes)
@click.option("--view", default="", metavar="NAME", help="The view to show, if not the first.")
@click.option("--this", default="", metavar="NOTE", help="The note that `this` means.")
@_reply
def base(file: str, view: str, this: str, as_csv: bool, vault: Path | None, as_json: bool) -> None:
    """Show a view of a base: of FILE.base, or of a note with ```base blocks or an embedded base."""
    client = Client.find(vault)
    asked = {"base": note_path(client, file), "view": view, "this": note_path(client, this) if this else ""}
    reply = client.post("/v1/query", asked)
    _print(client, reply, "The view shows no file.", as_json=as_json, as_csv=as_csv)


@click.command(cls=Command)
@click.option("--limit", "-n", type=click.IntRange(0), default=20, help="The most rows of each part; 0 for all.")
@json_option
@vault_option
def digest(limit: int, vault: Path | None, as_json: bool) -> None:
    """Show what changed, is due, overdue or was done since yesterday, and notes of this day in other years."""
    client = Client.find(vault)
    reply = client.post("/v1/digest", {"limit": limit})
    parts = reply.get("parts") or []
    if as_json:
        print_json(reply)
    else:
        out, root = Terminal(sys.stdout), vault_root(client)
        for part in parts:
            title = out.bold(line(part.get("title", "")))
            click.echo("\n".join([title, *show(part, root, out), ""]) if part.get("rows") else f"{title}: none\n")
    if not any(part.get("total") for part in parts):
        click.get_current_context().exit(EXIT_NOTHING)


def split_expressions(text: str) -> list[str]:
    """Expressions with commas between them; commas in quotes and brackets part nothing."""
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _print(client: Client, reply: Json, nothing: str, *, as_json: bool, as_csv: bool) -> None:
    """Prints a reply; ends with 1 where it has no rows."""
    rows = reply.get("rows") or []
    if as_json:
        print_json(reply)
    elif as_csv:
        _print_csv(reply)
    else:
        out = Terminal(sys.stdout)
        for text in show(reply, vault_root(client), out) if rows else [nothing]:
            click.echo(text)
    if not as_json:
        for problem in reply.get("problems") or []:
            click.echo(Terminal(sys.stderr).yellow(clean(problem)), err=True)
    if not rows and not reply.get("total"):
        click.get_current_context().exit(EXIT_NOTHING)


def show(reply: Json, root: Path | None, out: Terminal) -> list[str]:
    """The lines to print for a reply with rows: a table for each group, sums, and how many there are."""
    rows = list(reply.get("rows") or [])
    columns = [column for column in reply.get("columns") or [] if not _is_said(column, rows)]
    titles = [*_fixed(rows), *(clean(column.get("title", "")) for column in columns)]
    names = [str(column.get("name")) for column in columns]
    shown: list[str] = []
    titled = {str(column.get("name")): str(column.get("title")) for column in reply.get("columns") or []}
    groups = list(reply.get("groups") or [])
    parts = [[rows[at] for at in group.get("rows") or []] for group in groups] if groups else [rows]
    for number, part in enumerate(parts):
        if groups:
            shown += ([""] if shown else []) + [_heading(groups[number], titled, out)]
        if part:
            shown += table(titles, [[*_place(row, root, out), *_values(row, names)] for row in part], out)
    sums = _sums(reply.get("summaries") or {}, titled)
    total = int(reply.get("total") or 0)
    kind = "task" if rows and "status" in rows[0] else "row"
    kind += "" if total == 1 else "s"
    count = f"{len(rows):,} of {total:,} {kind}" if len(rows) < total else f"{total:,} {kind}"
    return [*shown, "", *sums, out.dim(count)]


def _values(row: Json, names: Sequence[str]) -> list[Cell]:
    texts = row.get("texts") or {}
    return [Cell(text(texts.get(name) or row["values"].get(name))) for name in names]


def _is_said(column: Json, rows: Sequence[Json]) -> bool:
    """Whether a column says no more than the place of its row does, or of tasks nothing at all."""
    name = column.get("name")
    if name in ("file.name", "file.path", "file.basename", "file.file"):
        return True
    return all("status" in row and row["values"].get(name) is None for row in rows)


def _fixed(rows: Sequence[Json]) -> list[str]:
    return ["task" if "status" in rows[0] else "item", "where"] if rows and "text" in rows[0] else ["note"]


def _place(row: Json, root: Path | None, out: Terminal) -> list[Cell]:
    """The first cells of a row: what a task or item says, and where it stands, to be clicked."""
    path = str(row.get("path", ""))
    full = root / path if root else None
    shown = _shown(path, full, out)
    where = line(f"{shown}:{row['line']}" if "line" in row else shown)

    def painted(text: str) -> str:
        return out.link(out.cyan(text), full) if full else out.cyan(text)

    if "text" not in row:
        return [Cell(where, painted)]
    box = f"[{row['status']}] " if "status" in row else ""
    return [Cell(line(f"{box}{row['text']}")), Cell(where, painted)]


def _shown(path: str, full: Path | None, out: Terminal) -> str:
    """A path as a terminal or an editor opens it: relative below this folder, whole where it cannot be a link."""
    if full is None:
        return path
    try:
        if full.is_relative_to(Path.cwd()):
            return os.path.relpath(full)
    except FileNotFoundError:  # the folder was removed under the shell
        pass
    return path if out.links else str(full)


def _heading(group: Json, titled: Mapping[str, str], out: Terminal) -> str:
    sums = "; ".join(_sums(group.get("summaries") or {}, titled))
    key = text(group.get("text") or group.get("key")) or "(nothing)"
    return f"{out.bold(line(key))}  {group.get('count', 0):,}{'  ' + sums if sums else ''}"


def _sums(summaries: Mapping[str, Json], titled: Mapping[str, str]) -> list[str]:
    lines = []
    for name, found in summaries.items():
        skipped = f", {found['skipped']:,} left out" if found.get("skipped") else ""
        values = f"{found.get('of', 0):,} value{'' if found.get('of') == 1 else 's'}"
        rests = f" (of {values}{skipped})" if found.get("of") or skipped else ""
        named = titled.get(name) or _OWNER.sub("", name)
        kind, value = str(found.get("fn", "")).lower(), line(found.get("text") or text(found.get("value"))) or "nothing"
        lines.append(f"{kind} of {line(named)}: {value}{rests}")
    return lines


def text(value: Any) -> str:
    """A value of a reply as a person reads it: links without brackets, lists with commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{round(value, 4):.15g}"
    if isinstance(value, list):
        return ", ".join(map(text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {text(item)}" for name, item in value.items())
    said = str(value)
    if said.startswith("[[") and said.endswith("]]"):
        target, _, shown = said[2:-2].partition("|")
        said = shown or target.rpartition("/")[2].removesuffix(".md")
    return line(said)


def _print_csv(reply: Json) -> None:
    rows, columns = reply.get("rows") or [], reply.get("columns") or []
    fixed = [name for name in ("path", "line", "status", "text") if rows and name in rows[0]] or ["path"]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*fixed, *(column.get("title", "") for column in columns)])
    for row in rows:
        values = [row["values"].get(column.get("name")) for column in columns]
        writer.writerow([*(row[name] for name in fixed), *map(text, values)])
