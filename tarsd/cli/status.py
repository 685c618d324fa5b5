"""The commands that look after the index: status, reindex."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tarsd.cli.common import Command, json_option, note_path, tell, vault_option, vault_root
from tarsd.cli.models import INDENT, chat_line, tool_rows
from tarsd.cli.names import meant
from tarsd.cli.progress import progress
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.cli.wrapping import wrapped
from tarsd.client import Client, grouped
from tarsd.errors import EXIT_REFUSED

PLACES = 5
"""Places that are listed of each kind of problem unless all are asked for."""

LOOK_S = 0.2
PATIENCE_S = 60.0
STUCK = ("unavailable", "unreachable", "model_missing", "failing", "failed")
"""States of embedding that end by something outside, if ever."""


@click.command(cls=Command)
@click.option("--all", "every", is_flag=True, help="List every problem.")
@click.option("--wait", is_flag=True, help="Wait until everything is indexed and embedded, showing progress.")
@vault_option
@json_option
def status(every: bool, wait: bool, vault: Path | None, as_json: bool) -> None:
    """Show the status: freshness, counts, problems."""
    client = Client.find(vault)
    reply = client.get("/v1/status")
    if wait:
        reply = _waited(client, reply, quiet=as_json)
    out = Terminal(sys.stdout)
    shown = [*glance(reply, out), *_problems(reply.get("problems") or [], every, out)]
    tell(reply, shown, as_json=as_json)
    if wait and reply.get("behind") and not as_json:
        click.get_current_context().exit(EXIT_REFUSED)


def _waited(client: Client, reply: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """The status as soon as nothing is left to do, or nothing has moved for so long that something must be wrong."""

    def indexing() -> tuple[int, int]:
        return int((reply.get("counts") or {}).get("notes") or 0), int(reply.get("behind") or 0)

    def embedding() -> tuple[int, int]:
        about = reply.get("embedding") or {}
        left = 0 if about.get("state") in STUCK else int(about.get("remaining") or 0)
        return int(about.get("done") or 0), left

    for title, measure in (("Indexing", indexing), ("Embedding", embedding)):
        if not measure()[1]:
            continue
        with progress(title, quiet=quiet) as step:
            seen, since = measure(), time.monotonic()
            while measure()[1] and time.monotonic() - since < PATIENCE_S:
                done, left = measure()
                step(done, done + left, "")
                time.sleep(LOOK_S)
                reply = client.get("/v1/status")
                if measure() != seen:
                    seen, since = measure(), time.monotonic()
            step(seen[0], sum(seen), "")
    return reply


def glance(reply: Mapping[str, Any], out: Terminal) -> list[str]:
    """The headline and a line for each part."""
    counts, watch, process = (reply.get(name) or {} for name in ("counts", "watch", "process"))
    vault = reply.get("vault") or {}
    listed = {str(problem.get("reason") or "") for problem in reply.get("problems") or []} - {""}
    watch, embedding = (_said_once(about, listed) for about in (watch, reply.get("embedding") or {}))
    rows = [("Vault", f"{line(vault.get('path', ''))}, {_watch(watch)}")]
    rows.append(("Meaning", _embedding(embedding, out)))
    rows += [("", line(advice)) for advice in reply.get("advice") or []]
    chat = reply.get("chat") or {}
    rows += [("Chat", chat_line(chat, out)), *tool_rows(chat, out)]
    if used := line((reply.get("usage") or {}).get("line") or ""):
        rows.append(("Used", used))
    left = [f"{counts[name]:,} {word}" for name, word in LEFT_OUT if counts.get(name)]
    if left:
        rows.append(("Left out", " · ".join(left)))
    files = reply.get("files") or {}
    if files.get("read") or int(files.get("pending") or 0) > 1:
        pending = f", {files['pending']:,} to go" if files.get("pending") else ""
        rows.append(("Files", f"{files['read']:,} read, {files['chunks']:,} passages{pending}"))
        if extras := str(files.get("lacking") or "").replace(" ", ""):
            command = f"{line(shlex.quote(sys.executable))} -m pip install 'tarsd[{line(extras)}]'"
            rows.append(("", f"Office files, books, web pages or pictures need more: {command}"))
    http = reply.get("http") or {}
    if http.get("enabled"):
        where = str(http.get("url") or http.get("state") or "")
        rows.append(("Network", line(where) + (out.yellow(f" · {line(http['reason'])}") if http.get("reason") else "")))
    rows.append(("Daemon", _process(process)))
    shown = [f"  {out.dim(f'{name:<9}')} {text}".rstrip() for name, text in rows]
    return [wrapped(_headline(reply, out), out, 2), *(wrapped(text, out, INDENT) for text in shown)]


NOT_EMBEDDED = (
    ("failed", "passages could not be embedded"),
    ("held_back", "passages kept on this machine"),
    ("not_read", "passages in other scripts: word search only"),
)
LEFT_OUT = (("excluded", "excluded"), ("skipped", "skipped"), ("failed", "unreadable"))


def _headline(reply: Mapping[str, Any], out: Terminal) -> str:
    """One line: how fresh the index is, and how much is in it."""
    counts, behind = reply.get("counts") or {}, int(reply.get("behind") or 0)
    notes, chunks = int(counts.get("notes") or 0), int(counts.get("chunks") or 0)
    size = f"{notes:,} note{'s' * (notes != 1)} · {chunks:,} passage{'s' * (chunks != 1)}"
    problems = reply.get("problems") or []
    trouble = f" · {_count(problems)}" if problems else ""
    if (reply.get("watch") or {}).get("state") == "waiting" and (reply.get("watch") or {}).get("hint"):
        return f"{out.red('● Vault not available')} · {size} from the last index{trouble}"
    if behind:
        return f"{out.yellow(f'● Indexing, {behind:,} to go')} · {size}{trouble}"
    embedding = reply.get("embedding") or {}
    if _general(problems, embedding):
        return f"{out.yellow('● Needs attention')} · {size}{out.yellow(trouble)}"
    style = out.yellow if embedding.get("reason") or embedding.get("state") in STUCK else out.green
    return f"{style('● Up to date')} · {size}{out.yellow(trouble)}"


def _general(problems: Sequence[Mapping[str, Any]], embedding: Mapping[str, Any]) -> bool:
    """Whether something is wrong with the index as a whole; without a model's vectors words are found all the same."""
    reasons = [str(problem.get("reason") or "") for problem in problems if not problem.get("path")]
    return any(reason != embedding.get("reason") and not reason.startswith("Embedding failed") for reason in reasons)


