"""A vault's daemon as a unit of the user's own systemd: no root, and nothing of the system's is touched."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tarsd.config.places import user_home
from tarsd.services.base import (
    CommandMissing,
    CommandResult,
    Launch,
    Machine,
    Service,
    ServiceError,
    ServiceState,
    ended,
    must_exist,
    read,
    render,
    write,
)

PREFIX = "tarsd-"
FILE = re.compile(r"tarsd-([0-9a-f]{12})\.service")
END_S = 60.0
NO_MANAGER = re.compile(
    r"Failed to connect to (?:user scope )?bus|not been booted with systemd|No medium found|Host is down"
    r"|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS",
)
PLAIN = re.compile(r"[\w@=:,./+-]+", re.ASCII)
SHOWN = ("LoadState", "ActiveState", "SubState", "MainPID", "Result", "ExecMainCode", "ExecMainStatus")


class NoManager(ServiceError):
    """There is no systemd of this user that could be asked."""


class UserUnit(Service):
    """A user unit of systemd."""

    def __init__(self, identity: str, machine: Machine) -> None:
        self.name = f"{PREFIX}{identity}.service"
        self.file = units(machine) / self.name
        self._machine = machine
        runtime = Path(f"/run/user/{machine.uid}")
        # after `su` the variable is missing although the manager is there
        lost = not machine.env.get("XDG_RUNTIME_DIR") and runtime.is_dir()
        self._env = {**machine.env, "LC_ALL": "C", **({"XDG_RUNTIME_DIR": str(runtime)} if lost else {})}

    def text(self, launch: Launch) -> str:
        lines = (f"Environment={quoted(f'{name}={value}')}" for name, value in launch.environment.items())
        return render(
            "systemd.service",
            {
                "name": self.name.removesuffix(".service"),
                "vault": launch.vault_name.replace("%", "%%"),
                "command": " ".join(quoted(word) for word in launch.arguments),
                "environment": "\n".join(lines),
            },
        )

    def arguments(self) -> Sequence[str]:
        line = re.search(r"^ExecStart=:?(.+)$", read(self.file), re.MULTILINE)
        try:
            return tuple(word.replace("%%", "%") for word in shlex.split(line[1])) if line else ()
        except ValueError:  # somebody else's quotes
            return ()

    def install(self, launch: Launch) -> None:
        text = self.text(launch)
        self._show()  # is there a manager at all? nothing is written if not
        write(self.file, text)
        self._do("daemon-reload")
        self._do("enable", self.name)
        self._begin("restart")

    def uninstall(self) -> bool:
        there = os.path.lexists(self.file)
        managed = True
        try:
            if self._show().get("LoadState") == "loaded":
                self._do("stop", self.name, timeout=END_S)
                self._do("disable", self.name)
        except (NoManager, CommandMissing):
            managed = False
        for path in (self.file, self.file.parent / "default.target.wants" / self.name):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        if managed:
            self._do("daemon-reload")
            self._systemctl("reset-failed", self.name)  # which it refuses when it had not failed
        return there

    def start(self) -> None:
        must_exist(self.file)
        self._begin("start")

    def stop(self) -> None:
        must_exist(self.file)
        self._do("stop", self.name, timeout=END_S)

    def restart(self) -> None:
        must_exist(self.file)
        self._begin("restart")

    def state(self) -> ServiceState:
        installed = bool(read(self.file))
        try:
            shown = self._show()
        except NoManager as error:
            return ServiceState(installed, reason=error.message, hint=error.hint)
        if shown.get("LoadState") != "loaded":
            return ServiceState(installed)
        pid = _number(shown, "MainPID") or 0
        active, result = shown.get("ActiveState", ""), shown.get("Result", "success")
        failed = not pid and (active == "failed" or shown.get("SubState") == "auto-restart")
        exited = shown.get("ExecMainCode") == "1"  # CLD_EXITED; else the status is a signal's number
        code = _number(shown, "ExecMainStatus") if exited and not pid else None
        reason, hint = _why(result, code) if failed else ("", "")
        if shown.get("SubState") == "auto-restart":
            hint = "It is being restarted."
        return ServiceState(installed, True, pid, code, failed, reason, hint)

    def lingers(self) -> bool | None:
        """Whether the service runs while its user is not logged in; None when that cannot be told."""
        try:
            uid = str(self._machine.uid)
            done = self._machine.runner.run("loginctl", "show-user", uid, "--property=Linger", env=self._env)
        except ServiceError:
            return None
        if done.code:  # of a user who neither is logged in nor lingers nothing is known
            return False if "not logged in or lingering" in done.err else None
        return {"Linger=yes": True, "Linger=no": False}.get(done.out.strip())

    # ------------------------------------------------------------------------------------------------ systemctl

    def _systemctl(self, *arguments: str, timeout: float = 30.0) -> CommandResult:
        return self._machine.runner.run("systemctl", "--user", *arguments, timeout=timeout, env=self._env)

    def _do(self, *arguments: str, timeout: float = 30.0) -> None:
        done = self._systemctl(*arguments, timeout=timeout)
        if done.code:
            raise _error(arguments[0], done)

    def _begin(self, verb: str) -> None:
        """Not waited for: readiness is seen at the socket, with more to say than systemctl has."""
        self._systemctl("reset-failed", self.name)  # else too many failures of before would forbid it
        self._do("--no-block", verb, self.name)

    def _show(self) -> dict[str, str]:
        """What is asked for of the unit; systemd answers for one that it does not know as well."""
        done = self._systemctl("show", self.name, f"--property={','.join(SHOWN)}")
        if done.code:
            raise _error("show", done)
        return dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)


def units(machine: Machine) -> Path:
    """The folder of the user's own units."""
    return Path(machine.env.get("XDG_CONFIG_HOME") or user_home(machine.env) / ".config") / "systemd" / "user"


def quoted(text: str) -> str:
    """One word of a unit file: systemd splits at blanks, and takes \\, " and % for its own."""
    if PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def _number(shown: Mapping[str, str], name: str) -> int | None:
    value = shown.get(name, "")
    return int(value) if value.isdigit() else None


def _error(verb: str, done: CommandResult) -> ServiceError:
    if NO_MANAGER.search(done.err):
        return NoManager(
            f"systemd is not running for this user ({done.complaint}).",
            "Log in as this user directly, not with su or sudo. In a container, have its supervisor run: tarsd run.",
        )
    hint = "See: tarsd service status."
    if "does not exist" in done.err or "not found" in done.err:
        hint = "systemd does not look there. If XDG_CONFIG_HOME is only set in this shell, unset it."
    return ServiceError(f"systemctl --user {verb} failed: {done.complaint}.", hint)


def _why(result: str, code: int | None) -> tuple[str, str]:
    """Why it does not run, from systemd's word for it."""
    logs = "See: tarsd service logs."
    if result == "protocol" and code == 0:
        return ended(0)
    if result in ("exit-code", "protocol", "start-limit-hit") and code:
        return ended(code)
    return {
        "start-limit-hit": ("It failed too often and is not restarted any more.", logs),
        "watchdog": ("It hung and was killed.", logs),
        "timeout": ("It did not start or stop in time.", logs),
        "signal": ("It was killed by a signal.", logs),
        "core-dump": ("It crashed.", logs),
        "oom-kill": ("The machine ran out of memory.", "Is another model too large for this machine?"),
    }.get(result, (f"It is not running ({result}).", logs))
