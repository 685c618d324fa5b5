"""How a service stands, for people and for programs: what `tarsd service` shows of it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tarsd import services
from tarsd.cli.common import sentence
from tarsd.cli.status import glance
from tarsd.cli.terminal import Terminal, line
from tarsd.client import Client
from tarsd.config import load, socket_path
from tarsd.config.places import paths
from tarsd.errors import EXIT_NO_DAEMON, EXIT_OK, EXIT_REFUSED, ConfigError, TarsdError

SETTINGS = "System Settings > Privacy & Security > Full Disk Access"
WAIT_S, PAUSE_S, ASK_S = 10.0, 0.3, 5.0
AGAIN = "Install it again: tarsd service install"


@dataclass(frozen=True)
class ServiceStatus:
    """The supervisor's `state`, and the daemon's `reply` to `GET /v1/status`: empty when it does not answer."""

    state: services.ServiceState
    reply: Mapping[str, Any]

    @property
    def pid(self) -> int:
        """The process that answers; 0 for none."""
        pid = (self.reply.get("process") or {}).get("pid")
        return pid if isinstance(pid, int) else 0

    @property
    def answers(self) -> bool:
        """Whether it is the service that answers, and not a daemon that somebody started beside it."""
        return self.state.running and self.pid == self.state.pid


@dataclass(frozen=True)
class ServiceTarget:
    """The service that a command is about; `vault` is None when only the id is known."""

    vault_id: str
    vault: Path | None
    service: services.Service

    @property
    def log(self) -> Path:
        """Where its daemon writes what happens."""
        return paths(self.vault_id, os.environ).logs / f"tarsd-{self.vault_id}.log"

    def look(self) -> ServiceStatus:
        """How it stands now; at most a few seconds, whatever the daemon does."""
        state, reply = self.service.state(), dict[str, Any]()
        with contextlib.suppress(TarsdError):
            reply = Client(socket_path(self.vault_id), timeout=ASK_S).get("/v1/status")
        return ServiceStatus(state, reply)

    def wait(self) -> ServiceStatus:
        """How it stands as soon as it answers, or has failed, or after `WAIT_S`."""
        until = time.monotonic() + WAIT_S
        while True:
            status = self.look()
            if status.answers or (status.state.failed and not status.state.running) or time.monotonic() > until:
                return status
            time.sleep(PAUSE_S)


def outdated(target: ServiceTarget) -> list[str]:
    """What is wrong with the installed file, or with the settings it would start with; each as a sentence."""
    arguments = target.service.arguments()
    if not arguments:
        return [f"{target.service.file} was changed by something else. {AGAIN}"]
    if not os.access(arguments[0], os.X_OK):
        return [f"Its program is missing: {arguments[0]}. {AGAIN}"]
    try:
        launch = services.launch(load(vault=target.vault), services.Machine.here())
        if target.service.file.read_text(encoding="utf-8") == target.service.text(launch):
            return []
    except ConfigError as error:
        return [f"The configuration has errors: {' · '.join(error.problems)}"]
    except (services.ServiceError, OSError):
        return []  # this tarsd cannot be one itself, which says nothing of the one that is installed
    if launch.arguments[0] != arguments[0]:
        return [f"The service starts {arguments[0]}, but this is {launch.arguments[0]}. {AGAIN}"]
    return [f"The service was installed by another version or with other environment variables. {AGAIN}"]


def exit_code(status: ServiceStatus, *, started: bool) -> int:
    """What a command ends with; `started`: it was to bring the service up."""
    if status.answers:
        return EXIT_OK
    return EXIT_REFUSED if started or status.state.failed or status.pid else EXIT_NO_DAEMON


def shown(target: ServiceTarget, status: ServiceStatus, out: Terminal) -> list[str]:
    """The state as a headline, what the daemon says of itself, and where to look."""
    state = status.state
    if status.answers:
        lines = [f"{out.green('● Running')}, pid {state.pid}", *_own_words(target, status, out)]
    elif status.pid:
        lines = [
            out.yellow(f"● Another daemon already serves this vault: process {status.pid}"),
            "  Stop it with tarsd stop, then: tarsd service start",
        ]
    elif state.running:
        lines = [
            out.yellow(f"● Started, pid {state.pid}, but not answering"),
            "  The first start may take a while. Check again: tarsd service status",
        ]
    elif state.failed:
        lines = [out.red(f"● Failed. {line(state.reason)}"), f"  {line(state.hint)}"]
    else:
        lines = [
            out.yellow(f"● Stopped. {line(state.reason)}".rstrip(". ")),
            f"  {line(state.hint) or 'Start it with: tarsd service start'}",
        ]
    return [
        *lines,
        f"  {out.dim('Service')}  {line(target.service.file)}",
        f"  {out.dim('Log')}      {line(target.log)}",
    ]


def _own_words(target: ServiceTarget, status: ServiceStatus, out: Terminal) -> list[str]:
    """The daemon's headline, and why it has no vault if it has none."""
    lines = [f"  {glance(status.reply, out)[0]}"]
    watch = status.reply.get("watch") or {}
    if watch.get("state") == "waiting" and watch.get("hint"):
        access = _access(target, status.reply)
        hint = f"Allow {access} in {SETTINGS}; tarsd then continues by itself." if access else line(watch["hint"])
        lines += [f"  {sentence(line(watch.get('reason', '')))}", f"  {hint}"]
    return lines


def _access(target: ServiceTarget, status: Mapping[str, Any]) -> str:
    """The program that lacks Full Disk Access on macOS; "" when the daemon does not complain of that."""
    hint = str((status.get("watch") or {}).get("hint") or "")
    arguments = target.service.arguments()
    return services.allowed_program(arguments[0]) if "Full Disk Access" in hint and arguments else ""


def lingers(service: services.Service) -> bool | None:
    """Whether it runs while its user is not logged in (systemd lingering); None on macOS, or where that is unknown."""
    return service.lingers() if isinstance(service, services.UserUnit) else None


def facts(target: ServiceTarget, status: ServiceStatus) -> dict[str, Any]:
    """The state as JSON; unknown values are null."""
    state = status.state
    return {
        "vault": {"id": target.vault_id, "path": str(target.vault) if target.vault else None},
        "name": target.service.name,
        "file": str(target.service.file),
        "log": str(target.log),
        **asdict(state),
        "pid": state.pid or None,
        "running": state.running,
        "answers": status.answers,
        "lingers": lingers(target.service),
        "allow": _access(target, status.reply) or None,
        "daemon": dict(status.reply) or None,
    }
