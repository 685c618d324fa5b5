"""Every change to a note: planned as text, shown as a diff, performed by a client or the daemon, kept for undo."""

from tarsd.writing.changes import Change, Loaded, until_written
from tarsd.writing.edits import append, create, patch, replace_text
from tarsd.writing.journal import Journal
from tarsd.writing.notes import Notebook
from tarsd.writing.writer import Writer

__all__ = [
    "Change", "Journal", "Loaded", "Notebook", "Writer", "append", "create", "patch", "replace_text", "until_written"
]  # fmt: skip
