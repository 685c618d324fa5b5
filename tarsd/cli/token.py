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
@click.option("--rotate", is_flag=True, help="Make a new token; the old one stops working.")
@json_option
def token(rotate: bool, as_json: bool) -> None:
    """Make the token with which a phone or another machine (Obsidian, the web page) connects over TCP.

    It is shown once. If there is one already, only the place where it is saved is shown.
    """
    where = keys.source("tcp")
    made = ""
    if where is None or rotate:
        if where == VARIABLE:
            raise Refused(f"The token is set by {VARIABLE}.", "Change it there, or unset it first.")
        made = secrets.token_urlsafe(BYTES)
        with keyring_faults("The token cannot be saved", f"Unlock the keyring, or set {VARIABLE}."):
            where = keys.put("tcp", made)
    if as_json:
        print_json({"made": bool(made), "token": made or None, "source": where, "http": _listener()})
        return
    err = Terminal(sys.stderr)
    if not made:
        click.echo(f"There is already a token, saved in {line(where)}. It is not shown again.")
        click.echo("Make a new one with: tarsd token --rotate", err=True)
    else:
        click.echo(made)
        click.echo(err.dim(f"Saved in {line(where)}; it is not shown again."), err=True)
        click.echo(
            "Enter it on the other device: in Obsidian under Settings → Tarsd → Token, or on the web page.", err=True
        )
        click.echo("Other programs send it as a header: Authorization: Bearer TOKEN", err=True)
    _tell(_listener(), err)


def _tell(http: dict[str, Any] | None, err: Terminal) -> None:
    """Prints where the daemon listens on TCP, or what is missing."""
    if http is None:
        click.echo("To let the daemon listen on TCP, set enabled = true under [http] in the config.", err=True)
    elif not http.get("enabled"):
        click.echo(
            err.yellow("The daemon does not listen on TCP: set enabled = true under [http] in the config."), err=True
        )
    elif http.get("url"):
        click.echo(f"The daemon listens at {line(http['url'])}", err=True)
    if http and http.get("reason"):
        click.echo(err.yellow(f"{line(http['reason'])} {line(http.get('hint', ''))}"), err=True)


def _listener() -> dict[str, Any] | None:
    """What the running daemon says of its listener; None where none answers."""
    try:
        http = Client.find(timeout=LOOK_S).get("/v1/status").get("http")
    except TarsdError:
        return None
    return http if isinstance(http, dict) else None
