"""Several lists of chunks → one. Pure arithmetic on numbers that other modules fetched.

Every list is put on a scale of its own that means the same for any query, so that a list in which nothing fits adds
little, instead of having its best accident stretched to 1:
- keywords: BM25 divided by what a passage of average length would get for naming each word of the query once, or by
  the best score where that is higher;
- vectors: cosine less the background, as a share of what is left of it. The background is the mean cosine of the
  query with a sample of the vault, so models that find everything similar are read like those that don't.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_SUPPORT = 3
# Measured; up to 3 at most serves paraphrases a little better still, and long conversations a little worse.
_LEAD, _LED_AT_MOST = 1.5, 2.0
_BEYOND, _BEYOND_AT_MOST, _ELSEWHERE = 40.0, 3.0, 30.0
# Backgrounds of MiniLM: up to 0.15 in English notes of one subject, 0.25 to 0.4 in Turkish ones.
_ENGLISH, _STRANGE = 0.2, 0.35
_FIFTH = 4


@dataclass(frozen=True, slots=True)
class VectorList:
    """Cosines of one space with a query, by chunk id; `weight` is how far this kind of vectors is to be trusted,
    `coverage` the share of the vault's chunks that have one."""

    name: str
    role: str
    cosines: Mapping[int, float]
    background: float
    weight: float
    coverage: float

    def value(self, chunk_id: int) -> float | None:
        """0 (as near as anything; less is possible) to 1 (the same), None where the chunk has no vector here."""
        cosine = self.cosines.get(chunk_id)
        if cosine is None:
            return None
        return (cosine - self.background) / max(1e-6, 1.0 - self.background)


class ScoreParts(NamedTuple):
    """What a chunk's score is made of, each 0-1 and not yet weighted (meaning may be below 0)."""

    keyword: float
    meaning: float
    title: float
    support: float


Scored = list[tuple[int, float]]
"""(chunk id, score 0-1), best first."""


def keyword_values(scores: Mapping[int, float], ideal: float) -> dict[int, float]:
    """BM25 scores on the scale 0-1; `ideal` is the sum of the query words' weights."""
    top = max(scores.values(), default=0.0)
    scale = max(top, ideal, 1e-9)
    return {chunk_id: score / scale for chunk_id, score in scores.items()}


def meaning_values(lists: Sequence[VectorList], chunk_ids: Sequence[int]) -> tuple[dict[int, float], float]:
    """Nearness by chunk id (0-1), and the weight of it.

    While the model's vectors are partial, both lists speak: each divided by its own best value and weighted by
    coverage; a chunk that the model has not seen yet is judged by the table alone, on the same scale.
    """
    values = [{i: v for i in chunk_ids if (v := vectors.value(i)) is not None} for vectors in lists]
    tops = [max(near.values(), default=0.0) for near in values]
    model = next((n for n, vectors in enumerate(lists) if vectors.role == "model"), None)
    if model is None or len(lists) == 1:
        return (values[0], lists[0].weight) if lists else ({}, 0.0)
    table = 1 - model
    share = lists[model].coverage
    weight = share * lists[model].weight + (1 - share) * lists[table].weight
    height = (share * lists[model].weight * tops[model] + (1 - share) * lists[table].weight * tops[table]) / weight
    mixed: dict[int, float] = {}
    for chunk_id in chunk_ids:
        by_table = values[table].get(chunk_id, 0.0) / (tops[table] or 1.0)
        by_model = values[model].get(chunk_id)
        relative = by_table if by_model is None else share * by_model / (tops[model] or 1.0) + (1 - share) * by_table
        mixed[chunk_id] = height * relative
    return mixed, weight


def lead(keyword: Mapping[int, float], meaning: Mapping[int, float], file_of: Mapping[int, int]) -> float:
    """By how much meaning outweighs its usual weight: 1, and more where it tells notes apart and keywords don't.

    A question in other words than the notes use finds many notes by its common words, all about equally well; what
    sets the best of them off is chance. How well a list tells them apart is its distance from the best to the fifth.
    """
    if len(set(file_of.values())) <= _FIFTH:
        return 1.0
    by_words, by_meaning = _contrast(keyword, file_of), _contrast(meaning, file_of)
    return min(_LED_AT_MOST, max(1.0, _LEAD * by_meaning / max(by_words, 1e-6)))


