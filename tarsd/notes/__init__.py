"""The only way to the notes: all reading and searching goes through a `Reader`."""

from tarsd.notes.library import WITHOUT_LOG, NoteLibrary
from tarsd.notes.note_view import NoteView
from tarsd.notes.reading import ANYWHERE, Reader, Retrieval, Within

__all__ = ["ANYWHERE", "WITHOUT_LOG", "NoteLibrary", "NoteView", "Reader", "Retrieval", "Within"]
