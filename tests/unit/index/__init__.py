"""Tests of `index`."""
