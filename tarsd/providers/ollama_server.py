"""Talks to an Ollama server: plain JSON in and out, every failure as a `ProviderError`.

Not through Ollama's own SDK: its types drop what is needed of requests and of replies (see ARCHITECTURE.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tarsd.errors import AnswerCut, ProviderError
from tarsd.transport import client_options, proxy_for
from tarsd.upstream import Fault, Kind, fault, is_loopback, lost, ollama_headers, unmade

if TYPE_CHECKING:
    import httpx

CONNECT_S: Final = 5.0
ASK_S: Final = 15.0
LINE_BYTES: Final = 64_000_000
HINTS: Final[Mapping[Kind, str]] = {
    "key": "Run `ollama signin`: {model} needs you to sign in.",
    "denied": "Set ollama.host to http://127.0.0.1:11434, or let Ollama listen on that address (OLLAMA_HOST).",
    "unable": "Set one in chat.model; `ollama list` lists them.",
    "missing": "Run `ollama pull {model}`.",
    "refused": "See Ollama's log.",
    "failed": "See Ollama's log.",
    "away": "Start it with `ollama serve`, or set ollama.host.",
    "silent": "See what it is doing with `ollama ps`.",
}

Json = dict[str, Any]


class OllamaServer:
    """The server at `host`, a normalised URL. `silence_s` is how long it may say nothing while a model is answering."""

    def __init__(self, host: str, silence_s: float, ca_file: str = "") -> None:
        self.host = host
        self._ca_file = ca_file
        self.local = is_loopback(urlsplit(host).hostname)
        self._proxies = host.startswith("https:")
        self._silence_s = silence_s
        self._client: httpx.AsyncClient | None = None

    async def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, model: str = "", seconds: float = ASK_S
    ) -> Json:
        """One small question. Raises `ProviderError`."""
        client = await self._http()
        import httpx

        seconds = min(seconds, self._silence_s)
        try:
            response = await client.request(method, path, json=body, timeout=httpx.Timeout(seconds, connect=CONNECT_S))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._lost(error, seconds) from error
        if response.status_code != 200:
            raise self.fault(response.status_code, response.text, response.headers, {"model": model})
        try:
            reply = response.json()
        except ValueError as error:
            raise self._stranger() from error
        if not isinstance(reply, dict):
            raise self._stranger()
        return reply

    async def chat(self, body: Mapping[str, Any]) -> AsyncGenerator[Json, None]:
        """The lines of a streamed answer. Ends without a word when the server does; raises `ProviderError`.

        Closing the iterator closes the connection.
        """
        client = await self._http()
        import httpx

        timeout = httpx.Timeout(self._silence_s, connect=CONNECT_S)
        begun = False
        try:
            async with client.stream("POST", "/api/chat", json=body, timeout=timeout) as response:
                if response.status_code != 200:
                    text = (await response.aread()).decode("utf-8", "replace")
                    raise self.fault(response.status_code, text, response.headers, body)
                lines = LineBuffer()
                async with contextlib.aclosing(response.aiter_bytes()) as pieces:  # type: ignore[type-var]
                    async for piece in pieces:
                        for line in lines.feed(piece):
                            yield self._checked(line, begun, body)
                            begun = True
                if rest := lines.end():
                    yield self._checked(rest, begun, body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._lost(error, self._silence_s, begun=begun) from error

    async def load(self) -> None:
        """Load the HTTP client now, which takes its time, so that the next question takes none."""
        await self._http()

    async def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _http(self) -> httpx.AsyncClient:
        """The connection. Raises `ProviderError`."""
        if self._client is None:
            try:
                client = await asyncio.to_thread(self._connect)  # a tenth of a second the first time
            except Exception as error:
                raise unmade(error).chat_error(f"Ollama at {self.host}", "", HINTS) from error
            if self._client is None:
                self._client = client
        return self._client

    def _connect(self) -> httpx.AsyncClient:
        """Nothing on the way may lead elsewhere: no redirect, and a proxy only where it cannot read along."""
        import httpx

        options = client_options(httpx, self.host, self._ca_file, proxies=self._proxies)
        return httpx.AsyncClient(base_url=self.host, headers=ollama_headers(self.host), **options)

    def _checked(self, line: bytes, begun: bool, sent: Mapping[str, Any]) -> Json:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise (
                AnswerCut(f"Ollama at {self.host} sent an invalid answer.", "Ask again.") if begun else self._stranger()
            )
        if value.get("error"):
            raise self.fault(0, value, {}, sent)
        return value

    def _lost(self, error: Exception, seconds: float, *, begun: bool = False) -> ProviderError:
        proxy = proxy_for(self.host)[0] if self._proxies else ""
        return lost(error, seconds, begun=begun, proxy=proxy).chat_error(f"Ollama at {self.host}", "", HINTS)

    def _stranger(self) -> ProviderError:
        return ProviderError(f"The server at {self.host} is not Ollama.", "Check ollama.host in the configuration.")

    def fault(
        self, status: int, body: str | Json, headers: Mapping[str, str], sent: Mapping[str, Any]
    ) -> ProviderError:
        """What an error reply to the request `sent` means; `status` is 0 for one in the middle of a stream."""
        told, model = fault(status, body, headers, sent=sent), str(sent.get("model") or "")
        if status == 404 and not (model and "model" in told.said.lower()):
            return self._stranger()
        return told.chat_error(f"Ollama at {self.host}", model, HINTS)


def no_chat(model: str) -> ProviderError:
    """For a model that only embeds."""
    return Fault("unable", 0, "").chat_error("Ollama", model, HINTS)


class LineBuffer:
    """Bytes as they come from the network at `where`, and the whole lines in them, blank ones left out."""

    def __init__(self, where: str = "Ollama") -> None:
        self._where = where
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that are complete with this piece. Raises AnswerCut for one without end."""
        *whole, rest = piece.split(b"\n")
        for line in whole:
            line = b"".join((*self._pieces, line)).strip()
            self._pieces.clear()
            self._size = 0
            if line:
                yield line
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > LINE_BYTES:
            raise AnswerCut(f"{self._where} sent an endless line.", "Ask again.")

    def end(self) -> bytes:
        """The last line if it lacks only its line end; b"" if it is no whole JSON, for then the answer was cut."""
        rest = b"".join(self._pieces).strip()
        with contextlib.suppress(ValueError):
            json.loads(rest)
            return rest
        return b""
