"""The query against the vector spaces: which can serve, what they find, and what to say when one cannot."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tarsd.embed.base import Embedder, OtherWeights, is_unusable
from tarsd.errors import EmbedError, StoreError
from tarsd.store import Role, Space, Store

# Far more than any model's window of 256 tokens holds.
_MAX_TEXT = 2_000
_SAMPLE = 128
# A guess of the background worth this many samples, so that a vault of three notes does not take its answer for it.
_PRIOR_SAMPLES = 32
_PRIOR = {"table": 0.1, "minilm": 0.1, "e5": 0.76}
_PRIOR_ELSE = 0.3
_REST_S = 15.0
# What a question waits for a model behind a server: one that was waited for before, and one that never was.
_WAIT_S, _FIRST_WAIT_S = 2.0, 5.0
_BUILTIN = ("table", "minilm", "e5")
_REMEMBERED = 256

MULTILINGUAL = frozenset({"e5"})
"""Models that place a text near its translations, and whose cosines are known: some others crowd into a tenth."""

Vector = npt.NDArray[np.float32]
_T = TypeVar("_T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query in one space; `background` is the mean cosine with anything in the notes."""

    space: Space
    name: str
    vector: Vector
    background: float


class VectorSpaces:
    """Table and model as search sees them. A model that failed is left alone for a while."""

    def __init__(
        self,
        store: Store,
        table: Embedder | None,
        model: Embedder | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._clock = store, clock
        roles: tuple[tuple[Role, Embedder | None], ...] = (("model", model), ("table", table))
        self._embedders = tuple((role, embedder) for role, embedder in roles if embedder is not None)
        self._rests_until: dict[str, tuple[float, str]] = {}
        self._queries: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._samples: dict[int, tuple[tuple[int, int], Vector]] = {}
        self._met: set[str] = set()
        self._lock = threading.Lock()

    def query_vectors(self, text: str, *, leaves: bool = True) -> tuple[list[QueryVector], str]:
        """The query in every space that serves now (model first), and what does not serve, as a sentence or "".

        Unless it `leaves`, the text stays on this machine: a model elsewhere is not asked. While the model covers
        everything the table is left out, unless the model fails. Never raises: whatever is wrong with vectors, words
        can still answer.
        """
        found: list[QueryVector] = []
        trouble = ""
        for role, embedder in self._embedders:
            if found and min(found[0].space.coverage, found[0].space.talk_coverage) >= 1.0:
                break
            if not leaves and not embedder.local:
                continue
            try:
                vector = self._query_vector(embedder, text)
                trouble = trouble or self._replaced(role, embedder, vector)
            except (EmbedError, StoreError) as error:
                trouble = self._failed(role, embedder, error)
                continue
            except Exception as error:
                log.exception("the query has no vector of %s", embedder.name)
                trouble = self._failed(role, embedder, EmbedError(f"{type(error).__name__}: {error}"))
                continue
            if vector is not None:
                found.append(vector)
        if trouble and not any(vector.space.role == "table" for vector in found):
            trouble = f"{trouble} Searched by words only." if not found else trouble
        elif trouble:
            trouble = f"{trouble} The instant table is used instead."
        return found, trouble

    def cosines(self, query: QueryVector, chunk_ids: Iterable[int]) -> dict[int, float]:
        """Exact cosines of those of the chunks that have a vector; none when the space was dropped meanwhile."""
        try:
            ids, vectors = self._store.vectors.of(query.space.id, chunk_ids)
        except StoreError as error:
            log.warning("no cosines: %s", error.message)
            return {}
        if not len(ids) or vectors.shape[1] != len(query.vector):
            return {}
        return dict(zip(ids.tolist(), (vectors @ query.vector).tolist(), strict=True))

    def best_space(self) -> Space | None:
        """The space that covers most, the model's when equal."""
        spaces = [
            space for _, embedder in self._embedders if (space := self._space(embedder)) is not None and space.vectors
        ]
        return max(spaces, key=lambda space: (round(space.coverage, 2), space.role == "model"), default=None)

    def _space(self, embedder: Embedder) -> Space | None:
        try:
            self._rested(embedder)
            return self._store.vectors.space_for(self._soon(embedder, lambda: embedder.fingerprint))
        except EmbedError as error:
            self._failed("model", embedder, error)
            return None

    def _query_vector(self, embedder: Embedder, text: str) -> QueryVector | None:
        self._rested(embedder)
        started = time.monotonic()
        space = self._store.vectors.space_for(self._soon(embedder, lambda: embedder.fingerprint))
        if space is None or not space.vectors:
            return None
        key = (space.fingerprint, text[:_MAX_TEXT])
        with self._lock:
            vector = self._queries.get(key)
        if vector is None:
            vector = self._soon(embedder, lambda: self._ask(embedder, key), started)
        if len(vector) != space.dim:
            raise EmbedError(f"{embedder.name} gives {len(vector)} dimensions where the index has {space.dim}")
        if not np.isfinite(vector).all():
            return None
        return QueryVector(space, embedder.name, vector, self._background(space, embedder.name, vector))

    def _ask(self, embedder: Embedder, key: tuple[str, str]) -> Vector:
        """The vector of a question, cached for the next time, even if nobody waits for it any more."""
        rows = embedder.embed([key[1]], "query")
        if is_unusable(rows)[0]:
            raise EmbedError(f"{embedder.name} returned nothing usable for this question")
        if embedder.fingerprint != key[0]:
            raise OtherWeights(embedder.name)
        vector: Vector = rows[0]
        self._met.add(embedder.name)
        with self._lock:
            self._queries[key] = vector
            while len(self._queries) > _REMEMBERED:
                self._queries.popitem(last=False)
        return vector

    def _rested(self, embedder: Embedder) -> None:
        resting = self._rests_until.get(embedder.name)
        if resting is not None and self._clock() < resting[0]:
            raise EmbedError(resting[1])

    def _soon(self, embedder: Embedder, work: Callable[[], _T], started: float | None = None) -> _T:
        """What `work` gives, or EmbedError when a server takes longer for it than anybody should wait.

        The request itself goes on: a model that was loading serves the next question.
        """
        if embedder.name in _BUILTIN:
            return work()
        seconds = _WAIT_S if embedder.name in self._met else _FIRST_WAIT_S
        answer: Future[_T] = Future()

        def run() -> None:
            try:
                answer.set_result(work())
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=run, name="tarsd-question", daemon=True).start()
        left = seconds - (time.monotonic() - started if started is not None else 0.0)
        if not wait([answer], max(0.1, left)).done:
            self._met.add(embedder.name)
            raise EmbedError(f"{embedder.name} did not answer within {seconds:.0f} s")
        return answer.result()

    def _replaced(self, role: Role, embedder: Embedder, vector: QueryVector | None) -> str:
        """What to say while the vectors of a model that changed under its name are made anew."""
        if role != "model" or (vector is not None and vector.space.coverage >= 1.0):
            return ""
        same = [space for space in self._store.vectors.spaces() if space.role == role and space.name == embedder.name]
        # by the fingerprint: a space without vectors a moment ago may have its first ones by now
        own = vector.space.fingerprint if vector is not None else self._soon(embedder, lambda: embedder.fingerprint)
        if not any(space.vectors and space.fingerprint != own for space in same):
            return ""
        return f"The embedding model {embedder.name} has changed; all passages are being embedded again."

    def _failed(self, role: Role, embedder: Embedder, error: EmbedError | StoreError) -> str:
        message = error.message.rstrip(".")
        rest = self._rests_until.get(embedder.name)
        ill = isinstance(error, EmbedError) and not isinstance(error, OtherWeights)
        if ill and (rest is None or self._clock() >= rest[0]):
            self._rests_until[embedder.name] = (self._clock() + _REST_S, error.message)
        which = "The embedding model" if role == "model" else "The instant table"
        return f"{which} cannot be used ({message})."

    def _background(self, space: Space, name: str, vector: Vector) -> float:
        size = 1 << (space.vectors - space.talk_vectors).bit_length()
        known = self._samples.get(space.id)
        if known is None or known[0] != (size, space.dim):
            _, rows = self._store.vectors.of(space.id, self._store.notes.sample(_SAMPLE))
            known = self._samples[space.id] = ((size, space.dim), rows)
        rows = known[1]
        prior = _PRIOR.get(name, _PRIOR_ELSE)
        return float(((rows @ vector).sum() + prior * _PRIOR_SAMPLES) / (len(rows) + _PRIOR_SAMPLES))
