"""What the embedders behind a server share: batches of bounded size, and one bad text that must not cost the others."""

from __future__ import annotations

import logging
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

import numpy as np

from tarsd.config.settings import EmbeddingSettings
from tarsd.embed.base import Kind, OtherWidth, Vectors, check, is_bad, nothing, prefixes, unusable
from tarsd.errors import EmbedError
from tarsd.upstream import CLOUD, Fault, is_loopback, lost, tokens, unmade, worded
from tarsd.upstream import Kind as FaultKind

log = logging.getLogger(__name__)
T = TypeVar("T")

QUERY_S: Final = 10.0
"""Search waits less than the index does; the answer may still serve the next question."""
REST_S: Final = 3.0
"""A server that is down costs one question its time-out, not each of them."""

MAX_TEXTS = 32
FEW_TEXTS = 8
"""Where one machine works on all: a question then waits for 8 texts and not for 32, at nearly the same rate."""
# A server's memory goes with the tokens of a batch, not with the number of its texts.
MAX_TOKENS = 8192
# How often texts of one batch may be refused before none of them is cut any more.
MAX_REFUSALS = 24
# What is tried of a text that is refused alone: half of it, then a quarter.
CUTS = (2, 4)
# How many are tried together where any of them may be the refused one.
GROUP = 6

# What is embedded to learn the width of a vector.
PROBE = "note"

Send = Callable[[Sequence[str]], Vectors]

_ABOUT_TEXT = re.compile(r"input length|context (?:length|size)|too (?:long|large)|maximum|\bnan\b", re.IGNORECASE)


class TextRefused(EmbedError):
    """The server will not embed one of these texts, now or later; never leaves this package.

    `certain` is False when the message could just as well be about the request as a whole.
    """

    def __init__(self, message: str, *, certain: bool) -> None:
        super().__init__(message, "The text is still found by its words.", permanent=True)
        self.certain = certain


def batches(texts: Sequence[str], most: int = MAX_TEXTS, most_tokens: int = MAX_TOKENS) -> Iterator[slice]:
    """Slices of `texts`, in order, each of at most `most` texts and about `most_tokens` tokens (or a single text)."""
    start, size = 0, 0
    for at, text in enumerate(texts):
        cost = tokens(text)
        if at > start and (at - start >= most or size + cost > most_tokens):
            yield slice(start, at)
            start, size = at, 0
        size += cost
    if texts:
        yield slice(start, len(texts))


