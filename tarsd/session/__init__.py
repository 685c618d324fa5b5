"""A conversation: an append-only event log in the state folder, and its note in the vault."""

from tarsd.session.log import Sessions
from tarsd.session.markdown import as_note_text
from tarsd.session.note import (
    begun,
    file_title,
    grown,
    holds,
    render_new,
    render_summary_note,
    render_turn,
    summarised,
    update_properties,
)
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
    "as_note_text",
    "begun",
    "file_title",
    "grown",
    "holds",
    "interrupted",
    "render_new",
    "render_summary_note",
    "render_turn",
    "summarised",
    "title_of",
    "update_properties",
]
