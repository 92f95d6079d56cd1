"""How many positives hide in your unlabeled data."""

from classprior import (
    datasets,
    divergences,
    engines,
    metrics,
    plotting,
    report,
    sensitivity,
    theory,
)
from classprior._classifier import PUClassifier
from classprior._density_ratio import DensityRatio, density_ratio
from classprior.estimate import PriorEstimate, estimate_prior
from classprior.priors import (
    AutoPrior,
    AutoResult,
    DivergencePrior,
    ElkanNotoPrior,
    PearsonPrior,
    PenalizedL1Prior,
    PriorCurve,
    PriorResult,
    RejectionCurve,
    ScottBlanchardPrior,
    auto_prior,
    divergence_prior,
    elkan_noto_prior,
    pearson_prior,
    penalized_l1,
    scott_blanchard_prior,
)

__all__ = [
    "AutoPrior",
    "AutoResult",
    "DensityRatio",
    "DivergencePrior",
    "ElkanNotoPrior",
    "PUClassifier",
    "PearsonPrior",
    "PenalizedL1Prior",
    "PriorCurve",
    "PriorEstimate",
    "PriorResult",
    "RejectionCurve",
    "ScottBlanchardPrior",
    "auto_prior",
    "datasets",
    "density_ratio",
    "divergence_prior",
    "divergences",
    "elkan_noto_prior",
    "engines",
    "estimate_prior",
    "metrics",
    "pearson_prior",
    "penalized_l1",
    "plotting",
    "report",
    "scott_blanchard_prior",
    "sensitivity",
    "theory",
]

__version__ = "0.1.0.dev0"
