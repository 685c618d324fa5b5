"""Embeddings from an Ollama server, local or on another machine; the only module here that knows its SDK."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tarsd.config.spelling import ollama_host
from tarsd.embed.base import Kind, OtherWidth, Vectors, fingerprint, is_loopback, nothing, prefixes
from tarsd.embed.remote import MAX_TEXTS, PROBE, TextRefused, checked, embed_all, worded
from tarsd.errors import EmbedderUnreachable, EmbedError, ModelMissing, RateLimited

if TYPE_CHECKING:
    import ollama

    from tarsd.config import EmbeddingSettings

# Ollama embeds the first 2,048 tokens of a longer text and says nothing, whatever the model's own context.
TOKENS: Final = 2048
CONNECT_S: Final = 3.0
DOCUMENT_S: Final = 300.0  # a large model may have to be read from a slow disk first
QUERY_S: Final = 10.0  # search waits less; the answer may still serve the next question
KEEP_ALIVE: Final = "10m"
REST_S: Final = 3.0  # a host that is down costs one question its time-out, not each of them


@dataclass(frozen=True)
class _Model:
    """What the server says about the model."""

    dim: int
    digest: str
    max_tokens: int
    remote: bool


class OllamaEmbedder:
    """`ollama:MODEL`. The server is first asked when something about the model is needed."""

    batch: Final = MAX_TEXTS

    def __init__(self, model: str, settings: EmbeddingSettings) -> None:
        self.name = f"ollama:{model}"
        try:
            self._host = ollama_host(settings.ollama_host)
        except ValueError as error:
            raise EmbedError(f"ollama.host {error}.", 'Write it like "http://127.0.0.1:11434".') from None
        self._model_name = model
        self._dimensions = settings.dimensions
        self._prefixes = prefixes(model, settings)
        self._model: _Model | None = None
        self._given = 0  # the width that the server was seen to give, whatever it says
        self._failed: tuple[EmbedError | None, float] = (None, 0.0)
        self._client: ollama.Client | None = None
        self._lock = threading.RLock()

    @property
    def dim(self) -> int:
        return self._model.dim if self._model else 0

    @property
    def max_tokens(self) -> int:
        return self._model.max_tokens if self._model else TOKENS

    @property
    def fingerprint(self) -> str:
        """Asks the server the first time; raises EmbedError when it cannot say which weights it has."""
        known = self._measured()
        return fingerprint("ollama", self._model_name, known.digest, self._dimensions, known.dim, *self._prefixes)

    @property
    def local(self) -> bool:
        """A loopback host, and a model that the server itself does not pass on; False while nobody can tell."""
        if not is_loopback(urlsplit(self._host).hostname) or self._model_name.endswith(("-cloud", ":cloud")):
            return False
        try:
            return not self._known().remote
        except EmbedError:
            return False

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), dim]; refused texts are bad rows after they were tried alone, halved and quartered."""
        if not texts:
            return nothing(0, self.dim)
        known = self._known()
        prefix = self._prefixes[kind == "query"]
        seconds = QUERY_S if kind == "query" else DOCUMENT_S

        def send(batch: Sequence[str]) -> Vectors:
            rows = self._send([prefix + text for text in batch], seconds)
            return checked(rows, len(batch), known.dim, lambda: self._probe(seconds))

        try:
            vectors = embed_all(texts, known.dim, send, salvage=kind == "document")
        except OtherWidth as error:
            with self._lock:
                self._model, self._given = None, error.found  # its digest may be another too
            raise
        if not self.dim and vectors.shape[1]:
            with self._lock:
                self._model = replace(known, dim=vectors.shape[1])
        return vectors

    def _send(self, batch: Sequence[str], seconds: float) -> object:
        body: dict[str, Any] = {
            "model": self._model_name,
            "input": list(batch),
            "truncate": True,
            "keep_alive": KEEP_ALIVE,
        }
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        return self._ask("POST", "/api/embed", body, seconds).get("embeddings")

    def _probe(self, seconds: float) -> int:
        """How many numbers the server gives a text now."""
        try:
            rows = self._send([self._prefixes[0] + PROBE], seconds)
        except TextRefused as error:
            raise EmbedError(error.message, "The server refuses every text; is this an embedding model?") from error
        return len(rows[0]) if isinstance(rows, list) and rows and isinstance(rows[0], list) else 0

    def close(self) -> None:
        with self._lock:
            client, self._client, self._failed = self._client, None, (None, 0.0)
            self._model, self._given = None, 0
        if client is not None:
            client.close()  # type: ignore[no-untyped-call]

    def _known(self) -> _Model:
        with self._lock:
            if self._model is None:
                error, until = self._failed
                if error is not None and time.monotonic() < until:
                    raise type(error)(error.message, error.hint)
                try:
                    self._model = self._look()
                    if self._given:
                        self._model = replace(self._model, dim=self._given)
                except EmbedError as error:
                    self._failed = error, time.monotonic() + REST_S
                    raise
            return self._model

    def _measured(self) -> _Model:
        """As `_known`, with a width: some servers do not tell it, and are given a word to embed."""
        known = self._known()
        if known.dim:
            return known
        # Without the lock: it may take as long as a model takes to load.
        dim = self._probe(DOCUMENT_S)
        if not dim:
            raise EmbedError(f"{self.name} gives no vectors.", "Is it an embedding model?")
        measured = replace(known, dim=dim)
        with self._lock:
            if self._model is known:
                self._model = measured
        return measured

    def _look(self) -> _Model:
        shown = self._ask("POST", "/api/show", {"model": self._model_name}, CONNECT_S * 3)
        info = shown.get("model_info") or {}
        family = info.get("general.architecture")
        context, width = info.get(f"{family}.context_length"), info.get(f"{family}.embedding_length")
        limit = min(context, TOKENS) if isinstance(context, int) and context > 0 else TOKENS
        dim = width if isinstance(width, int) and width > 0 else 0
        if self._dimensions is not None:
            # More than the model has is ignored by the server.
            dim = min(dim, self._dimensions) if dim else 0
        entry = self._entry()
        remote = any(one.get(key) for one in (shown, entry) for key in ("remote_host", "remote_model"))
        return _Model(dim, str(entry.get("digest") or ""), limit, remote)

    def _entry(self) -> Mapping[str, Any]:
        """This model's line in the server's list; a name without a tag means `:latest`."""
        full = self._model_name if ":" in self._model_name.rpartition("/")[2] else f"{self._model_name}:latest"
        for entry in self._ask("GET", "/api/tags", None, CONNECT_S * 3).get("models") or []:
            if isinstance(entry, dict) and full in (entry.get("name"), entry.get("model")):
                return entry
        return {}

    def _connected(self) -> ollama.Client:
        with self._lock:
            if self._client is None:
                import ollama

                # Proxies are not for the machine's own servers, and the SDK would send loopback calls there too.
                self._client = ollama.Client(host=self._host, trust_env=False)
                if self._host.startswith("http:"):
                    # The SDK sends a cloud key from the environment to whatever host is set, in the clear.
                    self._client._client.headers.pop("authorization", None)
            return self._client

    def _ask(self, method: str, path: str, body: dict[str, Any] | None, seconds: float) -> dict[str, Any]:
        """One request as plain JSON. The SDK's typed calls drop `remote_host` and fail on a null in a vector."""
        import httpx
        import ollama

        client = self._connected()
        timeout = httpx.Timeout(seconds, connect=CONNECT_S)
        try:
            reply: Any = client._request_raw(method, path, json=body, timeout=timeout).json()  # type: ignore[no-untyped-call]
        except ollama.ResponseError as error:
            raise self._refusal(error) from error
        except httpx.ConnectTimeout as error:
            raise self._unreachable() from error
        except httpx.TimeoutException as error:
            raise EmbedError(
                f"Ollama at {self._host} did not answer within {seconds:.0f} s; the model may still be loading.",
                "It will be asked again by itself.",
            ) from error
        except (ConnectionError, httpx.TransportError) as error:
            with self._lock:
                self._model, self._given = None, 0  # when it is back, it may have other weights
            raise self._unreachable() from error
        except ValueError as error:
            raise EmbedError(
                f"What answers at {self._host} is not Ollama.", "Check ollama.host in the configuration."
            ) from error
        if not isinstance(reply, dict):
            raise EmbedError(f"What answers at {self._host} is not Ollama.", "Check ollama.host in the configuration.")
        return reply

    def _unreachable(self) -> EmbedderUnreachable:
        return EmbedderUnreachable(
            f"Ollama does not answer at {self._host}.", "Start it with `ollama serve`, or set ollama.host."
        )

    def _refusal(self, error: ollama.ResponseError) -> EmbedError:
        text, status = str(error.error).strip(), error.status_code
        low = text.lower()
        if status == 404 and "model" in low:
            return ModelMissing(
                f"Ollama at {self._host} has no model {self._model_name}.", f"Run `ollama pull {self._model_name}`."
            )
        if status in (429, 503):
            return RateLimited(worded("Ollama is busy", text), "It will be asked again by itself.")
        if "loading" in low:
            return EmbedError(f"Ollama is loading {self._model_name}.", "It will be asked again by itself.")
        if "does not support" in low:
            return EmbedError(
                worded(f"{self._model_name} is no embedding model", text),
                "Name one in embedding.model, for example ollama:embeddinggemma.",
                permanent=True,
            )
        about_text = any(word in low for word in ("input length", "context length", "nan", "too long", "too large"))
        if about_text or status == 400:
            return TextRefused(worded("Ollama refuses the text", text), certain=about_text)
        return EmbedError(worded(f"Ollama failed ({status})", text), "See Ollama's own log.")
