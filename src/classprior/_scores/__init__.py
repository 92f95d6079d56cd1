"""One-dimensional scores: cross-fitting, tails, bounds, intervals and diagnostics."""
