"""Whether the index is whole and true: its legs against each other, SQLite's own check, and samples found again."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from tarsd.errors import NotFound
from tarsd.passage import Key, Passage
from tarsd.store import FileRow, Store, examine
from tarsd.vault import Scan, Unreadable, Vault, content_hash
from tarsd.words import index_text, split_words

NOTES: Final = 50
PASSAGES: Final = 50
WORDS: Final = 6
NEAREST: Final = 10
SAME: Final = 0.999
"""Cosine of two vectors that are the same but for rounding."""
AGAIN_S: Final = 2.0
"""After so long what was merely under way is done."""
QUICK_CHECK_S: Final = 8.0
PLACES: Final = 5
REINDEX: Final = "tarsd reindex --full"
RESTART: Final = "tarsd stop, then tarsd run: the daemon repairs it when it starts."

State = Literal["ok", "warning", "fault", "skipped"]


class CheckResult(NamedTuple):
    """What a check found: a sentence, what to do, and the notes that are meant."""

    state: State
    text: str
    hint: str = ""
    paths: Sequence[str] = ()


class IndexCheck:
    """The checks of an index; each may take long, and belongs into a thread. All raise StoreError.

    `opened` waits for the store, or raises what keeps it from being opened.
    """

    def __init__(self, opened: Callable[[], Store], vaults: Mapping[str, Vault], behind: Callable[[], int]) -> None:
        self._opened = opened
        self._vaults = vaults
        self._behind = behind

    @property
    def steps(self) -> Sequence[tuple[str, Callable[[], CheckResult]]]:
        """The checks by name, in the order in which they are made."""
        return (
            ("vault", self.vault),
            ("file", self.file),
            ("passages", self.passages),
            ("notes", self.notes),
            ("words", self.words),
            ("vectors", self.vectors),
        )

    @property
    def _store(self) -> Store:
        return self._opened()

    def vault(self) -> CheckResult:
        """Whether this very process may read the folders: macOS grants that to programs one by one."""
        for vault in self._vaults.values():
            vault.check()
        return CheckResult("ok", "The daemon can read the vault.")

    def file(self) -> CheckResult:
        """SQLite's own look at every page."""
        for which, what in (("main", "The index"), ("emb", "The vector cache")):
            said = examine.malformed(self._store, which, QUICK_CHECK_S)  # type: ignore[arg-type]
            if said is None:
                return CheckResult("skipped", f"{what} is too large to check in the time.")
            if said:
                return CheckResult("fault", f"{what} is damaged: {said[0]}", RESTART)
        return CheckResult("ok", "All pages are intact.")

    def passages(self) -> CheckResult:
        """Notes, passages, words and vectors: one for each, and none without the other."""
        found = examine.gaps(self._store)
        if found:
            time.sleep(AGAIN_S)
            found &= examine.gaps(self._store)
        if found:
            counts = Counter(what for what, _ in found)
            told = "; ".join(f"{number:,} {what}" for what, number in counts.items())
            return CheckResult("fault", f"The index has gaps: {told}.", f"{REINDEX}; a restart repairs the rest.")
        counts_ = self._store.counts()
        spaces = "".join(f", {space.vectors:,} vectors of {space.name}" for space in counts_.spaces)
        return CheckResult("ok", f"{counts_.notes:,} notes, {counts_.chunks:,} passages{spaces}: consistent.")

    def notes(self) -> CheckResult:
        """The notes on disk against those that are known, and the text of some against what was indexed."""
        wrong, looked = self._differing()
        if wrong:
            time.sleep(AGAIN_S)
            wrong &= self._differing(wrong)[0]
        if not wrong:
            return CheckResult("ok", f"The index matches the notes on disk; {looked} were read again to check.")
        places = sorted("/".join(part for part in key if part) for key in wrong)[:PLACES]
        if self._behind():
            return CheckResult(
                "warning", f"{len(wrong):,} notes wait to be indexed.", "Check again in a moment.", places
            )
        return CheckResult("fault", f"{len(wrong):,} notes differ from their index.", REINDEX, places)

    def _differing(self, only: Iterable[Key] | None = None) -> tuple[set[Key], int]:
        """Notes that are not indexed as they are, and how many were read; of a sample, or of these."""
        rows = self._store.notes.rows()
        given_up = {row.key for row in self._store.notes.skipped()}
        wrong: set[Key] = set()
        looked = 0
        for name, vault in self._vaults.items():
            scan = vault.scan()
            own = {key: row for key, row in rows.items() if key[0] == name}
            wrong |= scan.files.keys() - own.keys() - given_up
            wrong |= {key for key, row in own.items() if key not in scan.files and not scan.keeps(row.path)}
            readable = [key for key, row in own.items() if key in scan.files and row.state in ("ok", "empty")]
            sample = [key for key in readable if key in set(only)] if only is not None else _some(readable, NOTES)
            looked += len(sample)
            wrong |= {key for key in sample if _changed(vault, scan, own[key])}
        return wrong, looked

    def words(self) -> CheckResult:
        """Passages that are not found by their own words."""
        store = self._store
        chunks = _sampled(store)
        lost = [passage for passage in chunks if not _by_its_words(store, passage)]
        return _found_again(store, lost, len(chunks), "words")

    def vectors(self) -> CheckResult:
        """Passages that are not the nearest to their own vector, in every space."""
        store = self._store
        chunks = {passage.id: passage for passage in _sampled(store)}
        lost: list[Passage] = []
        for space in store.vectors.spaces():
            ids, vectors = store.vectors.of(space.id, chunks)
            for chunk, vector in zip(ids.tolist(), vectors, strict=True):
                talk = chunks[chunk].note.of_conversation
                nearest = store.vectors.knn(space.id, vector, NEAREST, conversations=talk)
                crowd = len(nearest) == NEAREST and nearest[-1][1] >= SAME  # so many have the same text
                if not crowd and not any(near == chunk and cosine >= SAME for near, cosine in nearest):
                    lost.append(chunks[chunk])
            lost += [chunks[chunk] for chunk in store.vectors.miscoded(space.id, chunks)]
        return _found_again(store, lost, len(chunks), "vectors")


