"""Servers of models: whether they are on this machine, and what their errors mean for all vendors alike."""

from __future__ import annotations

import email.utils
import ipaddress
import json
import math
import os
import re
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tarsd import foreign
from tarsd.errors import (
    AnswerCut,
    ChatModelMissing,
    ContextTooLong,
    EmbedderUnreachable,
    EmbedError,
    ModelMissing,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
)
from tarsd.parse.tokens import tokens as tokens

Kind = Literal[
    "too long", "credit", "key", "no cloud", "denied", "unable", "memory", "call", "busy", "loading", "late", "missing",
    "moved", "refused", "failed", "crashed", "away", "silent", "cut", "setup", "proxy", "certificate", "tls",
]  # fmt: skip
Use = Literal["chat", "embedding"]

CLOUD: Final = ("-cloud", ":cloud")
"""How the names end of models that Ollama only passes on to another machine."""

_TOO_LONG = (
    r"context_length_exceeded|exceed_context_size|request_too_large|maximum context length|available context size"
    r"|context (?:length|size|window)[^.]{0,80}(?:exceed|too (?:long|small|large)|overflow|only)"
    r"|(?:exceed|larger than|longer than|overflow)[^.]{0,80}context|context the overflows"
    r"|(?:prompt|input|request)[^.]{0,30} (?:is )?too long|reduce the length of|contextwindowexceeded"
    r"|(?:exceed|longer than|too large)[^.]{0,80}(?:maximum (?:model|prompt|input|sequence) length|tokens allowed)"
    r"|input token count|maximum prompt length|too many tokens[^.]{0,60}prompt|`inputs` tokens \+ `max_new_tokens`"
)
_MISSING = (
    r"model_not_found|not_found_error|no models? (?:is )?loaded|not a valid model"
    r"|\bmodel\b.{0,120}(?:not found|not exist|not available|unknown)"
)
_CRASHED = (
    r"do embedding request.*(?:EOF|reset|refused|broken pipe)|unexpectedly stopped|runner (?:process )?has terminated"
)
_LOADING = (
    r"(?<!error )loading (?:the )?model|(?:is|still)(?: currently| still)? loading\b|being loaded|model is starting"
)
_RULES: Final[tuple[tuple[Kind, Collection[int], str], ...]] = (
    ("crashed", (), _CRASHED),
    ("too long", (413,), _TOO_LONG),
    ("credit", (402,), r"billing_error|insufficient_quota|spend_limit|credit balance"),
    (
        "key",
        (401,),
        r"authentication_error|API_KEY_INVALID|api[ _]key (?:is )?(?:not valid|invalid|expired)|invalid api.?key",
    ),
    ("no cloud", (), r"cloud is disabled"),
    ("denied", (403,), r"permission_error"),
    ("unable", (), r"does not support (?:chat|embeddings)"),
    ("memory", (), r"requires more system memory"),
    ("call", (), r"invalid tool call"),
    ("loading", (), _LOADING),
    ("busy", (429, 499, 503, 529), r"overloaded|rate.?limit|unavailable_error|server busy|maximum pending requests"),
    ("late", (408, 502, 504), r"timeout_error"),
    ("failed", range(500, 600), ""),
    ("missing", (404,), _MISSING),
    ("moved", range(300, 400), ""),
    ("refused", range(400, 500), r"invalid_request_error"),
)
"""What an error is: the first row that has its HTTP status, or whose pattern is in its text or in its name."""


class ResponseTimeout(ProviderUnreachable):
    """The server took the request and did not answer in time: it may be at work on another."""


