"""Numbers in, numbers out: the mathematics, which knows NumPy and SciPy only."""