def _sampled(store: Store) -> list[Passage]:
    """Passages of notes, and of conversations."""
    found = [store.notes.sample(PASSAGES, conversations=kind) for kind in (False, True)]
    return store.notes.passages(id for ids in found for id in ids)


def _some(keys: Sequence[Key], most: int) -> Sequence[Key]:
    return keys if len(keys) <= most else random.sample(keys, most)


def _changed(vault: Vault, scan: Scan, row: FileRow) -> bool:
    """Whether the bytes on disk are others than those that were indexed; what cannot be read now is not."""
    try:
        return content_hash(vault.read(scan.files[row.key])) != row.hash
    except NotFound:
        return True
    except Unreadable:
        return False


def _by_its_words(store: Store, chunk: Passage) -> bool:
    known = [word for word in dict.fromkeys(split_words(index_text(chunk.text))) if word.isalnum()]
    if not known:
        return True
    some = known[:: max(1, len(known) // WORDS)][:WORDS]
    expression = " AND ".join(f'"{word}"' for word in some)
    return bool(store.search.holding(expression, [chunk.id], conversations=chunk.note.of_conversation))


def _found_again(store: Store, lost: Sequence[Passage], looked: int, what: str) -> CheckResult:
    """The verdict on those that were not found; what was rewritten meanwhile does not count."""
    there = {passage.id for passage in store.notes.passages({passage.id for passage in lost})}
    lost = [passage for passage in lost if passage.id in there]
    if not lost:
        return CheckResult("ok", f"{looked} passages are found by their own {what}.")
    paths = sorted({passage.note.path for passage in lost})[:PLACES]
    return CheckResult("fault", f"{len(there)} of {looked} passages are not found by their own {what}.", REINDEX, paths)
