"""What is looked at: whose vault, which settings, which daemon. The first checks fill it in, the later ones use it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tarsd.client import Client
from tarsd.config import Config, config_file, expand, load, vault_id
from tarsd.config.file import read_table
from tarsd.config.places import paths
from tarsd.doctor.finding import Skip
from tarsd.errors import ConfigError, TarsdError

if TYPE_CHECKING:
    from tarsd.vault import Scan

Json = Mapping[str, Any]


MISSING = {
    "config": "It is unclear which vault is meant.",
    "scan": "The vault could not be scanned.",
    "status": "No daemon answers.",
}
"""What a check finds out for those after it, and why these are skipped as long as it is not known."""


class DoctorContext:
    """`vault` is the one that was named, if any. With `model` false no server of a model is asked; a
    `thorough` look takes seconds more.

    `config`, `scan` and `status`, what the daemon says of itself, raise `Skip` as long as no check has set them.
    `patience` times longer than on a machine with nothing else to do everything may take.
    """

    config: Config
    scan: Scan
    status: Json

    def __init__(
        self,
        vault: Path | None = None,
        env: Mapping[str, str] | None = None,
        *,
        model: bool = True,
        thorough: bool = False,
        patience: float = 1.0,
    ) -> None:
        self.clocks = time.time(), time.monotonic()
        """The time of day and the even clock when the look began."""
        self.thorough = thorough
        self.named = vault
        self.patience = patience
        self.env = os.environ if env is None else env
        self.model = model
        self.problems: tuple[str, ...] = ()
        """The faults of the settings."""
        self.readable = False
        self.hello: Json | None = None

    def __getattr__(self, name: str) -> NoReturn:
        if name in MISSING:
            raise Skip(MISSING[name])
        raise AttributeError(name)

    def settle(self) -> None:
        """Read the settings; where they have faults, those are kept, and the vault that is meant has the defaults."""
        try:
            self.config = load(vault=self.named, env=self.env)
            return
        except ConfigError as error:
            self.problems = error.problems
        root = self.named if self.named is not None else self._meant()
        if root is None:
            return
        try:
            self.config = load(vault=root, env=self.env)
            self.problems = ()  # nothing but the vault's name was missing, and the daemon knows that
        except ConfigError as error:
            self.problems = error.problems
            real = Path(os.path.realpath(expand(str(root), self.env)))
            identity = vault_id(real)
            self.config = Config(real, identity, paths(identity, self.env))

    def _meant(self) -> Path | None:
        """The vault of the environment, of the file, or of the only daemon that runs."""
        if self.env.get("TARSD_VAULT"):
            return expand(self.env["TARSD_VAULT"], self.env)
        try:
            section = read_table(config_file(self.env), self.env)[0].get("vault")
            path = section.get("path") if isinstance(section, dict) else None
            if isinstance(path, str) and path and "\0" not in path:
                return expand(path, self.env)
            known = Client.find(None, self.env, timeout=2.0).get("/v1/hello").get("vault")
        except TarsdError:
            return None
        return Path(known["path"]) if isinstance(known, dict) and isinstance(known.get("path"), str) else None

    @property
    def root(self) -> Path:
        """The vault, once it is known that it can be read; raises Skip before, since every look at it may hang."""
        if not self.readable:
            raise Skip("The vault cannot be read.")
        return self.config.vault

    def client(self, timeout: float) -> Client:
        """The daemon of the vault; it may be silent for so many seconds. Raises Skip where no vault is known."""
        return Client(self.config.paths.socket, timeout=timeout * self.patience)

    @property
    def start(self) -> str:
        """The command that starts the daemon."""
        return "tarsd run" if self.named is None else f"tarsd run --vault {quoted(self.config.vault)}"


def quoted(path: Path | str) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))