def beyond_words(unsaid: float, elsewhere: float = 0.0) -> float:
    """By how much meaning outweighs its usual weight where this share of the query (0-1) is in no passage's words.

    Little up to a third, for few passages say all of a question; then keywords have only chance to offer: the more so,
    the more of it the notes say `elsewhere` (0-1). What they never say may be in another language, and then the names
    beside it are none of chance.
    """
    return min(_BEYOND_AT_MOST + _ELSEWHERE * elsewhere, 1.0 + _BEYOND * unsaid**4)


def reads(background: float) -> float:
    """How far an English model reads a query (0-1), by the mean cosine of it with anything in the notes.

    Words that it has not learnt are letters to it, and a bag of letters is near to any other.
    """
    return min(1.0, max(0.0, (_STRANGE - background) / (_STRANGE - _ENGLISH)))


def _contrast(values: Mapping[int, float], file_of: Mapping[int, int]) -> float:
    best: defaultdict[int, float] = defaultdict(float)
    for chunk_id, file_id in file_of.items():
        best[file_id] = max(best[file_id], values.get(chunk_id, 0.0))
    first = sorted(best.values(), reverse=True)[: _FIFTH + 1]
    return first[0] - first[-1]


def parts(
    keyword: Mapping[int, float],
    meaning: Mapping[int, float],
    title: Mapping[int, float],
    file_of: Mapping[int, int],
    sizes: Mapping[int, int],
    weights: ScoreParts,
) -> dict[int, ScoreParts]:
    """The parts of every chunk of `file_of`.

    Support is the mean of what the note's best three passages have in keywords and meaning (of all, if they are
    fewer: `sizes` counts them), so that a note that keeps to the subject goes before one that mentions it.
    """
    of_base = weights.keyword + weights.meaning or 1.0
    base: dict[int, float] = {}
    by_file: defaultdict[int, list[float]] = defaultdict(list)
    for chunk_id, file_id in file_of.items():
        value = weights.keyword * keyword.get(chunk_id, 0.0) + weights.meaning * meaning.get(chunk_id, 0.0)
        base[chunk_id] = value / of_base
        by_file[file_id].append(base[chunk_id])
    support = {
        file_id: sum(sorted(values, reverse=True)[:_SUPPORT]) / min(_SUPPORT, max(sizes.get(file_id, 0), len(values)))
        for file_id, values in by_file.items()
    }
    return {
        chunk_id: ScoreParts(
            keyword.get(chunk_id, 0.0), meaning.get(chunk_id, 0.0), title.get(file_id, 0.0), support[file_id]
        )
        for chunk_id, file_id in file_of.items()
    }


def weighted(found: Mapping[int, ScoreParts], weights: ScoreParts) -> tuple[Scored, float]:
    """All chunks by the weighted sum of their parts, and the sum of the weights that it was divided by.

    The weight of support is a share of keywords' and meaning's.
    """
    k, m, t, s = weights
    s *= k + m
    total = k + m + t + s or 1.0
    sums = {
        i: k * scored.keyword + m * scored.meaning + t * scored.title + s * scored.support
        for i, scored in found.items()
    }
    return ordered({i: value / total for i, value in sums.items()}), total


def reciprocal(lists: Sequence[tuple[Sequence[int], float]], k: int) -> dict[int, float]:
    """Reciprocal rank fusion: each list (best first) gives weight / (k + rank); scaled so that first in all is 1."""
    scores: defaultdict[int, float] = defaultdict(float)
    for ids, weight in lists:
        for rank, chunk_id in enumerate(ids, 1):
            scores[chunk_id] += weight * (k + 1) / (k + rank)
    total = sum(weight for _, weight in lists) or 1.0
    return {chunk_id: score / total for chunk_id, score in scores.items()}


def ordered(scores: Mapping[int, float]) -> Scored:
    """Best first; equal ones in the order of the index."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def spread(ranked: Scored, file_of: Mapping[int, int], factor: float) -> Scored:
    """Further passages of the same note step back: the n-th keeps factor^(n-1) of its score."""
    seen: defaultdict[int, int] = defaultdict(int)
    found: dict[int, float] = {}
    for chunk_id, score in ranked:
        file_id = file_of[chunk_id]
        found[chunk_id] = score * factor ** seen[file_id]
        seen[file_id] += 1
    return ordered(found)