def _said_once(about: Mapping[str, Any], listed: Collection[str]) -> Mapping[str, Any]:
    """A part of the status without its reason and hint, where these are among the problems below."""
    if about.get("reason") not in listed:
        return about
    return {**about, "reason": "", "hint": about.get("hint") and " ", "below": True}


def _watch(watch: Mapping[str, Any]) -> str:
    state = str(watch.get("state") or watch.get("mode") or "unknown")
    words = {
        "events": "watched",
        "polling": "checked every few seconds",
        "waiting": "waiting for it to appear",
        "stopped": "not watched",
    }
    if state == "waiting" and not watch.get("hint"):
        return "starting to watch"
    reason = f" ({line(watch['reason'])})" if watch.get("reason") else ""
    reason += " (see below)" if watch.get("below") else ""
    return f"{words.get(state, line(state))}{reason}"


def _embedding(embedding: Mapping[str, Any], out: Terminal) -> str:
    """How far the model's vectors are, which passages have none, and what prevents them."""
    text, state = line(embedding.get("model") or "none"), str(embedding.get("state") or "")
    done, remaining = int(embedding.get("done") or 0), int(embedding.get("remaining") or 0)
    if remaining:
        total = done + remaining
        text += f" {100 * done // total} % ({done:,} of {total:,} passages; words and the instant table cover the rest)"
    elif state in ("ready", "complete"):
        text += ", complete"
    elif state:
        text += f", {line(state)}"
    for name, what in NOT_EMBEDDED:
        if embedding.get(name):
            text += f" · {embedding[name]:,} {what.replace('passages', 'passage') if embedding[name] == 1 else what}"
    if embedding.get("auto"):
        text += out.dim(f" · {line(embedding['auto'])}")
    if embedding.get("below"):
        text += out.yellow(" · see below")
    elif embedding.get("reason"):
        text += out.yellow(f" · {line(embedding['reason'])} {line(embedding.get('hint') or '')}".rstrip())
    return text


