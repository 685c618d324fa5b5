"""A fresh home and the README: its first ten commands run as they are printed, in their order, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.engine import until

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FIRST = 10
INSTALLER = """#!/bin/sh
# pipx without the network: the same commands in the same place, of the package that the tests run on
[ "$*" = "install ." ] && [ -f pyproject.toml ] || exit 2
mkdir -p ~/.local/bin
"""
COMMAND = """
printf '#!/bin/sh\\nexec "{python}" -c "from {module} import {function}; {function}()" "$@"\\n' > ~/.local/bin/{name}
chmod 700 ~/.local/bin/{name}
echo "installed {name}"
"""


def printed(text: str) -> list[str]:
    """The commands of a document, without the remarks behind them."""
    found = []
    for kind, block in BLOCK.findall(text):
        lines = [line for line in block.splitlines() if kind == "sh" or line.startswith("$ ")]
        found += [re.sub(r"\s{2,}# .*$", "", line).removeprefix("$ ") for line in lines]
    return found


@pytest.fixture
def newcomer(short_tmp: Path) -> Iterator[Mapping[str, str]]:
    """The environment of somebody who has a home, notes, and an installer of Python programs."""
    shutil.copytree(ROOT / "tarsd" / "data" / "sample-vault", short_tmp / "Notes")
    installer = short_tmp / "programs" / "pipx"
    installer.parent.mkdir()
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    commands = {name: target.split(":") for name, target in scripts.items()}
    installer.write_text(
        INSTALLER
        + "".join(
            COMMAND.format(name=name, python=sys.executable, module=module, function=function)
            for name, (module, function) in commands.items()
        )
    )
    installer.chmod(0o700)
    path = f"{installer.parent}:{short_tmp}/.local/bin:/usr/bin:/bin"
    yield {"HOME": str(short_tmp), "PATH": path, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}


@pytest.mark.skipif(not shutil.which("bash"), reason="the examples are for bash")
def test_the_first_commands_of_the_readme_run_as_printed(newcomer: Mapping[str, str]) -> None:
    commands = printed((ROOT / "README.md").read_text(encoding="utf-8"))[:FIRST]
    assert commands[:3] == ["pipx install .", "tarsd init --vault ~/Notes", "tarsd run"]
    assert len(commands) == FIRST
    daemons: list[subprocess.Popen[bytes]] = []

    def done(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            env=newcomer,
            cwd=ROOT,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=100,
        )

    try:
        for command in commands:
            if command == "tarsd run":  # it stays in the terminal in which it was typed
                daemons.append(
                    subprocess.Popen(["bash", "-c", command], env=newcomer, cwd=ROOT, stderr=subprocess.PIPE)
                )
                until(lambda: done("tarsd status --wait").returncode == 0)
                continue
            result = done(command)
            assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
            assert result.stdout and "Traceback" not in result.stderr, command
        assert done("tarsd stop").returncode == 0
        assert all(daemon.wait(30) == 0 for daemon in daemons)
    finally:
        for daemon in daemons:
            if daemon.poll() is None:
                daemon.kill()
            daemon.communicate()


def test_everything_that_it_says_to_type_is_a_command(newcomer: Mapping[str, str]) -> None:
    """No step of the README needs a path to a program."""
    for command in printed((ROOT / "README.md").read_text(encoding="utf-8")):
        assert command.split()[0] in ("pipx", "tarsd", "tars"), command
        assert ".venv" not in command, command
    assert os.access(ROOT / "scripts" / "run", os.X_OK)
