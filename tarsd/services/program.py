"""What a service starts: the Python of this installation by its own path, with all of its environment spelled out.

A service has no shell: no PATH, no profile, no exported key. What would be missing is said when it is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tarsd import keys
from tarsd.config import Config, as_tables, expand, load
from tarsd.config.places import user_home
from tarsd.errors import Refused
from tarsd.services.base import Launch, Machine, ServiceError

CHECK_S = 120.0
MODULE = ("-P", "-m", "tarsd.cli")
"""-P: no module may come from the folder in which a service happens to start, which is the home folder."""

PATHS = {"darwin": "/usr/bin:/bin:/usr/sbin:/sbin", "linux": "/usr/local/bin:/usr/bin:/bin"}
LOCALES = {"darwin": "en_US.UTF-8", "linux": "C.UTF-8"}
PLACES = ("TARSD_HOME", "TARSD_CONFIG", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Variables that say where files are: without them the service would look elsewhere."""

PASSING = re.compile(r"/uv/(?:archive|builds|environments)-v\d+/|/pipx/\.cache/")
"""Where `uvx`, `uv run --with` and `pipx run` put an installation that is not meant to stay."""

UNWRITABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""What neither kind of file can hold: control characters, and bytes that are no UTF-8."""

INSTALL = "Install it permanently (uv tool install, pipx install, or a virtual environment), and try again."


def launch(config: Config, machine: Machine) -> Launch:
    """What the service of this vault is to start.

    Raises ConfigError with the faults that the settings have in the service's own environment, Refused to root for a
    vault of somebody else, and ServiceError where the program would not stay or cannot be named in a file.
    """
    _check_user(config, machine)
    arguments = (interpreter(), *MODULE, "run", "--vault", str(config.vault))
    environment = _environment(config, machine)
    for text in (*arguments, *environment.values()):
        if UNWRITABLE.search(text):
            raise ServiceError(
                f"A service cannot use this path: {text!a}.", "Rename it: use UTF-8 without control characters."
            )
    load(vault=config.vault, env=environment)
    return Launch(config.vault_id, config.vault.name, arguments, environment)


def interpreter(prefix: str = sys.prefix, running: str = sys.executable) -> str:
    """The absolute path of this installation's Python. Raises ServiceError when it is none that stays.

    A shim of pyenv, asdf or the like starts another program each time the version is changed, so it is never taken;
    and of the names that Python has, that one which outlives an upgrade.
    """
    if PASSING.search(f"{prefix}/"):
        raise ServiceError("This tarsd runs from a cache that is emptied from time to time.", INSTALL)
    names = [os.path.join(prefix, "bin", name) for name in ("python3", "python")]
    for name in [*names, running]:
        if not os.path.isabs(name) or not os.access(name, os.X_OK) or is_shim(name):
            continue
        if is_shim(running) or os.path.samefile(name, running):
            return name
    raise ServiceError(f"A service cannot start this Python: {running}.", INSTALL)


def is_shim(program: str) -> bool:
    """Whether it only finds another program, and is not that program: a script, or what a version manager put there."""
    if "shims" in Path(program).parts:
        return True
    try:
        with open(program, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def allowed_program(program: str) -> str:
    """What macOS asks to allow when this Python is launched: the file behind the links.

    A Python that comes as a framework (Homebrew, python.org) goes on as the application in it.
    """
    real = Path(os.path.realpath(program))
    for folder in real.parents:
        application = folder / "Resources" / "Python.app"
        if folder.parent.name == "Versions" and application.is_dir():
            return str(application)
    return str(real)


def check(launch: Launch, machine: Machine) -> None:
    """See that the program starts with nothing but the service's environment. Raises ServiceError when it does not."""
    command = (launch.arguments[0], *MODULE, "--version")
    done = machine.runner.run(*command, timeout=CHECK_S, env=launch.environment)
    if done.code:
        lines = done.err.strip().splitlines() or [done.complaint]
        raise ServiceError(f"tarsd does not start outside this shell: {lines[-1]}.", INSTALL)


def notices(config: Config, launch: Launch, machine: Machine) -> list[str]:
    """Sentences on what this shell has and the service will not have: settings, keys, commands."""
    return [
        *_settings(config, launch),
        *(
            f"The key for {name} is only set in this shell. To give it to the service: tarsd key set {name}"
            for name in _wanted_keys(config)
            if keys.get(name, machine.env) and not keys.get(name, launch.environment)
        ),
        *(
            f"The MCP server {server.name} cannot be started: {server.command[0]} was not found."
            for server in config.mcp
            if server.command and shutil.which(server.command[0], path=launch.environment["PATH"]) is None
        ),
    ]


def _settings(config: Config, launch: Launch) -> Iterator[str]:
    here, there = as_tables(config), as_tables(load(vault=config.vault, env=launch.environment))
    for section, values in here.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            if there[section][key] != value:
                yield (
                    f"{section}.{key} is set by a variable of this shell, but is {there[section][key]!r} for the "
                    "service: put it in the config."
                )


def _wanted_keys(config: Config) -> Sequence[str]:
    """The names of the keys that these settings have a use for."""
    models = (config.embedding.model, config.chat.model, config.chat.fallback)
    wanted = [name for name in ("openai", "anthropic") if any(model.startswith(f"{name}:") for model in models)]
    return [*wanted, "todoist", *(["tcp"] if config.http.enabled else [])]


def _environment(config: Config, machine: Machine) -> Mapping[str, str]:
    """All that the daemon is to have. Never a key: this is written into a file."""
    system = "darwin" if machine.platform == "darwin" else "linux"
    env = machine.env
    environment = {"HOME": str(user_home(env)), "PATH": _path(config, env, PATHS[system])}
    environment |= dict.fromkeys(("LANG", "LC_ALL"), LOCALES[system])
    return environment | {name: str(expand(env[name], env)) for name in PLACES if env.get(name)}


def _path(config: Config, env: Mapping[str, str], system: str) -> str:
    """The system's folders, and before them those of the commands that the config names for MCP servers."""
    commands = [server.command[0] for server in config.mcp if server.command]
    programs = [shutil.which(command, path=env.get("PATH")) for command in commands if not os.path.isabs(command)]
    folders = [os.path.dirname(os.path.abspath(program)) for program in programs if program]
    return ":".join(dict.fromkeys([*folders, *system.split(":")]))


def _check_user(config: Config, machine: Machine) -> None:
    if machine.uid != 0:
        return
    try:
        owner = os.stat(config.vault).st_uid
    except OSError:
        owner = 0
    if owner or machine.env.get("SUDO_UID", "0") != "0":
        raise Refused("The service runs as you, not as root.", "Run this without sudo.")