def _process(process: Mapping[str, Any]) -> str:
    seconds = int(float(process.get("uptime_s") or 0))
    days, hours, minutes = seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60
    up = f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"
    memory = f", {float(process['rss_mb']):.0f} MB" if process.get("rss_mb") else ""
    return f"tarsd {line(process.get('version', '?'))}, pid {process.get('pid', '?')}, up {up}{memory}"


def _count(problems: Sequence[Mapping[str, Any]]) -> str:
    count = sum(len(places) for places in grouped(problems).values())
    return f"{count:,} problem{'s' * (count != 1)}"


def _problems(problems: Sequence[Mapping[str, Any]], every: bool, out: Terminal) -> list[str]:
    """What is wrong, what to do, and where."""
    if not problems:
        return []
    shown, told = ["", out.bold(_count(problems))], set[frozenset[str]]()
    for (reason, hint), places in grouped(problems).items():
        shown.append(f"  {line(reason)}")
        if hint:
            shown.append(f"    {out.dim(line(hint))}")
        named = frozenset(places)
        if named in told and not every:
            shown.append(f"    the same {len(places):,} as above")
            continue
        if len(places) > 1:
            told.add(named)
        most = len(places) if every else PLACES
        for path, lines in [place for place in places.items() if place[0]][:most]:
            numbers = f":{', '.join(str(number) for number in lines)}" if lines else ""
            shown.append(f"    {out.cyan(line(path) + numbers)}")
        if len(places) > most:
            shown.append(f"    … and {len(places) - most:,} more: tarsd status --all")
    return [wrapped(text, out) for text in shown]


@click.command(cls=Command)
@click.argument("paths", nargs=-1)
@click.option("--full", is_flag=True, help="Read every note and file again, also unchanged ones.")
@vault_option
@json_option
def reindex(paths: tuple[str, ...], full: bool, vault: Path | None, as_json: bool) -> None:
    """Compare the index with the vault now; only PATHs (notes, files or folders), if any are given.

    The daemon does this by itself all the time; this is for those who want to see it.
    """
    client = Client.find(vault)
    body: dict[str, Any] = {"full": full}
    if paths:
        body["paths"] = [_path(client, path) for path in paths]
    report: Mapping[str, Any] = {}
    with progress("Indexing", quiet=as_json) as step:
        for event in client.stream("/v1/reindex", body):
            if event.get("type") == "progress":
                step(int(event.get("done") or 0), int(event.get("total") or 0), line(event.get("path") or ""))
            else:
                report = event
    lines = [summary(report)]
    if any((report.get("files") or {}).get(name) for name in REPORTED):
        lines.append(f"Files: {summary(report['files'])}")
    tell(report, lines, as_json=as_json)


def _path(client: Client, given: str) -> str:
    """The path in the vault of a note or a folder; a note may be given by its name. Raises NotFound."""
    path = note_path(client, given)
    root = vault_root(client)
    return path if root is not None and os.path.lexists(root / path) else meant(client, path)


def summary(report: Mapping[str, Any]) -> str:
    """What a reindex did, in a line."""
    inner = report.get("report")
    values = inner if isinstance(inner, dict) else report
    parts = [f"{values[name]:,} {name}" for name in REPORTED if isinstance(values.get(name), int) and values[name]]
    seconds = float(values.get("seconds") or 0)
    return clean(f"{', '.join(parts) or 'Nothing to index'}{f' in {seconds:.1f} s' if seconds else ''}.")


REPORTED = ("added", "changed", "moved", "removed", "unchanged", "skipped", "failed")
