"""Chat models: `base` says what one is, each other module holds one; `make` chooses by name."""

from __future__ import annotations

from tarsd.errors import ConfigError
from tarsd.providers.base import Provider

AVAILABLE = ("extractive", "fake")


def make(model: str) -> Provider:
    """The provider that `chat.model` names; "auto" is the extractive one. Raises `ConfigError` for an unknown name."""
    if model in ("auto", "extractive"):
        from tarsd.providers.extractive import Extractive

        return Extractive()
    if model == "fake":
        from tarsd.providers.fake import Fake

        return Fake()
    raise ConfigError(
        [f"chat.model: “{model}” is not a chat model this version knows."],
        f"Use one of: auto, {', '.join(AVAILABLE)}.",
    )
