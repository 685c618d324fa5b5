"""Embeddings from OpenAI or any server that speaks its API; the only module here that knows its SDK."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tarsd.embed.base import Kind, Vectors, check, fingerprint, is_loopback, nothing, prefixes
from tarsd.embed.remote import MAX_TEXTS, TextRefused, embed_all, retry_after
from tarsd.errors import EmbedderUnreachable, EmbedError, ModelMissing, RateLimited

if TYPE_CHECKING:
    import openai

    from tarsd.config import EmbeddingSettings

CONNECT_S: Final = 5.0
DOCUMENT_S: Final = 120.0
QUERY_S: Final = 10.0


class OpenAI:
    """`openai:MODEL`. Nothing is sent before the first text."""

    batch: Final = MAX_TEXTS
    # The hosted models read 8,191; local servers tell nobody, and refuse what is beyond their batch.
    max_tokens: Final = 2048

    def __init__(self, model: str, settings: EmbeddingSettings) -> None:
        self.name = f"openai:{model}"
        self.dim = settings.dimensions if settings.dimensions is not None else 0
        self._model_name = model
        self._dimensions = settings.dimensions
        self._base_url = settings.openai_base_url.rstrip("/")
        self._key = settings.openai_key
        self._prefixes = prefixes(model, settings)
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()
        loopback = is_loopback(urlsplit(self._base_url).hostname)
        # Ollama's own /v1 on this machine passes its cloud models on.
        self.local = loopback and not model.endswith(("-cloud", ":cloud"))
        self._trust_env = not loopback  # a proxy may lead to the outside, never to this machine
        # One name may stand for other weights on another server, and there is no digest to tell.
        self.fingerprint = fingerprint("openai", self._base_url, model, settings.dimensions, *self._prefixes)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), dim]; refused texts are bad rows after they were tried alone, halved and quartered."""
        if not texts:
            return nothing(0, self.dim)
        prefix = self._prefixes[kind == "query"]
        seconds = QUERY_S if kind == "query" else DOCUMENT_S
        vectors = embed_all(
            texts,
            self.dim,
            lambda batch: self._send([prefix + text for text in batch], seconds),
            salvage=kind == "document",
        )
        if not self.dim:
            self.dim = vectors.shape[1]
        return vectors

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                import httpx2
                import openai

                self._client = openai.OpenAI(
                    base_url=self._base_url,
                    api_key=self._key if self._key else "none",  # the SDK takes no empty key; local servers need none
                    max_retries=0,
                    http_client=openai.DefaultHttpxClient(
                        trust_env=self._trust_env, timeout=httpx2.Timeout(DOCUMENT_S, connect=CONNECT_S)
                    ),
                )
            return self._client

    def _send(self, batch: Sequence[str], seconds: float) -> Vectors:
        import httpx2
        import openai

        extra: dict[str, Any] = {} if self._dimensions is None else {"dimensions": self._dimensions}
        try:
            # Without a format the SDK asks for base64, which several local servers do not know.
            reply = self._connected().embeddings.create(
                model=self._model_name,
                input=list(batch),
                encoding_format="float",
                timeout=httpx2.Timeout(seconds, connect=CONNECT_S),
                **extra,
            )
        except openai.APIStatusError as error:
            raise self._refusal(error) from error
        except openai.APITimeoutError as error:
            raise EmbedError(
                f"{self._base_url} did not answer within {seconds:.0f} s; the model may still be loading.",
                "It will be asked again by itself.",
            ) from error
        except openai.APIConnectionError as error:
            raise EmbedderUnreachable(
                f"The embedding server {self._base_url} does not answer.", "Start it, or set openai.base_url."
            ) from error
        except (openai.OpenAIError, ValueError, TypeError) as error:
            raise EmbedError(
                f"{self._base_url} sent no embeddings: {error}", "Is this an embedding model, and the URL complete?"
            ) from error
        return check(_rows(reply, len(batch)), len(batch), self.dim)

    def _refusal(self, error: openai.APIStatusError) -> EmbedError:
        text, status = _said(error), error.status_code
        low = text.lower()
        if status in (401, 403):
            return EmbedError(f"{self._base_url} does not accept the key.", "Set it anew with `tarsd key`.")
        if status == 429:
            if error.code == "insufficient_quota":
                return EmbedError(f"The quota at {self._base_url} is used up: {text}", "See the provider's billing.")
            return RateLimited(
                f"{self._base_url} asks to wait: {text}",
                "It goes on by itself.",
                retry_after=retry_after(error.response.headers),
            )
        if status == 404:
            return ModelMissing(
                f"{self._base_url} has no model {self._model_name}.", "Check embedding.model and openai.base_url."
            )
        if status == 503:
            return RateLimited(
                f"{self._base_url} is not ready: {text}",
                "It goes on by itself.",
                retry_after=retry_after(error.response.headers),
            )
        about_text = status == 413 or any(
            word in low for word in ("context length", "context size", "too long", "too large", "maximum", "nan")
        )
        if about_text or status in (400, 422):
            return TextRefused(f"{self._base_url} refuses the text: {text}", certain=about_text)
        return EmbedError(f"{self._base_url} failed ({status}): {text}", "See the server's own log.")


def _said(error: openai.APIStatusError) -> str:
    """The server's own words; some send `error` as a plain string, which the SDK leaves out of its message."""
    body: object = error.body
    if isinstance(body, dict):
        body = body.get("message", body.get("detail", error.message))
    return str(body if body else error.message).strip()[:500]


def _rows(reply: Any, n: int) -> list[object]:
    """The vectors in the order of the texts. The SDK checks nothing: index may be missing, doubled or out of range."""
    data = list(getattr(reply, "data", None) or [])
    places = [getattr(item, "index", None) for item in data]
    if sorted(place for place in places if isinstance(place, int)) == list(range(n)) and len(places) == n:
        data.sort(key=lambda item: item.index)
    elif any(place is not None for place in places):
        raise EmbedError("The embedding server sent vectors that belong to no text.", "It will be asked again.")
    return [getattr(item, "embedding", None) for item in data]
