"""Memory.md, Procedural.md, what was noticed, and feedback: plain notes that the person reads and edits.

Everything here only plans changes; whoever asks for one performs it.
"""

from __future__ import annotations

from tarsd.memory import feedback, review
from tarsd.memory.drafts import MEMORY, NOTICED, RULES
from tarsd.memory.lines import holds_private, session_name, sessions_of
from tarsd.memory.review import ReviewProposal
from tarsd.memory.store import Contradiction, Memory

__all__ = [
    "MEMORY",
    "NOTICED",
    "RULES",
    "Contradiction",
    "Memory",
    "ReviewProposal",
    "feedback",
    "holds_private",
    "review",
    "session_name",
    "sessions_of",
]
