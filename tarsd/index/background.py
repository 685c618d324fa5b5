"""Vectors of the model, made in the background: newest notes first, in small batches, resumable, questions go first."""

from __future__ import annotations

import math
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from tarsd.children import ChildDied, Pool
from tarsd.chunk import count_tokens, embed_text
from tarsd.embed.auto import Auto
from tarsd.embed.base import Embedder, OtherWeights, OtherWidth, Vectors, is_bad, is_unusable, nothing
from tarsd.errors import EmbedderUnreachable, EmbedError, ModelMissing, RateLimited, StoreError
from tarsd.index.report import EmbeddingName, EmbeddingProgress
from tarsd.passage import Passage
from tarsd.store import NOT_READ, EmbedJob, Prepared, Space, Store

# What models put around a text.
_MARKS = 2
_BUILTIN = ("minilm", "e5")
_QUEUE = 2_048
_BATCH, _FEW = 32, 8
_NAMES_OF_SERVERS = ("ollama:", "openai:")
_BATCH_TOKENS = 8_192
_IDLE_S = 60.0
_BUSY_S = 0.02
# Others may keep us waiting, but not for ever: a client that asks without end must not stop embedding.
_MOST_BUSY_S = 5.0
_FAILURES_BEFORE_PARTS = 3
# How long a text that a server sent nothing usable for is left alone, after the first such time and the later ones.
_LEFT_ALONE_S = (60.0, 3_600.0)
_COMMITS_BETWEEN_UPKEEP = 200
_PAUSES: dict[type[EmbedError], tuple[EmbeddingName, float, float]] = {
    OtherWeights: ("embedding", 0.1, 60.0),
    RateLimited: ("rate_limited", 1.0, 120.0),
    EmbedderUnreachable: ("unreachable", 2.0, 60.0),
    ModelMissing: ("model_missing", 15.0, 300.0),
    EmbedError: ("failing", 2.0, 300.0),
}
_NO_FAULT_OF_TEXTS = (RateLimited, EmbedderUnreachable, ModelMissing, OtherWeights, OtherWidth)


