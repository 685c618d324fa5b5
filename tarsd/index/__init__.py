"""Disk against store → plan → apply, with guards; model vectors in the background; a report of each pass."""

from tarsd.index.indexer import Indexer
from tarsd.index.values import Embedding, Report, State

__all__ = ["Embedding", "Indexer", "Report", "State"]
