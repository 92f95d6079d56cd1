"""Numerical core: arrays in, arrays out, based on NumPy and SciPy only."""