_ERRORS: Final[Mapping[Kind, tuple[type[ProviderError], type[EmbedError], str, str]]] = {
    "too long": (
        ContextTooLong, EmbedError,
        "The request is too long for {model}", "Start a new conversation, or set chat.context.",
    ),
    "credit": (
        ProviderRefused, EmbedError,
        "The credit or quota at {place} is used up", "See the billing page of the provider.",
    ),
    "key": (ProviderRefused, EmbedError, "{place} does not accept the key", "Set it again with `tarsd key set`."),
    "no cloud": (
        ProviderRefused, ModelMissing,
        "{place} is set to use no cloud models, but {model} is one",
        "Choose a local model, or allow cloud models in its settings (OLLAMA_NO_CLOUD).",
    ),
    "denied": (ProviderRefused, EmbedError, "{place} does not allow this", "The key has no access to this model."),
    "unable": (
        ProviderRefused, ModelMissing, "{model} cannot be used as the {use} model", "Set another one in {use}.model."
    ),
    "memory": (
        ProviderError, EmbedError,
        "{model} does not fit into memory", "Set a smaller chat.context, or choose a smaller model.",
    ),
    "call": (ProviderError, EmbedError, "{model} called a tool in a way that {place} cannot read", "Ask again."),
    "busy": (ProviderBusy, RateLimited, "{place} is busy", "Ask again in a moment, or set chat.fallback."),
    "loading": (ProviderBusy, EmbedError, "{place} is loading {model}", "Ask again in a moment."),
    "late": (
        ProviderUnreachable, EmbedError,
        "The server behind {place} did not answer in time{status}", "Ask again, or check the model's server.",
    ),
    "missing": (ChatModelMissing, ModelMissing, "{place} has no model {model}", "Check {use}.model."),
    "moved": (
        ProviderError, EmbedError,
        "{place} redirects to another address, which tarsd does not follow", "Set that address in the config.",
    ),
    "refused": (ProviderRefused, EmbedError, "{place} rejected the request{status}", "See the server's log."),
    "failed": (ProviderError, EmbedError, "{place} failed{status}", "See the server's log."),
    "crashed": (
        ProviderError, EmbedderUnreachable,
        "The engine behind {place} crashed", "The next request starts it again; see the server's log.",
    ),
    "away": (ProviderUnreachable, EmbedderUnreachable, "{place} does not answer", "Start the model's server."),
    "silent": (
        ResponseTimeout, EmbedError,
        "{place} did not answer within {seconds:.0f} s", "It may be busy, or still loading the model.",
    ),
    "cut": (AnswerCut, EmbedError, "{place} broke off its answer", "Ask again."),
    "setup": (
        ProviderUnreachable, EmbedderUnreachable, "{place} cannot be reached", "Check its address in the config.",
    ),
    "proxy": (
        ProviderUnreachable, EmbedderUnreachable,
        "{place} cannot be reached through the proxy", "Check the proxy, or add the host to NO_PROXY.",
    ),
    "certificate": (
        ProviderUnreachable, EmbedderUnreachable,
        "The certificate of {place} is not trusted", "Set ca_file to this certificate or its issuer's.",
    ),
    "tls": (
        ProviderUnreachable, EmbedderUnreachable,
        "{place} does not speak proper HTTPS", "Should its address start with http://?",
    ),
}  # fmt: skip
"""What is said of it: the error of a chat model, that of an embedding model, a sentence, a hint."""

_UNTOLD: Final = ("key", "no cloud", "missing", "call", "moved")
"""Where the server's own words say no more than the sentence, or repeat what was sent."""

