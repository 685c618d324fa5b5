"""Embeddings from OpenAI or any server that speaks its API; the only module here that knows its SDK."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tarsd.embed.base import Kind, OtherWidth, Vectors, fingerprint, is_loopback, nothing, prefixes
from tarsd.embed.remote import MAX_TEXTS, PROBE, TextRefused, checked, embed_all, retry_after, worded
from tarsd.errors import EmbedderUnreachable, EmbedError, ModelMissing, RateLimited

if TYPE_CHECKING:
    import openai

    from tarsd.config import EmbeddingSettings

CONNECT_S: Final = 5.0
DOCUMENT_S: Final = 120.0
QUERY_S: Final = 10.0  # search waits less; the answer may still serve the next question
REST_S: Final = 3.0


class OpenAIEmbedder:
    """`openai:MODEL`. Nothing is sent before the first text, or the first look at the fingerprint."""

    batch: Final = MAX_TEXTS
    # The hosted models read 8,191; local servers tell nobody, and refuse what is beyond their batch.
    max_tokens: Final = 2048

    def __init__(self, model: str, settings: EmbeddingSettings) -> None:
        self.name = f"openai:{model}"
        self.dim = 0  # what the server gives counts, not what it is asked for
        self._failed: tuple[EmbedError | None, float] = (None, 0.0)
        self._model_name = model
        self._dimensions = settings.dimensions
        self._base_url = settings.openai_base_url.rstrip("/")
        self._key = settings.openai_key
        self._prefixes = prefixes(model, settings)
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        loopback = is_loopback(urlsplit(self._base_url).hostname)
        # Ollama's own /v1 on this machine passes its cloud models on.
        self.local = loopback and not model.endswith(("-cloud", ":cloud"))
        self._trust_env = not loopback  # a proxy may lead to the outside, never to this machine

    @property
    def fingerprint(self) -> str:
        """Embeds a word the first time; raises EmbedError when the server does not answer."""
        # One name may stand for other weights, here or on another server, and only the width can tell.
        return fingerprint("openai", self._base_url, self._model_name, self._dimensions, self._width(), *self._prefixes)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), dim]; refused texts are bad rows after they were tried alone, halved and quartered."""
        if not texts:
            return nothing(0, self.dim)
        prefix = self._prefixes[kind == "query"]
        seconds = QUERY_S if kind == "query" else DOCUMENT_S
        dim = self.dim

        def send(batch: Sequence[str]) -> Vectors:
            sent = [prefix + text for text in batch]
            return checked(self._send(sent, seconds), len(sent), dim, lambda: self._probe(seconds))

        try:
            vectors = embed_all(texts, dim, send, salvage=kind == "document")
        except OtherWidth as error:
            self.dim = error.found
            raise
        if not self.dim:
            self.dim = vectors.shape[1]
        return vectors

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _width(self) -> int:
        with self._asking:
            if not self.dim:
                error, until = self._failed
                if error is not None and time.monotonic() < until:
                    raise type(error)(error.message, error.hint, retry_after=error.retry_after)
                try:
                    self.dim = self._probe(DOCUMENT_S)
                    if not self.dim:
                        raise EmbedError(f"{self.name} gives no vectors.", "Is it an embedding model?")
                except EmbedError as error:
                    self._failed = error, time.monotonic() + REST_S
                    raise
            return self.dim

    def _probe(self, seconds: float) -> int:
        """How many numbers the server gives a text now."""
        try:
            (row,) = self._send([self._prefixes[0] + PROBE], seconds) or [None]
        except TextRefused as error:
            raise EmbedError(error.message, "The server refuses every text; is this an embedding model?") from error
        return len(row) if isinstance(row, list) else 0

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                import httpx  # noqa: F401  # the SDK looks into it if it is there, half loaded or not
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

    def _send(self, batch: Sequence[str], seconds: float) -> list[object]:
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
        return _rows(reply, len(batch))

    def _refusal(self, error: openai.APIStatusError) -> EmbedError:
        text, status = _said(error), error.status_code
        low = text.lower()
        if status in (401, 403):
            return EmbedError(f"{self._base_url} does not accept the key.", "Set it anew with `tarsd key`.")
        if status == 429:
            if error.code == "insufficient_quota":
                return EmbedError(
                    worded(f"The quota at {self._base_url} is used up", text), "See the provider's billing."
                )
            return RateLimited(
                worded(f"{self._base_url} asks to wait", text),
                "It goes on by itself.",
                retry_after=retry_after(error.response.headers),
            )
        if status == 404:
            return ModelMissing(
                f"{self._base_url} has no model {self._model_name}.", "Check embedding.model and openai.base_url."
            )
        if status == 503:
            return RateLimited(
                worded(f"{self._base_url} is not ready", text),
                "It goes on by itself.",
                retry_after=retry_after(error.response.headers),
            )
        about_text = status == 413 or any(
            word in low for word in ("context length", "context size", "too long", "too large", "maximum", "nan")
        )
        if about_text or status in (400, 422):
            return TextRefused(worded(f"{self._base_url} refuses the text", text), certain=about_text)
        return EmbedError(worded(f"{self._base_url} failed ({status})", text), "See the server's own log.")


def _said(error: openai.APIStatusError) -> str:
    """The server's own words; some send `error` as a plain string, which the SDK leaves out of its message."""
    body: object = error.body
    if isinstance(body, dict):
        body = body.get("message", body.get("detail", ""))
    return str(body or "").strip()[:500]


def _rows(reply: Any, n: int) -> list[object]:
    """The vectors in the order of the texts. The SDK checks nothing: index may be missing, doubled or out of range."""
    data = list(getattr(reply, "data", None) or [])
    places = [getattr(item, "index", None) for item in data]
    if sorted(place for place in places if isinstance(place, int)) == list(range(n)) and len(places) == n:
        data.sort(key=lambda item: item.index)
    elif any(place is not None for place in places):
        raise EmbedError("The embedding server sent vectors that belong to no text.", "It will be asked again.")
    return [getattr(item, "embedding", None) for item in data]
