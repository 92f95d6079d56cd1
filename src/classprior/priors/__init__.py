"""Prior estimators, one per module; import them from ``classprior``."""