_SPENT = re.compile(r"billing|credit|quota|spend", re.IGNORECASE)
_NUMBER = r"(\d[\d,]{2,9})"
# How servers tell how much a model reads, and how long the prompt is; the plainest first.
_WINDOW = tuple(
    re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE)
    for pattern in (
        r"(?:context (?:length|size|window)|(?:model|prompt|input|sequence) length)"
        r"(?: is| of| limit of)?(?: only)?:? \(?N",
        r"N (?:tokens? )?(?:maximum context|maximum\b|context (?:length|size|window))",
        r"(?:number of tokens allowed|limit of|must be <=|> ) ?\(?N",
    )
)
_ASKED = tuple(
    re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE)
    for pattern in (
        r"N (?:`?inputs?`? tokens|(?:tokens )?(?:in|from) (?:the|your) (?:input )?(?:messages|prompt)|of text input)",
        r"(?:request contains|keep the first) N tokens",
        r"(?:prompt|input|request)(?: token count)?[^.\d]{0,40}\(?(?:of |length |has |contains )?N(?: tokens|\b)",
        r"(?:requested|resulted in|tokens|limit:)[^.\d]{0,20}N\)?(?: tokens|\b)",
    )
)
_AGAIN = re.compile(
    r"(?:try again|retry|wait)(?: again)?(?: in| after| for)? "
    r"(?:(\d+) ?m(?:in(?:utes?)?)? ?)?(\d+(?:\.\d+)?) ?(ms|s|sec|seconds?)\b",
    re.IGNORECASE,
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")


@dataclass(frozen=True)
class Fault:
    """An error as a server tells it: its HTTP status (0: it came inside a stream), and its words as they may be shown.

    `said` is all its words, keys and note text included: to look for patterns in, and for nothing else.
    `wait_s` is how long the server asks to wait; `asked` and `window` are the tokens of the prompt and those that the
    model reads, 0 where nobody told. `seconds` is how long a server was waited for that said nothing. `hint` is a
    better one than that of its kind.
    """

    kind: Kind
    status: int
    text: str
    wait_s: float | None = None
    asked: int = 0
    window: int = 0
    seconds: float = 0
    hint: str = ""
    said: str = field(default="", repr=False, compare=False)

    def chat_error(self, place: str, model: str, hints: Mapping[Kind, str]) -> ProviderError:
        """The error to raise for a chat model at `place`; `hints` are better ones than the usual."""
        error = _ERRORS[self.kind][0](*self._words("chat", place, model, hints), retry_after=self.wait_s)
        error.said = self.said if self.kind in ("refused", "failed") else ""
        if isinstance(error, ContextTooLong):
            error.asked, error.window = self.asked, self.window
        return error

    def embed_error(self, place: str, model: str, hints: Mapping[Kind, str]) -> EmbedError:
        """As `chat_error`, for an embedding model."""
        return _ERRORS[self.kind][1](*self._words("embedding", place, model, hints), retry_after=self.wait_s)

    def _words(self, use: Use, place: str, model: str, hints: Mapping[Kind, str]) -> tuple[str, str]:
        *_, sentence, hint = _ERRORS[self.kind]
        said = "" if self.kind in _UNTOLD else self.text
        if self.kind == "too long" and self.asked and self.window:
            said = f"{self.asked:,} tokens of {self.window:,}"
        status = f" ({self.status})" if self.status else ""
        fill = {"place": place, "model": model, "use": use, "status": status, "seconds": self.seconds}
        hint = self.hint or hints.get(self.kind, hint).format_map(fill)
        if self.wait_s and self.wait_s > 60:
            hint = hint.replace("in a moment", f"in {_span(self.wait_s)}")
        return worded(sentence.format_map(fill).rstrip(), said), hint

    def words(self, place: str) -> tuple[str, str]:
        """A sentence and a hint, for a server that is not a model's."""
        return self._words("chat", place, "", {})


class ClientUnusable(Exception):
    """Something on this machine keeps a client from being made, or from asking: `fault` says what."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


def fault(
    status: int,
    body: object,
    headers: Mapping[str, str] | None = None,
    *,
    secret: str | None = None,
    sent: object = None,
) -> Fault:
    """What is the matter; `body` is JSON, read or not, or any text.

    `secret` is a key that the server may repeat, `sent` the request, of which it may repeat the texts.
    """
    foreign.keep_secret(secret)
    value = _unwrapped(body)
    about: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    text = about.get("message") or about.get("detail") or about.get("msg") or "" if about else value
    text = _line(text)
    details = about.get("details")
    names = [about.get("type"), about.get("code"), details.get("error_code") if isinstance(details, Mapping) else ""]
    said = " ".join([text, *(str(name) for name in names if isinstance(name, str | int))])
    if not status and re.fullmatch(r"[45]\d\d", str(about.get("code"))):
        status = int(about["code"])
    wait_s = retry_after(headers or {})
    wait_s = _told_delay(details) if wait_s is None else wait_s
    wait_s = _wish(text) if wait_s is None else wait_s
    window = count(about.get("n_ctx")) or _number(_WINDOW, text)
    asked = count(about.get("n_prompt_tokens")) or _number(_ASKED, text)
    asked = asked if asked != window else 0
    return Fault(_kind(status, said, wait_s), status, foreign.told(text, sent), wait_s, asked, window, said=text)


def lost(error: Exception, seconds: float, *, begun: bool = False, proxy: str = "") -> Fault:
    """What it means that a connection was not made or broke, by the error of httpx or httpx2, or that of an SDK.

    The server was waited for so many seconds at a time; `begun` when a part of the answer was there. `proxy` is the
    variable that names the proxy between.
    """
    chain = _chain(error)
    kinds = {kind.__name__ for cause in chain for kind in type(cause).__mro__}
    if begun:
        return Fault("cut", 0, "", seconds=seconds)
    for cause in chain:
        if isinstance(cause, ClientUnusable):
            return cause.fault
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _distrusted(cause)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return Fault("tls", 0, str(cause.reason or "").replace("_", " ").lower())
    if proxy and kinds & {"ProxyError", "ConnectError", "ConnectTimeout"}:
        return Fault("proxy", 0, f"{proxy} names it", seconds=seconds)
    if kinds & {"InvalidURL", "UnicodeError"}:
        return unmade(error)
    silent = "TimeoutException" in kinds and "ConnectTimeout" not in kinds
    return Fault("silent" if silent else "away", 0, "", seconds=seconds)


def unmade(error: Exception) -> Fault:
    """What it means that a client could not be loaded or made."""
    for cause in _chain(error):
        if isinstance(cause, ClientUnusable):
            return cause.fault
    if isinstance(error, ImportError):
        return Fault("setup", 0, "a required package cannot be loaded", hint="Reinstall tarsd.")
    return Fault("setup", 0, f"its address, its key or the environment cannot be used ({type(error).__name__})")


_CHAIN = 8
_UNKNOWN_ISSUER = (
    "Set ca_file of this server in the config, or SSL_CERT_FILE, to the file of this certificate or its issuer's."
)


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error and those behind it."""
    chain: list[BaseException] = []
    while error is not None and len(chain) < _CHAIN:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _distrusted(error: ssl.SSLCertVerificationError) -> Fault:
    """Why a certificate is not trusted, by OpenSSL's number of it, or by its words."""
    code, said = getattr(error, "verify_code", 0), str(getattr(error, "verify_message", "") or error)
    if code == 18 or (re.search(r"self.signed", said) and "in certificate chain" not in said):
        why, hint = "it is self-signed", _UNKNOWN_ISSUER
    elif code in (2, 19, 20, 21) or re.search(r"issuer|in certificate chain|not trusted", said):
        why, hint = "its issuer is not trusted on this machine", _UNKNOWN_ISSUER
    elif code == 10 or "expired" in said:
        why, hint = "it has expired", "Renew it on the server, or correct the clock of this machine."
    elif code == 9 or "not yet valid" in said:
        why, hint = "it is not valid yet", "The clock of the server or of this machine is wrong."
    elif code in (62, 63, 64) or "mismatch" in said or "doesn't match" in said:
        why, hint = "it is for another host name", "In the config, use the name or address that the certificate is for."
    else:
        why, hint = " ".join(said.split())[:120], _UNKNOWN_ISSUER
    return Fault("certificate", 0, why, hint=hint)


def _kind(status: int, said: str, wait_s: float | None) -> Kind:
    if status == 429 and not wait_s and _SPENT.search(said):
        return "credit"  # no matter of waiting
    for kind, statuses, pattern in _RULES:
        if kind == "credit" and status == 429 and wait_s:
            continue  # a quota by the minute, whatever it is called
        if status in statuses or (pattern and re.search(pattern, said, re.IGNORECASE)):
            return kind
    return "failed"


def _unwrapped(body: object) -> object:
    """The error itself: it stands under "error", and some send it as JSON in a string, that of another in theirs."""
    for _ in range(6):
        if isinstance(body, str | bytes):
            try:
                body = json.loads(body)
            except (ValueError, RecursionError):
                break
        if isinstance(body, list) and len(body) == 1 and isinstance(body[0], Mapping) and body[0].get("error"):
            body = body[0]
        inner = body.get("error") if isinstance(body, Mapping) else None
        if not isinstance(inner, Mapping | str) or not inner:
            break
        body = inner
    return body.decode("utf-8", "replace") if isinstance(body, bytes) else body


def _number(patterns: Sequence[re.Pattern[str]], text: str) -> int:
    """The number that the first of the patterns finds, 0 for none."""
    found = next((match for pattern in patterns if (match := pattern.search(text))), None)
    return int(re.sub(r"\D", "", found[1])) if found else 0


def _line(text: object) -> str:
    """One line; of a list of faults their messages, for these do not repeat the prompt."""
    if isinstance(text, list):
        faults = [entry for entry in text if isinstance(entry, Mapping)]
        text = "; ".join(str(entry.get("msg") or entry.get("message") or "") for entry in faults)
    if not isinstance(text, str) or text.lstrip().startswith("<"):
        return ""
    return " ".join(text.split())


def worded(what: str, said: str) -> str:
    """A sentence with the server's own words, where those say anything: an empty reply is no news."""
    return f"{what}: {said}" if any(letter.isalnum() for letter in said) and said != "null" else f"{what}."


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a reply asks to wait, from `retry-after-ms` or `retry-after` (seconds or a date), or None.

    `headers` are looked up in lower case, as HTTP clients keep them.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) / unit
        except ValueError:
            if (when := _moment(text)) is None:
                continue
            # by the server's own clock, where it tells it: that of this machine may be wrong
            seconds = when - next(filter(None, (_moment(headers.get("date", "")), now, time.time())))
            if seconds <= 0:  # it is over, or was meant by another clock: that says nothing
                continue
        if seconds < 1e9:  # a number, and one that can be meant
            return max(0.0, seconds)
    return None


