"""Bytes to tables and back: finding, reading and writing files."""
