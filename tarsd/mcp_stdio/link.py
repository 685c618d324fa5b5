"""The daemon for one call: looked up each time, as it may start later or come back as another process."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tarsd.client import Client
from tarsd.errors import ClientError, NoDaemon
from tarsd.protocol import Audience

ANSWER_S = 45.0
"""Most clients of MCP wait a minute for an answer; what we say about a silent daemon must come before that."""

MOST_LINK = 1_000


@dataclass(frozen=True)
class DaemonLink:
    """A daemon that just answered; `vault` is the vault's name in Obsidian. Its methods block."""

    client: Client
    vault: str
    audience: Audience

    @classmethod
    def open(cls, vault: Path | None, *, local: bool) -> DaemonLink:
        """Find the daemon of `vault`, or the configured or only one; `local`: who asks is a model on this machine.

        Raises `NoDaemon`, `ClientError`, and `ConfigError` where the vault is to be found in a broken config.
        """
        try:
            return cls.over(Client.find(vault, timeout=ANSWER_S), local=local)
        except NoDaemon as error:
            raise _no_daemon(error, vault) from None

    @classmethod
    def over(cls, client: Client, *, local: bool) -> DaemonLink:
        """The daemon that this client speaks to. Raises `NoDaemon` and `ClientError`."""
        hello = client.get("/v1/hello")
        features = hello.get("features")
        if not isinstance(features, list) or "audience" not in features:  # it would not keep private notes back
            raise ClientError(
                "The running daemon is older than this `tarsd mcp`.",
                "Restart it: tarsd stop, then tarsd run.",
                code="old_daemon",
            )
        about = hello.get("vault")
        name = about.get("name") if isinstance(about, dict) else ""
        return cls(client, str(name), "here" if local else "elsewhere")

    def get(self, path: str, **parameters: str | int) -> dict[str, Any]:
        """The reply to a GET; empty parameters are left out. Raises `ClientError`."""
        given = {name: value for name, value in parameters.items() if value != ""}
        return self.client.get(f"{path}?{urlencode({**given, 'audience': self.audience})}")

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to a POST. Raises `ClientError`."""
        return self.client.post(path, {**body, "audience": self.audience})

    def note(self, name: str) -> dict[str, Any]:
        """The note that a path, a name or a `[[link]]` leads to. Raises `ClientError`."""
        return self.get(f"/v1/notes/{quote(name, safe='')}")

    def obsidian(self, link: str) -> str:
        """The URI that opens `Folder/Note#Heading` of the vault in Obsidian, without a heading that is far too long."""
        link = link if len(link) <= MOST_LINK else link.partition("#")[0]
        return f"obsidian://open?vault={quote(self.vault, safe='')}&file={quote(link.removesuffix('.md'), safe='')}"


def _no_daemon(error: NoDaemon, vault: Path | None) -> NoDaemon:
    if vault is None:
        return error
    if not os.path.isdir(vault):
        return NoDaemon(f"There is no folder {vault}.", "Correct --vault where this MCP server is set up.")
    return NoDaemon(f"No daemon is running for {vault}.", f"Start it with: tarsd run --vault {shlex.quote(str(vault))}")
