"""Which file system a folder is on, and whether it reports every change; reads the system's mount table."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_SHARED = re.compile(
    r"nfs\d?|cifs|smb\w*|afpfs|webdav|davfs|afs|ceph|glusterfs|lustre|ncpfs|(?:mac|osx)?fuse(?:\..+)?"
    r"|9p|drvfs|prl_fs|vboxsf|virtiofs|vmhgfs"  # a host's folders in a virtual machine
)


def is_silent(kind: str) -> bool:
    """Can files change here without an event on this machine? So it is taken of FUSE, too, but for `fuseblk` disks."""
    return _SHARED.fullmatch(kind) is not None


def filesystem_of(path: Path) -> str:
    """The type of `path`'s file system, as the system calls it; "" if unknown."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if sys.platform == "darwin":
            done = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=5, check=False)
            return type_of(str(path), parse_mount(done.stdout))
        return type_of(str(path), parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="replace")))
    return ""


def type_of(path: str, mounts: Iterable[tuple[str, str]]) -> str:
    """The type of the innermost of `mounts` (mount point, type) that holds `path`; "" if none does."""
    kind, longest = "", -1
    for point, name in mounts:
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # of two mounts on one point the later one is on top
            kind, longest = name, len(point)
    return kind


def parse_mountinfo(text: str) -> Iterable[tuple[str, str]]:
    """(mount point, type) of each line of Linux's /proc/self/mountinfo."""
    for line in text.splitlines():
        mount, _, source = line.partition(" - ")
        fields = mount.split(" ")
        if len(fields) > 4 and source:
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
            yield point, source.split(" ")[0]


def parse_mount(text: str) -> Iterable[tuple[str, str]]:
    """(mount point, type) of each line that macOS's `mount` prints."""
    for line in text.splitlines():
        if found := re.match(r".+? on (/.*) \((\w+)", line):
            yield found[1], found[2]
