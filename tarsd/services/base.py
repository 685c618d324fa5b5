"""What both kinds of services share: whose they are, what is known of one, asking the supervisor, writing a file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from tarsd import files
from tarsd.errors import Conflict, NotFound, TarsdError

RUN_S = 30.0
TEMPLATES = Path(__file__).parent.parent / "data" / "services"


class ServiceError(TarsdError, code="service_failed"):
    """The system's supervisor cannot be asked, or does not do what it is asked."""


class CommandMissing(ServiceError):
    """The supervisor's own command is not there."""


@dataclass(frozen=True)
class CommandResult:
    """How a command ended: exit code, what it printed, what it complained of."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The first line that says why it failed."""
        lines = [line.strip() for line in f"{self.err}\n{self.out}".splitlines() if line.strip()]
        return lines[0].rstrip(".") if lines else f"exit code {self.code}"


class CommandRunner:
    """Runs the supervisor's commands, found on the PATH of `env`. Everything that is asked of it goes through here."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = {**env, "LC_ALL": "C"}

    def run(self, *command: str, timeout: float = RUN_S, env: Mapping[str, str] | None = None) -> CommandResult:
        """The command's end, whatever its exit code; `env` stands for another environment than one's own.

        Raises CommandMissing, and ServiceError when it cannot be started or takes longer than `timeout` seconds.
        """
        program = shutil.which(command[0], path=self._env.get("PATH"))
        if program is None:
            raise CommandMissing(f"The command {command[0]} was not found.", "Run the daemon yourself: tarsd run.")
        try:
            done = subprocess.run(
                [program, *command[1:]],
                env=dict(self._env if env is None else env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ServiceError(
                f"{' '.join(command[:3])} did not answer within {timeout:g} s.", "Try again in a moment."
            ) from None
        except OSError as error:
            raise ServiceError(f"{program} cannot be started: {error.strerror}.") from None
        return CommandResult(
            done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )


@dataclass(frozen=True)
class Machine:
    """Whose services are meant: on which system (as sys.platform), with which environment, of which user."""

    platform: str
    env: Mapping[str, str]
    uid: int
    runner: CommandRunner = field(compare=False)

    @classmethod
    def here(cls) -> Machine:
        """This system, this environment, this user."""
        return cls(sys.platform, os.environ, os.getuid(), CommandRunner(os.environ))


@dataclass(frozen=True)
class Launch:
    """What a service starts: of which vault, the program with its arguments, and all of its environment."""

    vault_id: str
    vault_name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class ServiceState:
    """What the supervisor knows of a service.

    `pid` is 0 while it does not run; `exit_code` is that of the last run, None if it never ended or by a signal.
    `failed`, with `reason` and `hint` as sentences, when it does not run and should.
    """

    installed: bool
    loaded: bool = False
    pid: int = 0
    exit_code: int | None = None
    failed: bool = False
    reason: str = ""
    hint: str = ""

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self.pid > 0


class Service(ABC):
    """One vault's daemon as a service. All but `text`, `arguments` and `state` raise ServiceError where they fail."""

    name: str
    """What the supervisor calls it."""

    file: Path

    @abstractmethod
    def text(self, launch: Launch) -> str:
        """The whole file that stands for this launch."""

    @abstractmethod
    def arguments(self) -> Sequence[str]:
        """The command line in the file that is there; empty when there is none that can be read."""

    @abstractmethod
    def install(self, launch: Launch) -> None:
        """Write the file, and load and start what it says, in the place of whatever ran before."""

    @abstractmethod
    def uninstall(self) -> bool:
        """Stop it and take the file away; whether there was one."""

    @abstractmethod
    def start(self) -> None:
        """Start it if it does not run. Raises NotFound when it is not installed."""

    @abstractmethod
    def stop(self) -> None:
        """End it until it is started, or the user logs in, the next time. Raises NotFound when it is not installed."""

    @abstractmethod
    def restart(self) -> None:
        """End it if it runs, and start it. Raises NotFound when it is not installed."""

    @abstractmethod
    def state(self) -> ServiceState:
        """How it stands now."""


def render(name: str, values: Mapping[str, str]) -> str:
    """A template of the package with its ${places} filled in."""
    return Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(values)


def write(file: Path, text: str) -> None:
    """The whole file or nothing. Raises Conflict when it cannot be written."""
    try:
        files.make_folder(file.parent, 0o755)
        files.replace(file, text.encode("utf-8"), 0o644)  # launchd takes none that others can write to
    except OSError as error:
        raise Conflict(f"{file} cannot be written: {error.strerror}.", f"Check the owner of {file.parent}.") from None


def read(file: Path) -> str:
    """The file's text; "" when there is none that can be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def must_exist(file: Path) -> None:
    """Raises NotFound when the service is not installed."""
    if not os.path.lexists(file):
        raise NotFound("No service is installed for this vault.", "Install it with: tarsd service install.")


def ended(code: int) -> tuple[str, str]:
    """Why a run that ended with this exit code did so, and what to do."""
    return _ENDED.get(code, (f"It failed (exit code {code}).", "See: tarsd service logs."))


_ENDED = {
    0: ("It stopped by itself: it was told to, or another daemon already serves this vault.", "See: tarsd status."),
    2: ("It was started with unknown options (exit code 2).", "Install it again: tarsd service install."),
    4: ("It failed to start (exit code 4).", "To see why, run in a terminal: tarsd run."),
    78: ("The configuration has errors (exit code 78).", "See them with: tarsd config check."),
    203: ("Its program cannot be started (exit code 203).", "Install it again: tarsd service install."),
}
