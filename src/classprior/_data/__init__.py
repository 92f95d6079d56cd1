"""Anything that holds rows, as two samples of numbers."""