class Background:
    """Embeds what has no vector yet. One thread runs it; `status`, `wake` and `close` are for everybody."""

    def __init__(
        self,
        store: Store,
        model: Embedder | None,
        pool: Pool,
        busy: Callable[[], bool],
        *,
        small: bool = False,
    ) -> None:
        self._store, self._model, self._pool = store, model, pool
        self._busy = busy
        cores = os.cpu_count() or 1
        self._most, self._threads = (_FEW, 1) if small else (_BATCH, max(min(cores, 2), cores // 2))
        self._wake = threading.Event()
        self._stale = True
        self._queue: deque[EmbedJob] = deque()
        # Asking a model whether it is local may mean asking its server: only our own thread does that.
        self._local = False
        self._space: int | None = None
        # Of that space, not of the model: the model may turn out to be another one in the middle of a batch.
        self._fingerprint, self._dim = "", 0
        self._state: EmbeddingName = "starting" if model is not None else "none"
        self._reason = self._hint = ""
        self._failures = 0
        # Texts that get another try, and not before when. A new start tries them at once.
        self._later: dict[bytes, float] = {}
        self._delivered = False
        self._kept_up = store.database.generation
        self._children_died = 0
        self._closing = threading.Event()

    @property
    def has_model(self) -> bool:
        return self._model is not None

    def status(self) -> EmbeddingProgress:
        """How far it is, and what holds it up."""
        model = self._model
        if model is None:
            return EmbeddingProgress("", "none")
        progress = EmbeddingProgress(model.name, self._state, reason=self._reason, hint=self._hint)
        counts, space = self._store.counts(), self._own_space()
        if space is None:
            return replace(progress, remaining=counts.chunks if self._state != "complete" else 0)
        remaining = self._store.vectors.count_missing(space.id, local=self._local, later=list(self._later))
        return replace(
            progress,
            # it was complete, and something new has come since
            state="embedding" if self._state == "complete" and remaining else self._state,
            done=space.vectors,
            remaining=remaining,
            held_back=0 if self._local else counts.held_back,
            failed=counts.failed,
            not_read=counts.not_read,
        )

    def wake(self) -> None:
        """Something was indexed: look again, and take it first."""
        self._stale = True
        self._wake.set()

    def took_in(self, fingerprint: str) -> bool | None:
        """Look again, for vectors of this model came from elsewhere; whether it is ours, None while that is not known.

        The built-in models are known at once, others when their server has answered.
        """
        self.wake()
        if self._model is None:
            return False
        own = self._fingerprint or (self._model.fingerprint if self._model.name in _BUILTIN else "")
        return own == fingerprint if own else None

    def forgive(self) -> None:
        """Try all failed texts again, and ask the model's server again about the model."""
        self._later = {}
        if self._model is not None:
            self._model.ask_again()
        self.wake()
        if (space := self._own_space()) is not None:
            self._store.vectors.forgive(space.fingerprint)

    def _own_space(self) -> Space | None:
        return next((space for space in self._store.vectors.spaces() if space.id == self._space), None)

    def close(self) -> None:
        """Stop soon, and end the child process."""
        self._closing.set()
        self._wake.set()
        self._pool.close()

    def run(self, stopped: Callable[[], bool]) -> None:
        """Embed until `stopped()` (asked between batches and, while idle, within a second)."""
        while not self._over(stopped):
            self._sleep(stopped, self.drain(stopped))

    def drain(self, stopped: Callable[[], bool]) -> float:
        """Embed until nothing is left, the model does not deliver, or `stopped()`; seconds to wait then."""
        while not self._over(stopped):
            try:
                batch = self._next(self._model) if self._model is not None else []
                if self._model is None or not batch:
                    self._upkeep()
                    return _IDLE_S
                self._wait_for_questions(stopped)
                if self._over(stopped):
                    break
                self._embed(self._model, batch)
            except EmbedError as error:
                return self._held_up(error)
            except StoreError as error:
                self._say("failing", error.message, error.hint)
                return 5.0
            self._failures = 0
            self._say("embedding")
        return 0.0

    def _over(self, stopped: Callable[[], bool]) -> bool:
        return stopped() or self._closing.is_set()

    def _sleep(self, stopped: Callable[[], bool], seconds: float) -> None:
        """Wait; while nothing is wrong, an edit ends it."""
        deadline = time.monotonic() + seconds
        while not self._over(stopped) and (left := deadline - time.monotonic()) > 0:
            if self._failures:
                self._closing.wait(min(left, 0.5))
            elif self._wake.wait(min(left, 1.0)):
                return

    def _upkeep(self) -> None:
        """Once in a while, when there is nothing else to do."""
        if self._store.database.generation - self._kept_up >= _COMMITS_BETWEEN_UPKEEP:
            self._kept_up = self._store.database.generation
            self._store.maintain()

    def _next(self, model: Embedder) -> list[EmbedJob]:
        """The next batch, bounded in texts and tokens; empty when everything has its vector."""
        self._wake.clear()
        space = self._ensure(model)
        if self._stale or not self._queue:
            self._stale, self._local = False, model.local
            now = time.monotonic()
            self._later = {hash: when for hash, when in self._later.items() if when > now}
            self._queue = deque(
                self._store.vectors.missing(space.id, _QUEUE, local=self._local, later=list(self._later))
            )
        if not self._queue:
            older = any(known.role == "model" and known.id != space.id for known in self._store.vectors.spaces())
            if older or (space.state == "building" and space.chunks):
                self._store.vectors.activate(space.id)
            self._failures = 0
            self._say("complete")
            return []
        most = max(1, min(model.batch, self._most))
        batch = [self._queue.popleft()]
        tokens = batch[0].passage.tokens
        # A text that failed before is asked for alone: it costs no other one a further call, and is sent only once.
        most = 1 if batch[0].tries else most
        while (
            self._queue
            and len(batch) < most
            and not self._queue[0].tries
            and tokens + self._queue[0].passage.tokens <= _BATCH_TOKENS
        ):
            tokens += self._queue[0].passage.tokens
            batch.append(self._queue.popleft())
        return batch

    def _ensure(self, model: Embedder) -> Space:
        """The model's space. The first look at a new model may ask its server for the width of a vector."""
        fingerprint = model.fingerprint
        known = self._store.vectors.space_for(fingerprint)
        if known is None and model.former:
            self._store.vectors.rename(model.former, fingerprint)
            known = self._store.vectors.space_for(fingerprint)
        if known is None or (known.id, fingerprint) != (self._space, self._fingerprint):
            dim = known.dim if known is not None else model.dim
            if not dim:
                sample = model.embed(["note"], "document")
                dim = int(sample.shape[1])
                if not dim or bool(is_bad(sample)[0]):
                    raise EmbedError(f"{model.name} returns no vectors.", "Is it an embedding model?")
            known = self._store.vectors.ensure_space(model.name, fingerprint, dim, "model")
            if self._space is None and model.name.startswith(_NAMES_OF_SERVERS):
                self._store.vectors.forgive(fingerprint)  # a server may have been ill: a new start tries again
            self._space, self._fingerprint, self._dim = known.id, fingerprint, known.dim
            self._later = {}
            self._stale = True
        return known

    def _wait_for_questions(self, stopped: Callable[[], bool]) -> None:
        """Questions go first."""
        deadline = time.monotonic() + _MOST_BUSY_S
        while self._busy() and not self._over(stopped) and time.monotonic() < deadline:
            time.sleep(_BUSY_S)

    def _embed(self, model: Embedder, batch: Sequence[EmbedJob]) -> None:
        """One text may spoil a batch: it is found, and given up alone. If all fail, no text is to blame."""
        error = self._try(model, batch)
        if error is None:
            return
        if not error.permanent and self._failures < _FAILURES_BEFORE_PARTS:
            raise error
        if len(batch) == 1:
            if not self._delivered:
                raise error
            self._give_up([(batch[0], error)])
            return
        delivered, self._delivered = self._delivered, False
        try:
            bad = self._try_parts(model, batch)
            fine = self._delivered
        finally:
            self._delivered = self._delivered or delivered
        if not fine:
            raise error
        self._give_up(bad)

    def _give_up(self, bad: Sequence[tuple[EmbedJob, EmbedError]]) -> None:
        """Texts that failed alone, while others did not: for now, and after several such times until the next start."""
        for job, error in bad:
            failure = (job.passage.hash, error.message)
            self._store.vectors.fail(self._fingerprint, [failure], permanent=error.permanent)
        self._leave_alone([job for job, error in bad if not error.permanent])

    def _leave_alone(self, jobs: Iterable[EmbedJob]) -> None:
        for job in jobs:
            pause = _LEFT_ALONE_S[min(job.tries, len(_LEFT_ALONE_S) - 1)]
            self._later[job.passage.hash] = time.monotonic() + pause

    def _try_parts(self, model: Embedder, batch: Sequence[EmbedJob]) -> list[tuple[EmbedJob, EmbedError]]:
        """In groups, then one by one in a group that fails: no text is asked for more than three times."""
        bad: list[tuple[EmbedJob, EmbedError]] = []
        size = math.isqrt(len(batch) - 1) + 1
        for start in range(0, len(batch), size):
            group = batch[start : start + size]
            if self._try(model, group) is None:
                continue
            for job in group:
                if (error := self._try(model, [job])) is not None:
                    bad.append((job, error))
        return bad

    def _try(self, model: Embedder, batch: Sequence[EmbedJob]) -> EmbedError | None:
        """Why these texts cannot be embedded; None if they were. Raises errors that are not the texts' fault."""
        try:
            vectors = self._vectors_of(model, [text_of(job.passage, model.max_tokens) for job in batch])
        except _NO_FAULT_OF_TEXTS:
            raise
        except EmbedError as error:
            return error
        self._keep(model, batch, vectors)
        return None

    def _keep(self, model: Embedder, batch: Sequence[EmbedJob], vectors: Vectors) -> None:
        assert self._space is not None
        if model.fingerprint != self._fingerprint:
            if isinstance(model, Auto):
                return  # another one was chosen meanwhile; the next look asks that
            raise OtherWeights(model.name)
        if vectors.shape[1] != self._dim:
            if not is_bad(vectors).all():
                raise OtherWidth(vectors.shape[1], self._dim)
            vectors = nothing(len(batch), self._dim)
        hashes = [job.passage.hash for job in batch]
        bad = self._store.vectors.put(self._space, hashes, vectors)
        if len(bad) < len(batch):
            self._delivered = True
        unusable = is_unusable(vectors)
        for again in (False, True):
            some = [at for at in bad if bool(unusable[at]) is again]
            if not some:
                continue
            reason = f"{model.name} {'returned nothing usable for' if again else 'cannot embed'} this text"
            reason = NOT_READ if model.name in _BUILTIN else reason
            self._store.vectors.fail(self._fingerprint, [(hashes[at], reason) for at in some], permanent=not again)
            self._leave_alone(batch[at] for at in some if again)

    def _vectors_of(self, model: Embedder, texts: Sequence[str]) -> Vectors:
        """A built-in model runs in a child, so that answering stays quick; if children die, it runs here."""
        if model.name not in _BUILTIN or self._children_died > 1:
            return model.embed(texts, "document")
        try:
            found: Vectors = self._pool.call(f"tarsd.embed.{model.name}:embed_batch", texts, self._threads)
        except ChildDied as error:
            if self._closing.is_set():
                raise EmbedError("Embedding was stopped.") from error
            self._children_died += 1
            return self._vectors_of(model, texts)
        return found

    def _held_up(self, error: EmbedError) -> float:
        """Seconds to wait after an error: what the server asks for, else longer each time, never in step."""
        self._stale = True
        kind = next(kind for kind in _PAUSES if isinstance(error, kind))
        state, first, longest = _PAUSES[kind]
        pause = float(min(longest, first * 2.0 ** min(self._failures, 16))) * random.uniform(0.75, 1.25)
        if error.retry_after is not None:
            pause = max(error.retry_after * random.uniform(1.0, 1.1), 0.05)
        self._failures += 1
        self._say(state, error.message, error.hint)
        return pause

    def _say(self, state: EmbeddingName, reason: str = "", hint: str = "") -> None:
        self._state, self._reason, self._hint = state, reason, hint

    # The table, when its vectors are not made by the workers

    def top_up(self, space_id: int, table: Embedder) -> int:
        """Give every passage its table vector that lacks one; how many got one."""
        added = 0
        while jobs := self._store.vectors.missing(space_id, 512, local=True):
            vectors = table.embed([text_of(job.passage, table.max_tokens) for job in jobs], "document")
            hashes = [job.passage.hash for job in jobs]
            bad = self._store.vectors.put(space_id, hashes, vectors)
            self._store.vectors.fail(table.fingerprint, [(hashes[at], "no known words") for at in bad], permanent=True)
            added += len(jobs) - len(bad)
        return added


def text_of(passage: Passage, limit: int) -> str:
    """What an embedder reads of a passage, within its limit of tokens as far as the headings above it can give way."""
    note = passage.note
    text = embed_text(note.title, note.aliases, passage)
    for title, trail in ((note.title, passage.trail[-1:]), (note.title, ()), ("", ())):
        # only its long pieces can be too long; most need no counting
        if len(text) < limit or count_tokens(text) <= limit - _MARKS:
            break
        text = embed_text(title, (), replace(passage, trail=trail))
    return text


def embed_texts(store: Store, table: Embedder, notes: Sequence[Prepared]) -> int:
    """Cache the table's vectors of new notes, made here; how many were new."""
    passages = {passage.hash: passage for note in notes for passage in note.passages}
    known = store.cache.known(table.fingerprint, list(passages))
    wanted = [passage for hash, passage in passages.items() if hash not in known]
    added = 0
    for start in range(0, len(wanted), max(1, table.batch)):
        part = wanted[start : start + max(1, table.batch)]
        vectors = table.embed([text_of(passage, table.max_tokens) for passage in part], "document")
        added += store.cache.put(table.fingerprint, [passage.hash for passage in part], np.asarray(vectors))[0]
    return added
