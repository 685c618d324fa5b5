"""The query against the vector spaces: which can serve, what they find, and what to say when one cannot."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tarsd.embed.base import Embedder
from tarsd.errors import EmbedError, StoreError
from tarsd.store import Role, Space, Store, terms

# Far more than any model's window of 256 tokens holds.
_MAX_TEXT = 2_000
_SAMPLE = 128
# A guess of the background worth this many samples, so that a vault of three notes does not take its answer for it.
_PRIOR_SAMPLES = 32
_PRIOR = {"table": 0.1, "minilm": 0.1}
_PRIOR_ELSE = 0.3
_REST_S = 15.0
_REMEMBERED = 256

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Probe:
    """A query in one space; `background` is the mean cosine with anything in the vault."""

    space: Space
    name: str
    vector: Vector
    background: float


class Spaces:
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
        self._embedders = tuple((role, one) for role, one in roles if one is not None)
        self._rests_until: dict[str, tuple[float, str]] = {}
        self._queries: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._samples: dict[int, tuple[tuple[int, int], Vector]] = {}
        self._lock = threading.Lock()

    def probes(self, text: str) -> tuple[list[Probe], str]:
        """The query in every space that serves now (model first), and what does not serve, as a sentence or "".

        While the model covers everything the table is left out, unless the model fails.
        """
        found: list[Probe] = []
        trouble = ""
        for role, embedder in self._embedders:
            if found and found[0].space.coverage >= 1.0:
                break
            try:
                probe = self._probe(embedder, text)
            except (EmbedError, StoreError) as error:
                trouble = self._failed(role, embedder, error)
                continue
            if probe is not None:
                found.append(probe)
        if trouble and not any(probe.space.role == "table" for probe in found):
            trouble = f"{trouble} Found by words only." if not found else trouble
        elif trouble:
            trouble = f"{trouble} The instant table stands in."
        return found, trouble

    def nearest(self, probe: Probe, k: int, files: Collection[int] | None) -> list[tuple[int, float]]:
        """(chunk id, cosine) of the k nearest, best first."""
        return self._store.knn(probe.space.id, probe.vector, k, files)

    def cosines(self, probe: Probe, chunk_ids: Iterable[int]) -> dict[int, float]:
        """Exact cosines of those of the chunks that have a vector."""
        ids, vectors = self._store.vectors(probe.space.id, chunk_ids)
        if not len(ids):
            return {}
        return dict(zip(ids.tolist(), (vectors @ probe.vector).tolist(), strict=True))

    def best_space(self) -> Space | None:
        """The space that covers most, the model's when equal."""
        spaces = [space for _, one in self._embedders if (space := self._space(one)) is not None and space.vectors]
        return max(spaces, key=lambda space: (round(space.coverage, 2), space.role == "model"), default=None)

    def _space(self, embedder: Embedder) -> Space | None:
        try:
            return self._store.space_for(embedder.fingerprint)
        except EmbedError:
            return None

    def _probe(self, embedder: Embedder, text: str) -> Probe | None:
        resting = self._rests_until.get(embedder.name)
        if resting is not None and self._clock() < resting[0]:
            raise EmbedError(resting[1])
        space = self._store.space_for(embedder.fingerprint)
        if space is None or not space.vectors:
            return None
        key = (space.fingerprint, text[:_MAX_TEXT])
        with self._lock:
            vector = self._queries.get(key)
        if vector is None:
            vector = embedder.embed([key[1]], "query")[0]
            with self._lock:
                self._queries[key] = vector
                while len(self._queries) > _REMEMBERED:
                    self._queries.popitem(last=False)
        if not np.isfinite(vector).all():
            return None
        return Probe(space, embedder.name, vector, self._background(space, embedder.name, vector))

    def _failed(self, role: Role, embedder: Embedder, error: EmbedError | StoreError) -> str:
        message = error.message.rstrip(".")
        rest = self._rests_until.get(embedder.name)
        if isinstance(error, EmbedError) and (rest is None or self._clock() >= rest[0]):
            self._rests_until[embedder.name] = (self._clock() + _REST_S, error.message)
        which = "The embedding model" if role == "model" else "The instant table"
        return f"{which} cannot serve ({message})."

    def _background(self, space: Space, name: str, vector: Vector) -> float:
        size = 1 << space.vectors.bit_length()
        known = self._samples.get(space.id)
        if known is None or known[0] != (size, space.dim):
            _, rows = self._store.vectors(space.id, terms.sample(self._store, _SAMPLE))
            known = self._samples[space.id] = ((size, space.dim), rows)
        rows = known[1]
        prior = _PRIOR.get(name, _PRIOR_ELSE)
        return float(((rows @ vector).sum() + prior * _PRIOR_SAMPLES) / (len(rows) + _PRIOR_SAMPLES))
