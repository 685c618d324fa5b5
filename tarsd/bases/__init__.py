"""Obsidian's Bases language: expressions, base files, and the tables that they make of notes. Pure and bounded."""

from tarsd.bases.evaluate import Budget, Program, RowScope, TooMuch, compile_expression, evaluate, run
from tarsd.bases.faults import BasesError
from tarsd.bases.record import FILE_FIELDS, Lookup, Record
from tarsd.bases.values import Date, Duration, File, LinkValue, Quantity, Value, plain, text_of

__all__ = [
    "FILE_FIELDS", "BasesError", "Budget", "Date", "Duration", "File", "LinkValue", "Lookup", "Program", "Quantity",
    "Record", "RowScope", "TooMuch", "Value", "compile_expression", "evaluate", "plain", "run", "text_of",
]  # fmt: skip
