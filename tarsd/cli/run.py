"""The commands that start and end the daemon: run, stop."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tarsd.cli.common import Command, Folder, json_option, tell, vault_option
from tarsd.client import Client
from tarsd.errors import ClientError

STOP_S = 20.0


@click.command(cls=Command)
@click.option("--vault", type=Folder(), help="The folder of notes; needs no config then.")
def run(vault: Path | None) -> None:
    """Run the daemon in the foreground, until Ctrl-C or `tarsd stop`."""
    from tarsd.config import load

    settings = load(vault=vault)
    from tarsd import daemon

    click.get_current_context().exit(daemon.run(settings, lambda: load(vault=vault)))


@click.command(cls=Command)
@vault_option
@json_option
def stop(vault: Path | None, as_json: bool) -> None:
    """Stop the daemon, and wait until it has stopped."""
    reply = ended(Client.find(vault))
    tell(reply, ["Stopped."], as_json=as_json)


def ended(client: Client) -> Mapping[str, Any]:
    """Asks the daemon to end; its reply, as soon as it has. Raises ClientError when it has not within `STOP_S`."""
    reply = client.post("/v1/shutdown")
    end = time.monotonic() + STOP_S
    while client.alive():
        if time.monotonic() > end:
            raise ClientError("The daemon has not stopped yet.", "Check again: tarsd status.", code="timeout")
        time.sleep(0.05)
    return reply
