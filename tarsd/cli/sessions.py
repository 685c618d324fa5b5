"""The commands about conversations: which there are, what was said, other titles, and an end to their logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from tarsd.cli import completion
from tarsd.cli.asking import confirm, somebody, waiting
from tarsd.cli.common import Group, json_option, print_json, sentence, tell, vault_option, words
from tarsd.cli.terminal import Terminal, clean, columns, fit, line
from tarsd.cli.wrapping import wrapped
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, ClientError, Refused

MOST_HITS = 20
SUMMARY_S = 600.0
"""A model that summarises is waited for so long."""
LEAST_TITLE = 16
"""With fewer columns left beside it, a title gets a line of its own."""
PRIVATE = "private, stays on this machine"
Found = list[Mapping[str, Any]]


@click.group(cls=Group, default="list")
def sessions() -> None:
    """List, show, rename or delete conversations.

    Without a command, they are listed. Go on with one: tarsd chat --conversation ID.
    """


@sessions.command("list")
@click.option("--search", "query", help="Only those with these words in title or text.")
@vault_option
@json_option
def list_(query: str | None, vault: Path | None, as_json: bool) -> None:
    """List the conversations, newest first."""
    client = Client.find(vault)
    conversations = search(client, words((query,))) if query and query.strip() else listed(client)
    nothing = f"No conversation contains {clean(query)!r}." if query else "There are no conversations yet."
    shown = rows(conversations, Terminal(sys.stdout)) if conversations else [nothing]
    tell({"conversations": conversations}, shown, as_json=as_json)
    if not conversations:
        click.get_current_context().exit(EXIT_NOTHING)


@sessions.command()
@click.argument("id", shell_complete=completion.conversations)
@vault_option
@json_option
def show(id: str, vault: Path | None, as_json: bool) -> None:
    """Print the whole conversation ID."""
    conversation = conversation_of(Client.find(vault), words((id,)))
    if as_json:
        print_json(conversation)
        return
    out = Terminal(sys.stdout)
    click.echo(out.bold(wrapped(line(conversation.get("title", "")), out)))
    about = [line(conversation.get("note") or ""), PRIVATE if is_private(conversation) else ""]
    if any(about):
        click.echo(out.dim(wrapped(" · ".join(filter(None, about)), out)))
    for turn in conversation.get("turns") or []:
        about = [_moment(turn.get("at")), line(turn.get("model") or ""), line(turn.get("state") or "")]
        about += ["private"] * bool(turn.get("private"))
        asked = wrapped(f"› {clean(turn.get('message', ''))}", out, 2)
        click.echo(f"\n{out.bold(asked)}")
        click.echo(out.dim(wrapped(" · ".join(part for part in about if part and part != "done"), out)))
        if text := clean(turn.get("text", "")).strip("\n"):
            click.echo(wrapped(text, out, width=out.edge))
        error = turn.get("error") if isinstance(turn.get("error"), dict) else None
        if error:
            click.echo(out.red(wrapped(sentence(error.get("message", "")), out)))
        for source in turn.get("citations") or []:
            click.echo(out.dim(f"  [{source.get('n')}] {line(source.get('path', ''))}"))


@sessions.command()
@click.argument("id", shell_complete=completion.conversations)
@click.argument("title", nargs=-1, required=True)
@vault_option
@json_option
def rename(id: str, title: tuple[str, ...], vault: Path | None, as_json: bool) -> None:
    """Rename the conversation ID to TITLE."""
    reply = Client.find(vault).request("PATCH", _route(words((id,))), {"title": words(title)})
    tell(reply, [f"Renamed to {line(reply.get('title', ''))!r}."], as_json=as_json)


@sessions.command()
@click.argument("id", shell_complete=completion.conversations)
@click.option("--yes", is_flag=True, help="Do not ask.")
@vault_option
@json_option
def delete(id: str, yes: bool, vault: Path | None, as_json: bool) -> None:
    """Delete the conversation ID. Its note, if there is one, stays in the vault."""
    client, id = Client.find(vault), words((id,))
    if not yes:
        if as_json or not somebody():
            raise Refused("Not deleted.", "Add --yes to confirm.")
        conversation = conversation_of(client, id)
        if not confirm(
            f"Delete {line(conversation.get('title', ''))!r}, {len(conversation.get('turns') or [])} turns?"
        ):
            click.echo("Nothing was deleted.")
            return
    reply = client.request("DELETE", _route(id))
    tell(reply, ["Deleted."], as_json=as_json)


def listed(client: Client) -> Found:
    """All conversations, the latest first."""
    return list(client.get("/v1/conversations").get("conversations") or [])


def conversation_of(client: Client, id: str) -> dict[str, Any]:
    """A conversation with its turns. Raises ClientError with code not_found."""
    return client.get(_route(id))


def is_private(conversation: Mapping[str, Any]) -> bool:
    """Whether a conversation drew on private notes, by what it says of itself or of its turns."""
    turns = conversation.get("turns")
    return bool(conversation.get("private")) or (isinstance(turns, list) and any(turn.get("private") for turn in turns))


def close(client: Client, id: str) -> str:
    """Tells the daemon that a conversation is over for now; the path of its note, "" without one.

    A summary may be made of it, by a model that takes its time; Ctrl-C leaves the daemon to it.
    """
    try:
        with waiting("Closing the conversation; long ones are summarised…"):
            Client(client.socket_path, timeout=SUMMARY_S).post(f"{_route(id)}/close")
    except KeyboardInterrupt:
        click.echo(err=True)
    except ClientError:  # it is gone, or the daemon is; there is nothing to say about that now
        return ""
    try:
        return str(conversation_of(client, id).get("note") or "")
    except ClientError:
        return ""


def save(client: Client, id: str) -> str:
    """Makes a note of a conversation; its path, "" while nothing was said in it. Raises ClientError."""
    return str(client.post(f"{_route(id)}/save").get("note") or "")


def search(client: Client, query: str) -> Found:
    """The conversations whose title has all the words, then those whose note is found for them."""
    every = listed(client)
    wanted = query.casefold().split()
    matches = {
        str(conversation.get("id")): conversation
        for conversation in every
        if all(word in str(conversation.get("title", "")).casefold() for word in wanted)
    }
    by_id = {str(conversation.get("id")): conversation for conversation in every}
    body = {"query": f"[tars:session] {query}", "mode": "fts", "limit": MOST_HITS}
    for path in dict.fromkeys(str(hit.get("path")) for hit in client.post("/v1/search", body).get("hits") or []):
        try:
            note = client.get(f"/v1/notes/{quote(path, safe='/')}")
        except ClientError:  # gone since it was indexed
            continue
        id = str((note.get("properties") or {}).get("id"))
        if id in by_id:
            matches.setdefault(id, by_id[id])
    return list(matches.values())


def rows(conversations: Sequence[Mapping[str, Any]], out: Terminal) -> list[str]:
    """One line for each conversation: its id, when it was touched last, how long it is, its title."""
    width = max((columns(line(conversation.get("id", ""))) for conversation in conversations), default=0)
    shown = []
    for conversation in conversations:
        id, turns = line(conversation.get("id", "")), int(conversation.get("turns") or 0)
        head = f"{id}{' ' * (width - columns(id))}  {_moment(conversation.get('updated'))}  {turns:>3}  "
        title, mark = line(conversation.get("title", "")), " · private" if is_private(conversation) else ""
        if not out.live:
            shown.append(f"{head}{title}{mark}")
            continue
        left = out.width - columns(head) - columns(mark)
        if left >= LEAST_TITLE:
            shown.append(f"{out.dim(head)}{fit(title, left)}{out.dim(mark)}")
        else:
            apart = [
                wrapped(f"{id}  {_moment(conversation.get('updated'))}  {turns}", out),
                f"    {fit(title, out.width - 4 - len(mark))}",
            ]
            shown += [out.dim(apart[0]), apart[1] + out.dim(mark)]
    return shown


def _route(id: str) -> str:
    return f"/v1/conversations/{quote(id, safe='')}"


def _moment(seconds: object) -> str:
    if not isinstance(seconds, int | float):
        return ""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