class Remote(ABC):
    """An embedder whose model answers over HTTP; what members add is how to ask, and how the width is kept.

    `place` is how messages call the server, `hints` what they advise.
    """

    batch: int = FEW_TEXTS
    dim: int
    former: str = ""
    place: str
    hints: ClassVar[Mapping[FaultKind, str]]
    document_s: float
    """How long the server may take for a batch of the index; the model may have to be loaded first."""
    rest_s: float = REST_S
    """For how long a server that failed is not asked again."""

    def __init__(self, family: str, model: str, settings: EmbeddingSettings, host: str | None) -> None:
        self.name = f"{family}:{model}"
        self._model_name = model
        self._dimensions = settings.dimensions
        self._prefixes = prefixes(model, settings)
        self._failed: tuple[EmbedError | None, float] = (None, 0.0)
        self._loopback = is_loopback(host)
        # Ollama on this machine, its own /v1 too, passes its cloud models on.
        self._stays_here = self._loopback and not model.endswith(CLOUD)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32 [len(texts), dim]; refused texts are bad rows after they were tried alone, halved and quartered."""
        if not texts:
            return nothing(0, self.dim)
        dim = self._expected()
        prefix = self._prefixes[kind == "query"]
        seconds = QUERY_S if kind == "query" else self.document_s

        def send(batch: Sequence[str]) -> Vectors:
            rows = self._send([prefix + text for text in batch], seconds)
            return checked(rows, len(batch), dim, lambda: self._probe(seconds))

        try:
            vectors = embed_all(texts, dim, send, salvage=kind == "document")
        except OtherWidth as error:
            self._changed(error.found)
            raise
        if not self.dim and vectors.shape[1]:
            self._learn(vectors.shape[1])
        return vectors

    @abstractmethod
    def _expected(self) -> int:
        """The width that is known before anything is sent, or 0. Raises EmbedError."""

    @abstractmethod
    def _learn(self, dim: int) -> None:
        """The first vectors have this width."""

    @abstractmethod
    def _changed(self, dim: int) -> None:
        """Vectors have another width than before."""

    @abstractmethod
    def _send(self, batch: Sequence[str], seconds: float) -> object:
        """What the server gives for a batch: a list of vectors, if all is well. Raises EmbedError."""

    def ask_again(self) -> None:  # noqa: B027  # what most servers need
        """Only some servers say which weights they have."""

    def _probe(self, seconds: float) -> int:
        """How many numbers the server gives a text now."""
        try:
            rows = self._send([self._prefixes[0] + PROBE], seconds)
        except TextRefused as error:
            raise EmbedError(error.message, "The server rejects every text; is this an embedding model?") from error
        return len(rows[0]) if isinstance(rows, list) and rows and isinstance(rows[0], list) else 0

    def _measure(self) -> int:
        """As `_probe`, for a width that has to be known. Raises EmbedError."""
        if not (dim := self._probe(self.document_s)):
            raise EmbedError(f"{self.name} returns no vectors.", "Is it an embedding model?")
        return dim

    def _rested(self, ask: Callable[[], T]) -> T:
        """What `ask` returns; after a failure the same one for a while, without asking."""
        error, until = self._failed
        if error is not None and time.monotonic() < until:
            raise same(error)
        try:
            return ask()
        except EmbedError as fresh:
            self._failed = fresh, time.monotonic() + self.rest_s
            raise

    def _unmade(self, error: Exception) -> EmbedError:
        return unmade(error).embed_error(self.place, self._model_name, self.hints)

    def _lost(self, error: Exception, seconds: float, proxy: str = "") -> EmbedError:
        return lost(error, seconds, proxy=proxy).embed_error(self.place, self._model_name, self.hints)

    def _refusal(self, found: Fault) -> EmbedError:
        """The error for a batch that was refused: the texts', or the server's."""
        if found.kind in ("too long", "refused", "failed"):
            certain = found.kind == "too long" or bool(_ABOUT_TEXT.search(found.said))
            if certain or found.status in (400, 422):
                return TextRefused(worded(f"{self.place} rejects the text", found.text), certain=certain)
        return found.embed_error(self.place, self._model_name, self.hints)


def same(error: EmbedError) -> EmbedError:
    """The error again, of its class and with all that it holds, whatever its class is made from."""
    again = EmbedError.__new__(type(error))
    again.args = error.args
    again.__dict__.update(error.__dict__)
    return again


def checked(raw: object, n: int, dim: int, probe: Callable[[], int]) -> Vectors:
    """`check`, where one odd row is not taken for another model: `probe` gives the width of a known text.

    Raises OtherWidth only where that has another width too.
    """
    try:
        return check(raw, n, dim)
    except OtherWidth:
        width = probe()
        if width in (0, dim):
            return unusable(n, dim)
        raise OtherWidth(width, dim) from None


def embed_all(texts: Sequence[str], dim: int, send: Send, *, salvage: bool = True) -> Vectors:
    """Every text through `send`, batch by batch. Texts that the server refuses are bad rows; the others are not hurt.

    `send` gives checked rows for one batch, and raises TextRefused where a text is to blame. Rows that come back
    unusable are asked for once more by themselves, but not those of a batch of one text: whoever asks again for it,
    later, does not want two more calls. Blank texts are never sent. `salvage` off: one try, for a question that
    somebody waits for. Raises EmbedError when nothing could be embedded.
    """
    asked = [at for at, text in enumerate(texts) if text.strip()]
    parts: list[tuple[list[int], Vectors]] = []
    for piece in batches([texts[at] for at in asked]):
        where = asked[piece]
        batch = [texts[at] for at in where]
        vectors = _BatchSplitter(send).run(batch) if salvage else send(batch)
        parts.append((where, vectors))
    dim = next((vectors.shape[1] for _, vectors in parts if vectors.shape[1]), dim)
    out = nothing(len(texts), dim)
    for where, vectors in parts:
        if vectors.shape[1] == dim:
            out[where] = vectors
    return out


class _BatchSplitter:
    """One batch: taken apart until the refused texts are alone, which are then cut, then given up.

    No text is sent more often than four times, cut ones included (github.com/engram-app/Engram/issues/1591).
    """

    def __init__(self, send: Send) -> None:
        self.send = send
        self.refusals = 0
        self.accepted = 0

    def run(self, batch: Sequence[str]) -> Vectors:
        try:
            vectors = self.send(batch)
            self.accepted += 1
        except TextRefused as error:
            self.refusals += 1
            vectors = self.apart(batch) if len(batch) > 1 else self.cut(batch[0], CUTS)
            if not self.accepted and not error.certain:
                # The server likes none of them and does not say why: then the texts are not to blame.
                raise EmbedError(error.message, "The server rejects every text; is this an embedding model?") from error
            log.warning("%d of %d texts have no vector: %s", int(is_bad(vectors).sum()), len(batch), error.message)
            return vectors
        return self.again(batch, vectors)

    def again(self, batch: Sequence[str], vectors: Vectors) -> Vectors:
        """Zeros and NaN have been seen to come from load, and to be gone at the next try."""
        bad = np.flatnonzero(is_bad(vectors))
        if len(bad) == 0 or len(batch) == 1:
            return vectors
        try:
            vectors[bad] = self.send([batch[int(at)] for at in bad])
        except TextRefused as error:
            log.warning("%d of %d texts have no vector: %s", len(bad), len(batch), error)
        return vectors

    def apart(self, batch: Sequence[str]) -> Vectors:
        """The rows of a batch that was refused as a whole: the longest text, which is the likeliest to blame, alone,
        and the others together; if that will not do, in groups, or each alone where length is the fault."""
        longest = max(range(len(batch)), key=lambda at: len(batch[at]))
        others = [text for at, text in enumerate(batch) if at != longest]
        before = self.refusals
        row = self.alone(batch[longest], CUTS)
        too_long = self.refusals > before
        rows = self.together(others)
        if rows is None and too_long:
            rows = [self.alone(text, CUTS[:1]) for text in others]
        elif rows is None:
            rows = []
            for start in range(0, len(others), GROUP):
                group = others[start : start + GROUP]
                found = self.together(group) if len(group) < len(others) else None
                rows += found if found is not None else [self.alone(text) for text in group]
        return _joined([*rows[:longest], row, *rows[longest:]])

    def together(self, texts: Sequence[str]) -> list[Vectors] | None:
        """One part a text, None if they are refused."""
        try:
            vectors = self.send(texts)
            self.accepted += 1
            return list(np.split(vectors, len(texts)))
        except TextRefused:
            self.refusals += 1
            return None

    def alone(self, text: str, cuts: Sequence[int] = ()) -> Vectors:
        rows = self.together([text])
        return rows[0] if rows is not None else self.cut(text, cuts)

    def cut(self, text: str, cuts: Sequence[int]) -> Vectors:
        for share in cuts:
            if self.refusals >= MAX_REFUSALS:
                break
            if (found := self.together([text[: max(1, len(text) // share)]])) is not None:
                return found[0]
        return nothing(1, 0)


def _joined(parts: Sequence[Vectors]) -> Vectors:
    """Parts of a batch below each other; those without any row have no width of their own."""
    dim = max(part.shape[1] for part in parts)
    return np.concatenate([part if part.shape[1] == dim else nothing(len(part), dim) for part in parts])
