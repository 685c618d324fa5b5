"""Where things are: the config file, the folders of a vault's daemon and its socket. Paths are computed, never made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tarsd.errors import ConfigError

if TYPE_CHECKING:
    from tarsd.config.settings import Paths

SOCKET_BYTES = 103
"""Longest socket path in bytes that every system takes (macOS: 104 with the closing NUL)."""


NO_PATH = "contains a NUL character"


def vault_id(path: Path) -> str:
    """The first 12 hex digits of the SHA-256 of the vault's real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:12]


def socket_path(identity: str, env: Mapping[str, str] | None = None) -> Path:
    """Where the daemon of the vault with this id listens; every client computes the same."""
    env = os.environ if env is None else env
    home = env.get("TARSD_HOME")
    folder = expand(home, env) if home else user_home(env) / ".tarsd"
    wanted = folder / f"{identity}.sock"
    return wanted if len(os.fsencode(wanted)) <= SOCKET_BYTES else short_folder() / wanted.name


def short_folder() -> Path:
    """The folder of sockets whose own path would be too long; it must be ours alone (0700)."""
    return Path(f"/tmp/tars-{os.getuid()}")


def find_sockets(vault: Path | None = None, env: Mapping[str, str] | None = None) -> list[Path]:
    """The sockets a client may mean: the one of `vault` or of the configured vault, else all there are, dead or alive.

    Faults elsewhere in the config don't matter to a client. Raises ConfigError when the file is no TOML at all.
    """
    env = os.environ if env is None else env
    meant = meant_vault(vault, env)
    if meant is not None:
        return [socket_path(vault_id(meant), env)]
    return sorted(socket_path("0" * 12, env).parent.glob("*.sock"))


def meant_vault(vault: Path | None, env: Mapping[str, str]) -> Path | None:
    """The vault a client means: the one that is named, else that of the environment or the config; None for any."""
    if vault is None and env.get("TARSD_VAULT"):
        vault = expand(env["TARSD_VAULT"], env)
    if vault is None:
        vault = configured_vault(env)
    return expand(str(vault), env) if vault is not None else None


def config_file(env: Mapping[str, str] | None = None) -> Path:
    """The file that is read: TARSD_CONFIG, or config.toml under TARSD_HOME or in the user's config folder."""
    env = os.environ if env is None else env
    if env.get("TARSD_CONFIG"):
        return expand(env["TARSD_CONFIG"], env)
    return _folders(env)[0] / "config.toml"


def expand(text: str, env: Mapping[str, str]) -> Path:
    """`~` and relative paths made absolute; links are not followed."""
    if text == "~" or text.startswith("~/"):
        text = str(user_home(env)) + text[1:]
    return Path(os.path.abspath(os.path.expanduser(text)))


def user_home(env: Mapping[str, str]) -> Path:
    """The home folder, by HOME or by the password file."""
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def paths(identity: str, env: Mapping[str, str]) -> Paths:
    """Every place on disk that belongs to the vault with this id."""
    from tarsd.config.settings import Paths

    _, cache, state, logs = _folders(env)
    return Paths(
        config_file=config_file(env),
        cache=cache / identity,
        state=state / identity,
        logs=logs,
        socket=socket_path(identity, env),
        index_db=cache / identity / "index.db",
        files_db=cache / identity / "files.db",
        embeddings_db=cache / "embeddings.db",
        lock=state / identity / "daemon.lock",
        usage=state / "usage",
    )


def models_folder(env: Mapping[str, str] | None = None) -> Path:
    """Where the files of models lie that do not come with the program; all vaults share them."""
    return _folders(os.environ if env is None else env)[1] / "models"


def configured_vault(env: Mapping[str, str]) -> Path | None:
    """The vault that the file names, whatever else is wrong in it. Raises ConfigError when it is no TOML."""
    file = config_file(env)
    if not env.get("TARSD_CONFIG") and not os.path.exists(file):
        return None
    from tarsd.config.file import read_table  # tomllib is not needed by a client that was told the vault

    section = read_table(file, env)[0].get("vault")
    path = section.get("path") if isinstance(section, dict) else None
    if isinstance(path, str) and "\0" in path:
        raise ConfigError([f"{file}: vault.path: {NO_PATH}"])
    return expand(path, env) if isinstance(path, str) and path else None


def _folders(env: Mapping[str, str]) -> tuple[Path, Path, Path, Path]:
    """The folders of config, cache, state and logs."""
    if env.get("TARSD_HOME"):
        home = expand(env["TARSD_HOME"], env)
        return home, home / "cache", home / "state", home / "logs"
    from platformdirs import PlatformDirs  # needed by few tests, and not at all under TARSD_HOME

    dirs = PlatformDirs("tarsd", appauthor=False)
    return dirs.user_config_path, dirs.user_cache_path, dirs.user_state_path, dirs.user_log_path
