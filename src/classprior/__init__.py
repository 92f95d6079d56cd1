"""How many positives hide in your unlabeled data."""

from classprior import datasets, divergences, plotting
from classprior._density_ratio import DensityRatio
from classprior.priors import (
    PearsonPrior,
    PenalizedL1Prior,
    PriorCurve,
    pearson_prior,
    penalized_l1,
)

__all__ = [
    "DensityRatio",
    "PearsonPrior",
    "PenalizedL1Prior",
    "PriorCurve",
    "datasets",
    "divergences",
    "pearson_prior",
    "penalized_l1",
    "plotting",
]

__version__ = "0.1.0.dev0"
