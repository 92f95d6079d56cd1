"""How many positives hide in your unlabeled data."""

from classprior import datasets, divergences, plotting
from classprior._density_ratio import DensityRatio
from classprior.priors import (
    ElkanNotoPrior,
    PearsonPrior,
    PenalizedL1Prior,
    PriorCurve,
    PriorResult,
    elkan_noto_prior,
    pearson_prior,
    penalized_l1,
)

__all__ = [
    "DensityRatio",
    "ElkanNotoPrior",
    "PearsonPrior",
    "PenalizedL1Prior",
    "PriorCurve",
    "PriorResult",
    "datasets",
    "divergences",
    "elkan_noto_prior",
    "pearson_prior",
    "penalized_l1",
    "plotting",
]

__version__ = "0.1.0.dev0"
