"""A service under a real systemd, where there is one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tarsd.config import vault_id

STAGE = """
set -e
mkdir "$CGROUP"
echo $$ > "$CGROUP/cgroup.procs"
exec unshare --mount --pid --fork --kill-child --cgroup sh -c '
    set -e
    mount --make-rprivate /
    mount -t proc proc /proc
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
    chmod 700 "$XDG_RUNTIME_DIR"
    /usr/lib/systemd/systemd --user >/dev/null 2>&1 &
    for _ in $(seq 100); do
        systemctl --user is-system-running >/dev/null 2>&1 && exec "$PYTHON" -c "$SCRIPT"
        sleep 0.1
    done
    exit 77' || exit 77
"""
"""A systemd of this user in namespaces of its own: it sees no other, and all that it started ends with the test."""


SCRIPT = """
import json, os, signal, subprocess, sys, time

def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    return done.returncode, done.stdout, done.stderr

def service(verb):
    code, out, err = run(sys.executable, "-P", "-m", "tarsd.cli", "service", verb, "--json")
    return {"code": code, **json.loads(out)}

def shown(*names):
    lines = run("systemctl", "--user", "show", os.environ["UNIT"], "--property=" + ",".join(names))[1].splitlines()
    return dict(line.split("=", 1) for line in lines)

def until(name, value):
    end = time.monotonic() + 60
    while not shown(name)[name].startswith(value) and time.monotonic() < end:
        time.sleep(0.1)
    return shown(name)[name]

seen = {"install": service("install")}
seen["told"] = until("StatusText", "Serving no")
seen["verify"] = run("systemd-analyze", "--user", "verify", seen["install"]["file"])
pid = seen["install"]["pid"]
seen["command"] = open(f"/proc/{pid}/cmdline").read().split(chr(0))[:-1]
seen["given"] = open(f"/proc/{pid}/environ").read()
seen["limits"] = shown("NoNewPrivileges", "Nice", "LimitCORE", "WatchdogUSec")
os.kill(pid, signal.SIGKILL)
until("NRestarts", "1")
until("SubState", "running")
seen["again"] = service("status")
seen["stop"] = service("stop")
seen["stopped"] = service("status")
other = subprocess.Popen([sys.executable, "-P", "-m", "tarsd.cli", "run"], stdout=-3, stderr=-3)
end = time.monotonic() + 60
while service("status")["daemon"] is None and time.monotonic() < end:
    time.sleep(0.1)
seen["beside"] = service("start")
seen["beside"]["state"] = until("ActiveState", "failed"), shown("Result", "SubState", "NRestarts")
seen["other"] = other.pid
other.terminate()
other.wait(30)
seen["start"] = service("start")
seen["uninstall"] = service("uninstall")
seen["gone"] = shown("LoadState", "MainPID")
print(json.dumps(seen))
"""


def cgroups() -> Path | None:
    """Where the tree of control groups is mounted, in which a systemd works."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return next((Path(line.split()[4]) for line in mounts if " - cgroup2 " in line), None)


@pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or os.path.isdir("/run/systemd/system"),
    reason="a systemd of its own needs root in a container or machine that has none running",
)
def test_a_real_systemd_takes_it(vault: Path, home: Path, tmp_path: Path) -> None:
    programs = ("systemctl", "systemd-analyze", "unshare")
    tree = cgroups()
    if tree is None or any(shutil.which(one) is None for one in programs):
        pytest.skip("systemd, unshare or control groups are not there")
    root = tmp_path / """no "tes" 100% $HOME ${X} %h \\ 'q' ü"""
    (root / ".obsidian").mkdir(parents=True)
    (root / "a.md").write_text("tea")
    (home / "config.toml").write_text(f"[vault]\npath = {json.dumps(str(root))}\n[embedding]\nmodel = 'table'\n")
    group = tree / f"tarsd-test-{os.getpid()}"
    env = {**os.environ, "HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": "/run/user/0", "CGROUP": str(group)}
    env |= {"UNIT": f"tarsd-{vault_id(root)}.service", "PYTHON": sys.executable, "SCRIPT": SCRIPT}
    try:
        done = subprocess.run(["sh", "-c", STAGE], env=env, capture_output=True, text=True, timeout=110, check=False)
    finally:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    if done.returncode == 77:
        pytest.skip(f"no namespaces for a systemd of its own: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["install"]["code"], seen["install"]["answers"]) == (0, True)
    assert seen["told"].startswith('Serving no "tes" 100%')
    assert seen["verify"] == [0, "", ""]
    assert seen["command"][1:] == ["-P", "-m", "tarsd.cli", "run", "--vault", str(root)]
    assert {"LC_ALL=C.UTF-8", f"TARSD_HOME={home}", "PATH=/usr/local/bin:/usr/bin:/bin"} <= {*seen["given"].split("\0")}
    assert seen["limits"] == {"NoNewPrivileges": "yes", "Nice": "5", "LimitCORE": "0", "WatchdogUSec": "1min"}
    assert seen["again"]["answers"] and seen["again"]["pid"] != seen["install"]["pid"]
    assert (seen["stop"]["code"], seen["stopped"]["code"], seen["stopped"]["failed"]) == (0, 3, False)
    assert seen["beside"]["code"] == 4
    assert seen["beside"]["daemon"]["process"]["pid"] == seen["other"]
    # systemd calls an end before READY=1 a failure, and must not try it again and again
    assert seen["beside"]["state"] == ["failed", {"Result": "protocol", "SubState": "failed", "NRestarts": "0"}]
    assert seen["start"]["code"] == 0
    assert seen["uninstall"]["code"] == 0
    assert seen["gone"] == {"LoadState": "not-found", "MainPID": "0"}
