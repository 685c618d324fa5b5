"""What tarsd put on this machine for a vault, and its removal. Nothing here touches a vault."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tarsd import keys
from tarsd.config import expand, short_folder
from tarsd.config.places import models_folder, paths, user_home
from tarsd.errors import ClientError, ConfigError, Refused

ID = re.compile(r"[0-9a-f]{12}")
END_S = 20.0
PAUSE_S = 0.05
TELEMETRY = Path("Microsoft", "DeveloperTools", ".onnxruntime")
"""Where the model's runtime kept these, in the user's caches, before that was switched off."""
TELEMETRY_FILES = ("deviceid", "deviceid.lock", *(f"onnxruntime.db{end}" for end in ("", "-wal", "-shm", "-journal")))
PLACES = ("HOME", "TARSD_HOME", "TARSD_CONFIG")
"""Variables that say where keys are; the others may hold keys themselves, and those nobody can take away."""


@dataclass(frozen=True)
class InstalledFile:
    """Something on disk: what it is, where, and how many bytes."""

    what: str
    path: Path
    bytes: int


def vaults(env: Mapping[str, str]) -> set[str]:
    """The ids of all vaults that have an index, conversations, or a daemon that listens or has listened."""
    places = paths("0" * 12, env)
    folders = (places.cache.parent, places.state.parent)
    names = {entry.name for folder in folders for entry in _listed(folder) if entry.is_dir()}
    names |= {entry.stem for entry in _listed(places.socket.parent) if entry.suffix == ".sock"}
    return {name for name in names if ID.fullmatch(name)}


def of_daemon(identity: str, env: Mapping[str, str]) -> list[InstalledFile]:
    """What a daemon that was killed leaves lying: its socket."""
    return list(_there("socket", [paths(identity, env).socket]))


def of_vault(identity: str, env: Mapping[str, str]) -> list[InstalledFile]:
    """What belongs to this vault alone."""
    places = paths(identity, env)
    logs = [entry for entry in _listed(places.logs) if entry.name.startswith(f"tarsd-{identity}.log")]
    return [
        *_there("index", [places.cache]),
        *_there("conversations, undo", [places.state]),
        *_there("log", logs),
    ]


def shared(env: Mapping[str, str]) -> list[InstalledFile]:
    """What all vaults use: settings, vectors, models and their tokens, keys; and what the model's runtime once left."""
    places = paths("0" * 12, env)
    vectors = [entry for entry in _listed(places.cache.parent) if entry.name.startswith(places.embeddings_db.name)]
    return [
        *_there("vectors", vectors),
        *_there("models", [models_folder(env)]),
        *_there("what models used", [places.usage]),
        *_there("settings", [places.config_file]),
        *_there("keys", [keys.key_file(env)]),
        *_there("runtime's telemetry", [folder / name for folder in _telemetry(env) for name in TELEMETRY_FILES]),
    ]


def _telemetry(env: Mapping[str, str]) -> list[Path]:
    """The folders of the runtime's telemetry that are really there, and no links to elsewhere."""
    home = user_home(env)
    caches = Path(env.get("XDG_CACHE_HOME") or home / ".cache")
    roots = dict.fromkeys((caches, home / "Library" / "Application Support", home / "Library" / "Caches"))
    folders = [root / TELEMETRY for root in roots]
    return [folder for folder in folders if folder.is_dir() and not folder.is_symlink()]


def kept_keys(env: Mapping[str, str]) -> list[str]:
    """The names of the keys that were given to tarsd, wherever they are kept."""
    own = {name: env[name] for name in env if name in PLACES or name.startswith("XDG_")}
    kept = []
    for name in keys.VENDORS:
        with contextlib.suppress(ConfigError):  # a file that is open to others is listed as a file
            if keys.source(name, own):
                kept.append(name)
    return kept


def measured(what: str, path: Path) -> InstalledFile:
    """What lies at a path, with its size."""
    return InstalledFile(what, path, _size(path))


def check(traces: list[InstalledFile], notes: list[Path]) -> None:
    """Raises Refused if removing these would touch a folder of notes."""
    for trace in traces:
        real = Path(os.path.realpath(trace.path.parent)) / trace.path.name
        for root in notes:
            if real == root or root in real.parents or real in root.parents:
                raise Refused(
                    f"{trace.path} and the notes in {root} are inside each other; nothing was removed.",
                    "Check what is in it, then remove it yourself.",
                )


@contextlib.contextmanager
def hold(identity: str, env: Mapping[str, str]) -> Iterator[None]:
    """Hold the daemon's lock, so that none runs meanwhile; one that is ending is waited for.

    Raises ClientError when it does not end.
    """
    try:
        handle = os.open(paths(identity, env).lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # none has run, or its folder is not ours to change: then nothing can be removed either
        yield
        return
    try:
        until = time.monotonic() + END_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise ClientError(
                        "The daemon does not stop.", "Stop it yourself: tarsd doctor shows its process."
                    ) from None
                time.sleep(PAUSE_S)
        yield
    finally:
        os.close(handle)


def remove(trace: InstalledFile) -> None:
    """Remove a file, a link, or a folder with its content. Raises OSError."""
    try:
        mode = os.lstat(trace.path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        shutil.rmtree(trace.path)
    else:
        trace.path.unlink()


def tidy(identity: str, env: Mapping[str, str], more: list[Path]) -> None:
    """Remove the folders that are left empty: those of tarsd, the ones in `more`, and those above them."""
    places = paths(identity, env)
    own = [places.cache.parent, places.logs, places.state.parent, places.config_file.parent, places.socket.parent]
    home = expand(env["TARSD_HOME"], env) if env.get("TARSD_HOME") else None
    for folder in [*own, *_telemetry(env), *more]:
        for part in (folder, *folder.parents):
            inside = home is not None and part.is_relative_to(home)
            if not (inside or part == short_folder() or _below_home(part, env)):
                break
            try:
                part.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                break
            if part == home:
                break


def _below_home(folder: Path, env: Mapping[str, str]) -> bool:
    home = user_home(env)
    return folder.is_relative_to(home) and folder != home


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _there(what: str, candidates: list[Path]) -> Iterator[InstalledFile]:
    return (measured(what, path) for path in candidates if os.path.lexists(path))


def _size(path: Path) -> int:
    """The bytes of a file, or of all in a folder; links are not followed."""
    total = 0
    with contextlib.suppress(OSError):
        about = os.lstat(path)
        if not stat.S_ISDIR(about.st_mode):
            return about.st_size
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total
