"""Chat models: `base` says what one is, each other module holds one; `make` chooses by name, `offered` lists them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final

from tarsd.config.settings import ChatSettings
from tarsd.config.spelling import SPELLINGS
from tarsd.errors import ConfigError, ProviderError, ProviderRefused, TarsdError
from tarsd.providers.base import ModelInfo, Provider

AVAILABLE: Final = SPELLINGS["chat"]
LISTING_S: Final = 8.0

Key = Callable[[str], str | None]
"""Gives the key of a vendor, or None; `keys.get` is one."""


def _no_key(name: str) -> str | None:
    return None


def make(name: str, settings: ChatSettings | None = None, key: Key = _no_key) -> Provider:
    """The provider that a name in `chat.model` or `chat.fallback` stands for; nothing is connected yet.

    Raises `ConfigError` for an unknown name. No SDK is loaded before it is used.
    """
    settings = ChatSettings() if settings is None else settings
    family, _, model = name.partition(":")
    if name == "extractive":
        from tarsd.providers.extractive import ExtractiveProvider

        return ExtractiveProvider()
    if family == "fake":
        from tarsd.providers.fake import FakeProvider

        return FakeProvider()
    if name == "auto":
        from tarsd.providers.auto import AutoProvider

        return AutoProvider(host=settings.ollama_host, context=settings.context, ca_file=settings.ollama_ca_file)
    if family == "ollama" and model:
        from tarsd.providers.ollama import OllamaProvider

        return OllamaProvider(
            model, host=settings.ollama_host, context=settings.context, ca_file=settings.ollama_ca_file
        )
    if family == "openai" and model:
        from tarsd.providers.keyed import KeyedProvider
        from tarsd.providers.openai import OpenAIProvider

        return KeyedProvider(
            lambda own: OpenAIProvider(
                model,
                base_url=settings.openai_base_url,
                key=own,
                context=settings.context,
                ca_file=settings.openai_ca_file,
            ),
            lambda: key("openai"),
        )
    if family == "anthropic" and model:
        from tarsd.providers.anthropic import AnthropicProvider
        from tarsd.providers.keyed import KeyedProvider

        url, ca_file = settings.anthropic_base_url, settings.anthropic_ca_file
        return KeyedProvider(
            lambda own: AnthropicProvider(model, base_url=url, key=own, ca_file=ca_file), lambda: key("anthropic")
        )
    raise ConfigError([f"chat.model: unknown chat model “{name}”."], f"Use one of: {', '.join(AVAILABLE)}.")


async def offered(
    settings: ChatSettings, key: Key, named: Collection[str] = (), *, seconds: float = LISTING_S
) -> list[dict[str, Any]]:
    """Every provider with its models and its state: ready, unreachable, refused, no key or not configured.

    Ollama is always asked. Vendors get to see their key by being asked, so only those are that the settings name, or
    that are in `named` ("openai", "anthropic"). Nobody gets more than so many seconds to answer.
    """
    families = {*named, *(name.partition(":")[0] for name in (settings.model, settings.fallback))}
    quoting = ModelInfo("extractive", True, note="no model: quotes the passages that match best")
    servers = await asyncio.gather(
        _entry("ollama", settings, _no_key, seconds),
        *(
            _entry(vendor, settings, key, seconds) if vendor in families else _unnamed(vendor)
            for vendor in ("anthropic", "openai")
        ),
    )
    return [_as_json("extractive", "ready", models=[quoting]), *servers]


async def _entry(provider: str, settings: ChatSettings, key: Key, seconds: float) -> dict[str, Any]:
    own: str | None = None
    try:
        own = await asyncio.to_thread(key, provider)  # a keyring may take its time
        async with asyncio.timeout(seconds):
            return _as_json(provider, "ready", models=await _models(provider, settings, own))
    except TimeoutError:
        return _as_json(provider, "unreachable", f"No list of models within {seconds:.0f} s.", "Try again later.")
    except ProviderRefused as error:
        return _as_json(provider, "refused" if own or provider == "ollama" else "no key", error.message, error.hint)
    except ProviderError as error:
        return _as_json(provider, "unreachable", error.message, error.hint)
    except TarsdError as error:
        return _as_json(provider, "not configured", error.message, error.hint)


async def _unnamed(provider: str) -> dict[str, Any]:
    return _as_json(
        provider, "not configured", "The configuration does not name it.", f'Set chat.model = "{provider}:MODEL".'
    )


def _models(provider: str, settings: ChatSettings, key: str | None) -> Awaitable[list[ModelInfo]]:
    """The models that a server has. Raises `ProviderError`."""
    if provider == "ollama":
        from tarsd.providers import ollama

        return ollama.models(host=settings.ollama_host, ca_file=settings.ollama_ca_file)
    if provider == "openai":
        from tarsd.providers import openai

        return openai.models(base_url=settings.openai_base_url, key=key, ca_file=settings.openai_ca_file)
    from tarsd.providers import anthropic

    return anthropic.models(base_url=settings.anthropic_base_url, key=key, ca_file=settings.anthropic_ca_file)


def _as_json(
    provider: str, state: str, reason: str = "", hint: str = "", models: Sequence[ModelInfo] = ()
) -> dict[str, Any]:
    about = {"provider": provider, "state": state, "reason": reason, "hint": hint}
    return {**about, "models": [model.as_json() for model in models]}
