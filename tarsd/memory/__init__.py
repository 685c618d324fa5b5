"""Memory.md, Procedural.md, what was noticed, and feedback: plain notes that the person reads and edits.

Everything here only plans changes; whoever asks for one performs it.
"""

from __future__ import annotations

from tarsd.memory import feedback, review
from tarsd.memory.drafts import MEMORY, NOTICED, RULES
from tarsd.memory.feedback import FeedbackEntry, Verdict
from tarsd.memory.lines import holds_private
from tarsd.memory.review import ReviewProposal, Sources
from tarsd.memory.store import Contradiction, Kind, Memory

__all__ = [
    "MEMORY",
    "NOTICED",
    "RULES",
    "Contradiction",
    "FeedbackEntry",
    "Kind",
    "Memory",
    "ReviewProposal",
    "Sources",
    "Verdict",
    "feedback",
    "holds_private",
    "review",
]
