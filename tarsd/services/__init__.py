"""The daemon as a service of the system, one for each vault: a launchd agent on macOS, a user unit of systemd on Linux.

Nothing here asks for root. The supervisor is only reached through its own command, and the daemon only at its socket.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tarsd.services import launchd, systemd
from tarsd.services.base import CommandMissing, CommandRunner, Launch, Machine, Service, ServiceError, ServiceState
from tarsd.services.launchd import LaunchAgent
from tarsd.services.program import allowed_program, check, interpreter, launch, notices
from tarsd.services.systemd import UserUnit

__all__ = [
    "CommandMissing",
    "CommandRunner",
    "Installed",
    "Launch",
    "LaunchAgent",
    "Machine",
    "Service",
    "ServiceError",
    "ServiceState",
    "UserUnit",
    "allowed_program",
    "check",
    "installed",
    "interpreter",
    "launch",
    "notices",
    "service",
    "vault_of",
]


class Installed(NamedTuple):
    """A service that is installed: of which vault, and the file that stands for it."""

    vault_id: str
    file: Path


def service(vault_id: str, machine: Machine | None = None) -> Service:
    """The service of the vault with this id, installed or not. Raises ServiceError where there are none."""
    machine = machine or Machine.here()
    if machine.platform == "darwin":
        return LaunchAgent(vault_id, machine)
    if machine.platform == "linux":
        return UserUnit(vault_id, machine)
    raise ServiceError(f"Services are not supported on {machine.platform} yet.", "Run the daemon yourself: tarsd run.")


def installed(machine: Machine | None = None) -> list[Installed]:
    """All services of this user, whichever installation of tarsd wrote them; in the order of their vaults' ids."""
    machine = machine or Machine.here()
    mac = machine.platform == "darwin"
    folder, name = (launchd.agents(machine), launchd.FILE) if mac else (systemd.units(machine), systemd.FILE)
    matches = ((name.fullmatch(file.name), file) for file in folder.glob("*"))
    return sorted(Installed(match[1], file) for match, file in matches if match)


def vault_of(service: Service) -> Path | None:
    """The vault that the installed file names."""
    arguments = list(service.arguments())
    at = arguments.index("--vault") + 1 if "--vault" in arguments else len(arguments)
    return Path(arguments[at]) if at < len(arguments) else None
