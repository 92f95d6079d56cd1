"""How many positives hide in your unlabeled data."""

from classprior import datasets, divergences, plotting
from classprior.priors import PenalizedL1Prior, PriorCurve, penalized_l1

__all__ = [
    "PenalizedL1Prior",
    "PriorCurve",
    "datasets",
    "divergences",
    "penalized_l1",
    "plotting",
]

__version__ = "0.1.0.dev0"
