"""Texts to vectors: the instant table, MiniLM, e5, Ollama, OpenAI-compatible servers, and a fake.

Each member is imported when it is made, so that importing this package costs no model, no SDK and no numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarsd.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tarsd.config import EmbeddingSettings
    from tarsd.embed.base import Embedder

__all__ = ["make"]


def make(
    settings: EmbeddingSettings, *, rest_s: float | None = None, rested: Callable[[], object] = lambda: None
) -> Embedder:
    """The embedder that `settings.model` names. Nothing is loaded or connected before its first use.

    A built-in model lets go of its memory after `rest_s` seconds without a text, and calls `rested`.
    Raises ConfigError for a name that no member answers to.
    """
    family, _, rest = settings.model.partition(":")
    if family == "auto" and not rest:
        from tarsd.embed.auto import Auto
        from tarsd.embed.e5 import E5
        from tarsd.embed.minilm import MiniLM

        return Auto({"minilm": MiniLM(rest_s=rest_s, rested=rested), "e5": E5(rest_s=rest_s, rested=rested)})
    if family == "table" and not rest:
        from tarsd.embed.table import TableEmbedder

        return TableEmbedder()
    if family == "minilm" and not rest:
        from tarsd.embed.minilm import MiniLM

        return MiniLM(rest_s=rest_s, rested=rested)
    if family == "e5" and not rest:
        from tarsd.embed.e5 import E5

        return E5(rest_s=rest_s, rested=rested)
    if family == "ollama" and rest:
        from tarsd.embed.ollama import OllamaEmbedder

        return OllamaEmbedder(rest, settings)
    if family == "openai" and rest:
        from tarsd.embed.openai import OpenAIEmbedder

        return OpenAIEmbedder(rest, settings)
    if family == "fake" and (not rest or rest.isdecimal()):
        from tarsd.embed.fake import FakeEmbedder

        return FakeEmbedder(int(rest)) if rest else FakeEmbedder()
    raise ConfigError(
        [f"embedding.model: {settings.model!r} is not an embedding model"],
        'Use "auto", "minilm", "e5", "table", "ollama:MODEL" or "openai:MODEL".',
    )
