"""Embeddings from an Ollama server, local or on another machine.

As JSON over HTTP: the types of Ollama's own SDK drop `remote_host`, and fail on a null in a vector.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from tarsd.config.spelling import ollama_host
from tarsd.embed.base import Kind as Use
from tarsd.embed.base import Vectors, fingerprint
from tarsd.embed.remote import Remote
from tarsd.errors import EmbedError
from tarsd.transport import client_options, proxy_for
from tarsd.upstream import Fault, Kind, fault, model_info, ollama_headers, ollama_name

if TYPE_CHECKING:
    import httpx

    from tarsd.config import EmbeddingSettings

# Ollama embeds the first 2,048 tokens of a longer text and says nothing, whatever the model's own context.
TOKENS: Final = 2048
CONNECT_S: Final = 3.0
KEEP_ALIVE: Final = "10m"
FRESH_S: Final = 30.0
"""For so long the server is not asked again what the model is: a pull may have brought other weights."""


@dataclass(frozen=True)
class _Model:
    """What the server says about the model."""

    dim: int
    digest: str
    max_tokens: int
    remote: bool


class OllamaEmbedder(Remote):
    """`ollama:MODEL`. The server is first asked when something about the model is needed."""

    document_s = 300.0  # a large model may have to be read from a slow disk first
    hints: ClassVar[Mapping[Kind, str]] = {
        "missing": "Run `ollama pull {model}`.",
        "busy": "tarsd tries again automatically.",
        "loading": "tarsd tries again automatically.",
        "unable": "Set one in embedding.model, for example ollama:embeddinggemma.",
        "failed": "See Ollama's log.",
        "away": "Start it with `ollama serve`, or set ollama.host.",
        "silent": "The model may still be loading; tarsd tries again automatically.",
    }

    def __init__(self, model: str, settings: EmbeddingSettings) -> None:
        try:
            self._host = ollama_host(settings.ollama_host)
        except ValueError as error:
            raise EmbedError(f"ollama.host {error}.", 'Write it like "http://127.0.0.1:11434".') from None
        super().__init__("ollama", model, settings, urlsplit(self._host).hostname)
        self.place = f"Ollama at {self._host}"
        self._ca_file = settings.ollama_ca_file
        self._proxies = self._host.startswith("https:")
        self._model: _Model | None = None
        self._fresh_until = 0.0
        self._given = 0  # the width that the server was seen to give, whatever it says
        self._client: httpx.Client | None = None
        self._lock = threading.RLock()

    @property
    def dim(self) -> int:  # type: ignore[override]  # read-only here, as in Embedder
        return self._model.dim if self._model else 0

    @property
    def max_tokens(self) -> int:
        return self._model.max_tokens if self._model else TOKENS

    @property
    def fingerprint(self) -> str:
        """Asks the server the first time; raises EmbedError when it cannot say which weights it has."""
        known = self._measured()
        return self._print(known) if known.digest else self._print(known, self._model_name)

    @property
    def former(self) -> str:  # type: ignore[override]
        """The names of one model were kept apart, and each had vectors of its own."""
        return self._print(self._measured(), self._model_name)

    def _print(self, known: _Model, *name: str) -> str:
        return fingerprint("ollama", *name, known.digest, self._dimensions, known.dim, *self._prefixes)

    def embed(self, texts: Sequence[str], kind: Use) -> Vectors:
        """As `Remote.embed`; if the weights have changed meanwhile, so has the fingerprint when this returns."""
        before = self._known().digest
        vectors = super().embed(texts, kind)
        with contextlib.suppress(EmbedError):  # what came, came
            if str(self._entry().get("digest") or "") != before:
                self.ask_again()
        return vectors

    def ask_again(self) -> None:
        with self._lock:
            self._fresh_until = 0.0

    @property
    def local(self) -> bool:
        """Whether host and model are on this machine; False for a cloud model, and while the server does not answer."""
        try:
            return self._stays_here and not self._known().remote
        except EmbedError:
            return False

    def _expected(self) -> int:
        return self._known().dim

    def _learn(self, dim: int) -> None:
        with self._lock:
            if self._model:
                self._model = replace(self._model, dim=dim)

    def _changed(self, dim: int) -> None:
        with self._lock:
            self._model, self._given = None, dim  # its digest may be another too

    def _send(self, batch: Sequence[str], seconds: float) -> object:
        body: dict[str, Any] = {
            "model": self._model_name,
            "input": list(batch),
            "truncate": True,
            "keep_alive": KEEP_ALIVE,
        }
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        reply = self._ask("POST", "/api/embed", body, seconds)
        if isinstance(reply, Fault):
            raise self._refusal(reply)
        return reply.get("embeddings")

    def close(self) -> None:
        with self._lock:
            client, self._client, self._failed = self._client, None, (None, 0.0)
            self._model, self._given = None, 0
        if client is not None:
            client.close()

    def _known(self) -> _Model:
        with self._lock:
            if self._model is None or time.monotonic() >= self._fresh_until:
                self._model = self._looked(self._model)
                self._fresh_until = time.monotonic() + FRESH_S
            return self._model

    def _looked(self, known: _Model | None) -> _Model:
        """What the server says now; what it said before, if it cannot be asked."""
        try:
            found = self._rested(self._look)
        except EmbedError:
            if known is None:
                raise
            return known
        if known is not None and known.digest == found.digest:
            return replace(found, dim=known.dim)  # as it was seen
        if known is not None:
            self._given = 0
        return replace(found, dim=self._given) if self._given else found

    def _measured(self) -> _Model:
        """As `_known`, with a width: some servers do not tell it, and are given a word to embed."""
        known = self._known()
        if known.dim:
            return known
        # Without the lock: it may take as long as a model takes to load.
        measured = replace(known, dim=self._measure())
        with self._lock:
            if self._model is known:
                self._model = measured
        return measured

    def _look(self) -> _Model:
        shown = self._told("POST", "/api/show", {"model": self._model_name})
        limit = min(model_info(shown, "context_length") or TOKENS, TOKENS)
        dim = model_info(shown, "embedding_length")
        if self._dimensions is not None:
            # More than the model has is ignored by the server.
            dim = min(dim, self._dimensions) if dim else 0
        entry = self._entry()
        remote = any(reply.get(key) for reply in (shown, entry) for key in ("remote_host", "remote_model"))
        return _Model(dim, str(entry.get("digest") or ""), limit, remote)

    def _entry(self) -> Mapping[str, Any]:
        """This model's line in the server's list."""
        full = ollama_name(self._model_name)
        for entry in self._told("GET", "/api/tags").get("models") or []:
            if isinstance(entry, dict) and full in (entry.get("name"), entry.get("model")):
                return entry
        return {}

    def _connected(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._connect()
                except Exception as error:
                    raise self._unmade(error) from error
            return self._client

    def _connect(self) -> httpx.Client:
        """As for a chat model: a proxy only where it cannot read along."""
        import httpx

        options = client_options(httpx, self._host, self._ca_file, proxies=self._proxies)
        return httpx.Client(base_url=self._host, headers=ollama_headers(self._host), **options)

    def _told(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """What the server says of its models. Raises EmbedError."""
        reply = self._ask(method, path, body, CONNECT_S * 3)
        if isinstance(reply, Fault):
            raise reply.embed_error(self.place, self._model_name, self.hints)
        return reply

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Mapping[str, Any] | Fault:
        """One request. Raises EmbedError where no Ollama answers."""
        client = self._connected()
        import httpx

        try:
            reply = client.request(method, path, json=body, timeout=httpx.Timeout(seconds, connect=CONNECT_S))
            if not reply.is_success:
                return fault(reply.status_code, reply.text, reply.headers, sent=body)
            value = reply.json()
            if isinstance(value, dict) and value.get("error"):
                return fault(0, value, reply.headers, sent=body)
        except (httpx.RequestError, httpx.InvalidURL) as error:
            if not isinstance(error, httpx.TimeoutException):
                with self._lock:
                    self._model, self._given = None, 0  # when it is back, it may have other weights
            raise self._lost(error, seconds, proxy_for(self._host)[0] if self._proxies else "") from error
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise EmbedError(f"The server at {self._host} is not Ollama.", "Check ollama.host in the configuration.")
        return value
