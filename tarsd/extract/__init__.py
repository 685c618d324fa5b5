"""Files that are no notes (PDF, office files, books, web pages, pictures) become pages of text, in child processes."""

from tarsd.extract.needs import missing
from tarsd.extract.pages import SUFFIXES, Extracted, Kind, Page
from tarsd.extract.reader import FileReader as Reader
from tarsd.extract.reading import extract

__all__ = ["SUFFIXES", "Extracted", "Kind", "Page", "Reader", "extract", "missing"]
