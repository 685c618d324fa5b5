"""Talks to an Ollama server through its SDK's client: plain JSON in and out, every failure as a `ProviderError`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tarsd.embed.base import is_loopback
from tarsd.embed.remote import retry_after, worded
from tarsd.errors import (
    AnswerCut,
    ChatModelMissing,
    ContextTooLong,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
)

if TYPE_CHECKING:
    import httpx
    import ollama

CONNECT_S: Final = 5.0
ASK_S: Final = 15.0
LINE_BYTES: Final = 64_000_000
SAID_CHARS: Final = 300

_TOO_LONG = ("exceed_context_size", "exceeds the available context", "prompt is longer than", "context length")
_BUSY = ("server busy", "overloaded", "maximum pending requests")

Json = dict[str, Any]


class OllamaServer:
    """The server at `host`, a normalised URL. `silence_s` is how long it may say nothing while a model is answering."""

    def __init__(self, host: str, silence_s: float) -> None:
        self.host = host
        self.local = is_loopback(urlsplit(host).hostname)
        self._silence_s = silence_s
        self._client: ollama.AsyncClient | None = None

    async def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, model: str = "", seconds: float = ASK_S
    ) -> Json:
        """One small question. Raises `ProviderError`."""
        client = await self._http()
        import httpx

        seconds = min(seconds, self._silence_s)
        try:
            response = await client.request(method, path, json=body, timeout=httpx.Timeout(seconds, connect=CONNECT_S))
        except (httpx.HTTPError, OSError) as error:
            raise self._silent(error, seconds) from error
        if response.status_code != 200:
            raise self.fault(response.text, response.status_code, response.headers, model)
        try:
            reply = response.json()
        except ValueError as error:
            raise self._stranger() from error
        if not isinstance(reply, dict):
            raise self._stranger()
        return reply

    async def chat(self, body: Mapping[str, Any]) -> AsyncGenerator[Json, None]:
        """The lines of a streamed answer. Ends without a word when the server does; raises `ProviderError`.

        Closing the iterator closes the connection. The SDK's own `_request` gives up on a blank line, takes U+0085
        for a line's end and forgets the headers of an error, so the lines are read here.
        """
        client = await self._http()
        import httpx

        timeout = httpx.Timeout(self._silence_s, connect=CONNECT_S)
        begun = False
        try:
            async with client.stream("POST", "/api/chat", json=body, timeout=timeout) as response:
                if response.status_code != 200:
                    text = (await response.aread()).decode("utf-8", "replace")
                    raise self.fault(text, response.status_code, response.headers, str(body.get("model")))
                lines = LineBuffer()
                async with contextlib.aclosing(response.aiter_bytes()) as pieces:  # type: ignore[type-var]
                    async for piece in pieces:
                        for line in lines.feed(piece):
                            yield self._checked(line, begun, str(body.get("model")))
                            begun = True
                if rest := lines.end():
                    yield self._checked(rest, begun, str(body.get("model")))
        except (httpx.HTTPError, OSError) as error:
            if not begun:
                raise self._silent(error, self._silence_s) from error
            raise AnswerCut(
                f"The connection to Ollama at {self.host} broke in the middle of the answer."
                if not isinstance(error, httpx.TimeoutException)
                else f"Ollama at {self.host} fell silent in the middle of the answer.",
                "Ask again.",
            ) from error

    async def load(self) -> None:
        """Load the SDK now, which takes its time, so that the next question takes none."""
        await self._http()

    async def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()  # type: ignore[no-untyped-call]

    async def _http(self) -> httpx.AsyncClient:
        """The SDK's connection. Nothing on the way may lead elsewhere: no proxy of the environment, no redirect."""
        if self._client is None:
            sdk = await asyncio.to_thread(_sdk)  # a third of a second the first time
            if self._client is None:
                secure = self.host.startswith("https:")
                self._client = sdk(host=self.host, trust_env=secure and not self.local, follow_redirects=False)
                if not secure:
                    # The SDK sends a cloud key from the environment to whatever host is set, in the clear.
                    self._client._client.headers.pop("authorization", None)
        http: httpx.AsyncClient = self._client._client
        return http

    def _checked(self, line: bytes, begun: bool, model: str) -> Json:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise (
                AnswerCut(f"Ollama at {self.host} sent what is no answer.", "Ask again.") if begun else self._stranger()
            )
        if value.get("error"):
            raise self.fault(json.dumps(value), 0, {}, model)
        return value

    def _silent(self, error: Exception, seconds: float) -> ProviderUnreachable:
        import httpx

        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            return ProviderUnreachable(
                f"Ollama at {self.host} did not answer within {seconds:.0f} s.", "See what it does with `ollama ps`."
            )
        return ProviderUnreachable(
            f"Ollama does not answer at {self.host}.", "Start it with `ollama serve`, or set ollama.host."
        )

    def _stranger(self) -> ProviderError:
        return ProviderError(f"What answers at {self.host} is not Ollama.", "Check ollama.host in the configuration.")

    def fault(self, text: str, status: int, headers: Mapping[str, str], model: str) -> ProviderError:
        """What an error reply means; `status` is 0 for one in the middle of a stream."""
        said, numbers = _unwrapped(text)
        low = said.lower()
        if any(sign in low for sign in _TOO_LONG) or "exceed_context_size" in text:
            asked, window = (numbers.get(key) for key in ("n_prompt_tokens", "n_ctx"))
            sizes = f" ({asked:,} of {window:,} tokens)" if isinstance(asked, int) and isinstance(window, int) else ""
            return ContextTooLong(
                f"The request is longer than {model} can read{sizes}.",
                "Ask in a new conversation, or raise chat.context.",
            )
        if status == 404 and "model" in low:
            return ChatModelMissing(f"Ollama at {self.host} has no model {model}.", f"Run `ollama pull {model}`.")
        if status == 404 and not model:
            return self._stranger()
        if status in (429, 499, 503) or any(sign in low for sign in _BUSY):
            return ProviderBusy(worded("Ollama is busy", said), "Ask again.", retry_after=retry_after(headers))
        if status == 401:
            return ProviderRefused(f"Ollama wants you to sign in before it uses {model}.", "Run `ollama signin`.")
        if status == 403:
            return ProviderRefused(
                worded(f"Ollama at {self.host} refuses the request", said),
                "Give ollama.host as http://127.0.0.1:11434, or let Ollama listen on that address (OLLAMA_HOST).",
            )
        if "does not support chat" in low:
            return no_chat(model)
        if "requires more system memory" in low:
            return ProviderError(
                worded(f"{model} does not fit into memory", said),
                "Set a smaller chat.context, or choose a smaller model.",
            )
        if "invalid tool call" in low:
            return ProviderError(f"{model} called a tool in a form that Ollama cannot read.", "Ask again.")
        if status == 400:
            return ProviderRefused(worded("Ollama refuses the request", said), "See Ollama's own log.")
        if status in (502, 504):
            return ProviderUnreachable(f"No Ollama answers behind {self.host} ({status}).", "Is it running there?")
        return ProviderError(
            worded(f"Ollama failed ({status})" if status else "Ollama failed", said), "See its own log."
        )


