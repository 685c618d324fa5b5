"""The daemon from outside: its socket, whether it answers, what it complains of, and the service that starts it."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import tarsd
from tarsd.client import grouped
from tarsd.config import short_folder
from tarsd.doctor.finding import Check, Finding, Skip, fault, number, ok, skipped, warning
from tarsd.doctor.subject import DoctorContext, quoted
from tarsd.errors import ClientError, NoDaemon, NotFound
from tarsd.protocol import PROTOCOL

HELLO_S: Final = 2.0
STATUS_S: Final = 10.0
PROBLEMS: Final = 5
PLACES: Final = 3
STARTING_S: Final = 60.0
LOG_BYTES: Final = 50_000_000


def socket(subject: DoctorContext) -> Finding:
    """Whether a socket can be where every client looks for it."""
    path = subject.config.paths.socket
    if path.parent.exists() and not path.parent.is_dir():
        return fault(f"{path.parent} is not a folder.", "Move it away; the daemon makes a new one.")
    if os.path.lexists(path) and not stat.S_ISSOCK(path.lstat().st_mode):
        return fault(f"{path} is in the way: it is not a socket.", "Move it away; the daemon makes a new one.")
    short = " (its usual path would be too long)" if path.parent == short_folder() else ""
    return ok(f"{path}{short}.")


def answers(subject: DoctorContext) -> Finding:
    """Whether a daemon says hello, and soon; what hangs is named with its process."""
    paths = subject.config.paths
    try:
        hello = subject.client(HELLO_S).get("/v1/hello")
        subject.hello = hello
        status = subject.status = subject.client(STATUS_S).get("/v1/status")
    except NoDaemon as error:
        return fault(error.message, _start(subject))
    except ClientError as error:
        if error.code != "timeout":
            return fault(error.message, error.hint)
        return _hung(_holder(paths.lock), subject)
    process = status.get("process") or {}
    where = (hello.get("vault") or {}).get("path")
    if where != str(subject.config.vault):
        return warning(
            f"Process {process.get('pid')} serves {where}.", "tarsd config check", public="It serves another vault."
        )
    return ok(f"Process {process.get('pid')} answers.")


def _start(subject: DoctorContext) -> str:
    """What starts the daemon."""
    from tarsd import services

    mine = any(entry.vault_id == subject.config.vault_id for entry in services.installed())
    return "tarsd service start" if mine else subject.start


def _hung(pid: int, subject: DoctorContext) -> Finding:
    who = f"Process {pid} holds the vault and does" if pid else "The daemon does"
    text = f"{who} not answer in time."
    if pid and _state(pid).startswith("T"):
        return fault(f"{text} It is suspended.", f"kill -CONT {pid}")
    return fault(
        text,
        f"kill -KILL {pid}; then: {_start(subject)}"
        if pid
        else f"Find its process: fuser {quoted(subject.config.paths.socket)}",
    )


def _holder(lock: Path) -> int:
    """The process that wrote itself into the lock and still runs; 0 for none."""
    from tarsd.vault import Unreadable, read_file

    try:
        text = read_file(str(lock), 100).decode("ascii", "replace").strip()
        pid = int(text) if text.isdigit() else 0
        if pid:
            os.kill(pid, 0)
    except (OSError, OverflowError, NotFound, Unreadable):
        return 0
    return pid


def _state(pid: int) -> str:
    """The state of a process in a letter: T is suspended; "" where that cannot be told."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].strip()[:1]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, timeout=2, check=False
        )
        return done.stdout.strip()[:1]
    return ""


def version(subject: DoctorContext) -> Finding:
    """Whether the daemon is the tarsd that is installed now."""
    hello = subject.hello
    if hello is None:
        raise Skip("No daemon answers.")
    restart = (
        "tarsd service restart" if _start(subject).startswith("tarsd service") else f"tarsd stop; then: {subject.start}"
    )
    if hello.get("protocol") != PROTOCOL:
        return fault(f"The daemon speaks protocol {hello.get('protocol')}, this command {PROTOCOL}.", restart)
    if hello.get("version") != tarsd.__version__:
        return warning(f"The daemon is tarsd {hello.get('version')}, installed is {tarsd.__version__}.", restart)
    return ok(f"The daemon has the same version: tarsd {tarsd.__version__}.")


