"""The only way to the notes: all reading and searching goes through a `Reader`."""

from tarsd.notes.library import WITHOUT_LOG, NoteLibrary, NoteView
from tarsd.notes.reading import Reader, Retrieval

__all__ = ["WITHOUT_LOG", "NoteLibrary", "NoteView", "Reader", "Retrieval"]
