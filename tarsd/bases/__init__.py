"""Obsidian's Bases language: expressions, base files, and the tables that they make of notes. Pure and bounded."""

from tarsd.bases.evaluate import Budget, Program, Scope, compile_expression, evaluate
from tarsd.bases.faults import BasesError
from tarsd.bases.record import FILE_FIELDS, Lookup, Record
from tarsd.bases.values import Date, Duration, File, Link, Quantity, Value, plain, text_of

__all__ = [
    "FILE_FIELDS", "BasesError", "Budget", "Date", "Duration", "File", "Link", "Lookup", "Program", "Quantity",
    "Record", "Scope", "Value", "compile_expression", "evaluate", "plain", "text_of",
]  # fmt: skip
