"""launchctl, systemctl and loginctl in small, by the name under which it is run: what they print, what they refuse.

All it knows lies in the folder that TEST_SUPERVISOR names: `calls` (one JSON list a line), `answers/VERB` (replies
that come first, one JSON list a line: exit code, stdout, stderr), `spawn` (start real processes), and of the one
service that it has: `pid`, `exit`, `loaded` (the file's path), `enabled`.
"""

from __future__ import annotations

import json
import os
import plistlib
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["TEST_SUPERVISOR"])
NOBODY = 4242
"""The process of a service that is not really started."""


def known(name: str) -> str:
    """What is remembered under a name."""
    try:
        return (FOLDER / name).read_text()
    except FileNotFoundError:
        return ""


def forget(*names: str) -> None:
    """No longer remembered."""
    for name in names:
        (FOLDER / name).unlink(missing_ok=True)


def alive() -> int:
    """The running process, 0 for none."""
    pid = int(known("pid") or 0)
    if pid in (0, NOBODY):
        return pid
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return 0
    return 0 if known("exit") else pid


def begin(command: list[str], env: dict[str, str]) -> None:
    """Start the service as a supervisor does: in /, with this environment and no other."""
    forget("exit", "pid")
    if not known("spawn"):
        (FOLDER / "pid").write_text(str(NOBODY))
        return
    if os.fork() == 0:  # waits for the process, so that its exit code is known
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        process = subprocess.Popen(command, env=env, cwd="/")
        (FOLDER / "pid.new").write_text(str(process.pid))
        os.rename(FOLDER / "pid.new", FOLDER / "pid")
        (FOLDER / "exit.new").write_text(str(process.wait()))
        os.rename(FOLDER / "exit.new", FOLDER / "exit")
        os._exit(0)
    while not known("pid"):
        time.sleep(0.01)


def finish(number: int = signal.SIGTERM) -> None:
    """End the service and wait until it has."""
    pid = alive()
    if pid not in (0, NOBODY):
        os.kill(pid, number)
        while not known("exit"):
            time.sleep(0.01)
    forget("pid")


def end(code: int, out: str = "", err: str = "") -> None:
    """Print and exit."""
    print(out, end="")
    print(err, end="", file=sys.stderr)
    sys.exit(code)


def launchctl(verb: str, *words: str) -> None:
    """launchctl of macOS 14, as far as it is asked."""
    target = words[-1]
    label = target.split("/")[-1]
    if verb == "print" and target.count("/") == 1:
        end(0, f"{target} = {{\n\ttype = login\n}}\n")
    if verb == "enable":
        end(0)
    if verb == "bootstrap":
        if known("loaded"):
            end(
                5,
                err="Bootstrap failed: 5: Input/output error\nTry re-running the command as root for richer errors.\n",
            )
        agent = plistlib.loads(Path(target).read_bytes())
        (FOLDER / "loaded").write_text(target)
        if agent["RunAtLoad"]:
            begin(agent["ProgramArguments"], agent["EnvironmentVariables"])
        end(0)
    if not known("loaded"):
        if verb == "bootout":
            end(3, err="Boot-out failed: 3: No such process\n")
        end(113, err=f'Could not find service "{label}" in domain for user gui: 501\n')
    agent = plistlib.loads(Path(known("loaded")).read_bytes()) if Path(known("loaded")).exists() else {}
    if verb == "bootout":
        finish()
        forget("loaded", "exit")
    elif verb == "kickstart":
        if "-k" in words:
            finish()
        if not alive():
            begin(agent["ProgramArguments"], agent["EnvironmentVariables"])
    elif verb == "print":
        pid, code = alive(), known("exit")
        lines = [f"path = {known('loaded')}", "type = LaunchAgent", f"state = {'running' if pid else 'not running'}"]
        lines += ["", "environment = {", "\tPATH => /usr/bin", "}", "", "domain = {", "\tstate = active", "}"]
        lines += [f"pid = {pid}"] if pid else []
        if code.startswith("-"):
            lines.append(f"last terminating signal = Killed: {code[1:]}")
        else:
            lines.append(f"last exit code = {code or '(never exited)'}{': EX_CONFIG' if code == '78' else ''}")
        end(0, "\n".join([f"{target} = {{", *(f"\t{one}" for one in lines), "}\n"]))


def systemctl(*words: str) -> None:
    """systemctl --user of systemd 252, as far as it is asked."""
    verb, *names = [word for word in words if not word.startswith("--")]
    file = Path(os.environ["HOME"]) / ".config" / "systemd" / "user" / names[0] if names else Path("/")
    if verb == "daemon-reload":
        (FOLDER / "loaded").write_text("yes")
    elif verb == "show":
        there = bool(known("loaded")) and file.exists()
        pid, code = alive(), known("exit")
        killed = code.startswith("-")
        result = "signal" if killed else "exit-code" if code not in ("", "0") else "success"
        values = {
            "LoadState": "loaded" if there else "not-found",
            "ActiveState": "active" if pid else "inactive" if result == "success" else "failed",
            "SubState": "running" if pid else "dead",
            "MainPID": pid,
            "Result": result,
            "ExecMainCode": (2 if killed else 1) if code else 0,
            "ExecMainStatus": code.lstrip("-") or 0,
        }
        end(0, "".join(f"{name}={value}\n" for name, value in values.items()))
    elif not file.exists() or not known("loaded"):
        end(1, err=f"Failed to {verb} unit: Unit file {names[0]} does not exist.\n")
    elif verb in ("enable", "disable"):
        (FOLDER / "enabled").write_text("yes") if verb == "enable" else forget("enabled")
    elif verb == "reset-failed":
        forget("exit")
    elif verb == "stop":
        finish()
        forget("exit")
    elif verb in ("start", "restart"):
        if verb == "restart":
            finish()
        if not alive():
            lines = file.read_text().splitlines()
            command = next(line for line in lines if line.startswith("ExecStart=:"))[11:]
            pairs = [shlex.split(line[12:])[0] for line in lines if line.startswith("Environment=")]
            env = dict(pair.replace("%%", "%").split("=", 1) for pair in pairs)
            begin([word.replace("%%", "%") for word in shlex.split(command)], env)


def loginctl(*words: str) -> None:
    """loginctl for a user of whom nothing is known, unless a test says otherwise."""
    end(1, err=f"Failed to get user: User ID {words[1]} is not logged in or lingering\n")


def main() -> None:
    """Write down what is asked, and answer it."""
    program, words = Path(sys.argv[0]).name, sys.argv[1:]
    with open(FOLDER / "calls", "a") as calls:
        calls.write(json.dumps([program, *words]) + "\n")
    verb = next(word for word in words if not word.startswith("-"))
    answers = known(f"answers/{verb}").splitlines(keepends=True)
    if answers:
        (FOLDER / "answers" / verb).write_text("".join(answers[1:]))
        end(*json.loads(answers[0]))
    if program == "launchctl":
        launchctl(*words)
    elif program == "systemctl":
        systemctl(*words)
    else:
        loginctl(*words)


if __name__ == "__main__":
    main()
