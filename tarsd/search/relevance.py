"""How likely a passage answers the query, 0-1, the same for any query and vault.

The scale: 0.75 and above relevant, 0.5 fairly, 0.25 maybe, below not. The figure is a logistic function of
what can be seen of a passage and its note; its coefficients were fitted on questions with and without an answer
(`scripts/evaluate --fit`) and rounded. They are the same for MiniLM and the table, whose cosines are both read
from their own background upwards; a model that reads all languages has its own, for there a question may have no word
in common with its answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """What speaks for a passage, all 0-1.

    `coverage`: the share of the query's weight whose words are there, half by the passage (with title and headings),
    half by what was found of its note; `meaning`: cosine above background, None where no vectors serve; `absent`: the
    share of the query's weight whose words stand nowhere in the vault. `lead`: by how much meaning is above that of
    the notes further back, None unless it comes from a model that reads all languages.
    """

    coverage: float
    meaning: float | None
    absent: float
    lead: float | None = None


RELEVANT = 0.5
"""From it on, a passage answers the query."""
MAYBE = 0.25
"""What is below it does not answer the query."""

_BY_WORDS = (-4.0, 7.0, -2.0)
_BY_BOTH = (-4.0, 5.5, -2.0, 6.0)
_ALL_LANGUAGES = (-6.3, 5.7, 3.6, 7.6, 10.5)


def evidence(seen: Signals) -> tuple[float, ...]:
    """What the coefficients weigh: 1, coverage, absent, and with vectors meaning; of all languages also the lead.

    There, a question whose words are nearly all absent is one in another language, and says the less of the vault.
    """
    if seen.meaning is None:
        return 1.0, seen.coverage, seen.absent
    if seen.lead is None:
        return 1.0, seen.coverage, seen.absent, seen.meaning
    return 1.0, seen.coverage, seen.absent**2, seen.meaning, seen.lead


def relevance(seen: Signals) -> float:
    """The calibrated figure for a passage."""
    weighed = evidence(seen)
    weights = {len(known): known for known in (_BY_WORDS, _BY_BOTH, _ALL_LANGUAGES)}[len(weighed)]
    logit = sum(weight * value for weight, value in zip(weights, weighed, strict=True))
    return 1.0 / (1.0 + math.exp(-logit))
