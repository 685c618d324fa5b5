"""The connection to a server that speaks OpenAI's format; its failures become `ProviderError`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx  # noqa: F401  # the SDK looks into it if it is there, even when another thread has loaded half of it
import httpx2
import openai

from tarsd.errors import AnswerCut, ProviderError, ProviderRefused
from tarsd.transport import client_options, proxy_for
from tarsd.upstream import Fault, Kind, fault, is_loopback, lost, unmade, worded

CONNECT_S: Final = 5.0
ASK_S: Final = 5.0
LOCAL_SILENCE_S: Final = 300.0  # a model may have to be loaded, and a long prompt read
REMOTE_SILENCE_S: Final = 120.0
HOSTED: Final = "api.openai.com"
URL_HINT: Final = "Check openai.base_url; for most servers it ends in /v1."
HINTS: Final[Mapping[Kind, str]] = {
    "too long": "Load the model with a larger context, or set chat.context to its size.",
    "key": "Run `tarsd key set openai`, then ask again.",
    "denied": "Run `tarsd key set openai`, then ask again.",
    "missing": f"`tarsd models` lists its models; check chat.model. {URL_HINT}",
    "late": "Start the model's server.",
    "moved": URL_HINT,
    "away": "Start the model's server, or set openai.base_url.",
}

for _name in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # below that they log URLs and whole requests


class HttpFailure(Exception):
    """An answer that is no answer."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"status {fault.status}")
        self.fault = fault


class OpenAIServer:
    """The connection to one server, made at the first request; every failure of it is a ProviderError or Status."""

    def __init__(self, base_url: str, key: str | None, silence_s: float | None, ca_file: str = "") -> None:
        parts = urlsplit(base_url)
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
        self.loopback = is_loopback(parts.hostname)
        self.hosted = parts.hostname == HOSTED
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._ca_file = ca_file
        usual = LOCAL_SILENCE_S if self.loopback else REMOTE_SILENCE_S
        self._silence_s = usual if silence_s is None else silence_s
        self._client: openai.AsyncOpenAI | None = None

    def check_key(self) -> None:
        """Raises ProviderRefused where it is known that nothing goes without a key."""
        if self.hosted and not self._key:
            raise self.no_key("There is no key for OpenAI.")

    async def post(self, path: str, body: Mapping[str, Any]) -> openai.AsyncStream[object]:
        """A stream of the chunks as they come, unchecked."""
        stream: openai.AsyncStream[object] = await self._send(
            self._connected().post(
                f"/{path}", cast_to=object, body=body, stream=True, stream_cls=openai.AsyncStream[object]
            ),
            sent=body,
        )
        return stream

    async def get(self, path: str) -> object:
        """What the server says of itself at a path or a whole URL, within ASK_S."""
        seconds = min(ASK_S, self._silence_s)
        timeout = httpx2.Timeout(seconds, connect=CONNECT_S)
        url = path if "://" in path else f"/{path}"
        try:
            asked = self._connected().get(url, cast_to=object, options={"timeout": timeout})
            return await self._send(asked, seconds)
        except HttpFailure as error:
            raise self.failure(error.fault, "") from None

    async def native(self, path: str) -> Mapping[str, Any]:
        """The answer at a path of the server's own API, beside `/v1`; {} when it has no such thing."""
        root = self._base_url.removesuffix("/v1").rstrip("/")
        try:
            reply = await self.get(f"{root}/{path}")
        except ProviderError:
            return {}
        return reply if isinstance(reply, Mapping) else {}

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def fault(
        self, body: object, status: int = 0, headers: Mapping[str, str] | None = None, *, sent: object = None
    ) -> Fault:
        """What an error is about; without a status it came inside a stream. `sent` as in `upstream.fault`."""
        return fault(status, body, headers, secret=self._key, sent=sent)

    def failure(self, error: Fault, model: str, *, begun: bool = False) -> ProviderError:
        """The error to raise; `begun` when a part of the answer was there."""
        if begun and error.kind in ("late", "moved", "refused", "failed"):
            return self.cut(worded("broke off", error.text))
        return error.chat_error(self.where, model, HINTS)

    def no_key(self, message: str) -> ProviderRefused:
        return ProviderRefused(message, HINTS["key"])

    def cut(self, what: str) -> AnswerCut:
        hint = "Ask again; if it happens often, see the server's log."
        return AnswerCut(f"{self.where} {what.rstrip('.')}.", hint)

    def unreachable(self, error: Exception, seconds: float | None = None) -> ProviderError:
        found = lost(error, self._silence_s if seconds is None else seconds, proxy=proxy_for(self._base_url)[0])
        return found.chat_error(self.where, "", HINTS)

    def _connected(self) -> openai.AsyncOpenAI:
        """The SDK's client. Raises `ProviderError`."""
        if self._client is None:
            try:
                self._client = self._connect()
            except Exception as error:
                raise unmade(error).chat_error(self.where, "", HINTS) from None
        return self._client

    def _connect(self) -> openai.AsyncOpenAI:
        # the SDK takes these from the environment, and they are no business of another server
        none: Any = {} if self.hosted else {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}
        return openai.AsyncOpenAI(
            base_url=self._base_url,
            api_key=self._key or "none",  # the SDK takes no empty one
            max_retries=0,
            default_headers=none,
            http_client=openai.DefaultAsyncHttpxClient(
                # small servers close a kept connection just when the next request goes out on it
                limits=httpx2.Limits(max_keepalive_connections=0 if self.loopback else 4),
                **client_options(httpx2, self._base_url, self._ca_file),
                follow_redirects=False,  # who is asked was decided by what the prompt holds
                timeout=httpx2.Timeout(self._silence_s, connect=CONNECT_S),
            ),
        )

    async def _send(self, answer: Any, seconds: float | None = None, *, sent: object = None) -> Any:
        try:
            return await answer
        except openai.APIStatusError as error:
            raise HttpFailure(self.fault(error.body, error.status_code, error.response.headers, sent=sent)) from None
        except (openai.APIConnectionError, httpx2.HTTPError, OSError) as error:
            raise self.unreachable(error, seconds) from None
        except UnicodeError:
            raise self.no_key("The key for the OpenAI server contains invalid characters.") from None
        except (openai.OpenAIError, httpx2.InvalidURL, ValueError, RecursionError):
            raise ProviderError(f"{self.where} sent an invalid answer.", URL_HINT) from None
