"""Keyrings for tests: one in memory, none at all, and the canary that stands where the real one would be reached."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import keyring.backend

CANARY = f"{__name__}.Canary"
MARK = "KEYRING_CANARY"
"""The variable that names the file in which a canary writes who reached it."""


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory; `broken` is one that stays locked for readers, `locked` one that takes nothing."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.broken = False
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.broken:
            raise RuntimeError("locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise RuntimeError(f"locked {service} {username} {password}")
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.locked:
            raise RuntimeError(f"locked {service} {username}")
        del self.kept[service, username]


class NoRing(Ring):
    """What a machine without a keyring has: its priority says that it keeps nothing."""

    priority = 0


class Canary(keyring.backend.KeyringBackend):
    """Whoever asks it for anything has left its test: it writes a mark, which fails the test, and refuses."""

    priority = 99

    def get_password(self, service: str, username: str) -> str | None:
        sing()
        return None

    def set_password(self, service: str, username: str, password: str) -> None:
        sing()

    def delete_password(self, service: str, username: str) -> None:
        sing()


def sing() -> None:
    """Write down who is calling, for the test that began it. Raises AssertionError."""
    with Path(os.environ[MARK]).open("a", encoding="utf-8") as file:
        file.write("".join(traceback.format_stack(limit=12)) + "\n")
    raise AssertionError("a test reached the keyring of the person who runs it")
