"""The command that MCP clients start, and what it takes to have them start it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import sysconfig
from pathlib import Path
from typing import Any

import click

from tarsd.cli.common import Command, known_vault, vault_option
from tarsd.config import expand
from tarsd.errors import ConfigError

NAME = "tarsd"
CLIENTS = ("desktop", "code", "both")
DESKTOP = "claude_desktop_config.json"
PLACE = "Claude Desktop: open it with Settings → Developer → Edit Config, then restart Claude Desktop."
TERMINAL = "An MCP client starts this command. To set one up: tarsd mcp --setup"


@click.command(cls=Command)
@vault_option
@click.option("--local", is_flag=True, help="The client's model runs on this machine: give it private notes, too.")
@click.option(
    "--setup",
    type=click.Choice(CLIENTS),
    is_flag=False,
    flag_value="both",
    help="Print how to set up Claude Desktop, Claude Code, or both, and exit.",
)
def mcp(vault: Path | None, local: bool, setup: str | None) -> None:
    """Serve MCP clients on standard input and output: search, read, related, recent, remember, ask.

    The daemon may start later. Without --local, notes under privacy.local_only, and text made from them, are withheld.
    """
    vault = expand(str(vault), os.environ) if vault is not None else None
    if setup is not None:
        _set_up(setup, vault, local=local)
        return
    if sys.stdin.isatty():
        click.echo(TERMINAL, err=True)
    from tarsd.mcp_stdio import serve

    serve(vault, local=local)


def _set_up(setup: str, vault: Path | None, *, local: bool) -> None:
    """Prints the clients' settings for this installation; explanations go to standard error."""
    command = [*_program(), "mcp"]
    root = vault
    if root is None:
        with contextlib.suppress(ConfigError):
            root = known_vault()
    command += ["--vault", str(root)] if root is not None else []
    command += ["--local"] if local else []
    # a client starts it with hardly any environment
    env = {name: value for name in ("TARSD_HOME", "TARSD_CONFIG") if (value := os.environ.get(name))}
    if setup in ("desktop", "both"):
        about: dict[str, Any] = {"command": command[0], "args": command[1:]} | ({"env": env} if env else {})
        click.echo(f"# {DESKTOP}. {PLACE}", err=True)
        click.echo(json.dumps({"mcpServers": {NAME: about}}, ensure_ascii=False, indent=2))
    if setup in ("code", "both"):
        click.echo("# Claude Code: run this.", err=True)
        given = [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
        click.echo(shlex.join(["claude", "mcp", "add", *given, "--scope", "user", NAME, "--", *command]))
    if root is None:
        click.echo("Give the vault with --vault: it is not in the config, and no daemon is running.", err=True)


def _program() -> list[str]:
    """What starts this installation, wherever it is called from and whatever the PATH."""
    script = os.path.join(sysconfig.get_path("scripts"), NAME)
    return [script] if os.path.isfile(script) else [sys.executable, "-c", "from tarsd.cli import main; main()"]
