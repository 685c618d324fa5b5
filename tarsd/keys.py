"""API keys and tokens: from the environment, the system keyring, or a file that only its owner can read.

A key is never printed, logged, or written anywhere near a vault.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

from tarsd import files, foreign
from tarsd.config import config_file
from tarsd.errors import BadRequest, ConfigError

VENDORS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "todoist": "TODOIST_API_TOKEN", "tcp": None}
"""The names of keys, and the variable in which others look for each; `tcp` is the token of our own listener."""

SERVICE = "tarsd"


def get(name: str, env: Mapping[str, str] | None = None) -> str | None:
    """The key, or None: TARSD_<NAME>_KEY, then what was told to tarsd (keyring, file), then the vendor's variable.

    Raises ConfigError when the file of keys is open to others, or is no such file.
    """
    key = _find(name, os.environ if env is None else env)[0]
    foreign.keep_secret(key)
    return key


def source(name: str, env: Mapping[str, str] | None = None) -> str | None:
    """Where `get` finds the key, for people to read; None when there is none."""
    return _find(name, os.environ if env is None else env)[1]


def put(name: str, key: str, env: Mapping[str, str] | None = None) -> str:
    """Keeps the key in the keyring, or in the file where there is none; answers which."""
    env = os.environ if env is None else env
    _check(name)
    key = key.strip()
    foreign.keep_secret(key)
    if not key or not key.isprintable() or any(letter.isspace() for letter in key):
        raise BadRequest("That is not a key: it is empty or contains spaces or line breaks.", field="key")
    if keyring := _keyring():
        keyring.set_password(SERVICE, name, key)
        _write({kept: value for kept, value in _read(env).items() if kept != name}, env)
        return "the system keyring"
    _write({**_read(env), name: key}, env)
    return str(key_file(env))


def remove(name: str, env: Mapping[str, str] | None = None) -> bool:
    """Forgets what `put` kept; whether there was anything."""
    env = os.environ if env is None else env
    _check(name)
    found = False
    if (keyring := _keyring()) and keyring.get_password(SERVICE, name):
        keyring.delete_password(SERVICE, name)
        found = True
    kept = _read(env)
    if name in kept:
        del kept[name]
        _write(kept, env)
        found = True
    return found


def key_file(env: Mapping[str, str]) -> Path:
    """The key file for machines without a keyring, beside the config."""
    return config_file(env).parent / "keys.json"


def _check(name: str) -> None:
    if name not in VENDORS:
        raise BadRequest(
            f"There is no key named {name!r}.", f"Keys can be set for: {', '.join(VENDORS)}.", field="name"
        )


def _find(name: str, env: Mapping[str, str]) -> tuple[str | None, str | None]:
    _check(name)
    vendor = VENDORS[name]
    if key := env.get(f"TARSD_{name.upper()}_KEY", "").strip():
        return key, f"TARSD_{name.upper()}_KEY"
    if (keyring := _keyring()) and (key := _ask(keyring, name)):
        return key, "the system keyring"
    if key := _read(env).get(name, ""):
        return key, str(key_file(env))
    if vendor and (key := env.get(vendor, "").strip()):
        return key, vendor
    return None, None


def _keyring() -> Any:
    """The system's keyring, or None where there is no safe one (a server, a Raspberry Pi without a desktop)."""
    try:
        keyring = _loaded_keyring()
        backend = keyring.get_keyring()
        return backend if backend.priority >= 1 else None  # below 1: none at all, or plain text in a file
    except Exception:  # backends fail in their own ways: no session bus, no library
        return None


@cache
def _loaded_keyring() -> Any:
    """The module, its backends loaded in a thread: it keeps for ever the errors of those that cannot be, with the
    stack of who asked and all that is on it."""

    def load() -> None:
        with contextlib.suppress(Exception):
            import keyring

            keyring.get_keyring()

    thread = Thread(target=load, name="tarsd-keyring")
    thread.start()
    thread.join()
    import keyring

    return keyring


def _ask(keyring: Any, name: str) -> str:
    try:
        return str(keyring.get_password(SERVICE, name) or "")
    except Exception:  # locked, or gone; the file and the environment are still there
        return ""


def _read(env: Mapping[str, str]) -> dict[str, str]:
    """The keys in the file."""
    file = key_file(env)
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError([f"{file} cannot be read: {error.strerror}"]) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ConfigError([f"{file} is not a file"], "Move it away.")
    with open(handle, "rb") as stream:
        about = os.fstat(handle)
        if about.st_uid != os.getuid() or about.st_mode & 0o077:
            mode = stat.S_IMODE(about.st_mode)
            raise ConfigError(
                [f"{file} can be read by others (mode {mode:04o}), so its keys are not used"],
                f"Run: chmod 600 '{file}'. If others had access, replace the keys.",
            )
        raw = stream.read()
    try:
        values = json.loads(raw)
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise ValueError
    except ValueError:  # the text itself is not shown: it holds keys
        raise ConfigError([f"{file} is not a key file"], 'It should look like {"openai": "…"}.') from None
    return values


def _write(keys: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Replaces the file at once; no moment at which others could read it."""
    file = key_file(env)
    if not keys and not file.exists():
        return
    files.make_folder(file.parent)
    files.replace(file, json.dumps(dict(keys), indent=1).encode())
