"""What programs ask of the network, and which files they leave.

Two pairs of eyes: an audit hook sees what Python opens and looks up, on every system; strace, where it is there and
allowed, sees every system call, those of native libraries too. Files are seen by whoever lists the folder afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

HOOK = """
import os, sys
_file = os.open(os.environ["TEST_NETWORK"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def _note(event, arguments, file=_file, write=os.write):
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        if isinstance(address, tuple):
            write(file, f"connect {address[0]}\\n".encode())
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"):
        write(file, f"look up {arguments[0]}\\n".encode())
sys.addaudithook(_note)
"""

LOOPBACK = re.compile(r"127\.\d+\.\d+\.\d+|::1|localhost|None")
_CALL = re.compile(
    r"(?:connect|sendto|sendmsg|sendmmsg)\(.*?(?:sin_addr=inet_addr|inet_pton\(AF_INET6, )\(?\"([^\"]+)\""
)
_ROUTE = re.compile(r"sin6?_port=htons\(0\)|nlmsg")
"""A socket that is connected to port 0 sends nothing: resolvers ask the system's routes that way."""


class Network:
    """`Network(folder).watched(command)` is the command to run instead, with `env`; `found` is what was seen."""

    def __init__(self, folder: Path, native: bool = True) -> None:
        self._hook, self._log, self._calls = folder / "hook", folder / "network", folder / "calls"
        self._hook.mkdir(parents=True)
        self._calls.mkdir()
        (self._hook / "sitecustomize.py").write_text(HOOK)
        self._log.touch()
        self._strace = _strace() if native else ""
        self.env = {"PYTHONPATH": str(self._hook), "TEST_NETWORK": str(self._log)}

    @property
    def native(self) -> bool:
        """Whether native libraries are seen, too."""
        return bool(self._strace)

    def watched(self, command: Sequence[str]) -> list[str]:
        if not self._strace:
            return list(command)
        file = self._calls / str(len(list(self._calls.iterdir())))
        file.touch()
        calls = "trace=connect,sendto,sendmsg,sendmmsg"
        return [self._strace, "-f", "-qq", "--seccomp-bpf", "-e", calls, "-o", str(file), *command]

    def found(self) -> list[str]:
        """Every address beyond this machine that was asked, and every name that was looked up."""
        lines = self._log.read_text().splitlines()
        far = [line for line in lines if not LOOPBACK.fullmatch(line.rpartition(" ")[2])]
        for file in sorted(self._calls.iterdir()):
            for line in file.read_text(errors="replace").splitlines():
                called = _CALL.search(line)
                if called and not LOOPBACK.fullmatch(called[1]) and not _ROUTE.search(line):
                    far.append(line)
        return far


def _strace() -> str:
    """The path of a strace that works here, or ""."""
    program = shutil.which("strace")
    if program is None:
        return ""
    tried = subprocess.run([program, "-f", "-qq", "--seccomp-bpf", "-o", os.devnull, "true"], capture_output=True)
    return program if tried.returncode == 0 else ""
