"""The one door to the notes: whoever reads one, or searches them, does so through a `Reader`."""

from tarsd.notes.library import WITHOUT_LOG, NoteLibrary, NoteView
from tarsd.notes.reading import Reader, Retrieval

__all__ = ["WITHOUT_LOG", "NoteLibrary", "NoteView", "Reader", "Retrieval"]
