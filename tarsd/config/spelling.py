"""How models and servers may be spelled in the settings, and what they come to."""

from __future__ import annotations

import difflib
import re
from typing import Literal
from urllib.parse import urlsplit

SPELLINGS = {
    "embedding": ("auto", "minilm", "e5", "table", "ollama:MODEL", "openai:MODEL"),
    "chat": ("auto", "extractive", "anthropic:MODEL", "ollama:MODEL", "openai:MODEL"),
}


def check_model(kind: Literal["embedding", "chat"], text: str) -> str | None:
    """What is wrong with the name of a model, or None. `fake` and `fake:DIM` are for tests."""
    spellings = SPELLINGS[kind]
    family, colon, model = text.partition(":")
    if text in spellings or re.fullmatch(r"fake(:[1-9]\d{0,3})?", text):
        return None
    if f"{family}:MODEL" in spellings:
        if model.strip() and model == model.strip():
            return None
        return f'has no model after "{family}:"' if colon else f'has no model: write "{family}:MODEL"'
    families = [spelling.partition(":")[0] for spelling in spellings]
    close = difflib.get_close_matches(family.lower(), families, n=1, cutoff=0.6)
    likely = [spelling for spelling in spellings if close and spelling.startswith(close[0])]
    guess = f'did you mean "{likely[0]}"?' if likely else ""
    return f'"{text}" is not a model; {guess or "use one of " + ", ".join(spellings)}'


def ollama_host(text: str) -> str:
    """The base URL of an Ollama server from any spelling of it, as `scheme://host:port`.

    Takes what Ollama takes in OLLAMA_HOST: no scheme, no port (11434), a bind address (0.0.0.0 becomes 127.0.0.1),
    a trailing slash or /v1. Raises ValueError with the reason.
    """
    bare = text.strip().strip("\"'").rstrip("/")
    if not bare:
        raise ValueError("is empty")
    if bare.startswith(":") and bare[1:].isdigit():
        bare = "127.0.0.1" + bare
    if bare.count(":") > 1 and "://" not in bare and not bare.startswith("["):
        bare = f"[{bare}]"
    parts = urlsplit(bare if "://" in bare else f"http://{bare}")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f'"{parts.scheme}" is neither http nor https')
    if not parts.hostname or re.search(r"\s", bare):
        raise ValueError("has no host")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(parts.hostname, parts.hostname)
    try:
        port = parts.port
    except ValueError:
        raise ValueError("needs a port from 1 to 65535") from None
    if port is None:
        port = 443 if parts.scheme == "https" else 11434
    path = re.sub(r"/v1$", "", parts.path)
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}{path}"


def base_url(text: str) -> str:
    """The base URL of an OpenAI-compatible server, without a trailing slash. Raises ValueError with the reason."""
    parts = urlsplit(text.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError('must be a full URL such as "https://api.openai.com/v1"')
    return text.strip().rstrip("/")