def _span(seconds: float) -> str:
    """How long something takes, in words: never less than it is."""
    return f"{math.ceil(seconds / 60)} min" if seconds <= 7200 else f"{math.ceil(seconds / 3600):,} h"


def _moment(text: str) -> float | None:
    """The time of an HTTP date, in seconds since 1970."""
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _told_delay(details: object) -> float | None:
    """Seconds of the `retryDelay` among the details of one of Google's errors."""
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, Mapping) and (found := _DURATION.fullmatch(str(detail.get("retryDelay")))):
            return float(found[1])
    return None


def _wish(text: str) -> float | None:
    """Seconds that an error's text asks to wait."""
    if not (found := _AGAIN.search(text)):
        return None
    return int(found[1] or 0) * 60 + float(found[2]) / (1000 if found[3].lower() == "ms" else 1)


# ------------------------------------------------------------------------------------------------ what all have


def is_loopback(host: str | None) -> bool:
    """Whether a host name or address can only mean this machine."""
    if not host:
        return False
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def ollama_headers(host: str) -> dict[str, str]:
    """The key of Ollama's cloud from the environment, where it is not sent in the clear."""
    key = os.environ.get("OLLAMA_API_KEY")
    foreign.keep_secret(key)
    return {"authorization": f"Bearer {key}"} if key and host.startswith("https:") else {}


def ollama_name(model: str) -> str:
    """The name as Ollama lists it: one without a tag means `:latest`."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def model_info(shown: Mapping[str, Any], what: str) -> int:
    """A number about the model's kind in the answer of Ollama's /api/show, as "context_length"; 0 if it is not told."""
    info = shown.get("model_info")
    return count(info.get(f"{info.get('general.architecture')}.{what}")) if isinstance(info, Mapping) else 0


def count(value: object) -> int:
    """A number from outside that counts something, 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
