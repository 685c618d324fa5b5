"""Whether the daemon of a service answers at its socket, and what it says."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tarsd.client import Client
from tarsd.errors import TarsdError
from tarsd.services.base import Service, ServiceState

PAUSE_S = 0.3
ASK_S = 5.0


@dataclass(frozen=True)
class ServiceStatus:
    """The supervisor's `state`, and the daemon's `status`: empty while nobody answers."""

    state: ServiceState
    status: Mapping[str, Any]

    @property
    def pid(self) -> int:
        """The process that answers; 0 for none."""
        pid = (self.status.get("process") or {}).get("pid")
        return pid if isinstance(pid, int) else 0

    @property
    def answers(self) -> bool:
        """Whether it is the service that answers, and not a daemon that somebody started beside it."""
        return self.state.running and self.pid == self.state.pid


def look(service: Service, socket: Path) -> ServiceStatus:
    """How it stands now; at most a few seconds, whatever the daemon does."""
    return ServiceStatus(service.state(), _status(socket))


def wait(service: Service, socket: Path, seconds: float) -> ServiceStatus:
    """The same as soon as the service answers, or has failed, or after so many seconds."""
    until = time.monotonic() + seconds
    while True:
        sight = look(service, socket)
        if sight.answers or (sight.state.failed and not sight.state.running) or time.monotonic() > until:
            return sight
        time.sleep(PAUSE_S)


def _status(socket: Path) -> Mapping[str, Any]:
    try:
        return Client(socket, timeout=ASK_S).get("/v1/status")
    except TarsdError:
        return {}
