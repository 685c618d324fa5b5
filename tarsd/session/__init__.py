"""A conversation: an append-only event log in the state folder, and its note in the vault."""

from tarsd.session.log import Sessions
from tarsd.session.record import (
    Conversation,
    ConversationSummary,
    SummaryRecord,
    ToolUse,
    TurnRecord,
    interrupted,
    title_of,
)

__all__ = [
    "Conversation",
    "ConversationSummary",
    "Sessions",
    "SummaryRecord",
    "ToolUse",
    "TurnRecord",
    "interrupted",
    "title_of",
]
