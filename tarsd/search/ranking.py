"""A query at work: the lists it made, their fusion, and the hits that are read off it with relevance and reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tarsd.passage import Passage
from tarsd.search import fuse
from tarsd.search.lexicon import TermStats
from tarsd.search.query import Query
from tarsd.search.relevance import Signals, relevance
from tarsd.search.titles import TitleMatch
from tarsd.search.vectors import MULTILINGUAL, QueryVector
from tarsd.words import guess

Mode = Literal["hybrid", "fts", "vec"]
MODES: tuple[Mode, ...] = ("hybrid", "fts", "vec")

STRONG_TITLE = 0.5
_FURTHER = 10  # notes before the one that the lead is measured from
_FEW_ALIKE = 2  # notes with the same passage; in more it is a footer or a template, and tells less of each
"""The share of a name that makes its note a candidate, and worth mentioning."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search may look at and tell.

    Without `conversations`, what tarsd wrote itself is not searched; its memory is. A query that may hold private text
    does not leave (`leaves`) this machine: no embedding model elsewhere is asked. Nothing is known of the `hidden`
    files (ids): they are not found, and what words they hold changes neither relevance nor what a mistyped word is
    read as. Where there are `only` some files (ids), others are not found. `files` is the scope among the files that
    are no notes; without it these are not searched.
    """

    conversations: bool = True
    leaves: bool = True
    hidden: frozenset[int] = frozenset()
    only: frozenset[int] | None = None
    files: Scope | None = None


EVERYTHING = Scope(files=Scope())


@dataclass
class Ranking:
    """One query at work: the lists and what became of them.

    It ranks notes, or `conversations`: the lists of the one know nothing of the other; `longest` is how long these may
    become, 0 for the usual. `passing` are the file ids that
    filters let pass (None for all), `allowed` those of them that are ranked, `asked` the query's vectors. `fused` holds
    every candidate, best first; of the best ones, `rows` has the passage, `held` the terms in it, and
    `in_names` those of them that are only part of a name, as `line` is of `parseHeaderLine`; `repeated` says of those
    that read the same in several notes in how many.
    """

    query: Query
    mode: Mode
    terms: list[TermStats] = field(default_factory=list)
    conversations: bool = False
    longest: int = 0
    passing: set[int] | None = None
    allowed: set[int] | None = None
    asked: list[QueryVector] | None = None
    keyword: list[tuple[int, float]] = field(default_factory=list)
    vectors: list[tuple[QueryVector, list[tuple[int, float]]]] = field(default_factory=list)
    lists: list[fuse.VectorList] = field(default_factory=list)
    titles: dict[int, TitleMatch] = field(default_factory=dict)
    file_of: dict[int, int] = field(default_factory=dict)
    parts: dict[int, fuse.ScoreParts] = field(default_factory=dict)
    fused: fuse.Scored = field(default_factory=list)
    total: float = 1.0
    rows: dict[int, Passage] = field(default_factory=dict)
    held: dict[int, list[TermStats]] = field(default_factory=dict)
    in_names: dict[int, frozenset[TermStats]] = field(default_factory=dict)
    repeated: dict[int, int] = field(default_factory=dict)
    trouble: str = ""

    @property
    def all_languages(self) -> bool:
        """Whether all meaning comes from a model that reads every language."""
        return [vectors.name in MULTILINGUAL for vectors in self.lists] == [True]

    @property
    def understood(self) -> bool:
        """Whether the vectors are of a model that reads the query's language; the built-in others read English."""
        return self.all_languages or (bool(self.lists) and guess(self.query.text) == "en")

    @property
    def weight(self) -> float:
        """What all terms weigh that are looked for singly."""
        return sum(stats.weight for stats in self.terms if not stats.term.whole) or 1.0

    def share(self, held: Iterable[TermStats]) -> float:
        """The share of the query's weight, 0-1, that these of its terms have; less for what was not typed."""
        return sum(stats.weight * stats.trust for stats in held if not stats.term.whole) / self.weight

    def absent(self) -> float:
        """The share of the query's weight that stands nowhere."""
        lacking = [t for t in self.terms if not (t.term.whole or t.chunks or t.completed)]
        return sum(stats.weight for stats in lacking) / self.weight

    def further(self) -> float:
        """The meaning of the notes further back: 0, the background's, where there are few."""
        best: defaultdict[int, float] = defaultdict(float)
        for chunk_id, parts in self.parts.items():
            best[self.file_of[chunk_id]] = max(best[self.file_of[chunk_id]], parts.meaning)
        return sorted(best.values(), reverse=True)[_FURTHER] if len(best) > _FURTHER else 0.0


def judged(ranking: Ranking, limit: int) -> list[tuple[Passage, Signals]]:
    """The first hits of a ranking, each with what its relevance was made of."""
    absent = ranking.absent()
    by_note: defaultdict[int, set[TermStats]] = defaultdict(set)
    for chunk_id, held in ranking.held.items():
        by_note[ranking.file_of[chunk_id]].update(held)
    further = ranking.further() if ranking.all_languages else None
    in_keyword_list = {i for i, _ in ranking.keyword}
    found: list[tuple[Passage, Signals]] = []
    for chunk_id, score in ranking.fused:
        if len(found) >= limit:
            break
        row = ranking.rows.get(chunk_id)
        if row is None:
            continue
        held = ranking.held.get(chunk_id, [])
        coverage = 0.5 * ranking.share(held) + 0.5 * ranking.share(by_note[row.note.id])
        meaning = max(0.0, ranking.parts[chunk_id].meaning) if ranking.lists else None
        lead = max(0.0, meaning - further) if meaning is not None and further is not None else None
        seen = Signals(coverage, meaning, absent, lead)
        reasons = _reasons(ranking, row, held)
        if chunk_id in in_keyword_list and not held:
            reasons.append("words in links or properties")
        # Filters alone are met or not.
        value = relevance(seen) if ranking.query.text else 1.0
        value *= min(1.0, _FEW_ALIKE / ranking.repeated.get(chunk_id, 1))
        found.append((replace(row, score=max(0.0, score), relevance=value, why=tuple(reasons)), seen))
    return found


def _reasons(ranking: Ranking, row: Passage, named: Sequence[TermStats]) -> list[str]:
    reasons: list[str] = []
    title = ranking.titles.get(row.note.id)
    if title is not None and title.cover >= STRONG_TITLE:
        what = f"alias {title.name}" if title.alias else "title"
        reasons.append(what if title.exact or title.cover >= 1 else f"{what}, in part")
    in_names = ranking.in_names.get(row.id, frozenset())
    typed = [stats.term.literal for stats in named if stats.chunks and not stats.term.whole and stats not in in_names]
    if typed:
        reasons.append("words: " + ", ".join(typed))
    parts = [stats.term.literal for stats in named if stats in in_names]
    if parts:
        reasons.append("in names: " + ", ".join(parts))
    begun = [stats.term.literal for stats in named if not stats.chunks and stats.completed]
    if begun:
        reasons.append("words that begin with " + ", ".join(begun))
    meant = [f"{stats.term.literal} as {stats.instead[0]}" for stats in named if not stats.chunks and stats.instead]
    if meant:
        reasons.append("read " + ", ".join(meant))
    nearest: list[str] = []
    for vectors in ranking.lists:
        cosine = vectors.cosines.get(row.id)
        if cosine is not None and (vectors.value(row.id) or 0) > 0.1:
            nearest.append(f"meaning {cosine:.2f} ({vectors.name})")
    reasons += nearest[:1]
    return reasons