def no_chat(model: str) -> ProviderRefused:
    """For a model that only embeds."""
    return ProviderRefused(f"{model} is no chat model.", "Name one in chat.model; `ollama list` shows what there is.")


class LineBuffer:
    """Bytes as they come from the network, and the whole lines in them, blank ones left out."""

    def __init__(self) -> None:
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
            raise AnswerCut("Ollama sent a line that has no end.", "Ask again.")

    def end(self) -> bytes:
        """What stands behind the last line's end, if that is whole; half a line is an answer that was cut."""
        rest = b"".join(self._pieces).strip()
        with contextlib.suppress(ValueError):
            json.loads(rest)
            return rest
        return b""


def _sdk() -> type[ollama.AsyncClient]:
    import ollama

    return ollama.AsyncClient


def _unwrapped(text: str) -> tuple[str, Mapping[str, Any]]:
    """The words of an error, and the object they stood in; errors of the engine below come as JSON inside a string."""
    value: Any = text
    for _ in range(4):
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                break
        if isinstance(value, dict) and "error" in value:
            value = value["error"]
        else:
            break
    about = value if isinstance(value, dict) else {}
    said = about.get("message", about.get("detail")) if about else value
    if not isinstance(said, str) or said.lstrip().startswith("<"):
        return "", about
    said = " ".join(said.split())
    return (said if len(said) <= SAID_CHARS else said[:SAID_CHARS] + "…"), about
