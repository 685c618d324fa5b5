"""Disk against store → plan → apply, with guards; model vectors in the background; a report of each pass."""

from tarsd.index.indexer import Indexer
from tarsd.index.report import EmbeddingProgress, IndexState, Report

__all__ = ["EmbeddingProgress", "IndexState", "Indexer", "Report"]
