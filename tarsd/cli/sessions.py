"""The commands about conversations: which there are, what was said, other titles, and an end to their logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from tarsd.cli.asking import confirm, somebody
from tarsd.cli.common import Group, json_option, print_json, vault_option, words
from tarsd.cli.terminal import Terminal, clean, columns, fit, line
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, ClientError, Refused

MOST_HITS = 20
Found = list[Mapping[str, Any]]


@click.group(cls=Group, default="list")
def sessions() -> None:
    """List, show, rename or delete conversations.

    Without a command, they are listed. Go on with one: tarsd chat --conversation ID.
    """


@sessions.command("list")
@click.option("--search", "query", help="Only those whose title or text has these words.")
@vault_option
@json_option
def list_(query: str | None, vault: Path | None, as_json: bool) -> None:
    """List the conversations, the latest first."""
    client = Client.find(vault)
    found = search(client, words((query,))) if query and query.strip() else listed(client)
    if as_json:
        print_json({"conversations": found})
    else:
        for text in rows(found, Terminal(sys.stdout)):
            click.echo(text)
        if not found:
            click.echo(f"No conversation has {clean(query)!r}." if query else "There is no conversation yet.")
    if not found:
        click.get_current_context().exit(EXIT_NOTHING)


@sessions.command()
@click.argument("id")
@vault_option
@json_option
def show(id: str, vault: Path | None, as_json: bool) -> None:
    """Print the conversation ID with all that was said."""
    found = conversation_of(Client.find(vault), words((id,)))
    if as_json:
        print_json(found)
        return
    out = Terminal(sys.stdout)
    click.echo(out.bold(line(found.get("title", ""))))
    if found.get("note"):
        click.echo(out.dim(line(found["note"])))
    for turn in found.get("turns") or []:
        about = [_moment(turn.get("at")), line(turn.get("model") or ""), line(turn.get("state") or "")]
        click.echo(f"\n{out.bold('› ' + clean(turn.get('message', '')))}")
        click.echo(out.dim(" · ".join(one for one in about if one and one != "done")))
        click.echo(clean(turn.get("text", "")))
        for source in turn.get("citations") or []:
            click.echo(out.dim(f"  [{source.get('n')}] {line(source.get('path', ''))}"))


@sessions.command()
@click.argument("id")
@click.argument("title", nargs=-1, required=True)
@vault_option
@json_option
def rename(id: str, title: tuple[str, ...], vault: Path | None, as_json: bool) -> None:
    """Give the conversation ID another TITLE."""
    reply = Client.find(vault).request("PATCH", _route(words((id,))), {"title": words(title)})
    if as_json:
        print_json(reply)
    else:
        click.echo(f"It is called {line(reply.get('title', ''))!r} now.")


@sessions.command()
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@vault_option
@json_option
def delete(id: str, yes: bool, vault: Path | None, as_json: bool) -> None:
    """Remove the log of the conversation ID. A note that was made of it stays in the vault."""
    client, id = Client.find(vault), words((id,))
    if not yes:
        if as_json or not somebody():
            raise Refused("It is not deleted without a yes.", "Say --yes.")
        found = conversation_of(client, id)
        if not confirm(f"Delete {line(found.get('title', ''))!r}, {len(found.get('turns') or [])} turns?"):
            click.echo("Nothing was deleted.")
            return
    reply = client.request("DELETE", _route(id))
    if as_json:
        print_json(reply)
    else:
        click.echo("Deleted.")


def listed(client: Client) -> Found:
    """All conversations, the latest first."""
    return list(client.get("/v1/conversations").get("conversations") or [])


def conversation_of(client: Client, id: str) -> dict[str, Any]:
    """A conversation with its turns. Raises ClientError with code not_found."""
    return client.get(_route(id))


def close(client: Client, id: str) -> str:
    """Tells the daemon that a conversation is over for now; the path of its note, "" without one."""
    try:
        client.post(f"{_route(id)}/close")
        return str(conversation_of(client, id).get("note") or "")
    except ClientError:  # it is gone, or the daemon is; there is nothing to say about that now
        return ""


def search(client: Client, query: str) -> Found:
    """The conversations whose title has all the words, then those whose note is found for them."""
    every = listed(client)
    wanted = query.casefold().split()
    found = {
        str(one.get("id")): one for one in every if all(word in str(one.get("title", "")).casefold() for word in wanted)
    }
    by_id = {str(one.get("id")): one for one in every}
    body = {"query": query, "mode": "fts", "limit": MOST_HITS, "filters": {"tars": "session"}}
    for path in dict.fromkeys(str(hit.get("path")) for hit in client.post("/v1/search", body).get("hits") or []):
        try:
            note = client.get(f"/v1/notes/{quote(path, safe='/')}")
        except ClientError:  # gone since it was indexed
            continue
        id = str((note.get("properties") or {}).get("id"))
        if id in by_id:
            found.setdefault(id, by_id[id])
    return list(found.values())


def rows(found: Sequence[Mapping[str, Any]], out: Terminal) -> list[str]:
    """One line for each conversation: its id, when it was touched last, how long it is, its title."""
    width = max((columns(line(one.get("id", ""))) for one in found), default=0)
    shown = []
    for one in found:
        id, turns = line(one.get("id", "")), int(one.get("turns") or 0)
        head = f"{id}{' ' * (width - columns(id))}  {_moment(one.get('updated'))}  {turns:>3}  "
        title = line(one.get("title", ""))
        shown.append(out.dim(head) + (fit(title, max(20, out.width - columns(head))) if out.live else title))
    return shown


def _route(id: str) -> str:
    return f"/v1/conversations/{quote(id, safe='')}"


def _moment(seconds: object) -> str:
    if not isinstance(seconds, int | float):
        return ""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
