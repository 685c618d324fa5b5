"""A vault's daemon as a launchd agent: a property list in ~/Library/LaunchAgents, loaded into the user's session."""

from __future__ import annotations

import contextlib
import os
import plistlib
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.parsers.expat import ExpatError

from tarsd.config.places import user_home
from tarsd.services.base import (
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

PREFIX = "md.tarsd."
FILE = re.compile(r"md\.tarsd\.([0-9a-f]{12})\.plist")
END_S = 30.0
"""A little more than ExitTimeOut: after it launchd has killed the process."""

PAUSE_S = 0.25
TRIES = 12
BUSY = (5, 17, 37)
"""What bootstrap says while the job of before is not quite gone: I/O error, exists, in progress."""

GONE = (3, 113)
"""What bootout says when there is no such job: no such process, no such service."""

UNWRITABLE = re.compile("[\ufffe\uffff]")
"""Characters that are no XML, and that `plistlib` lets through."""

NO_SESSION = (112, 125)
"""There is no such domain, or it takes no agents."""


class LaunchAgent(Service):
    """An agent of launchd, which is asked again after `pause_s` seconds for what it is still at."""

    def __init__(self, identity: str, machine: Machine, pause_s: float = PAUSE_S) -> None:
        self.name = PREFIX + identity
        self.file = agents(machine) / f"{self.name}.plist"
        self._domain = f"gui/{machine.uid}"
        self._target = f"{self._domain}/{self.name}"
        self._run = machine.runner.run
        self._pause_s = pause_s

    def text(self, launch: Launch) -> str:
        return render(
            "launchd.plist",
            {
                "label": _element(self.name),
                "arguments": _element(list(launch.arguments)),
                "environment": _element(dict(launch.environment)),
            },
        )

    def arguments(self) -> Sequence[str]:
        try:
            words = plistlib.loads(self.file.read_bytes())["ProgramArguments"]
        except (OSError, ValueError, KeyError, TypeError, ExpatError):
            return ()
        return tuple(str(word) for word in words) if isinstance(words, list) else ()

    def install(self, launch: Launch) -> None:
        text = self.text(launch)
        session = self._run("launchctl", "print", self._domain)
        if session.code:
            raise _no_session(session)
        write(self.file, text)
        self._unload()
        self._load()

    def uninstall(self) -> bool:
        there = os.path.lexists(self.file)
        with contextlib.suppress(FileNotFoundError):
            self.file.unlink()  # first: whatever launchd says, it does not come back at the next login
        self._unload()
        return there

    def start(self) -> None:
        must_exist(self.file)
        if self._loaded():
            self._do("kickstart", self._target)
        else:
            self._load()

    def stop(self) -> None:
        must_exist(self.file)
        self._unload()

    def restart(self) -> None:
        must_exist(self.file)
        if self._loaded():
            self._do("kickstart", "-k", self._target)
        else:
            self._load()

    def state(self) -> ServiceState:
        # what launchd prints also holds the environment, so none of it is passed on as it is
        installed = bool(read(self.file))
        done = self._run("launchctl", "print", self._target)
        if done.code:
            return ServiceState(installed)
        pid, code = (_number(rf"^\s*{name} = (\d+)", done.out) for name in ("pid", "last exit code"))
        killed = re.search(r"^\s*last terminating signal = ([\w :]+)$", done.out, re.MULTILINE)
        if pid:
            return ServiceState(installed, loaded=True, pid=pid)
        if code is None and killed:
            return ServiceState(
                installed,
                True,
                failed=True,
                reason=f"It was killed by a signal ({killed[1]}).",
                hint="It restarts by itself.",
            )
        reason, hint = ("", "") if code is None else ended(code)
        return ServiceState(installed, loaded=True, exit_code=code, failed=bool(code), reason=reason, hint=hint)

    # ------------------------------------------------------------------------------------------------ launchctl

    def _loaded(self) -> bool:
        return self._run("launchctl", "print", self._target).code == 0

    def _do(self, *arguments: str) -> None:
        done = self._run("launchctl", *arguments)
        if done.code:
            raise _error(arguments[0], done)

    def _load(self) -> None:
        """Have launchd read the file; RunAtLoad starts it. If it was disabled by hand, that outlives all else."""
        self._run("launchctl", "enable", self._target)
        for left in reversed(range(TRIES)):
            done = self._run("launchctl", "bootstrap", self._domain, str(self.file))
            if done.code == 0:
                return
            if done.code not in BUSY or not left:
                raise _no_session(done) if done.code in NO_SESSION else _error("bootstrap", done)
            if self._loaded():  # the session itself was faster
                return
            time.sleep(self._pause_s)

    def _unload(self) -> None:
        """Have it ended and forgotten, and wait until it is: before that, it cannot be loaded again."""
        done = self._run("launchctl", "bootout", self._target, timeout=END_S)
        if done.code in GONE:
            return
        until = time.monotonic() + END_S
        while self._loaded():
            if time.monotonic() > until or (done.code and done.code != 36):  # 36: it is being done
                raise _error("bootout", done)
            time.sleep(self._pause_s)


def agents(machine: Machine) -> Path:
    """The folder of the user's own agents."""
    return user_home(machine.env) / "Library" / "LaunchAgents"


def _element(value: str | list[str] | dict[str, str]) -> str:
    """A value as it stands in a property list below a key. Raises `ServiceError` for what XML cannot hold."""
    document = plistlib.dumps(value, sort_keys=False).decode()
    if letter := UNWRITABLE.search(document):
        raise ServiceError(
            f"A property list cannot contain the character U+{ord(letter[0]):X}, but a path or setting has it.",
            "Rename the folder, or remove it from the environment.",
        )
    inner = document.split('<plist version="1.0">\n', 1)[1].rsplit("\n</plist>", 1)[0]
    # by line feeds alone: other ends of lines are part of a path
    return "\t" + inner.replace("\n", "\n\t")


def _number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text, re.MULTILINE)
    return int(match[1]) if match else None


def _no_session(done: CommandResult) -> ServiceError:
    return ServiceError(
        f"launchd has no session for this user ({done.complaint}).",
        "Log in at the Mac's own screen and run this there: SSH alone gives no session.",
    )


HINTS: Mapping[int, str] = {
    1: "If it is off in System Settings > General > Login Items & Extensions, allow it there.",
    5: "Try again in a moment. If it still fails, this may tell why: plutil -lint ~/Library/LaunchAgents/md.tarsd.*",
    13: "Check that you own the file: ls -l ~/Library/LaunchAgents.",
}


def _error(verb: str, done: CommandResult) -> ServiceError:
    said = done.complaint
    return ServiceError(f"launchctl {verb} failed: {said}.", HINTS.get(done.code, "See: tarsd service status."))
