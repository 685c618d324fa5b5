"""Embeddings from OpenAI or any server that speaks its API; the only module here that knows its SDK."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from tarsd import foreign
from tarsd.embed.base import fingerprint
from tarsd.embed.remote import FEW_TEXTS, MAX_TEXTS, Remote
from tarsd.errors import EmbedError
from tarsd.transport import client_options, proxy_for
from tarsd.upstream import Kind, fault

if TYPE_CHECKING:
    import openai

    from tarsd.config import EmbeddingSettings

CONNECT_S: Final = 5.0


class OpenAIEmbedder(Remote):
    """`openai:MODEL`. Nothing is sent before the first text, or the first look at the fingerprint."""

    # The hosted models read 8,191; local servers tell nobody, and refuse what is beyond their batch.
    max_tokens: Final = 2048
    document_s = 120.0
    hints: ClassVar[Mapping[Kind, str]] = {
        "key": "Set it again with `tarsd key set openai`.",
        "busy": "tarsd continues automatically.",
        "loading": "tarsd continues automatically.",
        "missing": "Check embedding.model and openai.base_url.",
        "unable": "Set one in embedding.model; start llama.cpp's server with --embeddings.",
        "away": "Start it, or set openai.base_url.",
        "silent": "The model may still be loading; tarsd tries again automatically.",
    }

    def __init__(self, model: str, settings: EmbeddingSettings) -> None:
        self._base_url = settings.openai_base_url.rstrip("/")
        super().__init__("openai", model, settings, urlsplit(self._base_url).hostname)
        self.dim = 0  # what the server gives counts, not what it is asked for
        self.place = foreign.without_keys(self._base_url)
        self.local = self._stays_here
        self._key = settings.openai_key
        self.batch = MAX_TEXTS if self._key else FEW_TEXTS  # whoever sells this has many machines
        self._ca_file = settings.openai_ca_file
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()
        self._asking = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Embeds a word the first time; raises EmbedError when the server does not answer."""
        # One name may stand for other weights, here or on another server, and only the width can tell.
        return fingerprint("openai", self._base_url, self._model_name, self._dimensions, self._width(), *self._prefixes)

    def _expected(self) -> int:
        return self.dim

    def _learn(self, dim: int) -> None:
        self.dim = dim

    _changed = _learn

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _width(self) -> int:
        with self._asking:
            if not self.dim:
                self.dim = self._rested(self._measure)
            return self.dim

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._connect()
                except Exception as error:
                    raise self._unmade(error) from error
            return self._client

    def _connect(self) -> openai.OpenAI:
        import httpx  # noqa: F401  # the SDK looks into it if it is there, half loaded or not
        import httpx2
        import openai

        return openai.OpenAI(
            base_url=self._base_url,
            api_key=self._key if self._key else "none",  # the SDK takes no empty key; local servers need none
            max_retries=0,
            http_client=openai.DefaultHttpxClient(
                **client_options(httpx2, self._base_url, self._ca_file),
                follow_redirects=False,  # who sees the texts was decided by their marks
                timeout=httpx2.Timeout(self.document_s, connect=CONNECT_S),
            ),
        )

    def _send(self, batch: Sequence[str], seconds: float) -> list[object]:
        client = self._connected()
        import httpx2
        import openai

        extra: dict[str, Any] = {} if self._dimensions is None else {"dimensions": self._dimensions}
        try:
            # Without a format the SDK asks for base64, which several local servers do not know.
            raw = client.embeddings.with_raw_response.create(
                model=self._model_name,
                input=list(batch),
                encoding_format="float",
                timeout=httpx2.Timeout(seconds, connect=CONNECT_S),
                **extra,
            )
            reply = raw.parse()
        except openai.APIStatusError as error:
            found = fault(error.status_code, error.body, error.response.headers, secret=self._key, sent=batch)
            raise self._refusal(found) from error
        except openai.APIConnectionError as error:
            raise self._lost(error, seconds, proxy_for(self._base_url)[0]) from error
        except (openai.OpenAIError, ValueError, TypeError) as error:
            raise EmbedError(
                f"{self.place} sent no embeddings ({type(error).__name__}).",
                "Is this an embedding model, and is the URL complete?",
            ) from error
        if inside := _error_of(reply):
            raise self._refusal(fault(0, inside, raw.headers, secret=self._key, sent=batch))
        return _rows(reply, len(batch))


def _error_of(reply: Any) -> object:
    """The error in a reply of status 200 without vectors: some gateways know no other status."""
    if getattr(reply, "data", None):
        return None
    error = getattr(reply, "error", None)
    about = {key: getattr(reply, key, None) for key in ("message", "detail", "code", "type")}
    return {"error": error} if error else about if any(about.values()) else None


def _rows(reply: Any, n: int) -> list[object]:
    """The vectors in the order of the texts. The SDK checks nothing: index may be missing, doubled or out of range."""
    data = list(getattr(reply, "data", None) or [])
    places = [getattr(item, "index", None) for item in data]
    if sorted(place for place in places if isinstance(place, int)) == list(range(n)) and len(places) == n:
        data.sort(key=lambda item: item.index)
    elif any(place is not None for place in places):
        raise EmbedError("The embedding server sent vectors for unknown texts.", "tarsd tries again.")
    return [getattr(item, "embedding", None) for item in data]
