"""The command that makes the token of the TCP listener. It is shown once, when it is made, and never again."""

from __future__ import annotations

import secrets
import sys
from typing import Any

import click

from tarsd import keys
from tarsd.cli.common import Command, json_option, print_json
from tarsd.cli.keys import keyring_faults
from tarsd.cli.terminal import Terminal, line
from tarsd.client import Client
from tarsd.errors import Refused, TarsdError

BYTES = 32
VARIABLE = "TARSD_TCP_KEY"
LOOK_S = 2.0


@click.command(cls=Command)
@click.option("--rotate", is_flag=True, help="Make another one; the old one lets nobody in any more.")
@json_option
def token(rotate: bool, as_json: bool) -> None:
    """Make the token that lets Obsidian on a phone, or another machine, in over TCP.

    It is printed once. If there is one already, this says where it is kept, and does not show it.
    """
    where = keys.source("tcp")
    made = ""
    if where is None or rotate:
        if where == VARIABLE:
            raise Refused(f"The token is what {VARIABLE} says.", "Change it there, or unset it first.")
        made = secrets.token_urlsafe(BYTES)
        with keyring_faults("The token cannot be kept", f"Unlock the keyring, or set {VARIABLE}."):
            where = keys.put("tcp", made)
    if as_json:
        print_json({"made": bool(made), "token": made or None, "source": where, "http": _listener()})
        return
    err = Terminal(sys.stderr)
    if not made:
        click.echo(f"There is a token, kept in {line(where)}. It is not shown again.")
        click.echo("Another one is made with: tarsd token --rotate", err=True)
    else:
        click.echo(made)
        click.echo(err.dim(f"It is kept in {line(where)}, and not shown again."), err=True)
        click.echo("Put it into Obsidian on the other device: Settings → Tarsd → Token.", err=True)
        click.echo("Or send it along: Authorization: Bearer TOKEN", err=True)
    _tell(_listener(), err)


def _tell(http: dict[str, Any] | None, err: Terminal) -> None:
    """Prints where the daemon listens on TCP, or what is missing for that."""
    if http is None:
        click.echo("A daemon listens on TCP when its config says enabled = true under [http].", err=True)
    elif not http.get("enabled"):
        click.echo(err.yellow("The daemon does not listen on TCP: say enabled = true under [http]."), err=True)
    elif http.get("url"):
        click.echo(f"The daemon listens on {line(http['url'])}", err=True)
    if http and http.get("reason"):
        click.echo(err.yellow(f"{line(http['reason'])} {line(http.get('hint', ''))}"), err=True)


def _listener() -> dict[str, Any] | None:
    """What the running daemon says of its listener; None where none answers."""
    try:
        http = Client.find(timeout=LOOK_S).get("/v1/status").get("http")
    except TarsdError:
        return None
    return http if isinstance(http, dict) else None
