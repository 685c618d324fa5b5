"""What the embedders behind a server share: batches of bounded size, and one bad text that must not cost the others."""

from __future__ import annotations

import email.utils
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tarsd.embed.base import OtherWidth, Vectors, check, is_bad, nothing, unusable
from tarsd.errors import EmbedError

log = logging.getLogger(__name__)

MAX_TEXTS = 32
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


class TextRefused(EmbedError):
    """The server will not embed one of these texts, now or later; never leaves this package.

    `certain` is False when the message could just as well be about the request as a whole.
    """

    def __init__(self, message: str, *, certain: bool) -> None:
        super().__init__(message, "The text stays findable by its words.", permanent=True)
        self.certain = certain


def estimate(text: str) -> int:
    """Tokens of a text, guessed from its bytes on the high side for prose, without anybody's tokenizer."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def batches(texts: Sequence[str], most: int = MAX_TEXTS, tokens: int = MAX_TOKENS) -> Iterator[slice]:
    """Slices of `texts`, in order, each of at most `most` texts and `tokens` estimated tokens (or a single text)."""
    start, size = 0, 0
    for at, text in enumerate(texts):
        cost = estimate(text)
        if at > start and (at - start >= most or size + cost > tokens):
            yield slice(start, at)
            start, size = at, 0
        size += cost
    if texts:
        yield slice(start, len(texts))


def worded(what: str, said: str) -> str:
    """A sentence with the server's own words, where those say anything: an empty reply is no news."""
    return f"{what}: {said}" if any(letter.isalnum() for letter in said) and said != "null" else f"{what}."


def checked(raw: object, n: int, dim: int, probe: Callable[[], int]) -> Vectors:
    """`check`, where one odd row is not taken for another model: `probe` gives the width of a known text.

    Raises OtherWidth only where that has another width too.
    """
    try:
        return check(raw, n, dim)
    except OtherWidth:
        found = probe()
        if found in (0, dim):
            return unusable(n, dim)
        raise OtherWidth(found, dim) from None


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
                raise EmbedError(error.message, "The server refuses every text; is this an embedding model?") from error
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
        found = self.together([text])
        return found[0] if found is not None else self.cut(text, cuts)

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
            try:
                when = email.utils.parsedate_to_datetime(text)
            except ValueError:
                continue
            seconds = when.timestamp() - (time.time() if now is None else now)
        if seconds == seconds and seconds != float("inf"):
            return max(0.0, seconds)
    return None
