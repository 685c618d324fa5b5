"""How likely a passage answers the query, 0-1, the same for any query and vault.

The scale: 0.75 and above relevant, 0.5 fairly, 0.25 maybe, below not. The figure is a logistic function of
what can be seen of one passage; its coefficients were fitted on questions with and without an answer
(`scripts/evaluate --fit`) and rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Basis = Literal["model", "table", "words"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a passage, all 0-1.

    `coverage`: the share of the query's weight whose words the passage (with title and headings) holds;
    `meaning`: cosine above background; `title`: how much of the note's name the query names.
    """

    coverage: float
    meaning: float
    title: float


# constant, coverage, meaning, title
_COEFFICIENTS: dict[Basis, tuple[float, float, float, float]] = {
    "model": (-6.0, 3.0, 8.0, 0.5),
    "table": (-6.0, 5.0, 5.0, 0.5),
    "words": (-4.0, 6.0, 0.0, 0.5),
}


def relevance(seen: Evidence, basis: Basis) -> float:
    """The calibrated figure for a passage, judged by the model's vectors, the table's, or words alone."""
    constant, coverage, meaning, title = _COEFFICIENTS[basis]
    logit = constant + coverage * seen.coverage + meaning * seen.meaning + title * seen.title
    return 1.0 / (1.0 + math.exp(-logit))


def band(value: float) -> str:
    """The word people see for a relevance."""
    for least, name in ((0.75, "relevant"), (0.5, "fairly relevant"), (0.25, "maybe relevant")):
        if value >= least:
            return name
    return "not relevant"