def behind(subject: DoctorContext) -> Finding:
    """Whether notes wait to be indexed."""
    status = subject.status
    waiting = int(status.get("behind") or 0)
    if not waiting:
        return ok("Every note is indexed.")
    text = f"{number(waiting, 'note')} to be indexed."
    young = float((status.get("process") or {}).get("uptime_s") or 0) < STARTING_S
    return ok(f"{text} The daemon has just been started.") if young else warning(text, "tarsd status --wait")


def problems(subject: DoctorContext) -> Iterator[Finding]:
    """What the daemon complains of: the first few kinds, and how many problems there are, as the status counts them."""
    kinds = grouped(list(subject.status.get("problems") or []))
    count = sum(len(places) for places in kinds.values())
    for (reason, hint), places in list(kinds.items())[:PROBLEMS]:
        yield _problem(reason, hint, places)
    if count > 1:
        yield warning(f"{number(count, 'problem')} in all.", "tarsd status --all")
    if not count:
        yield ok("The daemon reports none.")


def _problem(reason: str, hint: str, places: Mapping[str, Sequence[int]]) -> Finding:
    """A kind of problem in a sentence. After a colon, a reason may quote a note, or what a server said of it."""
    public = reason.partition(":")[0]
    if "" in places:
        return warning(reason, hint, public=f"All: {public}")
    named = [path + (f":{', '.join(map(str, lines))}" if lines else "") for path, lines in places.items()]
    more = f", and {len(named) - PLACES:,} more" if len(named) > PLACES else ""
    told = "A note" if len(named) == 1 else f"{len(named):,} notes"
    return warning(f"{reason.rstrip('.')}: {', '.join(named[:PLACES])}{more}.", hint, public=f"{told}: {public}")


def service(subject: DoctorContext) -> Finding:
    """Whether the system starts the daemon by itself."""
    from tarsd import services

    state = services.service(subject.config.vault_id).state()
    if not state.installed:
        return skipped("None is installed: the daemon only runs when you start it.", "tarsd service install")
    if state.failed:
        return fault(state.reason or "It has failed.", state.hint or "tarsd service logs")
    if not state.loaded or not state.running:
        return warning("It is installed but not running.", "tarsd service start")
    with contextlib.suppress(Skip):
        pid = (subject.status.get("process") or {}).get("pid")
        if pid != state.pid:
            return warning(
                f"Process {pid} answers, not the service's {state.pid}.", "tarsd stop; then: tarsd service start"
            )
    return ok(f"It runs: process {state.pid}.")


def log(subject: DoctorContext) -> Finding:
    """How large the log is; the daemon rotates it long before `LOG_BYTES`."""
    paths = subject.config.paths
    sizes = [file.stat().st_size for file in paths.logs.glob(f"tarsd-{subject.config.vault_id}.log*")]
    told = f"{sum(sizes) / 1e6:.1f} MB in {number(len(sizes), 'file')}"
    if sum(sizes) > LOG_BYTES:
        return warning(
            f"{told}: old ones are not removed.", f"Check their owner: ls -l {paths.logs}", public=f"{told}."
        )
    return ok(f"{told}." if sizes else "There is none yet.")


def tcp(subject: DoctorContext) -> Finding:
    """The listener for other machines, where one is wanted."""
    about = subject.status.get("http") or {}
    reason, hint = str(about.get("reason") or ""), str(about.get("hint") or "")
    if not about.get("enabled"):
        return skipped("It is off.")
    if about.get("state") != "listening":
        return fault(reason or f"It is {about.get('state')}.", hint, public=f"State: {about.get('state')}.")
    if reason:
        return warning(f"{about.get('url')}. {reason}", hint, public=reason)
    return ok(f"It listens at {about.get('url')}.", public="It listens.")


CHECKS: Final = (
    Check("Daemon", "socket", socket),
    Check("Daemon", "answers", answers, HELLO_S + STATUS_S + 2),
    Check("Daemon", "version", version),
    Check("Daemon", "service", service, 10.0),
    Check("Daemon", "problems", problems),
    Check("Daemon", "behind", behind),
    Check("Daemon", "log", log),
    Check("Daemon", "TCP", tcp),
)
