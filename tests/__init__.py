"""Tests: one file per module, then the cases that people reported, then whole runs over a real socket."""
