"""Tests of `vault`."""
