"""Estimators of the share of positives, one in each file; ``classprior`` has their names."""
