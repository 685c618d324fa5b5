"""How likely a passage answers the query, 0-1, the same for any query and vault.

The scale: 0.75 and above relevant, 0.5 fairly, 0.25 maybe, below not. The figure is a logistic function of
what can be seen of a passage and its note; its coefficients were fitted on questions with and without an answer
(`scripts/evaluate --fit`) and rounded. They are the same for the model and the table, whose cosines are both read
from their own background upwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """What speaks for a passage, all 0-1.

    `coverage`: the share of the query's weight whose words are there, half by the passage (with title and headings),
    half by what was found of its note; `meaning`: cosine above background, None where no vectors serve; `absent`: the
    share of the query's weight whose words stand nowhere in the vault.
    """

    coverage: float
    meaning: float | None
    absent: float


MAYBE = 0.25
"""What is below it does not answer the query."""

_CONSTANT, _COVERAGE, _MEANING, _ABSENT = -4.0, 5.5, 6.0, -2.0
# Without vectors, words alone have to say it.
_COVERAGE_ALONE = 7.0


def relevance(seen: Signals) -> float:
    """The calibrated figure for a passage."""
    logit = _CONSTANT + _ABSENT * seen.absent
    if seen.meaning is None:
        logit += _COVERAGE_ALONE * seen.coverage
    else:
        logit += _COVERAGE * seen.coverage + _MEANING * seen.meaning
    return 1.0 / (1.0 + math.exp(-logit))
