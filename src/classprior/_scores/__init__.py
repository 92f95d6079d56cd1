"""All that lives on one-dimensional scores: cross-fitting, tails, bounds, intervals."""
